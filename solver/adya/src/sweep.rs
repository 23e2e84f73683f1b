//! Which predicates agree with a guessed order of commits beyond doubt, found in one sweep along it.
//!
//! The sweep keeps the state that the order has reached, with an index of its rows. A predicate agrees if it returned what the state
//! gives, and if nothing changes what satisfies its condition between the state's version of a row and the one that it looked at.
//! These versions differ only for rows that were written between its snapshot and its transaction's place in the order, so only
//! those are looked at. All edges of a predicate that agrees run forwards in the order. The others are left to `predicates`.

use kingsnake_history::model::{Act, Extreme, KeyId, Op, Predicate, Token, TxnId, ValueId};

use crate::explain::Sources;
use crate::predicates::{Returned, note_returned};
use crate::query::{Asked, Side};
use crate::rowindex::RowIndex;
use crate::rules::Rules;
use crate::snapshot::{Shown, View, own_writes};
use crate::versions::NOBODY;
use crate::windows::places;

/// The numbers of the predicates that may not agree with an order of all transactions, the counted ones first.
pub(crate) fn doubtful<R: Rules>(sources: &Sources<'_>, order: &[u32]) -> Vec<u32> {
    let all = sources.history.all_predicates();
    let counted = &sources.versions.counted;
    let is_counted = |number: &u32| counted[all[*number as usize].0.index()];
    if all.is_empty() || !is_along(sources, order) {
        return (0..all.len() as u32).filter(is_counted).collect();
    }
    let mut sweep = Sweep::new(sources, order);
    let mut found = Vec::new();
    for (at, &txn) in sweep.order.iter().enumerate() {
        let txn = TxnId(txn);
        for (number, predicate) in sources.history.numbered_predicates(txn) {
            if sweep.agrees::<R>(at, txn, predicate) != Some(true) {
                found.push(number);
            }
        }
        sweep.install(txn);
    }
    found.sort_unstable();
    found
}

/// Whether the versions of every row are in the guessed order, so that what it has reached is a state.
fn is_along(sources: &Sources<'_>, order: &[u32]) -> bool {
    let place = places(order);
    let mut keys = sources.conditions.tables.iter().flat_map(|it| &it.keys);
    keys.all(|&key| {
        let versions = &sources.versions.all()[sources.versions.of_key(key)];
        let places = versions.iter().skip(1).map(|it| place[it.writer as usize]);
        places.is_sorted()
    })
}

/// A stamp of the transactions in the guessed order, by which snapshots say what they show.
#[derive(Default)]
struct Stamped {
    stamps: Vec<i64>,
    /// The greatest before each place, and the least from it on.
    greatest: Vec<i64>,
    least: Vec<i64>,
}

impl Stamped {
    fn new(stamps: Vec<Option<i64>>) -> Self {
        let mut greatest = Vec::with_capacity(stamps.len() + 1);
        let mut last = i64::MIN;
        for &stamp in &stamps {
            greatest.push(last);
            last = last.max(stamp.unwrap_or(i64::MIN));
        }
        let mut least = vec![i64::MAX; stamps.len()];
        let mut last = i64::MAX;
        for (at, &stamp) in stamps.iter().enumerate().rev() {
            last = last.min(stamp.unwrap_or(i64::MAX));
            least[at] = last;
        }
        let stamps = stamps.into_iter().map(|it| it.unwrap_or(i64::MAX));
        Stamped {
            stamps: stamps.collect(),
            greatest,
            least,
        }
    }
}

/// A row of which the snapshot shows another version than the state.
struct Differing {
    key: KeyId,
    /// The place of the version that was looked at.
    seen: usize,
}

struct Sweep<'a> {
    sources: &'a Sources<'a>,
    /// The counted transactions.
    order: &'a [u32],
    times: Stamped,
    xids: Stamped,
    /// The place of each key's version now.
    state: Vec<u32>,
    rows: RowIndex<usize>,
    table_of: Vec<u32>,
    own: Vec<(KeyId, ValueId)>,
    returned: Vec<Returned>,
    differing: Vec<Differing>,
}

