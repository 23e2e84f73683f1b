//! Builds the polygraph of a resolved history: every edge that follows from the operations alone.
//!
//! Known without any reachability: session order, reads from writers (wr), readers before the read-modify-write that
//! overwrote what they read (rw), the initial run before every other, version orders that were given, real time.

use super::real_time::add_real_time;
use super::runs::{Run, Runs, runs_of_key};
use super::{Edge, Polygraph, Reason};
#[cfg(test)]
use crate::fault::Fault;
use crate::level::{Model, RealTime, Spec};
use crate::model::{History, KeyId};
use crate::resolve::{GivenOrder, Node, Resolved, VersionId};

/// Builds the polygraph. `combine` merges read-modify-writes into runs.
pub fn construct(history: &History, resolved: Resolved, spec: Spec, combine: bool) -> Polygraph {
    let n_txns = resolved.n_txns();
    let n_txn_nodes = match spec.model {
        Model::Ser => n_txns,
        Model::Si => 2 * n_txns,
    };
    let n_edges = n_txns + 3 * resolved.versions().n_reads();
    let mut construct = Construct {
        session_of: session_of(&resolved),
        polygraph: Polygraph {
            resolved,
            spec,
            n_nodes: n_txn_nodes,
            n_txn_nodes,
            edges: Vec::with_capacity(n_edges),
            runs: Runs::default(),
            follows: Vec::new(),
        },
        combine,
    };
    construct.add_transactions();
    construct.add_reads();
    construct.add_keys();
    let mut polygraph = construct.polygraph;
    if let Some(real_time) = spec.real_time {
        add_real_time(history, real_time, &mut polygraph);
    }
    polygraph
}

/// The polygraph of a level that looks at the clock, from that of the same level that does not.
pub(crate) fn add_clock(
    history: &History,
    real_time: RealTime,
    mut polygraph: Polygraph,
) -> Polygraph {
    polygraph.spec.real_time = Some(real_time);
    add_real_time(history, real_time, &mut polygraph);
    polygraph
}

fn session_of(resolved: &Resolved) -> Vec<u32> {
    let mut session_of = vec![0; resolved.n_txns()];
    for (session, nodes) in resolved.sessions().iter().enumerate() {
        session_of[nodes.start as usize..nodes.end as usize].fill(session as u32);
    }
    session_of
}

struct Construct {
    polygraph: Polygraph,
    session_of: Vec<u32>,
    combine: bool,
}

impl Construct {
    fn push(&mut self, from: u32, to: u32, reason: Reason) {
        self.polygraph.edges.push(Edge { from, to, reason });
    }

    /// Begins before commits, and the session order.
    fn add_transactions(&mut self) {
        let spec = self.polygraph.spec;
        for txn in 0..self.polygraph.resolved.n_txns() as Node {
            let (begin, commit) = (self.polygraph.begin(txn), self.polygraph.commit(txn));
            if begin != commit {
                self.push(begin, commit, Reason::Begin);
            }
        }
        if !spec.session_order {
            return;
        }
        #[cfg(test)]
        if crate::fault::is(Fault::ForgottenSession) {
            return;
        }
        for session in 0..self.polygraph.resolved.sessions().len() {
            let nodes = self.polygraph.resolved.sessions()[session].clone();
            for earlier in nodes.start..nodes.end.saturating_sub(1) {
                let from = self.polygraph.commit(earlier);
                let to = self.polygraph.begin(earlier + 1);
                self.push(from, to, Reason::Session);
            }
        }
    }

    /// Writers before their readers; readers before the transaction that read and overwrote the same version.
    fn add_reads(&mut self) {
        let polygraph = &mut self.polygraph;
        let versions = polygraph.resolved.versions();
        let mut edges = std::mem::take(&mut polygraph.edges);
        for version in (0..versions.len() as u32).map(VersionId) {
            let readers = versions.readers(version);
            if !versions.is_initial(version) {
                let from = polygraph.commit(versions.writer(version));
                edges.extend(readers.iter().map(|&reader| Edge {
                    from,
                    to: polygraph.begin(reader),
                    reason: Reason::Wr(version),
                }));
            }
            let Some(before) = versions.predecessor(version).filter(|_| self.combine) else {
                continue;
            };
            let writer = versions.writer(version);
            let others = versions.readers(before).iter().filter(|&&r| r != writer);
            #[cfg(test)]
            let others = others.skip(crate::fault::is(Fault::DroppedRwEdge).into());
            edges.extend(others.map(|&reader| Edge {
                from: polygraph.begin(reader),
                to: polygraph.commit(writer),
                reason: Reason::Rw {
                    before,
                    after: version,
                },
            }));
        }
        polygraph.edges = edges;
    }

    /// What is known of each key's version order, and the runs that are left to order.
    fn add_keys(&mut self) {
        let given = self.polygraph.resolved.given().to_vec();
        let mut given = given.as_slice();
        let mut runs = Vec::new();
        for key in (0..self.polygraph.resolved.versions().n_keys() as u32).map(KeyId) {
            let n_given = given.iter().take_while(|order| order.key == key).count();
            let (orders, rest) = given.split_at(n_given);
            given = rest;
            runs_of_key(
                self.polygraph.resolved.versions(),
                key,
                self.combine,
                &mut runs,
            );
            self.add_key(key, &runs, orders);
        }
    }

