//! The cost of recording: the same transactions on `SQLite` by a bare client loop and by the driver, in processor time,
//! and the duration of 10,000 transactions of 8 sessions.
#![allow(clippy::print_stdout, clippy::unwrap_used)] // A benchmark prints, and may panic.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use kingsnake_collect::{
    CollectRequest, CollectRun, Database, Load, OrderBy, StoredCell, Target, adapter,
};
use kingsnake_datasets::store::TxnStep;
use kingsnake_datasets::workloads::{Parameters, WorkloadKind, find};
use kingsnake_history::rng::Rng;
use rustix::time::{ClockId, clock_gettime};

const TXNS: u64 = 20_000;
const KEYS: usize = 20;

fn processor() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn database(directory: &Path) -> Box<dyn Database> {
    let target = Target {
        urls: Vec::new(),
        isolation: "serializable".to_owned(),
        version_order: OrderBy::Rank,
        kind: WorkloadKind::Registers,
        directory: directory.to_owned(),
        settings: Vec::new(),
        reads: None,
    };
    adapter("sqlite").unwrap().connect(&target).unwrap()
}

/// The transactions of the workload `rmw`, with nothing recorded. In a thread, as a session is: a process with one
/// thread has cheaper locks and system calls.
fn bare() -> Duration {
    let directory = tempfile::tempdir().unwrap();
    let database = database(directory.path());
    let load = Load::new("rmw", Some(KEYS), None).unwrap();
    database.prepare(load.initially()).unwrap();
    let start = processor();
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("bare".to_owned());
        thread
            .spawn_scoped(scope, || bare_loop(&*database))
            .unwrap();
    });
    processor().checked_sub(start).unwrap()
}

fn bare_loop(database: &dyn Database) {
    let parameters = Parameters {
        n_keys: Some(KEYS),
        n_ops: Some(2),
        ..Parameters::default()
    };
    let workload = find("blindw-rmw").unwrap().make(&parameters).unwrap();
    let mut session = database.open(0).unwrap();
    let mut rng = Rng::new(1);
    let mut value = 0;
    for _ in 0..TXNS {
        let mut steps = workload.transaction(&mut rng);
        session.begin().unwrap();
        while let Some(step) = steps.next(0) {
            match step {
                TxnStep::Read(key) => drop(session.read(key).unwrap()),
                TxnStep::Write(key, beside) => {
                    value += 1;
                    session.write(key, StoredCell { value, beside }).unwrap();
                }
                other => panic!("{other:?} is not of this workload"),
            }
        }
        session.commit().unwrap();
    }
}

fn request(directory: &Path, sessions: usize, txns: u64) -> CollectRequest<'_> {
    CollectRequest {
        name: "sqlite",
        isolation: "serializable",
        workload: "rmw",
        version_order: OrderBy::Rank,
        run: CollectRun {
            sessions,
            txns,
            ..CollectRun::default()
        },
        directory,
        leaves_tables: None,
    }
}

/// The same by the driver, until the last transaction has ended: the clients' cost while it runs.
fn recorded() -> Duration {
    let directory = tempfile::tempdir().unwrap();
    let database = database(directory.path());
    let load = Load::new("rmw", Some(KEYS), None).unwrap();
    database.prepare(load.initially()).unwrap();
    let stop = AtomicBool::new(false);
    let run = request(directory.path(), 1, TXNS).run;
    let start = processor();
    kingsnake_collect::run_only(&*database, &load, &run, directory.path(), &stop).unwrap();
    processor().checked_sub(start).unwrap()
}

fn whole() -> (Duration, Duration) {
    let directory = tempfile::tempdir().unwrap();
    let database = database(directory.path());
    let load = Load::new("rmw", Some(KEYS), None).unwrap();
    let stop = AtomicBool::new(false);
    let start = Instant::now();
    let request = request(directory.path(), 8, 10_000);
    let collected = request
        .collect(&*database, &load, &stop, None, &mut |_| {})
        .unwrap();
    (start.elapsed(), collected.running)
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64()
}

fn main() {
    // In turn, so that a busy machine disturbs both equally.
    let pairs: Vec<(Duration, Duration)> = (0..15).map(|_| (bare(), recorded())).collect();
    let mut ratios: Vec<f64> = pairs
        .iter()
        .map(|(bare, recorded)| recorded.as_secs_f64() / bare.as_secs_f64())
        .collect();
    ratios.sort_by(f64::total_cmp);
    let (bare, recorded): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    let (bare, recorded) = (median(bare), median(recorded));
    println!(
        "bare loop: {:.1} µs of processor time a transaction",
        bare / TXNS as f64 * 1e6
    );
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    println!(
        "recorded:  {:.1} µs, {:+.1} % (pairs: {:+.1} %, {:+.1} %, {:+.1} % at the quartiles)",
        recorded / TXNS as f64 * 1e6,
        percent(recorded / bare),
        percent(ratios[ratios.len() / 4]),
        percent(ratios[ratios.len() / 2]),
        percent(ratios[ratios.len() * 3 / 4]),
    );
    let (all, running) = (0..3).map(|_| whole()).min().unwrap();
    println!(
        "10,000 transactions of 8 sessions: {:.2} s, of which {:.2} s ran clients",
        all.as_secs_f64(),
        running.as_secs_f64()
    );
}
