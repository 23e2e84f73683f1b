//! A few transactions with everything known about them: the small world in which a refutation is searched.
//!
//! Each step of the world goes directly from one transaction to another, however long the path was that pruning followed.

use rustc_hash::{FxHashMap, FxHashSet};

use super::arena::{Arc, Arena};
use super::order::{KeyOrder, Known};
use super::prove::Tree;
use super::stated::stated;
use crate::level::{Model, RealTime};
use crate::model::{History, KeyId, TxnId};
use crate::relate::{Edge, Polygraph, earliest, latest};
use crate::resolve::{Node, VersionId};
use crate::verdict::{Fact, Moment, Point, Proof, Split, Step, StepReason};

/// Cost of a step before its reason.
const STEP: u32 = 10;
/// Cost of an assumption.
const ASSUMED: u32 = 6;
/// Cost by kind of step: of cycles of one length, one of reads from (0) and overwrites is preferred to one of missed
/// writes, one of data to one of sessions, and one of sessions to one of clocks.
const WW: u32 = 1;
const RW: u32 = 2;
const SESSION: u32 = 4;
const REAL_TIME: u32 = 5;

/// What one transaction did to one key, as others see it.
#[derive(Clone, Copy, Debug)]
struct Touch {
    node: Node,
    wrote: Option<VersionId>,
    read: Option<VersionId>,
}

/// The operations of some transactions, key by key; worlds are made of subsets of them.
pub(super) struct Universe<'a> {
    polygraph: &'a Polygraph,
    pub(super) history: &'a History,
    keys: Vec<(KeyId, KeyOrder, Vec<Touch>)>,
    /// The implications of weak transactions' reads, by node.
    commits: Vec<(Node, Node, StepReason)>,
}

/// An arena whose points are moments of transactions.
pub(super) struct World {
    /// The graph.
    pub(super) arena: Arena,
    steps: Vec<Step>,
    splits: Vec<Split>,
}

impl<'a> Universe<'a> {
    /// Looks up the operations of these transactions.
    pub(super) fn new(polygraph: &'a Polygraph, history: &'a History, nodes: &[Node]) -> Self {
        let resolved = polygraph.resolved();
        let members: FxHashSet<Node> = nodes.iter().copied().collect();
        let ops = nodes
            .iter()
            .flat_map(|&node| history.ops(resolved.txn(node)));
        // Every step is about a key that one of the two wrote.
        let written = ops.filter(|op| op.is_write());
        let mut keys: Vec<KeyId> = written.filter_map(|op| op.key()).collect();
        keys.sort_unstable();
        keys.dedup();
        let keys = keys
            .into_iter()
            .map(|key| {
                (
                    key,
                    KeyOrder::of(polygraph, key),
                    touches(polygraph, key, &members),
                )
            })
            .filter(|(_, _, touches)| touches.len() > 1)
            .collect();
        Universe {
            polygraph,
            history,
            keys,
            commits: commits(polygraph, history, &members),
        }
    }

    /// The world of some of the transactions; they must be sorted.
    pub(super) fn world(&self, nodes: &[Node]) -> World {
        let mut draft = WorldDraft {
            universe: self,
            nodes,
            best: FxHashMap::default(),
            arcs: Vec::new(),
            steps: Vec::new(),
            splits: Vec::new(),
        };
        draft.add_transactions();
        draft.add_given();
        for (key, order, touches) in &self.keys {
            draft.add_key(*key, order, touches);
        }
        draft.add_commits();
        let n_points = nodes.len() * self.polygraph.places().width() as usize;
        World {
            arena: Arena::new(n_points, draft.splits.len(), draft.arcs),
            steps: draft.steps,
            splits: draft.splits,
        }
    }
}

