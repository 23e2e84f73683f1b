//! Builds the graph of a resolved history: every edge that follows from the operations alone.
//!
//! Known without any reachability: session order, reads from writers (wr), readers before the read-modify-write that
//! overwrote what they read (rw), the initial run before every other, version orders that were given, real time.

use std::ops::Range;

use super::ends::{Ends, add_ends};
use super::gaps::Helpers;
use super::real_time::add_real_time;
use super::runs::{Run, next, runs_of_key};
use super::{Edge, Places, Polygraph, reasons};
use crate::budget::{Budget, StopReason};
use crate::level::{Model, RealTime, Spec};
use crate::model::{History, KeyId};
use crate::resolve::{GivenOrder, NO_NODE, Node, Resolved, VersionId};
use crate::visible::{Commits, Visible, Why};
use kingsnake_graph::{Orders, Problem, RunOf};
use rustc_hash::FxHashMap;

/// Edges of reads and orders of keys of so many versions are worth a thread each.
const WORTH_THREADS: usize = 1 << 16;

/// Which pairs of versions become constraints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// `combine`: read-modify-writes are merged into runs.
    pub combine: bool,
    /// `unread`: two versions without readers need no order at SER, because any topological order settles them.
    pub unread: bool,
}

impl From<bool> for Shape {
    fn from(combine: bool) -> Self {
        Shape {
            combine,
            unread: true,
        }
    }
}

/// Builds the graph; a `bool` says whether to combine.
pub fn construct(
    history: &History,
    resolved: Resolved,
    spec: Spec,
    shape: impl Into<Shape>,
) -> Polygraph {
    let built = construct_within(history, resolved, spec, shape, &Budget::unlimited());
    built.expect("no budget ends")
}

/// Builds the graph, as long as the budget lasts.
pub fn construct_within(
    history: &History,
    resolved: Resolved,
    spec: Spec,
    shape: impl Into<Shape>,
    budget: &Budget,
) -> Result<Polygraph, StopReason> {
    let Shape { combine, unread } = shape.into();
    // Of two writers of a key one happened before the other, for every reader: that order is a path for others.
    let unread = unread && spec.model != Model::Psi;
    let n_txns = resolved.n_txns();
    let places = Places::of(history, &resolved, spec);
    let n_txn_nodes = n_txns * places.width() as usize;
    let n_edges = n_txns + 3 * resolved.versions().n_reads();
    let mut edges = Vec::with_capacity(n_edges);
    let mut n_nodes = n_txn_nodes;
    let helpers = Helpers::new(resolved.gaps(), &places, &mut n_nodes, &mut edges);
    add_transactions(&resolved, &places, spec, &mut edges);
    add_given_edges(history, &resolved, &places, &mut edges);
    let keys = Keys {
        resolved: &resolved,
        places: &places,
        spec,
        combine,
        unread,
        helpers: &helpers,
        session_of: session_of(&resolved),
        edges: Vec::new(),
        orders: Orders::default(),
        free_runs: FxHashMap::default(),
    };
    let add_reads = || {
        add_reads(&resolved, &places, &helpers, combine, &mut edges);
        edges
    };
    let (mut edges, mut keys) = if resolved.versions().len() < WORTH_THREADS {
        (add_reads(), keys.all())
    } else {
        rayon::join(add_reads, || keys.all())
    };
    edges.append(&mut keys.edges);
    let (orders, free_runs) = (keys.orders, keys.free_runs);
    let mut polygraph = Polygraph {
        spec,
        n_txn_nodes,
        sights: Vec::new(),
        n_helpers: n_nodes - n_txn_nodes,
        combine,
        unread,
        free_runs,
        ends: Ends::default(),
        problem: Problem {
            n_nodes,
            edges,
            orders,
            ..Problem::default()
        },
        places,
        resolved,
    };
    add_ends(history, &mut polygraph);
    if polygraph.places.models().any(Model::is_weak) {
        add_sights(&mut polygraph, budget)?;
    }
    match spec.real_time {
        Some(real_time) => add_real_time(history, real_time, &mut polygraph),
        None => polygraph.problem.chains = chains(&polygraph, &[]),
    }
    Ok(polygraph)
}

