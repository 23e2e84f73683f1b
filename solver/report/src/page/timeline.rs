//! The timeline: a lane per session, a bar per transaction from its recorded begin to its end, with faults and the cycle's edges.
//!
//! Bars are positioned in percent of the width, so the page needs no JavaScript to show them; `page.js` adds zoom, pan,
//! filters and details.

use std::collections::BTreeSet;

use kingsnake_datasets::SourceEvent;
use kingsnake_solver::model::{KeyId, SessionId, Status, TxnId};
use kingsnake_solver::verdict::Counterexample;
use maud::{Markup, html};

use super::around::{Around, Lanes};
use super::cards::{Cards, touched};
use crate::answer::status_word;
use crate::answer::telling::op_words;
use crate::picture::{ArrowKind, dependency, kind, short, since};
use kingsnake_text::{count, grouped};

/// The height of a lane in pixels; must equal the one in `page.css`.
const LANE: usize = 34;
/// The filter offers at most this many keys.
const MOST_KEYS: usize = 400;
/// More events are not drawn.
const MOST_EVENTS: usize = 400;
/// At most this many operations are shown beside a bar.
const MOST_OPS: usize = 12;

/// What is drawn.
pub struct PageTimeline<'a> {
    /// The transactions.
    pub around: &'a Around,
    /// Their words.
    pub cards: Cards<'a>,
    /// What happened beside them.
    pub events: &'a [SourceEvent],
    /// Which edges to draw.
    pub arrows: Vec<(TxnId, TxnId, ArrowKind)>,
    /// Which transactions to mark.
    pub blamed: Vec<TxnId>,
}

/// The essential transactions of a counterexample: the ends of the cycle's edges, and those with impossible reads.
pub fn core(arrows: &[(TxnId, TxnId, ArrowKind)], blamed: &[TxnId]) -> Vec<TxnId> {
    let ends = arrows.iter().flat_map(|&(from, to, _)| [from, to]);
    ends.chain(blamed.iter().copied()).collect()
}

/// The edges of the first cycle of a counterexample.
pub fn arrows(counterexample: &Counterexample) -> Vec<(TxnId, TxnId, ArrowKind)> {
    let leaves = counterexample.leaves();
    let Some(Counterexample::Cyclic(proof)) = leaves.first() else {
        return Vec::new();
    };
    let steps = proof.cycles().next().unwrap_or(&[]).iter();
    let between = steps.filter(|step| step.from.txn != step.to.txn);
    between
        .map(|step| (step.from.txn, step.to.txn, kind(step.reason)))
        .collect()
}

/// The transactions with impossible reads.
pub fn blamed(counterexample: &Counterexample) -> Vec<TxnId> {
    let mut blamed = Vec::new();
    for leaf in counterexample.leaves() {
        match leaf {
            Counterexample::Stuck(stuck) => blamed.push(stuck.last),
            Counterexample::Local(findings) => blamed.extend(findings.iter().map(|it| it.txn)),
            Counterexample::Recorded(why) => blamed.extend(dependency::blamed(why)),
            Counterexample::Cyclic(_) | Counterexample::EitherWay { .. } => {}
        }
    }
    blamed
}

