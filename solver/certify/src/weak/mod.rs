//! Checks answers at the weak levels again: replays an order of commits.
//!
//! Replaying asks, for each read, whether it saw a writer of its key that comes later in the order than the one that was read from.
//! What happened before a transaction comes before it in the order, so only writers between the two can be such; they are few in the
//! orders that checks find, and where they are many, they are looked up session by session. A range query that found keys as they were
//! before any transaction must have seen no writer of any.

mod absents;
mod blocks;
mod orders;
mod past;
pub mod plain;
pub(crate) mod reads;
mod sees;
mod writers;

pub use sees::{PathStep, Seen, why_seen};
pub(crate) use sees::{reads_from, sees};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::Refusal;
use crate::meaning::{Meaning, Version};
use crate::sorted::SortedKeys;
use absents::PastKeys;
use blocks::{Blocks, PlacedRead};
use kingsnake_history::level::{Model, Spec};
use kingsnake_history::model::{Act, History, KeyId, Status, TxnId};
use kingsnake_history::verdict::OperationSource;
use orders::check_lists;
use past::Pasts;
use plain::Prepared;
use reads::{External, ReadsOf, Wary, externals, repeatable_externals};
use writers::KeyWriters;

/// How many writers of a key are looked at one by one before they are looked up session by session.
const MAX_BETWEEN: usize = 32;

/// Checks that an order of commits gives the reads of every weak transaction, and of every transaction at parallel snapshot isolation,
/// what they may see, where reads that several can explain are of these sources.
pub(crate) fn replay(
    history: &History,
    spec: Spec,
    order: &[TxnId],
    sources: &[OperationSource],
) -> Result<(), String> {
    if sources.is_empty()
        && let Some(prepared) = Prepared::of(history, spec)
    {
        return prepared.check(order);
    }
    replay_by_turns(history, spec, order, sources)
}

/// The same, one transaction after the other, whatever the history holds.
pub fn replay_in_order(
    history: &History,
    spec: Spec,
    order: &[TxnId],
    sources: &[OperationSource],
) -> Result<(), Refusal> {
    replay_by_turns(history, spec, order, sources).map_err(Refusal::Order)
}

fn replay_by_turns(
    history: &History,
    spec: Spec,
    order: &[TxnId],
    sources: &[OperationSource],
) -> Result<(), String> {
    // The transactions named in the order took effect, and no others of unknown outcome: then a read has fewer candidates.
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
    let place = places(history, |txn| meaning.counts(txn), spec, order)?;
    let numbered = order.iter().copied().zip(1..);
    let has_clock = |model: Model| matches!(model, Model::Cc | Model::Psi);
    let mut txns = history.txns();
    let has_pasts = txns.any(|txn| has_clock(spec.model_of(history, txn)));
    // A range query asks for all keys of a past.
    let in_blocks = !spec.session_order && history.n_ranges() == 0;
    let n_queried = if history.n_ranges() > 0 {
        history.n_sessions()
    } else {
        0
    };
    let mut replay = WeakReplay {
        history,
        spec,
        order,
        wary: Wary::of(&meaning),
        writers: KeyWriters::of(history, numbered),
        by_number: None,
        pasts: (has_pasts && !in_blocks).then(|| Pasts::new(history, spec.session_order)),
        blocks: (has_pasts && in_blocks).then(Blocks::default),
        last_writer: FxHashMap::default(),
        newest: vec![(NOBODY, 0); history.n_keys()],
        seen_by: vec![NOBODY; history.n_txns()],
        sources: Vec::new(),
        sessions: vec![SortedKeys::new(history); n_queried],
        past_keys: FxHashMap::default(),
        meaning,
        place,
    };
    for &txn in order {
        replay.transaction(txn)?;
    }
    replay.blocks()?;
    check_lists(history, order)?;
    replay.version_orders()?;
    replay.assumptions()
}

/// The place of each transaction in an order, from 1; 0 for one that is not there.
fn places(
    history: &History,
    counts: impl Fn(TxnId) -> bool,
    spec: Spec,
    order: &[TxnId],
) -> Result<Vec<u32>, String> {
    let name = |txn: TxnId| format!("transaction {}", history.txn_name(txn));
    let mut place = vec![0_u32; history.n_txns()];
    for (&txn, at) in order.iter().zip(1..) {
        if txn.index() >= history.n_txns() {
            return Err("the order names a transaction that is not in the history".to_owned());
        }
        if history.status(txn) == Status::Aborted {
            return Err(format!("{} aborted, yet it is in the order", name(txn)));
        }
        if std::mem::replace(&mut place[txn.index()], at) != 0 {
            return Err(format!("{} is in the order twice", name(txn)));
        }
    }
    let mut last: Option<TxnId> = None;
    for txn in history.txns() {
        if place[txn.index()] == 0 {
            if counts(txn) {
                return Err(format!("{} is not in the order", name(txn)));
            }
            continue;
        }
        let before = last.filter(|&it| history.session(it) == history.session(txn));
        let runs_back = |it: TxnId| place[it.index()] > place[txn.index()];
        if spec.session_order && before.is_some_and(runs_back) {
            return Err(format!("{} is ahead of its session", name(txn)));
        }
        last = Some(txn);
    }
    Ok(place)
}

