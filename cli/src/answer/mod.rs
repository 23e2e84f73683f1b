//! The result of a check, for every output: text, JSON, a page.

pub mod ordered;
pub mod recorded;
pub mod ruled_out;
pub mod telling;
pub mod words;

use std::path::{Path, PathBuf};
use std::time::Duration;

use kingsnake_datasets::Parsed;
use kingsnake_encodings::proof::Checked;
use kingsnake_solver::auto::Asked;
use kingsnake_solver::certify::Traces;
use kingsnake_solver::check::{CheckStats, Decider};
use kingsnake_solver::lattice::Names;
use kingsnake_solver::model::{History, Status, visible};
use kingsnake_solver::verdict::{Counterexample, Verdict};

use crate::anomalies::{Expected, Found, broken_by};
use crate::answer::ordered::Ordered;
use crate::answer::recorded::OtherOrder;
use crate::answer::telling::Telling;
use crate::plan::Plan;
use crate::processor::PhaseCost;
use crate::voice::count;

/// A finished check.
pub struct Answer {
    /// What ran.
    pub plan: Plan,
    /// What was checked; `None` if reading it stopped.
    pub parsed: Option<Parsed>,
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
    pub found: Option<Found>,
    /// Expectations; if there are any, they set the exit status.
    pub expected: Expected,
    /// The proof that was written, and what checking it found.
    pub proof: Option<(PathBuf, Checked)>,
    /// Every phase with its duration, reading first.
    pub phases: Vec<(&'static str, Duration)>,
    /// What else each took.
    pub costs: Vec<PhaseCost>,
    /// From the start of the process to the answer.
    pub time: Duration,
}

impl Answer {
    /// The verdict in one word.
    pub fn word(&self) -> &'static str {
        self.verdict.word()
    }

    /// Expectations that do not hold.
    pub fn missed(&self) -> Vec<String> {
        let asked = Asked {
            level: self.plan.level,
            spec: self.plan.spec,
        };
        let violated = match &self.verdict {
            Verdict::Violated(_) if !self.plan.promise.is_recorded() => broken_by(asked),
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
        self.parsed.as_ref().map(|parsed| &parsed.history)
    }

    /// The history's name and size: `chengRW-100: 92 transactions, 24 sessions`.
    pub fn subject(&self) -> String {
        let name = base_name(&self.plan.history);
        match self.history() {
            None => name,
            Some(history) => format!(
                "{name}: {}, {}",
                count(history.n_txns(), "transaction"),
                count(history.n_sessions(), "session")
            ),
        }
    }

    /// How the answer was found, in a sentence.
    pub fn how(&self) -> String {
        let stats = &self.stats;
        let violated = matches!(self.verdict, Verdict::Violated(_));
        if self.plan.spec.model.is_weak()
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
                let backend = stats
                    .decide
                    .as_ref()
                    .map_or(&self.plan.backend, |decide| &decide.backend);
                match stats.n_open {
                    0 => format!("pruning left choices of other kinds open; {backend} decided"),
                    n => format!("{backend} decided {} that pruning left open", count(n, "constraint")),
                }
            }
            Decider::Zones => {
                "every value is written once, so sorting the operations decided".to_owned()
            }
            Decider::Search if self.plan.promise.refusals_count() => {
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

/// The last part of a path, or the whole path if it has none, in printable form.
pub fn base_name(path: &Path) -> String {
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
