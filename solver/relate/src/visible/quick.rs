//! An order of commits at a weak level, if there is one, from pairs of transactions alone.
//!
//! The edges are those of `rc`, `ra` and `cc` without their reasons. Session order and reads-from are walked where they stand, so only
//! what the reads see is stored, eight bytes a pair. Where there is no order, the edges with reasons say why.

use std::ops::Range;

use kingsnake_graph::sort::depth_first;
use rayon::prelude::*;

use super::{clocks, written};
use crate::budget::{Budget, Poll, StopReason};
use crate::level::Model;
use crate::model::KeyId;
use crate::resolve::{GivenOrder, NO_NODE, Node, Resolved, VersionId, Versions};

/// The first commits before the second.
pub type Pair = (Node, Node);

/// With fewer reads, one core is used, without a pool of threads, which takes time to start.
const ALONE: usize = 50_000;

/// Up to this number things are compared one by one; beyond, they are looked up.
#[derive(Clone, Copy, Debug)]
pub struct Scanned {
    /// Reads of a transaction.
    pub reads: usize,
    /// Writers of a key that a read can have missed.
    pub writers: usize,
}

impl Default for Scanned {
    fn default() -> Self {
        Scanned {
            reads: 64,
            writers: 32,
        }
    }
}

/// The comparisons of the search. Tests replace [`ExactRules`] by wrong ones.
pub trait QuickRules: Copy + Sync {
    /// The first read that sees what a read was from, where the level says that it is this one.
    fn first_seeing(self, first: usize) -> usize {
        first
    }

    /// Whether reads see what came before in their session.
    fn looks_back(self) -> bool {
        true
    }

    /// Whether a read that saw a writer of its key may not have returned the initial state.
    fn excludes_initial(self) -> bool {
        true
    }

    /// Whether a node of a session is in a past that ends there.
    fn is_past(self, node: Node, end: Node) -> bool {
        node < end
    }

    /// From where on an order is looked at, if this is its first place that is not in a past.
    fn looked_at_from(self, place: u32) -> u32 {
        place
    }
}

/// The rules of the definitions.
#[derive(Clone, Copy, Debug)]
pub struct ExactRules;

impl QuickRules for ExactRules {}

/// What a part of the search found: pairs, or that some transaction would have to commit before the initial state.
type Found = Result<Option<Vec<Pair>>, StopReason>;

/// The reads of a history where each is of one version, with what they ask for most often beside them.
pub(super) struct Plain<'a, R> {
    pub(super) rules: R,
    pub(super) resolved: &'a Resolved,
    pub(super) versions: &'a Versions,
    pub(super) budget: &'a Budget,
    pub(super) session_order: bool,
    pub(super) scanned: Scanned,
    /// The writer and the key of each read.
    pub(super) writer: Vec<Node>,
    pub(super) key: Vec<KeyId>,
    /// Whether a node is the first of its session.
    is_first: Vec<bool>,
    written_start: Vec<u32>,
    written: Vec<KeyId>,
}

/// An order of commits that a weak level allows, by rules that tests replace by mistaken ones. `None` if there is none, or if the
/// history has range queries, which are not looked at here. `stated` are further pairs that must be kept.
pub fn order(
    rules: impl QuickRules,
    resolved: &Resolved,
    model: Model,
    session_order: bool,
    stated: Vec<Pair>,
    scanned: Scanned,
    budget: &Budget,
) -> Result<Option<Vec<Node>>, StopReason> {
    if !resolved.reads().gaps().is_empty() {
        return Ok(None);
    }
    let plain = Plain::of(rules, resolved, session_order, scanned, budget);
    let mut pairs = vec![stated];
    pairs.push(
        resolved
            .given()
            .iter()
            .flat_map(|it| plain.given(it))
            .collect(),
    );
    let is_ra = model == Model::Ra;
    if session_order && rules.looks_back() && matches!(model, Model::RcSo | Model::Ra) {
        let Some(found) = plain.by_session()? else {
            return Ok(None);
        };
        pairs.extend(found);
    }
    let found = match model {
        Model::Rc | Model::RcSo | Model::Ra => {
            plain.by_reader(|readers, poll| plain.seen(readers, is_ra, poll))?
        }
        Model::Cc => clocks::pairs(&plain)?,
        _ => None,
    };
    let Some(found) = found else { return Ok(None) };
    pairs.extend(found);
    Ok(plain.sorted(&pairs))
}

impl<'a, R: QuickRules> Plain<'a, R> {
    fn of(
        rules: R,
        resolved: &'a Resolved,
        session_order: bool,
        scanned: Scanned,
        budget: &'a Budget,
    ) -> Self {
        let (versions, reads) = (resolved.versions(), resolved.reads());
        let n_reads = reads.n_reads();
        let writer = |read| versions.writer(reads.version(read));
        let key = |read| versions.key(reads.version(read));
        let all = 0..n_reads;
        let ((writer, key), (written_start, written)) = if n_reads < ALONE {
            let writer = all.clone().map(writer).collect();
            ((writer, all.map(key).collect()), written(resolved))
        } else {
            rayon::join(
                || {
                    let writer = all.clone().into_par_iter().map(writer).collect();
                    (writer, all.into_par_iter().map(key).collect())
                },
                || written(resolved),
            )
        };
        let mut is_first = vec![false; resolved.n_txns()];
        for nodes in resolved.sessions() {
            if let Some(is_first) = is_first.get_mut(nodes.start as usize) {
                *is_first = true;
            }
        }
        Plain {
            rules,
            resolved,
            versions,
            budget,
            session_order,
            scanned,
            writer,
            key,
            is_first,
            written_start,
            written,
        }
    }

