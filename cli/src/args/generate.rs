//! What was typed for `kingsnake generate`.

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
    #[arg(value_parser = PossibleValuesParser::new(kingsnake_datasets::workloads::names().into_iter().chain(["lwt"])), hide_possible_values = true)]
    pub workload: String,
    /// Where to write the history.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Write what was generated, how many attempts aborted and how long it took as JSON to a file, or to stdout in place
    /// of words.
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "-"
    )]
    pub json: Option<PathBuf>,
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
    /// What each transaction asks for: in percent, such as `serializable=30,"read committed"=70`, or by its kind, such as
    /// `payment=serializable,*="read committed"` (TPC-C: new-order, payment, order-status, delivery, stock-level; Twitter: tweet,
    /// follow, profile, timeline). The names are those of SQL, and ser, si, pc, cc, ra, rc-so, rc. The store keeps each promise, and the
    /// history records it (check it with --level as-recorded).
    #[arg(
        long,
        value_name = "NAME=SHARE,…|KIND=NAME,…",
        conflicts_with = "isolation"
    )]
    pub isolation_mix: Option<IsolationMix>,
    /// Do not validate the conditions by which rows were chosen (workloads `…-predicates`), so that phantoms come through.
    #[arg(long)]
    pub no_predicate_locks: bool,
    /// Break the promise once, at a random place.
    #[arg(long, value_parser = faults())]
    pub fault: Option<Fault>,
    /// Put a mistake into the store, which strikes at a rate from 0 to 1 (0.01 unless given); may be repeated.
    #[arg(long, value_name = "NAME[:RATE]")]
    pub bug: Vec<BugRate>,
    /// Replace a key by a fresh one after this many writes of it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_writes_per_key: Option<u64>,
    /// Which shapes of mini-transactions `mini` draws: those that repeat no operation, MTC's, or all 20; `two-key` unless given.
    #[arg(long, value_parser = shapes())]
    pub shapes: Option<Shapes>,
    /// What `lwt` does besides compare-and-sets.
    #[command(flatten)]
    pub lwt: LwtArgs,
    /// Which part of the attempts to commit roll back by themselves, from 0 to 0.99.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub rollbacks: f64,
    /// Run every client on a thread of its own; then the seed does not repeat the history.
    #[arg(long)]
    pub threads: bool,
    /// The seed: the same one gives the same history, byte for byte.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// How far to go.
    #[command(flatten)]
    pub bounds: BoundArgs,
}

/// What `lwt` does besides compare-and-sets that succeed.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Compare-and-sets (lwt)")]
pub struct LwtArgs {
    /// Which part of the clients run at the same time.
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = share)]
    pub concurrency: f64,
    /// Which part of the operations are reads.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub read_share: f64,
    /// Which part of the compare-and-sets fail.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub fail_share: f64,
    /// Which part of the compare-and-sets have an unknown end.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub unknown_share: f64,
    /// Break linearizability once.
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
        let _ = write!(text, "  {:<16} {}", entry.name, entry.about);
        if entry.n_keys > 0 {
            let _ = write!(text, " ({} keys)", entry.n_keys);
        }
        text.push('\n');
    }
    let _ = writeln!(
        text,
        "  {:<16} concurrent compare-and-sets of registers, for --level linearizable",
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
