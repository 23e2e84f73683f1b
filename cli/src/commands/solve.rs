//! `kingsnake solve`: decides an instance in `MonoSAT`'s graph format, and checks the answer.
//!
//! A model is checked against the clauses and graphs of the file. Another back end confirms UNSAT, without pruning.

use std::io::Read;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use kingsnake_encodings::import::Gnf;
use kingsnake_encodings::{BACKENDS, BackendOptions};
use kingsnake_solver::budget::{Budget, StopReason};
use kingsnake_solver::decide::{DecideStats, Decision, Origin, Side};
use kingsnake_solver::problem::{Outcome, Problem, Pruned, prune};
use kingsnake_solver::progress::Silent;
use kingsnake_solver::prune::{PruneOptions, PruneStats, Variable};
use serde_json::{Value, json};

use crate::args::{SolveArgs, SolveFormat};
use crate::json::{reason_kind, rounds, solver};
use crate::processor;
use crate::voice::{Voice, complain, say};

/// The answer in the instance's variables.
enum Solved {
    Model(Vec<bool>),
    /// Variables that cannot all be true.
    Core(Vec<u32>),
    Unknown(StopReason),
}

/// Statistics of the run.
#[derive(Default)]
struct Took {
    prune: PruneStats,
    n_open: usize,
    decide: Option<DecideStats>,
}

/// Decides the instance.
pub fn run(args: &SolveArgs, voice: Voice, start: Instant, budget: &Budget) -> Result<u8> {
    let name = args.instance.display();
    let text = text(&args.instance).with_context(|| format!("cannot read {name}"))?;
    let gnf = Gnf::read(&text).map_err(|error| anyhow!("{name}: {error}"))?;
    let rounds = args.no_prune.then_some(0);
    let options = BackendOptions {
        seed: args.seed,
        ..BackendOptions::default()
    };
    let mut took = Took::default();
    let solved = solve(
        gnf.problem(),
        &args.backend,
        rounds,
        &options,
        budget,
        &mut took,
    )?;
    let solved = match solved {
        Solved::Core(_) => confirmed(&gnf, &args.backend, &options, budget)?,
        Solved::Model(mut model) => {
            gnf.complete(&mut model);
            if let Err(why) = gnf.check(&model) {
                bail!(
                    "internal error: {} found a model that does not hold: {why}",
                    args.backend
                );
            }
            Solved::Model(model)
        }
        solved @ Solved::Unknown(_) => solved,
    };
    if args.json {
        let document = document(args, &solved, &took, start.elapsed().as_secs_f64());
        say(&format!("{document}\n"))?;
    } else if args.format == SolveFormat::Competition {
        say(&competition(&solved))?;
    } else {
        tell(&solved, voice)?;
    }
    Ok(match solved {
        Solved::Model(_) => 0,
        Solved::Core(_) => 1,
        Solved::Unknown(_) => 3,
    })
}

/// A model as signed numbers.
fn literals(model: &[bool]) -> Vec<i64> {
    let signed = |(at, &value): (usize, &bool)| {
        let number = at as i64 + 1;
        if value { number } else { -number }
    };
    model.iter().enumerate().map(signed).collect()
}

fn numbers(core: &[u32]) -> Vec<i64> {
    core.iter().map(|&it| i64::from(it) + 1).collect()
}

/// The answer as text.
fn tell(solved: &Solved, voice: Voice) -> Result<()> {
    let line = |word: &str, numbers: Vec<i64>| {
        if voice.quiet {
            return String::new();
        }
        let numbers = numbers.iter().map(|it| format!("{it} "));
        format!("{word} {}0\n", numbers.collect::<String>())
    };
    match solved {
        Solved::Model(model) => say(&format!("satisfiable\n{}", line("v", literals(model))))?,
        Solved::Core(core) => say(&format!("unsatisfiable\n{}", line("core", numbers(core))))?,
        Solved::Unknown(reason) => complain(&format!("unknown: {reason}")),
    }
    Ok(())
}

