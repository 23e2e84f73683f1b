//! Answers reachability questions with compute kernels: the closure of the known graph stays on a GPU, and every pair of
//! runs is judged against it there.
//!
//! Host code records uploads, dispatches and downloads; wgpu runs the recording, or the CPU twins do. Without the feature
//! `wgpu` there is no adapter, and [`Gpu`] declines every task.

// Without device APIs only the twins could run recordings, which only tests do.
#![cfg_attr(not(feature = "wgpu"), allow(dead_code, unused_imports))]

mod adapter;
mod anneal;
mod calibrate;
mod closure;
mod cost;
mod cpu;
mod device;
mod error;
#[cfg(feature = "wgpu")]
mod hardware;
mod kernel;
mod layout;
mod list;
mod matrix;
mod meter;
mod pairs;
mod places;
mod probe;
mod recording;
mod resident;
mod round;
mod sample;
mod self_test;
mod steps;
#[cfg(test)]
mod tests;

use std::str::FromStr;

pub use adapter::{About, AdapterKind};
pub use anneal::GpuCooler;
pub use calibrate::{Calibration, CalibrationPoint, calibrate};
pub use closure::Form;
pub use cost::{MeasuredSpeed, Speed, use_measured};
pub use device::Gpu;
pub use error::GpuError;
pub use meter::{Measured, Meter};
pub use self_test::{DeviceSelfTest, self_test};

/// The device choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// A real GPU if it pays, otherwise the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// The best adapter, software included.
    Gpu,
    /// The adapter with this index, or this part of its name.
    Named(String),
}

impl FromStr for DeviceChoice {
    type Err = GpuError;

    fn from_str(typed: &str) -> Result<Self, GpuError> {
        match typed {
            "auto" => Ok(DeviceChoice::Auto),
            "cpu" => Ok(DeviceChoice::Cpu),
            "gpu" => Ok(DeviceChoice::Gpu),
            _ => match typed.strip_prefix("gpu:") {
                Some(name) if !name.is_empty() => Ok(DeviceChoice::Named(name.to_owned())),
                _ => Err(GpuError::Choice),
            },
        }
    }
}

impl std::fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DeviceChoice::Auto => f.write_str("auto"),
            DeviceChoice::Cpu => f.write_str("cpu"),
            DeviceChoice::Gpu => f.write_str("gpu"),
            DeviceChoice::Named(name) => write!(f, "gpu:{name}"),
        }
    }
}

/// Checks that an adapter requested by name exists; otherwise the error lists the others. Other choices always succeed,
/// if necessary with the CPU.
pub fn expect(choice: &DeviceChoice) -> Result<(), GpuError> {
    if !matches!(choice, DeviceChoice::Named(_)) {
        return Ok(());
    }
    if !cfg!(feature = "wgpu") {
        return Err(GpuError::NotBuilt);
    }
    adapter::pick(&adapters(), choice).map(|_| ())
}

/// The adapters of this machine.
pub fn adapters() -> Vec<About> {
    #[cfg(feature = "wgpu")]
    let found = hardware::enumerate().into_iter().map(|it| it.1).collect();
    #[cfg(not(feature = "wgpu"))]
    let found = Vec::new();
    found
}
