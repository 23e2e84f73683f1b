//! `cadical/lazy`: solve for the sides alone, look for cycles, forbid them all, and again (counterexample-guided: as lazy SMT does it,
//! de Moura, Rueß and Sorea, 2002).
//!
//! Of every strongly connected component of the chosen graph, a shortest cycle through each node becomes a clause: shortest
//! in sides, since they are the clause's literals, then in arcs.

use std::collections::{BTreeSet, VecDeque};
use std::marker::PhantomData;
use std::sync::mpsc::Sender;
use std::time::Instant;

use kingsnake_context::budget::{Budget, StopReason};
use kingsnake_context::progress::{Progress, ProgressEvent};
use kingsnake_graph::FlatGraph;
use kingsnake_graph::decide::{Backend, DecideError, DecideStats, Decision, Question, Side};
use kingsnake_graph::session::SolverSession;
use rustsat::solvers::Solve;
use rustsat::types::{Lit, TernaryVal};

use super::core::shrink;
use super::kept::KeptLazy;
use super::solver::Cadical;
use super::watched::{Said, search_reduced, solve, watch};
use crate::BackendOptions;
use crate::apart::Apart;
use crate::cnf::{Sink, share};
use crate::grown::Grown;
use crate::reduce::{Arena, Failed, reduce};

pub(crate) const NAME: &str = "cadical/lazy";

/// The back end, and the clauses that it learns from cycles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lazy<F = WholeCycle> {
    seed: u32,
    forbids: PhantomData<F>,
}

/// The clause of a cycle. Tests forbid too much.
pub(crate) trait Forbid: Copy + Send {
    /// The sides that may not be taken together.
    fn of(cycle: Vec<Lit>) -> Vec<Lit>;
}

/// All sides of the cycle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WholeCycle;

impl Forbid for WholeCycle {
    fn of(cycle: Vec<Lit>) -> Vec<Lit> {
        cycle
    }
}

const NONE: u32 = u32::MAX;

/// The chosen arcs: known ones, and for every chosen side its own.
pub(super) struct Chosen {
    graph: FlatGraph,
    /// For each edge of the graph, the side that demands it, as a literal of the arena; none if it is known.
    owner: Vec<Option<Lit>>,
    component: Vec<u32>,
}

impl Chosen {
    fn new(arena: &Arena, sides: &[Lit]) -> Chosen {
        let known = arena.known.iter().map(|&arc| (arc, None));
        let demanded = arena
            .demands
            .iter()
            .filter(|(lit, _)| sides[lit.vidx()] == *lit);
        let demanded = demanded.map(|&(lit, arc)| (arena.arcs[arc as usize], Some(lit)));
        Chosen::of(arena.n_nodes(), known.chain(demanded).collect())
    }

    /// These edges, each with the literal that demands it.
    pub(super) fn of(n_nodes: usize, mut edges: Vec<((u32, u32), Option<Lit>)>) -> Chosen {
        edges.sort_by_key(|&((from, _), _)| from);
        let graph = FlatGraph::new(n_nodes, edges.iter().map(|&(arc, _)| arc));
        Chosen {
            component: graph.components(),
            owner: edges.into_iter().map(|(_, owner)| owner).collect(),
            graph,
        }
    }

    /// The sides of a shortest cycle through a node, if it is on one.
    fn cycle(&self, start: u32, search: &mut LazySearch) -> Option<Vec<Lit>> {
        search.clear();
        search.queue.push_back((start, 0));
        while let Some((node, distance)) = search.queue.pop_front() {
            if search.settled[node as usize] {
                continue;
            }
            search.settled[node as usize] = true;
            search.touched.push(node);
            for edge in self.graph.edges(node) {
                let to = self.graph.target(edge);
                if self.component[to as usize] != self.component[start as usize] {
                    continue;
                }
                let owner = self.owner[edge];
                let next = distance + u32::from(owner.is_some());
                if to == start {
                    // The first edge back need not be the last of a shortest cycle, unless nothing shorter waits.
                    if search.back.is_none_or(|(best, ..)| next < best) {
                        search.back = Some((next, node, edge));
                    }
                } else if next < search.distance[to as usize] {
                    search.distance[to as usize] = next;
                    search.parent[to as usize] = (node, edge);
                    if owner.is_some() {
                        search.queue.push_back((to, next));
                    } else {
                        search.queue.push_front((to, next));
                    }
                }
            }
            let (best, ..) = search.back.unwrap_or((NONE, 0, 0));
            if search.queue.front().is_none_or(|&(_, next)| next >= best) {
                break;
            }
        }
        let (_, mut node, mut edge) = search.back?;
        let mut literals = Vec::new();
        loop {
            literals.extend(self.owner[edge]);
            if node == start {
                break;
            }
            (node, edge) = search.parent[node as usize];
        }
        literals.sort_unstable();
        literals.dedup();
        Some(literals)
    }
}

/// The search's arrays, kept between searches.
struct LazySearch {
    queue: VecDeque<(u32, u32)>,
    distance: Vec<u32>,
    parent: Vec<(u32, usize)>,
    settled: Vec<bool>,
    touched: Vec<u32>,
    /// The best way back to the start: how many sides, from which node, over which edge.
    back: Option<(u32, u32, usize)>,
}

