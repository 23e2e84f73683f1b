#![allow(dead_code)]
//! Random questions, the exhaustive answer to them, and the judge of a back end's answer.

pub mod brute;
pub mod problems;
pub mod suite;

use kingsnake_context::budget::Budget;
use kingsnake_context::progress::Silent;
pub use kingsnake_context::rng::Rng;
use kingsnake_encodings::{BackendOptions, Propagator};
use kingsnake_graph::decide::{Backend, Constraints, Decision, Question, Side};
use kingsnake_graph::prune::{Outcome, PruneOptions, PruneStats, prune};
use kingsnake_graph::{Edge, Reason};

/// A question that owns its arrays.
#[derive(Clone, Debug)]
pub struct Owned {
    pub n_nodes: usize,
    starts: Vec<u32>,
    targets: Vec<u32>,
    order: Vec<u32>,
    pub constraints: Constraints,
    estimate: Vec<f32>,
}

pub fn edge(from: u32, to: u32) -> Edge {
    Edge {
        from,
        to,
        reason: Reason::NONE,
    }
}

impl Owned {
    /// `order` must be a topological order of `known`.
    pub fn new(known: &[(u32, u32)], order: Vec<u32>, constraints: Constraints) -> Owned {
        let n_nodes = order.len();
        let mut sorted = known.to_vec();
        sorted.sort_unstable();
        let mut starts = vec![0u32; n_nodes + 1];
        for &(from, _) in &sorted {
            starts[from as usize + 1] += 1;
        }
        for node in 0..n_nodes {
            starts[node + 1] += starts[node];
        }
        Owned {
            n_nodes,
            starts,
            targets: sorted.iter().map(|&(_, to)| to).collect(),
            order,
            constraints,
            estimate: Vec::new(),
        }
    }

    /// With ancestors minus descendants as the estimate.
    pub fn estimated(mut self) -> Owned {
        let n = self.n_nodes;
        let mut reach = vec![vec![false; n]; n];
        for &node in self.order.iter().rev() {
            let node = node as usize;
            for at in self.starts[node] as usize..self.starts[node + 1] as usize {
                let to = self.targets[at] as usize;
                reach[node][to] = true;
                let beyond = reach[to].clone();
                for (mine, theirs) in reach[node].iter_mut().zip(beyond) {
                    *mine |= theirs;
                }
            }
        }
        self.estimate = vec![0.0; n];
        for (from, row) in reach.iter().enumerate() {
            for (to, _) in row.iter().enumerate().filter(|(_, reached)| **reached) {
                self.estimate[from] -= 1.0;
                self.estimate[to] += 1.0;
            }
        }
        self
    }

    /// With an estimate that says nothing true.
    pub fn misled(mut self, random: &mut Rng) -> Owned {
        self.estimate = (0..self.n_nodes)
            .map(|_| random.below(100) as f32)
            .collect();
        self
    }

    pub fn question(&self) -> Question<'_> {
        Question {
            n_nodes: self.n_nodes,
            starts: &self.starts,
            targets: &self.targets,
            order: &self.order,
            constraints: &self.constraints,
            estimate: &self.estimate,
            has_choices: false,
        }
    }

    /// Whether these sides of these constraints close no cycle, by repeatedly removing nodes that nothing precedes.
    pub fn acyclic(&self, chosen: impl Iterator<Item = (usize, Side)>) -> bool {
        let mut next: Vec<Vec<u32>> = (0..self.n_nodes)
            .map(|node| {
                self.targets[self.starts[node] as usize..self.starts[node + 1] as usize].to_vec()
            })
            .collect();
        for (constraint, side) in chosen {
            for edge in self.constraints.side(constraint, side) {
                next[edge.from as usize].push(edge.to);
            }
        }
        let mut waiting = vec![0usize; self.n_nodes];
        for &to in next.iter().flatten() {
            waiting[to as usize] += 1;
        }
        let mut ready: Vec<usize> = (0..self.n_nodes)
            .filter(|&node| waiting[node] == 0)
            .collect();
        let mut removed = 0;
        while let Some(node) = ready.pop() {
            removed += 1;
            for &to in &next[node] {
                waiting[to as usize] -= 1;
                if waiting[to as usize] == 0 {
                    ready.push(to as usize);
                }
            }
        }
        removed == self.n_nodes
    }

    /// Whether some choice of sides meets these constraints: tries all of them.
    pub fn can_meet(&self, constraints: &[u32]) -> bool {
        (0u32..1 << constraints.len()).any(|mask| {
            self.acyclic(constraints.iter().enumerate().map(|(bit, &constraint)| {
                let side = if mask >> bit & 1 == 0 {
                    Side::Either
                } else {
                    Side::Or
                };
                (constraint as usize, side)
            }))
        })
    }

    /// The same for any number of constraints: many are put to the default back end, on their own.
    fn can_meet_somehow(&self, constraints: &[u32]) -> bool {
        if constraints.len() <= 12 {
            return self.can_meet(constraints);
        }
        let mut alone = Constraints::default();
        for &at in constraints {
            let side = |side| self.constraints.side(at as usize, side).iter().copied();
            alone.push(side(Side::Either), side(Side::Or));
        }
        let question = Question {
            constraints: &alone,
            ..self.question()
        };
        let decided = Propagator::new(&BackendOptions::default()).decide(
            question,
            &Budget::unlimited(),
            &mut Silent,
        );
        !matches!(decided, Ok((Decision::Core(_), _)))
    }

    pub fn all(&self) -> Vec<u32> {
        (0..self.constraints.len() as u32).collect()
    }
}

