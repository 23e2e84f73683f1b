//! The oracle against well-known cases, against a more literal oracle, and against itself.

mod support;

use kingsnake_lab::oracle;
use kingsnake_lab::random::{Rng, Small, sketch, small};
use kingsnake_solver::level::{Model, RealTime, Spec};
use kingsnake_solver::model::History;
use support::{literal, parse};

/// SER and SI, each with and without session order, then both with session and real-time order.
const SPECS: [Spec; 6] = [
    spec(Model::Ser, false, false),
    spec(Model::Ser, true, false),
    spec(Model::Si, false, false),
    spec(Model::Si, true, false),
    spec(Model::Ser, true, true),
    spec(Model::Si, true, true),
];

const fn spec(model: Model, session_order: bool, real_time: bool) -> Spec {
    Spec {
        model,
        session_order,
        real_time: if real_time {
            Some(RealTime::STRICT)
        } else {
            None
        },
    }
}

fn decide(history: &History) -> [bool; 6] {
    SPECS.map(|spec| oracle::holds(history, spec).expect("the history is small"))
}

/// Decides a text; the answers for SER, SER with session order, SI, SI with session order.
fn levels(text: &str) -> [bool; 4] {
    let [ser, ser_so, si, si_so, ..] = decide(&parse(text));
    [ser, ser_so, si, si_so]
}

const ALL: [bool; 4] = [true; 4];
const NONE: [bool; 4] = [false; 4];

#[test]
fn an_empty_history_satisfies_everything() {
    assert_eq!(levels(""), ALL);
}

#[test]
fn a_serial_history_satisfies_everything() {
    assert_eq!(levels("a: w x 1\n b: r x 1, w x 2\n a: r x 2, r y 0"), ALL);
}

#[test]
fn write_skew_is_si_but_not_ser() {
    let text = "a: r x 0, r y 0, w x 1\n b: r x 0, r y 0, w y 1";
    assert_eq!(levels(text), [false, false, true, true]);
}

#[test]
fn lost_update_is_neither() {
    assert_eq!(levels("a: r x 0, w x 1\n b: r x 0, w x 2"), NONE);
}

#[test]
fn long_fork_is_neither() {
    assert_eq!(
        levels("a: w x 1\n b: w y 1\n c: r x 1, r y 0\n d: r x 0, r y 1"),
        NONE
    );
}

#[test]
fn a_fractured_read_is_neither() {
    assert_eq!(
        levels("a: r x 0, r y 0, w x 1, w y 1\n b: r x 1, r y 0"),
        NONE
    );
}

#[test]
fn the_read_only_transaction_anomaly_is_si_but_not_ser() {
    let writers = "b: r y 0, w y 20\n a: r x 0, r y 0, w x -11";
    assert_eq!(levels(writers), ALL);
    let text = format!("{writers}\n c: r x 0, r y 20");
    assert_eq!(levels(&text), [false, false, true, true]);
}

#[test]
fn a_session_that_forgets_its_own_write_needs_another_order() {
    assert_eq!(levels("a: w x 1\n a: r x 0"), [true, false, true, false]);
}

#[test]
fn a_session_may_read_the_past_only_without_session_order() {
    assert_eq!(
        levels("a: w x 1\n b: r x 1\n b: r x 0"),
        [true, false, true, false]
    );
}

#[test]
fn what_aborted_is_never_seen() {
    assert_eq!(levels("a: w x 1 aborted\n b: r x 1"), NONE);
    assert_eq!(levels("a: r x 7, w x 1 aborted\n b: r x 0"), ALL);
}

#[test]
fn what_nobody_wrote_is_never_seen() {
    assert_eq!(levels("a: r x 7"), NONE);
}

#[test]
fn an_unknown_end_is_whatever_explains_the_reads() {
    assert_eq!(levels("a: w x 1 unknown\n b: r x 1"), ALL);
    assert_eq!(levels("a: w x 1 unknown\n b: r x 0\n b: r x 0"), ALL);
    assert_eq!(levels("a: r x 7, w x 1 unknown\n b: r x 0"), ALL);
    assert_eq!(levels("a: r x 7, w x 1 unknown\n b: r x 1"), NONE);
}

#[test]
fn only_the_last_write_is_seen_outside_and_every_write_inside() {
    assert_eq!(levels("a: w x 1, r x 1, w x 2, r x 2\n b: r x 2"), ALL);
    assert_eq!(levels("a: w x 1, w x 2\n b: r x 1"), NONE);
    assert_eq!(levels("a: w x 1, w x 2, r x 1"), NONE);
    assert_eq!(levels("a: r x 1, w x 1"), NONE);
    assert_eq!(levels("a: w x 1\n b: w x 2, r x 1"), NONE);
    assert_eq!(levels("a: w x 1\n b: r x 0, r x 1"), NONE);
}

