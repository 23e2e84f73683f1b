//! The kernels against their twins, the twins against the truth, and whole checks against the CPU's engine.
//!
//! These tests need an adapter; a software one such as lavapipe suffices. If there is none they fail: skipping them
//! would let a broken kernel pass.

mod anneal;
#[cfg(feature = "wgpu")]
mod choices;
mod cuts;
#[cfg(feature = "wgpu")]
mod failures;
#[cfg(feature = "wgpu")]
mod found;
#[cfg(feature = "wgpu")]
mod kernels;
mod layouts;
mod liar;
#[cfg(feature = "wgpu")]
#[path = "../../../encodings/tests/support/problems.rs"]
mod problems;
mod traffic;
#[cfg(feature = "wgpu")]
mod whole_checks;

/// Opens an adapter for a test, and prints which; `scripts/test` counts these lines.
#[cfg(feature = "wgpu")]
fn hardware(test: &str, opening: crate::hardware::Opening) -> crate::hardware::Hardware {
    use crate::hardware::{Hardware, enumerate};
    let (adapters, abouts): (Vec<_>, Vec<_>) = enumerate().into_iter().unzip();
    let about = crate::adapter::pick(&abouts, &crate::DeviceChoice::Gpu).unwrap_or_else(|why| {
        panic!("{why}: the tests need one (mesa-vulkan-drivers has a software adapter)")
    });
    println!("gpu test: {test} on {} ({})", about.name, about.backend);
    Hardware::open(&adapters[about.index], about, opening).expect("the adapter can be opened")
}
