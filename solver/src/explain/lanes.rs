//! A counterexample as a picture in data: sessions as lanes, and an arrow for each step. Drawing is left to others.

use rustc_hash::FxHashMap;

use super::involved::involved;
use super::words::Words;
use crate::certify::Meaning;
use crate::model::{History, SessionId, TxnId};
use crate::verdict::{Counterexample, Fact, Moment, Point, Proof, StepReason};

/// One step, to be drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrow {
    /// Where it starts.
    pub from: Point,
    /// Where it ends.
    pub to: Point,
    /// A few words: the kind of the step and its key.
    pub label: String,
    /// `begin`, `so`, `rt`, `wr`, `ww` or `rw`.
    pub kind: &'static str,
    /// The case that the step belongs to, counted from 1; 0 where there is only one.
    pub case: usize,
    /// Whether the step rests on what its case assumes.
    pub assumed: bool,
}

/// Sessions with the transactions involved, in order, and the arrows between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// The sessions.
    pub sessions: Vec<(SessionId, Vec<TxnId>)>,
    /// The arrows, case by case, in the order of the cycles.
    pub arrows: Vec<Arrow>,
    /// What each transaction is called in the story.
    pub labels: FxHashMap<TxnId, String>,
}

/// Lays a counterexample out.
pub fn lanes(history: &History, counterexample: &Counterexample) -> Lanes {
    let meaning = Meaning::of(history);
    let (txns, _) = involved(&meaning, counterexample);
    let words = Words::new(meaning, &txns);
    let mut sessions: Vec<(SessionId, Vec<TxnId>)> = Vec::new();
    for &txn in &txns {
        let session = history.session(txn);
        match sessions.last_mut() {
            Some((last, members)) if *last == session => members.push(txn),
            _ => sessions.push((session, vec![txn])),
        }
    }
    let mut arrows = Vec::new();
    match counterexample {
        Counterexample::Local(findings) => {
            for finding in findings {
                let Some((other, _)) = finding.other.filter(|&(txn, _)| txn != finding.txn) else {
                    continue;
                };
                if !txns.contains(&other) || !txns.contains(&finding.txn) {
                    continue;
                }
                let point = |txn| Point {
                    txn,
                    moment: Moment::Whole,
                };
                let key = words.labels.key(finding.key);
                arrows.push(Arrow {
                    from: point(other),
                    to: point(finding.txn),
                    label: format!("wr {key}"),
                    kind: "wr",
                    case: 0,
                    assumed: false,
                });
            }
        }
        Counterexample::Cyclic(proof) => {
            let mut case = usize::from(matches!(proof, Proof::Split { .. }));
            add_arrows(proof, &words, &mut case, &mut arrows);
        }
        Counterexample::Stuck(_) => {}
    }
    Lanes {
        sessions,
        arrows,
        labels: txns
            .iter()
            .map(|&txn| (txn, words.labels.txn(txn)))
            .collect(),
    }
}

fn add_arrows(proof: &Proof, words: &Words<'_>, case: &mut usize, arrows: &mut Vec<Arrow>) {
    match proof {
        Proof::Cycle(steps) => {
            for step in steps {
                let assumed = Fact::Assumed;
                let (kind, key, is_assumed) = match step.reason {
                    StepReason::Begin => ("begin", None, false),
                    StepReason::Session => ("so", None, false),
                    StepReason::RealTime => ("rt", None, false),
                    StepReason::Wr { key, .. } => ("wr", Some(key), false),
                    StepReason::Ww { key, fact } => ("ww", Some(key), fact == assumed),
                    StepReason::Rw { key, fact, .. } => ("rw", Some(key), fact == assumed),
                };
                let label = key.map_or_else(
                    || kind.to_owned(),
                    |key| format!("{kind} {}", words.labels.key(key)),
                );
                arrows.push(Arrow {
                    from: step.from,
                    to: step.to,
                    label,
                    kind,
                    case: *case,
                    assumed: is_assumed,
                });
            }
            *case += usize::from(*case > 0);
        }
        Proof::Split {
            one_first,
            other_first,
            ..
        } => {
            add_arrows(one_first, words, case, arrows);
            add_arrows(other_first, words, case, arrows);
        }
    }
}
