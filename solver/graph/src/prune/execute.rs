//! `execute`: looks for an order by running the nodes one after the other, as a database would.
//!
//! A node runs once all nodes before it have run. A run of a key is installed only when the last writer of the key's newest run has
//! committed, and its writer commits only when all readers of the run before have read. So an execution that ends with every node
//! meets every order of two runs, and no pair of runs was looked at: time and memory are linear in the nodes, edges and runs, up
//! to the heap. A node that installs nothing can run at any time without harm. So can one after which all readers of what it installs
//! can run at once. Any other may be too early, and then the execution is stuck: that says nothing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use crate::orders::{Orders, Run};
use crate::reach::Dag;
use kingsnake_context::budget::{Budget, StopReason};

/// No run, no key.
const NONE: u32 = u32::MAX;
/// How many nodes that may be too early are compared before one of them runs; fewer if comparing finds nothing.
const COMPARED: std::ops::RangeInclusive<usize> = 4..=4096;
/// After this many turns a node or run the execution is considered stuck.
const TURNS: usize = 64;

/// The effect of a node on a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Installs its oldest version.
    Install,
    /// Commits its oldest version, where that is another node.
    Commit,
    /// Commits its newest version, where that is another node.
    End,
    /// Reads its newest version.
    Read,
}

const PARTS: [Part; 4] = [Part::Install, Part::Commit, Part::End, Part::Read];

/// An order of the nodes that puts every known edge forward and meets the order of every two runs, if one is found. Of the nodes that may
/// be too early, those of least rank run first.
pub(crate) fn execute(
    dag: &Dag,
    orders: &Orders,
    rank: &[u32],
    budget: &Budget,
) -> Result<Option<Vec<u32>>, StopReason> {
    if orders.len() > NONE as usize >> 2 {
        return Ok(None);
    }
    Execution::new(dag, orders, rank).run(budget)
}

/// The nodes that wait for a key, by whether they install, rank and number.
type Waiters = BinaryHeap<Reverse<(bool, u32, u32)>>;

/// The state of a key so far.
#[derive(Clone, Copy)]
struct KeyState {
    /// The newest run and the one before it.
    newest: u32,
    before: u32,
    /// Whether the newest run's last writer has committed.
    has_ended: bool,
}

struct Execution<'a> {
    dag: &'a Dag,
    orders: &'a Orders,
    rank: &'a [u32],
    /// By node, what it does to which runs.
    starts: Vec<u32>,
    parts: Vec<u32>,
    key_of: Vec<u32>,
    keys: Vec<KeyState>,
    /// By run, how many of its readers have not read yet.
    unread: Vec<u32>,
    /// By node, how many edges come from nodes that have not run.
    waiting: Vec<u32>,
    /// Nodes that can run without harm, and the others by rank; with each the key that it waited for.
    harmless: Vec<(u32, u32)>,
    early: BinaryHeap<Reverse<(u32, u32, u32)>>,
    /// By key, the nodes that wait until its newest run is read: first those that only have to commit.
    parked: FxHashMap<u32, Waiters>,
    order: Vec<u32>,
    /// How many nodes may be compared, and the total work left.
    n_compared: usize,
    turns: usize,
}

