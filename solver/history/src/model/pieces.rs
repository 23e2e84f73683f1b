//! A part of a history: some of its transactions, with some of their operations, and the matching part of every side table.
//!
//! Invariant: values that do not occur in the part are dropped, except those that tell which rows existed at first.

use std::ops::Range;

use super::history::{History, Op, TxnRow};
use super::ids::{ListId, RangeId, SessionId, TxnId, ValueId};
use super::predicates::{NO_ROW, RowTables, Snapshot};

/// What is kept or removed together: an operation, a compare-and-set, or a condition with its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxnPiece {
    /// The transaction.
    pub txn: TxnId,
    /// Its operations, counted within the transaction.
    pub ops: Range<usize>,
    /// The compare-and-set, by its place among [all](History::all_compares).
    pub compare: Option<usize>,
    /// The condition, by its place among [all](History::all_predicates).
    pub predicate: Option<usize>,
}

impl History {
    /// The pieces of all transactions, in order.
    pub fn pieces(&self) -> Vec<TxnPiece> {
        let mut pieces = Vec::with_capacity(self.n_ops());
        let (mut compares, mut predicates) = (0, 0);
        for txn in self.txns() {
            let (mut at, n_ops) = (0, self.ops(txn).len());
            loop {
                let condition = self.rows.predicates.get(predicates);
                let condition = condition.filter(|it| it.0 == txn && it.1.at as usize == at);
                let compare = self.compares.get(compares);
                let compare = compare.filter(|it| it.txn == txn && it.at as usize == at);
                let mut piece = TxnPiece {
                    txn,
                    ops: at..at + 1,
                    compare: None,
                    predicate: None,
                };
                if let Some((_, condition)) = condition {
                    piece.ops.end = at + condition.n_ops as usize;
                    piece.predicate = Some(predicates);
                    predicates += 1;
                } else if let Some(compare) = compare {
                    piece.ops.end = at + compare.outcome.n_ops();
                    piece.compare = Some(compares);
                    compares += 1;
                } else if at == n_ops {
                    break;
                }
                at = piece.ops.end;
                pieces.push(piece);
            }
        }
        pieces
    }

    /// The operations of a piece.
    pub fn piece_ops(&self, piece: &TxnPiece) -> &[Op] {
        &self.ops(piece.txn)[piece.ops.clone()]
    }

    /// The history of these transactions and these of the [pieces](History::pieces). `is_gone` tells which items are
    /// cut out of the lists that were read.
    #[must_use]
    pub fn part(
        &self,
        pieces: &[TxnPiece],
        keeps_txn: impl Fn(TxnId) -> bool,
        keeps_piece: impl Fn(usize) -> bool,
        is_gone: impl Fn(ValueId) -> bool,
    ) -> History {
        let mut part = self.empty();
        let mut next = 0;
        for txn in self.txns() {
            let first = next;
            next += pieces[first..].partition_point(|it| it.txn == txn);
            if !keeps_txn(txn) {
                continue;
            }
            part.begin(self, txn);
            for at in (first..next).filter(|&at| keeps_piece(at)) {
                part.take(self, &pieces[at], &is_gone);
            }
            let row = part.txns.last_mut().expect("it has begun");
            row.ops_end = part.ops.len() as u32;
        }
        part.finish_sessions();
        part.cut_versions();
        part.cut_events();
        part.forget_values();
        part
    }

    /// The names and values, without any transaction.
    fn empty(&self) -> History {
        History {
            txns: Vec::new(),
            ops: Vec::new(),
            session_names: self.session_names.clone(),
            session_start: Vec::new(),
            key_names: self.key_names.clone(),
            value_names: self.value_names.clone(),
            value_key: self.value_key.clone(),
            value_initial: self.value_initial.clone(),
            lists: Vec::new(),
            list_items: Vec::new(),
            ranges: Vec::new(),
            range_rows: Vec::new(),
            inserts: Vec::new(),
            compares: Vec::new(),
            tombstones: self.tombstones.clone(),
            initial_rows: self.initial_rows.clone(),
            intervals: self.intervals.as_ref().map(|_| Vec::new()),
            isolation: self.isolation.as_ref().map(|_| Vec::new()),
            models: Vec::new(),
            version_orders: self.version_orders.clone(),
            symbols: self.symbols.clone(),
            rows: RowTables {
                predicates: Vec::new(),
                stamps: Vec::new(),
                ..self.rows.clone()
            },
            notes: super::notes::Notes {
                of_txns: Vec::new(),
                events: self.notes.events.clone(),
            },
            assumptions: super::assumptions::Assumptions::default(),
        }
    }

    /// Begins a transaction of another history.
    fn begin(&mut self, whole: &History, txn: TxnId) {
        let ops_start = self.ops.len() as u32;
        self.txns.push(TxnRow {
            ops_start,
            ..whole.txns[txn.index()]
        });
        if let Some(intervals) = &mut self.intervals {
            intervals.push(whole.interval(txn));
        }
        if let (Some(own), Some(given)) = (&mut self.isolation, &whole.isolation) {
            own.push(given[txn.index()]);
        }
        if !whole.models.is_empty() {
            self.models.push(whole.model(txn));
        }
        if whole.has_stamps() {
            self.rows.stamps.push(whole.stamps(txn));
        }
        if !whole.notes.of_txns.is_empty() {
            self.notes.of_txns.push(whole.note(txn));
        }
    }