/// What is asked of a small random problem with choices, guarded edges and clauses, and whether it can be met, which is found by trying
/// all assignments of the problem. `None` where pruning refutes it, or leaves too much to try all sides.
pub fn chosen(seed: u64) -> Option<(Owned, bool)> {
    let problem = problems::problem(&mut Rng::new(seed));
    if problem.logic.is_empty() {
        return None;
    }
    let truth = brute::can_be_met(&problem);
    let options = PruneOptions {
        rounds: Some(seed as usize % 2),
        linear: false,
        ..PruneOptions::default()
    };
    let (mut stats, budget) = (PruneStats::default(), Budget::unlimited());
    let outcome = prune(problem, options, &mut stats, &budget, &mut Silent);
    let Ok(Outcome::Pruned(pruned)) = outcome else {
        return None;
    };
    if pruned.constraints.len() > 12 {
        return None;
    }
    let question = pruned.question();
    let known: Vec<(u32, u32)> = question.known().map(|it| (it.from, it.to)).collect();
    let owned = Owned::new(
        &known,
        question.order.to_vec(),
        question.constraints.clone(),
    );
    Some((owned, truth))
}

/// A small random question.
pub fn small(random: &mut Rng) -> Owned {
    let n_nodes = 3 + random.below(6);
    let mut order: Vec<u32> = (0..n_nodes as u32).collect();
    for i in (1..n_nodes).rev() {
        order.swap(i, random.below(i + 1));
    }
    let density = random.below(40);
    let mut known = Vec::new();
    for i in 0..n_nodes {
        for j in i + 1..n_nodes {
            if random.below(100) < density {
                known.push((order[i], order[j]));
            }
        }
    }
    let mut constraints = Constraints::default();
    for _ in 0..=random.below(8) {
        let mut side = || -> Vec<Edge> {
            (0..=random.below(3))
                .map(|_| {
                    let from = random.below(n_nodes) as u32;
                    let to = (from as usize + 1 + random.below(n_nodes - 1)) % n_nodes;
                    edge(from, to as u32)
                })
                .collect()
        };
        let (either, or) = (side(), side());
        constraints.push(either, or);
    }
    Owned::new(&known, order, constraints)
}

/// A larger question about a hidden serial order: a version must not come between another and its readers. With `torn`, three
/// nodes are asked to precede one another in a circle, whichever sides are taken.
pub fn planted(n_nodes: usize, n_constraints: usize, torn: bool, random: &mut Rng) -> Owned {
    let mut hidden: Vec<u32> = (0..n_nodes as u32).collect();
    for i in (1..n_nodes).rev() {
        hidden.swap(i, random.below(i + 1));
    }
    let mut known = Vec::new();
    for _ in 0..n_nodes {
        let i = random.below(n_nodes - 1);
        let j = (i + 1 + random.below(n_nodes / 8 + 1)).min(n_nodes - 1);
        known.push((hidden[i], hidden[j]));
    }
    let mut constraints = Constraints::default();
    for _ in 0..n_constraints {
        let writer = random.below(n_nodes - 1);
        let reader = (writer + 1 + random.below(n_nodes / 16 + 1)).min(n_nodes - 1);
        let other = random.below(n_nodes);
        if (writer..=reader).contains(&other) {
            continue;
        }
        let (w, r, o) = (hidden[writer], hidden[reader], hidden[other]);
        known.push((w, r));
        let (after, before) = ([edge(w, o), edge(r, o)], [edge(o, w)]);
        if random.below(2) == 0 {
            constraints.push(after, before);
        } else {
            constraints.push(before, after);
        }
    }
    if torn {
        let at = random.below(n_nodes - 3);
        let [a, b, c] = [hidden[at], hidden[at + 1], hidden[at + 2]];
        // a before b or before c, and so on round, and none of the three may be first.
        for [x, y, z] in [[a, b, c], [b, c, a], [c, a, b]] {
            constraints.push([edge(y, x)], [edge(z, x)]);
        }
    }
    Owned::new(&known, hidden, constraints).shuffled_order(random)
}

