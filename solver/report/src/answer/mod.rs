//! The result of a check, for every output: text, JSON, a page.

pub mod ordered;
pub mod telling;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kingsnake_datasets::{Format, Parsed, ReadOptions};
use kingsnake_encodings::proof::Checked;
use kingsnake_solver::auto::Asked;
use kingsnake_solver::certify::Traces;
use kingsnake_solver::check::{CheckStats, Decider};
use kingsnake_solver::lattice::Names;
use kingsnake_solver::level::Level;
use kingsnake_solver::model::{History, Status, visible};
use kingsnake_solver::progress::Phase;
use kingsnake_solver::promise::Promise;
use kingsnake_solver::verdict::{Counterexample, Verdict};
use kingsnake_tell::StoryLine;
use kingsnake_text::count;

use crate::anomalies::{Expected, FoundAnomalies, broken_by};
use crate::lint::hints;
use crate::meaning::TracedHistory;
use crate::picture::{self, Scene};

use ordered::{Ordered, ordered};
use telling::{Telling, tell};

/// Longer orders are not judged: that takes time in the square of their length.
const MOST_POINTS: usize = 200_000;

/// How to repeat a check, as a command line would.
#[derive(Clone, Debug, Default)]
pub struct CommandRun {
    /// Every option as it was settled, by name.
    pub rows: Vec<(&'static str, String)>,
    /// The command with every option spelled out.
    pub command: String,
    /// The command with only what differs from the defaults.
    pub short_command: String,
    /// The history, as a shell takes it.
    pub history: String,
}

/// Where a history came from.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// The file or directory; empty for a history that was made in memory.
    pub path: PathBuf,
    /// The format, where it was read.
    pub format: Option<Format>,
    /// Bytes after decompression.
    pub bytes: u64,
    /// What the reader noticed.
    pub warnings: Vec<String>,
    /// How it can be read again, to show lines of it; `None` where it cannot.
    pub again: Option<ReadOptions>,
}

impl Source {
    /// Takes a history apart from what was noted while it was read.
    pub fn of(parsed: Parsed, path: &Path, again: Option<ReadOptions>) -> (History, Source) {
        let source = Source {
            path: path.to_owned(),
            format: Some(parsed.format),
            bytes: parsed.bytes,
            warnings: parsed.warnings,
            again,
        };
        (parsed.history, source)
    }
}

/// What a phase used.
#[derive(Clone, Copy, Debug)]
pub struct PhaseCost {
    /// The phase.
    pub name: &'static str,
    /// Seconds of all threads, where the system tells them.
    pub seconds: Option<f64>,
    /// The largest resident size from the start of the process to the end of the phase, in bytes, where it was asked for.
    pub peak: Option<u64>,
}

/// What a check cost, besides its statistics.
#[derive(Clone, Debug, Default)]
pub struct Cost {
    /// Every phase with its duration, reading first.
    pub phases: Vec<(&'static str, Duration)>,
    /// What else each used.
    pub by_phase: Vec<PhaseCost>,
    /// From the start to the answer.
    pub time: Duration,
    /// Seconds of all processors so far.
    pub cpu_seconds: Option<f64>,
    /// The largest resident size so far.
    pub peak_memory: Option<u64>,
}

impl Cost {
    /// Adds to a phase, which may come in several parts.
    pub fn spend(&mut self, name: &'static str, time: Duration) {
        match self.phases.iter_mut().find(|phase| phase.0 == name) {
            Some(phase) => phase.1 += time,
            None => self.phases.push((name, time)),
        }
    }
}

/// Whether some other order explains what clients saw, if a certificate is refuted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherOrder {
    /// One does.
    Some,
    /// None does.
    None,
    /// Not decided.
    Undecided,
}

impl OtherOrder {
    /// In one word, for JSON.
    pub fn word(self) -> &'static str {
        match self {
            OtherOrder::Some => "yes",
            OtherOrder::None => "no",
            OtherOrder::Undecided => "undecided",
        }
    }

    /// In a sentence.
    pub fn sentence(self) -> &'static str {
        match self {
            OtherOrder::Some => {
                "Some other order explains what the clients saw: the protocol broke its own order, but no client observed a violation."
            }
            OtherOrder::None => "No other order explains what the clients saw either.",
            OtherOrder::Undecided => {
                "Whether some other order explains what the clients saw was not decided."
            }
        }
    }
}

