//! Range queries over many keys: what they did not return stays an interval, so thousands of them are linear.

#[path = "support/pessimist.rs"]
mod pessimist;

use std::ops::Bound::{self, Excluded, Included, Unbounded};

use kingsnake_solver::budget::Budget;
use kingsnake_solver::check::{Techniques, check};
use kingsnake_solver::level::{Level, Spec};
use kingsnake_solver::model::{History, HistoryBuilder, Status, Token};
use kingsnake_solver::progress::Silent;
use kingsnake_solver::relate::construct;
use kingsnake_solver::resolve::resolve;
use kingsnake_solver::verdict::{Counterexample, Proof, StepReason, Verdict};
use pessimist::Pessimist;

const N: i64 = 20_000;

const WEAK: [Level; 4] = [Level::Rc, Level::RcSo, Level::Ra, Level::Cc];

type Ends = (Bound<Token>, Bound<Token>);

/// Transaction i finds no row between the ends, and inserts row i.
fn history(n_txns: i64, n_sessions: i64, ends: impl Fn(i64) -> Ends) -> History {
    history_from(Token::Nil, n_txns, n_sessions, ends)
}

/// The same with this value of every row before any transaction.
fn history_from(
    initial: Token,
    n_txns: i64,
    n_sessions: i64,
    ends: impl Fn(i64) -> Ends,
) -> History {
    let mut builder = HistoryBuilder::new();
    builder.initial_everywhere(initial);
    for txn in 0..n_txns {
        let session = builder.session(Token::Int(txn % n_sessions));
        let begun = builder.begin(session, Token::Int(txn), Status::Committed);
        begun.expect("names are counted");
        let (low, high) = ends(txn);
        let answer = builder.range(low, high, &[], None);
        answer.expect("the ends are numbers");
        builder.write(Token::Int(txn), Token::Int(1));
    }
    builder.finish().expect("it is well formed")
}

/// All of the table.
fn everything(_: i64) -> Ends {
    (Unbounded, Unbounded)
}

/// What later transactions insert.
fn ahead(txn: i64) -> Ends {
    (Included(Token::Int(txn)), Unbounded)
}

/// What earlier transactions insert.
fn behind(txn: i64) -> Ends {
    (Unbounded, Excluded(Token::Int(txn)))
}

fn verdict(history: &History, level: Level) -> Verdict {
    let spec = level.spec(None).expect("the level needs nothing more");
    let all = Techniques::default();
    let budget = Budget::unlimited();
    let report = check(history, spec, &all, &mut Pessimist, &budget, &mut Silent);
    report.expect("it can be checked").verdict
}

fn is_satisfied(history: &History, level: Level) -> bool {
    matches!(verdict(history, level), Verdict::Satisfied(_))
}

#[test]
fn twenty_thousand_that_all_found_the_table_empty_are_a_phantom_at_ser() {
    let history = history(N, N, everything);
    let Verdict::Violated(Counterexample::Cyclic(Proof::Cycle(steps))) =
        verdict(&history, Level::Ser)
    else {
        panic!("two of them cannot both be first");
    };
    assert_eq!(steps.len(), 2);
    let mut reasons = steps.iter().map(|step| step.reason);
    assert!(reasons.all(|reason| matches!(reason, StepReason::Rw { writer: None, .. })));
    assert!(is_satisfied(&history, Level::Si));
    assert!(is_satisfied(&history, Level::Pc));
    for level in WEAK {
        assert!(is_satisfied(&history, level), "{level}");
    }
}

#[test]
fn ranges_that_look_ahead_order_the_inserts() {
    let history = history(N, 4, ahead);
    for level in [Level::Ser, Level::Si, Level::Pc] {
        assert!(is_satisfied(&history, level), "{level}");
    }
    for level in WEAK {
        assert!(is_satisfied(&history, level), "{level}");
    }
}

#[test]
fn ranges_that_miss_their_sessions_own_inserts_are_violations_above_rc() {
    let history = history(N, 4, behind);
    for level in [Level::Ser, Level::Si, Level::Pc] {
        assert!(!is_satisfied(&history, level), "{level}");
    }
    for level in WEAK {
        assert_eq!(is_satisfied(&history, level), level == Level::Rc, "{level}");
    }
}

#[test]
fn the_graph_of_many_ranges_is_nearly_linear() {
    let size = |n: i64| {
        let history = history(n, n, everything);
        let resolved = resolve(&history, &Budget::unlimited()).expect("it says enough");
        let spec: Spec = Level::Ser.spec(None).expect("it needs nothing more");
        let polygraph = construct(&history, resolved, spec, true);
        (polygraph.n_nodes() as i64, polygraph.edges().len() as i64)
    };
    let (n_nodes, n_edges) = size(N);
    assert!(n_nodes <= 3 * N, "{n_nodes}");
    // Two gaps per reader, each of at most 2 log n intervals.
    assert!(n_edges <= 34 * N, "{n_edges}");
}

#[test]
fn rows_that_were_there_and_are_missing_are_not_all_listed() {
    let history = history_from(Token::Int(0), N, N, everything);
    for level in [Level::Ser, Level::Pc] {
        let verdict = verdict(&history, level);
        let Verdict::Violated(Counterexample::Local(findings)) = verdict else {
            panic!("{level}: {verdict:?}");
        };
        assert_eq!(findings.len(), 1000);
    }
    let Verdict::Violated(Counterexample::Local(findings)) = verdict(&history, Level::Rc) else {
        panic!("rows are missing");
    };
    assert_eq!(findings.len(), 1000);
}

#[test]
fn a_read_out_of_thin_air_is_found_behind_thousands_that_read_committed_allows() {
    let mut builder = HistoryBuilder::new();
    builder.initial_everywhere(Token::Int(0));
    let key = Token::Int(1);
    for txn in 0..3_000 {
        let session = builder.session(Token::Int(txn));
        let begun = builder.begin(session, Token::Int(txn), Status::Committed);
        begun.expect("names are counted");
        if txn == 0 {
            builder.write(key, Token::Int(1));
        } else if txn < 2_999 {
            builder.read(key, Token::Int(0));
            builder.read(key, Token::Int(1));
        } else {
            builder.read(key, Token::Int(7));
        }
    }
    let history = builder.finish().expect("it is well formed");
    let verdict = verdict(&history, Level::Rc);
    let is_local = matches!(verdict, Verdict::Violated(Counterexample::Local(_)));
    assert!(is_local, "{verdict:?}");
}

#[test]
fn rows_that_anybody_may_have_deleted_are_kept_within_the_memory() {
    let mut builder = HistoryBuilder::new();
    builder.initial_everywhere(Token::Nil);
    for txn in 0..4_000 {
        let session = builder.session(Token::Int(txn));
        let begun = builder.begin(session, Token::Int(txn), Status::Committed);
        begun.expect("names are counted");
        if txn < 2_000 {
            let answer = builder.range(Unbounded, Unbounded, &[], None);
            answer.expect("there are no ends");
            builder.write(Token::Int(txn), Token::Int(1));
        } else {
            builder.write(Token::Int(txn - 2_000), Token::Nil);
        }
    }
    let history = builder.finish().expect("it is well formed");
    let budget = Budget::unlimited().with_memory(64 << 20);
    let stopped = resolve(&history, &budget).expect_err("four million reads are too many");
    assert!(stopped.to_string().contains("memory limit"), "{stopped}");
}
