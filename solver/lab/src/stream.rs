//! Streams of transactions, and the definition of the levels over them: orders of transactions or of begins and commits, tried one
//! by one. No graph is involved.

use std::collections::{BTreeMap, BTreeSet};

use kingsnake_history::rng::Rng;
use rustc_hash::FxHashSet;

/// A transaction of a stream; its id is not 0, which stands for the initial state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamTxn {
    /// Its id, in the order of begins.
    pub id: u32,
    /// Its session.
    pub session: u32,
    /// Its begin.
    pub begin: i64,
    /// Its commit, if something bounds it.
    pub commit: Option<i64>,
    /// For each key that it read, the writer.
    pub reads: BTreeMap<u32, u32>,
    /// For each key that it read as a list, the writers in their order.
    pub lists: BTreeMap<u32, Vec<u32>>,
    /// The keys that it wrote.
    pub writes: BTreeSet<u32>,
    /// Whether its end is unknown.
    pub is_unknown: bool,
}

/// A level of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLevel {
    /// Whether the clock orders transactions.
    pub has_real_time: bool,
    /// Whether begins and commits are apart.
    pub has_snapshots: bool,
}

impl StreamLevel {
    /// Strict and strong session serializability, strong and strong session snapshot isolation.
    pub const ALL: [StreamLevel; 4] = [
        StreamLevel::new(true, false),
        StreamLevel::new(true, true),
        StreamLevel::new(false, false),
        StreamLevel::new(false, true),
    ];

    const fn new(has_real_time: bool, has_snapshots: bool) -> Self {
        StreamLevel {
            has_real_time,
            has_snapshots,
        }
    }
}

/// A read of a writer that there is not.
pub const THIN_AIR: u32 = u32::MAX;

/// Those that committed, and those of unknown end that one of these read from, and so on.
fn counted(txns: &[StreamTxn]) -> Vec<&StreamTxn> {
    let mut counts: BTreeSet<u32> = BTreeSet::new();
    let committed = txns.iter().filter(|it| !it.is_unknown);
    let mut waiting: Vec<&StreamTxn> = committed.collect();
    while let Some(txn) = waiting.pop() {
        if counts.insert(txn.id) {
            let sources = txn.reads.values().chain(txn.lists.values().flatten());
            waiting.extend(sources.filter_map(|id| txns.iter().find(|it| it.id == *id)));
        }
    }
    txns.iter().filter(|it| counts.contains(&it.id)).collect()
}

struct StreamOrders {
    /// For each transaction, those that must come before it, as bits.
    before: Vec<u32>,
    /// For each, the keys that it read with the writers.
    reads: Vec<Vec<(usize, u32)>>,
    lists: Vec<Vec<(usize, Vec<u32>)>>,
    writes: Vec<Vec<usize>>,
    ids: Vec<u32>,
    seen: FxHashSet<(u32, u32, StreamState)>,
}

/// For each key its writers so far; only the last where nothing reads a list.
type StreamState = Vec<Vec<u32>>;

