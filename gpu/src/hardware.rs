//! Runs recordings through wgpu. Nothing here panics on a device's account: limits are checked before anything is made,
//! errors are caught in scopes, and a lost device is noticed.

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kingsnake_solver::budget::Budget;
use kingsnake_solver::prune::DeviceError;

use crate::adapter::{About, Kind};
use crate::kernel::{Access, Kernel};
use crate::layout::{PARAMS_BYTES, THREADS};
use crate::recording::{BufferId, Command, Dispatch, Executor, Limits, Recording};

/// How often a wait looks up to see whether it should end.
const LOOK_UP: Duration = Duration::from_millis(50);
/// A device that is silent for so long is given up.
const PATIENCE: Duration = Duration::from_secs(60);
/// The workgroup memory that the kernels need: `warshall`, one tile and one square.
const SHARED_BYTES: u32 = 4 * (128 * 32 + 128 * 4);
/// The storage buffers of `prune`.
const STORAGE_BUFFERS: u32 = 8;

/// Finds all adapters, the same ones in the same order every time.
pub(crate) fn enumerate() -> Vec<(wgpu::Adapter, About)> {
    let mut adapters = enumerate_through(wgpu::Backends::PRIMARY);
    // OpenGL shows the same hardware again, and its libraries complain aloud where there is no display.
    if adapters.is_empty() {
        adapters = enumerate_through(wgpu::Backends::GL);
    }
    let listed = adapters.into_iter().enumerate();
    listed
        .map(|(index, adapter)| {
            let about = about(index, &adapter);
            (adapter, about)
        })
        .collect()
}

fn enumerate_through(backends: wgpu::Backends) -> Vec<wgpu::Adapter> {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = backends;
    descriptor.flags = wgpu::InstanceFlags::empty();
    let instance = wgpu::Instance::new(descriptor);
    pollster::block_on(instance.enumerate_adapters(backends))
}

fn about(index: usize, adapter: &wgpu::Adapter) -> About {
    let info = adapter.get_info();
    let limits = adapter.limits();
    let features = adapter.features();
    let unfit = unfit(adapter, &limits);
    let has_subgroups = features.contains(wgpu::Features::SUBGROUP);
    About {
        index,
        name: info.name,
        backend: info.backend.to_string(),
        kind: match info.device_type {
            wgpu::DeviceType::DiscreteGpu => Kind::Discrete,
            wgpu::DeviceType::IntegratedGpu => Kind::Integrated,
            wgpu::DeviceType::VirtualGpu => Kind::Virtual,
            wgpu::DeviceType::Cpu => Kind::Software,
            wgpu::DeviceType::Other => Kind::Other,
        },
        driver: format!("{} {}", info.driver, info.driver_info)
            .trim()
            .to_owned(),
        max_buffer: limits.max_buffer_size,
        max_binding: limits.max_storage_buffer_binding_size,
        max_threads: limits.max_compute_invocations_per_workgroup,
        max_shared: limits.max_compute_workgroup_storage_size,
        subgroups: has_subgroups.then_some((info.subgroup_min_size, info.subgroup_max_size)),
        timestamps: features.contains(wgpu::Features::TIMESTAMP_QUERY),
        unfit,
    }
}

fn unfit(adapter: &wgpu::Adapter, limits: &wgpu::Limits) -> Option<String> {
    let flags = adapter.get_downlevel_capabilities().flags;
    if !flags.contains(wgpu::DownlevelFlags::COMPUTE_SHADERS) {
        return Some("no compute shaders".to_owned());
    }
    for (what, has, needs) in [
        (
            "threads a workgroup",
            limits.max_compute_invocations_per_workgroup,
            THREADS,
        ),
        (
            "threads in one dimension",
            limits.max_compute_workgroup_size_x,
            THREADS,
        ),
        (
            "bytes a workgroup shares",
            limits.max_compute_workgroup_storage_size,
            SHARED_BYTES,
        ),
        (
            "storage buffers a kernel",
            limits.max_storage_buffers_per_shader_stage,
            STORAGE_BUFFERS,
        ),
    ] {
        if has < needs {
            return Some(format!("{has} {what}, and {needs} are needed"));
        }
    }
    None
}

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
    /// How long kernels took, as the device tells.
    time: Duration,
}

/// How a device is opened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Opening {
    /// Do without subgroup operations even where there are some.
    pub(crate) plain: bool,
    /// Touch at most so many words in one dispatch.
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
            // A device that is closed says so too.
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
            Kind::Software => 1 << 25,
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

    /// The time that kernels took so far, where the device can tell.
    pub(crate) fn time(&self) -> Option<Duration> {
        self.has_timestamps.then_some(self.time)
    }

    /// Does something, and returns the errors that it caused.
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

    /// Waits for a submission; hears the budget and notices a lost device while it does.
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

/// wgpu's errors go on for pages.
fn first_line(error: &str) -> String {
    let lines: Vec<&str> = error
        .lines()
        .map(str::trim)
        .filter(|it| !it.is_empty())
        .take(6)
        .collect();
    lines.join(" ")
}

