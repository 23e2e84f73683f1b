//! The answer, as data. Words and pictures are made from it elsewhere.

use crate::budget::StopReason;
use crate::level::Model;
use crate::model::{KeyId, TxnId, ValueId};

/// A moment of a transaction in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Moment {
    /// All of it (SER).
    Whole,
    /// Its begin (SI).
    Begin,
    /// Its commit (SI).
    Commit,
}

/// A transaction, or its begin or commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Point {
    /// The transaction.
    pub txn: TxnId,
    /// Which moment of it.
    pub moment: Moment,
}

/// Why `before` ≪ `after` in the version order of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fact {
    /// `before` is the initial state, or in the run of read-modify-writes that starts from it.
    Initial,
    /// Both are in one run of read-modify-writes: each read the value that the one before wrote.
    Run,
    /// A version order that came with the history says so, or a list that a transaction read shows it.
    Given,
    /// The case under consideration assumes it.
    Assumed,
}

/// Why one point comes before another, down to the operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StepReason {
    /// A transaction begins before it commits.
    Begin,
    /// They are in one session, in this order.
    Session,
    /// By the clock, the one was over before the other could be.
    RealTime,
    /// The user says so, in this one of the orders between transactions.
    Stated {
        /// Its number.
        edge: u32,
    },
    /// The later read what the earlier wrote.
    Wr {
        /// The key.
        key: KeyId,
        /// The value.
        value: ValueId,
    },
    /// Both wrote the key, the earlier first.
    Ww {
        /// The key.
        key: KeyId,
        /// Why the earlier's write came first.
        fact: Fact,
    },
    /// The earlier read a version that the later overwrote.
    Rw {
        /// The key.
        key: KeyId,
        /// Who wrote what was read; `None` is the initial state.
        writer: Option<TxnId>,
        /// Why the version that was read comes before the later's write.
        fact: Fact,
    },
    /// `reader` read the key from the later although it saw the earlier, which writes it too (weak levels). Where both are one
    /// transaction, the reader read the initial state: nothing commits before that.
    Vis {
        /// Who read.
        reader: TxnId,
        /// The key.
        key: KeyId,
    },
}

impl StepReason {
    /// The key that the reason is about, if it is about one.
    pub fn key(self) -> Option<KeyId> {
        match self {
            StepReason::Wr { key, .. }
            | StepReason::Ww { key, .. }
            | StepReason::Rw { key, .. }
            | StepReason::Vis { key, .. } => Some(key),
            StepReason::Begin
            | StepReason::Session
            | StepReason::RealTime
            | StepReason::Stated { .. } => None,
        }
    }
}

/// One step of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The earlier point.
    pub from: Point,
    /// The later point.
    pub to: Point,
    /// Why.
    pub reason: StepReason,
}

/// Why no order explains the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// A cycle: each step ends where the next begins, and the last ends where the first began.
    Cycle(Vec<Step>),
    /// Two transactions wrote a key; whichever wrote first, there is a contradiction.
    Split {
        /// The key.
        key: KeyId,
        /// One writer.
        one: TxnId,
        /// The other.
        other: TxnId,
        /// If `one`'s write came first.
        one_first: Box<Proof>,
        /// If `other`'s write came first.
        other_first: Box<Proof>,
    },
    /// A transaction can have read a key from several; whichever it was, there is a contradiction. With no case at all, it cannot
    /// have seen of the key what it saw. Never within a split.
    Choice {
        /// Who read.
        reader: TxnId,
        /// The key.
        key: KeyId,
        /// Everybody that it can have read from, and the contradiction.
        cases: Vec<(Option<TxnId>, Proof)>,
    },
}

/// What a choice comes to, from what its cases come to.
type OfChoice<'a, T> = dyn FnMut(TxnId, KeyId, Vec<(Option<TxnId>, T)>) -> T + 'a;

/// That a transaction read a key from another; `None` is the initial state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReadSource {
    /// Who read.
    pub reader: TxnId,
    /// The key.
    pub key: KeyId,
    /// Who wrote what was read.
    pub writer: Option<TxnId>,
}

