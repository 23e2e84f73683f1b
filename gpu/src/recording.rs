//! A recorded list of uploads, dispatches and downloads, which wgpu runs, or the CPU twins do.

use bytemuck::Pod;
use kingsnake_context::budget::Budget;
use kingsnake_graph::prune::DeviceError;

use crate::kernel::Kernel;
use crate::layout::{PARAMS_BYTES, Params};

/// A buffer of an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct BufferId(pub(crate) u32);

/// A kernel to run.
#[derive(Clone, Debug)]
pub(crate) struct Dispatch {
    pub(crate) kernel: Kernel,
    pub(crate) params: Params,
    /// The storage buffers, in the order of the kernel's table.
    pub(crate) buffers: Vec<BufferId>,
    pub(crate) groups: [u32; 2],
    pub(crate) load: Load,
}

/// The work of a dispatch, and how full its workgroups are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    /// Approximate number of words read or written: it limits how much is submitted at once.
    pub(crate) work: u64,
    /// Steps of threads with work: a word of a row, a row, or a pair.
    pub(crate) busy: u64,
    /// All steps, including those of threads that only wait for their workgroup.
    pub(crate) turns: u64,
}

/// A command. Offsets and lengths are in words.
#[derive(Clone, Debug)]
pub(crate) enum Command {
    Upload {
        to: BufferId,
        at: u64,
        words: Vec<u32>,
    },
    Clear(BufferId),
    Dispatch(Dispatch),
    Download {
        from: BufferId,
        at: u64,
        len: u64,
    },
}

/// Traffic on the bus, number of dispatches, and how full they were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) bytes_up: u64,
    pub(crate) bytes_down: u64,
    pub(crate) dispatches: u64,
    pub(crate) workgroups: u64,
    pub(crate) busy: u64,
    pub(crate) turns: u64,
    /// How often the host waited for the device.
    pub(crate) round_trips: u64,
}

impl Traffic {
    pub(crate) fn add(&mut self, other: Traffic) {
        self.bytes_up += other.bytes_up;
        self.bytes_down += other.bytes_down;
        self.dispatches += other.dispatches;
        self.workgroups += other.workgroups;
        self.busy += other.busy;
        self.turns += other.turns;
        self.round_trips += other.round_trips;
    }
}

/// Commands, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recording {
    pub(crate) commands: Vec<Command>,
}

impl Recording {
    pub(crate) fn upload<T: Pod>(&mut self, to: BufferId, at: u64, data: &[T]) {
        if !data.is_empty() {
            let words = bytemuck::cast_slice(data).to_vec();
            self.commands.push(Command::Upload { to, at, words });
        }
    }

    pub(crate) fn clear(&mut self, buffer: BufferId) {
        self.commands.push(Command::Clear(buffer));
    }

    pub(crate) fn dispatch<P: Pod>(
        &mut self,
        kernel: Kernel,
        params: P,
        buffers: &[BufferId],
        groups: [u32; 2],
        load: Load,
    ) {
        debug_assert_eq!(buffers.len(), kernel.about().bindings.len());
        self.commands.push(Command::Dispatch(Dispatch {
            kernel,
            params: bytemuck::cast(params),
            buffers: buffers.to_vec(),
            groups,
            load,
        }));
    }

    pub(crate) fn download(&mut self, from: BufferId, at: u64, len: u64) {
        self.commands.push(Command::Download { from, at, len });
    }

    /// The statistics of running it. Parameters are uploaded too.
    pub(crate) fn traffic(&self) -> Traffic {
        let mut traffic = Traffic::default();
        for command in &self.commands {
            match command {
                Command::Upload { words, .. } => traffic.bytes_up += 4 * words.len() as u64,
                Command::Download { len, .. } => traffic.bytes_down += 4 * len,
                Command::Dispatch(dispatch) => {
                    traffic.dispatches += 1;
                    traffic.bytes_up += PARAMS_BYTES;
                    traffic.workgroups += dispatch.groups.map(u64::from).iter().product::<u64>();
                    traffic.busy += dispatch.load.busy;
                    traffic.turns += dispatch.load.turns;
                }
                Command::Clear(_) => {}
            }
        }
        traffic
    }
}

/// The limits of an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The largest buffer that a kernel can be bound to, in bytes.
    pub(crate) buffer: u64,
    /// The most workgroups of a dispatch in one dimension.
    pub(crate) groups: u32,
    /// Maximum number of words per dispatch, short enough for watchdogs and Ctrl-C.
    pub(crate) work: u64,
}

/// Runs recordings.
pub(crate) trait Executor {
    fn limits(&self) -> Limits;

    /// Makes a buffer of zeros. The size in words is within the limits.
    fn create(&mut self, what: &'static str, words: u64) -> Result<BufferId, DeviceError>;

    /// Gives a buffer back.
    fn free(&mut self, buffer: BufferId);

    /// Gives all buffers back.
    fn reset(&mut self);

    /// Executes everything, and returns the downloads in order.
    fn run(&mut self, recording: &Recording, budget: &Budget)
    -> Result<Vec<Vec<u32>>, DeviceError>;
}
