//! Decides small histories by trying every order and replaying every operation, straight from the definitions.
//!
//! It is there for tests, and for deciding small cores again. It shares nothing with resolve, polygraph and prune: there are
//! no versions and no edges here, only a store that is written and read literally.
//!
//! One search places one commit after the other. What a transaction may have read, were it to commit next, is asked of its level:
//!
//! - SER, SI, PC (`reads_match`): some begin exists at which the store holds what it read. SER: directly before its commit. SI: after
//!   its session and every earlier writer of its keys. PC: after its session. Once the *commits* are ordered, nothing ties one begin to
//!   another. The clock does: where it counts, `timed` tries all orders of begins and commits.
//! - PSI (`visible`): some set of earlier commits, closed under what its members saw, that has its session and every earlier writer of
//!   its keys.
//! - The weak levels, and levels of their own (`sources`): some source of every read that obeys the axiom of Biswas and Enea.
//!
//! A transaction whose end is unknown may be left out or put anywhere. A version order that came with the history must
//! be a subsequence of what is installed: every value that it lists is installed, in that order; the initial value may
//! lead. A transaction installs one version of a register, its last write. A listed value that its writer overwrote
//! has no place in the order, but shows that its writer committed. Of a list, every append has its place.

mod sources;
mod timed;
mod visible;
pub mod weak;

use std::ops::{Bound, RangeBounds};

use timed::Timed;

use kingsnake_history::level::{Model, Spec};
use kingsnake_history::model::{
    Act, History, KeyId, Op, Predicate, RangeId, Status, Token, TxnId, ValueId,
};

/// Maximum number of transactions, besides aborted ones, that [`holds`] decides.
pub const MAX_TXNS: usize = 8;

/// Maximum number of placements.
const MAX_STEPS: usize = 20_000_000;

/// Whether the history satisfies a level; `None` where there is too much to try, as with more than [`MAX_TXNS`] transactions that are
/// not aborted.
///
/// A history without times satisfies every real-time order.
pub fn holds(history: &History, spec: Spec) -> Option<bool> {
    holds_each(history, spec, &|txn| spec.model_of(history, txn))
}

/// The same where each transaction has the level that `model` gives it; what `spec` says of the order counts.
pub(crate) fn holds_each(
    history: &History,
    spec: Spec,
    model: &dyn Fn(TxnId) -> Model,
) -> Option<bool> {
    let txns: Vec<TxnId> = history
        .txns()
        .filter(|&txn| history.status(txn) != Status::Aborted)
        .collect();
    if txns.len() > MAX_TXNS {
        return None;
    }
    if let Some(real_time) = spec.real_time {
        let is_timed = Model::TIMED.contains(&spec.model);
        return is_timed.then(|| Timed::new(history, spec, real_time, txns).holds());
    }
    let models = txns.iter().map(|&txn| model(txn)).collect();
    let mut search = Search::new(history, spec, txns);
    search.models = models;
    let found = search.extend(0);
    (found || search.n_steps < MAX_STEPS).then_some(found)
}

/// A set of transactions, by their place in [`Search::txns`].
type Set = u32;

/// The state of one key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Content {
    /// The value written last; `None` is the initial state.
    written: Option<ValueId>,
    /// What was appended since.
    appended: Vec<ValueId>,
}

/// The state of the database after some commits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Store {
    cells: Vec<Content>,
    /// The position in each version order.
    n_installed: Vec<usize>,
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
    /// The version orders, without the values that were overwritten at once.
    version_orders: Vec<Vec<ValueId>>,
    /// Those that wrote each value left out there: one must take part.
    overwriters: Vec<Set>,
    /// The commits so far, first to last.
    order: Vec<usize>,
    /// The store after each prefix of `order`; longer than it, to reuse the memory.
    stores: Vec<Store>,
    scratch: Vec<Content>,
    /// The level of each transaction.
    models: Vec<Model>,
    /// What those in the order saw, or read from.
    past: Vec<Set>,
    n_steps: usize,
}

