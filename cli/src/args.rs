//! What was typed. What will run is the [`plan`](crate::plan).

mod study;

pub use study::{AblateArgs, BenchCommand, EncodingsArgs, MeasureArg, ReachArgs, StudyArgs};

use std::ffi::OsStr;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use kingsnake_datasets::Format;
use kingsnake_datasets::store::{Fault, Isolation};
use kingsnake_datasets::workloads::Distribution;
use kingsnake_gpu::Choice;
use kingsnake_solver::level::Level;

/// Checks whether a database kept its isolation promise.
///
/// Exit status: 0 satisfied, 1 violated, 2 error, 3 unknown.
#[derive(Debug, Parser)]
#[command(
    name = "kingsnake",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
pub struct Typed {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// How much to say, and how.
    #[command(flatten)]
    pub voice: VoiceArgs,
    /// End when stdin closes, as the processes of a study do when the study ends.
    #[arg(long, global = true, hide = true)]
    pub leash: bool,
}

/// How much to say, and how.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct VoiceArgs {
    /// Say only the verdict, and draw no progress.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say more: the plan, phase times, pruning rounds, solver statistics, peak memory.
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// Colour the words.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
}

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Even in a pipe.
    Always,
    /// Not even on a terminal.
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check a history at an isolation level.
    Check(Box<CheckArgs>),
    /// Replay a certificate against a history, in linear time.
    Verify(VerifyArgs),
    /// Check a proof that constraints cannot all be met, with nothing of what found it.
    VerifyProof(Box<VerifyProofArgs>),
    /// Check a history and tell at length what happened.
    Explain(Box<CheckArgs>),
    /// Count what a history holds.
    Stats(StatsArgs),
    /// Write a history in another format.
    Convert(ConvertArgs),
    /// Write what a solver would be asked, in another solver's language.
    Export(ExportArgs),
    /// Run a workload on an embedded store that keeps its promise, or breaks it once on request.
    Generate(Box<GenerateArgs>),
    /// Run a study: workloads times switches, with figures and a report.
    Ablate(AblateArgs),
    /// Measure, with figures and a report.
    Bench {
        /// What to measure.
        #[command(subcommand)]
        what: BenchCommand,
    },
    /// List what can compute reachability on this machine.
    Devices,
    /// Print a shell's completions.
    Completions {
        /// Which shell.
        shell: Shell,
    },
}

/// How a history is read.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Reading")]
pub struct ReadArgs {
    /// The file's format; recognised from its content unless given.
    #[arg(long, value_parser = formats(&Format::ALL))]
    pub format: Option<Format>,
    /// A file that gives the order of the versions of some keys.
    #[arg(long, value_name = "FILE", conflicts_with = "no_version_order")]
    pub version_order: Option<PathBuf>,
    /// Ignore the order of versions that the history gives.
    #[arg(long)]
    pub no_version_order: bool,
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
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

/// What is checked.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Level")]
pub struct LevelArgs {
    /// The isolation level, or `auto` for all of them at once; `ser` unless given, and for `verify` what the certificate
    /// claims.
    #[arg(short, long, value_parser = levels())]
    pub level: Option<LevelArg>,
    /// Whether a session's transactions keep their order; on, as in Cobra and Viper, unless given.
    #[arg(long, value_name = "SWITCH")]
    pub session_order: Option<Switch>,
    /// How far clocks may disagree, in milliseconds: times order nothing that is closer together. 0 unless given.
    #[arg(long, value_name = "MS", value_parser = milliseconds)]
    pub clock_drift: Option<u64>,
    /// What recorded times are: a client's `bounds` of the true ones, unless given, or `exact`, as Viper takes them.
    #[arg(long, value_name = "READING")]
    pub times: Option<TimesArg>,
    /// Whether a transaction that had committed when another began comes before it; as the level says unless given.
    #[arg(long, value_name = "SWITCH")]
    pub real_time: Option<Switch>,
}

/// A set of techniques.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// What Cobra does: `combine` and `coalesce`, one pruning round on a matrix, one variable a constraint, no guesses.
    Cobra,
    /// The same with five pruning rounds, as in the King Cobra study.
    KingCobra,
    /// Everything.
    #[default]
    Kingsnake,
}

