//! Makes a proof of a conflict: a cycle of what the operations say, or two cases that both end in one.

use kingsnake_history::model::{History, Op, TxnId};
use kingsnake_history::verdict::{Fact, Moment, Point, Proof, Split, Step, StepReason};

use crate::operations::{Key, NONE};
use crate::zones::Conflict;

/// The proof of a conflict. `None` where the conflict is one read that cannot have happened.
pub(crate) fn proof(history: &History, key: &Key<'_>, conflict: &Conflict) -> Option<Proof> {
    let prover = Prover { history, key };
    Some(match *conflict {
        Conflict::Unwritten(_) => return None,
        Conflict::DoubleSuccess(one, other) => Proof::Cycle(vec![
            prover.overwritten(one, other, Fact::Run),
            prover.overwritten(other, one, Fact::Run),
        ]),
        Conflict::Ring(ref ring) => {
            let next = ring.iter().cycle().skip(1);
            let steps = ring.iter().zip(next);
            Proof::Cycle(steps.map(|(&one, &two)| prover.read(one, two)).collect())
        }
        Conflict::Back { earlier, later } => prover.cycle(earlier, later, Fact::Run),
        Conflict::Initial { initial, other } => prover.cycle(initial, other, Fact::Initial),
        Conflict::Blocks {
            ended,
            started,
            heads,
        } => {
            let [one, other] = heads.map(|head| prover.txn(prover.writer(head)));
            let key = key.key;
            let one_first = prover.cycle(started[0], ended[1], Fact::Assumed);
            let other_first = prover.cycle(started[1], ended[0], Fact::Assumed);
            Proof::split(Split { key, one, other }, one_first, other_first)
        }
    })
}

struct Prover<'a> {
    history: &'a History,
    key: &'a Key<'a>,
}

impl Prover<'_> {
    fn txn(&self, at: u32) -> TxnId {
        self.key.ops[at as usize].txn
    }

    /// Who wrote a value; [`NONE`] for the initial one.
    fn writer(&self, value: u32) -> u32 {
        let mut ops = self.key.ops.iter();
        let at = ops.position(|op| op.write == value);
        at.map_or(NONE, |at| at as u32)
    }

    /// Who wrote the version that an operation left or, if it left none, read.
    fn version(&self, at: u32) -> u32 {
        let op = &self.key.ops[at as usize];
        if op.is_read() {
            self.writer(op.read)
        } else {
            at
        }
    }

    /// `earlier` comes before `later` by what they did, and `later` had ended before it started.
    fn cycle(&self, earlier: u32, later: u32, fact: Fact) -> Proof {
        let (from, to) = (self.version(earlier), self.version(later));
        let mut steps = Vec::new();
        if from != to {
            steps.push(if from == earlier {
                let key = self.key.key;
                self.step(earlier, to, StepReason::Ww { key, fact })
            } else {
                self.overwritten(earlier, to, fact)
            });
        }
        if to != later {
            steps.push(self.read(to, later));
        }
        steps.push(self.step(later, earlier, StepReason::RealTime));
        Proof::Cycle(steps)
    }

    /// One read a version that the other overwrote.
    fn overwritten(&self, reader: u32, writer: u32, fact: Fact) -> Step {
        let version = self.writer(self.key.ops[reader as usize].read);
        let version = (version != NONE).then(|| self.txn(version));
        let reason = StepReason::Rw {
            key: self.key.key,
            writer: version,
            fact: if version.is_none() {
                Fact::Initial
            } else {
                fact
            },
        };
        self.step(reader, writer, reason)
    }

    /// One read what the other wrote.
    fn read(&self, writer: u32, reader: u32) -> Step {
        let key = self.key.key;
        let mut ops = self.history.ops(self.txn(reader)).iter();
        let value = ops.find_map(|&op| match op {
            Op::Read { value, .. } => Some(value),
            _ => None,
        });
        let reason = value.map_or(StepReason::RealTime, |value| StepReason::Wr { key, value });
        self.step(writer, reader, reason)
    }

    fn step(&self, from: u32, to: u32, reason: StepReason) -> Step {
        let point = |at| Point {
            txn: self.txn(at),
            moment: Moment::Whole,
        };
        Step {
            from: point(from),
            to: point(to),
            reason,
        }
    }
}
