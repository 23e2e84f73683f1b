//! `kingsnake verify`: replays a certificate against a history, or judges a counterexample again. Uses nothing of the search that
//! found it.

use std::io::Read;

use anyhow::{Context, Result, bail, ensure};
use kingsnake_evidence::{EvidenceClaim, promised_name, read};
use kingsnake_solver::budget::Budget;
use kingsnake_solver::certify::Refusal;
use kingsnake_solver::level::{Level, Model};
use kingsnake_solver::promise::Promise;

use crate::answer::base_name;
use crate::args::{FailedCasArg, LevelArg, LevelArgs, OnOff, VerifyArgs};
use crate::assumptions::assumed;
use crate::input::load;
use crate::limits::{self, Stopped, is_stdio};
use crate::plan::{clocked, spec};
use crate::voice::{Voice, count, printable, say};

/// The certificate; `-` is stdin.
fn certificate_bytes(args: &VerifyArgs) -> Result<Vec<u8>> {
    let path = &args.certificate;
    let bytes = if is_stdio(path) {
        ensure!(
            !is_stdio(&args.history),
            "the history and the certificate cannot both come from stdin"
        );
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    bytes.with_context(|| path.display().to_string())
}

/// Checks a claim again, and prints whether it holds.
pub fn run(args: &VerifyArgs, voice: Voice, budget: &Budget) -> Result<u8> {
    let mut parsed = assumed(load(&args.history, &args.read, budget)?, &args.assume)?;
    let bytes = certificate_bytes(args)?;
    let shown = || args.certificate.display().to_string();
    let own_levels = match args.level.level {
        None => promised_name(&bytes).is_some_and(|it| it == Model::Mixed.name()),
        Some(level) => level == LevelArg::One(Level::AsRecorded),
    };
    if own_levels {
        let map = args.level.isolation_map.clone().unwrap_or_default();
        map.apply(&mut parsed.history)?;
    }
    voice.warn_each(&parsed.warnings);
    let history = &parsed.history;
    let claim = read(history, &bytes).with_context(shown)?;
    if !claim.same_history {
        voice.warn(&format!(
            "{} was made for another history; it is still replayed against this one",
            shown()
        ));
    }
    let promise = demanded(&claim, &args.level).with_context(shown)?;
    let held = claim.check_at(history, &promise, budget);
    let (kind, claimed) = if claim.verdict.is_violated() {
        ("counterexample", "violated, ")
    } else {
        ("certificate", "")
    };
    let subject = format!(
        "{promise} ({}: {})",
        base_name(&args.history),
        count(history.n_txns(), "transaction")
    );
    let (words, status) = match held {
        Ok(()) => {
            let verdict = voice.paint.good(&format!("{kind} holds"));
            (format!("{verdict}: {claimed}{subject}"), 0)
        }
        Err(Refusal::Stopped(reason)) => return Err(Stopped(reason).into()),
        Err(why) => {
            let verdict = voice.paint.bad(&format!("{kind} does not hold"));
            let why = printable(&why.to_string());
            (format!("{verdict}: {subject}\n{why}"), 1)
        }
    };
    say(&format!("{words}\n")).context("cannot write to stdout")?;
    limits::let_go(parsed);
    Ok(status)
}

/// The promise that the claim is checked against: as typed, or as in the file.
fn demanded(claim: &EvidenceClaim, typed: &LevelArgs) -> Result<Promise> {
    let refusals_count =
        claim.promise.refusals_count() || typed.failed_cas == Some(FailedCasArg::Differs);
    if let Some(asked) = typed.level {
        let Some(level) = asked.one() else {
            bail!("a claim is about one level; name that one, or none");
        };
        return Ok(level.promise(spec(level, typed)?, refusals_count));
    }
    let mut promised = claim.promise.spec();
    if let Some(switch) = typed.session_order {
        promised.session_order = switch == OnOff::On;
    }
    if let Some(switch) = typed.real_time {
        let strict = promised
            .real_time
            .unwrap_or(kingsnake_solver::level::RealTime::STRICT);
        promised.real_time = (switch == OnOff::On).then_some(strict);
    }
    match &claim.promise {
        Promise::Level(_) => Ok(Promise::Level(clocked(promised, typed)?)),
        Promise::Linearizable(_) => {
            let promised = clocked(promised, typed)?;
            Ok(Level::Linearizable.promise(promised, refusals_count))
        }
        recorded => Ok(recorded.clone()),
    }
}
