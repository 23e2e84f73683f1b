//! `kingsnake generate`: runs a workload on the embedded store and writes down what its clients saw.

use anyhow::{Context, Result};
use kingsnake_datasets::Format;
use kingsnake_datasets::store::Run;
use kingsnake_datasets::workloads::{self, Granularity, Parameters};

use super::convert::expect_target;
use crate::args::{GenerateArgs, GranularityArg};
use crate::output::{Output, expect_apart};
use crate::voice::{Voice, count, printable, say};

/// Generates, and says what was written.
pub fn run(args: &GenerateArgs, voice: Voice) -> Result<u8> {
    expect_target(args.format, &args.out, &[])?;
    if let Some(path) = &args.version_order {
        let named = |option, path| Output { option, path };
        let mut outputs = vec![named("--version-order", path.as_path())];
        if args.format != Format::Cobra {
            outputs.push(named("--out", &args.out));
        }
        expect_apart(&[], &outputs)?;
    }
    let parameters = Parameters {
        n_keys: args.keys.map(|it| it as usize),
        n_ops: args.ops.map(|it| it as usize),
        distribution: args.distribution,
        granularity: args.granularity.map(|it| match it {
            GranularityArg::Operation => Granularity::Operation,
            GranularityArg::Transaction => Granularity::Transaction,
        }),
    };
    let workload = workloads::find(&args.workload)?.make(&parameters)?;
    let run = Run {
        n_txns: args.txns as usize,
        n_clients: args.clients as usize,
        isolation: args.isolation,
        fault: args.fault,
        rollbacks: (args.rollbacks * 100.0).round() as usize,
        keep_aborted: args.aborted,
        threads: args.threads,
        seed: args.seed,
    };
    let recorded = run.run(&*workload)?;
    let times = args.format == Format::Kingsnake && !args.no_times;
    let mut history = recorded.history(true, times)?;
    if let Some(path) = &args.version_order {
        kingsnake_datasets::write_version_orders(&history, path)?;
    }
    if !args.inline_version_order {
        history.retain_versions(|_| false);
    }
    for note in kingsnake_datasets::write(&history, args.format, &args.out)? {
        voice.warn(&note);
    }
    if !voice.quiet {
        let words = format!(
            "{} ({}): {} on {}, {}, {}, {}, {}; {} aborted",
            args.out.display(),
            args.format,
            args.workload,
            args.isolation,
            count(history.n_txns(), "transaction"),
            count(history.n_sessions(), "session"),
            count(history.n_ops(), "operation"),
            count(history.n_keys(), "key"),
            count(recorded.n_aborted(), "attempt")
        );
        say(&format!("{}\n", printable(&words))).context("cannot write to stdout")?;
    }
    Ok(0)
}
