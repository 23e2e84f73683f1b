//! Whether reads saw writers that they must not have seen, if sessions have no order: checked for all reads at once,
//! for one block of writers after the other.
//!
//! Without session order a past is a set of transactions, and all pasts together grow with the square of the history. So an order
//! is walked once for each block of it, and only what each past has of that block is kept, as bits.

use super::writers::KeyWriters;
use kingsnake_history::model::KeyId;

/// Number of words of bits per past and block.
const WORDS: usize = 64;
/// Number of transactions per block.
const WIDTH: usize = WORDS * u64::BITS as usize;

type Row = [u64; WORDS];

/// A read of a transaction at a place in the order, from a writer at another; 0 is the initial state.
#[derive(Clone, Copy)]
pub(super) struct PlacedRead {
    pub(super) place: u32,
    pub(super) op: usize,
    pub(super) key: KeyId,
    pub(super) from: u32,
}

/// What happened directly before each transaction of an order, and what the transactions read. Places count from 1.
#[derive(Default)]
pub(super) struct Blocks {
    ends: Vec<usize>,
    sources: Vec<u32>,
    reads: Vec<PlacedRead>,
}

impl Blocks {
    /// Takes the next transaction of the order: the places of those that happened directly before it.
    pub(super) fn take(&mut self, sources: impl Iterator<Item = u32>) {
        self.sources.extend(sources);
        self.ends.push(self.sources.len());
    }

    /// Asks of a read whether a writer of its key that comes later than the one it read from happened before its transaction.
    pub(super) fn ask(&mut self, read: PlacedRead) {
        self.reads.push(read);
    }

    /// A read before whose transaction such a writer happened.
    pub(super) fn stale_read(&self, writers: &KeyWriters) -> Option<PlacedRead> {
        let later = |read: &PlacedRead| {
            writers
                .of_key(read.key)
                .partition_point(|&it| it <= read.from)
        };
        let mut next: Vec<usize> = self.reads.iter().map(later).collect();
        let mut rows: Vec<Row> = Vec::new();
        for first in (0..self.ends.len()).step_by(WIDTH) {
            self.pasts(first, &mut rows);
            let end = first + WIDTH;
            for (read, next) in self.reads.iter().zip(&mut next) {
                let writers = writers.of_key(read.key);
                while let Some(&writer) = writers.get(*next)
                    && writer < read.place
                    && writer as usize <= end
                {
                    let bit = writer as usize - 1 - first;
                    let row = &rows[read.place as usize - 1 - first];
                    if row[bit / 64] >> (bit % 64) & 1 == 1 {
                        return Some(*read);
                    }
                    *next += 1;
                }
            }
        }
        None
    }

    /// What the past of each transaction from a place on has of the block that begins there.
    fn pasts(&self, first: usize, rows: &mut Vec<Row>) {
        rows.clear();
        rows.resize(self.ends.len() - first, [0; WORDS]);
        for index in first..self.ends.len() {
            let start = if index == 0 { 0 } else { self.ends[index - 1] };
            let (before, from_here) = rows.split_at_mut(index - first);
            for &source in &self.sources[start..self.ends[index]] {
                let Some(source) = (source as usize - 1).checked_sub(first) else {
                    continue; // All of its past is in earlier blocks.
                };
                for (own, other) in from_here[0].iter_mut().zip(&before[source]) {
                    *own |= other;
                }
                if source < WIDTH {
                    from_here[0][source / 64] |= 1 << (source % 64);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const N: u32 = 2 * WIDTH as u32 + 700;

    #[test]
    fn pasts_in_blocks_are_the_sets_of_all_that_happened_before() {
        let mut blocks = Blocks::default();
        let mut pasts: Vec<BTreeSet<u32>> = Vec::new();
        for place in 1..=N {
            // Some sources are far and some near, and many transactions are not in each other's past.
            let far = (place % 3 == 0).then_some(place / 2);
            let near = (place % 4 == 0).then(|| place.saturating_sub(1 + place % 50));
            let sources: Vec<u32> = far.into_iter().chain(near).filter(|&it| it > 0).collect();
            let mut past: BTreeSet<u32> = sources.iter().copied().collect();
            for source in &sources {
                past.extend(&pasts[*source as usize - 1]);
            }
            blocks.take(sources.into_iter());
            pasts.push(past);
        }
        let mut rows = Vec::new();
        for first in (0..N as usize).step_by(WIDTH) {
            blocks.pasts(first, &mut rows);
            for (row, past) in rows.iter().zip(&pasts[first..]) {
                let is_set = |bit: &usize| row[bit / 64] >> (bit % 64) & 1 == 1;
                let bits = (0..WIDTH).filter(is_set);
                let found: BTreeSet<u32> = bits.map(|bit| (first + bit + 1) as u32).collect();
                let end = (first + WIDTH) as u32;
                let expected = past.range(first as u32 + 1..=end).copied().collect();
                assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn a_writer_of_a_later_block_makes_a_read_stale_only_if_it_happened_before() {
        for (is_before, writer) in [(true, 5), (true, N - 2), (false, N - 2)] {
            let mut blocks = Blocks::default();
            for place in 1..=N {
                let source = is_before.then_some(writer).filter(|_| place == N);
                blocks.take(source.into_iter());
            }
            blocks.ask(PlacedRead {
                place: N,
                op: 0,
                key: KeyId(0),
                from: 2,
            });
            let writers = KeyWriters::of_one_key(&[2, writer]);
            assert_eq!(blocks.stale_read(&writers).is_some(), is_before);
        }
    }
}
