//! Histories of stores that show a transaction none of its own writes: the writes of each transaction are put after its
//! reads, which is when such a store applies them.

use super::history::{History, Op};
use super::ids::TxnId;
use super::predicates::Act;

impl History {
    /// Assumes that no transaction sees its own writes. The error names a transaction that changes rows by a condition,
    /// which reads and writes at once.
    pub fn hide_own_writes(&mut self) -> Result<(), TxnId> {
        let changes = |act: Act| matches!(act, Act::Update | Act::Delete);
        let mut predicates = self.rows.predicates.iter();
        if let Some(&(txn, _)) = predicates.find(|it| changes(it.1.act)) {
            return Err(txn);
        }
        for txn in (0..self.txns.len() as u32).map(TxnId) {
            let row = &self.txns[txn.index()];
            self.defer_writes(txn, row.ops_start as usize..row.ops_end as usize);
        }
        self.inserts.sort_unstable();
        Ok(())
    }

    fn defer_writes(&mut self, txn: TxnId, range: std::ops::Range<usize>) {
        let ops = self.ops[range.clone()].to_vec();
        if ops.is_sorted_by_key(|op| op.is_write()) {
            return;
        }
        let n_reads = |end: usize| ops[..end].iter().filter(|op| !op.is_write()).count();
        let first = self
            .inserts
            .partition_point(|&at| (at as usize) < range.start);
        let own = self.inserts[first..].iter_mut();
        for insert in own.take_while(|at| (**at as usize) < range.end) {
            let at = *insert as usize - range.start;
            let n_writes_before = at - n_reads(at);
            *insert = (range.start + n_reads(ops.len()) + n_writes_before) as u32;
        }
        let first = self.rows.predicates.partition_point(|it| it.0 < txn);
        let own = self.rows.predicates[first..].iter_mut();
        for (_, predicate) in own.take_while(|it| it.0 == txn) {
            predicate.at = n_reads(predicate.at as usize) as u32;
        }
        // A compare-and-set among others is a read and a write; only a single one is asked about as a whole.
        self.compares.retain(|it| it.txn != txn);
        let (writes, reads): (Vec<Op>, Vec<Op>) = ops.into_iter().partition(|op| op.is_write());
        for (at, op) in reads.into_iter().chain(writes).enumerate() {
            self.ops[range.start + at] = op;
        }
    }
}
