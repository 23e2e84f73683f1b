//! Searches for orders of versions at parallel snapshot isolation: any back end orders the versions so that D has no cycle, and every rw edge
//! that such an order puts on a cycle becomes a clause for the next question.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Scene;
use super::known::{Known, Pair};
use crate::context::Context;
use crate::decide::{Backend, Decision};
use crate::phases::{self, Exit};
use crate::prune::{Cyclic, Dag, PruneStats};
use crate::relate::Edge;
use crate::report::{CheckError, Decider};
use kingsnake_graph::prune::{Outcome, Pruned, prune};
use kingsnake_graph::reach::{Reach, places};
use kingsnake_graph::{Literal, Logic, Orders, Problem};

/// How many clauses an order that is no answer gives at most.
const CLAUSES: usize = 2_000;

/// What the search found.
pub(super) enum Found {
    /// The nodes in an order of commits that explains the history.
    Order(Vec<u32>),
    /// There is none; how often each order of two runs stood in the way.
    No(FxHashMap<Pair, usize>),
}

/// Orders that cannot all hold.
type Conflict = Vec<Pair>;

/// Searches, given what is known.
pub(super) fn search(
    scene: &Scene<'_>,
    known: &Known<'_>,
    backend: &mut dyn Backend,
    context: &mut Context<'_>,
) -> Result<Found, Exit> {
    let open: FxHashSet<Pair> = known.open.iter().copied().collect();
    let mut blamed: FxHashMap<Pair, usize> = FxHashMap::default();
    let mut conflicts: Vec<Conflict> = Vec::new();
    // The runs alone: rw edges are no part of D.
    let orders = known.orders().without_readers();
    loop {
        scene.budget.check()?;
        let problem = problem(known, &orders, &conflicts);
        let options = scene.check.techniques.prune_options();
        let mut stats = PruneStats::default();
        let (budget, progress) = (scene.budget, &mut *context.progress);
        let outcome = prune(problem, options, &mut stats, budget, progress)?;
        let Outcome::Pruned(pruned) = outcome else {
            return Ok(Found::No(blamed));
        };
        let Some(order) = ask(&pruned, scene, backend, context)? else {
            return Ok(Found::No(blamed));
        };
        let candidate = Candidate::new(known, &open, &order);
        let new = candidate.conflicts(scene)?;
        if new.is_empty() {
            return Ok(Found::Order(order));
        }
        for conflict in new {
            if conflict.is_empty() {
                return Ok(Found::No(blamed));
            }
            for &pair in &conflict {
                *blamed.entry(pair).or_default() += 1;
            }
            conflicts.push(conflict);
        }
    }
}

fn problem(known: &Known<'_>, orders: &Orders, conflicts: &[Conflict]) -> Problem {
    let mut logic = Logic::default();
    for conflict in conflicts {
        let opposite = conflict.iter().map(|&(a, b)| Literal::Order(b, a));
        logic.clause(&opposite.collect::<Vec<_>>());
    }
    Problem {
        n_nodes: known.n_nodes(),
        edges: known.edges().collect(),
        orders: orders.clone(),
        chains: known.chains().to_vec(),
        logic,
    }
}

/// An order of D and the clauses; `None` if there is none.
fn ask(
    pruned: &Pruned,
    scene: &Scene<'_>,
    backend: &mut dyn Backend,
    context: &mut Context<'_>,
) -> Result<Option<Vec<u32>>, Exit> {
    let sides = if pruned.constraints.is_empty() {
        Vec::new()
    } else {
        let progress = &mut *context.progress;
        let decided = backend.decide(pruned.question(), scene.budget, progress);
        let (decision, mut own) = decided.map_err(CheckError::from)?;
        if let Some(earlier) = &context.stats.decide {
            own.add_effort(earlier);
        }
        context.stats.decide = Some(own);
        match decision {
            Decision::Choices(sides) => sides,
            Decision::Core(_) => return Ok(None),
            Decision::Unknown(reason) => return Err(reason.into()),
        }
    };
    let order = pruned.order(&sides).map_err(|Cyclic| cyclic())?;
    Ok(Some(order))
}

fn cyclic() -> CheckError {
    phases::cyclic(Decider::Backend)
}

/// Orders of versions, as an order of commits gives them.
struct Candidate<'a> {
    known: &'a Known<'a>,
    open: &'a FxHashSet<Pair>,
    /// Pairs of runs that follow each other.
    next: Vec<Pair>,
    /// D: the edges from each node, each with the pair that it rests on, if it rests on one.
    out: Vec<Vec<(u32, Option<Pair>)>>,
}

