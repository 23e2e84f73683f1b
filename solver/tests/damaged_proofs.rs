//! Claims that the history does not support are rejected, one kind of claim after the other.

// A sketch that cannot be read is a mistake in the test, and may end it.
#![allow(clippy::unwrap_used)]

use kingsnake_solver::certify::refutation::{check_findings, check_proof};
use kingsnake_solver::level::{Level, Spec};
use kingsnake_solver::model::{History, HistoryBuilder, KeyId, Op, Status, Token, TxnId, ValueId};
use kingsnake_solver::verdict::{
    Fact, Finding, LocalAnomaly, Moment, Point, Proof, Step, StepReason,
};

/// Transactions 0 to 6, the first two and the last two in one session each:
///
/// - 0: x = 1; 1: reads x = 1, x = 2; 2: reads x = 0 and y = 3; 3: y = 3; 4: x = 4, y = 4
/// - 5: reads z = 0, z = 5; 6: aborted, z = 6
fn history() -> History {
    let mut builder = HistoryBuilder::new();
    builder.initial_everywhere(Token::Int(0));
    let [x, y, z] = ["x", "y", "z"].map(|name| builder.text(name));
    let int = Token::Int;
    let mut name = 0;
    let mut begin = |builder: &mut HistoryBuilder, session: i64, status| {
        let session = builder.session(int(session));
        builder.begin(session, int(name), status).unwrap();
        builder.times(Some(10 * name), Some(10 * name + 5));
        name += 1;
    };
    begin(&mut builder, 0, Status::Committed);
    builder.write(x, int(1));
    begin(&mut builder, 0, Status::Committed);
    builder.read(x, int(1));
    builder.write(x, int(2));
    begin(&mut builder, 1, Status::Committed);
    builder.read(x, int(0));
    builder.read(y, int(3));
    begin(&mut builder, 2, Status::Committed);
    builder.write(y, int(3));
    begin(&mut builder, 3, Status::Committed);
    builder.write(x, int(4));
    builder.write(y, int(4));
    begin(&mut builder, 4, Status::Committed);
    builder.read(z, int(0));
    builder.write(z, int(5));
    begin(&mut builder, 4, Status::Aborted);
    builder.write(z, int(6));
    builder.finish().unwrap()
}

const X: KeyId = KeyId(0);
const Y: KeyId = KeyId(1);
const Z: KeyId = KeyId(2);

fn spec(level: Level, session_order: bool) -> Spec {
    level.spec(Some(session_order)).unwrap()
}

fn whole(txn: u32) -> Point {
    Point {
        txn: TxnId(txn),
        moment: Moment::Whole,
    }
}

/// The complaint about the first step of a cycle there and back, if there is one. The way back never holds.
fn complaint(spec: Spec, from: Point, to: Point, reason: StepReason) -> String {
    let there = Step { from, to, reason };
    let back = Step {
        from: to,
        to: from,
        reason: StepReason::Session,
    };
    let refusal = check_proof(&history(), spec, &Proof::Cycle(vec![there, back])).unwrap_err();
    refusal.to_string()
}

/// Whether the claim itself is what is wrong, and not the way back.
fn is_rejected(spec: Spec, from: u32, to: u32, reason: StepReason) -> bool {
    let complaint = complaint(spec, whole(from), whole(to), reason);
    !complaint.starts_with(&format!(
        "transaction {to} before transaction {from}: Session"
    ))
}

fn value(txn: u32, at: usize) -> ValueId {
    match history().ops(TxnId(txn))[at] {
        Op::Write { value, .. } | Op::Read { value, .. } => value,
        _ => panic!("a register"),
    }
}

fn ww(key: KeyId, fact: Fact) -> StepReason {
    StepReason::Ww { key, fact }
}

fn rw(key: KeyId, writer: Option<u32>, fact: Fact) -> StepReason {
    StepReason::Rw {
        key,
        writer: writer.map(TxnId),
        fact,
    }
}

#[test]
fn true_claims_are_accepted() {
    let ser = spec(Level::StrictSer, true);
    let value = value(0, 0);
    assert!(!is_rejected(ser, 0, 1, StepReason::Session));
    assert!(!is_rejected(ser, 0, 4, StepReason::RealTime));
    assert!(!is_rejected(ser, 0, 1, StepReason::Wr { key: X, value }));
    assert!(!is_rejected(ser, 0, 1, ww(X, Fact::Run)));
    assert!(!is_rejected(ser, 2, 0, rw(X, None, Fact::Initial)));
}

#[test]
fn a_session_order_that_is_not_there_is_rejected() {
    let ser = spec(Level::Ser, true);
    assert!(is_rejected(ser, 1, 0, StepReason::Session));
    assert!(is_rejected(ser, 0, 2, StepReason::Session));
    assert!(is_rejected(
        spec(Level::Ser, false),
        0,
        1,
        StepReason::Session
    ));
}

