//! Random histories, as rich as the format at hand allows.

use std::ops::Bound;

use kingsnake_solver::model::{History, HistoryBuilder, Status, Token};
use proptest::collection::vec;
use proptest::prelude::*;

/// What a history may hold.
#[derive(Clone, Copy, Default)]
// Each is a switch of its own; every combination makes sense.
#[allow(clippy::struct_excessive_bools)]
pub struct Riches {
    pub texts: bool,
    pub lists: bool,
    pub aborted: bool,
    pub unknown: bool,
    pub last_unknown: bool,
    pub some_times: bool,
    pub all_times: bool,
    pub isolation: bool,
    pub version_orders: bool,
    pub empty: bool,
    pub thin_air: bool,
    pub rows: bool,
}

impl Riches {
    /// Everything that our own format can express.
    pub const ALL: Riches = Riches {
        texts: true,
        lists: true,
        aborted: true,
        unknown: true,
        last_unknown: false,
        some_times: true,
        all_times: false,
        isolation: true,
        version_orders: true,
        empty: true,
        thin_air: true,
        rows: true,
    };
}

/// One transaction before it is built: session, status, times, operations as (kind, key, choice of value).
type Draft = (u8, u8, (i64, i64), Vec<(u8, u8, u8)>);

/// A strategy for histories.
pub fn histories(riches: Riches) -> impl Strategy<Value = History> {
    let ops = vec(
        (0_u8..if riches.rows { 7 } else { 4 }, 0_u8..5, any::<u8>()),
        usize::from(!riches.empty)..6,
    );
    let times = (-1000_i64..1000, 0_i64..1000);
    let draft = (0_u8..4, any::<u8>(), times, ops);
    (vec(draft, 1..14), any::<bool>())
        .prop_map(move |(drafts, timed)| build(&drafts, timed, riches))
}

fn build(drafts: &[Draft], timed: bool, riches: Riches) -> History {
    let mut builder = HistoryBuilder::new();
    if timed || !riches.rows {
        builder.initial_everywhere(Token::Int(0));
    } else {
        // Without an initial value that all share, only the keys that have one of their own are there from the start.
        builder.initial_everywhere(Token::Nil);
        builder.initial(Token::Int(1), Token::Int(77));
        builder.initial(Token::Int(3), Token::Int(78));
    }
    let mut written: Vec<Vec<i64>> = vec![Vec::new(); 5];
    let mut next = 1;
    for (number, (session, status, (begin, length), ops)) in drafts.iter().enumerate() {
        let is_last = !drafts[number + 1..].iter().any(|later| later.0 == *session);
        let name = name(&mut builder, number as i64 + 1, riches);
        let session_name = Token::Int(i64::from(*session));
        let session = builder.session(session_name);
        let status = match status % 4 {
            0 if riches.aborted => Status::Aborted,
            1 if riches.unknown || (riches.last_unknown && is_last) => Status::Unknown,
            _ => Status::Committed,
        };
        builder.begin(session, name, status).expect("names differ");
        if timed && riches.all_times {
            let commit = (status != Status::Unknown).then_some(begin + length);
            builder.times(Some(*begin), commit);
        } else if timed && riches.some_times && number % 3 > 0 {
            let commit = (number % 3 > 1).then_some(begin + length);
            builder.times(Some(*begin), commit);
        }
        if riches.isolation && number % 4 == 1 {
            let level = builder.text("snapshot \"isolation\"");
            builder.isolation(level);
        }
        for &(kind, key_number, choice) in ops {
            let key = key(&mut builder, key_number, riches);
            let known = &mut written[usize::from(key_number)];
            let tombstone = match choice % 3 {
                0 => Token::Nil,
                n => Token::Int(i64::from(n)),
            };
            match kind {
                4 => {
                    known.push(next);
                    builder.insert(key, Token::Int(next));
                    next += 1;
                }
                5 if choice > 200 => drop(builder.read_tombstone(key, tombstone)),
                5 => drop(builder.delete(key, tombstone)),
                6 => {
                    let known = known.last().copied();
                    range(&mut builder, key_number, choice, known);
                }
                0 | 1 => {
                    let is_thin_air = riches.thin_air && choice > 240;
                    let value = match known.len() {
                        _ if is_thin_air => 5000 + i64::from(choice),
                        0 => 0,
                        n => known[usize::from(choice) % n],
                    };
                    builder.read(key, Token::Int(value));
                }
                2 if riches.lists => {
                    let items = known
                        .iter()
                        .take(usize::from(choice % 4))
                        .map(|&it| Token::Int(it));
                    builder.read_list(key, items.collect::<Vec<_>>());
                }
                3 if riches.lists => {
                    known.push(next);
                    builder.append(key, Token::Int(next));
                    next += 1;
                }
                _ => {
                    known.push(next);
                    builder.write(key, Token::Int(next));
                    next += 1;
                }
            }
        }
    }
    if riches.version_orders {
        for (number, values) in written
            .iter()
            .enumerate()
            .filter(|(number, _)| number % 2 == 0)
        {
            let key = key(&mut builder, number as u8, riches);
            let values: Vec<Token> = values.iter().map(|&it| Token::Int(it)).collect();
            builder.version_order(key, values).expect("values differ");
        }
    }
    builder.finish().expect("the history is well formed")
}

/// A range query around a key; what it returned need not make sense.
fn range(builder: &mut HistoryBuilder, key: u8, choice: u8, known: Option<i64>) {
    let key = i64::from(key);
    let ends = [
        Bound::Unbounded,
        Bound::Included(Token::Int(key)),
        Bound::Excluded(Token::Int(key - 1)),
        Bound::Included(Token::Int(i64::MIN)),
    ];
    let low = ends[usize::from(choice % 4)];
    let high = match choice / 4 % 3 {
        0 => Bound::Unbounded,
        1 => Bound::Included(Token::Int(key)),
        _ => Bound::Excluded(Token::Int(key + 1)),
    };
    let row = |value: i64| (Token::Int(key), Token::Int(value));
    let rows: Vec<_> = known.map(row).into_iter().collect();
    let deleted = [row(1)];
    let deleted = match choice / 16 % 3 {
        0 => None,
        1 => Some(&deleted[..0]),
        _ => Some(&deleted[..]),
    };
    let answer = builder.range(low, high, &rows, deleted);
    answer.expect("the key is inside");
}

fn name(builder: &mut HistoryBuilder, number: i64, riches: Riches) -> Token {
    if riches.texts && number % 3 == 0 {
        return builder.text(&format!("t\u{e9}\n{number}"));
    }
    Token::Int(number)
}

fn key(builder: &mut HistoryBuilder, number: u8, riches: Riches) -> Token {
    if riches.texts && number == 2 {
        return builder.text("key \"two\"\\");
    }
    Token::Int(i64::from(number))
}
