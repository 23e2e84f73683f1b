//! Causal consistency by vector clocks over few sessions: of each session, the last writer of the key that happened before the reader
//! and not before the writer that was read from.
//!
//! Most reads miss no writer, which one look at an order of the transactions shows: a missed one stands in it after the first that did
//! not happen before the writer, and before the reader. The writers of the key that stand there are compared with two clocks; where they
//! are many, each session is looked up.

use std::ops::Range;

use super::quick::{Pair, Plain, QuickRules};
use crate::budget::{Poll, StopReason};
use crate::model::KeyId;
use crate::resolve::{NO_NODE, Node};

/// The pairs that causal consistency gives; `None` if something happened before itself, a read returned the initial state although it saw
/// a writer, or there are too many chains for clocks of this kind.
pub(super) fn pairs(
    plain: &Plain<'_, impl QuickRules>,
) -> Result<Option<Vec<Vec<Pair>>>, StopReason> {
    if !plain.session_order {
        return Ok(None);
    }
    match plain.resolved.sessions().len() {
        0..=8 => pairs_of::<8>(plain),
        9..=16 => pairs_of::<16>(plain),
        17..=24 => pairs_of::<24>(plain),
        25..=32 => pairs_of::<32>(plain),
        33..=64 => pairs_of::<64>(plain),
        _ => Ok(None),
    }
}

fn pairs_of<const N: usize>(
    plain: &Plain<'_, impl QuickRules>,
) -> Result<Option<Vec<Vec<Pair>>>, StopReason> {
    match Clocks::<N>::of(plain)? {
        Some(clocks) => plain.by_reader(|readers, poll| clocks.seen(plain, readers, poll)),
        None => Ok(None),
    }
}

/// For each node and each session, where in the session its past ends: the first node of it that is not in the past.
struct Clocks<const N: usize> {
    rows: Vec<[Node; N]>,
    /// The first node of each session.
    starts: Vec<Node>,
    /// The session of each node.
    session: Vec<u8>,
    /// An order of the nodes that keeps what happened before what, and where each stands in it.
    order: Vec<Node>,
    place: Vec<u32>,
    /// The first place of the order that is not in the past of the node.
    missed: Vec<u32>,
    /// The places of the writers of each key, sorted; they stand where the versions do.
    writers: Vec<u32>,
}

impl<const N: usize> Clocks<N> {
    /// The clocks of all transactions; `None` if something happened before itself.
    fn of(plain: &Plain<'_, impl QuickRules>) -> Result<Option<Self>, StopReason> {
        let sessions = plain.resolved.sessions();
        let n_nodes = plain.resolved.n_txns();
        let n_versions = plain.versions.all_writers().len();
        let bytes = 4 * (n_nodes as u64 * (N as u64 + 3) + n_versions as u64);
        plain
            .budget
            .reserve("the clocks of causal consistency", bytes)?;
        let mut session = vec![0_u8; n_nodes];
        for (number, nodes) in sessions.iter().enumerate() {
            session[nodes.start as usize..nodes.end as usize].fill(number as u8);
        }
        let Some(order) = plain.sorted(&[]) else {
            return Ok(None);
        };
        let mut place = vec![0; n_nodes];
        for (at, &node) in order.iter().enumerate() {
            place[node as usize] = at as u32;
        }
        let (rows, writers) = plain.both(
            || rows(plain, &order, &session),
            || sorted_places(plain, &place),
        );
        let rows = rows?;
        let missed = plain.each(&rows, |row: &[Node; N]| missed(sessions, row, &place));
        Ok(Some(Clocks {
            missed,
            rows,
            starts: sessions.iter().map(|nodes| nodes.start).collect(),
            session,
            order,
            place,
            writers,
        }))
    }

    /// What the reads of some transactions see; `None` if one returned the initial state even so.
    fn seen(
        &self,
        plain: &Plain<'_, impl QuickRules>,
        readers: Range<Node>,
        poll: &mut Poll<'_>,
    ) -> Result<Option<Vec<Pair>>, StopReason> {
        let mut pairs = Vec::new();
        for reader in readers {
            for read in plain.resolved.reads().of(reader) {
                poll.step()?;
                let n_before = pairs.len();
                self.missing(plain, reader, read, &mut pairs);
                if plain.writer[read] == NO_NODE && pairs.len() > n_before {
                    if plain.rules.excludes_initial() {
                        return Ok(None);
                    }
                    pairs.truncate(n_before);
                }
            }
        }
        Ok(Some(pairs))
    }

