//! Runs recordings through wgpu. Nothing here panics because of a device: limits are checked before anything is
//! created, errors are caught in scopes, and a lost device is noticed.

mod enumerate;
mod running;

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kingsnake_context::budget::Budget;
use kingsnake_graph::prune::DeviceError;

use crate::adapter::{About, AdapterKind};
use crate::kernel::{Access, Kernel};
use crate::layout::PARAMS_BYTES;
use crate::recording::{BufferId, Command, Executor, Limits, Recording};

pub(crate) use enumerate::enumerate;

/// Interval at which a wait checks whether it should end.
const LOOK_UP: Duration = Duration::from_millis(50);
/// Time without an answer after which a device is given up.
const PATIENCE: Duration = Duration::from_secs(60);
/// An open device.
pub(crate) struct Hardware {
    device: wgpu::Device,
    queue: wgpu::Queue,
    limits: Limits,
    uniform_alignment: u64,
    has_subgroups: bool,
    has_timestamps: bool,
    pipelines: HashMap<Kernel, (wgpu::BindGroupLayout, wgpu::ComputePipeline)>,
    buffers: Vec<Option<wgpu::Buffer>>,
    trouble: Arc<Mutex<Option<String>>>,
    /// The time of kernels, as the device reports it.
    time: Duration,
}

/// How a device is opened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Opening {
    /// Do not use subgroup operations even if there are any.
    pub(crate) plain: bool,
    /// Maximum number of words touched per dispatch.
    pub(crate) work: Option<u64>,
}

impl Hardware {
    /// Opens a device with all that the adapter allows.
    pub(crate) fn open(
        adapter: &wgpu::Adapter,
        about: &About,
        opening: Opening,
    ) -> Result<Self, String> {
        let mut features = wgpu::Features::empty();
        if about.timestamps {
            features |= wgpu::Features::TIMESTAMP_QUERY;
        }
        let has_subgroups = about.subgroups.is_some() && !opening.plain;
        if has_subgroups {
            features |= wgpu::Features::SUBGROUP;
        }
        let limits = adapter.limits();
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("kingsnake"),
            required_features: features,
            required_limits: limits.clone(),
            ..wgpu::DeviceDescriptor::default()
        };
        let (device, queue) = pollster::block_on(adapter.request_device(&descriptor))
            .map_err(|error| format!("{} cannot be opened: {error}", about.name))?;
        let trouble = Arc::new(Mutex::new(None));
        let noted = Arc::clone(&trouble);
        device.set_device_lost_callback(move |reason, message| {
            // A closed device is reported the same way.
            if reason != wgpu::DeviceLostReason::Destroyed {
                note(&noted, format!("the device was lost: {message}"));
            }
        });
        let noted = Arc::clone(&trouble);
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            note(&noted, error.to_string());
        }));
        // The CPU ORs about a hundred times fewer words in a second, and a GPU's watchdog waits about two.
        let work = match about.kind {
            AdapterKind::Software => 1 << 25,
            _ => 1 << 32,
        };
        Ok(Hardware {
            limits: Limits {
                buffer: limits
                    .max_buffer_size
                    .min(limits.max_storage_buffer_binding_size),
                groups: limits.max_compute_workgroups_per_dimension,
                work: opening.work.unwrap_or(work),
            },
            uniform_alignment: u64::from(limits.min_uniform_buffer_offset_alignment),
            has_subgroups,
            has_timestamps: about.timestamps,
            pipelines: HashMap::new(),
            buffers: Vec::new(),
            trouble,
            time: Duration::ZERO,
            device,
            queue,
        })
    }

    /// The time of kernels so far, if the device measures it.
    pub(crate) fn time(&self) -> Option<Duration> {
        self.has_timestamps.then_some(self.time)
    }

    /// Runs a function, and returns the errors that it caused.
    fn guarded<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> Result<T, DeviceError> {
        let scopes = [
            wgpu::ErrorFilter::OutOfMemory,
            wgpu::ErrorFilter::Validation,
            wgpu::ErrorFilter::Internal,
        ]
        .map(|filter| self.device.push_error_scope(filter));
        let done = act(self);
        let mut errors = Vec::new();
        // The last scope is the innermost.
        for scope in scopes.into_iter().rev() {
            errors.extend(pollster::block_on(scope.pop()).map(|error| error.to_string()));
        }
        match errors.into_iter().next() {
            Some(error) => Err(DeviceError::Failed(first_line(&error))),
            None => self.expect_no_trouble().map(|()| done),
        }
    }

    fn expect_no_trouble(&self) -> Result<(), DeviceError> {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        match &*trouble {
            Some(what) => Err(DeviceError::Failed(first_line(what))),
            None => Ok(()),
        }
    }

    fn buffer(&self, id: BufferId) -> Result<&wgpu::Buffer, DeviceError> {
        let buffer = self.buffers.get(id.0 as usize).and_then(Option::as_ref);
        buffer.ok_or_else(|| DeviceError::Failed("a buffer was used after it was freed".to_owned()))
    }

    fn compile(&mut self, kernel: Kernel) {
        if self.pipelines.contains_key(&kernel) {
            return;
        }
        let about = kernel.about();
        let storage = |&(binding, access): &(u32, Access)| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty: wgpu::BufferBindingType::Storage {
                    read_only: access == Access::Read,
                },
                has_dynamic_offset: false,
                min_binding_size: None,
            },
            count: None,
        };
        let mut entries = vec![wgpu::BindGroupLayoutEntry {
            binding: 0,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty: wgpu::BufferBindingType::Uniform,
                has_dynamic_offset: true,
                min_binding_size: NonZeroU64::new(PARAMS_BYTES),
            },
            count: None,
        }];
        entries.extend(about.bindings.iter().map(storage));
        let label = Some(about.entry);
        let layout = self
            .device
            .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
                label,
                entries: &entries,
            });
        let pipeline_layout = self
            .device
            .create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label,
                bind_group_layouts: &[Some(&layout)],
                immediate_size: 0,
            });
        let module = self
            .device
            .create_shader_module(wgpu::ShaderModuleDescriptor {
                label: Some(about.file),
                source: wgpu::ShaderSource::Wgsl(kernel.source(self.has_subgroups).into()),
            });
        let pipeline = self
            .device
            .create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label,
                layout: Some(&pipeline_layout),
                module: &module,
                entry_point: label,
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                cache: None,
            });
        self.pipelines.insert(kernel, (layout, pipeline));
    }

    /// Waits for a submission, while polling the budget and noticing a lost device.
    fn wait(&self, index: &wgpu::SubmissionIndex, budget: &Budget) -> Result<(), DeviceError> {
        let begun = Instant::now();
        loop {
            let polled = self.device.poll(wgpu::PollType::Wait {
                submission_index: Some(index.clone()),
                timeout: Some(LOOK_UP),
            });
            self.expect_no_trouble()?;
            match polled {
                Ok(_) => return Ok(()),
                Err(wgpu::PollError::Timeout) if begun.elapsed() < PATIENCE => budget.check()?,
                Err(wgpu::PollError::Timeout) => {
                    let what = format!("the device was silent for {} s", PATIENCE.as_secs());
                    return Err(DeviceError::Failed(what));
                }
                Err(error) => return Err(DeviceError::Failed(error.to_string())),
            }
        }
    }
}

