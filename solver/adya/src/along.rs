//! Replays an expected serialization order (Enne): every read and every predicate must return what the state gives.
//!
//! The state is the last value of each key. Conditions on numbers are answered by an index of the rows that are there now.

use kingsnake_certify::along as certify;
use kingsnake_certify::{Refusal, refute, verify};
use kingsnake_history::adya::{Difference, Disagreement, Mismatch, Mismatched, Refutation};
use kingsnake_history::budget::Budget;
use kingsnake_history::model::{
    Act, Column, History, KeyId, ListId, Op, Predicate, RangeId, Token, TxnId, ValueId, compare,
};
use kingsnake_history::promise::{Along, Promise};
use kingsnake_history::verdict::{Certificate, Counterexample, Verdict};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::AdyaError;
use crate::interval::{Interval, necessary};
use crate::rowindex::RowIndex;
use crate::versions::NOBODY;

/// Replays a history along an order.
pub fn along(history: &History, which: &Along, budget: &Budget) -> Result<Verdict, AdyaError> {
    let order = order(history, which)?;
    let mut replay = Replay::new(history);
    for (place, &txn) in order.iter().enumerate() {
        if place % 1024 == 0 {
            budget.check()?;
        }
        if let Some((op, what)) = replay.txn(txn)? {
            let found = Disagreement {
                txn,
                place,
                op,
                what,
            };
            let order = order[..=place].to_vec();
            let why = Counterexample::Recorded(Refutation::Order { order, found });
            let promise = Promise::Along(which.clone());
            let held = refute(history, &promise, &why, budget);
            return checked(Verdict::Violated(why), held);
        }
    }
    let order = Certificate::of_txns(order);
    let held = verify(history, &Promise::Along(which.clone()), &order);
    checked(Verdict::Satisfied(order), held)
}

fn checked(verdict: Verdict, held: Result<(), Refusal>) -> Result<Verdict, AdyaError> {
    let answer = verdict.word();
    match held {
        Ok(()) => Ok(verdict),
        Err(why) => Err(AdyaError::Uncertified { answer, why }),
    }
}

/// The counted transactions in the requested order.
fn order(history: &History, which: &Along) -> Result<Vec<TxnId>, AdyaError> {
    let counted = certify::counted(history);
    let stamp = |txn: TxnId| match which {
        Along::CommitTs => (history.stamps(txn).commit_ts, "commit_ts"),
        _ => (history.stamps(txn).start_ts, "start_ts"),
    };
    if let Along::Order(order) = which {
        let mut left: FxHashSet<TxnId> = counted.iter().copied().collect();
        for txn in order {
            if !left.remove(txn) {
                let name = history.txn_name(*txn);
                return Err(AdyaError::Order(format!(
                    "the expected order names transaction {name} twice, or it did not commit"
                )));
            }
        }
        if let Some(txn) = counted.iter().find(|txn| left.contains(txn)) {
            let name = history.txn_name(*txn);
            return Err(AdyaError::Order(format!(
                "the expected order lacks transaction {name}"
            )));
        }
        return Ok(order.clone());
    }
    let mut timed = Vec::with_capacity(counted.len());
    for txn in counted {
        let (Some(time), _) = stamp(txn) else {
            return Err(AdyaError::NoStamp {
                txn: history.txn_name(txn),
                field: stamp(txn).1,
                needed_by: "--along",
            });
        };
        // At equal times, a transaction that only reads sees what the others wrote.
        let is_reader = !history.ops(txn).iter().any(|op| op.is_write());
        timed.push((time, is_reader, txn));
    }
    timed.sort_by_key(|it| (it.0, it.1));
    Ok(timed.into_iter().map(|it| it.2).collect())
}

type Found = Option<(usize, Mismatched)>;

struct Replay<'h> {
    history: &'h History,
    /// The last value of each key, or [`NOBODY`].
    state: Vec<u32>,
    lists: FxHashMap<KeyId, Vec<ValueId>>,
    /// The keys of each table.
    tables: Vec<Vec<KeyId>>,
    table_of: Vec<u32>,
    /// Rows that are there now, by the numbers of a column that some condition bounds.
    index: RowIndex<Column>,
    bounds: Vec<Vec<Interval>>,
    /// Keys in their order, where there are range queries.
    sorted: Vec<KeyId>,
    next_predicate: FxHashMap<TxnId, usize>,
}

