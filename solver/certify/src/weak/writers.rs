//! For each key, the transactions that write it, as the checker of the weak levels looks them up.

use kingsnake_history::model::{History, KeyId, TxnId};

/// Up to this many writers are sorted on one core.
const ALONE: usize = 100_000;

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

    /// The writers of the only key.
    #[cfg(test)]
    pub(super) fn of_one_key(writers: &[u32]) -> Self {
        KeyWriters {
            start: vec![0, writers.len() as u32],
            writers: writers.to_vec(),
        }
    }

    /// The same with other numbers, by which each key's are sorted.
    pub(super) fn renumbered(&self, number: &[u32]) -> Self {
        let mut writers: Vec<u32> = self.writers.clone();
        let n_keys = self.start.len() - 1;
        let middle = self.start[n_keys / 2] as usize;
        let (low, high) = writers.split_at_mut(middle);
        let sort = |first: usize, end: usize, writers: &mut [u32]| {
            for writer in writers.iter_mut() {
                *writer = number[*writer as usize];
            }
            let offset = self.start[first];
            for key in first..end {
                let at = |key: usize| (self.start[key] - offset) as usize;
                writers[at(key)..at(key + 1)].sort_unstable();
            }
        };
        if self.writers.len() < ALONE {
            sort(0, n_keys / 2, low);
            sort(n_keys / 2, n_keys, high);
        } else {
            std::thread::scope(|scope| {
                scope.spawn(|| sort(0, n_keys / 2, low));
                sort(n_keys / 2, n_keys, high);
            });
        }
        KeyWriters {
            start: self.start.clone(),
            writers,
        }
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