/// Whether there is an order of a whole stream.
pub fn holds(level: StreamLevel, txns: &[StreamTxn], drift: i64) -> bool {
    let txns = counted(txns);
    let wrote = |id: u32, key: u32| {
        txns.iter()
            .any(|it| it.id == id && it.writes.contains(&key))
    };
    let explained = |it: &&StreamTxn| {
        let mut reads = it.reads.iter();
        let mut lists = it.lists.iter();
        reads.all(|(&key, &id)| id == 0 || wrote(id, key))
            && lists.all(|(&key, ids)| ids.iter().all(|&id| wrote(id, key)))
    };
    if !txns.iter().all(explained) {
        return false;
    }
    let keys: BTreeSet<u32> = txns
        .iter()
        .flat_map(|it| it.reads.keys().chain(it.lists.keys()).chain(&it.writes))
        .copied()
        .collect();
    let keys: Vec<u32> = keys.into_iter().collect();
    let place = |key: &u32| keys.binary_search(key).unwrap_or_default();
    let precedes = |a: &StreamTxn, b: &StreamTxn| {
        let is_over = a.commit.is_some_and(|it| it + drift < b.begin);
        a.session == b.session && a.id < b.id || level.has_real_time && is_over
    };
    let before = |b: &&StreamTxn| {
        let all = txns.iter().enumerate();
        let before = all.filter(|(_, a)| a.id != b.id && precedes(a, b));
        before.fold(0_u32, |bits, (at, _)| bits | 1 << at)
    };
    let mut orders = StreamOrders {
        before: txns.iter().map(before).collect(),
        reads: txns
            .iter()
            .map(|it| it.reads.iter().map(|(key, &id)| (place(key), id)).collect())
            .collect(),
        lists: txns
            .iter()
            .map(|it| {
                let lists = it.lists.iter();
                lists.map(|(key, ids)| (place(key), ids.clone())).collect()
            })
            .collect(),
        writes: txns
            .iter()
            .map(|it| it.writes.iter().map(&place).collect())
            .collect(),
        ids: txns.iter().map(|it| it.id).collect(),
        seen: FxHashSet::default(),
    };
    let state = vec![Vec::new(); keys.len()];
    if level.has_snapshots {
        orders.snapshots(0, 0, &state)
    } else {
        orders.serial(0, &state)
    }
}

impl StreamOrders {
    fn may_read(&self, txn: usize, state: &[Vec<u32>]) -> bool {
        let last = |key: usize| state[key].last().copied().unwrap_or(0);
        let mut lists = self.lists[txn].iter();
        self.reads[txn].iter().all(|&(key, id)| last(key) == id)
            && lists.all(|(key, ids)| state[*key] == *ids)
    }

    fn written(&self, txn: usize, state: &[Vec<u32>]) -> StreamState {
        let has_lists = self.lists.iter().any(|it| !it.is_empty());
        let mut state = state.to_vec();
        for &key in &self.writes[txn] {
            if !has_lists {
                state[key].clear();
            }
            state[key].push(self.ids[txn]);
        }
        state
    }

    fn serial(&mut self, done: u32, state: &[Vec<u32>]) -> bool {
        let n_txns = self.ids.len();
        if done == (1 << n_txns) - 1 {
            return true;
        }
        if !self.seen.insert((done, 0, state.to_vec())) {
            return false;
        }
        (0..n_txns).any(|txn| {
            let is_next = done >> txn & 1 == 0 && self.before[txn] & !done == 0;
            is_next && self.may_read(txn, state) && {
                let next = self.written(txn, state);
                self.serial(done | 1 << txn, &next)
            }
        })
    }

    fn snapshots(&mut self, begun: u32, done: u32, state: &[Vec<u32>]) -> bool {
        let n_txns = self.ids.len();
        if done == (1 << n_txns) - 1 {
            return true;
        }
        if !self.seen.insert((begun, done, state.to_vec())) {
            return false;
        }
        (0..n_txns).any(|txn| {
            if begun >> txn & 1 == 0 {
                let overlaps = (0..n_txns).any(|other| {
                    let runs = (begun & !done) >> other & 1 == 1;
                    let mut keys = self.writes[other].iter();
                    runs && keys.any(|it| self.writes[txn].contains(it))
                });
                let is_next = self.before[txn] & !done == 0 && !overlaps;
                is_next
                    && self.may_read(txn, state)
                    && self.snapshots(begun | 1 << txn, done, state)
            } else {
                done >> txn & 1 == 0 && {
                    let next = self.written(txn, state);
                    self.snapshots(begun, done | 1 << txn, &next)
                }
            }
        })
    }
}

