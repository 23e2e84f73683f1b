//! Reads journals back: what each client saw, however it ended.

use std::io;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use serde_json::Value;
use thiserror::Error;

use crate::adapter::{DELETED, Key};
use crate::journal::journals;

/// How a transaction ended, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Committed,
    Aborted,
    Unknown,
}

/// A version that a transaction installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    pub(crate) key: Key,
    /// The value; of a delete the name of its tombstone.
    pub(crate) value: i64,
    pub(crate) deletes: bool,
    pub(crate) rank: Option<i64>,
}

impl Write {
    /// The version as a log has it.
    pub(crate) fn logged(&self) -> (Key, i64) {
        let value = if self.deletes { DELETED } else { self.value };
        (self.key, value)
    }
}

/// A transaction as its client saw it.
#[derive(Clone, Debug)]
pub(crate) struct Txn {
    pub(crate) id: i64,
    pub(crate) session: i64,
    /// The client's number, which is the journal's.
    pub(crate) client: usize,
    pub(crate) begin: i64,
    pub(crate) commit: Option<i64>,
    pub(crate) status: Status,
    /// Operations, as our format writes them.
    pub(crate) ops: Vec<String>,
    pub(crate) writes: Vec<Write>,
    /// The database's own name for it.
    pub(crate) name: Option<String>,
    /// The snapshot of each read, in the database's own words.
    pub(crate) snapshots: Vec<String>,
    /// The snapshots of operations that ask by conditions, by the operation's place.
    pub(crate) asked: Vec<(usize, String)>,
}

/// Why journals cannot be read.
#[derive(Debug, Error)]
pub enum BadJournal {
    /// The file system says no.
    #[error("cannot read {path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The line is not of a journal.
    #[error("{path}, line {line}: found `{found}`, which is not in a collector's format")]
    Line {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// What stands there.
        found: String,
    },
}

/// What keys are called in the history, where they have names.
pub(crate) type KeyNames = FxHashMap<Key, String>;

/// Every transaction of a collection, in the order in which they began, and the names of keys.
pub(crate) fn read(directory: &Path) -> Result<(Vec<Txn>, KeyNames), BadJournal> {
    let io = |path: &Path, error| BadJournal::Io {
        path: path.to_owned(),
        error,
    };
    let mut txns = Vec::new();
    let mut names = KeyNames::default();
    let paths = journals(directory).map_err(|error| io(directory, error))?;
    for (client, path) in paths.iter().enumerate() {
        let bytes = written(path).map_err(|error| io(path, error))?;
        // What follows the last line end was under way.
        let whole = bytes
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |at| at + 1);
        read_journal(path, &bytes[..whole], client, &mut txns, &mut names)?;
    }
    txns.sort_by_key(|txn| txn.id);
    Ok((txns, names))
}

/// What was written into a journal. The place that was set aside after it is zeros, of which a sparse file may claim any number.
fn written(path: &Path) -> std::io::Result<Vec<u8>> {
    const PIECE: u64 = 1 << 20;
    kingsnake_datasets::bounded::expect_regular(path)?;
    let mut file = std::fs::File::open(path)?;
    let mut bytes = Vec::new();
    loop {
        let before = bytes.len();
        let n_read = file.by_ref().take(PIECE).read_to_end(&mut bytes)?;
        if let Some(end) = bytes[before..].iter().position(|&byte| byte == 0) {
            bytes.truncate(before + end);
            return Ok(bytes);
        }
        if n_read == 0 {
            return Ok(bytes);
        }
    }
}

/// A transaction of which not all lines were read yet.
struct Open {
    txn: Txn,
    committing: bool,
    ended: bool,
    /// A compare-and-set that was sent and not answered yet.
    cas: Option<(Key, i64)>,
}

impl Open {
    /// The effect of its outcome on what was read.
    fn close(mut self, into: &mut Vec<Txn>) {
        if let Some((key, value)) = self.cas.take() {
            // It may have happened.
            self.write("w", key, value);
        }
        if !self.ended && self.committing {
            self.txn.status = Status::Unknown;
        }
        into.push(self.txn);
    }

    fn write(&mut self, name: &str, key: Key, value: i64) {
        self.txn.ops.push(format!("[\"{name}\",{key},{value}]"));
        self.note(key, value, name == "delete");
    }

    fn note(&mut self, key: Key, value: i64, deletes: bool) {
        self.txn.writes.push(Write {
            key,
            value,
            deletes,
            rank: None,
        });
    }

    /// Takes an update or a delete of all rows that a condition chose; of each the value, or the tombstone, stands at a place.
    fn write_all(&mut self, rows: &Value, place: usize, deletes: bool) -> Option<()> {
        for row in rows.as_array()? {
            self.note(row[0].as_i64()?, row[place].as_i64()?, deletes);
        }
        Some(())
    }
}

