//! What a study reports while it runs. This crate prints nothing; the command line does.

use std::io;
use std::time::Duration;

/// Something to report.
#[derive(Clone, Debug)]
pub enum StudyEvent<'a> {
    /// This many cells are to run.
    Begin(usize),
    /// Something else than a cell is going on.
    Doing(&'a str),
    /// A cell has ended.
    Ended {
        /// The history's name.
        history: &'a str,
        /// The row in words.
        row: &'a str,
        /// Since the beginning.
        gone: Duration,
        /// About how long the rest takes.
        left: Duration,
    },
    /// All that could run has run.
    End,
    /// Something that the user should know.
    Warning(&'a str),
    /// A part of the answer, for stdout; `always` if it is printed even with `--quiet`.
    Text {
        /// The text.
        text: &'a str,
        /// Whether it is the answer itself.
        always: bool,
    },
}

/// Who hears it.
pub trait StudyListener {
    /// Takes note. An error ends the study.
    fn event(&mut self, event: StudyEvent<'_>) -> io::Result<()>;
}
