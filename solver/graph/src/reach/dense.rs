//! `dense`: a bit for every pair of nodes, in reverse topological order: a node reaches what its successors are and reach.
//!
//! O(n·m/64) words OR-ed, against the n³ of matrix products. Rows and columns are places in the topological order, so a
//! row has bits only to the right of its own place. The matrix is cut into strips of columns, each contiguous: a strip's
//! rows stay in the cache while it is swept, and strips are independent, so threads share nothing. A later round writes
//! over the matrix of the last: touching fresh memory costs several times as much as filling it.

use rayon::prelude::*;

use super::dag::Dag;

/// Words of one row in one strip: 2,048 columns.
const STRIP_WORDS: usize = 32;
const STRIP_COLUMNS: usize = STRIP_WORDS * 64;
/// Words of a row that are gathered at once: as many as stay in registers, so that each source is read and nothing else.
const GATHERED: usize = 8;

/// The closure of a graph.
#[derive(Debug)]
pub struct Dense {
    place: Vec<u32>,
    strips: Vec<Strip>,
}

/// The columns of one strip.
#[derive(Debug, Default)]
struct Strip {
    /// Row by row.
    words: Vec<u64>,
    /// By row, how many bits it has here.
    counts: Vec<u32>,
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
        let n_strips = dag.n_nodes().div_ceil(STRIP_COLUMNS);
        let mut dense = Dense {
            place: Vec::new(),
            strips: (0..n_strips).map(|_| Strip::default()).collect(),
        };
        dense.update(dag);
        dense
    }

    /// Takes another graph on as many nodes, into the same memory.
    pub fn update(&mut self, dag: &Dag) {
        let placed = Placed::new(dag);
        if let [strip] = self.strips.as_mut_slice() {
            // A single strip does not justify starting threads.
            placed.sweep(0, strip);
        } else {
            // The last strips are the longest, and are begun first.
            let strips = self.strips.par_iter_mut().enumerate().rev();
            strips
                .with_max_len(1)
                .for_each(|(at, strip)| placed.sweep(at, strip));
        }
        self.place = placed.place;
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
        self.strips[strip].words[row * STRIP_WORDS + bit / 64] >> (bit % 64) & 1 == 1
    }

    /// How many nodes each node reaches.
    pub fn count_descendants(dag: &Dag) -> Vec<u32> {
        let placed = Placed::new(dag);
        let n_strips = dag.n_nodes().div_ceil(STRIP_COLUMNS);
        let mut counts = vec![0_u32; dag.n_nodes()];
        // One strip at a time is alive, so counting needs no second matrix; the longest comes first and makes room for all.
        let mut strip = Strip::default();
        for at in (0..n_strips).rev() {
            placed.sweep(at, &mut strip);
            for (row, bits) in strip.counts.iter().enumerate() {
                counts[dag.order()[row] as usize] += bits;
            }
        }
        counts
    }

    /// How many nodes each node reaches, from the matrix that is there already.
    pub fn descendants(&self) -> Vec<u32> {
        let mut by_place = vec![0_u32; self.place.len()];
        for strip in &self.strips {
            for (count, bits) in by_place.iter_mut().zip(&strip.counts) {
                *count += bits;
            }
        }
        self.place.iter().map(|&at| by_place[at as usize]).collect()
    }
}

/// A graph with places in its topological order for nodes.
struct Placed {
    place: Vec<u32>,
    starts: Vec<u32>,
    /// By source, and ascending for each.
    targets: Vec<u32>,
}

impl Placed {
    fn new(dag: &Dag) -> Self {
        let place = dag.places();
        let mut starts = Vec::with_capacity(dag.n_nodes() + 1);
        let mut targets: Vec<u32> = Vec::with_capacity(dag.n_edges());
        starts.push(0);
        for &node in dag.order() {
            let first = targets.len();
            let successors = dag.successors(node).iter();
            targets.extend(successors.map(|&to| place[to as usize]));
            targets[first..].sort_unstable();
            starts.push(targets.len() as u32);
        }
        Placed {
            place,
            starts,
            targets,
        }
    }

    fn targets(&self, row: usize) -> &[u32] {
        &self.targets[self.starts[row] as usize..self.starts[row + 1] as usize]
    }

    /// Computes one strip: the rows of all places before its last column, last row first. Every word is written.
    fn sweep(&self, at: usize, strip: &mut Strip) {
        let Strip { words, counts } = strip;
        let first_column = at * STRIP_COLUMNS;
        let n_rows = self.place.len().min(first_column + STRIP_COLUMNS);
        // Fresh memory comes with zeros from the system; filling it here would touch it twice.
        if words.len() < n_rows * STRIP_WORDS {
            *words = vec![0; n_rows * STRIP_WORDS];
        }
        words.truncate(n_rows * STRIP_WORDS);
        counts.clear();
        counts.resize(n_rows, 0);
        for row in (0..n_rows).rev() {
            let (rows, below) = words.split_at_mut((row + 1) * STRIP_WORDS);
            let target = &mut rows[row * STRIP_WORDS..];
            let columns = self.targets(row);
            let columns = &columns[..columns.partition_point(|&it| (it as usize) < n_rows)];
            for (part, gathered) in target.chunks_exact_mut(GATHERED).enumerate() {
                let mut bits = [0; GATHERED];
                for &column in columns {
                    let source = (column as usize - row - 1) * STRIP_WORDS + part * GATHERED;
                    let source = &below[source..source + GATHERED];
                    for (word, &other) in bits.iter_mut().zip(source) {
                        *word |= other;
                    }
                }
                gathered.copy_from_slice(&bits);
            }
            for &column in columns.iter().rev() {
                let Some(bit) = (column as usize).checked_sub(first_column) else {
                    break;
                };
                target[bit / 64] |= 1 << (bit % 64);
            }
            counts[row] = target.iter().map(|word| word.count_ones()).sum();
        }
    }
}

#[cfg(test)]
impl Dense {
    /// Forgets the last word that holds columns, as a loop that ends one word early would.
    pub(super) fn lose_word(&mut self) {
        let last = self.place.len().saturating_sub(1) % STRIP_COLUMNS / 64;
        if let Some(strip) = self.strips.last_mut() {
            let words = strip.words.iter_mut().skip(last).step_by(STRIP_WORDS);
            words.for_each(|word| *word = 0);
        }
    }

    /// Moves every bit one column to the right, as counting columns from 1 would.
    pub(super) fn shift_columns(&mut self) {
        self.strips
            .iter_mut()
            .flat_map(|strip| &mut strip.words)
            .for_each(|word| *word <<= 1);
    }
}
