//! Merges a collection's journals into one history: settles unknown ends, puts versions in order, and compares what was
//! acknowledged with what the database's log holds.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};

use crate::adapter::{Database, Key, Log, Resolution};
use crate::meta::Meta;
use crate::read::{Status, Txn, Write};
use crate::timeline::Timeline;

/// Something wrong that needs no isolation level to be wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A commit was acknowledged, and its write is not in the log: durability is broken.
    Lost {
        /// The transaction.
        txn: i64,
        /// The key.
        key: Key,
        /// The value.
        value: i64,
    },
    /// The log holds a version more than once.
    Twice {
        /// The key.
        key: Key,
        /// The value.
        value: i64,
    },
    /// The log holds a write of a transaction that was reported as aborted.
    Undead {
        /// The transaction.
        txn: i64,
        /// The key.
        key: Key,
        /// The value.
        value: i64,
    },
    /// Two versions of a key have the same rank, so neither replaced the other.
    SameRank {
        /// The key.
        key: Key,
        /// The rank.
        rank: i64,
    },
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Finding::Lost { txn, key, value } => write!(
                f,
                "durability: transaction {txn} was acknowledged, and its write of {value} to key {key} is not in the log"
            ),
            Finding::Twice { key, value } => {
                write!(
                    f,
                    "the log holds the write of {value} to key {key} more than once"
                )
            }
            Finding::Undead { txn, key, value } => write!(
                f,
                "transaction {txn} was reported as aborted, and its write of {value} to key {key} is in the log"
            ),
            Finding::SameRank { key, rank } => {
                write!(f, "two versions of key {key} have rank {rank}")
            }
        }
    }
}

/// What merging did.
#[derive(Clone, Debug, Default)]
pub struct Merged {
    /// Transactions of the history.
    pub n_txns: usize,
    /// Operations of the history.
    pub n_ops: usize,
    /// Unknown ends that the database told to have committed.
    pub settled_committed: usize,
    /// Unknown ends that the database told to have aborted.
    pub settled_aborted: usize,
    /// Unknown ends that stay unknown.
    pub unknown: usize,
    /// Keys whose versions are in order.
    pub n_ordered: usize,
    /// What is wrong whatever the level.
    pub findings: Vec<Finding>,
    /// How the collection went over time.
    pub timeline: Timeline,
}

/// The values that the log holds, each with how often.
type Held = FxHashMap<(Key, i64), u32>;

/// Settles unknown ends by the log, then by the database's own word.
pub(crate) fn settle(
    txns: &mut [Txn],
    log: Option<&Log>,
    database: Option<&dyn Database>,
    merged: &mut Merged,
) {
    let held = log.map(held);
    for txn in txns.iter_mut().filter(|txn| txn.status == Status::Unknown) {
        let by_log = match (&held, log) {
            (Some(held), Some(log)) if !txn.writes.is_empty() => {
                let is_held = |write: &Write| held.contains_key(&(write.key, write.value));
                if txn.writes.iter().any(is_held) {
                    Resolution::Committed
                } else if log.is_complete {
                    Resolution::Aborted
                } else {
                    Resolution::Unknown
                }
            }
            _ => Resolution::Unknown,
        };
        let resolution = match (by_log, database, &txn.name) {
            (Resolution::Unknown, Some(database), Some(name)) => database.resolve(name),
            _ => by_log,
        };
        match resolution {
            Resolution::Committed => {
                txn.status = Status::Committed;
                merged.settled_committed += 1;
            }
            Resolution::Aborted => {
                txn.status = Status::Aborted;
                merged.settled_aborted += 1;
            }
            Resolution::Unknown => merged.unknown += 1,
        }
    }
}

fn held(log: &Log) -> Held {
    let mut held = Held::default();
    for &version in &log.versions {
        *held.entry(version).or_default() += 1;
    }
    held
}

/// The last write of each key: the version that the transaction installed.
fn installed(txn: &Txn) -> impl Iterator<Item = Write> + '_ {
    txn.writes.iter().enumerate().filter_map(|(at, write)| {
        let later = &txn.writes[at + 1..];
        (!later.iter().any(|it| it.key == write.key)).then_some(*write)
    })
}

