//! What happened before a transaction along an order, and the paths of session order and reads that an order breaks: each becomes a lemma,
//! an edge guarded by the reads on a path with the fewest open ones.

use super::Taken;
use super::told::Telling;
use crate::budget::{Budget, StopReason};
use crate::resolve::{NO_NODE, Node, VersionId};
use kingsnake_graph::paths::fewest;

/// How many lemmas one read of a transaction gives at most.
const PATHS: usize = 4;

/// What holds where some reads are of these versions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CausalLemma {
    /// Sorted.
    pub(super) guard: Vec<Taken>,
    /// That one transaction commits before another; nothing where the reads cannot all be.
    pub(super) commits: Option<(Node, Node)>,
}

impl CausalLemma {
    pub(super) fn new(mut guard: Vec<Taken>, commits: Option<(Node, Node)>) -> Self {
        guard.sort_unstable();
        guard.dedup();
        CausalLemma { guard, commits }
    }
}

/// For each transaction, what happened before it.
pub(super) struct Pasts {
    n_words: usize,
    words: Vec<u64>,
}

impl Pasts {
    pub(super) fn new(n_txns: usize, budget: &Budget) -> Result<Self, StopReason> {
        let n_words = n_txns.div_ceil(64);
        let bytes = (n_words * n_txns * 8) as u64;
        budget.reserve("what happened before each transaction", bytes)?;
        Ok(Pasts {
            n_words,
            words: vec![0; n_words * n_txns],
        })
    }

    /// A transaction comes after another of its session.
    pub(super) fn begin(&mut self, node: Node, before: Option<Node>) {
        if let Some(before) = before {
            self.see(node, before);
        }
    }

    /// Another happened before a transaction.
    pub(super) fn see(&mut self, node: Node, seen: Node) {
        if node == seen {
            return;
        }
        let (to, from) = (node as usize * self.n_words, seen as usize * self.n_words);
        for at in 0..self.n_words {
            let word = self.words[from + at];
            self.words[to + at] |= word;
        }
        self.words[to + seen as usize / 64] |= 1 << (seen % 64);
    }

    pub(super) fn has(&self, node: Node, seen: Node) -> bool {
        let word = self.words[node as usize * self.n_words + seen as usize / 64];
        word >> (seen % 64) & 1 == 1
    }

    /// What happened before some transactions, and these.
    pub(super) fn joined(&self, nodes: impl Iterator<Item = Node>) -> JoinedPast {
        let mut words = vec![0; self.n_words];
        for node in nodes {
            let from = node as usize * self.n_words;
            for (word, own) in words.iter_mut().zip(&self.words[from..]) {
                *word |= own;
            }
            words[node as usize / 64] |= 1 << (node % 64);
        }
        JoinedPast(words)
    }
}

/// What happened before some transactions, and these.
pub(super) struct JoinedPast(Vec<u64>);

impl JoinedPast {
    pub(super) fn has(&self, seen: Node) -> bool {
        self.0[seen as usize / 64] >> (seen % 64) & 1 == 1
    }
}

impl Telling<'_, '_> {
    /// Takes down which paths to a transaction at causal consistency are broken, as lemmas where all reads that they rest on are attended
    /// to; the others are missed. Whether there are any.
    pub(super) fn broken_paths(&mut self, node: Node) -> bool {
        #[cfg(test)]
        if self.scene.skipped == super::Skipped::Paths {
            return false;
        }
        let Some(pasts) = self.pasts.take() else {
            return false;
        };
        let (scene, program) = (self.scene, self.scene.base.reads());
        let versions = scene.base.versions();
        let mut broken: Vec<(Option<Taken>, Node, Node)> = Vec::new();
        for read in program.of(node) {
            let open = scene.open_of.get(&read).copied();
            let version = match open {
                None => program.version(read),
                Some(open) => match self.versions[open] {
                    Some(version) => version,
                    None => continue,
                },
            };
            let taken = open.map(|open| (open, version));
            let source = versions.writer(version);
            let place = self.place(version);
            let writers = versions.of_key(versions.key(version)).skip(1);
            let writers = writers.map(|it| versions.writer(VersionId(it)));
            let seen = writers.filter(|&it| {
                it != source && it != node && pasts.has(node, it) && self.place_of(it) > place
            });
            let seen: Vec<Node> = seen.collect();
            let is_maximal = |&it: &Node| !seen.iter().any(|&other| pasts.has(other, it));
            let maximal = seen.iter().copied().filter(is_maximal);
            broken.extend(maximal.take(PATHS).map(|it| (taken, it, source)));
        }
        for gap in program.gaps_of(node) {
            for place in gap.places.clone() {
                let key = scene.base.gaps().keys()[place as usize];
                let writers = versions.of_key(key).skip(1);
                let mut writers = writers.map(|it| versions.writer(VersionId(it)));
                let seen = writers.find(|&it| it != node && pasts.has(node, it));
                broken.extend(seen.map(|it| (None, it, NO_NODE)));
            }
        }
        self.pasts = Some(pasts);
        if broken.is_empty() {
            return false;
        }
        let paths = self.paths(node);
        for &(taken, seen, before) in &broken {
            let mut guard: Vec<Taken> = taken.into_iter().collect();
            let mut at = seen;
            while let Some((next, read)) = paths[at as usize].filter(|_| at != node) {
                guard.extend(read);
                at = next;
            }
            let unattended = guard.iter().filter(|it| !self.state.attends(it.0));
            let unattended: Vec<usize> = unattended.map(|it| it.0).collect();
            if unattended.is_empty() {
                let commits = (before != NO_NODE).then_some((seen, before));
                self.lemmas.push(CausalLemma::new(guard, commits));
            } else {
                for read in unattended {
                    self.miss_read(read);
                }
            }
        }
        true
    }

    /// For each transaction that happened before another, the next on a path with the fewest open reads, and the open read of that step.
    fn paths(&self, to: Node) -> Vec<Option<(Node, Option<Taken>)>> {
        fewest(self.scene.base.n_txns(), to, None, |node| {
            let session = self.session_before(node).map(|it| (it, None));
            let before = self.sources_of(node).chain(session);
            before.map(|(before, taken)| {
                let taken = taken.filter(|it| self.state.version(it.0).is_none());
                (before, taken.is_some(), taken)
            })
        })
    }
}