/// A finished check.
pub struct Answer<'h> {
    /// The level by name, and its ingredients.
    pub asked: Asked,
    /// What was promised.
    pub promise: Promise,
    /// How to repeat it; `None` where no output tells, or no command line can.
    pub run: Option<CommandRun>,
    /// What was checked; `None` if reading it stopped.
    pub history: Option<Cow<'h, History>>,
    /// Where it came from.
    pub source: Source,
    /// The verdict.
    pub verdict: Verdict,
    /// The component that decided.
    pub decider: Decider,
    /// The history's meaning, if it was computed.
    pub traces: Option<Traces>,
    /// Duration without reading.
    pub stats: CheckStats,
    /// What happened, if the level is violated.
    pub telling: Option<Telling>,
    /// The order and its tightness, if the level is satisfied and they were requested.
    pub ordered: Option<Ordered>,
    /// Whether some other order explains what clients saw, if a certificate is refuted and this was requested.
    pub other_order: Option<OtherOrder>,
    /// Logging mistakes that could have caused this answer.
    pub hints: Vec<String>,
    /// Every class of anomaly, if requested.
    pub found: Option<FoundAnomalies>,
    /// Expectations; if there are any, they set the exit status.
    pub expected: Expected,
    /// The proof that was written, and what checking it found.
    pub proof: Option<(PathBuf, Checked)>,
    /// What it cost.
    pub cost: Cost,
}

impl Answer<'_> {
    /// An answer without words yet.
    pub fn new(asked: Asked, promise: Promise, verdict: Verdict, decider: Decider) -> Self {
        Answer {
            asked,
            promise,
            run: None,
            history: None,
            source: Source::default(),
            verdict,
            decider,
            traces: None,
            stats: CheckStats::default(),
            telling: None,
            ordered: None,
            other_order: None,
            hints: Vec::new(),
            found: None,
            expected: Expected::default(),
            proof: None,
            cost: Cost::default(),
        }
    }

    /// Finds the words: the story of a violation, the order of a satisfied history where `orders` asks for it, and hints. The verdict
    /// stands already; this is no part of the time that it took.
    pub fn tell(&mut self, orders: bool) {
        let Some(history) = self.history.take() else {
            return;
        };
        match &self.verdict {
            Verdict::Satisfied(certificate) if orders && certificate.order.len() <= MOST_POINTS => {
                self.ordered = Some(ordered(&history, &self.promise, certificate));
            }
            Verdict::Violated(counterexample) => {
                let begun = Instant::now();
                let traced = TracedHistory::resumed(&history, self.traces.take());
                let mut telling = tell(traced.meaning(), &self.promise, counterexample);
                let other_order = self.other_order.map(|it| StoryLine {
                    depth: 0,
                    text: it.sentence().to_owned(),
                });
                telling.story.lines.extend(other_order);
                self.telling = Some(telling);
                self.traces = traced.into_traces();
                self.cost.spend(Phase::Explain.name(), begun.elapsed());
                self.cost.time += begun.elapsed();
            }
            _ => {}
        }
        let format = self.source.format.unwrap_or(Format::Kingsnake);
        let name = self.telling.as_ref().map(|it| it.name);
        self.hints = hints(&history, format, &self.verdict, name);
        self.history = Some(history);
    }

    /// The verdict in one word.
    pub fn word(&self) -> &'static str {
        self.verdict.word()
    }

    /// Expectations that do not hold.
    pub fn missed(&self) -> Vec<String> {
        let violated = match &self.verdict {
            Verdict::Violated(_) if !self.promise.is_recorded() => broken_by(self.asked),
            _ => Names::new(),
        };
        let found = self.found.as_ref();
        found.map_or(Vec::new(), |found| self.expected.missed(found, &violated))
    }

    /// The exit status.
    pub fn status(&self) -> u8 {
        if !self.expected.is_empty() {
            return match &self.found {
                None => 3,
                Some(found) if self.missed().is_empty() && found.anomalies.is_complete => 0,
                Some(_) => 1,
            };
        }
        status_of(&self.verdict)
    }

    /// The history, if it was read.
    pub fn history(&self) -> Option<&History> {
        self.history.as_deref()
    }

    /// The history's name and size: `chengRW-100: 92 transactions, 24 sessions`.
    pub fn subject(&self) -> String {
        let name = base_name(&self.source.path);
        match self.history() {
            None => name,
            Some(history) => subject(&name, history),
        }
    }

    /// How the answer was found, in a sentence.
    pub fn how(&self) -> String {
        let stats = &self.stats;
        let violated = matches!(self.verdict, Verdict::Violated(_));
        if self.asked.spec.model.is_weak()
            && let Some(words) = weak_how(self.decider, violated)
        {
            return words.to_owned();
        }
        match self.decider {
            Decider::Resolve => match &self.verdict {
                Verdict::Violated(Counterexample::Cyclic(_)) => {
                    "what one transaction saw of a row contradicts itself; nothing was searched"
                        .to_owned()
                }
                _ => "some reads cannot have happened at this level".to_owned(),
            },
            Decider::Linear if violated => {
                "every key is ordered by its reads and writes, and the order has a cycle".to_owned()
            }
            Decider::Linear => {
                "every key is ordered by its reads and writes; one topological sort decided"
                    .to_owned()
            }
            Decider::Prune if violated => "pruning found a cycle of known edges".to_owned(),
            Decider::Prune => "pruning left no constraint open".to_owned(),
            Decider::Witness => format!(
                "the estimated order explains every read ({} were open)",
                count(stats.n_open, "constraint")
            ),
            Decider::Backend => {
                let backend = stats.decide.as_ref();
                let backend = backend.map_or("the back end", |decide| &decide.backend);
                match stats.n_open {
                    0 => format!("pruning left choices of other kinds open; {backend} decided"),
                    n => format!("{backend} decided {} that pruning left open", count(n, "constraint")),
                }
            }
            Decider::Zones => {
                "every value is written once, so sorting the operations decided".to_owned()
            }
            Decider::Search if self.promise.refusals_count() => {
                "values are written more than once or a refusal counts, so a search over orders decided".to_owned()
            }
            Decider::Search => {
                "values are written more than once, so a search over orders decided".to_owned()
            }
            Decider::Certificate => {
                "the recorded versions and snapshots decided; nothing was searched".to_owned()
            }
            Decider::Replay => "the expected order was replayed; nothing was searched".to_owned(),
            Decider::Implied(level) => format!("the answer at {level} implies this one"),
            Decider::None => "no answer was found".to_owned(),
        }
    }

    /// What is drawn of a violated history.
    pub fn scene(&self) -> Option<Scene> {
        let (history, telling, counterexample) = self.violation()?;
        let labels = telling.labels(history);
        Some(picture::scene(history, &labels, counterexample))
    }

    /// The picture of a violated history: operations over time where linearizability was checked, else transactions and arrows.
    pub fn svg(&self) -> Option<String> {
        let (history, telling, counterexample) = self.violation()?;
        if self.asked.level != Level::Linearizable {
            return self.scene().map(|scene| picture::svg::document(&scene));
        }
        let (labels, txns) = (telling.labels(history), &telling.story.txns);
        let drawn = picture::timeline::document(history, &labels, txns, counterexample);
        Some(drawn)
    }

    fn violation(&self) -> Option<(&History, &Telling, &Counterexample)> {
        match (&self.verdict, self.history(), &self.telling) {
            (Verdict::Violated(counterexample), Some(history), Some(telling)) => {
                Some((history, telling, counterexample))
            }
            _ => None,
        }
    }

    /// The note about transactions of unknown outcome.
    pub fn about_unknown(&self) -> Option<String> {
        let stats = &self.stats;
        if stats.n_unknown_counted + stats.n_unknown_dropped == 0 {
            return None;
        }
        Some(format!(
            "of the transactions with unknown outcome, {} counted as committed because they were observed, {} were left out because they were not",
            stats.n_unknown_counted, stats.n_unknown_dropped
        ))
    }
}

