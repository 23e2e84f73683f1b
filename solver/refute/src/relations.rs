//! Every direct dependency between some transactions, in linear space: the versions of a key form chains, so that *a* ≪ *b* is one
//! step, however far apart they are.
//!
//! Nodes are points (transactions, or begins and commits) and places on chains. An edge from a point is a step; the edges from a
//! place are free. So a path from point to point that enters a chain once is one step of a proof, and the place where it entered
//! says which versions it is about; a path through a gap (`absent`) says it where it leaves the gap. A path may lead from a transaction back to itself: such a step is not one, and searches skip it.

mod drafts;

use rustc_hash::{FxHashMap, FxHashSet};

use super::order::{KeyOrder, Known};
use super::rivals::told;
use crate::model::{History, KeyId, TxnId};
use crate::relate::Polygraph;
use crate::resolve::{Node, VersionId};
use crate::verdict::{Fact, Moment, Point, Step, StepReason};
use drafts::Drafts;

/// The kind of dependency of an edge; `Free` edges only lead along chains, or from a begin to its commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dependency {
    Free,
    Wr,
    Ww,
    Rw,
    So,
    Rt,
    /// By the user; the version is the number of the given order.
    Given,
}

impl Dependency {
    /// A bit for each kind, to select some.
    pub(super) fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// An edge before the edges are sorted by source.
#[derive(Clone, Copy)]
struct Draft {
    from: u32,
    to: u32,
    kind: Dependency,
    /// The version that a step is about, if it is about one: the one that was read, or the older of two.
    version: u32,
}

/// The graph.
pub(super) struct Relations<'a> {
    polygraph: &'a Polygraph,
    history: &'a History,
    members: Vec<Node>,
    n_points: u32,
    starts: Vec<u32>,
    edges: Vec<Draft>,
    rivals: Vec<(VersionId, VersionId)>,
    orders: FxHashMap<KeyId, KeyOrder>,
}

impl<'a> Relations<'a> {
    /// The dependencies among these transactions, which must be sorted.
    pub(super) fn new(polygraph: &'a Polygraph, history: &'a History, members: Vec<Node>) -> Self {
        let width = width(polygraph);
        let n_points = members.len() as u32 * width;
        let mut drafts = Drafts {
            polygraph,
            place: members
                .iter()
                .enumerate()
                .map(|(at, &node)| (node, at as u32))
                .collect(),
            members: &members,
            n_nodes: n_points,
            edges: Vec::new(),
            rivals: Vec::new(),
            absent: FxHashMap::default(),
        };
        drafts.add_transactions();
        drafts.add_given(history);
        drafts.add_real_time();
        let mut orders = FxHashMap::default();
        let keys = written_keys(polygraph, history, &members);
        drafts.add_absent(&keys);
        for key in keys {
            let order = KeyOrder::of(polygraph, key);
            drafts.add_key(key, &order);
            orders.insert(key, order);
        }
        let (n_nodes, rivals) = (drafts.n_nodes, drafts.rivals);
        let (starts, edges) = by_source(n_nodes, &drafts.edges);
        Relations {
            polygraph,
            history,
            members,
            n_points,
            starts,
            edges,
            rivals,
            orders,
        }
    }

