//! Lightweight transactions: concurrent compare-and-sets of registers, as MTC generates them, with reads, failures and
//! unknown ends, and with one fault on request.
//!
//! Each round a share of the clients run at the same time on one key: all start, then all end, in random orders. The chain of
//! values is decided first, so the history is linearizable by construction.

use std::fmt;
use std::str::FromStr;

use kingsnake_history::model::{
    BuildError, CompareOutcome, History, HistoryBuilder, Status, Token,
};
use kingsnake_history::rng::Rng;

/// The fault to inject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LwtFault {
    /// Two compare-and-sets of one value succeed.
    DoubleSuccess,
    /// A compare-and-set succeeds and its value is gone.
    LostCas,
    /// A compare-and-set takes effect after it was acknowledged.
    LateEffect,
    /// A read returns an old value.
    StaleRead,
}

impl LwtFault {
    /// Every fault.
    pub const ALL: [LwtFault; 4] = [
        LwtFault::DoubleSuccess,
        LwtFault::LostCas,
        LwtFault::LateEffect,
        LwtFault::StaleRead,
    ];

    /// The name, as typed.
    pub fn name(self) -> &'static str {
        match self {
            LwtFault::DoubleSuccess => "double-success",
            LwtFault::LostCas => "lost-cas",
            LwtFault::LateEffect => "late-effect",
            LwtFault::StaleRead => "stale-read",
        }
    }
}

impl fmt::Display for LwtFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for LwtFault {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = LwtFault::ALL.into_iter().find(|it| it.name() == name);
        found.ok_or_else(|| {
            format!("no fault {name:?} of lwt; there are double-success, lost-cas, late-effect, stale-read")
        })
    }
}

/// The parameters of the generator.
#[derive(Clone, Debug)]
pub struct Lwt {
    /// How many operations.
    pub n_ops: usize,
    /// How many clients.
    pub n_clients: usize,
    /// How many keys.
    pub n_keys: usize,
    /// Of a hundred clients, how many run at the same time.
    pub concurrency: usize,
    /// Of a hundred operations, how many are reads.
    pub reads: usize,
    /// Of a hundred compare-and-sets, how many fail.
    pub failed: usize,
    /// Of a hundred compare-and-sets, how many have an unknown end.
    pub unknown: usize,
    /// After how many compare-and-sets that succeed a key is replaced by a fresh one.
    pub max_writes_per_key: Option<u64>,
    /// What goes wrong once, in the middle.
    pub fault: Option<LwtFault>,
    /// The seed.
    pub seed: u64,
}

#[derive(Clone, Copy)]
enum LwtAction {
    Read(i64),
    Cas(i64, i64),
    Failed(i64, i64),
}

struct Drawn {
    client: usize,
    key: usize,
    action: LwtAction,
    status: Status,
    begin: i64,
    end: i64,
}

impl Lwt {
    /// The history.
    pub fn history(&self) -> Result<History, BuildError> {
        let mut rng = Rng::new(self.seed);
        let n_keys = self.n_keys.max(1);
        let mut held = vec![0_i64; n_keys];
        let mut last_value = vec![0_i64; n_keys];
        // The key that stands in each place, and how often it was written.
        let mut placed: Vec<(usize, u64)> = (0..n_keys).map(|key| (key, 0)).collect();
        let mut ops: Vec<Drawn> = Vec::with_capacity(self.n_ops);
        let width = (self.n_clients * self.concurrency / 100).clamp(1, self.n_clients.max(1));
        let mut now = 0_i64;
        let mut clients: Vec<usize> = (0..self.n_clients.max(1)).collect();
        while ops.len() < self.n_ops {
            let n = width.min(self.n_ops - ops.len());
            shuffle(&mut rng, &mut clients);
            let first = ops.len();
            for &client in &clients[..n] {
                let place = &mut placed[rng.below(n_keys)];
                let key = place.0;
                let (action, status) = self.draw(&mut rng, &mut held[key], &mut last_value[key]);
                place.1 += u64::from(matches!(action, LwtAction::Cas(..)));
                if self.max_writes_per_key.is_some_and(|most| place.1 >= most) {
                    *place = (held.len(), 0);
                    held.push(0);
                    last_value.push(0);
                }
                ops.push(Drawn {
                    client,
                    key,
                    action,
                    status,
                    begin: 0,
                    end: 0,
                });
            }
            let mut order: Vec<usize> = (first..ops.len()).collect();
            shuffle(&mut rng, &mut order);
            for &at in &order {
                now += 1_000;
                ops[at].begin = now;
            }
            shuffle(&mut rng, &mut order);
            for &at in &order {
                now += 1_000;
                ops[at].end = now;
            }
        }
        if let Some(fault) = self.fault {
            break_once(&mut ops, fault, &mut last_value);
        }
        self.build(&ops)
    }

