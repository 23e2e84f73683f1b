//! The variants of snapshot isolation that look at the clock: known cases, the oracle against a more literal one, and the
//! lattice: what satisfies a level satisfies every weaker one.

mod support;

use std::collections::BTreeMap;

use kingsnake_lab::oracle;
use kingsnake_lab::random::{Rng, Small, sketch, small};
use kingsnake_solver::level::{Level, Model, RealTime, Snapshots, Spec, Times};
use kingsnake_solver::model::History;
use support::{literal, parse};

fn holds(history: &History, spec: Spec) -> bool {
    oracle::holds(history, spec).expect("the history is small")
}

/// A level without the session order, unless it demands it.
fn pure(level: Level) -> Spec {
    level
        .spec(Some(false))
        .or(level.spec(None))
        .expect("a level has ingredients")
}

/// Whether a text satisfies si, gsi, strong-si and strict-ser, whatever its sessions say.
fn levels(text: &str, times: Times, drift: u64) -> [bool; 4] {
    let history = parse(text);
    [Level::Si, Level::Gsi, Level::StrongSi, Level::StrictSer]
        .map(|level| holds(&history, pure(level).with_clock(times, drift)))
}

/// Every level by name, with and without session order, and with other readings of the times.
fn specs(drift: u64) -> Vec<Spec> {
    let mut specs = Vec::new();
    // The oracle knows begins and commits only; parallel snapshot isolation has its own.
    for level in Level::uniform().filter(|it| Model::TIMED.contains(&it.model())) {
        for session_order in [false, true] {
            let Some(spec) = level.spec(Some(session_order)) else {
                continue;
            };
            specs.push(spec);
            specs.push(spec.with_clock(Times::Bounds, drift));
            specs.push(spec.with_clock(Times::Exact, 0));
            specs.push(spec.with_clock(Times::Exact, drift));
        }
    }
    let mut distinct: Vec<Spec> = Vec::new();
    for spec in specs {
        if !distinct.contains(&spec) {
            distinct.push(spec);
        }
    }
    distinct
}

#[test]
fn an_old_snapshot_is_generalised_but_not_strong() {
    let text = "a: w x 1 @ 1 2\n b: r x 0 @ 3 4";
    assert_eq!(levels(text, Times::Bounds, 0), [true, true, false, false]);
    assert_eq!(levels(text, Times::Exact, 0), [true, true, false, false]);
}

#[test]
fn a_snapshot_of_the_future_is_not_even_generalised() {
    let text = "a: r x 1 @ 1 2\n b: w x 1 @ 3 4";
    assert_eq!(levels(text, Times::Bounds, 0), [true, false, false, false]);
}

#[test]
fn commits_out_of_time_are_not_generalised() {
    let text = "a: w x 1 @ 1 2\n b: w x 2 @ 3 4\n order x 2 1";
    assert_eq!(levels(text, Times::Bounds, 0), [true, false, false, false]);
}

#[test]
fn a_client_does_not_know_which_of_two_overlapping_commits_came_first() {
    let text = "a: w x 1 @ 1 9\n b: r x 1 @ 2 3";
    assert_eq!(levels(text, Times::Bounds, 0), [true; 4]);
    // The database would: it cannot have read what was committed only later.
    assert_eq!(levels(text, Times::Exact, 0), [true, false, false, true]);
}

#[test]
fn clocks_are_trusted_only_beyond_the_drift() {
    let text = "a: w x 1 @ 1 10\n b: r x 0 @ 13 20";
    for (drift, current) in [(0, false), (2, false), (3, true), (4, true)] {
        let [_, older, strong, strict] = levels(text, Times::Bounds, drift);
        assert_eq!([older, strong, strict], [true, current, current], "{drift}");
    }
}

#[test]
fn begins_are_in_real_time_order_where_times_are_exact() {
    // By the clock both readers are within the drift of the write, but not of each other, and the earlier one sees it.
    let text = "a: r x 1 @ 10 50\n b: w x 1 @ 12 15\n c: r x 0 @ 21 50";
    let [si, older, strong, _] = levels(text, Times::Exact, 10);
    assert_eq!([si, older, strong], [true, true, false]);
    let [_, _, strong, _] = levels(text, Times::Exact, 11);
    assert!(strong);
}

#[test]
fn a_missing_time_orders_nothing() {
    let text = "a: w x 1 @ 1 2\n b: r x 0";
    assert_eq!(levels(text, Times::Bounds, 0), [true; 4]);
    assert_eq!(levels(text, Times::Exact, 0), [true; 4]);
}

#[test]
fn giving_true_times_agrees_with_comparing_all_pairs() {
    let mut tally: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    for seed in 0..3_000 {
        let mut rng = Rng::new(seed);
        let drawn = Small::draw(&mut rng);
        let history = Small {
            n_txns: drawn.n_txns.min(4),
            times: true,
            ..drawn
        }
        .history(&mut rng);
        for spec in specs(seed % 4) {
            let truth = literal::holds(&history, spec);
            assert_eq!(
                holds(&history, spec),
                truth,
                "seed {seed}, {spec}\n{}",
                sketch(&history)
            );
            tally.entry(spec.to_string()).or_default()[usize::from(truth)] += 1;
        }
    }
    for (spec, [violated, satisfied]) in tally {
        eprintln!("{spec}: {satisfied} satisfied, {violated} violated");
        assert!(satisfied > 100 && violated > 100, "{spec}");
    }
}

#[test]
fn what_satisfies_a_level_satisfies_every_weaker_one() {
    let specs = specs(2);
    // How often a history tells two levels apart of which the one is not said to imply the other.
    let mut apart = vec![vec![0; specs.len()]; specs.len()];
    let mut n_timed = 0;
    for seed in 0..6_000 {
        let history = small(seed);
        if !history.has_times() {
            continue;
        }
        n_timed += 1;
        let answers: Vec<bool> = specs.iter().map(|&spec| holds(&history, spec)).collect();
        for (a, &stronger) in specs.iter().enumerate() {
            for (b, &weaker) in specs.iter().enumerate() {
                let breaks = answers[a] && !answers[b];
                assert!(
                    !(breaks && stronger.implies(weaker)),
                    "seed {seed}: {stronger}, but not {weaker}\n{}",
                    sketch(&history)
                );
                apart[a][b] += usize::from(breaks);
            }
        }
    }
    assert!(n_timed > 2_500);
    for (a, &one) in specs.iter().enumerate() {
        for (b, &other) in specs.iter().enumerate() {
            let named = [one, other]
                .iter()
                .all(|&spec| Level::uniform().any(|it| pure(it) == spec));
            if named && !one.implies(other) {
                assert!(apart[a][b] > 0, "nothing has {one}, but not {other}");
            }
        }
    }
}

#[test]
fn snapshots_and_times_matter_only_to_snapshot_isolation() {
    let strict = pure(Level::StrictSer);
    let other = Spec {
        real_time: Some(RealTime {
            snapshots: Snapshots::Older,
            times: Times::Exact,
            drift: 0,
        }),
        ..strict
    };
    for seed in 0..1_000 {
        let history = small(seed);
        assert_eq!(holds(&history, strict), holds(&history, other));
    }
}
