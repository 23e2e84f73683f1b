//! The uncertain reads, what is left of their candidates, and the obligation that an order explains them: each finds a candidate in it.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::{Found, KeyReader, Lemma, Obligation};
use crate::model::KeyId;
use crate::phases::{self, Check, Stop};
use crate::prune::Pruned;
use crate::relate::Places;
use crate::resolve::{Node, Resolved, TakenReads, Uncertain, VersionId};
use crate::sight::Left;

/// Number of reads added for the first order that does not explain all of them; each further one adds four times as many.
const READS: usize = 64;

/// The uncertain reads of a history, with those that lemmas added.
pub(super) struct Reads {
    all: Vec<Uncertain>,
    /// The numbers of reads by reader and key, computed on demand.
    numbers: Option<FxHashMap<(Node, KeyId), usize>>,
    /// The remaining candidates of the reads looked at so far.
    left: FxHashMap<usize, Vec<VersionId>>,
    stated: FxHashMap<usize, Stated>,
}

/// How a read is stated.
#[derive(Clone, Copy)]
pub(super) enum Stated {
    /// One candidate is left: its edges are known.
    Certain,
    /// One of several, by the first variable.
    Choice(u32),
}

impl Stated {
    /// The first variable, where there is a choice.
    pub(super) fn first_variable(self) -> Option<u32> {
        match self {
            Stated::Certain => None,
            Stated::Choice(first) => Some(first),
        }
    }
}

impl Reads {
    pub(super) fn new(base: &Resolved) -> Self {
        Reads {
            all: base.uncertain().to_vec(),
            numbers: None,
            left: FxHashMap::default(),
            stated: FxHashMap::default(),
        }
    }

    /// Takes over the result of narrowing. The reads that it fixed are in the graph, which is returned.
    pub(super) fn take(&mut self, narrowed: &[usize], found: Left) -> Pruned {
        for (&read, left) in narrowed.iter().zip(found.candidates) {
            if left.len() < self.all[read].candidates.len() {
                self.left.insert(read, left);
            }
        }
        let taken = found.taken.into_iter().map(|at| narrowed[at]);
        self.stated
            .extend(taken.map(|read| (read, Stated::Certain)));
        found.pruned
    }

    pub(super) fn of(&self, read: usize) -> &Uncertain {
        &self.all[read]
    }

    /// The number of a read, which may be there already.
    pub(super) fn number(&mut self, read: Uncertain) -> usize {
        let all = &mut self.all;
        let numbers = self.numbers.get_or_insert_with(|| {
            let numbered = all.iter().enumerate();
            numbered.map(|(at, it)| ((it.reader, it.key), at)).collect()
        });
        *numbers.entry((read.reader, read.key)).or_insert_with(|| {
            all.push(read);
            all.len() - 1
        })
    }

    /// The remaining candidates of a read.
    pub(super) fn left(&self, read: usize) -> &[VersionId] {
        match self.left.get(&read) {
            Some(left) => left,
            None => &self.all[read].candidates,
        }
    }

    /// Sets the remaining candidates of a read.
    pub(super) fn leave(&mut self, read: usize, left: Vec<VersionId>) {
        if left.len() < self.left(read).len() {
            self.left.insert(read, left);
        }
    }

    /// How a read is stated, if it is.
    pub(super) fn how_stated(&self, read: usize) -> Option<Stated> {
        self.stated.get(&read).copied()
    }

    /// The first variable of a read that is stated as a choice.
    pub(super) fn first_variable(&self, read: usize) -> Option<u32> {
        self.how_stated(read)?.first_variable()
    }

    /// Notes that a read is stated; where there is a choice, from this variable on.
    pub(super) fn set_stated(&mut self, read: usize, first: Option<u32>) {
        let stated = first.map_or(Stated::Certain, Stated::Choice);
        self.stated.insert(read, stated);
    }

    /// Whether a transaction's read of a key is stated.
    pub(super) fn is_stated(&self, row: KeyReader) -> bool {
        let number = self.numbers.as_ref().and_then(|it| it.get(&row));
        number.is_some_and(|it| self.stated.contains_key(it))
    }

    /// The reads that are stated, sorted.
    pub(super) fn stated(&self) -> Vec<usize> {
        let mut stated: Vec<usize> = self.stated.keys().copied().collect();
        stated.retain(|&read| self.all[read].candidates.len() != 1);
        stated.sort_unstable();
        stated
    }

