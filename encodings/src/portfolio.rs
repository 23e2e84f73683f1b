//! `portfolio`: two back ends on two threads; the first answer counts, and the other is stopped.
//!
//! By default `cadical/propagator`, which repairs an order and so is quick to meet what can be met, beside `cadical/lazy`, whose
//! solver sees plain clauses, may simplify them, and decides by conflicts. The verdict does not depend on who wins,
//! only its witness does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use kingsnake_context::budget::Budget;
use kingsnake_context::progress::{Progress, Silent};
use kingsnake_graph::decide::{Backend, DecideError, DecideStats, Decision, Origin, Question};

use crate::{BackendOptions, UnknownBackend, backend};

pub(crate) const NAME: &str = "portfolio";
/// The back ends of the default name.
const PAIR: [&str; 2] = ["cadical/propagator", "cadical/lazy"];
/// Interval between two polls of the budget.
const EVERY: Duration = Duration::from_millis(20);

/// The back end.
pub(crate) struct Portfolio {
    name: String,
    members: [String; 2],
    options: BackendOptions,
}

type BackendAnswer = Result<(Decision, DecideStats), DecideError>;

impl Portfolio {
    /// Of the usual two.
    pub fn new(options: &BackendOptions) -> Portfolio {
        Portfolio {
            name: NAME.to_owned(),
            members: PAIR.map(str::to_owned),
            options: options.clone(),
        }
    }

    /// Of two that a name such as `portfolio:A,B` lists; in a list of names, where a comma separates them, `portfolio:A+B`.
    pub fn named(
        name: &str,
        members: &str,
        options: &BackendOptions,
    ) -> Result<Portfolio, UnknownBackend> {
        let listed: Vec<&str> = members.split([',', '+']).collect();
        let [one, other] = listed[..] else {
            return Err(UnknownBackend(format!(
                "a portfolio is of two back ends, such as {NAME}:{},{}",
                PAIR[0], PAIR[1]
            )));
        };
        for member in [one, other] {
            if member.starts_with(NAME) {
                return Err(UnknownBackend(
                    "a portfolio cannot hold a portfolio".to_owned(),
                ));
            }
            backend(member, options)?;
        }
        Ok(Portfolio {
            name: name.to_owned(),
            members: [one, other].map(str::to_owned),
            options: options.clone(),
        })
    }

    fn ask(&self, member: &str, question: Question<'_>, budget: &Budget) -> BackendAnswer {
        backend(member, &self.options)
            .map_err(|error| self.error(error.to_string()))?
            .decide(question, budget, &mut Silent)
    }

    fn error(&self, what: String) -> DecideError {
        DecideError {
            backend: self.name.clone(),
            what,
        }
    }

    /// All answers until the first that is definite, which is then the last.
    fn race(&self, question: Question<'_>, budget: &Budget) -> Vec<BackendAnswer> {
        let decided = Arc::new(AtomicBool::new(false));
        let shared = budget.clone().with_interrupt(Arc::clone(&decided));
        thread::scope(|scope| {
            let (sender, answers) = mpsc::channel();
            let racing = self.members.each_ref().map(|member| {
                let (sender, shared) = (sender.clone(), &shared);
                scope.spawn(move || {
                    // The other has won; the message is dropped.
                    let _ = sender.send(self.ask(member, question, shared));
                })
            });
            drop(sender);
            let mut given = Vec::new();
            loop {
                match answers.recv_timeout(EVERY) {
                    Ok(answer) => {
                        let definite = is_definite(&answer);
                        given.push(answer);
                        if definite {
                            break;
                        }
                    }
                    Err(RecvTimeoutError::Timeout) if budget.check().is_ok() => {}
                    Err(RecvTimeoutError::Timeout) => decided.store(true, Ordering::Relaxed),
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            decided.store(true, Ordering::Relaxed);
            for thread in racing {
                if thread.join().is_err() {
                    let answer = Err(self.error("one of the two panicked".to_owned()));
                    given.insert(0, answer);
                }
            }
            given
        })
    }
}

fn is_definite(answer: &BackendAnswer) -> bool {
    matches!(answer, Ok((Decision::Choices(_) | Decision::Core(_), _)))
}

impl Backend for Portfolio {
    fn name(&self) -> &str {
        &self.name
    }

    fn refuses(&self, origin: Origin) -> Option<String> {
        self.members.iter().find_map(|member| {
            let refused = backend(member, &self.options).ok()?.refuses(origin)?;
            Some(format!("{member}: {refused}"))
        })
    }

    fn decide(
        &mut self,
        question: Question<'_>,
        budget: &Budget,
        _: &mut dyn Progress,
    ) -> BackendAnswer {
        let mut given = self.race(question, budget);
        let best = given
            .iter()
            .position(is_definite)
            .or_else(|| given.iter().position(Result::is_ok))
            .unwrap_or(0);
        if given.is_empty() {
            return Err(self.error("no back end answered".to_owned()));
        }
        let (decision, mut stats) = given.swap_remove(best)?;
        let member = std::mem::replace(&mut stats.backend, self.name.clone());
        // A back end stopped from here reports an interruption, even if the time was over.
        let decision = match decision {
            Decision::Unknown(reason) => Decision::Unknown(budget.check().err().unwrap_or(reason)),
            decision => {
                stats.winner = Some(member);
                decision
            }
        };
        Ok((decision, stats))
    }
}
