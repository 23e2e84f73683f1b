//! The check on a given certificate: versions, reads, predicates, then the cycles that the level forbids, worst first.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};

use kingsnake_certify::adya as certify;
use kingsnake_certify::{Refusal, refute, verify};
use kingsnake_history::adya::{AdyaStep, Mismatch, Phenomenon, PlLevel, Refutation};
use kingsnake_history::budget::Budget;
use kingsnake_history::model::{History, TxnId};
use kingsnake_history::promise::Promise;
use kingsnake_history::verdict::{Certificate, Counterexample, Finding, Verdict};

use crate::error::AdyaError;
use crate::explain::Sources;
use crate::graph::{ANTI, EVERY, Edges, FLOW, Graph, ITEM, Link, WW};
use crate::predicates::predicate_edges;
use crate::query::Conditions;
use crate::reads::item_edges;
use crate::rules::{ExactRules, Rules};
use crate::snapshot::Snapshots;
use crate::sweep::doubtful;
use crate::versions::{NOBODY, Versions, duplicate_writes};
use crate::windows::Windows;

/// The size of a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordedStats {
    /// Number of transactions that count.
    pub n_counted: usize,
    /// Number of versions, without the initial ones.
    pub n_versions: usize,
    /// Number of dependencies found.
    pub n_edges: usize,
}

/// The answer, and the size of the certificate.
pub type PlAnswer = (Verdict, RecordedStats);

/// Checks a history at a level, on the version order and the snapshots that came with it.
///
/// The order of the commits is nearly always the answer, so it is checked again while the answer is found.
pub fn check(history: &History, level: PlLevel, budget: &Budget) -> Result<PlAnswer, AdyaError> {
    let versions = match Versions::new(history) {
        Err(AdyaError::DuplicateValue { .. }) if !duplicate_writes(history).is_empty() => {
            return duplicated(history, level, budget);
        }
        versions => versions?,
    };
    budget.check()?;
    let guess = guess(history, &versions, level);
    let order = guess.as_deref().map(|order| kept(&versions, order));
    let is_wrong = AtomicBool::new(false);
    let (answer, checked) = rayon::join(
        || {
            let answer =
                answer_on::<ExactRules>(history, &versions, guess.as_deref(), level, budget);
            let is_guess = |answer: &PlAnswer| match (&answer.0, &order) {
                (Verdict::Satisfied(found), Some(order)) => {
                    found.commits().eq(order.iter().copied())
                }
                _ => false,
            };
            let is_guessed = answer.as_ref().is_ok_and(is_guess);
            is_wrong.store(!is_guessed, Ordering::Relaxed);
            answer
        },
        || {
            let order = order.as_ref().filter(|_| !is_wrong.load(Ordering::Relaxed));
            order.map(|order| certify::check_order(history, level, order))
        },
    );
    let answer = answer?;
    let promise = Promise::Recorded(level);
    let held = match (&answer.0, checked) {
        (Verdict::Satisfied(_), Some(held)) if !is_wrong.into_inner() => held,
        (Verdict::Satisfied(order), _) => verify(history, &promise, order),
        (Verdict::Violated(why), _) => refute(history, &promise, why, budget),
        (Verdict::Unknown(_), _) => Ok(()),
    };
    budget.check()?;
    let word = answer.0.word();
    match held {
        Ok(()) => Ok(answer),
        Err(why) => Err(AdyaError::Uncertified { answer: word, why }),
    }
}

/// The answer where two committed versions of a key have one value. No level can be judged: reads cannot tell the versions apart.
fn duplicated(history: &History, level: PlLevel, budget: &Budget) -> Result<PlAnswer, AdyaError> {
    let why = Counterexample::Recorded(Refutation::Findings(duplicate_writes(history)));
    match refute(history, &Promise::Recorded(level), &why, budget) {
        Ok(()) => Ok((Verdict::Violated(why), RecordedStats::default())),
        Err(why) => Err(AdyaError::Uncertified {
            answer: "violated",
            why,
        }),
    }
}

