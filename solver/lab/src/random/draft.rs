//! A history that can still be changed.

use std::ops::Bound;

use kingsnake_history::model::{History, HistoryBuilder, Installed, Status, Token};

/// The value of every register before any transaction.
pub(super) const INITIAL: i64 = 0;

#[derive(Clone, Debug)]
pub(super) enum DraftOp {
    Read(usize, i64),
    Write(usize, i64),
    Append(usize, i64),
    ReadList(usize, Vec<i64>),
    Insert(usize, i64),
    /// A delete leaves a negative number: the tombstone.
    Delete(usize, i64),
    /// No row, and no tombstone in sight.
    ReadNothing(usize),
    Range(DraftRange),
}

/// A range query and its answer.
#[derive(Clone, Debug)]
pub(super) struct DraftRange {
    pub(super) low: Bound<usize>,
    pub(super) high: Bound<usize>,
    pub(super) rows: Vec<(usize, i64)>,
    pub(super) shows_deleted: bool,
}

impl DraftOp {
    /// The key and the value that the operation installs, if it installs one.
    pub(super) fn install(&self) -> Option<(usize, i64)> {
        match *self {
            DraftOp::Write(key, value)
            | DraftOp::Append(key, value)
            | DraftOp::Insert(key, value)
            | DraftOp::Delete(key, value) => Some((key, value)),
            DraftOp::Read(..)
            | DraftOp::ReadList(..)
            | DraftOp::ReadNothing(..)
            | DraftOp::Range(..) => None,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct DraftTxn {
    pub(super) session: usize,
    pub(super) status: Status,
    pub(super) begin: Option<i64>,
    pub(super) commit: Option<i64>,
    pub(super) ops: Vec<DraftOp>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    /// In an order that agrees with every session's.
    pub(super) txns: Vec<DraftTxn>,
    /// Keys with the order of their values.
    pub(super) version_orders: Vec<(usize, Vec<i64>)>,
    /// Whether the keys have no row before any transaction.
    pub(super) starts_empty: bool,
    /// Whether deletes have no names.
    pub(super) nameless: bool,
}

impl Draft {
    /// The values that anybody wrote to a key.
    pub(super) fn values(&self, key: usize) -> Vec<i64> {
        let installs = self
            .txns
            .iter()
            .flat_map(|txn| &txn.ops)
            .filter_map(DraftOp::install);
        installs
            .filter(|&(other, _)| other == key)
            .map(|(_, value)| value)
            .collect()
    }

    /// The values that a version order of a key may list: what each transaction, aborted or not, left behind in a
    /// register, or all that it appended to a list.
    pub(super) fn final_values(&self, key: usize) -> Vec<i64> {
        let mut values = Vec::new();
        for txn in &self.txns {
            let mut last_write = None;
            for op in &txn.ops {
                match *op {
                    DraftOp::Write(at, value) | DraftOp::Insert(at, value) if at == key => {
                        last_write = Some(value);
                    }
                    DraftOp::Delete(at, _) if at == key => last_write = None,
                    DraftOp::Append(at, value) if at == key => values.push(value),
                    _ => {}
                }
            }
            values.extend(last_write);
        }
        values
    }

    /// Makes range queries end one key too early, or reads of the rows that they returned and nothing more.
    pub(super) fn misread(&mut self, shorten: bool) {
        for txn in &mut self.txns {
            let ops = std::mem::take(&mut txn.ops);
            for op in ops {
                let DraftOp::Range(query) = op else {
                    txn.ops.push(op);
                    continue;
                };
                let last = match query.high {
                    Bound::Included(high) => high.checked_sub(1),
                    Bound::Excluded(high) => high.checked_sub(2),
                    Bound::Unbounded => Some(1),
                };
                let is_kept = |key: usize| shorten && last.is_some_and(|last| key <= last);
                let (kept, apart): (Vec<_>, Vec<_>) = query
                    .rows
                    .iter()
                    .copied()
                    .partition(|&(key, _)| is_kept(key));
                let reads = apart.into_iter();
                txn.ops
                    .extend(reads.map(|(key, value)| DraftOp::Read(key, value)));
                if let Some(last) = last.filter(|_| shorten) {
                    txn.ops.push(DraftOp::Range(DraftRange {
                        high: Bound::Included(last),
                        rows: kept,
                        ..query
                    }));
                }
            }
        }
    }

    pub(super) fn build(&self) -> History {
        let mut builder = HistoryBuilder::new();
        let initial = if self.starts_empty {
            Token::Nil
        } else {
            Token::Int(INITIAL)
        };
        builder.initial_everywhere(initial);
        let value_token = |value: i64| match value {
            INITIAL => initial,
            _ => Token::Int(value),
        };
        let tombstone = |value: i64| {
            if self.nameless {
                Token::Nil
            } else {
                Token::Int(-value)
            }
        };
        let keys: Vec<Token> = ["x", "y", "z"]
            .iter()
            .map(|name| builder.text(name))
            .collect();
        for (name, txn) in self.txns.iter().enumerate() {
            let session = builder.session(Token::Int(txn.session as i64));
            let begun = builder.begin(session, Token::Int(name as i64 + 1), txn.status);
            begun.expect("names are counted");
            builder.times(txn.begin, txn.commit);
            for op in &txn.ops {
                match *op {
                    DraftOp::Read(key, value) if value < 0 => {
                        builder.read_tombstone(keys[key], tombstone(value));
                    }
                    DraftOp::Read(key, value) => {
                        builder.read(keys[key], value_token(value));
                    }
                    DraftOp::ReadNothing(key) => {
                        builder.read(keys[key], Token::Nil);
                    }
                    DraftOp::Insert(key, value) => {
                        builder.insert(keys[key], value.into());
                    }
                    DraftOp::Delete(key, value) => {
                        builder.delete(keys[key], tombstone(value));
                    }
                    DraftOp::Range(ref query) => {
                        let row =
                            |&(key, value): &(usize, i64)| (keys[key], value_token(value.abs()));
                        let (dead, live): (Vec<_>, Vec<_>) =
                            query.rows.iter().partition(|row| row.1 < 0);
                        let live: Vec<_> = live.iter().map(&row).collect();
                        let dead: Vec<_> = dead.iter().map(row).collect();
                        let key = |key: usize| keys[key];
                        let (low, high) = (query.low.map(key), query.high.map(key));
                        let dead = query.shows_deleted.then_some(dead.as_slice());
                        let answered = builder.range(low, high, &live, dead);
                        answered.expect("the rows are inside");
                    }
                    DraftOp::Write(key, value) => {
                        builder.write(keys[key], value.into());
                    }
                    DraftOp::Append(key, value) => {
                        builder.append(keys[key], value.into());
                    }
                    DraftOp::ReadList(key, ref items) => {
                        builder.read_list(keys[key], items.iter().map(|&item| item.into()));
                    }
                }
            }
        }
        for (key, values) in &self.version_orders {
            let values = values.iter().map(|&value| match value {
                ..0 => Installed::Tombstone(tombstone(value)),
                _ => Installed::Value(Token::Int(value)),
            });
            let given = builder.version_order(keys[*key], values);
            given.expect("a key has one order, without repetitions");
        }
        builder.finish().expect("a draft is well formed")
    }
}
