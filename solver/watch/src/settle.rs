//! Discards what later transactions cannot distinguish from what it leaves behind.
//!
//! *Past* is what known edges put before everything that can still arrive. A version is *dead* if a later one of its key is past.
//! A component of the graph of known edges and both sides of everything open is *settled* if all of it is past, no version of an
//! open pair in it can still be read, and no end in it is open. Settled components are dropped without any edge in their place:
//! a cycle through one has a shortcut over the barrier. The last version of a key there becomes its stub.

use kingsnake_context::budget::Budget;
use kingsnake_graph::FlatGraph;
use rustc_hash::FxHashSet;

use crate::WatchError;
use crate::arrival::{Horizon, KeyNumber, ValueName};
use crate::frame::BatchFrame;
use crate::index::{Source, VersionIndex, WatchedVersion};
use crate::rules::WatchRules;
use crate::suppose::Supposed;
use crate::watcher::{Solved, WatchedPoint, Watcher};
use crate::window::{NEVER, Point};

/// A compaction.
pub(crate) struct Settling<'a, R> {
    pub(crate) watcher: &'a mut Watcher<R>,
    pub(crate) index: &'a VersionIndex,
    pub(crate) frame: &'a BatchFrame,
    pub(crate) solved: &'a Solved,
    pub(crate) horizon: &'a Horizon,
    /// By node, whether it precedes everything that can arrive.
    pub(crate) past: Vec<bool>,
}

impl<'a, R: WatchRules> Settling<'a, R> {
    pub(crate) fn new(
        watcher: &'a mut Watcher<R>,
        index: &'a VersionIndex,
        frame: &'a BatchFrame,
        solved: &'a Solved,
        horizon: &'a Horizon,
    ) -> Self {
        Settling {
            watcher,
            index,
            frame,
            solved,
            horizon,
            past: Vec::new(),
        }
    }

    /// Whether the level may still hold.
    pub(crate) fn run(mut self, budget: &Budget) -> Result<bool, WatchError> {
        self.find_past();
        if !self.explains_past_reads() {
            return Ok(false);
        }
        self.note_past();
        self.find_dead();
        let supposed = self.suppose(budget)?;
        let dropped = self.settled(&supposed);
        if self.watcher.rules.fixes_choices() {
            self.fix_choices();
        }
        self.append_order(&dropped);
        self.store_orders(&dropped, &supposed);
        self.drop_transactions(&dropped, &supposed);
        Ok(true)
    }