/// The implications of weak transactions' reads about members: what they see, and what they read from.
fn commits(
    polygraph: &Polygraph,
    history: &History,
    members: &FxHashSet<Node>,
) -> Vec<(Node, Node, StepReason)> {
    let places = polygraph.places();
    if !places.models().any(Model::is_weak) {
        return Vec::new();
    }
    let of = |edge: &Edge| {
        let (from, to) = (
            polygraph.transaction(edge.from)?,
            polygraph.transaction(edge.to)?,
        );
        let is_here = members.contains(&from) && members.contains(&to);
        if !is_here || edge.to != places.commit(to) || Polygraph::fact(edge.reason).is_some() {
            return None;
        }
        let reason = stated(polygraph, history, *edge)?;
        let is_of_reads = matches!(reason, StepReason::Vis { .. } | StepReason::Wr { .. });
        is_of_reads.then_some((from, to, reason))
    };
    polygraph.edges().iter().filter_map(of).collect()
}

/// What the members did to a key, in node order.
fn touches(polygraph: &Polygraph, key: KeyId, members: &FxHashSet<Node>) -> Vec<Touch> {
    let versions = polygraph.resolved().versions();
    let mut found: FxHashMap<Node, Touch> = FxHashMap::default();
    let fresh = |node| Touch {
        node,
        wrote: None,
        read: None,
    };
    for version in versions.of_key(key).map(VersionId) {
        let writer = versions.writer(version);
        if members.contains(&writer) {
            found.entry(writer).or_insert(fresh(writer)).wrote = Some(version);
        }
        for &reader in versions.readers(version) {
            if members.contains(&reader) {
                found.entry(reader).or_insert(fresh(reader)).read = Some(version);
            }
        }
    }
    let gaps = polygraph.resolved().gaps();
    if !gaps.is_empty() && gaps.places(key).next().is_some() {
        for &node in members.iter().filter(|&&node| gaps.contains(node, key)) {
            found.entry(node).or_insert(fresh(node)).read = Some(versions.initial(key));
        }
    }
    let mut touches: Vec<Touch> = found.into_values().collect();
    touches.sort_unstable_by_key(|touch| touch.node);
    touches
}

/// Two points, and what an arc between them depends on.
type Condition = (u32, u32, Option<(u32, usize)>);

struct WorldDraft<'u, 'a> {
    universe: &'u Universe<'a>,
    nodes: &'u [Node],
    /// The cheapest arc between two points on each condition.
    best: FxHashMap<Condition, u32>,
    arcs: Vec<Arc>,
    steps: Vec<Step>,
    splits: Vec<Split>,
}

impl WorldDraft<'_, '_> {
    fn txn(&self, node: Node) -> TxnId {
        self.universe.polygraph.resolved().txn(node)
    }

    /// The index of a point and the point, of the transaction at this place.
    fn point(&self, at: usize, moment: Moment) -> (u32, Point) {
        let txn = self.txn(self.nodes[at]);
        let at = at as u32;
        match (self.universe.polygraph.places().width(), moment) {
            (1, _) => {
                let moment = Moment::Whole;
                (at, Point { txn, moment })
            }
            (_, Moment::Commit) => (2 * at + 1, Point { txn, moment }),
            (_, _) => (2 * at, Point { txn, moment }),
        }
    }

    fn push(
        &mut self,
        (from, from_point): (u32, Point),
        (to, to_point): (u32, Point),
        reason: StepReason,
        cost: u32,
        split: Option<(u32, usize)>,
    ) {
        let step = Step {
            from: from_point,
            to: to_point,
            reason,
        };
        let arc = Arc {
            from,
            to,
            cost,
            split,
        };
        let index = *self
            .best
            .entry((from, to, split))
            .or_insert(self.arcs.len() as u32) as usize;
        if index == self.arcs.len() {
            self.arcs.push(arc);
            self.steps.push(step);
        } else if cost < self.arcs[index].cost {
            self.arcs[index] = arc;
            self.steps[index] = step;
        }
    }

    /// A step from a commit to a begin.
    fn after_commit(&mut self, from: usize, to: usize, reason: StepReason, cost: u32) {
        let (from, to) = (
            self.point(from, Moment::Commit),
            self.point(to, Moment::Begin),
        );
        self.push(from, to, reason, STEP + cost, None);
    }

    /// Where a transaction reads.
    fn snap(&self, at: usize) -> (u32, Point) {
        let places = self.universe.polygraph.places();
        self.point(at, places.point(places.snap(self.nodes[at])).1)
    }

