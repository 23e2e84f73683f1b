//! The adapters that wgpu finds on this machine, and whether the kernels can run on them.

use crate::adapter::{About, AdapterKind};
use crate::layout::THREADS;

/// The workgroup memory that the kernels need: `anneal`, its lists, is the largest.
const SHARED_BYTES: u32 = 8 * 448 + 12 * (2 * 448 + 1) + 5 * 4;
/// The storage buffers of `prune`.
const STORAGE_BUFFERS: u32 = 8;

/// Finds all adapters, the same ones in the same order every time.
pub(crate) fn enumerate() -> Vec<(wgpu::Adapter, About)> {
    let listed = adapters().into_iter().enumerate();
    listed
        .map(|(index, adapter)| {
            let about = about(index, &adapter);
            (adapter, about)
        })
        .collect()
}

/// Through Vulkan, Metal or DirectX 12. OpenGL would show the same hardware again.
fn adapters() -> Vec<wgpu::Adapter> {
    let backends = wgpu::Backends::PRIMARY;
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
            wgpu::DeviceType::DiscreteGpu => AdapterKind::Discrete,
            wgpu::DeviceType::IntegratedGpu => AdapterKind::Integrated,
            wgpu::DeviceType::VirtualGpu => AdapterKind::Virtual,
            wgpu::DeviceType::Cpu => AdapterKind::Software,
            wgpu::DeviceType::Other => AdapterKind::Other,
        },
        driver: format!("{} {}", info.driver, info.driver_info)
            .trim()
            .to_owned(),
        vendor: info.vendor,
        bus: info.device_pci_bus_id,
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
            "threads per workgroup",
            limits.max_compute_invocations_per_workgroup,
            THREADS,
        ),
        (
            "threads in one dimension",
            limits.max_compute_workgroup_size_x,
            THREADS,
        ),
        (
            "bytes shared per workgroup",
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
