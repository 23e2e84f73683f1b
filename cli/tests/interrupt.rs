//! Ctrl-C: the check answers `unknown`, whatever it was doing.

#![cfg(unix)]

mod run;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use run::{Scratch, generate_workload, kingsnake};

/// After so long it has not stopped at all, however busy the machine is.
const HUNG: Duration = Duration::from_secs(60);

/// Without session order and with few keys this history keeps every engine busy for long.
fn hard(scratch: &Scratch) -> String {
    generate_workload(
        scratch,
        "hard.jsonl",
        "king-cobra-hw",
        &["--txns", "20000", "--keys", "2000", "--seed", "1"],
    )
}

fn signal(name: &str, pid: u32) {
    let sent = Command::new("kill").args([name, &pid.to_string()]).status();
    assert!(sent.expect("kill runs").success());
}

#[test]
fn ctrl_c_ends_in_unknown() {
    let scratch = Scratch::new();
    let history = hard(&scratch);
    for wait in [Duration::from_millis(5), Duration::from_millis(1500)] {
        let child = kingsnake(&[
            "check",
            &history,
            "--session-order",
            "off",
            "--no-estimate",
            "--no-witness",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
        std::thread::sleep(wait);
        let asked = Instant::now();
        signal("-INT", child.id());
        let output = child.wait_with_output().expect("the binary ends");
        let stdout = String::from_utf8_lossy(&output.stdout);
        // In the first moments of the process the system's own answer to the signal is in force.
        if wait > Duration::from_millis(100) || output.status.code().is_some() {
            assert_eq!(
                output.status.code(),
                Some(3),
                "{stdout}{}",
                String::from_utf8_lossy(&output.stderr)
            );
            assert!(stdout.contains("interrupted"), "{stdout}");
        }
        assert!(asked.elapsed() < HUNG, "took {:?}", asked.elapsed());
    }
}

#[test]
fn a_time_limit_ends_in_unknown_soon_after() {
    let scratch = Scratch::new();
    let history = hard(&scratch);
    let begun = Instant::now();
    let said = run::expect(
        3,
        &[
            "check",
            &history,
            "--session-order",
            "off",
            "--timeout",
            "1",
        ],
    );
    assert!(said.stdout.contains("time limit of 1 s"), "{}", said.stdout);
    assert!(begun.elapsed() < HUNG, "took {:?}", begun.elapsed());
}
