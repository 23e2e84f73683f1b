//! Aggregates where a search proposes what was read: which of the choices each one counts, and clauses that say what they give.
//!
//! At the weak levels each aggregate is a statement of its own, so its rows are choices of their own.

use crate::aggregates::has_aggregates;
use crate::aggregates::tally::Tally;
use crate::model::{Function, History, KeyId, Token};
use crate::resolve::{CountedRow, Node, Resolved, VersionId};
use batsat::{BasicSolver, Lit, SolverInterface, Var};
use kingsnake_graph::{Literal, Logic};

/// An aggregate, and the choices that it counts.
pub(crate) struct Counting {
    pub(crate) reader: Node,
    pub(crate) nth: usize,
    function: Function,
    result: Token,
    own: Vec<Token>,
    pub(crate) rows: Vec<CountedChoice>,
}

/// A row that an aggregate counts.
pub(crate) struct CountedChoice {
    pub(crate) choice: usize,
    row: CountedRow,
}

/// Every aggregate of a history, and the choices that it counts; `place` is the choice of a transaction's read of a key, by the read's name.
pub(crate) fn counting(
    history: &History,
    resolved: &Resolved,
    place: impl Fn((Node, usize, KeyId)) -> Option<usize>,
) -> Vec<Counting> {
    if !has_aggregates(history) {
        return Vec::new();
    }
    let mut all = Vec::new();
    for reader in 0..resolved.n_txns() as Node {
        let statements = history.statements(resolved.txn(reader));
        for aggregate in resolved.aggregates_of(history, reader) {
            let op = statements.read_by(aggregate.nth);
            let rows = resolved.counted_rows(history, &aggregate).into_iter();
            let rows = rows.filter_map(|row| {
                let choice = place((reader, op, row.key))?;
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
    pub(crate) fn is_possible<'c>(
        &self,
        history: &History,
        candidates: impl Fn(usize) -> &'c [VersionId],
        taken: impl Fn(usize) -> Option<VersionId>,
    ) -> bool {
        let tally = self.tally(history);
        let rows = self.rows.iter().map(|it| {
            let taken = taken(it.choice);
            let versions = match &taken {
                Some(version) => std::slice::from_ref(version),
                None => candidates(it.choice),
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
    pub(crate) fn state<'c>(
        &self,
        history: &History,
        candidates: impl Fn(usize) -> &'c [VersionId],
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
            for (&version, &variable) in candidates(it.choice).iter().zip(&variables[it.choice]) {
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
