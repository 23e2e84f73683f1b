//! `auto`: which levels a history satisfies. Reads are resolved once, levels that differ only in the clock share their
//! graph, and the lattice of levels (docs/theory.md) implies most answers from a few.
//!
//! An implied answer is checked like any other: an order is replayed at the weaker level, a proof
//! is derived again at the stronger one.

use std::time::Duration;

use crate::budget::{Budget, StopReason};
use crate::certify::order_sources::{needs_sources, replay_weaker};
use crate::certify::{self, Refusal};
use crate::check::{CheckError, CheckStats, Decider, Engines, Report, Techniques, check_on};
use crate::context::Context;
use crate::level::{Level, Model, Spec};
use crate::model::{History, Status};
use crate::phases::{self, Stop};
use crate::progress::{Progress, ProgressEvent};
use crate::verdict::{
    Certificate, Counterexample, Finding, Moment, Point, Proof, Step, StepReason, Verdict,
};

/// A level to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Its name.
    pub level: Level,
    /// Its ingredients.
    pub spec: Spec,
}

impl Asked {
    /// The name, with the switch if the name alone would mean session order and this does not: each label is unambiguous.
    pub fn label(&self) -> &'static str {
        let default = self.level.spec(None).map(|it| it.session_order);
        let is_default = default == Some(self.spec.session_order);
        match self.level {
            level if is_default => level.name(),
            Level::Ser => "ser --session-order off",
            Level::Gsi => "gsi --session-order off",
            Level::Si => "si --session-order off",
            Level::Psi => "psi --session-order off",
            Level::Pc => "pc --session-order off",
            Level::Cc => "cc --session-order off",
            Level::Ra => "ra --session-order off",
            Level::Rc => "rc --session-order off",
            level => level.name(),
        }
    }
}

/// The levels by name. A level whose name speaks of sessions or of strength is asked with session order, every other one without it, the
/// weak ones like serializability; all with it, or none, if so told.
pub fn levels(session_order: Option<bool>) -> Vec<Asked> {
    let all = [
        (Level::StrictSer, true),
        (Level::StrongSessionSer, true),
        (Level::Ser, false),
        (Level::StrongSi, true),
        (Level::StrongSessionSi, true),
        (Level::Gsi, false),
        (Level::Si, false),
        (Level::Psi, false),
        (Level::Pc, false),
        (Level::Cc, false),
        (Level::Ra, false),
        (Level::RcSo, true),
        (Level::Rc, false),
    ];
    let spec = |(level, by_session): (Level, bool)| {
        let spec = level.spec(Some(session_order.unwrap_or(by_session)))?;
        Some(Asked { level, spec })
    };
    all.into_iter().filter_map(spec).collect()
}

/// Answers for every level, in the order in which they are asked for; `None` where a level looks at the clock and the history has no
/// times.
///
/// One hard level must not take the time of the others: each check gets an equal share of the time that is left, and never more than
/// `per_level`.
pub fn auto(
    history: &History,
    asked: &[Asked],
    techniques: &Techniques,
    engines: &mut Engines<'_>,
    (budget, per_level): (&Budget, Option<Duration>),
    progress: &mut dyn Progress,
) -> Result<Vec<Option<Report>>, CheckError> {
    let mut shared = match phases::share(history, &mut Context::new(budget, progress)) {
        Ok(shared) => Some(shared),
        // Each level tries what may have taken effect.
        Err(Stop::Error(CheckError::Resolve(error))) if error.unsettled().is_some() => None,
        Err(Stop::Budget(reason)) => {
            let stopped = |it: &Asked| Some(stopped(it.spec, reason.clone()));
            return Ok(asked.iter().map(stopped).collect());
        }
        Err(Stop::Error(error)) => return Err(error),
    };
    let lacks_times = |it: &Asked| it.spec.real_time.is_some() && !history.has_times();
    let mut answers: Vec<Option<Report>> = vec![None; asked.len()];
    for at in turns(asked) {
        if answers[at].is_some() || lacks_times(&asked[at]) {
            continue;
        }
        let spec = asked[at].spec;
        let n_open = answers.iter().filter(|it| it.is_none()).count();
        let own = share(budget, per_level, n_open);
        progress.event(ProgressEvent::Asking(asked[at].label()));
        let lent = engines.lend();
        let report = check_on(
            history,
            shared.as_mut(),
            spec,
            techniques,
            lent,
            &own,
            progress,
        );
        let report = report?;
        let was_open: Vec<bool> = answers.iter().map(Option::is_none).collect();
        imply(history, asked, at, &report.verdict, &mut answers)?;
        answers[at] = Some(report);
        for (i, answer) in answers.iter().enumerate() {
            if let Some(answer) = answer.as_ref().filter(|_| was_open[i]) {
                progress.event(ProgressEvent::Answered {
                    level: asked[i].label(),
                    verdict: answer.verdict.word(),
                });
            }
        }
        let kind = |spec: Spec| (spec.model, spec.session_order);
        let mut open = asked.iter().zip(&answers).filter(|it| it.1.is_none());
        if !open.any(|(it, _)| kind(it.spec) == kind(spec))
            && let Some(shared) = &mut shared
        {
            shared.forget(spec);
        }
    }
    Ok(answers)
}

