//! DIMACS: the formula that a plain encoding passes to its solver, with comments that describe the variables.

use std::io::{self, Write};

use kingsnake_context::budget::{Budget, StopReason};
use kingsnake_graph::decide::Question;
use rustsat::instances::Cnf;
use rustsat::types::Lit;
use thiserror::Error;

use crate::cnf::closure::Closure;
use crate::cnf::elimination::Elimination;
use crate::cnf::order_binary::OrderBinary;
use crate::cnf::order_unary::OrderUnary;
use crate::cnf::{Encoding, Meaning, Sink, Size, share, shared_size};
use crate::reduce::{Arena, Failed, reduce};

/// Why nothing was written.
#[derive(Debug, Error)]
pub enum ExportError {
    /// It could not be.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The budget ended.
    #[error("{0}")]
    Stopped(StopReason),
    /// The known graph has a cycle, so there is no question.
    #[error("the known graph has a cycle")]
    Cyclic,
    /// An unknown encoding.
    #[error("there is no encoding {0:?}")]
    NoSuchEncoding(String),
}

impl From<StopReason> for ExportError {
    fn from(reason: StopReason) -> Self {
        ExportError::Stopped(reason)
    }
}

type Build = fn(&Arena, &Budget) -> Result<(Cnf, Meaning, Size), StopReason>;

const TABLE: [(&str, Build); 4] = [
    ("closure", formula::<Closure>),
    ("order-unary", formula::<OrderUnary>),
    ("order-binary", formula::<OrderBinary>),
    ("elimination", formula::<Elimination>),
];

/// The names of the plain encodings.
pub const ENCODINGS: [&str; 4] = [TABLE[0].0, TABLE[1].0, TABLE[2].0, TABLE[3].0];

fn formula<E: Encoding>(
    arena: &Arena,
    budget: &Budget,
) -> Result<(Cnf, Meaning, Size), StopReason> {
    let plan = E::plan(arena, budget)?;
    let size = shared_size(arena) + plan.size();
    budget.reserve("the formula", size.bytes())?;
    let mut cnf = Cnf::new();
    let mut sink = Sink::new(&mut cnf, budget);
    let meaning = share(arena, false, &mut sink)?;
    plan.encode(arena, &meaning.arcs, &mut sink)?;
    Ok((cnf, meaning, size))
}

/// What the back end `cadical/ENCODING` solves.
pub(crate) struct Formula {
    pub arena: Arena,
    pub meaning: Meaning,
    pub size: Size,
    cnf: Cnf,
}

impl Formula {
    pub fn new(
        question: &Question<'_>,
        encoding: &str,
        budget: &Budget,
    ) -> Result<Formula, ExportError> {
        let Some((_, formula)) = TABLE.iter().find(|(known, _)| *known == encoding) else {
            return Err(ExportError::NoSuchEncoding(encoding.to_owned()));
        };
        let arena = reduce(question, budget).map_err(|failed| match failed {
            Failed::Stopped(reason) => ExportError::Stopped(reason),
            Failed::Cyclic => ExportError::Cyclic,
        })?;
        let (cnf, meaning, size) = formula(&arena, budget)?;
        Ok(Formula {
            arena,
            meaning,
            size,
            cnf,
        })
    }

    /// Writes the clauses.
    pub fn write(&self, mut out: &mut dyn Write) -> io::Result<()> {
        let n_variables = u32::try_from(self.size.variables).map_err(io::Error::other)?;
        // `write_dimacs` wants a type of known size.
        self.cnf.write_dimacs(&mut out, n_variables)
    }
}

/// Writes what the back end `cadical/ENCODING` solves.
pub fn dimacs(
    question: &Question<'_>,
    encoding: &str,
    name: &dyn Fn(u32) -> String,
    about: &[String],
    budget: &Budget,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let formula = Formula::new(question, encoding, budget)?;
    let arena = &formula.arena;
    for line in about {
        writeln!(out, "c {line}")?;
    }
    writeln!(out, "c encoding {encoding}: see docs/encodings.md")?;
    writeln!(
        out,
        "c {} of {} constraints have a side that is on no cycle, and are left out",
        arena.free.len() - arena.constraints.len(),
        arena.free.len()
    )?;
    explain(arena, &formula.meaning, name, out)?;
    formula.write(out)?;
    Ok(())
}

/// Says which literal stands for which side and which arc.
fn explain(
    arena: &Arena,
    meaning: &Meaning,
    name: &dyn Fn(u32) -> String,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (at, sides) in meaning.sides.iter().enumerate() {
        let [first, second] = sides.map(Lit::to_ipasir);
        let constraint = arena.constraints[at];
        writeln!(
            out,
            "c {first} is the first side of constraint {constraint}, {second} the second"
        )?;
    }
    for (&(from, to), lit) in arena.arcs.iter().zip(&meaning.arcs) {
        let [from, to] = [from, to].map(|node| name(arena.nodes[node as usize]));
        writeln!(out, "c {} is {from} before {to}", lit.to_ipasir())?;
    }
    Ok(())
}
