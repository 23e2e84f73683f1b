//! Uncertain reads as choices: a variable for each candidate, edges that it guards, and a clause that one of them holds.
//!
//! Let t read key x, where every version in A explains what it saw and no other does. The choice of c ∈ A says: c is there when t
//! reads (its wr edge), and every version outside of A that comes after c comes after the read (rw edges, each guarded by the
//! candidate and the order of the two versions). Then the newest version that t can read is in A, whichever it is. Conversely the
//! version that t reads in an explanation is such a c. So versions in A need no rw edges, and no run is made where t writes x too.
//!
//! Where an aggregate of t counts x, A falls into classes of versions that add the same to it, and only versions of the class of c need
//! no rw edges. Then the newest version that t can read is in the class of c, and of two classes the wr and rw edges make a cycle.
//!
//! A choice may be added to a graph that was pruned already: the problem only grows.

use rustc_hash::{FxHashMap, FxHashSet};

use super::runs::next;
use super::{Edge, Polygraph, reasons};
use crate::model::KeyId;
use crate::resolve::{Node, VersionId};
use kingsnake_graph::{Literal, Logic};

/// An uncertain read, and which of its candidates are still possible.
pub struct Candidates<'a> {
    /// Who read.
    pub reader: Node,
    /// The key.
    pub key: KeyId,
    /// Every version that explains what was seen, sorted.
    pub acceptable: &'a [VersionId],
    /// Those of them that can have been read.
    pub open: &'a [VersionId],
    /// Whether it matters to an aggregate which of two versions was read.
    pub differ: &'a dyn Fn(VersionId, VersionId) -> bool,
}

/// The run of every version of the keys that choices are about.
#[derive(Default)]
pub struct ChoiceRuns {
    keys: FxHashSet<KeyId>,
    of: FxHashMap<VersionId, u32>,
}

impl ChoiceRuns {
    fn load(&mut self, polygraph: &mut Polygraph, key: KeyId) {
        if !self.keys.insert(key) {
            return;
        }
        polygraph.leave_key(key);
        let orders = &polygraph.problem.orders;
        let Some(place) = orders.place(key.0) else {
            return;
        };
        let versions = polygraph.resolved.versions();
        for index in orders.range(place) {
            let run = orders.run(index as u32);
            let mut at = VersionId(run.head);
            self.of.insert(at, index as u32);
            while at.0 != run.last {
                let Some(after) = next(versions, &polygraph.places, at) else {
                    break;
                };
                at = after;
                self.of.insert(at, index as u32);
            }
        }
    }

    /// Adds a read to a graph. `reaches` is reachability by its known edges. Returns the first variable of the choice; `None` where one
    /// candidate is left, whose edges are known.
    pub fn add(
        &mut self,
        polygraph: &mut Polygraph,
        read: &Candidates<'_>,
        reaches: &dyn Fn(u32, u32) -> bool,
    ) -> Option<u32> {
        self.load(polygraph, read.key);
        let end = polygraph.ends.literal(read.reader);
        let first = choose(&mut polygraph.problem.logic, read.open.len(), end);
        for (at, &candidate) in read.open.iter().enumerate() {
            let chosen = first.map(|first| Literal::Variable(first + at as u32, true));
            let chosen = chosen.or(end);
            let chosen = chosen.as_slice();
            let writer = polygraph.resolved.versions().writer(candidate);
            if let Some(end) = polygraph.ends.literal(writer) {
                let mut clause: Vec<Literal> = chosen.iter().map(|&it| !it).collect();
                clause.push(end);
                polygraph.problem.logic.clause(&clause);
            }
            add_wr(polygraph, read.reader, candidate, chosen, reaches);
            let is_acceptable = |other| {
                read.acceptable.binary_search(&other).is_ok() && !(read.differ)(candidate, other)
            };
            self.add_rw(polygraph, read, candidate, chosen, &is_acceptable, reaches);
        }
        first
    }

