//! An answer with everything that can be written of it.

use std::borrow::Cow;
use std::time::Duration;

use kingsnake_history::level::Level;
use kingsnake_history::model::History;
use kingsnake_history::promise::Promise;
use kingsnake_report::answer::{Answer, Source};
use kingsnake_report::{json, page, picture};
use kingsnake_solver::auto::Asked;
use kingsnake_solver::check::Report;

use crate::verdict::Verdict;

/// An answer with everything that can be written of it: the page, the picture and the JSON document of `kingsnake check`.
pub struct CheckReport<'h> {
    answer: Answer<'h>,
}

impl<'h> CheckReport<'h> {
    pub(crate) fn new(
        history: Cow<'h, History>,
        source: Source,
        (level, promise): (Level, Promise),
        report: Report,
        time: Duration,
    ) -> Self {
        let level = match &promise {
            Promise::Linearizable(_) => Level::Linearizable,
            Promise::Recorded(level) => Level::Pl(*level),
            Promise::Along(_) | Promise::Level(_) => level,
        };
        let asked = Asked {
            level,
            spec: promise.spec(),
        };
        let mut answer = Answer::new(asked, promise, report.verdict, report.decider);
        (answer.history, answer.source) = (Some(history), source);
        answer.cost.phases.clone_from(&report.stats.phases);
        answer.cost.time = time;
        answer.stats = report.stats;
        answer.tell(true);
        CheckReport { answer }
    }

    /// The history that was checked.
    fn history(&self) -> &History {
        self.answer.history().expect("it was given")
    }

    /// The verdict.
    ///
    /// ```
    /// use kingsnake::Checker;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/none/lost-update.jsonl"))?;
    /// let report = Checker::new().report(&history)?;
    /// assert_eq!(report.verdict().holds(), Some(false));
    /// # Ok(())
    /// # }
    /// ```
    pub fn verdict(&self) -> Verdict<'_> {
        let verdict = self.answer.verdict.clone();
        Verdict::new(self.history(), self.answer.promise.clone(), verdict)
    }

    /// The certificate or the counterexample as text, for [`read`](crate::read) and `kingsnake verify`; `None` if the answer is unknown.
    ///
    /// ```
    /// use kingsnake::Checker;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/strong-session-ser/bank-transfer.jsonl"))?;
    /// let evidence = Checker::new().report(&history)?.evidence().unwrap_or_default();
    /// kingsnake::verify(&history, &kingsnake::read(&history, evidence.as_bytes())?)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn evidence(&self) -> Option<String> {
        match self.verdict() {
            Verdict::Satisfied(order) => {
                let promise = &self.answer.promise;
                Some(crate::certificate(self.history(), promise, &order))
            }
            Verdict::Violated(violation) => Some(violation.evidence()),
            Verdict::Unknown(_) => None,
        }
    }

    /// The report as one HTML page that needs no network.
    ///
    /// ```
    /// use kingsnake::Checker;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/none/lost-update.jsonl"))?;
    /// let page = Checker::new().report(&history)?.page();
    /// assert!(page.starts_with("<!DOCTYPE html>") && page.contains("Lost update"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn page(&self) -> String {
        page::page(&self.answer)
    }

    /// The counterexample as an SVG picture; `None` unless the history is violated.
    ///
    /// ```
    /// use kingsnake::Checker;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/none/lost-update.jsonl"))?;
    /// let picture = Checker::new().report(&history)?.svg();
    /// assert!(picture.is_some_and(|it| it.contains("<svg")));
    /// # Ok(())
    /// # }
    /// ```
    pub fn svg(&self) -> Option<String> {
        self.answer.svg()
    }

    /// The counterexample as a Graphviz graph; `None` unless the history is violated.
    ///
    /// ```
    /// use kingsnake::Checker;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/none/lost-update.jsonl"))?;
    /// let graph = Checker::new().report(&history)?.dot();
    /// assert!(graph.is_some_and(|it| it.starts_with("digraph")));
    /// # Ok(())
    /// # }
    /// ```
    pub fn dot(&self) -> Option<String> {
        self.answer.scene().map(|scene| picture::dot::draw(&scene))
    }

    /// The JSON document of `kingsnake check --json`; docs/json.md describes the fields.
    ///
    /// ```
    /// use kingsnake::Checker;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/none/lost-update.jsonl"))?;
    /// let document = Checker::new().report(&history)?.json();
    /// assert!(document.contains("\"verdict\": \"violated\""));
    /// # Ok(())
    /// # }
    /// ```
    pub fn json(&self) -> String {
        json::document(&self.answer).text()
    }

    /// The verdict, the story and the picture as a piece of HTML, for a notebook.
    ///
    /// ```
    /// use kingsnake::Checker;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/none/lost-update.jsonl"))?;
    /// let card = Checker::new().report(&history)?.card();
    /// assert!(card.contains("Lost update") && card.contains("data:image/svg+xml"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn card(&self) -> String {
        page::card(&self.answer)
    }

    /// What in the log may have been taken for this answer by mistake, as `kingsnake check` hints.
    ///
    /// ```
    /// use kingsnake::Checker;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/none/lost-update.jsonl"))?;
    /// assert!(Checker::new().report(&history)?.hints().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn hints(&self) -> &[String] {
        &self.answer.hints
    }
}