/// The budget of the next of this many open levels.
fn share(budget: &Budget, per_level: Option<Duration>, n_open: usize) -> Budget {
    let equal = budget.remaining().map(|left| left / n_open.max(1) as u32);
    match [equal, per_level].into_iter().flatten().min() {
        Some(limit) => budget.within(limit),
        None => budget.clone(),
    }
}

/// The report of a check whose budget ended before it began.
fn stopped(spec: Spec, reason: StopReason) -> Report {
    Report {
        verdict: Verdict::Unknown(reason),
        spec,
        decider: Decider::None,
        stats: CheckStats::default(),
    }
}

/// Levels with session order first: sessions are chains, along which reachability is linear. Of them, and then of the
/// others, the strongest first, since good databases satisfy them; a broken one's proof often holds at the weaker ones, too.
fn turns(asked: &[Asked]) -> Vec<usize> {
    let n_implied = |at: usize| {
        let own = asked[at].spec;
        asked.iter().filter(|it| own.implies(it.spec)).count()
    };
    let mut turns: Vec<usize> = (0..asked.len()).collect();
    turns.sort_by_key(|&at| {
        let is_chained = asked[at].spec.session_order;
        (!is_chained, std::cmp::Reverse(n_implied(at)))
    });
    turns
}

/// Records what a verdict implies for the open levels.
fn imply(
    history: &History,
    asked: &[Asked],
    from: usize,
    verdict: &Verdict,
    answers: &mut [Option<Report>],
) -> Result<(), CheckError> {
    let own = asked[from];
    for (it, answer) in asked.iter().zip(answers) {
        let lacks_times = it.spec.real_time.is_some() && !history.has_times();
        if answer.is_some() || it == &own || lacks_times {
            continue;
        }
        let verdict = match verdict {
            Verdict::Satisfied(order) if own.spec.implies(it.spec) => {
                let strong = (own.spec, order);
                let mut order = order_at(it.spec.model, order);
                let holds = if needs_sources(it.spec.model) && !needs_sources(own.spec.model) {
                    replay_weaker(history, strong, it.spec).map(|sources| order.sources = sources)
                } else {
                    certify::order::replay(history, it.spec, &order)
                };
                holds.map(|()| Verdict::Satisfied(order))
            }
            // A step of visibility is not valid in a proof at the stronger levels, and a proof of whole transactions is
            // not one of begins and commits; those levels are checked before.
            Verdict::Violated(counterexample)
                if it.spec.implies(own.spec) && Model::TIMED.contains(&own.spec.model) =>
            {
                refuted_at(history, it.spec, counterexample).map(Verdict::Violated)
            }
            // The proof may not use what the weaker level lacks.
            Verdict::Violated(counterexample) => {
                match refuted_at(history, it.spec, counterexample) {
                    Ok(counterexample) => Ok(Verdict::Violated(counterexample)),
                    Err(_) => continue,
                }
            }
            _ => continue,
        };
        let verdict = verdict.map_err(|why| CheckError::Uncertified {
            decider: "the lattice",
            answer: it.level.name(),
            why,
        })?;
        *answer = Some(Report {
            verdict,
            spec: it.spec,
            decider: Decider::Implied(own.level),
            stats: CheckStats::default(),
        });
    }
    Ok(())
}

