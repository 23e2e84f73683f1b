//! Levels of transactions of their own against the axioms by brute force, and mutants that the comparison catches.

use std::ops::Range;

use kingsnake_graph::RunOf;
use kingsnake_lab::axioms;
use kingsnake_lab::oracle::weak::holds_each;
use kingsnake_lab::random::{small_mixed, small_mixed_rows};
use kingsnake_relate::visible::{Visible, Why};

use crate::agreement::{Compared, Exhaustive, engines, is_wrong};
use crate::budget::Budget;
use crate::check::{Techniques, settle_graph};
use crate::level::{Model, Spec};
use crate::model::History;
use crate::relate::{Edge, Polygraph, construct, reasons};
use crate::resolve::{NO_NODE, VersionId, resolve_for};

fn spec(session_order: bool) -> Spec {
    Spec {
        model: Model::Mixed,
        session_order,
        real_time: None,
    }
}

fn truth(history: &History, spec: Spec) -> Option<bool> {
    let model = |txn| history.model(txn);
    match axioms::hold(history, spec.session_order, &model) {
        Some(truth) => Some(truth),
        None => holds_each(history, spec.session_order, &model),
    }
}

/// How often the axioms say no and yes.
fn counted([no, yes]: [usize; 2], least: usize) {
    println!("{no} violated, {yes} satisfied");
    assert!(no > least && yes > least, "{no} violated, {yes} satisfied");
}

/// Compares every engine with the axioms on some histories; how many were satisfied and violated.
fn agree(seeds: Range<u64>, drawn: fn(u64) -> History, engines: &[Techniques]) -> [usize; 2] {
    Compared {
        seeds,
        draw: &|seed| Some(drawn(seed)),
        specs: &|_, _| [true, false].map(spec).into(),
        truth: &truth,
        techniques: &|_| engines.to_vec(),
    }
    .agree(|_| ())
}

#[test]
fn mixed_levels_agree_with_the_axioms() {
    let engines = engines();
    println!("{} engines", engines.len());
    counted(agree(0..6_000, small_mixed, &engines), 1_000);
}

#[test]
fn mixed_levels_agree_with_the_axioms_on_range_queries() {
    counted(agree(0..1_500, small_mixed_rows, &engines()), 300);
    counted(
        agree(1_500..10_000, small_mixed_rows, &[Techniques::default()]),
        1_500,
    );
}

/// What was made of a version of a run without being atomic comes after the whole run, which is read off and needs no lemma.
#[test]
fn a_version_that_was_made_of_a_run_comes_after_all_of_it() {
    let [no, _] = agree(48_399..48_400, small_mixed, &engines());
    assert!(no > 0);
}

/// A million histories; the test above runs some of them.
#[test]
#[ignore = "make long"]
fn mixed_levels_agree_with_the_axioms_on_a_million_histories() {
    let engines = [Techniques::default()];
    counted(agree(10_000..1_010_000, small_mixed, &engines), 100_000);
    counted(agree(10_000..210_000, small_mixed_rows, &engines), 20_000);
}

#[test]
fn uniform_weak_levels_agree_with_the_axioms_on_the_same_line() {
    for model in [Model::Cc, Model::Ra, Model::RcSo, Model::Rc] {
        let counts = Compared {
            seeds: 0..4_000,
            draw: &|seed| Some(small_mixed(seed)),
            specs: &|_, seed| {
                vec![Spec {
                    model,
                    ..spec(seed % 2 == 0)
                }]
            },
            truth: &|history, spec| axioms::hold(history, spec.session_order, &|_| model),
            techniques: &|_| vec![Techniques::default()],
        }
        .agree(|_| ());
        counted(counts, 100);
    }
}

type Damage = fn(&mut Polygraph);

/// Read-modify-writes at prefix consistency are merged: what such a transaction made of the initial version comes before all others.
fn merge_at_pc(polygraph: &mut Polygraph) {
    let mut edges: Vec<Edge> = Vec::new();
    let (versions, places) = (polygraph.resolved().versions(), polygraph.places());
    for version in (0..versions.len() as u32).map(VersionId) {
        let Some(before) = versions.predecessor(version) else {
            continue;
        };
        let writer = versions.writer(version);
        if places.model(writer) != Model::Pc {
            continue;
        }
        let others = versions
            .of_key(versions.key(version))
            .skip(1)
            .map(VersionId);
        for other in others.filter(|&it| it != version && versions.is_initial(before)) {
            edges.push(Edge {
                from: places.commit(writer),
                to: places.install(versions.writer(other)),
                reason: reasons::ww(version, other),
            });
        }
    }
    polygraph.problem_mut().edges.extend(edges);
}

