//! Replays an order against the history, in linear time, independently of how the order was found.
//!
//! SER: the transactions run one after the other on a store, and every read must return what was recorded. SI: at a
//! begin the transaction reads the committed state, at its commit its last writes appear; no other writer of a key may
//! have committed since it began. PC: the same, and writers may overlap. Where levels are mixed each transaction obeys its own; weak ones
//! ask only for the order of commits (`weak`). Where the clock counts, each point must find a true time in its window that is not
//! before the true times of the points ahead of it; the earliest that is left is as good as any.

use super::Refusal;
use super::assumed::{check_edges, check_keys};
use super::clock::window;
use super::dependencies;
use super::order_sources::replay_mixed;
use super::standing::Standing;
use super::table::LiveRows;
use super::weak;
use kingsnake_history::level::{Model, Spec};
use kingsnake_history::model::{Act, History, KeyId, Op, Status, Token, TxnId, ValueId};
use kingsnake_history::verdict::{Certificate, Moment, Point};

/// Larger histories are only replayed in a check: their graph would add a fifth to it. `verify` always makes it.
const GRAPH_OPS: usize = 10_000;

/// The state of a key.
#[derive(Clone, Copy, Default)]
struct Content {
    /// The value, or `None` for the initial state.
    value: Option<ValueId>,
    /// The place in the order where the key was last written; 0 is before all.
    written_at: usize,
}

/// Checks that an order explains the history at a level. The error tells what does not hold.
pub fn replay(history: &History, spec: Spec, certificate: &Certificate) -> Result<(), Refusal> {
    replay_with(history, spec, certificate, true).map_err(Refusal::Order)
}

/// The same, without checking results of aggregates over rows.
pub fn replay_without_aggregates(
    history: &History,
    spec: Spec,
    certificate: &Certificate,
) -> Result<(), Refusal> {
    replay_with(history, spec, certificate, false).map_err(Refusal::Order)
}

fn replay_with(
    history: &History,
    spec: Spec,
    certificate: &Certificate,
    aggregates: bool,
) -> Result<(), String> {
    if spec.model.is_weak() || spec.model == Model::Psi {
        let order = commits(certificate)?;
        return weak::replay(history, spec, &order, &certificate.sources);
    }
    if spec.model == Model::Mixed && history.models().iter().any(|it| it.is_weak()) {
        replay_mixed(history, spec, certificate)?;
    }
    let mut replay = Replay::new(history, spec);
    replay.aggregates = aggregates;
    for (at, &point) in certificate.order.iter().enumerate() {
        replay.point(at + 1, point)?;
    }
    replay.all_are_there()?;
    replay.version_orders()?;
    replay.assumptions()?;
    if history.n_ops() > GRAPH_OPS {
        return Ok(());
    }
    check_graph(history, spec, certificate)
}

/// Checks the graph of an order, at the levels at which every transaction has the same edges.
fn check_graph(history: &History, spec: Spec, certificate: &Certificate) -> Result<(), String> {
    match spec.model {
        Model::Ser | Model::Si | Model::Pc => dependencies::sort(history, spec, certificate),
        _ => Ok(()),
    }
}

/// Checks that an order explains the history at a level, by replaying it and by its graph, however large it is.
pub fn verify(history: &History, spec: Spec, certificate: &Certificate) -> Result<(), Refusal> {
    replay(history, spec, certificate)?;
    check_graph(history, spec, certificate).map_err(Refusal::Order)
}

/// The transactions of an order of whole transactions.
fn commits(certificate: &Certificate) -> Result<Vec<TxnId>, String> {
    let whole = |point: &Point| (point.moment == Moment::Whole).then_some(point.txn);
    let txns: Option<Vec<TxnId>> = certificate.order.iter().map(whole).collect();
    txns.ok_or_else(|| "an order of whole transactions is expected".to_owned())
}