/// A recording that is being run.
struct Running<'h, 'b> {
    hardware: &'h Hardware,
    budget: &'b Budget,
    encoder: Option<wgpu::CommandEncoder>,
    /// Words that the encoder's dispatches touch.
    work: u64,
    in_flight: Option<wgpu::SubmissionIndex>,
    params: wgpu::Buffer,
    groups: HashMap<(Kernel, Vec<BufferId>), wgpu::BindGroup>,
    queries: Option<wgpu::QuerySet>,
    n_queries: u32,
    most_queries: u32,
}

impl Running<'_, '_> {
    fn encoder(&mut self) -> &mut wgpu::CommandEncoder {
        let device = &self.hardware.device;
        self.encoder.get_or_insert_with(|| {
            device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default())
        })
    }

    /// Hands over what was recorded. At most two submissions are under way, so that a budget that ends is soon heard.
    fn submit(&mut self) -> Result<(), DeviceError> {
        let Some(encoder) = self.encoder.take() else {
            return Ok(());
        };
        self.budget.check()?;
        let index = self.hardware.queue.submit([encoder.finish()]);
        self.work = 0;
        if let Some(before) = self.in_flight.replace(index) {
            self.hardware.wait(&before, self.budget)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), DeviceError> {
        self.submit()?;
        match self.in_flight.take() {
            Some(index) => self.hardware.wait(&index, self.budget),
            None => Ok(()),
        }
    }

    /// Dispatches that follow each other share a pass, as long as they are not too much together.
    fn dispatch(
        &mut self,
        dispatches: &[&Dispatch],
        first_params: usize,
    ) -> Result<(), DeviceError> {
        for dispatch in dispatches {
            self.bind(dispatch)?;
        }
        let hardware = self.hardware;
        let timed = self
            .queries
            .clone()
            .filter(|_| self.n_queries + 2 <= self.most_queries);
        let first_query = self.n_queries;
        if timed.is_some() {
            self.n_queries += 2;
        }
        let mut encoder = match self.encoder.take() {
            Some(encoder) => encoder,
            None => hardware
                .device
                .create_command_encoder(&wgpu::CommandEncoderDescriptor::default()),
        };
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
                label: None,
                timestamp_writes: timed.as_ref().map(|query_set| {
                    wgpu::ComputePassTimestampWrites {
                        query_set,
                        beginning_of_pass_write_index: Some(first_query),
                        end_of_pass_write_index: Some(first_query + 1),
                    }
                }),
            });
            for (at, dispatch) in dispatches.iter().enumerate() {
                let key = (dispatch.kernel, dispatch.buffers.clone());
                let (Some((_, pipeline)), Some(group)) = (
                    hardware.pipelines.get(&dispatch.kernel),
                    self.groups.get(&key),
                ) else {
                    continue;
                };
                let offset = (first_params + at) as u64 * hardware.uniform_alignment;
                pass.set_pipeline(pipeline);
                pass.set_bind_group(0, group, &[offset as u32]);
                pass.dispatch_workgroups(dispatch.groups[0], dispatch.groups[1], 1);
            }
        }
        self.encoder = Some(encoder);
        Ok(())
    }

    fn bind(&mut self, dispatch: &Dispatch) -> Result<(), DeviceError> {
        let key = (dispatch.kernel, dispatch.buffers.clone());
        if self.groups.contains_key(&key) {
            return Ok(());
        }
        let hardware = self.hardware;
        let Some((layout, _)) = hardware.pipelines.get(&dispatch.kernel) else {
            return Err(DeviceError::Failed("a kernel was not compiled".to_owned()));
        };
        let mut entries = vec![wgpu::BindGroupEntry {
            binding: 0,
            resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                buffer: &self.params,
                offset: 0,
                size: NonZeroU64::new(PARAMS_BYTES),
            }),
        }];
        let bindings = dispatch.kernel.about().bindings.iter();
        for (&(binding, _), &id) in bindings.zip(&dispatch.buffers) {
            entries.push(wgpu::BindGroupEntry {
                binding,
                resource: hardware.buffer(id)?.as_entire_binding(),
            });
        }
        let group = hardware
            .device
            .create_bind_group(&wgpu::BindGroupDescriptor {
                label: Some(dispatch.kernel.about().entry),
                layout,
                entries: &entries,
            });
        self.groups.insert(key, group);
        Ok(())
    }
}

impl Hardware {
    /// Puts the parameters of all dispatches into one buffer.
    fn params(&self, recording: &Recording) -> wgpu::Buffer {
        let dispatches = recording
            .commands
            .iter()
            .filter_map(|command| match command {
                Command::Dispatch(dispatch) => Some(dispatch),
                _ => None,
            });
        let stride = self.uniform_alignment as usize;
        let mut bytes = Vec::new();
        for (at, dispatch) in dispatches.enumerate() {
            bytes.resize(at * stride, 0);
            bytes.extend_from_slice(bytemuck::bytes_of(&dispatch.params));
        }
        let buffer = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("the parameters"),
            size: (bytes.len() as u64).max(PARAMS_BYTES),
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        self.queue.write_buffer(&buffer, 0, &bytes);
        buffer
    }

