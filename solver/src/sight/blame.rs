//! Which open reads a proof rests on: all that its steps speak of, and those that put versions into one family. More than needed is
//! allowed; less would forbid what can be.

use rustc_hash::FxHashSet;

use super::{Scene, Taken};
use crate::level::Model;
use crate::model::{KeyId, TxnId};
use crate::resolve::{Node, VersionId};
use crate::verdict::{Fact, Proof, Split, StepReason};
use kingsnake_graph::paths::fewest;

/// The versions that are taken, by open read.
type Chosen<'c> = &'c [Option<VersionId>];

impl Scene<'_> {
    /// The open reads that a proof rests on, where some are of these versions.
    pub(super) fn blamed(&self, chosen: Chosen<'_>, proof: &Proof) -> FxHashSet<usize> {
        let mut blame = Blame {
            scene: self,
            chosen,
            blamed: FxHashSet::default(),
        };
        for split in proof.splits() {
            blame.split(split);
        }
        for step in proof.steps() {
            let (from, to) = (step.from.txn, step.to.txn);
            match step.reason {
                StepReason::Begin
                | StepReason::Session
                | StepReason::RealTime
                | StepReason::Stated { .. } => {}
                StepReason::Wr { key, .. } => blame.read(to, key, Some(from)),
                StepReason::Ww { key, fact } => blame.order(key, Some(from), to, fact),
                StepReason::Rw { key, writer, fact } => {
                    blame.read(from, key, writer);
                    blame.order(key, writer, to, fact);
                }
                StepReason::Vis { reader, key } => {
                    blame.read(reader, key, Some(to).filter(|&to| to != from));
                    blame.sight(from, reader);
                }
            }
        }
        blame.blamed.into_iter().map(|it| it.0).collect()
    }
}

struct Blame<'b, 's> {
    scene: &'b Scene<'s>,
    chosen: Chosen<'b>,
    blamed: FxHashSet<Taken>,
}

impl Blame<'_, '_> {
    fn version(&self, read: usize) -> Option<VersionId> {
        self.scene.reads[read].known.or(self.chosen[read])
    }

    /// The open reads of a key by a transaction, and what they are of.
    fn of(&self, reader: Node, key: KeyId) -> impl Iterator<Item = Taken> + '_ {
        let reads = self.scene.of.get(&(reader, key)).into_iter().flatten();
        reads.filter_map(|&read| Some((read, self.version(read)?)))
    }

    /// Blames the reads of a key that a transaction made of what another wrote.
    fn read(&mut self, reader: TxnId, key: KeyId, writer: Option<TxnId>) {
        let base = self.scene.base;
        let Some(reader) = base.node(reader) else {
            return;
        };
        let is = |it: &Taken| super::reads::writer(base, it.1) == writer;
        let found: Vec<Taken> = self.of(reader, key).filter(is).collect();
        self.blamed.extend(found);
    }

    fn split(&mut self, Split { key, one, other }: Split) {
        self.family(key, Some(one));
        self.family(key, Some(other));
    }

    /// Blames what puts one version before another: the families of both.
    fn order(&mut self, key: KeyId, before: Option<TxnId>, after: TxnId, fact: Fact) {
        self.family(key, before);
        self.family(key, Some(after));
        if fact == Fact::Given {
            // Orders are shown of whole families.
            let versions = self.scene.base.versions();
            let writers: Vec<Node> = (versions.of_key(key).skip(1))
                .map(|it| versions.writer(VersionId(it)))
                .collect();
            for writer in writers {
                let found: Vec<Taken> = self.of(writer, key).collect();
                self.blamed.extend(found);
            }
        }
    }

    /// Blames the reads that a version and those that it was made of were made by.
    fn family(&mut self, key: KeyId, version: Option<TxnId>) {
        let base = self.scene.base;
        let versions = base.versions();
        let mut at = version.and_then(|it| base.node(it));
        let mut met: FxHashSet<Node> = FxHashSet::default();
        while let Some(writer) = at.filter(|&it| met.insert(it)) {
            if self.scene.loose.contains(&(writer, key)) {
                return;
            }
            let found: Vec<Taken> = self.of(writer, key).collect();
            let before = match found.first() {
                Some(&(_, version)) => Some(version),
                None => versions
                    .of_writer(key, writer)
                    .and_then(|it| versions.predecessor(it)),
            };
            self.blamed.extend(found);
            at = before
                .filter(|&it| !versions.is_initial(it))
                .map(|it| versions.writer(it));
        }
    }

    /// Blames the reads by which a transaction saw another.
    fn sight(&mut self, seen: TxnId, reader: TxnId) {
        let (check, base) = (self.scene.check, self.scene.base);
        let (Some(from), Some(to)) = (base.node(seen), base.node(reader)) else {
            return;
        };
        if check.spec.model_of(check.history, reader) == Model::Cc {
            self.path(from, to);
            return;
        }
        let versions = base.versions();
        let own = self.scene.of_reader.get(&to).into_iter().flatten();
        let own = own.filter_map(|&read| Some((read, self.version(read)?)));
        let found: Vec<Taken> = own.filter(|it| versions.writer(it.1) == from).collect();
        self.blamed.extend(found);
    }

    /// Blames the open reads on a path of session order and reads with few of them.
    fn path(&mut self, from: Node, to: Node) {
        let via = fewest(self.scene.base.n_txns(), to, None, |node| {
            let before = self.before(node).into_iter();
            before.map(|(before, taken)| (before, taken.is_some(), taken))
        });
        let mut node = from;
        while let Some((next, taken)) = via[node as usize].filter(|_| node != to) {
            self.blamed.extend(taken);
            node = next;
        }
    }

    /// What comes directly before a transaction by session order and reads.
    fn before(&self, node: Node) -> Vec<(Node, Option<Taken>)> {
        let (scene, base) = (self.scene, self.scene.base);
        let (program, versions) = (base.reads(), base.versions());
        let mut before: Vec<(Node, Option<Taken>)> = Vec::new();
        let sessions = base.sessions();
        let session = sessions.partition_point(|it| it.end <= node);
        let is_later = sessions.get(session).is_some_and(|it| node > it.start);
        if scene.check.spec.session_order && is_later {
            before.push((node - 1, None));
        }
        let choices = program.choices();
        let is_open = |read: usize| {
            let at = choices.binary_search_by_key(&(read as u32), |it| it.0);
            at.is_ok()
        };
        for read in program.of(node) {
            let version = program.version(read);
            if !is_open(read) && !versions.is_initial(version) {
                before.push((versions.writer(version), None));
            }
        }
        for &read in scene.of_reader.get(&node).into_iter().flatten() {
            if let Some(version) = self.version(read).filter(|&it| !versions.is_initial(it)) {
                before.push((versions.writer(version), Some((read, version))));
            }
        }
        before
    }
}
