//! `kingsnake bench`: one subcommand per benchmark.

use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use kingsnake_solver::budget::Budget;
use kingsnake_solver::check::Techniques;
use kingsnake_solver::prune::Outcome;
use kingsnake_studies::{AnnealRun, AnnealStudy, Caller, Encodings, ReachStudy};

use crate::answer::base_name;
use crate::args::{AnnealArgs, BenchCommand, EncodingsArgs, GpuArgs, ReachArgs};
use crate::calibration::CalibrationFile;
use crate::input::load;
use crate::interrupt;
use crate::output::put;
use crate::plan::{questioned_level, spec, start_threads};
use crate::progress::Drawing;
use crate::question::question;
use crate::study_bar::StudyBar;
use crate::study_rules::CommandLine;
use crate::voice::{Voice, say};

/// Measures.
pub fn run(what: &BenchCommand, voice: Voice, start: Instant) -> Result<u8> {
    match what {
        BenchCommand::Anneal(args) => anneal(args, voice, start, &Budget::unlimited()),
        BenchCommand::Encodings(args) => encodings(args, voice),
        BenchCommand::Reach(args) => reach(args, voice),
        BenchCommand::Gpu(args) => gpu(args),
    }
}

/// Measures a device beside its cost model, or shows what others measured.
fn gpu(args: &GpuArgs) -> Result<u8> {
    for path in &args.import {
        say(&CalibrationFile::read(path)?.table())?;
    }
    let Some(out) = &args.out else {
        return Ok(0);
    };
    let found = kingsnake_gpu::calibrate(&args.device, &Budget::unlimited())?;
    let file = CalibrationFile::of(std::slice::from_ref(&found));
    file.write(&out.join("calibration.json"))?;
    let page = format!(
        "# Closures on a device\n\n{}{}",
        file.table(),
        file.closures()
    );
    put(&out.join("gpu.md"), &page)?;
    say(&page)?;
    Ok(0)
}

/// Anneals the questions of histories in every way.
pub fn anneal(args: &AnnealArgs, voice: Voice, start: Instant, budget: &Budget) -> Result<u8> {
    start_threads(&args.limits)?;
    kingsnake_gpu::expect(&args.device)
        .map_err(|why| anyhow!("--device {}: {why}", args.device))?;
    let spec = spec(questioned_level(&args.level)?, &args.level)?;
    let study = AnnealStudy {
        out: args.out.clone(),
        device: args.device.clone(),
        seed: args.seed,
    };
    let mut bar = StudyBar::new(voice);
    let mut run = AnnealRun::new(&study)?;
    for path in &args.histories {
        let parsed = load(path, &args.read, budget)?;
        let mut listener = Drawing::new(start, true).listener();
        let techniques = Techniques::default();
        let name = base_name(path);
        let outcome = question(&parsed.history, spec, &techniques, budget, &mut listener)?;
        match outcome {
            Outcome::Pruned(pruned) if !pruned.constraints.is_empty() => {
                run.measure(&name, &pruned.question(), budget, &mut bar)?;
            }
            _ => bail!(
                "{name}: pruning leaves nothing open, so there is nothing to anneal; \
                 try --session-order off --no-version-order"
            ),
        }
    }
    Ok(run.finish(&mut bar)?)
}

fn encodings(args: &EncodingsArgs, voice: Voice) -> Result<u8> {
    let asked = Encodings {
        histories: args.histories.clone(),
        backends: args.backends.clone(),
        request: args.study.request(),
    };
    let stop = interrupt::listen().context("cannot listen to signals")?;
    let caller = Caller {
        rules: &CommandLine,
        listener: &mut StudyBar::new(voice),
        stop: &stop,
        paint: voice.paint,
    };
    Ok(kingsnake_studies::encodings(&asked, caller)?)
}

fn reach(args: &ReachArgs, voice: Voice) -> Result<u8> {
    let asked = ReachStudy {
        out: args.out.clone(),
        nodes: args.nodes.clone(),
        degrees: args.degrees.clone(),
        chains: args.chains,
        span: args.span,
        device: args.device.clone(),
        software_nodes: args.software_nodes,
        repeat: args.repeat,
    };
    let mut bar = StudyBar::new(voice);
    Ok(kingsnake_studies::reach(&asked, &mut bar)?)
}
