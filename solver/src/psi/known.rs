//! What is known at parallel snapshot isolation: *D*, the edges of so, wr and ww; the rw edges, which are not part of
//! D; and the pairs of runs whose order is open.
//!
//! A history satisfies the level iff every pair has an order such that D has no cycle and no rw edge t → u has u ⇝ t in D (Cerone and
//! Gotsman). So *a* ≪ *b* is impossible at once iff *b*'s head reaches *a*'s last writer, or a reader of *a*, or if some rw edge
//! t → u has u ⇝ *a* and *b* ⇝ t. Edges are only appended, so what was known before a round is a prefix.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::ways::{Way, Ways};

use crate::budget::{Budget, StopReason};
use crate::prune::Dag;
use crate::relate::{Edge, Polygraph, Reason, reasons};
use kingsnake_graph::Orders;
use kingsnake_graph::reach::Reach;
use kingsnake_graph::sort::around_cycles;

/// How many pairs of an open pair and an rw edge are looked at in a round; beyond that the third rule is left to the search.
const LOOKED_AT: u64 = 50_000_000;

/// How many edges that close a cycle are tried for the shortest.
const TRIED: usize = 64;

/// Two runs of a key, the first before the second; by their places among all runs.
pub(super) type Pair = (u32, u32);

/// Number of D edges and of rw edges at that time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct End {
    edges: usize,
    rw: usize,
}

/// An order that is forced because its opposite contradicts what was known before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forced {
    pub(super) pair: Pair,
    /// What was known then.
    pub(super) end: End,
}

/// An edge, and the order of runs that it depends on, if any.
pub(super) type Link = (Edge, Option<Pair>);

/// The state.
#[derive(Clone)]
pub(super) struct Known<'a> {
    polygraph: &'a Polygraph,
    /// The transactions alone: helpers of gaps are no part of D.
    n_nodes: usize,
    chains: Vec<Range<u32>>,
    edges: Vec<Link>,
    rw: Vec<Link>,
    pub(super) open: Vec<Pair>,
    pub(super) forced: Vec<Forced>,
}

/// Whether two nodes are equal, or a path of D leads from the first to the second.
#[inline]
fn is_or_reaches(reach: &Reach, from: u32, to: u32) -> bool {
    from == to || reach.reaches(from, to)
}

impl<'a> Known<'a> {
    /// The edges of a history's graph before anything is forced.
    pub(super) fn new(polygraph: &'a Polygraph, budget: &Budget) -> Result<Self, StopReason> {
        let n_nodes = polygraph.resolved().n_txns();
        let is_txn = |edge: &Edge| (edge.from as usize) < n_nodes && edge.reason != reasons::GAP;
        let is_rw = |edge: &Edge| matches!(edge.reason, Reason::Rw { .. });
        let direct = polygraph.edges().iter().filter(|it| is_txn(it));
        let (mut rw, edges): (Vec<Edge>, Vec<Edge>) = direct.partition(|it| is_rw(it));
        rw.extend(through_gaps(polygraph, n_nodes));
        let orders = polygraph.runs();
        budget.reserve("the list of pairs", orders.n_pairs().saturating_mul(8))?;
        let mut open = Vec::new();
        for key in 0..orders.n_keys() {
            let runs = orders.range(key);
            let runs = runs.start as u32..runs.end as u32;
            open.extend(
                runs.clone()
                    .flat_map(|a| (a + 1..runs.end).map(move |b| (a, b))),
            );
        }
        let link = |edge: Edge| (edge, None);
        let chains = polygraph.problem().chains.iter().cloned();
        Ok(Known {
            polygraph,
            n_nodes,
            chains: chains.filter(|it| it.end as usize <= n_nodes).collect(),
            edges: edges.into_iter().map(link).collect(),
            rw: rw.into_iter().map(link).collect(),
            open,
            forced: Vec::new(),
        })
    }

