//! `kingsnake stats`: what a history holds, and the graph of a level before pruning.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};
use kingsnake_relate::relate::Polygraph;
use kingsnake_solver::budget::Budget;
use kingsnake_solver::check::{CheckError, Techniques};
use kingsnake_solver::level::Spec;
use kingsnake_solver::model::{History, Op, RangeId, Status};
use kingsnake_solver::phases::{Check, Exit, Refuted, Stop, relate, resolve};
use kingsnake_solver::progress::Silent;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::answer::base_name;
use crate::args::StatsArgs;
use crate::input::{files, load};
use crate::limits::Stopped;
use crate::output::{Output, expect_apart, put};
use crate::plan::{isolation_map, searched_level, spec};
use crate::voice::{Voice, count, grouped, printable_lines, say};

/// Counts, and prints the counts.
pub fn run(args: &StatsArgs, voice: Voice, budget: &Budget) -> Result<u8> {
    let document = args.json.as_deref().map(|path| Output {
        option: "--json",
        path,
    });
    expect_apart(&files(&args.history, &args.read), document.as_slice())?;
    let level = searched_level(&args.level)?;
    let spec = spec(level, &args.level)?;
    let mut parsed = load(&args.history, &args.read, budget)?;
    if let Some(map) = isolation_map(level, &args.level)? {
        map.apply(&mut parsed.history)?;
    }
    voice.warn_each(&parsed.warnings);
    let graph = graph(&parsed.history, spec, budget)?;
    let stats = StatsDocument::of(&parsed.history, parsed.format.name(), parsed.bytes, graph);
    if args.json.as_deref() != Some(Path::new("-")) {
        let words = words(&stats, &base_name(&args.history));
        say(&printable_lines(&words)).context("cannot write to stdout")?;
    }
    if let Some(path) = &args.json {
        let mut text = serde_json::to_string_pretty(&stats)?;
        text.push('\n');
        put(path, &text)?;
    }
    Ok(0)
}

/// The document of `stats --json`; docs/json.md describes it.
#[derive(Debug, Serialize)]
struct StatsDocument {
    schema: u32,
    format: &'static str,
    bytes: u64,
    transactions: usize,
    committed: usize,
    aborted: usize,
    unknown: usize,
    sessions: usize,
    empty_sessions: usize,
    operations: usize,
    reads: usize,
    writes: usize,
    appends: usize,
    list_reads: usize,
    inserts: usize,
    deletes: usize,
    range_queries: usize,
    /// Rows that range queries returned, deleted ones included.
    range_rows: usize,
    keys: usize,
    writes_per_key: Spread,
    /// Of a transaction's writes of a key, the first one that follows a read of the key.
    read_modify_write_share: f64,
    /// Values that several transactions wrote to one key.
    repeated_values: usize,
    has_times: bool,
    version_orders: usize,
    /// Unordered pairs of runs before pruning; null if the reads cannot be explained.
    pairs: Option<u64>,
    /// The graph of the level; null where the reads cannot be explained.
    graph: Option<GraphCounts>,
    /// Why there is none.
    unresolved: Option<String>,
}

#[derive(Debug, Serialize)]
struct Spread {
    min: usize,
    median: usize,
    max: usize,
    histogram: Vec<Bucket>,
}

/// Keys with at least `from` and at most `to` writes.
#[derive(Debug, Serialize)]
struct Bucket {
    from: usize,
    to: usize,
    keys: usize,
}

impl StatsDocument {
    fn of(
        history: &History,
        format: &'static str,
        bytes: u64,
        graph: Result<GraphCounts, String>,
    ) -> Self {
        let with = |status| {
            history
                .txns()
                .filter(|&txn| history.status(txn) == status)
                .count()
        };
        let ops = |is: fn(&Op) -> bool| -> usize {
            history
                .txns()
                .map(|txn| history.ops(txn).iter().filter(|op| is(op)).count())
                .sum()
        };
        let is_delete =
            |op: &Op| matches!(*op, Op::Write { value, .. } if history.is_absence(value));
        let count_of = |txn| {
            let ops = history.ops(txn).iter().enumerate();
            let kinds = ops.map(|(at, op)| (history.is_insert(txn, at), is_delete(op)));
            kinds.fold((0, 0), |(inserts, deletes), (is_insert, is_delete)| {
                (
                    inserts + usize::from(is_insert),
                    deletes + usize::from(is_delete),
                )
            })
        };
        let (inserts, deletes) = history
            .txns()
            .map(count_of)
            .fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
        let ranges = (0..history.n_ranges() as u32).map(|range| history.range(RangeId(range)));
        let installs = Installs::of(history);
        let sessions = (0..history.n_sessions() as u32).map(kingsnake_solver::model::SessionId);
        StatsDocument {
            schema: 1,
            format,
            bytes,
            transactions: history.n_txns(),
            committed: with(Status::Committed),
            aborted: with(Status::Aborted),
            unknown: with(Status::Unknown),
            sessions: history.n_sessions(),
            empty_sessions: sessions
                .filter(|&session| history.session_txns(session).is_empty())
                .count(),
            operations: history.n_ops(),
            reads: ops(|op| matches!(op, Op::Read { .. })),
            writes: ops(|op| matches!(op, Op::Write { .. })) - inserts - deletes,
            appends: ops(|op| matches!(op, Op::Append { .. })),
            list_reads: ops(|op| matches!(op, Op::ReadList { .. })),
            inserts,
            deletes,
            range_queries: history.n_ranges(),
            range_rows: ranges.map(|query| query.rows.len()).sum(),
            keys: history.n_keys(),
            read_modify_write_share: installs.n_after_read as f64 / (installs.n as f64).max(1.0),
            repeated_values: installs.n_repeated,
            writes_per_key: spread(installs.per_key),
            has_times: history.has_times(),
            version_orders: history.version_orders().len(),
            unresolved: graph.as_ref().err().cloned(),
            pairs: graph.as_ref().ok().map(|it| it.pairs),
            graph: graph.ok(),
        }
    }
}

