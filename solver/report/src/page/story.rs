//! The story on a page: cases can be folded, and terms are explained at their first use.

use kingsnake_tell::StoryLine;
use maud::{Markup, html};

use super::terms::Terms;
use crate::answer::telling::Telling;

/// Deeper cases are shown on the same level.
const DEEPEST: usize = 8;

/// The section.
pub fn section(telling: &Telling, terms: &Terms) -> Markup {
    let story = &telling.story;
    html! {
        section #story {
            h2 { "What happened" }
            p.headline { (terms.explain(&story.headline)) }
            p { (terms.explain(&story.about)) }
            p.noticed { b { "What the application notices: " } (terms.explain(&story.noticed)) }
            (lines(&story.lines, terms))
            p.definition { b { "What was promised: " } (terms.explain(&story.definition)) }
            details.causes {
                summary { "Typical causes" }
                ul { @for cause in story.causes { li { (terms.explain(cause)) } } }
            }
        }
    }
}

/// The lines of an argument; those of a case fold under its first line.
pub fn lines(lines: &[StoryLine], terms: &Terms) -> Markup {
    html! { ol.story { (nested(lines, 0, terms)) } }
}

fn nested(lines: &[StoryLine], depth: usize, terms: &Terms) -> Markup {
    let mut items: Vec<Markup> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let line = terms.explain(&lines[at].text);
        let rest = &lines[at + 1..];
        let inner = rest
            .iter()
            .take_while(|it| it.depth > depth && depth < DEEPEST)
            .count();
        items.push(if inner == 0 {
            html! { li { (line) } }
        } else {
            html! {
                li.case {
                    details open {
                        summary { (line) }
                        ol { (nested(&rest[..inner], depth + 1, terms)) }
                    }
                }
            }
        });
        at += 1 + inner;
    }
    html! { @for item in &items { (item) } }
}
