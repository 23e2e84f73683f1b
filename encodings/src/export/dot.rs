//! Graphviz: known edges are solid; a constraint's edges are dashed, in a colour of their own, one side drawn bold.

use std::io::{self, Write};

use kingsnake_graph::decide::Side;

use super::{ExportInstance, SIDES};

/// A hue for each constraint, far from those of its neighbours: steps of the golden ratio around the circle.
fn hue(constraint: usize) -> f64 {
    (constraint as f64 * 0.618_034).fract()
}

/// Writes the instance.
pub fn dot(instance: &ExportInstance<'_>, out: &mut dyn Write) -> io::Result<()> {
    for line in instance.about {
        writeln!(out, "// {line}")?;
    }
    writeln!(
        out,
        "digraph polygraph {{\n  node [shape=box, fontname=\"sans-serif\"];"
    )?;
    for node in 0..instance.n_nodes as u32 {
        let name = (instance.name)(node)
            .replace('\\', "\\\\")
            .replace('"', "\\\"");
        writeln!(out, "  n{node} [label=\"{name}\"];")?;
    }
    for (from, to) in instance.known {
        writeln!(out, "  n{from} -> n{to};")?;
    }
    for constraint in 0..instance.constraints.len() {
        let hue = hue(constraint);
        for side in SIDES {
            let (mark, width) = match side {
                Side::Either => ("either", 2),
                Side::Or => ("or", 1),
            };
            for edge in instance.constraints.side(constraint, side) {
                writeln!(
                    out,
                    "  n{} -> n{} [style=dashed, constraint=false, penwidth={width}, color=\"{hue:.3} 0.8 0.7\", \
                     label=\"c{constraint} {mark}\"];",
                    edge.from, edge.to
                )?;
            }
        }
    }
    writeln!(out, "}}")
}