impl<'h> Replay<'h> {
    fn new(history: &'h History) -> Self {
        let mut tables = vec![Vec::new(); history.tables().len()];
        let mut table_of = vec![NOBODY; history.n_keys()];
        if !tables.is_empty() {
            for key in (0..history.n_keys() as u32).map(KeyId) {
                if let Some(table) = history.table_of(key) {
                    tables[table as usize].push(key);
                    table_of[key.index()] = table;
                }
            }
        }
        let queries = history.queries().iter();
        let bounds: Vec<Vec<Interval>> = queries.map(|query| necessary(&query.condition)).collect();
        let mut index = RowIndex::new(tables.len());
        for (query, bounds) in history.queries().iter().zip(&bounds) {
            for bound in bounds {
                index.keep(query.table, bound.column);
            }
        }
        let mut replay = Replay {
            history,
            state: vec![NOBODY; history.n_keys()],
            lists: FxHashMap::default(),
            tables,
            table_of,
            index,
            bounds,
            sorted: Vec::new(),
            next_predicate: FxHashMap::default(),
        };
        if history.n_ranges() > 0 {
            replay.sorted = (0..history.n_keys() as u32).map(KeyId).collect();
            let token = |key: &KeyId| history.key_token(*key);
            let symbols = history.symbols();
            replay
                .sorted
                .sort_by(|one, other| compare(symbols, token(one), token(other)));
        }
        for (at, (txn, _)) in history.all_predicates().iter().enumerate() {
            replay.next_predicate.entry(*txn).or_insert(at);
        }
        for value in (0..history.n_values() as u32).map(ValueId) {
            if history.is_initial(value) && !history.is_absence(value) {
                replay.set(history.value_key(value), value);
            }
        }
        replay
    }

    fn set(&mut self, key: KeyId, value: ValueId) {
        let old = std::mem::replace(&mut self.state[key.index()], value.0);
        let table = self.table_of[key.index()];
        if table == NOBODY {
            return;
        }
        let history = self.history;
        let number = |value: u32, column: Column| {
            let is_there = value != NOBODY && !history.is_absence(ValueId(value));
            match is_there.then(|| history.cell(ValueId(value), column)) {
                Some(Token::Int(number)) => Some(number),
                _ => None,
            }
        };
        let (before, after) = (|it| number(old, it), |it| number(value.0, it));
        self.index.change(table, key, before, after);
    }

    /// The value that a key has now, if it has a row.
    fn row(&self, key: KeyId) -> Option<ValueId> {
        match self.state[key.index()] {
            NOBODY => None,
            value => Some(ValueId(value)).filter(|&it| !self.history.is_absence(it)),
        }
    }

    /// Runs a transaction; returns the first operation that does not fit.
    fn txn(&mut self, txn: TxnId) -> Result<Found, AdyaError> {
        let history = self.history;
        let mut next = match history.n_predicates() {
            0 => usize::MAX,
            _ => self.next_predicate.get(&txn).copied().unwrap_or(usize::MAX),
        };
        let ops = history.ops(txn);
        for at in 0..=ops.len() {
            while let Some((its, predicate)) = history.all_predicates().get(next)
                && *its == txn
                && predicate.at as usize == at
            {
                if let Some(what) = self.predicate(txn, next as u32, predicate)? {
                    return Ok(Some((at, what)));
                }
                next += 1;
            }
            let Some(&op) = ops.get(at) else {
                break;
            };
            let wrong = match op {
                Op::Write { key, value } => {
                    self.set(key, value);
                    None
                }
                Op::Append { key, value } => {
                    self.lists.entry(key).or_default().push(value);
                    None
                }
                Op::Read { key, value } => self.read(key, value),
                Op::ReadList { key, list } => self.read_list(key, list),
                Op::Range { range } => self.range(range),
            };
            if let Some(what) = wrong {
                return Ok(Some((at, what)));
            }
        }
        Ok(None)
    }

    fn read(&self, key: KeyId, value: ValueId) -> Option<Mismatched> {
        let now = self.state[key.index()];
        let is_nothing = self.history.value_token(value) == Token::Nil;
        let fits = now == value.0
            || (now == NOBODY && self.history.is_initial(value))
            || (now != NOBODY && is_nothing && self.history.is_absence(ValueId(now)));
        (!fits).then_some(Mismatched::Read {
            key,
            read: value,
            expected: (now != NOBODY).then_some(ValueId(now)),
        })
    }

