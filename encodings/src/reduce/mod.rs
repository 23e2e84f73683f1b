//! The question without everything that lies on no cycle, for the plain encodings and `cadical/lazy`.
//!
//! 1. A cycle stays within one strongly connected component of the graph of all known edges and all sides' edges. A side
//!    without an edge inside a component is free: it is taken, its constraint is dropped, and with it the other side;
//!    again, until no side is free.
//! 2. A cycle alternates between known paths and sides' edges, so only the ends of sides' edges are kept as nodes. Known
//!    reachability among them is computed once; the known arcs are its transitive reduction.
//! 3. An edge that a known path runs against makes its side impossible; an edge that a known path implies is dropped.
//!
//! Invariant: nodes are numbered component by component, and in each by the estimated order, so that every known arc runs
//! to a larger number.

mod contract;
mod rows;

use kingsnake_context::budget::{Budget, StopReason};
use kingsnake_graph::FlatGraph;
use kingsnake_graph::decide::{Question, Side};
use rustsat::types::Lit;

use self::contract::Contraction;
pub(crate) use self::rows::BitRows;
use crate::propagator::start;

/// The reduced question.
pub(crate) struct Arena {
    /// Known reachability, and the components.
    pub rows: BitRows,
    /// The question's node that each node is.
    pub nodes: Vec<u32>,
    /// The known arcs.
    pub known: Vec<(u32, u32)>,
    /// The arcs that some side demands, each once.
    pub arcs: Vec<(u32, u32)>,
    /// Which side demands which arc. The positive literal of variable c stands for the first side of `constraints[c]`.
    pub demands: Vec<(Lit, u32)>,
    /// Sides that cannot be.
    pub impossible: Vec<Lit>,
    /// The constraints that are still open.
    pub constraints: Vec<u32>,
    /// Which side of each of the question's constraints was free.
    pub free: Vec<Option<Side>>,
}

/// Why there is no arena.
pub(crate) enum Failed {
    /// The budget ended.
    Stopped(StopReason),
    /// There is no question: the known graph has a cycle.
    Cyclic,
}

impl From<StopReason> for Failed {
    fn from(reason: StopReason) -> Failed {
        Failed::Stopped(reason)
    }
}

/// Reduces the question.
pub(crate) fn reduce(question: &Question<'_>, budget: &Budget) -> Result<Arena, Failed> {
    budget.check()?;
    let n_edges = question.targets.len() + question.constraints.n_edges();
    budget.reserve(
        "the reduced question",
        24 * question.n_nodes as u64 + 20 * n_edges as u64 + 12 * question.constraints.len() as u64,
    )?;
    let places = start::places(question).ok_or(Failed::Cyclic)?;
    budget.check()?;
    let mut by_place = vec![0u32; question.n_nodes];
    for (node, &place) in places.iter().enumerate() {
        by_place[place as usize] = node as u32;
    }
    let (free, component) = settle(question, budget)?;
    let open = |at: &usize| free[*at].is_none();
    let constraints: Vec<u32> = (0..free.len())
        .filter(open)
        .map(|constraint| constraint as u32)
        .collect();
    let inside = inside(question, &constraints, &component);
    let (nodes, starts) = endpoints(&inside, &component, &places, question.n_nodes);
    let contraction = Contraction {
        question,
        component: &component,
        nodes: &nodes,
        starts: &starts,
        by_place: &by_place,
    };
    let (rows, known) = contraction.run(budget)?;
    let mut arena_of = vec![u32::MAX; question.n_nodes];
    for (at, &node) in nodes.iter().enumerate() {
        arena_of[node as usize] = at as u32;
    }
    let mut arena = Arena {
        rows,
        nodes,
        known,
        arcs: Vec::new(),
        demands: Vec::new(),
        impossible: Vec::new(),
        constraints,
        free,
    };
    let renamed = |&(lit, (from, to)): &(Lit, (u32, u32))| {
        (lit, (arena_of[from as usize], arena_of[to as usize]))
    };
    arena.demand(inside.iter().map(renamed));
    budget.check()?;
    Ok(arena)
}

impl Arena {
    /// Takes the sides' edges: each is impossible, implied, or an arc.
    fn demand(&mut self, edges: impl Iterator<Item = (Lit, (u32, u32))>) {
        let mut demanded = Vec::new();
        for (lit, (from, to)) in edges {
            if from == to || self.rows.reaches(to, from) {
                self.impossible.push(lit);
            } else if !self.rows.reaches(from, to) {
                demanded.push((lit, (from, to)));
            }
        }
        // They come literal by literal.
        self.impossible.dedup();
        let mut impossible = vec![false; 2 * self.constraints.len()];
        for lit in &self.impossible {
            impossible[lit.lidx()] = true;
        }
        demanded.retain(|(lit, _)| !impossible[lit.lidx()]);
        self.arcs.extend(demanded.iter().map(|&(_, arc)| arc));
        self.arcs.sort_unstable();
        self.arcs.dedup();
        for (lit, arc) in demanded {
            if let Ok(at) = self.arcs.binary_search(&arc) {
                self.demands.push((lit, at as u32));
            }
        }
        self.demands.sort_unstable();
        self.demands.dedup();
    }