    /// The kept transactions that count, by their places.
    fn members(&self) -> impl Iterator<Item = u32> + use<'a, R> {
        self.frame.members.iter().copied()
    }

    fn find_past(&mut self) {
        let n_moments = self.frame.n_moments();
        let mut past = vec![false; self.solved.pruned.dag.n_nodes()];
        if self.horizon.is_closed() {
            past[..n_moments].fill(true);
            self.past = past;
            return;
        }
        let WatchParts { drift, has_time } = self.parts();
        let rules = &self.watcher.rules;
        for at in self.members() {
            let kept = &self.watcher.window.kept[at as usize];
            for (node, is_commit) in self.frame.moments(at) {
                past[node as usize] |= kept.past[usize::from(is_commit)] != NEVER;
            }
            let is_over = match kept.arrival.commit {
                Some(commit) => rules.is_over(commit, drift, self.horizon.watermark),
                None => rules.is_endless_past(),
            };
            past[self.frame.commit(at) as usize] |= has_time && is_over;
        }
        if !has_time {
            self.reach_tails(&mut past);
        }
        let dag = &self.solved.pruned.dag;
        for &node in dag.order().iter().rev() {
            let reaches = dag.successors(node).iter().any(|&it| past[it as usize]);
            past[node as usize] |= reaches;
        }
        self.past = past;
    }

    fn parts(&self) -> WatchParts {
        WatchParts {
            drift: self.watcher.options.drift,
            has_time: self.watcher.options.level.has_real_time(),
        }
    }

    /// Marks what reaches the last transaction of every session that can still deliver.
    fn reach_tails(&self, past: &mut [bool]) {
        let window = &self.watcher.window;
        let live = self.horizon.live.iter();
        let mut tails: Vec<Option<u64>> = live.map(|it| window.tails.get(it).copied()).collect();
        let rules = &self.watcher.rules;
        if rules.awaits_new_sessions() {
            match self.horizon.fence {
                Some(key) => tails.push(window.last_fence(key).map(|it| it.0)),
                None if self.horizon.is_open => tails.push(None),
                None => {}
            }
        }
        let tails = rules.tails(tails);
        if tails.is_empty() {
            return;
        }
        let places = window.places();
        let mut nodes = Vec::with_capacity(tails.len());
        for tail in tails {
            // A tail that was dropped stands before nothing but the barrier, and an open one before nothing at all.
            let Some(&at) = tail.and_then(|it| places.get(&it)) else {
                return;
            };
            if !self.frame.holds(at) {
                return;
            }
            nodes.push(self.frame.commit(at));
        }
        let dag = &self.solved.pruned.dag;
        let mut all = vec![true; dag.n_nodes()];
        for tails in nodes.chunks(64) {
            let mut reached = vec![0_u64; dag.n_nodes()];
            for (bit, &node) in tails.iter().enumerate() {
                reached[node as usize] |= 1 << bit;
            }
            let every = u64::MAX >> (64 - tails.len());
            for &node in dag.order().iter().rev() {
                let successors = dag.successors(node).iter();
                let bits = successors.fold(reached[node as usize], |bits, &it| {
                    bits | reached[it as usize]
                });
                reached[node as usize] = bits;
                all[node as usize] &= bits == every;
            }
        }
        for node in 0..self.frame.n_moments() {
            past[node] |= all[node];
        }
    }

    /// Whether every past transaction's reads have writers: nothing that arrives can give it one.
    fn explains_past_reads(&mut self) -> bool {
        let is_past = |settling: &Self, at: u32| {
            settling.frame.holds(at) && settling.past[settling.frame.begin(at) as usize]
        };
        let versions = self.index.versions.iter();
        let missing = versions.filter(|it| it.source == Source::Missing);
        let missing = missing.flat_map(|it| self.index.readers(it).iter().map(|&at| (at, it.key)));
        let cut = self.index.lists.reads.iter().filter(|it| !it.is_whole);
        let pending: Vec<(u32, KeyNumber)> =
            missing.chain(cut.map(|it| (it.reader, it.key))).collect();
        for (reader, key) in pending {
            if is_past(self, reader) {
                let arrival = &mut self.watcher.window.kept[reader as usize].arrival;
                if self.watcher.rules.refuses_pending() && self.watcher.window.initial.is_some() {
                    self.watcher.refused.push((arrival.id, key));
                } else {
                    arrival.forget_read(key);
                }
            }
        }
        self.watcher.refused.is_empty()
    }

    fn note_past(&mut self) {
        let batch = self.watcher.window.n_batches;
        for at in self.members() {
            for (node, is_commit) in self.frame.moments(at) {
                let since = &mut self.watcher.window.kept[at as usize].past;
                let ends = if self.frame.begin(at) == self.frame.commit(at) {
                    0..2
                } else {
                    usize::from(is_commit)..usize::from(is_commit) + 1
                };
                if self.past[node as usize] {
                    for end in ends {
                        since[end] = since[end].min(batch);
                    }
                }
            }
        }
    }

    /// The counted writers of a key, in a topological order of their begins, with their writes.
    pub(crate) fn writers(&self, versions: &[WatchedVersion], place: &[u32]) -> Vec<KeyWriter> {
        let mut writers: Vec<KeyWriter> = Vec::new();
        for (version, it) in versions.iter().enumerate() {
            if let Source::Kept(at, write) = it.source
                && self.frame.holds(at)
            {
                writers.push(KeyWriter { at, write, version });
            }
        }
        writers.sort_by_key(|it| place[self.frame.begin(it.at) as usize]);
        writers
    }

    /// Whether known edges put the version of one writer before that of another.
    pub(crate) fn precedes(&self, a: u32, b: u32) -> bool {
        let (from, to) = (self.frame.commit(a), self.frame.begin(b));
        self.solved.reach.reaches(from, to)
    }

    fn find_dead(&mut self) {
        let place = self.solved.pruned.dag.places();
        for versions in self.index.keys() {
            let writers = self.writers(versions, &place);
            for (at, later) in writers.iter().enumerate() {
                let by_begin = self.watcher.rules.is_dead_by_begin();
                let is_past = self.past[self.frame.commit(later.at) as usize]
                    || by_begin && self.past[self.frame.begin(later.at) as usize];
                if !is_past {
                    continue;
                }
                for earlier in &writers[..at] {
                    if self.precedes(earlier.at, later.at) {
                        let kept = &mut self.watcher.window.kept[earlier.at as usize];
                        kept.dead[earlier.write as usize] = true;
                    }
                }
            }
        }
    }

    fn is_dead(&self, at: u32, write: u32) -> bool {
        self.watcher.window.kept[at as usize].dead[write as usize]
    }

    /// By place, whether a transaction is settled.
    fn settled(&self, supposed: &Supposed) -> Vec<bool> {
        let kept = &self.watcher.window.kept;
        let dag = &self.solved.pruned.dag;
        let n_nodes = dag.n_nodes() as u32;
        let width = if self.watcher.options.level.has_snapshots() {
            2
        } else {
            1
        };
        let mut extra = vec![0_u32; kept.len()];
        let mut next = n_nodes;
        for at in (0..kept.len()).filter(|&at| kept[at].is_open) {
            extra[at] = next;
            next += width;
        }
        let ends = |at: u32| -> (u32, u32) {
            if self.frame.holds(at) {
                (self.frame.begin(at), self.frame.commit(at))
            } else {
                (extra[at as usize], extra[at as usize] + width - 1)
            }
        };
        let mut edges: Vec<(u32, u32)> = Vec::with_capacity(dag.n_edges());
        for node in 0..n_nodes {
            edges.extend(dag.successors(node).iter().map(|&to| (node, to)));
        }
        supposed.edges(self, &ends, &mut edges);
        let mut alive_pairs: Vec<u32> = Vec::new();
        let place = dag.places();
        for versions in self.index.keys() {
            self.tie(
                versions,
                &place,
                supposed,
                &ends,
                &mut edges,
                &mut alive_pairs,
            );
        }
        let components = FlatGraph::new(next as usize, edges.iter().copied()).components();
        let mut stays = vec![false; next as usize];
        let component = |node: u32| components[node as usize] as usize;
        for (at, it) in kept.iter().enumerate() {
            let (begin, commit) = ends(at as u32);
            for node in [begin, commit] {
                let is_past = !it.is_open && self.past[node as usize];
                stays[component(node)] |= !is_past;
            }
        }
        if self.watcher.rules.keeps_alive_pairs() {
            for &node in &alive_pairs {
                stays[component(node)] = true;
            }
        }
        let components_of = |at: u32| {
            let (begin, commit) = ends(at);
            [component(begin), component(commit)]
        };
        let lists = self.list_orders(&place);
        let mut is_spread = false;
        while !is_spread {
            is_spread = true;
            // Lists are dropped from their first writers on.
            for order in &lists {
                let is_kept = |&at: &u32| components_of(at).iter().any(|&it| stays[it]);
                let first = order.iter().position(is_kept).unwrap_or(order.len());
                for place in order[first..].iter().flat_map(|&at| components_of(at)) {
                    is_spread &= std::mem::replace(&mut stays[place], true);
                }
            }
            if !self.watcher.options.keeps_order {
                continue;
            }
            // A transaction stays as a whole, and with it what either of its ends may precede.
            is_spread &= !spread(&mut stays, &components, &edges);
            for [begin, commit] in (0..kept.len() as u32).map(components_of) {
                if stays[begin] != stays[commit] {
                    (stays[begin], stays[commit]) = (true, true);
                    is_spread = false;
                }
            }
        }
        let rules = &self.watcher.rules;
        let is_dropped = |at: usize| {
            let it = &kept[at];
            let (begin, commit) = ends(at as u32);
            let is_past = !it.is_open && [begin, commit].iter().all(|&n| self.past[n as usize]);
            if rules.drops_all_past() {
                return is_past;
            }
            is_past && !stays[component(begin)] && !stays[component(commit)]
        };
        (0..kept.len()).map(is_dropped).collect()
    }

    /// By list, the counted writers in their order.
    fn list_orders(&self, place: &[u32]) -> Vec<Vec<u32>> {
        let keys = self.index.keys().filter(|it| {
            self.watcher.rules.drops_lists_in_order() && self.index.lists.is_list(it[0].key)
        });
        let order = |versions| {
            let writers = self.writers(versions, place);
            writers.iter().map(|it| it.at).collect()
        };
        keys.map(order).collect()
    }

    /// Adds both sides of every open pair of a key to the graph.
    fn tie(
        &self,
        versions: &[WatchedVersion],
        place: &[u32],
        supposed: &Supposed,
        ends: &dyn Fn(u32) -> (u32, u32),
        edges: &mut Vec<(u32, u32)>,
        alive_pairs: &mut Vec<u32>,
    ) {
        let has_snapshots = self.watcher.options.level.has_snapshots();
        let is_list =
            self.index.lists.is_list(versions[0].key) && self.watcher.rules.keeps_list_pairs();
        let mut writers = self.writers(versions, place);
        let n_counted = writers.len();
        for (version, it) in versions.iter().enumerate() {
            if let Source::Kept(at, write) = it.source
                && supposed.holds(at)
            {
                writers.push(KeyWriter { at, write, version });
            }
        }
        for (at, b) in writers.iter().enumerate() {
            for a in &writers[..at] {
                if at < n_counted && self.precedes(a.at, b.at) {
                    continue;
                }
                let is_dead = [a, b].map(|it| self.is_dead(it.at, it.write));
                let readers = [a, b].map(|it| self.index.readers(&versions[it.version]));
                let is_unread = readers.iter().all(|it| it.is_empty());
                let is_one_dead = is_dead[0] || is_dead[1];
                if is_unread
                    && !is_list
                    && self.watcher.rules.skips_unread(has_snapshots, is_one_dead)
                {
                    continue;
                }
                for (first, second, readers) in [(a, b, readers[0]), (b, a, readers[1])] {
                    let (install, commit) = ends(second.at);
                    edges.push((ends(first.at).1, install));
                    let others = readers
                        .iter()
                        .filter(|&&it| it != second.at && it != first.at);
                    edges.extend(others.map(|&it| (ends(it).0, commit)));
                }
                if is_list || !(is_dead[0] && is_dead[1]) {
                    alive_pairs.push(ends(a.at).1);
                }
            }
        }
    }

    /// Appends what is dropped to the order; everything that counts, where nothing can arrive any more.
    fn append_order(&mut self, dropped: &[bool]) {
        let n_moments = self.frame.n_moments() as u32;
        let has_snapshots = self.watcher.options.level.has_snapshots();
        for &node in self.solved.order.iter().filter(|&&it| it < n_moments) {
            let (width, is_begin) = if has_snapshots {
                (2, node % 2 == 0)
            } else {
                (1, false)
            };
            let at = self.frame.members[(node / width) as usize] as usize;
            if dropped[at] || self.horizon.is_closed() {
                let id = self.watcher.window.kept[at].arrival.id;
                self.watcher.order.push(WatchedPoint { id, is_begin });
            }
        }
        // The order of a log that is closed is complete.
        self.watcher.options.keeps_order &= !self.horizon.is_closed();
    }

    fn fix_choices(&mut self) {
        let n_moments = self.frame.n_moments() as u32;
        let is_past = |node: u32| node < n_moments && self.past[node as usize];
        let chosen = self.solved.chosen.iter();
        let chosen: Vec<(u32, u32)> = chosen
            .copied()
            .filter(|&(from, to)| is_past(from) && is_past(to))
            .collect();
        for (from, to) in chosen {
            let order = (self.point(from), self.point(to));
            self.watcher.window.orders.insert(order);
        }
    }

    /// The point of a node.
    fn point(&self, node: u32) -> Point {
        let width = if self.watcher.options.level.has_snapshots() {
            2
        } else {
            1
        };
        let at = self.frame.members[(node / width) as usize];
        let number = self.watcher.window.kept[at as usize].number;
        (number, node % width == width - 1)
    }

    /// Stores the orders that would be lost with what showed them: of versions of one key, and of reads of what is dropped.
    fn store_orders(&mut self, dropped: &[bool], supposed: &Supposed) {
        let place = self.solved.pruned.dag.places();
        let mut orders: Vec<(u32, u32)> = Vec::new();
        for versions in self.index.keys() {
            let writers = self.writers(versions, &place);
            let is_kept = |it: &&KeyWriter| !dropped[it.at as usize];
            let stays: Vec<&KeyWriter> = writers.iter().filter(is_kept).collect();
            for (at, later) in stays.iter().enumerate() {
                let mut nearest: Vec<u32> = Vec::new();
                for earlier in stays[..at]
                    .iter()
                    .rev()
                    .filter(|it| self.precedes(it.at, later.at))
                {
                    if !nearest.iter().any(|&it| self.precedes(earlier.at, it)) {
                        nearest.push(earlier.at);
                        let begin = self.frame.begin(later.at);
                        orders.push((self.frame.commit(earlier.at), begin));
                    }
                }
            }
            let makes_stub =
                |it: &KeyWriter| dropped[it.at as usize] && !self.is_dead(it.at, it.write);
            let has_new_stub = writers.iter().any(makes_stub);
            for version in versions {
                let is_erased = match version.source {
                    Source::Kept(at, _) => dropped[at as usize],
                    Source::Stub => has_new_stub,
                    Source::Missing => false,
                };
                if !is_erased {
                    continue;
                }
                let readers = self.index.readers(version).iter();
                for &reader in readers.filter(|&&it| !dropped[it as usize] && self.frame.holds(it))
                {
                    let from = self.frame.begin(reader);
                    let later = stays.iter().filter(|it| it.at != reader);
                    let later = later.map(|it| self.frame.commit(it.at));
                    orders.extend(
                        later
                            .filter(|&to| self.solved.reach.reaches(from, to))
                            .map(|to| (from, to)),
                    );
                }
            }
        }
        for (from, to) in orders {
            let order = (self.point(from), self.point(to));
            self.watcher.window.orders.insert(order);
        }
        supposed.store(self);
    }

    fn drop_transactions(&mut self, dropped: &[bool], supposed: &Supposed) {
        let is_dropped = |at: u32| dropped[at as usize];
        let place = self.solved.pruned.dag.places();
        for versions in self.index.keys() {
            let key = versions[0].key;
            if self.index.lists.is_list(key) {
                let writers = self.writers(versions, &place);
                let settled = writers.iter().filter(|it| is_dropped(it.at));
                let elements: Vec<ValueName> = settled
                    .flat_map(|it| {
                        self.watcher.window.kept[it.at as usize]
                            .arrival
                            .appended(key)
                    })
                    .copied()
                    .collect();
                self.watcher.window.settle_list(key, &elements);
            }
            let last = versions.iter().find_map(|it| match it.source {
                Source::Kept(at, write) if is_dropped(at) && !self.is_dead(at, write) => {
                    Some((at, write))
                }
                _ => None,
            });
            if let Some((at, write)) = last {
                self.replace_stub(versions, at, write);
            }
            for version in versions {
                if let Source::Kept(at, _) = version.source
                    && is_dropped(at)
                    && last.is_none_or(|last| last.0 != at)
                {
                    self.erase(version);
                }
            }
        }
        let window = &mut self.watcher.window;
        let mut at = 0..;
        let before = window.kept.len();
        window.kept.retain(|_| {
            !at.next()
                .is_some_and(|at| dropped[at] || supposed.removes(at as u32))
        });
        window.n_dropped += (before - window.kept.len()) as u64;
        let numbers: FxHashSet<u64> = window.kept.iter().map(|it| it.number).collect();
        let stays =
            |&(a, b): &(Point, Point)| a != b && numbers.contains(&a.0) && numbers.contains(&b.0);
        window.orders.retain(stays);
        for kept in &mut window.kept {
            kept.orders.retain(stays);
        }
    }

    /// Makes the last version of a key its stub: reads of the one before are settled, and past versions are older than it.
    fn replace_stub(&mut self, versions: &[WatchedVersion], at: u32, write: u32) {
        for version in versions.iter().filter(|it| it.source == Source::Stub) {
            self.erase(version);
        }
        let (key, value) = self.watcher.window.kept[at as usize].arrival.writes[write as usize];
        let value = if self.watcher.rules.keeps_last_version() {
            value
        } else {
            ValueName::MAX - 1
        };
        self.watcher.window.set_stub(key, value);
        for version in versions {
            let Source::Kept(other, write) = version.source else {
                continue;
            };
            let is_past = self.frame.holds(other) && self.past[self.frame.commit(other) as usize];
            let kept = &mut self.watcher.window.kept[other as usize];
            let write = write as usize;
            if other != at && is_past {
                kept.dead[write] = true;
            }
            kept.old[write] |= other != at && kept.dead[write] && (is_past || kept.is_open);
        }
    }

    /// Takes a version out of its readers: what it says is settled, or stored.
    fn erase(&mut self, version: &WatchedVersion) {
        for &reader in self.index.readers(version) {
            let arrival = &mut self.watcher.window.kept[reader as usize].arrival;
            arrival.forget_read(version.key);
        }
    }
}

/// A writer of a key: its place, which of its writes, and which of the key's versions.
pub(crate) struct KeyWriter {
    pub(crate) at: u32,
    pub(crate) write: u32,
    version: usize,
}

/// Lets stay what something that stays may precede; returns whether that changed anything. Components are numbered from the last one of a topological order.
fn spread(stays: &mut [bool], components: &[u32], edges: &[(u32, u32)]) -> bool {
    let component = |node: u32| components[node as usize];
    let mut between: Vec<(u32, u32)> = edges
        .iter()
        .map(|&(from, to)| (component(from), component(to)))
        .filter(|(from, to)| from != to)
        .collect();
    between.sort_unstable_by(|a, b| b.cmp(a));
    let mut has_changed = false;
    for (from, to) in between {
        if stays[from as usize] {
            has_changed |= !std::mem::replace(&mut stays[to as usize], true);
        }
    }
    has_changed
}

struct WatchParts {
    drift: i64,
    has_time: bool,
}
