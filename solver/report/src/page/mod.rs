//! The answer as one self-contained HTML page: no network, light and dark, usable on a phone and on paper.
//!
//! Invariant: everything is markup of `maud`, which escapes its input, and the page is complete without JavaScript.

mod around;
mod cards;
mod classes;
mod cost;
mod lattice;
pub mod levels;
mod run;
mod story;
mod terms;
mod timeline;

use std::collections::BTreeMap;
use std::fmt::Write;

use kingsnake_datasets::{SourceEvent, SourceLine, locate};
use kingsnake_solver::model::{History, TxnId};
use kingsnake_solver::verdict::{Counterexample, Verdict};
use kingsnake_text::{Frame, count, first_of, lasting, page as whole};
use maud::{Markup, PreEscaped, html};

use self::around::Around;
use self::cards::Cards;
use self::terms::Terms;
use self::timeline::PageTimeline;
use crate::answer::telling::Telling;
use crate::answer::{Answer, Source};
use crate::picture::{ArrowKind, Scene, dependency, svg};

/// The style of these pages and their pictures.
pub const STYLE: &str = concat!(
    include_str!("page.css"),
    include_str!("../picture/picture.css")
);
/// Zoom, pan, filters, details.
pub const SCRIPT: &str = include_str!("page.js");

/// More transactions than this are not listed in full.
const MOST_TXNS: usize = 60;

/// The page.
pub fn page(answer: &Answer<'_>) -> String {
    let (terms, scene) = (Terms::default(), answer.scene());
    let body = html! {
        (head(answer, &terms))
        @if let Some(telling) = &answer.telling { (story::section(telling, &terms)) }
        @if let Some(scene) = &scene { (picture(scene, &terms)) }
        @if let (Some(telling), Some(history), Verdict::Violated(it)) = (&answer.telling, answer.history(), &answer.verdict) {
            (transactions(answer, history, telling, it))
        }
        @if let Verdict::Satisfied(certificate) = &answer.verdict {
            @if let Some(ordered) = &answer.ordered { (ordered.section()) }
            (run::certificate(answer, certificate.order.len()))
        }
        @if let (Some(found), Some(history)) = (&answer.found, answer.history()) {
            (classes::sections(history, found, &terms))
            @for line in answer.missed() { p.warning { (line) } }
        }
        (cost::section(answer, &terms))
        @if let Some(run) = &answer.run { (run::section(run)) }
    };
    let frame = Frame {
        title: &format!("{}: {}", answer.word(), answer.subject()),
        mood: answer.word(),
        style: STYLE,
        script: SCRIPT,
    };
    whole(frame, &body)
}

/// The verdict, the story and the picture as a piece of HTML. The picture is an image of its own, whose style touches nothing else.
pub fn card(answer: &Answer<'_>) -> String {
    let told = html! {
        div {
            p { strong { (answer.word()) } ": " (answer.promise.to_string()) " (" (answer.subject()) ")" }
            @if let Some(telling) = &answer.telling {
                p { strong { (telling.story.headline) } }
                ul { @for line in &telling.story.lines { li { (line.text) } } }
            }
            @if let Some(picture) = answer.svg() {
                img alt="Picture of the counterexample" style="max-width:100%" src=(data_url(&picture));
            }
            p { small { (sentence(&answer.how())) } }
        }
    };
    told.into_string()
}

/// A picture as an address that holds it.
fn data_url(picture: &str) -> String {
    let mut url = String::from("data:image/svg+xml,");
    for byte in picture.bytes() {
        match byte {
            b'a'..=b'z'
            | b'A'..=b'Z'
            | b'0'..=b'9'
            | b' '
            | b'/'
            | b'='
            | b':'
            | b';'
            | b'.'
            | b'-' => {
                url.push(byte.into());
            }
            _ => {
                let _ = write!(url, "%{byte:02X}");
            }
        }
    }
    url
}

fn head(answer: &Answer<'_>, terms: &Terms) -> Markup {
    let mark = match answer.verdict {
        Verdict::Satisfied(_) => "✓",
        Verdict::Violated(_) => "✗",
        Verdict::Unknown(_) => "?",
    };
    html! {
        header {
            p.verdict { span aria-hidden="true" { (mark) } " " (answer.word()) }
            h1 { (answer.promise.to_string()) }
            p.subject { (answer.subject()) }
            @if let Verdict::Unknown(reason) = &answer.verdict { p.reason { (reason.to_string()) } }
            p.how { (terms.explain(&sentence(&answer.how()))) " " span.time { (lasting(answer.cost.time)) } }
            @if let Some(words) = answer.about_unknown() { p.how { (sentence(&words)) } }
            @for warning in first_of(&answer.source.warnings) { p.warning { (warning) } }
            @for hint in &answer.hints { p.warning { "The log may be wrong, not the database: " (hint) } }
        }
    }
}

/// The sentence with a capital and a full stop.
fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let Some(first) = letters.next() else {
        return String::new();
    };
    format!("{}{}.", first.to_uppercase(), letters.as_str())
}