/// The versions installed by transactions that did not abort: one per transaction and key.
struct Installs {
    per_key: Vec<usize>,
    n: usize,
    n_after_read: usize,
    n_repeated: usize,
}

impl Installs {
    fn of(history: &History) -> Self {
        let mut per_key = vec![0; history.n_keys()];
        let mut writers = vec![0_u32; history.n_values()];
        let (mut n, mut n_after_read) = (0, 0);
        // For each key that the current transaction touched: whether it read first, and whether it has written.
        let mut touched: FxHashMap<_, (bool, bool)> = FxHashMap::default();
        for txn in history
            .txns()
            .filter(|&txn| history.status(txn) != Status::Aborted)
        {
            touched.clear();
            for &op in history.ops(txn) {
                let Some(key) = op.key() else {
                    if let Op::Range { range } = op {
                        for &row in history.range(range).rows {
                            touched
                                .entry(history.value_key(row))
                                .or_insert((true, false));
                        }
                    }
                    continue;
                };
                let (reads_first, has_written) =
                    touched.entry(key).or_insert((!op.is_write(), false));
                if let Op::Write { value, .. } | Op::Append { value, .. } = op {
                    writers[value.index()] += 1;
                    if !*has_written {
                        *has_written = true;
                        n += 1;
                        n_after_read += usize::from(*reads_first);
                        per_key[key.index()] += 1;
                    }
                }
            }
        }
        Installs {
            per_key,
            n,
            n_after_read,
            n_repeated: writers.iter().filter(|&&n| n > 1).count(),
        }
    }
}

fn spread(mut per_key: Vec<usize>) -> Spread {
    per_key.sort_unstable();
    let (Some(&min), Some(&max)) = (per_key.first(), per_key.last()) else {
        return Spread {
            min: 0,
            median: 0,
            max: 0,
            histogram: Vec::new(),
        };
    };
    let median = per_key[(per_key.len() - 1) / 2];
    let mut histogram = Vec::new();
    let (mut from, mut to) = (0, 0);
    while from <= max {
        let keys = per_key.partition_point(|&n| n <= to) - per_key.partition_point(|&n| n < from);
        if keys > 0 || !histogram.is_empty() {
            histogram.push(Bucket { from, to, keys });
        }
        (from, to) = (to + 1, 2 * to + 1);
    }
    Spread {
        min,
        median,
        max,
        histogram,
    }
}

/// The question of a level before pruning (a BC-polygraph, where the level has begins).
#[derive(Debug, Serialize)]
struct GraphCounts {
    level: String,
    nodes: usize,
    edges: BTreeMap<&'static str, usize>,
    /// Unordered pairs of runs.
    pairs: u64,
    choices: usize,
    guarded_edges: usize,
    clauses: usize,
}

impl GraphCounts {
    fn of(polygraph: &Polygraph) -> Self {
        let logic = &polygraph.problem().logic;
        GraphCounts {
            level: polygraph.spec().to_string(),
            nodes: polygraph.n_nodes(),
            edges: polygraph.edge_kinds(),
            pairs: polygraph.runs().n_pairs(),
            choices: logic.n_choices(),
            guarded_edges: logic.guarded().len(),
            clauses: logic.clauses().len(),
        }
    }
}

