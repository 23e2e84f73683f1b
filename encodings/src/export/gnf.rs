//! `MonoSAT`'s graph format (Bayless et al., AAAI 2015): a graph whose edges are variables and which must be acyclic, and clauses.
//!
//! Variable c + 1 is the first side of constraint c and its negation the second; then comes a variable for each edge, known
//! ones first, since the format wants one of its own for each; the last says that the graph is acyclic.

use std::io::{self, Write};

use super::{ExportInstance, SIDES};

/// Writes the instance.
pub fn gnf(instance: &ExportInstance<'_>, out: &mut dyn Write) -> io::Result<()> {
    sized_gnf(instance, out).map(|_| ())
}

/// Writes the instance, and returns how many variables and clauses it has.
pub(crate) fn sized_gnf(
    instance: &ExportInstance<'_>,
    out: &mut dyn Write,
) -> io::Result<[usize; 2]> {
    let constraints = instance.constraints;
    let mut edges: Vec<(u32, u32)> = (0..constraints.len())
        .flat_map(|at| SIDES.map(|side| constraints.side(at, side)))
        .flatten()
        .map(|edge| (edge.from, edge.to))
        .collect();
    edges.sort_unstable();
    edges.dedup();
    let first_known = constraints.len() + 1;
    let first_edge = first_known + instance.known.len();
    let acyclic = first_edge + edges.len();
    let n_clauses = instance.known.len() + constraints.n_edges() + 1;
    instance.introduce("c", out)?;
    writeln!(out, "p cnf {acyclic} {n_clauses}")?;
    for at in 0..instance.known.len() {
        writeln!(out, "{} 0", first_known + at)?;
    }
    for constraint in 0..constraints.len() {
        for (side, sign) in SIDES.into_iter().zip(["-", ""]) {
            for edge in constraints.side(constraint, side) {
                let at = edges.partition_point(|&other| other < (edge.from, edge.to));
                writeln!(out, "{sign}{} {} 0", constraint + 1, first_edge + at)?;
            }
        }
    }
    writeln!(out, "{acyclic} 0")?;
    writeln!(
        out,
        "digraph int {} {} 0",
        instance.n_nodes,
        acyclic - first_known
    )?;
    for (at, (from, to)) in instance.known.iter().chain(&edges).enumerate() {
        writeln!(out, "edge 0 {from} {to} {}", first_known + at)?;
    }
    writeln!(out, "acyclic 0 {acyclic}")?;
    Ok([acyclic, n_clauses])
}
