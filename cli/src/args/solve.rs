//! Options of `kingsnake solve`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::check::LimitArgs;
use super::techniques::BackendParser;

/// The form of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SolveFormat {
    /// `satisfiable` and a model, or `unsatisfiable` and a core.
    Plain,
    /// As SAT solvers answer in competitions: `s SATISFIABLE` and `v` lines, or `s UNSATISFIABLE`.
    Competition,
}

/// `kingsnake solve`.
#[derive(Clone, Debug, Args)]
pub struct SolveArgs {
    /// An instance in `MonoSAT`'s graph format (clauses, digraph, edge, acyclic); `-` is stdin.
    pub instance: PathBuf,
    /// Back end that decides what pruning leaves open; or two in parallel, as `portfolio:A,B`.
    #[arg(long, value_name = "NAME", default_value = kingsnake_encodings::BACKENDS[0], value_parser = BackendParser)]
    pub backend: String,
    /// The same seed gives the same run.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u32,
    /// Give the back end the whole instance, without pruning.
    #[arg(long)]
    pub no_prune: bool,
    /// Print one JSON document instead of text.
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// How to print the answer.
    #[arg(long, value_name = "FORMAT", default_value = "plain")]
    pub format: SolveFormat,
    /// Limits.
    #[command(flatten)]
    pub limits: LimitArgs,
}
