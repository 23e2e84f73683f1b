//! Engines with one wrong rule each, which the comparison with brute force must notice.

use kingsnake_history::adya::PlLevel;
use kingsnake_history::budget::Budget;
use kingsnake_history::model::{Act, Extreme, History, KeyId, TxnId, ValueId};
use kingsnake_lab::adya::judge;
use kingsnake_lab::random::{Rng, Wrong, small_predicates};

use crate::check::answer;
use crate::predicates::Returned;
use crate::query::Around;
use crate::rules::{ExactRules, Rules};

/// No edge from the last change to the reader.
struct NoPredWr;

impl Rules for NoPredWr {
    fn depended_on(around: Around, _: usize) -> Around {
        Around {
            before: None,
            ..around
        }
    }
}

/// No edge from the reader to the next change.
struct NoPredRw;

impl Rules for NoPredRw {
    fn depended_on(around: Around, _: usize) -> Around {
        Around {
            after: None,
            ..around
        }
    }
}

/// The change at the version that was looked at counts as one after it.
struct LateChange;

impl Rules for LateChange {
    fn depended_on(mut around: Around, place: usize) -> Around {
        if around.before == Some(place) {
            around.after = around.before.take();
        }
        around
    }
}

/// The transaction's own writes are not on top of the snapshot.
struct NoOwn;

impl Rules for NoOwn {
    fn own_writes(_: &History, _: TxnId, _: usize, own: &mut Vec<(KeyId, ValueId)>) {
        own.clear();
    }
}

/// Rows that should not have been returned are not noticed.
struct NoExtra;

impl Rules for NoExtra {
    fn extra(_: &[Returned]) -> impl Iterator<Item = KeyId> {
        std::iter::empty()
    }
}

/// Rows that an aggregate read are not overwritten.
struct NoAggregate;

impl Rules for NoAggregate {
    fn reads_aggregated() -> bool {
        false
    }
}

/// A least or greatest value depends on all rows that the condition chooses.
struct WholeExtreme;

impl Rules for WholeExtreme {
    fn extreme(_: Act) -> Option<Extreme> {
        None
    }
}

/// An anti-dependency is not looked at if it runs forwards in the numbers of transactions.
struct HalfSingle;

impl Rules for HalfSingle {
    fn runs_back(places: &[u32], from: u32, to: u32) -> bool {
        to <= from && ExactRules::runs_back(places, from, to)
    }
}

/// The sweep along the guessed order ignores writes after a snapshot.
struct NoChange;

impl Rules for NoChange {
    fn is_change(_: bool, _: bool) -> bool {
        false
    }
}

/// Only one of the parts of the order that backward edges span is examined.
struct NarrowWindow;

impl Rules for NarrowWindow {
    fn against(edges: impl Iterator<Item = (u32, u32)>) -> impl Iterator<Item = (u32, u32)> {
        edges.take(1)
    }
}

/// How many of the random histories are judged differently by brute force.
fn n_differences<R: Rules>() -> usize {
    let differs = |seed: &u64| {
        let history = small_predicates(&mut Rng::new(*seed), Wrong::OFTEN);
        let naive = judge(&history, true);
        PlLevel::ALL.into_iter().any(|level| {
            let answer = answer::<R>(&history, level, &Budget::unlimited());
            let holds = answer.ok().and_then(|it| it.0.holds());
            holds != Some(naive.holds.contains(&level))
        })
    };
    (0..1_500).filter(differs).count()
}

#[test]
fn the_comparison_notices_every_wrong_rule() {
    assert_eq!(n_differences::<ExactRules>(), 0);
    assert!(n_differences::<NoPredWr>() > 0);
    assert!(n_differences::<NoPredRw>() > 0);
    assert!(n_differences::<LateChange>() > 0);
    assert!(n_differences::<NoOwn>() > 0);
    assert!(n_differences::<NoExtra>() > 0);
    assert!(n_differences::<NoAggregate>() > 0);
    assert!(n_differences::<WholeExtreme>() > 0);
    assert!(n_differences::<HalfSingle>() > 0);
    assert!(n_differences::<NoChange>() > 0);
    assert!(n_differences::<NarrowWindow>() > 0);
}
