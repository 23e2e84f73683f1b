//! Acyclicity for `CaDiCaL`, as an external propagator (IPASIR-UP: Fazekas et al., SAT 2023).
//!
//! Invariant: `queue` holds what the solver has assigned, in its order; of these the first `n_done` literals have their edges
//! in the order. A literal whose edge closes a cycle waits there, and all that come after it wait behind it: an assignment
//! that arrives while a lemma is pending must not be lost. A pending lemma is void after a backtrack.

use std::rc::Rc;

use cadical_sys::ExternalPropagator;
use kingsnake_context::progress::ProgressEvent;
use rustsat::types::Lit;

use super::cycle::CycleSearch;
use super::graph::Sides;
use super::order::Order;
use super::ranked::Ranked;
use super::reach::SideReach;
use super::repair::Repair;
use super::unmet::Unmet;
use super::watch::Watch;
use crate::faults::Faults;

/// How the next constraint to decide is chosen.
pub(crate) enum Choose {
    /// The order: only what it violates.
    Repair(Repair),
    /// A list: the first that is open.
    Listed {
        open: Ranked,
        by_rank: Vec<u32>,
        rank_of: Vec<u32>,
    },
    /// The solver.
    Solver,
}

/// The limits of the search.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// It gives up after this many conflicts with cycles.
    pub max_cycles: u64,
    /// Theory propagation visits this many nodes in each direction; 0 is off.
    pub propagate: usize,
    /// Whether cycles are minimised.
    pub minimise: bool,
}

/// The state between callbacks.
pub(crate) struct Theory {
    sides: Rc<Sides>,
    order: Order,
    search: CycleSearch,
    choose: Choose,
    first: Vec<Lit>,
    /// By variable: 0 open, 1 true, -1 false.
    values: Vec<i8>,
    queue: Vec<Lit>,
    /// How many edges were linked before each literal that is done.
    linked_before: Vec<u32>,
    n_done: usize,
    /// The queue's length at the start of each decision level.
    levels: Vec<u32>,
    lemma: Option<Lemma>,
    reach: Option<SideReach>,
    /// Edges of open sides that would close a cycle, and whose lemmas have not been given.
    impossible: Vec<u32>,
    /// Whether a lemma's cycle has as few decided edges as possible; else it is any short one.
    minimise: bool,
    /// Clauses of the solver that its assignment and the order may not meet yet.
    unmet: Unmet,
    /// By variable, whether it is settled for good.
    fixed: Vec<bool>,
    spare: Vec<Lit>,
    /// All lemmas ever given, each closed by 0, as the solver spells them.
    lemmas: Vec<i32>,
    n_cycles: u64,
    /// Of these, those that were conflicts.
    n_conflicts: u64,
    /// The search gives up after this many.
    max_cycles: u64,
    witness: Option<Vec<Lit>>,
    failure: Option<&'static str>,
    watch: Rc<Watch>,
    faults: Faults,
}

/// A clause that waits to be read.
struct Lemma {
    literals: Vec<Lit>,
    read: usize,
}

impl Theory {
    #[allow(clippy::too_many_arguments)] // Each is a part of the state.
    pub fn new(
        sides: Rc<Sides>,
        order: Order,
        choose: Choose,
        first: Vec<Lit>,
        limits: Limits,
        unmet: Unmet,
        watch: Rc<Watch>,
        faults: Faults,
    ) -> Theory {
        let n_nodes = order.places().len();
        let propagates = limits.propagate > 0;
        let reach = propagates.then(|| SideReach::new(&sides, n_nodes, limits.propagate));
        Theory {
            search: CycleSearch::new(n_nodes),
            values: vec![0; sides.n_constraints()],
            fixed: vec![false; sides.n_constraints()],
            sides,
            order,
            choose,
            first,
            queue: Vec::new(),
            linked_before: Vec::new(),
            n_done: 0,
            levels: Vec::new(),
            lemma: None,
            reach,
            impossible: Vec::new(),
            minimise: limits.minimise,
            unmet,
            spare: Vec::new(),
            lemmas: Vec::new(),
            n_cycles: 0,
            n_conflicts: 0,
            max_cycles: limits.max_cycles,
            witness: None,
            failure: None,
            watch,
            faults,
        }
    }

