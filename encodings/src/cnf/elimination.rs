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

use kingsnake_context::budget::{Budget, StopReason};
use rustsat::encodings::CollectClauses;
use rustsat::types::Lit;

use super::{Encoding, Sink, Size};
use crate::reduce::{Arena, BitRows};

pub(crate) struct Elimination {
    n_arcs: u32,
    /// The arcs that are filled in, numbered after the arena's own.
    filled: Vec<(u32, u32)>,
    /// Two arcs imply a third, or exclude each other; [`NONE`] where there is none.
    clauses: Vec<[u32; 3]>,
    size: Size,
}

const NONE: u32 = u32::MAX;

/// An arc among what is left: known, or with a number.
#[derive(Clone, Copy, PartialEq)]
enum Arc {
    Known,
    If(u32),
}

/// What is left of the graph.
struct Left<'a> {
    rows: &'a BitRows,
    out: Vec<BTreeMap<u32, Arc>>,
    into: Vec<BTreeSet<u32>>,
    /// Bits of the nodes that are left, laid out as the component's rows are.
    present: Vec<Vec<u64>>,
}

impl Left<'_> {
    fn new(arena: &Arena) -> Left<'_> {
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
            left.link(from, to, Arc::If(at as u32));
        }
        left
    }

    fn link(&mut self, from: u32, to: u32, arc: Arc) {
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

    fn run(&mut self, budget: &Budget, said: &mut Elimination) -> Result<(), StopReason> {
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
            let neighbours = self.remove(node, budget, said)?;
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
        budget: &Budget,
        said: &mut Elimination,
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
                self.join((from, first), (to, second), said);
            }
            budget.check()?;
            // What is kept here, and what the solver will keep.
            let kept = 12 * said.clauses.len() as u64;
            budget.reserve(Elimination::NAME, said.size.bytes() + kept)?;
        }
        let mut neighbours = into;
        neighbours.extend(out.keys());
        Ok(neighbours)
    }

    /// A path of two arcs becomes one arc.
    fn join(
        &mut self,
        (from, first): (u32, Arc),
        (to, second): (u32, Arc),
        said: &mut Elimination,
    ) {
        let number = |arc| match arc {
            Arc::Known => NONE,
            Arc::If(number) => number,
        };
        let given = [number(first), number(second)];
        if from == to || self.rows.reaches(to, from) {
            said.clause(given, NONE);
        } else if given == [NONE; 2] {
            if !self.between(from, to) {
                self.link(from, to, Arc::Known);
            }
        } else if !self.rows.reaches(from, to) {
            // A known arc would be a known path.
            let then = if let Some(&arc) = self.out[from as usize].get(&to) {
                number(arc)
            } else {
                let filled = said.fill(from, to);
                self.link(from, to, Arc::If(filled));
                filled
            };
            said.clause(given, then);
        }
    }
}

impl Elimination {
    /// Numbers a new arc.
    fn fill(&mut self, from: u32, to: u32) -> u32 {
        self.filled.push((from, to));
        let number = self.n_arcs + self.filled.len() as u32 - 1;
        self.size.variables += 1;
        number
    }

    fn clause(&mut self, given: [u32; 2], then: u32) {
        let clause = [given[0], given[1], then];
        self.size.clauses += 1;
        self.size.literals += clause.iter().filter(|&&arc| arc != NONE).count() as u64;
        self.clauses.push(clause);
    }
}

impl Encoding for Elimination {
    const NAME: &'static str = "cadical/elimination";

    /// No formula in closed form: the elimination is run, and its clauses are kept. At most the sum, over the nodes in the
    /// order in which they leave, of in-degree times out-degree at that moment; a variable for each arc that is filled in.
    fn plan(arena: &Arena, budget: &Budget) -> Result<Elimination, StopReason> {
        let mut said = Elimination {
            n_arcs: arena.arcs.len() as u32,
            filled: Vec::new(),
            clauses: Vec::new(),
            size: Size::default(),
        };
        Left::new(arena).run(budget, &mut said)?;
        Ok(said)
    }

    fn size(&self) -> Size {
        self.size
    }

    fn encode<C: CollectClauses>(
        &self,
        _: &Arena,
        arcs: &[Lit],
        sink: &mut Sink<'_, C>,
    ) -> Result<(), StopReason> {
        let mut literals = arcs.to_vec();
        literals.extend(self.filled.iter().map(|(from, to)| sink.literal(from < to)));
        let mut clause = Vec::with_capacity(3);
        for &[first, second, then] in &self.clauses {
            let literal = |arc: u32| literals.get(arc as usize).copied();
            clause.clear();
            clause.extend(
                [first, second]
                    .into_iter()
                    .filter_map(literal)
                    .map(|lit| !lit),
            );
            clause.extend(literal(then));
            sink.clause(&clause)?;
        }
        Ok(())
    }
}