    /// How many nodes are left.
    pub fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Every arc: the known ones, and those that sides demand, each with its literal.
    pub fn all_arcs<'a>(
        &'a self,
        literals: &'a [Lit],
    ) -> impl Iterator<Item = ((u32, u32), Option<Lit>)> + 'a {
        let open = self.arcs.iter().zip(literals);
        let known = self.known.iter().map(|&arc| (arc, None));
        known.chain(open.map(|(&arc, &lit)| (arc, Some(lit))))
    }

    /// A side for each of the question's constraints, given those of the open ones.
    pub fn choices(&self, chosen: impl Fn(u32) -> Side) -> Vec<Side> {
        let mut next_open = 0u32..;
        self.free
            .iter()
            .map(|free| free.unwrap_or_else(|| next_open.next().map_or(Side::Either, &chosen)))
            .collect()
    }
}

/// Takes free sides until there is none; returns them, and the components of what is left.
#[allow(clippy::type_complexity)]
fn settle(
    question: &Question<'_>,
    budget: &Budget,
) -> Result<(Vec<Option<Side>>, Vec<u32>), StopReason> {
    let constraints = question.constraints;
    let mut free: Vec<Option<Side>> = vec![None; constraints.len()];
    loop {
        let known = (0..question.n_nodes).flat_map(|from| {
            let range = question.starts[from] as usize..question.starts[from + 1] as usize;
            let targets = &question.targets[range];
            targets.iter().map(move |&to| (from as u32, to))
        });
        let sides = (0..constraints.len())
            .filter(|&at| free[at].is_none())
            .flat_map(|at| {
                [Side::Either, Side::Or].into_iter().flat_map(move |side| {
                    let edges = constraints.side(at, side);
                    edges.iter().map(|edge| (edge.from, edge.to))
                })
            });
        let component = FlatGraph::new(question.n_nodes, known.chain(sides)).components();
        budget.check()?;
        let mut found = false;
        for (at, free) in free.iter_mut().enumerate() {
            let crosses = |side: &Side| {
                constraints
                    .side(at, *side)
                    .iter()
                    .all(|edge| component[edge.from as usize] != component[edge.to as usize])
            };
            if free.is_none() {
                *free = [Side::Either, Side::Or].into_iter().find(crosses);
                found |= free.is_some();
            }
        }
        if !found {
            return Ok((free, component));
        }
    }
}

/// The edges of the open constraints inside the components, with the literal of their side.
fn inside(question: &Question<'_>, open: &[u32], component: &[u32]) -> Vec<(Lit, (u32, u32))> {
    let mut inside = Vec::new();
    for (variable, &constraint) in open.iter().enumerate() {
        for side in [Side::Either, Side::Or] {
            let lit = Lit::new(variable as u32, side == Side::Or);
            for edge in question.constraints.side(constraint as usize, side) {
                if component[edge.from as usize] == component[edge.to as usize] {
                    inside.push((lit, (edge.from, edge.to)));
                }
            }
        }
    }
    inside
}

/// The ends of these edges by component and place, and where each component starts.
fn endpoints(
    inside: &[(Lit, (u32, u32))],
    component: &[u32],
    places: &[u32],
    n_nodes: usize,
) -> (Vec<u32>, Vec<u32>) {
    let mut first_place = vec![u32::MAX; n_nodes];
    let mut nodes: Vec<u32> = inside
        .iter()
        .flat_map(|&(_, (from, to))| [from, to])
        .collect();
    for &node in &nodes {
        let first = &mut first_place[component[node as usize] as usize];
        *first = (*first).min(places[node as usize]);
    }
    let key = |node: u32| {
        let first = first_place[component[node as usize] as usize];
        (first, places[node as usize])
    };
    nodes.sort_unstable_by_key(|&node| key(node));
    nodes.dedup();
    let mut starts = vec![0];
    for at in 1..nodes.len() {
        if component[nodes[at] as usize] != component[nodes[at - 1] as usize] {
            starts.push(at as u32);
        }
    }
    if !nodes.is_empty() {
        starts.push(nodes.len() as u32);
    }
    (nodes, starts)
}