impl LazySearch {
    fn new(n_nodes: usize) -> LazySearch {
        LazySearch {
            queue: VecDeque::new(),
            distance: vec![NONE; n_nodes],
            parent: vec![(NONE, 0); n_nodes],
            settled: vec![false; n_nodes],
            touched: Vec::new(),
            back: None,
        }
    }

    fn clear(&mut self) {
        self.queue.clear();
        // What was reached but not settled has a distance too.
        self.distance.fill(NONE);
        for node in self.touched.drain(..) {
            self.settled[node as usize] = false;
        }
        self.back = None;
    }
}

/// Cycles as the sets of sides that they need.
pub(super) type Cycles = BTreeSet<Vec<Lit>>;

/// How the rounds ended.
enum RoundsEnd {
    /// Without a cycle: a side for each open constraint.
    Met(Vec<Lit>),
    /// Without a choice, because of these cycles.
    Refuted(Cycles),
    Stopped(StopReason),
}

/// Sets of sides that cannot be chosen together and leave no choice, as literals whose variables number the question's
/// constraints; or why there are none.
pub(crate) fn refute(
    question: &Question<'_>,
    seed: u32,
    budget: &Budget,
) -> Result<Vec<Vec<Lit>>, Unrefuted> {
    let arena = reduce(question, budget).map_err(|failed| match failed {
        Failed::Stopped(reason) => Unrefuted::Stopped(reason),
        Failed::Cyclic => Unrefuted::Failed("the known graph has a cycle".to_owned()),
    })?;
    let options = BackendOptions {
        seed,
        ..BackendOptions::default()
    };
    let mut unused = DecideStats::default();
    let ended = Lazy::new(&options).rounds(&arena, budget, None, &mut unused);
    match ended.map_err(Unrefuted::Failed)? {
        RoundsEnd::Met(_) => Err(Unrefuted::Failed("the constraints can be met".to_owned())),
        RoundsEnd::Stopped(reason) => Err(Unrefuted::Stopped(reason)),
        RoundsEnd::Refuted(forbidden) => {
            let impossible = arena.impossible.iter().map(|&lit| vec![lit]);
            let renamed = |lit: &Lit| Lit::new(arena.constraints[lit.vidx()], lit.is_neg());
            Ok(impossible
                .chain(forbidden)
                .map(|cycle| cycle.iter().map(renamed).collect())
                .collect())
        }
    }
}

/// Why there are no cycles that refute a question.
pub(crate) enum Unrefuted {
    Stopped(StopReason),
    Failed(String),
}

/// A shortest cycle through every node that is on one.
pub(super) fn cycles(chosen: &Chosen, budget: &Budget) -> Result<Cycles, StopReason> {
    let n_nodes = chosen.component.len();
    let mut size = vec![0u32; n_nodes];
    for &component in &chosen.component {
        size[component as usize] += 1;
    }
    let mut search = LazySearch::new(n_nodes);
    let mut found = Cycles::new();
    for node in 0..n_nodes as u32 {
        if size[chosen.component[node as usize] as usize] > 1 {
            budget.check()?;
            found.extend(chosen.cycle(node, &mut search));
        }
    }
    Ok(found)
}

impl Lazy {
    /// With these options.
    pub fn new(options: &BackendOptions) -> Lazy {
        Lazy::forbidding(options)
    }
}

impl<F: Forbid> Lazy<F> {
    pub(crate) fn forbidding(options: &BackendOptions) -> Lazy<F> {
        Lazy {
            seed: options.seed,
            forbids: PhantomData,
        }
    }

    fn search(
        self,
        arena: &Arena,
        started: Instant,
        budget: &Budget,
        events: &Sender<ProgressEvent>,
        stats: &mut DecideStats,
    ) -> Result<Decision, String> {
        stats.variables = arena.constraints.len() as u64;
        stats.clauses = arena.impossible.len() as u64;
        stats.encode = started.elapsed();
        let started = Instant::now();
        let decision = match self.rounds(arena, budget, Some(events), stats)? {
            RoundsEnd::Met(sides) => {
                let side = |at: u32| {
                    if sides[at as usize].is_pos() {
                        Side::Either
                    } else {
                        Side::Or
                    }
                };
                Decision::Choices(arena.choices(side))
            }
            RoundsEnd::Refuted(forbidden) => {
                Decision::Core(self.core(arena, &forbidden, budget, events, stats)?)
            }
            RoundsEnd::Stopped(reason) => Decision::Unknown(reason),
        };
        stats.solve = started.elapsed();
        Ok(decision)
    }

