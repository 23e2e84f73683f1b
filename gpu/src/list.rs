//! A buffer that grows.

use kingsnake_graph::prune::DeviceError;

use crate::recording::{BufferId, Executor};

/// A buffer for a list that may have to grow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    what: &'static str,
    pub(crate) buffer: BufferId,
    /// In words.
    pub(crate) room: u64,
}

impl List {
    pub(crate) fn new<E: Executor>(
        executor: &mut E,
        what: &'static str,
        words: u64,
    ) -> Result<Self, DeviceError> {
        let room = words.max(1);
        let buffer = executor.create(what, room)?;
        Ok(List { what, buffer, room })
    }

    /// Makes room; the list's content is lost if it grows.
    pub(crate) fn expect<E: Executor>(
        &mut self,
        executor: &mut E,
        words: u64,
    ) -> Result<(), DeviceError> {
        if words > self.room {
            executor.free(self.buffer);
            *self = List::new(executor, self.what, words)?;
        }
        Ok(())
    }
}
