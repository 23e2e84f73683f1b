//! Decides histories with deleted rows that range queries did not return, without a read for each query and row.
//!
//! The search begins without these reads. Of the orders that its answer leaves, `schedule` looks for one in which every query finds
//! every such row absent. Where it has to let a query see a row, the read of that row is added, with everybody that can have deleted
//! it as a candidate, and the search begins again. A history that is violated without some of its reads is violated.

mod schedule;
#[cfg(test)]
mod tests;

use crate::check::{Engines, settle_reads};
use crate::context::Context;
use crate::model::KeyId;
use crate::phases::{self, Check, Exit};
use crate::relate::Polygraph;
use crate::report::Decider;
use crate::resolve::{BYTES_OF_READ, Node, Resolved};
use crate::uncertain::Attention;
use crate::verdict::Point;
use schedule::schedule;

/// How many reads of a transaction the first order that is no answer adds; each further one adds twice as many.
const READS: usize = 4;
/// Up to so many reads, an order that is no answer adds all.
const FEW: usize = 100_000;

/// From the graph to an order.
pub(crate) fn settle(
    check: &Check<'_>,
    mut polygraph: Polygraph,
    mut engines: Engines<'_>,
    context: &mut Context<'_>,
) -> Result<(Decider, Vec<Point>), Exit> {
    let base = polygraph.resolved().clone();
    let mut reads: Vec<(Node, KeyId)> = Vec::new();
    let is_small = n_reads(check, &base) <= FEW;
    for round in 0_u32.. {
        context.budget.check()?;
        let decided = settle_reads(check, polygraph, Attention::All, engines.lend(), context)?;
        let n_reads = READS << round.min(16);
        let tried = schedule(check.history, &base, &decided, n_reads, context.budget)?;
        if tried.missed.is_empty() {
            return Ok((decided.decider, tried.order));
        }
        if is_small && round == 0 {
            polygraph = all(check, &base, context)?;
            continue;
        }
        let n_before = reads.len();
        reads.extend(tried.missed);
        reads.sort_unstable();
        reads.dedup();
        if reads.len() == n_before {
            return Err(phases::cyclic(decided.decider).into());
        }
        polygraph = relate(check, &base, &reads, context)?;
    }
    unreachable!("there are fewer reads than rounds")
}

/// How many reads the queries amount to.
fn n_reads(check: &Check<'_>, base: &Resolved) -> usize {
    let asked = base.unreturned().asked().iter();
    let spanned = asked.map(|it| base.unreturned().spanned(check.history, it.range).len());
    spanned.sum()
}

/// The graph with all of these reads.
pub(crate) fn all(
    check: &Check<'_>,
    base: &Resolved,
    context: &mut Context<'_>,
) -> Result<Polygraph, Exit> {
    let unreturned = base.unreturned();
    let mut reads: Vec<(Node, KeyId)> = Vec::new();
    for asked in unreturned.asked() {
        context.budget.check()?;
        let spanned = unreturned.spanned(check.history, asked.range);
        let touched = base.touched(check.history, asked.reader);
        let keys = unreturned.keys()[spanned].iter();
        let missed = keys.filter(|key| touched.binary_search(key).is_err());
        reads.extend(missed.map(|&key| (asked.reader, key)));
        let what = "the reads of rows that several can have deleted";
        let bytes = reads.len() as u64 * BYTES_OF_READ;
        context.budget.reserve(what, bytes)?;
    }
    reads.sort_unstable();
    reads.dedup();
    relate(check, base, &reads, context)
}

/// The graph with reads of these absent rows.
fn relate(
    check: &Check<'_>,
    base: &Resolved,
    reads: &[(Node, KeyId)],
    context: &mut Context<'_>,
) -> Result<Polygraph, Exit> {
    phases::relate(check, base.reading(check.history, reads), context)
}
