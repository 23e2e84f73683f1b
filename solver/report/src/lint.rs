//! Logging mistakes that look like database bugs, or hide them: what `lint` reports, and the hints after a verdict.
//!
//! Nothing here affects a verdict. Each rule is a function from a history to at most one problem, which states what to
//! write in the format of the history.

use std::collections::BTreeMap;

use kingsnake_datasets::Format;
use kingsnake_solver::model::{History, Interval, ObjectKind, Op, SessionId, Token, TxnId};
use kingsnake_solver::verdict::Verdict;
use kingsnake_tell::AnomalyName;
use kingsnake_text::count;
use rustc_hash::{FxHashMap, FxHashSet};

/// Times of this century, in seconds since 1970; recorded times should be nanoseconds.
const THIS_CENTURY: std::ops::Range<i64> = 946_684_800..4_102_444_800;

/// The units of clocks.
const PER_SECOND: [(i64, &str); 4] = [
    (1, "seconds"),
    (1_000, "milliseconds"),
    (1_000_000, "microseconds"),
    (1_000_000_000, "nanoseconds"),
];

/// Transactions of a session that begin closer together cannot be in nanoseconds: writing a log line takes longer.
const CLOSEST_BEGINS: i64 = 500;
/// A transaction that is shorter than this cannot be in nanoseconds.
const SHORTEST: i64 = 100;

type Rule = fn(&History, Format) -> Option<String>;

const RULES: [Rule; 11] = [
    no_transactions,
    no_reads,
    null_reads,
    unwritten_reads,
    alike,
    repeated_values,
    equal_increments,
    own_times,
    units,
    ids_like_times,
    no_overlap,
];

/// All probable logging mistakes.
pub fn lint(history: &History, format: Format) -> Vec<String> {
    found(&RULES, history, format)
}

fn found(rules: &[Rule], history: &History, format: Format) -> Vec<String> {
    let found = rules.iter().filter_map(|rule| rule(history, format));
    found.collect()
}

/// The rules whose mistakes look like an anomaly of this name, or hide every anomaly.
pub fn hints(
    history: &History,
    format: Format,
    verdict: &Verdict,
    anomaly: Option<AnomalyName>,
) -> Vec<String> {
    let rules: &[Rule] = match (verdict, anomaly) {
        (Verdict::Satisfied(_), _) => &[no_transactions, no_reads],
        (Verdict::Violated(_), Some(name)) => {
            let letters = name.adya.unwrap_or("");
            let by_order = letters.ends_with("-session") || letters.ends_with("-realtime");
            match name.short {
                "thin-air read" => &[null_reads, unwritten_reads, alike],
                _ if by_order => &[own_times, units],
                _ => &[],
            }
        }
        _ => &[],
    };
    found(rules, history, format)
}

fn no_transactions(history: &History, _: Format) -> Option<String> {
    (history.n_txns() == 0)
        .then(|| "there is no transaction, so every level holds; was anything recorded?".to_owned())
}

/// Where nothing is read, only an order that was given or recorded can be broken, by timestamps or by the clock.
fn no_reads(history: &History, _: Format) -> Option<String> {
    let is_read = |op: Op| !op.is_write();
    let is_judged = ops(history).any(is_read) || history.n_predicates() > 0;
    if history.n_txns() == 0 || is_judged {
        return None;
    }
    let is_ordered = !history.version_orders().is_empty()
        || !history.given_edges().is_empty()
        || history.has_times()
        || history.txns().any(|txn| !history.stamps(txn).is_empty());
    let words = if is_ordered {
        "nothing is read, so only the recorded orders and times are checked"
    } else {
        "nothing is read, so every level holds"
    };
    Some(format!("{words}; record what reads return"))
}

/// Reads of null, although the header says that every key has a value.
fn null_reads(history: &History, format: Format) -> Option<String> {
    let initial = history.initial_of_all()?;
    let deletes = |op: Op| matches!(op, Op::Write { value, .. } if history.is_absence(value));
    if ops(history).any(deletes) {
        return None;
    }
    let reads = ops(history).filter(|op| is_null_read(history, *op)).count();
    let initial = spelt(history, initial);
    let or_leave_out = match format {
        Format::Kingsnake => "leave \"initial\" out of the first line, or ",
        _ => "",
    };
    (reads > 0).then(|| {
        format!(
            "{} of null, although every key begins with {initial} and nothing is deleted; if a missing row is read as null, \
             {or_leave_out}write {initial} for it",
            count(reads, "read")
        )
    })
}

fn is_null_read(history: &History, op: Op) -> bool {
    matches!(op, Op::Read { value, .. } if history.value_token(value) == Token::Nil && !history.is_initial(value))
}

