//! Options of `kingsnake check`: the level, the limits and the files.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use kingsnake_solver::definition::{DEFINITIONS, Definition};
use kingsnake_solver::level::{Level, hyphenated};

use super::assume::AssumeArgs;
use super::cells::CellArgs;
use super::values::{bytes, milliseconds, seconds, share};
use super::{ReadArgs, TechniqueArgs};
use crate::isolation::IsolationMap;
use crate::limits::is_stdio;

/// On or off, as typed.
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
    /// One as a paper defines it.
    Paper(&'static Definition),
    /// All of them.
    Auto,
}

impl LevelArg {
    /// The level, if it is a single one.
    pub fn one(self) -> Option<Level> {
        match self {
            LevelArg::One(level) => Some(level),
            LevelArg::Paper(definition) => Some(definition.level),
            LevelArg::Auto => None,
        }
    }
}

/// How to read recorded times, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TimesArg {
    /// The true begin is no earlier and the true commit no later.
    Bounds,
    /// They are the true begin and commit.
    Exact,
}

/// The source of a certificate, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CertificateFrom {
    /// The version order and the snapshots that the history gives.
    History,
}

/// What follows from a failed compare-and-set without a value, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailedCasArg {
    /// Nothing: it may have failed for any reason.
    Nothing,
    /// The key held a value other than the expected one.
    Differs,
}

/// What is checked.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Level")]
pub struct LevelArgs {
    /// The isolation level, as this program defines it or as a paper does (`viper/si`), or `auto` for all levels [default: ser;
    /// for `verify` what the certificate claims].
    #[arg(short, long, value_parser = LevelParser)]
    pub level: Option<LevelArg>,
    /// Whether a session's transactions keep their order [default: on, as in Cobra and Viper].
    #[arg(long, value_name = "SWITCH")]
    pub session_order: Option<OnOff>,
    /// Clock drift in milliseconds: times closer together than this order nothing [default: 0].
    #[arg(long, value_name = "MS", value_parser = milliseconds)]
    pub clock_drift: Option<u64>,
    /// What recorded times are: `bounds` on the true times, taken by a client, or `exact`, as in Viper [default: bounds].
    #[arg(long, value_name = "READING")]
    pub times: Option<TimesArg>,
    /// Whether a transaction that committed before another began comes before it [default: by the level].
    #[arg(long, value_name = "SWITCH")]
    pub real_time: Option<OnOff>,
    /// Map the recorded isolation levels to levels at `--level as-recorded`, such as
    /// serializable=ser,"repeatable read"=si,"read committed"=rc-so; `*` is any other, or none.
    #[arg(long, value_name = "NAME=LEVEL,…", value_parser = str::parse::<IsolationMap>)]
    pub isolation_map: Option<IsolationMap>,
    /// What follows from a failed compare-and-set without a value, at `--level linearizable` [default: nothing].
    #[arg(long, value_name = "READING")]
    pub failed_cas: Option<FailedCasArg>,
}

/// Limits of a command.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Limits")]
pub struct BoundArgs {
    /// Stop after this many seconds, reading included, with exit status 3 (`unknown`); fractions are allowed.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Stop, with exit status 3, when the resident size of the process exceeds this (such as 500M or 4G) [default: free memory]. Accurate to 10 % from 150M on.
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub memory_limit: Option<u64>,
}

/// Limits of a check, and its threads.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// Limits.
    #[command(flatten)]
    pub bounds: BoundArgs,
    /// Number of threads [default: one per core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub threads: Option<u16>,
}

/// Output files.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Files")]
pub struct FileArgs {
    /// Write the order that proves a history satisfied, for `kingsnake verify`.
    #[arg(long, value_name = "FILE")]
    pub certificate: Option<PathBuf>,
    /// Write an LRAT proof of a violation that the back end found, and its instance to FILE.cnf, for `kingsnake verify-proof`.
    #[arg(long, value_name = "FILE")]
    pub proof: Option<PathBuf>,
    /// Write one JSON document to a file, or to stdout instead of text.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    /// Write Elle's result map (`:valid?`, `:anomaly-types`, `:anomalies`, `:not`, `:also-not`) to a file, or to stdout instead of
    /// text; searches for all anomalies, as --all does.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub edn: Option<PathBuf>,
    /// Write every anomaly to a directory: one text per class, one picture per anomaly, one page per list whose reads disagree, and an
    /// index; searches for all anomalies, as --all does.
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Write the counterexample as a Graphviz graph.
    #[arg(long, value_name = "FILE")]
    pub dot: Option<PathBuf>,
    /// Write the counterexample as an SVG picture.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write a self-contained HTML page.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
}

