//! Aggregates at the weak levels: which of the choices each one counts, and clauses that say what they give.
//!
//! Each aggregate is a statement of its own, so its rows are choices of their own.

use batsat::{BasicSolver, Lit, SolverInterface, Var};
use rustc_hash::FxHashMap;

use super::uncertain::Choice;
use crate::aggregates::has_aggregates;
use crate::aggregates::tally::Tally;
use crate::model::{Function, History, KeyId, Token};
use crate::resolve::{CountedRow, Node, Resolved, VersionId};
use kingsnake_graph::{Literal, Logic};

/// An aggregate, and the choices that it counts.
pub(super) struct Counting {
    pub(super) reader: Node,
    pub(super) nth: usize,
    function: Function,
    result: Token,
    own: Vec<Token>,
    pub(super) rows: Vec<CountedChoice>,
}

/// A row that an aggregate counts.
pub(super) struct CountedChoice {
    pub(super) choice: usize,
    row: CountedRow,
}

/// Every aggregate of a history, and the choices that it counts.
pub(super) fn counting(
    history: &History,
    resolved: &Resolved,
    choices: &[Choice],
) -> Vec<Counting> {
    if !has_aggregates(history) {
        return Vec::new();
    }
    let places = choices.iter().enumerate();
    let places = places.map(|(at, it)| ((it.reader, it.op, it.key), at));
    let place: FxHashMap<(Node, usize, KeyId), usize> = places.collect();
    let mut all = Vec::new();
    for reader in 0..resolved.n_txns() as Node {
        let statements = history.statements(resolved.txn(reader));
        for aggregate in resolved.aggregates_of(history, reader) {
            let op = statements.read_by(aggregate.nth);
            let rows = resolved.counted_rows(history, &aggregate).into_iter();
            let rows = rows.filter_map(|row| {
                let choice = *place.get(&(reader, op, row.key))?;
                Some(CountedChoice { choice, row })
            });
            all.push(Counting {
                reader,
                nth: aggregate.nth,
                function: aggregate.function,
                result: aggregate.result,
                rows: rows.collect(),
                own: aggregate.own,
            });
        }
    }
    all
}

impl Counting {
    fn tally<'h>(&self, history: &'h History) -> Tally<'h> {
        Tally::of(history, self.function, self.result)
    }

    /// Whether some versions give the result, where these choices are of these versions; yes where that is too much to tell.
    pub(super) fn is_possible(
        &self,
        history: &History,
        choices: &[Choice],
        taken: impl Fn(usize) -> Option<VersionId>,
    ) -> bool {
        let tally = self.tally(history);
        let rows = self.rows.iter().map(|it| {
            let taken = taken(it.choice);
            let versions = match &taken {
                Some(version) => std::slice::from_ref(version),
                None => choices[it.choice].candidates.as_slice(),
            };
            let cells = versions.iter().map(|&version| it.row.cell(version));
            let mut cells: Vec<Token> = cells.collect();
            cells.sort_unstable();
            cells.dedup();
            cells
        });
        let rows: Vec<Vec<Token>> = rows.collect();
        tally.is_possible(tally.over(self.own.iter().copied()), &rows) != Some(false)
    }

    /// States the result, where there are not too many partial results.
    pub(super) fn state(
        &self,
        history: &History,
        choices: &[Choice],
        variables: &[Vec<Var>],
        solver: &mut BasicSolver,
    ) {
        let tally = self.tally(history);
        let Some(start) = tally.over(self.own.iter().copied()) else {
            return;
        };
        let (mut logic, mut known) = (Logic::default(), Vec::new());
        let mut rows: Vec<Vec<(Token, Vec<Literal>)>> = Vec::new();
        for it in &self.rows {
            let mut cells: Vec<(Token, Vec<Literal>)> = Vec::new();
            for (&version, &variable) in choices[it.choice]
                .candidates
                .iter()
                .zip(&variables[it.choice])
            {
                let literal = Literal::Variable(logic.variable(), true);
                known.push(variable);
                let cell = it.row.cell(version);
                match cells.iter_mut().find(|it| it.0 == cell) {
                    Some(same) => same.1.push(literal),
                    None => cells.push((cell, vec![literal])),
                }
            }
            rows.push(cells);
        }
        if rows.is_empty() || !tally.state(&mut logic, start, &rows) {
            return;
        }
        while known.len() < logic.n_variables() {
            known.push(solver.new_var_default());
        }
        for clause in logic.clauses() {
            let literals = clause.iter().filter_map(|literal| match *literal {
                Literal::Variable(at, is) => Some(Lit::new(known[at as usize], is)),
                Literal::Order(..) => None,
            });
            solver.add_clause_reuse(&mut literals.collect());
        }
    }
}
