//! Shrinks a violated history: removes sessions, transactions and operations as long as the same anomaly remains.
//!
//! Delta debugging by complements (Zeller and Hildebrandt, 2002), starting from the transactions of the counterexample
//! if these alone show the anomaly. Invariant: every history that is kept was written in our format, read again, and
//! found violated by a check whose counterexample was checked again.

mod orphans;
#[cfg(test)]
mod tests;

use kingsnake_datasets::{Format, kingsnake_bytes, read_bytes};
use kingsnake_history::budget::{Budget, StopReason};
use kingsnake_history::model::{History, Op, SessionId, TxnId, TxnPiece};
use kingsnake_solver::check::CheckError;

use crate::checker::{Checker, Error};
use crate::verdict::{Verdict, Violation};
use orphans::Writers;

/// A smaller history with the same anomaly, from [`Checker::shrink`].
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The smallest history found.
    pub history: History,
    /// The anomaly, as [`Violation::anomaly`] names it.
    pub anomaly: String,
    /// Number of histories checked.
    pub n_checks: usize,
    /// The limit that ended the search, if one did; otherwise no transaction and no operation can be removed.
    pub stopped: Option<StopReason>,
}

/// The result of [`Checker::shrink`].
#[derive(Clone, Debug)]
pub enum ShrinkAnswer {
    /// The history is violated; a part of it shows the anomaly.
    Shrunk(Box<Shrunk>),
    /// The history satisfies the level, so there is nothing to shrink.
    Satisfied,
    /// Whether it does is unknown, and why.
    Unknown(StopReason),
}

/// Listens to shrinking: to every check, and every smaller history.
pub trait ShrinkListener {
    /// The best history so far, and how many histories were checked.
    fn smaller(&mut self, history: &History, n_checks: usize);
}

impl<F: FnMut(&History, usize)> ShrinkListener for F {
    fn smaller(&mut self, history: &History, n_checks: usize) {
        self(history, n_checks);
    }
}

/// The unit of removal.
#[derive(Clone, Copy)]
enum Unit {
    Session,
    Txn,
    Piece,
}

pub(crate) fn shrink(
    checker: &mut Checker,
    history: &History,
    budget: &Budget,
    listener: &mut dyn ShrinkListener,
) -> Result<ShrinkAnswer, Error> {
    let violation = match checker.check_within(history, budget)? {
        Verdict::Violated(violation) => violation,
        Verdict::Satisfied(_) => return Ok(ShrinkAnswer::Satisfied),
        Verdict::Unknown(reason) => return Ok(ShrinkAnswer::Unknown(reason)),
    };
    let mut search = Search {
        checker,
        budget,
        listener,
        anomaly: violation.anomaly(),
        best: history.clone(),
        n_checks: 1,
    };
    let stopped = match search.run(&violation) {
        Ok(()) => None,
        Err(End::Stopped(reason)) => Some(reason),
        Err(End::Failed(error)) => return Err(error),
    };
    Ok(ShrinkAnswer::Shrunk(Box::new(Shrunk {
        history: search.best,
        anomaly: search.anomaly,
        n_checks: search.n_checks,
        stopped,
    })))
}

/// Why a search ends before its result is minimal.
enum End {
    Stopped(StopReason),
    /// An internal error, which must be reported.
    Failed(Error),
}

impl From<StopReason> for End {
    fn from(reason: StopReason) -> Self {
        End::Stopped(reason)
    }
}

struct Search<'s> {
    checker: &'s mut Checker,
    budget: &'s Budget,
    listener: &'s mut dyn ShrinkListener,
    anomaly: String,
    best: History,
    n_checks: usize,
}

