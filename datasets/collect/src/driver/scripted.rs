//! Runs a script: one thread per session; each gets its next step when the order says so.
//!
//! A step that does not return within a moment is taken for blocked: the order goes on, and what its session would do next waits
//! for it. Where a transaction is aborted, its other steps are left out up to its end.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use super::client::{Client, StepAnswer};
use super::{Halt, Shared};
use crate::adapter::{Failure, SqlAnswer};
use crate::journal::{End, Journal};
use crate::script::{Script, ScriptAct};

/// How often a stop is noticed.
const WATCH: Duration = Duration::from_millis(50);

/// A step of a script as it was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepTold {
    /// Which order, from 0.
    pub run: usize,
    /// Where it is in the file.
    pub line: usize,
    /// Whose step it is.
    pub session: String,
    /// As it is typed.
    pub text: String,
    /// Whether it did not return within a moment.
    pub blocked: bool,
    /// Whether the script says that it would not.
    pub expected_to_block: bool,
    /// What came back.
    pub said: String,
}

/// A command to take a step: which run, and which step.
type Told = (usize, usize);

/// A session's report on a step.
struct Said {
    session: usize,
    outcome: Result<StepEnd, Halt>,
}

/// The result of a step.
struct StepEnd {
    words: String,
    /// How its transaction ended, if it did.
    end: Option<End>,
}

/// Runs every order of a script, one after the other.
pub(super) fn run(
    shared: &Shared<'_>,
    script: &Script,
    mut journals: Vec<Journal>,
) -> io::Result<Vec<StepTold>> {
    if let Some(journal) = journals.first_mut() {
        for (key, name) in script.key_names() {
            journal.key_name(key, &name)?;
        }
    }
    std::thread::scope(|scope| {
        let (say, said) = channel();
        let mut sessions = Vec::new();
        for (number, journal) in journals.into_iter().enumerate() {
            let (tell, told) = channel();
            let player = Player {
                client: Client::new(shared, number, journal),
                is_open: false,
            };
            let say = say.clone();
            let thread = std::thread::Builder::new().name(format!("session {number}"));
            thread.spawn_scoped(scope, move || player.play(number, script, &told, &say))?;
            sessions.push(PlayedSession {
                tell,
                left: VecDeque::new(),
                busy: None,
                skips: false,
            });
        }
        drop(say);
        let mut play = Play {
            shared,
            script,
            sessions,
            said,
            steps: Vec::new(),
        };
        match play.connect().and_then(|()| play.all()) {
            Ok(()) => Ok(play.steps),
            Err(Halt::Io(error)) => Err(error),
            Err(Halt::Trouble(why)) => {
                shared.trouble(why);
                Ok(play.steps)
            }
        }
        // The sessions end when their channels are closed.
    })
}

/// The scheduler's state of a session.
struct PlayedSession {
    tell: Sender<Told>,
    /// Steps that wait for the one under way.
    left: VecDeque<Told>,
    /// The step under way, by its place among those that were carried out.
    busy: Option<usize>,
    /// Whether its transaction was aborted and has steps left.
    skips: bool,
}

struct Play<'a> {
    shared: &'a Shared<'a>,
    script: &'a Script,
    sessions: Vec<PlayedSession>,
    said: Receiver<Said>,
    steps: Vec<StepTold>,
}

