//! A batch as an ordinary problem: nodes, known edges and orders of the retained transactions.
//!
//! Edges of sessions, reads, time and the barrier are made again from the fields of what is kept. Only orders whose reason is
//! gone are stored. The barrier of batch e comes after what was past then and before what arrived later.

use kingsnake_graph::{Edge, Problem, RunOf};

use crate::arrival::KeyNumber;
use crate::index::{Source, VersionIndex, WatchedVersion};
use crate::watcher::WatchOptions;
use crate::window::{KeptWindow, NEVER, Point};

const NONE: u32 = u32::MAX;

/// A problem, and the meaning of its nodes.
#[derive(Debug)]
pub(crate) struct BatchFrame {
    width: u32,
    /// The kept transactions with nodes, in node order, by their places.
    pub(crate) members: Vec<u32>,
    /// The place of each kept transaction among the members.
    position: Vec<u32>,
    pub(crate) problem: Problem,
}

impl BatchFrame {
    /// The problem of the transactions that count, and of an open one as if it did.
    pub(crate) fn new(
        window: &KeptWindow,
        index: &VersionIndex,
        options: &WatchOptions,
        has_barrier: bool,
        supposed: Option<u32>,
    ) -> Self {
        let counts = |&at: &u32| !window.kept[at as usize].is_open || supposed == Some(at);
        let mut members: Vec<u32> = (0..window.kept.len() as u32).filter(counts).collect();
        members.sort_by_key(|&at| window.kept[at as usize].arrival.session);
        let mut position = vec![NONE; window.kept.len()];
        for (at, &kept) in members.iter().enumerate() {
            position[kept as usize] = at as u32;
        }
        let width = if options.level.has_snapshots() { 2 } else { 1 };
        let mut frame = BatchFrame {
            width,
            problem: Problem {
                n_nodes: members.len() * width as usize,
                ..Problem::default()
            },
            members,
            position,
        };
        frame.add_sessions(window);
        if options.level.has_real_time() {
            frame.add_time(window, options.drift);
        }
        if has_barrier {
            frame.add_barriers(window);
        }
        frame.add_known(window, supposed);
        for versions in index.keys() {
            frame.add_key(window, index, versions);
        }
        frame
    }

    /// The node of a member's begin.
    pub(crate) fn begin(&self, kept: u32) -> u32 {
        self.position[kept as usize] * self.width
    }

    /// The node of a member's commit.
    pub(crate) fn commit(&self, kept: u32) -> u32 {
        (self.position[kept as usize] + 1) * self.width - 1
    }

    /// Whether a kept transaction has nodes.
    pub(crate) fn holds(&self, kept: u32) -> bool {
        self.position[kept as usize] != NONE
    }

    /// How many nodes are moments of transactions; the others come after them.
    pub(crate) fn n_moments(&self) -> usize {
        self.members.len() * self.width as usize
    }

    /// The node of a stored point.
    pub(crate) fn node(&self, kept: u32, is_commit: bool) -> u32 {
        if is_commit {
            self.commit(kept)
        } else {
            self.begin(kept)
        }
    }

    /// The moments of a member: its nodes, and what they are.
    pub(crate) fn moments(&self, kept: u32) -> impl Iterator<Item = (u32, bool)> + use<> {
        let (begin, commit) = (self.begin(kept), self.commit(kept));
        (begin..=commit).map(move |node| (node, node == commit))
    }

    fn edge(&mut self, from: u32, to: u32) {
        self.problem.edges.push(Edge::plain(from, to));
    }

    fn helper(&mut self) -> u32 {
        self.problem.n_nodes += 1;
        self.problem.n_nodes as u32 - 1
    }

    fn add_sessions(&mut self, window: &KeptWindow) {
        let session = |at: u32| window.kept[at as usize].arrival.session;
        let members = self.members.clone();
        let mut start = 0;
        for chain in members.chunk_by(|&a, &b| session(a) == session(b)) {
            let first = start;
            start += chain.len() as u32 * self.width;
            self.problem.chains.push(first..start);
            for node in first + 1..start {
                self.edge(node - 1, node);
            }
        }
    }

    /// The time chain: a commit comes before the first time at which, drift and all, it was over when a begin happened.
    fn add_time(&mut self, window: &KeptWindow, drift: i64) {
        let mut events: Vec<(i128, bool, u32)> = Vec::with_capacity(2 * self.members.len());
        for &at in &self.members {
            let arrival = &window.kept[at as usize].arrival;
            events.push((i128::from(arrival.begin), false, self.begin(at)));
            if let Some(commit) = arrival.commit {
                events.push((
                    i128::from(commit) + i128::from(drift),
                    true,
                    self.commit(at),
                ));
            }
        }
        // At equal times nothing is over yet.
        events.sort_unstable();
        let mut over: Vec<u32> = Vec::new();
        let mut latest = None;
        for (_, is_end, node) in events {
            if is_end {
                over.push(node);
                continue;
            }
            if !over.is_empty() {
                let time = self.helper();
                for from in over.drain(..).chain(latest) {
                    self.edge(from, time);
                }
                latest = Some(time);
            }
            if let Some(from) = latest {
                self.edge(from, node);
            }
        }
    }

