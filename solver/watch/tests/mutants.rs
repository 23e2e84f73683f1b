//! Each wrong rule of compaction is caught by the suite that the right ones pass.
#![allow(clippy::print_stderr)]

mod support;

use kingsnake_context::budget::Budget;
use kingsnake_context::rng::Rng;
use kingsnake_encodings::Backtrack;
use kingsnake_lab::stream::StreamLevel;
use kingsnake_watch::{Exact, Horizon, WatchRules, Watcher};
use support::{StreamCase, arrival, fenced, late, options, plain, sweep};

const STRICT_SER: StreamLevel = StreamLevel::ALL[0];
const STRONG_SI: StreamLevel = StreamLevel::ALL[1];
const SER: StreamLevel = StreamLevel::ALL[2];
const SI: StreamLevel = StreamLevel::ALL[3];

macro_rules! mutants {
    ($($name:ident { $($rule:item)* })*) => {
        $(#[derive(Clone, Copy)] struct $name; impl WatchRules for $name { $($rule)* })*
    };
}

mutants! {
    DropsFrontier { fn keeps_last_version(&self) -> bool { false } }
    DropsAllPast { fn drops_all_past(&self) -> bool { true } }
    SettlesAlivePairs { fn keeps_alive_pairs(&self) -> bool { false } }
    SkipsUnreadAlive { fn skips_unread(&self, has_snapshots: bool, _: bool) -> bool { !has_snapshots } }
    FixesWitness { fn fixes_choices(&self) -> bool { true } }
    IgnoresDrift { fn is_over(&self, commit: i64, _: i64, watermark: i64) -> bool { commit < watermark } }
    TakesTies { fn is_over(&self, commit: i64, drift: i64, watermark: i64) -> bool { commit + drift <= watermark } }
    ForgetsPending { fn refuses_pending(&self) -> bool { false } }
    PastByOneSession { fn tails(&self, tails: Vec<Option<u64>>) -> Vec<Option<u64>> { tails.into_iter().take(1).collect() } }
    IgnoresSilentSessions { fn tails(&self, tails: Vec<Option<u64>>) -> Vec<Option<u64>> { tails.into_iter().flatten().map(Some).collect() } }
    ForgetsNewSessions { fn awaits_new_sessions(&self) -> bool { false } }
    HasNoBarrier { fn has_barrier(&self) -> bool { false } }
    DeadByBegin { fn is_dead_by_begin(&self) -> bool { true } }
    UnknownAsAborted { fn counts_unknown(&self) -> bool { false } }
    SettlesListPairs { fn keeps_list_pairs(&self) -> bool { false } }
    DropsListsInAnyOrder { fn drops_lists_in_order(&self) -> bool { false } }
    CountsLastOfLists { fn counts_whole_lists(&self) -> bool { false } }
    ForgetsSettledLists { fn checks_settled_lists(&self) -> bool { false } }
    UnknownAsPast { fn is_endless_past(&self) -> bool { true } }
}

/// At least one stream of these levels must catch a mutant.
fn expect_caught<R: WatchRules + Clone>(
    name: &str,
    rules: &R,
    levels: &[StreamLevel],
    n_streams: usize,
    case: impl Fn(&mut Rng, StreamLevel) -> StreamCase,
) {
    let mut caught = Vec::new();
    for &level in levels {
        let tally = sweep(7, n_streams, level, rules, |rng| case(rng, level));
        caught.push(tally.mismatches);
    }
    eprintln!("{name}: {caught:?} of {n_streams} streams");
    assert!(caught.iter().any(|&it| it > 0), "{name} is not caught");
}

fn damaged(rng: &mut Rng, level: StreamLevel) -> StreamCase {
    plain(rng, level, 0, false)
}

fn damaged_late(rng: &mut Rng, level: StreamLevel) -> StreamCase {
    late(rng, level, 0, false)
}

fn unknown(rng: &mut Rng, level: StreamLevel) -> StreamCase {
    plain(rng, level, 30, false)
}

#[test]
fn rules_of_dropping_are_caught() {
    let all = StreamLevel::ALL;
    expect_caught("drop frontier writers", &DropsFrontier, &all, 400, damaged);
    expect_caught("drop all past", &DropsAllPast, &all, 3000, damaged_late);
    expect_caught(
        "settle alive pairs",
        &SettlesAlivePairs,
        &[STRICT_SER, SER],
        6000,
        damaged_late,
    );
    expect_caught(
        "skip unread alive pairs",
        &SkipsUnreadAlive,
        &[STRICT_SER, SER],
        6000,
        damaged_late,
    );
    expect_caught(
        "fix the witness's choice",
        &FixesWitness,
        &all,
        4000,
        damaged_late,
    );
    expect_caught("forget pending reads", &ForgetsPending, &all, 1000, damaged);
}

#[test]
fn rules_of_the_past_are_caught() {
    expect_caught(
        "ignore drift",
        &IgnoresDrift,
        &[STRICT_SER, STRONG_SI],
        4000,
        damaged,
    );
    expect_caught("ties", &TakesTies, &[STRICT_SER, STRONG_SI], 4000, damaged);
    expect_caught(
        "past by one session",
        &PastByOneSession,
        &[SER, SI],
        1000,
        damaged,
    );
    expect_caught(
        "silent sessions ignored",
        &IgnoresSilentSessions,
        &[SER, SI],
        1000,
        damaged,
    );
    expect_caught("no barrier", &HasNoBarrier, &[SI], 6000, damaged_late);
    expect_caught(
        "dead by begin",
        &DeadByBegin,
        &[STRONG_SI, SI],
        8000,
        damaged_late,
    );
}

#[test]
fn rules_of_unknown_ends_are_caught() {
    let strict = [STRICT_SER, STRONG_SI];
    expect_caught(
        "unknown as aborted",
        &UnknownAsAborted,
        &strict,
        1000,
        unknown,
    );
    expect_caught("unknown as past", &UnknownAsPast, &strict, 3000, unknown);
}

#[test]
fn rules_of_lists_are_caught() {
    let all = StreamLevel::ALL;
    let lists = |rng: &mut Rng, level| late(rng, level, 0, true);
    expect_caught(
        "settle pairs of lists",
        &SettlesListPairs,
        &all,
        6000,
        lists,
    );
    expect_caught(
        "drop lists in any order",
        &DropsListsInAnyOrder,
        &all,
        6000,
        lists,
    );
    expect_caught(
        "forget settled lists",
        &ForgetsSettledLists,
        &all,
        2000,
        lists,
    );
    let unknown = |rng: &mut Rng, level| plain(rng, level, 30, true);
    expect_caught(
        "count the last of a list",
        &CountsLastOfLists,
        &all,
        2000,
        unknown,
    );
}

#[test]
fn rules_of_fences_are_caught() {
    let fences = |rng: &mut Rng, _| fenced(rng, true);
    expect_caught(
        "new sessions forgotten",
        &ForgetsNewSessions,
        &[SER, SI],
        3000,
        fences,
    );
    let mut caught = 0;
    for level in [SER, SI] {
        caught += sweep(8, 3000, level, &Exact, |rng| fenced(rng, false)).mismatches;
    }
    eprintln!("no first fence: {caught} of 6000 streams");
    assert!(caught > 0, "a session without a first fence is not caught");
}

#[test]
fn a_violation_stays_one() {
    let mut watcher = Watcher::new(options(SER, 0));
    let mut case = plain(&mut Rng::new(1), SER, 0, false);
    case.txns[0].reads.insert(0, u32::MAX);
    let arrivals = case.txns.iter().map(|it| arrival(it, false));
    let closed = Horizon::closed();
    let budget = Budget::unlimited();
    for arrivals in [arrivals.collect(), Vec::new()] {
        let report = watcher.batch(arrivals, &closed, &mut Backtrack, &budget);
        let state = report.map(|it| it.state).ok();
        assert_eq!(state, Some(kingsnake_watch::WatchState::Violated));
    }
}
