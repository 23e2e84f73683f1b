//! `kingsnake generate`: writes a random history that is valid by construction, or broken in one place.

use anyhow::{Context, Result};
use kingsnake_solver::random::{Injected, Large};

use crate::args::{GenerateArgs, InjectArg};
use crate::voice::{Voice, count, printable, say};

/// Generates, and says what was written.
pub fn run(args: &GenerateArgs, voice: Voice) -> Result<u8> {
    let percent = |share: f64| (share * 100.0).round() as usize;
    let large = Large {
        n_txns: args.txns as usize,
        n_sessions: args.sessions as usize,
        n_keys: args.keys as usize,
        n_ops: args.ops as usize,
        reads: percent(args.read_share),
        read_modify_writes: percent(args.rmw_share),
        lag: args.lag as usize,
        times: args.times,
        injected: args.inject.map(|inject| match inject {
            InjectArg::LostUpdate => Injected::LostUpdate,
            InjectArg::StaleRead => Injected::StaleRead,
            InjectArg::WriteSkew => Injected::WriteSkew,
        }),
        seed: args.seed,
    };
    let history = large.run().history;
    kingsnake_datasets::write(&history, args.format, &args.to)?;
    if !voice.quiet {
        let words = format!(
            "{} ({}): {}, {}, {}, {}\n",
            args.to.display(),
            args.format,
            count(history.n_txns(), "transaction"),
            count(history.n_sessions(), "session"),
            count(history.n_ops(), "operation"),
            count(history.n_keys(), "key")
        );
        say(&printable(&words)).context("cannot write to stdout")?;
    }
    Ok(0)
}