impl<'a> Candidate<'a> {
    fn new(known: &'a Known<'a>, open: &'a FxHashSet<Pair>, order: &[u32]) -> Self {
        let place = places(order);
        let orders = known.orders();
        let mut next = Vec::new();
        for key in 0..orders.n_keys() {
            let mut runs: Vec<u32> = orders.range(key).map(|run| run as u32).collect();
            runs.sort_by_key(|&run| place[orders.run(run).install as usize]);
            next.extend(runs.windows(2).map(|pair| (pair[0], pair[1])));
        }
        let mut out = vec![Vec::new(); known.n_nodes()];
        for edge in known.edges() {
            out[edge.from as usize].push((edge.to, None));
        }
        for &(a, b) in &next {
            let (from, to) = (orders.run(a).last_commit, orders.run(b).install);
            out[from as usize].push((to, Some((a, b))));
        }
        Candidate {
            known,
            open,
            next,
            out,
        }
    }

    /// The rw edges that close a cycle, each as orders that cannot all hold.
    fn conflicts(&self, scene: &Scene<'_>) -> Result<Vec<Conflict>, Exit> {
        let orders = self.known.orders();
        let n_nodes = self.out.len();
        let edges: Vec<Edge> = (0..n_nodes as u32)
            .flat_map(|from| {
                let of = self.out[from as usize].iter();
                of.map(move |&(to, _)| Edge::plain(from, to))
            })
            .collect();
        let dag = Dag::new(n_nodes, edges.iter()).map_err(|Cyclic| cyclic())?;
        let reach = Reach::new(&dag, self.known.chains(), scene.budget)?;
        let known = self.known.rw().iter().map(|(rw, _)| (rw.from, rw.to, None));
        let chosen = self.next.iter().flat_map(|&(a, b)| {
            let readers = orders.readers(a).iter();
            let to = orders.run(b).install;
            let readers = readers.filter(move |&&reader| reader != to);
            readers.map(move |&reader| (reader, to, Some((a, b))))
        });
        let closing = known
            .chain(chosen)
            .filter(|&(from, to, _)| reach.reaches(to, from));
        let mut found = FxHashSet::default();
        let mut conflicts = Vec::new();
        for (from, to, pair) in closing {
            let conflict = self.conflict(from, to, pair);
            if found.insert(conflict.clone()) {
                conflicts.push(conflict);
            }
            if conflicts.len() >= CLAUSES {
                break;
            }
        }
        Ok(conflicts)
    }

    /// What a path from one node to another and the order behind an rw edge rest on. Consecutive orders of one key are one.
    fn conflict(&self, to: u32, from: u32, rw: Option<Pair>) -> Conflict {
        let mut pairs: Vec<Pair> = rw.into_iter().collect();
        pairs.extend(self.path(from, to));
        let key = |run: u32| {
            let head = self.known.orders().run(run).head;
            let versions = self.known.polygraph().resolved().versions();
            versions.key(crate::resolve::VersionId(head))
        };
        let install = |run: u32| self.known.orders().run(run).install;
        let mut merged: Conflict = Vec::new();
        let mut at = 0;
        while at < pairs.len() {
            let own = key(pairs[at].0);
            // An rw edge does not lead to the reader itself.
            let is_rw = at == 0 && rw.is_some();
            let is_step = |it: usize| !is_rw || install(pairs[it].1) != to;
            let mut others = (at..pairs.len()).rev();
            let last = others.find(|&it| key(pairs[it].0) == own && is_step(it));
            let last = last.unwrap_or(at);
            merged.push((pairs[at].0, pairs[last].1));
            at = last + 1;
        }
        merged.retain(|&(a, b)| self.open.contains(&(a.min(b), a.max(b))));
        merged.sort_unstable();
        merged.dedup();
        merged
    }

    /// The pairs on a path with few of them (0-1 breadth-first search).
    fn path(&self, from: u32, to: u32) -> Vec<Pair> {
        let mut best = vec![u32::MAX; self.out.len()];
        let mut via: Vec<(u32, Option<Pair>)> = vec![(u32::MAX, None); self.out.len()];
        let mut queue = std::collections::VecDeque::from([(from, 0)]);
        best[from as usize] = 0;
        while let Some((node, cost)) = queue.pop_front() {
            if node == to {
                break;
            }
            if cost > best[node as usize] {
                continue;
            }
            for &(next, pair) in &self.out[node as usize] {
                let is_open = pair.is_some_and(|(a, b)| self.open.contains(&(a.min(b), a.max(b))));
                let there = cost + u32::from(is_open);
                if there < best[next as usize] {
                    best[next as usize] = there;
                    via[next as usize] = (node, pair);
                    if is_open {
                        queue.push_back((next, there));
                    } else {
                        queue.push_front((next, there));
                    }
                }
            }
        }
        let mut pairs = Vec::new();
        let mut node = to;
        while node != from && via[node as usize].0 != u32::MAX {
            let (before, pair) = via[node as usize];
            pairs.extend(pair);
            node = before;
        }
        pairs.reverse();
        pairs
    }
}
