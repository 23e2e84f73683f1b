//! Merges a collection's journals into one history: settles unknown outcomes, orders versions, and compares
//! acknowledged writes with the database's log.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};

use crate::adapter::{Database, Key, Resolution, VersionLog};
use crate::conditions;
use crate::meta::Meta;
use crate::read::{KeyNames, Status, Txn, Write};
use crate::timeline::CollectTimeline;

/// A finding that is wrong at every level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeFinding {
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

impl std::fmt::Display for MergeFinding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            MergeFinding::Lost { txn, key, value } => write!(
                f,
                "durability: transaction {txn} was acknowledged, and its write of {value} to key {key} is not in the log"
            ),
            MergeFinding::Twice { key, value } => {
                write!(
                    f,
                    "the log holds the write of {value} to key {key} more than once"
                )
            }
            MergeFinding::Undead { txn, key, value } => write!(
                f,
                "transaction {txn} was reported as aborted, and its write of {value} to key {key} is in the log"
            ),
            MergeFinding::SameRank { key, rank } => {
                write!(f, "two versions of key {key} have rank {rank}")
            }
        }
    }
}

/// The result of merging.
#[derive(Clone, Debug, Default)]
pub struct Merged {
    /// Transactions of the history.
    pub n_txns: usize,
    /// Operations of the history.
    pub n_ops: usize,
    /// Unknown outcomes that the database reported as committed.
    pub settled_committed: usize,
    /// Unknown outcomes that the database reported as aborted.
    pub settled_aborted: usize,
    /// Outcomes that stay unknown.
    pub unknown: usize,
    /// Keys whose versions are in order.
    pub n_ordered: usize,
    /// What is wrong whatever the level.
    pub findings: Vec<MergeFinding>,
    /// How the collection went over time.
    pub timeline: CollectTimeline,
}

/// The values that the log holds, each with how often.
type Held = FxHashMap<(Key, i64), u32>;

