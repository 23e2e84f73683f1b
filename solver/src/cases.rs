//! The cases of a no: reads that can have been of several versions are split on, until what is taken of them cannot all be.
//!
//! A search that learned which reads cannot all be of these versions (its conflicts) knows where each case ends, so nothing is searched
//! here. A read that no end of a case rests on is no case.

use rustc_hash::FxHashMap;

use crate::budget::{Budget, StopReason};
use crate::model::History;
use crate::resolve::VersionId;
use crate::weak::counting::Counting;

/// That a read was of a version, by the number of the choice.
pub(crate) type Taken = (usize, VersionId);

/// What is known after a search that found nothing.
pub(crate) trait Cases {
    /// Why not.
    type Why;
    /// Why the cases are not found.
    type Failed: From<StopReason>;

    fn history(&self) -> &History;
    fn budget(&self) -> &Budget;
    fn n_choices(&self) -> usize;
    /// What a read can have been of, sorted.
    fn candidates(&self, choice: usize) -> &[VersionId];
    fn aggregates(&self) -> &[Counting];
    /// The reads that cannot all be, sorted.
    fn conflicts(&self) -> impl Iterator<Item = &[Taken]>;
    /// Why the reads of a conflict cannot all be where these are taken, and the choices that this rests on.
    fn end(
        &mut self,
        conflict: usize,
        taken: &[Taken],
    ) -> Result<(Self::Why, Vec<usize>), Self::Failed>;
    /// That an aggregate cannot have its result.
    fn impossible(&self, aggregate: usize) -> Self::Why;
    /// That no case of a choice can be.
    fn choice(&self, choice: usize, cases: Vec<(VersionId, Self::Why)>) -> Self::Why;
}

/// Why nothing that the reads can have been of explains the history.
pub(crate) fn cases<C: Cases>(of: &mut C) -> Result<C::Why, C::Failed> {
    Ok(within(of, &mut Vec::new())?.0)
}

/// Why not where these reads are taken, and the choices that the reason rests on.
fn within<C: Cases>(of: &mut C, taken: &mut Vec<Taken>) -> Result<(C::Why, Vec<usize>), C::Failed> {
    of.budget().check()?;
    let mut conflicts = of.conflicts().enumerate();
    let met = conflicts.find(|(_, blamed)| blamed.iter().all(|it| taken.contains(it)));
    let met = met.map(|it| it.0);
    drop(conflicts);
    if let Some(met) = met {
        return of.end(met, taken);
    }
    if let Some((at, rests_on)) = broken_aggregate(of, taken) {
        return Ok((of.impossible(at), rests_on));
    }
    let split = next_split(of, taken);
    let (mut cases, mut rests_on) = (Vec::new(), Vec::new());
    for version in of.candidates(split).to_vec() {
        taken.push((split, version));
        let (why, used) = within(of, taken)?;
        taken.pop();
        if !used.contains(&split) {
            return Ok((why, used));
        }
        cases.push((version, why));
        rests_on.extend(used.into_iter().filter(|&it| it != split));
    }
    rests_on.sort_unstable();
    rests_on.dedup();
    Ok((of.choice(split, cases), rests_on))
}

/// An aggregate that cannot have its result where these reads are taken, and the choices that this rests on.
fn broken_aggregate<C: Cases>(of: &C, taken: &[Taken]) -> Option<(usize, Vec<usize>)> {
    let version = |choice: usize| taken.iter().find(|it| it.0 == choice).map(|it| it.1);
    let candidates = |choice: usize| of.candidates(choice);
    let mut aggregates = of.aggregates().iter();
    let at = aggregates.position(|counting| {
        let mut rows = counting.rows.iter();
        rows.any(|row| version(row.choice).is_some())
            && !counting.is_possible(of.history(), candidates, version)
    })?;
    let rows = of.aggregates()[at].rows.iter().map(|row| row.choice);
    Some((at, rows.filter(|&it| version(it).is_some()).collect()))
}

/// The choice to split on: that with the fewest candidates that no conflict rules out at once.
fn next_split<C: Cases>(of: &C, taken: &[Taken]) -> usize {
    let is_taken = |choice: usize| taken.iter().any(|it| it.0 == choice);
    let mut left: FxHashMap<usize, Vec<VersionId>> = FxHashMap::default();
    for blamed in of.conflicts() {
        let mut open = blamed.iter().filter(|it| !taken.contains(it));
        if open.clone().any(|it| is_taken(it.0)) {
            continue;
        }
        let (first, second) = (open.next(), open.next());
        for &(choice, version) in first.into_iter().chain(second) {
            let ruled_out = left.entry(choice).or_default();
            if second.is_none() && !ruled_out.contains(&version) {
                ruled_out.push(version);
            }
        }
    }
    let n_left =
        |choice: usize, ruled_out: &Vec<VersionId>| of.candidates(choice).len() - ruled_out.len();
    let all = left
        .iter()
        .map(|(&choice, ruled_out)| (n_left(choice, ruled_out), choice));
    let counted = of.aggregates().iter().flat_map(|it| &it.rows);
    let mut counted = counted.map(|row| row.choice);
    let mut any = || {
        let counted = counted.find(|&it| !is_taken(it));
        counted.or_else(|| (0..of.n_choices()).find(|&it| !is_taken(it)))
    };
    all.min().map(|it| it.1).or_else(&mut any).unwrap_or(0)
}
