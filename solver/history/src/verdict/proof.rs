//! Proofs that no order explains a history: cycles at the ends of cases, and walks over them.

use super::Step;
use crate::model::{KeyId, TxnId};

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
        /// The operation, or the condition as [`crate::model::Statements`] names it, where the transaction may read the key twice and
        /// differently; nothing where all its reads of the key are of one version.
        op: Option<usize>,
        /// The key.
        key: KeyId,
        /// Every possible writer, with the contradiction.
        cases: Vec<(Option<TxnId>, Proof)>,
    },
    /// A transaction got the result of an aggregate. Some versions it cannot have counted, each for its own reason;
    /// with any of the others, the result is different. Never within a split.
    Aggregate {
        /// Who asked.
        reader: TxnId,
        /// Which of its predicates, counted from 0.
        nth: usize,
        /// Rows, versions of them that the transaction cannot have read, and the contradictions.
        ruled_out: Vec<(KeyId, Option<TxnId>, Proof)>,
    },
}

/// Folds the cases of a choice.
type OfChoice<'a, T> = dyn FnMut(TxnId, Option<usize>, KeyId, Vec<(Option<TxnId>, T)>) -> T + 'a;
/// Folds an aggregate over the versions that it cannot have read.
type OfAggregate<'a, T> = dyn FnMut(TxnId, usize, Vec<(KeyId, Option<TxnId>, T)>) -> T + 'a;

/// That a transaction read a key from another; `None` is the initial state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReadSource {
    /// Who read.
    pub reader: TxnId,
    /// The operation, where only one is meant.
    pub op: Option<usize>,
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
    /// A choice of the writer that a transaction read a key from; this many cases follow.
    Choice(TxnId, Option<usize>, KeyId, &'p [(Option<TxnId>, Proof)]),
    /// An aggregate, by its transaction and its place among the predicates; the versions that are ruled out follow, like cases of a choice.
    Aggregate(TxnId, usize, &'p [(KeyId, Option<TxnId>, Proof)]),
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
            Next::Proof(Proof::Choice {
                reader,
                op,
                key,
                cases,
            }) => {
                let (reader, op, key) = (*reader, *op, *key);
                for (writer, proof) in cases.iter().rev() {
                    let source = ReadSource {
                        reader,
                        op,
                        key,
                        writer: *writer,
                    };
                    self.open.extend([
                        Next::Visit(Visit::EndOfSource(source)),
                        Next::Proof(proof),
                        Next::Visit(Visit::Source(source)),
                    ]);
                }
                Some(Visit::Choice(reader, op, key, cases))
            }
            Next::Proof(Proof::Aggregate {
                reader,
                nth,
                ruled_out,
            }) => {
                for (key, writer, proof) in ruled_out.iter().rev() {
                    let source = ReadSource {
                        reader: *reader,
                        op: None,
                        key: *key,
                        writer: *writer,
                    };
                    self.open.extend([
                        Next::Visit(Visit::EndOfSource(source)),
                        Next::Proof(proof),
                        Next::Visit(Visit::Source(source)),
                    ]);
                }
                Some(Visit::Aggregate(*reader, *nth, ruled_out))
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

    /// The choices of the writers that a transaction read keys from, the outer ones before the inner ones.
    pub fn choices(&self) -> impl Iterator<Item = (TxnId, KeyId)> {
        self.visits().filter_map(|visit| match visit {
            Visit::Choice(reader, _, key, _) => Some((reader, key)),
            _ => None,
        })
    }

    /// The steps, where the proof is one cycle.
    pub fn as_cycle(&self) -> Option<&[Step]> {
        match self {
            Proof::Cycle(steps) => Some(steps),
            Proof::Split { .. } | Proof::Choice { .. } | Proof::Aggregate { .. } => None,
        }
    }

    /// The aggregates whose results cannot be, by transaction and place among its predicates.
    pub fn aggregates(&self) -> impl Iterator<Item = (TxnId, usize)> {
        self.visits().filter_map(|visit| match visit {
            Visit::Aggregate(reader, nth, _) => Some((reader, nth)),
            _ => None,
        })
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

    /// Computes a value for each cycle, for each split from the values of its two cases, and for each choice and
    /// aggregate from the values of its cases. Splits may be deep and are walked without recursion; choices are few.
    pub fn fold<'p, T>(
        &'p self,
        mut of_cycle: impl FnMut(&'p [Step]) -> T,
        mut of_split: impl FnMut(Split, T, T) -> T,
        mut of_choice: impl FnMut(TxnId, Option<usize>, KeyId, Vec<(Option<TxnId>, T)>) -> T,
        mut of_aggregate: impl FnMut(TxnId, usize, Vec<(KeyId, Option<TxnId>, T)>) -> T,
    ) -> T {
        self.fold_with(
            &mut of_cycle,
            &mut of_split,
            &mut of_choice,
            &mut of_aggregate,
        )
    }

    fn fold_with<'p, T>(
        &'p self,
        of_cycle: &mut dyn FnMut(&'p [Step]) -> T,
        of_split: &mut dyn FnMut(Split, T, T) -> T,
        of_choice: &mut OfChoice<'_, T>,
        of_aggregate: &mut OfAggregate<'_, T>,
    ) -> T {
        let mut inner = |proof: &'p Proof| {
            proof.fold_with(
                &mut *of_cycle,
                &mut *of_split,
                &mut *of_choice,
                &mut *of_aggregate,
            )
        };
        match self {
            Proof::Choice {
                reader,
                op,
                key,
                cases,
            } => {
                let cases = cases.iter();
                let cases = cases.map(|(writer, proof)| (*writer, inner(proof)));
                let cases = cases.collect();
                return of_choice(*reader, *op, *key, cases);
            }
            Proof::Aggregate {
                reader,
                nth,
                ruled_out,
            } => {
                let cases = ruled_out.iter();
                let cases = cases.map(|(key, writer, proof)| (*key, *writer, inner(proof)));
                let cases = cases.collect();
                return of_aggregate(*reader, *nth, cases);
            }
            Proof::Cycle(_) | Proof::Split { .. } => {}
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
        let of_choice = |reader, op, key, cases| Proof::Choice {
            reader,
            op,
            key,
            cases,
        };
        let of_aggregate = |reader, nth, ruled_out| Proof::Aggregate {
            reader,
            nth,
            ruled_out,
        };
        let of_cycle = |steps: &[Step]| Proof::Cycle(map(steps));
        self.fold(of_cycle, Proof::split, of_choice, of_aggregate)
    }

    /// Every key of the proof, once, in order.
    pub fn keys(&self) -> Vec<KeyId> {
        let of_steps = self.steps().filter_map(|step| step.reason.key());
        let mut keys: Vec<KeyId> = of_steps.collect();
        keys.extend(self.splits().map(|split| split.key));
        keys.extend(self.choices().map(|choice| choice.1));
        keys.extend(self.visits().filter_map(|visit| match visit {
            Visit::Source(source) => Some(source.key),
            _ => None,
        }));
        keys.sort_unstable();
        keys.dedup();
        keys
    }
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
        let other = |_: TxnId| "choice".to_owned();
        proof.fold(
            |_| "c".to_owned(),
            of_split,
            |it, _, _, _| other(it),
            |it, _, _| other(it),
        )
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
            deep.fold(
                |_| 1,
                |_, one, other| one + other,
                |_, _, _, _| 0,
                |_, _, _| 0
            ),
            100_001
        );
        std::mem::forget(deep); // Dropping it is recursive.
    }
}
