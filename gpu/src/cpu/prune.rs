//! The twin of `prune`: judges pairs of runs against one band of the matrix, and lists the results.

use super::params;
use crate::layout::{
    EDGES, FIRST_BEFORE, IMPLIED, LAST_BAND, LISTED, MOST_VIOLATED, OPEN, Params, PruneParams, Run,
    Strip, UPPER, VIOLATED, VIOLATIONS,
};

/// The data that all kernels read.
struct PruneView<'a> {
    of: PruneParams,
    band: &'a [u32],
    strips: &'a [Strip],
    runs: &'a [Run],
    lists: &'a [u32],
}

impl<'a> PruneView<'a> {
    fn new(of: PruneParams, [band, strips, runs, lists]: [&'a [u32]; 4]) -> Self {
        PruneView {
            of,
            band,
            strips: bytemuck::cast_slice(strips),
            runs: bytemuck::cast_slice(runs),
            lists,
        }
    }

    fn reaches(&self, row: u32, column: u32) -> bool {
        let place = self.of.shape.place(self.strips, row, column);
        place.is_some_and(|place| self.band[place] >> (column % 32) & 1 == 1)
    }

    fn is_here(&self, column: u32) -> bool {
        self.of.shape.strip_of(column).is_some()
    }

    fn pair(&self, item: u32, open: &[u32]) -> (u32, Run, Run) {
        let pair = if self.of.mode & LISTED == 0 {
            item
        } else {
            open[half(open, self.of.mode & UPPER != 0) + item as usize]
        };
        let starts = &self.lists[..self.of.n_runs as usize];
        let first = starts.partition_point(|&start| start <= pair) - 1;
        let second = first + 1 + (pair - starts[first]) as usize;
        (pair, self.runs[first], self.runs[second])
    }

    fn readers(&self, run: Run) -> &[u32] {
        &self.lists[run.readers as usize..run.readers_end as usize]
    }

    fn is_impossible(&self, before: Run, after: Run) -> bool {
        let mut readers = self.readers(before).iter();
        self.reaches(after.head_begin, before.last_commit)
            || readers.any(|&reader| self.reaches(after.head_commit, reader))
    }

    fn list_side(&self, before: Run, after: Run, implied: bool, mut put: impl FnMut(u32)) {
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

/// Where a half of the listed pairs starts.
fn half(open: &[u32], is_upper: bool) -> usize {
    if is_upper { open.len() / 2 } else { 0 }
}

/// Notes that a pair cannot be ordered one way: 0 is first to second, 1 second to first.
fn note(impossible: &mut [u32], pair: u32, way: usize) {
    impossible[pair as usize / 32 * 2 + way] |= 1 << (pair % 32);
}

pub(super) fn judge(of: Params, bound: &mut [Vec<u32>]) {
    let of: PruneParams = params(of);
    let [band, strips, runs, lists, impossible, open] = bound else {
        return;
    };
    let view = PruneView::new(of, [band, strips, runs, lists]);
    for item in of.first..of.end {
        let (pair, one, other) = view.pair(item, open);
        if view.is_impossible(one, other) {
            note(impossible, pair, 0);
        }
        if view.is_impossible(other, one) {
            note(impossible, pair, 1);
        }
    }
}

pub(super) fn judge_rows(of: Params, groups: [u32; 2], bound: &mut [Vec<u32>]) {
    let of: PruneParams = params(of);
    let [band, strips, runs, lists, impossible] = bound else {
        return;
    };
    let view = PruneView::new(of, [band, strips, runs, lists]);
    for own in of.first..of.first + groups[0] {
        let run = view.runs[own as usize];
        for other in (run.first..run.end).filter(|&other| other != own) {
            if !view.is_impossible(view.runs[other as usize], run) {
                continue;
            }
            let (first, second) = (own.min(other), own.max(other));
            let pair = view.lists[first as usize] + second - first - 1;
            note(impossible, pair, usize::from(other == second));
        }
    }
}

pub(super) fn emit(of: Params, bound: &mut [Vec<u32>]) {
    let of: PruneParams = params(of);
    let [band, strips, runs, lists, impossible, open, counters, edges] = bound else {
        return;
    };
    let view = PruneView::new(of, [band, strips, runs, lists]);
    let is_implied = of.mode & IMPLIED != 0;
    for item in of.first..of.end {
        let (pair, one, other) = view.pair(item, open);
        let is_constraint = one.is_unread & other.is_unread == 0;
        let word = pair as usize / 32 * 2;
        let flag = |word: usize| impossible[word] >> (pair % 32) & 1 == 1;
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
            let start = half(open, of.mode & UPPER == 0);
            let at = counters[OPEN] as usize;
            if at < open.len() / 2 {
                open[start + at] = pair;
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
