//! A running recording: encoded, submitted in pieces short enough for any watchdog, timed, and read back.

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kingsnake_context::budget::Budget;
use kingsnake_graph::prune::DeviceError;

use super::{Hardware, PATIENCE};
use crate::kernel::Kernel;
use crate::layout::PARAMS_BYTES;
use crate::recording::{BufferId, Command, Dispatch, Recording};

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

    /// Submits what was recorded. At most two submissions run at a time, so that the end of the budget is soon noticed.
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

    /// Consecutive dispatches share a pass, unless they are too much together.
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

    /// Executes everything recorded.
    pub(super) fn carry_out(
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
                if !pending.is_empty() && running.work + dispatch.load.work > self.limits.work {
                    running.dispatch(&pending, n_done)?;
                    running.submit()?;
                    n_done += pending.len();
                    pending.clear();
                }
                running.work += dispatch.load.work;
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
                    // Uploads overtake recorded commands.
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
