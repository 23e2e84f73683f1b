//! Every engine and every option against the brute-force oracle, on thousands of small random histories; and a check of
//! the comparison itself: engines with a deliberate mistake are caught.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::budget::Budget;
use crate::check::{CheckError, Decider, Report, Techniques, check};
use crate::decide::{Backend, Constraints, DecideError, DecideStats, Decision, Question, Side};
use crate::heuristic::Heuristic;
use crate::level::{Model, RealTime, Snapshots, Spec, Times};
use crate::model::History;
use crate::progress::{Progress, Silent};
use crate::prune::Reachability;
use crate::resolve::{Resolved, resolve_for};
use crate::verdict::Verdict;
use kingsnake_lab::oracle;
use kingsnake_lab::random::{sketch, small, small_repeats, small_rows};

/// What a history's reads are of, where none of them is broken by itself and no row in doubt was left out of a query.
pub(crate) fn unbroken(history: &History, spec: Spec, budget: &Budget) -> Option<Resolved> {
    let resolved = resolve_for(history, spec, budget).ok()?;
    let is_broken = !resolved.broken(history, spec).is_empty();
    (!is_broken && resolved.unreturned().is_empty()).then_some(resolved)
}

/// Tries all choices, one constraint after the other. Shares nothing with the back ends of other crates.
#[derive(Default)]
pub(crate) struct Exhaustive {
    /// A mutant's mistake: UNSAT under assumptions is taken for UNSAT.
    pub(crate) is_trusting: bool,
}

impl Backend for Exhaustive {
    fn name(&self) -> &'static str {
        "test/exhaustive"
    }

    fn decide(
        &mut self,
        question: Question<'_>,
        _: &Budget,
        _: &mut dyn Progress,
    ) -> Result<(Decision, DecideStats), DecideError> {
        let mut edges = Vec::new();
        for from in 0..question.n_nodes {
            let targets = &question.targets
                [question.starts[from] as usize..question.starts[from + 1] as usize];
            edges.extend(targets.iter().map(|&to| (from as u32, to)));
        }
        let mut choices = Vec::new();
        let decision = if try_all(question, &mut edges, &mut choices) {
            Decision::Choices(choices)
        } else {
            Decision::Core((0..question.constraints.len() as u32).collect())
        };
        Ok((decision, DecideStats::default()))
    }

    /// Tries the assumed sides, and returns UNSAT only without them.
    fn decide_assuming(
        &mut self,
        question: Question<'_>,
        assumed: &[(u32, Side)],
        budget: &Budget,
        progress: &mut dyn Progress,
    ) -> Option<Result<(Decision, DecideStats), DecideError>> {
        let mut constraints = Constraints::default();
        for at in 0..question.constraints.len() {
            let side = |side| question.constraints.side(at, side).iter().copied();
            match assumed.iter().find(|it| it.0 as usize == at) {
                // Both sides of an assumed constraint are the assumed one.
                Some(&(_, it)) => constraints.push(side(it), side(it)),
                None => constraints.push(side(Side::Either), side(Side::Or)),
            }
        }
        let hinted = Question {
            constraints: &constraints,
            ..question
        };
        let answer = self.decide(hinted, budget, progress);
        Some(answer.and_then(|(decision, mut stats)| match decision {
            Decision::Choices(mut choices) => {
                for &(at, side) in assumed {
                    choices[at as usize] = side;
                }
                Ok((Decision::Choices(choices), stats))
            }
            _ if self.is_trusting => Ok((decision, stats)),
            _ => {
                let (decision, _) = self.decide(question, budget, progress)?;
                stats.rejects += 1;
                Ok((decision, stats))
            }
        }))
    }
}

fn try_all(question: Question<'_>, edges: &mut Vec<(u32, u32)>, choices: &mut Vec<Side>) -> bool {
    if has_cycle(question.n_nodes, edges) {
        return false;
    }
    let constraint = choices.len();
    if constraint == question.constraints.len() {
        return true;
    }
    for side in [Side::Either, Side::Or] {
        let length = edges.len();
        let added = question.constraints.side(constraint, side).iter();
        edges.extend(added.map(|edge| (edge.from, edge.to)));
        choices.push(side);
        if try_all(question, edges, choices) {
            return true;
        }
        choices.pop();
        edges.truncate(length);
    }
    false
}

