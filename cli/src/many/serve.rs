//! Checks histories in sequence in this process, on requests through stdin.
//!
//! A line of stdin is JSON: the history, and where its page goes. The answer on stdout is the document of the check, and a line that
//! begins with [`END`] and has the exit status. Only a verdict is answered: otherwise the process ends, and the history is checked
//! again in a process of its own, with all its limits. The process ends too when stdin does.

use std::io::BufRead;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::args::CheckArgs;
use crate::commands::check;
use crate::limits;
use crate::memory;
use crate::voice::{Voice, say_as_it_is};

/// Begins the line after a document; no document has this letter.
pub(super) const END: char = '\u{1e}';

/// A process larger than this, in bytes, ends after its answer.
const LARGE: u64 = 256 << 20;

/// Serves until stdin ends, or a check gives no verdict.
pub fn serve(args: &CheckArgs, voice: Voice) -> Result<u8> {
    let (sender, asked) = mpsc::channel();
    std::thread::spawn(move || {
        let lines = std::io::stdin().lock().lines().map_while(Result::ok);
        for line in lines {
            if sender.send(line).is_err() {
                return;
            }
        }
        // The requesting process is gone.
        signal_hook::low_level::exit(3);
    });
    for line in asked {
        limits::begin_next();
        let asked: Value = serde_json::from_str(&line).context("stdin names no history")?;
        let path = |name: &str| asked[name].as_str().map(PathBuf::from);
        let mut args = args.clone();
        args.history = path("history").context("stdin names no history")?;
        args.files.report = path("report");
        let status = check::run(&args, voice, Instant::now())?;
        if status > 1 || limits::left_behind() || kingsnake_encodings::left_behind() {
            return Ok(status);
        }
        say_as_it_is(&format!("{END}{status}\n")).context("cannot write to stdout")?;
        if memory::resident().is_some_and(|size| size > LARGE) {
            break;
        }
    }
    Ok(0)
}