struct Replay<'h> {
    history: &'h History,
    spec: Spec,
    has_begins: bool,
    store: Vec<Content>,
    /// By key, the list that it holds, where lists are read.
    lists: Vec<Vec<ValueId>>,
    /// The rows in order, where range queries ask for them.
    table: Option<LiveRows<'h>>,
    /// Where there are conditions over rows.
    standing: Option<Standing<'h>>,
    aggregates: bool,
    begun_at: Vec<usize>,
    committed_at: Vec<usize>,
    /// The transaction of each session that began last.
    last_in_session: Vec<Option<TxnId>>,
    /// The true time of the last point.
    now: i128,
    /// How many values have been installed so far.
    n_installed: usize,
    /// The number of each value among them, where it is asked for; 0 for one that was not installed.
    installed_at: Vec<usize>,
    /// What the transaction under replay has written, by key, newest last.
    own: Vec<(u32, ValueId)>,
}

impl<'h> Replay<'h> {
    fn new(history: &'h History, spec: Spec) -> Self {
        let is_numbered =
            !history.version_orders().is_empty() || !history.key_assumptions().is_empty();
        let n_numbered = if is_numbered { history.n_values() } else { 0 };
        Replay {
            history,
            spec,
            has_begins: spec.has_begins(history),
            store: vec![Content::default(); history.n_keys()],
            lists: vec![
                Vec::new();
                if history.n_lists() > 0 {
                    history.n_keys()
                } else {
                    0
                }
            ],
            table: LiveRows::new(history),
            standing: (history.n_predicates() > 0).then(|| Standing::new(history)),
            aggregates: true,
            begun_at: vec![0; history.n_txns()],
            committed_at: vec![0; history.n_txns()],
            last_in_session: vec![None; history.n_sessions()],
            now: i128::MIN,
            n_installed: 0,
            installed_at: vec![0; n_numbered],
            own: Vec::new(),
        }
    }

    fn point(&mut self, at: usize, point: Point) -> Result<(), String> {
        let Point { txn, moment } = point;
        if txn.index() >= self.history.n_txns() {
            return Err("the order names a transaction that is not in the history".to_owned());
        }
        self.clock(point)?;
        match (self.has_begins, moment) {
            (false, Moment::Whole) => {
                self.begin(at, txn)?;
                self.commit(at, txn)
            }
            (true, Moment::Begin) => self.begin(at, txn),
            (true, Moment::Commit) => self.commit(at, txn),
            (false, _) => Err("an order of whole transactions is expected".to_owned()),
            (true, Moment::Whole) => Err("an order of begins and commits is expected".to_owned()),
        }
    }

    /// Advances the clock to the point's window, or finds that it has passed.
    fn clock(&mut self, point: Point) -> Result<(), String> {
        let window = window(self.history, self.spec, point);
        self.now = self.now.max(window.from);
        if self.now <= window.to {
            return Ok(());
        }
        let what = match point.moment {
            Moment::Begin => "had begun",
            Moment::Whole | Moment::Commit => "had committed",
        };
        let name = self.name(point.txn);
        Err(format!(
            "{name} {what}, by the clock, before another that is ahead of it in the order"
        ))
    }

    fn name(&self, txn: TxnId) -> String {
        format!("transaction {}", self.history.txn_name(txn))
    }

    fn begin(&mut self, at: usize, txn: TxnId) -> Result<(), String> {
        if self.history.status(txn) == Status::Aborted {
            return Err(format!(
                "{} aborted, yet it is in the order",
                self.name(txn)
            ));
        }
        if std::mem::replace(&mut self.begun_at[txn.index()], at) != 0 {
            return Err(format!("{} is in the order twice", self.name(txn)));
        }
        if self.spec.session_order {
            self.session_order(txn)?;
        }
        if self.spec.model_of(self.history, txn).reads_at_begin() {
            return self.reads(txn);
        }
        Ok(())
    }

