//! `kingsnake watch` against `kingsnake check`: the same verdict on whole histories at every batch size; and its manners.

mod run;

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use run::{Scratch, expect, kingsnake, run};

/// A generated history: a workload, what the store promises, and what goes wrong.
fn generate(scratch: &Scratch, name: &str, isolation: &str, seed: &str, extra: &[&str]) -> String {
    let path = scratch.path(name);
    let mut args = vec![
        "generate",
        "mini",
        "--out",
        &path,
        "--txns",
        "400",
        "--clients",
        "6",
    ];
    args.extend(["--keys", "12", "--isolation", isolation, "--seed", seed]);
    args.extend(extra);
    expect(0, &args);
    path
}

const LEVELS: [&str; 4] = ["strict-ser", "strong-si", "ser", "si"];

#[test]
fn watch_and_check_have_the_same_verdict_at_every_batch_size() {
    let scratch = Scratch::new();
    let (mut n_satisfied, mut n_violated) = (0, 0);
    for (number, (isolation, extra)) in [
        ("serializable", &[][..]),
        ("snapshot", &[]),
        ("serializable", &["--fault", "lost-update"]),
        ("snapshot", &["--fault", "long-fork"]),
        ("serializable", &["--fault", "write-skew"]),
        ("serializable", &["--aborted", "--rollbacks", "0.2"]),
    ]
    .into_iter()
    .enumerate()
    {
        let seed = number.to_string();
        let history = generate(&scratch, "h.jsonl", isolation, &seed, extra);
        for level in LEVELS {
            let checked = run(&["check", &history, "--level", level, "--quiet"]).status;
            match checked {
                0 => n_satisfied += 1,
                1 => n_violated += 1,
                other => panic!("check ended with {other}"),
            }
            for batch in ["1", "7", "60", "1000"] {
                let args = [
                    "watch",
                    &history,
                    "--finished",
                    "--level",
                    level,
                    "--batch",
                    batch,
                ];
                let said = run(&args);
                assert_eq!(
                    said.status, checked,
                    "{isolation} {extra:?} {level} batch {batch}\n{}{}",
                    said.stdout, said.stderr
                );
            }
        }
    }
    assert!(
        n_satisfied >= 6 && n_violated >= 6,
        "{n_satisfied} {n_violated}"
    );
}

#[test]
fn a_rolling_certificate_is_accepted() {
    let scratch = Scratch::new();
    let history = generate(&scratch, "h.jsonl", "serializable", "3", &[]);
    let certificate = scratch.path("c.jsonl");
    for level in LEVELS {
        expect(
            0,
            &[
                "watch",
                &history,
                "--finished",
                "--level",
                level,
                "--batch",
                "20",
                "--certificate",
                &certificate,
            ],
        );
        expect(0, &["verify", &history, &certificate]);
    }
    // An order that was tampered with is not.
    let text = fs::read_to_string(&certificate).expect("it was written");
    let mut lines: Vec<&str> = text.lines().collect();
    let last = lines.len() - 1;
    lines.swap(1, last);
    scratch.put("wrong.jsonl", lines.join("\n"));
    expect(1, &["verify", &history, &scratch.path("wrong.jsonl")]);
}

#[test]
fn a_violation_is_told_by_the_check_with_a_page() {
    let scratch = Scratch::new();
    let history = generate(
        &scratch,
        "h.jsonl",
        "serializable",
        "5",
        &["--fault", "lost-update"],
    );
    let page = scratch.path("page.html");
    let said = expect(1, &["watch", &history, "--finished", "--report", &page]);
    assert!(
        said.stdout.contains("Violated: strict-ser"),
        "{}",
        said.stdout
    );
    let page = fs::read_to_string(page).expect("the page was written");
    assert!(page.contains("<html"));
    let said = expect(1, &["watch", &history, "--finished", "--json"]);
    let lines: Vec<serde_json::Value> = said
        .stdout
        .lines()
        .map(|it| serde_json::from_str(it).expect("a line is JSON"))
        .collect();
    let violation = lines.iter().find(|it| it["watch"] == "violation");
    assert_eq!(violation.map(|it| &it["confirmed"]), Some(&true.into()));
    let said = run(&[
        "watch",
        &history,
        "--finished",
        "--on-violation",
        "continue",
    ]);
    assert_eq!(said.status, 1);
    assert!(
        said.stderr.contains("not judged any more"),
        "{}",
        said.stderr
    );
}

