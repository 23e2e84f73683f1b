//! Savepoints: writes that a transaction rolled back become an aborted transaction of its own; its reads stay.
//!
//! A read of a write that was rolled back later concerns no other transaction: it is left out if it is right, and
//! becomes a read of a value without a writer if it is wrong.

use rustc_hash::FxHashMap;

use super::build_error::BuildError;
use super::builder::HistoryBuilder;
use super::history::{Op, Status};
use super::ids::{KeyId, ListId, TxnId, ValueId};
use super::predicates::Act;

impl HistoryBuilder {
    /// The transaction begun last rolled back what it did since it had `from` operations ([`n_ops`](Self::n_ops)).
    pub fn roll_back(&mut self, from: usize) -> Result<(), BuildError> {
        let start = self.history.ops.len() - self.n_ops() + from;
        let part = self.history.ops.split_off(start);
        self.check_queries(from, &part)?;
        let txn = TxnId(self.history.txns.len() as u32 - 1);
        let inserts = &mut self.history.inserts;
        inserts.truncate(inserts.partition_point(|&at| (at as usize) < start));
        let compares = &mut self.history.compares;
        compares.retain(|it| it.txn != txn || (it.at as usize) < from);
        let mut own: FxHashMap<KeyId, Vec<ValueId>> = FxHashMap::default();
        let mut places = Vec::with_capacity(part.len() + 1);
        for op in part {
            places.push((self.history.ops.len() - start + from) as u32);
            match op {
                Op::Write { key, value } => {
                    own.insert(key, vec![value]);
                }
                Op::Append { key, value } => own.entry(key).or_default().push(value),
                Op::Read { .. } | Op::ReadList { .. } | Op::Range { .. } => {
                    let before = op.key().and_then(|key| own.get(&key));
                    let kept = match before {
                        None => Some(op),
                        Some(before) => self.without_own(op, before),
                    };
                    self.history.ops.extend(kept);
                    continue;
                }
            }
            self.rolled_back.push(op);
        }
        places.push((self.history.ops.len() - start + from) as u32);
        let predicates = self.history.rows.predicates.iter_mut().rev();
        for (_, predicate) in predicates.take_while(|it| it.0 == txn) {
            if let Some(past) = (predicate.at as usize).checked_sub(from) {
                predicate.at = places[past];
            }
        }
        let ops_end = self.history.ops.len() as u32;
        self.last().ops_end = ops_end;
        Ok(())
    }

    /// The rolled-back part of the transaction begun last, as an aborted transaction of its session.
    pub(super) fn roll_back_pending(&mut self) -> Result<(), BuildError> {
        if self.rolled_back.is_empty() {
            return Ok(());
        }
        let ops = std::mem::take(&mut self.rolled_back);
        let row = *self.last();
        let name = format!("{} rolled back", self.show(row.name));
        let name = self.text(&name);
        self.begin(row.session, name, Status::Aborted)?;
        for op in ops {
            self.push(op);
        }
        Ok(())
    }

    /// No query after a write of the part spans a key of it, and no rows were changed by a condition.
    fn check_queries(&self, from: usize, part: &[Op]) -> Result<(), BuildError> {
        let parts = &self.history;
        let key_of = |key: KeyId| parts.key_names.get(key.index());
        let refuse = |key: KeyId| BuildError::QueryRolledBack {
            txn: parts
                .txns
                .last()
                .map_or(String::new(), |it| self.show(it.name)),
            key: self.show(key_of(key)),
        };
        let written = |end: usize| {
            part[..end]
                .iter()
                .filter(|op| op.is_write())
                .filter_map(|op| op.key())
        };
        for (at, op) in part.iter().enumerate() {
            if let Op::Range { range } = *op {
                let span = parts.ranges[range.index()].span;
                let spans = |key: &KeyId| span.place(&parts.symbols, key_of(*key)).is_eq();
                written(at)
                    .find(spans)
                    .map_or(Ok(()), |key| Err(refuse(key)))?;
            }
        }
        let txn = TxnId(parts.txns.len() as u32 - 1);
        let predicates = parts.rows.predicates.iter().rev();
        for (_, predicate) in predicates.take_while(|it| it.0 == txn) {
            let Some(at) = (predicate.at as usize).checked_sub(from) else {
                break;
            };
            let changes = matches!(predicate.act, Act::Update | Act::Delete);
            let end = at + if changes { predicate.n_ops as usize } else { 0 };
            let table = Some(parts.rows.queries[predicate.query as usize].table);
            let in_table = |key: &KeyId| parts.rows.table_of(&parts.symbols, key_of(*key)) == table;
            written(end)
                .find(in_table)
                .map_or(Ok(()), |key| Err(refuse(key)))?;
        }
        Ok(())
    }

    /// A read without its transaction's earlier writes: nothing of the read of a register, a shorter list of that of a list.
    fn without_own(&mut self, op: Op, own: &[ValueId]) -> Option<Op> {
        match op {
            Op::Read { value, .. } if own.last() == Some(&value) => None,
            Op::Read { key, value } => {
                let value = self.contradiction(key, value, own);
                Some(Op::Read { key, value })
            }
            Op::ReadList { key, list } => {
                let (start, length) = parts_of(self, list);
                let items = &self.history.list_items[start..start + length];
                let place = if items.ends_with(own) {
                    (start as u32, (length - own.len()) as u32)
                } else {
                    let last = items.last().copied().unwrap_or(own[0]);
                    let wrong = self.contradiction(key, last, own);
                    let all = &mut self.history.list_items;
                    let moved = all.len();
                    all.extend_from_within(start..start + length);
                    all.push(wrong);
                    (moved as u32, length as u32 + 1)
                };
                self.history.lists.push(place);
                let list = ListId(self.history.lists.len() as u32 - 1);
                Some(Op::ReadList { key, list })
            }
            _ => Some(op),
        }
    }

    /// A value without a writer, whose name gives the reason.
    fn contradiction(&mut self, key: KeyId, read: ValueId, own: &[ValueId]) -> ValueId {
        let show = |value: ValueId| self.show(self.history.value_names.get(value.index()));
        let text = format!(
            "{} after its own write of {}",
            show(read),
            show(own[own.len() - 1])
        );
        let name = self.text(&text);
        self.value(key, name)
    }
}

fn parts_of(builder: &HistoryBuilder, list: ListId) -> (usize, usize) {
    let (start, length) = builder.history.lists[list.index()];
    (start as usize, length as usize)
}