fn note(trouble: &Mutex<Option<String>>, what: String) {
    let mut trouble = trouble.lock().unwrap_or_else(PoisonError::into_inner);
    trouble.get_or_insert(what);
}

/// wgpu's errors are pages long.
fn first_line(error: &str) -> String {
    let lines: Vec<&str> = error
        .lines()
        .map(str::trim)
        .filter(|it| !it.is_empty())
        .take(6)
        .collect();
    lines.join(" ")
}

impl Executor for Hardware {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn create(&mut self, what: &'static str, words: u64) -> Result<BufferId, DeviceError> {
        let size = 4 * words.max(1);
        if size > self.limits.buffer {
            return Err(DeviceError::Failed(format!(
                "{what} would take {size} bytes, and the device binds {} at most",
                self.limits.buffer
            )));
        }
        let buffer = self.guarded(|hardware| {
            hardware.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some(what),
                size,
                usage: wgpu::BufferUsages::STORAGE
                    | wgpu::BufferUsages::COPY_SRC
                    | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })
        });
        match buffer {
            Ok(buffer) => {
                self.buffers.push(Some(buffer));
                Ok(BufferId(self.buffers.len() as u32 - 1))
            }
            Err(DeviceError::Failed(error)) => Err(DeviceError::Failed(format!(
                "no memory for {what} ({size} bytes): {error}"
            ))),
            Err(stopped) => Err(stopped),
        }
    }

    fn free(&mut self, buffer: BufferId) {
        if let Some(buffer) = self
            .buffers
            .get_mut(buffer.0 as usize)
            .and_then(Option::take)
        {
            buffer.destroy();
        }
    }

    fn reset(&mut self) {
        for buffer in self.buffers.drain(..).flatten() {
            buffer.destroy();
        }
        self.time = Duration::ZERO;
    }

    fn run(
        &mut self,
        recording: &Recording,
        budget: &Budget,
    ) -> Result<Vec<Vec<u32>>, DeviceError> {
        budget.check()?;
        self.guarded(|hardware| {
            for command in &recording.commands {
                if let Command::Dispatch(dispatch) = command {
                    hardware.compile(dispatch.kernel);
                }
            }
        })?;
        self.guarded(|hardware| hardware.carry_out(recording, budget))?
    }
}

#[cfg(test)]
impl Hardware {
    /// Loses the device, as a driver that was reset would.
    pub(crate) fn lose(&mut self) {
        self.device.destroy();
    }
}
