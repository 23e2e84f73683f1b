//! Certify's own reading of a certificate: the versions of each key, and what a read and a snapshot show.

use kingsnake_history::model::{
    Act, History, KeyId, Op, Predicate, RangeId, Snapshot, Status, Token, TxnId, ValueId,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// A version: who wrote it (`None`: the initial one) and its value, if it has a row.
type Version = (Option<TxnId>, Option<ValueId>);

/// No writer of a value, no place of a value, no table of a key.
const NONE: u32 = u32::MAX;

pub(crate) struct Reading<'h> {
    history: &'h History,
    counted: FxHashSet<TxnId>,
    /// The writer of each value.
    writer: Vec<u32>,
    versions: Vec<Vec<Version>>,
    /// The place of each value among the versions of its key.
    place: Vec<u32>,
    tables: Vec<Vec<KeyId>>,
    table_of: Vec<u32>,
    /// `commit_ts` of each key's versions, where all are known.
    times: Vec<Vec<i64>>,
    lacks_times: bool,
    is_sorted: Vec<bool>,
}

/// What a snapshot shows to a transaction, whose own commit is not in it.
pub(crate) enum View<'h> {
    At(i64, TxnId),
    Postgres(i64, i64, &'h [i64], TxnId),
    Set(FxHashMap<KeyId, usize>),
}

impl<'h> Reading<'h> {
    pub(crate) fn new(history: &'h History) -> Result<Self, String> {
        let mut writer = vec![NONE; history.n_values()];
        for txn in history.txns() {
            for op in history.ops(txn) {
                if let Op::Write { value, .. } | Op::Append { value, .. } = *op
                    && std::mem::replace(&mut writer[value.index()], txn.0) != NONE
                {
                    return Err("two writes have one value".to_owned());
                }
            }
        }
        let mut reading = Reading {
            history,
            counted: count(history),
            writer,
            versions: vec![Vec::new(); history.n_keys()],
            place: vec![NONE; history.n_values()],
            tables: vec![Vec::new(); history.tables().len()],
            table_of: vec![NONE; history.n_keys()],
            times: Vec::new(),
            lacks_times: false,
            is_sorted: Vec::new(),
        };
        reading.order()?;
        for key in (0..history.n_keys() as u32).map(KeyId) {
            if let Some(table) = history.table_of(key) {
                reading.tables[table as usize].push(key);
                reading.table_of[key.index()] = table;
            }
        }
        let time = |version: &Version| match version.0 {
            None => Some(i64::MIN),
            Some(txn) => history.stamps(txn).commit_ts,
        };
        let all = reading.versions.iter();
        let times = all.map(|list| list.iter().map(time).collect::<Option<Vec<i64>>>());
        reading.lacks_times = times.clone().any(|it| it.is_none());
        reading.times = times.collect::<Option<Vec<_>>>().unwrap_or_default();
        reading.is_sorted = reading.times.iter().map(|it| it.is_sorted()).collect();
        Ok(reading)
    }

