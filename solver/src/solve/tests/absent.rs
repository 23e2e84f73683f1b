//! Deleted rows that queries did not return, against the brute-force oracle, and what happens without the reads that are added.

use std::ops::Bound;

use kingsnake_lab::random::{sketch, small_rows};

use super::super::reads::missed;
use super::{n_histories, points, with_first_order};
use crate::agreement::{Compared, asked, by_oracle, engines, specs};
use crate::budget::Budget;
use crate::certify::order::replay_without_aggregates;
use crate::check::Techniques;
use crate::context::Context;
use crate::level::{Level, Model, Spec};
use crate::model::{History, HistoryBuilder, Status, Token};
use crate::phases::{self, Check};
use crate::progress::Silent;
use crate::resolve::{ResolveError, resolve, resolve_for};
use crate::verdict::{Certificate, Verdict};

fn has_unreturned(history: &History, spec: Spec) -> bool {
    let resolved = resolve_for(history, spec, &Budget::unlimited());
    resolved.is_ok_and(|it| !it.unreturned().is_empty() && it.findings().is_empty())
}

#[test]
fn deleted_rows_that_queries_missed_agree_with_the_oracle() {
    let engines = engines();
    let counts = Compared {
        seeds: 0..n_histories(6_000),
        draw: &|seed| Some(small_rows(seed)),
        specs: &|history, seed| {
            let mut specs = specs(history, seed);
            specs.retain(|&spec| has_unreturned(history, spec));
            specs
        },
        truth: &by_oracle,
        techniques: &|seed| vec![engines[seed as usize % engines.len()].clone()],
    }
    .agree(|_| ());
    assert!(counts.iter().all(|&n| n > 500), "{counts:?}");
}

/// What the first order gets wrong, and whether it is an answer even so.
fn first_order(check: &Check<'_>) -> Option<(usize, bool)> {
    let (budget, mut silent) = (Budget::unlimited(), Silent);
    let mut context = Context::new(&budget, &mut silent);
    let base = phases::resolve(check, &mut context).ok()?;
    with_first_order(check, &base, |found| {
        let n_missed = found.shown.len() + missed(&found).len();
        let order = Certificate::from(points(&found));
        let holds = replay_without_aggregates(check.history, check.spec, &order).is_ok();
        Some((n_missed, holds))
    })
}

#[test]
fn the_first_order_is_an_answer_iff_no_query_sees_a_row_that_it_missed() {
    let techniques = &Techniques::default();
    let mut counts = [0; 2];
    for seed in 0..6_000 {
        let history = &small_rows(seed);
        for spec in specs(history, seed) {
            if !has_unreturned(history, spec) {
                continue;
            }
            let check = Check {
                history,
                spec,
                techniques,
            };
            if let Some((n_missed, holds)) = first_order(&check) {
                assert_eq!(
                    n_missed == 0,
                    holds,
                    "seed {seed}, {spec}\n{}",
                    sketch(history)
                );
                counts[usize::from(holds)] += 1;
            }
        }
    }
    println!(
        "{} first orders are answers, {} are none",
        counts[1], counts[0]
    );
    assert!(counts.iter().all(|&n| n > 50), "{counts:?}");
}

/// So many transactions that find the table empty and insert a row each, and as many that delete one each.
fn queue(n_rows: i64) -> History {
    let mut builder = HistoryBuilder::new();
    builder.initial_everywhere(Token::Nil);
    for row in 0..n_rows {
        for (id, deletes) in [(2 * row, false), (2 * row + 1, true)] {
            let session = builder.session(Token::Int(id));
            let begun = builder.begin(session, Token::Int(id), Status::Committed);
            begun.expect("names are counted");
            if deletes {
                builder.read(Token::Int(row), Token::Int(1));
                builder.delete(Token::Int(row), Token::Nil);
            } else {
                let answer = builder.range(Bound::Unbounded, Bound::Unbounded, &[], None);
                answer.expect("it has no ends");
                builder.write(Token::Int(row), Token::Int(1));
            }
        }
    }
    builder.finish().expect("it is well formed")
}

#[test]
fn thousands_of_queries_over_thousands_of_deleted_rows_are_few_reads() {
    let history = queue(5_000);
    for level in [Level::Ser, Level::Si, Level::Pc] {
        let spec = level.spec(None).expect("it needs nothing more");
        let resolved = resolve_for(&history, spec, &Budget::unlimited()).expect("it resolves");
        // A transaction that inserts a row reads it first.
        assert_eq!(
            (resolved.versions().n_reads(), resolved.uncertain().len()),
            (5_000, 5_000)
        );
        let report = asked(&history, spec, &Techniques::default());
        let verdict = report.expect("it can be checked").verdict;
        assert!(matches!(verdict, Verdict::Satisfied(_)), "{spec}");
    }
}

#[test]
fn other_levels_read_every_row() {
    let history = queue(3);
    let uncertain = |spec: Spec| -> Result<usize, ResolveError> {
        let resolved = resolve_for(&history, spec, &Budget::unlimited())?;
        Ok(resolved.uncertain().len())
    };
    let mixed = Spec {
        model: Model::Mixed,
        session_order: true,
        real_time: None,
    };
    assert_eq!(uncertain(mixed), Ok(9));
    let all = resolve(&history, &Budget::unlimited());
    assert_eq!(all.map(|it| it.uncertain().len()).ok(), Some(9));
}
