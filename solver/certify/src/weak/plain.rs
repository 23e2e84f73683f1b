//! Replays an order of commits if every read is of one certain version and nothing else must be checked.
//!
//! What the history says by itself is prepared before the order is known, and may be while it is still looked for. Then the sessions
//! are checked several at a time.

use std::ops::Range;

use super::orders::check_lists;
use super::past::Pasts;
use super::reads::{Wary, externals};
use super::writers::KeyWriters;
use super::{MAX_BETWEEN, places};
use crate::Refusal;
use crate::meaning::Meaning;
use kingsnake_history::level::{Model, Spec};
use kingsnake_history::model::{History, KeyId, SessionId, Status, TxnId};

/// Histories with fewer operations are checked on one core.
const ALONE: usize = 20_000;

/// Maximum number of cores: each takes memory for every key and every transaction.
const MAX_PARTS: usize = 4;

const NOBODY: u32 = u32::MAX;

/// The comparisons of a replay. Tests replace them by wrong ones.
pub trait ReplayRules: Copy + Sync {
    /// Whether one at a place may read from one at another.
    fn is_before(self, from: u32, place: u32) -> bool {
        (1..place).contains(&from)
    }

    /// At read committed, whether an operation sees what another read.
    fn sees(self, seen: u32, op: u32) -> bool {
        seen <= op
    }

    /// Whether a writer is newer than the one that was read from, by their places.
    fn is_newer(self, latest: u32, from: u32) -> bool {
        latest > from
    }

    /// Whether reads see what came before in their session.
    fn looks_back(self) -> bool {
        true
    }

    /// Up to how many writers between two places are looked at one by one.
    fn max_between(self) -> usize {
        MAX_BETWEEN
    }

    /// Whether a transaction before a place of a session is in a past that ends there.
    fn is_past(self, writer: u32, end: u32) -> bool {
        writer < end
    }
}

/// The rules of the definitions.
#[derive(Clone, Copy, Debug)]
pub struct ExactReplay;

impl ReplayRules for ExactReplay {}

/// A read of another's write, or of the initial state.
#[derive(Clone, Copy)]
struct PlainRead {
    op: u32,
    key: KeyId,
    from: u32,
}

/// The external reads of all transactions, one after the other.
struct PlainReads {
    start: Vec<u32>,
    all: Vec<PlainRead>,
}

impl PlainReads {
    fn of(&self, txn: TxnId) -> &[PlainRead] {
        let at = |index: usize| self.start[index] as usize;
        &self.all[at(txn.index())..at(txn.index() + 1)]
    }
}

/// A history prepared at a level, before there is an order.
pub struct Prepared<'h> {
    history: &'h History,
    spec: Spec,
    reads: PlainReads,
    /// The writers of each key by their numbers.
    writers: KeyWriters,
    /// For causal consistency.
    pasts: Option<Pasts<'h>>,
}

impl<'h> Prepared<'h> {
    /// Reads a history; `None` if it is not plain (ends are unknown, reads uncertain, or there is more than reads and writes of keys), or
    /// the level not one of all transactions.
    pub fn of(history: &'h History, spec: Spec) -> Option<Self> {
        let mut txns = history.txns();
        let is_plain = history.n_ranges() == 0
            && history.n_predicates() == 0
            && history.version_orders().is_empty()
            && history.key_assumptions().is_empty()
            && history.given_edges().is_empty()
            && !txns.any(|txn| history.status(txn) == Status::Unknown);
        let is_cc = spec.model == Model::Cc;
        if !is_plain || !spec.model.is_weak() || is_cc && !spec.session_order {
            return None;
        }
        let reads = reads(&Meaning::of(history))?;
        let counted = |txn: &TxnId| history.status(*txn) == Status::Committed;
        let counted = (0..history.n_txns() as u32).map(TxnId).filter(counted);
        let writers = KeyWriters::of(history, counted.map(|txn| (txn, txn.0)));
        let pasts = if is_cc {
            Some(pasts(history, &reads)?)
        } else {
            None
        };
        Some(Prepared {
            history,
            spec,
            reads,
            writers,
            pasts,
        })
    }

