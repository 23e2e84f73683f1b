//! The examples of docs/cluster.md, run as they stand there but for names: ssh with GNU parallel and a private sshd, Ray, Dask, and
//! the command of the Kubernetes job for each index. Each skips visibly where its engine is not installed.

#![cfg(target_os = "linux")]
#![allow(clippy::print_stderr)] // A test that skips says so.

mod run;

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use run::{Scratch, expect};

const STUDY: &str = r#"
name = "small"
title = "A small study"
timeout = 20
seeds = 2

[[workload]]
name = "RW"
generate = ["blindw-rw", "--txns", "60", "--keys", "10"]
expect = "satisfied"

[[experiment]]
name = "one"
title = "One"
tables = ["medians"]
"#;

/// The first block of a language after a heading or a line of the page.
fn block(after: &str, language: &str) -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/cluster.md");
    let page = fs::read_to_string(page).expect("docs/cluster.md is there");
    let at = page
        .find(after)
        .unwrap_or_else(|| panic!("the page lacks {after:?}"));
    let rest = &page[at..];
    let fence = format!("```{language}\n");
    let begin = rest.find(&fence).expect("a block") + fence.len();
    let end = rest[begin..].find("```").expect("the block ends");
    rest[begin..begin + end].to_owned()
}

/// The example with the names of a small study here.
fn here(text: &str, scratch: &Scratch) -> String {
    let study = scratch.put("small.toml", STUDY);
    let text = text.replace("/shared/sizes", &scratch.path("out"));
    let text = text.replace("ablate sizes", &format!("ablate {study}"));
    let text = text.replace("\"sizes\"", &format!("{study:?}"));
    text.replace("8G", "1G").replace("9 << 30", "1 << 20")
}

/// A command that finds the binary by its name.
fn with_kingsnake(program: &str) -> Command {
    let binary = Path::new(env!("CARGO_BIN_EXE_kingsnake"));
    let place = binary.parent().expect("a directory").display();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(program);
    command.env("PATH", format!("{place}:{path}:/usr/sbin"));
    command.stdin(Stdio::null());
    command
}

fn is_there(program: &str, args: &[&str]) -> bool {
    let output = with_kingsnake(program).args(args).output();
    output.is_ok_and(|it| it.status.success())
}

fn expect_done(mut command: Command, scratch: &Scratch) {
    let output = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(scratch.get("out/rows.jsonl").lines().count(), 2, "{said}");
    assert_eq!(
        fs::read_dir(scratch.path("out/rows.d"))
            .expect("rows")
            .count(),
        2,
        "cells ran elsewhere: {said}"
    );
    assert!(fs::exists(scratch.path("out/report.html")).expect("a page"));
}

/// Ended when this goes.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    let bound = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    bound.local_addr().expect("an address").port()
}

fn wait_for(port: u16) {
    let begun = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(60), "nobody listens");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn the_example_for_ssh_runs_on_a_private_sshd() {
    let tools = [("parallel", "--version"), ("jq", "--version")];
    let has_sshd = Path::new("/usr/sbin/sshd").exists();
    if !has_sshd || !tools.iter().all(|it| is_there(it.0, &[it.1])) {
        eprintln!("SKIPPED: the ssh example, because sshd, GNU parallel or jq is not installed");
        return;
    }
    let scratch = Scratch::new();
    for name in ["host", "user"] {
        let key = scratch.path(name);
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f", &key])
            .status();
        assert!(made.expect("ssh-keygen runs").success());
    }
    let port = free_port();
    let binary = Path::new(env!("CARGO_BIN_EXE_kingsnake"))
        .parent()
        .expect("a directory")
        .display();
    scratch.put("sshd_config", format!(
        "ListenAddress 127.0.0.1\nPort {port}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nPidFile none\nUsePAM no\nSetEnv PATH={binary}:/usr/bin:/bin\n",
        scratch.path("host"), scratch.path("user.pub"),
    ));
    scratch.put("ssh_config", format!(
        "Host node1 node2\n HostName 127.0.0.1\n Port {port}\n IdentityFile {}\n StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n LogLevel ERROR\n",
        scratch.path("user"),
    ));
    // Where it runs as root, sshd wants a directory for its unprivileged part.
    let _ = fs::create_dir("/run/sshd");
    let daemon = Command::new("/usr/sbin/sshd")
        .args(["-D", "-f", &scratch.path("sshd_config")])
        .stderr(Stdio::null())
        .spawn();
    let _daemon = Daemon(daemon.expect("sshd starts"));
    wait_for(port);
    let ssh = format!("ssh -F {}", scratch.path("ssh_config"));
    let probe = Command::new("sh")
        .args(["-c", &format!("{ssh} node1 true")])
        .stdin(Stdio::null())
        .status();
    if !probe.is_ok_and(|it| it.success()) {
        eprintln!("SKIPPED: the ssh example, because a private sshd lets nobody in here");
        return;
    }
    let mut command = with_kingsnake("bash");
    command.args(["-euc", &here(&block("ssh, two machines", "sh"), &scratch)]);
    command.env("PARALLEL_SSH", ssh);
    expect_done(command, &scratch);
}

