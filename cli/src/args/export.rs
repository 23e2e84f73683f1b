//! Options of `kingsnake export`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};

use super::ReadArgs;
use super::check::{LevelArgs, LimitArgs};

/// The input format of a solver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Plain CNF for SAT solvers; `--encoding` chooses how to encode acyclicity.
    Dimacs,
    /// Integer differences (`QF_IDL`) for SMT solvers.
    Smtlib2,
    /// `MonoSAT`'s graph format.
    #[value(alias = "monosat")]
    Gnf,
    /// A Graphviz graph.
    Dot,
}

/// The stage of the constraints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Stage {
    /// Before pruning.
    Constructed,
    /// After pruning.
    Pruned,
}

impl Stage {
    /// As text.
    pub fn words(self) -> &'static str {
        match self {
            Stage::Constructed => "before pruning",
            Stage::Pruned => "after pruning",
        }
    }
}

/// `kingsnake export`.
#[derive(Clone, Debug, Args)]
pub struct ExportArgs {
    /// The history: a file, or a directory of logs.
    pub history: PathBuf,
    /// Output format.
    #[arg(long)]
    pub to: ExportFormat,
    /// Export the constraints before or after pruning.
    #[arg(long, default_value = "pruned")]
    pub stage: Stage,
    /// How to encode acyclicity in DIMACS.
    #[arg(long, value_name = "NAME", default_value = kingsnake_encodings::export::ENCODINGS[0], value_parser = PossibleValuesParser::new(kingsnake_encodings::export::ENCODINGS))]
    pub encoding: String,
    /// Output file [default: stdout].
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub out: PathBuf,
    /// What is checked.
    #[command(flatten)]
    pub level: LevelArgs,
    /// How the history is read.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Limits.
    #[command(flatten)]
    pub limits: LimitArgs,
}
