//! The three-valued verdict, and the content of a violation.

use std::fmt;

use kingsnake_certify::{Meaning, Refusal};
use kingsnake_history::budget::StopReason;
use kingsnake_history::model::{History, TxnId};
use kingsnake_history::promise::Promise;
use kingsnake_history::verdict::{self, Certificate, Counterexample};
use kingsnake_tell as tell;
use thiserror::Error;

/// The result of a check.
#[derive(Clone, Debug)]
pub enum Verdict<'h> {
    /// Some order explains every read; here it is, for [`certificate`](crate::certificate).
    Satisfied(Certificate),
    /// No order does.
    Violated(Violation<'h>),
    /// No answer, and why.
    Unknown(StopReason),
}

impl<'h> Verdict<'h> {
    pub(crate) fn new(history: &'h History, promise: Promise, verdict: verdict::Verdict) -> Self {
        match verdict {
            verdict::Verdict::Satisfied(certificate) => Verdict::Satisfied(certificate),
            verdict::Verdict::Violated(counterexample) => Verdict::Violated(Violation {
                history,
                promise,
                counterexample,
            }),
            verdict::Verdict::Unknown(reason) => Verdict::Unknown(reason),
        }
    }

    /// Whether the level holds, if known.
    ///
    /// ```
    /// use kingsnake::Level;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/none/lost-update.jsonl"))?;
    /// assert_eq!(kingsnake::check(&history, Level::Ser)?.holds(), Some(false));
    /// # Ok(())
    /// # }
    /// ```
    pub fn holds(&self) -> Option<bool> {
        match self {
            Verdict::Satisfied(_) => Some(true),
            Verdict::Violated(_) => Some(false),
            Verdict::Unknown(_) => None,
        }
    }

    /// What happened, if the level is violated.
    ///
    /// ```
    /// use kingsnake::Level;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/none/lost-update.jsonl"))?;
    /// let story = kingsnake::check(&history, Level::Ser)?.story();
    /// assert!(story.is_some_and(|it| it.starts_with("Lost update")));
    /// # Ok(())
    /// # }
    /// ```
    pub fn story(&self) -> Option<String> {
        match self {
            Verdict::Violated(violation) => Some(violation.story()),
            _ => None,
        }
    }
}

impl fmt::Display for Verdict<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Satisfied(_) => out.write_str("satisfied"),
            Verdict::Violated(violation) => write!(out, "violated: {}", violation.anomaly()),
            Verdict::Unknown(reason) => write!(out, "unknown: {reason}"),
        }
    }
}

/// A violated level, with the evidence.
#[derive(Clone, Debug)]
pub struct Violation<'h> {
    pub(crate) history: &'h History,
    pub(crate) promise: Promise,
    pub(crate) counterexample: Counterexample,
}

impl Violation<'_> {
    /// The evidence as data.
    ///
    /// ```
    /// use kingsnake::{Counterexample, Level, Verdict};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/none/lost-update.jsonl"))?;
    /// let Verdict::Violated(violation) = kingsnake::check(&history, Level::Ser)? else {
    ///     unreachable!("an update is lost");
    /// };
    /// assert!(matches!(violation.counterexample(), Counterexample::Cyclic(_)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn counterexample(&self) -> &Counterexample {
        &self.counterexample
    }

    /// The anomaly's name, with Adya's if there is one: `lost update (G-single)`.
    ///
    /// ```
    /// use kingsnake::{Level, Verdict};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/none/lost-update.jsonl"))?;
    /// let Verdict::Violated(violation) = kingsnake::check(&history, Level::Ser)? else {
    ///     unreachable!("an update is lost");
    /// };
    /// assert_eq!(violation.anomaly(), "lost update (G-single)");
    /// # Ok(())
    /// # }
    /// ```
    pub fn anomaly(&self) -> String {
        let name = tell::name(self.history, self.promise.spec(), &self.counterexample);
        let adya = name.adya.map_or(String::new(), |adya| format!(" ({adya})"));
        format!("{}{adya}", name.short)
    }

    /// What happened, in plain words.
    ///
    /// ```
    /// use kingsnake::{Level, Verdict};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/none/lost-update.jsonl"))?;
    /// let Verdict::Violated(violation) = kingsnake::check(&history, Level::Ser)? else {
    ///     unreachable!("an update is lost");
    /// };
    /// assert!(violation.story().starts_with("Lost update"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn story(&self) -> String {
        let meaning = Meaning::of(self.history);
        tell::story_of(&meaning, &self.promise, &self.counterexample).to_text()
    }

    /// The transactions that the story is about, sorted.
    pub(crate) fn txns(&self) -> Vec<TxnId> {
        let meaning = Meaning::of(self.history);
        let story = tell::story_of(&meaning, &self.promise, &self.counterexample);
        let mut txns = story.txns;
        txns.sort_unstable();
        txns
    }

    /// The text of the counterexample, for [`read`](crate::read); anyone can check it again.
    ///
    /// ```
    /// use kingsnake::{Level, Verdict};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/none/lost-update.jsonl"))?;
    /// let Verdict::Violated(violation) = kingsnake::check(&history, Level::Ser)? else {
    ///     unreachable!("an update is lost");
    /// };
    /// let claim = kingsnake::read(&history, violation.evidence().as_bytes())?;
    /// kingsnake::verify(&history, &claim)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn evidence(&self) -> String {
        kingsnake_evidence::counterexample(self.history, &self.promise, &self.counterexample)
    }
}

/// Evidence that does not hold, and why.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the evidence does not hold: {0}")]
pub struct Unverified(pub Refusal);
