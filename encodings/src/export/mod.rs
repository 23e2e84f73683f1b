//! The question in the languages of other solvers, for measuring them: one file per language.

mod dimacs;
mod dot;
mod gnf;
mod smtlib2;

use std::io::{self, Write};

pub(crate) use dimacs::Formula;
pub use dimacs::{ENCODINGS, ExportError, dimacs};
pub use dot::dot;
pub use gnf::gnf;
pub(crate) use gnf::sized_gnf;
use kingsnake_graph::decide::{Constraints, Side};
pub use smtlib2::smtlib2;
pub(crate) use smtlib2::smtlib2_with_values;

/// What is exported: known edges, which may have a cycle, and constraints.
#[derive(Clone, Copy)]
pub struct ExportInstance<'a> {
    /// The number of nodes.
    pub n_nodes: usize,
    /// The known edges, each once.
    pub known: &'a [(u32, u32)],
    /// What is open.
    pub constraints: &'a Constraints,
    /// The name of a node, in one line.
    pub name: &'a dyn Fn(u32) -> String,
    /// Lines about where this comes from.
    pub about: &'a [String],
}

const SIDES: [Side; 2] = [Side::Either, Side::Or];

impl ExportInstance<'_> {
    /// Writes the lines about it, then the name of each node, each after a comment sign.
    fn introduce(&self, sign: &str, out: &mut dyn Write) -> io::Result<()> {
        for line in self.about {
            writeln!(out, "{sign} {line}")?;
        }
        for node in 0..self.n_nodes as u32 {
            writeln!(out, "{sign} node {node} is {}", (self.name)(node))?;
        }
        Ok(())
    }
}