    pub(super) fn polygraph(&self) -> &'a Polygraph {
        self.polygraph
    }

    pub(super) fn n_nodes(&self) -> usize {
        self.n_nodes
    }

    pub(super) fn chains(&self) -> &[Range<u32>] {
        &self.chains
    }

    pub(super) fn orders(&self) -> &'a Orders {
        self.polygraph.runs()
    }

    /// The edges of D.
    pub(super) fn edges(&self) -> impl Iterator<Item = Edge> + '_ {
        self.edges.iter().map(|link| link.0)
    }

    /// The rw edges.
    pub(super) fn rw(&self) -> &[Link] {
        &self.rw
    }

    pub(super) fn end(&self) -> End {
        End {
            edges: self.edges.len(),
            rw: self.rw.len(),
        }
    }

    /// Removes edges, before any order is added.
    pub(super) fn retain(&mut self, mut is_kept: impl FnMut(Edge) -> bool) {
        self.edges.retain(|link| is_kept(link.0));
        self.rw.retain(|link| is_kept(link.0));
    }

    /// Adds edges, before any order is added.
    pub(super) fn extend(&mut self, edges: Vec<Edge>) {
        for edge in edges {
            self.push((edge, None));
        }
    }

    /// Assumes an order.
    pub(super) fn assume(&mut self, pair: Pair) {
        self.open.retain(|&it| it != pair && it != (pair.1, pair.0));
        self.add(pair);
    }

    fn add(&mut self, pair: Pair) {
        for edge in self.orders().edges(pair.0, pair.1) {
            self.push((edge, Some(pair)));
        }
    }

    fn push(&mut self, link: Link) {
        match link.0.reason {
            Reason::Rw { .. } => self.rw.push(link),
            _ => self.edges.push(link),
        }
    }

    /// D as a graph without cycles, and reachability in it; `None` where it has a cycle.
    pub(super) fn reach(&self, budget: &Budget) -> Result<Option<(Dag, Reach)>, StopReason> {
        let edges: Vec<Edge> = self.edges().collect();
        let Ok(dag) = Dag::new(self.n_nodes, edges.iter()) else {
            return Ok(None);
        };
        let reach = Reach::new(&dag, &self.chains, budget)?;
        Ok(Some((dag, reach)))
    }

    /// Forces orders, for at most this many rounds. Returns whether what is known is free of contradictions.
    pub(super) fn prune(
        &mut self,
        rounds: Option<usize>,
        budget: &Budget,
    ) -> Result<bool, StopReason> {
        for round in 0.. {
            budget.check()?;
            let Some((_, reach)) = self.reach(budget)? else {
                return Ok(false);
            };
            if self.rw.iter().any(|(it, _)| reach.reaches(it.to, it.from)) {
                return Ok(false);
            }
            if rounds.is_some_and(|rounds| round >= rounds) {
                return Ok(true);
            }
            let end = self.end();
            let forced = self.judge(&reach);
            if forced.is_empty() {
                return Ok(true);
            }
            for pair in forced {
                self.add(pair);
                self.forced.push(Forced { pair, end });
            }
        }
        Ok(true)
    }

    /// Takes the pairs of which one order is impossible from those that are open. Where both are, what is taken is a contradiction.
    fn judge(&mut self, reach: &Reach) -> Vec<Pair> {
        let mut open = std::mem::take(&mut self.open);
        let by_rw = (open.len() as u64).saturating_mul(self.rw.len() as u64) < LOOKED_AT;
        let mut forced = Vec::new();
        open.retain(|&(a, b)| {
            if self.is_impossible((b, a), reach, by_rw) {
                forced.push((a, b));
            } else if self.is_impossible((a, b), reach, by_rw) {
                forced.push((b, a));
            } else {
                return true;
            }
            false
        });
        self.open = open;
        forced
    }

    fn is_impossible(&self, (a, b): Pair, reach: &Reach, by_rw: bool) -> bool {
        let orders = self.orders();
        let (from, to) = (orders.run(a).last_commit, orders.run(b).install);
        if is_or_reaches(reach, to, from) {
            return true;
        }
        let mut readers = orders.readers(a).iter().filter(|&&reader| reader != to);
        readers.any(|&reader| reach.reaches(to, reader))
            || by_rw
                && self.rw.iter().any(|(rw, _)| {
                    is_or_reaches(reach, to, rw.from) && is_or_reaches(reach, rw.to, from)
                })
    }

    /// A short cycle of what is known with at most one rw edge; `None` if there is none.
    pub(super) fn cycle(&self, budget: &Budget) -> Result<Option<Vec<Link>>, StopReason> {
        let closing: Vec<Link> = match self.reach(budget)? {
            None => self.on_cycles(),
            Some((_, reach)) => {
                let closes = |(rw, _): &&Link| reach.reaches(rw.to, rw.from);
                self.rw.iter().filter(closes).copied().collect()
            }
        };
        let ways = Ways::new(&self.edges, self.n_nodes);
        let found = closing.into_iter().take(TRIED).filter_map(|link| {
            let tree = ways.tree(link.0.to, Way::Ahead);
            let cost = tree.cost(link.0.from)?;
            Some((cost, [vec![link], tree.path(&ways, link.0.from)].concat()))
        });
        Ok(found.min_by_key(|it| it.0).map(|it| it.1))
    }

    /// The edges of D between transactions that some cycle comes before and some cycle comes after.
    fn on_cycles(&self) -> Vec<Link> {
        let ends = self.edges.iter().map(|it| (it.0.from, it.0.to));
        let is_left = around_cycles(self.n_nodes, ends);
        let mut edges = self.edges.clone();
        edges.retain(|(it, _)| is_left[it.from as usize] && is_left[it.to as usize]);
        edges
    }

    /// A cycle that an order closes with what was known at some end: its own edge first.
    pub(super) fn closes(&self, pair: Pair, end: End) -> Option<Vec<Link>> {
        let ways = Ways::new(&self.edges[..end.edges], self.n_nodes);
        let of = |edge: Edge| (edge, Some(pair));
        let edges: Vec<Link> = self.orders().edges(pair.0, pair.1).map(of).collect();
        let ww = *edges.first()?;
        let ahead = ways.tree(ww.0.to, Way::Ahead);
        let one = edges
            .iter()
            .filter_map(|link| Some((ahead.cost(link.0.from)?, link)));
        if let Some((_, &link)) = one.min_by_key(|it| it.0) {
            return Some([vec![link], ahead.path(&ways, link.0.from)].concat());
        }
        let back = ways.tree(ww.0.from, Way::Back);
        let three = self.rw[..end.rw]
            .iter()
            .filter_map(|rw| Some((ahead.cost(rw.0.from)? + back.cost(rw.0.to)?, rw)));
        let &rw = three.min_by_key(|it| it.0)?.1;
        let there = ahead.path(&ways, rw.0.from);
        let here = back.path(&ways, rw.0.to);
        Some([vec![ww], there, vec![rw], here].concat())
    }
}

/// The rw edges of what range queries found absent, from the readers themselves: through helpers a path would count none.
fn through_gaps(polygraph: &Polygraph, n_nodes: usize) -> Vec<Edge> {
    let is_helper = |node: u32| node as usize >= n_nodes;
    let mut out: FxHashMap<u32, Vec<Edge>> = FxHashMap::default();
    let mut starts = Vec::new();
    for &edge in polygraph.edges() {
        if is_helper(edge.from) {
            out.entry(edge.from).or_default().push(edge);
        } else if edge.reason == reasons::GAP {
            starts.push(edge);
        }
    }
    let mut found = Vec::new();
    for start in starts {
        let mut open = vec![start.to];
        while let Some(helper) = open.pop() {
            for &edge in out.get(&helper).into_iter().flatten() {
                if is_helper(edge.to) {
                    open.push(edge.to);
                } else if edge.to != start.from {
                    found.push(Edge {
                        from: start.from,
                        ..edge
                    });
                }
            }
        }
    }
    found
}
