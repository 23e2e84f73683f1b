//! What was typed for `kingsnake export`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};

use super::ReadArgs;
use super::check::{LevelArgs, LimitArgs};

/// The language of a solver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Plain CNF for SAT solvers; `--encoding` says how acyclicity is put.
    Dimacs,
    /// Integer differences (`QF_IDL`) for SMT solvers.
    Smtlib2,
    /// `MonoSAT`'s graph format.
    Gnf,
    /// A picture for Graphviz.
    Dot,
}

/// When.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Stage {
    /// Before pruning.
    Constructed,
    /// After pruning.
    Pruned,
}

impl Stage {
    /// In words.
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
    /// The language.
    #[arg(long)]
    pub to: ExportFormat,
    /// Before or after pruning.
    #[arg(long, default_value = "pruned")]
    pub stage: Stage,
    /// How DIMACS says that there is no cycle.
    #[arg(long, value_name = "NAME", default_value = kingsnake_encodings::export::ENCODINGS[0], value_parser = PossibleValuesParser::new(kingsnake_encodings::export::ENCODINGS))]
    pub encoding: String,
    /// Where to write it; stdout unless given.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub out: PathBuf,
    /// What is checked.
    #[command(flatten)]
    pub level: LevelArgs,
    /// How the history is read.
    #[command(flatten)]
    pub read: ReadArgs,
    /// How far to go.
    #[command(flatten)]
    pub limits: LimitArgs,
}
