//! Runs a watcher over random streams, batch by batch, and compares it with the definition.

use std::collections::{BTreeMap, BTreeSet};

use kingsnake_context::budget::Budget;
use kingsnake_context::rng::Rng;
use kingsnake_encodings::Backtrack;
use kingsnake_lab::stream::{
    StreamLevel, StreamShape, StreamTxn, arrivals, damage, damage_list, holds, stream,
};
use kingsnake_watch::{
    Arrival, EMPTY_LIST, Horizon, WatchLevel, WatchOptions, WatchRules, WatchState, WatchedPoint,
    Watcher,
};

/// The result of a run over many streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamTally {
    pub yes: usize,
    pub no: usize,
    pub mismatches: usize,
    pub dropped: u64,
    pub txns: usize,
}

pub const FENCE: u32 = 99;

pub fn watch_level(level: StreamLevel) -> WatchLevel {
    match (level.has_real_time, level.has_snapshots) {
        (true, false) => WatchLevel::StrictSer,
        (true, true) => WatchLevel::StrongSi,
        (false, false) => WatchLevel::Ser,
        (false, true) => WatchLevel::Si,
    }
}

/// What a transaction appends to a list: some append twice.
fn elements(id: u32) -> Vec<u128> {
    let before = (id % 3 == 1).then_some(1 << 40 | u128::from(id));
    before.into_iter().chain([u128::from(id)]).collect()
}

/// With lists, every write is an append.
pub fn arrival(txn: &StreamTxn, has_lists: bool) -> Arrival {
    let appends = txn.writes.iter().filter(|_| has_lists);
    let last = |ids: &[u32]| ids.last().map_or(EMPTY_LIST, |&id| u128::from(id));
    let ends = txn.lists.iter().map(|(&k, ids)| (k, last(ids)));
    Arrival {
        id: u64::from(txn.id),
        session: txn.session,
        begin: txn.begin,
        commit: txn.commit,
        is_unknown: txn.is_unknown,
        reads: txn
            .reads
            .iter()
            .map(|(&k, &id)| (k, u128::from(id)))
            .chain(ends)
            .collect(),
        lists: txn
            .lists
            .iter()
            .map(|(&k, ids)| (k, ids.iter().flat_map(|&id| elements(id)).collect()))
            .collect(),
        appends: appends.map(|&k| (k, elements(txn.id))).collect(),
        writes: txn
            .writes
            .iter()
            .map(|&k| (k, u128::from(txn.id)))
            .collect(),
    }
}

pub fn options(level: StreamLevel, drift: i64) -> WatchOptions {
    WatchOptions {
        level: watch_level(level),
        drift,
        initial: vec![0],
        keeps_order: false,
    }
}

/// A stream with an order of arrival.
pub struct StreamCase {
    pub txns: Vec<StreamTxn>,
    pub order: Vec<usize>,
    pub drift: i64,
    /// Whether sessions say that they are finished.
    pub closes: bool,
    /// Whether further sessions appear, each with a fence first.
    pub is_fenced: bool,
    /// Whether the order of what was dropped is replayed.
    pub keeps_order: bool,
    pub n_sessions: u32,
}

/// Runs a watcher over a stream; returns what is wrong with its answers, if anything.
pub fn run<R: WatchRules>(
    level: StreamLevel,
    case: &StreamCase,
    rules: R,
    cuts: &mut Rng,
    tally: &mut StreamTally,
) -> Option<&'static str> {
    let options = WatchOptions {
        keeps_order: case.keeps_order,
        ..options(level, case.drift)
    };
    let has_lists = case.txns.iter().any(|it| !it.lists.is_empty());
    let mut watcher = Watcher::with_rules(options, rules);
    let (mut arrived, mut dropped) = (0, 0);
    let full = holds(level, &case.txns, case.drift);
    if full {
        tally.yes += 1;
    } else {
        tally.no += 1;
    }
    tally.txns += case.txns.len();
    let mut heard: Vec<u32> = Vec::new();
    let mut prefix: Vec<StreamTxn> = Vec::new();
    while arrived < case.order.len() {
        let n_next = cuts.between(1, 3).min(case.order.len() - arrived);
        let batch = &case.order[arrived..arrived + n_next];
        arrived += n_next;
        let rest = &case.order[arrived..];
        let batch: Vec<&StreamTxn> = batch.iter().map(|&at| &case.txns[at]).collect();
        for txn in &batch {
            prefix.push((*txn).clone());
            if !heard.contains(&txn.session) {
                heard.push(txn.session);
            }
        }
        let left = rest.iter().map(|&at| &case.txns[at]);
        let mut live: Vec<u32> = left.clone().map(|it| it.session).collect();
        live.sort_unstable();
        live.dedup();
        if case.is_fenced {
            live.retain(|it| heard.contains(it));
        } else if !case.closes {
            live = (0..case.n_sessions).collect();
        }
        let horizon = Horizon {
            watermark: left.map(|it| it.begin).min().unwrap_or(i64::MAX),
            live,
            fence: (case.is_fenced && !rest.is_empty()).then_some(FENCE),
            is_open: false,
        };
        let arrivals = batch.iter().map(|it| arrival(it, has_lists));
        let Ok(report) = watcher.batch(arrivals, &horizon, &mut Backtrack, &Budget::unlimited())
        else {
            return Some("error");
        };
        if !rest.is_empty() {
            tally.dropped += report.n_dropped - dropped;
            dropped = report.n_dropped;
        }
        if report.state == WatchState::Violated {
            return full.then_some("false alarm");
        }
        // A read of what was dropped waits until its reader is past.
        let is_waiting = watcher.pending().is_ok_and(|it| !it.is_empty());
        if !is_waiting && !holds(level, &prefix, case.drift) {
            return Some("late");
        }
    }
    let closed = Horizon::closed();
    let Ok(report) = watcher.batch([], &closed, &mut Backtrack, &Budget::unlimited()) else {
        return Some("error");
    };
    if report.state == WatchState::Fine && case.keeps_order {
        let order = watcher.take_order();
        if let Some(wrong) = replay(level, &case.txns, case.drift, &order) {
            return Some(wrong);
        }
    }
    match (report.state == WatchState::Fine, full) {
        (true, false) => Some("missed"),
        (false, true) => Some("false alarm at the end"),
        _ => None,
    }
}

