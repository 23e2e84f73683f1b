//! Checks answers at the weak levels again: replays an order of commits.
//!
//! Replaying asks, for each read, how late in the order the newest visible writer of its key is: it must not be later than the
//! one that was read from. A range query that found keys as they were before any transaction must have seen no writer of any. What
//! happened before a transaction is kept as a clock over the sessions that others read from.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Refusal;
use super::assumed::{check_edges, check_keys};
use super::meaning::{Meaning, Version};
use super::sorted::SortedKeys;
use super::weak_reads::{Absent, External, ReadsOf, Wary, externals, repeatable_externals};
use kingsnake_history::level::{Model, Spec};
use kingsnake_history::model::{History, KeyId, Op, SessionId, Status, TxnId, ValueId};
use kingsnake_history::weak::{OperationSource, WeakSpec};

/// Checks that an order of commits explains the history at a weak level, where the reads that several transactions can explain are of
/// these sources.
pub fn replay(
    history: &History,
    spec: WeakSpec,
    order: &[TxnId],
    sources: &[OperationSource],
) -> Result<(), Refusal> {
    let spec = Spec {
        model: spec.level.into(),
        session_order: spec.session_order,
        real_time: None,
    };
    replay_from(history, spec, order, sources).map_err(Refusal::Order)
}

/// Checks that an order of commits gives the reads of every weak transaction, and of every transaction at parallel snapshot isolation,
/// what they may see.
pub(super) fn replay_commits(history: &History, spec: Spec, order: &[TxnId]) -> Result<(), String> {
    replay_from(history, spec, order, &[])
}

fn replay_from(
    history: &History,
    spec: Spec,
    order: &[TxnId],
    sources: &[OperationSource],
) -> Result<(), String> {
    // What the order names took effect, and no other of unknown end did: then a read has fewer writers to choose from.
    let mut txns = history.txns();
    if txns.any(|txn| history.status(txn) == Status::Unknown) {
        let named: FxHashSet<TxnId> = order.iter().copied().collect();
        let settled = history.with_effects_of(|txn| named.contains(&txn));
        return replay_settled(&settled, spec, order, sources);
    }
    replay_settled(history, spec, order, sources)
}

/// Takes the reads to be of these sources, each of which must be able to have written what was read.
fn take_sources(meaning: &Meaning<'_>, sources: &[OperationSource]) -> Result<(), String> {
    let history = meaning.history();
    for &OperationSource {
        reader,
        op,
        key,
        writer,
    } in sources
    {
        let is_known = reader.index() < history.n_txns() && key.index() < history.n_keys();
        let possible = is_known
            .then(|| meaning.sources_of(reader, op, key))
            .flatten();
        if !possible.is_some_and(|it| it.contains(&writer)) {
            return Err("a read cannot have been of the source that is named".to_owned());
        }
        meaning.assume_read((reader, op, key), Some(writer));
    }
    Ok(())
}

fn replay_settled(
    history: &History,
    spec: Spec,
    order: &[TxnId],
    sources: &[OperationSource],
) -> Result<(), String> {
    let meaning = Meaning::of(history);
    take_sources(&meaning, sources)?;
    let mut replay = Replay {
        history,
        spec,
        wary: Wary::of(&meaning),
        meaning,
        place: vec![0; history.n_txns()],
        writers: FxHashMap::default(),
        clocks: Vec::new(),
        last_writer: FxHashMap::default(),
        column: vec![None; history.n_sessions()],
        columns: Vec::new(),
        sessions: Vec::new(),
        pasts: FxHashMap::default(),
    };
    if history.n_ranges() > 0 {
        replay.sessions = vec![SortedKeys::new(history); history.n_sessions()];
    }
    replay.take_order(order)?;
    replay.index_writers();
    let has_clock = |model: Model| matches!(model, Model::Cc | Model::Psi);
    if history
        .txns()
        .any(|txn| has_clock(spec.model_of(history, txn)))
    {
        replay.clocks = vec![Vec::new(); history.n_txns()];
    }
    for &txn in order {
        replay.transaction(txn)?;
    }
    replay.lists(order)?;
    replay.version_orders()?;
    replay.assumptions()
}