/// The answer before it is checked again.
#[cfg(test)]
pub(crate) fn answer<R: Rules>(
    history: &History,
    level: PlLevel,
    budget: &Budget,
) -> Result<PlAnswer, AdyaError> {
    let versions = Versions::new(history)?;
    let guess = guess(history, &versions, level);
    answer_on::<R>(history, &versions, guess.as_deref(), level, budget)
}

/// The order of the commits, where it helps: pl-si looks at every edge.
fn guess(history: &History, versions: &Versions, level: PlLevel) -> Option<Vec<u32>> {
    let guess = (level != PlLevel::PlSi).then(|| stamped_order(history, versions));
    guess.flatten()
}

fn answer_on<R: Rules>(
    history: &History,
    versions: &Versions,
    guess: Option<&[u32]>,
    level: PlLevel,
    budget: &Budget,
) -> Result<PlAnswer, AdyaError> {
    let snapshots = Snapshots::new(history, versions)?;
    let conditions = Conditions::new(history, versions);
    let sources = Sources {
        history,
        versions,
        snapshots: &snapshots,
        conditions: &conditions,
    };
    let check = Check::<R> {
        sources: &sources,
        level,
        budget,
        rules: PhantomData,
    };
    let (verdict, n_edges) = match guess {
        Some(order) => check.along(order)?,
        None => check.whole()?,
    };
    let stats = RecordedStats {
        n_counted: versions.counted.iter().filter(|it| **it).count(),
        n_versions: versions.len() - versions.n_keys(),
        n_edges,
    };
    Ok((verdict, stats))
}

/// The transactions of an order that count.
fn kept(versions: &Versions, order: &[u32]) -> Vec<TxnId> {
    let txns = order.iter().map(|&it| TxnId(it));
    txns.filter(|txn| versions.counted[txn.index()]).collect()
}

fn refuted(why: Refutation) -> Verdict {
    Verdict::Violated(Counterexample::Recorded(why))
}

struct Check<'a, R> {
    sources: &'a Sources<'a>,
    level: PlLevel,
    budget: &'a Budget,
    rules: PhantomData<R>,
}

/// The reasons of the edges, and findings without a cycle.
struct Collected {
    edges: Edges,
    findings: Vec<Finding>,
    mismatches: Vec<Mismatch>,
}