fn read_journal(
    path: &Path,
    bytes: &[u8],
    client: usize,
    txns: &mut Vec<Txn>,
    names: &mut KeyNames,
) -> Result<(), BadJournal> {
    let mut reader = JournalReader::default();
    for line in bytes.split(|&byte| byte == b'\n') {
        txns.extend(reader.take(line, client, path)?);
    }
    txns.extend(reader.cut());
    names.extend(reader.names);
    Ok(())
}

/// Makes transactions of a journal's lines.
#[derive(Default)]
pub(crate) struct JournalReader {
    open: Option<Open>,
    names: KeyNames,
    n_lines: usize,
}

impl JournalReader {
    /// Takes one line, without its end; the transaction that it ends.
    pub(crate) fn take(
        &mut self,
        line: &[u8],
        client: usize,
        path: &Path,
    ) -> Result<Option<Txn>, BadJournal> {
        self.n_lines += 1;
        if line.is_empty() {
            return Ok(None);
        }
        let mut txns = Vec::new();
        let into = (&mut txns, &mut self.names);
        if take(line, client, &mut self.open, into).is_none() {
            return Err(BadJournal::Line {
                path: path.to_owned(),
                line: self.n_lines,
                found: String::from_utf8_lossy(line).into_owned(),
            });
        }
        if self.open.as_ref().is_some_and(|it| it.ended) {
            txns.extend(self.cut());
        }
        Ok(txns.pop())
    }

    /// The session and the begin of the transaction that is under way.
    pub(crate) fn begun(&self) -> Option<(i64, i64)> {
        let open = self.open.as_ref()?;
        Some((open.txn.session, open.txn.begin))
    }

    /// The transaction that is under way, as it is where nothing follows.
    pub(crate) fn cut(&mut self) -> Option<Txn> {
        let mut txns = Vec::new();
        self.open.take()?.close(&mut txns);
        txns.pop()
    }
}

/// Whether an operation is of one key and a value alone.
fn is_plain(fields: &[Value]) -> bool {
    fields.len() == 3 && fields[1].is_i64()
}