    /// Tells versions apart that a choice, made before, did not.
    pub fn tell_apart(
        &self,
        polygraph: &mut Polygraph,
        read: &Candidates<'_>,
        first: Option<u32>,
        reaches: &dyn Fn(u32, u32) -> bool,
    ) {
        let end = polygraph.ends.literal(read.reader);
        for (at, &candidate) in read.open.iter().enumerate() {
            let chosen = first.map(|first| Literal::Variable(first + at as u32, true));
            let chosen = chosen.or(end);
            let is_said = |other| {
                read.acceptable.binary_search(&other).is_err() || !(read.differ)(candidate, other)
            };
            let chosen = chosen.as_slice();
            self.add_rw(polygraph, read, candidate, chosen, &is_said, reaches);
        }
    }

    /// The rw edges of a candidate, but to versions that need none.
    fn add_rw(
        &self,
        polygraph: &mut Polygraph,
        read: &Candidates<'_>,
        candidate: VersionId,
        chosen: &[Literal],
        is_said: &dyn Fn(VersionId) -> bool,
        reaches: &dyn Fn(u32, u32) -> bool,
    ) {
        let Polygraph {
            places,
            resolved,
            problem,
            ends,
            ..
        } = polygraph;
        if !places.reads_newest(read.reader) {
            return;
        }
        let versions = resolved.versions();
        let snap = places.snap(read.reader);
        let mut guard = |edge: Edge, guard: &[Literal]| {
            if guard.is_empty() {
                problem.edges.push(edge);
            } else {
                problem.logic.guard(edge, guard);
            }
        };
        for other in versions.of_key(read.key).skip(1).map(VersionId) {
            let writer = versions.writer(other);
            if other == candidate
                || is_said(other)
                || writer == read.reader
                || reaches(snap, places.commit(writer))
            {
                continue;
            }
            let edge = Edge {
                from: snap,
                to: places.commit(writer),
                reason: reasons::rw(candidate, other),
            };
            if ends.variable(writer).is_some() || ends.older(candidate, other).is_some() {
                // Whichever of the two writers is in doubt, the order is a variable.
                let mut all = chosen.to_vec();
                all.extend(ends.literal(writer));
                all.extend(ends.older(candidate, other));
                guard(edge, &all);
                continue;
            }
            if versions.is_initial(candidate) {
                guard(edge, chosen);
                continue;
            }
            let own = versions.writer(candidate);
            if reaches(places.commit(own), places.install(writer)) {
                guard(edge, chosen);
            } else if !reaches(places.commit(writer), places.install(own))
                && let (Some(&one), Some(&two)) = (self.of.get(&candidate), self.of.get(&other))
                && one != two
            {
                let mut both = chosen.to_vec();
                both.push(Literal::Order(one, two));
                guard(edge, &both);
            }
        }
    }
}

/// The variables of a choice among this many, if there is a choice. A transaction that did not take effect chooses nothing.
fn choose(logic: &mut Logic, n_candidates: usize, end: Option<Literal>) -> Option<u32> {
    let Some(end) = end else {
        return (n_candidates != 1).then(|| logic.choice(n_candidates));
    };
    let variables: Vec<u32> = match n_candidates {
        1 => return None,
        n_candidates => (0..n_candidates).map(|_| logic.variable()).collect(),
    };
    let mut clause = vec![!end];
    clause.extend(variables.iter().map(|&it| Literal::Variable(it, true)));
    logic.clause(&clause);
    variables.first().copied()
}

/// The wr edge of a candidate.
fn add_wr(
    polygraph: &mut Polygraph,
    reader: Node,
    candidate: VersionId,
    chosen: &[Literal],
    reaches: &dyn Fn(u32, u32) -> bool,
) {
    let versions = polygraph.resolved.versions();
    if versions.is_initial(candidate) {
        return;
    }
    let from = polygraph.places.commit(versions.writer(candidate));
    let to = polygraph.places.snap(reader);
    if reaches(from, to) {
        return;
    }
    let reason = reasons::wr(candidate);
    let edge = Edge { from, to, reason };
    if chosen.is_empty() {
        polygraph.problem.edges.push(edge);
    } else {
        polygraph.problem.logic.guard(edge, chosen);
    }
}
