//! Options of `kingsnake generate`.

use std::fmt::Write;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use kingsnake_datasets::Format;
use kingsnake_datasets::store::{BugRate, Fault, Isolation, IsolationMix};
use kingsnake_datasets::workloads::{Distribution, LwtFault, Shapes};

use super::BoundArgs;
use super::values::{formats, share};

/// What the percentages of a mix apply to, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GranularityArg {
    /// Draw each operation independently.
    Operation,
    /// All operations of a transaction are of one kind.
    Transaction,
}

/// `kingsnake generate`.
#[derive(Clone, Debug, Args)]
#[command(after_help = workloads())]
#[allow(clippy::struct_excessive_bools)] // Each is a switch of its own on the command line.
pub struct GenerateArgs {
    /// The workload; see the list below.
    #[arg(value_parser = PossibleValuesParser::new(kingsnake_datasets::workloads::names().into_iter().chain(["lwt"])), hide_possible_values = true)]
    pub workload: String,
    /// Output file.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Write the counts of transactions and aborts and the time taken as JSON to a file, or to stdout instead
    /// of text.
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "-"
    )]
    pub json: Option<PathBuf>,
    /// Output format.
    #[arg(long, default_value = "kingsnake", value_parser = formats(&Format::WRITTEN))]
    pub format: Format,
    /// Write the true version order of every key to a separate file, for `check --version-order`.
    #[arg(long, value_name = "FILE")]
    pub version_order: Option<PathBuf>,
    /// Write the true version order of every key into the history.
    #[arg(long)]
    pub inline_version_order: bool,
    /// Omit begin and commit times.
    #[arg(long)]
    pub no_times: bool,
    /// Record aborted transactions too.
    #[arg(long)]
    pub aborted: bool,
    /// Number of committed transactions; an injected violation adds its own.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub txns: u32,
    /// Number of clients; each is a session.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub clients: u32,
    /// Number of keys [default: 10,000, unless the list below says otherwise].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub keys: Option<u32>,
    /// Operations per transaction, on different keys [default: 8, unless the workload has its own]. A read-modify-write is one operation.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub ops: Option<u32>,
    /// Distribution of keys: `uniform`, `zipf[:EXPONENT]`, `hotspot[:KEYS:ACCESSES]`, `exponential[:RATE]`.
    #[arg(long, default_value_t)]
    pub distribution: Distribution,
    /// What the percentages of the workload apply to [default: by the workload].
    #[arg(long)]
    pub granularity: Option<GranularityArg>,
    /// The isolation level of the store.
    #[arg(long, default_value = "serializable", value_parser = isolations())]
    pub isolation: Isolation,
    /// The isolation level of each transaction: in percent, such as `serializable=30,"read committed"=70`, or by its kind, such as
    /// `payment=serializable,*="read committed"` (TPC-C: new-order, payment, order-status, delivery, stock-level; Twitter: tweet,
    /// follow, profile, timeline). The names are those of SQL, and ser, si, pc, cc, ra, rc-so, rc. The store provides each level, and the
    /// history records it (check it with --level as-recorded).
    #[arg(
        long,
        value_name = "NAME=SHARE,…|KIND=NAME,…",
        conflicts_with = "isolation"
    )]
    pub isolation_mix: Option<IsolationMix>,
    /// Do not validate the conditions by which rows were chosen (workloads `…-predicates`), so that phantoms occur.
    #[arg(long)]
    pub no_predicate_locks: bool,
    /// Inject one violation at a random place.
    #[arg(long, value_parser = faults())]
    pub fault: Option<Fault>,
    /// Inject a bug into the store, which occurs at a rate from 0 to 1 [default: 0.01]; may be repeated.
    #[arg(long, value_name = "NAME[:RATE]")]
    pub bug: Vec<BugRate>,
    /// Replace a key by a new one after this many writes of it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_writes_per_key: Option<u64>,
    /// Shapes of mini-transactions for `mini`: those that repeat no operation, MTC's, or all 20 [default: two-key].
    #[arg(long, value_parser = shapes())]
    pub shapes: Option<Shapes>,
    /// Share of commits that roll back at random, from 0 to 0.99.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub rollbacks: f64,
    /// Run every client on its own thread; the seed then does not reproduce the history.
    #[arg(long)]
    pub threads: bool,
    /// The seed: the same seed gives the same history, byte for byte.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Options of `lwt`.
    #[command(flatten)]
    pub lwt: LwtArgs,
    /// Limits.
    #[command(flatten)]
    pub bounds: BoundArgs,
}

/// Options of `lwt`, besides successful compare-and-sets.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Compare-and-sets (lwt)")]
pub struct LwtArgs {
    /// Share of the clients that run at the same time.
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = share)]
    pub concurrency: f64,
    /// Share of the operations that are reads.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub read_share: f64,
    /// Share of the compare-and-sets that fail.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub fail_share: f64,
    /// Share of the compare-and-sets with an unknown outcome.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub unknown_share: f64,
    /// Inject one violation of linearizability.
    #[arg(long, value_parser = lwt_faults())]
    pub lwt_fault: Option<LwtFault>,
}

fn lwt_faults() -> impl TypedValueParser<Value = LwtFault> {
    PossibleValuesParser::new(LwtFault::ALL.map(LwtFault::name))
        .try_map(|name| name.parse::<LwtFault>())
}

fn shapes() -> impl TypedValueParser<Value = Shapes> {
    PossibleValuesParser::new(Shapes::ALL.map(Shapes::name)).try_map(|name| name.parse::<Shapes>())
}

/// The table of workloads, as help.
fn workloads() -> String {
    let mut text = "Workloads:\n".to_owned();
    for entry in kingsnake_datasets::workloads::WORKLOADS {
        let _ = write!(text, "  {:<20} {}", entry.name, entry.about);
        if entry.n_keys > 0 {
            let _ = write!(text, " ({} keys)", entry.n_keys);
        }
        text.push('\n');
    }
    let _ = writeln!(
        text,
        "  {:<20} concurrent compare-and-sets of registers, for --level linearizable",
        "lwt"
    );
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
