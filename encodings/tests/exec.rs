//! Other programs as back ends: those that Debian has agree with enumeration and with the oracle, and scripts that lie, hang, crash or
//! write garbage give an error or a stop, never an answer.

mod support;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kingsnake_context::budget::{Budget, StopReason};
use kingsnake_context::progress::Silent;
use kingsnake_encodings::{BackendOptions, backend};
use kingsnake_graph::decide::{Backend, DecideStats, Decision};
use support::{Owned, Rng, pigeons, planted, suite};

/// Where a program is, if it is on the PATH.
fn found(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&path).map(|it| it.join(program));
    places.find(|it| it.is_file())
}

/// Programs, each as a back end.
const PROGRAMS: [(&str, &str); 12] = [
    ("minisat", "exec:minisat"),
    ("minisat", "exec/closure:minisat -verb=0"),
    ("cadical", "exec:cadical"),
    ("cadical", "exec/order-binary:cadical -q"),
    ("cadical", "exec/order-unary:cadical -q"),
    ("kissat", "exec:kissat"),
    ("picosat", "exec:picosat"),
    ("clasp", "exec:clasp"),
    ("cryptominisat5", "exec:cryptominisat5 --verb 0"),
    ("z3", "exec:z3"),
    ("cvc5", "exec:cvc5"),
    ("monosat", "exec:monosat"),
];

fn make(name: &'static str) -> impl Fn(&BackendOptions) -> Box<dyn Backend> {
    move |options| backend(name, options).expect("a command")
}

#[test]
fn real_solvers_agree_with_enumeration_and_the_oracle() {
    let mut skipped = Vec::new();
    for (program, name) in PROGRAMS {
        if found(program).is_none() {
            skipped.push(name);
            continue;
        }
        let make = make(name);
        let mut judged = vec![suite::small_questions(&make, 40), suite::corners(&make)];
        // Difference logic of cvc5 takes minutes where others take milliseconds.
        if program != "cvc5" {
            judged.push(suite::small_histories(&make, 40));
            judged.push(suite::formulas(&make));
        }
        println!("{name}: {judged:?}");
        for judged in judged {
            let both = judged.unwrap_or_else(|what| panic!("{name}: {what}"));
            assert!(both.iter().all(|&n| n > 0), "{name}: {both:?}");
        }
        pass(name, suite::stops_searching(&make, suite::LATE));
        pass(name, suite::fits(&make));
    }
    println!("SKIPPED, not installed: {skipped:?}");
}

fn pass<T>(name: &str, judged: Result<T, String>) {
    if let Err(what) = judged {
        panic!("{name}: {what}");
    }
}

#[test]
fn what_a_solver_counts_is_told() {
    for (program, name) in [("minisat", "exec:minisat"), ("cadical", "exec:cadical")] {
        if found(program).is_none() {
            println!("SKIPPED: no {program}");
            continue;
        }
        let (decision, stats) = ask(name, &pigeons(4), &Budget::unlimited()).expect("an answer");
        assert!(matches!(decision, Decision::Core(_)), "{decision:?}");
        assert!(stats.variables > 0 && stats.clauses > 0, "{stats:?}");
        assert!(!stats.solve.is_zero(), "{stats:?}");
    }
}

fn ask(name: &str, owned: &Owned, budget: &Budget) -> Result<(Decision, DecideStats), String> {
    let mut backend = backend(name, &BackendOptions::default()).expect("a command");
    let decided = backend.decide(owned.question(), budget, &mut Silent);
    decided.map_err(|error| error.to_string())
}

/// A script as a back end for each language.
fn scripted(script: &str) -> [String; 3] {
    ["gnf", "smtlib2", "closure"].map(|language| format!("exec/{language}:sh -c '{script}' {{}}"))
}

/// A question that can be met and one that cannot, neither of which is decided before the program is asked.
fn questions() -> [Owned; 2] {
    [false, true].map(|torn| planted(40, 60, torn, &mut Rng::new(3)))
}