    fn session_order(&mut self, txn: TxnId) -> Result<(), String> {
        let session = self.history.session(txn).index();
        let Some(previous) = self.last_in_session[session].replace(txn) else {
            return Ok(());
        };
        if previous >= txn {
            return Err(format!(
                "{} comes after {} in the order, and before it in their session",
                self.name(txn),
                self.name(previous)
            ));
        }
        if self.committed_at[previous.index()] == 0 {
            return Err(format!(
                "{} begins before {} of its session commits",
                self.name(txn),
                self.name(previous)
            ));
        }
        Ok(())
    }

    /// Runs all operations of a transaction against the state at its begin and its own writes.
    fn reads(&mut self, txn: TxnId) -> Result<(), String> {
        self.own.clear();
        let asks = self.standing.is_some() && self.history.predicates(txn).next().is_some();
        for (at, &op) in self.history.ops(txn).iter().enumerate() {
            if asks {
                self.ask(txn, at)?;
            }
            match op {
                Op::Write { key, value } | Op::Append { key, value } => {
                    self.own.push((key.0, value));
                }
                Op::Read { key, value } => {
                    let mine = self.own.iter().rev().find(|own| own.0 == key.0);
                    let held = mine.map(|own| own.1).or(self.store[key.index()].value);
                    let initial = || self.history.is_initial(value);
                    if !held.map_or_else(initial, |held| self.is_read_as(held, value)) {
                        return Err(self.misread(txn, at, key));
                    }
                }
                Op::ReadList { key, list } => {
                    let mine = self.own.iter().filter(|own| own.0 == key.0);
                    let stored = self.lists.get(key.index()).map_or(&[][..], Vec::as_slice);
                    let rest = self.history.list(list).strip_prefix(stored);
                    if !rest.is_some_and(|rest| mine.map(|own| &own.1).eq(rest)) {
                        return Err(self.misread(txn, at, key));
                    }
                }
                Op::Range { range } => {
                    let Some(table) = &self.table else { continue };
                    let own = self.own.iter().map(|own| KeyId(own.0));
                    let held = |key: KeyId| {
                        let mine = self.own.iter().rev().find(|own| own.0 == key.0);
                        mine.map(|own| own.1).or(self.store[key.index()].value)
                    };
                    if let Err(key) = table.answers(self.history.range(range), own, held) {
                        return Err(self.misread(txn, at, key));
                    }
                }
            }
        }
        self.ask(txn, self.history.ops(txn).len())
    }

    /// Evaluates the conditions that a transaction asked before an operation.
    fn ask(&self, txn: TxnId, at: usize) -> Result<(), String> {
        let Some(standing) = &self.standing else {
            return Ok(());
        };
        let asked = self.history.predicates(txn);
        for predicate in asked.filter(|it| it.at as usize == at) {
            if !self.aggregates && matches!(predicate.act, Act::Aggregate { .. }) {
                continue;
            }
            let is_right = standing.check(txn, predicate, &self.own);
            is_right.map_err(|key| match key {
                Some(key) => self.misread(txn, at, key),
                None => format!(
                    "an aggregate before operation {at} of {} has another result",
                    self.name(txn)
                ),
            })?;
        }
        Ok(())
    }

    /// Whether a read of a key that holds one value may return another: only nothing, for a deleted row.
    fn is_read_as(&self, held: ValueId, value: ValueId) -> bool {
        held == value
            || self.history.is_tombstone(held) && self.history.value_token(value) == Token::Nil
    }

    fn misread(&self, txn: TxnId, at: usize, key: KeyId) -> String {
        let held = match self.store[key.index()].value {
            Some(value) if self.history.is_absence(value) => "no row".to_owned(),
            Some(value) => self.history.value_name(value),
            None => "its initial value".to_owned(),
        };
        let (key, name) = (self.history.key_name(key), self.name(txn));
        format!("operation {at} of {name} does not fit: at that place key {key} held {held}")
    }

