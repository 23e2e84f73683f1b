//! Transactions whose later steps depend on what the earlier ones read.

use std::collections::VecDeque;

pub(super) use crate::store::key as row;
use crate::store::{Cells, ClientTransaction, Key, TxnStep};

/// What to do with the number beside a value that was read, or with the rows that were: plans further steps.
enum Then {
    Number(Box<OfNumber>),
    Rows(Box<OfRows>),
}

type OfNumber = dyn FnOnce(i64, &mut PlannedSteps) + Send;
type OfRows = dyn FnOnce(&[Cells], &mut PlannedSteps) + Send;

/// Steps in the order in which they were planned; a read may plan more when it is done.
#[derive(Default)]
pub(super) struct PlannedSteps {
    kind: &'static str,
    steps: VecDeque<(TxnStep, Option<Then>)>,
    then: Option<Then>,
    /// The rows of tables that the last step read.
    rows: Vec<Cells>,
}

impl PlannedSteps {
    /// No steps yet, of a transaction of one of the workload's kinds.
    pub(super) fn of(kind: &'static str) -> Self {
        PlannedSteps {
            kind,
            ..PlannedSteps::default()
        }
    }

    pub(super) fn read(&mut self, key: Key) {
        self.steps.push_back((TxnStep::Read(key), None));
    }

    pub(super) fn read_then(
        &mut self,
        key: Key,
        then: impl FnOnce(i64, &mut PlannedSteps) + Send + 'static,
    ) {
        self.number_then(TxnStep::Read(key), then);
    }

    /// A step that reads a number, and what to do with it.
    pub(super) fn number_then(
        &mut self,
        step: TxnStep,
        then: impl FnOnce(i64, &mut PlannedSteps) + Send + 'static,
    ) {
        let then = Then::Number(Box::new(then));
        self.steps.push_back((step, Some(then)));
    }

    /// A step on tables, and what to do with the rows that it read.
    pub(super) fn rows_then(
        &mut self,
        step: TxnStep,
        then: impl FnOnce(&[Cells], &mut PlannedSteps) + Send + 'static,
    ) {
        let then = Then::Rows(Box::new(then));
        self.steps.push_back((step, Some(then)));
    }

    /// A step on tables.
    pub(super) fn step(&mut self, step: TxnStep) {
        self.steps.push_back((step, None));
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
        let rows = std::mem::take(&mut self.rows);
        match self.then.take() {
            Some(Then::Number(then)) => then(read, self),
            Some(Then::Rows(then)) => then(&rows, self),
            None => {}
        }
        let (step, then) = self.steps.pop_front()?;
        self.then = then;
        Some(step)
    }

    fn kind(&self) -> &'static str {
        self.kind
    }

    fn rows(&mut self, rows: &[Cells]) {
        self.rows = rows.to_vec();
    }
}