    /// Forbids cycles until none is left, or no choice.
    fn rounds(
        self,
        arena: &Arena,
        budget: &Budget,
        events: Option<&Sender<ProgressEvent>>,
        stats: &mut DecideStats,
    ) -> Result<RoundsEnd, String> {
        let mut solver = Cadical::new(self.seed);
        watch(&mut solver, budget, events, arena.constraints.len());
        let mut forbidden = Cycles::new();
        let first = match guesses(arena, budget) {
            Ok(first) => first,
            Err(reason) => return Ok(RoundsEnd::Stopped(reason)),
        };
        // A variable that is new to the solver is false, instead of the preferred value.
        if let Some(last) = first.last() {
            solver
                .reserve(last.var())
                .map_err(|error| error.to_string())?;
        }
        for &lit in &arena.impossible {
            forbid(&mut solver, &first, &[lit])?;
        }
        loop {
            match solve(&mut solver, &[], budget, stats)? {
                Said::Sat => {}
                Said::Unsat => return Ok(RoundsEnd::Refuted(forbidden)),
                Said::Stopped(reason) => return Ok(RoundsEnd::Stopped(reason)),
                Said::GaveUp => return Err("the solver stopped unexpectedly".to_owned()),
            }
            let sides = sides(arena, &first, &solver)?;
            let found = match cycles(&Chosen::new(arena, &sides), budget) {
                Ok(found) => found,
                Err(reason) => return Ok(RoundsEnd::Stopped(reason)),
            };
            if found.is_empty() {
                return Ok(RoundsEnd::Met(sides));
            }
            for cycle in found.into_iter().map(F::of) {
                forbid(&mut solver, &first, &cycle)?;
                stats.cycles += 1;
                if !forbidden.insert(cycle) {
                    return Err("it met a cycle that it had forbidden".to_owned());
                }
            }
        }
    }

    /// The cycles leave no choice; fewer constraints may already have none.
    fn core(
        self,
        arena: &Arena,
        forbidden: &Cycles,
        budget: &Budget,
        events: &Sender<ProgressEvent>,
        stats: &mut DecideStats,
    ) -> Result<Vec<u32>, String> {
        let mut solver = Cadical::new(self.seed);
        watch(&mut solver, budget, Some(events), arena.constraints.len());
        // A literal for each side, and a selector for each constraint.
        let n = arena.constraints.len() as u32;
        let side = |lit: Lit| Lit::positive(lit.lidx() as u32);
        let impossible = arena.impossible.iter().map(std::slice::from_ref);
        for cycle in impossible.chain(forbidden.iter().map(Vec::as_slice)) {
            add(&mut solver, cycle.iter().map(|&lit| !side(lit)))?;
        }
        let selectors: Vec<Lit> = (0..n).map(|at| Lit::positive(2 * n + at)).collect();
        for (at, &selector) in selectors.iter().enumerate() {
            let [first, second] = [false, true].map(|or| side(Lit::new(at as u32, or)));
            add(&mut solver, [!selector, first, second])?;
        }
        let core = shrink(&mut solver, &selectors, budget, stats)?;
        Ok(core
            .into_iter()
            .map(|at| arena.constraints[at as usize])
            .collect())
    }
}

/// For each open constraint, the side that the estimated order prefers: the solver tries a variable's truth first.
fn guesses(arena: &Arena, budget: &Budget) -> Result<Vec<Lit>, StopReason> {
    let mut unused = rustsat::instances::Cnf::new();
    let meaning = share(arena, false, &mut Sink::new(&mut unused, budget))?;
    let guess = |(at, sides): (usize, &[Lit; 2])| Lit::new(at as u32, sides[0].is_neg());
    Ok(meaning.sides.iter().enumerate().map(guess).collect())
}

/// The solver's literal of a side: positive if the side is preferred.
fn spelt(first: &[Lit], side: Lit) -> Lit {
    Lit::new(side.vidx() as u32, first[side.vidx()] != side)
}

fn forbid(solver: &mut Cadical, first: &[Lit], cycle: &[Lit]) -> Result<(), String> {
    add(solver, cycle.iter().map(|&lit| !spelt(first, lit)))
}

fn add(solver: &mut Cadical, literals: impl IntoIterator<Item = Lit>) -> Result<(), String> {
    solver
        .add_clause(literals.into_iter().collect())
        .map_err(|error| error.to_string())
}

/// The sides of the solver's model.
fn sides(arena: &Arena, first: &[Lit], solver: &Cadical) -> Result<Vec<Lit>, String> {
    (0..arena.constraints.len())
        .map(|at| match solver.lit_val(Lit::positive(at as u32)) {
            Ok(TernaryVal::False) => Ok(!first[at]),
            Ok(_) => Ok(first[at]),
            Err(error) => Err(error.to_string()),
        })
        .collect()
}

impl<F: Forbid> Backend for Lazy<F> {
    fn name(&self) -> &str {
        NAME
    }

    fn session<'s>(&'s mut self, question: Question<'_>) -> Box<dyn SolverSession + 's> {
        let (seed, grown) = (self.seed, Grown::new(&question));
        Box::new(Apart::new(NAME, move || KeptLazy::new(seed, grown)))
    }

    fn decide(
        &mut self,
        question: Question<'_>,
        budget: &Budget,
        progress: &mut dyn Progress,
    ) -> Result<(Decision, DecideStats), DecideError> {
        let this = *self;
        search_reduced(
            NAME,
            &question,
            budget,
            progress,
            move |arena, started, events, stats| this.search(arena, started, budget, events, stats),
        )
    }
}