    fn read_list(&self, key: KeyId, list: ListId) -> Option<Mismatched> {
        let now = self.lists.get(&key).map_or(&[][..], |it| &it[..]);
        let read = self.history.list(list);
        (now != read).then_some(Mismatched::List {
            key,
            n_agree: now.iter().zip(read).take_while(|it| it.0 == it.1).count(),
            n_expected: now.len(),
        })
    }

    fn range(&self, range: RangeId) -> Option<Mismatched> {
        let query = self.history.range(range);
        let symbols = self.history.symbols();
        let place = |key: &KeyId| query.span.place(symbols, self.history.key_token(*key));
        let start = self.sorted.partition_point(|key| place(key).is_lt());
        let inside = self.sorted[start..]
            .iter()
            .take_while(|key| place(key).is_eq());
        let mut rows: FxHashMap<KeyId, ValueId> = FxHashMap::default();
        for &row in query.rows {
            rows.insert(self.history.value_key(row), row);
        }
        for &key in inside {
            let now = self.state[key.index()];
            let returned = rows.get(&key).copied();
            let fits = match (self.row(key), returned) {
                (Some(row), returned) => returned == Some(row),
                (None, None) => true,
                (None, Some(returned)) => returned.0 == now,
            };
            if !fits {
                return Some(Mismatched::Row {
                    key,
                    returned,
                    expected: self.row(key),
                });
            }
        }
        None
    }

    /// The rows that satisfy a query now, sorted by key.
    fn chosen(&self, query: u32) -> Vec<(KeyId, ValueId)> {
        let table = self.history.queries()[query as usize].table;
        let satisfies = |key: KeyId| {
            let value = self.row(key)?;
            self.history.satisfies(query, value).then_some((key, value))
        };
        let bounds = self.bounds[query as usize].iter();
        let within = bounds.map(|it| (it.column, it.low, it.high));
        let mut found: Vec<(KeyId, ValueId)> = if let Some(keys) = self.index.within(table, within)
        {
            keys.filter_map(satisfies).collect()
        } else {
            let keys = self.tables[table as usize].iter();
            keys.filter_map(|&key| satisfies(key)).collect()
        };
        found.sort_unstable();
        found
    }

    fn predicate(
        &self,
        txn: TxnId,
        number: u32,
        predicate: &Predicate,
    ) -> Result<Option<Mismatched>, AdyaError> {
        let chosen = self.chosen(predicate.query);
        let wrong = |what| {
            Ok(Some(Mismatched::Predicate(Mismatch {
                txn,
                predicate: number,
                what,
            })))
        };
        if let Act::Aggregate {
            function,
            column,
            result,
        } = predicate.act
        {
            let values = chosen.iter().map(|&(_, value)| match column {
                None => Token::Int(1),
                Some(column) => self.history.cell(value, column),
            });
            return match function.apply(self.history.symbols(), values) {
                None => Err(AdyaError::NoSum {
                    txn: self.history.txn_name(txn),
                }),
                Some(expected) if expected != result => wrong(Difference::Aggregate(expected)),
                Some(_) => Ok(None),
            };
        }
        let start = predicate.at as usize;
        let ops = &self.history.ops(txn)[start..start + predicate.n_ops as usize];
        let mut returned: Vec<(KeyId, Option<ValueId>)> = Vec::with_capacity(ops.len());
        for op in ops {
            match *op {
                Op::Read { key, value } => returned.push((key, Some(value))),
                Op::Write { key, .. } if returned.last().is_none_or(|it| it.0 != key) => {
                    returned.push((key, None));
                }
                _ => {}
            }
        }
        returned.sort_unstable();
        for &(key, value) in &chosen {
            match returned.binary_search_by_key(&key, |it| it.0) {
                Err(_) => return wrong(Difference::Missing(value)),
                Ok(at) => match returned[at].1 {
                    Some(it) if it != value => {
                        return wrong(Difference::Other {
                            returned: it,
                            visible: value,
                        });
                    }
                    _ => {}
                },
            }
        }
        for &(key, _) in &returned {
            if chosen.binary_search_by_key(&key, |it| it.0).is_err() {
                return wrong(Difference::Extra(key, self.row(key)));
            }
        }
        Ok(None)
    }
}