    fn add_barriers(&mut self, window: &KeptWindow) {
        let members = self.members.clone();
        let mut past: Vec<(u32, u32)> = Vec::new();
        for &at in &members {
            let since = window.kept[at as usize].past;
            if since[0] != NEVER && since[0] != since[1] {
                past.push((since[0], self.begin(at)));
            }
            if since[1] != NEVER {
                past.push((since[1], self.commit(at)));
            }
        }
        past.sort_unstable();
        let mut barriers: Vec<(u32, u32)> = Vec::new();
        for group in past.chunk_by(|a, b| a.0 == b.0) {
            let barrier = self.helper();
            if let Some(&(_, before)) = barriers.last() {
                self.edge(before, barrier);
            }
            for &(_, node) in group {
                self.edge(node, barrier);
            }
            barriers.push((group[0].0, barrier));
        }
        for &at in &members {
            let batch = window.kept[at as usize].batch;
            let before = barriers.partition_point(|it| it.0 < batch);
            if let Some(&(_, barrier)) = before.checked_sub(1).and_then(|it| barriers.get(it)) {
                self.edge(barrier, self.begin(at));
            }
        }
    }

    fn add_known(&mut self, window: &KeptWindow, supposed: Option<u32>) {
        let places = window.places();
        let node = |frame: &BatchFrame, (number, is_commit): Point| {
            let &at = places.get(&number)?;
            frame.holds(at).then(|| frame.node(at, is_commit))
        };
        let conditional = supposed.map(|at| &window.kept[at as usize].orders);
        let orders = window
            .orders
            .iter()
            .chain(conditional.into_iter().flatten());
        for &(before, after) in orders {
            if let (Some(from), Some(to)) = (node(self, before), node(self, after)) {
                self.edge(from, to);
            }
        }
    }

    /// A list orders its writers, and puts the others after them.
    fn add_lists(
        &mut self,
        index: &VersionIndex,
        key: KeyNumber,
        writers: &[(u32, bool, &WatchedVersion)],
    ) {
        for read in index.lists.of(key) {
            if !self.holds(read.reader) {
                continue;
            }
            let held = read.writers.iter().copied().filter(|&it| self.holds(it));
            let held: Vec<u32> = held.collect();
            for pair in held.windows(2) {
                self.edge(self.commit(pair[0]), self.begin(pair[1]));
            }
            let Some(&last) = held.last() else {
                continue;
            };
            for &(writer, ..) in writers.iter().filter(|it| !held.contains(&it.0)) {
                self.edge(self.commit(last), self.begin(writer));
            }
        }
    }

    fn add_key(&mut self, window: &KeptWindow, index: &VersionIndex, versions: &[WatchedVersion]) {
        let mut writers: Vec<(u32, bool, &WatchedVersion)> = Vec::new();
        for version in versions {
            if let Source::Kept(at, write) = version.source
                && self.holds(at)
            {
                let is_old = window.kept[at as usize].old[write as usize];
                writers.push((at, is_old, version));
                for &reader in index.readers(version) {
                    if self.holds(reader) && reader != at {
                        self.edge(self.commit(at), self.begin(reader));
                    }
                }
            }
        }
        for version in versions.iter().filter(|it| it.source == Source::Stub) {
            for &reader in index
                .readers(version)
                .iter()
                .filter(|&&it| self.holds(it))
                .collect::<Vec<_>>()
            {
                for &(writer, is_old, _) in &writers {
                    if !is_old && writer != reader {
                        self.edge(self.begin(reader), self.commit(writer));
                    }
                }
            }
        }
        self.add_lists(index, versions[0].key, &writers);
        if writers.len() < 2 {
            return;
        }
        writers.sort_by_key(|it| self.position[it.0 as usize]);
        let mut runs = Vec::with_capacity(writers.len());
        for (at, _, version) in writers {
            let readers = index.readers(version).iter();
            let readers = readers.filter(|&&it| self.holds(it) && it != at);
            let readers: Vec<u32> = readers.map(|&it| self.begin(it)).collect();
            let name = self.position[at as usize];
            runs.push(RunOf {
                head: name,
                last: name,
                install: self.begin(at),
                commit: self.commit(at),
                last_commit: self.commit(at),
                is_free: readers.is_empty() && self.width == 1,
                readers,
            });
        }
        self.problem.orders.push_key(versions[0].key, runs);
    }
}