/// Replays an order by the definition: what is wrong with it, if something is.
pub fn replay(
    level: StreamLevel,
    txns: &[StreamTxn],
    drift: i64,
    order: &[WatchedPoint],
) -> Option<&'static str> {
    let find = |id: u64| txns.iter().find(|it| u64::from(it.id) == id);
    let mut state: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut running: Vec<&StreamTxn> = Vec::new();
    let mut done: Vec<&StreamTxn> = Vec::new();
    for point in order {
        let Some(txn) = find(point.id) else {
            return Some("no such transaction");
        };
        if point.is_begin || !level.has_snapshots {
            let written = |key: &u32| state.get(key).map_or(&[][..], Vec::as_slice);
            let reads = &mut txn.reads.iter();
            let lists = &mut txn.lists.iter();
            if !reads.all(|(key, id)| written(key).last().unwrap_or(&0) == id)
                || !lists.all(|(key, ids)| written(key) == ids)
            {
                return Some("a read");
            }
            let overlaps = |it: &&StreamTxn| it.writes.intersection(&txn.writes).next().is_some();
            if running.iter().any(overlaps) {
                return Some("writers that overlap");
            }
            let is_later = |it: &StreamTxn| {
                let is_over = txn.commit.is_some_and(|end| end + drift < it.begin);
                it.session == txn.session && it.id > txn.id || level.has_real_time && is_over
            };
            if done.iter().chain(&running).any(|it| is_later(it)) {
                return Some("an order that is kept");
            }
            running.push(txn);
        }
        if !point.is_begin {
            running.retain(|it| it.id != txn.id);
            for &key in &txn.writes {
                state.entry(key).or_default().push(txn.id);
            }
            done.push(txn);
        }
    }
    let is_missing = |it: &&StreamTxn| !it.is_unknown && !done.iter().any(|did| did.id == it.id);
    txns.iter().find(is_missing).map(|_| "one that is missing")
}

/// Random streams, cut at random.
pub fn plain(rng: &mut Rng, level: StreamLevel, unknown: usize, has_lists: bool) -> StreamCase {
    let shape = StreamShape {
        n_txns: rng.between(5, 9),
        n_sessions: rng.between(2, 3),
        n_keys: rng.between(1, 3),
        unknown,
        damaged: 50,
        has_lists,
    };
    let (txns, drift) = stream(rng, level, shape);
    let order = arrivals(rng, &txns);
    StreamCase {
        order,
        txns,
        drift,
        closes: rng.chance(50),
        is_fenced: false,
        keeps_order: false,
        n_sessions: shape.n_sessions as u32,
    }
}

