//! The classic anomalies, from a sketch of the history to the words that a tester reads.

// A sketch that cannot be read is a mistake in the test, and may end it.
#![allow(clippy::unwrap_used)]

#[path = "support/pessimist.rs"]
mod pessimist;
#[path = "support/proof_sketch.rs"]
mod proof_sketch;

use kingsnake_solver::budget::Budget;
use kingsnake_solver::check::{Techniques, check};
use kingsnake_solver::level::{Level, Spec};
use kingsnake_solver::model::{History, HistoryBuilder, Status, Token};
use kingsnake_solver::progress::Silent;
use kingsnake_solver::verdict::Verdict;
use kingsnake_tell as tell;
use pessimist::Pessimist;

/// A violation as it is printed, and what was proved.
struct Told {
    words: String,
    proof: String,
}

/// Compares the words with one snapshot and the proof with the next.
macro_rules! assert_snapshot {
    ($told:expr $(,)?) => {{
        let told: Told = $told;
        insta::assert_snapshot!(told.words);
        insta::assert_snapshot!(told.proof);
    }};
}

/// A history from lines `session transaction [aborted|unknown] [begin-commit]: operations`, where an operation is `r x 1`,
/// `w x 1`, `a x 1` or `l x 1,2`, and a line `order x 1,2` gives a version order. Every key begins with 0.
fn history(sketch: &str) -> History {
    let mut builder = HistoryBuilder::new();
    builder.initial_everywhere(Token::Int(0));
    for line in sketch
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        if let Some(order) = line.strip_prefix("order ") {
            let (key, values) = order.split_once(' ').unwrap();
            let key = builder.text(key);
            builder.version_order(key, numbers(values)).unwrap();
            continue;
        }
        let (head, ops) = line.split_once(':').unwrap();
        let mut head = head.split_whitespace();
        let session = token(&mut builder, head.next().unwrap());
        let session = builder.session(session);
        let name = token(&mut builder, head.next().unwrap());
        builder.begin(session, name, Status::Committed).unwrap();
        for word in head {
            match word {
                "aborted" => builder.status(Status::Aborted),
                "unknown" => builder.status(Status::Unknown),
                times => {
                    let (begin, commit) = times.split_once('-').unwrap();
                    builder.times(begin.parse().ok(), commit.parse().ok());
                }
            }
        }
        for op in ops.split(';').map(str::trim).filter(|op| !op.is_empty()) {
            let mut words = op.split_whitespace();
            let kind = words.next().unwrap();
            let key = token(&mut builder, words.next().unwrap());
            let rest = words.next().unwrap_or("");
            match kind {
                "l" => builder.read_list(key, numbers(rest)),
                "r" => {
                    builder.read(key, Token::Int(rest.parse().unwrap()));
                }
                "w" => {
                    builder.write(key, Token::Int(rest.parse().unwrap()));
                }
                "a" => {
                    builder.append(key, Token::Int(rest.parse().unwrap()));
                }
                other => panic!("no operation {other}"),
            }
        }
    }
    builder.finish().unwrap()
}

fn token(builder: &mut HistoryBuilder, text: &str) -> Token {
    match text.parse() {
        Ok(number) => Token::Int(number),
        Err(_) => builder.text(text),
    }
}

fn numbers(text: &str) -> Vec<Token> {
    let numbers = text.split(',').filter(|it| !it.is_empty());
    numbers.map(|it| Token::Int(it.parse().unwrap())).collect()
}

fn spec(level: Level) -> Spec {
    level.spec(None).unwrap()
}

/// The story of a violated history.
fn tell(level: Level, sketch: &str) -> Told {
    tell_with(spec(level), sketch)
}

fn tell_with(spec: Spec, sketch: &str) -> Told {
    let history = history(sketch);
    let techniques = Techniques::default();
    let budget = Budget::unlimited();
    let report = check(
        &history,
        spec,
        &techniques,
        &mut Pessimist,
        &budget,
        &mut Silent,
    )
    .unwrap();
    let Verdict::Violated(counterexample) = report.verdict else {
        panic!("{:?}", report.verdict);
    };
    Told {
        words: tell::story(&history, spec, &counterexample).to_text(),
        proof: proof_sketch::sketch(&history, &counterexample),
    }
}

fn without_sessions(level: Level) -> Spec {
    level.spec(Some(false)).unwrap()
}

#[test]
fn write_skew() {
    assert_snapshot!(tell(
        Level::Ser,
        "a 1: r x 0; r y 0; w y 1
         b 2: r x 0; r y 0; w x 1"
    ));
}

#[test]
fn lost_update_of_the_initial_state() {
    assert_snapshot!(tell(
        Level::Ser,
        "a 1: r x 0; w x 1
         b 2: r x 0; w x 2"
    ));
}

#[test]
fn lost_update_at_snapshot_isolation() {
    assert_snapshot!(tell(
        Level::Si,
        "a 1: w x 1
         b 2: r x 1; w x 2
         c 3: r x 1; w x 3"
    ));
}

