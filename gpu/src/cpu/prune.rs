//! The twin of `prune`: judges pairs of runs against one band of the matrix, and lists what follows.

use super::params;
#[cfg(test)]
use crate::fault::{self, Fault};
use crate::layout::{
    EDGES, FIRST_BAND, FIRST_BEFORE, IMPLIED, LAST_BAND, LISTED, MOST_VIOLATED, OPEN, Params,
    PruneParams, Run, THREADS, VIOLATED, VIOLATIONS,
};

/// What both kernels read.
struct View<'a> {
    of: PruneParams,
    band: &'a [u32],
    runs: &'a [Run],
    lists: &'a [u32],
    open: &'a [u32],
}

impl View<'_> {
    fn reaches(&self, row: u32, column: u32) -> bool {
        let place = self.of.shape.place(row, column);
        place.is_some_and(|place| self.band[place] >> (column % 32) & 1 == 1)
    }

    fn is_here(&self, column: u32) -> bool {
        self.of.shape.strip_of(column).is_some()
    }

    fn pair(&self, item: u32) -> (u32, Run, Run) {
        let pair = if self.of.mode & LISTED == 0 {
            item
        } else {
            self.open[item as usize]
        };
        let starts = &self.lists[..self.of.n_runs as usize];
        let first = starts.partition_point(|&start| start <= pair) - 1;
        let second = first + 1 + (pair - starts[first]) as usize;
        (pair, self.runs[first], self.runs[second])
    }

    fn readers(&self, run: Run) -> &[u32] {
        #[cfg(test)]
        if fault::is(Fault::PruneForgetsReaders) {
            return &[];
        }
        &self.lists[run.readers as usize..run.readers_end as usize]
    }

    fn is_impossible(&self, before: Run, after: Run) -> bool {
        let mut readers = self.readers(before).iter();
        self.reaches(after.head_begin, before.last_commit)
            || readers.any(|&reader| self.reaches(after.head_commit, reader))
    }

    fn list_side(&self, before: Run, after: Run, implied: bool, mut put: impl FnMut(u32)) {
        #[cfg(test)]
        let implied = implied || fault::is(Fault::PruneForcesWhatIsImplied);
        let is_wanted = |from, to| self.is_here(to) && self.reaches(from, to) == implied;
        if is_wanted(before.last_commit, after.head_begin) {
            put(0);
        }
        for (at, &reader) in self.readers(before).iter().enumerate() {
            if reader != after.head_begin && is_wanted(reader, after.head_commit) {
                put(at as u32 + 1);
            }
        }
    }
}

pub(super) fn judge(of: Params, bound: &mut [Vec<u32>]) {
    let of: PruneParams = params(of);
    let [band, runs, lists, open, impossible] = bound else {
        return;
    };
    let view = View {
        of,
        band,
        runs: bytemuck::cast_slice(runs),
        lists,
        open,
    };
    let mut flags = vec![0; ((of.end - of.first).div_ceil(THREADS) * THREADS / 16) as usize];
    for item in of.first..of.end {
        let (_, one, other) = view.pair(item);
        let at = (item - of.first) as usize;
        if view.is_impossible(one, other) {
            flags[at / 32 * 2] |= 1 << (at % 32);
        }
        if view.is_impossible(other, one) {
            flags[at / 32 * 2 + 1] |= 1 << (at % 32);
        }
    }
    let words = impossible.iter_mut().skip(of.first as usize / 16);
    for (word, flags) in words.zip(flags) {
        if of.mode & FIRST_BAND == 0 {
            *word |= flags;
        } else {
            *word = flags;
        }
    }
}

pub(super) fn emit(of: Params, bound: &mut [Vec<u32>]) {
    let of: PruneParams = params(of);
    let [
        band,
        runs,
        lists,
        open,
        impossible,
        counters,
        edges,
        open_out,
    ] = bound
    else {
        return;
    };
    let view = View {
        of,
        band,
        runs: bytemuck::cast_slice(runs),
        lists,
        open,
    };
    let is_implied = of.mode & IMPLIED != 0;
    for item in of.first..of.end {
        let (pair, one, other) = view.pair(item);
        let is_constraint = one.is_unread & other.is_unread == 0;
        let word = item as usize / 32 * 2;
        let flag = |word: usize| impossible[word] >> (item % 32) & 1 == 1;
        let (second_before, first_before) = match (is_implied, is_constraint) {
            (true, _) => (true, true),
            (false, true) => (flag(word), flag(word + 1)),
            (false, false) => (false, false),
        };
        let mut put = |code: u32| {
            let at = 2 * counters[EDGES] as usize;
            if let Some(edge) = edges.get_mut(at..at + 2) {
                edge.copy_from_slice(&[pair, code]);
            }
            counters[EDGES] += 1;
        };
        if second_before {
            view.list_side(other, one, is_implied, &mut put);
        }
        if first_before {
            view.list_side(one, other, is_implied, |edge| put(FIRST_BEFORE | edge));
        }
        if is_implied || of.mode & LAST_BAND == 0 {
            continue;
        }
        if is_constraint && !second_before && !first_before {
            if let Some(place) = open_out.get_mut(counters[OPEN] as usize) {
                *place = pair;
            }
            counters[OPEN] += 1;
        }
        if second_before && first_before {
            let at = counters[VIOLATIONS] as usize;
            if at < MOST_VIOLATED {
                counters[VIOLATED + at] = pair;
            }
            counters[VIOLATIONS] += 1;
        }
    }
}
