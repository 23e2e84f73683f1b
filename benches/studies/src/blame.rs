//! Errors in a study file, each with its line, its column and the line itself.

use std::ops::Range;

use crate::error::Error;

/// The origin of a text, for errors in it.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// The file's name, as it is shown.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
}

impl Page<'_> {
    /// The message with its place in the text.
    pub fn blame(&self, span: Range<usize>, words: &str) -> Error {
        let at = span.start.min(self.text.len());
        let before = self.text.get(..at).unwrap_or_default();
        let number = before.matches('\n').count() + 1;
        let from = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = self.text[from..].lines().next().unwrap_or_default();
        let column = before[from..].chars().count();
        let length = self
            .text
            .get(at..span.end.min(from + line.len()))
            .map_or(1, |marked| marked.chars().count().max(1));
        let margin = " ".repeat(number.to_string().len());
        Error::File(format!(
            "{}:{number}:{}: {words}\n{margin} |\n{number} | {line}\n{margin} | {}{}",
            self.name,
            column + 1,
            " ".repeat(column),
            "^".repeat(length)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_and_the_place_in_it_are_shown() {
        let page = Page {
            name: "s.toml",
            text: "a = 1\nné = \"x\"\nc = 3\n",
        };
        let error = page.blame(12..15, "no such thing").to_string();
        assert_eq!(
            error,
            "s.toml:2:6: no such thing\n  |\n2 | né = \"x\"\n  |      ^^^"
        );
    }

    #[test]
    fn a_place_beyond_the_text_is_its_end() {
        let page = Page {
            name: "s.toml",
            text: "a",
        };
        assert!(page.blame(7..9, "gone").to_string().contains("s.toml:1:2"));
    }
}