    fn commit(&mut self, at: usize, txn: TxnId) -> Result<(), String> {
        let begun_at = self.begun_at[txn.index()];
        if begun_at == 0 {
            return Err(format!("{} commits before it begins", self.name(txn)));
        }
        if std::mem::replace(&mut self.committed_at[txn.index()], at) != 0 {
            return Err(format!("{} commits twice", self.name(txn)));
        }
        let model = self.spec.model_of(self.history, txn);
        if model == Model::Ser {
            self.reads(txn)?;
        }
        for &op in self.history.ops(txn) {
            let (Op::Write { key, value } | Op::Append { key, value }) = op else {
                continue;
            };
            let cell = &mut self.store[key.index()];
            let overlaps = cell.written_at > begun_at && cell.written_at != at;
            if overlaps && model.installs_at_begin() {
                let key = self.history.key_name(key);
                let name = self.name(txn);
                return Err(format!("{name} overlaps another writer of key {key}"));
            }
            let is_append = matches!(op, Op::Append { .. });
            // A value that the transaction overwrites itself is not a version; an append stays.
            let overwritten = cell.value.filter(|_| cell.written_at == at && !is_append);
            if let Some(number) = overwritten.and_then(|it| self.installed_at.get_mut(it.index())) {
                *number = 0;
            }
            if let Some(table) = &mut self.table {
                table.write(key, value);
            }
            if let Some(standing) = &mut self.standing {
                standing.put(key, value);
            }
            cell.written_at = at;
            cell.value = Some(value);
            self.n_installed += 1;
            if let Some(number) = self.installed_at.get_mut(value.index()) {
                *number = self.n_installed;
            }
            if is_append && let Some(list) = self.lists.get_mut(key.index()) {
                list.push(value);
            }
        }
        Ok(())
    }

    fn all_are_there(&self) -> Result<(), String> {
        for txn in self.history.txns() {
            let committed = self.committed_at[txn.index()] != 0;
            if !committed && self.history.status(txn) == Status::Committed {
                return Err(format!("{} is not in the order", self.name(txn)));
            }
            if !committed && self.begun_at[txn.index()] != 0 {
                return Err(format!("{} begins and never commits", self.name(txn)));
            }
        }
        Ok(())
    }

    /// The version orders that came with the history must be those of the order.
    fn version_orders(&self) -> Result<(), String> {
        let orders = self.history.version_orders();
        if orders.is_empty() {
            return Ok(());
        }
        let dropped = self.values_of_dropped();
        for order in orders {
            let key = || self.history.key_name(order.key);
            if let Some(value) = order.values.iter().find(|value| dropped[value.index()]) {
                let value = self.history.value_name(*value);
                return Err(format!(
                    "the version order of key {} lists {value}, whose writer is not in the order",
                    key()
                ));
            }
            let places = order
                .values
                .iter()
                .map(|value| self.installed_at[value.index()]);
            let installed: Vec<usize> = places.filter(|&place| place != 0).collect();
            if !installed.is_sorted() {
                return Err(format!("the version order of key {} is another", key()));
            }
        }
        Ok(())
    }

    /// The user's assumptions must hold in the order.
    fn assumptions(&self) -> Result<(), String> {
        let counts = |txn: TxnId| self.committed_at[txn.index()] != 0;
        let place = |value: ValueId| Some(self.installed_at[value.index()]).filter(|&at| at != 0);
        check_keys(self.history, counts, place)?;
        let (ends, begins) = (&self.committed_at, &self.begun_at);
        check_edges(
            self.history,
            |txn| ends[txn.index()],
            |txn| begins[txn.index()],
        )
    }

    /// The writes of transactions with unknown outcome that the order leaves out.
    fn values_of_dropped(&self) -> Vec<bool> {
        let mut dropped = vec![false; self.history.n_values()];
        let left_out = |txn: &TxnId| {
            self.committed_at[txn.index()] == 0 && self.history.status(*txn) == Status::Unknown
        };
        for txn in self.history.txns().filter(left_out) {
            for &op in self.history.ops(txn) {
                if let Op::Write { value, .. } | Op::Append { value, .. } = op {
                    dropped[value.index()] = self.installed_at[value.index()] == 0;
                }
            }
        }
        dropped
    }
}
