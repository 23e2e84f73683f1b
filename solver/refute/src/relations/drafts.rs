//! The edges of the relations, key by key, before they are sorted by source.

use rustc_hash::FxHashMap;

use super::super::absent::AbsentPlaces;
use super::super::order::{KeyOrder, ListedOrder};
use super::{Dependency, Draft, NONE, width};
use crate::model::{History, KeyId};
use crate::relate::{Polygraph, reasons};
use crate::resolve::{Node, VersionId};

pub(super) struct Drafts<'d> {
    pub(super) polygraph: &'d Polygraph,
    pub(super) members: &'d [Node],
    pub(super) place: FxHashMap<Node, u32>,
    pub(super) n_nodes: u32,
    pub(super) edges: Vec<Draft>,
    pub(super) rivals: Vec<(VersionId, VersionId)>,
    /// For each key, the places of those who found it absent in gaps.
    pub(super) absent: FxHashMap<KeyId, Vec<u32>>,
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
    pub(super) fn add_transactions(&mut self) {
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

    /// The orders between transactions given by the user.
    pub(super) fn add_given(&mut self, history: &History) {
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
    pub(super) fn add_real_time(&mut self) {
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
    pub(super) fn add_absent(&mut self, keys: &[KeyId]) {
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

    /// A path at one place may continue at another.
    fn link(&mut self, (places, from): (Places, u32), (others, to): (Places, u32)) {
        for lane in 0..places.n_lanes {
            self.free(places.at(from, lane), others.at(to, lane));
        }
    }

    /// A path at a place may continue at the writer of a version.
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

    /// What comes after a version is at a place: its writer and its readers lead there, except the one whose own write is
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
    pub(super) fn add_key(&mut self, key: KeyId, order: &KeyOrder) {
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
            // Versions that were made of each other in a circle have no first one; wr edges state that they read each other.
            if !order.is_rooted(version) {
                continue;
            }
            if has_others && order.family(version) == 0 {
                // If an order is given, a read-modify-write's statement about other versions comes from its read: a ww step
                // against that order would hide that some read is part of the contradiction.
                if order.lists().is_empty() {
                    self.enter(version, others, 0, None);
                } else {
                    self.enter_read(version, others, 0, None);
                }
            }
            match order.parent(version) {
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
