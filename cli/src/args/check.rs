//! What was typed for `kingsnake check`: the level, the limits and the files.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use kingsnake_solver::level::Level;

use super::assume::AssumeArgs;
use super::cells::CellArgs;
use super::values::{bytes, milliseconds, seconds, share};
use super::{ReadArgs, TechniqueArgs};
use crate::isolation::IsolationMap;
use crate::limits::is_stdio;

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnOff {
    /// They do.
    On,
    /// They need not.
    Off,
}

/// Which levels, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelArg {
    /// One.
    One(Level),
    /// All of them.
    Auto,
}

/// What recorded times say, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TimesArg {
    /// The true begin is not earlier and the true commit not later.
    Bounds,
    /// They are the true ones.
    Exact,
}

/// Where a certificate comes from, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CertificateFrom {
    /// The version order and the snapshots that the history gives.
    History,
}

/// What a compare-and-set says that failed and showed no value, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailedCasArg {
    /// Nothing: it may have failed for any reason.
    Nothing,
    /// The key held something else than what was expected.
    Differs,
}

/// What is checked.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Level")]
pub struct LevelArgs {
    /// The isolation level, or `auto` for all of them at once; `ser` unless given, and for `verify` what the certificate
    /// claims.
    #[arg(short, long, value_parser = levels(), ignore_case = true)]
    pub level: Option<LevelArg>,
    /// Whether a session's transactions keep their order; on, as in Cobra and Viper, unless given.
    #[arg(long, value_name = "SWITCH")]
    pub session_order: Option<OnOff>,
    /// How far clocks may disagree, in milliseconds: times order nothing that is closer together. 0 unless given.
    #[arg(long, value_name = "MS", value_parser = milliseconds)]
    pub clock_drift: Option<u64>,
    /// What recorded times are: a client's `bounds` of the true ones, unless given, or `exact`, as Viper takes them.
    #[arg(long, value_name = "READING")]
    pub times: Option<TimesArg>,
    /// Whether a transaction that had committed when another began comes before it; as the level says unless given.
    #[arg(long, value_name = "SWITCH")]
    pub real_time: Option<OnOff>,
    /// What the recorded isolation levels stand for at `--level as-recorded`, such as
    /// serializable=ser,"repeatable read"=si,"read committed"=rc-so; `*` is any other, or none.
    #[arg(long, value_name = "NAME=LEVEL,…", value_parser = str::parse::<IsolationMap>)]
    pub isolation_map: Option<IsolationMap>,
    /// What a failed compare-and-set that showed no value says, at `--level linearizable`; `nothing` unless given.
    #[arg(long, value_name = "READING")]
    pub failed_cas: Option<FailedCasArg>,
}

/// How far a command may go.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Limits")]
pub struct BoundArgs {
    /// Stop after this many seconds, reading included, with exit status 3 (`unknown`); fractions are fine.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Stop, with exit status 3, where the process grows over this size (such as 500M or 4G); what is free unless given. It counts all that is resident, and is held within 10 % from 150M on.
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub memory_limit: Option<u64>,
}

/// How far a check may go, and on how many threads.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// How far it may go.
    #[command(flatten)]
    pub bounds: BoundArgs,
    /// Use this many threads; by default one a core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub threads: Option<u16>,
}

/// What is written besides the words.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Files")]
pub struct FileArgs {
    /// Write the order that explains a satisfied history, for `kingsnake verify`.
    #[arg(long, value_name = "FILE")]
    pub certificate: Option<PathBuf>,
    /// Write an LRAT proof of a violation that the back end found, and its instance to FILE.cnf, for `kingsnake verify-proof`.
    #[arg(long, value_name = "FILE")]
    pub proof: Option<PathBuf>,
    /// Write one JSON document, to stdout in place of the words unless a file is given.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    /// Write Elle's result map (`:valid?`, `:anomaly-types`, `:anomalies`, `:not`, `:also-not`), to stdout in place of the words unless a
    /// file is given; looks for all anomalies, as --all does.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub edn: Option<PathBuf>,
    /// Write every anomaly into a directory: a text a class, a picture an anomaly, a page for each list whose reads disagree, and an
    /// index; looks for all anomalies, as --all does.
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Draw the counterexample for Graphviz.
    #[arg(long, value_name = "FILE")]
    pub dot: Option<PathBuf>,
    /// Draw the counterexample.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write one self-contained HTML page.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
}

/// What a workload's rule needs to know.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Workload")]
pub struct WorkloadArgs {
    /// The sum of all accounts, for `bank`; that of the first read unless given.
    #[arg(long, value_name = "SUM", allow_negative_numbers = true)]
    pub total: Option<i64>,
    /// Let accounts be negative, for `bank`.
    #[arg(long)]
    pub allow_negative: bool,
    /// How many keys a read has, for `long-fork`.
    #[arg(long, value_name = "N")]
    pub group_size: Option<usize>,
    /// Demand that an element is seen as soon as it was acknowledged, for `set-full`; that one order explains every read, for
    /// `counter`.
    #[arg(long)]
    pub linearizable: bool,
}

/// Anomalies of every class.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Anomalies")]
pub struct AllArgs {
    /// List every class of anomaly, the worst first, with its count and one example, and the models that they rule out.
    #[arg(long)]
    pub all: bool,
    /// Exit with 1 only if one of these models is ruled out, such as `snapshot-isolation,PL-2`; docs/levels.md lists them.
    #[arg(long, value_name = "MODEL", value_delimiter = ',')]
    pub expect: Vec<String>,
    /// Exit with 1 only if one of these anomalies, or a worse one, is there, such as `G1,lost-update`.
    #[arg(long, value_name = "ANOMALY", value_delimiter = ',')]
    pub anomalies: Vec<String>,
}