#[test]
fn real_time_counts_only_at_a_level_that_has_it() {
    assert!(is_rejected(
        spec(Level::Ser, true),
        0,
        4,
        StepReason::RealTime
    ));
    assert!(is_rejected(
        spec(Level::StrictSer, true),
        4,
        0,
        StepReason::RealTime
    ));
}

#[test]
fn a_read_from_somebody_else_is_rejected() {
    let ser = spec(Level::Ser, true);
    let value = value(0, 0);
    assert!(is_rejected(ser, 0, 2, StepReason::Wr { key: X, value }));
    assert!(is_rejected(ser, 0, 1, StepReason::Wr { key: Y, value }));
    assert!(is_rejected(ser, 1, 0, StepReason::Wr { key: X, value }));
}

#[test]
fn a_version_order_without_a_reason_is_rejected() {
    let ser = spec(Level::Ser, true);
    for fact in [Fact::Initial, Fact::Run, Fact::Given, Fact::Assumed] {
        assert!(is_rejected(ser, 0, 4, ww(X, fact)), "{fact:?}");
        assert!(is_rejected(ser, 1, 0, ww(X, fact)), "{fact:?}");
        assert!(is_rejected(ser, 2, 4, rw(Y, Some(3), fact)), "{fact:?}");
    }
    assert!(is_rejected(ser, 0, 1, ww(X, Fact::Given)));
    assert!(is_rejected(ser, 0, 1, ww(Y, Fact::Run)));
}

#[test]
fn a_read_of_another_version_is_rejected() {
    let ser = spec(Level::Ser, true);
    assert!(is_rejected(ser, 2, 1, rw(X, Some(0), Fact::Run)));
    assert!(is_rejected(ser, 2, 3, rw(Y, None, Fact::Initial)));
    assert!(is_rejected(ser, 2, 0, rw(Z, None, Fact::Initial)));
}

#[test]
fn an_aborted_transaction_takes_no_part() {
    let ser = spec(Level::Ser, true);
    assert!(is_rejected(ser, 5, 6, rw(Z, None, Fact::Initial)));
    assert!(is_rejected(ser, 5, 6, StepReason::Session));
}

#[test]
fn moments_must_be_those_that_the_reason_orders() {
    let si = spec(Level::Si, true);
    let point = |txn, moment| Point {
        txn: TxnId(txn),
        moment,
    };
    let flipped = complaint(
        si,
        point(0, Moment::Begin),
        point(1, Moment::Commit),
        StepReason::Session,
    );
    assert!(flipped.contains("moments"), "{flipped}");
    let whole = complaint(si, whole(0), whole(1), StepReason::Session);
    assert!(whole.contains("moments"), "{whole}");
    let backwards = complaint(
        si,
        point(0, Moment::Commit),
        point(0, Moment::Begin),
        StepReason::Begin,
    );
    assert!(backwards.contains("moments"), "{backwards}");
}

#[test]
fn an_assumption_holds_only_in_its_own_case() {
    let ser = spec(Level::Ser, true);
    let step = |from, to, fact| Step {
        from: whole(from),
        to: whole(to),
        reason: ww(X, fact),
    };
    let cycle = |first, second| {
        Box::new(Proof::Cycle(vec![
            step(first, second, Fact::Assumed),
            step(second, first, Fact::Assumed),
        ]))
    };
    let split = Proof::Split {
        key: X,
        one: TxnId(0),
        other: TxnId(4),
        one_first: cycle(0, 4),
        other_first: cycle(4, 0),
    };
    assert!(check_proof(&history(), ser, &split).is_err());
    let not_a_writer = Proof::Split {
        key: X,
        one: TxnId(0),
        other: TxnId(3),
        one_first: cycle(0, 4),
        other_first: cycle(4, 0),
    };
    let complaint = check_proof(&history(), ser, &not_a_writer);
    let complaint = complaint.unwrap_err().to_string();
    assert!(complaint.contains("wrote no version"), "{complaint}");
}

#[test]
fn findings_that_are_not_there_are_rejected() {
    let history = history();
    assert!(check_findings(&history, &[]).is_err());
    let places: Vec<(TxnId, usize)> = history
        .txns()
        .flat_map(|txn| (0..=history.ops(txn).len()).map(move |op| (txn, op)))
        .collect();
    for anomaly in LocalAnomaly::ALL {
        for &(txn, op) in &places {
            for other in places.iter().copied().map(Some).chain([None]) {
                let finding = Finding {
                    anomaly,
                    txn,
                    op,
                    key: KeyId(0),
                    other,
                };
                let verdict = check_findings(&history, std::slice::from_ref(&finding));
                assert!(verdict.is_err(), "{finding:?}");
            }
        }
    }
}