impl<'a> Execution<'a> {
    fn new(dag: &'a Dag, orders: &'a Orders, rank: &'a [u32]) -> Self {
        let n_nodes = dag.n_nodes();
        let mut waiting = vec![0; n_nodes];
        for &to in dag.targets() {
            waiting[to as usize] += 1;
        }
        let mut starts = vec![0_u32; n_nodes + 1];
        for_each_part(orders, |node, _, _| starts[node as usize + 1] += 1);
        for node in 0..n_nodes {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut parts = vec![0; starts[n_nodes] as usize];
        for_each_part(orders, |node, run, part| {
            let at = &mut next[node as usize];
            parts[*at as usize] = run << 2 | part as u32;
            *at += 1;
        });
        let mut key_of = vec![0; orders.len()];
        for key in 0..orders.n_keys() {
            key_of[orders.range(key)].fill(key as u32);
        }
        let empty = KeyState {
            newest: NONE,
            before: NONE,
            has_ended: true,
        };
        let mut execution = Execution {
            dag,
            orders,
            rank,
            starts,
            parts,
            key_of,
            keys: vec![empty; orders.n_keys()],
            unread: (0..orders.len() as u32)
                .map(|run| orders.readers(run).len() as u32)
                .collect(),
            waiting,
            harmless: Vec::new(),
            early: BinaryHeap::new(),
            parked: FxHashMap::default(),
            order: Vec::with_capacity(n_nodes),
            n_compared: 256,
            turns: TURNS * (n_nodes + orders.len()),
        };
        for node in (0..n_nodes as u32).rev() {
            if execution.waiting[node as usize] == 0 {
                execution.make_ready(node, NONE);
            }
        }
        execution
    }

    fn run(mut self, budget: &Budget) -> Result<Option<Vec<u32>>, StopReason> {
        let n_nodes = self.dag.n_nodes();
        let mut n_run_before = 0;
        while self.order.len() < n_nodes {
            let Some((node, woken_by)) = self.next() else {
                // A node may wait although its key is free: it reads what it overwrites. All are looked at once more.
                if self.order.len() == n_run_before {
                    return Ok(None);
                }
                n_run_before = self.order.len();
                self.wake_all();
                continue;
            };
            if self.turns == 0 {
                return Ok(None);
            }
            self.turns -= 1;
            if self.turns.is_multiple_of(1024) {
                budget.check()?;
            }
            match self.blocking(node) {
                None => self.execute(node),
                Some((key, commits)) => {
                    let waiter = Reverse((!commits, self.rank[node as usize], node));
                    self.parked.entry(key).or_default().push(waiter);
                    if woken_by != key {
                        self.wake(woken_by);
                    }
                }
            }
        }
        Ok(Some(self.order))
    }

    fn parts(&self, node: u32) -> impl Iterator<Item = (u32, Part)> + '_ {
        let range = self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize;
        self.parts[range]
            .iter()
            .map(|&it| (it >> 2, PARTS[it as usize & 3]))
    }

    fn make_ready(&mut self, node: u32, woken_by: u32) {
        let installs = self.parts(node).any(|(_, part)| part == Part::Install);
        if installs {
            let rank = self.rank[node as usize];
            self.early.push(Reverse((rank, node, woken_by)));
        } else {
            self.harmless.push((node, woken_by));
        }
    }

    /// The node that runs next, and the key that it waited for.
    fn next(&mut self) -> Option<(u32, u32)> {
        if let Some(node) = self.harmless.pop() {
            return Some(node);
        }
        let mut compared = Vec::new();
        let mut found = None;
        while compared.len() < self.n_compared
            && let Some(Reverse(entry)) = self.early.pop()
        {
            if self.blocking(entry.1).is_some() || self.is_read_at_once(entry.1) {
                found = Some(entry);
                break;
            }
            compared.push(entry);
        }
        self.turns = self.turns.saturating_sub(compared.len());
        let (least, most) = COMPARED.into_inner();
        if found.is_some() {
            self.n_compared = most.min(2 * self.n_compared);
        } else if !compared.is_empty() {
            self.n_compared = least.max(self.n_compared / 2);
            found = Some(compared.remove(0));
        }
        self.early.extend(compared.into_iter().map(Reverse));
        found.map(|(_, node, key)| (node, key))
    }

    /// Whether what the node installs can be committed and read by all its readers right after it.
    fn is_read_at_once(&self, node: u32) -> bool {
        let installed = |(run, part)| (part == Part::Install).then_some(run);
        self.parts(node).filter_map(installed).all(|run| {
            let Run {
                commit,
                last_commit,
                ..
            } = *self.orders.run(run);
            let newest = self.keys[self.key_of[run as usize] as usize].newest;
            let commits = commit == node
                || self.waits_only_for(commit, node) && !self.is_unread(newest, node);
            commits
                && last_commit == commit
                && self.orders.readers(run).iter().all(|&reader| {
                    let installs = || self.parts(reader).any(|(_, part)| part == Part::Install);
                    reader == node || self.waits_only_for(reader, commit) && !installs()
                })
        })
    }

    fn waits_only_for(&self, node: u32, before: u32) -> bool {
        let successors = self.dag.successors(before).iter();
        self.waiting[node as usize] == successors.filter(|&&to| to == node).count() as u32
    }

    /// Whether others than this node have still to read a run.
    fn is_unread(&self, run: u32, node: u32) -> bool {
        let unread = self.unread.get(run as usize).copied().unwrap_or(0);
        let is_own = |&it: &(u32, Part)| it == (run, Part::Read);
        unread > 0 && unread > self.parts(node).filter(is_own).count() as u32
    }