    /// Adds a piece to the transaction begun last.
    fn take(&mut self, whole: &History, piece: &TxnPiece, is_gone: &impl Fn(ValueId) -> bool) {
        let txn = TxnId(self.txns.len() as u32 - 1);
        let at = self.ops.len() as u32 - self.txns[txn.index()].ops_start;
        if let Some(compare) = piece.compare {
            let compare = whole.compares[compare];
            self.compares
                .push(super::compares::CompareAndSet { txn, at, ..compare });
        }
        if let Some(predicate) = piece.predicate {
            let mut predicate = whole.rows.predicates[predicate].1.clone();
            predicate.at = at;
            self.rows.predicates.push((txn, predicate));
        }
        for place in piece.ops.clone() {
            if whole.is_insert(piece.txn, place) {
                self.inserts.push(self.ops.len() as u32);
            }
            let op = self.adopt(whole, whole.ops(piece.txn)[place], is_gone);
            self.ops.push(op);
        }
    }

    /// An operation with its list or range in this history's tables.
    fn adopt(&mut self, whole: &History, op: Op, is_gone: &impl Fn(ValueId) -> bool) -> Op {
        match op {
            Op::ReadList { key, list } => {
                let start = self.list_items.len() as u32;
                let items = whole.list(list).iter().copied();
                self.list_items.extend(items.filter(|&it| !is_gone(it)));
                self.lists
                    .push((start, self.list_items.len() as u32 - start));
                let list = ListId(self.lists.len() as u32 - 1);
                Op::ReadList { key, list }
            }
            Op::Range { range } => {
                let mut row = whole.ranges[range.index()];
                self.range_rows.extend(whole.range(range).rows);
                row.rows_end = self.range_rows.len() as u32;
                self.ranges.push(row);
                let range = RangeId(self.ranges.len() as u32 - 1);
                Op::Range { range }
            }
            plain => plain,
        }
    }

    /// Drops sessions without transactions.
    fn finish_sessions(&mut self) {
        let names = std::mem::take(&mut self.session_names);
        self.session_start = vec![0];
        let mut last = None;
        for (at, TxnRow { session, .. }) in self.txns.iter_mut().enumerate() {
            if last != Some(*session) {
                last = Some(*session);
                self.session_names.push(names[session.index()]);
                if at > 0 {
                    self.session_start.push(at as u32);
                }
            }
            *session = SessionId(self.session_names.len() as u32 - 1);
        }
        if !self.txns.is_empty() {
            self.session_start.push(self.txns.len() as u32);
        }
    }

    /// Keeps those versions of the version orders that are still written or initial.
    fn cut_versions(&mut self) {
        let mut is_written = vec![false; self.n_values()];
        for op in &self.ops {
            if let Op::Write { value, .. } | Op::Append { value, .. } = op {
                is_written[value.index()] = true;
            }
        }
        let initial = std::mem::take(&mut self.value_initial);
        self.retain_versions(|value| is_written[value.index()] || initial[value.index()]);
        self.value_initial = initial;
    }

    /// Keeps the events between the first begin and the last end.
    fn cut_events(&mut self) {
        let Some(intervals) = &self.intervals else {
            return;
        };
        let begins = intervals.iter().map(|it| it.begin);
        let ends = intervals.iter().map(|it| it.commit);
        let (first, last) = (begins.min(), ends.max());
        let is_within =
            |time: i64| first.is_none_or(|it| it <= time) && last.is_none_or(|it| time <= it);
        self.notes.events.retain(|it| is_within(it.time));
    }

    /// Renumbers the values that occur and drops the others. If there are ranges or conditions, the rows that exist at
    /// first matter.
    fn forget_values(&mut self) {
        let rows_matter = !self.ranges.is_empty() || !self.rows.predicates.is_empty();
        let mut is_named = vec![false; self.n_values()];
        self.each_value(|value| is_named[value.index()] = true);
        if rows_matter {
            for (is_named, &is_initial) in is_named.iter_mut().zip(&self.value_initial) {
                *is_named |= is_initial;
            }
        }
        let mut numbers = vec![ValueId(u32::MAX); is_named.len()];
        let mut n_kept = 0;
        for (at, _) in is_named.iter().enumerate().filter(|it| *it.1) {
            numbers[at] = ValueId(n_kept as u32);
            self.value_names.move_back(n_kept, at);
            self.value_key[n_kept] = self.value_key[at];
            self.value_initial[n_kept] = self.value_initial[at];
            if let Some(&start) = self.rows.row_start.get(at) {
                self.rows.row_start[n_kept] = start;
            } else if let Some(start) = self.rows.row_start.get_mut(n_kept) {
                *start = NO_ROW;
            }
            n_kept += 1;
        }
        self.value_names.truncate(n_kept);
        self.value_key.truncate(n_kept);
        self.value_initial.truncate(n_kept);
        self.rows.row_start.truncate(n_kept);
        let kept = self
            .tombstones
            .iter()
            .map(|it| numbers[it.index()])
            .filter(|it| it.0 != u32::MAX);
        self.tombstones = kept.collect();
        self.each_value(|value| *value = numbers[value.index()]);
    }

    /// Visits every place with a value.
    fn each_value(&mut self, mut visit: impl FnMut(&mut ValueId)) {
        for op in &mut self.ops {
            if let Op::Read { value, .. } | Op::Write { value, .. } | Op::Append { value, .. } = op
            {
                visit(value);
            }
        }
        self.list_items.iter_mut().for_each(&mut visit);
        self.range_rows.iter_mut().for_each(&mut visit);
        for compare in &mut self.compares {
            visit(&mut compare.expected);
            visit(&mut compare.new);
            if let super::compares::CompareOutcome::Shown(value) = &mut compare.outcome {
                visit(value);
            }
        }
        for order in &mut self.version_orders {
            order.values.iter_mut().for_each(&mut visit);
        }
        for (_, predicate) in &mut self.rows.predicates {
            if let Some(Snapshot::Set(values)) = &mut predicate.snapshot {
                values.iter_mut().for_each(&mut visit);
            }
        }
    }
}
