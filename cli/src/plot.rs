//! A scatter plot over time as one SVG document: the measurements of a workload's rule.

use std::fmt::Write;

use kingsnake_text::Escaped;
use kingsnake_workloads::Plot;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 320.0;
const MARGIN: [f64; 4] = [30.0, 20.0, 40.0, 80.0]; // Margins: top, right, bottom, left.
const COLOURS: [&str; 4] = ["#3b82c4", "#888", "#888", "#c8692b"];

/// The plot.
pub fn document(plot: &Plot) -> String {
    let all = || plot.series.iter().flat_map(|(_, points)| points);
    let bounds = |of: fn(&(f64, f64)) -> f64| {
        let low = all().map(of).fold(f64::INFINITY, f64::min);
        let high = all().map(of).fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = if low.is_finite() {
            (low, high)
        } else {
            (0.0, 1.0)
        };
        let room = if high > low { 0.0 } else { 1.0 };
        (low - room, high + room)
    };
    let ((left, right), (low, high)) = (bounds(|it| it.0), bounds(|it| it.1));
    let left = left.max(0.0); // Times are since the start.
    let [top, at_right, bottom, at_left] = MARGIN;
    let x = |value: f64| at_left + (value - left) / (right - left) * (WIDTH - at_left - at_right);
    let y = |value: f64| HEIGHT - bottom - (value - low) / (high - low) * (HEIGHT - top - bottom);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"points\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n<text x=\"{at_left}\" y=\"18\">{}</text>\n",
        Escaped(&plot.title)
    );
    let (floor, end) = (HEIGHT - bottom, WIDTH - at_right);
    let _ = writeln!(
        out,
        "<path d=\"M{at_left} {top}V{floor}H{end}\" fill=\"none\" stroke=\"#444\"/>"
    );
    for value in [low, f64::midpoint(low, high), high] {
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            at_left - 6.0,
            y(value) + 4.0,
            number(value)
        );
    }
    for value in [left, f64::midpoint(left, right), right] {
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{}\">{} s</text>",
            x(value),
            floor + 16.0,
            // The last label would cross the edge.
            if value < right { "middle" } else { "end" },
            number(value)
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"10\" y=\"{:.1}\">{}</text>",
        top - 12.0,
        Escaped(&plot.unit)
    );
    for (at, (name, points)) in plot.series.iter().enumerate() {
        let colour = COLOURS[at % COLOURS.len()];
        let _ = writeln!(out, "<g fill=\"{colour}\"><title>{}</title>", Escaped(name));
        for &(time, value) in points {
            let _ = write!(
                out,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2\"/>",
                x(time),
                y(value)
            );
        }
        let _ = writeln!(
            out,
            "\n<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text></g>",
            end,
            top + 14.0 * at as f64,
            Escaped(name)
        );
    }
    out.push_str("</svg>\n");
    out
}

fn number(value: f64) -> String {
    if value.fract().abs() < 1e-9 {
        return format!("{value:.0}");
    }
    format!("{value:.3}")
}