fn has_cycle(n_nodes: usize, edges: &[(u32, u32)]) -> bool {
    let mut removed = vec![false; n_nodes];
    loop {
        let has_incoming = |node: usize| {
            edges
                .iter()
                .any(|&(from, to)| to as usize == node && !removed[from as usize])
        };
        let Some(source) = (0..n_nodes).find(|&node| !removed[node] && !has_incoming(node)) else {
            return removed.iter().any(|removed| !removed);
        };
        removed[source] = true;
    }
}

/// Every level; the drift and the readings of the times take turns.
pub(crate) fn specs(history: &History, seed: u64) -> Vec<Spec> {
    let drift = [0, 1, 3][seed as usize % 3];
    let times = [Times::Bounds, Times::Exact][seed as usize % 2];
    let mut clocks = vec![None];
    for snapshots in [Snapshots::Current, Snapshots::Older] {
        clocks.push(Some(RealTime {
            snapshots,
            times,
            drift,
        }));
    }
    clocks.truncate(if history.has_times() { clocks.len() } else { 1 });
    let mut specs = Vec::new();
    for (model, n_clocks) in [(Model::Ser, 2), (Model::Si, clocks.len()), (Model::Pc, 1)] {
        for session_order in [false, true] {
            specs.extend(clocks.iter().take(n_clocks).map(|&real_time| Spec {
                model,
                session_order,
                real_time,
            }));
        }
    }
    specs
}

/// Every technique on and off, one at a time, and both forms of reachability.
pub(crate) fn engines() -> Vec<Techniques> {
    let all = Techniques::default();
    let mut engines = vec![all.clone()];
    for reachability in [Reachability::Dense, Reachability::Chains] {
        engines.push(Techniques {
            reachability,
            ..all.clone()
        });
        engines.push(Techniques {
            reachability,
            combine: false,
            linear: false,
            witness: false,
            ..all.clone()
        });
        engines.push(Techniques {
            reachability,
            prune_rounds: Some(1),
            ..all.clone()
        });
    }
    engines.push(Techniques {
        prune_rounds: Some(0),
        estimate: false,
        ..all.clone()
    });
    engines.push(Techniques {
        prune_rounds: Some(0),
        combine: false,
        witness: false,
        ..all.clone()
    });
    for heuristic in [Heuristic::Viper, Heuristic::Incremental] {
        engines.push(Techniques {
            heuristic,
            prune_rounds: Some(0),
            witness: false,
            ..all.clone()
        });
    }
    engines.push(Techniques {
        linear: false,
        estimate: false,
        ..all.clone()
    });
    for prune_rounds in [None, Some(0), Some(5)] {
        engines.push(Techniques {
            unread: false,
            prune_rounds,
            witness: false,
            ..all.clone()
        });
    }
    for combine in [true, false] {
        for (coalesce, merge) in [(true, false), (false, true), (false, false)] {
            engines.push(Techniques {
                combine,
                coalesce,
                merge,
                witness: false,
                ..all.clone()
            });
            engines.push(Techniques {
                combine,
                coalesce,
                merge,
                prune_rounds: Some(usize::from(merge)),
                ..all.clone()
            });
        }
    }
    engines
}

/// What the line says, with a back end that tries everything.
pub(crate) fn asked(
    history: &History,
    spec: Spec,
    techniques: &Techniques,
) -> Result<Report, CheckError> {
    let (budget, backend) = (Budget::unlimited(), &mut Exhaustive::default());
    check(history, spec, techniques, backend, &budget, &mut Silent)
}

/// The truth of a history that is small.
pub(crate) fn by_oracle(history: &History, spec: Spec) -> Option<bool> {
    Some(oracle::holds(history, spec).expect("it is small"))
}

/// Histories about which engines are asked, and brute force: the one harness of all comparisons here.
pub(crate) struct Compared<'i> {
    pub(crate) seeds: Range<u64>,
    /// The history of a seed, if it is of the kind that is meant.
    pub(crate) draw: &'i dyn Fn(u64) -> Option<History>,
    pub(crate) specs: &'i dyn Fn(&History, u64) -> Vec<Spec>,
    /// `None` where there is too much to try.
    pub(crate) truth: &'i dyn Fn(&History, Spec) -> Option<bool>,
    pub(crate) techniques: &'i dyn Fn(u64) -> Vec<Techniques>,
}

