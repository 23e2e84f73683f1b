//! The reports of a running study. This crate prints nothing; the command line does.

use std::fmt::Display;
use std::io;
use std::time::Duration;

use crate::error::{Context, Result};

/// A report.
#[derive(Clone, Debug)]
pub enum StudyEvent<'a> {
    /// This many cells are to run.
    Begin(usize),
    /// Another step than a cell is running.
    Doing(&'a str),
    /// A cell has ended.
    Ended {
        /// The history's name.
        history: &'a str,
        /// The row in words.
        row: &'a str,
        /// Since the beginning.
        gone: Duration,
        /// Estimate of the remaining time.
        left: Duration,
    },
    /// All that could run has run.
    End,
    /// A warning for the user.
    Warning(&'a str),
    /// Lines of a list, for stdout, its only reader; an error of the kind `BrokenPipe` ends the list.
    Listed(&'a str),
    /// A part of the answer, for stdout; `always` if it is printed even with `--quiet`.
    Text {
        /// The text.
        text: &'a str,
        /// Whether it is the answer itself.
        always: bool,
    },
}

/// A listener.
pub trait StudyListener {
    /// Takes note. An error ends the study.
    fn event(&mut self, event: StudyEvent<'_>) -> io::Result<()>;
}

/// Lines are passed on when they have this many bytes together.
const ENOUGH: usize = 1 << 16;

/// A list of any length costs no memory, and ends when its reader is gone.
pub fn list<T: Display>(
    lines: impl Iterator<Item = T>,
    listener: &mut dyn StudyListener,
) -> Result<()> {
    let mut text = String::new();
    let mut tell = |text: &mut String| {
        let told = listener.event(StudyEvent::Listed(text));
        text.clear();
        told
    };
    let told = (|| {
        for line in lines {
            text += &line.to_string();
            if text.len() > ENOUGH {
                tell(&mut text)?;
            }
        }
        tell(&mut text)
    })();
    match told {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        told => told.context("cannot write to stdout"),
    }
}

/// The lines of a JSON array, an element each.
pub fn array<T: Display>(elements: impl Iterator<Item = T>) -> impl Iterator<Item = String> {
    let mut before = "[";
    let elements = elements.map(Some).chain([None]);
    elements.map(move |element| match element {
        Some(element) => format!("{}{element}", std::mem::replace(&mut before, ",\n ")),
        None if before == "[" => "[]\n".to_owned(),
        None => "]\n".to_owned(),
    })
}