    fn staging(&self, bytes: u64) -> wgpu::Buffer {
        self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("a download"),
            size: bytes.max(4),
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        })
    }

    fn read(&self, staging: &wgpu::Buffer) -> Result<Vec<u32>, DeviceError> {
        let failed = |what: &str| DeviceError::Failed(format!("a download failed: {what}"));
        let slice = staging.slice(..);
        let outcome = Arc::new(Mutex::new(None));
        let told = Arc::clone(&outcome);
        slice.map_async(wgpu::MapMode::Read, move |result| {
            *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        });
        // Its work is done, so the mapping needs no waiting.
        let polled = self.device.poll(wgpu::PollType::Wait {
            submission_index: None,
            timeout: Some(PATIENCE),
        });
        polled.map_err(|error| failed(&error.to_string()))?;
        self.expect_no_trouble()?;
        match *outcome.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(Ok(())) => {}
            _ => return Err(failed("the buffer cannot be mapped")),
        }
        let bytes = slice
            .get_mapped_range()
            .map_err(|error| failed(&error.to_string()))?;
        let words = bytemuck::pod_collect_to_vec(&bytes);
        drop(bytes);
        staging.unmap();
        Ok(words)
    }

    fn carry_out(
        &mut self,
        recording: &Recording,
        budget: &Budget,
    ) -> Result<Vec<Vec<u32>>, DeviceError> {
        let n_dispatches = recording.traffic().dispatches;
        let most_queries = (2 * n_dispatches).min(u64::from(wgpu::QUERY_SET_MAX_QUERIES)) as u32;
        let queries = (self.has_timestamps && most_queries > 0).then(|| {
            self.device.create_query_set(&wgpu::QuerySetDescriptor {
                label: None,
                ty: wgpu::QueryType::Timestamp,
                count: most_queries,
            })
        });
        let mut running = Running {
            params: self.params(recording),
            hardware: self,
            budget,
            encoder: None,
            work: 0,
            in_flight: None,
            groups: HashMap::new(),
            queries,
            n_queries: 0,
            most_queries,
        };
        let mut downloads = Vec::new();
        let mut pending: Vec<&Dispatch> = Vec::new();
        let mut n_done = 0;
        for command in &recording.commands {
            if let Command::Dispatch(dispatch) = command {
                if !pending.is_empty() && running.work + dispatch.work > self.limits.work {
                    running.dispatch(&pending, n_done)?;
                    running.submit()?;
                    n_done += pending.len();
                    pending.clear();
                }
                running.work += dispatch.work;
                pending.push(dispatch);
                continue;
            }
            if !pending.is_empty() {
                running.dispatch(&pending, n_done)?;
                n_done += pending.len();
                pending.clear();
            }
            match command {
                Command::Upload { to, at, words } => {
                    // Uploads overtake what is only recorded.
                    running.submit()?;
                    let bytes = bytemuck::cast_slice(words);
                    self.queue.write_buffer(self.buffer(*to)?, 4 * at, bytes);
                }
                Command::Clear(buffer) => {
                    let buffer = self.buffer(*buffer)?;
                    running.encoder().clear_buffer(buffer, 0, None);
                }
                Command::Download { from, at, len } => {
                    let staging = self.staging(4 * len);
                    let from = self.buffer(*from)?;
                    running
                        .encoder()
                        .copy_buffer_to_buffer(from, 4 * at, &staging, 0, 4 * len);
                    downloads.push((staging, *len as usize));
                }
                Command::Dispatch(_) => {}
            }
        }
        if !pending.is_empty() {
            running.dispatch(&pending, n_done)?;
        }
        let stamps = self.resolve(&mut running);
        // Uploads alone need a submission too.
        running.encoder();
        running.finish()?;
        let mut down = Vec::new();
        for (staging, len) in &downloads {
            let mut words = self.read(staging)?;
            words.truncate(*len);
            down.push(words);
        }
        if let Some(stamps) = stamps {
            let stamps: Vec<u64> = bytemuck::pod_collect_to_vec(&self.read(&stamps)?);
            let ticks: u64 = stamps
                .chunks_exact(2)
                .map(|it| it[1].saturating_sub(it[0]))
                .sum();
            let period = f64::from(self.queue.get_timestamp_period());
            self.time += Duration::from_nanos((ticks as f64 * period) as u64);
        }
        Ok(down)
    }

    fn resolve(&self, running: &mut Running<'_, '_>) -> Option<wgpu::Buffer> {
        let queries = running.queries.clone().filter(|_| running.n_queries > 0)?;
        let bytes = 8 * u64::from(running.n_queries);
        let resolved = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("the times"),
            size: bytes,
            usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        });
        let staging = self.staging(bytes);
        let n_queries = running.n_queries;
        let encoder = running.encoder();
        encoder.resolve_query_set(&queries, 0..n_queries, &resolved, 0);
        encoder.copy_buffer_to_buffer(&resolved, 0, &staging, 0, bytes);
        Some(staging)
    }
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