#[test]
fn the_example_for_ray_runs_on_a_private_ray() {
    if !is_there("python3", &["-c", "import ray"]) {
        eprintln!("SKIPPED: the Ray example, because python3 has no module ray");
        return;
    }
    let scratch = Scratch::new();
    let text = here(&block("Ray:", "python"), &scratch);
    let text = text.replace(
        "ray.init(\"auto\")",
        "ray.init(num_cpus=2, include_dashboard=False)",
    );
    let mut command = with_kingsnake("python3");
    command.args(["-c", &text]);
    expect_done(command, &scratch);
}

#[test]
fn the_example_for_dask_runs_on_a_private_scheduler() {
    if !is_there("python3", &["-c", "import distributed"]) {
        eprintln!("SKIPPED: the Dask example, because python3 has no module distributed");
        return;
    }
    let scratch = Scratch::new();
    let text = here(&block("Dask:", "python"), &scratch);
    let text = text.replace(
        "Client(\"tcp://scheduler:8786\")",
        "Client(n_workers=2, threads_per_worker=1, dashboard_address=None)",
    );
    // Workers are processes that import the program again.
    let indented = text.replace('\n', "\n    ");
    let script = scratch.put(
        "example.py",
        format!("if __name__ == '__main__':\n    {indented}\n"),
    );
    let mut command = with_kingsnake("python3");
    command.arg(script);
    expect_done(command, &scratch);
}

#[test]
fn the_command_of_the_kubernetes_job_runs_for_each_index() {
    let scratch = Scratch::new();
    let text = here(&block("Kubernetes,", "yaml"), &scratch)
        .replace("/shared/cells.txt", &scratch.path("cells.txt"));
    for part in [
        "apiVersion: batch/v1",
        "kind: Job",
        "completionMode: Indexed",
    ] {
        assert!(text.contains(part), "{part}");
    }
    if is_there("python3", &["-c", "import yaml"]) {
        let file = scratch.put("job.yaml", &text);
        let check = "import sys, yaml; it = yaml.safe_load(open(sys.argv[1])); assert it['spec']['template']['spec']['containers'][0]['command'][0] == 'sh'";
        assert!(
            is_there("python3", &["-c", check, &file]),
            "the YAML does not parse"
        );
    } else {
        eprintln!(
            "SKIPPED: parsing the YAML of the Kubernetes example, because python3 has no module yaml"
        );
    }
    let study = scratch.path("small.toml");
    let out = scratch.path("out");
    let study = ["ablate", &study, "--out", &out, "--memory", "1G"];
    expect(0, &[&study[..], &["--prepare"]].concat());
    let listed = expect(0, &[&study[..], &["--list", "--json"]].concat());
    let cells: Vec<serde_json::Value> = serde_json::from_str(&listed.stdout).expect("JSON");
    let ids: Vec<String> = cells
        .iter()
        .map(|it| it["id"].as_str().expect("an id").to_owned() + "\n")
        .collect();
    scratch.put("cells.txt", ids.concat());
    let quoted = text.split('\'').nth(1).expect("a quoted command");
    for index in 0..ids.len() {
        let mut command = with_kingsnake("sh");
        command
            .args(["-c", quoted])
            .env("JOB_COMPLETION_INDEX", index.to_string());
        assert!(
            command.output().expect("it runs").status.success(),
            "{quoted}"
        );
    }
    let mut merge = with_kingsnake("kingsnake");
    merge.args(study);
    expect_done(merge, &scratch);
}
