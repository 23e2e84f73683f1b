//! The consequences of a transaction with unknown outcome counting: one pruned problem each.

use kingsnake_context::budget::Budget;
use rustc_hash::FxHashSet;

use crate::WatchError;
use crate::index::Source;
use crate::rules::WatchRules;
use crate::settle::Settling;
use crate::watcher::solve;
use crate::window::{Kept, Point};

/// The open transactions that stay, by place, each with the orders that hold if it counts.
#[derive(Default)]
pub(crate) struct Supposed {
    open: Vec<(u32, Vec<(Point, Point)>)>,
    places: FxHashSet<u32>,
    /// Open transactions that cannot have taken effect, or that nothing can read any more.
    removed: FxHashSet<u32>,
}

impl Supposed {
    pub(crate) fn holds(&self, at: u32) -> bool {
        self.places.contains(&at)
    }
}

impl<R: WatchRules> Settling<'_, R> {
    /// Considers every open transaction as if it counted.
    pub(crate) fn suppose(&mut self, budget: &Budget) -> Result<Supposed, WatchError> {
        let mut supposed = Supposed::default();
        let kept = &self.watcher.window.kept;
        let open: Vec<u32> = (0..kept.len() as u32)
            .filter(|&at| kept[at as usize].is_open)
            .collect();
        for at in open {
            match self.suppose_one(at, &supposed, budget)? {
                Some(orders) => {
                    supposed.places.insert(at);
                    supposed.open.push((at, orders));
                }
                None => {
                    supposed.removed.insert(at);
                }
            }
        }
        Ok(supposed)
    }

    /// The orders that hold if an open transaction counts; `None` if it can be removed.
    fn suppose_one(
        &mut self,
        at: u32,
        supposed: &Supposed,
        budget: &Budget,
    ) -> Result<Option<Vec<(Point, Point)>>, WatchError> {
        let frame = self.watcher.frame(self.index, Some(at));
        let Some(solved) = solve(frame.problem.clone(), budget)? else {
            return Ok(None);
        };
        let reaches = |from: u32, to: u32| solved.reach.reaches(from, to);
        let mut related: FxHashSet<u32> = FxHashSet::default();
        let mut dead: Vec<u32> = Vec::new();
        let lists = self.index.lists.reads.iter();
        let mut readers = lists.filter(|it| it.writers.contains(&at));
        let mut is_read = readers.any(|it| !supposed.removed.contains(&it.reader));
        for versions in self.index.keys() {
            let mut touches = false;
            let mut own = None;
            for version in versions {
                let readers = self.index.readers(version);
                touches |= readers.contains(&at);
                if let Source::Kept(writer, write) = version.source
                    && writer == at
                {
                    touches = true;
                    own = Some(write);
                    // Those that count would have made it count; what was removed reads nothing.
                    is_read |= readers.iter().any(|it| !supposed.removed.contains(it));
                }
            }
            if !touches {
                continue;
            }
            for version in versions {
                related.extend(
                    self.index
                        .readers(version)
                        .iter()
                        .filter(|&&it| frame.holds(it)),
                );
                let Source::Kept(writer, _) = version.source else {
                    continue;
                };
                if !frame.holds(writer) || writer == at {
                    continue;
                }
                related.insert(writer);
                let is_past = self.past[self.frame.commit(writer) as usize];
                if let Some(write) = own
                    && is_past
                    && reaches(frame.commit(at), frame.begin(writer))
                {
                    dead.push(write);
                }
            }
        }
        let number = |at: u32| self.watcher.window.kept[at as usize].number;
        let mut orders = Vec::new();
        for &other in related.iter().filter(|&&it| it != at) {
            for (mine, is_commit) in frame.moments(at) {
                for (its, is_its_commit) in frame.moments(other) {
                    let points = ((number(at), is_commit), (number(other), is_its_commit));
                    if reaches(mine, its) {
                        orders.push(points);
                    } else if reaches(its, mine) {
                        orders.push((points.1, points.0));
                    }
                }
            }
        }
        let reaches_past = |node: u32| {
            let mut members = self.frame.members.iter();
            members.any(|&it| {
                let pairs = frame.moments(it).zip(self.frame.moments(it));
                let mut past = pairs.filter(|&(_, (node, _))| self.past[node as usize]);
                past.any(|((there, _), _)| reaches(node, there))
            })
        };
        let ends = [frame.begin(at), frame.commit(at)].map(reaches_past);
        let batch = self.watcher.window.n_batches;
        let kept = &mut self.watcher.window.kept[at as usize];
        for write in dead {
            kept.dead[write as usize] = true;
        }
        // A list that is read later shows it in its middle, or does not.
        let is_over = kept.dead.iter().all(|&it| it) && kept.arrival.appends.is_empty();
        if is_over && !is_read {
            return Ok(None);
        }
        for (since, is_past) in kept.past.iter_mut().zip(ends) {
            if is_past {
                *since = (*since).min(batch);
            }
        }
        Ok(Some(orders))
    }
}

