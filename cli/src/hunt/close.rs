//! Counts what a history came close to: pairs of overlapping transactions of which one missed what the other wrote, or that wrote
//! one key.

use std::collections::{BTreeMap, BTreeSet};

use kingsnake_solver::model::{History, KeyId, Op, TxnId, ValueId};

/// Each transaction of a key is compared with this many that began after it.
const NEIGHBOURS: usize = 32;

/// Pairs of overlapping transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// One read a key that the other wrote without seeing the write: an anti-dependency, if the write came later.
    pub missed: u64,
    /// Both wrote the same key.
    pub overwritten: u64,
    /// Each missed a write of the other.
    pub mutual: u64,
}

/// What a transaction did to a key.
struct Access {
    txn: TxnId,
    begin: i64,
    end: i64,
    read: Vec<ValueId>,
    wrote: Vec<ValueId>,
}

/// Counts them.
pub fn count(history: &History) -> Counted {
    let mut keys: BTreeMap<KeyId, Vec<Access>> = BTreeMap::new();
    for txn in history.txns() {
        let interval = history.interval(txn);
        for &op in history.ops(txn) {
            let (key, value, writes) = match op {
                Op::Read { value, .. } => (history.value_key(value), value, false),
                Op::Write { key, value, .. } => (key, value, true),
                _ => continue,
            };
            let accesses = keys.entry(key).or_default();
            if accesses.last().is_none_or(|it| it.txn != txn) {
                accesses.push(Access {
                    txn,
                    begin: interval.begin,
                    end: interval.commit,
                    read: Vec::new(),
                    wrote: Vec::new(),
                });
            }
            if let Some(access) = accesses.last_mut() {
                let values = if writes {
                    &mut access.wrote
                } else {
                    &mut access.read
                };
                values.push(value);
            }
        }
    }
    let mut counted = Counted::default();
    let mut missed: BTreeSet<(TxnId, TxnId)> = BTreeSet::new();
    for accesses in keys.values_mut() {
        accesses.sort_by_key(|it| it.begin);
        for (at, one) in accesses.iter().enumerate() {
            let later = accesses[at + 1..].iter().take(NEIGHBOURS);
            for other in later.take_while(|it| it.begin <= one.end) {
                for (reader, writer) in [(one, other), (other, one)] {
                    let has_seen = reader.read.iter().any(|it| writer.wrote.contains(it));
                    if !reader.read.is_empty() && !writer.wrote.is_empty() && !has_seen {
                        counted.missed += 1;
                        missed.insert((reader.txn, writer.txn));
                    }
                }
                counted.overwritten += u64::from(!one.wrote.is_empty() && !other.wrote.is_empty());
            }
        }
    }
    let is_mutual = |pair: &&(TxnId, TxnId)| pair.0 < pair.1 && missed.contains(&(pair.1, pair.0));
    counted.mutual = missed.iter().filter(is_mutual).count() as u64;
    counted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(lines: &[&str]) -> Counted {
        let text = format!("{{\"kingsnake\":1,\"initial\":0}}\n{}\n", lines.join("\n"));
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("h.jsonl");
        std::fs::write(&path, text).expect("written");
        let options = kingsnake_datasets::ReadOptions::default();
        let parsed = kingsnake_datasets::open(&path, &options).expect("a history");
        count(&parsed.history)
    }

    #[test]
    fn only_overlapping_pairs_count() {
        let a = r#"{"id":1,"session":1,"begin":0,"commit":10,"ops":[["r","x",0],["r","y",0],["w","x",1]]}"#;
        let b = r#"{"id":2,"session":2,"begin":5,"commit":15,"ops":[["r","x",0],["r","y",0],["w","y",2]]}"#;
        let late = r#"{"id":3,"session":3,"begin":20,"commit":30,"ops":[["r","x",1],["w","x",3]]}"#;
        let both = Counted {
            missed: 2,
            overwritten: 0,
            mutual: 1,
        };
        assert_eq!(counted(&[a, b, late]), both);
        let early = late.replace("20", "8");
        let all = counted(&[a, b, &early]);
        assert_eq!((all.overwritten, all.mutual), (1, 1));
    }
}