    /// The sides that the order satisfies, if it satisfies all constraints.
    pub fn take_witness(&mut self) -> Option<Vec<Lit>> {
        self.witness.take()
    }

    /// The order's places.
    pub fn places(&self) -> &[u32] {
        self.order.places()
    }

    /// The lemmas, each closed by 0.
    pub fn take_lemmas(&mut self) -> Vec<i32> {
        std::mem::take(&mut self.lemmas)
    }

    /// How many cycles became lemmas.
    pub fn n_cycles(&self) -> u64 {
        self.n_cycles
    }

    /// Whether it gave up.
    pub fn gave_up(&self) -> bool {
        self.n_conflicts >= self.max_cycles
    }

    /// The internal error, if there was one.
    pub fn failure(&self) -> Option<&'static str> {
        self.failure
    }

    /// Inserts the edges of the literals that wait, up to the first cycle.
    fn work(&mut self) {
        if self.faults.drop_pending() && self.lemma.is_some() {
            self.drop_waiting();
        }
        while self.lemma.is_none() && !self.watch.finished() {
            if self.n_done.is_multiple_of(64) && self.watch.over() {
                return;
            }
            if let Some(edge) = self.impossible.pop() {
                let owner = self.sides.owner(edge as usize);
                if self.values[owner.vidx()] == 0 {
                    self.explain(edge as usize, false);
                }
                continue;
            }
            let Some(&lit) = self.queue.get(self.n_done) else {
                return;
            };
            let n_linked = self.order.n_linked();
            let closing = self.sides.edges(lit).find(|&edge| !self.order.insert(edge));
            if let Some(edge) = closing {
                self.explain(edge, true);
                self.order.shrink(n_linked);
            } else {
                self.linked_before.push(n_linked as u32);
                self.n_done += 1;
                self.look_ahead(lit);
            }
        }
    }

    /// Finds sides that the edges of this literal make impossible.
    fn look_ahead(&mut self, lit: Lit) {
        let Some(reach) = &mut self.reach else {
            return;
        };
        for edge in self.sides.edges(lit) {
            reach.impossible(&self.order, edge, &mut self.impossible);
        }
        let (sides, values) = (&self.sides, &self.values);
        self.impossible
            .retain(|&edge| values[sides.owner(edge as usize).vidx()] == 0);
    }

    /// Makes a lemma of the cycle that the edge closes, or would close: then the lemma is no conflict yet.
    fn explain(&mut self, edge: usize, is_conflict: bool) {
        let owner = self.sides.owner(edge);
        let mut literals = std::mem::take(&mut self.spare);
        let (minimise, fixed) = (self.minimise, &self.fixed);
        let free = |lit: Lit| lit == owner || !minimise || fixed[lit.vidx()];
        if !self.search.explain(&self.order, edge, free, &mut literals) {
            self.failure = Some("the order saw a cycle that is none");
            self.watch.finish();
            return;
        }
        if self.faults.short_lemma() && literals.len() > 2 {
            literals.retain(|&lit| lit != owner);
        }
        for lit in &mut literals {
            *lit = !*lit;
        }
        self.lemmas
            .extend(literals.iter().map(|lit| lit.to_ipasir()));
        self.lemmas.push(0);
        self.n_cycles += 1;
        self.n_conflicts += u64::from(is_conflict);
        if self.n_conflicts >= self.max_cycles {
            self.watch.finish();
        }
        self.lemma = Some(Lemma { literals, read: 0 });
    }

    /// A mutant's mistake: while a lemma is pending, even over a backtrack, waiting literals count as done without their edges.
    fn drop_waiting(&mut self) {
        while self.n_done < self.queue.len() {
            self.linked_before.push(self.order.n_linked() as u32);
            self.n_done += 1;
        }
    }

    fn assign(&mut self, lit: Lit) {
        let value = if lit.is_pos() { 1 } else { -1 };
        // Assignments at the root may be reported twice.
        if self.values[lit.vidx()] == value {
            return;
        }
        self.values[lit.vidx()] = value;
        // Only where there are clauses: elsewhere a core is better made of cycles that name all their sides.
        self.fixed[lit.vidx()] = self.levels.is_empty() && !self.unmet.is_empty();
        self.queue.push(lit);
        if let Choose::Listed { open, rank_of, .. } = &mut self.choose {
            open.remove(rank_of[lit.vidx()] as usize);
        }
    }

    fn backtrack(&mut self, level: usize) {
        if !self.faults.drop_pending() {
            self.lemma = None;
        }
        let Some(&keep) = self.levels.get(level) else {
            return;
        };
        self.levels.truncate(level);
        self.impossible.clear();
        let keep = keep as usize;
        for lit in self.queue.drain(keep..) {
            self.values[lit.vidx()] = 0;
            if let Choose::Listed { open, rank_of, .. } = &mut self.choose {
                open.insert(rank_of[lit.vidx()] as usize);
            }
        }
        if keep < self.n_done {
            self.order.shrink(self.linked_before[keep] as usize);
            self.linked_before.truncate(keep);
            self.n_done = keep;
        }
    }

    fn decide(&mut self) -> Option<Lit> {
        self.work();
        if self.lemma.is_some() || self.watch.finished() {
            return None;
        }
        let constraint = match &mut self.choose {
            Choose::Repair(repair) => match repair.first(&mut self.order) {
                Some(constraint) => Some(constraint),
                None => return self.finish_or_meet(),
            },
            Choose::Listed { open, by_rank, .. } => open.first().map(|rank| by_rank[rank] as usize),
            Choose::Solver => None,
        };
        self.watch.tell(|| ProgressEvent::Deciding {
            conflicts: self.n_cycles,
            settled: self.queue.len(),
            variables: self.values.len(),
        });
        // An order that obeys all assigned sides violates none of them; only a mutant's does.
        constraint
            .filter(|&constraint| self.values[constraint] == 0)
            .map(|constraint| self.first[constraint])
    }
}

