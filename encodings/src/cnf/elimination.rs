//! `elimination`: nodes leave the graph one by one, and paths through them become arcs between their neighbours (vertex
//! elimination: Rankooh and Rintanen, AAAI 2022).
//!
//! When v leaves, arcs u → v and v → w imply an arc u → w, with a new variable if there is none; if u is w, they exclude each
//! other. The node with the fewest pairs of neighbours leaves first (in-degree times out-degree, ties by number), so the
//! formula stays small on sparse graphs. With known reachability: u → w is certain if a known path leads there, and
//! excluded if one leads back.
//!
//! Invariant: the known arcs among the nodes that are left are the transitive reduction of known reachability among them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use kingsnake_solver::budget::{Budget, StopReason};
use rustsat::encodings::CollectClauses;
use rustsat::types::Lit;

use super::{Encoding, Sink, Size};
use crate::reduce::{Arena, Rows};

pub(crate) struct Elimination;

/// An arc among what is left: known, or with a literal.
#[derive(Clone, Copy, PartialEq)]
enum Arc<L> {
    Known,
    If(L),
}

/// What is left of the graph.
struct Left<'a, L> {
    rows: &'a Rows,
    out: Vec<BTreeMap<u32, Arc<L>>>,
    into: Vec<BTreeSet<u32>>,
    /// Bits of the nodes that are left, laid out as the component's rows are.
    present: Vec<Vec<u64>>,
}

/// Who listens to what the elimination says.
trait Listen<L> {
    /// A new arc's literal, from one node to another.
    fn arc(&mut self, from: u32, to: u32) -> L;
    /// The first two literals, where there are so many, imply the third, or exclude each other.
    fn clause(&mut self, given: [Option<L>; 2], then: Option<L>) -> Result<(), StopReason>;
}

impl<L: Copy> Left<'_, L> {
    fn new(arena: &Arena, literal: impl Fn(usize) -> L) -> Left<'_, L> {
        let n_nodes = arena.n_nodes();
        let present = (0..arena.rows.n_components()).map(|component| {
            let size = arena.rows.members(component).len();
            let mut bits = vec![u64::MAX; size.div_ceil(64)];
            if let (Some(last), rest @ 1..) = (bits.last_mut(), size % 64) {
                *last = (1 << rest) - 1;
            }
            bits
        });
        let mut left = Left {
            present: present.collect(),
            rows: &arena.rows,
            out: (0..n_nodes).map(|_| BTreeMap::new()).collect(),
            into: (0..n_nodes).map(|_| BTreeSet::new()).collect(),
        };
        for &(from, to) in &arena.known {
            left.link(from, to, Arc::Known);
        }
        for (at, &(from, to)) in arena.arcs.iter().enumerate() {
            left.link(from, to, Arc::If(literal(at)));
        }
        left
    }

    fn link(&mut self, from: u32, to: u32, arc: Arc<L>) {
        self.out[from as usize].insert(to, arc);
        self.into[to as usize].insert(from);
    }

    fn cost(&self, node: u32) -> usize {
        self.into[node as usize].len() * self.out[node as usize].len()
    }

    /// Whether some node that is left lies on a known path from one node to another.
    fn between(&self, from: u32, to: u32) -> bool {
        let component = self.rows.component(from);
        let first = self.rows.members(component).start;
        let words = self.rows.row(from).iter().zip(&self.present[component]);
        words.enumerate().any(|(at, (&row, &present))| {
            let mut bits = row & present;
            while bits != 0 {
                let node = first + 64 * at as u32 + bits.trailing_zeros();
                if self.rows.reaches(node, to) {
                    return true;
                }
                bits &= bits - 1;
            }
            false
        })
    }

    fn run(&mut self, budget: &Budget, listen: &mut impl Listen<L>) -> Result<(), StopReason> {
        let mut queue: BinaryHeap<_> = (0..self.out.len() as u32)
            .map(|node| Reverse((self.cost(node), node)))
            .collect();
        let mut gone = vec![false; self.out.len()];
        while let Some(Reverse((cost, node))) = queue.pop() {
            // Entries are not moved when a cost changes; only the latest one of a node counts.
            if gone[node as usize] || cost != self.cost(node) {
                continue;
            }
            budget.check()?;
            gone[node as usize] = true;
            let neighbours = self.remove(node, listen)?;
            for neighbour in neighbours {
                queue.push(Reverse((self.cost(neighbour), neighbour)));
            }
        }
        Ok(())
    }

    /// Takes a node away; returns its neighbours.
    fn remove(
        &mut self,
        node: u32,
        listen: &mut impl Listen<L>,
    ) -> Result<BTreeSet<u32>, StopReason> {
        let component = self.rows.component(node);
        let bit = (node - self.rows.members(component).start) as usize;
        self.present[component][bit / 64] &= !(1 << (bit % 64));
        let out = std::mem::take(&mut self.out[node as usize]);
        let into = std::mem::take(&mut self.into[node as usize]);
        let mut sources = Vec::with_capacity(into.len());
        for &from in &into {
            if let Some(arc) = self.out[from as usize].remove(&node) {
                sources.push((from, arc));
            }
        }
        for &to in out.keys() {
            self.into[to as usize].remove(&node);
        }
        for &(from, first) in &sources {
            for (&to, &second) in &out {
                self.join((from, first), (to, second), listen)?;
            }
        }
        let mut neighbours = into;
        neighbours.extend(out.keys());
        Ok(neighbours)
    }

    /// A path of two arcs becomes one arc.
    fn join(
        &mut self,
        (from, first): (u32, Arc<L>),
        (to, second): (u32, Arc<L>),
        listen: &mut impl Listen<L>,
    ) -> Result<(), StopReason> {
        let literal = |arc| match arc {
            Arc::Known => None,
            Arc::If(lit) => Some(lit),
        };
        let given = [literal(first), literal(second)];
        if from == to || self.rows.reaches(to, from) {
            return listen.clause(given, None);
        }
        if given[0].is_none() && given[1].is_none() {
            if !self.between(from, to) {
                self.link(from, to, Arc::Known);
            }
            return Ok(());
        }
        if self.rows.reaches(from, to) {
            return Ok(());
        }
        let then = match self.out[from as usize].get(&to) {
            Some(&Arc::If(lit)) => lit,
            // Known arcs are known paths, which were met above.
            Some(Arc::Known) => return Ok(()),
            None => {
                let lit = listen.arc(from, to);
                self.link(from, to, Arc::If(lit));
                lit
            }
        };
        listen.clause(given, Some(then))
    }
}

