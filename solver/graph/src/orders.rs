//! Orders: runs of versions of one key, any two of which are ordered one way or the other.
//!
//! A run is versions that must be consecutive. Pairs stay implicit: a key of r runs has r(r − 1)/2 of them, and most are
//! settled by reachability without being listed.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::edge::{Edge, Reason};

/// Consecutive versions of a key, as nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The name of the oldest version.
    pub head: u32,
    /// The name of the newest version.
    pub last: u32,
    /// Where the oldest is installed: the last writer of a run that comes before precedes this node.
    pub install: u32,
    /// Where the writer of the oldest commits: the readers of a run that comes before precede this node.
    pub commit: u32,
    /// Where the writer of the newest commits.
    pub last_commit: u32,
    /// Whether the order of two such runs does not matter: any topological order settles it.
    pub is_free: bool,
    /// Where its readers start among all; they end where the next run's start.
    readers: u32,
}

/// A run as it is stated: what [`Run`] holds, and the nodes of the readers of its newest version.
#[derive(Clone, Debug)]
pub struct RunOf<R> {
    /// The name of the oldest version.
    pub head: u32,
    /// The name of the newest version.
    pub last: u32,
    /// Where the oldest is installed.
    pub install: u32,
    /// Where the writer of the oldest commits.
    pub commit: u32,
    /// Where the writer of the newest commits.
    pub last_commit: u32,
    /// Whether nothing but being a single version without readers makes it a constraint.
    pub is_free: bool,
    /// The nodes at which the newest version is read.
    pub readers: R,
}

impl<R> RunOf<R> {
    /// The same run with its readers kept in another way.
    #[inline]
    pub fn with_readers<S>(self, keep: impl FnOnce(R) -> S) -> RunOf<S> {
        RunOf {
            head: self.head,
            last: self.last,
            install: self.install,
            commit: self.commit,
            last_commit: self.last_commit,
            is_free: self.is_free,
            readers: keep(self.readers),
        }
    }
}

/// The runs of every key that is not settled, key by key.
#[derive(Clone, Debug, Default)]
pub struct Orders {
    keys: Vec<u32>,
    /// Where each key's runs end.
    ends: Vec<u32>,
    runs: Vec<Run>,
    readers: Vec<u32>,
    n_pairs: u64,
    /// The places of keys that were added after keys of higher names.
    late: FxHashMap<u32, u32>,
}

impl Orders {
    /// No runs, and room for some.
    pub fn with_room(n_runs: usize, n_readers: usize) -> Self {
        Orders {
            runs: Vec::with_capacity(n_runs),
            readers: Vec::with_capacity(n_readers),
            ..Orders::default()
        }
    }

    /// Adds a key and its runs, in node order of the writers of their heads: those of one chain are neighbours, and sorted.
    pub fn push_key<R: IntoIterator<Item = u32>>(
        &mut self,
        key: u32,
        runs: impl IntoIterator<Item = RunOf<R>>,
    ) {
        let (mut n_runs, mut n_free) = (0_u64, 0_u64);
        for run in runs {
            n_runs += 1;
            n_free += u64::from(run.is_free);
            let readers = self.readers.len() as u32;
            self.readers.extend(run.readers);
            self.runs.push(Run {
                head: run.head,
                last: run.last,
                install: run.install,
                commit: run.commit,
                last_commit: run.last_commit,
                is_free: run.is_free,
                readers,
            });
        }
        self.n_pairs += (n_runs * n_runs.saturating_sub(1) - n_free * n_free.saturating_sub(1)) / 2;
        if !self.late.is_empty() || self.keys.last() > Some(&key) {
            self.late.insert(key, self.keys.len() as u32);
        }
        self.keys.push(key);
        self.ends.push(self.runs.len() as u32);
    }

    /// The same runs as if their newest versions had no readers: their orders have ww edges only.
    #[must_use]
    pub fn without_readers(&self) -> Orders {
        let mut bare = Orders::default();
        for at in 0..self.n_keys() {
            let runs = self.of(at).iter().map(|run| RunOf {
                head: run.head,
                last: run.last,
                install: run.install,
                commit: run.commit,
                last_commit: run.last_commit,
                is_free: false,
                readers: [],
            });
            bare.push_key(self.key(at), runs);
        }
        bare
    }