impl Supposed {
    /// The edges that open transactions may add, apart from those of pairs.
    pub(crate) fn edges<R: WatchRules>(
        &self,
        settling: &Settling<'_, R>,
        ends: &dyn Fn(u32) -> (u32, u32),
        edges: &mut Vec<(u32, u32)>,
    ) {
        if self.open.is_empty() {
            return;
        }
        let window = &settling.watcher.window;
        let options = &settling.watcher.options;
        let places = window.places();
        let all = || {
            (0..window.kept.len() as u32).filter(|&it| self.holds(it) || settling.frame.holds(it))
        };
        let is_before = |a: &Kept, b: &Kept| {
            let is_session = a.arrival.session == b.arrival.session && a.number < b.number;
            let begin = i128::from(b.arrival.begin);
            let over = |commit: i64| i128::from(commit) + i128::from(options.drift) < begin;
            let is_over = a.arrival.commit.is_some_and(over);
            is_session || options.level.has_real_time() && is_over
        };
        for (at, orders) in &self.open {
            let at = *at;
            let it = &window.kept[at as usize];
            let (begin, commit) = ends(at);
            if begin != commit {
                edges.push((begin, commit));
            }
            for other in all().filter(|&other| other != at) {
                let (its_begin, its_commit) = ends(other);
                let its = &window.kept[other as usize];
                let ends_of = [(begin, commit), (its_begin, its_commit)];
                for (a, b, [from, to]) in [(it, its, ends_of), (its, it, [ends_of[1], ends_of[0]])]
                {
                    if is_before(a, b) {
                        edges.push((from.1, to.0));
                    }
                    // Past the barrier of a batch before the other arrived.
                    for (since, node) in a.past.into_iter().zip([from.0, from.1]) {
                        if since < b.batch {
                            edges.push((node, to.0));
                        }
                    }
                }
            }
            for &(before, after) in orders.iter().chain(&it.orders) {
                let node = |(number, is_commit): Point| {
                    let ends = ends(*places.get(&number)?);
                    Some(if is_commit { ends.1 } else { ends.0 })
                };
                if let (Some(from), Some(to)) = (node(before), node(after)) {
                    edges.push((from, to));
                }
            }
        }
        for versions in settling.index.keys() {
            self.tie_reads(settling, versions, ends, edges);
        }
    }

    /// Reads of open transactions, and reads from them.
    fn tie_reads<R: WatchRules>(
        &self,
        settling: &Settling<'_, R>,
        versions: &[crate::index::WatchedVersion],
        ends: &dyn Fn(u32) -> (u32, u32),
        edges: &mut Vec<(u32, u32)>,
    ) {
        let is_there = |at: u32| self.holds(at) || settling.frame.holds(at);
        for version in versions {
            for &reader in settling.index.readers(version) {
                if !is_there(reader) {
                    continue;
                }
                let source = match version.source {
                    Source::Kept(writer, _) if is_there(writer) => Some(writer),
                    _ => None,
                };
                if let Some(writer) = source
                    && writer != reader
                    && (self.holds(writer) || self.holds(reader))
                {
                    edges.push((ends(writer).1, ends(reader).0));
                }
                for other in versions {
                    let Source::Kept(later, write) = other.source else {
                        continue;
                    };
                    let is_one_open = self.holds(reader) || self.holds(later);
                    if later == reader || Some(later) == source || !is_there(later) || !is_one_open
                    {
                        continue;
                    }
                    let is_old = settling.watcher.window.kept[later as usize].old[write as usize];
                    let may_follow = match version.source {
                        Source::Stub => !is_old,
                        Source::Kept(..) => true,
                        Source::Missing => false,
                    };
                    if may_follow {
                        edges.push((ends(reader).0, ends(later).1));
                    }
                }
            }
        }
    }

    /// Keeps the conditional orders, and forgets what is removed.
    pub(crate) fn store<R: WatchRules>(&self, settling: &mut Settling<'_, R>) {
        for (at, orders) in &self.open {
            let kept = &mut settling.watcher.window.kept[*at as usize];
            kept.orders.extend_from_slice(orders);
            kept.orders.sort_unstable();
            kept.orders.dedup();
        }
    }

    /// Whether an open transaction is removed.
    pub(crate) fn removes(&self, at: u32) -> bool {
        self.removed.contains(&at)
    }
}