impl<R: Rules> Check<'_, R> {
    /// The answer by all edges, and how many there are.
    fn whole(&self) -> Result<(Verdict, usize), AdyaError> {
        let all = self.sources.history.all_predicates();
        let counted = &self.sources.versions.counted;
        let numbers = (0..all.len() as u32).filter(|&it| counted[all[it as usize].0.index()]);
        let numbers: Vec<u32> = numbers.collect();
        let found = self.collect(&numbers, Edges::default())?;
        let n_edges = found.edges.n_found();
        if let Some(refuted) = self.refuted(found.findings, found.mismatches) {
            return Ok((refuted, n_edges));
        }
        let verdict = match self.forbidden(&found.edges)? {
            Err((phenomenon, steps)) => refuted(Refutation::Cycle(phenomenon, steps)),
            Ok(order) => self.holds(&order),
        };
        Ok((verdict, n_edges))
    }

    /// The same, given an order that most of the edges agree with. Where all do, no graph is needed; otherwise every cycle lies in
    /// a window that an edge against the order spans.
    fn along(&self, order: &[u32]) -> Result<(Verdict, usize), AdyaError> {
        let doubtful = doubtful::<R>(self.sources, order);
        self.budget.check()?;
        let found = self.collect(&doubtful, Edges::guessing(order))?;
        let n_edges = found.edges.n_found();
        if let Some(refuted) = self.refuted(found.findings, found.mismatches) {
            return Ok((refuted, n_edges));
        }
        let backwards = R::against(found.edges.of(asked_of(self.level)));
        let windows = Windows::new(order, backwards);
        if windows.of().iter().all(|&it| it == NOBODY) {
            return Ok((self.holds(order), n_edges));
        }
        let all = self.sources.history.all_predicates().iter();
        let numbers = all.enumerate().filter_map(|(number, (txn, _))| {
            (windows.of()[txn.index()] != NOBODY).then_some(number as u32)
        });
        let numbers: Vec<u32> = numbers.collect();
        let found = self.collect(&numbers, Edges::within(windows.of()))?;
        let verdict = match self.forbidden(&found.edges)? {
            Err((phenomenon, steps)) => refuted(Refutation::Cycle(phenomenon, steps)),
            Ok(sorted) => self.holds(&windows.arrange(&sorted)),
        };
        Ok((verdict, n_edges.max(found.edges.n_found())))
    }

    fn holds(&self, order: &[u32]) -> Verdict {
        Verdict::Satisfied(Certificate::of_txns(kept(self.sources.versions, order)))
    }

    /// The refutation by what is wrong without any cycle, where the level looks at it.
    fn refuted(&self, findings: Vec<Finding>, mismatches: Vec<Mismatch>) -> Option<Verdict> {
        if !self.level.forbids_g1() {
            return None;
        }
        let why = if !findings.is_empty() {
            Refutation::Findings(findings)
        } else if !mismatches.is_empty() {
            Refutation::Mismatches(mismatches)
        } else {
            return None;
        };
        Some(refuted(why))
    }

    fn collect(&self, predicates: &[u32], mut edges: Edges) -> Result<Collected, AdyaError> {
        let Sources {
            history, versions, ..
        } = *self.sources;
        let findings = item_edges(history, versions, &mut edges)?;
        self.budget.check()?;
        let mismatches = predicate_edges::<R>(self.sources, predicates, &mut edges, self.budget)?;
        Ok(Collected {
            edges,
            findings,
            mismatches,
        })
    }

    fn forbidden(&self, edges: &Edges) -> Result<Result<Vec<u32>, Found>, AdyaError> {
        let graph = Graph::new(self.sources.history.n_txns(), edges);
        self.budget.check()?;
        forbidden::<R>(self.sources, &graph, self.level)
    }
}

/// The edges that can be on a cycle which the level forbids.
fn asked_of(level: PlLevel) -> u8 {
    match level {
        PlLevel::Pl1 => WW,
        PlLevel::Pl2 => FLOW,
        PlLevel::Pl299 => ITEM,
        PlLevel::Pl2Plus | PlLevel::PlSi | PlLevel::Pl3 => EVERY,
    }
}

/// The transactions by their `commit_ts`, where all that count have one; at equal times those that only read come last.
fn stamped_order(history: &History, versions: &Versions) -> Option<Vec<u32>> {
    if !history.has_stamps() {
        return None;
    }
    let mut timed = Vec::with_capacity(history.n_txns());
    for txn in history.txns() {
        let time = if versions.counted[txn.index()] {
            history.stamps(txn).commit_ts?
        } else {
            i64::MAX
        };
        let is_reader = !history.ops(txn).iter().any(|op| op.is_write());
        timed.push((time, is_reader, txn.0));
    }
    timed.sort_unstable();
    Some(timed.into_iter().map(|it| it.2).collect())
}

type Found = (Phenomenon, Vec<AdyaStep>);