    fn add_key(&mut self, key: KeyId, runs: &[Run], orders: &[GivenOrder]) {
        let Some((&initial, rest)) = runs.split_first() else {
            return;
        };
        if rest.is_empty() && orders.is_empty() {
            return;
        }
        for order in orders {
            self.add_given(order);
        }
        let n_written = self.polygraph.resolved.versions().of_key(key).len() - 1;
        let is_total = |order: &&GivenOrder| order.is_prefix || order.versions.len() == n_written;
        let mut left = rest.to_vec();
        for order in orders.iter().filter(is_total) {
            let unlisted = self.add_total(initial, rest, order);
            left.retain(|run| {
                unlisted
                    .binary_search_by_key(&run.head, |it| it.head)
                    .is_ok()
            });
        }
        if !orders.iter().any(|order| is_total(&order)) {
            self.fence(initial, rest);
        }
        self.leave(key, &left);
    }

    /// Consecutive versions of a given order: each before the next, and so its readers.
    fn add_given(&mut self, order: &GivenOrder) {
        for pair in order.versions.windows(2) {
            let (head, last) = (pair[1], pair[0]);
            let (a, b) = (Run { head: last, last }, Run { head, last: head });
            let mut edges = std::mem::take(&mut self.polygraph.edges);
            edges.extend(self.polygraph.order_edges(a, b));
            self.polygraph.edges = edges;
        }
    }

    /// A given order that leaves no doubt except about what comes after it: the initial run comes before its first
    /// version, and what it does not list after its last. Returns the runs that it does not list.
    fn add_total(&mut self, initial: Run, rest: &[Run], order: &GivenOrder) -> Vec<Run> {
        let versions = self.polygraph.resolved.versions();
        // Read-modify-writes that go round in a circle end where they began; their wr edges are the contradiction.
        let follow = |head| {
            let next = move |&v: &VersionId| versions.successor(v).filter(|&v| v != head);
            std::iter::successors(Some(head), next)
        };
        let in_run = |head| -> Vec<VersionId> {
            let length = if self.combine { usize::MAX } else { 1 };
            follow(head).take(length).collect()
        };
        let mut in_initial = in_run(initial.head);
        in_initial.sort_unstable();
        let mut listed = order.versions.clone();
        listed.sort_unstable();
        let is_in = |set: &[VersionId], version| set.binary_search(&version).is_ok();
        let first = order.versions.iter().find(|&&v| !is_in(&in_initial, v));
        let first = first.map(|&head| Run { head, last: head });
        let unlisted = rest.iter().filter(|run| !is_in(&listed, run.head));
        let after: Vec<Run> = unlisted.copied().collect();
        let Some(&newest) = order.versions.last() else {
            return after;
        };
        let mut tail = in_run(newest);
        let tail_run = Run {
            head: newest,
            last: tail[tail.len() - 1],
        };
        tail.sort_unstable();
        // Not only the heads of runs: a run that the list shows in part is a contradiction, which these edges tell.
        let written = versions.of_key(order.key).skip(1).map(VersionId);
        let later = written.filter(|&v| !is_in(&listed, v) && !is_in(&tail, v));
        let later: Vec<Run> = later.map(|head| Run { head, last: head }).collect();
        if let Some(first) = first {
            self.fence(initial, &[first]);
        }
        self.fence(tail_run, &later);
        after
    }

    /// Orders a run before each of the others. With session order a session's last reader and a session's first writer
    /// stand for the rest, so the edges stay few where many readers meet many writers.
    fn fence(&mut self, run: Run, others: &[Run]) {
        let mut edges = std::mem::take(&mut self.polygraph.edges);
        let polygraph = &self.polygraph;
        let versions = polygraph.resolved.versions();
        let session = |node: Node| self.session_of[node as usize];
        let by_session = polygraph.spec.session_order;
        let readers = versions.readers(run.last);
        let mut previous = None;
        #[cfg(test)]
        let others =
            &others[..others.len() * usize::from(!crate::fault::is(Fault::UnorderedInitial))];
        for other in others {
            let (before, after) = (run.last, other.head);
            let writer = versions.writer(after);
            if by_session && previous.replace(session(writer)) == Some(session(writer)) {
                continue;
            }
            if !versions.is_initial(before) {
                edges.push(Edge {
                    from: polygraph.commit(versions.writer(before)),
                    to: polygraph.begin(writer),
                    reason: Reason::Ww { before, after },
                });
            }
            for (at, &reader) in readers.iter().enumerate() {
                let next = readers.get(at + 1);
                if by_session && next.is_some_and(|&next| session(next) == session(reader)) {
                    continue;
                }
                if reader != writer {
                    edges.push(Edge {
                        from: polygraph.begin(reader),
                        to: polygraph.commit(writer),
                        reason: Reason::Rw { before, after },
                    });
                }
            }
        }
        self.polygraph.edges = edges;
    }

    /// Leaves runs to be ordered, unless any topological order does.
    fn leave(&mut self, key: KeyId, runs: &[Run]) {
        let unread = runs
            .iter()
            .filter(|&&run| self.polygraph.is_trivial(run, run))
            .count() as u64;
        let n_runs = runs.len() as u64;
        let n_pairs = (n_runs * n_runs.saturating_sub(1) - unread * unread.saturating_sub(1)) / 2;
        if n_pairs > 0 {
            self.polygraph.runs.push_key(key, runs, n_pairs);
        }
    }
}
