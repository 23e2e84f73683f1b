//! `exec:COMMAND`: another program decides. The question is written to a file in a language of the program, and the
//! answer is read from its output.
//!
//! The language follows from the program's name, or is named: `exec/gnf:`, `exec/smtlib2:`, or one of the plain encodings, such as
//! `exec/closure:`, for DIMACS. Every answer of the program is checked: sides must close no cycle, and where it says that there are
//! none, `cadical/propagator` has to find a core, which the explanation needs anyway.

mod answer;
mod command;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use kingsnake_context::budget::{Budget, StopReason};
use kingsnake_context::progress::Progress;
use kingsnake_graph::Edge;
use kingsnake_graph::decide::{Backend, DecideError, DecideStats, Decision, Question, Side};
use kingsnake_graph::reach::Dag;
use rustsat::types::Lit;
use tempfile::TempDir;

use self::answer::{ProgramAnswer, said_by_sat_solver, said_by_smt_solver};
use self::command::{EndedProgram, ExecLanguage, SolverCommand};
use crate::cnf::Meaning;
use crate::export::{
    ENCODINGS, ExportError, ExportInstance, Formula, sized_gnf, smtlib2_with_values,
};
use crate::propagator::Propagator;
use crate::reduce::Arena;
use crate::{BackendOptions, UnknownBackend};

pub(crate) const NAME: &str = "exec";

/// A program as a back end.
pub(crate) struct Exec {
    name: String,
    command: SolverCommand,
    options: BackendOptions,
}

/// Why there is no answer.
enum ExecHalt {
    Stopped(StopReason),
    Failed(String),
}

impl From<StopReason> for ExecHalt {
    fn from(reason: StopReason) -> ExecHalt {
        ExecHalt::Stopped(reason)
    }
}

impl From<String> for ExecHalt {
    fn from(what: String) -> ExecHalt {
        ExecHalt::Failed(what)
    }
}

/// The language, and so the meaning of the numbers in an answer.
enum Written {
    /// Variable c + 1 is the first side of constraint c.
    Sides,
    /// A number for each node.
    Places,
    /// A plain encoding's variables.
    Formula(Box<(Arena, Meaning)>),
}

impl Exec {
    /// `exec:COMMAND` or `exec/LANGUAGE:COMMAND`; `None` if the name is of another kind.
    pub fn named(name: &str, options: &BackendOptions) -> Option<Result<Exec, UnknownBackend>> {
        let (kind, typed) = name.split_once(':')?;
        let language = match kind.strip_prefix(NAME)? {
            "" => None,
            rest => Some(rest.strip_prefix('/')?),
        };
        Some(match SolverCommand::parse(typed, language) {
            Ok(command) => Ok(Exec {
                name: name.to_owned(),
                command,
                options: options.clone(),
            }),
            Err(why) => Err(UnknownBackend(format!("{name}: {why}"))),
        })
    }

    fn search(
        &self,
        question: &Question<'_>,
        budget: &Budget,
        progress: &mut dyn Progress,
        stats: &mut DecideStats,
    ) -> Result<Decision, ExecHalt> {
        budget.check()?;
        let started = Instant::now();
        let room = TempDir::new().map_err(|error| format!("no temporary directory: {error}"))?;
        let asked = room.path().join(self.command.language.file());
        let written = self.write(question, &asked, budget, stats)?;
        stats.encode = started.elapsed();
        let started = Instant::now();
        let ended = self.command.run(&asked, room.path(), budget)?;
        stats.solve = started.elapsed();
        stats.memory = ended.peak;
        let said = match written {
            Written::Places => said_by_smt_solver(&ended.answer, question.n_nodes),
            Written::Sides | Written::Formula(_) => {
                said_by_sat_solver(&ended.answer, stats.variables as usize)
            }
        };
        answer::count(&ended.answer, stats);
        let said = said.map_err(|what| self.command.complain(&what, &ended))?;
        match said {
            ProgramAnswer::Sat(values) => {
                let sides = sides(question, &written, &values);
                self.expect_acyclic(question, sides, &ended)
            }
            ProgramAnswer::Unsat => self.core(question, budget, progress, &ended),
            ProgramAnswer::Unknown(word) => Err(ExecHalt::Stopped(StopReason::Backend(format!(
                "{} gave up: {word}",
                self.command.program()
            )))),
            ProgramAnswer::Nothing => Err(ExecHalt::Failed(
                self.command
                    .complain("it answered neither sat nor unsat", &ended),
            )),
        }
    }

