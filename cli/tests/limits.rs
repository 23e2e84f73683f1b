//! Limits reach every phase: reading bombs, pipes and devices that never end, resolving, and writing to a pipe without a reader.

#![cfg(unix)]
#![allow(clippy::print_stdout)] // What was skipped, and how large processes became, is shown by `scripts/test`.

mod run;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use run::{Scratch, corpus, expect, kingsnake};
use serde_json::Value;

/// After so long it has not stopped at all, however busy the machine is.
const HUNG: Duration = Duration::from_secs(60);
const MB: u64 = 1 << 20;

/// Four gigabytes in four megabytes: one compressed member of spaces, many times.
fn gzip_bomb(scratch: &Scratch) -> String {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let spaces = vec![b' '; 1 << 20];
    for _ in 0..64 {
        encoder.write_all(&spaces).expect("memory is enough");
    }
    let member = encoder.finish().expect("memory is enough");
    scratch.put("bomb.jsonl.gz", member.repeat(64))
}

fn zstd_bomb(scratch: &Scratch) -> String {
    let frame = zstd::encode_all(&vec![b' '; 64 << 20][..], 1).expect("memory is enough");
    scratch.put("bomb.jsonl.zst", frame.repeat(64))
}

fn pipe(scratch: &Scratch, name: &str) -> String {
    let path = scratch.path(name);
    let made = Command::new("mkfifo").arg(&path).status();
    assert!(made.expect("mkfifo runs").success());
    path
}

/// A check that must end in `unknown` soon; its document.
fn stopped(args: &[&str]) -> Value {
    let begun = Instant::now();
    let said = expect(3, &[&["check", "--json"], args].concat());
    assert!(
        begun.elapsed() < HUNG,
        "{args:?} took {:?}",
        begun.elapsed()
    );
    serde_json::from_str(&said.stdout).expect("one JSON document")
}

fn expect_within(document: &Value, limit: u64) {
    assert_eq!(document["reason"]["kind"], "memory", "{document}");
    expect_size(document, limit);
}

fn expect_size(document: &Value, limit: u64) {
    match document["stats"]["peak_memory_bytes"].as_u64() {
        Some(peak) => {
            println!("limit {} MB, peak {} MB", limit / MB, peak / MB);
            assert!(peak <= limit + limit / 10, "{peak} bytes, limit {limit}");
        }
        None => println!("SKIPPED: the system does not tell the process's size"),
    }
}

#[test]
fn a_bomb_or_an_endless_device_ends_at_the_memory_limit() {
    let scratch = Scratch::new();
    for history in [
        gzip_bomb(&scratch),
        zstd_bomb(&scratch),
        "/dev/zero".to_owned(),
    ] {
        let document = stopped(&[&history, "--memory-limit", "400M"]);
        expect_within(&document, 400 * MB);
    }
}

#[test]
fn a_bomb_or_an_endless_device_ends_at_the_time_limit() {
    let scratch = Scratch::new();
    for history in [gzip_bomb(&scratch), "/dev/zero".to_owned()] {
        let document = stopped(&[&history, "--timeout", "0.2"]);
        assert_eq!(document["reason"]["kind"], "time");
    }
}

#[test]
fn a_pipe_that_nobody_writes_to_ends_at_the_time_limit_in_every_command() {
    let scratch = Scratch::new();
    let (silent, out) = (pipe(&scratch, "silent"), scratch.path("out"));
    let valid = corpus("strong-session-ser/bank-transfer.jsonl");
    let order = scratch.path("order");
    expect(0, &["check", &valid, "--certificate", &order]);
    for args in [
        &["check", &silent][..],
        &["check", &silent, "--level", "auto"],
        &["explain", &silent],
        &["stats", &silent],
        &["convert", &silent, &out],
        &["export", &silent, "--to", "dot"],
        &["verify", &silent, &order],
        &["verify", &valid, &silent],
        &["verify-proof", &order, "--cnf", &silent],
        &["check", &silent, "--workload", "bank"],
    ] {
        let begun = Instant::now();
        expect(3, &[args, &["--timeout", "0.1"]].concat());
        assert!(begun.elapsed() < HUNG, "{args:?}");
    }
    assert!(!std::path::Path::new(&out).exists());
}

