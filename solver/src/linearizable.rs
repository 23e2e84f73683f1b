//! The level `linearizable`: runs the engines for registers, and has their answer checked again.

use kingsnake_certify::linearizable::{MOST_CONFIGURATIONS, stuck};
use kingsnake_certify::{refute, verify};
use kingsnake_history::promise::{Promise, RegisterOptions};
use kingsnake_linearizable::{RegisterEngine, check};

use crate::budget::{Budget, StopReason};
use crate::certify::Refusal;
use crate::context::Context;
use crate::model::{History, Status, TxnId};
use crate::progress::{Phase, Progress};
use crate::report::{CheckError, Decider, Report};
use crate::verdict::{Counterexample, Stuck, Verdict};

/// Checks that a history of operations on registers is linearizable.
pub fn check_linearizable(
    history: &History,
    options: RegisterOptions,
    budget: &Budget,
    progress: &mut dyn Progress,
) -> Result<Report, CheckError> {
    let promise = Promise::Linearizable(options);
    let mut context = Context::new(budget, progress);
    context.go_on(Phase::Decide);
    let (mut verdict, stats) = check(history, options, budget)?;
    context.stats.n_counted = stats.n_counted;
    context.stats.n_unknown_counted = stats.n_unknown_counted;
    context.stats.n_unknown_dropped = stats.n_unknown_dropped;
    let mut decider = match stats.engine {
        RegisterEngine::Zones => Decider::Zones,
        RegisterEngine::Search => Decider::Search,
    };
    context.go_on(Phase::Certify);
    let answer = verdict.word();
    let held = match &mut verdict {
        Verdict::Unknown(_) => Ok(()),
        Verdict::Satisfied(order) => verify(history, &promise, order),
        Verdict::Violated(Counterexample::Stuck(it)) => {
            it.concurrent = concurrent(history, options.drift, it);
            let possible = stuck(history, options, it.key, it.last, MOST_CONFIGURATIONS);
            possible.map(|possible| it.possible = possible)
        }
        Verdict::Violated(why) => refute(history, &promise, why, &Budget::unlimited()),
    };
    match (held, &verdict) {
        (Ok(()), _) => {}
        (Err(why @ Refusal::TooMany(_)), Verdict::Violated(Counterexample::Stuck(it))) => {
            let words = format!(
                "the search finds no order for key {}, but checking that again took {why}",
                history.key_name(it.key)
            );
            verdict = Verdict::Unknown(StopReason::Backend(words));
        }
        (Err(why), _) => {
            return Err(CheckError::Uncertified {
                decider: decider.name(),
                answer,
                why,
            });
        }
    }
    if matches!(verdict, Verdict::Unknown(_)) {
        decider = Decider::None;
    }
    Ok(Report {
        verdict,
        spec: promise.spec(),
        decider,
        stats: context.finish(),
    })
}

/// The operations on a key that had begun when the last ended, and had not ended before it began.
fn concurrent(history: &History, drift: u64, stuck: &Stuck) -> Vec<TxnId> {
    let window = |txn: TxnId| {
        let interval = history.interval(txn);
        let end = interval.commit.saturating_add_unsigned(drift);
        (interval.begin, end)
    };
    let (begin, end) = window(stuck.last);
    let is_concurrent = |&txn: &TxnId| {
        let (other_begin, other_end) = window(txn);
        let mut ops = history.ops(txn).iter();
        txn != stuck.last
            && ops.any(|op| op.key() == Some(stuck.key))
            && history.status(txn) != Status::Aborted
            && other_begin <= end
            && other_end >= begin
    };
    history.txns().filter(is_concurrent).collect()
}
