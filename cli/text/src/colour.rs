//! Colours of a terminal.

use anstyle::{AnsiColor, Style};

/// Colours, or none.
#[derive(Clone, Copy, Debug)]
pub struct Paint(bool);

impl Paint {
    /// Colours, if the stream takes them.
    pub fn new(colours: bool) -> Self {
        Paint(colours)
    }

    /// Good news.
    pub fn good(self, words: &str) -> String {
        self.with(bold(AnsiColor::Green), words)
    }

    /// Bad news.
    pub fn bad(self, words: &str) -> String {
        self.with(bold(AnsiColor::Red), words)
    }

    /// No news.
    pub fn open(self, words: &str) -> String {
        self.with(bold(AnsiColor::Yellow), words)
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

fn bold(colour: AnsiColor) -> Style {
    Style::new().bold().fg_color(Some(colour.into()))
}
