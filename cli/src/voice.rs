//! Says things: the verdict on stdout, warnings on stderr. The only code that prints words.
//!
//! Invariant: a reader that goes away (a closed pipe) is no error, and control characters that a history's names may
//! contain never reach a terminal.

use std::io::{self, IsTerminal, Write};

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

/// Says it on stderr. There is nobody left to tell if that fails.
pub fn complain(words: &str) {
    let _ = writeln!(io::stderr().lock(), "kingsnake: {}", printable(words));
}

/// Colours, or none.
#[derive(Clone, Copy, Debug)]
pub struct Paint(bool);

impl Paint {
    /// Good news.
    pub fn good(self, words: &str) -> String {
        self.with("1;32", words)
    }

    /// Bad news.
    pub fn bad(self, words: &str) -> String {
        self.with("1;31", words)
    }

    /// No news.
    pub fn open(self, words: &str) -> String {
        self.with("1;33", words)
    }

    /// What stands out.
    pub fn strong(self, words: &str) -> String {
        self.with("1", words)
    }

    /// What does not.
    pub fn faint(self, words: &str) -> String {
        self.with("2", words)
    }

    fn with(self, code: &str, words: &str) -> String {
        if self.0 {
            format!("\x1b[{code}m{words}\x1b[0m")
        } else {
            words.to_owned()
        }
    }
}

/// The text with its control characters spelt out, so that a name from a file cannot steer a terminal.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() && letter != '\n' {
            out.extend(letter.escape_default());
        } else {
            out.push(letter);
        }
    }
    out
}

/// A number with its thousands set apart.
pub fn grouped(number: impl Into<u64>) -> String {
    let digits = number.into().to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count of things, in words: `1 key`, `2 keys`.
pub fn count(number: usize, one: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {one}{plural}", grouped(number as u64))
}

/// A duration as a person reads it.
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
    const MIB: f64 = 1_048_576.0;
    let size = bytes as f64;
    if bytes < 1024 {
        format!("{bytes} bytes")
    } else if size < MIB {
        format!("{:.0} kB", size / 1024.0)
    } else if size < 1024.0 * MIB {
        format!("{:.0} MB", size / MIB)
    } else {
        format!("{:.2} GB", size / MIB / 1024.0)
    }
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
        assert_eq!(printable("a\x1b[2Jb\nc"), "a\\u{1b}[2Jb\nc");
    }
}
