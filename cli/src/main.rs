//! The binary `kingsnake`: reads what was typed, runs it, and says how it went.
//!
//! Exit status: 0 satisfied (or done), 1 violated (or a certificate that does not hold), 2 error, 3 unknown.

mod answer;
mod args;
mod certificate;
mod commands;
mod escape;
mod input;
mod interrupt;
mod json;
mod memory;
mod page;
mod picture;
mod plan;
mod processor;
mod profile;
mod progress;
mod question;
mod study;
mod telling;
mod voice;
mod words;

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;

use args::{Command, LevelArg, Typed};
use voice::Voice;

/// Reading and indexing a history is mostly allocation; this allocator asks the system less often.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let start = Instant::now();
    let typed = Typed::parse();
    match run(typed, start) {
        Ok(status) => status.into(),
        Err(error) => {
            voice::complain(&format!("{error:#}"));
            2.into()
        }
    }
}

fn run(typed: Typed, start: Instant) -> anyhow::Result<u8> {
    let voice = Voice::new(&typed.voice);
    if typed.leash {
        study::stay_on_leash();
    }
    match typed.command {
        Command::Check(args) if args.level.level == Some(LevelArg::Auto) => {
            commands::auto::run(&args, voice, start)
        }
        Command::Check(args) => commands::check::run(&args, voice, start, words::brief),
        Command::Explain(args) => commands::check::run(&args, voice, start, words::long),
        Command::Verify(args) => commands::verify::run(&args, voice),
        Command::VerifyProof(args) => commands::verify_proof::run(&args, voice, start),
        Command::Stats(args) => commands::stats::run(&args, voice),
        Command::Convert(args) => commands::convert::run(&args, voice),
        Command::Export(args) => commands::export::run(&args, voice, start),
        Command::Generate(args) => commands::generate::run(&args, voice),
        Command::Ablate(args) => commands::ablate::run(&args, voice),
        Command::Bench { what } => commands::bench::run(&what, voice),
        Command::Devices => commands::devices::run(),
        Command::Completions { shell } => commands::completions::run(shell),
    }
}
