//! What a stronger level explains needs no proposals: its order tells what was read. Transactions at parallel snapshot isolation are taken to
//! be at snapshot isolation, those at read atomic and causal consistency at prefix consistency, and of those at read committed each
//! statement is taken to read at one moment, as databases do it.

use rustc_hash::FxHashMap;

use super::Scene;
use crate::budget::{Budget, StopReason};
use crate::decide::Backend;
use crate::level::{Model, Spec};
use crate::model::{History, KeyId};
use crate::phases::{Check, Exit, Stop};
use crate::relate::reads_at;
use crate::report::Decider;
use crate::resolve::{Node, Part, Resolved, Uncertain, VersionId};
use crate::solve;
use crate::verdict::{Certificate, Moment, Point};

impl Scene<'_> {
    /// An order that explains the history at a stronger level, as one at its own; `None` if there is none. Whole transactions are tried
    /// before statements.
    pub(super) fn by_stronger_level(
        &self,
        backend: &mut dyn Backend,
    ) -> Result<Option<(Decider, Certificate)>, Exit> {
        let (own, base) = (self.check, self.base);
        let model_of = |node: Node| own.spec.model_of(own.history, base.txn(node));
        let is_split = |node: Node| model_of(node).reads_may_differ();
        let left = self.budget.remaining();
        if !(0..base.n_txns() as Node).any(is_split) {
            return self.raised(backend, &self.budget, |_| false);
        }
        // Statements explain what whole transactions do, and more, so most of the time is theirs.
        let share = left.map_or_else(|| self.budget.clone(), |it| self.budget.within(it / 4));
        match self.raised(backend, &share, |_| false) {
            Ok(None) => {}
            Err(Exit::Stop(Stop::Budget(StopReason::Time(_)))) => self.budget.check()?,
            found => return found,
        }
        self.raised(backend, &self.budget, is_split)
    }

    /// The same, where the statements of some transactions are apart.
    pub(super) fn raised(
        &self,
        backend: &mut dyn Backend,
        budget: &Budget,
        is_split: impl Fn(Node) -> bool,
    ) -> Result<Option<(Decider, Certificate)>, Exit> {
        let own = self.check;
        let raised;
        let history = if own.spec.model == Model::Mixed {
            raised = without_weak(own.history);
            &raised
        } else {
            own.history
        };
        let has_split = (0..self.base.n_txns() as Node).any(&is_split);
        let spec = Spec {
            model: match own.spec.model {
                Model::Mixed => Model::Mixed,
                Model::Psi => Model::Si,
                _ if has_split => Model::Ser,
                _ => Model::Pc,
            },
            // The parts of a transaction are a session.
            session_order: own.spec.session_order || has_split,
            ..own.spec
        };
        let check = Check {
            history,
            spec,
            techniques: own.techniques,
        };
        let split;
        let base = if has_split {
            let by_session = own.spec.session_order;
            match self.base.by_statement(own.history, by_session, &is_split) {
                Some(parts) if spec.real_time.is_none() => split = parts,
                _ => return Ok(None),
            }
            &split
        } else {
            self.base
        };
        let mut findings = self.base.broken(history, spec).into_iter();
        let is_whole = |it| !self.base.node(it).is_some_and(&is_split);
        let is_dead = |read: &Uncertain| read.candidates.is_empty();
        if findings.any(|it| is_whole(it.txn)) || base.uncertain().iter().any(is_dead) {
            return Ok(None);
        }
        let Some(order) = solve::find(&check, base, backend, budget)? else {
            return Ok(None);
        };
        let Some(versions) = self.along(&check, base, &order) else {
            return Ok(None);
        };
        let is_kept = |it: &&(Node, Moment)| !matches!(base.part(it.0), Part::Statement(_));
        let points = order.iter().filter(is_kept).map(|&(node, moment)| Point {
            txn: base.txn(node),
            moment,
        });
        let certificate = Certificate {
            order: moments_at(own, points.collect()),
            sources: self.sources(|read| versions.get(&read).copied()),
        };
        Ok(Some((Decider::Witness, certificate)))
    }

    /// What the open reads are of in an order of transactions or their parts; `None` if one is of something else than it can be.
    fn along(
        &self,
        check: &Check<'_>,
        base: &Resolved,
        order: &[(Node, Moment)],
    ) -> Option<FxHashMap<usize, VersionId>> {
        let (versions, program) = (base.versions(), self.base.reads());
        let mut held: FxHashMap<KeyId, VersionId> = FxHashMap::default();
        let mut found = FxHashMap::default();
        for &(part, moment) in order {
            let txn = base.txn(part);
            let node = self.base.node(txn)?;
            let reads = reads_at(check.history, check.spec, Point { txn, moment });
            let is_of_part = |read: usize| match base.part(part) {
                Part::Whole => true,
                Part::Commit => false,
                Part::Statement(statement) => {
                    let mut reads = self.reads[read].reads.iter();
                    reads.any(|&it| program.statement(it) == statement)
                }
            };
            let own = self.of_reader.get(&node).into_iter().flatten();
            for &read in own.filter(|&&read| reads && is_of_part(read)) {
                let key = self.reads[read].key;
                let initial = versions.initial(key);
                let version = held.get(&key).copied().unwrap_or(initial);
                if self.reads[read].candidates.binary_search(&version).is_err() {
                    return None;
                }
                found.insert(read, version);
            }
            if moment != Moment::Begin {
                let written = check.history.ops(txn).iter();
                let written = written.filter(|op| op.is_write());
                for key in written.filter_map(|op| op.key()) {
                    held.extend(versions.of_writer(key, part).map(|it| (key, it)));
                }
            }
        }
        Some(found)
    }
}

/// The history where weak transactions are at prefix consistency.
fn without_weak(history: &History) -> History {
    let mut raised = history.clone();
    let set: Result<(), std::convert::Infallible> = raised.set_models(|history, txn| {
        let own = history.model(txn);
        Ok(if own.is_weak() { Model::Pc } else { own })
    });
    match set {
        Ok(()) => raised,
    }
}

/// The order as the history's own level has it: where transactions are wholes there, they are where they commit.
fn moments_at(check: &Check<'_>, order: Vec<Point>) -> Vec<Point> {
    if check.spec.has_begins(check.history) {
        return order;
    }
    let commits = order.into_iter().filter(|it| it.moment != Moment::Begin);
    let whole = commits.map(|point| Point {
        moment: Moment::Whole,
        ..point
    });
    whole.collect()
}