/// What the question of a level has before pruning, or why there is none.
fn graph(history: &History, spec: Spec, budget: &Budget) -> Result<Result<GraphCounts, String>> {
    if spec.real_time.is_some() && !history.has_times() {
        return Err(CheckError::NoTimes.into());
    }
    let check = Check {
        history,
        spec,
        techniques: &Techniques::default(),
    };
    let mut silent = Silent;
    let context = &mut kingsnake_solver::Context::new(budget, &mut silent);
    let related = resolve(&check, context).and_then(|it| relate(&check, it, context));
    match related {
        Ok(polygraph) => Ok(Ok(GraphCounts::of(&polygraph))),
        Err(Exit::Refuted(refuted)) => Ok(Err(match *refuted {
            Refuted::Findings(found) => {
                format!("{} without any cycle", count_anomalies(found.len()))
            }
            _ => "no order".to_owned(),
        })),
        Err(Exit::Stop(Stop::Budget(reason))) => Err(Stopped(reason).into()),
        Err(Exit::Stop(Stop::Error(error))) => Ok(Err(error.to_string())),
    }
}

fn count_anomalies(n: usize) -> String {
    if n == 1 {
        "one anomaly".to_owned()
    } else {
        format!("{} anomalies", grouped(n as u64))
    }
}

fn words(stats: &StatsDocument, name: &str) -> String {
    let mut out = format!("{name} ({} format)\n", stats.format);
    let mut row = |what: &str, value: String| {
        let _ = writeln!(out, "  {what:<18} {value}");
    };
    row(
        "transactions",
        format!(
            "{} ({} committed, {} aborted, {} unknown)",
            grouped(stats.transactions as u64),
            grouped(stats.committed as u64),
            grouped(stats.aborted as u64),
            grouped(stats.unknown as u64)
        ),
    );
    let empty = match stats.empty_sessions {
        0 => String::new(),
        n => format!(" ({} empty)", grouped(n as u64)),
    };
    row(
        "sessions",
        format!("{}{empty}", grouped(stats.sessions as u64)),
    );
    let kinds = [
        (stats.reads, "read"),
        (stats.writes, "write"),
        (stats.appends, "append"),
        (stats.list_reads, "list read"),
        (stats.inserts, "insert"),
        (stats.deletes, "delete"),
        (stats.range_queries, "range"),
    ];
    let kinds: Vec<String> = kinds
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|&(n, kind)| count(n, kind))
        .collect();
    row(
        "operations",
        format!(
            "{} ({})",
            grouped(stats.operations as u64),
            kinds.join(", ")
        ),
    );
    row("keys", grouped(stats.keys as u64));
    let per_key = &stats.writes_per_key;
    row(
        "writes per key",
        format!(
            "{} at least, {} in the median, {} at most",
            grouped(per_key.min as u64),
            grouped(per_key.median as u64),
            grouped(per_key.max as u64)
        ),
    );
    let most = per_key
        .histogram
        .iter()
        .map(|bucket| bucket.keys)
        .max()
        .unwrap_or(1)
        .max(1);
    for bucket in &per_key.histogram {
        let range = if bucket.from == bucket.to {
            bucket.from.to_string()
        } else {
            format!(
                "{}–{}",
                grouped(bucket.from as u64),
                grouped(bucket.to as u64)
            )
        };
        let bar = "▇".repeat((bucket.keys * 30).div_ceil(most));
        row(
            "",
            format!("{range:>15} {bar} {}", grouped(bucket.keys as u64)),
        );
    }
    row(
        "read-modify-write",
        format!(
            "{:.1} % of the writes",
            stats.read_modify_write_share * 100.0
        ),
    );
    row("repeated values", grouped(stats.repeated_values as u64));
    row(
        "times",
        if stats.has_times { "yes" } else { "no" }.to_owned(),
    );
    row("version orders", grouped(stats.version_orders as u64));
    let Some(graph) = &stats.graph else {
        let why = stats.unresolved.as_deref().unwrap_or_default();
        row("graph", format!("none: {why}"));
        return out;
    };
    row("graph", format!("{}, before pruning", graph.level));
    row("  nodes", grouped(graph.nodes as u64));
    let edges = graph.edges.iter();
    let edges: Vec<String> = edges
        .map(|(kind, &n)| format!("{} {kind}", grouped(n as u64)))
        .collect();
    row("  edges", edges.join(", "));
    row("  constraints", format!("{} pairs", grouped(graph.pairs)));
    if graph.choices + graph.guarded_edges + graph.clauses > 0 {
        row(
            "  logic",
            format!(
                "{}, {}, {}",
                count(graph.choices, "choice"),
                count(graph.guarded_edges, "guarded edge"),
                count(graph.clauses, "clause")
            ),
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_per_key_fall_into_powers_of_two() {
        let spread = spread(vec![0, 1, 1, 2, 3, 7, 8]);
        assert_eq!((spread.min, spread.median, spread.max), (0, 2, 8));
        let buckets: Vec<_> = spread
            .histogram
            .iter()
            .map(|it| (it.from, it.to, it.keys))
            .collect();
        assert_eq!(
            buckets,
            [(0, 0, 1), (1, 1, 2), (2, 3, 2), (4, 7, 1), (8, 15, 1)]
        );
    }
}
