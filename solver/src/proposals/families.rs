//! Proposals that no engine need be asked about: two transactions that read one version of a key and both overwrote it (a lost update), and
//! versions that were made of each other in a circle.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Search;
use crate::cases::Taken;
use crate::model::KeyId;
use crate::resolve::{Node, VersionId};

/// A version, the open read by which its writer made it of another, and that other.
type Made = (VersionId, (Option<usize>, VersionId));

impl Search<'_, '_> {
    /// The reads that cannot all be, in some groups, where each transaction reads what is proposed.
    pub(super) fn torn_families(&self, chosen: &[Option<VersionId>]) -> Vec<Vec<Taken>> {
        let keys: FxHashSet<KeyId> = self.reads.iter().map(|it| it.key).collect();
        let mut keys: Vec<KeyId> = keys.into_iter().collect();
        keys.sort_unstable();
        let mut torn = Vec::new();
        for key in keys {
            let made: Vec<Made> = self.made(key, chosen);
            torn.extend(self.forks(&made));
            torn.extend(self.circle(&made));
        }
        torn.retain(|it| !it.is_empty());
        torn
    }

    /// What each version of a key was made of, where its writer allows nothing between.
    fn made(&self, key: KeyId, chosen: &[Option<VersionId>]) -> Vec<Made> {
        let versions = self.base.versions();
        let written = versions.of_key(key).skip(1).map(VersionId);
        let made = written.filter_map(|version| {
            let writer = versions.writer(version);
            if !self.is_atomic(writer) {
                return None;
            }
            let mut open = self.of.get(&(writer, key)).into_iter().flatten();
            let of = match open.next() {
                Some(&read) => (Some(read), self.reads[read].known.or(chosen[read])?),
                None => (None, versions.predecessor(version)?),
            };
            Some((version, of))
        });
        made.collect()
    }

    fn is_atomic(&self, node: Node) -> bool {
        let (check, txn) = (self.check, self.base.txn(node));
        check.spec.model_of(check.history, txn).is_atomic()
    }

    /// Two versions made of one.
    fn forks(&self, made: &[Made]) -> Vec<Vec<Taken>> {
        let mut first: FxHashMap<VersionId, Option<usize>> = FxHashMap::default();
        let mut forks = Vec::new();
        for &(_, (read, of)) in made {
            match first.get(&of) {
                None => {
                    first.insert(of, read);
                }
                Some(&other) => forks.push(self.blaming([other, read], of)),
            }
        }
        forks
    }

    fn blaming(&self, reads: [Option<usize>; 2], of: VersionId) -> Vec<Taken> {
        let open = reads.into_iter().flatten();
        let mut blamed: Vec<Taken> = open.map(|read| (read, of)).collect();
        blamed.sort_unstable();
        blamed
    }

    /// Versions that were made of each other in a circle.
    fn circle(&self, made: &[Made]) -> Option<Vec<Taken>> {
        let of: FxHashMap<VersionId, (Option<usize>, VersionId)> = made.iter().copied().collect();
        let mut done: FxHashSet<VersionId> = FxHashSet::default();
        for &(start, _) in made {
            let mut path: Vec<VersionId> = Vec::new();
            let mut at = start;
            while !done.contains(&at) {
                if let Some(first) = path.iter().position(|&it| it == at) {
                    let circle = path[first..].iter().map(|it| of[it]);
                    let open = circle.filter_map(|(read, of)| Some((read?, of)));
                    let mut blamed: Vec<Taken> = open.collect();
                    blamed.sort_unstable();
                    return Some(blamed);
                }
                let Some(&(_, before)) = of.get(&at) else {
                    break;
                };
                path.push(at);
                at = before;
            }
            done.extend(path);
        }
        None
    }
}
