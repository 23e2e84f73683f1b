//! `kingsnake solve`: decides an instance in `MonoSAT`'s graph format, and checks the answer again.
//!
//! A model is checked against the clauses and graphs of the file. A no is put to another back end, without pruning.

use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use kingsnake_encodings::import::Gnf;
use kingsnake_encodings::{BACKENDS, Options};
use kingsnake_solver::budget::{Budget, StopReason};
use kingsnake_solver::decide::{Decision, Origin, Side};
use kingsnake_solver::problem::{Outcome, Problem, Pruned, prune};
use kingsnake_solver::progress::Silent;
use kingsnake_solver::prune::{PruneOptions, PruneStats, Variable};

use crate::args::SolveArgs;
use crate::voice::{Voice, complain, say};

/// What was found, in the instance's own terms.
enum Solved {
    Model(Vec<bool>),
    /// Variables that cannot all be given a value.
    Core(Vec<u32>),
    Unknown(StopReason),
}

/// Decides the instance.
pub fn run(args: &SolveArgs, voice: Voice, budget: &Budget) -> Result<u8> {
    let name = args.instance.display();
    let text = text(&args.instance).with_context(|| format!("cannot read {name}"))?;
    let gnf = Gnf::read(&text).map_err(|error| anyhow!("{name}: {error}"))?;
    let rounds = args.no_prune.then_some(0);
    let options = Options {
        seed: args.seed,
        ..Options::default()
    };
    let solved = match solve(gnf.problem(), &args.backend, rounds, &options, budget)? {
        Solved::Core(_) => confirmed(&gnf, &args.backend, &options, budget)?,
        solved => solved,
    };
    match solved {
        Solved::Model(mut model) => {
            gnf.complete(&mut model);
            if let Err(why) = gnf.check(&model) {
                bail!(
                    "internal error: {} found a model that does not hold: {why}",
                    args.backend
                );
            }
            let values = model.iter().enumerate().map(|(at, &value)| {
                let sign = if value { "" } else { "-" };
                format!("{sign}{} ", at + 1)
            });
            let model = if voice.quiet {
                String::new()
            } else {
                format!("v {}0\n", values.collect::<String>())
            };
            say(&format!("satisfiable\n{model}"))?;
            Ok(0)
        }
        Solved::Core(core) => {
            let core: Vec<String> = core.iter().map(|it| (it + 1).to_string()).collect();
            let core = if voice.quiet {
                String::new()
            } else {
                format!("core {} 0\n", core.join(" "))
            };
            say(&format!("unsatisfiable\n{core}"))?;
            Ok(1)
        }
        Solved::Unknown(reason) => {
            complain(&format!("unknown: {reason}"));
            Ok(3)
        }
    }
}

fn text(path: &Path) -> std::io::Result<String> {
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        return Ok(text);
    }
    std::fs::read_to_string(path)
}

fn solve(
    problem: Problem,
    backend: &str,
    rounds: Option<usize>,
    options: &Options,
    budget: &Budget,
) -> Result<Solved> {
    let prune_options = PruneOptions {
        rounds,
        ..PruneOptions::default()
    };
    let mut stats = PruneStats::default();
    let pruned = match prune(problem, prune_options, &mut stats, budget, &mut Silent) {
        Ok(Outcome::Pruned(pruned)) => pruned,
        Ok(Outcome::Contradiction(_)) => return Ok(Solved::Core(Vec::new())),
        Err(reason) => return Ok(Solved::Unknown(reason)),
    };
    let mut backend = kingsnake_encodings::backend(backend, options)?;
    if let Some(why) = backend.refuses(Origin::Other) {
        bail!(
            "{} cannot decide this: {why}; use another back end",
            backend.name()
        );
    }
    let (decision, _) = backend.decide(pruned.question(), budget, &mut Silent)?;
    Ok(match decision {
        Decision::Choices(choices) => Solved::Model(model(&pruned, &choices)),
        Decision::Core(core) => Solved::Core(variables(&pruned, &core)),
        Decision::Unknown(reason) => Solved::Unknown(reason),
    })
}

fn model(pruned: &Pruned, choices: &[Side]) -> Vec<bool> {
    let value = |of: &Variable| match *of {
        Variable::Settled(value) => value,
        Variable::Open(at) => choices.get(at as usize) == Some(&Side::Either),
    };
    pruned.variables.iter().map(value).collect()
}

fn variables(pruned: &Pruned, core: &[u32]) -> Vec<u32> {
    let all = pruned.variables.iter().enumerate();
    let named = all.filter(|(_, of)| matches!(of, Variable::Open(at) if core.contains(at)));
    named.map(|(variable, _)| variable as u32).collect()
}

/// A no that another back end confirms on the whole instance, with its core.
fn confirmed(gnf: &Gnf, backend: &str, options: &Options, budget: &Budget) -> Result<Solved> {
    // The first two of the table decide any question.
    let other = BACKENDS.iter().find(|&&name| name != backend);
    let other = other.copied().unwrap_or(BACKENDS[0]);
    match solve(gnf.problem(), other, Some(0), options, budget)? {
        Solved::Model(_) => {
            bail!("internal error: {backend} says unsatisfiable, and {other} found a model")
        }
        solved => Ok(solved),
    }
}
