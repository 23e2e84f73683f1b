//! How the bit matrix is cut: into strips of columns, and the strips into bands, each a buffer within the device's limit.

use kingsnake_graph::prune::DeviceError;

use crate::layout::{Shape, THREADS};
use crate::recording::{BufferId, Executor};

/// The narrowest strip is a memory sector of 32 bytes.
const LEAST_SHIFT: u32 = 3;
/// The widest fills the workgroup memory of `warshall` and `estimate`.
const MOST_SHIFT: u32 = 5;
/// Narrower strips are taken while there are fewer than this, so that every multiprocessor gets some.
const STRIPS_WANTED: u64 = 128;

/// How a matrix is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) n_rows: u32,
    pub(crate) strip_shift: u32,
    pub(crate) n_strips: u32,
    pub(crate) strips_a_band: u32,
}

impl Cut {
    /// Cuts the matrix of so many nodes for buffers of at most so many bytes, or says that it cannot be done.
    pub(crate) fn new(n_nodes: usize, most_bytes: u64) -> Result<Self, String> {
        let n_rows = u32::try_from(n_nodes)
            .ok()
            .filter(|&n| n <= u32::MAX / 64)
            .ok_or_else(|| format!("{n_nodes} nodes are too many for a bit matrix"))?;
        let words = u64::from(n_rows.div_ceil(32)).max(1);
        let strips = |shift: u32| words.div_ceil(1 << shift);
        let mut strip_shift = LEAST_SHIFT;
        while strip_shift < MOST_SHIFT && strips(strip_shift + 1) >= STRIPS_WANTED {
            strip_shift += 1;
        }
        let strip_bytes = |shift: u32| (u64::from(n_rows.max(1)) << shift) * 4;
        while strip_shift > LEAST_SHIFT && strip_bytes(strip_shift) > most_bytes {
            strip_shift -= 1;
        }
        let fitting = most_bytes / strip_bytes(strip_shift);
        if fitting == 0 {
            return Err(format!(
                "one strip of the matrix takes {} bytes, and the device binds {most_bytes} at most",
                strip_bytes(strip_shift)
            ));
        }
        let n_strips = strips(strip_shift) as u32;
        Ok(Cut {
            n_rows,
            strip_shift,
            n_strips,
            strips_a_band: fitting.min(u64::from(n_strips)) as u32,
        })
    }

    /// The words of a row in one strip.
    #[cfg(test)]
    pub(crate) fn strip_words(&self) -> u32 {
        1 << self.strip_shift
    }

    /// How many rows a workgroup has in hand at once.
    pub(crate) fn lanes(&self) -> u32 {
        THREADS >> self.strip_shift
    }

    /// The number of bands.
    pub(crate) fn n_bands(&self) -> u32 {
        self.n_strips.div_ceil(self.strips_a_band)
    }

    /// The size of the whole matrix.
    pub(crate) fn bytes(&self) -> u64 {
        let strip = u64::from(self.n_rows.max(1)) << self.strip_shift;
        4 * u64::from(self.n_strips) * strip
    }

    /// Makes the buffers.
    pub(crate) fn allocate<E: Executor>(&self, executor: &mut E) -> Result<Vec<Band>, DeviceError> {
        let strips = (0..self.n_strips).step_by(self.strips_a_band as usize);
        strips
            .map(|first_strip| {
                let n_strips = self.strips_a_band.min(self.n_strips - first_strip);
                let rows = u64::from(n_strips) * u64::from(self.n_rows.max(1));
                Ok(Band {
                    buffer: executor.create("the bit matrix", rows << self.strip_shift)?,
                    shape: Shape {
                        n_rows: self.n_rows,
                        strip_shift: self.strip_shift,
                        first_strip,
                        n_strips,
                    },
                })
            })
            .collect()
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
}
