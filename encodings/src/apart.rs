//! A session whose solver runs in a thread of its own, so that the caller's thread can report its progress.

use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

use kingsnake_context::budget::Budget;
use kingsnake_context::progress::{Progress, ProgressEvent};
use kingsnake_graph::decide::{DecideError, DecideStats, Decision};
use kingsnake_graph::session::{Growth, SolverSession};

pub(crate) type SessionAnswer = Result<(Decision, DecideStats), String>;

/// The state kept from answer to answer.
pub(crate) trait Keep {
    fn add(&mut self, growth: &Growth);
    fn decide(&mut self, budget: &Budget, events: Sender<ProgressEvent>) -> SessionAnswer;
}

enum Request {
    Add(Growth),
    Decide {
        budget: Budget,
        events: Sender<ProgressEvent>,
        answer: Sender<SessionAnswer>,
    },
}

/// The session, as the caller holds it.
pub(crate) struct Apart {
    name: &'static str,
    requests: Option<Sender<Request>>,
    worker: Option<JoinHandle<()>>,
}

impl Apart {
    /// The state is created in the thread.
    pub fn new<K: Keep>(name: &'static str, make: impl FnOnce() -> K + Send + 'static) -> Apart {
        let (requests, received) = mpsc::channel();
        let work = move || {
            let mut kept = make();
            // What cannot be met cannot be met with more, for the same reasons.
            let mut refuted: Option<(Decision, DecideStats)> = None;
            for request in received {
                match request {
                    Request::Add(growth) => kept.add(&growth),
                    Request::Decide {
                        budget,
                        events,
                        answer,
                    } => {
                        let decided = match &refuted {
                            Some(before) => Ok(before.clone()),
                            None => kept.decide(&budget, events),
                        };
                        if let Ok((decision @ Decision::Core(_), stats)) = &decided {
                            let stats = DecideStats {
                                backend: stats.backend.clone(),
                                ..DecideStats::default()
                            };
                            refuted = Some((decision.clone(), stats));
                        }
                        // The receiver may be gone; then the message is dropped.
                        let _ = answer.send(decided);
                    }
                }
            }
        };
        Apart {
            name,
            requests: Some(requests),
            worker: std::thread::Builder::new().spawn(work).ok(),
        }
    }

    fn ask(&self, request: Request) {
        if let Some(requests) = &self.requests {
            // A thread that is gone is noticed when it does not answer.
            let _ = requests.send(request);
        }
    }
}

impl SolverSession for Apart {
    fn add(&mut self, growth: &Growth) {
        self.ask(Request::Add(growth.clone()));
    }

    fn decide(
        &mut self,
        budget: &Budget,
        progress: &mut dyn Progress,
    ) -> Result<(Decision, DecideStats), DecideError> {
        let (events, told) = mpsc::channel();
        let (answer, answers) = mpsc::channel();
        self.ask(Request::Decide {
            budget: budget.clone(),
            events,
            answer,
        });
        for event in told {
            progress.event(event);
        }
        let answer = answers.recv();
        let answer = answer.unwrap_or_else(|_| Err("the search panicked".to_owned()));
        answer.map_err(|what| DecideError {
            backend: self.name.to_owned(),
            what,
        })
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}