/// Where the solver's first guess of a constraint comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PhaseArg {
    /// The position estimate, or a topological order where there is none.
    Estimate,
    /// A topological order.
    Topological,
    /// Nowhere.
    None,
    /// A coin.
    Random,
}

/// Which constraint the solver decides next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DecideArg {
    /// One that the current order violates, surest first.
    Repair,
    /// Any, surest first.
    SurestFirst,
    /// Any, from the first place of the estimated order to the last.
    Position,
    /// What the solver's own heuristic prefers.
    Vsids,
}

/// How reachability is kept, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReachabilityArg {
    /// Chosen from the sizes.
    Auto,
    /// A bit row for each node.
    Dense,
    /// A clock over the sessions for each node.
    Chains,
}

/// Which sides are assumed, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HeuristicArg {
    /// None.
    Off,
    /// Those that a long way backwards speaks for; all over again with a longer way at every no.
    Viper,
    /// The same, but the solver keeps what it has learned, and only what it blames is given up.
    Incremental,
}

/// How it is checked. None of these changes a verdict.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Techniques (none of them changes a verdict)")]
pub struct TechniqueArgs {
    /// Who decides what pruning leaves open; or two of them at once, as `portfolio:A,B`.
    #[arg(long, value_name = "NAME", value_parser = BackendParser, default_value = kingsnake_encodings::BACKENDS[0])]
    pub backend: String,
    /// The seed, of the solver and of the choice of versions.
    #[arg(long, default_value_t = 0)]
    pub seed: u32,
    /// A set of techniques. The options below override it; `--estimate` switches on what a profile has off.
    #[arg(long, value_name = "NAME", default_value = "kingsnake")]
    pub profile: Profile,
    /// Stop pruning after this many rounds; `fixpoint` is when nothing more is forced.
    #[arg(long, value_name = "N", value_parser = rounds)]
    pub prune_rounds: Option<Rounds>,
    /// How reachability is kept; chosen from the sizes unless given.
    #[arg(long, value_name = "HOW")]
    pub reachability: Option<ReachabilityArg>,
    /// Where reachability is computed: auto (a GPU where it pays), cpu, gpu, or `gpu:NAME` or `gpu:INDEX` as `kingsnake devices` lists it.
    #[arg(long, value_name = "WHERE", default_value_t)]
    pub device: Choice,
    /// Which sides of constraints are assumed, from a topological order, before the solver is asked.
    #[arg(long, value_name = "WHICH", default_value = "off")]
    pub heuristic: HeuristicArg,
    /// Where the first guess of a constraint comes from (cadical/propagator).
    #[arg(long, value_name = "WHENCE")]
    pub phase: Option<PhaseArg>,
    /// Which constraint is decided next (cadical/propagator).
    #[arg(long, value_name = "WHICH")]
    pub decide: Option<DecideArg>,
    /// Rule out sides that a decision makes impossible, as far as looking at so many nodes each way shows
    /// (cadical/propagator); 0, which is not at all, unless given.
    #[arg(long, value_name = "NODES")]
    pub propagate: Option<usize>,
    /// The switches.
    #[command(flatten)]
    pub switches: SwitchArgs,
}

/// How many pruning rounds at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounds {
    /// This many.
    AtMost(usize),
    /// Until nothing more is forced.
    Fixpoint,
}

fn rounds(typed: &str) -> Result<Rounds, String> {
    match typed.parse() {
        Ok(rounds) => Ok(Rounds::AtMost(rounds)),
        Err(_) if typed == "fixpoint" => Ok(Rounds::Fixpoint),
        Err(_) => Err("neither a number of rounds nor `fixpoint`".to_owned()),
    }
}

