//! Expected orders and the search of a serial order, against every permutation; lists that reveal the version order.

use kingsnake_adya::{AdyaError, along, check};
use kingsnake_certify::adya::check_order;
use kingsnake_certify::along::{counted, replay};
use kingsnake_history::adya::{PlLevel, Refutation};
use kingsnake_history::budget::Budget;
use kingsnake_history::model::{History, HistoryBuilder, Status, Token, TxnId};
use kingsnake_history::promise::Along;
use kingsnake_history::verdict::{Counterexample, Verdict};
use kingsnake_lab::adya::is_along;
use kingsnake_lab::random::{Rng, Wrong, small_predicates};

fn permutations(txns: &[TxnId]) -> Vec<Vec<TxnId>> {
    if txns.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for at in 0..txns.len() {
        let mut rest = txns.to_vec();
        let first = rest.remove(at);
        for mut order in permutations(&rest) {
            order.insert(0, first);
            all.push(order);
        }
    }
    all
}

#[test]
fn what_the_certificate_shows_at_pl_3_its_order_replays() {
    let budget = Budget::unlimited();
    let mut n_replayed = 0;
    for seed in 0..2_000 {
        let history = small_predicates(&mut Rng::new(seed), Wrong::NOT);
        let answer = check(&history, PlLevel::Pl3, &budget).expect("the certificate is complete");
        if let Verdict::Satisfied(order) = answer.0 {
            let order: Vec<TxnId> = order.commits().collect();
            assert_eq!(replay(&history, &order), None, "seed {seed}");
            n_replayed += 1;
        }
    }
    assert!(n_replayed > 200, "{n_replayed}");
}

#[test]
fn an_order_is_accepted_at_pl_3_exactly_where_every_dependency_runs_forwards() {
    let (mut n_accepted, mut n_refused) = (0, 0);
    for seed in 0..1_500 {
        let history = small_predicates(&mut Rng::new(seed), Wrong::NOT);
        for order in permutations(&counted(&history)) {
            let is_accepted = check_order(&history, PlLevel::Pl3, &order).is_ok();
            let is_right = is_along(&history, &order);
            assert_eq!(is_accepted, is_right, "seed {seed}: {order:?}");
            if is_accepted {
                assert_eq!(replay(&history, &order), None, "seed {seed}: {order:?}");
                n_accepted += 1;
            } else {
                n_refused += 1;
            }
        }
    }
    assert!(
        n_accepted > 500 && n_refused > 500,
        "{n_accepted} and {n_refused}"
    );
}

#[test]
fn every_expected_order_is_judged_as_the_second_replay_judges_it() {
    // `along` compares itself with certify's replay, and ends with an error where they differ.
    for seed in 0..1_000 {
        let history = small_predicates(&mut Rng::new(seed), Wrong::OFTEN);
        for which in [Along::CommitTs, Along::StartTs] {
            let report = along(&history, &which, &Budget::unlimited());
            report.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
    }
}

/// What a transaction appends to the one list, and the list that it read before, if it did.
type Appender<'a> = (&'a [i64], Option<&'a [i64]>);

fn lists(txns: &[Appender<'_>]) -> History {
    let mut builder = HistoryBuilder::new();
    for (at, (appends, read)) in txns.iter().enumerate() {
        let session = builder.session(Token::Int(at as i64));
        builder
            .begin(session, Token::Int(at as i64 + 1), Status::Committed)
            .expect("names differ");
        if let Some(read) = read {
            builder.read_list(Token::Int(0), read.iter().map(|&it| Token::Int(it)));
        }
        for &append in *appends {
            builder.append(Token::Int(0), Token::Int(append));
        }
    }
    builder.finish().expect("it is a history")
}

fn holds(history: &History, level: PlLevel) -> bool {
    let report = check(history, level, &Budget::unlimited());
    matches!(
        report.expect("the order is revealed").0,
        Verdict::Satisfied(_)
    )
}

#[test]
fn lists_reveal_the_version_order() {
    let history = lists(&[(&[1], None), (&[2], Some(&[1])), (&[], Some(&[1, 2]))]);
    assert!(
        PlLevel::ALL
            .iter()
            .all(|&it| it == PlLevel::PlSi || holds(&history, it))
    );
    // Both appended to the empty list: a lost update.
    let history = lists(&[(&[1], Some(&[])), (&[2], Some(&[])), (&[], Some(&[1, 2]))]);
    assert!(holds(&history, PlLevel::Pl2) && !holds(&history, PlLevel::Pl2Plus));
    assert!(!holds(&history, PlLevel::Pl299));
    // An append that was never read comes last; two have no order.
    let history = lists(&[(&[1], None), (&[2], None), (&[], Some(&[1]))]);
    assert!(holds(&history, PlLevel::Pl3));
    let history = lists(&[(&[1], None), (&[2], None), (&[3], Some(&[1]))]);
    let answer = check(&history, PlLevel::Pl2, &Budget::unlimited());
    assert!(matches!(answer, Err(AdyaError::Partial { n: 2, .. })));
}

#[test]
#[allow(clippy::type_complexity)] // Transactions as what they append and what they read.
fn lists_that_contradict_each_other_are_findings() {
    let wrong: [&[Appender<'_>]; 4] = [
        &[
            (&[1], None),
            (&[2], None),
            (&[], Some(&[1, 2])),
            (&[], Some(&[2])),
        ],
        &[(&[1, 2], None), (&[], Some(&[1]))],
        &[(&[1], None), (&[], Some(&[1, 7]))],
        &[(&[1], None), (&[], Some(&[1, 1]))],
    ];
    for txns in wrong {
        let history = lists(txns);
        let report = check(&history, PlLevel::Pl2, &Budget::unlimited());
        let verdict = report.expect("the order is revealed").0;
        assert!(
            matches!(
                verdict,
                Verdict::Violated(Counterexample::Recorded(Refutation::Findings(_)))
            ),
            "{txns:?}: {verdict:?}"
        );
        assert!(holds(&history, PlLevel::Pl1));
    }
}
