//! Runs transactions one after the other, or from snapshot to commit, on a state of rows, and compares what they read with it.

use super::index::RowIndex;
use crate::level::Model;
use crate::model::{Act, History, KeyId, Op, Predicate, Token, TxnId, ValueId};
use crate::relate::Places;
use crate::verdict::{Moment, Point};

/// The state along an order.
pub(super) struct Replay<'h> {
    history: &'h History,
    /// Whether no other writer of a transaction's keys may have committed since it began.
    excludes: bool,
    /// The value of each key; `None` before the first commit that writes it.
    held: Vec<Option<ValueId>>,
    rows: RowIndex<'h>,
    /// Where in the order each transaction began.
    begun_at: Vec<u32>,
    /// Where in the order each key was last written; 0 is before all.
    written_at: Vec<u32>,
    /// Where in the order each value became a version, if version orders are given; 0 for one that did not.
    installed_at: Vec<u32>,
    /// What the running transaction has written so far.
    own: Marks<ValueId>,
    /// What the current condition returned.
    returned: Marks<()>,
}

impl<'h> Replay<'h> {
    /// The state before any transaction.
    pub(super) fn new(history: &'h History, model: Model) -> Self {
        let (n_keys, places) = (history.n_keys(), Places::uniform(model));
        Replay {
            history,
            excludes: places.install(0) != places.commit(0),
            held: vec![None; n_keys],
            rows: RowIndex::new(history),
            begun_at: vec![0; history.n_txns()],
            written_at: vec![0; n_keys],
            installed_at: match history.version_orders() {
                [] => Vec::new(),
                _ => vec![0; history.n_values()],
            },
            own: Marks::new(n_keys, ValueId(0)),
            returned: Marks::new(n_keys, ()),
        }
    }

    /// Takes the next point of an order; returns whether everything that it reads and writes fits.
    pub(super) fn point(&mut self, at: u32, Point { txn, moment }: Point) -> bool {
        match moment {
            Moment::Whole => self.reads(txn) && self.installs(at, txn),
            Moment::Begin => {
                self.begun_at[txn.index()] = at;
                self.reads(txn)
            }
            Moment::Commit => self.installs(at, txn),
        }
    }

    fn reads(&mut self, txn: TxnId) -> bool {
        let history = self.history;
        self.own.clear();
        let ops = history.ops(txn);
        let mut asked = history.predicates(txn).peekable();
        for at in 0..=ops.len() {
            while let Some(predicate) = asked.next_if(|it| it.at as usize <= at) {
                if !self.answers(predicate, ops) {
                    return false;
                }
            }
            match ops.get(at) {
                Some(&Op::Write { key, value }) => self.own.set(key, value),
                Some(&Op::Read { key, value }) if !self.is_read(key, value) => return false,
                Some(Op::Append { .. } | Op::ReadList { .. } | Op::Range { .. }) => return false,
                Some(Op::Read { .. }) | None => {}
            }
        }
        true
    }

    /// Whether a read of a key returns this value. A row that was deleted is read as nothing.
    fn is_read(&self, key: KeyId, value: ValueId) -> bool {
        let history = self.history;
        match self.own.get(key).or(self.held[key.index()]) {
            None => history.is_initial(value),
            Some(held) => {
                held == value
                    || history.is_tombstone(held) && history.value_token(value) == Token::Nil
            }
        }
    }

    /// Whether a condition chooses what was recorded, or an aggregate has its result.
    fn answers(&mut self, predicate: &Predicate, ops: &[Op]) -> bool {
        let (history, query) = (self.history, predicate.query);
        let own = &self.own;
        let table = history.queries()[query as usize].table;
        let stored = self.rows.chosen(query).filter(|it| !own.has(it.0));
        let mine = own
            .all()
            .filter(|it| self.rows.table_of(it.0) == Some(table) && history.satisfies(query, it.1));
        let mut chosen = stored.chain(mine);
        if let Act::Aggregate {
            function,
            column,
            result,
        } = predicate.act
        {
            let cells = chosen.map(|(_, row)| match column {
                None => Token::Int(1),
                Some(column) => history.cell(row, column),
            });
            return function.apply(history.symbols(), cells) == Some(result);
        }
        let start = predicate.at as usize;
        self.returned.clear();
        for op in &ops[start..start + predicate.n_ops as usize] {
            if let Some(key) = op.key() {
                self.returned.set(key, ());
            }
        }
        let returned = &self.returned;
        let mut n_chosen = 0;
        chosen.all(|(key, _)| {
            n_chosen += 1;
            returned.has(key)
        }) && n_chosen == returned.len()
    }

    /// Installs a transaction's writes; returns whether no other writer of its keys committed since it began, if that matters.
    fn installs(&mut self, at: u32, txn: TxnId) -> bool {
        let begun_at = self.begun_at[txn.index()];
        for &op in self.history.ops(txn) {
            let Op::Write { key, value } = op else {
                continue;
            };
            let written_at = std::mem::replace(&mut self.written_at[key.index()], at);
            if self.excludes && written_at > begun_at && written_at != at {
                return false;
            }
            let old = self.held[key.index()].replace(value);
            self.rows.put(key, value);
            if self.installed_at.is_empty() {
                continue;
            }
            // A value that the transaction overwrites itself is not a version.
            if let Some(old) = old.filter(|_| written_at == at) {
                self.installed_at[old.index()] = 0;
            }
            self.installed_at[value.index()] = at;
        }
        true
    }

    /// Whether the versions of every key came in the order that is given for it.
    pub(super) fn has_version_orders(&self) -> bool {
        self.history.version_orders().iter().all(|order| {
            let values = order.values.iter();
            let places = values.map(|value| self.installed_at[value.index()]);
            places.clone().all(|place| place != 0) && places.is_sorted()
        })
    }
}

/// A map from keys to data, cleared at once.
struct Marks<T> {
    round: u32,
    marked: Vec<(u32, T)>,
    keys: Vec<KeyId>,
}

impl<T: Copy> Marks<T> {
    fn new(n_keys: usize, nothing: T) -> Self {
        Marks {
            round: 1,
            marked: vec![(0, nothing); n_keys],
            keys: Vec::new(),
        }
    }

    fn clear(&mut self) {
        self.round += 1;
        self.keys.clear();
    }

    fn set(&mut self, key: KeyId, what: T) {
        if !self.has(key) {
            self.keys.push(key);
        }
        self.marked[key.index()] = (self.round, what);
    }

    fn has(&self, key: KeyId) -> bool {
        self.marked[key.index()].0 == self.round
    }

    fn get(&self, key: KeyId) -> Option<T> {
        self.has(key).then(|| self.marked[key.index()].1)
    }

    fn len(&self) -> usize {
        self.keys.len()
    }

    fn all(&self) -> impl Iterator<Item = (KeyId, T)> {
        self.keys
            .iter()
            .map(|&key| (key, self.marked[key.index()].1))
    }
}
