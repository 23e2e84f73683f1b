//! The suite notices wrong reports: a back end that answers well but reports it wrongly fails each function that checks this.

mod support;

use std::cell::Cell;
use std::time::Duration;

use kingsnake_context::budget::Budget;
use kingsnake_context::progress::Progress;
use kingsnake_encodings::{BackendOptions, backend};
use kingsnake_graph::decide::{Backend, DecideError, DecideStats, Decision, Question, Side};
use support::suite::{self, Make};

/// A wrong report.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lie {
    /// Everything is satisfiable.
    Met,
    /// Nothing is satisfiable.
    Refuted,
    /// One side is the other.
    Turned,
    /// One choice is missing.
    Forgotten,
    /// One member of the core is missing.
    SmallCore,
    /// The name is wrong.
    Alias,
    /// Half a second is reported as a second and a half.
    Late,
    /// Memory limits are ignored.
    Greedy,
    /// The second run differs from the first.
    Restless,
    /// Nothing is counted.
    Silent,
}

struct Liar {
    honest: Box<dyn Backend>,
    lie: Lie,
}

thread_local! {
    static N_RUNS: Cell<u64> = const { Cell::new(0) };
}

impl Backend for Liar {
    fn name(&self) -> &str {
        self.honest.name()
    }

    fn decide(
        &mut self,
        question: Question<'_>,
        budget: &Budget,
        progress: &mut dyn Progress,
    ) -> Result<(Decision, DecideStats), DecideError> {
        let unlimited = Budget::unlimited();
        let budget = if self.lie == Lie::Greedy {
            &unlimited
        } else {
            budget
        };
        let (decision, mut stats) = self.honest.decide(question, budget, progress)?;
        let n_constraints = question.constraints.len();
        let decision = match (self.lie, decision) {
            (Lie::Met, Decision::Core(_)) => Decision::Choices(vec![Side::Either; n_constraints]),
            (Lie::Refuted, Decision::Choices(_)) => {
                Decision::Core((0..n_constraints as u32).collect())
            }
            (Lie::Turned, Decision::Choices(mut sides)) => {
                if let Some(side) = sides.first_mut() {
                    *side = if *side == Side::Or {
                        Side::Either
                    } else {
                        Side::Or
                    };
                }
                Decision::Choices(sides)
            }
            (Lie::Forgotten, Decision::Choices(mut sides)) => {
                sides.pop();
                Decision::Choices(sides)
            }
            (Lie::SmallCore, Decision::Core(mut core)) => {
                core.pop();
                Decision::Core(core)
            }
            (_, decision) => decision,
        };
        match self.lie {
            Lie::Alias => stats.backend = String::from("somebody/else"),
            Lie::Late => std::thread::sleep(Duration::from_millis(1200)),
            Lie::Restless => stats.conflicts += N_RUNS.replace(N_RUNS.get() + 1),
            Lie::Silent => {
                stats = DecideStats {
                    backend: stats.backend,
                    ..DecideStats::default()
                }
            }
            _ => {}
        }
        Ok((decision, stats))
    }
}

fn told(lie: Lie) -> impl Fn(&BackendOptions) -> Box<dyn Backend> {
    move |options| {
        let honest = backend("cadical/propagator", options).expect("a back end");
        Box::new(Liar { honest, lie })
    }
}

#[allow(clippy::print_stdout)] // What a test prints is shown with it.
fn notices<T>(look: impl Fn(Make) -> Result<T, String>, lies: &[Lie]) {
    for &lie in lies {
        let what = look(&told(lie)).err();
        println!("{lie:?}: {what:?}");
        assert!(what.is_some(), "{lie:?} went unnoticed");
    }
}

const WRONG: [Lie; 4] = [Lie::Met, Lie::Refuted, Lie::Turned, Lie::Forgotten];

#[test]
fn small_questions_notice_every_wrong_answer() {
    let look = |make: Make| suite::small_questions(make, 300);
    notices(look, &WRONG);
    notices(look, &[Lie::SmallCore, Lie::Alias]);
}

#[test]
fn histories_notice_every_wrong_answer() {
    notices(|make| suite::small_histories(make, 1000), &WRONG[..3]);
    notices(suite::puzzles, &WRONG[..3]);
    notices(suite::middling, &WRONG[..3]);
}

#[test]
fn formulas_and_corners_notice_every_wrong_answer() {
    notices(suite::formulas, &WRONG);
    notices(
        suite::corners,
        &[Lie::Met, Lie::Refuted, Lie::Forgotten, Lie::SmallCore],
    );
}

#[test]
fn who_stops_late_is_noticed() {
    let late = Duration::from_secs(1);
    notices(|make| suite::stops_searching(make, late), &[Lie::Late]);
    notices(|make| suite::stops_building(make, late), &[Lie::Late]);
}

#[test]
fn who_takes_all_memory_is_noticed() {
    notices(suite::fits, &[Lie::Greedy]);
}

#[test]
fn who_repeats_nothing_and_who_counts_nothing_is_noticed() {
    notices(suite::repeats, &[Lie::Restless]);
    notices(suite::counts, &[Lie::Silent, Lie::Met]);
}