#[test]
fn promises_that_are_broken_name_the_session() {
    let scratch = Scratch::new();
    let lines = [
        r#"{"kingsnake":1,"initial":0}"#,
        r#"{"open":{"session":"a","time":1}}"#,
        r#"{"heartbeat":{"session":"a","time":50}}"#,
        r#"{"id":1,"session":"a","begin":20,"commit":30,"ops":[["w","x",1]]}"#,
    ];
    scratch.put("h.jsonl", lines.join("\n") + "\n");
    let said = expect(2, &["watch", &scratch.path("h.jsonl")]);
    assert!(
        said.stderr.contains("session a begins at 20"),
        "{}",
        said.stderr
    );
    // The same lines are an ordinary history for `check`.
    expect(0, &["check", &scratch.path("h.jsonl")]);
    let refused = |ops: &str| {
        let line = format!("{{\"id\":1,\"session\":1,\"begin\":1,\"commit\":2,\"ops\":[{ops}]}}");
        scratch.put("r.jsonl", format!("{{\"kingsnake\":1}}\n{line}\n"));
        expect(2, &["watch", &scratch.path("r.jsonl"), "--finished"]).stderr
    };
    assert!(refused(r#"["a","x",1]"#).contains("lists"));
    assert!(refused(r#"["range",1,2,[]]"#).contains("range queries"));
    assert!(refused(r#"["delete","x"]"#).contains("deletes"));
}

fn wait_for(what: impl Fn() -> bool) {
    let start = Instant::now();
    while !what() && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_file_that_grows_is_followed_and_ends_are_filled_in() {
    let scratch = Scratch::new();
    let path = scratch.path("h.jsonl");
    let recorder = kingsnake_record::Recorder::create(&path, 0).expect("a file");
    let mut watch = kingsnake(&["watch", &path, "--batch", "3"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut one = recorder.session("one");
    let mut two = recorder.session("two");
    one.open().expect("written");
    two.open().expect("written");
    for number in 1..=40 {
        for (session, client) in [(&mut one, 1000), (&mut two, 2000)] {
            let mut txn = session.begin();
            let before = if number == 1 { 0 } else { client + number - 1 };
            txn.read(client, before);
            txn.write(client, client + number);
            let end = txn.ready().expect("written");
            std::thread::sleep(Duration::from_millis(2));
            end.committed().expect("written");
        }
    }
    recorder.close().expect("written");
    let status = watch.wait().expect("it ends");
    assert_eq!(status.code(), Some(0));
}

#[test]
fn clients_of_a_socket_are_watched_until_all_sessions_are_closed() {
    let scratch = Scratch::new();
    let socket = scratch.path("s");
    let keep = scratch.path("kept.jsonl");
    let address = format!("unix:{socket}");
    let mut watch = kingsnake(&[
        "watch",
        "--listen",
        &address,
        "--sessions",
        "2",
        "--keep",
        &keep,
    ])
    .stdout(Stdio::piped())
    .spawn()
    .expect("it runs");
    wait_for(|| fs::metadata(&socket).is_ok());
    let client = |session: u32, lines: &[&str]| {
        let mut stream = UnixStream::connect(&socket).expect("it listens");
        let _ = writeln!(stream, "{{\"kingsnake\":1,\"initial\":0}}");
        for line in lines {
            let _ = writeln!(stream, "{{\"id\":{session}{line}}}");
        }
    };
    // Both read 0 and write: the second, which began after the first was over, lost the update.
    client(
        1,
        &[r#","session":1,"begin":1,"commit":2,"ops":[["r","x",0],["w","x",1]]"#],
    );
    client(
        2,
        &[r#","session":2,"begin":5,"commit":6,"ops":[["r","x",0],["w","x",2]]"#],
    );
    let status = watch.wait().expect("it ends");
    assert_eq!(status.code(), Some(1));
    expect(1, &["check", &keep, "--level", "strict-ser"]);
}

#[test]
fn a_killed_watch_goes_on_from_its_snapshot() {
    let scratch = Scratch::new();
    for (fault, expected) in [(&[][..], 0), (&["--fault", "lost-update"][..], 1)] {
        let history = generate(&scratch, "h.jsonl", "serializable", "9", fault);
        let (state, certificate) = (scratch.path("state"), scratch.path("c.jsonl"));
        let args = [
            "watch",
            &history,
            "--finished",
            "--batch",
            "5",
            "--state",
            &state,
            "--state-every",
            "0",
            "--certificate",
            &certificate,
        ];
        let _ = fs::remove_file(&state);
        for number in 0..6 {
            let mut watch = kingsnake(&args)
                .stdout(Stdio::null())
                .spawn()
                .expect("it runs");
            std::thread::sleep(Duration::from_millis(30 + 23 * number));
            let _ = watch.kill();
            let _ = watch.wait();
        }
        expect(expected, &args);
        if expected == 0 {
            expect(0, &["verify", &history, &certificate]);
        }
    }
}

#[test]
fn a_limit_gives_unknown_and_never_satisfied() {
    let scratch = Scratch::new();
    let history = generate(&scratch, "h.jsonl", "serializable", "2", &[]);
    let said = expect(
        3,
        &[
            "watch",
            &history,
            "--finished",
            "--batch",
            "20",
            "--memory-limit",
            "8K",
        ],
    );
    assert!(said.stderr.contains("cannot keep up"), "{}", said.stderr);
}

#[test]
fn timestamps_are_judged_in_one_pass() {
    let scratch = Scratch::new();
    let header = r#"{"kingsnake":1,"initial":0}"#;
    let line = |id: u32, session: u32, start: u32, commit: u32, ops: &str| {
        format!(
            "{{\"id\":{id},\"session\":{session},\"start_ts\":{start},\"commit_ts\":{commit},\"ops\":[{ops}]}}\n"
        )
    };
    let first = line(1, 1, 1, 4, r#"["r","x",0],["w","x",1]"#);
    let good = line(2, 2, 5, 7, r#"["r","x",1],["w","x",2]"#);
    let stale = line(2, 2, 5, 7, r#"["r","x",0]"#);
    let overlap = line(2, 2, 2, 7, r#"["w","x",2]"#);
    for (second, status, words) in [
        (good, 0, "Satisfied"),
        (
            stale,
            1,
            "T2 started at 5 and read x = 0, but T1 had set it to 1 at 4",
        ),
        (overlap, 1, "both wrote x"),
    ] {
        scratch.put("h.jsonl", format!("{header}\n{first}{second}"));
        let said = expect(
            status,
            &[
                "watch",
                &scratch.path("h.jsonl"),
                "--finished",
                "--level",
                "timestamps",
            ],
        );
        assert!(said.stdout.contains(words), "{}", said.stdout);
    }
}
