//! The page of a collection: what ran, its rate over time with the faults, and what was found.

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
                "Transactions per " (lasting(span)) ": those that committed, and above them in red those that did not."
                @if !merged.timeline.events.is_empty() { " Upright lines are faults." }
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
/// Left edge of the bars; the axis labels are left of it.
const LEFT: f64 = 56.0;
/// Height below the bars, for the labels of the time axis.
const AXIS: f64 = 20.0;
/// Height of a row of fault names, and the number of rows, so that neighbours do not overlap.
const NAMES: f64 = 16.0;
const N_ROWS: usize = 3;

fn drawing(timeline: &CollectTimeline) -> Markup {
    let sums = timeline.spans.iter().map(|[good, bad]| good + bad);
    let most = sums.max().unwrap_or(0).max(1);
    let n_spans = timeline.spans.len().max(1) as f64;
    let step = (WIDTH - LEFT) / n_spans;
    let tall = |n: u64| n as f64 / most as f64 * HEIGHT;
    let number = |it: f64| format!("{it:.1}");
    let below = NAMES * timeline.events.len().min(N_ROWS) as f64;
    let end = timeline.span as f64 * n_spans / 1e9;
    html! {
        div.scroller { div.wide.drawing tabindex="0" role="region" aria-label="Transactions over time" {
            svg.timeline viewBox={ "0 -14 " (WIDTH) " " (HEIGHT + AXIS + below + 18.0) } width=(WIDTH) style="min-width:640px" role="img" aria-label="Timeline" {
                line.floor x1=(LEFT) x2=(WIDTH) y1=(HEIGHT) y2=(HEIGHT) {}
                @for part in [0, most / 2, most] {
                    text x=(LEFT - 6.0) y=(number(HEIGHT - tall(part) + 4.0)) text-anchor="end" { (grouped(part)) }
                }
                @for (at, words) in ticks(end) {
                    @let x = LEFT + at / end * (WIDTH - LEFT);
                    line.floor x1=(number(x)) x2=(number(x)) y1=(HEIGHT) y2=(HEIGHT + 4.0) {}
                    text x=(number(x)) y=(HEIGHT + 16.0) text-anchor=(if at == 0.0 { "start" } else { "middle" }) { (words) }
                }
                @for (at, [good, bad]) in timeline.spans.iter().enumerate() {
                    @let (x, good, bad) = (LEFT + at as f64 * step, tall(*good), tall(*bad));
                    rect.good x=(number(x)) y=(number(HEIGHT - good)) width=(number(step - 1.0)) height=(number(good)) {}
                    rect.bad x=(number(x)) y=(number(HEIGHT - good - bad)) width=(number(step - 1.0)) height=(number(bad)) {}
                }
                @for (at, (time, what)) in timeline.events.iter().enumerate() {
                    @let x = LEFT + *time as f64 / timeline.span.max(1) as f64 * step;
                    @let y = HEIGHT + AXIS + 12.0 + NAMES * (at % N_ROWS) as f64;
                    @let is_late = x > WIDTH - 140.0;
                    line x1=(number(x)) y1="0" x2=(number(x)) y2=(number(y)) {}
                    text x=(number(if is_late { x - 3.0 } else { x + 3.0 })) y=(number(y)) text-anchor=[is_late.then_some("end")] { (what) }
                }
            }
        } }
    }
}

/// Round times from 0 to just before the end, with labels: five to ten of them.
fn ticks(end: f64) -> Vec<(f64, String)> {
    let rough = (end / 10.0).max(1e-9);
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .map(|it| it * power)
        .into_iter()
        .find(|it| *it >= rough)
        .unwrap_or(rough);
    let (unit, factor) = if end >= 1.0 { ("s", 1.0) } else { ("ms", 1e3) };
    let digits = (-(step * factor).log10().floor()).max(0.0) as usize;
    let n = (end * 0.98 / step) as usize;
    (0..=n)
        .map(|at| at as f64 * step)
        .map(|at| (at, format!("{:.digits$} {unit}", at * factor)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::ticks;

    #[test]
    fn times_of_the_axis_are_round() {
        let names = |end| ticks(end).into_iter().map(|it| it.1).collect::<Vec<_>>();
        assert_eq!(names(1.19)[..3], ["0.0 s", "0.2 s", "0.4 s"]);
        assert_eq!(names(0.08)[..3], ["0 ms", "10 ms", "20 ms"]);
        assert_eq!(names(60.0)[..3], ["0 s", "10 s", "20 s"]);
        assert!((5..=11).contains(&names(33.0).len()));
    }
}