/// What a random stream is like.
#[derive(Clone, Copy, Debug)]
pub struct StreamShape {
    /// Transactions.
    pub n_txns: usize,
    /// Sessions.
    pub n_sessions: usize,
    /// Keys.
    pub n_keys: usize,
    /// Of a hundred transactions, how many have an unknown end.
    pub unknown: usize,
    /// Of a hundred streams, how many have a read changed.
    pub damaged: usize,
    /// Whether keys are lists, of which all writers are read.
    pub has_lists: bool,
}

/// A stream of a database that keeps its promise, perhaps damaged, and the drift of its clocks; in the order of begins.
pub fn stream(rng: &mut Rng, level: StreamLevel, shape: StreamShape) -> (Vec<StreamTxn>, i64) {
    let StreamShape { n_txns, n_keys, .. } = shape;
    let drift = if level.has_real_time {
        [0, 0, 1, 2][rng.below(4)]
    } else {
        0
    };
    let longest = [3, 6, 14][rng.below(3)];
    let kinds: &[u8] = [&b"rww"[..], b"rwwm", b"rwm", b"rrw"][rng.below(4)];
    let mut txns = times(rng, shape, longest);
    // Effects somewhere in each interval, in thousandths of the unit of time; a session keeps its order.
    let mut events: Vec<(i64, bool, usize)> = Vec::new();
    let mut last: BTreeMap<u32, i64> = BTreeMap::new();
    let mut keys_of: Vec<Vec<(u32, u8)>> = Vec::new();
    for (at, txn) in txns.iter().enumerate() {
        let slack = |rng: &mut Rng| {
            if level.has_real_time {
                0
            } else {
                [0, 0, 3000][rng.below(3)]
            }
        };
        let low = 1000 * txn.begin - 500 * drift - slack(rng);
        let high = 1000 * txn.commit.unwrap_or(txn.begin) + 500 * drift + slack(rng);
        let mut moment = || low + rng.below((high - low) as usize + 1) as i64;
        let (x, y) = (moment(), moment());
        let before = last.get(&txn.session).map_or(i64::MIN, |it| it + 1);
        let begin = x.min(y).max(before);
        let commit = if level.has_snapshots {
            x.max(y).max(begin)
        } else {
            begin
        };
        last.insert(txn.session, commit);
        events.push((begin, false, at));
        events.push((commit, true, at));
        let mut keys: Vec<u32> = (0..n_keys as u32).collect();
        let n_chosen = rng.between(1, n_keys.min(2));
        let mut chosen = Vec::new();
        for _ in 0..n_chosen {
            let key = keys.swap_remove(rng.below(keys.len()));
            chosen.push((key, kinds[rng.below(kinds.len())]));
        }
        keys_of.push(chosen);
    }
    // A serial transaction is one moment; at snapshot isolation begins come before commits at equal times.
    events.sort_by_key(|&(time, is_commit, at)| {
        let end = usize::from(is_commit);
        if level.has_snapshots {
            (time, end, at)
        } else {
            (time, at, end)
        }
    });
    let mut state = vec![Vec::new(); n_keys];
    for (_, is_commit, at) in events {
        for &(key, kind) in &keys_of[at] {
            let (txn, ids) = (&mut txns[at], &mut state[key as usize]);
            if is_commit && kind != b'r' {
                ids.push(txn.id);
                txn.writes.insert(key);
            } else if !is_commit && kind != b'w' && shape.has_lists {
                txn.lists.insert(key, ids.clone());
            } else if !is_commit && kind != b'w' {
                txn.reads.insert(key, ids.last().copied().unwrap_or(0));
            }
        }
    }
    if rng.chance(shape.damaged) {
        for _ in 0..[1, 1, 2][rng.below(3)] {
            damage(rng, &mut txns);
        }
    }
    for txn in &mut txns {
        if rng.chance(shape.unknown) {
            txn.is_unknown = true;
            if rng.chance(50) {
                txn.commit = None;
            }
        }
    }
    debug_assert_eq!(txns.len(), n_txns);
    (txns, drift)
}

