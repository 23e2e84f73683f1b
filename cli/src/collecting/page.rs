//! The page about a collection: what ran, how it went over time with its faults, what was found.

use std::time::Duration;

use kingsnake_collect::{CollectTimeline, Collected};
use kingsnake_text::{Frame, count, grouped, lasting};
use maud::{Markup, html};

const STYLE: &str = "
.timeline rect.good{fill:var(--bar)}
.timeline rect.bad{fill:var(--bad)}
.timeline line{stroke:var(--open);stroke-width:1.5}
.timeline .floor{stroke:var(--line)}
.timeline text{fill:var(--soft);font:11px system-ui,sans-serif}";

/// The page; `checked` is the check's exit status.
pub fn page(collected: &Collected, checked: Option<u8>) -> String {
    let merged = &collected.merged;
    let bad = checked == Some(1) || !merged.findings.is_empty();
    let mood = match (bad, checked) {
        (true, _) => "violated",
        (false, Some(0)) => "satisfied",
        _ => "unknown",
    };
    let span = Duration::from_nanos(merged.timeline.span as u64);
    let body = html! {
        header {
            h1 { (collected.meta.version) }
            p.subject { (collected.meta.about()) }
        }
        section {
            h2 { "What happened" }
            p {
                (grouped(collected.tally.committed)) " committed, " (grouped(collected.tally.n_aborted())) " aborted, "
                (grouped(collected.tally.unknown)) " with an unknown end, in " (lasting(collected.running)) "."
            }
            table.plan { tbody { @for (reason, n) in &collected.tally.aborted {
                tr { th scope="row" { "aborted: " (reason) } td { (grouped(*n)) } }
            } } }
            p.soft {
                "Each bar is a span of " (lasting(span)) ": transactions that committed, and above them in red those that did not. "
                "Upright lines are faults."
            }
            (drawing(&merged.timeline))
        }
        @if !merged.findings.is_empty() {
            section {
                h2 { (count(merged.findings.len(), "finding")) " whatever the level" }
                ul { @for finding in merged.findings.iter().take(50) { li { (finding.to_string()) } } }
            }
        }
        @if checked.is_some() { p { a href=(super::REPORT) { "The check" } } }
    };
    let frame = Frame {
        title: &format!("collection: {}", collected.meta.version),
        mood,
        style: STYLE,
        script: crate::page::SCRIPT,
    };
    kingsnake_text::page(frame, &body)
}

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 120.0;
/// The left of the bars, where the axis has its number.
const LEFT: f64 = 50.0;

fn drawing(timeline: &CollectTimeline) -> Markup {
    let sums = timeline.spans.iter().map(|[good, bad]| good + bad);
    let most = sums.max().unwrap_or(0).max(1);
    let step = (WIDTH - LEFT) / timeline.spans.len().max(1) as f64;
    let tall = |n: u64| n as f64 / most as f64 * HEIGHT;
    let number = |it: f64| format!("{it:.1}");
    html! {
        div.scroller { div.wide.drawing tabindex="0" role="region" aria-label="Transactions over time" {
            svg.timeline viewBox={ "0 -14 " (WIDTH) " " (HEIGHT + 80.0) } width=(WIDTH) style="min-width:640px" role="img" aria-label="Timeline" {
                line.floor x1=(LEFT) x2=(WIDTH) y1=(HEIGHT) y2=(HEIGHT) {}
                text x=(LEFT - 6.0) y="8" text-anchor="end" { (grouped(most)) }
                text x=(LEFT - 6.0) y=(HEIGHT) text-anchor="end" { "0" }
                @for (at, [good, bad]) in timeline.spans.iter().enumerate() {
                    @let (x, good, bad) = (LEFT + at as f64 * step, tall(*good), tall(*bad));
                    rect.good x=(number(x)) y=(number(HEIGHT - good)) width=(number(step - 1.0)) height=(number(good)) {}
                    rect.bad x=(number(x)) y=(number(HEIGHT - good - bad)) width=(number(step - 1.0)) height=(number(bad)) {}
                }
                @for (at, (time, what)) in timeline.events.iter().enumerate() {
                    @let x = LEFT + *time as f64 / timeline.span.max(1) as f64 * step;
                    // Names stand in three rows, so that neighbours do not cover each other.
                    @let y = HEIGHT + 16.0 + 16.0 * (at % 3) as f64;
                    @let is_late = x > WIDTH - 140.0;
                    line x1=(number(x)) y1="0" x2=(number(x)) y2=(number(y)) {}
                    text x=(number(if is_late { x - 3.0 } else { x + 3.0 })) y=(number(y)) text-anchor=[is_late.then_some("end")] { (what) }
                }
            }
        } }
    }
}
