//! Engines against each other on histories that no oracle can decide: every choice of techniques gives the same verdict,
//! and the one that the history was made for.

use kingsnake_context::budget::Budget;
use kingsnake_context::progress::Silent;
use kingsnake_encodings::{BackendOptions, backend};
use kingsnake_lab::random::{Injected, Large};
use kingsnake_solver::check::{Techniques, check};
use kingsnake_solver::level::{Model, RealTime, Spec};
use kingsnake_solver::model::History;
use kingsnake_solver::prune::Reachability;
use kingsnake_solver::verdict::Verdict;

fn engines() -> Vec<Techniques> {
    let all = Techniques::default();
    vec![
        all.clone(),
        Techniques {
            reachability: Reachability::Dense,
            ..all.clone()
        },
        Techniques {
            reachability: Reachability::Chains,
            witness: false,
            ..all.clone()
        },
        Techniques {
            combine: false,
            linear: false,
            ..all.clone()
        },
        Techniques {
            prune_rounds: Some(1),
            estimate: false,
            ..all
        },
    ]
}

fn says(history: &History, spec: Spec, techniques: &Techniques) -> String {
    let mut backend =
        backend("cadical/propagator", &BackendOptions::default()).expect("a back end");
    let budget = Budget::unlimited();
    let report = check(
        history,
        spec,
        techniques,
        backend.as_mut(),
        &budget,
        &mut Silent,
    );
    match report.map(|report| report.verdict) {
        Ok(Verdict::Satisfied(_)) => "satisfied".to_owned(),
        Ok(Verdict::Violated(_)) => "violated".to_owned(),
        Ok(Verdict::Unknown(reason)) => format!("unknown: {reason}"),
        Err(error) => error.to_string(),
    }
}

fn shapes() -> Vec<(&'static str, Large)> {
    let base = Large {
        n_txns: 2_000,
        n_sessions: 12,
        n_keys: 500,
        ..Large::default()
    };
    vec![
        ("blind writes", base.clone()),
        (
            "read-modify-writes",
            Large {
                read_modify_writes: 60,
                ..base.clone()
            },
        ),
        (
            "few keys",
            Large {
                n_keys: 40,
                ..base.clone()
            },
        ),
        (
            "read mostly",
            Large {
                reads: 90,
                ..base.clone()
            },
        ),
        (
            "write mostly",
            Large {
                reads: 20,
                ..base.clone()
            },
        ),
        (
            "with times",
            Large {
                times: true,
                ..base
            },
        ),
    ]
}

fn spec(model: Model, real_time: bool) -> Spec {
    Spec {
        model,
        session_order: true,
        real_time: real_time.then_some(RealTime::STRICT),
    }
}

#[test]
fn all_engines_accept_what_is_valid_by_construction() {
    for (name, shape) in shapes() {
        for seed in 0..2 {
            let history = Large {
                seed,
                ..shape.clone()
            }
            .run()
            .history;
            for model in [Model::Ser, Model::Si] {
                for engine in engines() {
                    let said = says(&history, spec(model, shape.times), &engine);
                    assert_eq!(
                        said, "satisfied",
                        "{name}, seed {seed}, {model:?}, {engine:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn all_engines_find_an_anomaly_that_was_put_in() {
    for (name, shape) in shapes() {
        for injected in [
            Injected::LostUpdate,
            Injected::StaleRead,
            Injected::WriteSkew,
        ] {
            let shape = Large {
                injected: Some(injected),
                seed: 3,
                ..shape.clone()
            };
            let history = shape.run().history;
            for engine in engines() {
                let ser = says(&history, spec(Model::Ser, false), &engine);
                assert_eq!(ser, "violated", "{name}, {injected:?}, {engine:?}");
                let si = says(&history, spec(Model::Si, false), &engine);
                let skew = injected == Injected::WriteSkew;
                let expected = if skew { "satisfied" } else { "violated" };
                assert_eq!(si, expected, "{name}, {injected:?}, {engine:?}");
            }
        }
    }
}

#[test]
fn snapshots_that_lag_are_snapshot_isolation() {
    for seed in 0..3 {
        let shape = Large {
            n_txns: 2_000,
            n_sessions: 12,
            n_keys: 300,
            lag: 5,
            seed,
            ..Large::default()
        };
        let history = shape.run().history;
        let engines = engines();
        let ser = says(&history, spec(Model::Ser, false), &engines[0]);
        for engine in engines {
            assert_eq!(
                says(&history, spec(Model::Si, false), &engine),
                "satisfied",
                "{engine:?}"
            );
            assert_eq!(
                says(&history, spec(Model::Ser, false), &engine),
                ser,
                "{engine:?}"
            );
        }
    }
}