impl Search<'_> {
    fn run(&mut self, violation: &Violation<'_>) -> Result<(), End> {
        let named = violation.txns();
        let sources = with_sources(violation.history, &named);
        if !self.try_txns(&named)? {
            self.try_txns(&sources)?;
        }
        self.reduce(Unit::Session)?;
        // A transaction without its removed operations may be unnecessary.
        loop {
            self.reduce(Unit::Txn)?;
            if !self.reduce(Unit::Piece)? {
                return Ok(());
            }
        }
    }

    /// Tries these transactions of the history alone.
    fn try_txns(&mut self, kept: &[TxnId]) -> Result<bool, End> {
        if kept.len() == self.best.n_txns() {
            return Ok(false);
        }
        let removed: Vec<TxnId> = self.best.txns().filter(|it| !kept.contains(it)).collect();
        self.try_without(|piece| removed.binary_search(&piece.txn).is_ok(), &removed)
    }

    /// Removes what it can: halves, quarters and so on, then single pieces until none can be removed. Returns whether anything was.
    fn reduce(&mut self, unit: Unit) -> Result<bool, End> {
        let (mut size, mut changed) = (self.count(unit).div_ceil(2), false);
        while size > 0 {
            let (mut at, mut removed) = (0, false);
            while at < self.count(unit) {
                if self.try_without_units(unit, at, size)? {
                    removed = true;
                } else {
                    at += size;
                }
            }
            changed |= removed;
            size = if size == 1 {
                usize::from(removed)
            } else {
                size.div_ceil(2)
            };
        }
        Ok(changed)
    }

    fn count(&self, unit: Unit) -> usize {
        match unit {
            Unit::Session => self.best.n_sessions(),
            Unit::Txn => self.best.n_txns(),
            Unit::Piece => self.best.pieces().len(),
        }
    }

    fn try_without_units(&mut self, unit: Unit, at: usize, size: usize) -> Result<bool, End> {
        let units = at..(at + size).min(self.count(unit));
        let removed: Vec<TxnId> = match unit {
            Unit::Session => units
                .flat_map(|it| self.best.session_txns(SessionId(it as u32)))
                .map(TxnId)
                .collect(),
            Unit::Txn => units.map(|it| TxnId(it as u32)).collect(),
            Unit::Piece => {
                let pieces = self.best.pieces();
                let removed = &pieces[units];
                return self.try_without(|piece| removed.contains(piece), &[]);
            }
        };
        self.try_without(|piece| removed.binary_search(&piece.txn).is_ok(), &removed)
    }

    /// Keeps the history without these pieces and transactions, if it shows the same anomaly.
    fn try_without(
        &mut self,
        is_asked: impl Fn(&TxnPiece) -> bool,
        txns: &[TxnId],
    ) -> Result<bool, End> {
        self.budget.check()?;
        let candidate = without(&self.best, is_asked, txns);
        let Some(candidate) = candidate.filter(|it| it.n_txns() > 0) else {
            return Ok(false);
        };
        self.n_checks += 1;
        let is_same = match self.checker.check_within(&candidate, self.budget) {
            Ok(Verdict::Violated(violation)) => violation.anomaly() == self.anomaly,
            Err(error @ Error::Check(CheckError::Uncertified { .. })) => {
                return Err(End::Failed(error));
            }
            // A part may lack what the level needs, such as times.
            Ok(Verdict::Satisfied(_) | Verdict::Unknown(_)) | Err(_) => false,
        };
        self.budget.check()?;
        if is_same {
            self.listener.smaller(&candidate, self.n_checks);
            self.best = candidate;
        }
        Ok(is_same)
    }
}

/// The history without these pieces, these transactions and everything that depends on them, as it is read from a file.
fn without(
    history: &History,
    is_asked: impl Fn(&TxnPiece) -> bool,
    txns: &[TxnId],
) -> Option<History> {
    let pieces = history.pieces();
    let writers = Writers::new(history, &pieces);
    let mut is_removed: Vec<bool> = pieces.iter().map(is_asked).collect();
    writers.remove_orphans(&mut is_removed);
    let part = history.part(
        &pieces,
        |txn| txns.binary_search(&txn).is_err(),
        |piece| !is_removed[piece],
        |item| writers.is_gone(item, &is_removed),
    );
    let mut text = Vec::new();
    kingsnake_bytes(&part, &mut text).ok()?;
    let mut read = read_bytes(Format::Kingsnake, &text, "part").ok()?.history;
    if !part.models().is_empty() {
        let model = |_: &History, txn| Ok::<_, std::convert::Infallible>(part.model(txn));
        read.set_models(model).ok()?;
    }
    Some(read)
}

/// These transactions and all that they read from, transitively, sorted.
fn with_sources(history: &History, txns: &[TxnId]) -> Vec<TxnId> {
    let mut writers = vec![Vec::new(); history.n_values()];
    for txn in history.txns() {
        for op in history.ops(txn) {
            if let Op::Write { value, .. } | Op::Append { value, .. } = op {
                writers[value.index()].push(txn);
            }
        }
    }
    let mut is_found = vec![false; history.n_txns()];
    let mut open = txns.to_vec();
    while let Some(txn) = open.pop() {
        if std::mem::replace(&mut is_found[txn.index()], true) {
            continue;
        }
        for &op in history.ops(txn) {
            let values = match &op {
                Op::Read { value, .. } => std::slice::from_ref(value),
                Op::ReadList { list, .. } => history.list(*list),
                Op::Range { range } => history.range(*range).rows,
                Op::Write { .. } | Op::Append { .. } => &[],
            };
            open.extend(values.iter().flat_map(|it| &writers[it.index()]));
        }
    }
    history.txns().filter(|it| is_found[it.index()]).collect()
}
