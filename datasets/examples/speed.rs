//! Times `open` on the given paths: best and median of several runs, megabytes and operations a second.

use std::path::Path;
use std::time::Instant;

use kingsnake_datasets::{ReadOptions, open};

#[allow(clippy::print_stdout)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    const RUNS: usize = 15;
    for path in std::env::args().skip(1) {
        let mut seconds = Vec::new();
        let mut last = None;
        for _ in 0..RUNS {
            let start = Instant::now();
            last = Some(open(Path::new(&path), &ReadOptions::default())?);
            seconds.push(start.elapsed().as_secs_f64());
        }
        seconds.sort_by(f64::total_cmp);
        if let Some(parsed) = last {
            let history = &parsed.history;
            println!(
                "{path}: {} {} txns {} ops {} keys; best {:.2} ms, median {:.2} ms, {:.0} MB/s, {:.1} M ops/s",
                parsed.format,
                history.n_txns(),
                history.n_ops(),
                history.n_keys(),
                seconds[0] * 1e3,
                seconds[RUNS / 2] * 1e3,
                parsed.bytes as f64 / seconds[RUNS / 2] / 1e6,
                history.n_ops() as f64 / seconds[RUNS / 2] / 1e6,
            );
            for warning in &parsed.warnings {
                println!("  {warning}");
            }
        }
    }
    Ok(())
}
