//! Uncertain reads as choices: a variable for each candidate, edges that it guards, and a clause that one of them holds.
//!
//! Let t read key x, where every version in A explains what it saw and no other does. The choice of c ∈ A says: c is there when t
//! reads (its wr edge), and every version outside of A that comes after c comes after the read (rw edges, each guarded by the
//! candidate and the order of the two versions). Then the newest version that t can read is in A, whichever it is. Conversely the
//! version that t reads in an explanation is such a c. So versions in A need no rw edges, and no run is made where t writes x too.
//!
//! Where an aggregate of t counts x, A falls into classes of versions that add the same to it, and only versions of the class of c need
//! no rw edges. Then the newest version that t can read is in the class of c, and of two classes the wr and rw edges make a cycle.

use rustc_hash::{FxHashMap, FxHashSet};

use super::runs::next;
use super::{Edge, Polygraph, reasons};
use crate::model::KeyId;
use crate::resolve::{Node, VersionId};
use kingsnake_graph::Literal;

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

/// Adds choices to a graph. `reaches` is reachability by its known edges. Returns the first variable of each choice.
pub fn add_choices(
    polygraph: &mut Polygraph,
    reads: &[Candidates<'_>],
    reaches: &dyn Fn(u32, u32) -> bool,
) -> Vec<u32> {
    let mut runs = RunOf::default();
    reads
        .iter()
        .map(|read| {
            runs.load(polygraph, read.key);
            add_choice(polygraph, read, &runs, reaches)
        })
        .collect()
}

/// The run of every version of the keys that are not settled.
#[derive(Default)]
struct RunOf {
    keys: FxHashSet<KeyId>,
    of: FxHashMap<VersionId, u32>,
}

impl RunOf {
    fn load(&mut self, polygraph: &Polygraph, key: KeyId) {
        if !self.keys.insert(key) {
            return;
        }
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
}

fn add_choice(
    polygraph: &mut Polygraph,
    read: &Candidates<'_>,
    runs: &RunOf,
    reaches: &dyn Fn(u32, u32) -> bool,
) -> u32 {
    let places = &polygraph.places;
    let versions = polygraph.resolved.versions();
    let logic = &mut polygraph.problem.logic;
    let first = logic.choice(read.open.len());
    let snap = places.snap(read.reader);
    for (at, &candidate) in read.open.iter().enumerate() {
        let chosen = Literal::Variable(first + at as u32, true);
        if !versions.is_initial(candidate) {
            let from = places.commit(versions.writer(candidate));
            if !reaches(from, snap) {
                let reason = reasons::wr(candidate);
                let to = snap;
                logic.guard(Edge { from, to, reason }, &[chosen]);
            }
        }
        if !places.reads_newest(read.reader) {
            continue;
        }
        for other in versions.of_key(read.key).skip(1).map(VersionId) {
            let writer = versions.writer(other);
            let is_acceptable =
                read.acceptable.binary_search(&other).is_ok() && !(read.differ)(candidate, other);
            if is_acceptable || writer == read.reader || reaches(snap, places.commit(writer)) {
                continue;
            }
            let edge = Edge {
                from: snap,
                to: places.commit(writer),
                reason: reasons::rw(candidate, other),
            };
            if versions.is_initial(candidate) {
                logic.guard(edge, &[chosen]);
                continue;
            }
            let own = versions.writer(candidate);
            if reaches(places.commit(own), places.install(writer)) {
                logic.guard(edge, &[chosen]);
            } else if !reaches(places.commit(writer), places.install(own))
                && let (Some(&one), Some(&two)) = (runs.of.get(&candidate), runs.of.get(&other))
                && one != two
            {
                logic.guard(edge, &[chosen, Literal::Order(one, two)]);
            }
        }
    }
    first
}
