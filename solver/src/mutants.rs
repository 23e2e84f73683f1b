//! Deliberate mistakes between the phases, each of which the comparison with the oracle must catch: a suite that compares
//! engines must also reject a lying one. A mistake damages what one phase hands to the next, so no phase knows of it.

use crate::agreement::{Exhaustive, engines, is_wrong, specs};
use crate::budget::Budget;
use crate::certify;
use crate::check::{CheckError, Techniques, check, settle_graph};
use crate::heuristic::Heuristic;
use crate::level::{Model, RealTime, Snapshots, Spec};
use crate::model::History;
use crate::progress::Silent;
use crate::relate::{Edge, Polygraph, Reason, construct, reasons};
use crate::resolve::resolve;
use crate::verdict::Verdict;
use kingsnake_graph::RunOf;
use kingsnake_lab::oracle;
use kingsnake_lab::random::{
    Misread, small, small_repeats, small_repeats_committed, small_rows, small_rows_misread,
};

/// A mistake in the graph.
type Damage = fn(&mut Polygraph);

/// Keeps the edges of a graph that a test keeps.
fn retain(polygraph: &mut Polygraph, keep: impl Fn(&Polygraph, &Edge) -> bool) {
    let mut edges = std::mem::take(&mut polygraph.problem_mut().edges);
    edges.retain(|edge| keep(polygraph, edge));
    polygraph.problem_mut().edges = edges;
}

/// Changes every run.
fn rebuild(polygraph: &mut Polygraph, change: impl Fn(&mut RunOf<Vec<u32>>)) {
    let old = std::mem::take(&mut polygraph.problem_mut().orders);
    for key in 0..old.n_keys() {
        let runs = old.range(key).map(|at| {
            let run = old.run(at as u32);
            let mut run = RunOf {
                head: run.head,
                last: run.last,
                install: run.install,
                commit: run.commit,
                last_commit: run.last_commit,
                is_free: run.is_free,
                readers: old.readers(at as u32).to_vec(),
            };
            change(&mut run);
            run
        });
        let name = old.key(key);
        polygraph.problem_mut().orders.push_key(name, runs);
    }
}

const DAMAGES: [(&str, Damage); 5] = [
    ("a read-modify-write loses its rw edges", |polygraph| {
        retain(polygraph, |polygraph, edge| {
            let versions = polygraph.resolved().versions();
            let Some((before, after)) = Polygraph::fact(edge.reason) else {
                return true;
            };
            let is_rw = matches!(edge.reason, Reason::Rw { .. });
            !(is_rw && versions.predecessor(after) == Some(before))
        });
    }),
    (
        "the initial run is not put before the others",
        |polygraph| {
            retain(polygraph, |polygraph, edge| {
                let versions = polygraph.resolved().versions();
                let fact = Polygraph::fact(edge.reason);
                fact.is_none_or(|(before, _)| !versions.is_initial(before))
            });
        },
    ),
    ("the session order is forgotten", |polygraph| {
        retain(polygraph, |_, edge| edge.reason != reasons::SESSION);
    }),
    ("each version loses its last reader", |polygraph| {
        rebuild(polygraph, |run| {
            run.readers.pop();
        });
    }),
    ("writers of one key may overlap", |polygraph| {
        rebuild(polygraph, |run| {
            run.is_free |= run.readers.is_empty() && run.head == run.last;
        });
    }),
];

fn graph(history: &History, spec: Spec, combine: bool) -> Option<Polygraph> {
    match resolve(history, &Budget::unlimited()) {
        Ok(resolved) if resolved.findings().is_empty() => {
            Some(construct(history, resolved, spec, combine))
        }
        _ => None,
    }
}

/// Whether the line goes wrong on a graph that was made of one history or level, and is answered for another.
fn goes_wrong(history: &History, polygraph: Polygraph, techniques: &Techniques) -> bool {
    let Some(truth) = oracle::holds(history, polygraph.spec()) else {
        return false;
    };
    let answer = settle_graph(history, polygraph, techniques, &mut Exhaustive::default());
    is_wrong(truth, answer)
}

/// The first history that shows a mistake.
fn caught(what: &str, is_caught: impl Fn(u64) -> bool) {
    let seed = (0..4_000).find(|&seed| is_caught(seed));
    println!("{what}: caught by history {seed:?}");
    assert!(seed.is_some(), "{what}: not caught");
}

#[test]
fn damaged_graphs_are_caught() {
    for (what, damage) in DAMAGES {
        caught(what, |seed| {
            let history = small(seed);
            specs(&history, seed).into_iter().any(|spec| {
                engines().iter().any(|engine| {
                    let Some(mut polygraph) = graph(&history, spec, engine.combine) else {
                        return false;
                    };
                    damage(&mut polygraph);
                    goes_wrong(&history, polygraph, engine)
                })
            })
        });
    }
}