/// Counts, and stops when what is counted does not fit.
struct Counting<'a> {
    size: Size,
    budget: &'a Budget,
}

impl Listen<()> for Counting<'_> {
    fn arc(&mut self, _: u32, _: u32) {
        self.size.variables += 1;
    }

    fn clause(&mut self, given: [Option<()>; 2], then: Option<()>) -> Result<(), StopReason> {
        self.size.clauses += 1;
        let literals = given.iter().flatten().count() + then.iter().count();
        self.size.literals += literals as u64;
        if self.size.clauses.is_multiple_of(4096) {
            self.budget.check()?;
            self.budget.reserve(Elimination::NAME, self.size.bytes())?;
        }
        Ok(())
    }
}

impl<C: CollectClauses> Listen<Lit> for Sink<'_, C> {
    fn arc(&mut self, from: u32, to: u32) -> Lit {
        self.literal(from < to)
    }

    fn clause(&mut self, given: [Option<Lit>; 2], then: Option<Lit>) -> Result<(), StopReason> {
        let mut clause = Vec::with_capacity(3);
        clause.extend(given.into_iter().flatten().map(|lit| !lit));
        clause.extend(then);
        Sink::clause(self, &clause)
    }
}

impl Encoding for Elimination {
    const NAME: &'static str = "cadical/elimination";

    /// No formula in closed form: the elimination is run without its clauses. At most the sum, over the nodes in the order
    /// in which they leave, of in-degree times out-degree at that moment; a variable for each arc that is filled in.
    fn size(arena: &Arena, budget: &Budget) -> Result<Size, StopReason> {
        let mut counting = Counting {
            size: Size::default(),
            budget,
        };
        Left::new(arena, |_| ()).run(budget, &mut counting)?;
        Ok(counting.size)
    }

    fn encode<C: CollectClauses>(
        arena: &Arena,
        arcs: &[Lit],
        sink: &mut Sink<'_, C>,
    ) -> Result<(), StopReason> {
        let budget = sink.budget;
        Left::new(arena, |at| arcs[at]).run(budget, sink)
    }
}
