//! `kingsnake verify` on the JSON of a violated verdict: judges its counterexample again by the history alone.

use anyhow::{Context, Result, bail};
use kingsnake_solver::budget::Budget;
use kingsnake_solver::certify::Refusal;
use kingsnake_solver::certify::counterexample::check_counterexample;
use kingsnake_solver::certify::linearizable::{Demand, stuck};
use kingsnake_solver::level::{Level, Spec};
use kingsnake_solver::linearizable::MOST_CONFIGURATIONS;
use kingsnake_solver::model::History;
use kingsnake_solver::verdict::Counterexample;
use serde_json::Value;

use crate::answer::base_name;
use crate::args::{FailedCasArg, LevelArg, LevelArgs, VerifyArgs};
use crate::counterexample::{NameReader, level};
use crate::limits::Stopped;
use crate::plan::{clocked, promise, spec};
use crate::voice::{Voice, count, printable, say};

/// Judges the counterexample of a document, and says whether it holds.
pub fn run(
    args: &VerifyArgs,
    document: &Value,
    history: &History,
    voice: Voice,
    budget: &Budget,
) -> Result<u8> {
    let shown = || args.certificate.display().to_string();
    let (level, spec) = demanded(document, &args.level).with_context(shown)?;
    let Some(counterexample) = document.get("counterexample") else {
        bail!("{}: the document has no counterexample", shown());
    };
    let names = NameReader::new(history);
    let counterexample = names.counterexample(counterexample).with_context(shown)?;
    let held = judge(args, level, spec, history, &counterexample, budget);
    let promised = promise(level, spec);
    let subject = format!(
        "{promised} ({}: {})",
        base_name(&args.history),
        count(history.n_txns(), "transaction")
    );
    let (words, status) = match held {
        Ok(()) => {
            let verdict = voice.paint.good("counterexample holds");
            (format!("{verdict}: violated, {subject}"), 0)
        }
        Err(Refusal::Stopped(reason)) => return Err(Stopped(reason).into()),
        Err(why) => {
            let verdict = voice.paint.bad("counterexample does not hold");
            let why = printable(&why.to_string());
            (format!("{verdict}: {subject}\n{why}"), 1)
        }
    };
    say(&format!("{words}\n")).context("cannot write to stdout")?;
    Ok(status)
}

fn judge(
    args: &VerifyArgs,
    level: Level,
    spec: Spec,
    history: &History,
    counterexample: &Counterexample,
    budget: &Budget,
) -> Result<(), Refusal> {
    match counterexample {
        Counterexample::Stuck(it) if level == Level::Linearizable => {
            let demand = Demand {
                drift: spec.real_time.map_or(0, |it| it.drift),
                refusals_count: args.level.failed_cas == Some(FailedCasArg::Differs),
            };
            stuck(history, demand, it.key, it.last, MOST_CONFIGURATIONS).map(|_| ())
        }
        _ => check_counterexample(history, spec, counterexample, budget),
    }
}

/// The level that the counterexample is held against: the one that was typed, or the document's.
fn demanded(document: &Value, typed: &LevelArgs) -> Result<(Level, Spec)> {
    let (claimed, claimed_spec) = level(document)?;
    let has_switches = typed.real_time.is_some() || typed.session_order.is_some();
    let asked = match typed.level {
        None | Some(LevelArg::Auto) if !has_switches => {
            return Ok((claimed, clocked(claimed_spec, typed)?));
        }
        None => claimed,
        Some(LevelArg::One(level)) => level,
        Some(_) => bail!("the counterexample is a proof about one level; name that one, or none"),
    };
    Ok((asked, spec(asked, typed)?))
}
