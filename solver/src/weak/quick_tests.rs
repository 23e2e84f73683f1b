//! Orders without reasons against the edges with reasons, the two ways of replaying an order against each other, and mistakes in each
//! that these comparisons catch.

use kingsnake_certify::weak::plain::{Prepared, ReplayRules};
use kingsnake_certify::weak::replay_in_order;
use kingsnake_lab::random::{Rng, small};
use kingsnake_relate::visible::quick::{self, ExactRules, QuickRules, Scanned};

use super::tests::{check, drawn, specs};
use super::{commits, cycle};
use crate::budget::Budget;
use crate::level::Model;
use crate::model::{History, TxnId};
use crate::resolve::{Node, resolve_reads};
use crate::verdict::Verdict;

/// Registers and lists, plain ones among them.
fn histories(n_seeds: u64) -> impl Iterator<Item = History> {
    (0..n_seeds).flat_map(|seed| [drawn(seed), small(seed)])
}

/// Mistakes in looking for an order.
#[derive(Clone, Copy, Debug)]
enum QuickMistake {
    /// The first read that sees a transaction does not.
    FirstReadSeesNothing,
    /// What came before in the session is not seen.
    NothingOfTheSession,
    /// The initial state may be returned whatever was seen.
    InitialAlways,
    /// The last of each session that happened before a reader is forgotten.
    PastEndsEarly,
    /// One of each session too many happened before a reader.
    PastEndsLate,
    /// The first places of an order where a writer can have been missed are left out.
    LookedAtLate,
}

impl QuickRules for QuickMistake {
    fn first_seeing(self, first: usize) -> usize {
        first + usize::from(matches!(self, Self::FirstReadSeesNothing))
    }

    fn looks_back(self) -> bool {
        !matches!(self, Self::NothingOfTheSession)
    }

    fn excludes_initial(self) -> bool {
        !matches!(self, Self::InitialAlways)
    }

    fn is_past(self, node: Node, end: Node) -> bool {
        match self {
            Self::PastEndsEarly => node + 1 < end,
            Self::PastEndsLate => node <= end,
            _ => node < end,
        }
    }

    fn looked_at_from(self, place: u32) -> u32 {
        place + u32::from(matches!(self, Self::LookedAtLate))
    }
}

/// All things looked up, none compared one by one.
const LOOKED_UP: Scanned = Scanned {
    reads: 0,
    writers: 0,
};

/// How many of some histories have no order and have one; `None` if the search differs from the edges with reasons on one.
fn compared(n_seeds: u64, rules: impl QuickRules, all: &[Scanned]) -> Option<[usize; 2]> {
    let budget = Budget::unlimited();
    let mut counts = [0; 2];
    for history in histories(n_seeds) {
        let Ok(resolved) = resolve_reads(&history, &budget) else {
            continue;
        };
        if !resolved.reads().choices().is_empty() || !resolved.reads().gaps().is_empty() {
            continue;
        }
        for spec in specs().filter(|it| it.session_order || it.model != Model::Cc) {
            // At read atomic a second read of another version is a finding.
            if !resolved.broken(&history, spec).is_empty() {
                continue;
            }
            let edges = commits(&history, &resolved, spec, &budget).expect("there is time");
            let has_order = cycle::order(resolved.n_txns(), &edges).is_ok();
            counts[usize::from(has_order)] += 1;
            for &scanned in all {
                let (model, session_order) = (spec.model, spec.session_order);
                let stated = Vec::new();
                let order = quick::order(
                    rules,
                    &resolved,
                    model,
                    session_order,
                    stated,
                    scanned,
                    &budget,
                );
                let order = order.expect("there is time");
                let is_same = order.is_some() == has_order;
                let order = order.unwrap_or_default();
                let place = |node| order.iter().position(|&it| it == node);
                let mut kept = edges.iter().map(|it| place(it.from) < place(it.to));
                if !is_same || has_order && !kept.all(|it| it) {
                    return None;
                }
            }
        }
    }
    Some(counts)
}

#[test]
fn an_order_is_found_from_pairs_exactly_where_the_edges_with_reasons_have_one() {
    let counts = compared(5_000, ExactRules, &[Scanned::default(), LOOKED_UP]);
    println!("without and with an order: {counts:?}");
    assert!(counts.is_some_and(|counts| counts.iter().all(|&count| count > 2_000)));
}