/// Declares a pair of options for each technique: `--no-name`, and `--name`, which takes it back; the last one counts.
macro_rules! switches {
    ($($on:ident $off:ident $about:literal)*) => {
        /// Techniques that are on or off.
        #[derive(Clone, Debug, Args)]
        #[allow(clippy::struct_excessive_bools)] // Each is a switch of its own on the command line.
        pub struct SwitchArgs {$(
            #[doc = $about]
            #[arg(long, overrides_with = stringify!($on))]
            $off: bool,
            #[arg(long, hide = true, overrides_with = stringify!($off))]
            $on: bool,
        )*}

        impl SwitchArgs {$(
            /// On or off, if it was said.
            pub fn $on(&self) -> Option<bool> {
                (self.$on || self.$off).then_some(self.$on)
            }
        )*}
    };
}

switches! {
    combine no_combine "Do not infer version order from read-modify-writes."
    coalesce no_coalesce "Make a constraint for each reader, not for each pair of runs of versions."
    merge no_merge "Make a constraint for each key, not for each pair of transactions."
    prune no_prune "Do not settle any constraint by reachability."
    linear no_linear "Compute reachability even where every key is ordered already."
    estimate no_estimate "Do not estimate positions."
    witness no_witness "Do not try the estimated order before asking the solver."
    minimise no_minimise "Learn from any short cycle, not from one with the fewest decided edges (cadical/propagator)."
    anneal no_anneal "Do not anneal where repairing the first order is hard (cadical/propagator)."
}

/// How far a check may go.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// Answer `unknown` after this many seconds, reading included; fractions are fine.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Answer `unknown` rather than allocate a structure over this size (such as 500M or 4G); what is free unless given.
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub memory_limit: Option<u64>,
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

/// `kingsnake check`.
#[derive(Clone, Debug, Args)]
pub struct CheckArgs {
    /// The history: a file, or a directory of logs.
    pub history: PathBuf,
    /// What is checked.
    #[command(flatten)]
    pub level: LevelArgs,
    /// How the history is read.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Keep only this share of the given versions, from 0 to 1, chosen by the seed; kept neighbours are linked.
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with = "no_version_order", help_heading = "Reading")]
    pub version_order_share: Option<f64>,
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

/// `kingsnake verify`.
#[derive(Clone, Debug, Args)]
pub struct VerifyArgs {
    /// The history: a file, or a directory of logs.
    pub history: PathBuf,
    /// What `kingsnake check --certificate` wrote.
    pub certificate: PathBuf,
    /// Another level than the one that the certificate claims.
    #[command(flatten)]
    pub level: LevelArgs,
    /// How the history is read.
    #[command(flatten)]
    pub read: ReadArgs,
}

/// `kingsnake verify-proof`.
#[derive(Clone, Debug, Args)]
pub struct VerifyProofArgs {
    /// What `kingsnake check --proof` wrote.
    pub proof: PathBuf,
    /// The instance; PROOF.cnf unless given.
    #[arg(long, value_name = "FILE")]
    pub cnf: Option<PathBuf>,
    /// A history: the instance must be about it, at this level and with these techniques.
    #[arg(long, value_name = "HISTORY")]
    pub history: Option<PathBuf>,
    /// What is checked.
    #[command(flatten)]
    pub level: LevelArgs,
    /// How the history is read.
    #[command(flatten)]
    pub read: ReadArgs,
    /// How far to go.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// How it was checked.
    #[command(flatten)]
    pub techniques: TechniqueArgs,
}