impl<'a> Sweep<'a> {
    fn new(sources: &'a Sources<'a>, order: &'a [u32]) -> Self {
        let history = sources.history;
        let counted = &sources.versions.counted;
        let n_counted = order.iter().take_while(|it| counted[**it as usize]).count();
        let order = &order[..n_counted];
        let stamp = |txn: u32| history.stamps(TxnId(txn));
        let times = order.iter().map(|&txn| stamp(txn).commit_ts).collect();
        let xids = order.iter().map(|&txn| stamp(txn).xid).collect();
        let keys = (0..history.n_keys() as u32).map(KeyId);
        let state = keys.map(|key| sources.versions.of_key(key).start as u32);
        let mut sweep = Sweep {
            sources,
            order,
            times: Stamped::new(times),
            xids: Stamped::new(xids),
            state: state.collect(),
            rows: RowIndex::new(history.tables().len()),
            table_of: vec![NOBODY; history.n_keys()],
            own: Vec::new(),
            returned: Vec::new(),
            differing: Vec::new(),
        };
        sweep.fill();
        sweep
    }

    fn fill(&mut self) {
        let conditions = self.sources.conditions;
        for (_, predicate) in self.sources.history.all_predicates() {
            let asked = conditions.of(predicate);
            for (column, _, _) in asked.bounds() {
                self.rows.keep(asked.table, column);
            }
        }
        for (table, columns) in conditions.tables.iter().enumerate() {
            for &key in &columns.keys {
                self.table_of[key.index()] = table as u32;
                let place = self.state[key.index()] as usize;
                let after = |column| conditions.number(column, place);
                self.rows.change(table as u32, key, |_| None, after);
            }
        }
    }

    /// The versions of a transaction become the state's.
    fn install(&mut self, txn: TxnId) {
        let conditions = self.sources.conditions;
        for op in self.sources.history.ops(txn) {
            let Op::Write { key, value } = *op else {
                continue;
            };
            let Some(place) = self.sources.versions.place(value) else {
                continue;
            };
            let before = std::mem::replace(&mut self.state[key.index()], place as u32) as usize;
            let table = self.table_of[key.index()];
            if table != NOBODY {
                let before = |column| conditions.number(column, before);
                let after = |column| conditions.number(column, place);
                self.rows.change(table, key, before, after);
            }
        }
    }

    /// Whether a predicate of the transaction at this place agrees; `None` where that is not found out here.
    fn agrees<R: Rules>(&mut self, at: usize, txn: TxnId, predicate: &Predicate) -> Option<bool> {
        let sources = self.sources;
        let view = sources.snapshots.view(txn, predicate).ok()?;
        own_writes(sources.history, txn, predicate.at as usize, &mut self.own);
        let table = sources.history.queries()[predicate.query as usize].table;
        self.find_differing(at, &view, table)?;
        let asked = sources.conditions.of(predicate);
        if self
            .differing
            .iter()
            .any(|it| self.changes::<R>(txn, &asked, it))
        {
            return Some(false);
        }
        if let Some(extreme) = predicate.act.extreme() {
            return Some(self.extreme(predicate, extreme, &asked));
        }
        let mut returned = std::mem::take(&mut self.returned);
        note_returned(sources.history, txn, predicate, &mut returned);
        let agrees = self.result(predicate, &asked, &returned);
        self.returned = returned;
        Some(agrees)
    }

    /// Finds the rows of a table that were written between a snapshot and a place in the order, by others or by the transaction
    /// there, unless it wrote them before it asked. `None` where too much was written.
    fn find_differing(&mut self, at: usize, view: &View<'_>, table: u32) -> Option<()> {
        const FEW: usize = 256;
        self.differing.clear();
        let (stamped, hidden_from, shown_to) = match &view.shown {
            Shown::At(time) => (&self.times, time.checked_add(1)?, time.checked_add(1)?),
            Shown::Postgres(xmin, xmax, _) => (&self.xids, *xmin, *xmax),
            Shown::Set(_) => return None,
        };
        let limit = FEW + self.sources.conditions.tables[table as usize].keys.len();
        let is_shown = |place: usize| match &view.shown {
            Shown::Postgres(xmin, xmax, running) => {
                let xid = stamped.stamps[place];
                xid < *xmin || (xid < *xmax && running.binary_search(&xid).is_err())
            }
            _ => stamped.stamps[place] < shown_to,
        };
        let mut from = at;
        while from > 0 && stamped.greatest[from] >= hidden_from {
            from -= 1;
        }
        let mut to = at;
        while to < self.order.len() && stamped.least[to] < shown_to && to - at < limit {
            to += 1;
        }
        if to - from > limit {
            return None;
        }
        for place in from..to {
            // Before the place in the order what is hidden differs, from it on what is shown.
            if is_shown(place) == (place < at) {
                continue;
            }
            for op in self.sources.history.ops(TxnId(self.order[place])) {
                if let Op::Write { key, .. } = *op
                    && self.table_of[key.index()] == table
                    && self.own.binary_search_by_key(&key, |it| it.0).is_err()
                    && self.differing.iter().all(|it| it.key != key)
                {
                    let seen = self.sources.snapshots.place(view, key);
                    self.differing.push(Differing { key, seen });
                }
            }
        }
        Some(())
    }

