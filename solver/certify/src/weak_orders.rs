//! What else must be so in an order of commits: the lists that were read, the version orders that came with the history, and what the
//! user assumes.

use rustc_hash::FxHashMap;

use super::assumed::{check_edges, check_keys};
use super::weak::Replay;
use kingsnake_history::model::{KeyId, Op, TxnId, ValueId};

impl Replay<'_> {
    /// Every list that was read must be the appends of the order, up to the end of some transaction's.
    pub(super) fn lists(&self) -> Result<(), String> {
        let mut appended: FxHashMap<KeyId, Vec<(ValueId, TxnId)>> = FxHashMap::default();
        for &txn in self.order {
            for &op in self.history.ops(txn) {
                if let Op::Append { key, value } = op {
                    appended.entry(key).or_default().push((value, txn));
                }
            }
        }
        let mut own: FxHashMap<KeyId, usize> = FxHashMap::default();
        for &txn in self.order {
            own.clear();
            for &op in self.history.ops(txn) {
                match op {
                    Op::Append { key, .. } => *own.entry(key).or_default() += 1,
                    Op::ReadList { key, list } => {
                        let mine = own.get(&key).copied().unwrap_or(0);
                        let items = self.history.list(list);
                        let before = &items[..items.len().saturating_sub(mine)];
                        let all = appended.get(&key).map_or(&[][..], Vec::as_slice);
                        if !is_state(before, all) {
                            let name = self.name(txn);
                            return Err(format!("{name} read a list that is not of this order"));
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// What the user assumes must be so in the order.
    pub(super) fn assumptions(&self) -> Result<(), String> {
        let place = |txn: TxnId| self.place[txn.index()] as usize;
        let mut left: FxHashMap<ValueId, usize> = FxHashMap::default();
        if !self.history.key_assumptions().is_empty() {
            for key in (0..self.history.n_keys() as u32).map(KeyId) {
                for &place in self.writers.of_key(key) {
                    let txn = self.order[place as usize - 1];
                    left.extend(self.meaning.left(txn, key).map(|it| (it, place as usize)));
                }
            }
        }
        let counts = |txn: TxnId| place(txn) != 0;
        check_keys(self.history, counts, |value| left.get(&value).copied())?;
        check_edges(self.history, place, place)
    }

    /// The version orders that came with the history must be those of the order.
    pub(super) fn version_orders(&self) -> Result<(), String> {
        for order in self.history.version_orders() {
            let mut installed: FxHashMap<ValueId, (u32, usize)> = FxHashMap::default();
            for &place in self.writers.of_key(order.key) {
                let txn = self.order[place as usize - 1];
                let values = self.meaning.installed(txn, order.key).into_iter();
                for (at, value) in values.enumerate() {
                    installed.entry(value).or_insert((place, at));
                }
            }
            let mut last = (0, 0);
            for &place in order.values.iter().filter_map(|it| installed.get(it)) {
                if place < last {
                    let key = self.history.key_name(order.key);
                    return Err(format!("the version order of key {key} is another"));
                }
                last = place;
            }
        }
        Ok(())
    }
}

/// Whether a list is what the first of some transactions appended.
fn is_state(list: &[ValueId], all: &[(ValueId, TxnId)]) -> bool {
    let is_prefix = list.len() <= all.len() && list.iter().zip(all).all(|(item, it)| *item == it.0);
    let is_whole = match (list.len().checked_sub(1), all.get(list.len())) {
        (Some(last), Some(next)) => all.get(last).is_some_and(|last| last.1 != next.1),
        _ => true,
    };
    is_prefix && is_whole
}