/// Parameters of a workload's rule.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Workload")]
pub struct WorkloadArgs {
    /// The sum of all accounts, for `bank` [default: that of the first read].
    #[arg(long, value_name = "SUM", allow_negative_numbers = true)]
    pub total: Option<i64>,
    /// Allow negative accounts, for `bank`.
    #[arg(long)]
    pub allow_negative: bool,
    /// Keys per read, for `long-fork`.
    #[arg(long, value_name = "N")]
    pub group_size: Option<usize>,
    /// Require that an element is seen as soon as it was acknowledged, for `set-full`; that one order explains every read, for
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
    /// Exit with 1 only if one of these anomalies, or a worse one, is found, such as `G1,lost-update`.
    #[arg(long, value_name = "ANOMALY", value_delimiter = ',')]
    pub anomalies: Vec<String>,
}

impl CheckArgs {
    /// Whether the database's own record is judged: a certificate, or an expected order.
    pub fn is_recorded(&self) -> bool {
        let is_pl = matches!(self.level.level, Some(LevelArg::One(Level::Pl(_))));
        is_pl || self.certificate_from.is_some() || self.along.is_some()
    }

    /// The requested outputs besides text, as typed.
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

    /// Whether every level is asked for.
    pub fn asks_auto(&self) -> bool {
        self.level.level == Some(LevelArg::Auto)
    }

    /// Whether some output tells how to repeat the run.
    pub fn tells_run(&self) -> bool {
        let files = &self.files;
        self.is_verbose
            || [&files.json, &files.directory, &files.report]
                .iter()
                .any(|it| it.is_some())
    }

    /// Whether to search for every class of anomaly.
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
    /// The history: a file, a directory of logs, or `-` for stdin. Several, or a directory of histories, are each checked
    /// apart from the others, and the exit status is the worst.
    #[arg(required = true, value_name = "HISTORY")]
    pub histories: Vec<PathBuf>,
    /// Print the technique options, which this help omits: none of them changes a verdict.
    #[arg(long, exclusive = true)]
    pub help_techniques: bool,
    /// Outputs for many histories.
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

/// Outputs for many histories, and where they are checked.
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
    /// Print one CI annotation per history that is not satisfied.
    #[arg(long, value_name = "SERVICE")]
    pub annotations: Option<AnnotationsArg>,
    /// Check the histories that stdin names, one after the other, as the processes of a check of many do.
    #[arg(long, hide = true)]
    pub serve: bool,
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

/// The CI service.
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
    /// Whether to explain the answer in detail.
    #[arg(skip)]
    pub explains: bool,
    /// Whether to tell everything about the run.
    #[arg(skip)]
    pub is_verbose: bool,
    /// What is checked.
    #[command(flatten)]
    pub level: LevelArgs,
    /// Check the version order and the snapshots in the history, as Emme does, instead of searching for an order; also report
    /// whether any other order explains the history.
    #[arg(
        long,
        value_name = "SOURCE",
        conflicts_with = "along",
        help_heading = "Level"
    )]
    pub certificate_from: Option<CertificateFrom>,
    /// Replay the history in an expected serial order, as Enne does: `commit-ts`, `start-ts`, or a file with one transaction per
    /// line.
    #[arg(long, value_name = "ORDER", help_heading = "Level")]
    pub along: Option<String>,
    /// How the history is read.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Assumptions beyond the history.
    #[command(flatten)]
    pub assume: AssumeArgs,
    /// Parameters of a workload's rule.
    #[command(flatten)]
    pub workload: WorkloadArgs,
    /// Keep only this share of the given version order, from 0 to 1, chosen by the seed; kept neighbours are linked.
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with = "no_version_order", help_heading = "Reading")]
    pub version_order_share: Option<f64>,
    /// Anomalies to search for besides the level.
    #[command(flatten)]
    pub all: AllArgs,
    /// Output files.
    #[command(flatten)]
    pub files: FileArgs,
    /// Limits.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// How it is checked.
    #[command(flatten)]
    pub techniques: TechniqueArgs,
}

/// Parses levels by all their names, in any case and with spaces, underscores or hyphens.
#[derive(Clone)]
pub struct LevelParser;

impl TypedValueParser for LevelParser {
    type Value = LevelArg;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<LevelArg, clap::Error> {
        let spelt = value.to_str().map(hyphenated);
        let value = spelt.as_deref().map_or(value, OsStr::new);
        levels().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values: Vec<PossibleValue> = levels().possible_values()?.collect();
        Some(Box::new(values.into_iter()))
    }
}

fn levels() -> impl TypedValueParser<Value = LevelArg> {
    let levels = Level::ALL.map(|level| {
        let (name, aliases) = level.names().split_first().expect("a level has a name");
        PossibleValue::new(name).aliases(aliases)
    });
    let papers = DEFINITIONS.iter().map(|it| PossibleValue::new(it.name));
    let names = levels.into_iter().chain([PossibleValue::new("auto")]);
    PossibleValuesParser::new(names.chain(papers)).try_map(|name| {
        if name.eq_ignore_ascii_case("auto") {
            return Ok(LevelArg::Auto);
        }
        match Definition::named(&name) {
            Some(definition) => Ok(LevelArg::Paper(definition)),
            None => name.parse::<Level>().map(LevelArg::One),
        }
    })
}
