//! The order in which a story lists transactions, and which of two updates was lost: from names, times, version orders
//! and reads, so that the order of a file's lines changes neither.

use std::cmp::Ordering;

use super::{History, KeyId, OrderSource, TxnId, ValueId, compare};

impl History {
    /// The order in which transactions are listed: by begin, by commit, then by name.
    pub fn compare_txns(&self, one: TxnId, other: TxnId) -> Ordering {
        let times = |txn| {
            let interval = self.interval(txn);
            (interval.begin, interval.commit)
        };
        let names = || compare(&self.symbols, self.txn_token(one), self.txn_token(other));
        let by_time = times(one).cmp(&times(other));
        by_time.then_with(names).then_with(|| one.cmp(&other))
    }

    /// Which of two transactions that overwrote one version of a key was itself overwritten by the other: by the
    /// version order, then by later reads of either, then by the commit times. `readers` are the transactions that read
    /// what each left.
    pub fn overwritten(
        &self,
        key: KeyId,
        pair: [TxnId; 2],
        readers: [&[TxnId]; 2],
    ) -> Option<TxnId> {
        let [one, other] = pair;
        let first = self
            .first_listed(key, pair)
            .or_else(|| self.unread_later(pair, readers));
        first.or_else(|| {
            let [a, b] = pair.map(|txn| self.interval(txn).commit);
            match a.cmp(&b) {
                _ if a == i64::MAX || b == i64::MAX => None,
                Ordering::Less => Some(one),
                Ordering::Greater => Some(other),
                Ordering::Equal => None,
            }
        })
    }

    /// The one whose version comes first in a version order given by the database.
    fn first_listed(&self, key: KeyId, pair: [TxnId; 2]) -> Option<TxnId> {
        let [a, b] = pair.map(|txn| self.last_written(txn, key));
        let (a, b) = (a?, b?);
        let orders = self.version_orders().iter();
        let mut orders = orders.filter(|it| it.key == key && it.source == OrderSource::Database);
        orders.find_map(|order| {
            let place = |value: ValueId| order.values.iter().position(|&it| it == value);
            let (a, b) = (place(a)?, place(b)?);
            Some(pair[usize::from(b < a)])
        })
    }

    /// The one whose version was never read again. Where there are times, only reads that began after both commits count, and of several
    /// the last.
    fn unread_later(&self, pair: [TxnId; 2], readers: [&[TxnId]; 2]) -> Option<TxnId> {
        let [a, b] = pair.map(|txn| self.interval(txn).commit);
        let end = a.max(b);
        let last = readers.map(|all| {
            let others = all.iter().filter(|txn| !pair.contains(txn));
            let begins = others.map(|&txn| self.interval(txn).begin);
            begins.filter(|&it| !self.has_times() || it > end).max()
        });
        match last[0].cmp(&last[1]) {
            Ordering::Less => Some(pair[0]),
            Ordering::Greater => Some(pair[1]),
            Ordering::Equal => None,
        }
    }
}
