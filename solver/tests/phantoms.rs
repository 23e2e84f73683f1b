//! Phantoms: their names and words, and that the checker of proofs reads ranges for itself.

#[path = "support/pessimist.rs"]
mod pessimist;

use std::ops::Bound::{Excluded, Included};

use kingsnake_solver::budget::Budget;
use kingsnake_solver::certify::refutation::{check_findings, check_proof};
use kingsnake_solver::check::{Techniques, check};
use kingsnake_solver::level::{Level, Spec};
use kingsnake_solver::model::{History, HistoryBuilder, KeyId, Status, Token, TxnId};
use kingsnake_solver::progress::Silent;
use kingsnake_solver::verdict::{
    Counterexample, Fact, Finding, LocalAnomaly, Moment, Point, Proof, Step, StepReason, Verdict,
};
use kingsnake_tell as tell;
use pessimist::Pessimist;

const fn int(number: i64) -> Token {
    Token::Int(number)
}

/// Transactions that each run one of these, in sessions of their own.
fn history(txns: &[&dyn Fn(&mut HistoryBuilder)]) -> History {
    let mut builder = HistoryBuilder::new();
    builder.initial_everywhere(Token::Nil);
    for (number, ops) in txns.iter().enumerate() {
        let name = int(number as i64 + 1);
        let session = builder.session(name);
        let begun = builder.begin(session, name, Status::Committed);
        begun.expect("names are counted");
        ops(&mut builder);
    }
    builder.finish().expect("it is well formed")
}

fn query(builder: &mut HistoryBuilder, low: i64, high: i64, rows: &[(i64, i64)]) {
    let rows: Vec<(Token, Token)> = rows.iter().map(|row| (int(row.0), int(row.1))).collect();
    let answer = builder.range(Included(int(low)), Included(int(high)), &rows, None);
    answer.expect("the rows are inside");
}

fn spec(level: Level) -> Spec {
    level.spec(None).expect("the level needs nothing more")
}

fn counterexample(history: &History, level: Level) -> Option<Counterexample> {
    let report = check(
        history,
        spec(level),
        &Techniques::default(),
        &mut Pessimist,
        &Budget::unlimited(),
        &mut Silent,
    );
    match report.expect("it can be checked").verdict {
        Verdict::Violated(counterexample) => Some(counterexample),
        _ => None,
    }
}

fn story(history: &History, level: Level) -> String {
    let found = counterexample(history, level).expect("it is violated");
    let name = tell::name(history, spec(level), &found);
    let story = tell::story(history, spec(level), &found);
    let adya = name.adya.unwrap_or("no letters");
    let lines: Vec<&str> = story.lines.iter().map(|line| line.text.as_str()).collect();
    format!("{} ({adya})\n{}", name.short, lines.join("\n"))
}

fn assert_says(told: &str, words: &str) {
    assert!(told.contains(words), "{told}");
}

/// Both ask for [10, 20] and insert a row into it that the other does not see.
fn skew() -> History {
    history(&[
        &|it| {
            query(it, 10, 20, &[]);
            it.insert(int(12), int(1));
        },
        &|it| {
            query(it, 10, 20, &[]);
            it.insert(int(17), int(2));
        },
    ])
}

#[test]
fn a_write_skew_through_ranges_is_a_phantom_that_si_allows() {
    let history = skew();
    assert_eq!(counterexample(&history, Level::Si), None);
    let told = story(&history, Level::Ser);
    assert_says(&told, "phantom (G2)");
    assert_says(
        &told,
        "T1's range query of [10, 20] did not return k17, which T2 inserted as k17 = 2",
    );
    assert_says(
        &told,
        "T2's range query of [10, 20] did not return k12, which T1 inserted as k12 = 1",
    );
}

#[test]
fn a_range_that_misses_half_of_an_insert_is_a_phantom_at_si_too() {
    let history = history(&[
        &|it| {
            it.insert(int(12), int(1));
            it.insert(int(20), int(2));
        },
        &|it| query(it, 10, 20, &[(12, 1)]),
    ]);
    let told = story(&history, Level::Si);
    assert_says(&told, "phantom (G-single)");
    assert_says(
        &told,
        "T2's range query of [10, 20] returned k12 = 1, which T1 inserted",
    );
    assert_says(
        &told,
        "T2's range query of [10, 20] did not return k20, which T1 inserted as k20 = 2",
    );
}