#[test]
fn a_verdict_keeps_its_exit_status_when_the_time_for_telling_it_ends() {
    let scratch = Scratch::new();
    let deaf = format!("--json={}", pipe(&scratch, "deaf"));
    for (history, status) in [
        ("none/lost-update.jsonl", 1),
        ("strong-session-ser/bank-transfer.jsonl", 0),
    ] {
        let history = corpus(history);
        for level in ["ser", "rc", "auto"] {
            let args = ["check", &history, "--level", level, "--timeout", "0.5"];
            let status = if level == "rc" { 0 } else { status };
            let said = expect(status, &[&args[..], &[&deaf]].concat());
            assert!(said.stderr.contains("is valid"), "{}", said.stderr);
        }
    }
    let bank = scratch.put(
        "bank.edn",
        "{:type :invoke, :f :read, :value nil, :process 0}\n{:type :ok, :f :read, :value {0 -5, 1 15}, :process 0}\n",
    );
    let args = ["check", &bank, "--workload", "bank", "--timeout", "0.5"];
    expect(1, &[&args[..], &[&deaf]].concat());
}

#[test]
fn a_memory_limit_holds_while_a_history_is_resolved() {
    let scratch = Scratch::new();
    let mut lines = String::from("{\"kingsnake\":1,\"initial\":null}\n");
    for i in 0..20_000 {
        let txn = format!(
            "{{\"id\":{i},\"session\":{i},\"ops\":[[\"range\",null,null,[]],[\"w\",{i},1]]}}\n"
        );
        lines.push_str(&txn);
    }
    let history = scratch.put("ranges.jsonl", lines);
    let begun = Instant::now();
    let args = [
        "check",
        "--json",
        &history,
        "--memory-limit",
        "500M",
        "--timeout",
        "20",
    ];
    let said = run::run(&args);
    assert!(begun.elapsed() < HUNG, "took {:?}", begun.elapsed());
    assert!(
        [1, 3].contains(&said.status),
        "{}{}",
        said.stdout,
        said.stderr
    );
    let document: Value = serde_json::from_str(&said.stdout).expect("one JSON document");
    expect_size(&document, 500 * MB);
}

