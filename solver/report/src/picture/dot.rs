//! Draws a scene for Graphviz: a cluster per session, an edge per reason.

use std::fmt::Write;

use kingsnake_solver::model::visible;
use kingsnake_solver::verdict::Moment;

use super::{Arrow, ArrowKind, Scene, short};

/// Graphviz refuses or cuts longer labels, and draws them too wide.
const LONGEST: usize = 160;

/// The graph.
pub fn draw(scene: &Scene) -> String {
    let mut out = String::from(
        "digraph counterexample {\n  rankdir=LR;\n  node [shape=box, style=rounded, fontname=\"monospace\", fontsize=11];\n  edge [fontname=\"monospace\", fontsize=11];\n",
    );
    for (at, panel) in scene.panels.iter().enumerate() {
        let _ = writeln!(out, "  subgraph cluster_{at} {{");
        let title = panel.title.join(" ");
        let _ = writeln!(out, "    label={}; color=none;", quoted(&title));
        for (lane, name) in panel.lanes.iter().enumerate() {
            let _ = writeln!(out, "    subgraph cluster_{at}_{lane} {{");
            let _ = writeln!(
                out,
                "      label={}; color=gray; style=rounded;",
                quoted(name)
            );
            for (number, card) in panel
                .cards
                .iter()
                .enumerate()
                .filter(|(_, card)| card.lane == lane)
            {
                let mut words = card.title.clone();
                if let Some(note) = card.note {
                    let _ = write!(words, " ({note})");
                }
                for line in &card.lines {
                    words.push('\n');
                    words.push_str(&short(&line.words, LONGEST));
                }
                if card.n_more > 0 {
                    let _ = write!(words, "\n+ {} more", card.n_more);
                }
                let dashes = if card.is_aborted {
                    ", style=\"rounded,dashed\""
                } else {
                    ""
                };
                let _ = writeln!(
                    out,
                    "      p{at}_{number} [label={}{dashes}];",
                    quoted(&words)
                );
            }
            out.push_str("    }\n");
        }
        for arrow in &panel.arrows {
            let _ = writeln!(
                out,
                "    p{at}_{} -> p{at}_{} [label={}, tooltip={}, color=\"{}\", fontcolor=\"{}\"{}];",
                arrow.from.0,
                arrow.to.0,
                quoted(&label(arrow)),
                quoted(&short(&arrow.full, 4 * LONGEST)),
                colour(arrow.kind),
                colour(arrow.kind),
                if matches!(arrow.kind, ArrowKind::Rw | ArrowKind::PredRw) {
                    ", style=dashed"
                } else {
                    ""
                }
            );
        }
        out.push_str("  }\n");
    }
    out.push_str("}\n");
    out
}

fn label(arrow: &Arrow) -> String {
    let letters = arrow.kind.letters();
    let moments = match (arrow.from.1, arrow.to.1) {
        (Moment::Whole, _) | (_, Moment::Whole) => String::new(),
        (from, to) => format!("\n{} → {}", moment(from), moment(to)),
    };
    format!("{letters} {}{moments}", arrow.label)
        .trim_end()
        .to_owned()
}

fn moment(moment: Moment) -> &'static str {
    match moment {
        Moment::Whole => "",
        Moment::Begin => "begin",
        Moment::Commit => "commit",
    }
}

/// The colours of the SVG's light scheme.
fn colour(kind: ArrowKind) -> &'static str {
    match kind {
        ArrowKind::So | ArrowKind::Bc => "#4d5866",
        ArrowKind::Rt => "#7a4a1e",
        ArrowKind::Wr | ArrowKind::PredWr => "#005fa3",
        ArrowKind::Ww => "#b34700",
        ArrowKind::Rw | ArrowKind::PredRw => "#8f2f77",
        ArrowKind::Vis => "#2e6b3a",
        ArrowKind::Given => "#5b5b8f",
        ArrowKind::Anomaly => "#b3261e",
    }
}

/// A quoted string of the DOT language with left-aligned lines.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\l"),
            _ => out.push_str(&visible(letter.encode_utf8(&mut [0; 4])).replace('\\', "\\\\")),
        }
    }
    if text.contains('\n') {
        out.push_str("\\l");
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_quotes() {
        assert_eq!(quoted("a\"]; evil \\"), r#""a\"]; evil \\""#);
        assert_eq!(quoted("a\nb"), r#""a\lb\l""#);
    }
}