    /// How many keys are not settled.
    pub fn n_keys(&self) -> usize {
        self.keys.len()
    }

    /// The name of the key at this place.
    pub fn key(&self, at: usize) -> u32 {
        self.keys[at]
    }

    /// The place of a key that is not settled.
    pub fn place(&self, key: u32) -> Option<usize> {
        if let Some(&place) = self.late.get(&key) {
            return Some(place as usize);
        }
        let sorted = &self.keys[..self.keys.len() - self.late.len()];
        sorted.binary_search(&key).ok()
    }

    /// The runs of the key at this place.
    #[inline]
    pub fn of(&self, at: usize) -> &[Run] {
        &self.runs[self.range(at)]
    }

    /// Where the runs of the key at this place stand among all.
    #[inline]
    pub fn range(&self, at: usize) -> Range<usize> {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        start as usize..self.ends[at] as usize
    }

    /// A run by its place among all.
    #[inline]
    pub fn run(&self, index: u32) -> &Run {
        &self.runs[index as usize]
    }

    /// The nodes at which the newest version of a run is read.
    #[inline]
    pub fn readers(&self, index: u32) -> &[u32] {
        let index = index as usize;
        let end = self
            .runs
            .get(index + 1)
            .map_or(self.readers.len(), |next| next.readers as usize);
        &self.readers[self.runs[index].readers as usize..end]
    }

    /// Number of runs.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether every key is settled.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The unordered pairs of runs whose order matters, before anything is pruned.
    pub fn n_pairs(&self) -> u64 {
        self.n_pairs
    }

    /// Makes the order of a run and any other of its key matter.
    pub(crate) fn bind(&mut self, index: u32) {
        if !std::mem::replace(&mut self.runs[index as usize].is_free, false) {
            return;
        }
        let key = self.ends.partition_point(|&end| end <= index);
        self.n_pairs += self.of(key).iter().filter(|run| run.is_free).count() as u64;
    }

    /// Whether the order of two runs of one key does not matter.
    #[inline]
    pub fn is_trivial(&self, a: u32, b: u32) -> bool {
        self.run(a).is_free && self.run(b).is_free
    }

    /// The edges that hold when run `a` of a key comes before run `b`: first the one from writer to writer.
    pub fn edges(&self, a: u32, b: u32) -> impl Iterator<Item = Edge> + '_ {
        let (first, next) = (self.run(a), self.run(b));
        let (before, after) = (first.last, next.head);
        let ww = Edge {
            from: first.last_commit,
            to: next.install,
            reason: Reason::Ww { before, after },
        };
        let (install, to) = (next.install, next.commit);
        let others = self.readers(a).iter().filter(move |&&r| r != install);
        let rw = others.map(move |&from| Edge {
            from,
            to,
            reason: Reason::Rw { before, after },
        });
        std::iter::once(ww).chain(rw)
    }

    /// One of these edges: 0 is the one from writer to writer, i + 1 that of reader i. `None` if there is none, or if the
    /// reader is the writer that comes after.
    pub fn edge(&self, a: u32, b: u32, edge: u32) -> Option<Edge> {
        let (first, next) = (self.run(a), self.run(b));
        let (before, after) = (first.last, next.head);
        let Some(reader) = edge.checked_sub(1) else {
            return Some(Edge {
                from: first.last_commit,
                to: next.install,
                reason: Reason::Ww { before, after },
            });
        };
        let &from = self.readers(a).get(reader as usize)?;
        (from != next.install).then_some(Edge {
            from,
            to: next.commit,
            reason: Reason::Rw { before, after },
        })
    }

    /// The runs of a key that end with one version and begin with the other, by their places among all.
    pub fn find(&self, key: u32, before: u32, after: u32) -> Option<(u32, u32)> {
        let range = self.range(self.place(key)?);
        let place = |is: &dyn Fn(&Run) -> bool| {
            let mut places = range.clone();
            places.find(|&at| is(&self.runs[at])).map(|at| at as u32)
        };
        Some((
            place(&|run| run.last == before)?,
            place(&|run| run.head == after)?,
        ))
    }
}
