//! Draws a check's progress on a terminal: phase, round, open constraints, percentage, elapsed time.
//!
//! A separate thread draws, so that the clock moves while the check is busy. It draws nothing in the first moments:
//! most checks end before anyone could read it. If several levels are checked, each answer of a long run is printed as
//! where stderr is no terminal; there a long run says now and then how far it is.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kingsnake_solver::progress::{Phase, Progress, ProgressEvent};

use crate::voice::{count, grouped};

const FIRST: Duration = Duration::from_millis(250);
const EVERY: Duration = Duration::from_millis(100);
/// Answers of single levels are printed after this time.
const LONG: Duration = Duration::from_secs(2);
/// Where stderr is no terminal, the first line about a long run; each further one comes after twice the time.
const SELDOM: Duration = Duration::from_secs(10);

/// Draws until dropped, if stderr is a terminal.
pub struct Drawing {
    thread: Option<(Sender<Told>, JoinHandle<()>)>,
}

/// Listens to a check for a [`Drawing`], which may end before the check.
#[derive(Clone)]
pub struct CheckListener(Option<Sender<Told>>);

enum Told {
    Event(ProgressEvent),
    Shrinking { n_txns: usize, n_checks: usize },
    End,
}

impl Drawing {
    /// Draws on stderr unless quiet is asked for: all of it on a terminal, else single lines of long runs.
    pub fn new(start: Instant, quiet: bool) -> Self {
        if quiet {
            return Drawing { thread: None };
        }
        let (sender, events) = mpsc::channel();
        let target = if io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let thread = std::thread::spawn(move || draw(start, &events, target));
        Drawing {
            thread: Some((sender, thread)),
        }
    }

    /// The listener.
    pub fn listener(&self) -> CheckListener {
        CheckListener(self.thread.as_ref().map(|(sender, _)| sender.clone()))
    }
}

impl CheckListener {
    /// Reports the progress of shrinking.
    pub fn shrinking(&self, n_txns: usize, n_checks: usize) {
        if let Some(sender) = &self.0 {
            let _ = sender.send(Told::Shrinking { n_txns, n_checks });
        }
    }
}

impl Progress for CheckListener {
    fn event(&mut self, event: ProgressEvent) {
        if let Some(sender) = &self.0 {
            // If nothing is drawn any more, the message is dropped.
            let _ = sender.send(Told::Event(event));
        }
    }
}

impl Drop for Drawing {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.thread.take() {
            let _ = sender.send(Told::End);
            let _ = thread.join();
        }
    }
}

fn draw(start: Instant, events: &Receiver<Told>, target: ProgressDrawTarget) {
    let mut state = State::default();
    let mut target = Some(target);
    let mut bar: Option<ProgressBar> = None;
    let (is_terminal, mut next) = (io::stderr().is_terminal(), SELDOM);
    // What was answered while the run was short.
    let mut answered: Vec<String> = Vec::new();
    loop {
        match events.recv_timeout(EVERY) {
            Ok(Told::Event(event)) => {
                state.take(&event);
                if let ProgressEvent::Answered { level, verdict } = event {
                    answered.push(format!("{level}: {verdict}"));
                }
                if start.elapsed() < LONG {
                    continue;
                }
                for line in answered.drain(..) {
                    match &bar {
                        Some(bar) if !bar.is_hidden() => bar.println(line),
                        // A closed stderr does not end a check.
                        _ => drop(writeln!(io::stderr(), "{line}")),
                    }
                }
                continue;
            }
            Ok(Told::Shrinking { n_txns, n_checks }) => {
                state.shrunk = Some((n_txns, n_checks));
                continue;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Ok(Told::End) | Err(RecvTimeoutError::Disconnected) => break,
        }
        if !is_terminal && start.elapsed() >= next {
            next *= 2;
            let seconds = start.elapsed().as_secs();
            let _ = writeln!(io::stderr(), "{} · {seconds} s", state.words());
        }
        if start.elapsed() >= FIRST {
            let bar = bar.get_or_insert_with(|| {
                let target = target.take().unwrap_or_else(ProgressDrawTarget::hidden);
                ProgressBar::with_draw_target(None, target)
                    .with_style(style())
                    .with_elapsed(start.elapsed())
            });
            bar.set_message(state.words());
            bar.tick();
        }
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{spinner} {msg}  {elapsed_precise}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
}

#[derive(Default)]
struct State {
    /// The level, if several are checked.
    level: Option<&'static str>,
    /// Transactions left and checks so far, for shrinking.
    shrunk: Option<(usize, usize)>,
    phase: Option<Phase>,
    round: usize,
    /// The open constraints after the first round, the base of the percentage.
    first_open: usize,
    open: usize,
    conflicts: u64,
    settled: usize,
    variables: usize,
}

impl State {
    fn take(&mut self, event: &ProgressEvent) {
        match *event {
            ProgressEvent::Asking(level) => {
                *self = State {
                    level: Some(level),
                    ..State::default()
                };
            }
            ProgressEvent::Phase(phase) => self.phase = Some(phase),
            ProgressEvent::Round { round, open, .. } => {
                if self.round == 0 {
                    self.first_open = open;
                }
                (self.round, self.open) = (round, open);
            }
            ProgressEvent::Deciding {
                conflicts,
                settled,
                variables,
            } => {
                (self.conflicts, self.settled, self.variables) = (conflicts, settled, variables);
            }
            _ => {}
        }
    }

    fn words(&self) -> String {
        if let Some((n_txns, n_checks)) = self.shrunk {
            return format!(
                "shrink · {} · {}",
                count(n_txns, "transaction"),
                count(n_checks, "check")
            );
        }
        let level = self.level.map_or(String::new(), |it| format!("{it} · "));
        level + &self.of_phase()
    }

    fn of_phase(&self) -> String {
        let Some(phase) = self.phase else {
            return "start".to_owned();
        };
        match phase {
            Phase::Prune if self.round > 0 => format!(
                "prune · round {} · {} open{}",
                self.round,
                count(self.open, "constraint"),
                percentage(
                    self.first_open - self.open.min(self.first_open),
                    self.first_open
                )
            ),
            Phase::Decide if self.variables > 0 => format!(
                "decide · {} · {}{}",
                count(self.open, "open constraint"),
                match self.conflicts {
                    1 => "1 conflict".to_owned(),
                    n => format!("{} conflicts", grouped(n)),
                },
                percentage(self.settled, self.variables)
            ),
            _ => phase.name().to_owned(),
        }
    }
}

fn percentage(part: usize, whole: usize) -> String {
    if whole == 0 {
        String::new()
    } else {
        format!(" · {:.0} %", part as f64 / whole as f64 * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_told_in_one_line() {
        let mut state = State::default();
        state.take(&ProgressEvent::Phase(Phase::Prune));
        assert_eq!(state.words(), "prune");
        for (round, open) in [(1, 4_000), (2, 1_000)] {
            state.take(&ProgressEvent::Round {
                round,
                new_edges: 1,
                open,
            });
        }
        assert_eq!(
            state.words(),
            "prune · round 2 · 1,000 constraints open · 75 %"
        );
    }
}