impl Theory {
    /// The order violates no constraint: it is the witness, unless a clause is not met yet; then decides a literal of that.
    fn finish_or_meet(&mut self) -> Option<Lit> {
        let (sides, places, first) = (&self.sides, self.order.places(), &self.first);
        let (values, is_plain) = (&self.values, self.unmet.is_empty());
        let taken = |variable: usize| {
            let first = if is_plain {
                Lit::positive(variable as u32)
            } else {
                first[variable]
            };
            match values[variable] {
                0 if sides.forward(first, places) => first,
                0 => !first,
                value => Lit::new(variable as u32, value < 0),
            }
        };
        let Some(clause) = self.unmet.next(|lit| taken(lit.vidx()) == lit) else {
            self.witness = Some((0..values.len()).map(taken).collect());
            self.watch.finish();
            return None;
        };
        let mut open = clause.iter().filter(|lit| values[lit.vidx()] == 0);
        let forward = { open.clone() }.filter(|&&lit| sides.forward(lit, places));
        // Of the candidates of a read, the nearest before it is the likeliest.
        let is_choice = clause.iter().all(|lit| lit.is_pos());
        let distance = |lit: &&Lit| {
            if is_choice {
                sides.slack(**lit, places)
            } else {
                0
            }
        };
        let forward = forward.min_by_key(distance);
        forward.or_else(|| open.next()).copied()
    }
}

impl ExternalPropagator for Theory {
    fn notify_assignment(&mut self, lits: &[i32]) {
        for &lit in lits {
            match Lit::from_ipasir(lit) {
                Ok(lit) if lit.vidx() < self.values.len() => self.assign(lit),
                _ => self.failure = Some("the solver assigned a literal it was not given"),
            }
        }
        if self.faults.drop_pending() {
            self.work();
        }
    }

    fn notify_new_decision_level(&mut self) {
        self.levels.push(self.queue.len() as u32);
    }

    fn notify_backtrack(&mut self, new_level: usize) {
        self.backtrack(new_level);
    }

    fn cb_check_found_model(&mut self, _model: &[i32]) -> bool {
        self.work();
        self.lemma.is_none()
    }

    fn cb_decide(&mut self) -> i32 {
        self.decide().map_or(0, Lit::to_ipasir)
    }

    fn cb_propagate(&mut self) -> i32 {
        self.work();
        0
    }

    fn cb_has_external_clause(&mut self, is_forgettable: &mut bool) -> bool {
        *is_forgettable = true;
        self.work();
        self.lemma.is_some()
    }

