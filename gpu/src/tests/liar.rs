//! An executor with faults: it runs the twins, and damages what one kernel reads or writes. Comparisons must notice every fault.

use kingsnake_context::budget::Budget;
use kingsnake_graph::prune::DeviceError;

use crate::cpu::Twins;
use crate::kernel::Kernel;
use crate::layout::{Reads, Run};
use crate::recording::{BufferId, Command, Dispatch, Executor, Limits, Recording};

/// A mistake of one kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lie {
    ClosureLosesBits,
    ClosureForgetsAnEdge,
    PruneForgetsReaders,
    PruneForcesWhatIsImplied,
    JudgeRowsSwapsTheWay,
    EstimateLosesTheLastBit,
    ProbeSwapsTheEnds,
    AnnealLeavesBounds,
    AnnealForgetsTheRest,
    CountMissesASide,
}

impl Lie {
    fn is_about(self, kernel: Kernel) -> bool {
        match self {
            Lie::ClosureLosesBits | Lie::ClosureForgetsAnEdge => {
                matches!(kernel, Kernel::Sweep | Kernel::Level)
            }
            Lie::PruneForgetsReaders => {
                matches!(kernel, Kernel::Judge | Kernel::JudgeRows | Kernel::Emit)
            }
            Lie::PruneForcesWhatIsImplied => kernel == Kernel::Emit,
            Lie::JudgeRowsSwapsTheWay => kernel == Kernel::JudgeRows,
            Lie::EstimateLosesTheLastBit => kernel == Kernel::Estimate,
            Lie::ProbeSwapsTheEnds => kernel == Kernel::Probe,
            Lie::AnnealLeavesBounds | Lie::AnnealForgetsTheRest => kernel == Kernel::Anneal,
            Lie::CountMissesASide => kernel == Kernel::Count,
        }
    }

    /// Changes what the kernel reads. The buffers are in the order of its bindings.
    fn damage_input(self, bound: &mut [Vec<u32>]) {
        match self {
            Lie::ClosureLosesBits | Lie::JudgeRowsSwapsTheWay => {}
            Lie::ClosureForgetsAnEdge => {
                let starts = bound[3].clone();
                for ends in starts.windows(2).filter(|it| it[0] + 1 < it[1]) {
                    bound[4][ends[1] as usize - 1] = bound[4][ends[0] as usize];
                }
            }
            Lie::PruneForgetsReaders => {
                let runs: &mut [Run] = bytemuck::cast_slice_mut(&mut bound[2]);
                for run in runs {
                    run.readers_end = run.readers;
                }
            }
            Lie::PruneForcesWhatIsImplied => bound[0].iter_mut().for_each(|word| *word = !*word),
            Lie::EstimateLosesTheLastBit => {
                bound[0].iter_mut().for_each(|word| *word &= u32::MAX >> 1);
            }
            Lie::ProbeSwapsTheEnds => {
                let (pairs, _) = bound[2].as_chunks_mut::<2>();
                for pair in pairs {
                    pair.reverse();
                }
            }
            Lie::AnnealLeavesBounds => {
                let reads: &mut [Reads] = bytemuck::cast_slice_mut(&mut bound[2]);
                for own in reads {
                    own.between = own.after;
                }
            }
            // Sides without edges hold everywhere.
            Lie::AnnealForgetsTheRest => bound[4].fill(0),
            Lie::CountMissesASide => {
                let starts = bound[1].clone();
                let (sides, _) = bound[2].as_chunks_mut::<2>();
                for ends in starts.windows(2).skip(1).step_by(2) {
                    for edge in &mut sides[ends[0] as usize..ends[1] as usize] {
                        edge[1] = edge[0];
                    }
                }
            }
        }
    }

    /// Changes what the kernel wrote.
    fn damage_output(self, bound: &mut [Vec<u32>]) {
        match self {
            Lie::ClosureLosesBits => {
                let words = bound[0].iter_mut();
                words.for_each(|word| *word &= word.wrapping_sub(1));
            }
            Lie::JudgeRowsSwapsTheWay => {
                let (ways, _) = bound[4].as_chunks_mut::<2>();
                for way in ways {
                    way.reverse();
                }
            }
            _ => {}
        }
    }
}

/// The twins, one of which lies.
pub(super) struct Liar {
    twins: Twins,
    lie: Lie,
    /// How large each buffer is, in words.
    sizes: Vec<u64>,
}

impl Liar {
    pub(super) fn new(lie: Lie) -> Self {
        Liar {
            twins: Twins::new(),
            lie,
            sizes: Vec::new(),
        }
    }

    fn read(
        &mut self,
        buffers: &[BufferId],
        budget: &Budget,
    ) -> Result<Vec<Vec<u32>>, DeviceError> {
        let mut recording = Recording::default();
        for &buffer in buffers {
            recording.download(buffer, 0, self.sizes[buffer.0 as usize]);
        }
        self.twins.run(&recording, budget)
    }

    /// Writes the buffers that have changed.
    fn write(
        &mut self,
        buffers: &[BufferId],
        [before, after]: [&[Vec<u32>]; 2],
        budget: &Budget,
    ) -> Result<(), DeviceError> {
        let mut recording = Recording::default();
        for (at, &buffer) in buffers.iter().enumerate() {
            if before[at] != after[at] {
                recording.upload(buffer, 0, &after[at]);
            }
        }
        self.twins.run(&recording, budget).map(|_| ())
    }

    fn dispatch(&mut self, dispatch: &Dispatch, budget: &Budget) -> Result<(), DeviceError> {
        let buffers = &dispatch.buffers;
        let truth = self.read(buffers, budget)?;
        let mut damaged = truth.clone();
        self.lie.damage_input(&mut damaged);
        self.write(buffers, [&truth, &damaged], budget)?;
        let only = Recording {
            commands: vec![Command::Dispatch(dispatch.clone())],
        };
        self.twins.run(&only, budget)?;
        self.write(buffers, [&damaged, &truth], budget)?;
        let written = self.read(buffers, budget)?;
        let mut damaged = written.clone();
        self.lie.damage_output(&mut damaged);
        self.write(buffers, [&written, &damaged], budget)
    }
}

impl Executor for Liar {
    fn limits(&self) -> Limits {
        self.twins.limits()
    }

    fn create(&mut self, what: &'static str, words: u64) -> Result<BufferId, DeviceError> {
        let buffer = self.twins.create(what, words)?;
        self.sizes.resize(buffer.0 as usize + 1, 0);
        self.sizes[buffer.0 as usize] = words.max(1);
        Ok(buffer)
    }

    fn free(&mut self, buffer: BufferId) {
        self.sizes[buffer.0 as usize] = 0;
        self.twins.free(buffer);
    }

    fn reset(&mut self) {
        self.sizes.clear();
        self.twins.reset();
    }

    fn run(
        &mut self,
        recording: &Recording,
        budget: &Budget,
    ) -> Result<Vec<Vec<u32>>, DeviceError> {
        let mut down = Vec::new();
        for command in &recording.commands {
            match command {
                Command::Dispatch(dispatch) if self.lie.is_about(dispatch.kernel) => {
                    self.dispatch(dispatch, budget)?;
                }
                command => {
                    let commands = vec![command.clone()];
                    down.extend(self.twins.run(&Recording { commands }, budget)?);
                }
            }
        }
        Ok(down)
    }
}