/// An order at a model: a serial one lets each transaction commit as soon as it has begun.
fn order_at(model: Model, certificate: &Certificate) -> Certificate {
    let halves = |&Point { txn, moment }: &Point| {
        match (model, moment) {
            (whole, Moment::Begin) if !whole.has_begin() => [None, None],
            (whole, Moment::Commit) if !whole.has_begin() => [Some(Moment::Whole), None],
            (Model::Si | Model::Pc, Moment::Whole) => [Some(Moment::Begin), Some(Moment::Commit)],
            _ => [Some(moment), None],
        }
        .into_iter()
        .flatten()
        .map(move |moment| Point { txn, moment })
    };
    Certificate {
        order: certificate.order.iter().flat_map(halves).collect(),
        sources: certificate.sources.clone(),
    }
}

fn refuted_at(
    history: &History,
    spec: Spec,
    counterexample: &Counterexample,
) -> Result<Counterexample, Refusal> {
    match counterexample {
        Counterexample::Local(findings) => {
            let breaks = |it: &&Finding| it.breaks(spec.model_of(history, it.txn));
            let findings: Vec<Finding> = findings.iter().filter(breaks).cloned().collect();
            if findings.is_empty() {
                let why = "what was found is allowed at this level".to_owned();
                return Err(Refusal::Refutation(why));
            }
            certify::refutation::check_findings(history, &findings)?;
            Ok(Counterexample::Local(findings))
        }
        Counterexample::Cyclic(proof) => {
            let proof = proof_at(spec.model, proof);
            certify::refutation::check_proof(history, spec, &proof)?;
            Ok(Counterexample::Cyclic(proof))
        }
        Counterexample::Stuck(_) | Counterexample::Recorded(_) => {
            let why = "it is not about what clients saw of transactions".to_owned();
            Err(Refusal::Refutation(why))
        }
        Counterexample::EitherWay {
            txn,
            lost,
            took_effect,
        } => {
            let at = |status, case| refuted_at(&history.with_status(*txn, status), spec, case);
            Ok(Counterexample::EitherWay {
                txn: *txn,
                lost: Box::new(at(Status::Aborted, lost)?),
                took_effect: Box::new(at(Status::Committed, took_effect)?),
            })
        }
    }
}

/// A proof at a model: where transactions are wholes, their begins and commits fall together.
fn proof_at(model: Model, proof: &Proof) -> Proof {
    match model {
        Model::Pc => return proof.clone(),
        Model::Si => {
            return proof.map_cycles(|steps| steps.iter().flat_map(installed).collect());
        }
        _ => {}
    }
    let whole = |point: Point| Point {
        moment: Moment::Whole,
        ..point
    };
    proof.map_cycles(|steps| {
        let kept = steps.iter().filter(|step| step.reason != StepReason::Begin);
        let steps = kept.map(|step| Step {
            from: whole(step.from),
            to: whole(step.to),
            reason: step.reason,
        });
        steps.collect()
    })
}

/// A step where versions are installed at begins: what ends at a writer's commit ends at its begin, which is before.
fn installed(step: &Step) -> impl Iterator<Item = Step> + use<> {
    let is_late = matches!(step.reason, StepReason::Ww { .. }) && step.to.moment == Moment::Commit;
    let begin = Point {
        moment: Moment::Begin,
        ..step.to
    };
    let (first, second) = if is_late {
        let begun = Step {
            from: begin,
            to: step.to,
            reason: StepReason::Begin,
        };
        (Step { to: begin, ..*step }, Some(begun))
    } else {
        (*step, None)
    };
    std::iter::once(first).chain(second)
}

/// Whether a level holds, if known.
pub fn holds(answer: Option<&Report>) -> Option<bool> {
    answer.and_then(|it| it.verdict.holds())
}

/// The levels that hold and that no other level that holds implies.
pub fn strongest(asked: &[Asked], answers: &[Option<Report>]) -> Vec<Asked> {
    let held = || {
        let both = asked.iter().zip(answers);
        both.filter(|(_, answer)| holds(answer.as_ref()) == Some(true))
            .map(|(it, _)| it)
    };
    held()
        .filter(|it| !held().any(|other| other != *it && other.spec.implies(it.spec)))
        .copied()
        .collect()
}
