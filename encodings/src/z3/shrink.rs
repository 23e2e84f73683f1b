//! A smaller set of requirements that still fail together: those that Z3 needed, asked again, then each left out in turn.
//!
//! Counted conflicts limit each question, not time, so that the same seed gives the same core.

use kingsnake_context::budget::Budget;

use super::session::{Found, Z3Session};
use super::terms::Term;

/// Limit of conflicts for finding a smaller core.
const CONFLICTS: u32 = 1000;
/// With at most this many, each is left out once.
const SMALL: usize = 64;

/// The places of some demands that fail together, `failed` being such.
pub(super) fn shrink(
    session: &Z3Session<'_>,
    demands: &[Term],
    failed: Vec<usize>,
    budget: &Budget,
) -> Vec<usize> {
    session.limit_conflicts(CONFLICTS);
    let again = |places: &[usize]| {
        let some: Vec<Term> = places.iter().map(|&at| demands[at]).collect();
        match session.check(&some, &[], budget) {
            Ok(Found::Refuted(failed)) => Some(Some(
                failed.into_iter().map(|at| places[at]).collect::<Vec<_>>(),
            )),
            Ok(Found::Met(_)) => Some(None),
            Err(_) => None,
        }
    };
    let mut core = failed;
    while let Some(Some(smaller)) = again(&core) {
        let is_smaller = smaller.len() < core.len();
        core = smaller;
        if !is_smaller {
            break;
        }
    }
    let mut at = if core.len() <= SMALL { core.len() } else { 0 };
    while at > 0 {
        at -= 1;
        let mut without = core.clone();
        let left_out = without.remove(at);
        match again(&without) {
            Some(Some(smaller)) => {
                // What was necessary in a larger set is necessary in its subsets.
                at = smaller.iter().filter(|&&member| member < left_out).count();
                core = smaller;
            }
            Some(None) => {}
            None => break,
        }
    }
    core
}
