//! Edges of a graph as steps of a proof, one at a time, for provers that know cycles of their own.

use rustc_hash::FxHashMap;

use super::order::{KeyOrder, Known};
use super::rivals::oriented;
use super::stated::stated;
use crate::model::{History, KeyId};
use crate::relate::{Edge, Polygraph, Reason, reasons};
use crate::resolve::VersionId;
use crate::verdict::{Fact, Step, StepReason};

/// Makes steps of edges.
pub struct Steps<'a> {
    polygraph: &'a Polygraph,
    history: &'a History,
    orders: FxHashMap<KeyId, KeyOrder>,
}

impl<'a> Steps<'a> {
    /// Makes steps of the edges of a graph.
    pub fn new(polygraph: &'a Polygraph, history: &'a History) -> Self {
        Steps {
            polygraph,
            history,
            orders: FxHashMap::default(),
        }
    }

    /// The step of an edge. An order of two versions that cannot be read off is an assumption; `None` where the opposite order can
    /// be read off, or where an edge does not join two transactions.
    pub fn step(&mut self, edge: Edge) -> Option<Step> {
        let polygraph = self.polygraph;
        let resolved = polygraph.resolved();
        let versions = resolved.versions();
        let reason = match edge.reason {
            Reason::Stated { .. } => stated(polygraph, self.history, edge)?,
            Reason::Ww { before, after } => StepReason::Ww {
                key: versions.key(VersionId(before)),
                fact: self.fact(VersionId(before), VersionId(after))?,
            },
            Reason::Rw { before, after } => {
                let before = VersionId(before);
                let writer = versions.writer(before);
                StepReason::Rw {
                    key: versions.key(before),
                    writer: (!versions.is_initial(before)).then(|| resolved.txn(writer)),
                    fact: self.fact(before, VersionId(after))?,
                }
            }
        };
        Some(Step {
            from: polygraph.point(edge.from)?,
            to: polygraph.point(edge.to)?,
            reason,
        })
    }

    /// A cycle, turned as it is printed.
    pub fn told(&self, steps: Vec<Step>) -> Vec<Step> {
        oriented(self.polygraph, self.history, steps)
    }

    /// Every order of two versions that can be read off, as edges: of the writers, and of the readers of the older.
    pub fn read_off(&mut self) -> Vec<Edge> {
        let polygraph = self.polygraph;
        let (versions, places) = (polygraph.resolved().versions(), polygraph.places());
        let mut edges = Vec::new();
        for key in (0..versions.n_keys() as u32).map(KeyId) {
            let all = || versions.of_key(key).map(VersionId);
            for (before, after) in all().flat_map(|before| all().map(move |after| (before, after)))
            {
                let is_known = before != after && !versions.is_initial(after);
                if !is_known || matches!(self.fact(before, after), None | Some(Fact::Assumed)) {
                    continue;
                }
                let writer = versions.writer(after);
                if !versions.is_initial(before) {
                    edges.push(Edge {
                        from: places.commit(versions.writer(before)),
                        to: places.install(writer),
                        reason: reasons::ww(before, after),
                    });
                }
                let readers = versions.readers(before).iter().filter(|&&it| it != writer);
                edges.extend(readers.map(|&reader| Edge {
                    from: places.snap(reader),
                    to: places.commit(writer),
                    reason: reasons::rw(before, after),
                }));
            }
        }
        edges
    }

    fn fact(&mut self, before: VersionId, after: VersionId) -> Option<Fact> {
        let polygraph = self.polygraph;
        let key = polygraph.resolved().versions().key(before);
        let order = self.orders.entry(key);
        let order = order.or_insert_with(|| KeyOrder::of(polygraph, key));
        match order.known(before, after) {
            Known::Yes(fact, _) => Some(fact),
            Known::Open(..) => Some(Fact::Assumed),
            Known::No => None,
        }
    }
}
