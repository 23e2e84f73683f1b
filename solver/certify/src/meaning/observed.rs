//! Which transactions of unknown end count: those that a counted transaction has seen.

use rustc_hash::FxHashMap;

use super::super::rows::{Sight, sight};
use super::{Meaning, read_by};
use kingsnake_history::model::{KeyId, Op, Status, TxnId, ValueId};

impl Meaning<'_> {
    /// A transaction of unknown end counts once a version order shows a value of its, or a counted one read, from another,
    /// what only it can have left: a value, or a key without a row.
    pub(super) fn count_observed(&mut self, unsure: &FxHashMap<ValueId, Vec<TxnId>>) {
        let history = self.history;
        let is_unsure = |&(txn, _): &(TxnId, ValueId)| history.status(txn) == Status::Unknown;
        let deleted = self.traces.deletes.iter();
        let deleted = deleted.filter(|(_, deletes)| deletes.iter().any(is_unsure));
        let deleted: Vec<KeyId> = deleted.map(|(&key, _)| key).collect();
        let counted = history.txns().filter(|txn| self.traces.counts[txn.index()]);
        let mut fresh: Vec<TxnId> = counted.collect();
        for value in history
            .version_orders()
            .iter()
            .flat_map(|order| &order.values)
        {
            for &txn in unsure.get(value).into_iter().flatten() {
                self.count(txn, &mut fresh);
            }
        }
        while let Some(txn) = fresh.pop() {
            for writer in self.shown_by(txn, unsure, &deleted) {
                if history.status(writer) == Status::Unknown {
                    self.count(writer, &mut fresh);
                }
            }
        }
    }

    /// The transactions that one's external reads leave no doubt about.
    fn shown_by(
        &self,
        reader: TxnId,
        unsure: &FxHashMap<ValueId, Vec<TxnId>>,
        deleted: &[KeyId],
    ) -> Vec<TxnId> {
        let history = self.history;
        let mut own: Vec<KeyId> = Vec::new();
        let mut shown = Vec::new();
        for &op in history.ops(reader) {
            if let (true, Some(key)) = (op.is_write(), op.key()) {
                own.push(key);
                continue;
            }
            if let Op::ReadList { list, .. } = op {
                for item in history.list(list) {
                    let unsure = unsure.get(item).map_or(&[][..], Vec::as_slice);
                    let mut others = unsure.iter().filter(|&&txn| txn != reader);
                    shown.extend(others.next().filter(|_| others.next().is_none()));
                }
                continue;
            }
            let is_external = |key: KeyId| !own.contains(&key);
            for value in read_by(history, &op) {
                let key = history.value_key(value);
                let seen = sight(history, op, key).filter(|_| is_external(key));
                if let Some(seen @ Sight::Values(_)) = seen {
                    shown.extend(self.version_seen(reader, key, &seen).flatten());
                }
            }
            for &key in deleted.iter().filter(|&&key| is_external(key)) {
                if let Some(seen @ Sight::Nothing { .. }) = sight(history, op, key) {
                    shown.extend(self.version_seen(reader, key, &seen).flatten());
                }
            }
        }
        shown
    }

    fn count(&mut self, txn: TxnId, fresh: &mut Vec<TxnId>) {
        if !std::mem::replace(&mut self.traces.counts[txn.index()], true) {
            fresh.push(txn);
        }
    }
}
