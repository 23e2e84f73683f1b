//! The polygraph: known edges, each with its reason, and for each key the runs of versions that are not yet ordered.
//!
//! SER has one node a transaction (Papadimitriou's polygraph, Cobra's constraints); SI has a begin and a commit node
//! (Viper's BC-polygraph). Constraints stay implicit: any two runs of one key are ordered one way or the other.

mod construct;
mod edge;
mod real_time;
mod runs;

use std::ops::Range;

pub(crate) use construct::add_clock;
pub use construct::construct;
pub use edge::{Edge, Reason};
pub(crate) use real_time::{earliest, latest};
pub use runs::{Run, Runs};

use crate::level::{Model, Spec};
use crate::model::TxnId;
use crate::resolve::{Node, Resolved, VersionId};
use crate::verdict::{Moment, Point};

/// Known edges and implicit constraints.
#[derive(Clone, Debug)]
pub struct Polygraph {
    pub(crate) resolved: Resolved,
    pub(crate) spec: Spec,
    /// Nodes of transactions, then nodes of the time chain.
    pub(crate) n_nodes: usize,
    pub(crate) n_txn_nodes: usize,
    /// Known edges; pruning appends to them round by round.
    pub(crate) edges: Vec<Edge>,
    pub(crate) runs: Runs,
    /// For each transaction, whether the clock puts it after the one before it in its session; empty where that was not asked.
    pub(crate) follows: Vec<bool>,
}

impl Polygraph {
    /// What the reads mean.
    pub fn resolved(&self) -> &Resolved {
        &self.resolved
    }

    /// The level's ingredients.
    pub fn spec(&self) -> Spec {
        self.spec
    }

    /// The number of nodes.
    pub fn n_nodes(&self) -> usize {
        self.n_nodes
    }

    /// The known edges.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// The runs of versions of the keys that are not settled.
    pub fn runs(&self) -> &Runs {
        &self.runs
    }

    /// What a node stands for; `None` for a node of the time chain.
    pub fn point(&self, node: u32) -> Option<Point> {
        if node as usize >= self.n_txn_nodes {
            return None;
        }
        let (index, moment) = match self.spec.model {
            Model::Ser => (node, Moment::Whole),
            Model::Si if node.is_multiple_of(2) => (node / 2, Moment::Begin),
            Model::Si => (node / 2, Moment::Commit),
        };
        let txn: TxnId = self.resolved.txn(index);
        Some(Point { txn, moment })
    }

    /// The node where a transaction begins: the target of wr and ww edges, the source of rw edges.
    #[inline]
    pub fn begin(&self, txn: Node) -> u32 {
        match self.spec.model {
            Model::Ser => txn,
            Model::Si => 2 * txn,
        }
    }

    /// The node where a transaction commits: the source of wr and ww edges, the target of rw edges.
    #[inline]
    pub fn commit(&self, txn: Node) -> u32 {
        match self.spec.model {
            Model::Ser => txn,
            Model::Si => 2 * txn + 1,
        }
    }

    /// The edges that hold when run `a` of a key comes before run `b`.
    pub fn order_edges(&self, a: Run, b: Run) -> impl Iterator<Item = Edge> + '_ {
        let versions = self.resolved.versions();
        let (before, after) = (a.last, b.head);
        let writer = versions.writer(before);
        let next = versions.writer(after);
        let ww = Edge {
            from: self.commit(writer),
            to: self.begin(next),
            reason: Reason::Ww { before, after },
        };
        let to = self.commit(next);
        let readers = versions.readers(before);
        #[cfg(test)]
        let readers = match readers {
            [rest @ .., _] if crate::fault::is(crate::fault::Fault::MissingReader) => rest,
            readers => readers,
        };
        let others = readers.iter().filter(move |&&r| r != next);
        let rw = others.map(move |&reader| Edge {
            from: self.begin(reader),
            to,
            reason: Reason::Rw { before, after },
        });
        std::iter::once(ww).chain(rw)
    }

    /// One of the edges that hold when run `a` comes before run `b`: 0 is the ww edge, i + 1 the rw edge of reader i.
    /// `None` if there is none, or if the reader is the writer that comes after.
    pub(crate) fn order_edge(&self, a: Run, b: Run, edge: u32) -> Option<Edge> {
        let versions = self.resolved.versions();
        let (before, after) = (a.last, b.head);
        let next = versions.writer(after);
        let Some(reader) = edge.checked_sub(1) else {
            return Some(Edge {
                from: self.commit(versions.writer(before)),
                to: self.begin(next),
                reason: Reason::Ww { before, after },
            });
        };
        let &reader = versions.readers(before).get(reader as usize)?;
        (reader != next).then(|| Edge {
            from: self.begin(reader),
            to: self.commit(next),
            reason: Reason::Rw { before, after },
        })
    }

    /// Whether two runs need no order for SER: nobody read either, so any topological order settles them.
    /// (For SI writers must not overlap, so such pairs count.)
    #[inline]
    pub fn is_trivial(&self, a: Run, b: Run) -> bool {
        #[cfg(test)]
        if crate::fault::is(crate::fault::Fault::OverlappingWriters) {
            return self.is_unread(a) && self.is_unread(b);
        }
        self.spec.model == Model::Ser && self.is_unread(a) && self.is_unread(b)
    }

    fn is_unread(&self, run: Run) -> bool {
        run.head == run.last && self.resolved.versions().readers(run.last).is_empty()
    }

    /// The chains that the level makes of the nodes, as ranges that cover them: sessions where their order counts or the
    /// clock gives it to them, single transactions where it does not, and the time chain.
    pub fn chains(&self) -> Vec<Range<u32>> {
        let width = match self.spec.model {
            Model::Ser => 1,
            Model::Si => 2,
        };
        let follows = |txn: Node| {
            self.spec.session_order || self.follows.get(txn as usize).copied().unwrap_or(false)
        };
        let mut chains: Vec<Range<u32>> = Vec::new();
        for session in self.resolved.sessions() {
            let mut start = session.start;
            for end in session.start + 1..=session.end {
                if end == session.end || !follows(end) {
                    chains.push(start * width..end * width);
                    start = end;
                }
            }
        }
        if self.n_nodes > self.n_txn_nodes {
            chains.push(self.n_txn_nodes as u32..self.n_nodes as u32);
        }
        chains
    }

    /// The version that a reason's fact puts first and the one that it puts second, where it is about two versions.
    pub fn fact(reason: Reason) -> Option<(VersionId, VersionId)> {
        match reason {
            Reason::Ww { before, after } | Reason::Rw { before, after } => Some((before, after)),
            _ => None,
        }
    }
}