#[test]
fn ctrl_c_ends_reading_and_writing_through_pipes_that_nobody_serves() {
    let scratch = Scratch::new();
    let (silent, deaf) = (pipe(&scratch, "silent"), pipe(&scratch, "deaf"));
    let broken = corpus("none/lost-update.jsonl");
    for (args, status) in [
        (&["check", &silent][..], 3),
        (&["stats", &silent], 3),
        // The verdict was there before the picture.
        (&["check", &broken, "--svg", &deaf], 1),
    ] {
        let child = kingsnake(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        std::thread::sleep(Duration::from_millis(1500));
        let asked = Instant::now();
        let sent = Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status();
        assert!(sent.expect("kill runs").success());
        let output = child.wait_with_output().expect("the binary ends");
        let stderr = String::from_utf8_lossy(&output.stderr);
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert_eq!(
            output.status.code(),
            Some(status),
            "{args:?}: {stdout}{stderr}"
        );
        assert!(
            stdout.contains("interrupted") || stderr.contains("interrupted"),
            "{args:?}: {stdout}{stderr}"
        );
        assert!(asked.elapsed() < HUNG, "{args:?}");
    }
}

#[test]
fn a_file_that_is_cut_off_while_it_is_read_is_an_error_and_no_signal() {
    let scratch = Scratch::new();
    let mut text = String::from("{\"kingsnake\":1,\"initial\":0}\n");
    for i in 0..200_000 {
        let session = i % 10;
        text.push_str(&format!(
            "{{\"id\":{i},\"session\":{session},\"ops\":[[\"w\",{},{i}]]}}\n",
            i % 1000
        ));
    }
    let mut statuses = Vec::new();
    for milliseconds in [10, 20, 40, 60, 80, 120] {
        let history = scratch.put("h.jsonl", &text);
        let child = kingsnake(&["check", &history])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        std::thread::sleep(Duration::from_millis(milliseconds));
        let file = std::fs::File::options().write(true).open(&history);
        file.and_then(|it| it.set_len(4_096))
            .expect("it can be cut");
        let output = child.wait_with_output().expect("the binary ends");
        let stderr = String::from_utf8_lossy(&output.stderr);
        let status = output.status.code();
        assert!(matches!(status, Some(0 | 2)), "{}: {stderr}", output.status);
        statuses.push((status, stderr.contains("became shorter")));
    }
    println!("{statuses:?}");
}

#[test]
fn a_verdict_stands_while_its_anomalies_are_looked_for() {
    let scratch = Scratch::new();
    let mut text = String::from("{\"kingsnake\":1,\"initial\":0}\n");
    for i in 0..30_000 {
        let keys = [i % 97, i % 89, i % 83];
        let ops = keys.map(|key| format!("[\"r\",\"k{key}\",0],[\"w\",\"k{key}\",{i}]"));
        text.push_str(&format!(
            "{{\"id\":{i},\"session\":{},\"ops\":[{}]}}\n",
            i % 500,
            ops.join(",")
        ));
    }
    let history = scratch.put("h.jsonl", text);
    let directory = scratch.path("anomalies");
    // However little time is left for them, the violation is known by then or it is not.
    for seconds in ["0.5", "1", "2", "4"] {
        let args = [
            "check",
            &history,
            "--directory",
            &directory,
            "--timeout",
            seconds,
        ];
        let said = run::run(&args);
        assert!([1, 3].contains(&said.status), "{}", said.stderr);
        if said.status == 3 {
            assert!(!said.stderr.contains("is valid"), "{}", said.stderr);
            assert!(said.stdout.contains("unknown"), "{}", said.stdout);
        }
    }
    let left: Vec<_> = std::fs::read_dir(scratch.path(""))
        .unwrap()
        .flatten()
        .collect();
    let half = left
        .iter()
        .filter(|it| it.file_name().to_string_lossy().ends_with(".new"));
    assert_eq!(half.count(), 0, "{left:?}");
}

/// Reads the first lines of a list without end, and closes it; the program ends by itself, and never was large.
fn first_of_list(args: &[&str]) -> Vec<String> {
    let mut child = kingsnake(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let first: Vec<String> = lines.take(20_000).map(|it| it.expect("a line")).collect();
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
    let peak = status.ok().and_then(|it| {
        let line = it.lines().find(|it| it.starts_with("VmHWM"))?.to_owned();
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    });
    assert!(peak.is_none_or(|it| it < 400 << 10), "{peak:?} kB");
    let ended = child.wait_with_output().expect("it ends");
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{args:?}: {stderr}");
    first
}

/// A hunt of so many seeds.
fn hunt_file(scratch: &Scratch, seeds: u64) -> String {
    let text = format!(
        "name = 'x'\nseeds = {seeds}\ntxns = 50\nsessions = 2\n[[database]]\nname = 'sqlite'\nisolation = ['serializable']\nworkload = ['rmw']\n"
    );
    scratch.put("hunt.toml", text)
}

#[test]
fn cells_are_made_as_they_are_reached_however_many_there_are() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    let hunt = hunt_file(&scratch, 4_294_967_296);
    let listed = first_of_list(&["hunt", &hunt, "--out", &out, "--list"]);
    assert!(listed[19_999].ends_with("seed 20000"), "{}", listed[19_999]);
    first_of_list(&["hunt", &hunt, "--out", &out, "--list", "--json"]);
    let study = scratch.put("s.toml", include_str!("run/small_study.toml"));
    for option in ["--seeds", "--repeat"] {
        let args = ["ablate", &study, "--out", &out, "--list", option];
        first_of_list(&[&args[..], &["4000000000"]].concat());
    }
}

#[test]
fn a_hunt_without_end_keeps_its_rows_and_its_page_when_it_is_stopped_and_goes_on() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    let hunt = hunt_file(&scratch, 4_294_967_296);
    let rows = || std::fs::read_to_string(format!("{out}/rows.jsonl")).unwrap_or_default();
    let mut n_before = 0;
    for _ in 0..2 {
        let child = kingsnake(&["hunt", &hunt, "--out", &out])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let begun = Instant::now();
        while rows().lines().count() < n_before + 2 && begun.elapsed() < HUNG {
            std::thread::sleep(Duration::from_millis(20));
        }
        let sent = Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status();
        assert!(sent.expect("kill runs").success());
        let ended = child.wait_with_output().expect("it ends");
        let stdout = String::from_utf8_lossy(&ended.stdout);
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(3), "{stdout}{stderr}");
        assert!(stdout.contains("of 4294967296 done"), "{stdout}{stderr}");
        let seeds = rows();
        let seeds = seeds.lines().map(|line| {
            let row: Value = serde_json::from_str(line).expect("a row");
            assert_eq!(row["ser"]["verdict"], "satisfied", "{row}");
            row["seed"].as_u64().expect("a seed")
        });
        let seeds: Vec<u64> = seeds.collect();
        let n_rows = seeds.len();
        assert!(n_rows >= n_before + 2, "{n_rows} rows");
        assert_eq!(seeds, (1..=n_rows as u64).collect::<Vec<_>>());
        assert!(scratch.get("out/report.html").contains("</html>"));
        n_before = n_rows;
    }
}

#[test]
fn a_header_of_very_many_tables_and_columns_is_read_in_one_pass() {
    let scratch = Scratch::new();
    let columns: Vec<String> = (0..200_000).map(|it| format!("\"c{it}\"")).collect();
    let tables: Vec<String> = (0..200_000).map(|it| format!("\"t{it}\":[]")).collect();
    for tables in [
        tables.join(","),
        format!("\"t199999\":[{}]", columns.join(",")),
    ] {
        let history = scratch.put(
            "h.jsonl",
            format!(
                "{{\"kingsnake\":1,\"initial\":0,\"tables\":{{{tables}}}}}\n{{\"id\":1,\"session\":1,\"ops\":[[\"r\",\"t199999/x\",0]]}}\n"
            ),
        );
        expect(0, &["check", &history, "--timeout", "60"]);
    }
}

