//! The outputs of a check: each takes an answer, whatever was asked.

pub mod recorded;
pub mod ruled_out;
pub mod words;

use anyhow::{Context, Result};
use kingsnake_report::anomalies::FoundAnomalies;
use kingsnake_report::answer::Answer;
pub use kingsnake_report::answer::{base_name, status_of, status_word, subject};
use kingsnake_report::json::{Document, document};
use kingsnake_report::meaning::TracedHistory;
use kingsnake_report::{page, picture};
use kingsnake_solver::verdict::Verdict;

use crate::args::FileArgs;
use crate::directory::{self, Head};
use crate::edn;
use crate::limits::is_stdio;
use crate::output::{Output, put};
use crate::voice::{Voice, say};

/// Every class of anomaly of a history, for Elle's map and the directory of anomalies.
pub struct Classes<'a> {
    /// The history.
    pub traced: TracedHistory<'a>,
    /// What was found, unless the budget ended first.
    pub found: Option<&'a FoundAnomalies>,
    /// What is said above it.
    pub head: Head,
}

/// An answer, as the outputs ask for it.
pub trait Reported: Send {
    /// The exit status.
    fn status(&self) -> u8;

    /// Finds the words, which are no part of the time that the answer took.
    fn tell(&mut self, _files: &FileArgs, _explains: bool) {}

    /// The answer in words; more of them for `explain`.
    fn words(&self, voice: Voice, explains: bool) -> String;

    /// The JSON document.
    fn document(&self) -> Document;

    /// The page, where there is something to show.
    fn page(&self) -> Option<String>;

    /// The picture.
    fn svg(&self) -> Option<String>;

    /// The graph for Graphviz.
    fn dot(&self) -> Option<String> {
        None
    }

    /// The order that shows a satisfied history.
    fn certificate(&self) -> Option<String> {
        None
    }

    /// Every class of anomaly, where a history was read.
    fn classes(&mut self) -> Option<Classes<'_>> {
        None
    }

    /// What in the log may have been taken for the answer by mistake.
    fn hints(&self) -> &[String] {
        &[]
    }
}

impl Reported for Answer<'_> {
    fn status(&self) -> u8 {
        Answer::status(self)
    }

    fn tell(&mut self, files: &FileArgs, explains: bool) {
        Answer::tell(self, explains || files.report.is_some());
    }

    fn words(&self, voice: Voice, explains: bool) -> String {
        let mut out = if explains {
            words::long(self, voice)
        } else {
            words::brief(self, voice)
        };
        if let Some(found) = &self.found {
            out.push('\n');
            let is_violated = matches!(self.verdict, Verdict::Violated(_));
            out.push_str(&found.words(voice.paint, is_violated));
            for line in self.missed() {
                out.push_str(&line);
                out.push('\n');
            }
        }
        out
    }

    fn document(&self) -> Document {
        document(self)
    }

    fn page(&self) -> Option<String> {
        Some(page::page(self))
    }

    fn svg(&self) -> Option<String> {
        Answer::svg(self)
    }

    fn dot(&self) -> Option<String> {
        self.scene().map(|scene| picture::dot::draw(&scene))
    }

    fn certificate(&self) -> Option<String> {
        match (&self.verdict, self.history()) {
            (Verdict::Satisfied(order), Some(history)) => {
                let text = kingsnake_evidence::certificate(history, &self.promise, order);
                Some(text)
            }
            _ => None,
        }
    }

    fn classes(&mut self) -> Option<Classes<'_>> {
        let head = Head {
            verdict: format!("{}: {}", self.word(), self.promise),
            status: self.status(),
            command: self.run.clone().unwrap_or_default().short_command,
        };
        let traces = self.traces.take();
        Some(Classes {
            traced: TracedHistory::resumed(self.history()?, traces),
            found: self.found.as_ref(),
            head,
        })
    }

    fn hints(&self) -> &[String] {
        &self.hints
    }
}

/// Why there is no picture.
const NO_PICTURE: [&str; 2] = ["picture", "there is nothing to draw"];

/// The files that were asked for, and the options that name them.
pub fn outputs(args: &FileArgs) -> impl Iterator<Item = Output<'_>> {
    let all = [
        ("--certificate", &args.certificate),
        ("--proof", &args.proof),
        ("--json", &args.json),
        ("--edn", &args.edn),
        ("--dot", &args.dot),
        ("--svg", &args.svg),
        ("--report", &args.report),
    ];
    all.into_iter()
        .filter_map(|(option, path)| path.as_deref().map(|path| Output { option, path }))
}

/// How an answer writes one of its files; `None` where it has none.
type Text = fn(&dyn Reported) -> Option<String>;

/// Says the verdict first, then writes the files, so that a full disk does not swallow an answer.
pub fn deliver(
    answer: &mut dyn Reported,
    files: &FileArgs,
    voice: Voice,
    explains: bool,
) -> Result<()> {
    // What goes to stdout by request stands alone there.
    if !outputs(files).any(|it| is_stdio(it.path)) {
        say(&answer.words(voice, explains)).context("cannot write to stdout")?;
    }
    if let Some(path) = &files.json {
        put(path, &answer.document().text())?;
    }
    if (files.edn.is_some() || files.directory.is_some())
        && let Some(classes) = answer.classes()
    {
        let Classes {
            traced,
            found,
            head,
        } = classes;
        if let Some(path) = &files.edn {
            put(path, &edn::document(&traced, found, head.status))?;
        }
        if let (Some(path), Some(found)) = (&files.directory, found) {
            directory::write(path, traced.meaning(), found, &head)?;
        }
    }
    let texts: [(_, Text, _); 4] = [
        (
            &files.certificate,
            |it| it.certificate(),
            ["certificate", "not satisfied"],
        ),
        (&files.dot, |it| it.dot(), NO_PICTURE),
        (&files.svg, |it| it.svg(), NO_PICTURE),
        (&files.report, |it| it.page(), ["page", "nothing was read"]),
    ];
    for (path, text, [kind, why]) in texts {
        match path.as_deref().map(|path| (path, text(answer))) {
            Some((path, Some(text))) => put(path, &text)?,
            Some((path, None)) => voice.warn(&format!("no {kind} for {}: {why}", path.display())),
            None => {}
        }
    }
    for hint in answer.hints() {
        voice.hint(hint);
    }
    Ok(())
}
