//! A counterexample as plain lines: what was proved, without the words.

use std::fmt::Write;

use kingsnake_solver::model::{History, TxnId};
use kingsnake_solver::verdict::{
    Counterexample, Fact, Moment, Point, Split, Step, StepReason, Visit,
};

/// One line for each finding, step, split and choice; cases are indented.
pub fn sketch(history: &History, counterexample: &Counterexample) -> String {
    let mut out = String::new();
    match counterexample {
        Counterexample::Local(findings) => {
            for finding in findings {
                let txn = history.txn_name(finding.txn);
                let _ = writeln!(out, "{txn} operation {}: {:?}", finding.op, finding.anomaly);
            }
        }
        Counterexample::EitherWay {
            txn,
            lost,
            took_effect,
        } => {
            for (what, case) in [("lost", lost), ("took effect", took_effect)] {
                let _ = writeln!(out, "if {} {what}:", history.txn_name(*txn));
                for line in sketch(history, case).lines() {
                    let _ = writeln!(out, "  {line}");
                }
            }
        }
        Counterexample::Cyclic(proof) => {
            let mut depth = 0;
            for visit in proof.visits() {
                let indent = "  ".repeat(depth);
                let line = match visit {
                    Visit::Cycle(steps) => cycle(history, steps, &indent),
                    Visit::Split(it) => format!("{indent}split of {}", case(history, it)),
                    Visit::Case(it) => {
                        depth += 1;
                        format!("{indent}case {}", case(history, it))
                    }
                    Visit::Choice(reader, _, key, cases) => format!(
                        "{indent}choice of what {} read of {}: {} cases",
                        history.txn_name(reader),
                        history.key_name(key),
                        cases.len()
                    ),
                    Visit::Aggregate(reader, nth, _) => {
                        format!("{indent}aggregate {nth} of {}", history.txn_name(reader))
                    }
                    Visit::Source(it) => {
                        depth += 1;
                        format!("{indent}case from {}", writer(history, it.writer))
                    }
                    Visit::EndOfCase(_) | Visit::EndOfSource(_) => {
                        depth -= 1;
                        continue;
                    }
                };
                let _ = writeln!(out, "{}", line.trim_end());
            }
        }
        Counterexample::Recorded(why) => {
            let _ = writeln!(out, "{why:?}");
        }
        Counterexample::Stuck(stuck) => {
            let _ = writeln!(out, "stuck at {}", history.txn_name(stuck.last));
        }
    }
    out
}

fn case(history: &History, it: Split) -> String {
    let (one, other) = (history.txn_name(it.one), history.txn_name(it.other));
    format!("{one} ≪ {other} of {}", history.key_name(it.key))
}

fn cycle(history: &History, steps: &[Step], indent: &str) -> String {
    let mut out = String::new();
    for step in steps {
        let (from, to) = (point(history, step.from), point(history, step.to));
        let _ = writeln!(
            out,
            "{indent}{from} → {to}: {}",
            reason(history, step.reason)
        );
    }
    out
}

fn point(history: &History, it: Point) -> String {
    let name = history.txn_name(it.txn);
    match it.moment {
        Moment::Whole => name,
        Moment::Begin => format!("{name} begin"),
        Moment::Commit => format!("{name} commit"),
    }
}

fn writer(history: &History, it: Option<TxnId>) -> String {
    it.map_or("the initial state".to_owned(), |txn| history.txn_name(txn))
}

fn fact(it: Fact) -> &'static str {
    match it {
        Fact::Initial => "initial",
        Fact::Run => "run",
        Fact::Given => "given",
        Fact::Assumed => "assumed",
    }
}

fn reason(history: &History, reason: StepReason) -> String {
    match reason {
        StepReason::Begin => "begin".to_owned(),
        StepReason::Session => "so".to_owned(),
        StepReason::RealTime => "rt".to_owned(),
        StepReason::Stated { edge } => format!("given {edge}"),
        StepReason::Wr { key, .. } => format!("wr {}", history.key_name(key)),
        StepReason::Ww { key, fact: why } => format!("ww {} {}", history.key_name(key), fact(why)),
        StepReason::Rw {
            key,
            writer: it,
            fact: why,
        } => format!(
            "rw {} of {} {}",
            history.key_name(key),
            writer(history, it),
            fact(why)
        ),
        StepReason::Vis { reader, key } => {
            format!(
                "vis {} to {}",
                history.key_name(key),
                history.txn_name(reader)
            )
        }
    }
}
