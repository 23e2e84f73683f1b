//! Certificates are checked by replaying them and by their graph; both refuse what is wrong.

use kingsnake_certify::{dependencies, order};
use kingsnake_history::budget::Budget;
use kingsnake_history::level::{Level, Spec};
use kingsnake_history::model::History;
use kingsnake_history::progress::Silent;
use kingsnake_history::verdict::{Certificate, Verdict};
use kingsnake_lab::random::small;
use kingsnake_solver::check::{Techniques, check};

mod support {
    pub mod pessimist;
}
use support::pessimist::Pessimist;

fn certificate(history: &History, spec: Spec) -> Option<Certificate> {
    let (budget, techniques) = (Budget::unlimited(), Techniques::default());
    let mut backend = Pessimist;
    match check(
        history,
        spec,
        &techniques,
        &mut backend,
        &budget,
        &mut Silent,
    ) {
        Ok(report) => match report.verdict {
            Verdict::Satisfied(certificate) => Some(certificate),
            _ => None,
        },
        Err(_) => None,
    }
}

#[test]
fn the_graph_of_a_wrong_order_has_cycles_that_the_graph_of_a_right_one_has_not() {
    let (mut n_right, mut n_wrong, mut n_cyclic) = (0, 0, 0);
    for seed in 0..1_500 {
        let history = small(seed);
        for level in [Level::Ser, Level::Si, Level::Pc] {
            let Some(spec) = level.spec(None) else {
                continue;
            };
            let Some(certificate) = certificate(&history, spec) else {
                continue;
            };
            n_right += 1;
            dependencies::check(&history, spec, &certificate).expect("it replays");
            for at in 1..certificate.order.len() {
                let mut wrong = certificate.clone();
                wrong.order.swap(at - 1, at);
                if order::replay(&history, spec, &wrong).is_ok() {
                    continue;
                }
                n_wrong += 1;
                n_cyclic += usize::from(dependencies::check(&history, spec, &wrong).is_err());
            }
        }
    }
    // A wrong order whose commits of each key are in a right order has a graph without cycles.
    assert!(n_right > 1_000, "{n_right}");
    assert!(n_wrong > 1_000, "{n_wrong}");
    assert!(n_cyclic > 200, "{n_cyclic} of {n_wrong}");
}
