//! `kingsnake generate`: runs a workload on the embedded store and records what its clients see.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use kingsnake_datasets::Format;
use kingsnake_datasets::store::{IsolationMix, StoreRun};
use kingsnake_datasets::workloads::{self, Granularity, Lwt, Parameters};
use kingsnake_solver::model::History;
use serde_json::json;

use super::convert::{expect_target, to_stdout};
use crate::args::{GenerateArgs, GranularityArg};
use crate::isolation::IsolationMap;
use crate::limits::is_stdio;
use crate::output::{Output, expect_apart, put};
use crate::voice::{Voice, count, printable, say};

/// Generates, and prints what was written.
pub fn run(args: &GenerateArgs, voice: Voice) -> Result<u8> {
    let start = Instant::now();
    expect_target(args.format, &args.out, &[])?;
    if let Some(path) = args.json.as_deref().filter(|it| *it != Path::new("-")) {
        let named = |option, path| Output { option, path };
        expect_apart(&[], &[named("--json", path), named("--out", &args.out)])?;
    }
    if let Some(path) = &args.version_order {
        let named = |option, path| Output { option, path };
        let mut outputs = vec![named("--version-order", path.as_path())];
        if args.format != Format::Cobra {
            outputs.push(named("--out", &args.out));
        }
        expect_apart(&[], &outputs)?;
    }
    if args.workload == "lwt" {
        if args.fault.is_some() || !args.bug.is_empty() {
            bail!("lwt runs on no store, so --fault and --bug do not apply; --lwt-fault breaks it");
        }
        return run_lwt(args, voice, start);
    }
    if args.lwt.lwt_fault.is_some() {
        bail!("--lwt-fault is for the workload lwt; --fault and --bug break the others");
    }
    let parameters = Parameters {
        n_keys: args.keys.map(|it| it as usize),
        n_ops: args.ops.map(|it| it as usize),
        distribution: args.distribution,
        granularity: args.granularity.map(|it| match it {
            GranularityArg::Operation => Granularity::Operation,
            GranularityArg::Transaction => Granularity::Transaction,
        }),
        shapes: args.shapes,
    };
    let workload = workloads::find(&args.workload)?.make(&parameters)?;
    let run = StoreRun {
        n_txns: args.txns as usize,
        n_clients: args.clients as usize,
        isolation: args.isolation,
        isolation_mix: args.isolation_mix.clone(),
        fault: args.fault,
        bugs: args.bug.clone(),
        max_writes_per_key: args.max_writes_per_key,
        rollbacks: (args.rollbacks * 100.0).round() as usize,
        keep_aborted: args.aborted,
        predicate_locks: !args.no_predicate_locks,
        threads: args.threads,
        seed: args.seed,
    };
    let recorded = run.run(&*workload)?;
    let has_times = matches!(
        args.format,
        Format::Kingsnake | Format::JepsenEdn | Format::JepsenJson
    );
    let times = has_times && !args.no_times;
    let mut history = recorded.history(true, times)?;
    if let Some(path) = &args.version_order {
        kingsnake_datasets::write_version_orders(&history, path)?;
    }
    if !args.inline_version_order {
        history.retain_versions(|_| false);
    }
    written(args, &history, voice)?;
    tell_json(args, &history, recorded.n_aborted(), start)?;
    if !voice.quiet && !fills_stdout(args) {
        let words = format!(
            "{} ({}): {} on {}, {}, {}, {}, {}; {} aborted",
            args.out.display(),
            args.format,
            args.workload,
            match args.isolation_mix {
                Some(_) => "levels of their own",
                None => args.isolation.name(),
            },
            count(history.n_txns(), "transaction"),
            count(history.n_sessions(), "session"),
            count(history.n_ops(), "operation"),
            count(history.n_keys(), "key"),
            count(recorded.n_aborted(), "attempt")
        );
        say(&format!("{}\n", printable(&words))).context("cannot write to stdout")?;
        if let Some(mix) = &args.isolation_mix {
            say(&format!("{}\n", how_to_check(mix))).context("cannot write to stdout")?;
        }
    }
    Ok(0)
}

/// The options that check a history of this mix.
fn how_to_check(mix: &IsolationMix) -> String {
    let ambiguous = mix.ambiguous();
    if ambiguous.is_empty() {
        return "check it with --level as-recorded".to_owned();
    }
    let map = IsolationMap::usual_with(&ambiguous).typed();
    format!("check it with --level as-recorded --isolation-map '{map}'")
}

/// Writes the history, to stdout for `-`.
fn written(args: &GenerateArgs, history: &History, voice: Voice) -> Result<()> {
    if is_stdio(&args.out) {
        to_stdout(history, args.format, voice)?;
        return Ok(());
    }
    for note in kingsnake_datasets::write(history, args.format, &args.out)? {
        voice.warn(&note);
    }
    Ok(())
}

/// Whether the history or JSON goes to stdout.
fn fills_stdout(args: &GenerateArgs) -> bool {
    is_stdio(&args.out) || args.json.as_deref().is_some_and(is_stdio)
}

/// What was generated, as JSON.
fn tell_json(
    args: &GenerateArgs,
    history: &History,
    n_aborted: usize,
    start: Instant,
) -> Result<()> {
    let Some(path) = &args.json else {
        return Ok(());
    };
    let document = json!({
        "schema": 1,
        "workload": args.workload,
        "format": args.format.name(),
        "transactions": history.n_txns(),
        "sessions": history.n_sessions(),
        "operations": history.n_ops(),
        "keys": history.n_keys(),
        "committed": args.txns,
        "aborted_attempts": n_aborted,
        "seconds": start.elapsed().as_secs_f64(),
    });
    put(path, &format!("{document:#}\n"))
}

/// Generates compare-and-sets. They run on no store: their order is chosen first.
fn run_lwt(args: &GenerateArgs, voice: Voice, start: Instant) -> Result<u8> {
    let percent = |share: f64| (share * 100.0).round() as usize;
    let lwt = Lwt {
        n_ops: args.txns as usize,
        n_clients: args.clients as usize,
        n_keys: args.keys.unwrap_or(1) as usize,
        concurrency: percent(args.lwt.concurrency),
        reads: percent(args.lwt.read_share),
        failed: percent(args.lwt.fail_share),
        unknown: percent(args.lwt.unknown_share),
        max_writes_per_key: args.max_writes_per_key,
        fault: args.lwt.lwt_fault,
        seed: args.seed,
    };
    let history = lwt.history()?;
    written(args, &history, voice)?;
    tell_json(args, &history, 0, start)?;
    if !voice.quiet && !fills_stdout(args) {
        let words = format!(
            "{} ({}): lwt, {}, {}, {}",
            args.out.display(),
            args.format,
            count(history.n_txns(), "operation"),
            count(history.n_sessions(), "session"),
            count(history.n_keys(), "key")
        );
        say(&format!("{}\n", printable(&words))).context("cannot write to stdout")?;
    }
    Ok(0)
}