/// `kingsnake stats`.
#[derive(Clone, Debug, Args)]
pub struct StatsArgs {
    /// The history: a file, or a directory of logs.
    pub history: PathBuf,
    /// How the history is read.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Write one JSON document, to stdout in place of the words unless a file is given.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}

/// `kingsnake convert`.
#[derive(Clone, Debug, Args)]
pub struct ConvertArgs {
    /// The history: a file, or a directory of logs.
    pub from: PathBuf,
    /// Where to write it.
    pub to: PathBuf,
    /// The format to write.
    #[arg(long = "to", value_name = "FORMAT", default_value = "kingsnake", value_parser = formats(&Format::WRITTEN))]
    pub format_to: Format,
    /// How the history is read.
    #[command(flatten)]
    pub read: ReadArgs,
}

/// What the percentages of a mix apply to, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GranularityArg {
    /// Each operation is drawn on its own.
    Operation,
    /// All operations of a transaction are of one sort.
    Transaction,
}

/// `kingsnake generate`.
#[derive(Clone, Debug, Args)]
#[command(after_help = workloads())]
#[allow(clippy::struct_excessive_bools)] // Each is a switch of its own on the command line.
pub struct GenerateArgs {
    /// What the clients do; the list is below.
    #[arg(value_parser = PossibleValuesParser::new(kingsnake_datasets::workloads::names()), hide_possible_values = true)]
    pub workload: String,
    /// Where to write the history.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// The format to write.
    #[arg(long, default_value = "kingsnake", value_parser = formats(&Format::WRITTEN))]
    pub format: Format,
    /// Write the true order of every key's versions to a file of its own, for `check --version-order`.
    #[arg(long, value_name = "FILE")]
    pub version_order: Option<PathBuf>,
    /// Write the true order of every key's versions into the history.
    #[arg(long)]
    pub inline_version_order: bool,
    /// Leave out begin and commit times; formats that have none leave them out anyway.
    #[arg(long)]
    pub no_times: bool,
    /// Record aborted transactions too.
    #[arg(long)]
    pub aborted: bool,
    /// Transactions that commit; a fault adds its own.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub txns: u32,
    /// Clients, each of which is a session.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub clients: u32,
    /// Keys; 10,000 unless the list below says otherwise.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub keys: Option<u32>,
    /// Operations a transaction, on different keys; 8 unless the workload has its own. A read-modify-write is one operation.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub ops: Option<u32>,
    /// How often each key is chosen: `uniform`, `zipf[:EXPONENT]`, `hotspot[:KEYS:ACCESSES]`, `exponential[:RATE]`.
    #[arg(long, default_value_t)]
    pub distribution: Distribution,
    /// What the percentages of the workload apply to; the workload's own unless given.
    #[arg(long)]
    pub granularity: Option<GranularityArg>,
    /// What the store promises its clients.
    #[arg(long, default_value = "serializable", value_parser = isolations())]
    pub isolation: Isolation,
    /// Break the promise once, at a random place.
    #[arg(long, value_parser = faults())]
    pub fault: Option<Fault>,
    /// Which part of the attempts to commit roll back by themselves, from 0 to 0.99.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub rollbacks: f64,
    /// Run every client on a thread of its own; then the seed does not repeat the history.
    #[arg(long)]
    pub threads: bool,
    /// The seed: the same one gives the same history, byte for byte.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

/// The table of workloads, as help.
fn workloads() -> String {
    let mut text = "Workloads:\n".to_owned();
    for entry in kingsnake_datasets::workloads::WORKLOADS {
        let _ = write!(text, "  {:<16} {}", entry.name, entry.about);
        if entry.n_keys > 0 {
            let _ = write!(text, " ({} keys)", entry.n_keys);
        }
        text.push('\n');
    }
    text.push_str(
        "\nThe King Cobra paper leaves keys and transaction length open; the defaults are those of Cobra's BlindW.\n",
    );
    text
}

fn isolations() -> impl TypedValueParser<Value = Isolation> {
    PossibleValuesParser::new(Isolation::ALL.map(Isolation::name))
        .try_map(|name| name.parse::<Isolation>())
}

fn faults() -> impl TypedValueParser<Value = Fault> {
    PossibleValuesParser::new(Fault::names()).try_map(|name| name.parse::<Fault>())
}

fn levels() -> impl TypedValueParser<Value = LevelArg> {
    let names = Level::ALL.into_iter().map(Level::name).chain(["auto"]);
    PossibleValuesParser::new(names).try_map(|name| match name.as_str() {
        "auto" => Ok(LevelArg::Auto),
        name => name.parse::<Level>().map(LevelArg::One),
    })
}

fn formats(of: &[Format]) -> impl TypedValueParser<Value = Format> + use<> {
    let names: Vec<&'static str> = of.iter().map(|format| format.name()).collect();
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Format>())
}

