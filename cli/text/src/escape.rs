//! Text made harmless: for XML and HTML, and for a terminal.

use std::fmt;

/// A text whose every letter is shown as itself, in content and in quoted attributes. What XML forbids becomes U+FFFD.
pub struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        for letter in self.0.chars() {
            match letter {
                '&' => out.write_str("&amp;")?,
                '<' => out.write_str("&lt;")?,
                '>' => out.write_str("&gt;")?,
                '"' => out.write_str("&quot;")?,
                '\'' => out.write_str("&#39;")?,
                '\n' | '\t' => out.write_char(letter)?,
                '\u{fffe}' | '\u{ffff}' => out.write_char('\u{fffd}')?,
                _ if letter.is_control() => out.write_char('\u{fffd}')?,
                _ => out.write_char(letter)?,
            }
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_letter_keeps_a_meaning_in_markup() {
        let hostile = "<script a=\"b\" c='d'>&\u{0}\u{1b}</script>";
        assert_eq!(
            Escaped(hostile).to_string(),
            "&lt;script a=&quot;b&quot; c=&#39;d&#39;&gt;&amp;\u{fffd}\u{fffd}&lt;/script&gt;"
        );
    }

    #[test]
    fn a_name_cannot_steer_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\nc"), "a\\u{1b}[2Jb\nc");
    }
}