#[test]
fn numbers_of_a_file_are_not_believed() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    let gnf = scratch.put("g.gnf", "p cnf 1 1\ndigraph int 4000000000 1 0\n1 0\n");
    let cnf = scratch.put("c.gnf", "p cnf 100000000 1\n1 0\n");
    for file in [gnf, cnf] {
        let said = expect(2, &["solve", &file]);
        assert!(said.stderr.contains("at most"), "{}", said.stderr);
    }
    let twice = "name = 'x'\n[[database]]\nname = 'sqlite'\nworkload = ['rmw', 'rmw']\n";
    let table = "[[database]]\nname = 'sqlite'\nworkload = ['rmw']\n";
    for (text, words) in [
        (twice.to_owned(), "twice"),
        (format!("name = 'x'\n{}", table.repeat(2)), "one name"),
        (format!("name = 'x'\n{}", table.repeat(2_000)), "at most"),
    ] {
        let hunt = scratch.put("hunt.toml", text);
        let said = expect(2, &["hunt", &hunt, "--out", &out, "--list"]);
        assert!(said.stderr.contains(words), "{}", said.stderr);
    }
    let mut axes = String::new();
    for axis in 0..12 {
        axes.push_str(&format!(
            "\n[[experiment.axis]]\nname = \"a{axis}\"\nparameter = \"sessions\"\nvalues = [1, 2, 3, 4, 5, 6, 7, 8, 9]\n"
        ));
    }
    let text = "name = \"wide\"\ntitle = \"Wide\"\ntimeout = 5\ncheck = [\"--seed\", \"{sessions}\"]\n[parameters]\nsessions = 1\n[[workload]]\nname = \"w\"\ngenerate = [\"blindw-rw\", \"--txns\", \"20\", \"--keys\", \"10\"]\n[[experiment]]\nname = \"one\"\ntitle = \"One\"\n";
    let study = scratch.put("wide.toml", format!("{text}{axes}"));
    let said = expect(2, &["ablate", &study, "--out", &out, "--list"]);
    assert!(said.stderr.contains("at most"), "{}", said.stderr);
}

/// A control group of this test, which goes with it.
struct ControlGroup(std::path::PathBuf);

impl ControlGroup {
    /// A group with a limit, of version 1 or 2, where this user may make one.
    fn make(controller: &str, files: [(&str, &str); 2]) -> Option<ControlGroup> {
        let root = std::path::Path::new("/sys/fs/cgroup");
        let name = format!("kingsnake-test-{}", std::process::id());
        for (mount, (file, limit)) in [root.join(controller), root.to_owned()].iter().zip(files) {
            let group = ControlGroup(mount.join(&name));
            if std::fs::create_dir(&group.0).is_ok()
                && std::fs::write(group.0.join(file), limit).is_ok()
            {
                return Some(group);
            }
        }
        None
    }

    /// The program within the group.
    fn kingsnake(&self, args: &[&str]) -> std::process::Output {
        let enter = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", self.0.display());
        let mut command = Command::new("sh");
        command.args(["-c", &enter, "sh", env!("CARGO_BIN_EXE_kingsnake")]);
        command.args(args).output().expect("a shell runs")
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // A process leaves its group a moment after it has ended.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.0).is_ok() || !self.0.exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn the_memory_limit_and_the_threads_are_those_of_the_control_group() {
    let scratch = Scratch::new();
    let bomb = gzip_bomb(&scratch);
    let memory = [
        ("memory.limit_in_bytes", "400000000"),
        ("memory.max", "400000000"),
    ];
    let Some(group) = ControlGroup::make("memory", memory) else {
        println!("SKIPPED: control groups, because this user makes none");
        return;
    };
    let ended = group.kingsnake(&["check", &bomb, "--json"]);
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(3), "{stderr}");
    let document: Value = serde_json::from_slice(&ended.stdout).expect("one JSON document");
    expect_within(&document, 400 * MB);
    drop(group);
    let quota = [("cpu.cfs_quota_us", "100000"), ("cpu.max", "100000 100000")];
    let Some(group) = ControlGroup::make("cpu", quota) else {
        println!("SKIPPED: the threads of a control group, because this user makes none");
        return;
    };
    let ended = group.kingsnake(&["devices"]);
    let stdout = String::from_utf8_lossy(&ended.stdout);
    assert!(stdout.starts_with("cpu: 1 thread\n"), "{stdout}");
}
