//! What happened before each transaction of an order, as the checker of the weak levels keeps it.
//!
//! With session order a past is a clock: how far it reaches into each session that another read from. Without it, it is the set of
//! transactions itself. All pasts stand in one array, one after the other.

use std::ops::Range;

use kingsnake_history::model::{History, SessionId, TxnId};

/// Up to how many sessions there is room for every clock from the start.
const MAX_ROOM: usize = 64;

/// The pasts of the transactions that were taken so far.
pub(super) struct Pasts<'h> {
    history: &'h History,
    session_order: bool,
    /// Where each transaction's past is among the entries.
    spans: Vec<Range<usize>>,
    entries: Vec<u32>,
    /// The entry of each session in the clocks, once another has read from it; where a clock ends, entries are 0.
    column: Vec<Option<usize>>,
    /// The session of each entry.
    columns: Vec<SessionId>,
    /// The last transaction of each session that was taken.
    last: Vec<Option<TxnId>>,
    scratch: Vec<u32>,
}

impl<'h> Pasts<'h> {
    pub(super) fn new(history: &'h History, session_order: bool) -> Self {
        // Growing would copy them all; room that is not used costs nothing.
        let n_entries = if session_order && history.n_sessions() <= MAX_ROOM {
            history.n_txns() * history.n_sessions()
        } else {
            0
        };
        Pasts {
            history,
            session_order,
            spans: vec![0..0; history.n_txns()],
            entries: Vec::with_capacity(n_entries),
            column: vec![None; history.n_sessions()],
            columns: Vec::new(),
            last: vec![None; history.n_sessions()],
            scratch: Vec::new(),
        }
    }

    /// Takes a transaction after all that happened before it: `sources` happened directly before it, besides its session.
    pub(super) fn take(&mut self, txn: TxnId, sources: &[TxnId]) {
        let mut past = std::mem::take(&mut self.scratch);
        past.clear();
        if self.session_order {
            let session = self.history.session(txn).index();
            let previous = self.last[session].replace(txn);
            for before in previous.into_iter().chain(sources.iter().copied()) {
                self.join(&mut past, txn, before);
            }
        } else {
            for source in sources {
                past.push(source.0);
                past.extend(&self.entries[self.spans[source.index()].clone()]);
            }
            past.sort_unstable();
            past.dedup();
        }
        let start = self.entries.len();
        self.entries.extend(&past);
        self.spans[txn.index()] = start..self.entries.len();
        self.scratch = past;
    }

    fn join(&mut self, clock: &mut Vec<u32>, txn: TxnId, before: TxnId) {
        let of = self.history.session(before);
        let entry = self.column[of.index()].and_then(|column| clock.get(column));
        if entry.is_some_and(|&end| before.0 < end) {
            return; // Its past is in already.
        }
        let theirs = &self.entries[self.spans[before.index()].clone()];
        if clock.len() < theirs.len() {
            clock.resize(theirs.len(), 0);
        }
        for (own, &other) in clock.iter_mut().zip(theirs) {
            *own = other.max(*own);
        }
        if of == self.history.session(txn) {
            return;
        }
        let column = *self.column[of.index()].get_or_insert_with(|| {
            self.columns.push(of);
            self.columns.len() - 1
        });
        if clock.len() <= column {
            clock.resize(column + 1, 0);
        }
        clock[column] = (before.0 + 1).max(clock[column]);
    }

    /// Whether one transaction happened before another that was taken.
    #[inline]
    pub(super) fn has(&self, txn: TxnId, earlier: TxnId) -> bool {
        if self.session_order {
            return earlier.0 < self.end(txn, self.history.session(earlier));
        }
        self.of(txn).binary_search(&earlier.0).is_ok()
    }

    /// With session order: where the past of a transaction ends in a session.
    #[inline]
    pub(super) fn end(&self, txn: TxnId, session: SessionId) -> u32 {
        if session == self.history.session(txn) {
            return txn.0;
        }
        let column = self.column[session.index()].and_then(|it| self.of(txn).get(it));
        column.copied().unwrap_or(0)
    }

    /// Without session order: the past of a transaction, sorted.
    #[inline]
    pub(super) fn of(&self, txn: TxnId) -> &[u32] {
        &self.entries[self.spans[txn.index()].clone()]
    }

    /// With session order: the other sessions that the past of a transaction reaches into, and where it ends in each.
    pub(super) fn ends(&self, txn: TxnId) -> impl Iterator<Item = (SessionId, u32)> + '_ {
        let session = self.history.session(txn);
        let ends = self
            .columns
            .iter()
            .copied()
            .zip(self.of(txn).iter().copied());
        ends.filter(move |&(other, _)| other != session)
    }
}