fn times(rng: &mut Rng, shape: StreamShape, longest: usize) -> Vec<StreamTxn> {
    let mut clocks: Vec<i64> = (0..shape.n_sessions).map(|_| rng.below(4) as i64).collect();
    let mut times: Vec<(i64, i64, u32)> = Vec::new();
    for _ in 0..shape.n_txns {
        let session = rng.below(shape.n_sessions);
        let begin = clocks[session] + rng.below(3) as i64;
        let commit = begin + rng.between(0, longest) as i64;
        clocks[session] = commit + [0, 1, 1, 2][rng.below(4)];
        times.push((begin, commit, session as u32));
    }
    times.sort_by_key(|it| (it.0, it.1));
    let txn = |(at, &(begin, commit, session)): (usize, &(i64, i64, u32))| StreamTxn {
        id: at as u32 + 1,
        session,
        begin,
        commit: Some(commit),
        reads: BTreeMap::new(),
        lists: BTreeMap::new(),
        writes: BTreeSet::new(),
        is_unknown: false,
    };
    times.iter().enumerate().map(txn).collect()
}

/// Lets a read be of another version, rarely of none that there is.
pub fn damage(rng: &mut Rng, txns: &mut [StreamTxn]) {
    let at = rng.below(txns.len());
    if !txns[at].lists.is_empty() {
        damage_list(rng, &mut txns[at]);
        return;
    }
    let keys: Vec<u32> = txns[at].reads.keys().copied().collect();
    let Some(&key) = rng.pick(&keys) else {
        return;
    };
    let writers = txns.iter().filter(|it| it.writes.contains(&key));
    let mut sources: Vec<u32> = writers
        .map(|it| it.id)
        .filter(|&id| id != txns[at].id)
        .collect();
    sources.push(0);
    if rng.chance(5) {
        sources.push(THIN_AIR);
    }
    if let Some(&source) = rng.pick(&sources) {
        txns[at].reads.insert(key, source);
    }
}

/// Lets a list lack a writer, have two in the other order, or end earlier; rarely have one that there is not.
pub fn damage_list(rng: &mut Rng, txn: &mut StreamTxn) {
    let lists: Vec<&mut Vec<u32>> = txn.lists.values_mut().collect();
    let n_lists = lists.len();
    let Some(ids) = lists.into_iter().nth(rng.below(n_lists)) else {
        return;
    };
    let at = rng.below(ids.len() + 1);
    match rng.below(10) {
        _ if ids.is_empty() => ids.push(THIN_AIR),
        0..3 if at < ids.len() => drop(ids.remove(at)),
        3..6 if at + 1 < ids.len() => ids.swap(at, at + 1),
        6..9 => ids.truncate(at),
        _ => ids.insert(at, THIN_AIR),
    }
}

/// An order of arrival that keeps each session's, by place.
pub fn arrivals(rng: &mut Rng, txns: &[StreamTxn]) -> Vec<usize> {
    let mut sessions: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (at, txn) in txns.iter().enumerate().rev() {
        sessions.entry(txn.session).or_default().push(at);
    }
    let by_end = rng.chance(60);
    let mut order = Vec::new();
    while order.len() < txns.len() {
        let waiting: Vec<u32> = sessions
            .iter()
            .filter(|it| !it.1.is_empty())
            .map(|it| *it.0)
            .collect();
        let end = |session: &u32, rng: &mut Rng| {
            let next = sessions[session].last().map(|&at| &txns[at]);
            let end = next.map_or(0, |it| it.commit.unwrap_or(it.begin + 3));
            1000 * end + rng.below(3000) as i64
        };
        let chosen = if by_end {
            let ends: Vec<i64> = waiting.iter().map(|it| end(it, rng)).collect();
            (0..waiting.len()).min_by_key(|&at| ends[at]).unwrap_or(0)
        } else {
            rng.below(waiting.len())
        };
        let next = sessions.get_mut(&waiting[chosen]).and_then(Vec::pop);
        order.extend(next);
    }
    order
}