    /// Adds who happened before a reader, wrote what it read, and did not happen before the writer that it read from.
    #[inline]
    fn missing(
        &self,
        plain: &Plain<'_, impl QuickRules>,
        reader: Node,
        read: usize,
        pairs: &mut Vec<Pair>,
    ) {
        let writer = plain.writer[read];
        let first = self.missed.get(writer as usize).copied().unwrap_or(0);
        let first = plain.rules.looked_at_from(first);
        let end = self.place[reader as usize];
        let versions = plain.versions.of_key(plain.key[read]);
        let versions = versions.start as usize + 1..versions.end as usize;
        let places = &self.writers[versions.clone()];
        let places = &places[places.partition_point(|&place| place < first)..];
        let bound = &self.rows[reader as usize];
        let nothing = [0; N];
        let from = self.rows.get(writer as usize).unwrap_or(&nothing);
        let push = |seen: Node| {
            if seen != writer {
                pairs.push((seen, writer));
            }
        };
        if places
            .get(plain.scanned.writers)
            .is_some_and(|&it| it < end)
        {
            let nodes = &plain.versions.all_writers()[versions];
            self.search(plain.rules, nodes, from, bound, push);
            return;
        }
        let between = places.iter().take_while(|&&place| place < end);
        let nodes = between.map(|&place| self.order[place as usize]);
        let is_missing = |&node: &Node| {
            let session = usize::from(self.session[node as usize]).min(N - 1);
            plain.rules.is_past(node, bound[session]) && node >= from[session]
        };
        nodes.filter(is_missing).for_each(push);
    }

    /// Of each session, the last of some nodes between two clocks, looked up.
    fn search(
        &self,
        rules: impl QuickRules,
        nodes: &[Node],
        from: &[Node; N],
        bound: &[Node; N],
        mut push: impl FnMut(Node),
    ) {
        for (session, &start) in self.starts.iter().enumerate() {
            let (from, bound) = (from[session].max(start), bound[session]);
            if from >= bound {
                continue;
            }
            let n_before = nodes.partition_point(|&node| rules.is_past(node, bound));
            if let Some(&last) = nodes[..n_before].last().filter(|&&last| last >= from) {
                push(last);
            }
        }
    }
}

/// The first place of an order that is not in a past.
fn missed<const N: usize>(sessions: &[Range<Node>], row: &[Node; N], place: &[u32]) -> u32 {
    let next = sessions.iter().zip(row).filter_map(|(nodes, &end)| {
        let next = end.max(nodes.start);
        (next < nodes.end).then(|| place[next as usize])
    });
    next.min().unwrap_or(place.len() as u32)
}

/// The places of the writers of each key, sorted, where its versions stand.
fn sorted_places(plain: &Plain<'_, impl QuickRules>, place: &[u32]) -> Vec<u32> {
    let place = |it: &Node| place.get(*it as usize).copied().unwrap_or(0);
    let mut places: Vec<u32> = plain.each(plain.versions.all_writers(), place);
    sort_keys(plain, 0..plain.versions.n_keys() as u32, &mut places);
    places
}

/// Sorts the places of each of some keys; the initial version stays first.
fn sort_keys(plain: &Plain<'_, impl QuickRules>, keys: Range<u32>, places: &mut [u32]) {
    const ALONE: usize = 50_000;
    let n_of = |key: u32| {
        let versions = plain.versions.of_key(KeyId(key));
        (versions.end - versions.start) as usize
    };
    if keys.len() > 1 && places.len() > ALONE {
        let middle = keys.start + keys.len() as u32 / 2;
        let start = |key: u32| plain.versions.of_key(KeyId(key)).start;
        let (low, high) = places.split_at_mut((start(middle) - start(keys.start)) as usize);
        rayon::join(
            || sort_keys(plain, keys.start..middle, low),
            || sort_keys(plain, middle..keys.end, high),
        );
        return;
    }
    let mut rest = places;
    for key in keys {
        let (own, others) = rest.split_at_mut(n_of(key));
        if let [_, written @ ..] = own {
            written.sort_unstable();
        }
        rest = others;
    }
}

/// The rows of all clocks; a row holds the node itself for its own session.
fn rows<const N: usize>(
    plain: &Plain<'_, impl QuickRules>,
    order: &[Node],
    of_node: &[u8],
) -> Result<Vec<[Node; N]>, StopReason> {
    let mut rows = vec![[0; N]; order.len()];
    let mut poll = plain.budget.poll();
    for &node in order {
        poll.step()?;
        let own = usize::from(of_node[node as usize]);
        let mut row = [0; N];
        if node > plain.resolved.sessions()[own].start {
            row = rows[node as usize - 1];
        }
        for read in plain.resolved.reads().of(node) {
            let from = plain.writer[read];
            if from == NO_NODE || from < row[usize::from(of_node[from as usize])] {
                continue;
            }
            for (own, theirs) in row.iter_mut().zip(rows[from as usize]) {
                *own = theirs.max(*own);
            }
            row[usize::from(of_node[from as usize])] = from + 1;
        }
        row[own] = node;
        rows[node as usize] = row;
    }
    Ok(rows)
}
