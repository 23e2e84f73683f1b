//! The operations of the transaction begun last: reads, writes, compare-and-sets, deletes, ranges, appends.

use std::ops::Bound;

use super::super::build_error::BuildError;
use super::super::compares::{CompareAndSet, CompareOutcome};
use super::super::history::Op;
use super::super::ids::{RangeId, TxnId, ValueId};
use super::super::intern::Touched;
use super::super::names::Token;
use super::super::ranges::{RangeRow, Span};
use super::{GLOBAL, HistoryBuilder};

/// A read or a write of a key and a value that are numbers.
#[derive(Clone, Copy, Debug)]
pub struct NumberOp {
    /// Whether it is a write.
    pub is_write: bool,
    /// The key.
    pub key: i64,
    /// The value.
    pub value: i64,
}

impl HistoryBuilder {
    /// The transaction begun last read this value.
    #[inline]
    pub fn read(&mut self, key: Token, value: Token) -> ValueId {
        let (key, value) = self.pair(key, value);
        self.push(Op::Read { key, value });
        value
    }

    /// The transaction begun last wrote this value.
    #[inline]
    pub fn write(&mut self, key: Token, value: Token) -> ValueId {
        let (key, value) = self.pair(key, value);
        self.push(Op::Write { key, value });
        value
    }

    /// The transaction begun last wrote this value and called it an insert.
    pub fn insert(&mut self, key: Token, value: Token) -> ValueId {
        self.history.inserts.push(self.history.ops.len() as u32);
        self.write(key, value)
    }

    /// The transaction begun last set a key to `new` if it held `expected`. Applied, it is a read and a write; refused with
    /// the current value shown, a read of it; refused without, no operation of a transaction.
    /// [`Token::Nil`] as `expected` is an insert if absent.
    pub fn compare_and_set(
        &mut self,
        key: Token,
        expected: Token,
        new: Token,
        outcome: CompareOutcome<Token>,
    ) {
        let key = self.key(key);
        let (expected, new) = (self.value(key, expected), self.value(key, new));
        let outcome = match outcome {
            CompareOutcome::Applied => CompareOutcome::Applied,
            CompareOutcome::Refused => CompareOutcome::Refused,
            CompareOutcome::Shown(current) => CompareOutcome::Shown(self.value(key, current)),
        };
        self.history.compares.push(CompareAndSet {
            txn: TxnId(self.history.txns.len() as u32 - 1),
            at: (self.history.ops.len() - self.ops_start()) as u32,
            key,
            expected,
            new,
            outcome,
        });
        match outcome {
            CompareOutcome::Applied => {
                self.push(Op::Read {
                    key,
                    value: expected,
                });
                self.push(Op::Write { key, value: new });
            }
            CompareOutcome::Shown(value) => self.push(Op::Read { key, value }),
            CompareOutcome::Refused => {}
        }
    }

    /// A compare-and-set of the transaction begun last that was refused for a reason that the client does not know, or
    /// failed: an aborted one. What it would have written counts as an aborted write.
    pub fn failed_compare_and_set(&mut self, key: Token, expected: Token, new: Token) {
        self.compare_and_set(key, expected, new, CompareOutcome::Refused);
        self.write(key, new);
    }

    /// The transaction begun last deleted a key. The tombstone's name tells this delete from others of the key;
    /// [`Token::Nil`] where it has none.
    pub fn delete(&mut self, key: Token, tombstone: Token) -> ValueId {
        let key = self.key(key);
        let value = self.tombstone(key, tombstone);
        self.push(Op::Write { key, value });
        value
    }

    /// The transaction begun last found a key deleted, by the delete of this name.
    pub fn read_tombstone(&mut self, key: Token, tombstone: Token) -> ValueId {
        let key = self.key(key);
        let value = self.tombstone(key, tombstone);
        self.push(Op::Read { key, value });
        value
    }

    /// The transaction begun last asked for a range of keys and got these rows. `deleted` are deleted rows and the names of
    /// their tombstones, if the client sees them. Returns the rows as values, the deleted ones last.
    pub fn range(
        &mut self,
        low: Bound<Token>,
        high: Bound<Token>,
        rows: &[(Token, Token)],
        deleted: Option<&[(Token, Token)]>,
    ) -> Result<&[ValueId], BuildError> {
        let Some(span) = Span::new(low, high) else {
            let show = |bound: Bound<Token>| match bound {
                Bound::Unbounded => "nowhere".to_owned(),
                Bound::Included(token) | Bound::Excluded(token) => self.show(token),
            };
            let (low, high) = (show(low), show(high));
            return Err(BuildError::MixedBounds { low, high });
        };
        for &(key, value) in rows.iter().chain(deleted.unwrap_or_default()) {
            if span.place(&self.history.symbols, key).is_ne() {
                let span = span.show(|token| self.show(token));
                let key = self.show(key);
                return Err(BuildError::OutsideRange { span, key });
            }
            if value == Token::Nil {
                let key = self.show(key);
                return Err(BuildError::EmptyRow { key });
            }
        }
        let start = self.history.range_rows.len();
        for &(key, value) in rows {
            let (_, value) = self.pair(key, value);
            self.history.range_rows.push(value);
        }
        for &(key, tombstone) in deleted.unwrap_or_default() {
            let key = self.key(key);
            let value = self.tombstone(key, tombstone);
            self.history.range_rows.push(value);
        }
        self.history.ranges.push(RangeRow {
            span,
            rows_end: self.history.range_rows.len() as u32,
            shows_deleted: deleted.is_some(),
        });
        let range = RangeId(self.history.ranges.len() as u32 - 1);
        self.push(Op::Range { range });
        Ok(&self.history.range_rows[start..])
    }

    /// Adds reads and writes to the transaction begun last and returns them as they were interned. It does what
    /// [`read`](Self::read) and [`write`](Self::write) do one by one, but lets their lookups wait for memory together.
    pub fn extend(&mut self, run: &[NumberOp]) -> &[Op] {
        const WIDTH: usize = 32;
        let start = self.history.ops.len();
        for run in run.chunks(WIDTH) {
            let mut keys = [GLOBAL; WIDTH];
            let mut touched = [Touched::default(); WIDTH];
            let mut loaded = 0;
            for (op, touched) in run.iter().zip(&mut touched) {
                *touched = self.key_ids.touch(GLOBAL, op.key);
                loaded ^= touched.loaded;
            }
            for ((op, key), touched) in run.iter().zip(&mut keys).zip(&mut touched) {
                *key = self.touched_key(*touched, op.key);
                *touched = self.value_ids.touch(*key, op.value);
                loaded ^= touched.loaded;
            }
            std::hint::black_box(loaded);
            for ((op, &key), &touched) in run.iter().zip(&keys).zip(&touched) {
                let value = self.touched_value(touched, key, op.value);
                self.history.ops.push(if op.is_write {
                    Op::Write { key, value }
                } else {
                    Op::Read { key, value }
                });
            }
        }
        let ops_end = self.history.ops.len() as u32;
        self.last().ops_end = ops_end;
        &self.history.ops[start..]
    }

    /// The transaction begun last appended this value.
    pub fn append(&mut self, key: Token, value: Token) -> ValueId {
        let (key, value) = self.pair(key, value);
        self.push(Op::Append { key, value });
        value
    }
}
