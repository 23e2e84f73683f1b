//! A client: runs one transaction after the other, a step at a time, and retries what was aborted.
//!
//! A transaction is a function of its client's stream of random numbers, so trying again runs the same one, and the mix of
//! a workload is the mix of what commits.

use kingsnake_history::rng::Rng;

use super::engine::{Open, Store};
use super::isolation::IsolationMix;
use super::{ClientTransaction, TxnStep};
use crate::workloads::{Workload, WorkloadKind};

pub(super) struct Client<'w> {
    id: usize,
    workload: &'w dyn Workload,
    /// What its transactions ask for, if each asks for its own.
    mix: Option<&'w IsolationMix>,
    /// The percentage of attempts that roll back by themselves.
    rollbacks: usize,
    rng: Rng,
    current: Option<Current>,
    /// Where the stream stood before the transaction that is to be tried again.
    again: Option<Rng>,
}

struct Current {
    open: Open,
    transaction: Box<dyn ClientTransaction>,
    read: i64,
    from: Rng,
}

impl<'w> Client<'w> {
    pub(super) fn new(
        id: usize,
        workload: &'w dyn Workload,
        mix: Option<&'w IsolationMix>,
        rollbacks: usize,
        seed: u64,
    ) -> Self {
        // The streams of neighbouring clients must not be shifted copies of each other.
        let mut mixed = Rng::new(seed ^ (id as u64 + 1).wrapping_mul(0xd134_2543_de82_ef95));
        Client {
            id,
            workload,
            mix,
            rollbacks,
            rng: Rng::new(mixed.number()),
            current: None,
            again: None,
        }
    }

    /// Does one thing: begins, reads, writes, or ends. False when there is nothing left to do.
    pub(super) fn step(&mut self, store: &mut Store) -> bool {
        let Some(mut current) = self.current.take() else {
            return self.begin(store);
        };
        match current.transaction.next(current.read) {
            Some(step) => {
                let kind = self.workload.kind();
                let step = store.placed(&mut current.open, kind, step);
                let is_table = kind == WorkloadKind::Table;
                let (open, transaction) = (&mut current.open, &mut *current.transaction);
                current.read = act(store, open, step, is_table, transaction);
                self.current = Some(current);
            }
            None => self.end(store, current),
        }
        true
    }

    /// Whether the last step was the begin of a transaction.
    pub(super) fn has_just_begun(&self) -> bool {
        let current = self.current.as_ref();
        current.is_some_and(|current| current.open.events.is_empty())
    }

    fn begin(&mut self, store: &mut Store) -> bool {
        let from = match self.again.take() {
            Some(from) => from,
            None if store.left == 0 => return false,
            None => {
                store.left -= 1;
                Rng::new(self.rng.number())
            }
        };
        let mut stream = from.clone();
        let transaction = self.workload.transaction(&mut stream);
        let open = match self.mix {
            Some(mix) => store.begin_at(mix.draw(transaction.kind(), &mut stream)),
            None => store.begin(),
        };
        self.current = Some(Current {
            open,
            transaction,
            read: 0,
            from,
        });
        true
    }

    fn end(&mut self, store: &mut Store, current: Current) {
        let rolls_back = self.rng.chance(self.rollbacks);
        let committed = if rolls_back || store.wears_out(&current.open, self.workload.kind()) {
            store.abort(self.id, current.open);
            false
        } else {
            store.commit(self.id, current.open)
        };
        if !committed {
            self.again = Some(current.from);
        }
    }
}

/// Does a step; the number beside what it read. Rows of tables go to the transaction.
fn act(
    store: &mut Store,
    open: &mut Open,
    step: TxnStep,
    is_table: bool,
    transaction: &mut dyn ClientTransaction,
) -> i64 {
    let rows = match step {
        TxnStep::Read(key) => {
            let beside = store.read(open, key);
            if !is_table {
                return beside;
            }
            if beside == 0 && store.max_writes.is_some() {
                // Rows that get new keys are deleted, and a read of nothing does not say whether it found such a delete.
                open.events.pop();
            }
            store.met.insert(key);
            let row = [*store.cells(beside)];
            let is_there = beside > 0;
            transaction.rows(&row[usize::from(!is_there)..]);
            return row[0][0];
        }
        TxnStep::Aggregate(asked, function, column) => {
            return store.aggregate(open, asked, function, column);
        }
        TxnStep::Select(asked) => store.select(open, asked),
        TxnStep::UpdateWhere(asked, changes) => store.update_where(open, asked, &changes),
        TxnStep::DeleteWhere(asked) => store.delete_where(open, asked),
        other => {
            write(store, open, &other);
            return 0;
        }
    };
    transaction.rows(&rows);
    0
}

/// Does a step that reads no register and no row of a table.
fn write(store: &mut Store, open: &mut Open, step: &TxnStep) {
    match *step {
        TxnStep::Write(key, beside) => store.write(open, key, beside),
        TxnStep::ReadList(key) => store.read_list(open, key),
        TxnStep::Append(key) => store.append(open, key),
        TxnStep::ReadRow(key) => store.read_row(open, key),
        TxnStep::Insert(key) => store.insert(open, key),
        TxnStep::Delete(key) => store.delete(open, key),
        TxnStep::Range(low, high) => store.range(open, low, high),
        TxnStep::Put(key, cells, is_insert) => store.put(open, key, cells, is_insert),
        TxnStep::Read(_)
        | TxnStep::Select(_)
        | TxnStep::UpdateWhere(..)
        | TxnStep::DeleteWhere(_)
        | TxnStep::Aggregate(..) => {}
    }
}