#[test]
fn mistakes_in_looking_for_an_order_are_caught() {
    for mistake in [
        QuickMistake::FirstReadSeesNothing,
        QuickMistake::NothingOfTheSession,
        QuickMistake::InitialAlways,
        QuickMistake::PastEndsEarly,
        QuickMistake::PastEndsLate,
    ] {
        for scanned in [Scanned::default(), LOOKED_UP] {
            let counts = compared(5_000, mistake, &[scanned]);
            assert!(counts.is_none(), "{mistake:?} with {scanned:?}");
        }
    }
    // Looking each session up does not look at the order.
    let counts = compared(5_000, QuickMistake::LookedAtLate, &[Scanned::default()]);
    assert!(counts.is_none());
}

/// Mistakes in replaying an order.
#[derive(Clone, Copy, Debug)]
enum ReplayMistake {
    /// One may read from a later one.
    ReadsFromLater,
    /// A read at read committed does not see what the operation before it was from.
    SeesLate,
    /// One newer version may be missed.
    MissesOne,
    /// What came before in the session is not seen.
    NothingOfTheSession,
    /// The last of each session that happened before a transaction is forgotten.
    PastEndsEarly,
}

/// A mistake, if any, and whether every writer between is looked up.
#[derive(Clone, Copy, Debug)]
struct Replay {
    mistake: Option<ReplayMistake>,
    looks_up: bool,
}

impl ReplayRules for Replay {
    fn is_before(self, from: u32, place: u32) -> bool {
        from > 0 && (from < place || matches!(self.mistake, Some(ReplayMistake::ReadsFromLater)))
    }

    fn sees(self, seen: u32, op: u32) -> bool {
        seen + 2 * u32::from(matches!(self.mistake, Some(ReplayMistake::SeesLate))) <= op
    }

    fn is_newer(self, latest: u32, from: u32) -> bool {
        latest > from + u32::from(matches!(self.mistake, Some(ReplayMistake::MissesOne)))
    }

    fn looks_back(self) -> bool {
        !matches!(self.mistake, Some(ReplayMistake::NothingOfTheSession))
    }

    fn max_between(self) -> usize {
        if self.looks_up { 0 } else { 32 }
    }

    fn is_past(self, writer: u32, end: u32) -> bool {
        writer + u32::from(matches!(self.mistake, Some(ReplayMistake::PastEndsEarly))) < end
    }
}

/// How many orders, damaged or not, are refused and accepted; `None` if the two ways of replaying differ on one.
fn replayed(n_seeds: u64, rules: impl ReplayRules) -> Option<[usize; 2]> {
    let (mut rng, mut counts) = (Rng::new(1), [0; 2]);
    for history in histories(n_seeds) {
        for spec in specs() {
            let Some(prepared) = Prepared::of(&history, spec) else {
                continue;
            };
            let checked = check(&history, spec);
            let Ok(Verdict::Satisfied(found)) = checked else {
                continue;
            };
            assert!(found.sources.is_empty());
            let mut order: Vec<TxnId> = found.commits().collect();
            for damage in 0..4 {
                let held = prepared.replay_by(rules, &order).is_ok();
                let truth = replay_in_order(&history, spec, &order, &[]).is_ok();
                if held != truth {
                    return None;
                }
                counts[usize::from(held)] += 1;
                damaged(&mut order, damage, &mut rng);
            }
        }
    }
    Some(counts)
}

#[test]
fn plain_histories_are_replayed_as_all_others_are() {
    for looks_up in [false, true] {
        let rules = Replay {
            mistake: None,
            looks_up,
        };
        let counts = replayed(4_000, rules);
        println!("refused and accepted: {counts:?}");
        assert!(counts.is_some_and(|counts| counts.iter().all(|&count| count > 2_000)));
    }
}

#[test]
fn mistakes_in_replaying_an_order_are_caught() {
    for mistake in [
        ReplayMistake::ReadsFromLater,
        ReplayMistake::SeesLate,
        ReplayMistake::MissesOne,
        ReplayMistake::NothingOfTheSession,
        ReplayMistake::PastEndsEarly,
    ] {
        for looks_up in [false, true] {
            let rules = Replay {
                mistake: Some(mistake),
                looks_up,
            };
            assert!(replayed(4_000, rules).is_none(), "{rules:?}");
        }
    }
}

/// Exchanges, drops or repeats a transaction.
fn damaged(order: &mut Vec<TxnId>, how: usize, rng: &mut Rng) {
    if order.is_empty() {
        return;
    }
    let (one, other) = (rng.below(order.len()), rng.below(order.len()));
    match how {
        0 | 1 => order.swap(one, other),
        2 => order[one] = order[other],
        _ => drop(order.remove(one)),
    }
}