    /// How many nodes there are, places included.
    pub(super) fn n_nodes(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many edges there are.
    pub(super) fn n_edges(&self) -> usize {
        self.edges.len()
    }

    /// Whether a node is a point, not a place on a chain.
    #[inline]
    pub(super) fn is_point(&self, node: u32) -> bool {
        node < self.n_points
    }

    /// Whether transactions are one point each.
    pub(super) fn is_whole(&self) -> bool {
        width(self.polygraph) == 1
    }

    /// Whether two points belong to one transaction.
    pub(super) fn is_same(&self, a: u32, b: u32) -> bool {
        let width = width(self.polygraph);
        a / width == b / width
    }

    /// The transaction of a point.
    pub(super) fn node(&self, point: u32) -> Node {
        self.members[(point / width(self.polygraph)) as usize]
    }

    /// The edges from a node.
    #[inline]
    pub(super) fn out(&self, node: u32) -> std::ops::Range<u32> {
        self.starts[node as usize]..self.starts[node as usize + 1]
    }

    /// Where an edge leads, and what it is.
    #[inline]
    pub(super) fn edge(&self, index: u32) -> (u32, u32, Dependency) {
        let edge = self.edges[index as usize];
        (edge.from, edge.to, edge.kind)
    }

    /// Versions that two transactions made of one and the same version.
    pub(super) fn rivals(&self) -> &[(VersionId, VersionId)] {
        &self.rivals
    }

    /// The moment of a point.
    pub(super) fn point(&self, point: u32) -> Point {
        let width = width(self.polygraph);
        let txn = self.txn(self.members[(point / width) as usize]);
        let moment = match width {
            1 => Moment::Whole,
            _ if point.is_multiple_of(2) => Moment::Begin,
            _ => Moment::Commit,
        };
        Point { txn, moment }
    }

    fn txn(&self, node: Node) -> TxnId {
        self.polygraph.resolved().txn(node)
    }

    /// Edges that lead from a point around to it, as steps; `None` if some fact cannot be read off.
    pub(super) fn steps(&self, edges: &[u32]) -> Option<Vec<Step>> {
        let mut steps = Vec::new();
        let mut at = 0;
        while at < edges.len() {
            let first = self.edges[edges[at] as usize];
            let mut end = at;
            while !self.is_point(self.edges[edges[end] as usize].to) {
                end += 1;
            }
            let to = self.edges[edges[end] as usize].to;
            // A step through a gap says at its end which key it is about.
            let about = edges[at..=end].iter().map(|&it| self.edges[it as usize]);
            let version = about.map(|edge| edge.version).find(|&it| it != NONE);
            let version = version.unwrap_or(NONE);
            steps.push(self.step(Draft { version, ..first }, to)?);
            at = end + 1;
        }
        Some(steps)
    }

    fn step(&self, first: Draft, to: u32) -> Option<Step> {
        let (from, to) = (self.point(first.from), self.point(to));
        let versions = self.polygraph.resolved().versions();
        let before = VersionId(first.version);
        let fact = |key: KeyId| {
            let writer = self.polygraph.resolved().node(to.txn)?;
            let after = versions.of_writer(key, writer)?;
            match self.orders.get(&key)?.known(before, after) {
                Known::Yes(fact, _) => Some(fact),
                Known::Open(..) | Known::No => None,
            }
        };
        let reason = match first.kind {
            _ if from.txn == to.txn => StepReason::Begin,
            Dependency::Free => StepReason::Begin,
            Dependency::So => StepReason::Session,
            Dependency::Rt => StepReason::RealTime,
            Dependency::Given => StepReason::Stated {
                edge: first.version,
            },
            Dependency::Wr => {
                let key = versions.key(before);
                let value = self.history.last_written(from.txn, key)?;
                StepReason::Wr { key, value }
            }
            Dependency::Ww => {
                let key = versions.key(before);
                let fact = fact(key)?;
                StepReason::Ww { key, fact }
            }
            Dependency::Rw => {
                let key = versions.key(before);
                let writer = versions.writer(before);
                let writer = (!versions.is_initial(before)).then(|| self.txn(writer));
                let fact = fact(key)?;
                StepReason::Rw { key, writer, fact }
            }
        };
        Some(Step { from, to, reason })
    }

    /// The lost update that is printed first, if there is one.
    pub(super) fn first_lost_update(&self) -> Option<Vec<Step>> {
        let versions = self.polygraph.resolved().versions();
        let txn = |version| self.txn(versions.writer(version));
        let compare = |one: &(VersionId, VersionId), other: &(VersionId, VersionId)| {
            let by_first = self.history.compare_txns(txn(one.0), txn(other.0));
            by_first.then_with(|| self.history.compare_txns(txn(one.1), txn(other.1)))
        };
        let rivals = self.rivals.iter();
        let rivals = rivals.map(|&pair| told(self.polygraph, self.history, pair));
        let first = rivals.min_by(compare)?;
        self.lost_update(first)
    }

    /// Two transactions that overwrote one version: the one wrote first, but the other had read what the one overwrote.
    pub(super) fn lost_update(&self, pair: (VersionId, VersionId)) -> Option<Vec<Step>> {
        let (one, other) = told(self.polygraph, self.history, pair);
        let versions = self.polygraph.resolved().versions();
        let key = versions.key(one);
        let before = versions.predecessor(other)?;
        let writer = (!versions.is_initial(before)).then(|| self.txn(versions.writer(before)));
        let point = |version: VersionId, half: Moment| Point {
            txn: self.txn(versions.writer(version)),
            moment: if self.is_whole() { Moment::Whole } else { half },
        };
        let fact = Fact::Run;
        Some(vec![
            Step {
                from: point(one, Moment::Commit),
                to: point(other, Moment::Begin),
                reason: StepReason::Ww { key, fact },
            },
            Step {
                from: point(other, Moment::Begin),
                to: point(one, Moment::Commit),
                reason: StepReason::Rw { key, writer, fact },
            },
        ])
    }
}

/// How many points a transaction has.
fn width(polygraph: &Polygraph) -> u32 {
    polygraph.places().width()
}

/// The keys that some of the transactions wrote, sorted: every step about a key ends at a writer of it.
fn written_keys(polygraph: &Polygraph, history: &History, members: &[Node]) -> Vec<KeyId> {
    let mut keys = FxHashSet::default();
    for &node in members {
        let ops = history.ops(polygraph.resolved().txn(node)).iter();
        keys.extend(ops.filter(|op| op.is_write()).filter_map(|op| op.key()));
    }
    let mut keys: Vec<KeyId> = keys.into_iter().collect();
    keys.sort_unstable();
    keys
}

fn by_source(n_nodes: u32, edges: &[Draft]) -> (Vec<u32>, Vec<Draft>) {
    let mut starts = vec![0_u32; n_nodes as usize + 1];
    for edge in edges {
        starts[edge.from as usize + 1] += 1;
    }
    for node in 0..n_nodes as usize {
        starts[node + 1] += starts[node];
    }
    let mut next = starts.clone();
    let mut sorted = edges.to_vec();
    for &edge in edges {
        let at = &mut next[edge.from as usize];
        sorted[*at as usize] = edge;
        *at += 1;
    }
    (starts, sorted)
}

/// No version.
const NONE: u32 = u32::MAX;