#[test]
fn repeated_values_need_no_writer() {
    assert_eq!(
        levels("a: w x 1\n b: w x 1\n c: r x 1, w x 2\n c: r x 1, w x 3"),
        ALL
    );
    assert_eq!(levels("a: w x 1\n c: r x 1, w x 2\n c: r x 1, w x 3"), NONE);
    assert_eq!(levels("a: w x 1\n b: w x 0\n c: r x 1\n c: r x 0"), ALL);
}

#[test]
fn lists_are_read_whole() {
    assert_eq!(
        levels("a: l x 1\n b: l x 2, l x 3\n c: rl x\n c: rl x 2 3\n c: rl x 2 3 1"),
        ALL
    );
    assert_eq!(
        levels("a: l x 1\n b: l x 2\n c: rl x 1 2\n d: rl x 2 1"),
        NONE
    );
    assert_eq!(levels("a: l x 1\n b: l x 2\n c: rl x 1\n d: rl x 2"), NONE);
    assert_eq!(levels("a: rl x, l x 1, rl x 1\n b: rl x, l x 2"), NONE);
}

#[test]
fn version_orders_are_obeyed() {
    let blind = "a: w x 1\n b: w x 2\n c: r x 1";
    assert_eq!(levels(&format!("{blind}\n order x 1 2")), ALL);
    assert_eq!(levels(&format!("{blind}\n order x 0 2 1")), ALL);
    let chain = "a: w x 1\n b: r x 1, w x 2";
    assert_eq!(levels(&format!("{chain}\n order x 1 2")), ALL);
    assert_eq!(levels(&format!("{chain}\n order x 2 1")), NONE);
    assert_eq!(levels("a: w x 1 aborted\n b: w x 2\n order x 1 2"), NONE);
    assert_eq!(levels("a: w x 1 unknown\n b: w x 2\n order x 1 2"), ALL);
    // A value that its writer overwrote has no place in the order; what it appended has.
    assert_eq!(levels("a: w x 1, w x 2\n b: w x 3\n order x 1 3 2"), ALL);
    assert_eq!(levels("a: l x 1, l x 2\n b: l x 3\n order x 1 3 2"), NONE);
    // The unknown transaction must have committed, since the database lists its value; so its reads count.
    assert_eq!(
        levels("a: r y 7, w x 1 unknown\n b: w x 2\n order x 1 2"),
        NONE
    );
}

#[test]
fn real_time_forbids_a_stale_read() {
    let history = parse("a: w x 1 @ 1 2\n b: r x 0 @ 3 4");
    assert_eq!(decide(&history), [true, true, true, true, false, false]);
    let history = parse("a: w x 1 @ 1 3\n b: r x 0 @ 3 4");
    assert_eq!(decide(&history), [true; 6]);
}

#[test]
fn too_many_transactions_are_not_decided() {
    let text = "a: r x 0\n".repeat(oracle::MAX_TXNS + 1);
    assert_eq!(oracle::holds(&parse(&text), SPECS[0]), None);
    let text = "a: r x 0 aborted\n".repeat(oracle::MAX_TXNS + 1);
    assert_eq!(oracle::holds(&parse(&text), SPECS[0]), Some(true));
}

#[test]
fn placing_begins_one_by_one_agrees_with_trying_all_interleavings() {
    let mut n_satisfied = [0; 6];
    let n_histories = 1_500;
    for seed in 0..n_histories {
        let mut rng = Rng::new(seed);
        let drawn = Small::draw(&mut rng);
        let repeats = if rng.chance(20) { 30 } else { 0 };
        let history = Small {
            n_txns: drawn.n_txns.min(4),
            repeats,
            ..drawn
        }
        .history(&mut rng);
        let answers = decide(&history);
        for (index, spec) in SPECS.into_iter().enumerate() {
            let expected = literal::holds(&history, spec);
            assert_eq!(
                answers[index],
                expected,
                "seed {seed}, {spec}:\n{}",
                sketch(&history)
            );
            n_satisfied[index] += usize::from(expected);
        }
    }
    eprintln!("of {n_histories} histories satisfied: {n_satisfied:?}");
    assert!(
        n_satisfied.iter().all(|&n| n > 300 && n < 1_400),
        "both answers are well represented"
    );
}

#[test]
fn stronger_levels_imply_weaker_ones() {
    let mut distribution = std::collections::BTreeMap::new();
    for seed in 0..20_000 {
        let history = small(seed);
        let answers = decide(&history);
        let [ser, ser_so, si, si_so, ser_rt, si_rt] = answers;
        let implied = [
            (ser_so, ser),
            (si_so, si),
            (ser, si),
            (ser_so, si_so),
            (ser_rt, ser_so),
            (si_rt, si_so),
            (ser_rt, si_rt),
        ];
        for (strong, weak) in implied {
            assert!(weak || !strong, "seed {seed}:\n{}", sketch(&history));
        }
        *distribution.entry(answers.map(u8::from)).or_insert(0) += 1;
    }
    eprintln!("ser, ser+so, si, si+so, ser+so+rt, si+so+rt: histories");
    for (answers, n) in &distribution {
        eprintln!("{answers:?}: {n}");
    }
}
