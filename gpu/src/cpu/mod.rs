//! The twins: every kernel in plain Rust, under the same name, run from the same recordings.

mod anneal;
mod closure;
mod estimate;
mod probe;
mod prune;

use kingsnake_context::budget::Budget;
use kingsnake_graph::prune::DeviceError;

use crate::kernel::Kernel;
use crate::layout::{Params, Shape, Strip};
use crate::recording::{BufferId, Command, Dispatch, Executor, Limits, Recording};

/// Runs recordings on this CPU.
#[derive(Debug)]
pub(crate) struct Twins {
    buffers: Vec<Vec<u32>>,
    limits: Limits,
}

impl Twins {
    /// An executor with the limits of a large device.
    pub(crate) fn new() -> Self {
        Twins {
            buffers: Vec::new(),
            limits: Limits {
                buffer: 1 << 31,
                groups: 65_535,
                work: 1 << 26,
            },
        }
    }

    fn dispatch(&mut self, dispatch: &Dispatch) {
        let take = |id: &BufferId| std::mem::take(&mut self.buffers[id.0 as usize]);
        let mut bound: Vec<Vec<u32>> = dispatch.buffers.iter().map(take).collect();
        let (params, groups) = (dispatch.params, dispatch.groups);
        match dispatch.kernel {
            Kernel::Sweep => closure::sweep(params, groups, &mut bound),
            Kernel::Level => closure::level(params, groups, &mut bound),
            Kernel::Judge => prune::judge(params, &mut bound),
            Kernel::JudgeRows => prune::judge_rows(params, groups, &mut bound),
            Kernel::Emit => prune::emit(params, &mut bound),
            Kernel::Estimate => estimate::estimate(params, groups, &mut bound),
            Kernel::Probe => probe::probe(params, &mut bound),
            Kernel::Anneal => anneal::anneal(params, &mut bound),
            Kernel::Count => anneal::count(params, &mut bound),
            Kernel::Keep => anneal::keep(params, &mut bound),
        }
        for (id, words) in dispatch.buffers.iter().zip(bound) {
            self.buffers[id.0 as usize] = words;
        }
    }
}

impl Executor for Twins {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn create(&mut self, _: &'static str, words: u64) -> Result<BufferId, DeviceError> {
        self.buffers.push(vec![0; words.max(1) as usize]);
        Ok(BufferId(self.buffers.len() as u32 - 1))
    }

    fn free(&mut self, buffer: BufferId) {
        self.buffers[buffer.0 as usize] = Vec::new();
    }

    fn reset(&mut self) {
        self.buffers.clear();
    }

    fn run(
        &mut self,
        recording: &Recording,
        budget: &Budget,
    ) -> Result<Vec<Vec<u32>>, DeviceError> {
        let mut down = Vec::new();
        for command in &recording.commands {
            match command {
                Command::Upload { to, at, words } => {
                    let at = *at as usize;
                    self.buffers[to.0 as usize][at..at + words.len()].copy_from_slice(words);
                }
                Command::Clear(buffer) => self.buffers[buffer.0 as usize].fill(0),
                Command::Dispatch(dispatch) => {
                    budget.check()?;
                    self.dispatch(dispatch);
                }
                Command::Download { from, at, len } => {
                    let words = &self.buffers[from.0 as usize];
                    down.push(words[*at as usize..(at + len) as usize].to_vec());
                }
            }
        }
        Ok(down)
    }
}

/// A kernel's parameters.
fn params<P: bytemuck::Pod>(params: Params) -> P {
    bytemuck::cast(params)
}

impl Shape {
    /// Where a row starts in one strip of the band, in words.
    fn row(self, strips: &[Strip], strip: u32, row: u32) -> usize {
        let base = 4 * strips[(self.first_strip + strip) as usize].base as usize;
        base + ((row as usize) << self.strip_shift)
    }

    /// The first row that a strip of the band does not have.
    fn limit(self, strips: &[Strip], strip: u32) -> u32 {
        strips[(self.first_strip + strip) as usize].limit
    }

    fn strip_words(self) -> usize {
        1 << self.strip_shift
    }

    /// The strip of a column, counted from the band's first, if it is in the band.
    fn strip_of(self, column: u32) -> Option<u32> {
        let strip = (column / 32) >> self.strip_shift;
        let strip = strip.checked_sub(self.first_strip)?;
        (strip < self.n_strips).then_some(strip)
    }

    fn word_of(self, column: u32) -> usize {
        (column / 32) as usize % self.strip_words()
    }

    /// Where a bit's word stands in the band, if it is there.
    fn place(self, strips: &[Strip], row: u32, column: u32) -> Option<usize> {
        let strip = self.strip_of(column)?;
        let is_there = row < self.limit(strips, strip);
        is_there.then(|| self.row(strips, strip, row) + self.word_of(column))
    }
}
