//! Checks answers at the weak levels again: replays an order of commits, and re-derives every step of a cycle.
//!
//! Replaying asks, for each read, how late in the order the newest visible writer of its key is: it must not be later than the
//! one that was read from. What happened before a transaction is kept as a clock over sessions.

use rustc_hash::FxHashMap;

use super::assumed::{check_edges, check_keys, is_founded};
use super::graphs::is_cycle;
use super::meaning::{Meaning, Version};
use super::rows::{Sight, sight};
use kingsnake_history::level::{Model, Spec};
use kingsnake_history::model::{History, KeyId, Op, Status, TxnId, ValueId};
use kingsnake_history::weak::{Because, CommitReason, CommitStep, WeakLevel, WeakSpec};

/// A read of another's write: which operation, of which key, and who wrote what it returned.
#[derive(Clone, Copy)]
struct External {
    op: usize,
    key: KeyId,
    from: Version,
}

/// The external reads of a transaction, in program order; the error names one that is not certain.
fn externals(meaning: &Meaning<'_>, txn: TxnId) -> Result<Vec<External>, String> {
    let history = meaning.history();
    let mut own: FxHashMap<KeyId, Vec<ValueId>> = FxHashMap::default();
    let mut reads = Vec::new();
    for (at, &op) in history.ops(txn).iter().enumerate() {
        let wrong = |key: KeyId| {
            let (txn, key) = (history.txn_name(txn), history.key_name(key));
            format!("operation {at} of transaction {txn} cannot have returned that of key {key}")
        };
        match op {
            Op::Write { key, value } => {
                own.insert(key, vec![value]);
            }
            Op::Append { key, value } => own.entry(key).or_default().push(value),
            Op::ReadList { key, list } => {
                let mine = own.get(&key).map_or(&[][..], Vec::as_slice);
                let before = history.list(list).strip_suffix(mine);
                let from = before.and_then(|before| meaning.end_of_list(txn, before));
                let from = from.ok_or_else(|| wrong(key))?;
                reads.push(External { op: at, key, from });
            }
            Op::Read { key, .. } => {
                let seen = sight(history, op, key).ok_or_else(|| wrong(key))?;
                register(meaning, txn, (at, key), &seen, &own, &mut reads)
                    .ok_or_else(|| wrong(key))?;
            }
            Op::Range { .. } => {
                for key in (0..history.n_keys() as u32).map(KeyId) {
                    if let Some(seen) = sight(history, op, key) {
                        register(meaning, txn, (at, key), &seen, &own, &mut reads)
                            .ok_or_else(|| wrong(key))?;
                    }
                }
            }
        }
    }
    Ok(reads)
}

/// Takes a read of a register; `None` if it is not certain, or not what the transaction itself left.
fn register(
    meaning: &Meaning<'_>,
    txn: TxnId,
    (op, key): (usize, KeyId),
    seen: &Sight,
    own: &FxHashMap<KeyId, Vec<ValueId>>,
    reads: &mut Vec<External>,
) -> Option<()> {
    if let Some(&mine) = own.get(&key).and_then(|own| own.last()) {
        return meaning.shows_as(mine, seen).then_some(());
    }
    let from = meaning.version_seen_or(txn, key, seen, reads_of(reads, key))?;
    reads.push(External { op, key, from });
    Some(())
}

fn reads_of(reads: &[External], key: KeyId) -> Option<Version> {
    let first = reads.iter().find(|read| read.key == key);
    first.map(|read| read.from)
}

/// Whether a transaction read a key from a version, in any of its operations.
pub(super) fn reads_from(
    meaning: &Meaning<'_>,
    reader: TxnId,
    key: KeyId,
    version: Version,
) -> bool {
    let reads = externals(meaning, reader).unwrap_or_default();
    reads
        .iter()
        .any(|read| read.key == key && read.from == version)
}

/// Whether some read of a weak transaction that returned a version of a key sees another transaction, which writes the key too.
pub(super) fn sees(
    meaning: &Meaning<'_>,
    spec: Spec,
    reader: TxnId,
    (key, version): (KeyId, Version),
    seen: TxnId,
) -> bool {
    let history = meaning.history();
    if reader == seen || version == Some(seen) || meaning.left(seen, key).is_none() {
        return false;
    }
    let reads = externals(meaning, reader).unwrap_or_default();
    let of = |read: &&External| read.key == key && read.from == version;
    let Some(last) = reads.iter().filter(of).map(|read| read.op).max() else {
        return false;
    };
    let in_session =
        spec.session_order && history.session(seen) == history.session(reader) && seen < reader;
    let mut sources = reads.iter().filter(|read| read.from == Some(seen));
    match spec.model_of(history, reader) {
        Model::Rc => sources.any(|read| read.op <= last),
        Model::RcSo => in_session || sources.any(|read| read.op <= last),
        Model::Ra => in_session || sources.next().is_some(),
        Model::Cc => happened_before(meaning, spec, seen, reader),
        _ => false,
    }
}

