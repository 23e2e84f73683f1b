//! The question in flat arrays: the known graph both ways, and the edges of every side by literal.
//!
//! Invariant: an edge of a side has one index everywhere, and the edges of one literal are consecutive.

use kingsnake_graph::decide::{Constraints, Question, Side};
use rustsat::types::Lit;

/// The known edges, by source and by target.
pub(crate) struct Known {
    n_nodes: usize,
    out_starts: Vec<u32>,
    out: Vec<u32>,
    in_starts: Vec<u32>,
    into: Vec<u32>,
}

impl Known {
    /// Copies the question's graph, because the solver's callbacks must own what they use, and turns it round.
    pub fn of(question: &Question<'_>) -> Known {
        let n_nodes = question.n_nodes;
        let mut in_starts = vec![0u32; n_nodes + 1];
        for &to in question.targets {
            in_starts[to as usize + 1] += 1;
        }
        for node in 0..n_nodes {
            in_starts[node + 1] += in_starts[node];
        }
        let mut into = vec![0u32; question.targets.len()];
        let mut at = in_starts.clone();
        for from in 0..n_nodes {
            let range = question.starts[from] as usize..question.starts[from + 1] as usize;
            for &to in &question.targets[range] {
                into[at[to as usize] as usize] = from as u32;
                at[to as usize] += 1;
            }
        }
        Known {
            n_nodes,
            out_starts: question.starts.to_vec(),
            out: question.targets.to_vec(),
            in_starts,
            into,
        }
    }

    /// The bytes that [`Known::of`] will take.
    pub fn bytes(question: &Question<'_>) -> u64 {
        4 * (3 * question.n_nodes as u64 + 2 * question.targets.len() as u64)
    }

    pub fn n_nodes(&self) -> usize {
        self.n_nodes
    }

    pub fn n_edges(&self) -> usize {
        self.out.len()
    }

    #[inline]
    pub fn successors(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.out[self.out_starts[node] as usize..self.out_starts[node + 1] as usize]
    }

    #[inline]
    pub fn predecessors(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.into[self.in_starts[node] as usize..self.in_starts[node + 1] as usize]
    }
}

/// The edges of the sides. The positive literal of variable c stands for the first side of constraint c.
pub(crate) struct Sides {
    /// By literal, as [`Lit::lidx`] numbers them.
    starts: Vec<u32>,
    from: Vec<u32>,
    to: Vec<u32>,
    owner: Vec<Lit>,
}

impl Sides {
    /// The sides of the chosen constraints, renumbered in the order given.
    pub fn of(constraints: &Constraints, chosen: impl IntoIterator<Item = usize>) -> Sides {
        let mut sides = Sides {
            starts: vec![0],
            from: Vec::new(),
            to: Vec::new(),
            owner: Vec::new(),
        };
        for (variable, constraint) in chosen.into_iter().enumerate() {
            for side in [Side::Either, Side::Or] {
                let lit = Lit::new(variable as u32, side == Side::Or);
                for edge in constraints.side(constraint, side) {
                    sides.from.push(edge.from);
                    sides.to.push(edge.to);
                    sides.owner.push(lit);
                }
                sides.starts.push(sides.from.len() as u32);
            }
        }
        sides
    }

    pub fn n_constraints(&self) -> usize {
        self.starts.len() / 2
    }

    pub fn n_edges(&self) -> usize {
        self.from.len()
    }

    /// The indices of the edges that this literal demands.
    #[inline]
    pub fn edges(&self, lit: Lit) -> std::ops::Range<usize> {
        self.starts[lit.lidx()] as usize..self.starts[lit.lidx() + 1] as usize
    }

    #[inline]
    pub fn ends(&self, edge: usize) -> (u32, u32) {
        (self.from[edge], self.to[edge])
    }

    #[inline]
    pub fn owner(&self, edge: usize) -> Lit {
        self.owner[edge]
    }

    /// Whether all edges of the literal run forward in these places.
    #[inline]
    pub fn forward(&self, lit: Lit, places: &[u32]) -> bool {
        self.edges(lit)
            .all(|edge| places[self.from[edge] as usize] < places[self.to[edge] as usize])
    }

    /// The shortest way that an edge of the literal, all of whose edges run forward, runs in these places.
    pub fn slack(&self, lit: Lit, places: &[u32]) -> u32 {
        let ways = self
            .edges(lit)
            .map(|edge| places[self.to[edge] as usize] - places[self.from[edge] as usize]);
        ways.min().unwrap_or(u32::MAX)
    }

    /// Whether neither side of the constraint holds in these places.
    pub fn is_violated(&self, constraint: u32, places: &[u32]) -> bool {
        let lit = Lit::positive(constraint);
        !self.forward(lit, places) && !self.forward(!lit, places)
    }
}

/// The side that a literal stands for.
pub(crate) fn side_of(lit: Lit) -> Side {
    if lit.is_pos() { Side::Either } else { Side::Or }
}

/// Whether the known graph and the chosen sides have no cycle together: these places put all their edges forward, or a sort does.
pub(crate) fn acyclic(known: &Known, sides: &Sides, chosen: &[Lit], places: &[u32]) -> bool {
    let nodes = 0..known.n_nodes() as u32;
    let is_forward = |from: u32, to: u32| match (places.get(from as usize), places.get(to as usize))
    {
        (Some(from), Some(to)) => from < to,
        _ => false,
    };
    let mut known_edges =
        nodes.flat_map(|from| known.successors(from).iter().map(move |&to| (from, to)));
    chosen.iter().all(|&lit| {
        let mut edges = sides.edges(lit).map(|edge| sides.ends(edge));
        edges.all(|(from, to)| is_forward(from, to))
    }) && known_edges.all(|(from, to)| is_forward(from, to))
        || sorted(known, sides, chosen)
}

/// Whether the known graph and the chosen sides have no cycle together, by Kahn's topological sort.
fn sorted(known: &Known, sides: &Sides, chosen: &[Lit]) -> bool {
    let n_nodes = known.n_nodes();
    let mut waiting: Vec<u32> = (0..n_nodes as u32)
        .map(|node| known.predecessors(node).len() as u32)
        .collect();
    let mut starts = vec![0u32; n_nodes + 1];
    let edges = || chosen.iter().flat_map(|&lit| sides.edges(lit));
    for edge in edges() {
        let (from, to) = sides.ends(edge);
        waiting[to as usize] += 1;
        starts[from as usize + 1] += 1;
    }
    for node in 0..n_nodes {
        starts[node + 1] += starts[node];
    }
    let mut targets = vec![0u32; starts[n_nodes] as usize];
    let mut at = starts.clone();
    for edge in edges() {
        let (from, to) = sides.ends(edge);
        targets[at[from as usize] as usize] = to;
        at[from as usize] += 1;
    }
    let mut ready: Vec<u32> = (0..n_nodes as u32)
        .filter(|&node| waiting[node as usize] == 0)
        .collect();
    let mut n_sorted = 0;
    while let Some(node) = ready.pop() {
        n_sorted += 1;
        let chosen = starts[node as usize] as usize..starts[node as usize + 1] as usize;
        for &to in known.successors(node).iter().chain(&targets[chosen]) {
            waiting[to as usize] -= 1;
            if waiting[to as usize] == 0 {
                ready.push(to);
            }
        }
    }
    n_sorted == n_nodes
}
