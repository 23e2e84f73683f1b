//! Colours of a terminal.

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