struct Replay<'h> {
    history: &'h History,
    spec: Spec,
    meaning: Meaning<'h>,
    /// The place of each transaction in the order, from 1; 0 for one that is not there.
    place: Vec<usize>,
    /// The transactions of the order that write each key, session by session.
    writers: FxHashMap<KeyId, Vec<TxnId>>,
    /// For causal consistency, how far each transaction's past reaches into other sessions, or the whole past.
    clocks: Vec<Vec<u32>>,
    /// For parallel snapshot isolation, the last writer of each key so far.
    last_writer: FxHashMap<KeyId, TxnId>,
    /// The entry of each session in the clocks, once another has read from it; where a clock ends, entries are 0.
    column: Vec<Option<usize>>,
    /// The session of each entry.
    columns: Vec<usize>,
    /// Where range queries ask for them: the keys that each session wrote so far.
    sessions: Vec<SortedKeys<'h>>,
    /// And, for causal consistency, the keys in the past of each session so far.
    pasts: FxHashMap<usize, PastKeys<'h>>,
    wary: Wary<'h>,
}

/// The keys in the past of a session, and how far into each other session they were taken.
struct PastKeys<'h> {
    keys: SortedKeys<'h>,
    taken: FxHashMap<usize, u32>,
}

impl PastKeys<'_> {
    fn take(&mut self, history: &History, txn: TxnId) {
        let ops = history.ops(txn).iter().filter(|op| op.is_write());
        ops.filter_map(|op| op.key())
            .for_each(|key| self.keys.insert(key));
    }
}

impl<'h> Replay<'h> {
    fn name(&self, txn: TxnId) -> String {
        format!("transaction {}", self.history.txn_name(txn))
    }

    fn take_order(&mut self, order: &[TxnId]) -> Result<(), String> {
        for (at, &txn) in order.iter().enumerate() {
            if txn.index() >= self.history.n_txns() {
                return Err("the order names a transaction that is not in the history".to_owned());
            }
            if self.history.status(txn) == Status::Aborted {
                return Err(format!(
                    "{} aborted, yet it is in the order",
                    self.name(txn)
                ));
            }
            if std::mem::replace(&mut self.place[txn.index()], at + 1) != 0 {
                return Err(format!("{} is in the order twice", self.name(txn)));
            }
        }
        let mut last: Option<TxnId> = None;
        for txn in self.history.txns() {
            if self.place[txn.index()] == 0 {
                if self.meaning.counts(txn) {
                    return Err(format!("{} is not in the order", self.name(txn)));
                }
                continue;
            }
            let before = last.filter(|&it| self.history.session(it) == self.history.session(txn));
            let runs_back = |it: TxnId| self.place[it.index()] > self.place[txn.index()];
            if self.spec.session_order && before.is_some_and(runs_back) {
                return Err(format!("{} is ahead of its session", self.name(txn)));
            }
            last = Some(txn);
        }
        Ok(())
    }

    fn index_writers(&mut self) {
        for txn in self.history.txns() {
            if self.place[txn.index()] == 0 {
                continue;
            }
            for &op in self.history.ops(txn) {
                let Some(key) = op.key().filter(|_| op.is_write()) else {
                    continue;
                };
                let writers = self.writers.entry(key).or_default();
                if writers.last() != Some(&txn) {
                    writers.push(txn);
                }
            }
        }
    }

