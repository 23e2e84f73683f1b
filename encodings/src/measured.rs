//! Any back end with the statistics that can be measured from outside: the size of the graph, and the growth of the process.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use kingsnake_context::budget::Budget;
use kingsnake_context::progress::Progress;
use kingsnake_graph::decide::{
    Backend, DecideError, DecideStats, Decision, Origin, Question, Side,
};
use kingsnake_graph::session::{Growth, SolverSession};

/// How often the size is looked at, first and at most.
const EVERY: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(50)];

/// A back end, measured.
pub(crate) struct Measured<B>(pub B);

impl<B: Backend> Backend for Measured<B> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn refuses(&self, origin: Origin) -> Option<String> {
        self.0.refuses(origin)
    }

    fn decide(
        &mut self,
        question: Question<'_>,
        budget: &Budget,
        progress: &mut dyn Progress,
    ) -> Result<(Decision, DecideStats), DecideError> {
        let (decided, grown) = watch(|| self.0.decide(question, budget, progress));
        decided.map(|(decision, stats)| (decision, complete(stats, question, grown)))
    }

    fn session<'s>(&'s mut self, question: Question<'_>) -> Box<dyn SolverSession + 's> {
        Box::new(MeasuredSession(self.0.session(question)))
    }

    fn decide_assuming(
        &mut self,
        question: Question<'_>,
        assumed: &[(u32, Side)],
        budget: &Budget,
        progress: &mut dyn Progress,
    ) -> Option<Result<(Decision, DecideStats), DecideError>> {
        let (decided, grown) =
            watch(|| self.0.decide_assuming(question, assumed, budget, progress));
        let complete = |stats| complete(stats, question, grown);
        decided.map(|it| it.map(|(decision, stats)| (decision, complete(stats))))
    }
}

/// A session, measured.
struct MeasuredSession<'s>(Box<dyn SolverSession + 's>);

impl SolverSession for MeasuredSession<'_> {
    fn add(&mut self, growth: &Growth) {
        self.0.add(growth);
    }

    fn decide(
        &mut self,
        budget: &Budget,
        progress: &mut dyn Progress,
    ) -> Result<(Decision, DecideStats), DecideError> {
        let (decided, grown) = watch(|| self.0.decide(budget, progress));
        decided.map(|(decision, mut stats)| {
            stats.memory = stats.memory.or(grown);
            (decision, stats)
        })
    }
}

/// Fills in what the back end did not report.
fn complete(mut stats: DecideStats, question: Question<'_>, grown: Option<u64>) -> DecideStats {
    stats.memory = stats.memory.or(grown);
    if stats.edges == 0 {
        stats.edges = (question.targets.len() + question.constraints.n_edges()) as u64;
    }
    stats
}

/// Runs the work while another thread measures the process's size: the solver frees its memory when it returns.
fn watch<T>(work: impl FnOnce() -> T) -> (T, Option<u64>) {
    let Some(before) = resident() else {
        return (work(), None);
    };
    thread::scope(|scope| {
        let (done, waiting) = mpsc::channel::<()>();
        let watcher = scope.spawn(move || {
            let (mut largest, mut pause) = (before, EVERY[0]);
            while waiting.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                largest = largest.max(resident().unwrap_or(0));
                pause = (2 * pause).min(EVERY[1]);
            }
            largest.max(resident().unwrap_or(0))
        });
        let result = work();
        drop(done);
        let largest = watcher.join().unwrap_or(before);
        (result, Some(largest - before))
    })
}

/// The resident size in bytes; `None` if the system does not report it.
fn resident() -> Option<u64> {
    memory_stats::memory_stats().map(|stats| stats.physical_mem as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_before_the_end_counts() {
        let ((), grown) = watch(|| {
            let block = vec![1u8; 64 << 20];
            thread::sleep(4 * EVERY[1]);
            drop(std::hint::black_box(block));
        });
        match grown {
            Some(grown) => assert!(grown > 48 << 20, "{grown}"),
            None => eprintln!("SKIPPED: the system does not tell the process's size"),
        }
    }
}
