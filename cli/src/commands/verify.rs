//! `kingsnake verify`: replays a certificate against a history, or judges a counterexample again. Uses nothing of the search that
//! found it.

use std::io::Read;

use anyhow::{Context, Result, ensure};
use kingsnake_solver::budget::Budget;
use kingsnake_solver::certify::linearizable::{self, Demand, moments};
use kingsnake_solver::certify::order;
use kingsnake_solver::level::Level;

use super::verify_counterexample;
use crate::answer::base_name;
use crate::args::{FailedCasArg, LevelArg, VerifyArgs};
use crate::assumptions::assumed;
use crate::certificate;
use crate::counterexample;
use crate::input::load;
use crate::limits::is_stdio;
use crate::plan::{clocked, one_level, promise, spec};
use crate::voice::{Voice, count, printable, say};

/// The certificate, from stdin for `-`.
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

/// Replays, and says whether the certificate holds.
pub fn run(args: &VerifyArgs, voice: Voice, budget: &Budget) -> Result<u8> {
    let mut parsed = assumed(load(&args.history, &args.read, budget)?, &args.assume)?;
    let bytes = certificate_bytes(args)?;
    let shown = args.certificate.display();
    let document = counterexample::document(&bytes).with_context(|| shown.to_string())?;
    let own_levels = args.level.level == Some(LevelArg::One(Level::AsRecorded));
    let claims_own_levels = || match &document {
        Some(document) => document["level"]["name"] == Level::AsRecorded.name(),
        None => certificate::is_mixed(&args.certificate),
    };
    if own_levels || args.level.level.is_none() && claims_own_levels() {
        let map = args.level.isolation_map.clone().unwrap_or_default();
        map.apply(&mut parsed.history)?;
    }
    voice.warn_each(&parsed.warnings);
    let history = &parsed.history;
    if let Some(document) = &document {
        return verify_counterexample::run(args, document, history, voice, budget);
    }
    let claim = certificate::read(&args.certificate, &bytes, history)?;
    if !claim.same_history {
        voice.warn(&format!(
            "{} was made for another history; it is replayed against this one all the same",
            args.certificate.display()
        ));
    }
    let level = &args.level;
    let demanded = match (level.level, level.session_order, level.real_time) {
        (None, None, None) => clocked(claim.spec, level)?,
        _ if own_levels => spec(Level::AsRecorded, level)?,
        _ => spec(one_level(level)?, level)?,
    };
    let asked = level.level == Some(LevelArg::One(Level::Linearizable));
    let is_linearizable = match (level.level, level.session_order, level.real_time) {
        (None, None, None) => claim.moments.is_some(),
        _ => asked,
    };
    let held = if is_linearizable {
        let order = claim.certificate.order.iter().map(|point| point.txn);
        let order = claim.moments.unwrap_or_else(|| moments(history, order));
        let demand = Demand {
            drift: demanded.real_time.map_or(0, |it| it.drift),
            refusals_count: claim.refusals_count || level.failed_cas == Some(FailedCasArg::Differs),
        };
        linearizable::replay(history, demand, &order)
    } else {
        order::verify(history, demanded, &claim.certificate)
    };
    let promised = if is_linearizable {
        Level::Linearizable
    } else {
        Level::Ser
    };
    let subject = format!(
        "{} ({}: {})",
        promise(promised, demanded),
        base_name(&args.history),
        count(history.n_txns(), "transaction")
    );
    let (words, status) = match held {
        Ok(()) => (
            format!("{}: {subject}", voice.paint.good("certificate holds")),
            0,
        ),
        Err(why) => {
            let verdict = voice.paint.bad("certificate does not hold");
            (
                format!("{verdict}: {subject}\n{}", printable(&why.to_string())),
                1,
            )
        }
    };
    say(&format!("{words}\n")).context("cannot write to stdout")?;
    std::mem::forget(parsed); // The process ends here.
    Ok(status)
}
