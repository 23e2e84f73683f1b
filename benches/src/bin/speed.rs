//! `kingsnake check` from process start to exit: medians and peak memory on real histories beside the best peer's time,
//! and the growth from 10,000 to 1,000,000 transactions, and at the levels of snapshot isolation. Prints a Markdown table, one row as soon as it is measured.
#![allow(clippy::print_stdout, clippy::print_stderr)] // A benchmark's table is its output.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use kingsnake_benches::{
    BenchCase, CASES, GROWTH, SNAPSHOT_LEVELS, SNAPSHOTS, WEAK_CASES, WEAK_GENERATED, WEAK_LEVELS,
};

/// Times whole checks.
#[derive(Debug, Parser)]
struct Args {
    /// The program to time.
    #[arg(long, default_value = "target/release/kingsnake")]
    kingsnake: PathBuf,
    /// The directory of shared data.
    #[arg(long, default_value = "../shared/data")]
    data: PathBuf,
    /// How often each case is run; the median counts.
    #[arg(long, default_value_t = 11)]
    runs: usize,
    /// Measure the growth to 1,000,000 transactions too, with histories generated here.
    #[arg(long, value_name = "DIRECTORY")]
    growth: Option<PathBuf>,
    /// Measure only the weak levels, lists and mixed levels, beside AWDIT and Plume, with histories generated here.
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "growth")]
    weak: Option<PathBuf>,
    /// How often each size of the growth is run.
    #[arg(long, default_value_t = 3)]
    growth_runs: usize,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let program = args
        .kingsnake
        .canonicalize()
        .with_context(|| format!("{} is not built", args.kingsnake.display()))?;
    if let Some(directory) = &args.weak {
        weak_histories(&args, &program)?;
        return weak_generated(directory, args.growth_runs, &program);
    }
    if args.data.is_dir() {
        real_histories(&args, &program)?;
    } else {
        eprintln!("skipped: no histories in {}", args.data.display());
    }
    if let Some(directory) = &args.growth {
        growth(directory, args.growth_runs, &program)?;
        snapshots(directory, args.growth_runs, &program)?;
    }
    Ok(())
}

fn real_histories(args: &Args, program: &Path) -> Result<()> {
    println!(
        "| history | level | Kingsnake s | spread | yardstick s | × yardstick | peak MB | best peer | peer s | peer ÷ Kingsnake |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for case in CASES {
        let path = args.data.join(case.path);
        let level = ["--level", case.level];
        let run = measure(program, &path, &level, case.status, args.runs)?;
        print_case(&case, &run);
    }
    Ok(())
}

/// Real histories at the weak levels beside AWDIT and Plume.
fn weak_histories(args: &Args, program: &Path) -> Result<()> {
    println!(
        "| history | level | Kingsnake s | spread | peak MB | AWDIT s | AWDIT ÷ Kingsnake | Plume s |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for case in WEAK_CASES {
        let path = args.data.join(case.path);
        if !path.exists() {
            eprintln!("skipped: no {}", path.display());
            continue;
        }
        for (at, level) in WEAK_LEVELS.into_iter().enumerate() {
            let run = measure(program, &path, &["--level", level], 0, args.runs)?;
            let plume = case.plume.map_or("–".to_owned(), |it| it[at].to_string());
            println!(
                "| {} | {level} | {:.3} | {:.3}–{:.3} | {} | {} | {:.1} | {plume} |",
                case.path,
                run.median,
                run.least,
                run.most,
                run.peak >> 20,
                case.awdit[at],
                case.awdit[at] / run.median,
            );
        }
    }
    Ok(())
}

/// Generated histories at the weak levels, lists and mixed levels.
fn weak_generated(directory: &Path, runs: usize, program: &Path) -> Result<()> {
    std::fs::create_dir_all(directory)?;
    println!();
    println!("| history | level | Kingsnake s | spread | peak MB | AWDIT s | goal s | goal MB |");
    println!("|---|---|---|---|---|---|---|---|");
    for case in WEAK_GENERATED {
        let history = directory.join("weak.history");
        let workload = shlex::split(case.generate).unwrap_or_default();
        let workload: Vec<&str> = workload.iter().map(String::as_str).collect();
        generate(program, &workload, &history)?;
        for (at, check) in case.checks.iter().enumerate() {
            let check: Vec<&str> = check.split(' ').collect();
            let run = measure(program, &history, &check, 0, runs)?;
            let awdit = case.awdit.get(at).map_or("–".to_owned(), f64::to_string);
            let room = case.goal.1.map_or("–".to_owned(), |it| it.to_string());
            println!(
                "| {} | {} | {:.3} | {:.3}–{:.3} | {} | {awdit} | {} | {room} |",
                case.name,
                check.last().unwrap_or(&""),
                run.median,
                run.least,
                run.most,
                run.peak >> 20,
                case.goal.0,
            );
        }
        std::fs::remove_file(&history)?;
    }
    Ok(())
}

/// The results of several runs of one check.
struct TimedRuns {
    median: f64,
    least: f64,
    most: f64,
    /// The time of reading every byte of the history, in this process, between the runs.
    yardstick: f64,
    peak: u64,
}