    /// The keys that a transaction writes.
    #[inline]
    fn written(&self, node: Node) -> &[KeyId] {
        let at = |node: usize| self.written_start[node] as usize;
        &self.written[at(node as usize)..at(node as usize + 1)]
    }

    /// The pairs that a given order of versions states.
    fn given(&self, order: &GivenOrder) -> Vec<Pair> {
        let writer = |version: &VersionId| self.versions.writer(*version);
        let listed: Vec<Node> = order.versions.iter().map(writer).collect();
        let mut pairs: Vec<Pair> = listed.windows(2).map(|pair| (pair[0], pair[1])).collect();
        if let Some(&last) = listed.last().filter(|_| order.is_prefix) {
            let all = self.versions.writers_of(order.key);
            if all.len() > listed.len() {
                let mut sorted = listed;
                sorted.sort_unstable();
                let others = all.iter().filter(|it| sorted.binary_search(it).is_err());
                pairs.extend(others.map(|&other| (last, other)));
            }
        }
        pairs
    }

    fn n_parts(&self) -> usize {
        if self.is_small() {
            1
        } else {
            rayon::current_num_threads().max(1)
        }
    }

    fn is_small(&self) -> bool {
        self.writer.len() < ALONE
    }

    /// Runs two functions, in parallel if there is enough work.
    pub(super) fn both<A: Send, B: Send>(
        &self,
        first: impl FnOnce() -> A + Send,
        second: impl FnOnce() -> B + Send,
    ) -> (A, B) {
        if self.is_small() {
            (first(), second())
        } else {
            rayon::join(first, second)
        }
    }

    /// Maps a function over the items, in parallel if there is enough work.
    pub(super) fn each<T: Send, U: Send, C>(
        &self,
        items: impl IntoIterator<Item = T> + IntoParallelIterator<Item = T>,
        make: impl Fn(T) -> U + Sync + Send,
    ) -> C
    where
        C: FromIterator<U> + FromParallelIterator<U>,
    {
        if self.is_small() {
            items.into_iter().map(make).collect()
        } else {
            items.into_par_iter().map(make).collect()
        }
    }