    /// Checks that an order of commits explains the history.
    pub fn replay(&self, order: &[TxnId]) -> Result<(), Refusal> {
        self.replay_by(ExactReplay, order)
    }

    /// The same by rules that may be wrong.
    pub fn replay_by(&self, rules: impl ReplayRules, order: &[TxnId]) -> Result<(), Refusal> {
        self.check_by(rules, order).map_err(Refusal::Order)
    }

    pub(super) fn check(&self, order: &[TxnId]) -> Result<(), String> {
        self.check_by(ExactReplay, order)
    }

    fn check_by(&self, rules: impl ReplayRules, order: &[TxnId]) -> Result<(), String> {
        let counts = |txn: TxnId| self.history.status(txn) == Status::Committed;
        let place = places(self.history, counts, self.spec, order)?;
        let by_place = self
            .pasts
            .is_some()
            .then(|| self.writers.renumbered(&place));
        let part = |sessions: &[Range<u32>]| {
            let history = self.history;
            let mut part = Part {
                rules,
                prepared: self,
                order,
                place: &place,
                by_place: by_place.as_ref(),
                newest: vec![(NOBODY, 0); history.n_keys()],
                own: vec![(NOBODY, 0); history.n_keys()],
                seen_by: vec![NOBODY; history.n_txns()],
            };
            sessions
                .iter()
                .try_for_each(|txns| part.session(txns.clone()))
        };
        let parts = parts(self.history);
        let part = &part;
        std::thread::scope(|scope| {
            let (here, elsewhere) = parts.split_first().expect("there is one");
            let elsewhere = elsewhere
                .iter()
                .map(|sessions| scope.spawn(move || part(sessions)));
            let elsewhere: Vec<_> = elsewhere.collect();
            part(here)?;
            elsewhere.into_iter().try_for_each(|check| {
                let done = check.join();
                done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        })?;
        check_lists(self.history, order)
    }
}

/// The external reads of all transactions that count, if each is of one certain version.
fn reads(meaning: &Meaning<'_>) -> Option<PlainReads> {
    let history = meaning.history();
    let wary = Wary::of(meaning);
    let mut reads = PlainReads {
        start: Vec::with_capacity(history.n_txns() + 1),
        all: Vec::with_capacity(history.n_ops() / 2),
    };
    for txn in history.txns() {
        reads.start.push(reads.all.len() as u32);
        if meaning.counts(txn) {
            let external = externals(meaning, &wary, txn).ok()?.externals;
            reads.all.extend(external.into_iter().map(|read| PlainRead {
                op: read.op as u32,
                key: read.key,
                from: read.from.map_or(NOBODY, |from| from.0),
            }));
        }
    }
    reads.start.push(reads.all.len() as u32);
    Some(reads)
}

/// What happened before each transaction, session by session: before one is taken, the sessions that it read from are taken as far.
/// `None` if something happened before itself.
fn pasts<'h>(history: &'h History, reads: &PlainReads) -> Option<Pasts<'h>> {
    let mut pasts = Pasts::new(history, true);
    let sessions = (0..history.n_sessions() as u32).map(SessionId);
    let mut next: Vec<u32> = sessions
        .clone()
        .map(|it| history.session_txns(it).start)
        .collect();
    // How many reads of the next transaction of each session were looked at.
    let mut looked_at = vec![0_usize; next.len()];
    let mut is_waiting = vec![false; next.len()];
    let mut stack: Vec<(usize, u32)> = Vec::new();
    let mut sources: Vec<TxnId> = Vec::new();
    for session in sessions {
        stack.push((session.index(), history.session_txns(session).end));
        is_waiting[session.index()] = true;
        while let Some(&(session, end)) = stack.last() {
            if next[session] >= end {
                is_waiting[session] = false;
                stack.pop();
                continue;
            }
            let txn = TxnId(next[session]);
            let of_txn = reads.of(txn);
            let is_untaken = |read: &PlainRead| {
                read.from != NOBODY && read.from >= next[history.session(TxnId(read.from)).index()]
            };
            let untaken = of_txn[looked_at[session]..].iter().position(is_untaken);
            if let Some(at) = untaken {
                looked_at[session] += at;
                let from = TxnId(of_txn[looked_at[session]].from);
                let other = history.session(from).index();
                if std::mem::replace(&mut is_waiting[other], true) {
                    return None;
                }
                stack.push((other, from.0 + 1));
                continue;
            }
            if history.status(txn) != Status::Aborted {
                let from = of_txn.iter().filter(|read| read.from != NOBODY);
                sources.clear();
                sources.extend(from.map(|read| TxnId(read.from)));
                sources.sort_unstable();
                sources.dedup();
                pasts.take(txn, &sources);
            }
            next[session] += 1;
            looked_at[session] = 0;
        }
    }
    Some(pasts)
}