impl PageTimeline<'_> {
    /// The section.
    pub fn section(&self) -> Markup {
        let history = self.cards.history;
        let lanes: Lanes = self.around.lanes(history);
        let (from, to) = self.around.span;
        let (near, far) = self.around.window(history);
        html! {
            section #timeline {
                h2 { @if self.around.has_times { "By the clock" } @else { "Session by session" } }
                p.soft { (self.words()) }
                (self.tools(&lanes))
                div.lanes tabindex="0" role="group" aria-label="Transactions over time" data-from=(from) data-to=(to)
                    data-near=(near) data-far=(far) data-unit=(if self.around.has_times { "ns" } else { "place" }) {
                    div.axis { (self.ticks()) }
                    @for (session, txns) in &lanes { (self.lane(*session, txns)) }
                    (self.over(&lanes))
                }
                div #detail aria-live="polite" hidden {}
            }
        }
    }

    fn words(&self) -> String {
        let around = self.around;
        let shown = match around.txns.len() {
            n if n < around.n_within => format!(
                " {} of the {} transactions of this time are shown: first those that touch the keys of the story.",
                grouped(n as u64),
                grouped(around.n_within as u64)
            ),
            _ => String::new(),
        };
        let events = match self.events.len() {
            0 => "",
            _ => " Upright lines are faults and other events.",
        };
        if around.has_times {
            format!(
                "Each bar runs from the begin of a transaction to its end, as the client recorded them; 0 is the first begin of the contradiction. \
                 A dashed bar did not commit, or its begin or end is not known; it then reaches to its neighbour in the session.{events}{shown}"
            )
        } else {
            format!(
                "The history has no times. Each session's transactions stand in their order; the places of two sessions \
                 say nothing about each other.{shown}"
            )
        }
    }

    /// Buttons and filters; hidden unless JavaScript runs.
    fn tools(&self, lanes: &[(SessionId, Vec<TxnId>)]) -> Markup {
        let history = self.cards.history;
        let mut keys: BTreeSet<KeyId> = BTreeSet::new();
        for &txn in &self.around.txns {
            keys.extend(touched(history, txn));
        }
        let is_told = |key: &&KeyId| self.cards.keys.contains(key);
        let told = keys.iter().filter(is_told);
        let others = keys.iter().filter(|key| !is_told(key)).take(MOST_KEYS);
        html! {
            div.tools hidden {
                span.buttons role="group" aria-label="Zoom and pan" {
                    @for (name, sign, words) in [
                        ("out", "−", "Zoom out (-)"),
                        ("in", "+", "Zoom in (+)"),
                        ("left", "←", "Earlier (left arrow)"),
                        ("right", "→", "Later (right arrow)"),
                    ] {
                        button type="button" data-do=(name) title=(words) aria-label=(words) { (sign) }
                    }
                    button type="button" data-do="near" title="Fit to the transactions of the contradiction (c)" { "fit" }
                    button type="button" data-do="all" title="Everything shown (0)" { "all" }
                }
                label {
                    "key "
                    select #by-key {
                        option value="" { "every key" }
                        @for key in told { option value=(key.0) { (self.cards.labels.key(*key)) " (in the story)" } }
                        @for key in others { option value=(key.0) { (self.cards.labels.key(*key)) } }
                    }
                }
                label {
                    "session "
                    select #by-session {
                        option value="" { "every session" }
                        @for (session, _) in lanes {
                            option value=(session.0) { (self.cards.labels.session(*session)) }
                        }
                    }
                }
                output #matches {}
            }
        }
    }

    /// The position of a time in the initial window.
    fn share(&self, place: f64) -> f64 {
        let (from, to) = self.around.window(self.cards.history);
        (place - from) / (to - from) * 100.0
    }

    fn ticks(&self) -> Markup {
        let (from, to) = self.around.window(self.cards.history);
        let ticks = (0..=4).map(|at| from + (to - from) * f64::from(at) / 4.0);
        html! {
            @for at in ticks.take(if self.around.has_times { 5 } else { 0 }) {
                span.tick style={ "left:" (format!("{:.2}", self.share(at))) "%" } { (since(at as i128)) }
            }
        }
    }

    fn lane(&self, session: SessionId, txns: &[TxnId]) -> Markup {
        let name = self.cards.labels.session(session);
        html! {
            div.row data-session=(session.0) {
                span.row-name title={ "session " (name) } { (short(&name, 14)) }
                div.track { @for &txn in txns { (self.bar(txn)) } }
            }
        }
    }

    fn bar(&self, txn: TxnId) -> Markup {
        let history = self.cards.history;
        let (begin, end) = self.around.places(history, txn);
        let (from, to) = self.around.span;
        let left = self.share(begin.unwrap_or(from)).clamp(0.0, 100.0);
        let right = self.share(end.unwrap_or(to)).clamp(0.0, 100.0);
        let style = format!("left:{left:.3}%;width:{:.3}%", (right - left).max(0.0));
        let is_open = begin.is_none() || end.is_none() || history.status(txn) != Status::Committed;
        html! {
            a.bar.told[self.around.story.contains(&txn)].open[is_open].blamed[self.is_blamed(txn)]
                href={ "#" (Cards::id(txn)) } style=(style) data-b=[begin] data-e=[end]
                data-keys=(self.cards.key_numbers(txn)) title=(self.beside(txn)) {
                span { (self.cards.labels.txn(txn)) }
            }
        }
    }

    /// The text shown when the pointer is over a bar.
    fn beside(&self, txn: TxnId) -> String {
        let Cards {
            history,
            labels,
            keys,
            ..
        } = self.cards;
        let mut lines = vec![format!(
            "{}, session {}, {}",
            labels.txn(txn),
            labels.session(history.session(txn)),
            status_word(history.status(txn))
        )];
        lines.extend(self.cards.times(txn));
        let ops = history.ops(txn);
        for at in 0..ops.len().min(MOST_OPS) {
            lines.push(short(&op_words(labels, history, txn, at, keys), 80));
        }
        if ops.len() > MOST_OPS {
            lines.push(format!(
                "and {}",
                count(ops.len() - MOST_OPS, "more operation")
            ));
        }
        lines.join("\n")
    }

    fn is_blamed(&self, txn: TxnId) -> bool {
        self.blamed.contains(&txn)
    }

    /// The layer over the bars: events, and the edges of the first cycle.
    fn over(&self, lanes: &[(SessionId, Vec<TxnId>)]) -> Markup {
        let (from, to) = self.around.span;
        let since_origin = |time: i64| (i128::from(time) - i128::from(self.around.origin)) as f64;
        let events = self
            .events
            .iter()
            .map(|event| (since_origin(event.time), &event.what));
        let events = events.filter(|(at, _)| (from..=to).contains(at));
        let events: Vec<_> = events.take(MOST_EVENTS).collect();
        let links = self.links(lanes);
        let kinds: BTreeSet<ArrowKind> = links.iter().map(|link| link.kind).collect();
        html! {
            div.over aria-hidden="true" {
                @for (at, what) in events {
                    div.event data-at=(at) title=(short(what, 400)) style={ "left:" (format!("{:.3}", self.share(at))) "%" } { span { (short(what, 28)) } }
                }
                svg.ks.links width="100%" height=(LANE * lanes.len()) {
                    defs {
                        @for kind in &kinds {
                            marker id={ "over-" (kind.letters()) } class={ "tip " (kind.letters()) } viewBox="0 0 10 10" refX="9" refY="5"
                                markerUnits="userSpaceOnUse" markerWidth="9" markerHeight="9" orient="auto" {
                                path d="M0 0.8L10 5L0 9.2z" {}
                            }
                        }
                    }
                    @for link in &links {
                        g class=(link.kind.letters()) {
                            line.arrow data-x1=(link.x.0) data-x2=(link.x.1) y1=(link.y.0) y2=(link.y.1)
                                x1={ (format!("{:.3}", self.share(link.x.0))) "%" } x2={ (format!("{:.3}", self.share(link.x.1))) "%" }
                                marker-end={ "url(#over-" (link.kind.letters()) ")" } {}
                        }
                    }
                }
            }
        }
    }

    fn links(&self, lanes: &[(SessionId, Vec<TxnId>)]) -> Vec<Link> {
        let history = self.cards.history;
        let (from, to) = self.around.span;
        // An edge leaves a bar right of its middle and enters left of it, so that two edges between two bars do not overlap.
        let within = |txn: TxnId, share: f64| {
            let (begin, end) = self.around.places(history, txn);
            let (begin, end) = (begin.unwrap_or(from), end.unwrap_or(to));
            begin + (end - begin) * share
        };
        let lane = |txn: TxnId| {
            let session = history.session(txn);
            lanes.iter().position(|it| it.0 == session)
        };
        let mut links = Vec::new();
        for &(before, after, kind) in &self.arrows {
            if let (Some(one), Some(two)) = (lane(before), lane(after)) {
                let y = |lane: usize| LANE * lane + LANE / 2;
                // An edge ends at the side of a bar that faces its start.
                let (y1, y2) = match one.cmp(&two) {
                    std::cmp::Ordering::Less => (y(one) + 10, y(two) - 11),
                    std::cmp::Ordering::Greater => (y(one) - 10, y(two) + 11),
                    std::cmp::Ordering::Equal => (y(one) + 13, y(two) + 13),
                };
                links.push(Link {
                    x: (within(before, 0.7), within(after, 0.3)),
                    y: (y1, y2),
                    kind,
                });
            }
        }
        links
    }
}

/// An edge of the cycle.
struct Link {
    x: (f64, f64),
    y: (usize, usize),
    kind: ArrowKind,
}
