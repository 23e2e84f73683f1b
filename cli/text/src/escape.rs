//! Text made harmless: for XML and HTML, and for a terminal.

use std::fmt;

use kingsnake_history::model::visible;

/// A text whose every letter is shown as itself, in content and in quoted attributes. Characters that cannot be seen are spelt
/// out; ends of lines stay.
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
                _ => out.write_str(&visible(letter.encode_utf8(&mut [0; 4])))?,
            }
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_letter_keeps_a_meaning_in_markup() {
        let hostile = "<script a=\"b\" c='d'>&\u{0}\u{1b}</script>";
        assert_eq!(
            Escaped(hostile).to_string(),
            "&lt;script a=&quot;b&quot; c=&#39;d&#39;&gt;&amp;\\u{0}\\u{1b}&lt;/script&gt;"
        );
    }

    #[test]
    fn a_name_cannot_steer_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\nc"), "a\\u{1b}[2Jb\\nc");
        assert_eq!(printable("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(printable_lines("a\rb\nc"), "a\\rb\nc");
    }
}
