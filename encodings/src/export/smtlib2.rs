//! SMT-LIB 2, logic `QF_IDL`: every node has a number, and an edge says that one is less than the other.

use std::io::{self, Write};

use super::{ExportInstance, SIDES};

/// Writes the instance. Every constraint has a name, so that a solver can tell an unsatisfiable core.
pub fn smtlib2(instance: &ExportInstance<'_>, out: &mut dyn Write) -> io::Result<()> {
    instance.introduce(";", out)?;
    state(instance, out)?;
    writeln!(out, "(check-sat)\n(exit)")
}

/// Writes the instance, and asks for each node's number.
pub(crate) fn smtlib2_with_values(
    instance: &ExportInstance<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "(set-option :produce-models true)")?;
    state(instance, out)?;
    writeln!(out, "(check-sat)")?;
    if instance.n_nodes > 0 {
        write!(out, "(get-value (")?;
        for node in 0..instance.n_nodes {
            write!(out, "n{node} ")?;
        }
        writeln!(out, "))")?;
    }
    writeln!(out, "(exit)")
}

fn state(instance: &ExportInstance<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "(set-logic QF_IDL)")?;
    for node in 0..instance.n_nodes {
        writeln!(out, "(declare-fun n{node} () Int)")?;
    }
    for (from, to) in instance.known {
        writeln!(out, "(assert (< n{from} n{to}))")?;
    }
    for constraint in 0..instance.constraints.len() {
        write!(out, "(assert (! (or")?;
        for side in SIDES {
            write!(out, " (and true")?;
            for edge in instance.constraints.side(constraint, side) {
                write!(out, " (< n{} n{})", edge.from, edge.to)?;
            }
            write!(out, ")")?;
        }
        writeln!(out, ") :named c{constraint}))")?;
    }
    Ok(())
}
