//! The frame of every page: self-contained, light and dark, readable on a phone and on paper.
//!
//! Invariant: text reaches a page through `maud`, which escapes it; what cannot be seen or reorders a line is spelt out at the end.

use kingsnake_history::model::visible;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The look of every page.
const STYLE: &str = include_str!("page.css");

/// What surrounds a page's body.
#[derive(Clone, Copy, Debug, Default)]
pub struct Frame<'a> {
    /// The title of the window.
    pub title: &'a str,
    /// The verdict that colours the head: `satisfied`, `violated` or `unknown`.
    pub mood: &'a str,
    /// CSS besides that of every page.
    pub style: &'a str,
    /// A program that adds to the page where it may run; the page must tell everything without it.
    pub script: &'a str,
}

/// A whole page around a body.
pub fn page(frame: Frame<'_>, body: &Markup) -> String {
    let whole = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (frame.title) }
                style { (PreEscaped(STYLE)) (PreEscaped(frame.style)) }
            }
            body class=(frame.mood) {
                main { (body) }
                footer { "kingsnake " (env!("CARGO_PKG_VERSION")) }
                @if !frame.script.is_empty() {
                    script { (PreEscaped(frame.script)) }
                }
            }
        }
    };
    let lines: Vec<_> = whole.0.split('\n').map(visible).collect();
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_keeps_no_meaning_as_markup_and_nothing_invisible() {
        let hostile = "<script a=\"b\">&\u{1b}\u{202e}</script>";
        let frame = Frame {
            title: hostile,
            ..Frame::default()
        };
        let text = page(frame, &html! { p title=(hostile) { (hostile) } });
        assert!(!text.contains("<script"), "{text}");
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
        assert!(text.contains("\\u{202e}"), "{text}");
        assert!(text.contains("a=&quot;b&quot;"), "{text}");
    }
}
