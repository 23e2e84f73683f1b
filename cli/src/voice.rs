//! Prints: the verdict on stdout, warnings on stderr. The only code that prints text.
//!
//! Invariant: a closed pipe is no error, and no control character or bidirectional mark in a history's names reaches a terminal.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use kingsnake_text::without_commands;
pub use kingsnake_text::{
    LONGEST_MESSAGE, Paint, count, first_of, grouped, lasting, printable, printable_lines, short,
    sized,
};

use crate::args::{Color, VoiceArgs};

/// How much to print, and how.
#[derive(Clone, Copy, Debug)]
pub struct Voice {
    /// Only the verdict.
    pub quiet: bool,
    /// Everything.
    pub verbose: bool,
    /// Whether stdout takes colours.
    pub paint: Paint,
}

impl Voice {
    /// Resolves the options.
    pub fn new(args: &VoiceArgs) -> Self {
        let color = match args.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
        };
        Voice {
            quiet: args.quiet,
            verbose: args.verbose,
            paint: Paint::new(color),
        }
    }

    /// Warns, on stderr, unless told to be quiet.
    pub fn warn(self, words: &str) {
        if !self.quiet {
            complain(&format!("warning: {words}"));
        }
    }

    /// Prints each warning; if there are very many, the first ones.
    pub fn warn_each(self, warnings: &[String]) {
        for words in first_of(warnings) {
            self.warn(&words);
        }
    }

    /// Prints the logging mistakes that could have caused the answer, on stderr.
    pub fn hint(self, words: &str) {
        if !self.quiet {
            complain(&format!(
                "hint: the log may be wrong, not the database: {words}"
            ));
        }
    }
}

/// Whether a service reads the output and takes some lines as commands.
fn in_workflow() -> bool {
    let names = ["GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION"];
    names.iter().any(|name| std::env::var_os(name).is_some())
}

/// Text or JSON in which such a service finds no command.
fn harmless(words: &str) -> Cow<'_, str> {
    if in_workflow() {
        without_commands(words).into()
    } else {
        words.into()
    }
}

/// Prints to stdout. A closed pipe is no error; a full disk is.
pub fn say(words: &str) -> io::Result<()> {
    say_as_it_is(&harmless(words))
}

/// The same for text with commands of ours.
pub fn say_as_it_is(words: &str) -> io::Result<()> {
    match write_stdout(words) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Prints lines of a list until the reader closes the pipe.
pub fn list(words: &str) -> io::Result<()> {
    write_stdout(&harmless(words))
}

fn write_stdout(words: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(words.as_bytes()).and_then(|()| out.flush())
}

/// Prints to stderr; failures cannot be reported. Further lines are indented, so that a name with a line break cannot
/// look like a message of its own.
pub fn complain(words: &str) {
    let words = printable_lines(&short(words, LONGEST_MESSAGE)).replace('\n', "\n    ");
    let _ = writeln!(io::stderr().lock(), "kingsnake: {}", harmless(&words));
}