impl Play<'_> {
    /// Waits until every session is connected, which is part of no step.
    fn connect(&mut self) -> Result<(), Halt> {
        for _ in 0..self.sessions.len() {
            let Ok(said) = self.said.recv() else {
                return Err(Halt::Trouble(
                    "internal error: no session is left".to_owned(),
                ));
            };
            said.outcome?;
        }
        Ok(())
    }

    fn all(&mut self) -> Result<(), Halt> {
        let script = self.script;
        for (run, order) in script.orders.iter().enumerate() {
            for &step in order {
                let session = script.steps[step].session;
                self.sessions[session].left.push_back((run, step));
                self.next(session);
                self.wait(Some(session), self.shared.run.moment)?;
                if !self.shared.goes_on() {
                    return Ok(());
                }
            }
            self.wait(None, self.shared.run.patience)?;
        }
        Ok(())
    }

    /// Sends the next step of a session that has nothing to do.
    fn next(&mut self, number: usize) {
        let script = self.script;
        let session = &mut self.sessions[number];
        while session.busy.is_none() {
            let Some((run, place)) = session.left.pop_front() else {
                return;
            };
            let step = &script.steps[place];
            let is_end = matches!(step.act, ScriptAct::Commit | ScriptAct::Abort);
            let mut told = StepTold {
                run,
                line: step.line,
                session: script.sessions[step.session].clone(),
                text: step.text.clone(),
                blocked: false,
                expected_to_block: step.blocks,
                said: String::new(),
            };
            if session.skips {
                "left out".clone_into(&mut told.said);
                session.skips = !is_end;
            } else {
                session.busy = Some(self.steps.len());
                // A session that is gone has said why.
                let _ = session.tell.send((run, place));
            }
            self.steps.push(told);
        }
    }

    /// Waits until a session has nothing to do, or all have; at most this long, and a moment more for those that a transaction's
    /// end may have released.
    fn wait(&mut self, awaited: Option<usize>, time: Duration) -> Result<(), Halt> {
        let moment = self.shared.run.moment;
        let mut deadline = Instant::now() + time;
        let mut has_ended = false;
        loop {
            let busy = self.sessions.iter().filter(|it| it.busy.is_some()).count();
            let is_awaited = awaited.is_some_and(|it| self.sessions[it].busy.is_some());
            if busy == 0 || (awaited.is_some() && !is_awaited && !has_ended) {
                return Ok(());
            }
            if !self.shared.goes_on() {
                return Ok(());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return self.blocked(awaited);
            }
            match self.said.recv_timeout(left.min(WATCH)) {
                Ok(said) => {
                    let ended = self.hear(said)?;
                    if ended || awaited.is_some() {
                        deadline = deadline.max(Instant::now() + moment);
                    }
                    has_ended |= ended;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Halt::Trouble(
                        "internal error: no session is left".to_owned(),
                    ));
                }
            }
        }
    }

    /// Takes what is under way for blocked. At the end of a run nothing may be.
    fn blocked(&mut self, awaited: Option<usize>) -> Result<(), Halt> {
        for session in &self.sessions {
            let Some(busy) = session.busy else { continue };
            let step = &mut self.steps[busy];
            step.blocked = true;
            if awaited.is_none() {
                return Err(Halt::Trouble(format!(
                    "line {}: `{}: {}` did not return in {} s, and all other steps are done",
                    step.line,
                    step.session,
                    step.text,
                    self.shared.run.patience.as_secs_f64()
                )));
            }
        }
        Ok(())
    }

    /// Records the result of a step, and sends the next one; returns whether a transaction ended.
    fn hear(&mut self, said: Said) -> Result<bool, Halt> {
        let session = &mut self.sessions[said.session];
        let Some(place) = session.busy.take() else {
            return Ok(false);
        };
        let step = &mut self.steps[place];
        let end = match said.outcome {
            Ok(end) => end,
            Err(Halt::Trouble(why)) => {
                return Err(Halt::Trouble(format!(
                    "line {}: `{}: {}`: {why}",
                    step.line, step.session, step.text
                )));
            }
            Err(halt) => return Err(halt),
        };
        step.said = end.words;
        let is_end = matches!(&*step.text, "commit" | "abort");
        session.skips = end.end.is_some() && !is_end;
        self.next(said.session);
        Ok(end.end.is_some())
    }
}

/// A session's thread.
struct Player<'a> {
    client: Client<'a>,
    is_open: bool,
}

