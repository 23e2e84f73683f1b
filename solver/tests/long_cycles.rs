//! A violated history gets a proof, however long its cycles are and wherever they lie, and the proof is as short as the history allows.

// A history that cannot be built is a mistake in the test, and may end it.
#![allow(clippy::unwrap_used)]

#[path = "support/pessimist.rs"]
mod pessimist;

use kingsnake_solver::budget::{Budget, StopReason};
use kingsnake_solver::check::{Techniques, check};
use kingsnake_solver::level::Level;
use kingsnake_solver::model::{History, HistoryBuilder, Status, Token};
use kingsnake_solver::progress::Silent;
use kingsnake_solver::verdict::{Counterexample, Proof, Step, StepReason, Verdict};
use kingsnake_tell as tell;
use pessimist::Pessimist;

/// Read-modify-writes of x; the first also writes y, the last reads the old y.
fn chain(n_txns: i64, same_session: bool) -> History {
    let mut builder = HistoryBuilder::new();
    builder.initial_everywhere(Token::Int(0));
    let (x, y) = (builder.text("x"), builder.text("y"));
    for txn in 0..n_txns {
        let session = builder.session(Token::Int(if same_session { 0 } else { txn }));
        builder
            .begin(session, Token::Int(txn), Status::Committed)
            .unwrap();
        if txn == 0 {
            builder.write(y, Token::Int(1));
        }
        builder.read(x, Token::Int(txn));
        builder.write(x, Token::Int(txn + 1));
        if txn + 1 == n_txns {
            builder.read(y, Token::Int(0));
        }
    }
    builder.finish().unwrap()
}

/// Appends to one list, which a last transaction reads; the last of them misses what the first appended to another list.
fn ring(n_txns: i64) -> History {
    let mut builder = HistoryBuilder::new();
    let (ring, anti) = (builder.text("ring"), builder.text("anti"));
    for txn in 0..=n_txns {
        let session = builder.session(Token::Int(txn));
        builder
            .begin(session, Token::Int(txn), Status::Committed)
            .unwrap();
        if txn == n_txns {
            builder.read_list(ring, (0..n_txns).map(Token::Int));
            continue;
        }
        builder.append(ring, Token::Int(txn));
        if txn == 0 {
            builder.append(anti, Token::Int(1));
        }
        if txn + 1 == n_txns {
            builder.read_list(anti, Vec::new());
        }
    }
    builder.finish().unwrap()
}

fn techniques() -> [Techniques; 2] {
    let plain = Techniques::default();
    let uncombined = Techniques {
        combine: false,
        ..plain.clone()
    };
    [plain, uncombined]
}

fn verdict(history: &History, level: Level, techniques: &Techniques, budget: &Budget) -> Verdict {
    let spec = level.spec(None).unwrap();
    let report = check(
        history,
        spec,
        techniques,
        &mut Pessimist,
        budget,
        &mut Silent,
    );
    report.unwrap().verdict
}

/// The steps of a cycle that needs no cases, begins left out, and its name.
fn cycle(history: &History, level: Level, techniques: &Techniques) -> (Vec<Step>, &'static str) {
    let found = verdict(history, level, techniques, &Budget::unlimited());
    let Verdict::Violated(counterexample) = found else {
        panic!("{found:?}");
    };
    let name = tell::name(history, level.spec(None).unwrap(), &counterexample);
    let Counterexample::Cyclic(Proof::Cycle(mut steps)) = counterexample else {
        panic!("{counterexample:?}");
    };
    steps.retain(|step| step.reason != StepReason::Begin);
    (steps, name.adya.unwrap_or(""))
}

#[test]
fn a_chain_of_read_modify_writes_is_one_step_however_long() {
    for n_txns in [3, 100, 1_000, 30_000] {
        for level in [Level::Ser, Level::Si] {
            let (steps, letters) = cycle(&chain(n_txns, false), level, &Techniques::default());
            assert_eq!((steps.len(), letters), (2, "G-single"), "{n_txns}, {level}");
        }
    }
}

#[test]
fn a_cycle_of_data_is_preferred_to_one_of_a_session() {
    let (steps, letters) = cycle(&chain(50, true), Level::Ser, &Techniques::default());
    assert_eq!((steps.len(), letters), (2, "G-single"));
}

#[test]
fn a_long_list_is_one_step_too() {
    for level in [Level::Ser, Level::Si] {
        let (steps, letters) = cycle(&ring(2_000), level, &Techniques::default());
        assert_eq!((steps.len(), letters), (2, "G-single"), "{level}");
    }
}

#[test]
fn read_modify_writes_in_a_circle_read_each_other() {
    let mut builder = HistoryBuilder::new();
    builder.initial_everywhere(Token::Int(0));
    let x = builder.text("x");
    let session = builder.session(Token::Int(0));
    for (name, read, written) in [(1, 2, 3), (2, 2, 1), (3, 1, 2)] {
        builder
            .begin(session, Token::Int(name), Status::Committed)
            .unwrap();
        builder.read(x, Token::Int(read));
        builder.write(x, Token::Int(written));
    }
    let history = builder.finish().unwrap();
    for level in [Level::Ser, Level::Si, Level::StrongSessionSi] {
        for techniques in techniques() {
            let (steps, letters) = cycle(&history, level, &techniques);
            assert_eq!((steps.len(), letters), (2, "G1c"), "{level}");
        }
    }
}

#[test]
fn the_budget_reaches_explaining_and_certifying() {
    let budget = Budget::unlimited();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let budget = budget.with_interrupt(stop);
    let found = verdict(
        &chain(100, false),
        Level::Ser,
        &Techniques::default(),
        &budget,
    );
    assert_eq!(found, Verdict::Unknown(StopReason::Interrupted));
}