/// How an answer at a weak level was found, unless its reads are impossible or nothing was decided.
fn weak_how(decider: Decider, violated: bool) -> Option<&'static str> {
    Some(match decider {
        Decider::Linear => "one topological sort of the commits decided",
        Decider::Witness => "an order at a stronger level explains every read",
        Decider::Backend if violated => {
            "no assignment of writers to the ambiguous reads yields an order of commits"
        }
        Decider::Backend => {
            "an assignment of writers to the ambiguous reads yields an order of commits"
        }
        _ => return None,
    })
}

/// A history's name and size.
pub fn subject(name: &str, history: &History) -> String {
    format!(
        "{name}: {}, {}",
        count(history.n_txns(), "transaction"),
        count(history.n_sessions(), "session")
    )
}

/// The last part of a path, or the whole path if it has none, in printable form.
pub fn base_name(path: &Path) -> String {
    if path.as_os_str().is_empty() {
        return "history".to_owned();
    }
    let name = path.file_name().map_or_else(
        || path.display().to_string(),
        |name| name.to_string_lossy().into_owned(),
    );
    visible(&name).into_owned()
}

/// The exit status of a verdict.
pub fn status_of(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Satisfied(_) => 0,
        Verdict::Violated(_) => 1,
        Verdict::Unknown(_) => 3,
    }
}

/// How a transaction ended, in a word.
pub fn status_word(status: Status) -> &'static str {
    match status {
        Status::Committed => "committed",
        Status::Aborted => "aborted",
        Status::Unknown => "unknown",
    }
}
