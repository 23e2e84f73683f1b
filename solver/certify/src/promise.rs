//! Checks the evidence for any promise: the one place where an order is replayed and a counterexample is judged.

use kingsnake_history::adya::Refutation;
use kingsnake_history::budget::Budget;
use kingsnake_history::model::{History, TxnId};
use kingsnake_history::promise::Promise;
use kingsnake_history::verdict::{Certificate, Counterexample};

use crate::counterexample::check_counterexample;
use crate::linearizable::{MOST_CONFIGURATIONS, moments, replay, stuck};
use crate::{Refusal, adya, along, order};

/// Checks that a certificate proves the promise kept.
pub fn verify(
    history: &History,
    promise: &Promise,
    certificate: &Certificate,
) -> Result<(), Refusal> {
    let txns = || certificate.order.iter().map(|point| point.txn);
    if txns().any(|txn| txn.index() >= history.n_txns()) {
        let why = "the order names a transaction that is not in the history".to_owned();
        return Err(Refusal::Order(why));
    }
    match promise {
        Promise::Level(spec) => order::verify(history, *spec, certificate),
        Promise::Recorded(level) => {
            let order: Vec<TxnId> = txns().collect();
            adya::check_order(history, *level, &order)
        }
        Promise::Along(expected) => {
            let order: Vec<TxnId> = txns().collect();
            along::check_order(history, expected, &order)
        }
        Promise::Linearizable(options) => replay(history, *options, &moments(history, txns())),
    }
}

/// Checks that a counterexample proves the promise broken, as long as the budget lasts.
pub fn refute(
    history: &History,
    promise: &Promise,
    counterexample: &Counterexample,
    budget: &Budget,
) -> Result<(), Refusal> {
    match (promise, counterexample) {
        (Promise::Linearizable(options), Counterexample::Stuck(it)) => {
            stuck(history, *options, it.key, it.last, MOST_CONFIGURATIONS).map(|_| ())
        }
        (Promise::Level(_) | Promise::Linearizable(_), _) => {
            check_counterexample(history, promise.spec(), counterexample, budget)
        }
        (
            Promise::Along(expected),
            Counterexample::Recorded(Refutation::Order { order, found }),
        ) => along::check_disagreement(history, expected, order, found),
        (Promise::Recorded(level), Counterexample::Recorded(why)) => {
            adya::check_refutation(history, *level, why)
        }
        _ => {
            let why = "only what the database recorded counts here".to_owned();
            Err(Refusal::Refutation(why))
        }
    }
}