impl Owned {
    /// Replaces the order by another topological order, so that the hidden one is not given away.
    fn shuffled_order(mut self, random: &mut Rng) -> Owned {
        let mut waiting = vec![0usize; self.n_nodes];
        for &to in &self.targets {
            waiting[to as usize] += 1;
        }
        let mut ready: Vec<u32> = (0..self.n_nodes as u32)
            .filter(|&node| waiting[node as usize] == 0)
            .collect();
        self.order.clear();
        while !ready.is_empty() {
            let node = ready.swap_remove(random.below(ready.len()));
            self.order.push(node);
            for at in self.starts[node as usize]..self.starts[node as usize + 1] {
                let to = self.targets[at as usize];
                waiting[to as usize] -= 1;
                if waiting[to as usize] == 0 {
                    ready.push(to);
                }
            }
        }
        self
    }
}

/// The judge: what is wrong with the back end's answer, if the truth is as told.
pub fn judge(
    backend: &mut dyn Backend,
    owned: &Owned,
    truth: Option<bool>,
) -> Result<bool, String> {
    let (decision, stats) = backend
        .decide(owned.question(), &Budget::unlimited(), &mut Silent)
        .map_err(|error| error.to_string())?;
    if stats.backend != backend.name() {
        return Err(format!("it calls itself {}", stats.backend));
    }
    match decision {
        Decision::Choices(sides) => {
            if truth == Some(false) {
                return Err("it met what cannot be met".to_owned());
            }
            if sides.len() != owned.constraints.len() {
                return Err("it did not choose for every constraint".to_owned());
            }
            if !owned.acyclic(sides.into_iter().enumerate()) {
                return Err("its choices close a cycle".to_owned());
            }
            Ok(true)
        }
        Decision::Core(core) => {
            if truth == Some(true) {
                return Err("it refuted what can be met".to_owned());
            }
            if core
                .iter()
                .any(|&at| at as usize >= owned.constraints.len())
            {
                return Err("its core holds what was not asked".to_owned());
            }
            if owned.can_meet_somehow(&core) {
                return Err("its core can be met".to_owned());
            }
            Ok(false)
        }
        Decision::Unknown(reason) => Err(format!("it stopped: {reason}")),
    }
}

/// Any formula in conjunctive normal form as a question: a clause is a ring of edges, one from the side of each literal that
/// is negated in it, joined by known edges. Literals are spelt as in DIMACS.
pub fn cnf(n_variables: usize, clauses: &[Vec<i32>]) -> Owned {
    let mut sides = vec![[Vec::new(), Vec::new()]; n_variables];
    let mut known = Vec::new();
    let mut order = Vec::new();
    let mut n_nodes = 0u32;
    for clause in clauses {
        let size = clause.len() as u32;
        for (at, &lit) in clause.iter().enumerate() {
            let (tail, head) = (n_nodes + 2 * at as u32, n_nodes + 2 * at as u32 + 1);
            let next = n_nodes + 2 * ((at as u32 + 1) % size);
            known.push((head, next));
            // The side that makes the literal false runs through the ring.
            sides[lit.unsigned_abs() as usize - 1][usize::from(lit < 0)].push(edge(tail, head));
            order.push(head);
        }
        order.extend((0..size).map(|at| n_nodes + 2 * at));
        n_nodes += 2 * size;
    }
    let mut constraints = Constraints::default();
    for [if_false, if_true] in sides {
        // The first side is the variable being true, which falsifies its negative literals.
        constraints.push(if_true, if_false);
    }
    Owned::new(&known, order, constraints)
}

/// One more pigeon than holes.
pub fn pigeons(n_holes: usize) -> Owned {
    let at = |pigeon: usize, hole: usize| (pigeon * n_holes + hole + 1) as i32;
    let mut clauses: Vec<Vec<i32>> = (0..=n_holes)
        .map(|pigeon| (0..n_holes).map(|hole| at(pigeon, hole)).collect())
        .collect();
    for hole in 0..n_holes {
        for one in 0..=n_holes {
            for other in 0..one {
                clauses.push(vec![-at(one, hole), -at(other, hole)]);
            }
        }
    }
    cnf((n_holes + 1) * n_holes, &clauses)
}
