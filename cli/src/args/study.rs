//! Options of studies and benchmarks.

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
    /// Output directory for rows, figures and the report. An interrupted study resumes.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Number of runs per check and history.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: Option<u32>,
    /// Number of histories per recipe.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub seeds: Option<u32>,
    /// Time limit per check, in seconds; fractions are allowed.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// After a check times out on a history, skip its other runs; captions give the number of runs.
    #[arg(long)]
    pub skip_after_timeout: bool,
    /// Memory limit of each check's process (such as 500M or 4G) [default: free memory].
    #[arg(long = "memory-limit", alias = "memory", value_name = "SIZE", value_parser = bytes)]
    pub memory: Option<u64>,
    /// What the figures show [default: by the study].
    #[arg(long, value_name = "WHICH")]
    pub measure: Option<MeasureArg>,
    /// Set a parameter of the study.
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub set: Vec<(String, String)>,
    /// With --list: print JSON, one cell per line: id, cell, argv, history, row, done.
    #[arg(long, requires = "list")]
    pub json: bool,
    /// Where to run the cells.
    #[command(flatten)]
    pub cells: CellArgs,
}

impl StudyArgs {
    /// The request to the study.
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
    /// The whole check, in wall time.
    Seconds,
    /// The whole check, in processor time, for busy machines.
    Cpu,
    /// Figures in wall time, and tables of both.
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
    /// Measure the algorithms for reachability on random graphs.
    Reach(ReachArgs),
    /// Measure closures on a device beside what the cost model predicts, or show measurements of other machines.
    Gpu(GpuArgs),
    /// Plot violated constraints over time and moves per second of annealing: serial, coloured and on a device.
    Anneal(AnnealArgs),
}

/// `kingsnake bench anneal`.
#[derive(Clone, Debug, Args)]
pub struct AnnealArgs {
    /// Histories that pruning alone does not decide.
    #[arg(required = true)]
    pub histories: Vec<PathBuf>,
    /// Output directory for rows, figures and the page.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// The GPU to measure; `cpu` for none.
    #[arg(long, value_name = "WHERE", default_value = "gpu")]
    pub device: DeviceChoice,
    /// The seed of the annealing moves.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u32,
    /// What is checked.
    #[command(flatten)]
    pub level: LevelArgs,
    /// How the histories are read.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Limits.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// `kingsnake bench gpu`.
#[derive(Clone, Debug, Args)]
pub struct GpuArgs {
    /// Output directory for the page, gpu.md, and the measurements, calibration.json.
    #[arg(long, value_name = "DIR", required_unless_present = "import")]
    pub out: Option<PathBuf>,
    /// The device to measure.
    #[arg(long, value_name = "WHERE", default_value = "gpu")]
    pub device: DeviceChoice,
    /// Print the measurements in these files, a calibration.json of any machine each, as rows of docs/gpu.md.
    #[arg(
        long,
        value_name = "FILE,…",
        value_delimiter = ',',
        conflicts_with = "device"
    )]
    pub import: Vec<PathBuf>,
}

/// `kingsnake bench reach`.
#[derive(Clone, Debug, Args)]
pub struct ReachArgs {
    /// Output directory for rows, figures and the page.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Number of nodes.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1000,2000,5000,10000,20000,50000", value_parser = clap::value_parser!(u32).range(1..=200_000))]
    pub nodes: Vec<u32>,
    /// Edges per node.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "2,6,20", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub degrees: Vec<u32>,
    /// Number of chains of nodes.
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..))]
    pub chains: u32,
    /// Largest distance between the two nodes of an edge.
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..))]
    pub span: u32,
    /// The GPU to measure, if any.
    #[arg(long, value_name = "WHERE", default_value = "gpu")]
    pub device: DeviceChoice,
    /// Largest number of nodes for a software adapter.
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    pub software_nodes: u32,
    /// Number of runs; the shortest counts.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: u32,
}

/// `kingsnake bench encodings`.
#[derive(Clone, Debug, Args)]
pub struct EncodingsArgs {
    /// Histories, or instances in `MonoSAT`'s format (FILE.gnf), to use instead of the built-in set.
    pub histories: Vec<PathBuf>,
    /// The back ends to compare, the base of the ratios first [default: all].
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = BackendParser)]
    pub backends: Option<Vec<String>>,
    /// How the study runs.
    #[command(flatten)]
    pub study: StudyArgs,
}

/// `kingsnake ablate`.
#[derive(Clone, Debug, Args)]
pub struct AblateArgs {
    /// A built-in study (king-cobra, viper, mtc, mini-vs-general, weak, mixed, elle, emme, encodings, ingredients, sizes, sweep, watch), or a study file; docs/ablation.md describes both.
    #[arg(value_name = "STUDY")]
    pub name: PathBuf,
    /// Run and show only these figures, such as 8,10 [default: all]. Rows of other figures in DIR are kept.
    #[arg(long, value_name = "FIGURE,…", value_delimiter = ',')]
    pub figure: Option<Vec<String>>,
    /// Use the paper's sizes and time limit; this may take hours.
    #[arg(long)]
    pub paper_sizes: bool,
    /// Run every check on this device, or compare several (such as cpu,gpu).
    #[arg(long, value_name = "WHERE,…", value_delimiter = ',')]
    pub device: Vec<DeviceChoice>,
    /// Decide with this back end, or compare several (such as cadical/propagator,z3/order).
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = BackendParser)]
    pub backend: Vec<String>,
    /// Check with this set of techniques, or compare several (such as cobra,king-cobra,kingsnake).
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