    /// The pairs that stretches of readers give.
    pub(super) fn by_reader(
        &self,
        find: impl Fn(Range<Node>, &mut Poll<'_>) -> Found + Sync,
    ) -> Result<Option<Vec<Vec<Pair>>>, StopReason> {
        let (n_txns, n_parts) = (self.resolved.n_txns(), self.n_parts());
        let bound = |part: usize| (n_txns * part / n_parts) as Node;
        let find = |part: usize| find(bound(part)..bound(part + 1), &mut self.budget.poll());
        self.each(0..n_parts, find)
    }

    /// The implications of the reads of some transactions from the sources of their reads: all of them, or only the earlier ones.
    fn seen(&self, readers: Range<Node>, is_ra: bool, poll: &mut Poll<'_>) -> Found {
        let mut pairs = Vec::new();
        let mut index = Vec::new();
        for reader in readers {
            poll.step()?;
            let reads = self.resolved.reads().of(reader);
            if reads.len() < 2 {
                continue;
            }
            let is_kept = if reads.len() <= self.scanned.reads {
                self.seen_by_short(reads, is_ra, &mut pairs)
            } else {
                self.seen_by_long(reads, is_ra, &mut index, &mut pairs)
            };
            if !is_kept {
                return Ok(None);
            }
        }
        Ok(Some(pairs))
    }

    /// The first read that sees what a read was from.
    fn first_seeing(&self, reads: &Range<usize>, read: usize, is_ra: bool) -> usize {
        if is_ra {
            return self.rules.first_seeing(reads.start);
        }
        let all = self.resolved.reads();
        let mut first = read;
        while first > reads.start && all.statement(first - 1) == all.statement(read) {
            first -= 1;
        }
        self.rules.first_seeing(first)
    }

    /// Adds what the reads of a transaction see; false if one returned the initial state even so.
    fn seen_by_short(&self, reads: Range<usize>, is_ra: bool, pairs: &mut Vec<Pair>) -> bool {
        let (writers, keys) = (&self.writer[reads.clone()], &self.key[reads.clone()]);
        let bit = |key: KeyId| 1_u64 << (key.0 & 63);
        let some_keys = keys.iter().fold(0, |bits, &key| bits | bit(key));
        for (at, &seen) in writers.iter().enumerate() {
            if seen == NO_NODE || writers[..at].contains(&seen) {
                continue;
            }
            let mut first = None;
            for &key in self.written(seen) {
                if some_keys & bit(key) == 0 {
                    continue;
                }
                let first = *first.get_or_insert_with(|| {
                    self.first_seeing(&reads, reads.start + at, is_ra) - reads.start
                });
                let below = keys.iter().zip(writers).skip(first);
                let mut others = below.filter(|&(&it, &writer)| it == key && writer != seen);
                match others.next() {
                    Some((_, &NO_NODE)) if self.rules.excludes_initial() => return false,
                    None | Some((_, &NO_NODE)) => {}
                    Some((_, &writer)) => pairs.push((seen, writer)),
                }
            }
        }
        true
    }

    /// The same for a transaction of many reads.
    fn seen_by_long(
        &self,
        reads: Range<usize>,
        is_ra: bool,
        index: &mut Vec<(KeyId, usize)>,
        pairs: &mut Vec<Pair>,
    ) -> bool {
        index.clear();
        index.extend(reads.clone().map(|read| (self.key[read], read)));
        index.sort_unstable();
        let mut done: rustc_hash::FxHashSet<Node> = rustc_hash::FxHashSet::default();
        for read in reads.clone() {
            let seen = self.writer[read];
            if seen == NO_NODE || !done.insert(seen) {
                continue;
            }
            let first = self.first_seeing(&reads, read, is_ra);
            let mut see = |from: usize, key: KeyId| {
                let of_key = index[from..].iter().take_while(|it| it.0 == key);
                let mut others = of_key.filter(|it| self.writer[it.1] != seen);
                match others.next().map(|it| self.writer[it.1]) {
                    None => true,
                    Some(NO_NODE) => !self.rules.excludes_initial(),
                    Some(writer) => {
                        pairs.push((seen, writer));
                        true
                    }
                }
            };
            let written = self.written(seen);
            if written.len() <= 8 * reads.len() {
                for &key in written {
                    let from = index.partition_point(|&it| it < (key, first));
                    if !see(from, key) {
                        return false;
                    }
                }
                continue;
            }
            let mut from = 0;
            while let Some(&(key, _)) = index.get(from) {
                let n_of_key = index[from..].partition_point(|it| it.0 == key);
                let n_before = index[from..].partition_point(|&it| it < (key, first));
                if self.versions.of_writer(key, seen).is_some() && !see(from + n_before, key) {
                    return false;
                }
                from += n_of_key;
            }
        }
        true
    }

    /// The implications of what came before in the session: the last earlier writer of the key.
    fn by_session(&self) -> Result<Option<Vec<Vec<Pair>>>, StopReason> {
        let sessions = self.resolved.sessions();
        let n_a_part = self.resolved.n_txns().div_ceil(self.n_parts()).max(1);
        let mut parts: Vec<Vec<Range<Node>>> = Vec::new();
        let mut n_of_last = n_a_part;
        for nodes in sessions {
            if n_of_last >= n_a_part {
                parts.push(Vec::new());
                n_of_last = 0;
            }
            n_of_last += nodes.len();
            parts
                .last_mut()
                .expect("one was pushed")
                .push(nodes.clone());
        }
        let find = |part: Vec<Range<Node>>| self.seen_in_sessions(part, &mut self.budget.poll());
        self.each(parts, find)
    }

    fn seen_in_sessions(&self, sessions: Vec<Range<Node>>, poll: &mut Poll<'_>) -> Found {
        // Nodes grow from session to session, so what is below the session's first was written in another.
        let mut last = vec![NO_NODE; self.versions.n_keys()];
        let mut pairs = Vec::new();
        for nodes in sessions {
            for reader in nodes.clone() {
                poll.step()?;
                for read in self.resolved.reads().of(reader) {
                    let seen = last[self.key[read].index()];
                    let writer = self.writer[read];
                    if nodes.contains(&seen) && seen != writer {
                        match writer {
                            NO_NODE if self.rules.excludes_initial() => return Ok(None),
                            NO_NODE => {}
                            writer => pairs.push((seen, writer)),
                        }
                    }
                }
                for key in self.written(reader) {
                    last[key.index()] = reader;
                }
            }
        }
        Ok(Some(pairs))
    }

    /// The nodes in an order that keeps session order, reads-from and some pairs, if there is one: each after what comes before it,
    /// which is walked depth first.
    pub(super) fn sorted(&self, pairs: &[Vec<Pair>]) -> Option<Vec<Node>> {
        let n_nodes = self.resolved.n_txns();
        let all = pairs.iter().flatten().map(|&(from, to)| (to, from));
        let earlier = kingsnake_graph::FlatGraph::new(n_nodes, all);
        depth_first(n_nodes, |node, at| {
            let reads = self.resolved.reads().of(node);
            if at == 0 {
                let has_before = self.session_order && !self.is_first[node as usize];
                return Some(if has_before { node - 1 } else { NO_NODE });
            }
            if at <= reads.len() {
                return Some(self.writer[reads.start + at - 1]);
            }
            let listed = earlier.targets(node);
            listed.get(at - 1 - reads.len()).copied()
        })
    }
}