const NOBODY: u32 = u32::MAX;

/// A running replay.
struct WeakReplay<'h> {
    history: &'h History,
    spec: Spec,
    order: &'h [TxnId],
    meaning: Meaning<'h>,
    place: Vec<u32>,
    /// The places of the writers of each key.
    writers: KeyWriters,
    /// The writers of each key by their numbers, session by session; made when they are asked for.
    by_number: Option<KeyWriters>,
    /// For causal consistency and parallel snapshot isolation.
    pasts: Option<Pasts<'h>>,
    /// In their place where sessions have no order, so that pasts are sets.
    blocks: Option<Blocks>,
    /// For parallel snapshot isolation, the last writer of each key so far.
    last_writer: FxHashMap<KeyId, TxnId>,
    /// For each key, who last read from a writer of it, and the latest place of these writers.
    newest: Vec<(u32, u32)>,
    /// For each transaction, who last read from it.
    seen_by: Vec<u32>,
    sources: Vec<TxnId>,
    /// Where range queries ask for them: the keys that each session wrote so far.
    sessions: Vec<SortedKeys<'h>>,
    /// And, for causal consistency, the keys in the past of each session so far.
    past_keys: FxHashMap<usize, PastKeys<'h>>,
    wary: Wary<'h>,
}

impl WeakReplay<'_> {
    fn name(&self, txn: TxnId) -> String {
        format!("transaction {}", self.history.txn_name(txn))
    }

    fn transaction(&mut self, txn: TxnId) -> Result<(), String> {
        let model = self.spec.model_of(self.history, txn);
        let ReadsOf {
            externals: reads,
            absents,
        } = match model {
            Model::Psi => repeatable_externals(&self.meaning, &self.wary, txn)?,
            _ => externals(&self.meaning, &self.wary, txn)?,
        };
        for from in reads.iter().filter_map(|read| read.from) {
            if !(1..self.place[txn.index()]).contains(&self.place[from.index()]) {
                return Err(format!(
                    "{} reads from one that is not before it",
                    self.name(txn)
                ));
            }
        }
        if model.is_weak() || model == Model::Psi {
            self.aggregates(txn)?;
        }
        if self.pasts.is_some() || self.blocks.is_some() {
            self.keep_past(txn, model, &reads);
        }
        if model.is_weak() || model == Model::Psi {
            if !absents.is_empty() {
                self.absents(txn, model, &absents, &reads)?;
            }
            self.reads(txn, model, &reads)?;
        }
        if let Some(written) = self.sessions.get_mut(self.history.session(txn).index()) {
            let ops = self.history.ops(txn).iter().filter(|op| op.is_write());
            ops.filter_map(|op| op.key())
                .for_each(|key| written.insert(key));
        }
        Ok(())
    }

    /// Checks that the aggregates of a transaction have their results by what it is said to have read.
    fn aggregates(&self, txn: TxnId) -> Result<(), String> {
        if self.meaning.conditions().is_none() {
            return Ok(());
        }
        for (nth, predicate) in self.history.predicates(txn).enumerate() {
            if !matches!(predicate.act, Act::Aggregate { .. }) {
                continue;
            }
            let results = self.meaning.statement_results(txn, nth);
            if results.is_none_or(|(results, result)| results != [result]) {
                let name = self.name(txn);
                return Err(format!("an aggregate of {name} has another result"));
            }
        }
        Ok(())
    }

    /// What happened directly before a transaction: what it read from and, where of two writers one must have happened before the
    /// other, whose versions it overwrote.
    fn keep_past(&mut self, txn: TxnId, model: Model, reads: &[External]) {
        self.sources.clear();
        self.sources
            .extend(reads.iter().filter_map(|read| read.from));
        if model == Model::Psi {
            let writes = self.history.ops(txn).iter().filter(|op| op.is_write());
            for key in writes.filter_map(|op| op.key()) {
                let before = self.last_writer.insert(key, txn);
                self.sources.extend(before.filter(|&it| it != txn));
            }
        }
        self.sources.sort_unstable();
        self.sources.dedup();
        if let Some(pasts) = &mut self.pasts {
            pasts.take(txn, &self.sources);
        }
        if let Some(blocks) = &mut self.blocks {
            blocks.take(self.sources.iter().map(|source| self.place[source.index()]));
        }
    }

    /// Checks that the reads of a transaction missed nothing that they saw.
    fn reads(&mut self, txn: TxnId, model: Model, reads: &[External]) -> Result<(), String> {
        let is_rc = matches!(model, Model::Rc | Model::RcSo);
        if model == Model::Ra {
            for read in reads {
                self.see(txn, read.from, reads);
            }
        }
        let mut seen = 0;
        for read in reads {
            while is_rc && seen < reads.len() && reads[seen].op <= read.op {
                self.see(txn, reads[seen].from, reads);
                seen += 1;
            }
            let from = read.from.map_or(0, |from| self.place[from.index()]);
            let (by, latest) = self.newest[read.key.index()];
            let has_newer = by == txn.0 && latest > from;
            let looks_back = match model {
                Model::Rc => false,
                Model::RcSo | Model::Ra => self.spec.session_order,
                _ => true,
            };
            let past = match model {
                Model::Cc | Model::Psi => self.blocks.as_mut(),
                _ => None,
            };
            if let Some(blocks) = past {
                blocks.ask(PlacedRead {
                    place: self.place[txn.index()],
                    op: read.op,
                    key: read.key,
                    from,
                });
            } else if has_newer || looks_back && self.happened_between(txn, model, read.key, from) {
                return Err(self.stale(txn, read.op, read.key));
            }
        }
        Ok(())
    }

    /// Checks the reads whose pasts are asked for in blocks.
    fn blocks(&self) -> Result<(), String> {
        let stale = self.blocks.as_ref();
        stale
            .and_then(|it| it.stale_read(&self.writers))
            .map_or(Ok(()), |read| {
                Err(self.stale(self.order[read.place as usize - 1], read.op, read.key))
            })
    }

    fn stale(&self, txn: TxnId, op: usize, key: KeyId) -> String {
        format!(
            "operation {op} of {} read key {} although it saw a newer version",
            self.name(txn),
            self.history.key_name(key)
        )
    }

    /// Notes that a transaction saw another, for the keys that it reads.
    fn see(&mut self, txn: TxnId, from: Version, reads: &[External]) {
        let Some(from) = from else { return };
        if std::mem::replace(&mut self.seen_by[from.index()], txn.0) == txn.0 {
            return;
        }
        let place = self.place[from.index()];
        let newest = &mut self.newest;
        let mut note = |key: KeyId| {
            let newest = &mut newest[key.index()];
            let latest = if newest.0 == txn.0 { newest.1 } else { 0 };
            *newest = (txn.0, place.max(latest));
        };
        let ops = self.history.ops(from);
        if ops.len() <= 8 * reads.len() {
            let writes = ops.iter().filter(|op| op.is_write());
            writes.filter_map(|op| op.key()).for_each(note);
            return;
        }
        for key in reads.iter().map(|read| read.key) {
            if self.writers.of_key(key).binary_search(&place).is_ok() {
                note(key);
            }
        }
    }

    /// Whether a writer of a key that comes after a place in the order happened before a transaction: in its session, or at all
    /// where the level asks for that.
    fn happened_between(&mut self, txn: TxnId, model: Model, key: KeyId, from: u32) -> bool {
        let writers = self.writers.of_key(key);
        let first = writers.partition_point(|&it| it <= from);
        let n_between = writers[first..].partition_point(|&it| it < self.place[txn.index()]);
        let between = &writers[first..first + n_between];
        let pasts = match model {
            Model::Cc | Model::Psi => self.pasts.as_ref(),
            _ => None,
        };
        let session = |txn: TxnId| self.history.session(txn);
        let happened = |writer: TxnId| match pasts {
            Some(pasts) => pasts.has(txn, writer),
            None => session(writer) == session(txn) && writer < txn,
        };
        if n_between <= MAX_BETWEEN || !self.spec.session_order {
            let mut between = between.iter().map(|&place| self.order[place as usize - 1]);
            return between.any(happened);
        }
        self.newest_before(txn, key, pasts.is_some()) > from
    }

    /// The latest place of a writer of a key in the session of a transaction before it, or in its past.
    fn newest_before(&mut self, txn: TxnId, key: KeyId, in_past: bool) -> u32 {
        let (history, place) = (self.history, &self.place);
        let by_number = self.by_number.get_or_insert_with(|| {
            let txns = (0..history.n_txns() as u32).map(TxnId);
            let placed = txns.filter(|txn| place[txn.index()] != 0);
            KeyWriters::of(history, placed.map(|txn| (txn, txn.0)))
        });
        let writers = by_number.of_key(key);
        let newest_between = |from: u32, to: u32| {
            let end = writers.partition_point(|&writer| writer < to);
            let last = writers[..end].last().filter(|&&writer| writer >= from);
            last.map_or(0, |&last| place[last as usize])
        };
        let Some(pasts) = self.pasts.as_ref().filter(|_| in_past) else {
            let session = history.session_txns(history.session(txn));
            return newest_between(session.start, txn.0);
        };
        // One session after the other: the last of its writers in the past is its newest.
        let (mut at, mut newest) = (0, 0);
        while at < writers.len() {
            let session = history.session(TxnId(writers[at]));
            let range = history.session_txns(session);
            newest = newest.max(newest_between(range.start, pasts.end(txn, session)));
            at = writers.partition_point(|&writer| writer < range.end);
        }
        newest
    }
}