    /// Where a transaction's versions are installed.
    fn install(&self, at: usize) -> (u32, Point) {
        let places = self.universe.polygraph.places();
        self.point(at, places.point(places.install(self.nodes[at])).1)
    }

    /// Whether what a transaction reads must be the newest version.
    fn reads_newest(&self, at: usize) -> bool {
        let places = self.universe.polygraph.places();
        places.reads_newest(self.nodes[at])
    }

    /// The implications of weak transactions' reads.
    fn add_commits(&mut self) {
        for &(from, to, reason) in &self.universe.commits {
            let place = |node: Node| self.nodes.binary_search(&node);
            if let (Ok(from), Ok(to)) = (place(from), place(to)) {
                let [from, to] = [from, to].map(|at| self.point(at, Moment::Commit));
                self.push(from, to, reason, STEP + 1, None);
            }
        }
    }

    /// Begins before commits, sessions, real time.
    fn add_transactions(&mut self) {
        let spec = self.universe.polygraph.spec();
        let history = self.universe.history;
        for at in 0..self.nodes.len() {
            if self.universe.polygraph.places().width() > 1 {
                let (begin, commit) = (
                    self.point(at, Moment::Begin),
                    self.point(at, Moment::Commit),
                );
                self.push(begin, commit, StepReason::Begin, 1, None);
            }
            let txn = self.txn(self.nodes[at]);
            for later in 0..self.nodes.len() {
                let other = self.txn(self.nodes[later]);
                if spec.session_order
                    && txn < other
                    && history.session(txn) == history.session(other)
                {
                    self.after_commit(at, later, StepReason::Session, SESSION);
                }
                if let Some(real_time) = spec.real_time.filter(|_| at != later) {
                    self.add_real_time(at, later, real_time);
                }
            }
        }
    }

    /// The orders between transactions given by the user.
    fn add_given(&mut self) {
        let resolved = self.universe.polygraph.resolved();
        for (edge, given) in self.universe.history.given_edges().iter().enumerate() {
            let place = |txn: TxnId| self.nodes.binary_search(&resolved.node(txn)?).ok();
            if let (Some(from), Some(to)) = (place(given.from), place(given.to)) {
                let edge = edge as u32;
                self.after_commit(from, to, StepReason::Stated { edge }, 0);
            }
        }
    }

    /// Which moments of one transaction were over, by the clock, before which of another.
    fn add_real_time(&mut self, at: usize, later: usize, real_time: RealTime) {
        let history = self.universe.history;
        let [over, other] = [at, later].map(|at| history.interval(self.txn(self.nodes[at])));
        // The last of one and the first of the other first: what they say implies the rest at no other cost.
        for from in [Moment::Commit, Moment::Begin] {
            for to in [Moment::Begin, Moment::Commit] {
                let (from, to) = (self.point(at, from), self.point(later, to));
                let (Some(end), Some(start)) = (
                    latest(real_time, over, from.1.moment),
                    earliest(real_time, other, to.1.moment),
                ) else {
                    continue;
                };
                if i128::from(end) + i128::from(real_time.drift) < i128::from(start) {
                    self.push(from, to, StepReason::RealTime, STEP + REAL_TIME, None);
                }
                if self.universe.polygraph.places().width() == 1 {
                    return;
                }
            }
        }
    }