/// Many sessions that overlap; only what arrives last is damaged, so the verdict depends on what was kept.
pub fn late(rng: &mut Rng, level: StreamLevel, unknown: usize, has_lists: bool) -> StreamCase {
    let shape = StreamShape {
        n_txns: rng.between(6, 9),
        n_sessions: rng.between(3, 6),
        n_keys: rng.between(1, 3),
        unknown,
        damaged: 0,
        has_lists,
    };
    let (mut txns, drift) = stream(rng, level, shape);
    if rng.chance(60) {
        // Some run long.
        for at in 0..txns.len() {
            let session = txns[at].session;
            let next = txns[at + 1..].iter().find(|it| it.session == session);
            let next = next.map_or(i64::MAX, |it| it.begin);
            if let Some(commit) = txns[at].commit
                && rng.chance(35)
            {
                txns[at].commit = Some((commit + rng.between(4, 30) as i64).min(next));
            }
        }
    }
    let order = arrivals(rng, &txns);
    let n_late = rng.between(1, 3);
    for &at in &order[order.len() - n_late..] {
        for key in 0..shape.n_keys as u32 {
            if rng.chance(50) {
                let writers = txns.iter().filter(|it| it.writes.contains(&key));
                let mut sources: Vec<u32> = writers
                    .map(|it| it.id)
                    .filter(|&id| id != txns[at].id)
                    .collect();
                if has_lists {
                    let last = order[..order.len() - n_late].iter();
                    let known = last.rev().find_map(|&it| txns[it].lists.get(&key)).cloned();
                    let mut list = known.unwrap_or_default();
                    sources.retain(|it| !list.contains(it));
                    sources.truncate(rng.below(4));
                    list.extend(sources);
                    txns[at].lists.insert(key, list);
                    if rng.chance(30) {
                        damage_list(rng, &mut txns[at]);
                    }
                    continue;
                }
                sources.insert(0, 0);
                let last = sources.len().saturating_sub(4);
                if let Some(&source) = rng.pick(&sources[last..]) {
                    txns[at].reads.insert(key, source);
                }
            }
        }
    }
    StreamCase {
        order,
        txns,
        drift,
        closes: true,
        is_fenced: false,
        keeps_order: false,
        n_sessions: shape.n_sessions as u32,
    }
}

/// Sessions that appear later, each with a fence first; sometimes without, where that is the mistake.
pub fn fenced(rng: &mut Rng, is_first_fence: bool) -> StreamCase {
    let n_sessions = rng.between(2, 4);
    let n_keys = rng.between(1, 2) as u32;
    let n_txns = rng.between(6, 9);
    let mut births: Vec<usize> = (0..n_sessions).map(|_| rng.below(5)).collect();
    births.sort_unstable();
    births[0] = 0;
    let mut state = BTreeMap::<u32, u32>::new();
    let mut begun = vec![false; n_sessions];
    let mut txns: Vec<StreamTxn> = Vec::new();
    for id in 1..=n_txns as u32 {
        let born: Vec<usize> = (0..n_sessions)
            .filter(|&it| births[it] < id as usize)
            .collect();
        let session = born[rng.below(born.len())];
        let mut txn = StreamTxn {
            id,
            session: session as u32,
            begin: i64::from(id),
            commit: Some(i64::from(id)),
            reads: BTreeMap::default(),
            lists: BTreeMap::default(),
            writes: BTreeSet::default(),
            is_unknown: false,
        };
        if (!begun[session] && is_first_fence) || rng.chance(35) {
            txn.reads
                .insert(FENCE, state.get(&FENCE).copied().unwrap_or(0));
            txn.writes.insert(FENCE);
        } else {
            for key in 0..n_keys {
                if rng.chance(70) {
                    let kind = rng.below(4);
                    if kind == 0 || kind == 3 {
                        txn.reads.insert(key, state.get(&key).copied().unwrap_or(0));
                    }
                    if kind != 0 {
                        txn.writes.insert(key);
                    }
                }
            }
        }
        begun[session] = true;
        for &key in &txn.writes {
            state.insert(key, id);
        }
        txns.push(txn);
    }
    if rng.chance(60) {
        let half = n_txns / 2;
        let mut changed = txns.clone();
        damage(rng, &mut changed);
        if changed[..half] == txns[..half] {
            txns = changed;
        }
    }
    let order = arrivals(rng, &txns);
    StreamCase {
        order,
        txns,
        drift: 0,
        closes: true,
        is_fenced: true,
        keeps_order: false,
        n_sessions: n_sessions as u32,
    }
}

/// Many streams with one watcher each.
pub fn sweep<R: WatchRules + Clone>(
    seed: u64,
    n_streams: usize,
    level: StreamLevel,
    rules: &R,
    case: impl Fn(&mut Rng) -> StreamCase,
) -> StreamTally {
    let mut rng = Rng::new(seed);
    let mut tally = StreamTally::default();
    for number in 0..n_streams {
        let case = case(&mut rng);
        if let Some(what) = run(level, &case, rules.clone(), &mut rng, &mut tally) {
            tally.mismatches += 1;
            if std::env::var_os("KINGSNAKE_SHOW").is_some() {
                let arrived: Vec<&StreamTxn> =
                    case.order.iter().map(|&at| &case.txns[at]).collect();
                eprintln!(
                    "{number} {level:?} {what} drift {} {arrived:#?}",
                    case.drift
                );
            }
        }
    }
    tally
}
