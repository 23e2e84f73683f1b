//! A file that claims a verdict: read, and checked against the history alone.

use kingsnake_certify::linearizable::{OperationMoment, replay};
use kingsnake_certify::{Refusal, refute, verify};
use kingsnake_history::adya::Refutation;
use kingsnake_history::budget::Budget;
use kingsnake_history::model::History;
use kingsnake_history::promise::{Along, Promise};
use kingsnake_history::verdict::{Counterexample, Verdict};
use serde_json::Value;

use crate::certificate::{header, read_certificate};
use crate::counterexample::read_counterexample;
use crate::level::read_level;
use crate::names::NameReader;
use crate::{Read, wrong};

/// The claim of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvidenceClaim {
    /// The promise.
    pub promise: Promise,
    /// Kept or broken.
    pub verdict: Verdict,
    /// Whether it was made for a history with the same transactions and operations, as far as the file states.
    pub same_history: bool,
    /// When each operation took effect, if the file states it.
    pub(crate) times: Vec<i64>,
}

impl EvidenceClaim {
    /// Checks the claim again, independently of the solver.
    pub fn check(&self, history: &History, budget: &Budget) -> Result<(), Refusal> {
        self.check_at(history, &self.promise, budget)
    }

    /// Checks the same evidence for another promise.
    pub fn check_at(
        &self,
        history: &History,
        promise: &Promise,
        budget: &Budget,
    ) -> Result<(), Refusal> {
        match (&self.verdict, promise) {
            (Verdict::Satisfied(order), Promise::Linearizable(options))
                if !self.times.is_empty() =>
            {
                let points = order.order.iter().zip(&self.times);
                let moments = points.map(|(point, &at)| OperationMoment { txn: point.txn, at });
                replay(history, *options, &moments.collect::<Vec<_>>())
            }
            (Verdict::Satisfied(order), _) => verify(history, promise, order),
            (Verdict::Violated(why), _) => refute(history, promise, why, budget),
            (Verdict::Unknown(reason), _) => Err(Refusal::Stopped(reason.clone())),
        }
    }
}

/// The JSON document of a verdict; `None` if it is no document, but perhaps a certificate.
fn document(bytes: &[u8]) -> Read<Option<Value>> {
    let document: Value = match serde_json::from_slice(bytes) {
        Ok(document) => document,
        Err(why) if why.to_string().starts_with("recursion limit") => {
            let why = format!("cases within cases, deeper than a JSON document is read: {why}");
            return Err(wrong(why));
        }
        Err(_) => return Ok(None),
    };
    let Some(verdict) = document.get("verdict") else {
        return Ok(None);
    };
    match verdict.as_str() {
        Some("violated") => Ok(Some(document)),
        Some("satisfied") => Err(wrong(
            "the document says satisfied; the order that shows it is what `check --certificate FILE` writes",
        )),
        _ => Err(wrong(format!(
            "the document says {verdict}; only \"violated\" can be judged again"
        ))),
    }
}

/// The model, level or kind of promise at the start of a file; some must be known before the rest is read.
pub fn promised_name(bytes: &[u8]) -> Option<String> {
    if let Ok(Some(document)) = document(bytes) {
        return document["level"]["model"].as_str().map(str::to_owned);
    }
    let text = std::str::from_utf8(bytes).ok()?;
    header(text).ok().map(|header| header.model)
}

/// Reads a certificate or a counterexample for this history.
pub fn read(history: &History, bytes: &[u8]) -> Read<EvidenceClaim> {
    let Some(document) = document(bytes)? else {
        let text = std::str::from_utf8(bytes);
        let text = text.map_err(|_| wrong("not UTF-8, so not a certificate"))?;
        return read_certificate(text, history);
    };
    let mut promise = read_level(&document["level"])?;
    let Some(value) = document.get("counterexample").filter(|it| !it.is_null()) else {
        return Err(wrong("the document has no counterexample"));
    };
    let counterexample = read_counterexample(&NameReader::new(history), value)?;
    if let (
        Promise::Along(Along::Order(expected)),
        Counterexample::Recorded(Refutation::Order { order, .. }),
    ) = (&mut promise, &counterexample)
    {
        expected.clone_from(order);
    }
    Ok(EvidenceClaim {
        promise,
        verdict: Verdict::Violated(counterexample),
        same_history: true,
        times: Vec::new(),
    })
}