/// Two writers of a key: a split between them, or the case that the first of them wrote first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Split {
    /// The key.
    pub key: KeyId,
    /// One writer; in a case, the one that wrote first.
    pub one: TxnId,
    /// The other.
    pub other: TxnId,
}

/// What a walk over a proof meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit<'p> {
    /// A cycle, under the cases that were entered and not left.
    Cycle(&'p [Step]),
    /// A split; its two cases follow.
    Split(Split),
    /// A case begins.
    Case(Split),
    /// It ends.
    EndOfCase(Split),
    /// A choice of whom a transaction read a key from; so many cases follow.
    Choice(TxnId, KeyId, &'p [(Option<TxnId>, Proof)]),
    /// A case of it begins.
    Source(ReadSource),
    /// It ends.
    EndOfSource(ReadSource),
}

/// A walk over a proof, without recursion.
#[derive(Clone, Debug)]
pub struct Visits<'p> {
    open: Vec<Next<'p>>,
}

#[derive(Clone, Copy, Debug)]
enum Next<'p> {
    Proof(&'p Proof),
    Visit(Visit<'p>),
}

impl<'p> Iterator for Visits<'p> {
    type Item = Visit<'p>;

    fn next(&mut self) -> Option<Visit<'p>> {
        match self.open.pop()? {
            Next::Visit(visit) => Some(visit),
            Next::Proof(Proof::Cycle(steps)) => Some(Visit::Cycle(steps)),
            Next::Proof(Proof::Split {
                key,
                one,
                other,
                one_first,
                other_first,
            }) => {
                let (key, one, other) = (*key, *one, *other);
                let split = Split { key, one, other };
                let back = Split {
                    key,
                    one: other,
                    other: one,
                };
                for (case, proof) in [(back, other_first), (split, one_first)] {
                    self.open.extend([
                        Next::Visit(Visit::EndOfCase(case)),
                        Next::Proof(proof),
                        Next::Visit(Visit::Case(case)),
                    ]);
                }
                Some(Visit::Split(split))
            }
            Next::Proof(Proof::Choice { reader, key, cases }) => {
                let (reader, key) = (*reader, *key);
                for (writer, proof) in cases.iter().rev() {
                    let source = ReadSource {
                        reader,
                        key,
                        writer: *writer,
                    };
                    self.open.extend([
                        Next::Visit(Visit::EndOfSource(source)),
                        Next::Proof(proof),
                        Next::Visit(Visit::Source(source)),
                    ]);
                }
                Some(Visit::Choice(reader, key, cases))
            }
        }
    }
}

