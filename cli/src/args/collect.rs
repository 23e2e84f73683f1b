//! Options of `kingsnake collect`.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use kingsnake_collect::{ADAPTERS, LOADS, OrderBy, ReadsAt, ServerFault};

use super::cells::CellArgs;
use super::values::{bytes, seconds};
use super::watch::WatchLevelArg;

/// `kingsnake collect`.
#[derive(Clone, Debug, Args)]
#[command(after_help = tables())]
pub struct CollectArgs {
    /// The database; see the list below.
    #[arg(value_name = "DATABASE", required_unless_present_any = ["merge", "list_scripts"])]
    pub database: Option<String>,
    /// Merge the journals that a killed collector left in this directory.
    #[arg(long, value_name = "DIR", exclusive = true)]
    pub merge: Option<PathBuf>,
    /// The address of the server; separate the nodes of a cluster by commas. For an embedded database a file. env:NAME takes the
    /// address from an environment variable, and @FILE from a file's first line, so that no password is in the command.
    #[arg(
        long,
        value_name = "URL,…",
        value_delimiter = ',',
        conflicts_with = "start"
    )]
    pub url: Vec<String>,
    /// Start a private server from the installed packages, and remove it afterwards.
    #[arg(long)]
    pub start: bool,
    /// Number of nodes of a private cluster.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "start", value_parser = clap::value_parser!(u8).range(1..=7))]
    pub nodes: u8,
    /// Run this program as the private server, in place of the installed one; what else it needs lies beside it.
    #[arg(long, value_name = "PATH", requires = "start")]
    pub binary: Option<PathBuf>,
    /// Role of the nodes that run transactions that only read, in a cluster of a primary and standbys; every other client only
    /// reads [default: any].
    #[arg(long, value_name = "ROLE", value_parser = roles())]
    pub reads: Option<ReadsAt>,
    /// The isolation level to request [default: the database's first in the list below].
    #[arg(long, value_name = "LEVEL")]
    pub isolation: Option<String>,
    /// The workload: a name from the list below, or a file.
    #[arg(long, default_value = "mini", value_name = "WORKLOAD|FILE")]
    pub workload: String,
    /// Run a script in place of a workload: the steps of some sessions in a given order. A name of --list-scripts, or a file.
    #[arg(long, value_name = "NAME|FILE", conflicts_with_all = ["workload", "keys", "ops", "sessions", "txns", "think", "retries", "watch"])]
    pub script: Option<String>,
    /// List the scripts that come with the program: the anomaly of each, and the weakest level that forbids it.
    #[arg(long, exclusive = true)]
    pub list_scripts: bool,
    /// Run a user's own statements in place of a workload: a file of SQL, whose comments say what belongs together.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["workload", "script", "keys", "ops", "watch"])]
    pub sql: Option<String>,
    /// Treat a step of a script as blocked when it takes longer than this many seconds.
    #[arg(long, value_name = "SECONDS", default_value = "0.2", value_parser = seconds)]
    pub moment: Duration,
    /// Number of clients, each with its own connection.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub sessions: u16,
    /// Number of transactions to run, including those that abort.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub txns: u64,
    /// Stop after this many seconds even if transactions remain.
    #[arg(long, value_parser = seconds)]
    pub seconds: Option<Duration>,
    /// Number of keys [default: by the workload].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub keys: Option<u32>,
    /// Operations per transaction, for workloads that do not fix it.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub ops: Option<u32>,
    /// Pause of a client between two operations, in seconds, so that transactions overlap more.
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = seconds)]
    pub think: Duration,
    /// Retry an aborted transaction up to this many times, each time as a new transaction.
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub retries: u32,
    /// The seed of the workload; the interleaving depends on the machine.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Where the version order of a key comes from [default: the database's first in the list below].
    #[arg(long, value_name = "HOW", value_parser = orders())]
    pub version_order: Option<OrderBy>,
    /// Override a setting of the adapter; see the list below.
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    /// Faults to inject: kill, backend, pause, clock, disk-full, failover (servers that --start made), cut, delay, half-close
    /// (connections).
    #[arg(long, value_name = "FAULT,…", value_delimiter = ',', value_parser = faults())]
    pub fault: Vec<ServerFault>,
    /// Seconds between two faults.
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub every: Duration,
    /// Output directory for the journals and the history.
    #[arg(long, value_name = "DIR", required_unless_present_any = ["merge", "self_test", "list_scripts"])]
    pub out: Option<PathBuf>,
    /// Check the history at this level, or `auto` for all; `promise` is what the database promises at its level.
    #[arg(long, value_name = "LEVEL")]
    pub check: Option<String>,
    /// Check while the clients run, at this level, and stop them at the first violation. The database then stays as it is.
    #[arg(long, value_name = "LEVEL")]
    pub watch: Option<WatchLevelArg>,
    /// With --watch ser or si: each client reads and writes one extra key after this many transactions.
    #[arg(long, value_name = "N", default_value_t = 5, requires = "watch", value_parser = clap::value_parser!(u64).range(1..))]
    pub fence_every: u64,
    /// With --watch: assume that a transaction with unknown outcome ended within this many seconds of its begin.
    #[arg(long, value_name = "SECONDS", requires = "watch", value_parser = seconds)]
    pub unknown_limit: Option<Duration>,
    /// After a violation found by --watch: seconds that a private server stays up [default: until Ctrl-C].
    #[arg(long, value_name = "SECONDS", requires = "watch", value_parser = seconds)]
    pub stay: Option<Duration>,
    /// Test the adapter instead of collecting: every operation with one session, then with deliberate mistakes.
    #[arg(long, conflicts_with_all = ["check", "out", "watch"])]
    pub self_test: bool,
}