/// Compares what was acknowledged with the log. Lists keep every element, registers only the last.
pub(crate) fn findings(txns: &[Txn], log: &Log, is_list: bool) -> Vec<Finding> {
    let held = held(log);
    let mut found = Vec::new();
    for txn in txns {
        let writes: Vec<Write> = if is_list {
            txn.writes.clone()
        } else {
            installed(txn).collect()
        };
        for Write { key, value, .. } in writes {
            let times = held.get(&(key, value)).copied().unwrap_or(0);
            // Only an acknowledged commit has a time.
            let acknowledged = txn.status == Status::Committed && txn.commit.is_some();
            match txn.status {
                Status::Committed if acknowledged && times == 0 && log.is_complete => {
                    found.push(Finding::Lost {
                        txn: txn.id,
                        key,
                        value,
                    });
                }
                Status::Aborted if times > 0 => {
                    found.push(Finding::Undead {
                        txn: txn.id,
                        key,
                        value,
                    });
                }
                _ => {}
            }
            if times > 1 {
                found.push(Finding::Twice { key, value });
            }
        }
    }
    found
}

/// The order of each key's versions, by the log or by ranks.
pub(crate) fn orders(
    txns: &[Txn],
    log: Option<&Log>,
    findings: &mut Vec<Finding>,
) -> BTreeMap<Key, Vec<i64>> {
    let counted = || txns.iter().filter(|txn| txn.status != Status::Aborted);
    let Some(log) = log else {
        let mut ranked: BTreeMap<Key, Vec<(i64, i64)>> = BTreeMap::new();
        for write in counted().flat_map(installed) {
            if let Some(rank) = write.rank {
                ranked
                    .entry(write.key)
                    .or_default()
                    .push((rank, write.value));
            }
        }
        return ranked
            .into_iter()
            .filter_map(|(key, versions)| by_rank(key, versions, findings))
            .collect();
    };
    let mut finals: FxHashSet<(Key, i64)> = counted()
        .flat_map(installed)
        .map(|write| (write.key, write.value))
        .collect();
    let mut orders: BTreeMap<Key, Vec<i64>> = BTreeMap::new();
    for &(key, value) in &log.versions {
        if finals.remove(&(key, value)) {
            orders.entry(key).or_default().push(value);
        }
    }
    orders
}

fn by_rank(
    key: Key,
    mut versions: Vec<(i64, i64)>,
    findings: &mut Vec<Finding>,
) -> Option<(Key, Vec<i64>)> {
    versions.sort_unstable();
    if let Some(pair) = versions.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        findings.push(Finding::SameRank {
            key,
            rank: pair[0].0,
        });
        return None;
    }
    Some((key, versions.into_iter().map(|(_, value)| value).collect()))
}

/// Writes the history in our own format.
pub(crate) fn write(
    path: &Path,
    meta: &Meta,
    txns: &[Txn],
    orders: &BTreeMap<Key, Vec<i64>>,
    events: &[Value],
) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, File::create(path)?);
    let header = json!({"kingsnake": 1, "initial": meta.initial(), "about": meta.about()});
    writeln!(out, "{header}")?;
    for event in events {
        writeln!(out, "{}", json!({"event": event}))?;
    }
    let isolation = Value::from(meta.isolation.as_str());
    for txn in txns {
        write!(
            out,
            "{{\"id\":{},\"session\":{},\"begin\":{}",
            txn.id, txn.session, txn.begin
        )?;
        if let Some(commit) = txn.commit {
            write!(out, ",\"commit\":{commit}")?;
        }
        match txn.status {
            Status::Committed => {}
            Status::Aborted => write!(out, ",\"status\":\"aborted\"")?,
            Status::Unknown => write!(out, ",\"status\":\"unknown\"")?,
        }
        write!(out, ",\"isolation\":{isolation}")?;
        if let Some(node) = meta.node(txn.client) {
            write!(out, ",\"node\":{}", Value::from(node))?;
        }
        match txn.name.as_deref().map(|name| (name, name.parse::<i64>())) {
            // Snapshots name transactions by their numbers.
            Some((_, Ok(xid))) => write!(out, ",\"xid\":{xid}")?,
            Some((name, Err(_))) => write!(out, ",\"name\":{}", Value::from(name))?,
            None => {}
        }
        if !txn.snapshots.is_empty() {
            write!(out, ",\"snapshots\":{}", json!(txn.snapshots))?;
        }
        writeln!(out, ",\"ops\":[{}]}}", txn.ops.join(","))?;
    }
    for (key, values) in orders {
        writeln!(
            out,
            "{}",
            json!({"version_order": {"key": key, "values": values}})
        )?;
    }
    out.flush()
}
