//! Settles variables and guarded edges by reachability: an edge that would close a cycle makes its guard impossible, a
//! clause with one literal left makes it true, and a guard that holds makes its edge known.
//!
//! Where a clause has no literal left, the edge that ruled out one of them becomes known: the cycle is the contradiction.

use rustc_hash::FxHashSet;

use super::PruneOptions;
use super::engine::Rest;
use super::judge::{Judge, Reaches};
use super::open::Placed;
use super::residue::{LiteralValue, number, residue, write};
use crate::decide::Constraints;
use crate::edge::Edge;
use crate::logic::{Guarded, Literal, Logic};
use crate::problem::Problem;
use crate::session::Growth;

/// The decided part so far.
#[derive(Debug, Default)]
pub(super) struct Settling {
    values: Vec<Option<bool>>,
    /// For each variable that an edge made false, or true, that edge.
    culprits: Vec<Option<Edge>>,
    /// Orders that were forced and that reachability may not show yet.
    orders: FxHashSet<(u32, u32)>,
    /// Guarded edges that are known, implied or never needed.
    is_done: Vec<bool>,
    /// Whether a clause has no literal left, and no edge is to blame.
    pub(super) is_contradiction: bool,
}

impl Settling {
    pub(super) fn new(logic: &Logic) -> Self {
        Settling {
            values: vec![None; logic.n_variables()],
            culprits: vec![None; logic.n_variables()],
            is_done: vec![false; logic.guarded().len()],
            ..Settling::default()
        }
    }

    /// Settles what follows from the closure; appends the edges that become known.
    pub(super) fn round<R: Reaches>(
        &mut self,
        logic: &Logic,
        judge: &Judge<'_, R>,
        edges: &mut Vec<Edge>,
    ) {
        loop {
            let mut changed = false;
            for (at, guarded) in logic.guarded().enumerate() {
                if !self.is_done[at] {
                    changed |= self.edge(at, guarded, judge, edges);
                }
            }
            for clause in logic.clauses() {
                changed |= self.clause(clause, judge, edges);
                if self.is_contradiction {
                    return;
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// The known value of a literal.
    pub(super) fn value<R: Reaches>(&self, literal: Literal, judge: &Judge<'_, R>) -> Option<bool> {
        match literal {
            Literal::Variable(variable, holds) => {
                self.values[variable as usize].map(|value| value == holds)
            }
            Literal::Order(a, b) => {
                if self.orders.contains(&(a, b)) || judge.is_impossible(b, a) {
                    Some(true)
                } else if self.orders.contains(&(b, a)) || judge.is_impossible(a, b) {
                    Some(false)
                } else {
                    None
                }
            }
        }
    }

    /// The decided value of a variable.
    pub(super) fn variable(&self, variable: u32) -> Option<bool> {
        self.values[variable as usize]
    }

    /// Whether a guarded edge says nothing more.
    pub(super) fn is_done(&self, guarded: usize) -> bool {
        self.is_done[guarded]
    }

    fn edge<R: Reaches>(
        &mut self,
        at: usize,
        Guarded { edge, guard }: Guarded<'_>,
        judge: &Judge<'_, R>,
        edges: &mut Vec<Edge>,
    ) -> bool {
        let (mut open, mut n_open) = (None, 0);
        for &literal in guard {
            match self.value(literal, judge) {
                Some(true) => {}
                Some(false) => {
                    self.is_done[at] = true;
                    return false;
                }
                None if open == Some(literal) => {}
                None => {
                    n_open += 1;
                    open = Some(literal);
                }
            }
        }
        if judge.reach.reaches(edge.from, edge.to) {
            self.is_done[at] = true;
            return false;
        }
        let is_impossible = edge.from == edge.to || judge.reach.reaches(edge.to, edge.from);
        match open {
            None => {
                self.is_done[at] = true;
                edges.push(edge);
                true
            }
            Some(literal) if n_open == 1 && is_impossible => {
                self.is_done[at] = true;
                self.force(!literal, Some(edge), judge, edges);
                true
            }
            Some(_) => false,
        }
    }

    fn clause<R: Reaches>(
        &mut self,
        clause: &[Literal],
        judge: &Judge<'_, R>,
        edges: &mut Vec<Edge>,
    ) -> bool {
        let mut open = None;
        for &literal in clause {
            match self.value(literal, judge) {
                Some(false) => {}
                None if open.is_none() || open == Some(literal) => open = Some(literal),
                Some(true) | None => return false,
            }
        }
        if let Some(literal) = open {
            self.force(literal, None, judge, edges);
            return true;
        }
        let culprits = clause.iter().filter_map(|literal| match *literal {
            Literal::Variable(variable, _) => self.culprits[variable as usize],
            Literal::Order(..) => None,
        });
        let before = edges.len();
        edges.extend(culprits);
        self.is_contradiction = edges.len() == before;
        // Once is enough: the cycle is found before the next round.
        false
    }

    fn force<R: Reaches>(
        &mut self,
        literal: Literal,
        culprit: Option<Edge>,
        judge: &Judge<'_, R>,
        edges: &mut Vec<Edge>,
    ) {
        match literal {
            Literal::Variable(variable, holds) => {
                self.values[variable as usize] = Some(holds);
                self.culprits[variable as usize] = culprit;
            }
            Literal::Order(a, b) => {
                self.orders.insert((a, b));
                judge.force(a, b, edges);
            }
        }
    }
}

/// Adds the logic to the constraints of the orders: as it is where the question will grow, else as edges.
pub(super) fn settling_rest<R: Reaches>(
    problem: &Problem,
    settling: &Settling,
    judge: Option<&Judge<'_, R>>,
    orders: Constraints,
    placed: Placed,
    estimate: Vec<f32>,
    options: PruneOptions,
) -> Rest {
    let mut rest = Rest {
        constraints: orders,
        estimate,
        ..Rest::default()
    };
    let logic = &problem.logic;
    if !logic.is_empty() {
        let order = |a: u32, b: u32| match placed.get(&(a.min(b), a.max(b))) {
            Some(&(constraint, side)) if a < b => LiteralValue::Open(constraint, side),
            Some(&(constraint, side)) => LiteralValue::Open(constraint, side.other()),
            None => {
                let value = judge.and_then(|judge| settling.value(Literal::Order(a, b), judge));
                LiteralValue::Settled(value.unwrap_or(true))
            }
        };
        let mut next = rest.constraints.len() as u32;
        let all = 0..logic.n_variables() as u32;
        rest.variables = number(all, |it| settling.variable(it), &mut next);
        let of = |literal| match literal {
            Literal::Order(a, b) => order(a, b),
            Literal::Variable(variable, holds) => rest.variables[variable as usize].literal(holds),
        };
        let mut left = Growth::new(next as usize, Vec::new());
        write(logic, (0, 0), &of, &|it| settling.is_done(it), &mut left);
        if options.grows {
            rest.left = Some(left);
        } else {
            let estimate = std::mem::take(&mut rest.estimate);
            match residue(problem, &rest.constraints, estimate, &left) {
                Some(written) => {
                    rest.constraints = written.constraints;
                    rest.estimate = written.estimate;
                    rest.dag = Some(written.dag);
                }
                None => rest.is_contradiction = true,
            }
        }
    }
    if options.grows {
        rest.placed = placed;
    }
    rest
}
