//! What was typed for a long study.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use kingsnake_gpu::DeviceChoice;
use kingsnake_studies::{Measure, StudyRequest};

use super::ReadArgs;
use super::cells::CellArgs;
use super::check::{LevelArgs, LimitArgs};
use super::techniques::BackendParser;
use super::values::{bytes, seconds};

/// How a study runs.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Study")]
pub struct StudyArgs {
    /// Where rows, figures and the report go; a study that stopped there goes on.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Run each check this often on each history.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: Option<u32>,
    /// Make this many histories of each recipe.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub seeds: Option<u32>,
    /// Seconds that a check may take; fractions are fine.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Where a check runs out of time on one history, leave out its other runs; captions say how many there were.
    #[arg(long)]
    pub skip_after_timeout: bool,
    /// How large a check's process may become (such as 500M or 4G); what is free unless given.
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub memory: Option<u64>,
    /// What the figures show; the study's own choice unless given.
    #[arg(long, value_name = "WHICH")]
    pub measure: Option<MeasureArg>,
    /// Give a parameter of the study another value.
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub set: Vec<(String, String)>,
    /// With --list: as JSON, a cell a line: id, cell, argv, history, row, done.
    #[arg(long, requires = "list")]
    pub json: bool,
    /// Where the cells run.
    #[command(flatten)]
    pub cells: CellArgs,
}

impl StudyArgs {
    /// What the study is asked for.
    pub fn request(&self) -> StudyRequest {
        StudyRequest {
            out: self.out.clone(),
            repeat: self.repeat,
            seeds: self.seeds,
            timeout: self.timeout,
            memory: self.memory,
            measure: self.measure.map(|typed| match typed {
                MeasureArg::Seconds => Measure::Seconds,
                MeasureArg::Cpu => Measure::Cpu,
                MeasureArg::Both => Measure::Both,
                MeasureArg::Solver => Measure::Solver,
                MeasureArg::Constraints => Measure::Constraints,
                MeasureArg::Work => Measure::Work,
            }),
            jobs: usize::from(self.cells.jobs),
            set: self.set.clone(),
            mode: self.cells.mode(self.json),
            restart: self.cells.restart,
            skip_after_timeout: self.skip_after_timeout,
        }
    }
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MeasureArg {
    /// The whole check, by the clock.
    Seconds,
    /// The whole check, in processor time: for busy machines.
    Cpu,
    /// Figures by the clock, and tables of both.
    Both,
    /// Encoding and solving only.
    Solver,
    /// Constraints that pruning left open.
    Constraints,
    /// Conflicts and decisions of the solver.
    Work,
}

/// `kingsnake bench`.
#[derive(Clone, Debug, Subcommand)]
pub enum BenchCommand {
    /// Compare the back ends on the same instances.
    Encodings(EncodingsArgs),
    /// Measure the ways to compute reachability on random graphs.
    Reach(ReachArgs),
    /// Draw violated constraints over time and moves a second of annealing: serial, coloured and on a device.
    Anneal(AnnealArgs),
}

/// `kingsnake bench anneal`.
#[derive(Clone, Debug, Args)]
pub struct AnnealArgs {
    /// Histories whose orders pruning leaves open.
    #[arg(required = true)]
    pub histories: Vec<PathBuf>,
    /// Where rows, figures and the page go.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Which GPU takes part; `cpu` for none.
    #[arg(long, value_name = "WHERE", default_value = "gpu")]
    pub device: DeviceChoice,
    /// The seed of the moves.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u32,
    /// What is checked.
    #[command(flatten)]
    pub level: LevelArgs,
    /// How the histories are read.
    #[command(flatten)]
    pub read: ReadArgs,
    /// How far to go.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// `kingsnake bench reach`.
#[derive(Clone, Debug, Args)]
pub struct ReachArgs {
    /// Where rows, figures and the page go.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// How many nodes.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1000,2000,5000,10000,20000,50000", value_parser = clap::value_parser!(u32).range(1..=200_000))]
    pub nodes: Vec<u32>,
    /// How many edges a node.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "2,6,20", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub degrees: Vec<u32>,
    /// How many chains the nodes fall into.
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..))]
    pub chains: u32,
    /// How many nodes an edge reaches ahead at most.
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..))]
    pub span: u32,
    /// Which GPU takes part, if any.
    #[arg(long, value_name = "WHERE", default_value = "gpu")]
    pub device: DeviceChoice,
    /// A software adapter computes only graphs of at most this many nodes.
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    pub software_nodes: u32,
    /// Measure everything this often, and take the shortest.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: u32,
}

/// `kingsnake bench encodings`.
#[derive(Clone, Debug, Args)]
pub struct EncodingsArgs {
    /// Histories, or instances in `MonoSAT`'s format (FILE.gnf), to take in place of the built-in set.
    pub histories: Vec<PathBuf>,
    /// The back ends to compare, the base of the ratios first; all unless given.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = BackendParser)]
    pub backends: Option<Vec<String>>,
    /// How the study runs.
    #[command(flatten)]
    pub study: StudyArgs,
}

/// `kingsnake ablate`.
#[derive(Clone, Debug, Args)]
pub struct AblateArgs {
    /// A built-in study (king-cobra, viper, mtc, mini-vs-general, weak, mixed, emme, encodings, ingredients, sizes, sweep), or a study file; docs/ablation.md describes both.
    #[arg(value_name = "STUDY")]
    pub name: PathBuf,
    /// Run and show only these figures, such as 8,10; all unless given. The rows of others in DIR stay.
    #[arg(long, value_name = "FIGURE,…", value_delimiter = ',')]
    pub figure: Option<Vec<String>>,
    /// Take the paper's sizes and limit; they may take hours.
    #[arg(long)]
    pub paper_sizes: bool,
    /// Run every check on this device; on each of several, side by side (such as cpu,gpu).
    #[arg(long, value_name = "WHERE,…", value_delimiter = ',')]
    pub device: Vec<DeviceChoice>,
    /// Decide with this back end; with each of several, side by side (such as cadical/propagator,z3/order).
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = BackendParser)]
    pub backend: Vec<String>,
    /// Check with this set of techniques; with each of several, side by side (such as cobra,king-cobra,kingsnake).
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub profile: Vec<String>,
    /// The same as `--set txns=N`.
    #[arg(long, value_name = "N")]
    pub txns: Option<u32>,
    /// The same as `--set keys=N`.
    #[arg(long, value_name = "N")]
    pub keys: Option<u32>,
    /// How the study runs.
    #[command(flatten)]
    pub study: StudyArgs,
}

fn assignment(typed: &str) -> Result<(String, String), String> {
    match typed.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("not of the form NAME=VALUE".to_owned()),
    }
}