/// Whether one transaction happened before another by session order and reads.
fn happened_before(meaning: &Meaning<'_>, spec: Spec, from: TxnId, to: TxnId) -> bool {
    let history = meaning.history();
    let mut is_met = vec![false; history.n_txns()];
    let mut open = vec![to];
    while let Some(txn) = open.pop() {
        let sources = externals(meaning, txn).unwrap_or_default();
        let mut before: Vec<TxnId> = sources.iter().filter_map(|read| read.from).collect();
        if spec.session_order {
            let start = history.session_txns(history.session(txn)).start;
            let earlier = (start..txn.0).rev().map(TxnId);
            before.extend(earlier.filter(|&it| meaning.counts(it)).take(1));
        }
        if before.contains(&from) {
            return true;
        }
        for it in before {
            if !std::mem::replace(&mut is_met[it.index()], true) {
                open.push(it);
            }
        }
    }
    false
}

/// Checks that an order of commits explains the history at a weak level.
pub fn replay(history: &History, spec: WeakSpec, order: &[TxnId]) -> Result<(), String> {
    let spec = Spec {
        model: spec.level.into(),
        session_order: spec.session_order,
        real_time: None,
    };
    replay_commits(history, spec, order)
}

/// Checks that an order of commits gives the reads of every weak transaction, and of every transaction at parallel snapshot isolation,
/// what they may see.
pub(super) fn replay_commits(history: &History, spec: Spec, order: &[TxnId]) -> Result<(), String> {
    let meaning = Meaning::of(history);
    let mut replay = Replay {
        history,
        spec,
        meaning,
        place: vec![0; history.n_txns()],
        writers: FxHashMap::default(),
        clocks: Vec::new(),
        last_writer: FxHashMap::default(),
    };
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
    /// For causal consistency, how far each transaction's past reaches into each session, or the whole past.
    clocks: Vec<Vec<u32>>,
    /// For parallel snapshot isolation, the last writer of each key so far.
    last_writer: FxHashMap<KeyId, TxnId>,
}

