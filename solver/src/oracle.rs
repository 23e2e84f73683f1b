//! Decides small histories by trying every order and replaying every operation, straight from the definitions.
//!
//! It is there for tests, and for deciding small cores again. It shares nothing with resolve, polygraph and prune: there are
//! no versions and no edges here, only a store that is written and read literally.
//!
//! SER: some order of the committed transactions exists in which every read returns what the store holds. SI: some order of
//! begins and commits exists in which every transaction reads from the store as it was at its begin, plus its own
//! writes, and no two writers of a key overlap. Once the *commits* are ordered, nothing ties one begin to another, so it
//! is enough to order the commits and to look for a place for each begin by itself. SER is the case in which each begin
//! comes directly before its commit.
//!
//! A transaction whose end is unknown may be left out or put anywhere. A version order that came with the history must
//! be a subsequence of what is installed: every value that it lists is installed, in that order; the initial value may lead.

use crate::level::{Model, Spec};
use crate::model::{History, KeyId, Op, Status, TxnId, ValueId};

/// The most transactions, aborted ones aside, that [`holds`] decides.
pub const MAX_TXNS: usize = 8;

/// Whether the history satisfies the level; `None` if it has more than [`MAX_TXNS`] transactions that are not aborted.
///
/// A history without times satisfies every real-time order.
pub fn holds(history: &History, spec: Spec) -> Option<bool> {
    let txns: Vec<TxnId> = history
        .txns()
        .filter(|&txn| history.status(txn) != Status::Aborted)
        .collect();
    if txns.len() > MAX_TXNS {
        return None;
    }
    let mut search = Search::new(history, spec, txns);
    Some(search.extend(0))
}

/// A set of transactions, by their place in [`Search::txns`].
type Set = u32;

/// What one key holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Cell {
    /// The value written last; `None` is the initial state.
    written: Option<ValueId>,
    /// What was appended since.
    appended: Vec<ValueId>,
}

/// The state of the database after some commits.
#[derive(Clone, Debug, Default)]
struct Store {
    cells: Vec<Cell>,
    /// How much of each version order has been installed.
    installed: Vec<usize>,
}

/// A search for an order of commits, depth first: a prefix that cannot be replayed is given up at once.
struct Search<'h> {
    history: &'h History,
    model: Model,
    txns: Vec<TxnId>,
    /// Those that must take part.
    committed: Set,
    /// Those that have to commit before each one begins, if they take part.
    before: Vec<Set>,
    /// Those that write a key which each one writes too.
    conflicts: Vec<Set>,
    /// The commits so far, first to last.
    order: Vec<usize>,
    /// The store after each prefix of `order`; longer than it, to reuse the memory.
    stores: Vec<Store>,
    scratch: Vec<Cell>,
}

impl<'h> Search<'h> {
    fn new(history: &'h History, spec: Spec, txns: Vec<TxnId>) -> Self {
        let of = |test: &dyn Fn(TxnId) -> bool| -> Set {
            let members = txns.iter().enumerate().filter(|&(_, &txn)| test(txn));
            members.map(|(place, _)| 1 << place).sum()
        };
        let precedes = |a: TxnId, b: TxnId| {
            let session = spec.session_order && history.session(a) == history.session(b) && a < b;
            let time = spec.real_time && history.interval(a).commit < history.interval(b).begin;
            a != b && (session || time)
        };
        let conflict =
            |a: TxnId, b: TxnId| a != b && written(history, a).any(|key| writes(history, b, key));
        let empty = Store {
            cells: vec![Cell::default(); history.n_keys()],
            installed: history
                .version_orders()
                .iter()
                .map(|order| skip_initial(history, &order.values))
                .collect(),
        };
        Search {
            history,
            model: spec.model,
            committed: of(&|txn| history.status(txn) == Status::Committed),
            before: txns.iter().map(|&b| of(&|a| precedes(a, b))).collect(),
            conflicts: txns.iter().map(|&b| of(&|a| conflict(a, b))).collect(),
            order: Vec::with_capacity(txns.len()),
            stores: vec![empty; txns.len() + 1],
            scratch: Vec::new(),
            txns,
        }
    }