#[test]
fn long_fork() {
    assert_snapshot!(tell(
        Level::Si,
        "a 1: w x 1
         b 2: w y 2
         c 3: r x 1; r y 0
         d 4: r x 0; r y 2"
    ));
}

#[test]
fn circular_information_flow() {
    assert_snapshot!(tell(
        Level::Ser,
        "a 1: w x 1; r y 2
         b 2: w y 2; r x 1"
    ));
}

#[test]
fn write_cycle_that_lists_show() {
    assert_snapshot!(tell(
        Level::Ser,
        "a 1: a x 1; a y 1
         b 2: a x 2; a y 2
         c 3: l x 1,2; l y 2,1"
    ));
}

#[test]
fn fractured_read() {
    assert_snapshot!(tell(
        Level::Si,
        "a 1: w x 1; w y 1
         b 2: r y 0; r x 1"
    ));
}

#[test]
fn non_monotonic_read() {
    assert_snapshot!(tell(
        Level::Si,
        "a 1: w x 1; w y 1
         b 2: r x 1; r y 0"
    ));
}

#[test]
fn stale_read_of_the_initial_state() {
    assert_snapshot!(tell(
        Level::Ser,
        "a 1: w x 1
         a 2: r x 0"
    ));
}

#[test]
fn monotonic_reads() {
    assert_snapshot!(tell(
        Level::StrongSessionSer,
        "a 1: w x 1
         a 2: r x 1; w x 2
         b 3: r x 2
         b 4: r x 1"
    ));
}

#[test]
fn monotonic_writes() {
    assert_snapshot!(tell(
        Level::StrongSessionSi,
        "a 1: w x 1
         a 2: w y 2
         b 3: r y 2; r x 0"
    ));
}

#[test]
fn writes_follow_reads() {
    assert_snapshot!(tell(
        Level::StrongSessionSi,
        "a 1: w x 1
         b 2: r x 1
         b 3: w y 2
         c 4: r y 2; r x 0"
    ));
}

#[test]
fn stale_read_in_real_time() {
    assert_snapshot!(tell(
        Level::StrictSer,
        "a 1 10-20: w x 1
         b 2 30-40: r x 0"
    ));
}

#[test]
fn one_order_is_forced_and_then_nothing_works() {
    assert_snapshot!(tell_with(
        without_sessions(Level::Ser),
        "a 4: w y 1; w y 2; w x 3
         b 2: w x 1; r y 0; w x 2; r y 0
         c 3: r x 2; w y 3
         d 7: r x 3; r y 3"
    ));
}

#[test]
fn the_session_orders_the_writes() {
    assert_snapshot!(tell(
        Level::Si,
        "a 1: w x 1
         a 2: w x 2
         a 3: r x 1"
    ));
}

#[test]
fn lost_update_by_a_blind_write() {
    assert_snapshot!(tell(
        Level::Ser,
        "a 1: w x 1
         b 2: r x 0; w x 2
         order x 1,2"
    ));
}

#[test]
fn case_split_in_which_neither_order_works() {
    assert_snapshot!(tell_with(
        without_sessions(Level::Ser),
        "a 1: w x 1; w y 1
         b 2: w x 2; w z 2
         c 3: r x 1; r z 2; w p 3
         d 4: r x 2; r y 1; w q 4"
    ));
}

#[test]
fn version_order() {
    assert_snapshot!(tell(
        Level::Ser,
        "a 1: w x 1
         b 2: w x 2; w y 2
         c 3: r x 1; r y 2
         order x 1,2"
    ));
}

#[test]
fn run_of_read_modify_writes() {
    assert_snapshot!(tell(
        Level::Ser,
        "a 1: w x 1; w y 1
         b 2: r x 1; w x 2
         c 3: r x 2; w x 3
         d 4: r x 3; w x 4; w z 4
         e 5: r z 4; r x 1"
    ));
}

#[test]
fn long_names_are_shortened() {
    assert_snapshot!(tell(
        Level::Ser,
        "a 1311768467463790320: r 8198552921648689607 0; w 8198552921648689607 1234567890123
         b 2311768467463790320: r 8198552921648689607 0; w 8198552921648689607 2234567890123"
    ));
}

#[test]
fn local_anomalies() {
    let cases = [
        ("thin air", "a 1: r x 7"),
        ("aborted read", "a 1 aborted: w x 1\n b 2: r x 1"),
        ("intermediate read", "a 1: w x 1; w x 2\n b 2: r x 1"),
        ("future read", "a 1: r x 1; w x 1"),
        ("not my own write", "a 1: w x 1; r x 2\n b 2: w x 2"),
        ("not my last write", "a 1: w x 1; w x 2; r x 1"),
        ("non-repeatable read", "a 1: w x 1\n b 2: r x 0; r x 1"),
        ("internal", "a 1: a x 1; l x 2\n b 2: a x 2"),
        ("duplicates", "a 1: a x 1\n b 2: l x 1,1"),
        (
            "incompatible",
            "a 1: a x 1\n b 2: a x 2\n c 3: l x 1\n d 4: l x 2",
        ),
        (
            "aborted version",
            "a 1: w x 1\n b 2 aborted: w x 2\n order x 1,2",
        ),
    ];
    let told = cases.map(|(title, sketch)| (title, tell(Level::Ser, sketch)));
    let words = told
        .each_ref()
        .map(|(title, it)| format!("# {title}\n{}", it.words));
    let proofs = told
        .each_ref()
        .map(|(title, it)| format!("# {title}\n{}", it.proof));
    assert_snapshot!(Told {
        words: words.join("\n"),
        proof: proofs.join("\n"),
    });
}

