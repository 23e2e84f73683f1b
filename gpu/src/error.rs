//! Why a device cannot be used.

use thiserror::Error;

/// Why a device cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GpuError {
    /// What was typed names no device.
    #[error("expected auto, cpu, gpu, or gpu:<name or index>")]
    Choice,
    /// The feature `wgpu` is off.
    #[error("this kingsnake was built without GPU support")]
    NotBuilt,
    /// The machine has none.
    #[error("no adapter was found")]
    NoAdapter,
    /// The machine has none but the CPU's own.
    #[error("no GPU was found, only software")]
    OnlySoftware,
    /// It has others.
    #[error("no adapter is called {name:?}: {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// It lacks something that the kernels need.
    #[error("{name} cannot run the kernels: {why}")]
    Unfit {
        /// The adapter.
        name: String,
        /// What it lacks.
        why: String,
    },
    /// It did not open, does not hold the task, or computed something else than the CPU.
    #[error("{0}")]
    Failed(String),
}

impl From<String> for GpuError {
    fn from(why: String) -> Self {
        GpuError::Failed(why)
    }
}