/// Reads of values with no writer: usually the state before the test, which the log does not give.
fn unwritten_reads(history: &History, format: Format) -> Option<String> {
    let mut written = vec![false; history.n_values()];
    let mut tokens: FxHashSet<Token> = FxHashSet::default();
    for op in ops(history) {
        if let Op::Write { value, .. } | Op::Append { value, .. } = op {
            written[value.index()] = true;
            tokens.insert(history.value_token(value));
        }
    }
    // A different spelling of a written value is handled by the next rule.
    let is_misspelt = |token: Token| {
        number_in(history, token).is_some_and(|number| tokens.contains(&Token::Int(number)))
    };
    let mut read: BTreeMap<Token, usize> = BTreeMap::new();
    for op in ops(history) {
        if let Op::Read { value, .. } = op
            && !written[value.index()]
            && !history.is_initial(value)
        {
            *read.entry(history.value_token(value)).or_default() += 1;
        }
    }
    // Null is handled by the rule above.
    let is_null = |token| token == Token::Nil && history.initial_of_all().is_some();
    read.retain(|&token, _| !is_misspelt(token) && !is_null(token));
    let (&token, &n) = read.iter().max_by_key(|(_, n)| **n)?;
    let value = spelt(history, token);
    let reads = count(n, "read");
    Some(match format {
        Format::Kingsnake => format!(
            "{reads} of {value}, which was never written; if that is the state before the test, say so in the first line: \
             {{\"kingsnake\":1,\"initial\":{value}}}"
        ),
        _ => format!(
            "{reads} of {value}, which was never written; if that is the state before the test, let a first transaction write it, or \
             `kingsnake convert` the history and write \"initial\":{value} into its first line"
        ),
    })
}

/// A number and a text that look the same are different values.
fn alike(history: &History, _: Format) -> Option<String> {
    let mut tokens: FxHashSet<Token> = FxHashSet::default();
    for op in ops(history) {
        tokens.extend(op.key().map(|key| history.key_token(key)));
        if let Op::Read { value, .. } | Op::Write { value, .. } | Op::Append { value, .. } = op {
            tokens.insert(history.value_token(value));
        }
    }
    let mut both: Vec<i64> = tokens
        .iter()
        .filter_map(|&token| number_in(history, token))
        .filter(|&number| tokens.contains(&Token::Int(number)))
        .collect();
    both.sort_unstable();
    let first = both.first()?;
    Some(format!(
        "{first} and \"{first}\" both occur; a number and a text are different keys and values, so write one of them everywhere"
    ))
}

fn repeated_values(history: &History, _: Format) -> Option<String> {
    let mut writer: FxHashMap<u32, TxnId> = FxHashMap::default();
    let mut repeated: FxHashSet<u32> = FxHashSet::default();
    for txn in history.txns() {
        for &op in history.ops(txn) {
            if let Op::Write { value, .. } | Op::Append { value, .. } = op
                && *writer.entry(value.0).or_insert(txn) != txn
                && !history.is_absence(value)
            {
                repeated.insert(value.0);
            }
        }
    }
    let first = repeated.iter().min().copied()?;
    let first = kingsnake_solver::model::ValueId(first);
    Some(format!(
        "{} written by several transactions, such as {} to key {}; a read of it has several possible writers, so let each write \
         store a value of its own",
        match repeated.len() {
            1 => "one value is".to_owned(),
            n => format!("{} are", count(n, "value")),
        },
        history.value_name(first),
        history.key_name(history.value_key(first)),
    ))
}

/// Of equal increments a read does not tell which it has seen (what Elle calls recoverable). One that only adds loses nothing.
fn equal_increments(history: &History, _: Format) -> Option<String> {
    let mut writer: FxHashMap<(Token, Token), TxnId> = FxHashMap::default();
    for txn in history.txns().filter(|_| history.has_objects()) {
        for key in history.ops(txn).iter().filter_map(|op| op.key()) {
            if let Some((ObjectKind::Counter, counter, by)) = history.object_row(key)
                && *writer.entry((counter, by)).or_insert(txn) != txn
            {
                return Some(format!(
                    "several transactions add {} to counter {}; a read of it does not tell which of them it has seen, so let each \
                     add another number, or an element to a set",
                    spelt(history, by),
                    spelt(history, counter),
                ));
            }
        }
    }
    None
}

/// A session runs one transaction at a time, in the order of its lines.
fn own_times(history: &History, _: Format) -> Option<String> {
    for session in 0..history.n_sessions() as u32 {
        let txns: Vec<TxnId> = history
            .session_txns(SessionId(session))
            .map(TxnId)
            .collect();
        for pair in txns.windows(2) {
            let (first, second) = (history.interval(pair[0]), history.interval(pair[1]));
            let known =
                first.commit != Interval::UNKNOWN.commit && second.begin != Interval::UNKNOWN.begin;
            if known && second.begin < first.commit {
                return Some(format!(
                    "in session {}, {} begins at {}, and {}, which stands before it, commits only at {}; a session is one client, which runs one \
                     transaction at a time",
                    history.session_name(SessionId(session)),
                    history.txn_name(pair[1]),
                    second.begin,
                    history.txn_name(pair[0]),
                    first.commit
                ));
            }
        }
    }
    None
}