    fn order(&mut self) -> Result<(), String> {
        let history = self.history;
        let finals = self.finals();
        let mut is_final = vec![false; history.n_values()];
        for value in &finals {
            is_final[value.index()] = true;
        }
        let mut shown: FxHashMap<KeyId, Vec<ValueId>> = FxHashMap::default();
        for txn in history.txns().filter(|txn| self.counted.contains(txn)) {
            for op in history.ops(txn) {
                if let Op::ReadList { key, list } = *op {
                    let known = shown.entry(key).or_default();
                    if history.list(list).len() > known.len() {
                        *known = history.list(list).to_vec();
                    }
                }
            }
        }
        for order in history.version_orders() {
            shown.insert(order.key, order.values.clone());
        }
        for value in (0..history.n_values() as u32).map(ValueId) {
            if history.is_initial(value) && !history.is_absence(value) {
                self.versions[history.value_key(value).index()] = vec![(None, Some(value))];
            }
        }
        for key in (0..history.n_keys() as u32).map(KeyId) {
            let list = &mut self.versions[key.index()];
            if list.is_empty() {
                list.push((None, None));
            }
            for &value in shown.get(&key).into_iter().flatten() {
                if is_final[value.index()] {
                    is_final[value.index()] = false;
                    list.push((Some(TxnId(self.writer[value.index()])), Some(value)));
                }
            }
        }
        // What nothing shows comes last, by the times of the commits where there are several.
        let rest = finals.into_iter().filter(|it| is_final[it.index()]);
        let rest = rest.map(|value| {
            let writer = TxnId(self.writer[value.index()]);
            let key = history.value_key(value).index();
            (key, history.stamps(writer).commit_ts, writer, value)
        });
        let mut rest: Vec<_> = rest.collect();
        rest.sort_by_key(|it| (it.0, it.1));
        let same_key = |pair: &[_]| {
            let (one, two): (&(usize, Option<i64>, TxnId, ValueId), _) = (&pair[0], &pair[1]);
            one.0 == two.0 && (one.1.is_none() || one.1 == two.1)
        };
        if rest.windows(2).any(same_key) {
            return Err("the order of some versions is not known".to_owned());
        }
        for (key, _, writer, value) in rest {
            self.versions[key].push((Some(writer), Some(value)));
        }
        for list in &self.versions {
            for (at, version) in list.iter().enumerate().skip(1) {
                if let Some(value) = version.1 {
                    self.place[value.index()] = at as u32;
                }
            }
        }
        Ok(())
    }

    /// The last value of each counted transaction for each key.
    fn finals(&self) -> Vec<ValueId> {
        let mut finals = Vec::new();
        let mut last = vec![NONE; self.history.n_keys()];
        let txns = self.history.txns();
        for txn in txns.filter(|txn| self.counted.contains(txn)) {
            for op in self.history.ops(txn).iter().rev() {
                if let Op::Write { key, value } | Op::Append { key, value } = *op
                    && std::mem::replace(&mut last[key.index()], txn.0) != txn.0
                {
                    finals.push(value);
                }
            }
        }
        finals
    }

    fn writer(&self, value: ValueId) -> Option<TxnId> {
        Some(self.writer[value.index()])
            .filter(|&it| it != NONE)
            .map(TxnId)
    }

    fn place(&self, value: ValueId) -> Option<usize> {
        Some(self.place[value.index()])
            .filter(|&it| it != NONE)
            .map(|it| it as usize)
    }