#[test]
#[allow(clippy::type_complexity)] // A name and what is done to a clock.
fn graphs_of_another_clock_are_caught() {
    let clocks: [(&str, fn(RealTime) -> RealTime); 3] = [
        ("the drift is forgotten", |clock| RealTime {
            drift: 0,
            ..clock
        }),
        ("strong SI lets a transaction read an old state", |clock| {
            let snapshots = Snapshots::Older;
            RealTime { snapshots, ..clock }
        }),
        ("generalised SI places begins in time", |clock| {
            let snapshots = Snapshots::Current;
            RealTime { snapshots, ..clock }
        }),
    ];
    for (what, misread) in clocks {
        caught(what, |seed| {
            let history = small(seed);
            specs(&history, seed).into_iter().any(|spec| {
                let Some(clock) = spec.real_time else {
                    return false;
                };
                let misread = Spec {
                    real_time: Some(misread(clock)),
                    ..spec
                };
                let Some(polygraph) = graph(&history, misread, true) else {
                    return false;
                };
                goes_wrong(&history, polygraph.with_spec(spec), &Techniques::default())
            })
        });
    }
}

#[test]
fn graphs_of_misread_range_queries_are_caught() {
    for misread in [Misread::ShortRanges, Misread::ForgottenAbsences] {
        caught(&format!("{misread:?}"), |seed| {
            let (history, misread) = (small_rows(seed), small_rows_misread(seed, misread));
            let spec = Spec {
                model: Model::Ser,
                session_order: true,
                real_time: None,
            };
            let Some(polygraph) = graph(&misread, spec, true) else {
                return false;
            };
            goes_wrong(&history, polygraph, &Techniques::default())
        });
    }
}

#[test]
#[allow(clippy::type_complexity)] // A name and which edge of a gap is lost.
fn graphs_that_lose_an_edge_of_a_gap_are_caught() {
    let lost: [(&str, fn(&Polygraph, &Edge) -> bool); 3] = [
        ("a reader's edge to a helper", |polygraph, edge| {
            edge.reason == reasons::GAP && polygraph.point(edge.from).is_some()
        }),
        ("a helper's edge to one of its halves", |polygraph, edge| {
            edge.reason == reasons::GAP && polygraph.point(edge.from).is_none()
        }),
        ("a helper's edge to a writer", |polygraph, edge| {
            edge.reason != reasons::GAP
                && polygraph.point(edge.from).is_none()
                && polygraph.point(edge.to).is_some()
        }),
    ];
    for (what, is_one) in lost {
        for model in [Model::Ser, Model::Si, Model::Pc] {
            caught(&format!("{what} is lost at {model:?}"), |seed| {
                let history = small_rows(seed);
                let spec = Spec {
                    model,
                    session_order: true,
                    real_time: None,
                };
                let Some(mut polygraph) = graph(&history, spec, true) else {
                    return false;
                };
                let edges = polygraph.edges().iter();
                let Some(last) = edges.rev().position(|edge| is_one(&polygraph, edge)) else {
                    return false;
                };
                let last = polygraph.edges().len() - 1 - last;
                polygraph.problem_mut().edges.remove(last);
                goes_wrong(&history, polygraph, &Techniques::default())
            });
        }
    }
}

#[test]
fn graphs_with_every_unknown_end_committed_are_caught() {
    caught("an unobserved transaction counts", |seed| {
        let spec = Spec {
            model: Model::Ser,
            session_order: true,
            real_time: None,
        };
        let polygraph = graph(&small_repeats_committed(seed), spec, true);
        polygraph.is_some_and(|polygraph| {
            goes_wrong(&small_repeats(seed), polygraph, &Techniques::default())
        })
    });
}

#[test]
fn a_no_that_rests_on_assumptions_is_caught() {
    caught("a no that rests on assumptions is believed", |seed| {
        let history = small(seed);
        let techniques = Techniques {
            heuristic: Heuristic::Incremental,
            prune_rounds: Some(0),
            witness: false,
            ..Techniques::default()
        };
        specs(&history, seed).into_iter().any(|spec| {
            let Some(truth) = oracle::holds(&history, spec) else {
                return false;
            };
            let (budget, backend) = (Budget::unlimited(), &mut Exhaustive { is_trusting: true });
            let report = check(&history, spec, &techniques, backend, &budget, &mut Silent);
            // A violation that cannot be proved is withheld; that is how it is caught.
            let answer = report.map(|report| (report.decider, report.verdict));
            is_wrong(truth, answer)
        })
    });
}

#[test]
fn a_certificate_with_two_neighbours_swapped_is_caught() {
    caught("two neighbours of a certificate are swapped", |seed| {
        let history = small(seed);
        specs(&history, seed).into_iter().any(|spec| {
            let (budget, backend) = (Budget::unlimited(), &mut Exhaustive::default());
            let all = Techniques::default();
            let report: Result<_, CheckError> =
                check(&history, spec, &all, backend, &budget, &mut Silent);
            let Ok(Verdict::Satisfied(mut certificate)) = report.map(|it| it.verdict) else {
                return false;
            };
            let middle = certificate.order.len() / 2;
            if middle == 0 {
                return false;
            }
            certificate.order.swap(middle - 1, middle);
            certify::order::replay(&history, spec, &certificate).is_err()
        })
    });
}
