//! `kingsnake watch` against `kingsnake check`: the same verdict on whole histories at every batch size; and its manners.

#![allow(clippy::print_stderr)]

mod browser;
mod run;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use browser::{Browser, PageLook};
use run::{Scratch, expect, kingsnake, run};

/// A generated history: a workload, what the store promises, and what goes wrong.
fn generate(scratch: &Scratch, name: &str, isolation: &str, seed: &str, extra: &[&str]) -> String {
    let path = scratch.path(name);
    let (workload, extra) = match extra {
        ["--workload", name, extra @ ..] => (*name, extra),
        extra => ("mini", extra),
    };
    let mut args = vec!["generate", workload, "--out", &path, "--clients", "6"];
    if !extra.contains(&"--txns") {
        args.extend(["--txns", "400"]);
    }
    if !extra.contains(&"--keys") {
        args.extend(["--keys", "12"]);
    }
    args.extend(["--isolation", isolation, "--seed", seed]);
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
        ("serializable", &["--workload", "list-append"]),
        (
            "snapshot",
            &["--workload", "list-append", "--fault", "lost-update"],
        ),
        (
            "serializable",
            &["--workload", "list-append", "--fault", "long-fork"],
        ),
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
    let list_append = ["--workload", "list-append"];
    let lists = generate(&scratch, "l.jsonl", "serializable", "3", &list_append);
    for (history, level) in LEVELS
        .iter()
        .flat_map(|it| [(&history, *it), (&lists, *it)])
    {
        expect(
            0,
            &[
                "watch",
                history,
                "--finished",
                "--level",
                level,
                "--batch",
                "20",
                "--certificate",
                &certificate,
            ],
        );
        expect(0, &["verify", history, &certificate]);
    }
    // An order that was tampered with is not.
    let text = fs::read_to_string(&certificate).expect("it was written");
    let mut points: Vec<&str> = text.lines().collect();
    let last = points.len() - 1;
    points.swap(1, last);
    scratch.put("wrong.jsonl", points.join("\n"));
    expect(1, &["verify", &lists, &scratch.path("wrong.jsonl")]);
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
    assert!(said.stderr.contains("no longer judged"), "{}", said.stderr);
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
    assert!(refused(r#"["range",1,2,[]]"#).contains("range queries"));
    assert!(refused(r#"["delete","x"]"#).contains("deletes"));
}

/// A connection, as soon as the watch listens: the socket's file is there a moment before.
fn connected(socket: &str) -> UnixStream {
    let start = Instant::now();
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => return stream,
            Err(error) if start.elapsed() > Duration::from_secs(60) => panic!("{error}"),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
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
    // Enough lines for some to be moved behind a block's end by blanks.
    for number in 1..=150 {
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
    let client = |session: u32, lines: &[&str]| {
        let mut stream = connected(&socket);
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

/// Lines of sessions 1 and 2, each a file of its own; the last transaction read an old value if it is to be wrong.
fn two_sessions(is_wrong: bool) -> [String; 2] {
    let mut files = [(); 2].map(|()| "{\"kingsnake\":1,\"initial\":0}\n".to_owned());
    for id in 1..=60_u32 {
        let read = if is_wrong && id == 60 { 58 } else { id - 1 };
        let (begin, commit) = (10 * id, 10 * id + 5);
        let session = id % 2 + 1;
        let ops = format!("[\"r\",\"x\",{read}],[\"w\",\"x\",{id}]");
        files[id as usize % 2] += &format!(
            "{{\"id\":{id},\"session\":{session},\"begin\":{begin},\"commit\":{commit},\"ops\":[{ops}]}}\n"
        );
    }
    files
}

/// Both sessions in the order of their commits, with one header.
fn one_log(is_wrong: bool) -> String {
    let files = two_sessions(is_wrong);
    let [mut even, mut odd] = [&files[0], &files[1]].map(|it| it.lines());
    let mut lines: Vec<&str> = even.next().into_iter().collect();
    odd.next();
    for (one, other) in odd.zip(even) {
        lines.extend([one, other]);
    }
    lines.join("\n")
}

fn piped(args: &[&str]) -> Child {
    let mut command = kingsnake(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(Stdio::piped()).spawn().expect("it runs")
}

#[test]
fn stdin_is_judged_to_its_last_line_though_no_line_end_follows() {
    let scratch = Scratch::new();
    let keep = scratch.path("kept.jsonl");
    for (log, status) in [
        (one_log(false), 0),
        (one_log(true), 1),
        (String::new(), 2),
        (one_log(false) + "\nno line", 2),
    ] {
        let mut watch = piped(&["watch", "-", "--batch", "7", "--keep", &keep]);
        let mut stdin = watch.stdin.take().expect("a pipe");
        stdin.write_all(log.as_bytes()).expect("it reads");
        drop(stdin);
        let said = watch.wait_with_output().expect("it ends");
        let words = String::from_utf8_lossy(&said.stderr);
        assert_eq!(said.status.code(), Some(status), "{words}");
        if status == 2 {
            assert!(
                words.contains("stdin, line 62") || words.contains("empty"),
                "{words}"
            );
        } else {
            expect(status, &["check", &keep, "--level", "strict-ser"]);
        }
    }
}

#[test]
fn files_of_a_directory_are_one_log() {
    for (is_wrong, status) in [(false, 0), (true, 1)] {
        let scratch = Scratch::new();
        let [one, other] = two_sessions(is_wrong).map(|it| it + "{\"close\":{}}\n");
        scratch.put("one.jsonl", one);
        scratch.put("other.jsonl", other);
        scratch.put("no-log.txt", "something else");
        let directory = scratch.path("");
        for extra in [&["--finished"][..], &["--sessions", "2"], &[]] {
            for level in ["strict-ser", "si"] {
                // A small batch is full before the second file is read.
                let mut args = vec!["watch", &directory, "--batch", "5", "--level", level];
                args.extend(extra);
                expect(status, &args);
            }
        }
    }
}

/// What follows these words on the first line of stdout.
fn told(watch: &mut Child, words: &str) -> String {
    let mut line = String::new();
    let mut lines = BufReader::new(watch.stdout.as_mut().expect("a pipe"));
    lines.read_line(&mut line).expect("it tells an address");
    let rest = line.trim_end().strip_prefix(words);
    rest.unwrap_or_else(|| panic!("{line}")).to_owned()
}

#[test]
fn two_clients_of_a_port_are_one_log() {
    for (is_wrong, status) in [(false, 0), (true, 1)] {
        let args = ["watch", "--listen", "127.0.0.1:0", "--sessions", "2"];
        let mut watch = piped(&args);
        let address = told(&mut watch, "Clients connect to: ");
        let mut clients = [(); 2].map(|()| TcpStream::connect(&address).expect("it listens"));
        let files = two_sessions(is_wrong);
        let [one, other] = [&files[0], &files[1]].map(|it| it.split_inclusive('\n'));
        // The second client is cut off within a line that says nothing.
        for (a, b) in one.zip(other) {
            clients[0].write_all(a.as_bytes()).expect("it reads");
            clients[1].write_all(b.as_bytes()).expect("it reads");
        }
        let _ = clients[1].write_all(b"{\"heartbeat\":{\"sess");
        drop(clients);
        let ended = watch.wait().expect("it ends");
        assert_eq!(ended.code(), Some(status));
    }
}

fn get(address: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    write!(stream, "GET / HTTP/1.1\r\nHost: {address}\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

#[test]
fn the_live_page_has_the_policy_and_the_figures_up_to_the_end() {
    let mut watch = piped(&["watch", "-", "--page", "127.0.0.1:0"]);
    let address = told(&mut watch, "Live page: http://");
    let address = address.trim_end_matches('/');
    // A browser opens connections that it does not use.
    let _idle = TcpStream::connect(address).expect("it listens");
    let mut stdin = watch.stdin.take().expect("a pipe");
    let log = one_log(true);
    let mut lines: Vec<&str> = log.lines().collect();
    let last = lines.pop().expect("there is one");
    writeln!(stdin, "{}", lines.join("\n")).expect("it reads");
    let page_with = |words: &str| {
        let start = Instant::now();
        loop {
            let page = get(address).unwrap_or_default();
            if page.contains(words) {
                return page;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "{page}");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let page = page_with("<dt>Transactions</dt><dd>59</dd>");
    assert!(page.starts_with("HTTP/1.1 200 OK"), "{page}");
    assert!(
        page.contains(
            "Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-"
        )
    );
    assert!(page.contains("; connect-src 'self'\""), "{page}");
    assert!(page.contains("No violation so far"), "{page}");
    writeln!(stdin, "{last}").expect("it reads");
    drop(stdin);
    // Who looks sees the end, though the watch is over.
    let page = page_with("The watch has ended.");
    assert!(page.contains("<body class=\"violated ended\">"), "{page}");
    assert!(page.contains("<dd>60</dd>"), "{page}");
    assert_eq!(watch.wait().expect("it ends").code(), Some(1));
}

#[test]
fn the_live_page_follows_the_watch_in_a_browser_without_being_loaded_again() {
    let Some(mut browser) = Browser::start() else {
        eprintln!("SKIPPED: the live page, because chromium is not installed");
        return;
    };
    let mut watch = piped(&["watch", "-", "--page", "127.0.0.1:0"]);
    let address = told(&mut watch, "Live page: ");
    let mut stdin = watch.stdin.take().expect("a pipe");
    let log = one_log(true);
    let (first, last) = log.rsplit_once('\n').expect("lines");
    writeln!(stdin, "{first}").expect("it reads");
    let look = PageLook {
        width: 400,
        dark: true,
        script: true,
    };
    let mut tab = browser.visit(&address, look);
    tab.value("window.mark = 1; 0");
    let mut wait_for = |expression: &str| {
        let start = Instant::now();
        while !tab.holds(expression) {
            assert!(start.elapsed() < Duration::from_secs(60), "{expression}");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    wait_for("document.querySelector('#figures').innerText.includes('59')");
    wait_for("document.querySelector('.verdict').innerText.includes('No violation so far')");
    wait_for("document.documentElement.scrollWidth <= innerWidth");
    writeln!(stdin, "{last}").expect("it reads");
    drop(stdin);
    wait_for("document.body.className == 'violated ended'");
    wait_for("document.title.startsWith('violated')");
    wait_for("document.querySelector('#state').innerText.includes('The watch has ended')");
    // It is the same document, and nothing came from elsewhere.
    wait_for("window.mark == 1");
    wait_for("performance.getEntriesByType('resource').every(it => it.name == location.href)");
    assert_eq!(watch.wait().expect("it ends").code(), Some(1));
}

/// What a watch of stdin says before more can come, and its exit status.
fn said_of_stdin(args: &[&str], log: &str) -> (String, Option<i32>) {
    let mut watch = piped(&[&["watch", "-"], args].concat());
    let mut stdin = watch.stdin.take().expect("a pipe");
    stdin.write_all(log.as_bytes()).expect("it reads");
    let ended = watch.wait().expect("it ends");
    drop(stdin);
    let mut said = String::new();
    let stdout = watch.stdout.take().expect("a pipe");
    let stderr = watch.stderr.take().expect("a pipe");
    let mut both = stdout.chain(stderr);
    both.read_to_string(&mut said).expect("text");
    (said, ended.code())
}

#[test]
fn a_read_of_a_session_that_was_not_announced_is_an_error_that_names_it() {
    let line = |id: u32, session: u32, begin: u32, ops: &str| {
        let commit = begin + 5;
        format!(
            "{{\"id\":{id},\"session\":{session},\"begin\":{begin},\"commit\":{commit},\"ops\":[{ops}]}}\n"
        )
    };
    let header = "{\"kingsnake\":1,\"initial\":0}\n";
    let reads = line(1, 1, 10, r#"["r","x",7]"#) + &line(2, 1, 200, r#"["w","y",1]"#);
    let writes = line(3, 2, 8, r#"["w","x",7]"#);
    for (log, status, words) in [
        (
            format!("{header}{reads}{writes}"),
            2,
            "session 2 begins at 8",
        ),
        (
            format!("{header}{reads}"),
            1,
            "No session that was heard of wrote it",
        ),
    ] {
        let scratch = Scratch::new();
        let keep = scratch.path("kept.jsonl");
        let (said, code) = said_of_stdin(&["--batch", "1", "--keep", &keep], &log);
        assert_eq!(code, Some(status), "{said}");
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn a_list_whose_writer_is_still_to_come_is_no_part_of_the_story() {
    let scratch = Scratch::new();
    let log = [
        r#"{"kingsnake":1,"sessions":3}"#,
        r#"{"id":1,"session":1,"begin":1,"commit":10,"ops":[["rl","x",[]],["a","x",1]]}"#,
        r#"{"id":2,"session":2,"begin":2,"commit":9,"ops":[["rl","x",[]],["a","x",2]]}"#,
        r#"{"id":3,"session":1,"begin":11,"commit":12,"ops":[["rl","y",[8,9]]]}"#,
    ];
    let keep = scratch.path("kept.jsonl");
    let log = log.join("\n") + "\n";
    let (said, code) = said_of_stdin(&["--batch", "3", "--keep", &keep], &log);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("The update of x by T"), "{said}");
    assert!(!said.contains("T3"), "{said}");
}

#[test]
fn keys_that_nothing_uses_go_to_a_file_at_the_limit() {
    let scratch = Scratch::new();
    let stubs = scratch.path("stubs");
    for (seed, fault) in [("1", &[][..]), ("2", &["--fault", "lost-update"])] {
        let many = ["--txns", "5000", "--keys", "12000"];
        let history = generate(
            &scratch,
            "h.jsonl",
            "serializable",
            seed,
            &[&many[..], fault].concat(),
        );
        // The generator writes session by session; lines arrive in the order of their commits.
        let text = fs::read_to_string(&history).expect("it was written");
        let (header, lines) = text.split_once('\n').expect("a header");
        let mut lines: Vec<&str> = lines.lines().collect();
        lines.sort_by_key(|it| {
            let line: serde_json::Value = serde_json::from_str(it).expect("JSON");
            line["commit"].as_i64()
        });
        fs::write(&history, format!("{header}\n{}\n", lines.join("\n"))).expect("written");
        for level in ["strict-ser", "strong-si"] {
            let checked = run(&["check", &history, "--level", level, "--quiet"]).status;
            for batch in ["10", "200"] {
                let mut args = vec!["watch", &history, "--finished", "--level", level];
                args.extend(["--batch", batch, "--memory-limit", "200K"]);
                let partial = run(&args);
                assert!(
                    partial.stderr.contains("cannot keep up"),
                    "{level}: {}",
                    partial.stderr
                );
                args.extend(["--stubs", &stubs]);
                let said = run(&args);
                assert_eq!(
                    said.status, checked,
                    "{level} {batch}: {}{}",
                    said.stdout, said.stderr
                );
                assert!(!said.stderr.contains("cannot keep up"), "{level} {batch}");
                assert!(!fs::exists(&stubs).is_ok_and(|it| it), "it is removed");
            }
        }
    }
}

#[test]
fn a_command_is_run_at_a_violation() {
    let scratch = Scratch::new();
    scratch.put("h.jsonl", one_log(true));
    let command = format!(
        "echo $KINGSNAKE_LEVEL | tee {}; exit 5",
        scratch.path("mark")
    );
    let said = expect(
        1,
        &[
            "watch",
            &scratch.path("h.jsonl"),
            "--finished",
            "--json",
            "--on-violation",
            &command,
        ],
    );
    assert_eq!(scratch.get("mark"), "strict-ser\n");
    assert!(said.stderr.contains("exit status: 5"), "{}", said.stderr);
    // What it prints does not come between the lines of JSON, and one of them is the end.
    let lines: Vec<serde_json::Value> = said
        .stdout
        .lines()
        .map(|it| serde_json::from_str(it).expect("a line is JSON"))
        .collect();
    let ends = lines.iter().filter(|it| it["watch"] == "end");
    assert_eq!(ends.count(), 1, "{}", said.stdout);
}

#[test]
fn with_a_fence_sessions_appear_later_and_memory_is_bounded() {
    let mut log = String::from("{\"kingsnake\":1,\"initial\":0}\n");
    let (mut fence, mut value) = (0, 0);
    for id in 1..=400_u32 {
        let session = if id <= 200 { id % 2 } else { id % 4 };
        let (key, before) = if id % 20 < 4 || (201..=204).contains(&id) || id < 3 {
            ("f", &mut fence)
        } else {
            ("x", &mut value)
        };
        let ops = format!("[\"r\",\"{key}\",{before}],[\"w\",\"{key}\",{id}]");
        *before = id;
        log += &format!("{{\"id\":{id},\"session\":{session},\"ops\":[{ops}]}}\n");
    }
    let scratch = Scratch::new();
    scratch.put("h.jsonl", &log);
    let path = scratch.path("h.jsonl");
    let mut args = vec!["watch", &path, "--level", "ser", "--json", "--batch", "10"];
    args.extend(["--fence", "f"]);
    let mut watch = piped(&args);
    let mut line = String::new();
    let mut lines = BufReader::new(watch.stdout.as_mut().expect("a pipe"));
    while !line.contains("\"transactions\":400") {
        line.clear();
        assert!(lines.read_line(&mut line).expect("it goes on") > 0);
    }
    let status: serde_json::Value = serde_json::from_str(&line).expect("a line is JSON");
    assert!(
        status["retained"].as_u64().is_some_and(|it| it < 80),
        "{line}"
    );
    let _ = watch.kill();
    let _ = watch.wait();
    // A session that appears without one is an error.
    scratch.put(
        "h.jsonl",
        log + "{\"id\":500,\"session\":9,\"ops\":[[\"w\",\"x\",500]]}\n",
    );
    let said = expect(2, &args);
    assert!(said.stderr.contains("session 9 appears without a fence"));
}

#[test]
fn with_a_limit_unknown_ends_count_as_over() {
    let scratch = Scratch::new();
    let lines = [
        r#"{"kingsnake":1,"initial":0}"#,
        r#"{"id":1,"session":1,"begin":1000000000,"status":"unknown","ops":[["w","x",1]]}"#,
        r#"{"id":2,"session":2,"begin":9000000000,"commit":9100000000,"ops":[["r","x",0]]}"#,
        r#"{"id":3,"session":2,"begin":9200000000,"commit":9300000000,"ops":[["r","x",1]]}"#,
    ];
    scratch.put("h.jsonl", lines.join("\n") + "\n");
    let path = scratch.path("h.jsonl");
    for (extra, status) in [
        (&[][..], 0),
        (&["--unknown-limit", "60"], 0),
        (&["--unknown-limit", "5"], 1),
    ] {
        let mut args = vec!["watch", &path, "--finished"];
        args.extend(extra);
        expect(status, &args);
    }
}

/// Kills a watch some time after it stored a snapshot; whether it was still running.
fn kill_after_a_snapshot(args: &[&str], state: &str, delay: Duration) -> bool {
    let stored = || fs::metadata(state).and_then(|it| it.modified()).ok();
    let before = stored();
    let mut watch = kingsnake(args)
        .stdout(Stdio::null())
        .spawn()
        .expect("it runs");
    let mut has_ended = || watch.try_wait().expect("it is ours").is_some();
    while stored() == before && !has_ended() {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(delay);
    let is_running = !has_ended();
    let _ = watch.kill();
    let _ = watch.wait();
    is_running
}

#[test]
fn a_killed_watch_goes_on_from_its_snapshot() {
    let scratch = Scratch::new();
    for (fault, expected) in [(&[][..], 0), (&["--fault", "lost-update"][..], 1)] {
        let extra = [&["--txns", "2000"], fault].concat();
        let history = generate(&scratch, "h.jsonl", "serializable", "9", &extra);
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
        let mut n_killed = 0;
        while n_killed < 50 {
            let delay = Duration::from_millis(n_killed * 7 % 10);
            if !kill_after_a_snapshot(&args, &state, delay) {
                break;
            }
            n_killed += 1;
        }
        eprintln!("{n_killed} kills before the end, which is {expected}");
        expect(expected, &args);
        if expected == 0 {
            assert!(n_killed >= 5, "the log is too short: {n_killed} kills");
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

#[test]
fn along_timestamps_a_violation_is_found_beyond_the_limit() {
    let scratch = Scratch::new();
    for (is_wrong, status) in [(false, 3), (true, 1)] {
        let log = one_log(is_wrong);
        let log = log.replace("\"begin\"", "\"start_ts\"");
        scratch.put("h.jsonl", log.replace("\"commit\"", "\"commit_ts\""));
        let path = scratch.path("h.jsonl");
        let mut args = vec!["watch", &path, "--finished", "--level", "timestamps"];
        // Everything is forgotten after each batch.
        args.extend(["--batch", "4", "--memory-limit", "100"]);
        let said = expect(status, &args);
        assert!(said.stderr.contains("cannot keep up"), "{}", said.stderr);
    }
}

/// An embedded database is watched while clients use it; the directory and what was said.
fn watched(scratch: &Scratch, name: &str, status: i32, extra: &[&str]) -> (String, String) {
    let out = scratch.path(name);
    let mut args = vec!["collect", "sqlite", "--out", &out, "--workload", "mini"];
    args.extend(extra);
    let said = expect(status, &args);
    (out, said.stdout)
}

#[test]
fn a_collection_is_watched_while_it_runs() {
    let scratch = Scratch::new();
    for level in LEVELS {
        let (out, said) = watched(
            &scratch,
            level,
            0,
            &["--txns", "600", "--sessions", "4", "--watch", level],
        );
        assert!(said.contains(&format!("Satisfied: {level}")), "{said}");
        // Lists too, with fences of lists.
        let lists = ["--txns", "600", "--sessions", "4", "--watch", level];
        let out_of_lists = scratch.path(&format!("{level}-lists"));
        let workload = ["--workload", "append", "--out", &out_of_lists];
        let said = expect(0, &[&["collect", "sqlite"][..], &workload, &lists].concat());
        assert!(
            said.stdout.contains(&format!("Satisfied: {level}")),
            "{}",
            said.stdout
        );
        // The watch and the check have seen the same transactions.
        let history = format!("{out}/history.jsonl");
        expect(0, &["check", &history, "--level", level, "--quiet"]);
        let count = |name: &str| {
            let text = fs::read_to_string(format!("{out}/{name}")).expect("it was written");
            text.lines().filter(|it| it.starts_with("{\"id\"")).count()
        };
        assert_eq!(count("history.jsonl"), count("watched.jsonl"), "{level}");
        let has_fences = level == "ser" || level == "si";
        let text = fs::read_to_string(&history).expect("it was written");
        assert_eq!(text.contains("[\"r\",20,"), has_fences, "{level}");
    }
}

#[test]
fn a_collection_ends_at_the_first_violation() {
    let scratch = Scratch::new();
    let uncommitted = ["--isolation", "read-uncommitted", "--keys", "5"];
    let slow = ["--think", "0.0002", "--txns", "1000000", "--watch"];
    for level in ["strict-ser", "ser"] {
        let extra = [&uncommitted[..], &slow, &[level]].concat();
        let (out, said) = watched(&scratch, level, 1, &extra);
        assert!(said.contains(&format!("Violated: {level}")), "{said}");
        assert!(said.contains("The clients were stopped"), "{said}");
        for name in ["report.html", "history.jsonl", "summary.json"] {
            assert!(
                fs::exists(format!("{out}/{name}")).is_ok_and(|it| it),
                "{name}"
            );
        }
    }
    let ranges = [
        "collect",
        "sqlite",
        "--workload",
        "predicate",
        "--watch",
        "ser",
    ];
    let out = scratch.path("ranges");
    let said = expect(2, &[&ranges[..], &["--out", &out]].concat());
    assert!(said.stderr.contains("are not watched"), "{}", said.stderr);
}

/// A watch that listens, its socket, and what to wait for.
fn listening(scratch: &Scratch, extra: &[&str]) -> (Child, String) {
    let socket = format!("unix:{}", scratch.path("watch.sock"));
    let mut args = vec!["watch", "--listen", &socket, "--json", "--batch", "5"];
    args.extend(extra);
    let watch = kingsnake(&args)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the watch starts");
    drop(connected(&scratch.path("watch.sock")));
    (watch, socket)
}

/// Two clients of a recorder that count one key up; the fences are there where they are owed.
fn count_up(recorder: &kingsnake_record::Recorder) {
    let values = std::sync::Mutex::new([0_i64; 2]);
    std::thread::scope(|scope| {
        for client in 1..=2_i64 {
            let values = &values;
            let mut session = recorder.session(client);
            session.open().expect("sent");
            scope.spawn(move || {
                for number in 1..=60 {
                    let key = usize::from(session.owes_fence());
                    let name = ["x", "fence"][key];
                    let mut transaction = session.begin();
                    let mut held = values.lock().expect("no panic");
                    transaction.read(name, held[key]);
                    let value = 1000 * client + number;
                    transaction.write(name, value);
                    let end = transaction.ready().expect("sent");
                    held[key] = value;
                    drop(held);
                    end.committed().expect("sent");
                }
                session.close().expect("sent");
            });
        }
    });
}

#[test]
fn a_recorder_sends_to_a_watch() {
    let scratch = Scratch::new();
    for extra in [
        &["--level", "strict-ser"][..],
        &["--level", "ser", "--fence", "fence"],
    ] {
        let kept = scratch.path("kept.jsonl");
        let (mut watch, socket) = listening(
            &scratch,
            &[extra, &["--sessions", "2", "--keep", &kept]].concat(),
        );
        let recorder = kingsnake_record::Recorder::connect(&socket, 0).expect("it listens");
        let recorder = recorder.with_fences("fence", 5);
        count_up(&recorder);
        drop(recorder);
        let status = watch.wait().expect("it ends");
        assert_eq!(status.code(), Some(0), "{extra:?}");
        let text = fs::read_to_string(&kept).expect("kept");
        assert_eq!(text.matches("\"committed\"").count(), 120);
        assert!(text.matches("\"fence\"").count() >= 2 * 2 * 10);
        expect(0, &["check", &kept, "--level", "strict-ser", "--quiet"]);
    }
}

#[test]
fn a_recorder_that_dies_in_its_commit_leaves_an_unknown_end() {
    let scratch = Scratch::new();
    let (mut watch, socket) = listening(&scratch, &["--sessions", "2"]);
    let dying = kingsnake_record::Recorder::connect(&socket, 0).expect("it listens");
    let other = kingsnake_record::Recorder::connect(&socket, 0).expect("it listens");
    let mut survivor = other.session("survivor");
    survivor.open().expect("sent");
    let mut session = dying.session("dying");
    session.open().expect("sent");
    let mut transaction = session.begin();
    transaction.write("x", 7);
    transaction.ready().expect("sent").unknown();
    drop((session, dying));
    // What it wrote was read, so it took effect.
    let mut transaction = survivor.begin();
    transaction.read("x", 7);
    transaction
        .ready()
        .expect("sent")
        .committed()
        .expect("sent");
    survivor.close().expect("sent");
    drop(other);
    assert_eq!(watch.wait().expect("it ends").code(), Some(0));
}