impl<'h> Search<'h> {
    fn new(history: &'h History, spec: Spec, txns: Vec<TxnId>) -> Self {
        let of = |test: &dyn Fn(TxnId) -> bool| -> Set {
            let members = txns.iter().enumerate().filter(|&(_, &txn)| test(txn));
            members.map(|(place, _)| 1 << place).sum()
        };
        let precedes = |a: TxnId, b: TxnId| {
            spec.session_order && history.session(a) == history.session(b) && a < b
        };
        let conflict =
            |a: TxnId, b: TxnId| a != b && written(history, a).any(|key| writes(history, b, key));
        let listed = || {
            let orders = history.version_orders().iter();
            orders.map(|order| listed_after_initial(history, &order.values))
        };
        let version_orders: Vec<Vec<ValueId>> = listed()
            .map(|values| values.iter().copied())
            .map(|values| {
                values
                    .filter(|&value| !is_overwritten(history, value))
                    .collect()
            })
            .collect();
        let overwritten = listed()
            .flatten()
            .filter(|&&value| is_overwritten(history, value));
        let empty = Store {
            cells: vec![Content::default(); history.n_keys()],
            n_installed: vec![0; version_orders.len()],
        };
        Search {
            history,
            model: spec.model,
            committed: of(&|txn| history.status(txn) == Status::Committed),
            before: txns.iter().map(|&b| of(&|a| precedes(a, b))).collect(),
            conflicts: txns.iter().map(|&b| of(&|a| conflict(a, b))).collect(),
            overwriters: overwritten
                .map(|&value| {
                    of(&|txn| installs(history, txn).any(|(op, _)| installs_value(op, value)))
                })
                .collect(),
            version_orders,
            order: Vec::with_capacity(txns.len()),
            stores: vec![empty; txns.len() + 1],
            scratch: Vec::new(),
            models: Vec::new(),
            past: vec![0; txns.len()],
            n_steps: 0,
            txns,
        }
    }

    /// Whether the order, which consists of the transactions in `placed`, can be completed.
    fn extend(&mut self, placed: Set) -> bool {
        if placed & self.committed == self.committed
            && self.is_installed(&self.stores[self.order.len()], placed)
        {
            return true;
        }
        for next in 0..self.txns.len() {
            if placed & (1 << next) != 0 || !self.may_follow(next, placed) {
                continue;
            }
            self.n_steps += 1;
            if self.n_steps >= MAX_STEPS {
                return false;
            }
            for past in self.pasts(next, placed) {
                self.past[next] = past;
                self.commit(next);
                let found = self.extend(placed | 1 << next);
                self.order.pop();
                if found {
                    return true;
                }
            }
        }
        false
    }

    /// What a transaction can have seen, were it to commit next: a set for each way that matters to those that come later.
    fn pasts(&mut self, next: usize, placed: Set) -> Vec<Set> {
        match self.model {
            Model::Ser | Model::Si | Model::Pc => Vec::from_iter(self.replay(next).then_some(0)),
            Model::Psi => self.visible_sets(next, placed),
            _ => self.source_sets(next, placed),
        }
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
        let earliest = if self.model == Model::Ser {
            n_commits
        } else {
            let mut awaited = self.before[next];
            if self.model == Model::Si {
                awaited |= self.conflicts[next];
            }
            let last = self
                .order
                .iter()
                .rposition(|&other| awaited & (1 << other) != 0);
            last.map_or(0, |position| position + 1)
        };
        (earliest..=n_commits)
            .rev()
            .any(|begin| self.reads_match(next, begin))
    }

    /// Runs a transaction on the store as it was after `begin` commits; whether its reads return what they returned.
    fn reads_match(&mut self, txn: usize, begin: usize) -> bool {
        let stores = std::mem::take(&mut self.stores);
        let matches = self.reads_from(&stores[begin], txn);
        self.stores = stores;
        matches
    }

    /// Runs a transaction on a store; whether its reads return what they returned.
    fn reads_from(&mut self, store: &Store, txn: usize) -> bool {
        let history = self.history;
        self.scratch.clone_from(&store.cells);
        let predicates = history.predicates(self.txns[txn]);
        for (at, &op) in history.ops(self.txns[txn]).iter().enumerate() {
            let mut asked = predicates.clone().filter(|it| it.at as usize == at);
            if !asked.all(|predicate| self.is_answered(txn, predicate)) {
                return false;
            }
            let matches = match op {
                Op::Read { key, value } => {
                    let cell = &self.scratch[key.index()];
                    cell.appended.is_empty()
                        && match cell.written {
                            None => history.is_initial(value),
                            Some(written) => {
                                let nothing = history.value_token(value) == Token::Nil;
                                written == value || nothing && history.is_absence(written)
                            }
                        }
                }
                Op::ReadList { key, list } => {
                    let cell = &self.scratch[key.index()];
                    cell.written.is_none() && cell.appended == history.list(list)
                }
                Op::Range { range } => {
                    let mut keys = (0..history.n_keys() as u32).map(KeyId);
                    keys.all(|key| {
                        let written = self.scratch[key.index()].written;
                        shows_row(history, range, key, written)
                    })
                }
                Op::Write { key, .. } | Op::Append { key, .. } => {
                    self.scratch[key.index()].install(op);
                    true
                }
            };
            if !matches {
                return false;
            }
        }
        let end = history.ops(self.txns[txn]).len();
        let mut asked = predicates.filter(|it| it.at as usize == end);
        asked.all(|predicate| self.is_answered(txn, predicate))
    }