fn print_case(case: &BenchCase, run: &TimedRuns) {
    println!(
        "| {} | {} | {:.4} | {:.4}–{:.4} | {:.4} | {:.1} | {} | {} | {} | {:.0} |",
        case.path,
        case.level,
        run.median,
        run.least,
        run.most,
        run.yardstick,
        run.median / run.yardstick,
        run.peak >> 20,
        case.peer,
        case.peer_seconds,
        case.peer_seconds / run.median
    );
}

fn measure(
    program: &Path,
    history: &Path,
    level: &[&str],
    status: i32,
    runs: usize,
) -> Result<TimedRuns> {
    let peak = peak_memory(program, history, level)?;
    let mut times = Vec::new();
    let mut yardsticks = Vec::new();
    for _ in 0..runs.max(1) {
        yardsticks.push(read_all(history)?.as_secs_f64());
        times.push(one_check(program, history, level, status)?.as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    yardsticks.sort_by(f64::total_cmp);
    Ok(TimedRuns {
        median: times[times.len() / 2],
        least: times[0],
        most: times[times.len() - 1],
        yardstick: yardsticks[yardsticks.len() / 2],
        peak,
    })
}

fn one_check(program: &Path, history: &Path, level: &[&str], status: i32) -> Result<Duration> {
    let start = Instant::now();
    let exit = Command::new(program)
        .arg("check")
        .arg(history)
        .args(level)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    let time = start.elapsed();
    ensure!(
        exit.code() == Some(status),
        "{} at {level:?}: exit {exit}, expected {status}",
        history.display()
    );
    Ok(time)
}

fn peak_memory(program: &Path, history: &Path, level: &[&str]) -> Result<u64> {
    let output = Command::new(program)
        .arg("check")
        .arg(history)
        .args(level)
        .arg("--json")
        .stderr(Stdio::null())
        .output()?;
    let document: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let peak = document.pointer("/stats/peak_memory_bytes");
    peak.and_then(serde_json::Value::as_u64)
        .context("the JSON document has no peak memory")
}

/// Reads every byte once: the minimum for any checker.
fn read_all(path: &Path) -> Result<Duration> {
    let start = Instant::now();
    let mut sum = 0_u64;
    for file in files(path)? {
        sum += std::fs::read(file)?
            .iter()
            .map(|&byte| u64::from(byte))
            .sum::<u64>();
    }
    std::hint::black_box(sum);
    Ok(start.elapsed())
}

/// The files of a history: itself, or everything below the directory.
fn files(path: &Path) -> Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut all = Vec::new();
    for entry in std::fs::read_dir(path).with_context(|| path.display().to_string())? {
        all.extend(files(&entry?.path())?);
    }
    Ok(all)
}

fn growth(directory: &Path, runs: usize, program: &Path) -> Result<()> {
    std::fs::create_dir_all(directory)?;
    println!();
    println!(
        "| transactions | operations each | file MB | Kingsnake s | × yardstick | peak MB | µs per transaction |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (txns, ops, keys) in GROWTH {
        let history = directory.join(format!("{txns}x{ops}.dbcop"));
        let (txns_typed, ops_typed) = (txns.to_string(), ops.to_string());
        let keys = keys.to_string();
        let workload = ["king-cobra-rw", "--format", "dbcop", "--clients", "24"];
        let sizes = ["--txns", &txns_typed, "--ops", &ops_typed, "--keys", &keys];
        generate(program, &[&workload[..], &sizes[..]].concat(), &history)?;
        let size = std::fs::metadata(&history)?.len();
        let run = measure(program, &history, &["--level", "ser"], 0, runs)?;
        println!(
            "| {txns} | {ops} | {} | {:.3} | {:.1} | {} | {:.1} |",
            size >> 20,
            run.median,
            run.median / run.yardstick,
            run.peak >> 20,
            run.median * 1e6 / txns as f64
        );
        std::fs::remove_file(&history)?;
    }
    Ok(())
}

fn snapshots(directory: &Path, runs: usize, program: &Path) -> Result<()> {
    println!();
    println!(
        "| transactions | level | session order | Kingsnake s | peak MB | µs per transaction |"
    );
    println!("|---|---|---|---|---|---|");
    for txns in SNAPSHOTS {
        let history = directory.join(format!("{txns}.jsonl"));
        let typed = txns.to_string();
        let workload = ["v-blindw-rw", "--isolation", "snapshot", "--clients", "24"];
        let sizes = ["--txns", &typed, "--keys", "10000"];
        generate(program, &[&workload[..], &sizes[..]].concat(), &history)?;
        for (level, sessions) in SNAPSHOT_LEVELS {
            let typed = ["--level", level, "--session-order", sessions];
            let run = measure(program, &history, &typed, 0, runs)?;
            println!(
                "| {txns} | {level} | {sessions} | {:.3} | {} | {:.1} |",
                run.median,
                run.peak >> 20,
                run.median * 1e6 / txns as f64
            );
        }
        std::fs::remove_file(&history)?;
    }
    Ok(())
}

fn generate(program: &Path, what: &[&str], history: &Path) -> Result<()> {
    let status = Command::new(program)
        .arg("generate")
        .args(what)
        .arg("--out")
        .arg(history)
        .stdout(Stdio::null())
        .status()?;
    ensure!(status.success(), "generate failed: {status}");
    Ok(())
}