/// `kingsnake hunt`.
#[derive(Clone, Debug, Args)]
pub struct HuntArgs {
    /// A file of databases, levels, workloads and faults; docs/collect.md describes it.
    pub file: PathBuf,
    /// Output directory for rows, histories and the page. An interrupted hunt resumes.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Memory limit of each check's process (such as 500M or 4G) [default: free memory].
    #[arg(long = "memory-limit", alias = "memory", value_name = "SIZE", value_parser = bytes)]
    pub memory: Option<u64>,
    /// Aim at this level: rounds vary workload, keys, length, think time and faults towards what came close to a violation. The
    /// number of rounds for each database and level is that of the file's seeds.
    #[arg(long, value_name = "LEVEL")]
    pub aim: Option<String>,
    /// With --aim: draw each round alone, for comparison.
    #[arg(long, requires = "aim")]
    pub blind: bool,
    /// Shrink the history of each finding, as `kingsnake shrink` does, for as long as a check may take.
    #[arg(long)]
    pub shrink: bool,
    /// With --list: print JSON, one cell per line: id, cell, argv, history, row, done.
    #[arg(long, requires = "list")]
    pub json: bool,
    /// Where to run the cells.
    #[command(flatten)]
    pub cells: CellArgs,
}

fn orders() -> impl TypedValueParser<Value = OrderBy> {
    PossibleValuesParser::new(OrderBy::ALL.map(OrderBy::name)).map(|name| {
        let found = OrderBy::ALL.into_iter().find(|it| it.name() == name);
        found.unwrap_or_default()
    })
}

fn roles() -> impl TypedValueParser<Value = ReadsAt> {
    PossibleValuesParser::new(ReadsAt::ALL.map(ReadsAt::name)).map(|name| {
        let found = ReadsAt::ALL.into_iter().find(|it| it.name() == name);
        found.unwrap_or(ReadsAt::Any)
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
        if !adapter.is_compiled_in() {
            let _ = writeln!(
                text,
                "  {:<10}   not compiled in; {}",
                "",
                adapter.how_to_build()
            );
        }
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
