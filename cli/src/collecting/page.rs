//! The page about a collection: what ran, how it went over time with its faults, what was found.

use std::fmt::Write;

use kingsnake_collect::{Collected, Timeline};
use kingsnake_text::{Escaped, count, grouped, lasting};

const STYLE: &str = "
.timeline rect.good { fill: currentColor; opacity: .45 }
.timeline rect.bad { fill: #c62828 }
.timeline line { stroke: #c77700; stroke-width: 1.5 }
.timeline text { fill: currentColor; font: 11px sans-serif }";

/// The page; `checked` is the check's exit status.
pub fn page(collected: &Collected, checked: Option<u8>) -> String {
    let merged = &collected.merged;
    let bad = checked == Some(1) || !merged.findings.is_empty();
    let mood = match (bad, checked) {
        (true, _) => "violated",
        (false, Some(0)) => "satisfied",
        _ => "unknown",
    };
    let mut body = String::new();
    let _ = write!(
        body,
        "<header><h1>{}</h1><p class=\"subject\">{}</p></header>",
        Escaped(&collected.meta.version),
        Escaped(&collected.meta.about())
    );
    let _ = write!(
        body,
        "<section><h2>What happened</h2><p>{} committed, {} aborted, {} with an unknown end, in {}.</p>",
        grouped(collected.tally.committed),
        grouped(collected.tally.n_aborted()),
        grouped(collected.tally.unknown),
        lasting(collected.running)
    );
    body.push_str("<table class=\"plan\"><tbody>");
    for (reason, n) in &collected.tally.aborted {
        let _ = write!(
            body,
            "<tr><th scope=\"row\">aborted: {}</th><td>{}</td></tr>",
            Escaped(reason),
            grouped(*n)
        );
    }
    body.push_str("</tbody></table>");
    let _ = write!(
        body,
        "<p>Each bar is a span of {}: transactions that committed, and in red those that did not. Lines are faults.</p>{}</section>",
        lasting(std::time::Duration::from_nanos(merged.timeline.span as u64)),
        drawing(&merged.timeline)
    );
    if !merged.findings.is_empty() {
        let _ = write!(
            body,
            "<section><h2>{} whatever the level</h2><ul>",
            count(merged.findings.len(), "finding")
        );
        for finding in merged.findings.iter().take(50) {
            let _ = write!(body, "<li>{}</li>", Escaped(&finding.to_string()));
        }
        body.push_str("</ul></section>");
    }
    if checked.is_some() {
        let _ = write!(body, "<p><a href=\"{}\">The check</a></p>", super::REPORT);
    }
    kingsnake_text::page(
        &format!("collection: {}", collected.meta.version),
        STYLE,
        mood,
        &body,
    )
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 120.0;

fn drawing(timeline: &Timeline) -> String {
    let most = timeline
        .spans
        .iter()
        .map(|[good, bad]| good + bad)
        .max()
        .unwrap_or(0)
        .max(1);
    let step = WIDTH / timeline.spans.len().max(1) as f64;
    let mut out = format!(
        "<div class=\"wide\"><svg class=\"timeline\" viewBox=\"0 0 {WIDTH} {}\" width=\"{WIDTH}\" role=\"img\" aria-label=\"Timeline\">",
        HEIGHT + 60.0
    );
    for (at, [good, bad]) in timeline.spans.iter().enumerate() {
        let x = at as f64 * step;
        let tall = |n: u64| n as f64 / most as f64 * HEIGHT;
        let (good, bad) = (tall(*good), tall(*bad));
        let width = step - 1.0;
        let _ = write!(
            out,
            "<rect class=\"good\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{good:.1}\"/>",
            HEIGHT - good
        );
        let _ = write!(
            out,
            "<rect class=\"bad\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{bad:.1}\"/>",
            HEIGHT - good - bad
        );
    }
    for (at, (time, what)) in timeline.events.iter().enumerate() {
        let x = *time as f64 / timeline.span.max(1) as f64 * step;
        // Names stand in three rows, so that neighbours do not cover each other.
        let y = HEIGHT + 16.0 + 16.0 * (at % 3) as f64;
        let _ = write!(
            out,
            "<line x1=\"{x:.1}\" y1=\"0\" x2=\"{x:.1}\" y2=\"{y:.1}\"/><text x=\"{:.1}\" y=\"{y:.1}\">{}</text>",
            x + 2.0,
            Escaped(what)
        );
    }
    out.push_str("</svg></div>");
    out
}
