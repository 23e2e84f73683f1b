//! Why a device cannot be used.

use thiserror::Error;

/// Why a device cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GpuError {
    /// The name selects no device.
    #[error("expected auto, cpu, gpu, or gpu:<name or index>")]
    Choice,
    /// The feature `wgpu` is off.
    #[error("this kingsnake was built without GPU support")]
    NotBuilt,
    /// The machine has none.
    #[error("no adapter was found")]
    NoAdapter,
    /// The machine has none but a software adapter.
    #[error("no GPU was found, only software")]
    OnlySoftware,
    /// It has others.
    #[error("no adapter is called {name:?}: {known}")]
    Unknown {
        /// The requested name.
        name: String,
        /// The available ones.
        known: String,
    },
    /// It lacks a feature that the kernels need.
    #[error("{name} cannot run the kernels: {why}")]
    Unfit {
        /// The adapter.
        name: String,
        /// The feature.
        why: String,
    },
    /// It could not be opened, cannot hold the task, or computed a different result than the CPU.
    #[error("{0}")]
    Failed(String),
}

impl From<String> for GpuError {
    fn from(why: String) -> Self {
        GpuError::Failed(why)
    }
}