/// The worst cycle that the level forbids, or an order of what it looks at.
fn forbidden<R: Rules>(
    sources: &Sources<'_>,
    graph: &Graph,
    level: PlLevel,
) -> Result<Result<Vec<u32>, Found>, AdyaError> {
    let told = |phenomenon: Phenomenon, links: Option<Vec<Link>>| {
        let links = links.unwrap_or_default().into_iter();
        let steps: Option<Vec<AdyaStep>> = links.map(|link| sources.step(link)).collect();
        match steps {
            Some(steps) if !steps.is_empty() => Ok(Err((phenomenon, steps))),
            _ => Err(AdyaError::Uncertified {
                answer: "violated",
                why: Refusal::Refutation("a step of the cycle has no reason".to_owned()),
            }),
        }
    };
    // One sort decides what holds; names are found only for what does not.
    let mask = match level {
        PlLevel::Pl1 => WW,
        PlLevel::Pl2 | PlLevel::Pl2Plus | PlLevel::PlSi => FLOW,
        PlLevel::Pl299 => ITEM,
        PlLevel::Pl3 => EVERY,
    };
    let Some(order) = graph.order(mask) else {
        let masks = [
            (WW, Phenomenon::G0),
            (FLOW, Phenomenon::G1c),
            (ITEM, Phenomenon::G2Item),
            (EVERY, Phenomenon::G2),
        ];
        let mut flow = None;
        for (tried, phenomenon) in masks.into_iter().filter(|it| it.0 & !mask == 0) {
            if tried == ITEM
                && let Some(order) = graph.order(FLOW)
            {
                flow = graph.single::<R>(&order);
            }
            if let Some(links) = flow.take() {
                // At pl-2.99 a single predicate anti-dependency is allowed.
                if links.iter().all(|link| link.2 & mask != 0) {
                    return told(Phenomenon::GSingle, Some(links));
                }
            }
            if graph.order(tried).is_none() {
                return told(phenomenon, graph.cycle(tried));
            }
        }
        return told(Phenomenon::G2, None);
    };
    match level {
        PlLevel::Pl2Plus => match graph.single::<R>(&order) {
            Some(links) => told(Phenomenon::GSingle, Some(links)),
            None => Ok(Ok(order)),
        },
        PlLevel::PlSi => start_ordered(sources, graph, order),
        _ => Ok(Ok(order)),
    }
}

/// G-SIa and G-SIb. Once every dependency agrees with the start order, paths are start edges, so one look at each edge is enough.
fn start_ordered(
    sources: &Sources<'_>,
    graph: &Graph,
    order: Vec<u32>,
) -> Result<Result<Vec<u32>, Found>, AdyaError> {
    let history = sources.history;
    let mut times = vec![(0_i64, 0_i64); history.n_txns()];
    let counted = || {
        let txns = history.txns();
        txns.filter(|it| sources.versions.counted[it.index()])
    };
    if counted().all(|txn| {
        let stamps = history.stamps(txn);
        stamps.start_ts.is_none() && stamps.commit_ts.is_none()
    }) && counted().next().is_some()
    {
        return Err(AdyaError::NoTimes);
    }
    for txn in counted() {
        let stamps = history.stamps(txn);
        let lacks = |field| AdyaError::NoStamp {
            txn: history.txn_name(txn),
            field,
            needed_by: "pl-si",
        };
        times[txn.index()] = (
            stamps.start_ts.ok_or_else(|| lacks("start_ts"))?,
            stamps.commit_ts.ok_or_else(|| lacks("commit_ts"))?,
        );
    }
    let precedes = |from: u32, to: u32| times[from as usize].1 <= times[to as usize].0;
    let reason = |link: Link| {
        sources.step(link).ok_or_else(|| AdyaError::Uncertified {
            answer: "violated",
            why: Refusal::Refutation("a step has no reason".to_owned()),
        })
    };
    if let Some(link) = graph.links(FLOW).find(|it| !precedes(it.0, it.1)) {
        return Ok(Err((Phenomenon::GSia, vec![reason(link)?])));
    }
    if let Some(link) = graph.links(ANTI).find(|it| precedes(it.1, it.0)) {
        let step = reason(link)?;
        let back = AdyaStep {
            from: step.to,
            to: step.from,
            because: None,
        };
        return Ok(Err((Phenomenon::GSib, vec![step, back])));
    }
    Ok(Ok(order))
}
