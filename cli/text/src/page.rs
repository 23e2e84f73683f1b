//! The frame of every page: self-contained, light and dark, usable on a phone and on paper.
//!
//! Invariant: text reaches a page through `maud`, which escapes it; invisible and reordering characters are escaped at
//! the end. If markup did get in, the page's policy lets the browser run only our program and load nothing.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use kingsnake_history::model::visible;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

/// The look of every page.
const STYLE: &str = include_str!("page.css");

/// What surrounds a page's body.
#[derive(Clone, Copy, Debug, Default)]
pub struct Frame<'a> {
    /// The title of the window.
    pub title: &'a str,
    /// The verdict that colours the heading: `satisfied`, `violated` or `unknown`.
    pub mood: &'a str,
    /// CSS besides that of every page.
    pub style: &'a str,
    /// JavaScript that adds to the page; the page is complete without it.
    pub script: &'a str,
}

/// A whole page around a body.
pub fn page(frame: Frame<'_>, body: &Markup) -> String {
    framed(frame, body, "")
}

/// A whole page whose program may contact the server that sent it, and no other.
pub fn live_page(frame: Frame<'_>, body: &Markup) -> String {
    framed(frame, body, "; connect-src 'self'")
}

fn framed(frame: Frame<'_>, body: &Markup, allowed: &str) -> String {
    let style = plain(&[STYLE, frame.style].concat());
    let script = plain(frame.script);
    let whole = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy(&style, &script) + allowed);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (frame.title) }
                style { (PreEscaped(&style)) }
            }
            body class=(frame.mood) {
                main { (body) }
                footer { "kingsnake " (env!("CARGO_PKG_VERSION")) }
                @if !script.is_empty() {
                    script { (PreEscaped(&script)) }
                }
            }
        }
    };
    plain(&whole.0) + "\n"
}

/// The text with everything invisible escaped, except line ends.
fn plain(text: &str) -> String {
    let lines: Vec<_> = text.split('\n').map(visible).collect();
    lines.join("\n")
}

/// What a browser may do with the page: apply our style and run our program, identified by their hashes, and nothing
/// else. Elements may have style attributes, which place marks on a scale; these cannot load anything.
fn policy(style: &str, script: &str) -> String {
    let hash = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text));
    let program = match script {
        "" => "'none'".to_owned(),
        script => format!("'sha256-{}'", hash(script)),
    };
    format!(
        "default-src 'none'; script-src {program}; style-src 'sha256-{}'; style-src-attr 'unsafe-inline'; base-uri 'none'; form-action 'none'",
        hash(style)
    )
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

    #[test]
    fn the_policy_allows_one_program_by_its_hash_and_no_request() {
        // The hash of `abc`, as FIPS 180 gives it.
        let policy = policy("abc", "");
        assert!(policy.starts_with("default-src 'none'; script-src 'none';"));
        assert!(policy.contains("style-src 'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='"));
        let text = page(
            Frame {
                script: "abc",
                ..Frame::default()
            },
            &html! {},
        );
        assert!(text.contains("script-src 'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=';"));
    }
}
