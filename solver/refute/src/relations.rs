//! Every direct dependency between some transactions, in linear space: the versions of a key form chains, so that *a* ≪ *b* is one
//! step, however far apart they are.
//!
//! Nodes are points (transactions, or begins and commits) and places on chains. An edge from a point is a step; the edges from a
//! place are free. So a path from point to point that enters a chain once is one step of a proof, and the place where it entered
//! says which versions it is about; a path through a gap (`absent`) says it where it leaves the gap. A path may lead from a transaction back to itself: such a step is not one, and searches skip it.

use rustc_hash::{FxHashMap, FxHashSet};

use super::absent::AbsentPlaces;
use super::order::{KeyOrder, Known, ListedOrder};
use crate::model::{History, KeyId, Op, TxnId, ValueId};
use crate::relate::{Polygraph, reasons};
use crate::resolve::{Node, VersionId};
use crate::verdict::{Fact, Moment, Point, Step, StepReason};

/// What kind of dependency an edge is; `Free` edges only lead along chains, or from a begin to its commit.
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

    /// What a point is.
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
                let value = last_written(self.history, from.txn, key)?;
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

    /// Two transactions that overwrote one version: the one wrote first, but the other had read what the one overwrote.
    pub(super) fn lost_update(&self, (one, other): (VersionId, VersionId)) -> Option<Vec<Step>> {
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

/// The value that a transaction left in a key.
pub(super) fn last_written(history: &History, txn: TxnId, key: KeyId) -> Option<ValueId> {
    let ops = history.ops(txn).iter().rev();
    ops.filter(|op| op.key() == Some(key))
        .find_map(|&op| match op {
            Op::Write { value, .. } | Op::Append { value, .. } => Some(value),
            Op::Read { .. } | Op::ReadList { .. } | Op::Range { .. } => None,
        })
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

struct Drafts<'d> {
    polygraph: &'d Polygraph,
    members: &'d [Node],
    place: FxHashMap<Node, u32>,
    n_nodes: u32,
    edges: Vec<Draft>,
    rivals: Vec<(VersionId, VersionId)>,
    /// For each key, the places of those who found it absent in gaps.
    absent: FxHashMap<KeyId, Vec<u32>>,
}

impl Drafts<'_> {
    fn push(&mut self, from: u32, to: u32, kind: Dependency, version: u32) {
        self.edges.push(Draft {
            from,
            to,
            kind,
            version,
        });
    }

    fn free(&mut self, from: u32, to: u32) {
        self.push(from, to, Dependency::Free, NONE);
    }

    fn new_place(&mut self) -> u32 {
        self.n_nodes += 1;
        self.n_nodes - 1
    }

    fn begin_at(&self, at: u32) -> u32 {
        at * width(self.polygraph)
    }

    fn commit_at(&self, at: u32) -> u32 {
        (at + 1) * width(self.polygraph) - 1
    }

    fn begin(&self, node: Node) -> Option<u32> {
        Some(self.begin_at(*self.place.get(&node)?))
    }

    fn commit(&self, node: Node) -> Option<u32> {
        Some(self.commit_at(*self.place.get(&node)?))
    }

    /// Begins before commits, and sessions as chains.
    fn add_transactions(&mut self) {
        for at in 0..self.members.len() as u32 {
            let (begin, commit) = (self.begin_at(at), self.commit_at(at));
            if begin != commit {
                self.free(begin, commit);
            }
        }
        if !self.polygraph.spec().session_order {
            return;
        }
        for session in self.polygraph.resolved().sessions() {
            let from = self.members.partition_point(|&it| it < session.start);
            let to = self.members.partition_point(|&it| it < session.end);
            let mut last: Option<u32> = None;
            for at in from as u32..to as u32 {
                if at as usize > from {
                    let place = self.new_place();
                    self.push(self.commit_at(at - 1), place, Dependency::So, NONE);
                    self.free(place, self.begin_at(at));
                    if let Some(last) = last {
                        self.free(last, place);
                    }
                    last = Some(place);
                }
            }
        }
    }

    /// The orders between transactions that the user gave.
    fn add_given(&mut self, history: &History) {
        let resolved = self.polygraph.resolved();
        for (at, edge) in history.given_edges().iter().enumerate() {
            let [from, to] = [edge.from, edge.to].map(|txn| resolved.node(txn));
            let from = from.and_then(|node| self.commit(node));
            let to = to.and_then(|node| self.begin(node));
            if let (Some(from), Some(to)) = (from, to) {
                self.push(from, to, Dependency::Given, at as u32);
            }
        }
    }

    /// The time chain, as the polygraph has it.
    fn add_real_time(&mut self) {
        if self.polygraph.spec().real_time.is_none() {
            return;
        }
        let first_time = self.polygraph.first_time();
        let first = self.n_nodes;
        self.n_nodes += self.polygraph.n_nodes() as u32 - first_time;
        let width = width(self.polygraph);
        let edges = self.polygraph.edges().iter();
        for edge in edges.filter(|edge| edge.reason == reasons::REAL_TIME) {
            let here = |node: u32| match node.checked_sub(first_time) {
                Some(time) => Some(first + time),
                None => Some(self.place.get(&(node / width))? * width + node % width),
            };
            let (Some(from), Some(to)) = (here(edge.from), here(edge.to)) else {
                continue;
            };
            let kind = if edge.from < first_time {
                Dependency::Rt
            } else {
                Dependency::Free
            };
            self.push(from, to, kind, NONE);
        }
    }

    /// The gaps of range queries.
    fn add_absent(&mut self, keys: &[KeyId]) {
        let gaps = self.polygraph.resolved().gaps();
        let places = AbsentPlaces::new(gaps, self.members, keys);
        let first = self.n_nodes;
        self.n_nodes += places.n_places;
        for (reader, place) in places.entries {
            if let Some(from) = self.begin(reader) {
                self.push(from, first + place, Dependency::Rw, NONE);
            }
        }
        for (from, to) in places.edges {
            self.free(first + from, first + to);
        }
        for (key, places) in places.of_key {
            let places = places.iter().map(|place| first + place).collect();
            self.absent.insert(key, places);
        }
    }

    /// Room for places on the chains of a key. Each has two lanes where transactions have two points: ww edges end at begins, rw
    /// edges at commits.
    fn new_places(&mut self, n_places: u32) -> Places {
        let places = Places {
            first: self.n_nodes,
            n_lanes: width(self.polygraph),
        };
        self.n_nodes += n_places * places.n_lanes;
        places
    }

    /// Whoever is at one place may go on to another.
    fn link(&mut self, (places, from): (Places, u32), (others, to): (Places, u32)) {
        for lane in 0..places.n_lanes {
            self.free(places.at(from, lane), others.at(to, lane));
        }
    }

    /// Whoever is at a place may go on to the writer of a version.
    fn exit(&mut self, places: Places, place: u32, version: VersionId) {
        let writer = self.polygraph.resolved().versions().writer(version);
        let (Some(begin), Some(commit)) = (self.begin(writer), self.commit(writer)) else {
            return;
        };
        self.free(places.at(place, 0), begin);
        if places.n_lanes == 2 {
            self.free(places.at(place, 1), commit);
        }
    }

    /// What comes after a version is at a place: its writer and its readers may go there, except the one whose own write is
    /// the only one there.
    fn enter(&mut self, version: VersionId, places: Places, place: u32, own: Option<VersionId>) {
        let versions = self.polygraph.resolved().versions();
        if !versions.is_initial(version)
            && let Some(from) = self.commit(versions.writer(version))
        {
            self.push(from, places.at(place, 0), Dependency::Ww, version.0);
        }
        self.enter_read(version, places, place, own);
    }

    /// The same for its readers alone.
    fn enter_read(
        &mut self,
        version: VersionId,
        places: Places,
        place: u32,
        own: Option<VersionId>,
    ) {
        let versions = self.polygraph.resolved().versions();
        let next = own.map(|own| versions.writer(own));
        let to = places.at(place, places.n_lanes - 1);
        for &reader in versions.readers(version) {
            if Some(reader) != next
                && let Some(from) = self.begin(reader)
            {
                self.push(from, to, Dependency::Rw, version.0);
            }
        }
        if versions.is_initial(version)
            && let Some(absent) = self.absent.get(&versions.key(version))
        {
            let kind = Dependency::Free;
            let version = version.0;
            self.edges.extend(absent.iter().map(|&from| Draft {
                from,
                to,
                kind,
                version,
            }));
        }
    }

    fn add_reads(&mut self, version: VersionId) {
        let versions = self.polygraph.resolved().versions();
        if versions.is_initial(version) {
            return;
        }
        let Some(from) = self.commit(versions.writer(version)) else {
            return;
        };
        for &reader in versions.readers(version) {
            if let Some(to) = self.begin(reader) {
                self.push(from, to, Dependency::Wr, version.0);
            }
        }
    }

    /// What is known of one key without any assumption: what was made of each version, the initial family before all others,
    /// and the orders that were given. A version's place leads to its writer and to what was made of it.
    fn add_key(&mut self, key: KeyId, order: &KeyOrder) {
        let versions = self.polygraph.resolved().versions();
        let range = versions.of_key(key);
        let start = range.start;
        let tree = self.new_places(range.len() as u32);
        let others = self.new_places(1);
        let has_others = order.has_several_families();
        let mut made: Vec<(VersionId, VersionId)> = Vec::new();
        for version in range.map(VersionId) {
            self.add_reads(version);
            if !versions.is_initial(version) {
                self.exit(tree, version.0 - start, version);
            }
            // Versions that were made of each other in a circle have no first one; that they read each other is told by wr edges.
            if !order.is_rooted(version) {
                continue;
            }
            if has_others && order.family(version) == 0 {
                // Where an order is given, what a read-modify-write says of other versions is told by what it read: a ww step
                // against that order would hide that some read is part of the contradiction.
                if order.lists().is_empty() {
                    self.enter(version, others, 0, None);
                } else {
                    self.enter_read(version, others, 0, None);
                }
            }
            match versions.predecessor(version) {
                Some(before) => {
                    let (older, newer) = (before.0 - start, version.0 - start);
                    self.link((tree, older), (tree, newer));
                    self.enter(before, tree, newer, Some(version));
                    made.push((before, version));
                }
                None if order.family(version) != 0 => {
                    self.link((others, 0), (tree, version.0 - start));
                }
                None => {}
            }
        }
        made.retain(|(_, version)| self.place.contains_key(&versions.writer(*version)));
        made.sort_unstable();
        for pair in made.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
            self.rivals.push((pair[0].1, pair[1].1));
        }
        for list in order.lists() {
            self.add_list(list, order, (tree, start));
        }
    }

    /// A given order: each version before those that come later in it; and each family before the later ones, unless it shows
    /// another within one, which the versions tell.
    fn add_list(&mut self, list: &ListedOrder, order: &KeyOrder, (tree, start): (Places, u32)) {
        let listed = list.listed();
        let chain = self.new_places(listed.len() as u32 + 1);
        for (at, &version) in listed.iter().enumerate() {
            let at = at as u32;
            let version = VersionId(start + version);
            self.exit(chain, at, version);
            self.link((chain, at), (chain, at + 1));
            let next = listed.get(at as usize + 1);
            let next = next.map(|&next| VersionId(start + next));
            self.enter(version, chain, at + 1, next);
        }
        let end = listed.len() as u32;
        for version in list.unlisted(order) {
            self.exit(chain, end, VersionId(start + version));
        }
        let Some(families) = list.families(order) else {
            return;
        };
        let chain = self.new_places(families.len() as u32 + 1);
        let end = families.len() as u32;
        for (at, members) in families.iter().enumerate() {
            let at = at as u32;
            self.link((chain, at), (chain, at + 1));
            if let Some(&root) = members.first().filter(|&&root| root != 0) {
                self.link((chain, at), (tree, root));
            }
            for &member in members {
                self.enter(VersionId(start + member), chain, at + 1, None);
            }
        }
        for root in list.unlisted_families(order) {
            self.link((chain, end), (tree, root));
        }
    }
}

/// Places on the chains of one key.
#[derive(Clone, Copy)]
struct Places {
    first: u32,
    n_lanes: u32,
}

impl Places {
    fn at(self, place: u32, lane: u32) -> u32 {
        self.first + place * self.n_lanes + lane
    }
}