    /// The history with all of these reads. Of those that were added, one with a single candidate is certain.
    pub(super) fn view(&self, base: &Resolved) -> Resolved {
        let added = self.all.iter().skip(base.uncertain().len());
        let certain = added.filter_map(|read| match read.candidates.as_slice() {
            &[version] => Some((version, read.reader)),
            _ => None,
        });
        let taken = TakenReads {
            first: certain.collect(),
            ..TakenReads::default()
        };
        base.taking(taken, self.all.clone())
    }
}

/// The reads that are narrowed before anything is decided: all of them where they are no more than the operations. Of conditions over
/// many rows most reads are explained by any order.
pub(super) fn worth_narrowing(check: &Check<'_>, base: &Resolved) -> Vec<usize> {
    let n_reads = base.uncertain().len();
    if n_reads > check.history.n_ops() {
        let mut stated = always_stated(check, base);
        stated.retain(|&read| !base.is_in_doubt(base.uncertain()[read].reader));
        return stated;
    }
    let is_sure = |read: &usize| !base.is_in_doubt(base.uncertain()[*read].reader);
    (0..n_reads).filter(is_sure).collect()
}

/// The reads that an order does not tell, and those of transactions in doubt, which are stated at once.
pub(super) fn always_stated(check: &Check<'_>, base: &Resolved) -> Vec<usize> {
    let places = Places::of(check.history, base, check.spec);
    if places.all_read_newest() && base.in_doubt().is_empty() {
        return Vec::new();
    }
    let reads = base.uncertain().iter().enumerate();
    let untold =
        reads.filter(|it| !places.reads_newest(it.1.reader) || base.is_in_doubt(it.1.reader));
    untold.map(|it| it.0).collect()
}

/// Every uncertain read is of a candidate.
pub(super) struct Explained {
    n_more: usize,
}

impl Default for Explained {
    fn default() -> Self {
        Explained { n_more: READS }
    }
}

impl Obligation for Explained {
    fn check(&mut self, found: &Found<'_>) -> Result<Vec<Lemma>, Stop> {
        let mut missed = missed(found);
        if missed.is_empty() {
            return Ok(Vec::new());
        }
        let is_stated = |read: &usize| found.reads.how_stated(*read).is_some();
        if missed.iter().any(is_stated) {
            return Err(phases::cyclic(found.decider).into());
        }
        missed.truncate(self.n_more);
        self.n_more = self.n_more.saturating_mul(4);
        Ok(missed.into_iter().map(Lemma::Read).collect())
    }
}

/// The reads that an order does not explain, in the order of their readers.
pub(super) fn missed(found: &Found<'_>) -> Vec<usize> {
    let base = found.base;
    let mut place = vec![0_u32; found.order.len()];
    for (&node, at) in found.order.iter().zip(0..) {
        place[node as usize] = at;
    }
    let places = found.pruned.problem.places();
    let lines = lines(found, |node| place[places.commit(node) as usize]);
    let reads = base.uncertain().par_iter().enumerate();
    let missed = reads.filter_map(|(at, read)| {
        if !places.reads_newest(read.reader) || !found.has_effect(read.reader) {
            return None;
        }
        let line = &lines[&read.key];
        let when = place[places.snap(read.reader) as usize];
        let n_before = line.partition_point(|it| it.0 < when);
        let version = match n_before.checked_sub(1) {
            Some(last) => line[last].1,
            None => base.versions().initial(read.key),
        };
        let is_explained = read.candidates.binary_search(&version).is_ok();
        (!is_explained).then_some((when, at))
    });
    let mut missed: Vec<(u32, usize)> = missed.collect();
    missed.sort_unstable();
    missed.into_iter().map(|it| it.1).collect()
}

/// The versions of every key that some read is uncertain of, by where they are installed.
fn lines(found: &Found<'_>, place: impl Fn(u32) -> u32) -> FxHashMap<KeyId, Vec<(u32, VersionId)>> {
    let versions = found.base.versions();
    let mut lines = FxHashMap::default();
    for read in found.base.uncertain() {
        lines.entry(read.key).or_insert_with(|| {
            let written = versions.of_key(read.key).skip(1).map(VersionId);
            let written = written.filter(|&it| found.has_effect(versions.writer(it)));
            let mut line: Vec<(u32, VersionId)> = written
                .map(|version| (place(versions.writer(version)), version))
                .collect();
            line.sort_unstable();
            line
        });
    }
    lines
}