    fn cb_add_external_clause_lit(&mut self) -> i32 {
        let Some(lemma) = &mut self.lemma else {
            return 0;
        };
        if let Some(lit) = lemma.literals.get(lemma.read) {
            lemma.read += 1;
            return lit.to_ipasir();
        }
        if let Some(lemma) = self.lemma.take() {
            self.spare = lemma.literals;
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use kingsnake_context::budget::Budget;
    use kingsnake_graph::decide::{Constraints, Question};
    use kingsnake_graph::{Edge, Reason};

    use super::super::graph::Known;
    use super::*;

    /// Three nodes; constraint c orders the c-th pair of 0-1, 1-2, 2-0, so that all true or all false is a cycle.
    fn triangle(faults: Faults, propagate: usize) -> Theory {
        let mut constraints = Constraints::default();
        for (from, to) in [(0, 1), (1, 2), (2, 0)] {
            let reason = Reason::NONE;
            constraints.push(
                [Edge { from, to, reason }],
                [Edge {
                    from: to,
                    to: from,
                    reason,
                }],
            );
        }
        let question = Question {
            n_nodes: 3,
            starts: &[0; 4],
            targets: &[],
            order: &[0, 1, 2],
            constraints: &constraints,
            estimate: &[],
            has_choices: false,
        };
        let known = Rc::new(Known::of(&question));
        let sides = Rc::new(Sides::of(&constraints, 0..3));
        let order = Order::new(known, Rc::clone(&sides), vec![0, 1, 2], false);
        let first = (0..3).map(Lit::positive).collect();
        let watch = Watch::new(Budget::unlimited(), None);
        let limits = Limits {
            max_cycles: u64::MAX,
            propagate,
            minimise: true,
        };
        let unmet = Unmet::default();
        Theory::new(
            sides,
            order,
            Choose::Solver,
            first,
            limits,
            unmet,
            watch,
            faults,
        )
    }

    fn read(theory: &mut Theory) -> Vec<i32> {
        let mut forgettable = false;
        assert!(theory.cb_has_external_clause(&mut forgettable));
        std::iter::from_fn(|| Some(theory.cb_add_external_clause_lit()).filter(|&lit| lit != 0))
            .collect()
    }

    #[test]
    fn a_cycle_becomes_the_clause_of_its_literals() {
        let mut theory = triangle(Faults::default(), 0);
        theory.notify_new_decision_level();
        theory.notify_assignment(&[1, 2, 3]);
        let mut clause = read(&mut theory);
        clause.sort_unstable();
        assert_eq!(clause, [-3, -2, -1]);
    }

    #[test]
    fn a_side_that_would_close_a_cycle_is_ruled_out_before_it_is_tried() {
        let mut theory = triangle(Faults::default(), 3);
        theory.notify_new_decision_level();
        theory.notify_assignment(&[1]);
        theory.cb_propagate();
        assert!(theory.lemma.is_none());
        theory.notify_assignment(&[2]);
        let mut clause = read(&mut theory);
        clause.sort_unstable();
        assert_eq!(clause, [-3, -2, -1]);
        assert!(!theory.gave_up() && theory.n_conflicts == 0);
    }

    #[test]
    fn what_waits_behind_a_lemma_is_not_lost_when_it_outlives_the_lemma() {
        let mut theory = triangle(Faults::default(), 0);
        theory.notify_new_decision_level();
        theory.notify_assignment(&[1, 2]);
        theory.notify_new_decision_level();
        theory.notify_assignment(&[3]);
        theory.cb_propagate();
        assert!(theory.lemma.is_some());
        // The solver found a conflict of its own, goes back, and now derives the third literal a level earlier.
        theory.notify_backtrack(1);
        assert!(
            theory.lemma.is_none(),
            "the lemma is not falsified any more"
        );
        theory.notify_assignment(&[3]);
        assert_eq!(read(&mut theory).len(), 3);
    }

    #[test]
    fn backtracking_unlinks_exactly_what_came_later() {
        let mut theory = triangle(Faults::default(), 0);
        for (level, lit) in [1, 2].into_iter().enumerate() {
            theory.notify_new_decision_level();
            theory.notify_assignment(&[lit]);
            theory.cb_propagate();
            assert_eq!(theory.order.n_linked(), level + 1);
        }
        theory.notify_backtrack(1);
        assert_eq!((theory.order.n_linked(), theory.queue.len()), (1, 1));
        assert_eq!(theory.values, [1, 0, 0]);
    }
}