/// Read committed keeps one source of a key, not two.
fn one_slot(polygraph: &mut Polygraph) {
    let budget = Budget::unlimited();
    let places = polygraph.places().clone();
    let order = polygraph.spec().session_order;
    let mut visible =
        Visible::of(polygraph.resolved(), places.models(), order, &budget).expect("there is time");
    let of_rc = |model: Model| matches!(model, Model::Rc | Model::RcSo);
    visible
        .edges
        .retain(|edge| !matches!(edge.why, Why::Vis { reader, .. } if of_rc(places.model(reader))));
    visible.add_rc(1).expect("there is time");
    let left = visible.edges;
    let mut edges = std::mem::take(&mut polygraph.problem_mut().edges);
    edges.retain(|edge| {
        polygraph
            .sight(edge.reason)
            .is_none_or(|it| left.contains(&it))
    });
    polygraph.problem_mut().edges = edges;
}

/// Versions without readers need no order, whatever their writers are.
fn drop_unread(polygraph: &mut Polygraph) {
    let old = std::mem::take(&mut polygraph.problem_mut().orders);
    for key in 0..old.n_keys() {
        let runs = old.range(key).map(|at| {
            let run = old.run(at as u32);
            let readers = old.readers(at as u32).to_vec();
            RunOf {
                head: run.head,
                last: run.last,
                install: run.install,
                commit: run.commit,
                last_commit: run.last_commit,
                is_free: readers.is_empty() && run.head == run.last,
                readers,
            }
        });
        polygraph.problem_mut().orders.push_key(old.key(key), runs);
    }
}

/// What range queries of weak transactions missed is forgotten.
fn forget_weak_gaps(polygraph: &mut Polygraph) {
    let mut edges = std::mem::take(&mut polygraph.problem_mut().edges);
    let (gaps, versions) = (polygraph.resolved().gaps(), polygraph.resolved().versions());
    let is_gap = |version: VersionId| gaps.places(versions.key(version)).next().is_some();
    edges.retain(|edge| match polygraph.sight(edge.reason) {
        Some(sight) => {
            sight.to != NO_NODE || !matches!(sight.why, Why::Vis { version, .. } if is_gap(version))
        }
        None => true,
    });
    polygraph.problem_mut().edges = edges;
}

/// What range queries of other transactions missed is forgotten.
fn forget_gaps(polygraph: &mut Polygraph) {
    let edges = &mut polygraph.problem_mut().edges;
    edges.retain(|edge| edge.reason != reasons::GAP);
}

#[test]
fn wrong_encodings_of_mixed_levels_are_caught() {
    type Drawn = fn(u64) -> History;
    let damages: [(&str, Damage, Drawn); 5] = [
        ("merging read-modify-writes at pc", merge_at_pc, small_mixed),
        ("one slot at rc", one_slot, small_mixed),
        (
            "dropping unread pairs with si writers",
            drop_unread,
            small_mixed,
        ),
        (
            "no gaps of weak readers",
            forget_weak_gaps,
            small_mixed_rows,
        ),
        ("no gaps of other readers", forget_gaps, small_mixed_rows),
    ];
    for (what, damage, drawn) in damages {
        let is_caught = |seed: &u64| {
            let history = drawn(*seed);
            let spec = spec(seed.is_multiple_of(2));
            let (Some(truth), Ok(resolved)) = (
                truth(&history, spec),
                resolve_for(&history, spec, &Budget::unlimited()),
            ) else {
                return false;
            };
            let is_uncertain = !resolved.reads().choices().is_empty();
            if is_uncertain || !resolved.broken(&history, spec).is_empty() {
                return false;
            }
            let mut polygraph = construct(&history, resolved, spec, true);
            damage(&mut polygraph);
            let backend = &mut Exhaustive::default();
            let answer = settle_graph(&history, polygraph, &Techniques::default(), backend);
            is_wrong(truth, answer)
        };
        let seed = (0..60_000).find(is_caught);
        println!("{what}: caught by history {seed:?}");
        assert!(seed.is_some(), "{what}: not caught");
    }
}
