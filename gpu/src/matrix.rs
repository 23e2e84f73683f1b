//! How the bit matrix is cut: into strips of columns, each with the rows that can have a bit in it, and the strips into
//! bands, each a buffer within the device's limit.

use std::ops::Range;

use kingsnake_graph::prune::DeviceError;

use crate::layout::{Shape, THREADS};
use crate::recording::{BufferId, Executor};

/// The narrowest strip is a memory sector of 32 bytes.
const LEAST_SHIFT: u32 = 3;
/// The widest fills the workgroup memory of `estimate`.
const MOST_SHIFT: u32 = 5;
/// Narrower strips are taken while there are fewer than this, so that every multiprocessor gets some.
const STRIPS_WANTED: u64 = 128;
/// This part of all rows is kept below the diagonal, for edges that go against the order of the places.
const SLACK: u32 = 8;

/// How a matrix is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) n_rows: u32,
    pub(crate) strip_shift: u32,
    /// For each strip how many rows it has.
    pub(crate) limits: Vec<u32>,
    /// The strips of each band.
    bands: Vec<Range<u32>>,
}

impl Cut {
    /// Cuts the matrix of this many nodes for buffers of at most this many bytes, or says why not.
    pub(crate) fn new(n_nodes: usize, most_bytes: u64) -> Result<Self, String> {
        let n_rows = u32::try_from(n_nodes)
            .ok()
            .filter(|&n| n <= u32::MAX / 64)
            .ok_or_else(|| format!("{n_nodes} nodes are too many for a bit matrix"))?;
        let words = u64::from(n_rows.div_ceil(32)).max(1);
        let strips = |shift: u32| words.div_ceil(1 << shift);
        let strip_bytes = |shift: u32| (u64::from(n_rows.max(1)) << shift) * 4;
        let mut strip_shift = LEAST_SHIFT;
        while strip_shift < MOST_SHIFT && strips(strip_shift + 1) >= STRIPS_WANTED {
            strip_shift += 1;
        }
        while strip_shift > LEAST_SHIFT && strip_bytes(strip_shift) > most_bytes {
            strip_shift -= 1;
        }
        if strip_bytes(strip_shift) > most_bytes {
            return Err(format!(
                "one strip of the matrix takes {} bytes, and the device binds {most_bytes} at most",
                strip_bytes(strip_shift)
            ));
        }
        let limits = (1..=strips(strip_shift)).map(|strip| {
            let end = (strip << (5 + strip_shift)) + u64::from(n_rows / SLACK);
            end.min(u64::from(n_rows)).max(1) as u32
        });
        let mut cut = Cut {
            n_rows,
            strip_shift,
            limits: limits.collect(),
            bands: Vec::new(),
        };
        cut.fill_bands(most_bytes);
        Ok(cut)
    }

    fn fill_bands(&mut self, most_bytes: u64) {
        let mut first = 0;
        let mut bytes = 0;
        for strip in 0..self.n_strips() {
            let more = self.strip_bytes(strip);
            if bytes + more > most_bytes {
                self.bands.push(first..strip);
                first = strip;
                bytes = 0;
            }
            bytes += more;
        }
        self.bands.push(first..self.n_strips());
    }

    fn strip_bytes(&self, strip: u32) -> u64 {
        4 * (u64::from(self.limits[strip as usize]) << self.strip_shift)
    }

    /// The number of strips.
    pub(crate) fn n_strips(&self) -> u32 {
        self.limits.len() as u32
    }

    /// The words of a row in one strip.
    pub(crate) fn strip_words(&self) -> u32 {
        1 << self.strip_shift
    }

    /// Number of rows that a workgroup handles at once: a thread has four words of a row.
    pub(crate) fn lanes(&self) -> u32 {
        THREADS >> (self.strip_shift - 2)
    }

    /// The strip of a column.
    pub(crate) fn strip_of(&self, column: u32) -> usize {
        (column >> (5 + self.strip_shift)) as usize
    }

    /// The number of bands.
    pub(crate) fn n_bands(&self) -> u32 {
        self.bands.len() as u32
    }

    /// The size of the whole matrix.
    pub(crate) fn bytes(&self) -> u64 {
        (0..self.n_strips()).map(|it| self.strip_bytes(it)).sum()
    }

    /// For each strip where it starts in its band, in quads.
    pub(crate) fn bases(&self) -> Vec<u32> {
        let mut bases = Vec::with_capacity(self.limits.len());
        for band in &self.bands {
            let mut base = 0;
            for strip in band.clone() {
                bases.push(base);
                base += (self.strip_bytes(strip) / 16) as u32;
            }
        }
        bases
    }

    /// The size of a band.
    #[cfg(test)]
    pub(crate) fn band_words(&self, band: &Band) -> u64 {
        let strips = band.strips().map(|strip| self.strip_bytes(strip as u32));
        strips.sum::<u64>() / 4
    }

    /// Makes the buffers.
    pub(crate) fn allocate<E: Executor>(&self, executor: &mut E) -> Result<Vec<Band>, DeviceError> {
        let bands = self.bands.iter().map(|strips| {
            let bytes: u64 = strips.clone().map(|strip| self.strip_bytes(strip)).sum();
            Ok(Band {
                buffer: executor.create("the bit matrix", bytes / 4)?,
                shape: Shape {
                    n_rows: self.n_rows,
                    strip_shift: self.strip_shift,
                    first_strip: strips.start,
                    n_strips: strips.end - strips.start,
                },
            })
        });
        bands.collect()
    }
}

/// A buffer with some strips.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Band {
    pub(crate) buffer: BufferId,
    pub(crate) shape: Shape,
}

impl Band {
    /// The words of a row in the band.
    pub(crate) fn row_words(&self) -> u64 {
        u64::from(self.shape.n_strips) << self.shape.strip_shift
    }

    /// The band's strips.
    pub(crate) fn strips(&self) -> Range<usize> {
        let first = self.shape.first_strip as usize;
        first..first + self.shape.n_strips as usize
    }
}
