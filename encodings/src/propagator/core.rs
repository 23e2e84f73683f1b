//! A small set of constraints that cannot all be met, from the cycles that refuted them.
//!
//! The cycles are clauses that hold under all assumptions. In plain CNF, each constraint requires one of its sides only under
//! a selector; the selectors that fail together are a core (Eén and Sörensson, 2003), and dropping one after another shrinks
//! it. Every core that is returned has been refuted on its own, by a run over nothing but its constraints.

use std::rc::Rc;
use std::time::{Duration, Instant};

use cadical_sys::{CaDiCal, Status};
use kingsnake_context::budget::Budget;
use kingsnake_graph::decide::{Constraints, DecideStats};
use rustsat::types::Lit;

use super::graph::{Known, Sides};
use super::phase::{FirstPhase, guess};
use super::solve::{SolveOutcome, SolvePlan, Start, solve};
use super::watch::{Stop, Watch};

/// Time limit of shrinking.
const SHARE: Duration = Duration::from_secs(2);
/// In a core of at most this many constraints, each is left out once, with a run over the graph.
const SMALL: usize = 64;

/// What a core is looked for in.
pub(crate) struct Refuted<'a> {
    pub known: &'a Rc<Known>,
    pub constraints: &'a Constraints,
    pub places: &'a [u32],
    pub plan: &'a SolvePlan,
    pub budget: &'a Budget,
}

impl Refuted<'_> {
    /// Shrinks the set of all constraints, which these lemmas refute.
    pub fn shrink(&self, lemmas: Vec<i32>, stats: &mut DecideStats) -> Result<Vec<u32>, String> {
        let share = share(self.budget);
        let mut core: Vec<u32> = (0..self.constraints.len() as u32).collect();
        let mut lemmas = lemmas;
        loop {
            let smaller = select(&core, &lemmas, |_| true, &share);
            if smaller.len() == core.len() {
                break;
            }
            match self.run(&smaller, &share, stats)? {
                (SolveOutcome::Refuted, again) => (core, lemmas) = (smaller, again),
                (SolveOutcome::Met(_), _) => return Err("a core it found can be met".to_owned()),
                // Not refuted on its own in time: the larger core stands.
                (SolveOutcome::Stopped(_) | SolveOutcome::GaveUp, _) => return Ok(core),
            }
        }
        if core.len() <= SMALL {
            self.drop_each(&mut core, &share, stats)?;
        }
        Ok(core)
    }

    /// Tries to do without each constraint, the last first.
    fn drop_each(
        &self,
        core: &mut Vec<u32>,
        share: &Budget,
        stats: &mut DecideStats,
    ) -> Result<(), String> {
        for at in (0..core.len()).rev() {
            let mut without = core.clone();
            without.remove(at);
            match self.run(&without, share, stats)?.0 {
                SolveOutcome::Refuted => *core = without,
                SolveOutcome::Met(_) => {}
                SolveOutcome::Stopped(_) | SolveOutcome::GaveUp => break,
            }
        }
        Ok(())
    }

    fn run(
        &self,
        chosen: &[u32],
        share: &Budget,
        stats: &mut DecideStats,
    ) -> Result<(SolveOutcome, Vec<i32>), String> {
        let sides = Rc::new(Sides::of(
            self.constraints,
            chosen.iter().map(|&constraint| constraint as usize),
        ));
        let position = |node: u32| f64::from(self.places[node as usize]);
        let guesses = guess(&sides, position, FirstPhase::Topological, self.plan.seed);
        solve(
            self.known,
            &sides,
            Start {
                places: self.places.to_vec(),
                guesses,
                lemmas: &[],
                clauses: Rc::default(),
                max_cycles: u64::MAX,
                assumed: &[],
            },
            self.plan,
            &Watch::new(share.clone(), None),
            stats,
        )
    }
}

/// How long shrinking may take within a budget.
pub(crate) fn share(budget: &Budget) -> Budget {
    match budget.remaining() {
        Some(left) if left < SHARE => budget.clone(),
        _ => budget.clone().with_timeout(Instant::now(), SHARE),
    }
}

/// The members of `core` that the lemmas over its positions need, or all of them when time runs out. Positions that are not
/// `asked` about have no member: one of their sides is demanded in any case.
pub(crate) fn select(
    core: &[u32],
    lemmas: &[i32],
    asked: impl Fn(u32) -> bool,
    share: &Budget,
) -> Vec<u32> {
    let n = core.len() as i32;
    let mut solver = CaDiCal::new();
    solver.set("quiet", 1);
    solver.connect_terminator(Stop(Watch::new(share.clone(), None)));
    let mut named = vec![false; core.len()];
    for &lit in lemmas {
        // A cycle forbids some sides; a side's variable is the number of its literal.
        match Lit::from_ipasir(lit) {
            Ok(lit) => {
                named[lit.vidx()] = true;
                solver.add(-((!lit).lidx() as i32 + 1));
            }
            Err(_) => solver.add(0),
        }
    }
    let named = (0..n as u32).filter(|&at| named[at as usize]);
    let (mut demanded, always): (Vec<u32>, Vec<u32>) = named.partition(|&at| asked(at));
    let selector = |at: u32| 2 * n + at as i32 + 1;
    let sides = |at: u32| [Lit::positive(at), Lit::negative(at)].map(|lit| lit.lidx() as i32 + 1);
    for &at in &demanded {
        let [either, or] = sides(at);
        solver.clause3(-selector(at), either, or);
    }
    for at in always {
        let [either, or] = sides(at);
        solver.clause2(either, or);
    }
    let mut failing = |demanded: &[u32]| {
        for &at in demanded {
            solver.assume(selector(at));
        }
        match solver.solve() {
            Status::UNSATISFIABLE => Some(
                demanded
                    .iter()
                    .copied()
                    .filter(|&at| solver.failed(selector(at)))
                    .collect::<Vec<u32>>(),
            ),
            _ => None,
        }
    };
    if let Some(failed) = failing(&demanded) {
        demanded = failed;
        let mut at = demanded.len();
        while at > 0 && share.check().is_ok() {
            at -= 1;
            let mut without = demanded.clone();
            without.remove(at);
            if let Some(failed) = failing(&without) {
                // What was found necessary for a larger set is necessary for its subsets.
                at = failed
                    .iter()
                    .filter(|&&member| member < demanded[at])
                    .count();
                demanded = failed;
            }
        }
    }
    demanded.iter().map(|&at| core[at as usize]).collect()
}
