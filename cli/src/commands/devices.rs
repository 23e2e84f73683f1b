//! `kingsnake devices`: what can compute reachability on this machine.

use std::fmt::Write;

use anyhow::{Context, Result};

use crate::voice::{count, say};

/// Lists the devices.
pub fn run() -> Result<u8> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut words = format!("cpu: {}\n", count(threads, "thread"));
    let adapters = kingsnake_gpu::adapters();
    if adapters.is_empty() {
        words.push_str("gpu: none; this version computes on the CPU only\n");
    }
    for adapter in adapters {
        let _ = writeln!(words, "gpu: {adapter}");
    }
    say(&words).context("cannot write to stdout")?;
    Ok(0)
}
