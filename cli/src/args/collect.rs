//! What was typed for `kingsnake collect`.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use kingsnake_collect::{ADAPTERS, LOADS, OrderBy, ServerFault};

use super::cells::CellArgs;
use super::values::{bytes, seconds};

/// `kingsnake collect`.
#[derive(Clone, Debug, Args)]
#[command(after_help = tables())]
pub struct CollectArgs {
    /// The database; the list is below.
    #[arg(value_name = "DATABASE", required_unless_present = "merge")]
    pub database: Option<String>,
    /// Merge the journals that a collector left in this directory when it was killed.
    #[arg(long, value_name = "DIR", exclusive = true)]
    pub merge: Option<PathBuf>,
    /// Where the server is; several nodes of a cluster with commas between. For an embedded database a file. env:NAME is the
    /// address in a variable of the environment, and @FILE the one in a file's first line, so that no password is in the command.
    #[arg(
        long,
        value_name = "URL,…",
        value_delimiter = ',',
        conflicts_with = "start"
    )]
    pub url: Vec<String>,
    /// Run a private server of the installed packages, and remove it afterwards.
    #[arg(long)]
    pub start: bool,
    /// Run this many nodes of a private cluster.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "start", value_parser = clap::value_parser!(u8).range(1..=7))]
    pub nodes: u8,
    /// The isolation level to ask for; the database's first in the list below unless given.
    #[arg(long, value_name = "LEVEL")]
    pub isolation: Option<String>,
    /// What the clients do: one of the list below, or a file.
    #[arg(long, default_value = "mini", value_name = "WORKLOAD|FILE")]
    pub workload: String,
    /// Clients, each with a connection of its own.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub sessions: u16,
    /// Transactions to run, those that abort included.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub txns: u64,
    /// Stop after this many seconds even if transactions are left.
    #[arg(long, value_parser = seconds)]
    pub seconds: Option<Duration>,
    /// Keys; the workload's own number unless given.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub keys: Option<u32>,
    /// Operations a transaction, for workloads that leave the choice.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub ops: Option<u32>,
    /// Let clients rest this many seconds between two operations, so that transactions overlap more.
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = seconds)]
    pub think: Duration,
    /// Try an aborted transaction again this often, each time as a new transaction.
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub retries: u32,
    /// The seed of what the clients do; how they interleave is up to the machine.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// How the versions of a key are put in order; the database's first in the list below unless given.
    #[arg(long, value_name = "HOW", value_parser = orders())]
    pub version_order: Option<OrderBy>,
    /// A setting of the database in place of the adapter's own; the list is below.
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    /// What goes wrong meanwhile: kill, backend, pause (of servers that --start made), cut, delay, half-close (of connections).
    #[arg(long, value_name = "FAULT,…", value_delimiter = ',', value_parser = faults())]
    pub fault: Vec<ServerFault>,
    /// Seconds between two faults.
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub every: Duration,
    /// Where journals and the history go.
    #[arg(long, value_name = "DIR", required_unless_present_any = ["merge", "self_test"])]
    pub out: Option<PathBuf>,
    /// Check the history at this level, or at `auto` all; `promise` is what the database promises at its level.
    #[arg(long, value_name = "LEVEL")]
    pub check: Option<String>,
    /// Test the adapter in place of collecting: every operation with one session, then with deliberate mistakes.
    #[arg(long, conflicts_with_all = ["check", "out"])]
    pub self_test: bool,
}

/// `kingsnake hunt`.
#[derive(Clone, Debug, Args)]
pub struct HuntArgs {
    /// Which databases, levels, workloads and faults; docs/collect.md describes the file.
    pub file: PathBuf,
    /// Where rows, histories and the page go; a hunt that stopped there goes on.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// How large the process of a check may become (such as 500M or 4G); what is free unless given.
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub memory: Option<u64>,
    /// With --list: as JSON, a cell a line: id, cell, argv, history, row, done.
    #[arg(long, requires = "list")]
    pub json: bool,
    /// Where the cells run.
    #[command(flatten)]
    pub cells: CellArgs,
}

fn orders() -> impl TypedValueParser<Value = OrderBy> {
    PossibleValuesParser::new(OrderBy::ALL.map(OrderBy::name)).map(|name| {
        let found = OrderBy::ALL.into_iter().find(|it| it.name() == name);
        found.unwrap_or_default()
    })
}

fn faults() -> impl TypedValueParser<Value = ServerFault> {
    PossibleValuesParser::new(ServerFault::ALL.map(ServerFault::name)).map(|name| {
        let found = ServerFault::ALL.into_iter().find(|it| it.name() == name);
        found.unwrap_or(ServerFault::Cut)
    })
}

fn setting(typed: &str) -> Result<(String, String), String> {
    match typed.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("not of the form NAME=VALUE".to_owned()),
    }
}

/// The tables of databases and workloads, as help.
fn tables() -> String {
    let mut text = "Databases:\n".to_owned();
    for adapter in ADAPTERS {
        let names = |names: Vec<&str>| names.join(", ");
        let _ = writeln!(text, "  {:<10} {}", adapter.name, adapter.about);
        let levels = adapter.levels.iter().map(|level| level.name).collect();
        let _ = writeln!(text, "  {:<10}   isolation: {}", "", names(levels));
        let orders = adapter
            .version_orders
            .iter()
            .map(|order| order.name())
            .collect();
        let _ = writeln!(text, "  {:<10}   version order: {}", "", names(orders));
        for (name, value) in adapter.settings {
            let _ = writeln!(text, "  {:<10}   --set {name}={value}", "");
        }
    }
    text.push_str("\nWorkloads:\n");
    for load in LOADS {
        let _ = write!(text, "  {:<10} {}", load.name, load.about);
        if load.keys > 0 {
            let _ = write!(text, " ({} keys)", load.keys);
        }
        text.push('\n');
    }
    text
}