impl Player<'_> {
    fn play(mut self, session: usize, script: &Script, told: &Receiver<Told>, say: &Sender<Said>) {
        let outcome = self.client.connect().map(|_| StepEnd {
            words: String::new(),
            end: None,
        });
        let has_failed = outcome.is_err();
        if say.send(Said { session, outcome }).is_err() || has_failed {
            return;
        }
        while let Ok((run, step)) = told.recv() {
            let outcome = self.carry_out(script, run, &script.steps[step].act);
            let has_failed = outcome.is_err();
            if say.send(Said { session, outcome }).is_err() || has_failed {
                return;
            }
        }
    }

    fn carry_out(&mut self, script: &Script, run: usize, act: &ScriptAct) -> Result<StepEnd, Halt> {
        if !self.is_open {
            if !self.client.connect()? {
                return Err(Halt::Trouble("stopped".to_owned()));
            }
            self.client.enter()?;
            self.is_open = true;
            let begun = self.client.with(|client, session| client.begin(session))?;
            if let Err(failure) = begun {
                return self.end(&Err(failure));
            }
        }
        match act {
            ScriptAct::Begin => Ok(StepEnd {
                words: "begun".to_owned(),
                end: None,
            }),
            ScriptAct::Commit => {
                let outcome = self.client.with(|client, session| client.commit(session))?;
                self.end(&outcome)
            }
            ScriptAct::Abort => self.end(&Err(Failure::Aborted(ON_REQUEST))),
            ScriptAct::Sql(statement) => {
                let answer = self
                    .client
                    .with(|client, session| client.state(session, statement))?;
                match answer {
                    Ok(answer) => Ok(StepEnd {
                        words: sql_words(&answer),
                        end: None,
                    }),
                    Err(failure) => self.end(&Err(failure)),
                }
            }
            ScriptAct::Operation(verb, one, other) => {
                let step = script.step(run, *verb, *one, *other);
                let answer = self
                    .client
                    .with(|client, session| client.step(session, step))?;
                match answer {
                    Ok(answer) => Ok(StepEnd {
                        words: answer_words(script, &answer),
                        end: None,
                    }),
                    Err(failure) => self.end(&Err(failure)),
                }
            }
        }
    }

    fn end(&mut self, outcome: &Result<(), Failure>) -> Result<StepEnd, Halt> {
        self.is_open = false;
        let end = self.client.leave(outcome)?;
        let words = match end {
            End::Committed => "committed".to_owned(),
            End::Aborted(ON_REQUEST) => "aborted".to_owned(),
            End::Aborted(reason) => format!("aborted: {reason}"),
            End::Unknown => "the connection was lost, so the end is unknown".to_owned(),
        };
        Ok(StepEnd {
            words,
            end: Some(end),
        })
    }
}

/// The reason of an abort that the script asks for.
const ON_REQUEST: &str = "by the script";

/// The rows as they were returned.
fn sql_words(answer: &SqlAnswer) -> String {
    if answer.rows.is_empty() {
        return if answer.columns.is_empty() {
            format!("{} rows changed", answer.changed)
        } else {
            "no rows".to_owned()
        };
    }
    let cell = |it: &Option<String>| it.clone().unwrap_or_else(|| "null".to_owned());
    let row = |row: &Vec<Option<String>>| row.iter().map(cell).collect::<Vec<_>>().join(" ");
    answer.rows.iter().map(row).collect::<Vec<_>>().join(", ")
}

fn answer_words(script: &Script, answer: &StepAnswer) -> String {
    match answer {
        StepAnswer::Cell(None) | StepAnswer::Deleted(false) => "no row".to_owned(),
        StepAnswer::Cell(Some(cell)) => cell.value.to_string(),
        StepAnswer::List(list) => format!("{list:?}"),
        StepAnswer::Rows(rows) if rows.is_empty() => "no rows".to_owned(),
        StepAnswer::Rows(rows) => {
            let row = |(key, value): &(i64, i64)| format!("{} = {value}", script.name_of(*key));
            let rows: Vec<String> = rows.iter().map(row).collect();
            rows.join(", ")
        }
        StepAnswer::Wrote(value) => format!("wrote {value}"),
        StepAnswer::Deleted(true) => "deleted".to_owned(),
    }
}