    fn add_key(&mut self, key: KeyId, order: &KeyOrder, touches: &[Touch]) {
        let here: Vec<(usize, Touch)> = touches
            .iter()
            .filter_map(|&touch| Some((self.nodes.binary_search(&touch.node).ok()?, touch)))
            .collect();
        let mut split_of: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        for &(at, touch) in &here {
            for &(later, writer) in here.iter().filter(|(later, _)| *later != at) {
                if touch.wrote.is_some() && touch.wrote == writer.read {
                    let value = self
                        .universe
                        .history
                        .last_written(self.txn(touch.node), key);
                    if let Some(value) = value {
                        let (from, to) = (self.point(at, Moment::Commit), self.snap(later));
                        self.push(from, to, StepReason::Wr { key, value }, STEP, None);
                    }
                }
                if let (Some(before), Some(after)) = (touch.wrote, writer.wrote) {
                    self.note_split(key, order, before, after, &mut split_of);
                }
            }
        }
        for &(at, touch) in &here {
            for &(later, writer) in here.iter().filter(|(later, _)| *later != at) {
                let Some(after) = writer.wrote else { continue };
                if let Some(before) = touch.wrote {
                    let points = (self.point(at, Moment::Commit), self.install(later));
                    let reason = |fact| StepReason::Ww { key, fact };
                    self.add_versions(order, (before, after), points, (reason, WW), &split_of);
                }
                if let Some(before) = touch.read.filter(|_| self.reads_newest(at)) {
                    let points = (self.snap(at), self.point(later, Moment::Commit));
                    let versions = self.universe.polygraph.resolved().versions();
                    let writer = versions.writer(before);
                    let writer = (!versions.is_initial(before)).then(|| self.txn(writer));
                    let reason = |fact| StepReason::Rw { key, writer, fact };
                    self.add_versions(order, (before, after), points, (reason, RW), &split_of);
                }
            }
        }
    }

    /// A split needs a writer on either side: otherwise one of its sides orders nothing.
    fn note_split(
        &mut self,
        key: KeyId,
        order: &KeyOrder,
        before: VersionId,
        after: VersionId,
        split_of: &mut FxHashMap<(u32, u32), u32>,
    ) {
        let Known::Open(one, other) = order.known(before, after) else {
            return;
        };
        if one > other || split_of.contains_key(&(one, other)) {
            return;
        }
        let versions = self.universe.polygraph.resolved().versions();
        split_of.insert((one, other), self.splits.len() as u32);
        self.splits.push(Split {
            key,
            one: self.txn(versions.writer(before)),
            other: self.txn(versions.writer(after)),
        });
    }

    fn add_versions(
        &mut self,
        order: &KeyOrder,
        (before, after): (VersionId, VersionId),
        (from, to): ((u32, Point), (u32, Point)),
        (reason, kind): (impl Fn(Fact) -> StepReason, u32),
        split_of: &FxHashMap<(u32, u32), u32>,
    ) {
        match order.known(before, after) {
            Known::No => {}
            Known::Yes(fact, cost) => self.push(from, to, reason(fact), STEP + kind + cost, None),
            Known::Open(one, other) => {
                let side = usize::from(one > other);
                if let Some(&split) = split_of.get(&(one.min(other), one.max(other))) {
                    let reason = reason(Fact::Assumed);
                    self.push(from, to, reason, STEP + kind + ASSUMED, Some((split, side)));
                }
            }
        }
    }
}

impl World {
    /// A tree of this world's arcs, as a proof about the history.
    pub(super) fn proof(&self, tree: &Tree, history: &History) -> Proof {
        match tree {
            Tree::Cycle(arcs) => {
                let steps = arcs.iter().map(|&arc| self.steps[arc as usize]);
                Proof::Cycle(turn(history, steps.collect()))
            }
            Tree::Split { split, sides } => {
                let [one_first, other_first] =
                    [0, 1].map(|side: usize| self.proof(&sides[side], history));
                Proof::split(self.splits[*split as usize], one_first, other_first)
            }
        }
    }
}

/// Rotates a cycle so that it ends with a read that missed something, if there is one: that is the surprising step of a story.
pub(super) fn turn(history: &History, mut steps: Vec<Step>) -> Vec<Step> {
    let rank = |at: usize| {
        let last = steps[(at + steps.len() - 1) % steps.len()];
        let end = match last.reason {
            StepReason::Rw { .. } => 0,
            StepReason::Begin => 2,
            _ => 1,
        };
        (end, steps[at].from)
    };
    let compare = |&a: &usize, &b: &usize| {
        let ((end, one), (other_end, other)) = (rank(a), rank(b));
        let by_txn = history.compare_txns(one.txn, other.txn);
        let by_point = by_txn.then(one.moment.cmp(&other.moment));
        end.cmp(&other_end).then(by_point)
    };
    let first = (0..steps.len()).min_by(compare);
    steps.rotate_left(first.unwrap_or(0));
    steps
}
