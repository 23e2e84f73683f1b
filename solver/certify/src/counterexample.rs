//! Checks a counterexample of any kind. If it has cases of outcomes, each is checked in the history of that case.

use super::Refusal;
use super::refutation::{check_broken, check_proof_within};
use kingsnake_history::budget::Budget;
use kingsnake_history::level::Spec;
use kingsnake_history::model::{History, Status};
use kingsnake_history::verdict::Counterexample;

/// Checks a counterexample, as long as the budget lasts.
pub fn check_counterexample(
    history: &History,
    spec: Spec,
    counterexample: &Counterexample,
    budget: &Budget,
) -> Result<(), Refusal> {
    match counterexample {
        Counterexample::Local(findings) => check_broken(history, spec, findings),
        Counterexample::Cyclic(proof) => check_proof_within(history, spec, proof, budget),
        Counterexample::Stuck(_) => Err(Refusal::Refutation("only registers get stuck".to_owned())),
        Counterexample::Recorded(_) => {
            let why = "what the database recorded is not what this level is about".to_owned();
            Err(Refusal::Refutation(why))
        }
        Counterexample::EitherWay {
            txn,
            lost,
            took_effect,
        } => {
            if txn.index() >= history.n_txns() || history.status(*txn) != Status::Unknown {
                let why = "cases of a transaction whose end is known".to_owned();
                return Err(Refusal::Refutation(why));
            }
            for (status, case) in [(Status::Aborted, lost), (Status::Committed, took_effect)] {
                check_counterexample(&history.with_status(*txn, status), spec, case, budget)?;
            }
            Ok(())
        }
    }
}
