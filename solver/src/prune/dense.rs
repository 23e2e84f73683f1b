//! `dense`: a bit for every pair of nodes, in reverse topological order: a node reaches what its successors are and reach.
//!
//! O(n·m/64) words OR-ed, against the n³ of matrix products. Rows and columns are places in the topological order, so a
//! row has bits only to the right of its own place. The matrix is cut into strips of columns, each contiguous: a strip's
//! rows stay in the cache while it is swept, and strips are independent, so threads share nothing.

use rayon::prelude::*;

use super::dag::Dag;

/// Words of one row in one strip: 2,048 columns.
const STRIP_WORDS: usize = 32;
const STRIP_COLUMNS: usize = STRIP_WORDS * 64;

/// The closure of a graph.
#[derive(Debug)]
pub struct Dense {
    place: Vec<u32>,
    strips: Vec<Vec<u64>>,
}

impl Dense {
    /// The bytes that the closure of `n_nodes` takes.
    pub fn bytes(n_nodes: usize) -> u64 {
        // Strip s has the rows of places up to its last column.
        let strips = n_nodes.div_ceil(STRIP_COLUMNS) as u64;
        let row_bytes = (STRIP_WORDS * 8) as u64;
        strips * (strips + 1) / 2 * STRIP_COLUMNS as u64 * row_bytes
    }

    /// Computes the closure.
    pub fn new(dag: &Dag) -> Self {
        let place = dag.places();
        let strips = (0..dag.n_nodes().div_ceil(STRIP_COLUMNS))
            .into_par_iter()
            .map(|strip| sweep(dag, &place, strip))
            .collect();
        Dense { place, strips }
    }

    /// How many words of 64 bits [`Dense::new`] ORs: an edge brings its target's row to every strip that reaches it.
    pub fn words_ored(dag: &Dag) -> u64 {
        let n_strips = dag.n_nodes().div_ceil(STRIP_COLUMNS);
        let place = dag.places();
        let strips = |&to: &u32| n_strips - place[to as usize] as usize / STRIP_COLUMNS;
        let words = dag.targets().iter().map(|to| strips(to) * STRIP_WORDS);
        words.sum::<usize>() as u64
    }

    /// Whether there is a path of at least one edge.
    #[inline]
    pub fn reaches(&self, from: u32, to: u32) -> bool {
        let row = self.place[from as usize] as usize;
        let column = self.place[to as usize] as usize;
        if row >= column {
            return false;
        }
        let (strip, bit) = (column / STRIP_COLUMNS, column % STRIP_COLUMNS);
        self.strips[strip][row * STRIP_WORDS + bit / 64] >> (bit % 64) & 1 == 1
    }

    /// How many nodes each node reaches.
    pub fn count_descendants(dag: &Dag) -> Vec<u32> {
        let place = dag.places();
        let n_strips = dag.n_nodes().div_ceil(STRIP_COLUMNS);
        let mut counts = vec![0_u32; dag.n_nodes()];
        // One strip at a time is alive, so counting needs no second matrix.
        for strip in 0..n_strips {
            let words = sweep(dag, &place, strip);
            for (row, words) in words.chunks_exact(STRIP_WORDS).enumerate() {
                let bits: u32 = words.iter().map(|word| word.count_ones()).sum();
                counts[dag.order()[row] as usize] += bits;
            }
        }
        counts
    }

    /// How many nodes each node reaches, from the matrix that is there already.
    pub fn descendants(&self) -> Vec<u32> {
        let mut by_place = vec![0_u32; self.place.len()];
        for strip in &self.strips {
            for (count, words) in by_place.iter_mut().zip(strip.chunks_exact(STRIP_WORDS)) {
                *count += words.iter().map(|word| word.count_ones()).sum::<u32>();
            }
        }
        self.place.iter().map(|&at| by_place[at as usize]).collect()
    }
}

/// Computes one strip: the rows of all places before its last column, last row first.
fn sweep(dag: &Dag, place: &[u32], strip: usize) -> Vec<u64> {
    let first_column = strip * STRIP_COLUMNS;
    let n_rows = dag.n_nodes().min(first_column + STRIP_COLUMNS);
    let mut words = vec![0_u64; n_rows * STRIP_WORDS];
    for row in (0..n_rows).rev() {
        let (rows, below) = words.split_at_mut((row + 1) * STRIP_WORDS);
        let target = &mut rows[row * STRIP_WORDS..];
        for &to in dag.successors(dag.order()[row]) {
            let column = place[to as usize] as usize;
            if column >= n_rows {
                continue;
            }
            let source = &below[(column - row - 1) * STRIP_WORDS..][..STRIP_WORDS];
            for (word, &other) in target.iter_mut().zip(source) {
                *word |= other;
            }
            if let Some(bit) = column.checked_sub(first_column) {
                target[bit / 64] |= 1 << (bit % 64);
            }
        }
    }
    words
}

#[cfg(test)]
impl Dense {
    /// Forgets the last word that holds columns, as a loop that ends one word early would.
    pub(super) fn lose_word(&mut self) {
        let last = self.place.len().saturating_sub(1) % STRIP_COLUMNS / 64;
        if let Some(strip) = self.strips.last_mut() {
            let words = strip.iter_mut().skip(last).step_by(STRIP_WORDS);
            words.for_each(|word| *word = 0);
        }
    }

    /// Moves every bit one column to the right, as counting columns from 1 would.
    pub(super) fn shift_columns(&mut self) {
        self.strips
            .iter_mut()
            .flatten()
            .for_each(|word| *word <<= 1);
    }
}
