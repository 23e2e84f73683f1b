//! What a stronger level explains needs no proposals: its order tells what was read. Weak transactions are taken to be at prefix
//! consistency, and those at parallel snapshot isolation at snapshot isolation.

use rustc_hash::FxHashMap;

use super::Search;
use crate::level::{Model, Spec};
use crate::model::{History, KeyId};
use crate::phases::{self, Check, Exit};
use crate::relate::reads_at;
use crate::report::Decider;
use crate::resolve::VersionId;
use crate::uncertain;
use crate::verdict::{Certificate, Moment, Point};

impl Search<'_, '_> {
    /// An order that explains the history at a stronger level, as one at its own; `None` if there is none, or aggregates have to be counted.
    pub(super) fn by_stronger_level(&mut self) -> Result<Option<(Decider, Certificate)>, Exit> {
        let own = self.check;
        let raised;
        let history = if own.spec.model == Model::Mixed {
            raised = without_weak(own.history);
            &raised
        } else {
            own.history
        };
        let model = match own.spec.model {
            Model::Mixed => Model::Mixed,
            Model::Psi => Model::Si,
            _ => Model::Pc,
        };
        let spec = Spec { model, ..own.spec };
        let check = Check {
            history,
            spec,
            techniques: own.techniques,
        };
        let is_dead = |read: &crate::resolve::Uncertain| read.candidates.is_empty();
        if !self.aggregates.is_empty()
            || !self.base.broken(history, spec).is_empty()
            || self.base.uncertain().iter().any(is_dead)
        {
            return Ok(None);
        }
        let backend = &mut *self.engines.backend;
        let Some(decided) = uncertain::find(&check, self.base, backend, self.budget)? else {
            return Ok(None);
        };
        let order = phases::order(&decided)?;
        let Some(versions) = self.along(&check, &order) else {
            return Ok(None);
        };
        let certificate = Certificate {
            order: moments_at(own, order),
            sources: self.sources(|read| versions.get(&read).copied()),
        };
        Ok(Some((Decider::Witness, certificate)))
    }

    /// What the open reads are of in an order; `None` if one is of something else than it can be.
    fn along(&self, check: &Check<'_>, order: &[Point]) -> Option<FxHashMap<usize, VersionId>> {
        let versions = self.base.versions();
        let mut held: FxHashMap<KeyId, VersionId> = FxHashMap::default();
        let mut found = FxHashMap::default();
        for point in order {
            let node = self.base.node(point.txn)?;
            let reads = reads_at(check.history, check.spec, *point);
            let own = self.of_reader.get(&node).into_iter().flatten();
            for &read in own.filter(|_| reads) {
                let key = self.reads[read].key;
                let initial = versions.initial(key);
                let version = held.get(&key).copied().unwrap_or(initial);
                if !self.reads[read].candidates.contains(&version) {
                    return None;
                }
                found.insert(read, version);
            }
            if point.moment != Moment::Begin {
                let written = check.history.ops(point.txn).iter();
                let written = written.filter(|op| op.is_write());
                for key in written.filter_map(|op| op.key()) {
                    held.extend(versions.of_writer(key, node).map(|it| (key, it)));
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