    /// Whether the order, which consists of the transactions in `placed`, can be completed.
    fn extend(&mut self, placed: Set) -> bool {
        if placed & self.committed == self.committed && self.versions_are_installed() {
            return true;
        }
        for next in 0..self.txns.len() {
            if placed & (1 << next) != 0 || !self.may_follow(next, placed) || !self.replay(next) {
                continue;
            }
            self.commit(next);
            if self.extend(placed | 1 << next) {
                return true;
            }
            self.order.pop();
        }
        false
    }

    /// Whether the order relations let a transaction commit after those in `placed`.
    /// One of unknown end that has been overtaken by a successor is thereby left out for good.
    fn may_follow(&self, next: usize, placed: Set) -> bool {
        let missing = self.before[next] & self.committed & !placed;
        let overtaken = self
            .order
            .iter()
            .any(|&other| self.before[other] & (1 << next) != 0);
        missing == 0 && !overtaken
    }

    /// Whether some allowed begin explains all that the transaction read, were it to commit next.
    fn replay(&mut self, next: usize) -> bool {
        let n_commits = self.order.len();
        let earliest = match self.model {
            Model::Ser => n_commits,
            Model::Si => {
                let awaited = self.before[next] | self.conflicts[next];
                let last = self
                    .order
                    .iter()
                    .rposition(|&other| awaited & (1 << other) != 0);
                last.map_or(0, |position| position + 1)
            }
        };
        (earliest..=n_commits)
            .rev()
            .any(|begin| self.reads_match(next, begin))
    }

    /// Runs a transaction on the store as it was after `begin` commits; whether its reads return what they returned.
    fn reads_match(&mut self, txn: usize, begin: usize) -> bool {
        let history = self.history;
        self.scratch.clone_from(&self.stores[begin].cells);
        for &op in history.ops(self.txns[txn]) {
            let cell = &mut self.scratch[op.key().index()];
            let matches = match op {
                Op::Read { value, .. } => {
                    cell.appended.is_empty()
                        && match cell.written {
                            None => history.is_initial(value),
                            Some(written) => written == value,
                        }
                }
                Op::ReadList { list, .. } => {
                    cell.written.is_none() && cell.appended == history.list(list)
                }
                Op::Write { .. } | Op::Append { .. } => {
                    cell.install(op);
                    true
                }
            };
            if !matches {
                return false;
            }
        }
        true
    }

    /// Installs a transaction's writes.
    fn commit(&mut self, txn: usize) {
        let history = self.history;
        let n_commits = self.order.len();
        let (past, future) = self.stores.split_at_mut(n_commits + 1);
        let store = &mut future[0];
        store.cells.clone_from(&past[n_commits].cells);
        store.installed.clone_from(&past[n_commits].installed);
        for &op in history.ops(self.txns[txn]) {
            let (Op::Write { key, value } | Op::Append { key, value }) = op else {
                continue;
            };
            store.cells[key.index()].install(op);
            for (order, installed) in history.version_orders().iter().zip(&mut store.installed) {
                if order.values.get(*installed) == Some(&value) {
                    *installed += 1;
                }
            }
        }
        self.order.push(txn);
    }

    fn versions_are_installed(&self) -> bool {
        let installed = self.stores[self.order.len()].installed.iter();
        let mut orders = self.history.version_orders().iter().zip(installed);
        orders.all(|(order, &installed)| installed == order.values.len())
    }
}

impl Cell {
    fn install(&mut self, op: Op) {
        match op {
            Op::Write { value, .. } => {
                self.written = Some(value);
                self.appended.clear();
            }
            Op::Append { value, .. } => self.appended.push(value),
            Op::Read { .. } | Op::ReadList { .. } => {}
        }
    }
}

/// The keys that a transaction writes or appends to.
fn written(history: &History, txn: TxnId) -> impl Iterator<Item = KeyId> + '_ {
    history
        .ops(txn)
        .iter()
        .filter(|op| op.is_write())
        .map(|op| op.key())
}

fn writes(history: &History, txn: TxnId, key: KeyId) -> bool {
    written(history, txn).any(|other| other == key)
}

/// How many values at the head of a version order are the initial one.
fn skip_initial(history: &History, values: &[ValueId]) -> usize {
    values
        .iter()
        .take_while(|&&value| history.is_initial(value))
        .count()
}