impl Replay<'_> {
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
        let reads = externals(&self.meaning, txn)?;
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
        if !model.is_weak() && model != Model::Psi {
            return Ok(());
        }
        let mut newest: FxHashMap<KeyId, usize> = FxHashMap::default();
        let is_rc = matches!(model, Model::Rc | Model::RcSo);
        if model == Model::Ra {
            for read in &reads {
                self.see(read.from, &mut newest);
            }
        }
        let mut seen = 0;
        for read in &reads {
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
        let mut clock = vec![0; self.history.n_sessions()];
        let session = self.history.session(txn);
        let earlier = self.history.session_txns(session).start..txn.0;
        let previous = earlier
            .rev()
            .map(TxnId)
            .find(|it| self.place[it.index()] != 0);
        for before in sources.iter().copied().chain(previous) {
            let theirs = &self.clocks[before.index()];
            for (own, &other) in clock.iter_mut().zip(theirs) {
                *own = other.max(*own);
            }
            let own = &mut clock[self.history.session(before).index()];
            *own = (before.0 + 1).max(*own);
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
            newest = newest.max(self.newest_between(key, range.start, clock[session.index()]));
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

/// Checks that the steps of a cycle follow from the history and the level.
pub fn check_cycle(history: &History, spec: WeakSpec, steps: &[CommitStep]) -> Result<(), String> {
    let (Some(first), Some(last)) = (steps.first(), steps.last()) else {
        return Err("an empty cycle".to_owned());
    };
    if last.to.is_some_and(|to| to != first.from) {
        return Err("the last step does not end where the first began".to_owned());
    }
    if steps
        .windows(2)
        .any(|pair| pair[0].to != Some(pair[1].from))
    {
        return Err("a step does not begin where the one before it ended".to_owned());
    }
    let edges = || steps.iter().filter_map(|step| Some((step.from, step.to?)));
    if last.to.is_some() && !is_cycle(edges()) {
        return Err("the steps are no cycle".to_owned());
    }
    let scene = Scene {
        meaning: Meaning::of(history),
        history,
        spec,
    };
    for step in steps {
        if scene.shows(step) != Some(true) {
            return Err(format!("{step:?} does not hold"));
        }
    }
    Ok(())
}

struct Scene<'h> {
    meaning: Meaning<'h>,
    history: &'h History,
    spec: WeakSpec,
}

impl Scene<'_> {
    fn shows(&self, step: &CommitStep) -> Option<bool> {
        let counts = |txn: TxnId| self.meaning.counts(txn);
        if !counts(step.from) || step.to.is_some_and(|to| !counts(to) || to == step.from) {
            return Some(false);
        }
        Some(match &step.reason {
            CommitReason::Session => self.is_session(step.from, step.to?),
            CommitReason::Stated(edge) => {
                let given = self.history.given_edges().get(*edge as usize)?;
                (given.from, given.to) == (step.from, step.to?)
            }
            CommitReason::Wr(key) => self.read_from(step.to?, *key, Some(step.from)),
            CommitReason::Given(key) => self.is_given(*key, step.from, step.to?),
            CommitReason::Vis {
                reader,
                key,
                because,
            } => {
                counts(*reader)
                    && *reader != step.from
                    && self.meaning.left(step.from, *key).is_some()
                    && self.saw(*reader, *key, step.to, step.from, because)?
            }
        })
    }

    fn is_session(&self, from: TxnId, to: TxnId) -> bool {
        let session = |txn| self.history.session(txn);
        self.spec.session_order && session(from) == session(to) && from < to
    }

    fn reads(&self, reader: TxnId) -> Vec<External> {
        externals(&self.meaning, reader).unwrap_or_default()
    }

    fn read_from(&self, reader: TxnId, key: KeyId, from: Version) -> bool {
        let mut reads = self.reads(reader).into_iter();
        reads.any(|read| read.key == key && read.from == from)
    }

    /// Whether a transaction read a key from `from` in an operation that saw another.
    fn saw(
        &self,
        reader: TxnId,
        key: KeyId,
        from: Version,
        seen: TxnId,
        because: &Because,
    ) -> Option<bool> {
        let reads = self.reads(reader);
        let of = |read: &&External| read.key == key && read.from == from;
        let last = reads.iter().filter(of).map(|read| read.op).max()?;
        let by = |via: KeyId| {
            let mut sources = reads.iter();
            sources
                .find(|read| read.key == via && read.from == Some(seen))
                .map(|read| read.op)
        };
        let level = self.spec.level;
        Some(match because {
            Because::EarlierRead(via) => by(*via).is_some_and(|first| first <= last),
            Because::Source(via) => {
                matches!(level, WeakLevel::Ra | WeakLevel::Cc) && by(*via).is_some()
            }
            Because::Session => level.sees_session() && self.is_session(seen, reader),
            Because::Path(steps) => {
                level == WeakLevel::Cc
                    && steps.first()?.from == seen
                    && steps.last()?.to == reader
                    && steps.windows(2).all(|pair| pair[0].to == pair[1].from)
                    && steps.iter().all(|step| match step.key {
                        None => self.is_session(step.from, step.to),
                        Some(key) => self.read_from(step.to, key, Some(step.from)),
                    })
            }
        })
    }

    /// Whether a version order, or a list that was read, has one transaction's version before the other's.
    fn is_given(&self, key: KeyId, from: TxnId, to: TxnId) -> bool {
        let before = self.meaning.installed(from, key);
        let after = self.meaning.installed(to, key);
        let shows = |values: &[ValueId], is_list: bool| {
            let place = |value: &ValueId| values.iter().position(|it| it == value);
            let known = |value: &&ValueId| self.meaning.is_unique(**value);
            let first = before.iter().filter(known).filter_map(place).min();
            let last = after.iter().filter(known).filter_map(place).max();
            let is_absent = is_list && after.iter().any(|value| place(value).is_none());
            first.is_some_and(|first| is_absent || last.is_some_and(|last| first < last))
        };
        let orders = self.history.version_orders().iter();
        let mut orders = orders.filter(|order| order.key == key);
        let txns = self.history.txns().filter(|&txn| self.meaning.counts(txn));
        let mut lists = txns
            .flat_map(|txn| self.history.ops(txn))
            .filter_map(|&op| match op {
                Op::ReadList { key: it, list } if it == key => Some(self.history.list(list)),
                _ => None,
            });
        let mut orders = orders
            .by_ref()
            .filter(|order| is_founded(self.history, order));
        orders.any(|order| shows(&order.values, false)) || lists.any(|list| shows(list, true))
    }
}
