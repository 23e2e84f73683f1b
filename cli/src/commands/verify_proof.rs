//! `kingsnake verify-proof`: checks a proof independently of the solver; with a history, also that the proof is about it.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use kingsnake_encodings::proof::{ProofInstance, check, instance_path, same_question};
use kingsnake_solver::budget::Budget;
use kingsnake_solver::prune::Outcome;

use crate::answer::base_name;
use crate::args::VerifyProofArgs;
use crate::input::load;
use crate::plan::{isolation_map, questioned_level, spec, start_threads};
use crate::profile::techniques;
use crate::progress::Drawing;
use crate::question::question;
use crate::voice::{Voice, count, printable, say};

/// Checks, and prints whether the proof holds.
pub fn run(args: &VerifyProofArgs, voice: Voice, start: Instant, budget: &Budget) -> Result<u8> {
    start_threads(&args.limits)?;
    let cnf = args
        .cnf
        .clone()
        .unwrap_or_else(|| instance_path(&args.proof));
    let read = |path: &Path| {
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
    };
    let (instance, proof) = (read(&cnf)?, read(&args.proof)?);
    let checked = ProofInstance::read(&instance)
        .map_err(|what| format!("{}: {what}", cnf.display()))
        .and_then(|instance| match check(&instance, &proof) {
            Ok(checked) => Ok((instance, checked)),
            Err(refusal) => Err(refusal.to_string()),
        });
    let held = match checked {
        Ok((instance, checked)) => about(args, &instance, voice, start, budget)?.map(|()| checked),
        Err(what) => Err(what),
    };
    let subject = base_name(&args.proof);
    let (words, status) = match held {
        Ok(checked) => {
            let words = format!(
                "{}: {subject} ({} and {})",
                voice.paint.good("proof holds"),
                count(checked.cycles, "cycle"),
                count(checked.steps, "step")
            );
            (words, 0)
        }
        Err(why) => {
            let verdict = voice.paint.bad("proof does not hold");
            (format!("{verdict}: {subject}\n{}", printable(&why)), 1)
        }
    };
    say(&format!("{words}\n")).context("cannot write to stdout")?;
    Ok(status)
}

/// Whether the instance is about the history, if one was given.
fn about(
    args: &VerifyProofArgs,
    instance: &ProofInstance,
    voice: Voice,
    start: Instant,
    budget: &Budget,
) -> Result<Result<(), String>> {
    let Some(history) = &args.history else {
        return Ok(Ok(()));
    };
    let level = questioned_level(&args.level)?;
    let spec = spec(level, &args.level)?;
    let mut parsed = load(history, &args.read, budget)?;
    if let Some(map) = isolation_map(level, &args.level)? {
        map.apply(&mut parsed.history)?;
    }
    voice.warn_each(&parsed.warnings);
    let outcome = question(
        &parsed.history,
        spec,
        &techniques(&args.techniques),
        budget,
        &mut Drawing::new(start, voice.quiet).listener(),
    )?;
    Ok(match outcome {
        Outcome::Pruned(pruned) => {
            same_question(instance, &pruned.question()).map_err(|refusal| refusal.to_string())
        }
        Outcome::Contradiction(_) => {
            Err("pruning alone refutes this history, so nothing was asked".to_owned())
        }
    })
}
