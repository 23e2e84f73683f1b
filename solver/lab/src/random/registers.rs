//! Random histories of registers for the engines of linearizability: a run on one machine, then perhaps a lie.

use kingsnake_history::model::{CompareOutcome, History, HistoryBuilder, Status, Token};
use kingsnake_history::rng::Rng;

/// What a history may have.
#[derive(Clone, Copy, Debug)]
pub struct Registers {
    /// At most this many operations.
    pub most_ops: usize,
    /// This many keys.
    pub n_keys: usize,
    /// Whether values repeat.
    pub repeats: bool,
    /// Of a hundred, how many have an unknown end.
    pub unknown: usize,
    /// Of a hundred compare-and-sets, how many fail or are refused.
    pub refused: usize,
    /// Of a hundred histories, how many have reads of anything.
    pub lies: usize,
    /// Of a hundred transactions, how many have more than one operation.
    pub longer: usize,
}

#[derive(Clone, Copy)]
enum Action {
    Read(Token),
    Write(Token),
    CompareAndSet(Token, Token, CompareOutcome<Token>),
    Failed(Token, Token),
}

struct Drawn {
    key: usize,
    begin: i64,
    end: i64,
    /// Whether the log says until when it can have taken effect, if its end is unknown.
    is_bounded: bool,
    actions: Vec<Action>,
    status: Status,
}

/// A random history.
pub fn registers(rng: &mut Rng, shape: Registers) -> History {
    let n_ops = rng.between(1, shape.most_ops);
    let mut held = vec![Token::Nil; shape.n_keys];
    let mut fresh = 0;
    let mut written = vec![Token::Nil];
    let mut drawn = Vec::new();
    for at in 0..n_ops {
        let point = 4 * at as i64;
        let key = rng.below(shape.n_keys);
        let wide = if rng.chance(30) { 20 } else { 5 };
        let (begin, end) = (
            point - rng.below(wide) as i64,
            point + rng.below(wide) as i64,
        );
        let is_unknown = rng.chance(shape.unknown);
        let takes_effect = !is_unknown || rng.chance(60);
        let n_actions = if rng.chance(shape.longer) {
            rng.between(2, 3)
        } else {
            1
        };
        let before = held[key];
        let mut actions: Vec<Action> = Vec::new();
        for _ in 0..n_actions {
            let new = if shape.repeats {
                Token::Int(rng.below(3) as i64)
            } else {
                fresh += 1;
                Token::Int(fresh)
            };
            written.push(new);
            let action = act(rng, shape, held[key], new, &written);
            if let Action::Write(_) | Action::CompareAndSet(_, _, CompareOutcome::Applied) = action
            {
                held[key] = new;
            }
            actions.push(action);
        }
        let is_failed = |action: &Action| matches!(action, Action::Failed(..));
        let status = if actions.iter().any(is_failed) {
            Status::Aborted
        } else if is_unknown {
            Status::Unknown
        } else {
            Status::Committed
        };
        if !takes_effect || status == Status::Aborted {
            held[key] = before;
        }
        drawn.push(Drawn {
            key,
            begin,
            end,
            is_bounded: rng.chance(30),
            actions,
            status,
        });
    }
    if rng.chance(shape.lies) {
        lie(rng, &mut drawn, &written);
    }
    build(&drawn)
}

fn act(rng: &mut Rng, shape: Registers, held: Token, new: Token, written: &[Token]) -> Action {
    match rng.below(10) {
        0..=3 => Action::Read(held),
        4..=6 => Action::Write(new),
        _ if rng.chance(shape.refused) => refused(rng, held, new, written),
        _ => Action::CompareAndSet(held, new, CompareOutcome::Applied),
    }
}

fn refused(rng: &mut Rng, held: Token, new: Token, written: &[Token]) -> Action {
    let expected = rng.pick(written).copied().unwrap_or(Token::Nil);
    let expected = if expected == held {
        Token::Int(-1)
    } else {
        expected
    };
    match rng.below(3) {
        0 => Action::Failed(expected, new),
        1 => Action::CompareAndSet(expected, new, CompareOutcome::Shown(held)),
        _ => Action::CompareAndSet(expected, new, CompareOutcome::Refused),
    }
}

/// Changes what one or two operations saw, or when they ran.
fn lie(rng: &mut Rng, drawn: &mut [Drawn], written: &[Token]) {
    for _ in 0..rng.between(1, 2) {
        let at = rng.below(drawn.len());
        let value = rng.pick(written).copied().unwrap_or(Token::Nil);
        let n_actions = drawn[at].actions.len();
        let action = &mut drawn[at].actions[rng.below(n_actions)];
        match *action {
            Action::Read(_) => *action = Action::Read(value),
            Action::CompareAndSet(_, new, CompareOutcome::Applied) if value != new => {
                *action = Action::CompareAndSet(value, new, CompareOutcome::Applied);
            }
            _ => {
                let shift = rng.between(0, 24) as i64 - 12;
                drawn[at].begin += shift;
                drawn[at].end += shift;
            }
        }
    }
}

fn build(drawn: &[Drawn]) -> History {
    let mut builder = HistoryBuilder::new();
    builder.initial_everywhere(Token::Nil);
    for (at, op) in drawn.iter().enumerate() {
        let session = builder.session(Token::Int(at as i64));
        let begun = builder.begin(session, Token::Int(at as i64), op.status);
        begun.expect("every name is new");
        let end = (op.status != Status::Unknown || op.is_bounded).then_some(op.end);
        builder.times(Some(op.begin), end);
        let key = Token::Int(op.key as i64);
        for action in &op.actions {
            match *action {
                Action::Read(value) => {
                    builder.read(key, value);
                }
                Action::Write(value) => {
                    builder.write(key, value);
                }
                Action::CompareAndSet(expected, new, outcome) => {
                    builder.compare_and_set(key, expected, new, outcome);
                }
                Action::Failed(expected, new) => builder.failed_compare_and_set(key, expected, new),
            }
        }
    }
    builder.finish().expect("begins come before ends")
}
