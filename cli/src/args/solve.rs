//! Options of `kingsnake solve`.

use std::path::PathBuf;

use clap::Args;

use super::check::LimitArgs;
use super::techniques::BackendParser;

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
    #[arg(long)]
    pub json: bool,
    /// Limits.
    #[command(flatten)]
    pub limits: LimitArgs,
}
