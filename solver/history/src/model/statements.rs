//! Which operations and conditions of a transaction belong to one statement: the rows that a condition returned or
//! changed belong to its statement.

use super::{History, TxnId};

/// The statements of a transaction, numbered in program order. A read is named by its operation, or, of a row that a condition
/// looked at and did not return, by the number of operations and the place of the condition among the transaction's.
#[derive(Clone, Debug, Default)]
pub struct Statements {
    n_ops: usize,
    /// Empty where every operation is a statement of its own, by its own number.
    of_op: Vec<u32>,
    of_predicate: Vec<u32>,
}

impl History {
    /// The statements of a transaction.
    pub fn statements(&self, txn: TxnId) -> Statements {
        let n_ops = self.ops(txn).len();
        let predicates = self.predicates(txn);
        if predicates.len() == 0 {
            return Statements {
                n_ops,
                ..Statements::default()
            };
        }
        let mut of_op = vec![0; n_ops];
        let mut of_predicate = Vec::with_capacity(predicates.len());
        let (mut next, mut at) = (0, 0);
        for predicate in predicates {
            let start = (predicate.at as usize).clamp(at, n_ops);
            for op in &mut of_op[at..start] {
                *op = next;
                next += 1;
            }
            let end = (start + predicate.n_ops as usize).min(n_ops);
            of_op[start..end].fill(next);
            of_predicate.push(next);
            next += 1;
            at = end;
        }
        for op in &mut of_op[at..] {
            *op = next;
            next += 1;
        }
        Statements {
            n_ops,
            of_op,
            of_predicate,
        }
    }
}

impl Statements {
    /// The statement of a read.
    pub fn of(&self, read: usize) -> usize {
        match self.condition(read) {
            Some(nth) => self.of_predicate.get(nth).map_or(0, |&it| it as usize),
            None => self.of_op.get(read).map_or(read, |&it| it as usize),
        }
    }

    /// The condition that made a read of a row that it did not return, by its place.
    pub fn condition(&self, read: usize) -> Option<usize> {
        read.checked_sub(self.n_ops)
    }

    /// The name of a read of a row that a condition did not return.
    pub fn read_by(&self, nth: usize) -> usize {
        self.n_ops + nth
    }
}
