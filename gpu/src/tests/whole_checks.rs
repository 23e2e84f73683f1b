//! Pruning on a device against pruning on the CPU, over the corpus and over histories of 2,000 transactions: the same
//! edges in the same rounds, the same open constraints, the same estimate.

use std::path::Path;

use kingsnake_context::budget::Budget;
use kingsnake_context::progress::Silent;
use kingsnake_datasets::{ReadOptions, open};
use kingsnake_lab::random::{Injected, Large};
use kingsnake_solver::level::{Model, Spec};
use kingsnake_solver::model::History;
use kingsnake_solver::prune::{Device, PruneOptions, PruneStats, Reachability, prune_on};
use kingsnake_solver::relate::construct;
use kingsnake_solver::resolve::resolve;

use super::found::Found;
use crate::{DeviceChoice, Form, Gpu};

pub(super) const SPECS: [Spec; 4] = [
    spec(Model::Ser, false),
    spec(Model::Ser, true),
    spec(Model::Si, false),
    spec(Model::Si, true),
];

const fn spec(model: Model, session_order: bool) -> Spec {
    Spec {
        model,
        session_order,
        real_time: None,
    }
}

pub(super) fn prune_with(
    device: Option<&mut dyn Device>,
    history: &History,
    spec: Spec,
    combine: bool,
    rounds: Option<usize>,
) -> Option<(Found, PruneStats)> {
    let budget = Budget::unlimited();
    let resolved = resolve(history, &budget)
        .ok()
        .filter(|it| it.findings().is_empty())?;
    let options = PruneOptions {
        reachability: Reachability::Dense,
        rounds,
        linear: false,
        coalesce: combine,
        ..PruneOptions::default()
    };
    let mut stats = PruneStats::default();
    let polygraph = construct(history, resolved, spec, combine);
    let outcome = prune_on(device, polygraph, options, &mut stats, &budget, &mut Silent).unwrap();
    let outcome = outcome.map(|polygraph| polygraph.problem().clone());
    let found = Found::of(outcome, &stats);
    Some((found, stats))
}

/// Compares, and returns how many rounds the device ran and whether a contradiction was found.
fn compare(
    gpu: &mut Gpu,
    what: &str,
    history: &History,
    spec: Spec,
    combine: bool,
    rounds: Option<usize>,
) -> Option<(usize, bool)> {
    let (truth, _) = prune_with(None, history, spec, combine, rounds)?;
    let (found, stats) = prune_with(Some(gpu), history, spec, combine, rounds)?;
    assert_eq!(stats.device.warning, None, "{what}, {spec}");
    assert!(
        found == truth,
        "{what}, {spec}: the device found something else"
    );
    if !stats.rounds.is_empty() {
        assert_eq!(stats.reachability, "device", "{what}, {spec}");
        assert!(stats.device.dispatches > 0 && stats.device.bytes_up > 0);
    }
    Some((stats.rounds.len(), truth.is_contradiction()))
}

fn device(test: &str) -> Gpu {
    drop(super::hardware(test, crate::hardware::Opening::default()));
    Gpu::new(DeviceChoice::Gpu)
}

#[test]
fn the_corpus_is_pruned_as_on_the_cpu() {
    let mut gpu = device("the corpus");
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../datasets/corpus");
    let index = std::fs::read_to_string(corpus.join("INDEX.tsv")).expect("there is an index");
    let files = index
        .lines()
        .skip(1)
        .filter_map(|line| line.split('\t').next());
    let (mut n_checks, mut n_rounds, mut n_contradictions) = (0, 0, 0);
    for file in files {
        let history = open(&corpus.join(file), &ReadOptions::default())
            .unwrap_or_else(|error| panic!("{file}: {error}"))
            .history;
        for spec in SPECS {
            for combine in [false, true] {
                let compared = compare(&mut gpu, file, &history, spec, combine, None);
                if let Some((rounds, contradiction)) = compared {
                    n_checks += 1;
                    n_rounds += rounds;
                    n_contradictions += usize::from(contradiction);
                }
            }
        }
    }
    println!(
        "{n_checks} checks of the corpus, {n_rounds} rounds, {n_contradictions} contradictions"
    );
    assert!(n_checks > 200 && n_rounds > 200 && n_contradictions > 50);
}

#[test]
fn histories_of_2000_transactions_are_pruned_as_on_the_cpu() {
    let mut gpu = device("histories of 2,000 transactions");
    let base = Large {
        n_txns: 2_000,
        n_keys: 300,
        ..Large::default()
    };
    let blind = Large {
        reads: 20,
        n_keys: 700,
        seed: 5,
        ..base.clone()
    };
    let modified = Large {
        read_modify_writes: 50,
        lag: 10,
        seed: 6,
        ..base.clone()
    };
    let broken = |injected, seed| Large {
        injected: Some(injected),
        seed,
        ..base.clone()
    };
    let mut n_rounds = 0;
    for (what, large, specs) in [
        ("even", base.clone(), &SPECS[..]),
        ("blind", blind, &SPECS[..2]),
        ("modified", modified, &SPECS[1..4]),
        ("stale", broken(Injected::StaleRead, 7), &SPECS[1..4]),
        ("skew", broken(Injected::WriteSkew, 8), &SPECS[..2]),
    ] {
        let history = large.run().history;
        for &spec in specs {
            let compared = compare(&mut gpu, what, &history, spec, true, None);
            let (rounds, contradiction) = compared.expect("the reads can be explained");
            println!("{what}, {spec}: {rounds} rounds, contradiction: {contradiction}");
            n_rounds += rounds;
        }
    }
    assert!(n_rounds > 20);
}

#[test]
fn every_form_and_every_cut_prunes_as_the_cpu_does() {
    drop(super::hardware(
        "forms and bands of whole checks",
        crate::hardware::Opening::default(),
    ));
    let large = Large {
        n_txns: 600,
        n_keys: 150,
        reads: 40,
        seed: 3,
        ..Large::default()
    };
    let history = large.run().history;
    for form in [Form::Auto, Form::Sweep, Form::Levels] {
        for bytes in [None, Some(50_000)] {
            for rounds in [None, Some(1), Some(2)] {
                let mut gpu = Gpu::new(DeviceChoice::Gpu).with(form, bytes);
                let what = format!("{form:?}, {bytes:?}");
                for spec in [SPECS[0], SPECS[3]] {
                    compare(&mut gpu, &what, &history, spec, true, rounds);
                }
            }
        }
    }
}