#[test]
fn a_script_that_lies_is_not_believed() {
    let [met, torn] = questions();
    for name in scripted("echo s UNSATISFIABLE; echo unsat") {
        let why = ask(&name, &met, &Budget::unlimited()).expect_err("a lie");
        assert!(why.contains("cadical/propagator met it"), "{why}");
        let (decision, _) = ask(&name, &torn, &Budget::unlimited()).expect("the truth, by chance");
        assert!(matches!(decision, Decision::Core(_)), "{decision:?}");
    }
    // All nodes at one place, all variables true, all false, none assigned.
    let places = "echo sat; n=0; while [ $n -lt 40 ]; do echo \"(n$n 7)\"; n=$((n+1)); done";
    let ones = "echo s SATISFIABLE; n=1; while [ $n -lt 60 ]; do echo v $n 0; n=$((n+1)); done";
    let zeros = "echo s SATISFIABLE; n=1; while [ $n -lt 60 ]; do echo v -$n 0; n=$((n+1)); done";
    for (language, script) in [
        ("smtlib2", places),
        ("gnf", ones),
        ("gnf", zeros),
        ("closure", ones),
        ("closure", zeros),
        ("gnf", "echo SAT"),
        ("closure", "echo SAT"),
    ] {
        let name = format!("exec/{language}:sh -c '{script}' {{}}");
        let why = ask(&name, &torn, &Budget::unlimited()).expect_err("a lie");
        let is_told = why.contains("does not meet it") || why.contains("it gave variable");
        assert!(is_told, "{name}: {why}");
    }
}

#[test]
fn a_script_that_crashes_or_writes_garbage_is_an_error_that_names_it() {
    let [met, _] = questions();
    for (script, says) in [
        ("exit 3", "exit status: 3"),
        ("kill -SEGV $$", "signal: 11"),
        ("echo out of luck >&2; exit 1", "out of luck"),
        ("yes garbage | head -c 100000", "neither sat nor unsat"),
        ("echo maybe", "neither sat nor unsat"),
        ("", "neither sat nor unsat"),
        (
            "echo sat; echo unsat; echo SAT; echo UNSAT",
            "answered both",
        ),
    ] {
        for name in scripted(script) {
            let why = ask(&name, &met, &Budget::unlimited()).expect_err("no answer");
            assert!(why.contains(says), "{name}: {why}");
        }
    }
    let why = ask("exec:no-such-program", &met, &Budget::unlimited()).expect_err("none");
    assert!(why.contains("cannot start no-such-program"), "{why}");
    let flood = "exec/gnf:sh -c 'yes 0 | head -c 150000000' {}";
    let why = ask(flood, &met, &Budget::unlimited()).expect_err("too much");
    assert!(why.contains("longer than"), "{why}");
}

#[test]
fn a_script_that_gives_up_is_a_stop() {
    let [met, _] = questions();
    for name in scripted("echo s UNKNOWN; echo unknown") {
        let (decision, _) = ask(&name, &met, &Budget::unlimited()).expect("no failure");
        let Decision::Unknown(StopReason::Backend(why)) = decision else {
            panic!("{name}: {decision:?}");
        };
        assert!(why.contains("gave up"), "{why}");
    }
}

#[test]
fn a_script_that_hangs_is_ended_with_all_that_it_started() {
    let room = tempfile::tempdir().expect("a directory");
    let alive = room.path().join("alive");
    // The child of the script writes on, unless it is ended too.
    let script = format!(
        "(while true; do date +%N > {}; sleep 0.05; done) & sleep 1000",
        alive.display()
    );
    let limit = Duration::from_millis(400);
    for name in scripted(&script) {
        let budget = Budget::unlimited().with_timeout(Instant::now(), limit);
        let [met, _] = questions();
        let (decision, _) = ask(&name, &met, &budget).expect("no failure");
        assert_eq!(decision, Decision::Unknown(StopReason::Time(limit)));
    }
    let flag = Arc::new(AtomicBool::new(true));
    let budget = Budget::unlimited().with_interrupt(Arc::clone(&flag));
    let (decision, _) = ask(&scripted(&script)[0], &questions()[0], &budget).expect("no failure");
    assert_eq!(decision, Decision::Unknown(StopReason::Interrupted));
    assert!(flag.load(Ordering::Relaxed));
    let before = std::fs::read(&alive).expect("it ran");
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(
        std::fs::read(&alive).expect("it ran"),
        before,
        "it still runs"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_script_that_grows_is_ended_at_the_memory_limit() {
    if found("python3").is_none() {
        println!("SKIPPED: no python3");
        return;
    }
    let script = "exec/gnf:python3 -c 'b = b\"x\" * (1 << 28); import time; time.sleep(1000)' {}";
    let budget = Budget::unlimited().with_memory(100 << 20);
    let (decision, _) = ask(script, &questions()[0], &budget).expect("no failure");
    assert!(
        matches!(decision, Decision::Unknown(StopReason::Resident { .. })),
        "{decision:?}"
    );
}
