//! Checks a violation of a weak level: re-derives every step of its cycles from the reads, and every case from what a read can have been of.

use super::Refusal;
use super::assumed::is_founded;
use super::graphs::is_cycle;
use super::meaning::{Meaning, Version};
use super::refutation::check_broken;
use super::weak_reads::{External, ReadsOf, Wary, certain_externals};
use kingsnake_history::level::Spec;
use kingsnake_history::model::{History, KeyId, Op, Status, TxnId, ValueId};
use kingsnake_history::weak::{
    CommitReason, CommitStep, VisibilityReason, WeakLevel, WeakSpec, WeakVerdict,
};

/// Checks that a violation follows from the history and the level.
pub fn check_violation(
    history: &History,
    spec: WeakSpec,
    verdict: &WeakVerdict,
) -> Result<(), Refusal> {
    match verdict {
        WeakVerdict::Local(findings) => {
            let at_level = Spec {
                model: spec.level.into(),
                session_order: spec.session_order,
                real_time: None,
            };
            check_broken(history, at_level, findings)
        }
        WeakVerdict::EitherWay {
            txn,
            lost,
            took_effect,
        } => {
            if txn.index() >= history.n_txns() || history.status(*txn) != Status::Unknown {
                let why = "cases of a transaction whose end is known".to_owned();
                return Err(Refusal::Refutation(why));
            }
            check_violation(&history.with_status(*txn, Status::Aborted), spec, lost)?;
            let history = history.with_status(*txn, Status::Committed);
            check_violation(&history, spec, took_effect)
        }
        WeakVerdict::Cycle(_) | WeakVerdict::Choice { .. } | WeakVerdict::Aggregate { .. } => {
            let meaning = Meaning::of(history);
            let scene = Scene {
                wary: Wary::of(&meaning),
                meaning,
                history,
                spec,
            };
            scene.check(verdict).map_err(Refusal::Refutation)
        }
        WeakVerdict::Satisfied(..) | WeakVerdict::Unknown(_) => {
            Err(Refusal::Refutation("it is no violation".to_owned()))
        }
    }
}

struct Scene<'h> {
    meaning: Meaning<'h>,
    wary: Wary<'h>,
    history: &'h History,
    spec: WeakSpec,
}

impl<'h> Scene<'h> {
    /// Checks a cycle, or each case of what a read can have been of.
    fn check(&self, verdict: &WeakVerdict) -> Result<(), String> {
        match verdict {
            WeakVerdict::Cycle(steps) => self.follow(steps),
            WeakVerdict::Aggregate { reader, nth } => self.aggregate(*reader, *nth),
            WeakVerdict::Choice {
                reader,
                op,
                key,
                cases,
            } => {
                let read = (*reader, *op, *key);
                for source in self.sources(read)? {
                    let case = cases.iter().find(|case| case.0 == source);
                    let (_, case) = case.ok_or("a read can also have been of another")?;
                    let before = self.meaning.assumed_read(read);
                    self.meaning.assume_read(read, Some(source));
                    let checked = self.check(case);
                    self.meaning.assume_read(read, before);
                    checked?;
                }
                Ok(())
            }
            _ => Err("a case is neither a cycle nor a choice".to_owned()),
        }
    }

    /// Checks that nothing that a transaction can have read gives an aggregate its result.
    fn aggregate(&self, reader: TxnId, nth: usize) -> Result<(), String> {
        if reader.index() >= self.history.n_txns() || !self.meaning.counts(reader) {
            return Err("an aggregate of a transaction that does not count".to_owned());
        }
        match self.meaning.statement_results(reader, nth) {
            Some((results, result)) if !results.contains(&result) => Ok(()),
            Some(_) => Err("an aggregate can have had its result".to_owned()),
            None => Err("no aggregate, or one of too many results".to_owned()),
        }
    }

    /// Everybody that an operation can have read a key from that its transaction had not written itself.
    fn sources(&self, (reader, op, key): (TxnId, usize, KeyId)) -> Result<Vec<Version>, String> {
        let is_known =
            reader.index() < self.history.n_txns() && key.index() < self.history.n_keys();
        if !is_known || !self.meaning.counts(reader) {
            return Err("a choice of a transaction that does not count".to_owned());
        }
        let sources = self.meaning.external_sources(reader, op, key);
        sources.ok_or_else(|| "a choice of what was not read from another".to_owned())
    }

    /// Checks that the steps of a cycle follow from the history and the level.
    fn follow(&self, steps: &[CommitStep]) -> Result<(), String> {
        let (Some(first), Some(last)) = (steps.first(), steps.last()) else {
            return Err("an empty cycle".to_owned());
        };
        if last.to.is_some_and(|to| to != first.from) {
            return Err("the last step does not end where the first began".to_owned());
        }
        if steps
            .windows(2)
            .any(|pair| pair[0].to != Some(pair[1].from))
        {
            return Err("a step does not begin where the one before it ended".to_owned());
        }
        let edges = || steps.iter().filter_map(|step| Some((step.from, step.to?)));
        if last.to.is_some() && !is_cycle(edges()) {
            return Err("the steps are no cycle".to_owned());
        }
        for step in steps {
            if self.shows(step) != Some(true) {
                return Err(format!("{step:?} does not hold"));
            }
        }
        Ok(())
    }