    pub(crate) fn history(&self) -> &'h History {
        self.history
    }

    pub(crate) fn counts(&self, txn: TxnId) -> bool {
        self.counted.contains(&txn)
    }

    pub(crate) fn n_counted(&self) -> usize {
        self.counted.len()
    }

    pub(crate) fn versions(&self, key: KeyId) -> &[Version] {
        &self.versions[key.index()]
    }

    pub(crate) fn table(&self, table: u32) -> &[KeyId] {
        &self.tables[table as usize]
    }

    /// Whether a key is a row of a table.
    pub(crate) fn is_in(&self, key: KeyId, table: u32) -> bool {
        self.table_of[key.index()] == table
    }

    /// The keys of all tables.
    pub(crate) fn rows(&self) -> impl Iterator<Item = KeyId> + '_ {
        self.tables.iter().flatten().copied()
    }

    /// Whether the times of a key's versions are known and grow.
    pub(crate) fn is_sorted(&self, key: KeyId) -> bool {
        self.is_sorted.get(key.index()).is_some_and(|it| *it)
    }

    /// The versions that a transaction installed, by key and place.
    pub(crate) fn installed(&self, txn: TxnId) -> impl Iterator<Item = (KeyId, usize)> + '_ {
        let ops = self.history.ops(txn).iter();
        ops.filter_map(|op| match *op {
            Op::Write { key, value } | Op::Append { key, value } => Some((key, self.place(value)?)),
            _ => None,
        })
    }

    pub(crate) fn predicates(
        &self,
        txn: TxnId,
    ) -> impl Iterator<Item = (u32, &'h Predicate)> + use<'h> {
        self.history.numbered_predicates(txn)
    }

    /// The place of the version that a read shows, `None` for the transaction's own write; an error where it is wrong by itself.
    pub(crate) fn read(
        &self,
        txn: TxnId,
        at: usize,
        key: KeyId,
        value: ValueId,
    ) -> Result<Option<usize>, String> {
        let own = self.history.ops(txn)[..at]
            .iter()
            .rev()
            .find_map(|op| match *op {
                Op::Write { key: it, value } | Op::Append { key: it, value } if it == key => {
                    Some(value)
                }
                _ => None,
            });
        self.read_after(own, txn, value)
    }

    /// The same, given the transaction's own last write of the key before.
    pub(crate) fn read_after(
        &self,
        own: Option<ValueId>,
        txn: TxnId,
        value: ValueId,
    ) -> Result<Option<usize>, String> {
        if let Some(own) = own {
            return if own == value {
                Ok(None)
            } else {
                Err("not its own last write".to_owned())
            };
        }
        match (self.writer(value), self.place(value)) {
            (None, _) if self.history.is_initial(value) => Ok(Some(0)),
            (None, _) => Err("it was never written".to_owned()),
            (Some(writer), _) if writer == txn => Err("it writes it only later".to_owned()),
            (Some(_), None) => Err("it is no committed version".to_owned()),
            (Some(_), Some(place)) => Ok(Some(place)),
        }
    }

    /// The same for a list.
    pub(crate) fn read_list(
        &self,
        txn: TxnId,
        at: usize,
        key: KeyId,
        list: &[ValueId],
    ) -> Result<Option<usize>, String> {
        let appends = |txn: TxnId, before: usize| {
            let ops = self.history.ops(txn)[..before].iter();
            let own = ops.filter_map(|op| match *op {
                Op::Append { key: it, value } if it == key => Some(value),
                _ => None,
            });
            own.collect::<Vec<ValueId>>()
        };
        let own = appends(txn, at);
        let base = list.strip_suffix(&own[..]).ok_or("not its own appends")?;
        let mut expected = Vec::new();
        let mut place = 0;
        for (at, version) in self.versions(key).iter().enumerate().skip(1) {
            if expected.len() >= base.len() {
                break;
            }
            let writer = version.0.ok_or("a version without a writer")?;
            if writer == txn {
                return Err("it sees its own later appends".to_owned());
            }
            expected.extend(appends(writer, self.history.ops(writer).len()));
            place = at;
        }
        if expected == base {
            Ok(Some(place))
        } else {
            Err("it is no list of committed versions in their order".to_owned())
        }
    }

    /// The key that a transaction found as it was before any transaction, without a row; `None` where it has written a delete without a
    /// name itself, or no other one names the key. An error where it is wrong by itself.
    pub(crate) fn untouched(
        &self,
        txn: TxnId,
        at: usize,
        range: RangeId,
    ) -> Result<Option<KeyId>, String> {
        let history = self.history;
        let asked = history.range(range).untouched_key();
        let mut keys = (0..history.n_keys() as u32).map(KeyId);
        let asked = asked.ok_or("a range of several keys")?;
        let Some(key) = keys.find(|&key| history.key_token(key) == asked) else {
            return Ok(None);
        };
        let is_nameless =
            |value: ValueId| history.is_absence(value) && !history.is_tombstone(value);
        let own = self.own_writes(txn, at);
        match own.iter().find(|it| it.0 == key) {
            Some(it) if is_nameless(it.1) => Ok(None),
            Some(_) => Err("not its own last write".to_owned()),
            None if history.is_there_initially(key) => Err("the row was there at first".to_owned()),
            None => Ok(Some(key)),
        }
    }

    /// The last write of each key before one of a transaction's operations.
    pub(crate) fn own_writes(&self, txn: TxnId, before: usize) -> Vec<(KeyId, ValueId)> {
        let mut own: Vec<(KeyId, ValueId)> = Vec::new();
        for op in &self.history.ops(txn)[..before] {
            if let Op::Write { key, value } = *op {
                own.retain(|it| it.0 != key);
                own.push((key, value));
            }
        }
        own
    }

    pub(crate) fn view(&self, txn: TxnId, predicate: &'h Predicate) -> Result<View<'h>, String> {
        Ok(match &predicate.snapshot {
            None | Some(Snapshot::At(_)) if self.lacks_times => {
                return Err("no commit_ts".to_owned());
            }
            None => {
                let time = self.history.stamps(txn).start_ts;
                View::At(time.ok_or("no snapshot")?, txn)
            }
            Some(Snapshot::At(time)) => View::At(*time, txn),
            Some(Snapshot::Postgres {
                xmin,
                xmax,
                running,
            }) => View::Postgres(*xmin, *xmax, running, txn),
            Some(Snapshot::Set(values)) => {
                let placed = values.iter().map(|value| {
                    let at = self.place(*value).unwrap_or(0);
                    (self.history.value_key(*value), at)
                });
                View::Set(placed.collect())
            }
        })
    }

    /// The place of the version that a snapshot shows of a key.
    pub(crate) fn visible(&self, view: &View<'_>, key: KeyId) -> usize {
        let versions = self.versions(key);
        match view {
            View::Set(places) => places.get(&key).copied().unwrap_or(0),
            View::At(time, reader) => {
                let times = &self.times[key.index()];
                let is_own = |at: usize| versions[at].0 == Some(*reader);
                if self.is_sorted[key.index()] {
                    let at = times.partition_point(|it| it <= time).max(1) - 1;
                    return if is_own(at) { at - 1 } else { at };
                }
                let seen = (1..times.len()).filter(|&at| times[at] <= *time && !is_own(at));
                seen.max_by_key(|&at| times[at]).unwrap_or(0)
            }
            View::Postgres(xmin, xmax, running, reader) => {
                let is_seen = |version: &Version| {
                    let Some(txn) = version.0 else {
                        return true;
                    };
                    if txn == *reader {
                        return false;
                    }
                    let xid = self.history.stamps(txn).xid.unwrap_or(i64::MAX);
                    xid < *xmin || (xid < *xmax && !running.contains(&xid))
                };
                versions.iter().rposition(is_seen).unwrap_or(0)
            }
        }
    }

    /// The same, where it is likely to be the version of this place.
    pub(crate) fn visible_near(&self, view: &View<'_>, key: KeyId, near: usize) -> usize {
        if let View::At(time, reader) = view
            && self.is_sorted[key.index()]
        {
            let times = &self.times[key.index()];
            let is_newest = times.get(near + 1).is_none_or(|next| next > time);
            let is_own = self.versions(key)[near].0 == Some(*reader);
            if times[near] <= *time && is_newest && !is_own {
                return near;
            }
        }
        self.visible(view, key)
    }

    pub(crate) fn matches(&self, query: u32, key: KeyId, at: usize) -> bool {
        let value = self.versions(key)[at].1;
        value.is_some_and(|value| self.history.satisfies(query, value))
    }

    /// Whether a version is one of those that a predicate's result depends on by being there or not: it satisfies the condition,
    /// and is beyond the least or greatest value where that was asked for.
    pub(crate) fn bears_on(&self, predicate: &Predicate, key: KeyId, at: usize) -> bool {
        if !self.matches(predicate.query, key, at) {
            return false;
        }
        let Some(extreme) = predicate.act.extreme() else {
            return true;
        };
        self.versions(key)[at].1.is_some_and(|value| {
            let cell = self.history.cell(value, extreme.column);
            let symbols = self.history.symbols();
            extreme.function.is_beyond(symbols, cell, extreme.result)
        })
    }

    /// Whether an aggregate reads a version that its condition chose.
    pub(crate) fn computes_with(&self, predicate: &Predicate, value: ValueId) -> bool {
        let Act::Aggregate {
            column: Some(column),
            result,
            ..
        } = predicate.act
        else {
            return false;
        };
        let is_extreme = predicate.act.extreme().is_some();
        !is_extreme || (result != Token::Nil && self.history.cell(value, column) == result)
    }

    /// What a predicate returned for a key: nothing, the key alone, or its version.
    #[allow(clippy::option_option)] // All three occur.
    pub(crate) fn returned(
        &self,
        txn: TxnId,
        predicate: &Predicate,
        key: KeyId,
    ) -> Option<Option<ValueId>> {
        let start = predicate.at as usize;
        let ops = &self.history.ops(txn)[start..start + predicate.n_ops as usize];
        let found = ops.iter().find(|op| op.key() == Some(key))?;
        Some(match *found {
            Op::Read { value, .. } => Some(value),
            _ => None,
        })
    }

    /// Whether a predicate returned each of these rows, with this version where it says which. Rows in the order in which they were
    /// returned are found at once.
    pub(crate) fn are_returned(
        &self,
        txn: TxnId,
        predicate: &Predicate,
        rows: &[(KeyId, ValueId)],
    ) -> bool {
        let start = predicate.at as usize;
        let ops = &self.history.ops(txn)[start..start + predicate.n_ops as usize];
        let mut next = 0;
        rows.iter().all(|&(key, value)| {
            let is_key = |op: &Op| op.key() == Some(key);
            let later = ops[next..].iter().position(is_key).map(|at| next + at);
            // A row that was returned is read before it is written.
            let found = match later.filter(|&at| at == 0 || !is_key(&ops[at - 1])) {
                Some(at) => Some(at),
                None => ops.iter().position(is_key),
            };
            let Some(at) = found else {
                return false;
            };
            next = at + 1;
            match ops[at] {
                Op::Read { value: it, .. } => it == value,
                _ => true,
            }
        })
    }

    /// Whether one transaction had committed when the other started, by the database's own times.
    pub(crate) fn precedes(&self, one: TxnId, other: TxnId) -> Result<bool, String> {
        let commit = self.history.stamps(one).commit_ts.ok_or("no commit_ts")?;
        let start = self.history.stamps(other).start_ts.ok_or("no start_ts")?;
        Ok(commit <= start)
    }
}

/// The transactions that count: those that committed, and those of unknown end of which a counted one or a version order shows a
/// value.
pub(crate) fn count(history: &History) -> FxHashSet<TxnId> {
    let is = |txn: TxnId, status: Status| history.status(txn) == status;
    let txns = history.txns();
    let mut counted: FxHashSet<TxnId> = txns.filter(|&it| is(it, Status::Committed)).collect();
    if !history.txns().any(|txn| is(txn, Status::Unknown)) {
        return counted;
    }
    let mut writer = FxHashMap::default();
    for txn in history.txns().filter(|&it| is(it, Status::Unknown)) {
        for op in history.ops(txn) {
            if let Op::Write { value, .. } | Op::Append { value, .. } = *op {
                writer.insert(value, txn);
            }
        }
    }
    loop {
        let before = counted.len();
        let mut shown: Vec<ValueId> = Vec::new();
        shown.extend(history.version_orders().iter().flat_map(|it| &it.values));
        for &txn in &counted {
            for op in history.ops(txn) {
                match *op {
                    Op::Read { value, .. } => shown.push(value),
                    Op::ReadList { list, .. } => shown.extend(history.list(list)),
                    Op::Range { range } => shown.extend(history.range(range).rows),
                    _ => {}
                }
            }
        }
        counted.extend(shown.iter().filter_map(|value| writer.get(value)));
        if counted.len() == before {
            return counted;
        }
    }
}