    /// Whether what satisfies a condition changes between the state's version of a row and the one that was looked at.
    fn changes<R: Rules>(&self, txn: TxnId, asked: &Asked, row: &Differing) -> bool {
        let conditions = self.sources.conditions;
        let now = self.state[row.key.index()] as usize;
        let mut between = now.min(row.seen) + 1..now.max(row.seen) + 1;
        between.any(|place| {
            let is = |place: usize| conditions.matches(asked, place);
            R::is_change(is(place - 1), is(place))
                && self.sources.versions.at(place).writer != txn.0
        })
    }

    /// The rows that satisfy a condition now, without those that the transaction wrote itself.
    fn matching<'s>(&'s self, asked: &'s Asked) -> impl Iterator<Item = KeyId> + 's {
        let indexed = self.rows.within(asked.table, asked.bounds());
        let all = match indexed {
            Some(_) => &[][..],
            None => &self.sources.conditions.tables[asked.table as usize].keys,
        };
        let keys = indexed.into_iter().flatten().chain(all.iter().copied());
        keys.filter(|key| {
            let place = self.state[key.index()] as usize;
            self.sources.conditions.matches(asked, place)
                && self.own.binary_search_by_key(key, |it| it.0).is_err()
        })
    }

    /// The place of the version of a row that was looked at, and whether it is the state's.
    fn seen(&self, key: KeyId) -> (usize, bool) {
        let now = self.state[key.index()] as usize;
        match self.differing.iter().find(|it| it.key == key) {
            Some(row) => (row.seen, row.seen == now),
            None => (now, true),
        }
    }

    fn value(&self, place: usize) -> ValueId {
        ValueId(self.sources.versions.at(place).value)
    }

    fn own_chosen(&self, predicate: &Predicate) -> impl Iterator<Item = (KeyId, ValueId)> + '_ {
        let query = predicate.query;
        let history = self.sources.history;
        let table = history.queries()[query as usize].table;
        let own = self.own.iter().copied();
        own.filter(move |it| self.table_of[it.0.index()] == table && history.satisfies(query, it.1))
    }

    /// Whether the rows that satisfy the condition are those that were returned, and an aggregate read the state's.
    fn result(&self, predicate: &Predicate, asked: &Asked, returned: &[Returned]) -> bool {
        let history = self.sources.history;
        let own = self.own_chosen(predicate).map(|it| (it.0, it.1, true));
        let others = self.matching(asked).map(|key| {
            let (place, is_state) = self.seen(key);
            (key, self.value(place), is_state)
        });
        let mut chosen = own.chain(others);
        if let Act::Aggregate {
            function,
            column,
            result,
        } = predicate.act
        {
            let mut is_state = true;
            let values = chosen.map(|it| {
                is_state &= it.2;
                column.map_or(Token::Int(1), |column| history.cell(it.1, column))
            });
            let expected = function.apply(history.symbols(), values);
            return expected == Some(result) && (is_state || column.is_none());
        }
        let mut n_chosen = 0;
        let is_returned = chosen.all(|(key, value, _)| {
            n_chosen += 1;
            let at = returned.binary_search_by_key(&key, |it| it.0);
            at.is_ok_and(|at| returned[at].1.is_none_or(|it| it == value))
        });
        is_returned && n_chosen == returned.len()
    }

    /// Whether no row is beyond a least or greatest value, and a row of the state has it.
    fn extreme(&self, predicate: &Predicate, extreme: Extreme, beyond: &Asked) -> bool {
        let history = self.sources.history;
        let mut is_there = extreme.result == Token::Nil;
        for (_, value) in self.own_chosen(predicate) {
            let cell = history.cell(value, extreme.column);
            if extreme
                .function
                .is_beyond(history.symbols(), cell, extreme.result)
            {
                return false;
            }
            is_there |= cell == extreme.result;
        }
        if self.matching(beyond).next().is_some() {
            return false;
        }
        let conditions = self.sources.conditions;
        let at = conditions.narrowed(predicate.query, extreme, Side::At);
        let reads_another = self.differing.iter().any(|row| {
            row.seen != self.state[row.key.index()] as usize && conditions.matches(&at, row.seen)
        });
        if reads_another {
            return false;
        }
        is_there || self.matching(&at).any(|key| self.seen(key).1)
    }
}
