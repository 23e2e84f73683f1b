//! Escapes text for XML and HTML, and for a terminal.

use std::fmt;

use kingsnake_history::model::visible;

use crate::measure::count;

/// Text in which every character is shown as itself, in content and in quoted attributes. Invisible characters are
/// written as codes; line ends stay.
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

/// Text on one line; everything that could control a terminal, end the line or reorder it is escaped.
pub fn printable(text: &str) -> String {
    visible(text).into_owned()
}

/// The same for a text of several lines.
pub fn printable_lines(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(printable).collect();
    lines.join("\n")
}

/// Text in which no CI service finds a command: GitHub's begin a line with `::`, those of Azure and others follow `##`.
/// JSON is unchanged in meaning: there `##` is within a text, and no line begins with a colon.
pub fn without_commands(text: &str) -> String {
    let line = |line: &str| {
        let rest = line.trim_start();
        let indent = &line[..line.len() - rest.len()];
        match rest.strip_prefix("::") {
            Some(rest) => format!("{indent}\\u003a:{rest}"),
            None => line.to_owned(),
        }
    };
    let lines: Vec<String> = text.split('\n').map(line).collect();
    lines.join("\n").replace("##", "#\\u0023")
}

/// More warnings are only counted.
const MOST_WARNINGS: usize = 20;
/// A longer message is shown by its two ends.
pub const LONGEST_MESSAGE: usize = 4_000;

/// The first of the warnings, and how many more there are.
pub fn first_of(warnings: &[String]) -> impl Iterator<Item = String> {
    let n_more = warnings.len().saturating_sub(MOST_WARNINGS);
    let more = (n_more > 0).then(|| {
        format!(
            "and {} (--json lists them all)",
            count(n_more, "more warning")
        )
    });
    let told = warnings.iter().take(MOST_WARNINGS);
    told.map(|words| short(words, LONGEST_MESSAGE)).chain(more)
}

/// A text in a cell of a table or a heading of Markdown: on one line, without links, code or markup of its own.
pub fn markdown(text: &str) -> String {
    let mut out = String::new();
    for letter in printable(text).chars() {
        if "\\|<>`[]&".contains(letter) {
            out.push('\\');
        }
        out.push(letter);
    }
    out
}

/// The text; the middle of a long one is omitted.
pub fn short(text: &str, most: usize) -> String {
    // A character takes at least one byte.
    if text.len() <= most {
        return text.to_owned();
    }
    let n_letters = text.chars().count();
    if n_letters <= most {
        return text.to_owned();
    }
    let tail = (most - 1) / 2;
    let head = most - 1 - tail;
    let first: String = text.chars().take(head).collect();
    let last: String = text.chars().skip(n_letters - tail).collect();
    format!("{first}…{last}")
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
    fn no_line_is_a_command_of_a_service() {
        let text = "a ::b\n::error::x\n  ::set-env\n###[command]##vso[x]";
        assert_eq!(
            without_commands(text),
            "a ::b\n\\u003a:error::x\n  \\u003a:set-env\n#\\u0023#[command]#\\u0023vso[x]"
        );
    }

    #[test]
    fn no_text_leaves_its_cell_of_markdown() {
        assert_eq!(
            markdown("a|b\n# [x](y) <b> `z`"),
            "a\\|b\\\\n# \\[x\\](y) \\<b\\> \\`z\\`"
        );
    }

    #[test]
    fn a_name_cannot_steer_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\nc"), "a\\u{1b}[2Jb\\nc");
        assert_eq!(printable("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(printable_lines("a\rb\nc"), "a\\rb\nc");
    }
}