/// Knows the back ends' names, and those that two of them make.
#[derive(Clone)]
struct BackendParser;

impl TypedValueParser for BackendParser {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        let known = |name: String| {
            kingsnake_encodings::backend(&name, &kingsnake_encodings::Options::default())
                .map(|_| name)
        };
        let parser = clap::builder::StringValueParser::new().try_map(known);
        parser.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let names = kingsnake_encodings::BACKENDS.iter();
        Some(Box::new(names.map(PossibleValue::new)))
    }
}

fn seconds(typed: &str) -> Result<Duration, String> {
    let number: f64 = typed
        .parse()
        .map_err(|_| "not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(number).map_err(|error| error.to_string())
}

/// Milliseconds, as nanoseconds.
fn milliseconds(typed: &str) -> Result<u64, String> {
    match typed.parse::<f64>() {
        Ok(number) if (0.0..=9e12).contains(&number) => Ok((number * 1e6).round() as u64),
        _ => Err("not a number of milliseconds".to_owned()),
    }
}

fn share(typed: &str) -> Result<f64, String> {
    match typed.parse() {
        Ok(number) if (0.0..=1.0).contains(&number) => Ok(number),
        _ => Err("not a number from 0 to 1".to_owned()),
    }
}

/// A size such as `4G`: the letters are powers of 1,024, and `iB` or `B` may follow.
fn bytes(typed: &str) -> Result<u64, String> {
    let wrong = || "not a size such as 500M or 4G".to_owned();
    let plain = typed.trim_end_matches(['B', 'b']).trim_end_matches('i');
    let (digits, shift) = match plain.char_indices().last().ok_or_else(wrong)? {
        (at, 'k' | 'K') => (&plain[..at], 10),
        (at, 'm' | 'M') => (&plain[..at], 20),
        (at, 'g' | 'G') => (&plain[..at], 30),
        (at, 't' | 'T') => (&plain[..at], 40),
        _ => (plain, 0),
    };
    let number: f64 = digits.trim().parse().map_err(|_| wrong())?;
    let size = number * 2_f64.powi(shift);
    if size.is_finite() && size >= 0.0 {
        Ok(size as u64)
    } else {
        Err(wrong())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Typed::command().debug_assert();
    }

    #[test]
    fn sizes_have_letters() {
        assert_eq!(bytes("17"), Ok(17));
        assert_eq!(bytes("4G"), Ok(4 << 30));
        assert_eq!(bytes("1.5KiB"), Ok(1536));
        assert_eq!(bytes("2TB"), Ok(2 << 40));
        assert!(bytes("").is_err());
        assert!(bytes("G").is_err());
        assert!(bytes("-1").is_err());
        assert!(bytes("manyM").is_err());
    }

    #[test]
    fn times_may_be_fractions_but_not_negative() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        assert_eq!(seconds("0"), Ok(Duration::ZERO));
        assert!(seconds("-1").is_err());
        assert!(seconds("NaN").is_err());
        assert!(seconds("soon").is_err());
        assert_eq!(milliseconds("2.5"), Ok(2_500_000));
        assert!(milliseconds("-1").is_err());
        assert!(milliseconds("1e300").is_err());
    }
}
