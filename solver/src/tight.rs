//! The tightness of an order: the pairs of transactions that every order explaining the history has the same way round,
//! and those that can
//! change places.
//!
//! A path of known edges forces a pair. Adding to the known edges, for each open constraint, the side that the order takes gives a
//! graph of which every topological order explains the history; so two transactions without a path between them are free. What
//! is left depends on the constraints. Where none is open, nothing is left and both counts are exact.

use crate::budget::{Budget, StopReason};
use crate::decide::Side;
use crate::model::{History, TxnId};
use crate::prune::{Dag, Pruned};
use crate::relate::Edge;
use crate::verdict::{Certificate, Moment};

/// Nodes whose ancestors are found in one sweep.
const STRIP: usize = 512;
const WORDS: usize = STRIP / 64;

/// How tight an order is, in pairs of transactions. Where begins and commits are apart, commits count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tightness {
    /// All pairs of transactions that count.
    pub n_pairs: u64,
    /// Pairs that every order has the same way round.
    pub n_forced: u64,
    /// Pairs of which some order has the one first, and some order the other.
    pub n_free: u64,
    /// Constraints that were open after pruning.
    pub n_open: usize,
    /// Neighbours in the order that can change places, everything else staying as it is.
    pub swaps: Vec<(TxnId, TxnId)>,
}

impl Tightness {
    /// Pairs for which this is unknown.
    pub fn n_undecided(&self) -> u64 {
        self.n_pairs - self.n_forced - self.n_free
    }
}

/// How tight an order is, given what pruning left of its question. `None` where reads have several possible writers or
/// conditions over rows are to be met: not every topological order will do there.
pub fn tightness(
    history: &History,
    pruned: &Pruned,
    certificate: &Certificate,
    budget: &Budget,
) -> Result<Option<Tightness>, StopReason> {
    if !pruned.variables.is_empty() || history.n_predicates() > 0 {
        return Ok(None);
    }
    let Some(settled) = settled(history, pruned, certificate) else {
        return Ok(None);
    };
    let mut nodes = vec![u32::MAX; history.n_txns()];
    for node in 0..pruned.dag.n_nodes() as u32 {
        if let Some(point) = pruned.problem.point(node)
            && point.moment != Moment::Begin
        {
            nodes[point.txn.index()] = node;
        }
    }
    let commits = certificate.order.iter();
    let commits = commits.filter(|point| point.moment != Moment::Begin);
    let commits: Vec<(TxnId, u32)> = commits
        .map(|point| (point.txn, nodes[point.txn.index()]))
        .collect();
    if commits.iter().any(|&(_, node)| node == u32::MAX) {
        return Ok(None);
    }
    let columns: Vec<u32> = commits.iter().map(|&(_, node)| node).collect();
    let neighbours: Vec<(u32, u32)> = columns.windows(2).map(|it| (it[0], it[1])).collect();
    let n = columns.len() as u64;
    let n_pairs = n * n.saturating_sub(1) / 2;
    let (n_forced, _) = paths(&pruned.dag, &columns, &[], budget)?;
    let (n_ordered, linked) = paths(&settled, &columns, &neighbours, budget)?;
    let swaps = commits.windows(2).zip(linked);
    let swaps = swaps.filter(|(_, linked)| !linked);
    Ok(Some(Tightness {
        n_pairs,
        n_forced,
        n_free: n_pairs - n_ordered,
        n_open: pruned.constraints.len(),
        swaps: swaps.map(|(pair, _)| (pair[0].0, pair[1].0)).collect(),
    }))
}

/// The known edges and the sides that the order takes; `None` if it takes neither side of some constraint.
fn settled(history: &History, pruned: &Pruned, certificate: &Certificate) -> Option<Dag> {
    let mut places = vec![[u32::MAX; 2]; history.n_txns()];
    for (place, point) in certificate.order.iter().enumerate() {
        let own = &mut places[point.txn.index()];
        match point.moment {
            Moment::Whole => *own = [place as u32; 2],
            Moment::Begin => own[0] = place as u32,
            Moment::Commit => own[1] = place as u32,
        }
    }
    let place = |node: u32| {
        let point = pruned.problem.point(node)?;
        Some(places[point.txn.index()][usize::from(point.moment != Moment::Begin)])
    };
    let mut edges: Vec<Edge> = pruned.question().known().collect();
    for constraint in 0..pruned.constraints.len() {
        let keeps = |side: &Side| {
            let mut edges = pruned.constraints.side(constraint, *side).iter();
            edges.all(
                |edge| matches!((place(edge.from), place(edge.to)), (Some(a), Some(b)) if a < b),
            )
        };
        let side = [Side::Either, Side::Or].into_iter().find(keeps)?;
        edges.extend_from_slice(pruned.constraints.side(constraint, side));
    }
    Dag::new(pruned.dag.n_nodes(), edges.iter()).ok()
}

/// How many pairs of these nodes a path links, and which of `asked` it does.
fn paths(
    dag: &Dag,
    columns: &[u32],
    asked: &[(u32, u32)],
    budget: &Budget,
) -> Result<(u64, Vec<bool>), StopReason> {
    let mut column = vec![u32::MAX; dag.n_nodes()];
    for (at, &node) in columns.iter().enumerate() {
        column[node as usize] = at as u32;
    }
    let mut n_linked = 0;
    let mut answers = vec![false; asked.len()];
    let mut reached = vec![[0_u64; WORDS]; dag.n_nodes()];
    for first in (0..columns.len()).step_by(STRIP) {
        budget.check()?;
        let bit = |node: u32| {
            let at = (column[node as usize] as usize).wrapping_sub(first);
            (at < STRIP).then_some(at)
        };
        for &node in dag.order().iter().rev() {
            let mut row = [0_u64; WORDS];
            for &next in dag.successors(node) {
                for (word, other) in row.iter_mut().zip(&reached[next as usize]) {
                    *word |= other;
                }
                if let Some(at) = bit(next) {
                    row[at / 64] |= 1 << (at % 64);
                }
            }
            reached[node as usize] = row;
            if column[node as usize] != u32::MAX {
                n_linked += row
                    .iter()
                    .map(|word| u64::from(word.count_ones()))
                    .sum::<u64>();
            }
        }
        for (&(from, to), answer) in asked.iter().zip(&mut answers) {
            if let Some(at) = bit(to) {
                *answer = reached[from as usize][at / 64] >> (at % 64) & 1 == 1;
            }
        }
    }
    Ok((n_linked, answers))
}
