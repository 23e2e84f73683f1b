//! Says things: the verdict on stdout, warnings on stderr. The only code that prints words.
//!
//! Invariant: a reader that goes away (a closed pipe) is no error, and characters of a history's names that steer a terminal or
//! reorder a line never reach one.

use std::io::{self, IsTerminal, Write};

pub use kingsnake_text::{
    Paint, count, grouped, lasting, percent, printable, printable_lines, sized,
};

use crate::args::{Color, VoiceArgs};

/// How much to say, and how.
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
    /// Settles what was typed.
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

    /// Says what in the log may have been taken for the answer by mistake, on stderr.
    pub fn hint(self, words: &str) {
        if !self.quiet {
            complain(&format!(
                "hint: the log may be wrong, not the database: {words}"
            ));
        }
    }
}

/// Says it on stdout. A closed pipe is no error; a full disk is.
pub fn say(words: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let said = out.write_all(words.as_bytes()).and_then(|()| out.flush());
    match said {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Says it on stderr. There is nobody left to tell if that fails. Further lines are indented, so that a name with a line end in
/// it cannot pass for a message of its own.
pub fn complain(words: &str) {
    let words = printable_lines(words).replace('\n', "\n    ");
    let _ = writeln!(io::stderr().lock(), "kingsnake: {words}");
}