/// Literals in one `v` line.
const IN_A_LINE: usize = 16;

/// The answer as SAT solvers give it in competitions.
fn competition(solved: &Solved) -> String {
    let model = match solved {
        Solved::Model(model) => model,
        Solved::Core(_) => return "s UNSATISFIABLE\n".to_owned(),
        Solved::Unknown(reason) => return format!("c {reason}\ns UNKNOWN\n"),
    };
    let mut numbers = literals(model);
    numbers.push(0);
    let mut out = "s SATISFIABLE\n".to_owned();
    for some in numbers.chunks(IN_A_LINE) {
        let words: Vec<String> = some.iter().map(i64::to_string).collect();
        out.push_str(&format!("v {}\n", words.join(" ")));
    }
    out
}

/// The answer as JSON, with those fields of a check's document (docs/json.md) that apply to an instance.
fn document(args: &SolveArgs, solved: &Solved, took: &Took, seconds: f64) -> Value {
    let (verdict, reason) = match solved {
        Solved::Model(_) => ("satisfied", Value::Null),
        Solved::Core(_) => ("violated", Value::Null),
        Solved::Unknown(reason) => {
            let words = reason.to_string();
            (
                "unknown",
                json!({"kind": reason_kind(reason), "words": words}),
            )
        }
    };
    let decider = if took.decide.is_some() {
        "backend"
    } else {
        "prune"
    };
    let mut document = json!({
        "kingsnake": env!("CARGO_PKG_VERSION"),
        "verdict": verdict,
        "reason": reason,
        "decider": decider,
        "command": command(args),
        "plan": {"backend": args.backend, "seed": args.seed.to_string()},
        "stats": {
            "seconds": seconds,
            "cpu_seconds": processor::seconds(),
            "open_constraints": took.n_open,
            "rounds": rounds(&took.prune),
            "solver": took.decide.as_ref().map(solver),
        },
    });
    match solved {
        Solved::Model(model) => document["model"] = json!(literals(model)),
        Solved::Core(core) => document["core"] = json!(numbers(core)),
        Solved::Unknown(_) => {}
    }
    document
}

/// A command line that reproduces the run.
fn command(args: &SolveArgs) -> String {
    let (instance, seed) = (args.instance.display().to_string(), args.seed.to_string());
    let mut words = vec!["solve".to_owned(), instance, "--backend".to_owned()];
    words.extend([args.backend.clone(), "--seed".to_owned(), seed]);
    if args.no_prune {
        words.push("--no-prune".to_owned());
    }
    kingsnake_studies::command(&words)
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
    options: &BackendOptions,
    budget: &Budget,
    took: &mut Took,
) -> Result<Solved> {
    let prune_options = PruneOptions {
        rounds,
        ..PruneOptions::default()
    };
    let pruned = match prune(problem, prune_options, &mut took.prune, budget, &mut Silent) {
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
    took.n_open = pruned.constraints.len();
    if pruned.constraints.is_empty() {
        return Ok(Solved::Model(model(&pruned, &[])));
    }
    let (decision, stats) = backend.decide(pruned.question(), budget, &mut Silent)?;
    took.decide = Some(stats);
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

/// UNSAT confirmed by another back end on the whole instance, with its core.
fn confirmed(
    gnf: &Gnf,
    backend: &str,
    options: &BackendOptions,
    budget: &Budget,
) -> Result<Solved> {
    // The first two of the table decide any question.
    let other = BACKENDS.iter().find(|&&name| name != backend);
    let other = other.copied().unwrap_or(BACKENDS[0]);
    let took = &mut Took::default();
    match solve(gnf.problem(), other, Some(0), options, budget, took)? {
        Solved::Model(_) => {
            bail!("internal error: {backend} says unsatisfiable, and {other} found a model")
        }
        solved => Ok(solved),
    }
}