    /// A key that the node has to wait for, and whether that is in order to commit.
    fn blocking(&self, node: u32) -> Option<(u32, bool)> {
        self.parts(node).find_map(|(run, part)| {
            let key = self.key_of[run as usize];
            let state = self.keys[key as usize];
            let is_blocked = match part {
                Part::Install => {
                    let commits = self.orders.run(run).commit == node;
                    !state.has_ended || commits && self.is_unread(state.newest, node)
                }
                Part::Commit => self.is_unread(state.before, node),
                Part::End | Part::Read => false,
            };
            is_blocked.then_some((key, part == Part::Commit))
        })
    }

    fn execute(&mut self, node: u32) {
        self.order.push(node);
        for at in self.starts[node as usize]..self.starts[node as usize + 1] {
            let part = self.parts[at as usize];
            let (run, part) = (part >> 2, PARTS[part as usize & 3]);
            let key = self.key_of[run as usize];
            let state = &mut self.keys[key as usize];
            let may_be_free = match part {
                Part::Install => {
                    state.before = std::mem::replace(&mut state.newest, run);
                    state.has_ended = self.orders.run(run).last_commit == node;
                    state.has_ended
                }
                Part::End => {
                    state.has_ended = true;
                    true
                }
                Part::Read => {
                    self.unread[run as usize] -= 1;
                    self.unread[run as usize] == 0
                }
                Part::Commit => false,
            };
            if may_be_free {
                self.wake(key);
            }
        }
        let dag = self.dag;
        for &to in dag.successors(node) {
            self.waiting[to as usize] -= 1;
            if self.waiting[to as usize] == 0 {
                self.make_ready(to, NONE);
            }
        }
    }

    /// Lets the first of those that wait for a key try again.
    fn wake(&mut self, key: u32) {
        let waiter = self.parked.get_mut(&key).and_then(BinaryHeap::pop);
        if let Some(Reverse((_, _, node))) = waiter {
            self.make_ready(node, key);
        }
    }

    /// Lets all that wait try again.
    fn wake_all(&mut self) {
        let mut waiters: Vec<u32> = Vec::new();
        for (_, parked) in self.parked.drain() {
            waiters.extend(parked.into_iter().map(|Reverse((_, _, node))| node));
        }
        // The table's order is not to matter.
        waiters.sort_unstable();
        for node in waiters {
            self.make_ready(node, NONE);
        }
    }
}

/// Calls for everything that a node does to a run.
fn for_each_part(orders: &Orders, mut each: impl FnMut(u32, u32, Part)) {
    for index in 0..orders.len() as u32 {
        let run = orders.run(index);
        each(run.install, index, Part::Install);
        if run.commit != run.install {
            each(run.commit, index, Part::Commit);
        }
        if run.last_commit != run.install {
            each(run.last_commit, index, Part::End);
        }
        for &reader in orders.readers(index) {
            each(reader, index, Part::Read);
        }
    }
}

#[cfg(test)]
mod tests {
    use kingsnake_context::rng::Rng;

    use super::*;
    use crate::edge::Edge;
    use crate::orders::RunOf;
    use crate::reach::places;

    /// Single versions of some keys, each with readers, as some execution may have left them: known edges follow a hidden order if
    /// `is_real`, and any order of the nodes if not. Installs are commits (`width` 1) or come before them (2).
    fn random(width: u32, is_real: bool, rng: &mut Rng) -> (Dag, Orders) {
        let n_txns = 4 + rng.below(12) as u32;
        let n_keys = 1 + rng.below(3);
        let (begin, commit) = (|txn: u32| txn * width, |txn: u32| txn * width + width - 1);
        let mut edges: Vec<Edge> = Vec::new();
        if width == 2 {
            edges.extend((0..n_txns).map(|txn| Edge::plain(begin(txn), commit(txn))));
        }
        // By key, its writers in order; by writer, its readers.
        let mut orders = Orders::default();
        for key in 0..n_keys as u32 {
            let mut runs: Vec<(u32, Vec<u32>)> = Vec::new();
            for txn in 0..n_txns {
                if rng.chance(40) {
                    runs.push((txn, Vec::new()));
                } else if rng.chance(60) && !runs.is_empty() {
                    let of = if is_real {
                        runs.len() - 1
                    } else {
                        rng.below(runs.len())
                    };
                    let (writer, readers) = &mut runs[of];
                    readers.push(begin(txn));
                    edges.push(Edge::plain(commit(*writer), begin(txn)));
                }
            }
            if runs.len() < 2 {
                continue;
            }
            let stated = runs.into_iter().map(|(writer, readers)| RunOf {
                head: writer,
                last: writer,
                install: begin(writer),
                commit: commit(writer),
                last_commit: commit(writer),
                is_free: width == 1 && readers.is_empty(),
                readers,
            });
            orders.push_key(key, stated);
        }
        for _ in 0..rng.below(6) {
            let (a, b) = (
                rng.below(n_txns as usize) as u32,
                rng.below(n_txns as usize) as u32,
            );
            if a < b {
                edges.push(Edge::plain(commit(a), begin(b)));
            }
        }
        let dag = Dag::new((n_txns * width) as usize, edges.iter());
        (dag.expect("edges run forward"), orders)
    }