    fn shows(&self, step: &CommitStep) -> Option<bool> {
        let counts = |txn: TxnId| self.meaning.counts(txn);
        if !counts(step.from) || step.to.is_some_and(|to| !counts(to) || to == step.from) {
            return Some(false);
        }
        Some(match &step.reason {
            CommitReason::Session => self.is_session(step.from, step.to?),
            CommitReason::Stated(edge) => {
                let given = self.history.given_edges().get(*edge as usize)?;
                (given.from, given.to) == (step.from, step.to?)
            }
            CommitReason::Wr(key) => self.read_from(step.to?, *key, Some(step.from)),
            CommitReason::Given(key) => self.is_given(*key, step.from, step.to?),
            CommitReason::Vis {
                reader,
                key,
                because,
            } => {
                counts(*reader)
                    && *reader != step.from
                    && self.meaning.left(step.from, *key).is_some()
                    && self.saw(*reader, *key, step.to, step.from, because)?
            }
        })
    }

    fn is_session(&self, from: TxnId, to: TxnId) -> bool {
        let session = |txn| self.history.session(txn);
        self.spec.session_order && session(from) == session(to) && from < to
    }

    fn reads(&self, reader: TxnId) -> ReadsOf<'h> {
        certain_externals(&self.meaning, &self.wary, reader)
    }

    fn read_from(&self, reader: TxnId, key: KeyId, from: Version) -> bool {
        let mut reads = self.reads(reader).externals.into_iter();
        reads.any(|read| read.key == key && read.from == from)
    }

    /// Whether a transaction read a key from `from` in an operation that saw another.
    fn saw(
        &self,
        reader: TxnId,
        key: KeyId,
        from: Version,
        seen: TxnId,
        because: &VisibilityReason,
    ) -> Option<bool> {
        let ReadsOf {
            externals: reads,
            absents,
        } = self.reads(reader);
        let of = |read: &&External| read.key == key && read.from == from;
        let absents = absents.iter().filter(|_| from.is_none());
        let absents = absents.filter(|absent| absent.tells(&self.wary, key));
        let ops = reads.iter().filter(of).map(|read| read.op);
        let last = ops.chain(absents.map(|absent| absent.op)).max()?;
        let by = |via: KeyId| {
            let mut sources = reads.iter();
            sources
                .find(|read| read.key == via && read.from == Some(seen))
                .map(|read| read.op)
        };
        let level = self.spec.level;
        Some(match because {
            VisibilityReason::EarlierRead(via) => by(*via).is_some_and(|first| first <= last),
            VisibilityReason::Source(via) => {
                matches!(level, WeakLevel::Ra | WeakLevel::Cc) && by(*via).is_some()
            }
            VisibilityReason::Session => level.sees_session() && self.is_session(seen, reader),
            VisibilityReason::Path(steps) => {
                level == WeakLevel::Cc
                    && steps.first()?.from == seen
                    && steps.last()?.to == reader
                    && steps.windows(2).all(|pair| pair[0].to == pair[1].from)
                    && steps.iter().all(|step| {
                        let counts = |txn: TxnId| self.meaning.counts(txn);
                        counts(step.from)
                            && counts(step.to)
                            && match step.key {
                                None => self.is_session(step.from, step.to),
                                Some(key) => self.read_from(step.to, key, Some(step.from)),
                            }
                    })
            }
        })
    }

    /// Whether a version order, or a list that was read, has one transaction's version before the other's.
    fn is_given(&self, key: KeyId, from: TxnId, to: TxnId) -> bool {
        let before = self.meaning.installed(from, key);
        let after = self.meaning.installed(to, key);
        let shows = |values: &[ValueId], is_list: bool| {
            let place = |value: &ValueId| values.iter().position(|it| it == value);
            let known = |value: &&ValueId| self.meaning.is_unique(**value);
            let first = before.iter().filter(known).filter_map(place).min();
            let last = after.iter().filter(known).filter_map(place).max();
            let is_absent = is_list && after.iter().any(|value| place(value).is_none());
            first.is_some_and(|first| is_absent || last.is_some_and(|last| first < last))
        };
        let orders = self.history.version_orders().iter();
        let mut orders = orders.filter(|order| order.key == key);
        let txns = self.history.txns().filter(|&txn| self.meaning.counts(txn));
        let mut lists = txns
            .flat_map(|txn| self.history.ops(txn))
            .filter_map(|&op| match op {
                Op::ReadList { key: it, list } if it == key => Some(self.history.list(list)),
                _ => None,
            });
        let mut orders = orders
            .by_ref()
            .filter(|order| is_founded(self.history, order));
        orders.any(|order| shows(&order.values, false)) || lists.any(|list| shows(list, true))
    }
}
