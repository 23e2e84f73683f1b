//! `kingsnake watch`: checks a database while it runs.

use anyhow::{Context, Result};

use crate::args::WatchArgs;
use crate::interrupt;
use crate::voice::Voice;
use crate::watch::run;

/// Watches until the log ends, a violation is found or Ctrl-C is pressed.
pub fn run(args: &WatchArgs, voice: Voice) -> Result<u8> {
    let stop = interrupt::listen().context("cannot listen to signals")?;
    run::run(args, voice, &stop, None)
}