/// The constraints of weak transactions' reads on the order of commits. A commit before the initial state is a cycle by itself.
fn add_sights(polygraph: &mut Polygraph, budget: &Budget) -> Result<(), StopReason> {
    let Polygraph {
        resolved,
        places,
        spec,
        sights,
        problem,
        ..
    } = polygraph;
    let visible = Visible::of(resolved, places.models(), spec.session_order, budget)?;
    for edge in &visible.edges {
        let reason = match edge.why {
            Why::Vis { .. } => {
                sights.push(*edge);
                reasons::vis(sights.len() as u32 - 1)
            }
            // A transaction's first read of a key has its edge already; so have session order and given orders.
            Why::Wr(version) if is_later_read(resolved, edge, version) => reasons::wr(version),
            Why::Wr(_) | Why::Session | Why::Given(_) | Why::Stated(_) => continue,
        };
        let to = if edge.to == NO_NODE {
            edge.from
        } else {
            edge.to
        };
        problem.edges.push(Edge {
            from: places.commit(edge.from),
            to: places.commit(to),
            reason,
        });
    }
    Ok(())
}

fn is_later_read(resolved: &Resolved, edge: &Commits, version: VersionId) -> bool {
    let readers = resolved.versions().readers(version);
    readers.binary_search(&edge.to).is_err()
}

/// The chains that the level makes of the nodes, as ranges that cover all but helpers: sessions where their order counts or the clock
/// gives it to them (`follows` says for each transaction whether it comes after the one before it), single transactions
/// where it does not, and the time chain.
pub(super) fn chains(polygraph: &Polygraph, follows: &[bool]) -> Vec<Range<u32>> {
    let width = polygraph.places.width();
    let session_order = polygraph.spec.session_order;
    let follows = |txn: Node| session_order || follows.get(txn as usize).copied().unwrap_or(false);
    let mut chains: Vec<Range<u32>> = Vec::new();
    for session in polygraph.resolved.sessions() {
        let mut start = session.start;
        for end in session.start + 1..=session.end {
            if end == session.end || !follows(end) {
                chains.push(start * width..end * width);
                start = end;
            }
        }
    }
    let time = polygraph.first_time()..polygraph.problem.n_nodes as u32;
    if !time.is_empty() {
        chains.push(time);
    }
    chains
}

/// The polygraph of a level that looks at the clock, from that of the same level that does not.
pub fn add_clock(history: &History, real_time: RealTime, mut polygraph: Polygraph) -> Polygraph {
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

/// Begins before commits, and the session order.
fn add_transactions(resolved: &Resolved, places: &Places, spec: Spec, edges: &mut Vec<Edge>) {
    for txn in 0..resolved.n_txns() as Node {
        let (from, to) = (places.begin(txn), places.commit(txn));
        if from != to {
            let reason = reasons::BEGIN;
            edges.push(Edge { from, to, reason });
        }
    }
    if !spec.session_order {
        return;
    }
    for nodes in resolved.sessions() {
        for earlier in nodes.start..nodes.end.saturating_sub(1) {
            edges.push(Edge {
                from: places.commit(earlier),
                to: places.begin(earlier + 1),
                reason: reasons::SESSION,
            });
        }
    }
}

/// The orders between transactions given by the user.
fn add_given_edges(history: &History, resolved: &Resolved, places: &Places, edges: &mut Vec<Edge>) {
    for (edge, at) in history.given_edges().iter().zip(0..) {
        let (Some(from), Some(to)) = (resolved.node(edge.from), resolved.node(edge.to)) else {
            continue;
        };
        edges.push(Edge {
            from: places.commit(from),
            to: places.begin(to),
            reason: reasons::given(at),
        });
    }
}

/// Writers before their readers; readers before the transaction that read and overwrote the same version.
fn add_reads(
    resolved: &Resolved,
    places: &Places,
    helpers: &Helpers,
    combine: bool,
    edges: &mut Vec<Edge>,
) {
    let versions = resolved.versions();
    for version in (0..versions.len() as u32).map(VersionId) {
        let readers = versions.readers(version);
        if !versions.is_initial(version) {
            let from = places.commit(versions.writer(version));
            edges.extend(readers.iter().map(|&reader| Edge {
                from,
                to: places.snap(reader),
                reason: reasons::wr(version),
            }));
        }
        let Some(before) = versions.predecessor(version).filter(|_| combine) else {
            continue;
        };
        let writer = versions.writer(version);
        if !places.is_atomic(writer) {
            continue;
        }
        let others = versions.readers(before).iter().filter(|&&r| r != writer);
        let others = others.filter(|&&reader| places.reads_newest(reader));
        edges.extend(others.map(|&reader| Edge {
            from: places.snap(reader),
            to: places.commit(writer),
            reason: reasons::rw(before, version),
        }));
        if versions.is_initial(before) {
            let helpers = helpers.readers(resolved.gaps(), versions.key(before));
            edges.extend(helpers.map(|from| Edge {
                from,
                to: places.commit(writer),
                reason: reasons::rw(before, version),
            }));
        }
    }
}

/// The known part of each key's version order, and the runs that are left to order.
struct Keys<'a> {
    resolved: &'a Resolved,
    places: &'a Places,
    spec: Spec,
    combine: bool,
    unread: bool,
    helpers: &'a Helpers,
    session_of: Vec<u32>,
    edges: Vec<Edge>,
    orders: Orders,
    free_runs: FxHashMap<KeyId, Vec<Run>>,
}