impl Compared<'_> {
    /// Demands that every answer is right; how many questions have the answers no and yes. Each report is noted.
    pub(crate) fn agree(&self, mut note: impl FnMut(&Report)) -> [usize; 2] {
        let mut counts = [0; 2];
        for seed in self.seeds.clone() {
            let Some(history) = (self.draw)(seed) else {
                continue;
            };
            for spec in (self.specs)(&history, seed) {
                let Some(truth) = (self.truth)(&history, spec) else {
                    continue;
                };
                counts[usize::from(truth)] += 1;
                for techniques in (self.techniques)(seed) {
                    let wrong = match asked(&history, spec, &techniques) {
                        Ok(report) if report.verdict.holds() == Some(truth) => {
                            note(&report);
                            continue;
                        }
                        Ok(report) => format!("says {:?}", report.verdict),
                        Err(error) => error.to_string(),
                    };
                    let told = format!("{}\n{:?}", sketch(&history), history.models());
                    panic!(
                        "seed {seed}, {spec}, {techniques:?}: truth {truth}, but {wrong}\n{told}"
                    );
                }
            }
        }
        let [no, yes] = counts;
        println!("seeds {:?}: {no} violated, {yes} satisfied", self.seeds);
        counts
    }
}

/// Whether an answer is not the truth.
pub(crate) fn is_wrong(truth: bool, answer: Result<(Decider, Verdict), CheckError>) -> bool {
    answer.map_or(true, |(_, verdict)| verdict.holds() != Some(truth))
}

#[test]
fn every_engine_agrees_with_the_oracle() {
    agree(50_000, small);
}

#[test]
fn every_engine_agrees_with_the_oracle_on_range_queries_inserts_and_deletes() {
    agree(15_000, small_rows);
}

#[test]
fn every_engine_agrees_with_the_oracle_where_values_repeat_and_ends_are_unknown() {
    agree(15_000, small_repeats);
}

/// How often each outcome occurred.
type Tally = BTreeMap<String, usize>;

fn agree(n_histories: u64, draw: fn(u64) -> History) {
    let engines = engines();
    let mut tally = Tally::new();
    Compared {
        seeds: 0..n_histories,
        draw: &|seed| Some(draw(seed)),
        specs: &specs,
        truth: &by_oracle,
        // All engines on every sixteenth history, and one, in turn, on the others.
        techniques: &|seed| match seed % 16 {
            0 => engines.clone(),
            _ => vec![engines[seed as usize % engines.len()].clone()],
        },
    }
    .agree(|report| {
        let truth = report.verdict.holds() == Some(true);
        count(&mut tally, &level_name(report.spec), truth);
        let what = format!("decided by {}", report.decider.name());
        count(&mut tally, &what, truth);
    });
    for (what, count) in &tally {
        println!("{count:8} {what}");
    }
    assert_balance(&tally);
}

/// A level without its drift and its reading of the times, which alternate.
fn level_name(spec: Spec) -> String {
    let clock = spec.real_time.map(|clock| clock.snapshots);
    format!(
        "{:?}, sessions {}, {clock:?}",
        spec.model, spec.session_order
    )
}

fn count(tally: &mut Tally, what: &str, truth: bool) {
    let word = if truth { "satisfied" } else { "violated" };
    *tally.entry(format!("{what}: {word}")).or_default() += 1;
}

/// Checks that both verdicts occur often enough, at every level and for every decider that can give both.
fn assert_balance(tally: &Tally) {
    let of = |what: &str, word: &str| tally.get(&format!("{what}: {word}")).copied().unwrap_or(0);
    let mut whats: Vec<&str> = tally
        .keys()
        .filter_map(|it| it.rsplit_once(": "))
        .map(|it| it.0)
        .collect();
    whats.dedup();
    for what in whats {
        let (yes, no) = (of(what, "satisfied"), of(what, "violated"));
        // An impossible read can only refute, an estimated order can only explain.
        let enough = match what {
            "decided by resolve" => no >= 1000,
            "decided by witness" => yes >= 100,
            _ => yes.min(no) >= ((yes + no) / 100).min(400),
        };
        assert!(enough, "{what}: {yes} satisfied, {no} violated");
    }
}
