//! Transactions whose later steps depend on what the earlier ones read.

use std::collections::VecDeque;

use crate::store::{ClientTransaction, Key, TxnStep};

/// What to do with the number beside a value that was read: plans further steps.
type Then = Box<dyn FnOnce(i64, &mut PlannedSteps) + Send>;

/// Steps in the order in which they were planned; a read may plan more when it is done.
#[derive(Default)]
pub(super) struct PlannedSteps {
    steps: VecDeque<(TxnStep, Option<Then>)>,
    then: Option<Then>,
}

impl PlannedSteps {
    pub(super) fn read(&mut self, key: Key) {
        self.steps.push_back((TxnStep::Read(key), None));
    }

    pub(super) fn read_then(
        &mut self,
        key: Key,
        then: impl FnOnce(i64, &mut PlannedSteps) + Send + 'static,
    ) {
        self.steps
            .push_back((TxnStep::Read(key), Some(Box::new(then))));
    }

    pub(super) fn write(&mut self, key: Key, beside: i64) {
        self.steps.push_back((TxnStep::Write(key, beside), None));
    }

    /// Reads a key and then writes it, with another number beside.
    pub(super) fn update(&mut self, key: Key, change: impl FnOnce(i64) -> i64 + Send + 'static) {
        self.read_then(key, move |beside, plan| plan.write(key, change(beside)));
    }
}

impl ClientTransaction for PlannedSteps {
    fn next(&mut self, read: i64) -> Option<TxnStep> {
        if let Some(then) = self.then.take() {
            then(read, self);
        }
        let (step, then) = self.steps.pop_front()?;
        self.then = then;
        Some(step)
    }
}

/// A key of one of a schema's tables.
pub(super) fn row(table: u8, id: i64) -> Key {
    (Key::from(table) << 48) | id
}
