//! Measures the closure on a device, for benchmarks: times, and traffic on the bus.

use crate::GpuError;
use std::time::Duration;

#[cfg(feature = "wgpu")]
use std::time::Instant;

use kingsnake_context::budget::Budget;
use kingsnake_graph::reach::Dag;

use crate::adapter::About;
use crate::{DeviceChoice, Form};

/// A computed closure.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Time from the first byte sent to the last kernel's end.
    pub time: Duration,
    /// Time of the kernels, if the device measures it.
    pub kernels: Option<Duration>,
    /// The kernels' names.
    pub form: String,
    /// Words of 32 bits that were OR-ed, by the formula of docs/gpu.md.
    pub words: u64,
    /// Bytes sent to the device.
    pub bytes_up: u64,
    /// Kernels started.
    pub dispatches: u64,
    /// Their workgroups together.
    pub workgroups: u64,
    /// The share of their threads' turns that had something to do.
    pub occupancy: f64,
    /// The size of the matrix.
    pub matrix_bytes: u64,
    /// Number of buffers that it is split over.
    pub bands: u32,
}

/// An open device that is measured.
pub struct Meter {
    about: About,
    #[cfg(feature = "wgpu")]
    hardware: Option<crate::hardware::Hardware>,
}

impl Meter {
    /// Opens the device that a choice means.
    #[cfg(feature = "wgpu")]
    pub fn open(choice: &DeviceChoice) -> Result<Self, GpuError> {
        let (about, hardware) = crate::device::find(choice)?;
        Ok(Meter {
            about,
            hardware: Some(hardware),
        })
    }

    /// Opens the device that a choice means.
    #[cfg(not(feature = "wgpu"))]
    pub fn open(_: &DeviceChoice) -> Result<Self, GpuError> {
        Err(GpuError::NotBuilt)
    }

    /// The device.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Loads a graph and computes its closure.
    #[cfg(feature = "wgpu")]
    pub fn closure(
        &mut self,
        dag: &Dag,
        form: Form,
        budget: &Budget,
    ) -> Result<Measured, GpuError> {
        use crate::recording::Executor;
        use crate::resident::{ClosureOptions, Resident};
        use crate::self_test::words;

        let Some(mut hardware) = self.hardware.take() else {
            return Err("the device failed before".to_owned().into());
        };
        hardware.reset();
        let options = ClosureOptions {
            form,
            ..ClosureOptions::default()
        };
        let begun = Instant::now();
        let mut resident = Resident::new(hardware, options, dag, None).map_err(words)?;
        resident.close(dag, &[], budget).map_err(words)?;
        resident.flush(budget).map_err(words)?;
        let time = begun.elapsed();
        let (matrix_bytes, bands) = resident.size();
        let measured = Measured {
            time,
            kernels: resident.executor.time(),
            form: resident.used.words(),
            words: resident.words_ored(dag),
            bytes_up: resident.traffic.bytes_up,
            dispatches: resident.traffic.dispatches,
            workgroups: resident.traffic.workgroups,
            occupancy: crate::device::share(resident.traffic.busy, resident.traffic.turns),
            matrix_bytes,
            bands,
        };
        self.hardware = Some(resident.executor);
        Ok(measured)
    }

    /// Loads a graph and computes its closure.
    #[cfg(not(feature = "wgpu"))]
    pub fn closure(&mut self, _: &Dag, _: Form, _: &Budget) -> Result<Measured, GpuError> {
        Err(GpuError::NotBuilt)
    }
}