impl CheckArgs {
    /// Whether what the database recorded is judged: a certificate, or an expected order.
    pub fn is_recorded(&self) -> bool {
        let is_pl = matches!(self.level.level, Some(LevelArg::One(Level::Pl(_))));
        is_pl || self.certificate_from.is_some() || self.along.is_some()
    }

    /// The outputs that are asked for besides words, as they are typed.
    pub fn outputs(&self) -> impl Iterator<Item = &'static str> {
        let files = &self.files;
        let all = [
            ("--certificate", files.certificate.is_some()),
            ("--proof", files.proof.is_some()),
            ("--json", files.json.is_some()),
            ("--edn", files.edn.is_some()),
            ("--directory", files.directory.is_some()),
            ("--dot", files.dot.is_some()),
            ("--svg", files.svg.is_some()),
            ("--report", files.report.is_some()),
            ("--all", self.all.all),
            ("explain", self.explains),
        ];
        all.into_iter().filter(|it| it.1).map(|it| it.0)
    }

    /// Whether every class of anomaly is looked for.
    pub fn wants_anomalies(&self) -> bool {
        let AllArgs {
            all,
            expect,
            anomalies,
        } = &self.all;
        let is_written = self.files.edn.is_some() || self.files.directory.is_some();
        *all || is_written || !expect.is_empty() || !anomalies.is_empty()
    }
}

/// `kingsnake check`.
#[derive(Clone, Debug, Args)]
pub struct CheckManyArgs {
    /// The history: a file, a directory of logs, or `-` for stdin. Of several, or of a directory of histories, each is checked
    /// in a process of its own, and the exit status is the worst.
    #[arg(required = true, value_name = "HISTORY")]
    pub histories: Vec<PathBuf>,
    /// Print the techniques, which this help leaves out: none of them changes a verdict.
    #[arg(long, exclusive = true)]
    pub help_techniques: bool,
    /// What many histories leave behind.
    #[command(flatten)]
    pub many: ManyArgs,
    /// How each is checked.
    #[command(flatten)]
    pub check: CheckArgs,
}

/// `kingsnake explain`.
#[derive(Clone, Debug, Args)]
pub struct ExplainArgs {
    /// The history: a file, a directory of logs, or `-` for stdin.
    pub history: PathBuf,
    /// How it is checked.
    #[command(flatten)]
    pub check: CheckArgs,
}

/// What many histories leave behind, and where they are checked.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Many histories")]
pub struct ManyArgs {
    /// Output directory: one row per history, one page per violation. An interrupted run resumes.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write the verdicts as `JUnit`'s XML, one test case per history.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write the verdicts as GitLab's code quality report.
    #[arg(long, value_name = "FILE")]
    pub code_quality: Option<PathBuf>,
    /// Write the verdicts as SARIF 2.1.0, one result per history that is not satisfied.
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// Print a line for a continuous-integration service for each history that is not satisfied.
    #[arg(long, value_name = "SERVICE")]
    pub annotations: Option<AnnotationsArg>,
    /// Where they are checked.
    #[command(flatten)]
    pub cells: CellArgs,
}

impl ManyArgs {
    /// Whether a document goes to stdout.
    pub fn writes_stdout(&self) -> bool {
        let documents = [&self.junit, &self.code_quality, &self.sarif];
        documents.into_iter().flatten().any(|it| is_stdio(it))
    }
}

/// Whose annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AnnotationsArg {
    /// `::error file=…` lines, which GitHub shows beside the file.
    Github,
}

/// How a history is checked.
#[derive(Clone, Debug, Args)]
pub struct CheckArgs {
    /// The history: a file, a directory of logs, or `-` for stdin.
    #[arg(skip)]
    pub history: PathBuf,
    /// Whether the answer is told at length.
    #[arg(skip)]
    pub explains: bool,
    /// What is checked.
    #[command(flatten)]
    pub level: LevelArgs,
    /// Judge the version order and the snapshots that the history gives, as Emme does, instead of searching any; says also
    /// whether some other order would explain the history.
    #[arg(
        long,
        value_name = "SOURCE",
        conflicts_with = "along",
        help_heading = "Level"
    )]
    pub certificate_from: Option<CertificateFrom>,
    /// Replay the history in an expected serial order, as Enne does: `commit-ts`, `start-ts`, or a file with a transaction a
    /// line.
    #[arg(long, value_name = "ORDER", help_heading = "Level")]
    pub along: Option<String>,
    /// How the history is read.
    #[command(flatten)]
    pub read: ReadArgs,
    /// What is assumed beyond it.
    #[command(flatten)]
    pub assume: AssumeArgs,
    /// What a workload's rule needs to know.
    #[command(flatten)]
    pub workload: WorkloadArgs,
    /// Keep only this share of the given versions, from 0 to 1, chosen by the seed; kept neighbours are linked.
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with = "no_version_order", help_heading = "Reading")]
    pub version_order_share: Option<f64>,
    /// What is looked for besides the level.
    #[command(flatten)]
    pub all: AllArgs,
    /// What is written.
    #[command(flatten)]
    pub files: FileArgs,
    /// How far to go.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// How it is checked.
    #[command(flatten)]
    pub techniques: TechniqueArgs,
}

fn levels() -> impl TypedValueParser<Value = LevelArg> {
    let levels = Level::ALL.map(|level| {
        let (name, aliases) = level.names().split_first().expect("a level has a name");
        PossibleValue::new(name).aliases(aliases)
    });
    let names = levels.into_iter().chain([PossibleValue::new("auto")]);
    PossibleValuesParser::new(names).try_map(|name| match name.to_ascii_lowercase().as_str() {
        "auto" => Ok(LevelArg::Auto),
        name => name.parse::<Level>().map(LevelArg::One),
    })
}