/// The sessions, in as many parts as are checked at a time.
fn parts(history: &History) -> Vec<Vec<Range<u32>>> {
    let n_cores = match history.n_ops() {
        0..ALONE => 1,
        _ => std::thread::available_parallelism().map_or(1, |it| it.get().min(MAX_PARTS)),
    };
    let n_a_part = history.n_txns().div_ceil(n_cores);
    let mut parts: Vec<Vec<Range<u32>>> = vec![Vec::new()];
    let mut n_of_last = 0;
    for session in (0..history.n_sessions() as u32).map(SessionId) {
        let txns = history.session_txns(session);
        if n_of_last >= n_a_part {
            parts.push(Vec::new());
            n_of_last = 0;
        }
        n_of_last += txns.len();
        parts.last_mut().expect("there is one").push(txns);
    }
    parts
}

/// A check of some sessions.
struct Part<'p, 'h, R> {
    rules: R,
    prepared: &'p Prepared<'h>,
    order: &'p [TxnId],
    place: &'p [u32],
    /// The places of the writers of each key, for causal consistency.
    by_place: Option<&'p KeyWriters>,
    /// For each key, who last read from a writer of it, and the latest place of these writers.
    newest: Vec<(u32, u32)>,
    /// For each key, the session that wrote it last, and where.
    own: Vec<(u32, u32)>,
    /// For each transaction, who last read from it.
    seen_by: Vec<u32>,
}

impl<R: ReplayRules> Part<'_, '_, R> {
    fn session(&mut self, txns: Range<u32>) -> Result<(), String> {
        let &Prepared { history, spec, .. } = self.prepared;
        let looks_back = spec.session_order
            && self.rules.looks_back()
            && matches!(spec.model, Model::RcSo | Model::Ra);
        let session = txns.start;
        for txn in txns.map(TxnId) {
            let place = self.place[txn.index()];
            if place == 0 {
                continue;
            }
            let reads = self.prepared.reads.of(txn);
            let is_before = |from: u32| self.rules.is_before(self.place[from as usize], place);
            if !reads
                .iter()
                .all(|it| it.from == NOBODY || is_before(it.from))
            {
                let name = history.txn_name(txn);
                return Err(format!(
                    "transaction {name} reads from one that is not before it"
                ));
            }
            self.reads(txn, session)?;
            if looks_back {
                let writes = history.ops(txn).iter().filter(|op| op.is_write());
                for key in writes.filter_map(|op| op.key()) {
                    self.own[key.index()] = (session, place);
                }
            }
        }
        Ok(())
    }