/// A time may have been logged as the transaction's id.
fn ids_like_times(history: &History, format: Format) -> Option<String> {
    if history.has_times() || history.n_txns() < 2 {
        return None;
    }
    let looks = |number: i64| {
        PER_SECOND
            .iter()
            .any(|it| THIS_CENTURY.contains(&(number / it.0)))
    };
    let number = |txn: TxnId| match history.txn_token(txn) {
        Token::Int(number) => Some(number),
        token => history.symbols().number(token),
    };
    let all = history.txns().all(|txn| number(txn).is_some_and(looks));
    let first = history.txns().next()?;
    let fields = match format {
        Format::Kingsnake => " as \"begin\" and \"commit\", in nanoseconds",
        _ => "",
    };
    all.then(|| {
        format!(
            "every id looks like a time, such as {}, and no transaction has times; record when each began and committed{fields}",
            history.txn_name(first)
        )
    })
}

/// Times are nanoseconds; milliseconds or seconds since 1970 are easily logged instead. The nanoseconds of a clock that
/// starts with the machine can be as large, but such logs have transactions that are closer together.
fn units(history: &History, _: Format) -> Option<String> {
    let begins = history
        .txns()
        .map(|txn| history.interval(txn).begin)
        .filter(|&begin| begin != Interval::UNKNOWN.begin);
    let largest = begins.max()?;
    if !are_too_close(history) {
        return None;
    }
    let mut units = PER_SECOND.iter().take(3);
    let unit = units.find(|(per_second, _)| THIS_CENTURY.contains(&(largest / per_second)))?;
    Some(format!(
        "times such as {largest} look like {} since 1970; times are nanoseconds, and --clock-drift counts on that",
        unit.1
    ))
}

/// Whether the transactions of most sessions follow each other faster than possible in nanoseconds; if no session has
/// several transactions, whether most are too short.
fn are_too_close(history: &History) -> bool {
    let mut gaps: Vec<i64> = Vec::new();
    for session in 0..history.n_sessions() as u32 {
        let begins = history
            .session_txns(SessionId(session))
            .map(|txn| history.interval(TxnId(txn)).begin);
        let known = begins.filter(|&begin| begin != Interval::UNKNOWN.begin);
        let mut known: Vec<i64> = known.collect();
        known.sort_unstable();
        gaps.extend(known.windows(2).map(|pair| pair[1].saturating_sub(pair[0])));
    }
    if !gaps.is_empty() {
        return median(&mut gaps) < CLOSEST_BEGINS;
    }
    let intervals = history.txns().map(|txn| history.interval(txn));
    let known = intervals
        .filter(|it| it.begin != Interval::UNKNOWN.begin && it.commit != Interval::UNKNOWN.commit);
    let mut lengths: Vec<i64> = known.map(|it| it.commit.saturating_sub(it.begin)).collect();
    !lengths.is_empty() && median(&mut lengths) < SHORTEST
}

fn median(numbers: &mut [i64]) -> i64 {
    let middle = numbers.len() / 2;
    *numbers.select_nth_unstable(middle).1
}

/// A test without concurrency finds little.
fn no_overlap(history: &History, _: Format) -> Option<String> {
    if history.n_sessions() < 2 || !history.has_times() {
        return None;
    }
    let mut all: Vec<(i64, i64)> = history
        .txns()
        .map(|txn| history.interval(txn))
        .map(|it| (it.begin, it.commit))
        .collect();
    if all
        .iter()
        .any(|it| it.0 == Interval::UNKNOWN.begin || it.1 == Interval::UNKNOWN.commit)
    {
        return None;
    }
    all.sort_unstable();
    let overlaps = all.windows(2).any(|pair| pair[1].0 < pair[0].1);
    (!overlaps && all.len() > 1).then(|| {
        "no two transactions overlap in time, so nothing was tried at once; run the clients at the same time".to_owned()
    })
}

fn ops(history: &History) -> impl Iterator<Item = Op> + '_ {
    history
        .txns()
        .flat_map(|txn| history.ops(txn).iter().copied())
}

/// The number that a text looks like.
fn number_in(history: &History, token: Token) -> Option<i64> {
    history.symbols().number(token)
}

/// In the syntax of our own format.
fn spelt(history: &History, token: Token) -> String {
    match token {
        Token::Nil => "null".to_owned(),
        Token::Int(number) => number.to_string(),
        Token::Text(_) => format!("{:?}", history.symbols().show(token)),
    }
}