/// Settles unknown outcomes by the log, then by asking the database.
pub(crate) fn settle(
    txns: &mut [Txn],
    log: Option<&VersionLog>,
    database: Option<&dyn Database>,
    merged: &mut Merged,
) {
    let held = log.map(held);
    for txn in txns.iter_mut().filter(|txn| txn.status == Status::Unknown) {
        let by_log = match (&held, log) {
            // Deletes have no value that would identify them in a log.
            (Some(held), Some(log)) if txn.writes.iter().any(|it| !it.deletes) => {
                let is_held = |write: &Write| !write.deletes && held.contains_key(&write.logged());
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

fn held(log: &VersionLog) -> Held {
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

/// Compares acknowledged writes with the log. Lists keep every element, registers only the last.
pub(crate) fn findings(txns: &[Txn], log: &VersionLog, is_list: bool) -> Vec<MergeFinding> {
    let held = held(log);
    let mut found = Vec::new();
    for txn in txns {
        let writes: Vec<Write> = if is_list {
            txn.writes.clone()
        } else {
            installed(txn).collect()
        };
        for write in writes {
            let Write { key, value, .. } = write;
            let times = held.get(&write.logged()).copied().unwrap_or(0);
            // Only an acknowledged commit has a time.
            let acknowledged = txn.status == Status::Committed && txn.commit.is_some();
            match txn.status {
                Status::Committed if acknowledged && times == 0 && log.is_complete => {
                    found.push(MergeFinding::Lost {
                        txn: txn.id,
                        key,
                        value,
                    });
                }
                // A delete in the log may be another's.
                Status::Aborted if times > 0 && !write.deletes => {
                    found.push(MergeFinding::Undead {
                        txn: txn.id,
                        key,
                        value,
                    });
                }
                _ => {}
            }
            if times > 1 && !write.deletes {
                found.push(MergeFinding::Twice { key, value });
            }
        }
    }
    found
}

/// The order of each key's versions.
pub(crate) type Orders = BTreeMap<Key, Vec<Write>>;

/// The order of each key's versions, by the log or by ranks.
pub(crate) fn orders(
    txns: &[Txn],
    log: Option<&VersionLog>,
    findings: &mut Vec<MergeFinding>,
) -> Orders {
    let counted = || txns.iter().filter(|txn| txn.status != Status::Aborted);
    let Some(log) = log else {
        let mut ranked: BTreeMap<Key, Vec<(Write, bool)>> = BTreeMap::new();
        for txn in counted() {
            let is_unknown = txn.status == Status::Unknown;
            for write in installed(txn).filter(|it| it.rank.is_some()) {
                ranked
                    .entry(write.key)
                    .or_default()
                    .push((write, is_unknown));
            }
        }
        return ranked
            .into_iter()
            .filter_map(|(key, versions)| by_rank(key, versions, findings))
            .collect();
    };
    let mut finals: FxHashMap<(Key, i64), Write> = counted()
        .flat_map(installed)
        .map(|write| (write.logged(), write))
        .collect();
    let mut orders = Orders::new();
    for version in &log.versions {
        if let Some(write) = finals.remove(version) {
            orders.entry(write.key).or_default().push(write);
        }
    }
    orders
}

/// The versions of a key by their ranks; nothing where two have the same. That is a finding, unless one of them is of a transaction
/// whose end is unknown: it may have been rolled back, and its rank given again.
fn by_rank(
    key: Key,
    mut versions: Vec<(Write, bool)>,
    findings: &mut Vec<MergeFinding>,
) -> Option<(Key, Vec<Write>)> {
    versions.sort_unstable_by_key(|(write, _)| write.rank);
    let same = |pair: &&[(Write, bool)]| pair[0].0.rank == pair[1].0.rank;
    let is_known = |pair: &&[(Write, bool)]| !pair[0].1 && !pair[1].1;
    let mut pairs = versions.windows(2).filter(same).peekable();
    if pairs.peek().is_some() {
        if let Some(rank) = pairs.find(is_known).and_then(|pair| pair[0].0.rank) {
            findings.push(MergeFinding::SameRank { key, rank });
        }
        return None;
    }
    Some((key, versions.into_iter().map(|(write, _)| write).collect()))
}

/// A key as the history has it.
fn named(names: &KeyNames, key: Key) -> Value {
    names
        .get(&key)
        .map_or(Value::from(key), |it| Value::from(it.as_str()))
}

/// Puts names in place of the keys of an operation.
fn rename(op: &mut String, names: &KeyNames) -> io::Result<()> {
    let mut fields: Value = serde_json::from_str(op).map_err(io::Error::other)?;
    let put = |field: &mut Value| {
        if let Some(key) = field.as_i64() {
            *field = named(names, key);
        }
    };
    put(&mut fields[1]);
    if fields[0] == "range" {
        put(&mut fields[2]);
        let rows = fields[3].as_array_mut().into_iter().flatten();
        rows.for_each(|row| put(&mut row[0]));
    }
    *op = fields.to_string();
    Ok(())
}

/// Writes the history in our own format.
pub(crate) fn write(
    path: &Path,
    meta: &Meta,
    (txns, key_names): (&[Txn], &KeyNames),
    orders: &Orders,
    events: &[Value],
) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, File::create(path)?);
    let about = Value::from(meta.about());
    let tables = if meta.has_tables() {
        format!(",\"tables\":{}", conditions::TABLES)
    } else {
        String::new()
    };
    let initial = meta.initial();
    writeln!(
        out,
        "{{\"kingsnake\":1,\"initial\":{initial}{tables},\"about\":{about}}}"
    )?;
    for (key, number) in meta.initial_rows() {
        let row = if meta.has_tables() {
            format!(",\"row\":{}", conditions::row(number))
        } else {
            String::new()
        };
        let key = named(key_names, key);
        writeln!(out, "{{\"initial\":{{\"key\":{key},\"value\":0{row}}}}}")?;
    }
    let names: FxHashSet<&str> = txns.iter().filter_map(|it| it.name.as_deref()).collect();
    for event in events {
        writeln!(out, "{}", json!({"event": event}))?;
    }
    for txn in txns {
        write_txn(&mut out, meta, txn, (&names, key_names))?;
    }
    for (key, versions) in orders {
        let value = |it: &Write| {
            if it.deletes {
                json!({"deleted": it.value})
            } else {
                json!(it.value)
            }
        };
        let values: Vec<Value> = versions.iter().map(value).collect();
        writeln!(
            out,
            "{}",
            json!({"version_order": {"key": named(key_names, *key), "values": values}})
        )?;
    }
    out.flush()
}

/// Writes a transaction as a line. `names` are those that snapshots may contain; `keys` those of keys.
pub(crate) fn write_txn(
    out: &mut impl io::Write,
    meta: &Meta,
    txn: &Txn,
    (names, keys): (&FxHashSet<&str>, &KeyNames),
) -> io::Result<()> {
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
    let isolation = Value::from(meta.isolation.as_str());
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
    let mut ops = txn.ops.clone();
    for (at, snapshot) in &txn.asked {
        ops[*at] = conditions::with_snapshot(&ops[*at], snapshot, |it| names.contains(it));
    }
    if !keys.is_empty() {
        ops.iter_mut().try_for_each(|op| rename(op, keys))?;
    }
    writeln!(out, ",\"ops\":[{}]}}", ops.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn txn(id: i64, status: Status, rank: i64) -> Txn {
        Txn {
            id,
            session: id,
            client: 0,
            begin: id,
            commit: None,
            status,
            ops: Vec::new(),
            writes: vec![Write {
                key: 1,
                value: id,
                deletes: false,
                rank: Some(rank),
            }],
            name: None,
            snapshots: Vec::new(),
            asked: Vec::new(),
        }
    }

    #[test]
    fn a_rank_that_a_transaction_of_unknown_end_shares_is_no_finding() {
        let shared = [
            txn(1, Status::Committed, 1),
            txn(2, Status::Unknown, 2),
            txn(3, Status::Committed, 2),
        ];
        let mut findings = Vec::new();
        assert!(orders(&shared, None, &mut findings).is_empty());
        assert!(findings.is_empty());
        let twice = [txn(1, Status::Committed, 2), txn(3, Status::Committed, 2)];
        assert!(orders(&twice, None, &mut findings).is_empty());
        assert!(matches!(
            findings[..],
            [MergeFinding::SameRank { key: 1, rank: 2 }]
        ));
        findings.clear();
        let order = orders(&shared[..2], None, &mut findings);
        assert_eq!(order[&1].len(), 2);
        assert!(findings.is_empty());
    }
}