/// The counterexample as a picture, with its legend.
pub fn picture(scene: &Scene, terms: &Terms) -> Markup {
    html! {
        section #picture {
            h2 { "The picture" }
            (drawing(scene, "ks", terms))
        }
    }
}

/// A picture; its ids begin with the unique prefix `ids`.
fn drawing(scene: &Scene, ids: &str, terms: &Terms) -> Markup {
    let mut words = String::from("Each row is a session. ");
    if scene.panels.iter().any(|panel| panel.arrows.len() > 1) {
        words.push_str("The transactions stand in the order of the cycle. Every arrow says that one comes before the next. The last one leads back to the first, which no order allows.");
        if scene.panels.len() > 1 {
            words.push_str(" There is a cycle in every case.");
        }
    } else {
        words.push_str("The operations that show the anomaly are set in bold.");
    }
    html! {
        p.soft { (terms.explain(&words)) }
        div.scroller {
            div.wide.drawing tabindex="0" role="region" aria-label="Picture of the counterexample" { (PreEscaped(svg::inline(scene, ids))) }
        }
        ul.legend {
            @for kind in svg::kinds(scene) {
                li class={ "ks " (kind.letters()) } {
                    svg.ks width="34" height="12" aria-hidden="true" {
                        g class=(kind.letters()) {
                            path.arrow marker-end={ "url(#" (ids) "-" (kind.letters()) ")" } d="M1 6h30" {}
                        }
                    }
                    @if kind != ArrowKind::Anomaly { b { (kind.letters()) } " " }
                    (kind.meaning(svg::speaks_of_moments(scene)))
                }
            }
        }
        @if scene.hidden > 0 { p.soft { (count(scene.hidden, "more case")) " not drawn." } }
    }
}

/// The timeline, and the transactions in full.
fn transactions(
    answer: &Answer<'_>,
    history: &History,
    telling: &Telling,
    counterexample: &Counterexample,
) -> Markup {
    let (arrows, predicates) = match counterexample {
        Counterexample::Recorded(why) => (dependency::arrows(why), dependency::predicates(why)),
        _ => (timeline::arrows(counterexample), Vec::new()),
    };
    let blamed = timeline::blamed(counterexample);
    let core = timeline::core(&arrows, &blamed);
    let Some(around) = Around::new(history, &telling.story.txns, &telling.keys, core) else {
        return html! {};
    };
    let (lines, events) = located(&answer.source, history, &around.txns);
    let line = |txn: &TxnId| lines.get(txn);
    let labels = telling.labels(history);
    let cards = Cards {
        history,
        labels: &labels,
        keys: &telling.keys,
        predicates: &predicates,
        origin: around.origin,
    };
    let timeline = PageTimeline {
        around: &around,
        cards,
        events: &events,
        arrows,
        blamed,
    };
    let told = &telling.story.txns;
    let others: Vec<&TxnId> = around
        .txns
        .iter()
        .filter(|txn| !around.story.contains(txn))
        .collect();
    html! {
        (timeline.section())
        section #transactions {
            h2 { "The transactions involved" }
            div.cards { @for txn in told.iter().take(MOST_TXNS) { (cards.card(*txn, line(txn))) } }
            @if told.len() > MOST_TXNS {
                p.soft { "And " (count(told.len() - MOST_TXNS, "more transaction")) "; " code { "--json" } " lists them all." }
            }
            @if !others.is_empty() {
                details {
                    summary { "Others of that time (" (others.len()) ")" }
                    div.cards { @for txn in &others { (cards.card(**txn, line(txn))) } }
                }
            }
            @if !telling.story.meanwhile.is_empty() {
                p { "Meanwhile:" }
                ul { @for event in &telling.story.meanwhile { li { (event) } } }
            }
            @if !telling.story.legend.is_empty() {
                details {
                    summary { "Shortened names" }
                    table.plan { tbody {
                        @for (label, full) in &telling.story.legend {
                            tr { th scope="row" { (label) } td { (full) } }
                        }
                    } }
                }
            }
        }
    }
}

/// The lines of the file that transactions come from, and the events in it.
fn located(
    source: &Source,
    history: &History,
    txns: &[TxnId],
) -> (BTreeMap<TxnId, SourceLine>, Vec<SourceEvent>) {
    let wanted: Vec<(String, String)> = txns
        .iter()
        .map(|&txn| {
            (
                history.session_name(history.session(txn)),
                history.txn_name(txn),
            )
        })
        .collect();
    let again = source.format.zip(source.again.as_ref());
    let found = again.map(|(format, again)| locate(&source.path, format, &wanted, again));
    // The verdict is final; a file that has since been removed is no error.
    let found = found.and_then(Result::ok).unwrap_or_default();
    let lines = txns.iter().zip(found.lines);
    let lines = lines.filter_map(|(&txn, line)| Some((txn, line?)));
    (lines.collect(), found.events)
}