#[test]
fn a_deleted_row_is_told_as_deleted() {
    let history = history(&[
        &|it| {
            it.insert(int(12), int(1));
        },
        &|it| {
            it.read(int(12), int(1));
            it.delete(int(12), int(7));
            it.write(int(99), int(5));
        },
        &|it| {
            it.read(int(99), int(5));
            let rows = [(int(12), int(1))];
            let answer = it.range(Excluded(int(11)), Excluded(int(13)), &rows, Some(&[]));
            answer.expect("the row is inside");
        },
    ]);
    let told = story(&history, Level::Ser);
    assert_says(&told, "non-monotonic read (G-single)");
    assert_says(
        &told,
        "T3's range query of (11, 13) returned k12 = 1, which T2 also read and deleted",
    );
}

/// The key of this name.
fn key(history: &History, name: i64) -> KeyId {
    let keys = (0..history.n_keys() as u32).map(KeyId);
    let mut named = keys.filter(|&key| history.key_token(key) == int(name));
    named.next().expect("the history names it")
}

/// That T1 missed the row of this key and so came before T2, and the other way round for key 12.
fn claim(history: &History, missed: i64) -> Proof {
    let point = |txn| Point {
        txn: TxnId(txn),
        moment: Moment::Whole,
    };
    let step = |from, to, name| Step {
        from: point(from),
        to: point(to),
        reason: StepReason::Rw {
            key: key(history, name),
            writer: None,
            fact: Fact::Initial,
        },
    };
    Proof::Cycle(vec![step(0, 1, missed), step(1, 0, 12)])
}

#[test]
fn the_checker_of_proofs_reads_the_bounds_itself() {
    let ser = spec(Level::Ser);
    let both = skew();
    assert_eq!(check_proof(&both, ser, &claim(&both, 17)), Ok(()));
    // T1 asks for less than [10, 17], so it says nothing of key 17.
    for is_excluded in [false, true] {
        let history = history(&[
            &|it| {
                let high = if is_excluded {
                    Excluded(int(17))
                } else {
                    Included(int(16))
                };
                let answer = it.range(Included(int(10)), high, &[], None);
                answer.expect("nothing is outside");
                it.insert(int(12), int(1));
            },
            &|it| {
                query(it, 10, 20, &[]);
                it.insert(int(17), int(2));
            },
        ]);
        assert!(check_proof(&history, ser, &claim(&history, 17)).is_err());
        assert_eq!(counterexample(&history, Level::Ser), None);
    }
}

#[test]
fn a_row_is_missing_only_if_it_was_there_and_nobody_deleted_it() {
    let build = |is_there: bool, is_deleted: bool, low: i64| {
        let mut builder = HistoryBuilder::new();
        builder.initial_everywhere(Token::Nil);
        if is_there {
            builder.initial(int(12), int(1));
        }
        let session = builder.session(int(1));
        for name in [1, 2] {
            let begun = builder.begin(session, int(name), Status::Committed);
            begun.expect("names differ");
            if name == 1 {
                query(&mut builder, low, 20, &[]);
                builder.read(int(5), Token::Nil);
            } else if is_deleted {
                builder.delete(int(12), Token::Nil);
            } else {
                builder.write(int(12), int(3));
            }
        }
        builder.finish().expect("it is well formed")
    };
    for (is_there, is_deleted, low, expected) in [
        (true, false, 12, true),
        (true, false, 13, false),
        (true, true, 12, false),
        (false, false, 12, false),
    ] {
        let history = build(is_there, is_deleted, low);
        let finding = Finding {
            anomaly: LocalAnomaly::MissingRow,
            txn: TxnId(0),
            op: 0,
            key: key(&history, 12),
            other: None,
        };
        let confirmed = check_findings(&history, std::slice::from_ref(&finding)).is_ok();
        assert_eq!(confirmed, expected, "{is_there}, {is_deleted}, {low}");
        let found = counterexample(&history, Level::Ser);
        let local = Counterexample::Local(vec![finding]);
        assert_eq!(found == Some(local), expected);
    }
}