    fn transaction(&mut self, txn: TxnId) -> Result<(), String> {
        let ReadsOf {
            externals: reads,
            absents,
        } = match self.spec.model_of(self.history, txn) {
            Model::Psi => repeatable_externals(&self.meaning, &self.wary, txn)?,
            _ => externals(&self.meaning, &self.wary, txn)?,
        };
        for read in &reads {
            if let Some(from) = read.from
                && !(1..self.place[txn.index()]).contains(&self.place[from.index()])
            {
                return Err(format!(
                    "{} reads from one that is not before it",
                    self.name(txn)
                ));
            }
        }
        let model = self.spec.model_of(self.history, txn);
        if !self.clocks.is_empty() {
            let overwritten = self.overwritten(txn, model);
            self.keep_clock(txn, &reads, overwritten);
        }
        if model.is_weak() || model == Model::Psi {
            self.reads(txn, model, &reads, &absents)?;
        }
        if let Some(written) = self.sessions.get_mut(self.history.session(txn).index()) {
            let ops = self.history.ops(txn).iter().filter(|op| op.is_write());
            ops.filter_map(|op| op.key())
                .for_each(|key| written.insert(key));
        }
        Ok(())
    }

    /// Checks that the reads of a transaction missed nothing that they saw.
    fn reads(
        &mut self,
        txn: TxnId,
        model: Model,
        reads: &[External],
        absents: &[Absent<'h>],
    ) -> Result<(), String> {
        let mut newest: FxHashMap<KeyId, usize> = FxHashMap::default();
        let is_rc = matches!(model, Model::Rc | Model::RcSo);
        if model == Model::Ra {
            for read in reads {
                self.see(read.from, &mut newest);
            }
        }
        if !absents.is_empty() {
            self.absents(txn, model, absents, reads)?;
        }
        let mut seen = 0;
        for read in reads {
            while is_rc && seen < reads.len() && reads[seen].op <= read.op {
                self.see(reads[seen].from, &mut newest);
                seen += 1;
            }
            let mut latest = newest.get(&read.key).copied().unwrap_or(0);
            if self.spec.session_order && model != Model::Rc {
                latest = latest.max(self.newest_in_session(txn, read.key));
            }
            if matches!(model, Model::Cc | Model::Psi) {
                latest = latest.max(self.newest_in_past(txn, read.key));
            }
            let from = read.from.map_or(0, |from| self.place[from.index()]);
            if latest > from {
                let key = self.history.key_name(read.key);
                return Err(format!(
                    "operation {} of {} read key {key} although it saw a newer version",
                    read.op,
                    self.name(txn)
                ));
            }
        }
        Ok(())
    }

    /// Checks that the range queries of a transaction saw no writer of a key that they found as it was before any transaction.
    fn absents(
        &mut self,
        txn: TxnId,
        model: Model,
        absents: &[Absent<'h>],
        reads: &[External],
    ) -> Result<(), String> {
        let has_past = matches!(model, Model::Cc | Model::Psi);
        if has_past {
            self.take_past(txn);
        }
        let session = self.history.session(txn).index();
        let is_rc = matches!(model, Model::Rc | Model::RcSo);
        let mut newest: FxHashMap<KeyId, usize> = FxHashMap::default();
        let mut seen = 0;
        for absent in absents {
            while seen < reads.len() && (!is_rc || reads[seen].op <= absent.op) {
                self.see(reads[seen].from, &mut newest);
                seen += 1;
            }
            let tells = |key: &KeyId| absent.tells(&self.wary, *key);
            let mut found = newest.keys().copied().find(tells);
            if self.spec.session_order && model != Model::Rc {
                let earlier = self.sessions[session].within(absent.query);
                found = found.or_else(|| { earlier }.find(tells));
            }
            if let Some(past) = self.pasts.get(&session).filter(|_| has_past) {
                found = found.or_else(|| past.keys.within(absent.query).find(tells));
            }
            if let Some(key) = found {
                return Err(format!(
                    "operation {} of {} found no row of key {} although it saw one that wrote it",
                    absent.op,
                    self.name(txn),
                    self.history.key_name(key)
                ));
            }
        }
        Ok(())
    }

    /// Takes what is new in the past of a transaction since the last range query of its session.
    fn take_past(&mut self, txn: TxnId) {
        let history = self.history;
        let session = history.session(txn).index();
        let fresh = || PastKeys {
            keys: SortedKeys::new(history),
            taken: FxHashMap::default(),
        };
        let clock = &self.clocks[txn.index()];
        if !self.spec.session_order {
            let mut past = fresh();
            for &txn in clock {
                past.take(history, TxnId(txn));
            }
            self.pasts.insert(session, past);
            return;
        }
        let mut past = self.pasts.remove(&session).unwrap_or_else(fresh);
        for (&other, &end) in self.columns.iter().zip(clock) {
            if other == session {
                continue;
            }
            let start = history.session_txns(SessionId(other as u32)).start;
            let from = past.taken.insert(other, end).unwrap_or(start);
            for txn in (from..end).map(TxnId) {
                if self.place[txn.index()] != 0 {
                    past.take(history, txn);
                }
            }
        }
        self.pasts.insert(session, past);
    }

    fn see(&self, from: Version, newest: &mut FxHashMap<KeyId, usize>) {
        let Some(from) = from else { return };
        let place = self.place[from.index()];
        for &op in self.history.ops(from) {
            if let Some(key) = op.key().filter(|_| op.is_write()) {
                let latest = newest.entry(key).or_default();
                *latest = place.max(*latest);
            }
        }
    }

    /// The latest place of a writer of a key among the transactions with numbers in a range.
    fn newest_between(&self, key: KeyId, from: u32, to: u32) -> usize {
        let Some(writers) = self.writers.get(&key) else {
            return 0;
        };
        let end = writers.partition_point(|txn| txn.0 < to);
        let last = writers[..end].last().filter(|txn| txn.0 >= from);
        last.map_or(0, |last| self.place[last.index()])
    }

    fn newest_in_session(&self, txn: TxnId, key: KeyId) -> usize {
        let session = self.history.session_txns(self.history.session(txn));
        self.newest_between(key, session.start, txn.0)
    }

    /// Whose versions a transaction overwrote, where of two writers one must have happened before the other.
    fn overwritten(&mut self, txn: TxnId, model: Model) -> Vec<TxnId> {
        if model != Model::Psi {
            return Vec::new();
        }
        let writes = self.history.ops(txn).iter().filter(|op| op.is_write());
        let keys = writes.filter_map(|op| op.key());
        let before = keys.filter_map(|key| self.last_writer.insert(key, txn));
        before.filter(|&it| it != txn).collect()
    }

    /// With session order, how far the past reaches into each session; without it, the past itself, sorted.
    fn keep_clock(&mut self, txn: TxnId, reads: &[External], overwritten: Vec<TxnId>) {
        let mut sources: Vec<TxnId> = reads.iter().filter_map(|read| read.from).collect();
        sources.extend(overwritten);
        sources.sort_unstable();
        sources.dedup();
        if !self.spec.session_order {
            let mut past: Vec<u32> = sources.iter().map(|it| it.0).collect();
            for source in &sources {
                past.extend(&self.clocks[source.index()]);
            }
            past.sort_unstable();
            past.dedup();
            self.clocks[txn.index()] = past;
            return;
        }
        let session = self.history.session(txn);
        let mut clock: Vec<u32> = Vec::new();
        let earlier = self.history.session_txns(session).start..txn.0;
        let previous = earlier
            .rev()
            .map(TxnId)
            .find(|it| self.place[it.index()] != 0);
        for before in sources.iter().copied().chain(previous) {
            let theirs = &self.clocks[before.index()];
            if clock.len() < theirs.len() {
                clock.resize(theirs.len(), 0);
            }
            for (own, &other) in clock.iter_mut().zip(theirs) {
                *own = other.max(*own);
            }
            let of = self.history.session(before);
            if of == session {
                continue;
            }
            let column = *self.column[of.index()].get_or_insert_with(|| {
                self.columns.push(of.index());
                self.columns.len() - 1
            });
            if clock.len() <= column {
                clock.resize(column + 1, 0);
            }
            clock[column] = (before.0 + 1).max(clock[column]);
        }
        self.clocks[txn.index()] = clock;
    }

    fn newest_in_past(&self, txn: TxnId, key: KeyId) -> usize {
        let clock = &self.clocks[txn.index()];
        let Some(writers) = self.writers.get(&key) else {
            return 0;
        };
        let place = |writer: TxnId| self.place[writer.index()];
        if !self.spec.session_order {
            let past = writers
                .iter()
                .filter(|it| clock.binary_search(&it.0).is_ok());
            return past.map(|&it| place(it)).max().unwrap_or(0);
        }
        // One session after the other: the last of its writers in the past is its newest.
        let (mut at, mut newest) = (0, 0);
        while at < writers.len() {
            let session = self.history.session(writers[at]);
            let range = self.history.session_txns(session);
            let end = if session == self.history.session(txn) {
                txn.0
            } else {
                let column = self.column[session.index()].and_then(|column| clock.get(column));
                column.copied().unwrap_or(0)
            };
            newest = newest.max(self.newest_between(key, range.start, end));
            at = writers.partition_point(|it| it.0 < range.end);
        }
        newest
    }

    /// Every list that was read must be the appends of the order, up to the end of some transaction's.
    fn lists(&self, order: &[TxnId]) -> Result<(), String> {
        let mut appended: FxHashMap<KeyId, Vec<(ValueId, TxnId)>> = FxHashMap::default();
        for &txn in order {
            for &op in self.history.ops(txn) {
                if let Op::Append { key, value } = op {
                    appended.entry(key).or_default().push((value, txn));
                }
            }
        }
        for &txn in order {
            let mut own: Vec<(KeyId, ValueId)> = Vec::new();
            for &op in self.history.ops(txn) {
                match op {
                    Op::Append { key, value } => own.push((key, value)),
                    Op::ReadList { key, list } => {
                        let mine = own.iter().filter(|it| it.0 == key).count();
                        let items = self.history.list(list);
                        let before = &items[..items.len().saturating_sub(mine)];
                        let all = appended.get(&key).map_or(&[][..], Vec::as_slice);
                        let is_prefix = before.len() <= all.len()
                            && before.iter().zip(all).all(|(item, it)| *item == it.0);
                        let is_whole = match (before.len().checked_sub(1), all.get(before.len())) {
                            (Some(last), Some(next)) => all[last].1 != next.1,
                            _ => true,
                        };
                        if !(is_prefix && is_whole) {
                            let name = self.name(txn);
                            return Err(format!("{name} read a list that is not of this order"));
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// What the user assumes must be so in the order.
    fn assumptions(&self) -> Result<(), String> {
        let place = |txn: TxnId| self.place[txn.index()];
        let mut left: FxHashMap<ValueId, usize> = FxHashMap::default();
        if !self.history.key_assumptions().is_empty() {
            for (&key, writers) in &self.writers {
                for &txn in writers {
                    left.extend(self.meaning.left(txn, key).map(|it| (it, place(txn))));
                }
            }
        }
        let counts = |txn: TxnId| place(txn) != 0;
        check_keys(self.history, counts, |value| left.get(&value).copied())?;
        check_edges(self.history, place, place)
    }

    /// The version orders that came with the history must be those of the order.
    fn version_orders(&self) -> Result<(), String> {
        for order in self.history.version_orders() {
            let mut last = (0, 0);
            for &value in &order.values {
                let writers = self.writers.get(&order.key).into_iter().flatten();
                let mut writers = writers.filter_map(|&txn| {
                    let installed = self.meaning.installed(txn, order.key);
                    let at = installed.iter().position(|&it| it == value)?;
                    Some((self.place[txn.index()], at))
                });
                let Some(place) = writers.next() else {
                    continue;
                };
                if place < last {
                    let key = self.history.key_name(order.key);
                    return Err(format!("the version order of key {key} is another"));
                }
                last = place;
            }
        }
        Ok(())
    }
}