    /// Checks that the reads of a transaction missed nothing that they saw.
    fn reads(&mut self, txn: TxnId, session: u32) -> Result<(), String> {
        let (rules, model) = (self.rules, self.prepared.spec.model);
        let reads = self.prepared.reads.of(txn);
        let mut n_seen = 0;
        for read in reads {
            let sees = |it: &PlainRead| match model {
                Model::Rc | Model::RcSo => rules.sees(it.op, read.op),
                Model::Ra => true,
                _ => false,
            };
            while let Some(seen) = reads.get(n_seen).filter(|it| sees(it)) {
                self.see(txn, seen.from, reads);
                n_seen += 1;
            }
            let from = match read.from {
                NOBODY => 0,
                from => self.place[from as usize],
            };
            let (by, latest) = self.newest[read.key.index()];
            let (of, last) = self.own[read.key.index()];
            let has_newer = by == txn.0 && rules.is_newer(latest, from)
                || of == session && rules.is_newer(last, from);
            if has_newer || self.happened_between(txn, read.key, from) {
                let history = self.prepared.history;
                let (key, name) = (history.key_name(read.key), history.txn_name(txn));
                return Err(format!(
                    "operation {} of transaction {name} read key {key} although it saw a newer version",
                    read.op
                ));
            }
        }
        Ok(())
    }

    /// Notes that a transaction saw another, for the keys that it reads.
    fn see(&mut self, txn: TxnId, from: u32, reads: &[PlainRead]) {
        if from == NOBODY || std::mem::replace(&mut self.seen_by[from as usize], txn.0) == txn.0 {
            return;
        }
        let place = self.place[from as usize];
        let newest = &mut self.newest;
        let mut note = |key: KeyId| {
            let newest = &mut newest[key.index()];
            let latest = if newest.0 == txn.0 { newest.1 } else { 0 };
            *newest = (txn.0, place.max(latest));
        };
        let ops = self.prepared.history.ops(TxnId(from));
        if ops.len() <= 8 * reads.len() {
            let writes = ops.iter().filter(|op| op.is_write());
            writes.filter_map(|op| op.key()).for_each(note);
            return;
        }
        for key in reads.iter().map(|read| read.key) {
            let writers = self.prepared.writers.of_key(key);
            if writers.binary_search(&from).is_ok() {
                note(key);
            }
        }
    }

    /// At causal consistency, whether a writer of a key that comes after a place in the order happened before a transaction.
    fn happened_between(&self, txn: TxnId, key: KeyId, from: u32) -> bool {
        let (Some(pasts), Some(by_place)) = (&self.prepared.pasts, self.by_place) else {
            return false;
        };
        let writers = by_place.of_key(key);
        let first = writers.partition_point(|&it| it <= from);
        let end = self.place[txn.index()];
        let between = writers[first..].iter().take_while(|&&it| it < end);
        for (nth, &place) in between.enumerate() {
            if nth == self.rules.max_between() {
                return self.newest_before(pasts, txn, key) > from;
            }
            let writer = self.order[place as usize - 1];
            let end = pasts.end(txn, self.prepared.history.session(writer));
            if self.rules.is_past(writer.0, end) {
                return true;
            }
        }
        false
    }

    /// The latest place of a writer of a key in the past of a transaction. Session by session: the last of a session's writers in the
    /// past is its newest.
    fn newest_before(&self, pasts: &Pasts<'_>, txn: TxnId, key: KeyId) -> u32 {
        let history = self.prepared.history;
        let writers = self.prepared.writers.of_key(key);
        let (mut at, mut newest) = (0, 0);
        while let Some(&first) = writers.get(at) {
            let session = history.session(TxnId(first));
            let n_before =
                writers.partition_point(|&it| self.rules.is_past(it, pasts.end(txn, session)));
            if let Some(&last) = writers[at..n_before.max(at)].last() {
                newest = newest.max(self.place[last as usize]);
            }
            let end = history.session_txns(session).end;
            at = writers.partition_point(|&writer| writer < end);
        }
        newest
    }
}