    /// Whether an order meets every known edge and every two runs one way or the other.
    fn is_met(dag: &Dag, orders: &Orders, order: &[u32]) -> bool {
        let place = places(order);
        let is_forward = |from: u32, to: u32| place[from as usize] < place[to as usize];
        let is_first = |a: u32, b: u32| {
            let mut edges = orders.edges(a, b);
            edges.all(|edge| is_forward(edge.from, edge.to))
        };
        let nodes = 0..dag.n_nodes() as u32;
        let mut known =
            nodes.flat_map(|from| dag.successors(from).iter().map(move |&to| (from, to)));
        known.all(|(from, to)| is_forward(from, to))
            && (0..orders.n_keys()).all(|key| {
                let range = orders.range(key);
                range.clone().all(|a| {
                    (a + 1..range.end).all(|b| {
                        let (a, b) = (a as u32, b as u32);
                        orders.is_trivial(a, b) || is_first(a, b) || is_first(b, a)
                    })
                })
            })
    }

    #[test]
    fn what_ran_to_its_end_meets_every_pair() {
        let mut rng = Rng::new(31);
        let (mut n_found, mut n_stuck) = (0, 0);
        for case in 0..4_000 {
            let (dag, orders) = random(1 + case % 2, case % 3 > 0, &mut rng);
            let found = execute(&dag, &orders, &dag.places(), &Budget::unlimited());
            match found.expect("no budget ends") {
                Some(order) => {
                    n_found += 1;
                    assert_eq!(order.len(), dag.n_nodes());
                    assert!(is_met(&dag, &orders, &order), "{orders:?} {order:?}");
                }
                None => n_stuck += 1,
            }
        }
        assert!(n_found > 2_000 && n_stuck > 100, "{n_found} {n_stuck}");
    }

    #[test]
    fn an_order_that_breaks_a_pair_is_told_from_one_that_does_not() {
        // Two versions of a key, 0 and 1, read by 2 and 3.
        let edges = [Edge::plain(0, 2), Edge::plain(1, 3)];
        let dag = Dag::new(4, edges.iter()).expect("no cycle");
        let mut orders = Orders::default();
        let run = |writer: u32| RunOf {
            head: writer,
            last: writer,
            install: writer,
            commit: writer,
            last_commit: writer,
            is_free: false,
            readers: [writer + 2],
        };
        orders.push_key(0, [run(0), run(1)]);
        assert!(is_met(&dag, &orders, &[0, 2, 1, 3]));
        assert!(!is_met(&dag, &orders, &[0, 1, 2, 3]));
        let order = execute(&dag, &orders, &[1, 0, 2, 3], &Budget::unlimited());
        assert_eq!(order.expect("no budget ends"), Some(vec![1, 3, 0, 2]));
    }

    #[test]
    fn one_key_whose_versions_are_read_once_never_gets_stuck() {
        let n = 2_000;
        let edges: Vec<Edge> = (0..n).map(|it| Edge::plain(it, n + it)).collect();
        let dag = Dag::new(2 * n as usize, edges.iter()).expect("no cycle");
        let mut orders = Orders::default();
        let runs = (0..n).map(|writer| RunOf {
            head: writer,
            last: writer,
            install: writer,
            commit: writer,
            last_commit: writer,
            is_free: false,
            readers: [n + writer],
        });
        orders.push_key(0, runs);
        let order = execute(&dag, &orders, &dag.places(), &Budget::unlimited());
        let order = order.expect("no budget ends").expect("it is not stuck");
        assert!(is_met(&dag, &orders, &order));
    }
}