    /// Whether a predicate of a transaction returned what the store gives it.
    fn is_answered(&self, txn: usize, predicate: &Predicate) -> bool {
        let held = |key: KeyId| self.scratch[key.index()].written;
        returns(self.history, self.txns[txn], predicate, &held)
    }

    /// Lets a transaction commit next.
    fn commit(&mut self, txn: usize) {
        let n_commits = self.order.len();
        let mut store = std::mem::take(&mut self.stores[n_commits + 1]);
        store.clone_from(&self.stores[n_commits]);
        self.install(&mut store, txn);
        self.stores[n_commits + 1] = store;
        self.order.push(txn);
    }

    /// Installs a transaction's writes.
    fn install(&self, store: &mut Store, txn: usize) {
        for (op, is_final) in installs(self.history, self.txns[txn]) {
            if let Some(key) = op.key() {
                store.cells[key.index()].install(op);
            }
            if !is_final && matches!(op, Op::Write { .. }) {
                continue;
            }
            for (order, n_installed) in self.version_orders.iter().zip(&mut store.n_installed) {
                let next = order.get(*n_installed);
                *n_installed += usize::from(next.is_some_and(|&value| installs_value(op, value)));
            }
        }
    }

    /// Whether a store has seen every version that was listed, and those in `placed` wrote what was overwritten at once.
    fn is_installed(&self, store: &Store, placed: Set) -> bool {
        let n_installed = store.n_installed.iter();
        let mut orders = self.version_orders.iter().zip(n_installed);
        orders.all(|(order, &n)| n == order.len())
            && self.overwriters.iter().all(|&set| set & placed != 0)
    }
}

impl Content {
    fn install(&mut self, op: Op) {
        match op {
            Op::Write { value, .. } => {
                self.written = Some(value);
                self.appended.clear();
            }
            Op::Append { value, .. } => self.appended.push(value),
            Op::Read { .. } | Op::ReadList { .. } | Op::Range { .. } => {}
        }
    }
}

/// The row of a key in which this was written; `None` is the initial state.
fn row(history: &History, written: Option<ValueId>, key: KeyId) -> Option<ValueId> {
    written.or_else(|| {
        let mut values = (0..history.n_values() as u32).map(ValueId);
        values.find(|&it| {
            history.is_initial(it) && history.value_key(it) == key && !history.is_absence(it)
        })
    })
}

/// Whether a predicate chose exactly the rows that satisfy its condition, where `written` is in each key; an aggregate, whether its
/// result is theirs.
fn returns(
    history: &History,
    txn: TxnId,
    predicate: &Predicate,
    written: &dyn Fn(KeyId) -> Option<ValueId>,
) -> bool {
    let table = history.queries()[predicate.query as usize].table;
    let keys = (0..history.n_keys() as u32).map(KeyId);
    let keys = keys.filter(|&key| history.table_of(key) == Some(table));
    let rows = keys.filter_map(|key| row(history, written(key), key));
    let chosen: Vec<ValueId> = rows
        .filter(|&value| history.satisfies(predicate.query, value))
        .collect();
    if let Act::Aggregate {
        function,
        column,
        result,
    } = predicate.act
    {
        let cells = chosen.iter().map(|&value| match column {
            None => Token::Int(1),
            Some(column) => history.cell(value, column),
        });
        return function.apply(history.symbols(), cells) == Some(result);
    }
    let start = predicate.at as usize;
    let ops = &history.ops(txn)[start..start + predicate.n_ops as usize];
    let returned = |key: KeyId| ops.iter().any(|op| op.key() == Some(key));
    let is_chosen = |key: KeyId| chosen.iter().any(|&it| history.value_key(it) == key);
    chosen.iter().all(|&it| returned(history.value_key(it)))
        && ops.iter().filter_map(|op| op.key()).all(is_chosen)
}