#[test]
fn long_fork_in_begins_and_commits() {
    assert_snapshot!(tell(
        Level::Si,
        "a 1: w x 1
         b 2: w y 1
         c 3: r x 1; r y 0
         d 4: r x 0; r y 1"
    ));
}

#[test]
fn writers_that_overlap() {
    assert_snapshot!(tell(
        Level::Si,
        "a 1: r y 0; w x 1; w z 1
         b 2: r z 0; w x 2; w y 2"
    ));
}

#[test]
fn old_snapshot_at_strong_si() {
    assert_snapshot!(tell(
        Level::StrongSi,
        "a 1 10-20: w x 1
         b 2 30-40: r x 0; w y 1"
    ));
}

#[test]
fn snapshot_of_the_future_at_generalised_si() {
    assert_snapshot!(tell(
        Level::Gsi,
        "a 1 10-20: r x 1; w y 1
         b 2 30-40: w x 1"
    ));
}

#[test]
fn clocks_that_drift_and_times_that_are_exact() {
    let spec = spec(Level::Gsi).with_clock(kingsnake_solver::level::Times::Exact, 5);
    assert_snapshot!(tell_with(
        spec,
        "a 1 10-20: r x 1; w y 1
         b 2 12-40: w x 1"
    ));
}

/// The words of a history whose lines stand in this order and in the opposite one, which must be the same.
fn tell_both_ways(level: Level, sketch: &str) -> String {
    let mut lines: Vec<&str> = sketch.lines().collect();
    let words = tell(level, &lines.join("\n")).words;
    lines.reverse();
    assert_eq!(words, tell(level, &lines.join("\n")).words);
    words
}

#[test]
fn the_update_that_a_later_read_does_not_show_is_lost() {
    let by_read = tell_both_ways(
        Level::Ser,
        "a A 10-200: r x 0; w x 1
         b B 20-100: r x 0; w x 2
         c C 300-400: r x 2",
    );
    assert!(
        by_read.contains("The update of x by A is lost: B replaced it"),
        "{by_read}"
    );
    let without_times = tell_both_ways(
        Level::Si,
        "a A: r x 0; w x 1
         b B: r x 0; w x 2
         c C: r x 1",
    );
    assert!(
        without_times.contains("The update of x by B is lost"),
        "{without_times}"
    );
}

#[test]
fn a_read_between_two_commits_saves_no_update() {
    let words = tell_both_ways(
        Level::Ser,
        "a A 10-100: r x 0; w x 1
         c C 120-150: r x 1
         b B 20-200: r x 0; w x 2",
    );
    assert!(
        words.contains("The update of x by A is lost: B replaced it"),
        "{words}"
    );
}

#[test]
fn the_version_order_says_which_update_is_lost() {
    let words = tell_both_ways(
        Level::Ser,
        "a A 10-200: r x 0; w x 1
         b B 20-100: r x 0; w x 2
         order x 1,2
         c C 300-400: r x 2",
    );
    assert!(
        words.contains("The update of x by A is lost: B replaced it"),
        "{words}"
    );
}

#[test]
fn of_two_updates_that_nothing_tells_apart_one_is_lost() {
    let words = tell_both_ways(
        Level::Si,
        "a A: r x 0; w x 1
         b B: r x 0; w x 2",
    );
    let told = "One of the two updates of x by A and B is lost";
    assert!(words.contains(told), "{words}");
}

#[test]
fn the_order_of_lines_changes_no_story() {
    let sketches = [
        (
            Level::Ser,
            "a A: r x 0; r y 0; w y 1\nb B: r x 0; r y 0; w x 1",
        ),
        (
            Level::Si,
            "a A: w x 1\nb B: w y 1\nc C: r x 1; r y 0\nd D: r x 0; r y 1",
        ),
        (Level::Ser, "a A: w x 1; w y 1\nb B: r x 0; r y 1"),
        (Level::Psi, "a A: r x 0; w x 1\nb B: r x 0; w x 2"),
        (Level::Psi, "a A 1-5: r x 0; w x 1\nb B 2-4: r x 0; w x 2"),
        (Level::Ra, "a A: r x 0; r x 1\nb B: w x 1"),
    ];
    for (level, sketch) in sketches {
        tell_both_ways(level, sketch);
    }
}

#[test]
fn a_non_repeatable_read_names_who_changed_the_value() {
    let words = tell_both_ways(Level::Ra, "a A: r x 0; r x 1\nb B: w x 1");
    let told = "x changed under A while it was running: B wrote x = 1.";
    assert!(words.contains(told), "{words}");
}
