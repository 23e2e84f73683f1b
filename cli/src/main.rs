//! The binary `kingsnake`: parses the command line, runs the command, and reports how it ended.
//!
//! Exit status: 0 satisfied (or done), 1 violated (or a certificate that does not hold), 2 error, 3 unknown.

mod answer;
mod args;
mod assumptions;
mod calibration;
mod collecting;
mod commands;
mod components;
#[cfg(test)]
mod coverage;
mod directory;
mod edn;
mod failure;
#[cfg(test)]
mod fuzz;
mod hunt;
mod input;
mod interrupt;
mod isolation;
mod limits;
mod many;
mod memory;
mod output;
mod plan;
mod plot;
mod processor;
mod profile;
mod progress;
mod question;
mod refused;
mod study_bar;
mod study_rules;
mod switches;
mod voice;
mod watch;

use std::time::Instant;

use clap::ArgMatches;
use kingsnake_report::{anomalies, json, lint, page, picture};

use args::{BenchCommand, Command, Typed};
use voice::Voice;

/// Reading and indexing a history is mostly allocation; this allocator calls the system less often.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Mesa's Vulkan drivers ask a display which GPU it prefers, and complain on stderr where there is none.
#[allow(unsafe_code)] // The drivers are C libraries and read the environment; there is no other way to configure them.
fn hush_drivers() {
    let is_set = |name| std::env::var_os(name).is_some();
    if !is_set("XDG_RUNTIME_DIR") && !is_set("NODEVICE_SELECT") {
        // Sound because this is the only thread so far.
        unsafe { std::env::set_var("NODEVICE_SELECT", "1") };
    }
}

fn main() {
    let start = Instant::now();
    hush_drivers();
    interrupt::catch_cut_files();
    kingsnake_gpu::use_measured(calibration::kept);
    let (matches, typed) = args::parse().unwrap_or_else(|error| {
        failure::write_usage(&error);
        error.exit()
    });
    let status = run(typed, &matches, start).unwrap_or_else(|error| {
        if let Some(reason) = limits::stopped(&error) {
            voice::complain(&format!("stopped: {reason}"));
            return 3;
        }
        voice::complain(&format!("{error:#}"));
        failure::write(&matches, &error);
        2
    });
    limits::end(status)
}

fn run(typed: Typed, matches: &ArgMatches, start: Instant) -> anyhow::Result<u8> {
    let voice = Voice::new(&typed.general.voice);
    let serves = matches!(&typed.command, Command::Check(args) if args.many.serve);
    if typed.general.leash && !serves {
        kingsnake_studies::stay_on_leash();
    }
    match typed.command {
        Command::Check(args) if serves => many::serve(&args.check, voice),
        Command::Check(args) if args.help_techniques => {
            voice::say(&args::techniques().to_string())?;
            Ok(0)
        }
        Command::Check(mut args) => {
            if let Some(found) = many::asked(&args, typed.general.leash, start)? {
                return many::run(&args, found, matches, voice);
            }
            args.check.history = args.histories.remove(0);
            args.check.is_verbose = voice.verbose;
            commands::check::run(&args.check, voice, start)
        }
        Command::Explain(mut args) => {
            args.check.history = args.history;
            args.check.explains = true;
            args.check.is_verbose = voice.verbose;
            commands::check::run(&args.check, voice, start)
        }
        Command::Verify(args) => limits::command(&args.bounds.clone(), start, move |budget| {
            commands::verify::run(&args, voice, budget)
        }),
        Command::VerifyProof(args) => {
            limits::command(&args.limits.bounds.clone(), start, move |budget| {
                commands::verify_proof::run(&args, voice, start, budget)
            })
        }
        Command::Lint(args) => limits::command(&args.bounds.clone(), start, move |budget| {
            commands::lint::run(&args, voice, budget)
        }),
        Command::Stats(args) => limits::command(&args.bounds.clone(), start, move |budget| {
            commands::stats::run(&args, voice, budget)
        }),
        Command::Convert(args) => limits::command(&args.bounds.clone(), start, move |budget| {
            commands::convert::run(&args, voice, budget)
        }),
        Command::Shrink(args) => commands::shrink::run(&args, voice, start),
        Command::Export(args) => {
            limits::command(&args.limits.bounds.clone(), start, move |budget| {
                commands::export::run(&args, voice, start, budget)
            })
        }
        Command::Solve(args) => {
            limits::command(&args.limits.bounds.clone(), start, move |budget| {
                commands::solve::run(&args, voice, start, budget)
            })
        }
        Command::Generate(args) => limits::command(&args.bounds.clone(), start, move |_| {
            commands::generate::run(&args, voice)
        }),
        Command::Collect(args) => commands::collect::run(&args, voice),
        Command::Watch(args) => commands::watch::run(&args, voice),
        Command::Hunt(args) => hunt::hunt(&args, voice),
        Command::Ablate(args) => commands::ablate::run(&args, voice),
        Command::Bench {
            what: BenchCommand::Anneal(args),
        } => limits::command(&args.limits.bounds.clone(), start, move |budget| {
            commands::bench::anneal(&args, voice, start, budget)
        }),
        Command::Bench { what } => commands::bench::run(&what, voice, start),
        Command::Diff(args) => commands::diff::run(&args, voice),
        Command::Devices(args) => commands::devices::run(&args),
        Command::Man(args) => commands::man::run(&args),
        Command::Completions { shell } => commands::completions::run(shell),
    }
}
