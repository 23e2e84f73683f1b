//! The twin of `warshall`: blocks of nodes, each let through all rows.

use super::{params, successors};
#[cfg(test)]
use crate::fault::{self, Fault};
use crate::layout::{BLOCK_WORDS, Params, Shape, THREADS, WarshallParams};

const WORDS: usize = BLOCK_WORDS as usize;

pub(super) fn seed(of: Params, bound: &mut [Vec<u32>]) {
    let of: WarshallParams = params(of);
    let [band, starts, targets, extras, steps] = bound else {
        return;
    };
    for at in of.first as usize..of.end as usize {
        let (node, head) = (steps[2 * at], steps[2 * at + 1]);
        successors(node, head, starts, targets, extras, |target| {
            if let Some(place) = of.shape.place(node, target) {
                band[place] |= 1 << (target % 32);
            }
        });
    }
}

pub(super) fn column(of: Params, bound: &mut [Vec<u32>]) {
    let of: WarshallParams = params(of);
    let [band, through] = bound else {
        return;
    };
    for row in 0..of.shape.n_rows {
        if let Some(place) = of.shape.place(row, of.first) {
            let copy = &mut through[row as usize * WORDS..][..WORDS];
            copy.copy_from_slice(&band[place..place + WORDS]);
        }
    }
}

pub(super) fn pivot(of: Params, bound: &mut [Vec<u32>]) {
    let of: WarshallParams = params(of);
    let [through] = bound else {
        return;
    };
    for k in of.first..of.end {
        #[cfg(test)]
        if k + 1 == of.end && fault::is(Fault::WarshallSkipsAPivot) {
            continue;
        }
        let bit = (k - of.first) as usize;
        for row in of.first..of.end {
            let row = row as usize * WORDS;
            if through[row + bit / 32] >> (bit % 32) & 1 == 1 {
                for word in 0..WORDS {
                    through[row + word] |= through[k as usize * WORDS + word];
                }
            }
        }
    }
}

/// The block's rows in one strip.
fn tile(of: WarshallParams, strip: u32, band: &[u32]) -> Vec<u32> {
    let rows = of.first..of.end;
    let words = of.shape.strip_words();
    rows.flat_map(|row| &band[of.shape.row(strip, row)..][..words])
        .copied()
        .collect()
}

/// A row absorbs the block's rows that it reaches.
fn absorb(shape: Shape, row: u32, strip: u32, tile: &[u32], through: &[u32], band: &mut [u32]) {
    let words = shape.strip_words();
    for (at, &reached) in through[row as usize * WORDS..][..WORDS].iter().enumerate() {
        let mut reached = reached;
        while reached != 0 {
            let k = at * 32 + reached.trailing_zeros() as usize;
            let from = &tile[k * words..][..words];
            let to = &mut band[shape.row(strip, row)..][..words];
            to.iter_mut().zip(from).for_each(|(to, from)| *to |= from);
            reached &= reached - 1;
        }
    }
}

pub(super) fn panel(of: Params, groups: [u32; 2], bound: &mut [Vec<u32>]) {
    let of: WarshallParams = params(of);
    let [band, through] = bound else {
        return;
    };
    #[cfg(test)]
    if fault::is(Fault::WarshallLeavesThePanel) {
        return;
    }
    for strip in 0..groups[1] {
        let tile = tile(of, strip, band);
        for row in of.first..of.end {
            absorb(of.shape, row, strip, &tile, through, band);
        }
    }
}

pub(super) fn rest(of: Params, groups: [u32; 2], bound: &mut [Vec<u32>]) {
    let of: WarshallParams = params(of);
    let [band, through] = bound else {
        return;
    };
    let end = of.shape.n_rows.min(of.first_row + groups[0] * THREADS);
    for strip in 0..groups[1] {
        let tile = tile(of, strip, band);
        for row in of.first_row..end {
            if !(of.first..of.end).contains(&row) {
                absorb(of.shape, row, strip, &tile, through, band);
            }
        }
    }
}