    /// Writes the question.
    fn write(
        &self,
        question: &Question<'_>,
        path: &Path,
        budget: &Budget,
        stats: &mut DecideStats,
    ) -> Result<Written, ExecHalt> {
        let failed =
            |error: io::Error| ExecHalt::Failed(format!("cannot write the question: {error}"));
        let mut out = BufWriter::new(File::create(path).map_err(failed)?);
        let written = match self.command.language {
            ExecLanguage::Cnf(encoding) => {
                let formula =
                    Formula::new(question, encoding, budget).map_err(|error| match error {
                        ExportError::Stopped(reason) => ExecHalt::Stopped(reason),
                        error => ExecHalt::Failed(error.to_string()),
                    })?;
                (stats.variables, stats.clauses) = (formula.size.variables, formula.size.clauses);
                stats.edges = (formula.arena.known.len() + formula.arena.demands.len()) as u64;
                formula.write(&mut out).map_err(failed)?;
                Written::Formula(Box::new((formula.arena, formula.meaning)))
            }
            language => {
                let n_edges = question.targets.len() + question.constraints.n_edges();
                budget.reserve("the question as text", 16 * n_edges as u64)?;
                let known: Vec<(u32, u32)> = question.known().map(|it| (it.from, it.to)).collect();
                let instance = ExportInstance {
                    n_nodes: question.n_nodes,
                    known: &known,
                    constraints: question.constraints,
                    name: &|node| node.to_string(),
                    about: &[],
                };
                if language == ExecLanguage::Gnf {
                    let sizes = sized_gnf(&instance, &mut out).map_err(failed)?;
                    [stats.variables, stats.clauses] = sizes.map(|it| it as u64);
                    Written::Sides
                } else {
                    smtlib2_with_values(&instance, &mut out).map_err(failed)?;
                    stats.variables = question.constraints.len() as u64;
                    stats.clauses = (known.len() + question.constraints.len()) as u64;
                    Written::Places
                }
            }
        };
        out.flush().map_err(failed)?;
        budget.check()?;
        Ok(written)
    }

    /// The sides, if they close no cycle.
    fn expect_acyclic(
        &self,
        question: &Question<'_>,
        sides: Option<Vec<Side>>,
        ended: &EndedProgram,
    ) -> Result<Decision, ExecHalt> {
        let lie = "it says that the question can be met, but what it chose does not meet it";
        let Some(sides) = sides else {
            return Err(ExecHalt::Failed(self.command.complain(lie, ended)));
        };
        let chosen = sides.iter().enumerate();
        let chosen = chosen.flat_map(|(at, &side)| question.constraints.side(at, side));
        let edges: Vec<Edge> = question.known().chain(chosen.copied()).collect();
        match Dag::new(question.n_nodes, edges.iter()) {
            Ok(_) => Ok(Decision::Choices(sides)),
            Err(_) => Err(ExecHalt::Failed(self.command.complain(lie, ended))),
        }
    }

    /// Finds a core again: programs report none, or not a small one.
    fn core(
        &self,
        question: &Question<'_>,
        budget: &Budget,
        progress: &mut dyn Progress,
        ended: &EndedProgram,
    ) -> Result<Decision, ExecHalt> {
        let mut own = Propagator::new(&self.options);
        let lie = "it says that the question cannot be met, and cadical/propagator met it";
        match own.decide(*question, budget, progress) {
            Ok((Decision::Choices(_), _)) => {
                Err(ExecHalt::Failed(self.command.complain(lie, ended)))
            }
            Ok((decision, _)) => Ok(decision),
            Err(error) => Err(ExecHalt::Failed(error.what)),
        }
    }
}

/// The sides that an answer takes; `None` if it takes neither side of some constraint.
fn sides(question: &Question<'_>, written: &Written, values: &[i64]) -> Option<Vec<Side>> {
    let constraints = question.constraints;
    let side = |first: bool| if first { Side::Either } else { Side::Or };
    match written {
        Written::Sides => Some(
            (0..constraints.len())
                .map(|at| side(values[at] > 0))
                .collect(),
        ),
        Written::Formula(formula) => {
            let (arena, meaning) = &**formula;
            let holds = |lit: Lit| (values[lit.vidx()] > 0) == lit.is_pos();
            Some(arena.choices(|at| side(holds(meaning.sides[at as usize][0]))))
        }
        Written::Places => {
            let place = |node: u32| values[node as usize];
            let is_met = |at: usize, side| {
                let edges = constraints.side(at, side);
                edges.iter().all(|it| place(it.from) < place(it.to))
            };
            let met = |at| {
                [Side::Either, Side::Or]
                    .into_iter()
                    .find(|&it| is_met(at, it))
            };
            (0..constraints.len()).map(met).collect()
        }
    }
}

impl Backend for Exec {
    fn name(&self) -> &str {
        &self.name
    }

    fn decide(
        &mut self,
        question: Question<'_>,
        budget: &Budget,
        progress: &mut dyn Progress,
    ) -> Result<(Decision, DecideStats), DecideError> {
        let mut stats = DecideStats {
            backend: self.name.clone(),
            ..DecideStats::default()
        };
        match self.search(&question, budget, progress, &mut stats) {
            Ok(decision) => Ok((decision, stats)),
            Err(ExecHalt::Stopped(reason)) => Ok((Decision::Unknown(reason), stats)),
            Err(ExecHalt::Failed(what)) => Err(DecideError {
                backend: self.name.clone(),
                what,
            }),
        }
    }
}

/// The names in `exec/…:`.
fn language(name: &str) -> Option<ExecLanguage> {
    match name {
        "gnf" => Some(ExecLanguage::Gnf),
        "smtlib2" => Some(ExecLanguage::Smtlib2),
        _ => ENCODINGS
            .into_iter()
            .find(|&it| it == name)
            .map(ExecLanguage::Cnf),
    }
}
