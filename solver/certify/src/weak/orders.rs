//! Further conditions on an order of commits: the lists that were read, the version orders that came with the history, and the
//! user's assumptions.

use rustc_hash::FxHashMap;

use super::WeakReplay;
use crate::assumed::{check_edges, check_keys};
use kingsnake_history::model::{History, KeyId, Op, TxnId, ValueId};

/// What transactions append to a key, one after the other.
struct Appended {
    start: Vec<u32>,
    all: Vec<(ValueId, TxnId)>,
}

impl Appended {
    /// What the transactions of an order append.
    fn of(history: &History, order: &[TxnId]) -> Self {
        let mut start = vec![0_u32; history.n_keys() + 1];
        for_each_append(history, order, |key, _, _| start[key.index() + 1] += 1);
        for key in 0..history.n_keys() {
            start[key + 1] += start[key];
        }
        let mut next = start.clone();
        let mut all = vec![(ValueId(0), TxnId(0)); start[history.n_keys()] as usize];
        for_each_append(history, order, |key, value, txn| {
            let at = &mut next[key.index()];
            all[*at as usize] = (value, txn);
            *at += 1;
        });
        Appended { start, all }
    }

    fn to(&self, key: KeyId) -> &[(ValueId, TxnId)] {
        let at = |index: usize| self.start[index] as usize;
        &self.all[at(key.index())..at(key.index() + 1)]
    }
}

fn for_each_append(
    history: &History,
    order: &[TxnId],
    mut each: impl FnMut(KeyId, ValueId, TxnId),
) {
    for &txn in order {
        for &op in history.ops(txn) {
            if let Op::Append { key, value } = op {
                each(key, value, txn);
            }
        }
    }
}

/// Every list that was read must be the appends of the order, up to the end of some transaction's.
pub(super) fn check_lists(history: &History, order: &[TxnId]) -> Result<(), String> {
    if history.n_lists() == 0 {
        return Ok(());
    }
    let appended = Appended::of(history, order);
    let mut own: FxHashMap<KeyId, usize> = FxHashMap::default();
    for &txn in order {
        own.clear();
        for &op in history.ops(txn) {
            match op {
                Op::Append { key, .. } => *own.entry(key).or_default() += 1,
                Op::ReadList { key, list } => {
                    let n_own = own.get(&key).copied().unwrap_or(0);
                    let items = history.list(list);
                    let before = &items[..items.len().saturating_sub(n_own)];
                    if !is_state(before, appended.to(key)) {
                        let name = history.txn_name(txn);
                        return Err(format!(
                            "transaction {name} read a list that is not of this order"
                        ));
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}

impl WeakReplay<'_> {
    /// The user's assumptions must hold in the order.
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