/// Whether a range query may return what it did of a key in which this was written: its row, and nothing else. A key that holds
/// something else than nothing has a row; one whose row was deleted has one in the eyes of a client that sees tombstones by name.
fn shows_row(history: &History, range: RangeId, key: KeyId, written: Option<ValueId>) -> bool {
    let query = history.range(range);
    let rows = query.rows.iter().copied();
    let rows: Vec<ValueId> = rows.filter(|&row| history.value_key(row) == key).collect();
    let is_spanned = spans(history, query.span.low(), query.span.high(), key);
    let has_row = match written {
        None => history.is_there_initially(key),
        Some(held) if history.is_tombstone(held) => query.shows_deleted,
        Some(held) => !history.is_absence(held),
    };
    let is_held = |&row: &ValueId| match written {
        None => history.is_initial(row),
        Some(held) => row == held,
    };
    rows.is_empty() != (is_spanned && has_row) && rows.iter().all(is_held)
}

/// The keys that a transaction writes or appends to.
fn written(history: &History, txn: TxnId) -> impl Iterator<Item = KeyId> + '_ {
    installs(history, txn).filter_map(|(op, _)| op.key())
}

fn writes(history: &History, txn: TxnId, key: KeyId) -> bool {
    written(history, txn).any(|other| other == key)
}

/// The writes and appends of a transaction, each with whether it is its last of the key: that one is the version.
fn installs(history: &History, txn: TxnId) -> impl Iterator<Item = (Op, bool)> + '_ {
    let ops = history.ops(txn);
    let places = (0..ops.len()).filter(|&at| ops[at].is_write());
    places.map(|at| {
        let overwrites = |op: &Op| op.is_write() && op.key() == ops[at].key();
        (ops[at], !ops[at + 1..].iter().any(overwrites))
    })
}

fn installs_value(op: Op, listed: ValueId) -> bool {
    matches!(op, Op::Write { value, .. } | Op::Append { value, .. } if value == listed)
}

/// Whether the value was written, and overwritten by its writer whenever it was.
fn is_overwritten(history: &History, value: ValueId) -> bool {
    let txns = history
        .txns()
        .filter(|&txn| history.status(txn) != Status::Aborted);
    let mut writes = txns
        .flat_map(|txn| installs(history, txn))
        .filter(|&(op, _)| installs_value(op, value))
        .peekable();
    let is_gone = |(op, is_final): (Op, bool)| !is_final && matches!(op, Op::Write { .. });
    writes.peek().is_some() && writes.all(is_gone)
}

/// A version order without the initial state, which may be at its head: a value that only the initial state can be.
fn listed_after_initial<'v>(history: &History, values: &'v [ValueId]) -> &'v [ValueId] {
    let is_written = |value: ValueId| {
        let mut txns = history
            .txns()
            .filter(|&txn| history.status(txn) != Status::Aborted);
        txns.any(|txn| installs(history, txn).any(|(op, _)| installs_value(op, value)))
    };
    match values.split_first() {
        Some((&first, rest)) if history.is_initial(first) && !is_written(first) => rest,
        _ => values,
    }
}

/// Whether a key lies between two bounds, and is of their kind.
fn spans(history: &History, low: Bound<Token>, high: Bound<Token>, key: KeyId) -> bool {
    let rank = |token: Token| match token {
        Token::Nil => (0, 0, ""),
        Token::Int(number) => (1, number, ""),
        Token::Text(symbol) => (2, 0, history.symbols().text(symbol)),
    };
    let ends = [low, high].map(|bound| match bound {
        Bound::Unbounded => Bound::Unbounded,
        Bound::Included(end) => Bound::Included(rank(end)),
        Bound::Excluded(end) => Bound::Excluded(rank(end)),
    });
    let key = rank(history.key_token(key));
    let is_of_kind = |bound: &Bound<(u8, i64, &str)>| match bound {
        Bound::Unbounded => true,
        Bound::Included(end) | Bound::Excluded(end) => end.0 == key.0,
    };
    ends.iter().all(is_of_kind) && (ends[0], ends[1]).contains(&key)
}
