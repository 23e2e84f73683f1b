//! Transactions whose end is unknown and that a read leaves in doubt: each took effect or not, which is a variable.
//!
//! Such a transaction has its place in every order, and its session order, since these say nothing of others. What it wrote counts only if
//! it took effect: for each other version of a key that it wrote, a variable says which of the two is older, and the edges of that order
//! are guarded by it and by the end. What it read is a choice that is made only if it took effect (`choices`).

use rustc_hash::FxHashMap;

use super::{Edge, Places, Polygraph, reasons};
use crate::model::{History, KeyId, Op};
use crate::resolve::{Node, VersionId, Versions};
use kingsnake_graph::{Literal, Logic};

/// The variables of the transactions in doubt.
#[derive(Clone, Debug, Default)]
pub(super) struct Ends {
    took_effect: FxHashMap<Node, u32>,
    /// True if the first version is older than the second, one of which is of a transaction in doubt.
    older: FxHashMap<(VersionId, VersionId), u32>,
}

impl Ends {
    /// The variable that is true if a transaction took effect, where that is in doubt.
    pub(super) fn variable(&self, txn: Node) -> Option<u32> {
        self.took_effect.get(&txn).copied()
    }

    /// That a transaction took effect, where that is in doubt.
    pub(super) fn literal(&self, txn: Node) -> Option<Literal> {
        Some(Literal::Variable(self.variable(txn)?, true))
    }

    /// That one version is older than another, where the writer of one of them is in doubt.
    pub(super) fn older(&self, one: VersionId, other: VersionId) -> Option<Literal> {
        if let Some(&variable) = self.older.get(&(one, other)) {
            return Some(Literal::Variable(variable, true));
        }
        let variable = *self.older.get(&(other, one))?;
        Some(Literal::Variable(variable, false))
    }
}

/// Adds what the transactions in doubt wrote.
pub(super) fn add_ends(history: &History, polygraph: &mut Polygraph) {
    let Polygraph {
        resolved,
        places,
        ends,
        problem,
        ..
    } = polygraph;
    for &node in resolved.in_doubt() {
        ends.took_effect.insert(node, problem.logic.variable());
    }
    for &node in resolved.in_doubt() {
        let mut writing = Writing {
            versions: resolved.versions(),
            places,
            ends,
            logic: &mut problem.logic,
        };
        let mut keys: Vec<KeyId> = history
            .ops(resolved.txn(node))
            .iter()
            .filter_map(written)
            .collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            writing.key(node, key);
        }
    }
    for node in resolved.without_effect(history, polygraph.spec) {
        if let Some(variable) = ends.variable(node) {
            problem.logic.clause(&[Literal::Variable(variable, false)]);
        }
    }
}

fn written(op: &Op) -> Option<KeyId> {
    op.key().filter(|_| op.is_write())
}

struct Writing<'a> {
    versions: &'a Versions,
    places: &'a Places,
    ends: &'a mut Ends,
    logic: &'a mut Logic,
}

impl Writing<'_> {
    /// Orders what a transaction in doubt wrote to a key and every other version of it.
    fn key(&mut self, node: Node, key: KeyId) {
        let versions = self.versions;
        let (Some(own), Some(end)) = (versions.of_writer(key, node), self.ends.literal(node))
        else {
            return;
        };
        for other in versions.of_key(key).map(VersionId) {
            if other == own || self.ends.older(other, own).is_some() {
                continue;
            }
            if versions.is_initial(other) {
                self.readers(other, own, &[end]);
                continue;
            }
            let variable = self.logic.variable();
            self.ends.older.insert((other, own), variable);
            let mut guard = vec![end];
            guard.extend(self.ends.literal(versions.writer(other)));
            guard.push(Literal::Variable(variable, true));
            self.ww(other, own, &guard);
            self.readers(other, own, &guard);
            guard.pop();
            guard.push(Literal::Variable(variable, false));
            self.ww(own, other, &guard);
        }
    }

    fn ww(&mut self, before: VersionId, after: VersionId, guard: &[Literal]) {
        let edge = Edge {
            from: self.places.commit(self.versions.writer(before)),
            to: self.places.install(self.versions.writer(after)),
            reason: reasons::ww(before, after),
        };
        self.logic.guard(edge, guard);
    }

    /// The certain readers of a version come before the writer of a newer one.
    fn readers(&mut self, before: VersionId, after: VersionId, guard: &[Literal]) {
        let to = self.places.commit(self.versions.writer(after));
        for &reader in self.versions.readers(before) {
            if self.places.reads_newest(reader) {
                let reason = reasons::rw(before, after);
                let from = self.places.snap(reader);
                self.logic.guard(Edge { from, to, reason }, guard);
            }
        }
    }
}