    fn draw(&self, rng: &mut Rng, held: &mut i64, last_value: &mut i64) -> (LwtAction, Status) {
        if rng.chance(self.reads) {
            return (LwtAction::Read(*held), Status::Committed);
        }
        *last_value += 1;
        let new = *last_value;
        if rng.chance(self.failed) {
            // It expected what the register held long ago, or never.
            return (LwtAction::Failed(-new, new), Status::Aborted);
        }
        let expected = *held;
        if rng.chance(self.unknown) {
            if rng.chance(50) {
                *held = new;
            }
            return (LwtAction::Cas(expected, new), Status::Unknown);
        }
        *held = new;
        (LwtAction::Cas(expected, new), Status::Committed)
    }

    fn build(&self, ops: &[Drawn]) -> Result<History, BuildError> {
        let mut builder = HistoryBuilder::new();
        builder.initial_everywhere(Token::Int(0));
        for (at, op) in ops.iter().enumerate() {
            // A client without an answer does not continue, as in Jepsen.
            let session = match op.status {
                Status::Unknown => Token::Int((self.n_clients + at) as i64),
                _ => Token::Int(op.client as i64),
            };
            let session = builder.session(session);
            builder.begin(session, Token::Int(at as i64 + 1), op.status)?;
            let end = (op.status != Status::Unknown).then_some(op.end);
            builder.times(Some(op.begin), end);
            let key = Token::Int(op.key as i64);
            match op.action {
                LwtAction::Read(value) => {
                    builder.read(key, Token::Int(value));
                }
                LwtAction::Cas(expected, new) => {
                    let (expected, new) = (Token::Int(expected), Token::Int(new));
                    builder.compare_and_set(key, expected, new, CompareOutcome::Applied);
                }
                LwtAction::Failed(expected, new) => {
                    builder.failed_compare_and_set(key, Token::Int(expected), Token::Int(new));
                }
            }
        }
        builder.finish()
    }
}

fn shuffle<T>(rng: &mut Rng, items: &mut [T]) {
    for at in (1..items.len()).rev() {
        items.swap(at, rng.below(at + 1));
    }
}

/// A client that runs nothing else.
const ELSEWHERE: usize = 1 << 30;

/// Breaks a history near its middle.
fn break_once(ops: &mut Vec<Drawn>, fault: LwtFault, last_value: &mut [i64]) {
    let middle = ops.len() / 2;
    let is_cas =
        |op: &Drawn| matches!(op.action, LwtAction::Cas(..)) && op.status == Status::Committed;
    let Some(at) = (middle..ops.len())
        .chain(0..middle)
        .find(|&at| is_cas(&ops[at]))
    else {
        return;
    };
    let LwtAction::Cas(expected, new) = ops[at].action else {
        return;
    };
    let key = ops[at].key;
    let after = ops.iter().map(|op| op.end).max().unwrap_or(0);
    let client = ops[at].client;
    let added = |action: LwtAction| Drawn {
        client,
        key,
        action,
        status: Status::Committed,
        begin: after + 1_000,
        end: after + 2_000,
    };
    match fault {
        LwtFault::DoubleSuccess => {
            last_value[key] += 1;
            ops.push(added(LwtAction::Cas(expected, last_value[key])));
        }
        LwtFault::StaleRead => ops.push(added(LwtAction::Read(expected))),
        LwtFault::LostCas => {
            last_value[key] += 1;
            // Its value is never seen: the next one replaces what was there before it.
            let lost = last_value[key];
            ops[at].action = LwtAction::Cas(expected, lost);
            last_value[key] += 1;
            let again = last_value[key];
            for op in ops.iter_mut().filter(|op| op.key == key) {
                match &mut op.action {
                    LwtAction::Read(value) if *value == new => *value = again,
                    LwtAction::Cas(from, _) if *from == new => *from = again,
                    _ => {}
                }
            }
            let (begin, end) = (ops[at].begin, ops[at].end);
            ops.push(Drawn {
                client: ELSEWHERE,
                key,
                action: LwtAction::Cas(expected, again),
                status: Status::Committed,
                begin,
                end,
            });
        }
        LwtFault::LateEffect => {
            // It is acknowledged before the one whose value it replaces has even begun.
            let source = ops.iter().position(|op| {
                matches!(op.action, LwtAction::Cas(_, it) if it == expected) && op.key == key
            });
            let before = source.map_or(0, |source| ops[source].begin) - 10;
            // Its client was busy then, so another ran it.
            ops[at].client = ELSEWHERE;
            ops[at].begin = before - 10;
            ops[at].end = before;
            if source.is_none() {
                ops.push(added(LwtAction::Read(expected)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_replaced_after_its_writes() {
        let lwt = Lwt {
            n_ops: 500,
            n_clients: 10,
            n_keys: 2,
            concurrency: 100,
            reads: 20,
            failed: 10,
            unknown: 0,
            max_writes_per_key: Some(5),
            fault: None,
            seed: 1,
        };
        let history = lwt.history().expect("it is a history");
        let mut n_writes = vec![0; history.n_keys()];
        for txn in history.txns() {
            for op in history.ops(txn) {
                if let kingsnake_history::model::Op::Write { key, .. } = op
                    && history.status(txn) == Status::Committed
                {
                    n_writes[key.index()] += 1;
                }
            }
        }
        assert_eq!(n_writes.iter().max(), Some(&5));
        assert!(n_writes.len() > 50, "{}", n_writes.len());
    }
}