impl Keys<'_> {
    fn all(mut self) -> Self {
        let (resolved, places) = (self.resolved, self.places);
        let versions = resolved.versions();
        // Room for the runs and their readers, so that no list of them is copied while it grows.
        self.orders = Orders::with_room(versions.len() - versions.n_keys(), versions.n_reads());
        let mut given = resolved.given();
        let mut runs = Vec::new();
        for key in (0..versions.n_keys() as u32).map(KeyId) {
            let n_given = given.iter().take_while(|order| order.key == key).count();
            let (orders, rest) = given.split_at(n_given);
            given = rest;
            runs_of_key(resolved, places, key, self.combine, &mut runs);
            self.add_key(key, &runs, orders);
        }
        self
    }

    fn add_key(&mut self, key: KeyId, runs: &[Run], orders: &[GivenOrder]) {
        let Some((&initial, rest)) = runs.split_first() else {
            return;
        };
        if rest.is_empty() && orders.is_empty() {
            return;
        }
        if orders.is_empty() {
            self.fence(initial, rest);
            self.leave(key, rest, false);
            return;
        }
        for order in orders {
            self.add_given(order);
        }
        let n_written = self.resolved.versions().of_key(key).len() - 1;
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
        self.leave(key, &left, true);
    }

    /// Consecutive versions of a given order: each before the next, and so its readers.
    fn add_given(&mut self, order: &GivenOrder) {
        for pair in order.versions.windows(2) {
            let (head, last) = (pair[1], pair[0]);
            let (places, versions) = (self.places, self.resolved.versions());
            let (writer, after) = (versions.writer(last), versions.writer(head));
            self.edges.push(Edge {
                from: places.commit(writer),
                to: places.install(after),
                reason: reasons::ww(last, head),
            });
            let readers = versions.readers(last).iter().filter(|&&r| r != after);
            let readers = readers.filter(|&&reader| places.reads_newest(reader));
            self.edges.extend(readers.map(|&reader| Edge {
                from: places.snap(reader),
                to: places.commit(after),
                reason: reasons::rw(last, head),
            }));
        }
    }

    /// A given order that leaves no doubt except about what comes after it: the initial run comes before its first
    /// version, and what it does not list after its last. Returns the runs that it does not list.
    fn add_total(&mut self, initial: Run, rest: &[Run], order: &GivenOrder) -> Vec<Run> {
        let (places, versions) = (self.places, self.resolved.versions());
        // Read-modify-writes that go round in a circle end where they began; their wr edges are the contradiction.
        let follow = |head| {
            let after = move |&v: &VersionId| next(versions, places, v).filter(|&v| v != head);
            std::iter::successors(Some(head), after)
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
        let (places, versions) = (self.places, self.resolved.versions());
        let edges = &mut self.edges;
        let session = |node: Node| self.session_of[node as usize];
        let by_session = self.spec.session_order;
        let readers = versions.readers(run.last);
        let newest: Vec<Node>;
        let readers = if places.all_read_newest() {
            readers
        } else {
            let all = readers.iter().copied();
            newest = all.filter(|&it| places.reads_newest(it)).collect();
            &newest
        };
        let mut helpers = Vec::new();
        if !self.helpers.is_empty() && versions.is_initial(run.last) {
            let key = versions.key(run.last);
            helpers.extend(self.helpers.readers(self.resolved.gaps(), key));
        }
        let mut previous = None;
        for other in others {
            let (before, after) = (run.last, other.head);
            let writer = versions.writer(after);
            if by_session && previous.replace(session(writer)) == Some(session(writer)) {
                continue;
            }
            if !versions.is_initial(before) {
                edges.push(Edge {
                    from: places.commit(versions.writer(before)),
                    to: places.install(writer),
                    reason: reasons::ww(before, after),
                });
            }
            for &from in &helpers {
                edges.push(Edge {
                    from,
                    to: places.commit(writer),
                    reason: reasons::rw(before, after),
                });
            }
            for (at, &reader) in readers.iter().enumerate() {
                let next = readers.get(at + 1);
                if by_session && next.is_some_and(|&next| session(next) == session(reader)) {
                    continue;
                }
                if reader != writer {
                    edges.push(Edge {
                        from: places.snap(reader),
                        to: places.commit(writer),
                        reason: reasons::rw(before, after),
                    });
                }
            }
        }
    }

    /// Leaves runs to be ordered, unless any topological order does.
    fn leave(&mut self, key: KeyId, runs: &[Run], is_given: bool) {
        let (resolved, places, unread) = (self.resolved, self.places, self.unread);
        if !leave(resolved, places, unread, key, runs, &mut self.orders) && is_given {
            self.free_runs.insert(key, runs.to_vec());
        }
    }
}

