//! Speed of reading Jepsen's EDN: list-append transactions of the embedded store, written as a log and read back, in
//! bytes and events per second of processor time.
//!
//! ```text
//! cargo bench -p kingsnake-datasets --bench edn            # 100,000 transactions
//! cargo bench -p kingsnake-datasets --bench edn -- 1000000
//! ```
#![allow(clippy::print_stdout, clippy::unwrap_used)] // A benchmark prints, and may panic.

use std::time::Duration;

use kingsnake_datasets::store::StoreRun;
use kingsnake_datasets::workloads::{self, Parameters};
use kingsnake_datasets::{Format, ReadOptions, open, write};
use rustix::time::{ClockId, clock_gettime};

fn processor() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn main() {
    let typed = std::env::args().find_map(|it| it.parse::<usize>().ok());
    let n_txns = typed.unwrap_or(100_000);
    let directory = tempfile::tempdir().unwrap();
    for (name, max_writes) in [("list-append", 10), ("list-append", 100), ("mini", 100)] {
        let workload = workloads::find(name).unwrap();
        let workload = workload.make(&Parameters::default()).unwrap();
        let run = StoreRun {
            n_txns,
            n_clients: 20,
            max_writes_per_key: Some(max_writes),
            ..StoreRun::default()
        };
        let history = run.run(&*workload).unwrap().history(false, true).unwrap();
        let path = directory.path().join("log.edn");
        write(&history, Format::JepsenEdn, &path).unwrap();
        drop(history);
        let n_bytes = std::fs::metadata(&path).unwrap().len() as f64;
        let n_events = 2 * n_txns;
        let once = || {
            let start = processor();
            let parsed = open(&path, &ReadOptions::default()).unwrap();
            let time = processor().checked_sub(start).unwrap();
            assert_eq!(parsed.history.n_txns(), n_txns);
            time
        };
        let time = (0..5).map(|_| once()).min().unwrap().as_secs_f64();
        println!(
            "{name}, {max_writes} writes a key: {:.1} MB in {time:.3} s, {:.0} MB/s, {:.2} million events a second",
            n_bytes / 1e6,
            n_bytes / 1e6 / time,
            n_events as f64 / 1e6 / time
        );
        std::fs::remove_file(&path).unwrap();
    }
}
