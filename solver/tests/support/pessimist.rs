//! A back end that always returns UNSAT, for histories that are known to be violated.

use kingsnake_solver::budget::Budget;
use kingsnake_solver::decide::{Backend, DecideError, DecideStats, Decision, Question};
use kingsnake_solver::progress::Progress;

/// Calls every question unanswerable, with all of its constraints as the core.
pub struct Pessimist;

impl Backend for Pessimist {
    fn name(&self) -> &'static str {
        "test/pessimist"
    }

    fn decide(
        &mut self,
        question: Question<'_>,
        _: &Budget,
        _: &mut dyn Progress,
    ) -> Result<(Decision, DecideStats), DecideError> {
        let core = (0..question.constraints.len() as u32).collect();
        Ok((Decision::Core(core), DecideStats::default()))
    }
}