impl Polygraph {
    /// Leaves the runs of a key to be ordered, if any topological order did so far: a choice will be about them.
    pub(super) fn leave_key(&mut self, key: KeyId) {
        if self.problem.orders.place(key.0).is_some() {
            return;
        }
        let runs = self.free_runs.remove(&key).unwrap_or_else(|| {
            let mut runs = Vec::new();
            runs_of_key(&self.resolved, &self.places, key, self.combine, &mut runs);
            let is_given = |it: &GivenOrder| it.key == key;
            if self.resolved.given().iter().any(is_given) {
                runs.clear();
            }
            runs.drain(..runs.len().min(1));
            runs
        });
        // A choice needs them though any topological order did.
        if runs.len() > 1 {
            let orders = &mut self.problem.orders;
            push_runs(
                &self.resolved,
                &self.places,
                self.unread,
                key,
                &runs,
                orders,
            );
        }
    }
}

/// Leaves runs to be ordered, unless any topological order does. Returns whether they are left.
fn leave(
    resolved: &Resolved,
    places: &Places,
    unread: bool,
    key: KeyId,
    runs: &[Run],
    orders: &mut Orders,
) -> bool {
    if runs.len() < 2 {
        return true;
    }
    // Pairs of runs that any topological order settles are no constraints.
    let is_free = |run: &Run| is_free(resolved, places, unread, *run);
    let is_left = !runs.iter().all(is_free);
    if is_left {
        push_runs(resolved, places, unread, key, runs, orders);
    }
    is_left
}

/// Whether any topological order settles the order of a run and another such run.
fn is_free(resolved: &Resolved, places: &Places, unread: bool, run: Run) -> bool {
    let versions = resolved.versions();
    let writer = versions.writer(run.head);
    let reads_newest = |&reader: &Node| places.reads_newest(reader);
    unread
        && run.head == run.last
        && places.install(writer) == places.commit(writer)
        && !versions.readers(run.last).iter().any(reads_newest)
}

/// Adds the runs of a key to the orders.
fn push_runs(
    resolved: &Resolved,
    places: &Places,
    unread: bool,
    key: KeyId,
    runs: &[Run],
    orders: &mut Orders,
) {
    let versions = resolved.versions();
    let stated = runs.iter().map(|run| {
        let head = versions.writer(run.head);
        RunOf {
            head: run.head.0,
            last: run.last.0,
            install: places.install(head),
            commit: places.commit(head),
            last_commit: places.commit(versions.writer(run.last)),
            is_free: is_free(resolved, places, unread, *run),
            readers: versions.readers(run.last).iter(),
        }
    });
    let snap = |&reader: &Node| places.snap(reader);
    if places.all_read_newest() {
        let stated = stated.map(|run| run.with_readers(|all| all.map(snap)));
        orders.push_key(key.0, stated);
    } else {
        let newest = |it: &&Node| places.reads_newest(**it);
        let stated = stated.map(|run| run.with_readers(|all| all.filter(newest).map(snap)));
        orders.push_key(key.0, stated);
    }
}