impl Proof {
    /// Everything in the proof, in order.
    pub fn visits(&self) -> Visits<'_> {
        Visits {
            open: vec![Next::Proof(self)],
        }
    }

    /// The cycles at the ends of the cases, in order.
    pub fn cycles(&self) -> impl Iterator<Item = &[Step]> {
        self.visits().filter_map(|visit| match visit {
            Visit::Cycle(steps) => Some(steps),
            _ => None,
        })
    }

    /// Every step, in order.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.cycles().flatten()
    }

    /// The splits, the outer ones before the inner ones.
    pub fn splits(&self) -> impl Iterator<Item = Split> {
        self.visits().filter_map(|visit| match visit {
            Visit::Split(split) => Some(split),
            _ => None,
        })
    }

    /// The choices of whom a transaction read a key from, the outer ones before the inner ones.
    pub fn choices(&self) -> impl Iterator<Item = (TxnId, KeyId)> {
        self.visits().filter_map(|visit| match visit {
            Visit::Choice(reader, key, _) => Some((reader, key)),
            _ => None,
        })
    }

    /// The steps, where the proof is one cycle.
    pub fn as_cycle(&self) -> Option<&[Step]> {
        match self {
            Proof::Cycle(steps) => Some(steps),
            Proof::Split { .. } | Proof::Choice { .. } => None,
        }
    }

    /// A proof by the two cases of a split.
    pub fn split(Split { key, one, other }: Split, one_first: Proof, other_first: Proof) -> Proof {
        Proof::Split {
            key,
            one,
            other,
            one_first: Box::new(one_first),
            other_first: Box::new(other_first),
        }
    }

    /// Computes something of each cycle, of each split from what was computed of its two cases, and of each choice from what was
    /// computed of its cases. Splits may be deep and are walked without recursion; choices are few.
    pub fn fold<'p, T>(
        &'p self,
        mut of_cycle: impl FnMut(&'p [Step]) -> T,
        mut of_split: impl FnMut(Split, T, T) -> T,
        mut of_choice: impl FnMut(TxnId, KeyId, Vec<(Option<TxnId>, T)>) -> T,
    ) -> T {
        self.fold_with(&mut of_cycle, &mut of_split, &mut of_choice)
    }

    fn fold_with<'p, T>(
        &'p self,
        of_cycle: &mut dyn FnMut(&'p [Step]) -> T,
        of_split: &mut dyn FnMut(Split, T, T) -> T,
        of_choice: &mut OfChoice<'_, T>,
    ) -> T {
        if let Proof::Choice { reader, key, cases } = self {
            let cases = cases.iter().map(|(writer, proof)| {
                let proof = proof.fold_with(&mut *of_cycle, &mut *of_split, &mut *of_choice);
                (*writer, proof)
            });
            let cases = cases.collect();
            return of_choice(*reader, *key, cases);
        }
        let mut open: Vec<(Split, Option<T>)> = Vec::new();
        let mut visits = self.visits();
        loop {
            // Every split is followed by its first cycle, and every case by the next, until the outermost has ended.
            let mut done = loop {
                match visits.next() {
                    Some(Visit::Cycle(steps)) => break of_cycle(steps),
                    Some(Visit::Split(split)) => open.push((split, None)),
                    // There are no choices within a split.
                    Some(_) => {}
                    None => break of_cycle(&[]),
                }
            };
            loop {
                match open.pop() {
                    None => return done,
                    Some((split, None)) => {
                        open.push((split, Some(done)));
                        break;
                    }
                    Some((split, Some(one_first))) => done = of_split(split, one_first, done),
                }
            }
        }
    }

    /// The same proof with other cycles.
    #[must_use]
    pub fn map_cycles(&self, mut map: impl FnMut(&[Step]) -> Vec<Step>) -> Proof {
        let of_choice = |reader, key, cases| Proof::Choice { reader, key, cases };
        self.fold(|steps| Proof::Cycle(map(steps)), Proof::split, of_choice)
    }

    /// Every key that the proof speaks of, once, in order.
    pub fn keys(&self) -> Vec<KeyId> {
        let of_steps = self.steps().filter_map(|step| step.reason.key());
        let mut keys: Vec<KeyId> = of_steps.collect();
        keys.extend(self.splits().map(|split| split.key));
        keys.extend(self.choices().map(|choice| choice.1));
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

/// An anomaly that one or two transactions show by themselves, without any cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its name.
    pub anomaly: LocalAnomaly,
    /// The transaction that saw it.
    pub txn: TxnId,
    /// Which of its operations, counted from 0.
    pub op: usize,
    /// The key that it is about: the operation's, or one of the range that it queried.
    pub key: KeyId,
    /// The other operation that it is about, and whose it is.
    pub other: Option<(TxnId, usize)>,
}

/// The anomalies that need no cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LocalAnomaly {
    /// A value that nobody wrote was read.
    ThinAirRead,
    /// A value that an aborted transaction wrote was read (Adya's G1a).
    AbortedRead,
    /// A value that its writer itself overwrote was read by another (Adya's G1b).
    IntermediateRead,
    /// A value was read that the transaction itself writes only later.
    FutureRead,
    /// After its own write, a transaction read what another wrote.
    NotMyOwnWrite,
    /// After its own writes, a transaction read one that is not its last.
    NotMyLastWrite,
    /// Two reads of one key, with no write of the transaction between, differ.
    NonRepeatableRead,
    /// A list that a transaction read is not the one that its own earlier reads and appends imply.
    InternalInconsistency,
    /// A list shows one value twice.
    DuplicateElements,
    /// Two lists of one key, neither of which begins with the other, were read.
    IncompatibleOrder,
    /// The version order that came with the history lists the value of an aborted transaction.
    AbortedVersion,
    /// A range query did not return a key that nobody had removed.
    MissingRow,
    /// The version order that came with the history scatters the appends of one transaction to a list, or reverses them.
    ScatteredAppends,
    /// The initial state was read though, by an assumption about keys, another transaction had a version of the key before.
    CyclicVersions,
}

