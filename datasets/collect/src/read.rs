//! Reads journals back: what each client saw, whatever ended it.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use thiserror::Error;

use crate::adapter::Key;
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
    pub(crate) value: i64,
    pub(crate) rank: Option<i64>,
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
    #[error("{path}, line {line}: found `{found}`, which no collector writes")]
    Line {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// What stands there.
        found: String,
    },
}

/// Every transaction of a collection, in the order in which they began.
pub(crate) fn read(directory: &Path) -> Result<Vec<Txn>, BadJournal> {
    let io = |path: &Path, error| BadJournal::Io {
        path: path.to_owned(),
        error,
    };
    let mut txns = Vec::new();
    let paths = journals(directory).map_err(|error| io(directory, error))?;
    for (client, path) in paths.iter().enumerate() {
        let bytes = std::fs::read(path).map_err(|error| io(path, error))?;
        let end = bytes.iter().position(|&byte| byte == 0);
        let bytes = &bytes[..end.unwrap_or(bytes.len())];
        // What follows the last line end was under way.
        let whole = bytes
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |at| at + 1);
        read_journal(path, &bytes[..whole], client, &mut txns)?;
    }
    txns.sort_by_key(|txn| txn.id);
    Ok(txns)
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
    /// What its end means for what was read of it.
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
        let rank = None;
        self.txn.writes.push(Write { key, value, rank });
    }
}

fn read_journal(
    path: &Path,
    bytes: &[u8],
    client: usize,
    txns: &mut Vec<Txn>,
) -> Result<(), BadJournal> {
    let mut open: Option<Open> = None;
    for (at, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        if line.is_empty() {
            continue;
        }
        if take(line, client, &mut open, txns).is_none() {
            return Err(BadJournal::Line {
                path: path.to_owned(),
                line: at + 1,
                found: String::from_utf8_lossy(line).into_owned(),
            });
        }
    }
    if let Some(open) = open {
        open.close(txns);
    }
    Ok(())
}

/// Takes one line; nothing where it makes no sense.
fn take(line: &[u8], client: usize, open: &mut Option<Open>, txns: &mut Vec<Txn>) -> Option<()> {
    let fields: Vec<Value> = serde_json::from_slice(line).ok()?;
    let number = |at: usize| fields.get(at).and_then(Value::as_i64);
    let text = |at: usize| fields.get(at).and_then(Value::as_str);
    let name = text(0)?;
    if name == "begin" {
        let txn = Txn {
            id: number(1)?,
            session: number(2)?,
            client,
            begin: number(3)?,
            commit: None,
            // Nothing is sent to commit before `commit` is recorded.
            status: Status::Aborted,
            ops: Vec::new(),
            writes: Vec::new(),
            name: None,
            snapshots: Vec::new(),
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
    let this = open.as_mut()?;
    match name {
        "r" | "rl" | "range" => {
            let op = String::from_utf8(line.to_owned()).ok()?;
            this.txn.ops.push(op);
        }
        "w" | "a" | "insert" => this.write(name, number(1)?, number(2)?),
        "cas" => this.cas = Some((number(1)?, number(2)?)),
        "held" => {
            let (key, value) = this.cas.take()?;
            let held = fields.get(1)?;
            this.txn.ops.push(format!("[\"r\",{key},{held}]"));
            if fields.get(2)?.as_bool()? {
                this.write("w", key, value);
            }
        }
        "rank" => this.txn.writes.last_mut()?.rank = Some(number(1)?),
        "name" => this.txn.name = Some(text(1)?.to_owned()),
        "snapshot" => this.txn.snapshots.push(text(1)?.to_owned()),
        "commit" => this.committing = true,
        "end" => {
            this.ended = true;
            this.txn.status = match text(1)? {
                "committed" => {
                    this.txn.commit = Some(number(2)?);
                    Status::Committed
                }
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
    use crate::journal::{End, Journal, journal_name};

    fn txns(lines: impl FnOnce(&mut Journal) -> io::Result<()>) -> Vec<Txn> {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(&directory.path().join(journal_name(0))).unwrap();
        lines(&mut journal).unwrap();
        // As after a kill.
        std::mem::forget(journal);
        read(directory.path()).unwrap()
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
}