/// Takes one line; nothing where it makes no sense.
fn take(
    line: &[u8],
    client: usize,
    open: &mut Option<Open>,
    (txns, names): (&mut Vec<Txn>, &mut KeyNames),
) -> Option<()> {
    let fields: Vec<Value> = serde_json::from_slice(line).ok()?;
    let number = |at: usize| fields.get(at).and_then(Value::as_i64);
    let text = |at: usize| fields.get(at).and_then(Value::as_str);
    let name = text(0)?;
    if name == "b" {
        let txn = Txn {
            id: number(1)?,
            session: number(2)?,
            client,
            begin: number(3)?,
            commit: None,
            // Nothing is sent to commit before `c` is recorded.
            status: Status::Aborted,
            ops: Vec::new(),
            writes: Vec::new(),
            name: None,
            snapshots: Vec::new(),
            asked: Vec::new(),
        };
        let next = Open {
            txn,
            committing: false,
            ended: false,
            cas: None,
        };
        if let Some(last) = open.replace(next) {
            last.close(txns);
        }
        return Some(());
    }
    if name == "key" {
        names.insert(number(1)?, text(2)?.to_owned());
        return Some(());
    }
    let this = open.as_mut()?;
    match name {
        "r" | "rl" | "range" => {
            let op = String::from_utf8(line.to_owned()).ok()?;
            this.txn.ops.push(op);
        }
        "select" | "aggregate" | "update" | "insert" | "delete" if !is_plain(&fields) => {
            match name {
                "update" => this.write_all(fields.get(2)?, 1, false)?,
                "delete" => this.write_all(fields.get(2)?, 2, true)?,
                "insert" => this.note(number(1)?, number(2)?, false),
                _ => {}
            }
            this.txn.ops.push(String::from_utf8(line.to_owned()).ok()?);
        }
        "w" | "a" | "insert" | "delete" => this.write(name, number(1)?, number(2)?),
        // A delete that found no row saw that there is none, and made no version.
        "found" => {
            if !fields.get(1)?.as_bool()? {
                let Write { key, .. } = this.txn.writes.pop()?;
                *this.txn.ops.last_mut()? = format!("[\"r\",{key},null]");
            }
        }
        "ranks" => {
            let ranks = fields.get(1)?.as_array()?;
            let first = this.txn.writes.len().checked_sub(ranks.len())?;
            for (write, rank) in this.txn.writes[first..].iter_mut().zip(ranks) {
                write.rank = Some(rank.as_i64()?);
            }
        }
        "cas" => this.cas = Some((number(1)?, number(2)?)),
        "held" => {
            let (key, value) = this.cas.take()?;
            let held = fields.get(1)?;
            this.txn.ops.push(format!("[\"r\",{key},{held}]"));
            if fields.get(2)?.as_bool()? {
                this.write("w", key, value);
            }
        }
        "n" => this.txn.writes.last_mut()?.rank = Some(number(1)?),
        "name" => this.txn.name = Some(text(1)?.to_owned()),
        "snapshot" => {
            let snapshot = text(1)?.to_owned();
            match this.txn.ops.last() {
                Some(op) if op.contains("\"table\":") => {
                    this.txn.asked.push((this.txn.ops.len() - 1, snapshot));
                }
                _ => this.txn.snapshots.push(snapshot),
            }
        }
        "c" => this.committing = true,
        "ok" => {
            this.ended = true;
            this.txn.commit = Some(this.txn.begin.checked_add(number(1)?)?);
            this.txn.status = Status::Committed;
        }
        "end" => {
            this.ended = true;
            this.txn.status = match text(1)? {
                "aborted" => Status::Aborted,
                _ => Status::Unknown,
            };
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::Chosen;
    use crate::conditions;
    use crate::journal::{End, Journal, journal_name};

    fn txns(lines: impl FnOnce(&mut Journal) -> io::Result<()>) -> Vec<Txn> {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(&directory.path().join(journal_name(0))).unwrap();
        lines(&mut journal).unwrap();
        // As after a kill.
        std::mem::forget(journal);
        read(directory.path()).unwrap().0
    }

    #[test]
    fn a_transaction_cut_off_before_its_commit_did_not_commit() {
        let found = txns(|journal| {
            journal.begin(1, 0, 10)?;
            journal.write("w", 5, 77)
        });
        assert_eq!(found[0].status, Status::Aborted);
        assert_eq!(found[0].ops, ["[\"w\",5,77]"]);
    }

    #[test]
    fn a_transaction_cut_off_within_its_commit_has_an_unknown_end() {
        let found = txns(|journal| {
            journal.begin(1, 0, 10)?;
            journal.write("w", 5, 77)?;
            journal.committing()
        });
        assert_eq!(found[0].status, Status::Unknown);
    }

    #[test]
    fn a_compare_and_set_is_a_read_and_where_it_succeeds_a_write() {
        let found = txns(|journal| {
            journal.begin(1, 0, 10)?;
            journal.write("cas", 5, 77)?;
            journal.held(Some(3), true)?;
            journal.committing()?;
            journal.end(End::Committed, 20)?;
            journal.begin(2, 0, 30)?;
            journal.write("cas", 5, 78)?;
            journal.held(None, false)
        });
        assert_eq!(found[0].ops, ["[\"r\",5,3]", "[\"w\",5,77]"]);
        assert_eq!(
            (found[0].status, found[0].commit),
            (Status::Committed, Some(20))
        );
        assert_eq!(found[1].ops, ["[\"r\",5,null]"]);
    }

    #[test]
    fn a_delete_that_found_nothing_is_a_read_of_nothing() {
        let found = txns(|journal| {
            journal.begin(1, 0, 10)?;
            journal.write("delete", 5, 77)?;
            journal.found(false)?;
            journal.write("delete", 6, 78)?;
            journal.found(true)?;
            journal.rank(3)?;
            journal.write("delete", 7, 79)
        });
        let ops = ["[\"r\",5,null]", "[\"delete\",6,78]", "[\"delete\",7,79]"];
        assert_eq!(found[0].ops, ops);
        let logged: Vec<_> = found[0].writes.iter().map(Write::logged).collect();
        assert_eq!(logged, [(6, DELETED), (7, DELETED)]);
        assert_eq!(found[0].writes[0].rank, Some(3));
    }

    #[test]
    fn a_condition_keeps_its_snapshot_and_its_versions() {
        let rows = [(1, 10), (2, 10)].map(|(key, value)| Chosen {
            key,
            value,
            rank: None,
        });
        let found = txns(|journal| {
            journal.begin(1, 0, 10)?;
            journal.op(&conditions::update((3, 4), 8, &rows))?;
            journal.ranks(&[5, 6])?;
            journal.text("snapshot", "7:9:8")?;
            journal.op(&conditions::delete((3, 4), 11, &rows[..1]))?;
            journal.text("snapshot", "7:9:8")
        });
        let writes = &found[0].writes;
        assert_eq!(
            writes.iter().map(|it| it.rank).collect::<Vec<_>>(),
            [Some(5), Some(6), None]
        );
        assert!(writes[2].deletes && writes[2].value == 11);
        assert_eq!(found[0].asked.len(), 2);
        assert_eq!(found[0].asked[1].0, 1);
    }
}
