//! The page about a given certificate or an expected order: its answer, story, picture, timeline and transactions.

use std::path::Path;
use std::time::Duration;

use kingsnake_datasets::Parsed;
use kingsnake_tell::Labels;
use kingsnake_text::{Frame, page as whole};
use maud::{Markup, html};

use super::around::Around;
use super::cards::Cards;
use super::terms::Terms;
use super::timeline::{self, PageTimeline};
use super::{MOST_TXNS, SCRIPT, STYLE, located, picture};
use crate::answer::base_name;
use crate::picture::{Disproof, Scene};
use crate::voice::{count, first_of, lasting};

/// What the page tells.
pub struct CertificatePage<'a> {
    /// `satisfied`, `violated`.
    pub verdict: &'static str,
    /// The answer in a line.
    pub headline: &'a str,
    /// What happened, a sentence a line.
    pub story: &'a [String],
    /// What the level promises, or what the replay asks.
    pub definition: &'a str,
    /// What was found, if something was.
    pub evidence: Option<&'a Disproof>,
    /// Its picture.
    pub scene: Option<&'a Scene>,
    /// Where the history is.
    pub path: &'a Path,
    /// The history.
    pub parsed: &'a Parsed,
    /// What repeats the run.
    pub command: &'a str,
    /// How long it took so far.
    pub time: Duration,
}

impl CertificatePage<'_> {
    /// The page.
    pub fn write(&self) -> String {
        let terms = Terms::default();
        let body = html! {
            (self.head())
            (self.told(&terms))
            @if let Some(scene) = self.scene { (picture(scene, &terms)) }
            @if let Some(evidence) = self.evidence { (self.transactions(evidence)) }
            section #run {
                h2 { "The run" }
                p { "This repeats it:" }
                pre.command { code { (self.command) } }
            }
        };
        let name = base_name(self.path);
        let frame = Frame {
            title: &format!("{}: {name}", self.verdict),
            mood: self.verdict,
            style: STYLE,
            script: SCRIPT,
        };
        whole(frame, &body)
    }

    fn head(&self) -> Markup {
        let history = &self.parsed.history;
        let mark = match self.verdict {
            "satisfied" => "✓",
            "violated" => "✗",
            _ => "?",
        };
        let headline = self
            .headline
            .split_once(": ")
            .map_or(self.headline, |it| it.1);
        html! {
            header {
                p.verdict { span aria-hidden="true" { (mark) } " " (self.verdict) }
                h1 { (capital(headline)) }
                p.subject {
                    (base_name(self.path)) ": " (count(history.n_txns(), "transaction")) ", "
                    (count(history.n_predicates(), "predicate"))
                }
                p.how { "Judged by what the database itself gave: nothing was searched. " span.time { (lasting(self.time)) } }
                @for warning in first_of(&self.parsed.warnings) { p.warning { (warning) } }
            }
        }
    }

    fn told(&self, terms: &Terms) -> Markup {
        html! {
            section #story {
                h2 { @if self.evidence.is_some() { "What happened" } @else { "What was asked" } }
                @if !self.story.is_empty() {
                    ol.story { @for line in self.story { li { (terms.explain(line)) } } }
                }
                p.definition { b { "What was promised: " } (terms.explain(self.definition)) }
            }
        }
    }

    /// The timeline, and the transactions in full.
    fn transactions(&self, evidence: &Disproof) -> Markup {
        let history = &self.parsed.history;
        let (told, keys) = (evidence.txns(history), evidence.keys(history));
        let (arrows, blamed) = (evidence.arrows(), evidence.blamed());
        let core = timeline::core(&arrows, &blamed);
        let Some(around) = Around::new(history, &told, &keys, core) else {
            return html! {};
        };
        let found = located(self.path, Some(self.parsed.format), history, &around.txns);
        let labels = Labels::new(history, &told);
        let cards = Cards {
            history,
            labels: &labels,
            keys: &keys,
            predicates: &evidence.predicates(),
            origin: around.origin,
        };
        let drawn = PageTimeline {
            around: &around,
            cards,
            events: &found.events,
            arrows,
            blamed,
        };
        html! {
            (drawn.section())
            section #transactions {
                h2 { "The transactions involved" }
                div.cards { @for txn in told.iter().take(MOST_TXNS) { (cards.card(*txn, found.lines.get(txn))) } }
            }
        }
    }
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or(String::new(), |first| {
        format!("{}{}", first.to_uppercase(), letters.as_str())
    })
}