impl Finding {
    /// The weakest level that it breaks; so it breaks all that are stronger. Read committed allows two statements of a
    /// transaction to read a key differently; one statement is atomic even there.
    pub fn weakest_broken(&self) -> Model {
        let is_one_statement = self.other == Some((self.txn, self.op));
        if self.anomaly == LocalAnomaly::NonRepeatableRead && !is_one_statement {
            Model::Ra
        } else {
            Model::Rc
        }
    }

    /// Whether it breaks a level.
    pub fn breaks(&self, model: Model) -> bool {
        model.implies(self.weakest_broken())
    }
}

/// Why the history breaks the level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counterexample {
    /// Anomalies without a cycle; at least one.
    Local(Vec<Finding>),
    /// A cycle, or cases that all end in one.
    Cyclic(Proof),
    /// An operation on a register that no order reaches.
    Stuck(Stuck),
    /// Whether a transaction took effect is not known; whether it did or not, there is a contradiction.
    EitherWay {
        /// The transaction.
        txn: TxnId,
        /// Why the history breaks the level where it did not.
        lost: Box<Counterexample>,
        /// And where it did.
        took_effect: Box<Counterexample>,
    },
}

impl Counterexample {
    /// The counterexamples at the ends of the cases of what took effect.
    pub fn leaves(&self) -> Vec<&Counterexample> {
        match self {
            Counterexample::EitherWay {
                lost, took_effect, ..
            } => [lost.leaves(), took_effect.leaves()].concat(),
            leaf => vec![leaf],
        }
    }
}

/// No order of the operations on a register that had begun when `last` ended explains all of them that had ended by then,
/// though some order explains all that had ended before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// The register.
    pub key: KeyId,
    /// The operation.
    pub last: TxnId,
    /// What the register can have held when `last` ended, all possible orders considered; `None` is the initial state.
    pub possible: Vec<Option<ValueId>>,
    /// The operations that had begun when `last` ended and had not ended before.
    pub concurrent: Vec<TxnId>,
}

/// An order that explains the history: of transactions (SER), or of their begins and commits (SI).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The points, earliest first. Every counted transaction is there.
    pub order: Vec<Point>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Some order explains the history.
    Satisfied(Certificate),
    /// None does.
    Violated(Counterexample),
    /// The check stopped before it knew.
    Unknown(StopReason),
}

#[cfg(test)]
mod tests {
    use super::{Proof, Split};
    use crate::model::{KeyId, TxnId};

    fn split(key: u32, one_first: Proof, other_first: Proof) -> Proof {
        let (key, one, other) = (KeyId(key), TxnId(2 * key), TxnId(2 * key + 1));
        Proof::split(Split { key, one, other }, one_first, other_first)
    }

    fn shape(proof: &Proof) -> String {
        let of_split = |split: Split, one, other| format!("{}({one} {other})", split.key.0);
        proof.fold(|_| "c".to_owned(), of_split, |_, _, _| "choice".to_owned())
    }

    #[test]
    fn a_fold_meets_every_case_under_its_own_split() {
        let leaf = || Proof::Cycle(Vec::new());
        let proof = split(
            1,
            split(2, leaf(), split(3, leaf(), leaf())),
            split(4, leaf(), leaf()),
        );
        assert_eq!(shape(&proof), "1(2(c 3(c c)) 4(c c))");
        assert_eq!(proof.map_cycles(<[_]>::to_vec), proof);
    }

    #[test]
    fn a_fold_does_not_overflow_the_stack() {
        let leaf = || Proof::Cycle(Vec::new());
        let deep = (0..100_000).fold(leaf(), |inner, _| split(1, inner, leaf()));
        assert_eq!(
            deep.fold(|_| 1, |_, one, other| one + other, |_, _, _| 0),
            100_001
        );
        std::mem::forget(deep); // Dropping it is recursive.
    }
}
