//! For each key, the transactions that write it, as the checker of the weak levels looks them up.

use kingsnake_history::model::{History, KeyId, TxnId};

/// The writers of every key, each key's in one stretch, in the sequence in which they were given.
pub(super) struct KeyWriters {
    start: Vec<u32>,
    writers: Vec<u32>,
}

impl KeyWriters {
    /// Takes transactions, each with the number by which it is kept.
    pub(super) fn of(history: &History, txns: impl Iterator<Item = (TxnId, u32)> + Clone) -> Self {
        const NOBODY: u32 = u32::MAX;
        let mut start = vec![0_u32; history.n_keys() + 1];
        let mut last = vec![NOBODY; history.n_keys()];
        for_each_key(history, txns.clone(), &mut last, |key, _| {
            start[key.index() + 1] += 1;
        });
        for key in 0..history.n_keys() {
            start[key + 1] += start[key];
        }
        let mut next = start.clone();
        let mut writers = vec![0; start[history.n_keys()] as usize];
        last.fill(NOBODY);
        for_each_key(history, txns, &mut last, |key, number| {
            let at = &mut next[key.index()];
            writers[*at as usize] = number;
            *at += 1;
        });
        KeyWriters { start, writers }
    }

    /// The numbers of the transactions that write a key.
    #[inline]
    pub(super) fn of_key(&self, key: KeyId) -> &[u32] {
        let at = |index: usize| self.start[index] as usize;
        &self.writers[at(key.index())..at(key.index() + 1)]
    }
}

/// Calls back for each key that a transaction writes, once. `last` is who wrote each key last, so far.
fn for_each_key(
    history: &History,
    txns: impl Iterator<Item = (TxnId, u32)>,
    last: &mut [u32],
    mut each: impl FnMut(KeyId, u32),
) {
    for (txn, number) in txns {
        for &op in history.ops(txn) {
            let Some(key) = op.key().filter(|_| op.is_write()) else {
                continue;
            };
            if std::mem::replace(&mut last[key.index()], txn.0) != txn.0 {
                each(key, number);
            }
        }
    }
}
