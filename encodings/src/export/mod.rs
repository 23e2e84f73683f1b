//! The question in the languages of other solvers, so that any of them can be measured on it: one file a language.

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
    /// What a node is called, in one line.
    pub name: &'a dyn Fn(u32) -> String,
    /// Lines about where this comes from.
    pub about: &'a [String],
}

const SIDES: [Side; 2] = [Side::Either, Side::Or];

impl ExportInstance<'_> {
    /// Writes the lines about it, then what each node is, each after the sign of a comment.
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
