//! Says things: the verdict on stdout, warnings on stderr. The only code that prints words.
//!
//! Invariant: a reader that goes away (a closed pipe) is no error, and characters of a history's names that steer a terminal or
//! reorder a line never reach one.

use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use indicatif::{HumanBytes, HumanCount};
use kingsnake_history::model::visible;

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
            paint: Paint(color),
        }
    }

    /// Warns, on stderr, unless told to be quiet.
    pub fn warn(self, words: &str) {
        if !self.quiet {
            complain(&format!("warning: {words}"));
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

/// Colours, or none.
#[derive(Clone, Copy, Debug)]
pub struct Paint(bool);

impl Paint {
    /// Good news.
    pub fn good(self, words: &str) -> String {
        self.with(
            Style::new().bold().fg_color(Some(AnsiColor::Green.into())),
            words,
        )
    }

    /// Bad news.
    pub fn bad(self, words: &str) -> String {
        self.with(
            Style::new().bold().fg_color(Some(AnsiColor::Red.into())),
            words,
        )
    }

    /// No news.
    pub fn open(self, words: &str) -> String {
        self.with(
            Style::new().bold().fg_color(Some(AnsiColor::Yellow.into())),
            words,
        )
    }

    /// What stands out.
    pub fn strong(self, words: &str) -> String {
        self.with(Style::new().bold(), words)
    }

    /// What does not.
    pub fn faint(self, words: &str) -> String {
        self.with(Style::new().dimmed(), words)
    }

    fn with(self, style: Style, words: &str) -> String {
        if self.0 {
            format!("{style}{words}{style:#}")
        } else {
            words.to_owned()
        }
    }
}

/// A text of one line with everything spelt out that could steer a terminal, end the line or reorder it.
pub fn printable(text: &str) -> String {
    visible(text).into_owned()
}

/// The same for a text of several lines.
pub fn printable_lines(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(printable).collect();
    lines.join("\n")
}

/// A number with its thousands set apart.
pub fn grouped(number: impl Into<u64>) -> String {
    HumanCount(number.into()).to_string()
}

/// A count of things, in words: `1 key`, `2 keys`.
pub fn count(number: usize, one: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {one}{plural}", grouped(number as u64))
}

/// A duration as a person reads it; checks take from microseconds to minutes, and `indicatif` begins at seconds.
pub fn lasting(time: std::time::Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 0.000_999_5 {
        format!("{:.0} µs", seconds * 1e6)
    } else if seconds < 0.1 {
        format!("{:.1} ms", seconds * 1e3)
    } else if seconds < 0.999_5 {
        format!("{:.0} ms", seconds * 1e3)
    } else if seconds < 60.0 {
        format!("{seconds:.2} s")
    } else {
        format!("{} min {:02.0} s", (seconds / 60.0) as u64, seconds % 60.0)
    }
}

/// A size as a person reads it.
pub fn sized(bytes: u64) -> String {
    HumanBytes(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!(grouped(0_u64), "0");
        assert_eq!(grouped(999_u64), "999");
        assert_eq!(grouped(1_000_u64), "1,000");
        assert_eq!(grouped(12_345_678_u64), "12,345,678");
        assert_eq!(count(1, "key"), "1 key");
        assert_eq!(count(2_000, "key"), "2,000 keys");
    }

    #[test]
    fn times_choose_their_unit() {
        assert_eq!(lasting(Duration::from_micros(7)), "7 µs");
        assert_eq!(lasting(Duration::from_micros(7_250)), "7.2 ms");
        assert_eq!(lasting(Duration::from_millis(250)), "250 ms");
        assert_eq!(lasting(Duration::from_millis(1_250)), "1.25 s");
        assert_eq!(lasting(Duration::from_secs(125)), "2 min 05 s");
    }

    #[test]
    fn a_name_cannot_steer_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\nc"), "a\\u{1b}[2Jb\\nc");
        assert_eq!(printable("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(printable_lines("a\rb\nc"), "a\\rb\nc");
    }
}
