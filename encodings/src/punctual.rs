//! Any back end, answering within a second of the budget's end whatever its solver does.
//!
//! Z3 and `CaDiCaL` are asked to stop, but some of their steps do not check for many seconds: special relations, the
//! elimination of variables in a large formula. So the back end works on a copy of the question in a thread that may be
//! abandoned. Invariant: an abandoned thread keeps nothing that the caller owns.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use kingsnake_context::budget::{Budget, StopReason};
use kingsnake_context::progress::{Progress, ProgressEvent};
use kingsnake_graph::decide::{
    Backend, Constraints, DecideError, DecideStats, Decision, Origin, Question, Side,
};

use crate::{BackendOptions, Make};

/// Interval between two polls of the budget.
const EVERY: Duration = Duration::from_millis(20);
/// Grace period after the deadline before the solver thread is abandoned.
const GRACE: Duration = Duration::from_millis(500);

static LEFT_BEHIND: AtomicBool = AtomicBool::new(false);

/// Whether a solver thread was abandoned and may still run. Such a process should end without running the libraries'
/// exit handlers, which would free what the solver uses.
pub fn left_behind() -> bool {
    LEFT_BEHIND.load(Ordering::Relaxed)
}

/// A back end that is on time.
pub(crate) struct Punctual {
    make: Make,
    options: BackendOptions,
    /// Answers what needs no solver.
    model: Box<dyn Backend>,
}

type BackendAnswer = Result<(Decision, DecideStats), DecideError>;

enum Message {
    Event(ProgressEvent),
    /// `None` from a back end that takes no hints.
    Answer(Option<BackendAnswer>),
}

/// A question with all that it refers to.
struct Owned {
    n_nodes: usize,
    starts: Vec<u32>,
    targets: Vec<u32>,
    order: Vec<u32>,
    constraints: Constraints,
    estimate: Vec<f32>,
    has_choices: bool,
}

impl Owned {
    fn of(question: &Question<'_>) -> Owned {
        Owned {
            n_nodes: question.n_nodes,
            starts: question.starts.to_vec(),
            targets: question.targets.to_vec(),
            order: question.order.to_vec(),
            constraints: question.constraints.clone(),
            estimate: question.estimate.to_vec(),
            has_choices: question.has_choices,
        }
    }

    fn question(&self) -> Question<'_> {
        Question {
            n_nodes: self.n_nodes,
            starts: &self.starts,
            targets: &self.targets,
            order: &self.order,
            constraints: &self.constraints,
            estimate: &self.estimate,
            has_choices: self.has_choices,
        }
    }
}

/// Sends a message to the caller's thread, if it still listens.
struct Telling(Sender<Message>);

impl Progress for Telling {
    fn event(&mut self, event: ProgressEvent) {
        let _ = self.0.send(Message::Event(event));
    }
}

impl Punctual {
    pub fn new(make: Make, options: &BackendOptions) -> Punctual {
        Punctual {
            make,
            options: options.clone(),
            model: make(options),
        }
    }

    /// Runs the back end in a thread of its own, with a hint if there is one, and waits no longer than allowed.
    fn ask(
        &self,
        question: &Question<'_>,
        assumed: Option<&[(u32, Side)]>,
        budget: &Budget,
        progress: &mut dyn Progress,
    ) -> Option<BackendAnswer> {
        let (sender, messages) = mpsc::channel();
        let owned = Owned::of(question);
        let assumed = assumed.map(<[_]>::to_vec);
        let (make, options, limits) = (self.make, self.options.clone(), budget.clone());
        let work = move || {
            let mut backend = make(&options);
            let mut telling = Telling(sender.clone());
            let question = owned.question();
            let answer = match &assumed {
                None => Some(backend.decide(question, &limits, &mut telling)),
                Some(sides) => backend.decide_assuming(question, sides, &limits, &mut telling),
            };
            let _ = sender.send(Message::Answer(answer));
        };
        if let Err(error) = thread::Builder::new().spawn(work) {
            return Some(Err(self.error(format!("it cannot start a thread: {error}"))));
        }
        let mut late: Option<(Instant, StopReason)> = None;
        loop {
            match messages.recv_timeout(EVERY) {
                Ok(Message::Event(event)) => progress.event(event),
                Ok(Message::Answer(answer)) => return answer,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Some(Err(self.error("the search panicked".to_owned())));
                }
            }
            match &late {
                None => late = budget.check().err().map(|reason| (Instant::now(), reason)),
                Some((since, reason)) if since.elapsed() >= GRACE => {
                    LEFT_BEHIND.store(true, Ordering::Relaxed);
                    return Some(Ok((Decision::Unknown(reason.clone()), self.no_stats())));
                }
                Some(_) => {}
            }
        }
    }

    fn no_stats(&self) -> DecideStats {
        DecideStats {
            backend: self.name().to_owned(),
            ..DecideStats::default()
        }
    }

    fn error(&self, what: String) -> DecideError {
        DecideError {
            backend: self.name().to_owned(),
            what,
        }
    }
}

impl Backend for Punctual {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn refuses(&self, origin: Origin) -> Option<String> {
        self.model.refuses(origin)
    }

    fn decide(
        &mut self,
        question: Question<'_>,
        budget: &Budget,
        progress: &mut dyn Progress,
    ) -> BackendAnswer {
        self.ask(&question, None, budget, progress)
            .unwrap_or_else(|| Err(self.error("it gave no answer".to_owned())))
    }

    fn decide_assuming(
        &mut self,
        question: Question<'_>,
        assumed: &[(u32, Side)],
        budget: &Budget,
        progress: &mut dyn Progress,
    ) -> Option<BackendAnswer> {
        self.ask(&question, Some(assumed), budget, progress)
    }
}

#[cfg(test)]
mod tests {
    use kingsnake_context::progress::Silent;

    use super::*;

    /// Does not check for a second after the end.
    struct Deaf;

    impl Backend for Deaf {
        fn name(&self) -> &'static str {
            "deaf"
        }

        fn decide(
            &mut self,
            _: Question<'_>,
            budget: &Budget,
            _: &mut dyn Progress,
        ) -> BackendAnswer {
            while budget.check().is_ok() {
                thread::sleep(EVERY);
            }
            thread::sleep(2 * GRACE);
            Err(DecideError {
                backend: self.name().to_owned(),
                what: "it woke up".to_owned(),
            })
        }
    }

    #[test]
    fn who_does_not_stop_is_left_behind() {
        let limit = Duration::from_millis(50);
        let budget = Budget::unlimited().with_timeout(Instant::now(), limit);
        let question = Question {
            n_nodes: 0,
            starts: &[0],
            targets: &[],
            order: &[],
            constraints: &Constraints::default(),
            estimate: &[],
            has_choices: false,
        };
        let mut punctual = Punctual::new(|_| Box::new(Deaf), &BackendOptions::default());
        let (decision, _) = punctual
            .decide(question, &budget, &mut Silent)
            .expect("an answer comes before it wakes up");
        assert_eq!(decision, Decision::Unknown(StopReason::Time(limit)));
        assert!(left_behind());
        let hint = punctual.decide_assuming(question, &[], &budget, &mut Silent);
        assert!(hint.is_none(), "it takes no hints");
    }
}
