//! A study on a private Slurm cluster of two nodes, with real daemons: a node dies, the driver dies, and all rows come back.
//! Skips visibly where Slurm is not installed (`scripts/setup test` installs it where it may).

#![cfg(target_os = "linux")]
#![allow(clippy::print_stderr)] // A test that skips says so, and a long run is recorded.

mod run;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use run::{Dice, Scratch, expect, kingsnake, n_kills, study};
use serde_json::Value;

/// Twelve cells: two workloads, two switches, three seeds. Each takes long enough for a node to die in the middle.
fn twelve() -> String {
    study("twelve", (60, 3), ["3000", "500"])
}

/// One cell, of a study file that the tasks do not find.
const ONE: &str = r#"
name = "one"
title = "One cell"
timeout = 20

[[workload]]
name = "RW"
generate = ["blindw-rw", "--txns", "20", "--keys", "10"]

[[experiment]]
name = "one"
title = "One"
"#;

/// The daemons; ended when this goes.
struct Cluster<'a> {
    scratch: &'a Scratch,
    base: u16,
}

const DAEMONS: [&str; 4] = ["munged", "slurmctld", "slurmd", "sbatch"];

fn is_installed() -> bool {
    let places = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin";
    let is_there = |name: &str| {
        let mut places = places.split(':');
        places.any(|place| Path::new(place).join(name).exists())
    };
    DAEMONS.iter().all(|name| is_there(name))
}

/// Ports of which a handful in a row are free.
fn free_ports() -> u16 {
    for base in (17_000..60_000).step_by(97) {
        let mut ports = base..base + 5;
        if ports.all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok()) {
            return base;
        }
    }
    panic!("no five ports in a row are free");
}

fn script(name: &str) -> String {
    format!("{}/tests/slurm/{name}", env!("CARGO_MANIFEST_DIR"))
}

impl<'a> Cluster<'a> {
    fn up(scratch: &'a Scratch) -> Self {
        let base = free_ports();
        let cluster = Cluster { scratch, base };
        let status = Command::new("bash")
            .args([&script("up.sh"), &scratch.path("cluster"), "2", "1"])
            .env("BASE", base.to_string())
            .stdin(Stdio::null())
            .status()
            .expect("bash runs");
        assert!(status.success(), "the daemons did not start");
        cluster
    }

    fn conf(&self) -> String {
        self.scratch.path("cluster/slurm.conf")
    }

    fn kingsnake(&self, args: &[&str]) -> Command {
        let mut command = kingsnake(args);
        command.env("SLURM_CONF", self.conf());
        command.current_dir(self.scratch.path(""));
        command
    }

    /// A command of Slurm; what it printed if it succeeded.
    fn slurm(&self, program: &str, args: &[&str]) -> Option<String> {
        let mut command = Command::new(program);
        command.args(args).env("SLURM_CONF", self.conf());
        let output = command.output().expect("Slurm's command runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then_some(said)
    }

    fn running_on(&self, node: &str) -> bool {
        let args = ["--noheader", "--nodelist", node, "--states", "RUNNING"];
        self.slurm("squeue", &args).is_some_and(|it| !it.is_empty())
    }

    /// Stops a running task and puts it back into the queue; whether there was one.
    fn requeue_one(&self, dice: &mut Dice) -> bool {
        let args = ["--noheader", "--states", "RUNNING", "--format", "%i"];
        let begun = Instant::now();
        let mut tasks = String::new();
        while tasks.is_empty() && begun.elapsed() < Duration::from_secs(2) {
            tasks = self.slurm("squeue", &args).unwrap_or_default();
        }
        let tasks: Vec<&str> = tasks.lines().collect();
        if tasks.is_empty() {
            return false;
        }
        sleep(Duration::from_millis(dice.roll(300)));
        let task = tasks[dice.roll(tasks.len() as u64) as usize];
        self.slurm("scontrol", &["requeue", task]).is_some()
    }

    /// Ends all jobs and waits until they are gone.
    fn cancel_all(&self) {
        let jobs = || self.slurm("squeue", &["--noheader", "--format", "%A"]);
        wait_until("an empty queue", || {
            let left = jobs().expect("the controller answers");
            for job in left.lines() {
                self.slurm("scancel", &[job]);
            }
            left.is_empty()
        });
    }

    /// The daemon of a node, what watches its tasks, and the tasks: all gone at once, as when the power fails.
    fn kill_node(&self, node: &str) {
        let pids = self.scratch.path(&format!("cluster/pids/slurmd-{node}"));
        let daemon = fs::read_to_string(&pids).expect("the daemon's pid is known");
        let mut doomed = vec![daemon.trim().to_owned()];
        for process in self.processes() {
            if environment(&process).contains(&format!("SLURMD_NODENAME={node}")) {
                doomed.extend(parent(&process).filter(|it| name(it).starts_with("slurmstepd")));
                doomed.push(process);
            }
        }
        for process in doomed {
            let _ = Command::new("kill").args(["-9", &process]).status();
        }
    }

    /// Every process that belongs to this cluster, but for the test itself.
    fn processes(&self) -> Vec<String> {
        let ours = [self.conf(), self.scratch.path("cluster")];
        let entries = fs::read_dir("/proc").expect("there is /proc");
        entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.parse::<u32>().is_ok_and(|it| it != std::process::id()))
            .filter(|process| {
                let of = environment(process) + &read(process, "cmdline");
                ours.iter().any(|it| of.contains(it.as_str()))
            })
            .collect()
    }

    fn down(&self) {
        let _ = Command::new("bash")
            .args([&script("down.sh"), &self.scratch.path("cluster")])
            .status();
        for process in self.processes() {
            let _ = Command::new("kill").args(["-9", &process]).status();
        }
    }

    /// Expects that nothing is left.
    fn expect_gone(&self) {
        let begun = Instant::now();
        while !self.processes().is_empty() && begun.elapsed() < Duration::from_secs(10) {
            sleep(Duration::from_millis(50));
        }
        let left: Vec<String> = self
            .processes()
            .iter()
            .map(|it| read(it, "cmdline"))
            .collect();
        assert!(left.is_empty(), "processes are left: {left:?}");
        for port in self.base..self.base + 5 {
            TcpListener::bind(("127.0.0.1", port)).expect("the port is free again");
        }
    }
}

impl Drop for Cluster<'_> {
    fn drop(&mut self) {
        self.down();
    }
}

fn read(process: &str, what: &str) -> String {
    let bytes = fs::read(format!("/proc/{process}/{what}")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

fn environment(process: &str) -> String {
    read(process, "environ")
}

fn name(process: &str) -> String {
    read(process, "comm")
}

fn parent(process: &str) -> Option<String> {
    let stat = read(process, "stat");
    let rest = stat.rsplit(") ").next()?;
    Some(rest.split(' ').nth(1)?.to_owned())
}

fn verdicts(rows: &str) -> BTreeMap<String, String> {
    let rows = fs::read_to_string(rows).expect("the rows were written");
    rows.lines()
        .map(|line| {
            let row: Value = serde_json::from_str(line).expect("a row is JSON");
            let word = |name: &str| row[name].as_str().expect("a word").to_owned();
            assert_eq!(word("outcome"), "answered", "{line}");
            (word("cell"), word("verdict"))
        })
        .collect()
}

fn n_row_files(scratch: &Scratch) -> usize {
    fs::read_dir(scratch.path("far/rows.d")).map_or(0, |entries| {
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        paths
            .filter(|path| path.extension().is_some_and(|it| it == "json"))
            .count()
    })
}

fn wait_until(what: &str, mut is: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(
            begun.elapsed() < Duration::from_secs(120),
            "not in time: {what}"
        );
        sleep(Duration::from_millis(20));
    }
}

fn kill(mut child: Child) {
    child.kill().expect("the driver is there");
    child.wait().expect("the driver is there");
}

/// One cluster at a time: the ports of a second one are looked for before it has them.
static ONE_CLUSTER: Mutex<()> = Mutex::new(());

#[test]
fn a_study_survives_the_death_of_a_node_and_of_its_driver() {
    if !is_installed() {
        eprintln!(
            "SKIPPED: the study on a Slurm cluster, because slurmctld, slurmd, slurm-client or munge is not installed"
        );
        return;
    }
    let _alone = ONE_CLUSTER.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = Scratch::new();
    scratch.put("twelve.toml", twelve());
    scratch.put("one.toml", ONE);
    let cluster = Cluster::up(&scratch);
    let far = [
        "ablate",
        "twelve.toml",
        "--out",
        "far",
        "--on",
        "slurm",
        "--memory",
        "1G",
    ];
    let driver = cluster
        .kingsnake(&far)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the driver runs");
    wait_until("two rows, and a task on the second node", || {
        n_row_files(&scratch) >= 2 && cluster.running_on("n2")
    });
    kill(driver);
    cluster.kill_node("n2");
    assert!(n_row_files(&scratch) < 12, "nothing was left to do");

    let again = cluster.kingsnake(&far).output().expect("the driver runs");
    let said = String::from_utf8_lossy(&again.stdout).into_owned()
        + &String::from_utf8_lossy(&again.stderr);
    assert_eq!(again.status.code(), Some(0), "{said}");
    let submissions: Value =
        serde_json::from_str(&scratch.get("far/slurm/submissions.json")).unwrap();
    assert_eq!(
        submissions.as_array().map(Vec::len),
        Some(1),
        "it did not attach: {said}"
    );
    assert!(scratch.get("far/slurm/job.sh").contains("#SBATCH --mem="));
    let rows = scratch.get("far/rows.jsonl");
    assert!(
        rows.contains("\"host\":\"n1\"") && rows.contains("\"processor\":"),
        "{rows}"
    );

    let study = scratch.path("twelve.toml");
    expect(
        0,
        &[
            "ablate",
            &study,
            "--out",
            &scratch.path("near"),
            "--memory",
            "1G",
        ],
    );
    let near = verdicts(&scratch.path("near/rows.jsonl"));
    assert_eq!(near.len(), 12);
    assert_eq!(verdicts(&scratch.path("far/rows.jsonl")), near);

    a_cell_that_never_comes_back_is_a_failed_row(&cluster, &scratch);
    several_histories_are_checked_on_the_cluster(&cluster, &scratch);
    a_hunt_runs_on_the_cluster(&cluster, &scratch);
    cluster.down();
    cluster.expect_gone();
    let parts = fs::read_dir(scratch.path("far/rows.d")).expect("the rows are there");
    let parts: Vec<_> = parts.filter_map(|it| Some(it.ok()?.file_name())).collect();
    assert_eq!(parts.len(), 12, "{parts:?}");
}

/// The tasks start in another directory, so that they do not find the study.
fn a_cell_that_never_comes_back_is_a_failed_row(cluster: &Cluster<'_>, scratch: &Scratch) {
    let lost = [
        "ablate",
        "one.toml",
        "--out",
        "lost",
        "--on",
        "slurm",
        "--memory",
        "1G",
        "--slurm-arg=--chdir=/",
    ];
    let ended = cluster.kingsnake(&lost).output().expect("the driver runs");
    assert_eq!(
        ended.status.code(),
        Some(2),
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    let rows = scratch.get("lost/rows.jsonl");
    for part in [
        "\"outcome\":\"failed\"",
        "no row after 3 submissions",
        "neither a file nor a built-in study",
    ] {
        assert!(rows.contains(part), "{part} is not in {rows}");
    }
}

/// Runs a command on the cluster and returns its rows by their cells.
fn rows_of(
    cluster: &Cluster<'_>,
    scratch: &Scratch,
    words: &[&str],
    out: &str,
) -> BTreeMap<String, Value> {
    let ended = cluster.kingsnake(words).output().expect("the driver runs");
    let said = String::from_utf8_lossy(&ended.stdout).into_owned()
        + &String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.code().is_some_and(|it| it < 2), "{said}");
    let rows = scratch.get(&format!("{out}/rows.jsonl"));
    let rows = rows.lines().map(|line| {
        let row: Value = serde_json::from_str(line).expect("a row is JSON");
        assert!(
            ["n1", "n2"].contains(&row["host"].as_str().unwrap_or("")),
            "{row}"
        );
        (row["cell"].as_str().expect("a name").to_owned(), row)
    });
    rows.collect()
}

fn several_histories_are_checked_on_the_cluster(cluster: &Cluster<'_>, scratch: &Scratch) {
    let corpus = run::corpus("strong-session-si");
    let words = [
        "check",
        &corpus,
        "--out",
        "many",
        "--on",
        "slurm",
        "--memory-limit",
        "500M",
    ];
    let all = [&words[..], &["--timeout", "20", "--cells-per-task", "20"]].concat();
    let rows = rows_of(cluster, scratch, &all, "many");
    assert!(scratch.get("many/slurm/job.sh").contains("#SBATCH --time="));
    let near = run::run(&["check", &corpus, "--json"]);
    let near: Value = serde_json::from_str(&near.stdout).expect("an array");
    let near = near.as_array().expect("an array");
    assert_eq!(rows.len(), near.len());
    for document in near {
        let path = document["path"].as_str().expect("a path");
        assert_eq!(rows[path]["verdict"], document["verdict"], "{path}");
    }
}

fn a_hunt_runs_on_the_cluster(cluster: &Cluster<'_>, scratch: &Scratch) {
    let recipe = "name = 'A hunt'\ntxns = 100\nseeds = 2\n[[database]]\nname = 'sqlite'\nisolation = ['serializable']\nworkload = ['rmw']\n";
    scratch.put("hunt.toml", recipe);
    let words = [
        "hunt",
        "hunt.toml",
        "--out",
        "hunt",
        "--on",
        "slurm",
        "--memory",
        "1G",
    ];
    let rows = rows_of(cluster, scratch, &words, "hunt");
    assert_eq!(rows.len(), 2);
    for row in rows.values() {
        assert!(row["error"].is_null(), "{row}");
        assert_eq!(row["ser"]["verdict"], "satisfied");
    }
    assert!(scratch.get("hunt/report.html").contains("SQLite"));
}

/// Twelve cells.
const HUNT: &str = "name = 'A hunt'\ntxns = 3000\nsessions = 3\nseeds = 6\n[[database]]\nname = 'sqlite'\nisolation = ['serializable']\nworkload = ['rmw', 'mini']\n";

/// A command whose driver is killed and whose tasks are requeued, and what its rows must be.
struct Victim<'a> {
    words: Vec<&'a str>,
    status: i32,
    expect_whole: &'a dyn Fn(),
}

impl Victim<'_> {
    /// Kills the driver and requeues tasks at random moments, starting again at once, until both happened often enough; then lets
    /// the command end. Its rows are in `out`, which is removed.
    fn survives(&self, cluster: &Cluster<'_>, scratch: &Scratch) {
        let (mut n_killed, mut n_requeued, mut n_whole) = (0, 0, 0);
        let (mut dice, most) = (Dice::new(), n_kills(3));
        let forget = || {
            cluster.cancel_all();
            fs::remove_dir_all(scratch.path("out")).expect("it can be removed");
        };
        while n_killed < most || n_requeued < most {
            let mut driver = cluster
                .kingsnake(&self.words)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("the driver runs");
            sleep(Duration::from_millis(dice.roll(700)));
            n_requeued += usize::from(cluster.requeue_one(&mut dice));
            sleep(Duration::from_millis(dice.roll(500)));
            let ended = driver.try_wait().expect("a child can be asked");
            kill(driver);
            match ended {
                None => n_killed += 1,
                // All rows are there, so it begins anew.
                Some(status) => {
                    assert_eq!(status.code(), Some(self.status), "a whole run failed");
                    (self.expect_whole)();
                    n_whole += 1;
                    forget();
                }
            }
        }
        // A requeued task removes its attempt; one whose node died leaves it.
        let left = scratch.path("out/cells/a-cell.1.0.attempt");
        fs::create_dir_all(left).expect("a directory");
        rows_of(cluster, scratch, &self.words, "out");
        (self.expect_whole)();
        eprintln!(
            "{}: killed {n_killed} times, requeued {n_requeued} times, {n_whole} runs ended before that",
            self.words[0]
        );
        forget();
    }
}

/// The verdicts of the rows in a directory by their cells; none is there twice.
fn single_verdicts(scratch: &Scratch, out: &str) -> BTreeMap<String, Value> {
    let mut verdicts = BTreeMap::new();
    for line in scratch.get(&format!("{out}/rows.jsonl")).lines() {
        let row: Value = serde_json::from_str(line).expect("a row is JSON");
        let cell = row["cell"].as_str().expect("a cell").to_owned();
        let before = verdicts.insert(cell, row["verdict"].clone());
        assert!(before.is_none(), "two rows: {line}");
    }
    verdicts
}

#[test]
fn commands_whose_driver_is_killed_and_whose_tasks_are_requeued_have_every_row_and_no_false_one() {
    if !is_installed() {
        eprintln!("SKIPPED: kills and requeues on a Slurm cluster, because it is not installed");
        return;
    }
    let _alone = ONE_CLUSTER.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = Scratch::new();
    scratch.put("hunt.toml", HUNT);
    let study = scratch.put("twelve.toml", twelve());
    let corpus = run::corpus("none");
    let near = |name: &str, words: &[&str], status: i32| {
        let out = scratch.path(name);
        expect(status, &[words, &["--out", &out]].concat());
        single_verdicts(&scratch, name)
    };
    let studied = near("study", &["ablate", &study, "--memory", "1G"], 0);
    let checked = near("checks", &["check", &corpus], 1);
    assert_eq!(studied.len(), 12);
    let on = ["--out", "out", "--on", "slurm"];
    let of = |words: &[&'static str]| [words, &on[..]].concat();
    let check = ["--memory-limit", "500M", "--timeout", "20"];
    let victims = [
        Victim {
            words: of(&["hunt", "hunt.toml", "--memory", "1G"]),
            status: 0,
            expect_whole: &|| expect_whole_hunt(&scratch),
        },
        Victim {
            words: of(&["ablate", "twelve.toml", "--memory", "1G"]),
            status: 0,
            expect_whole: &|| assert_eq!(single_verdicts(&scratch, "out"), studied),
        },
        Victim {
            words: [&["check", &corpus], &check[..], &on[..]].concat(),
            status: 1,
            expect_whole: &|| assert_eq!(single_verdicts(&scratch, "out"), checked),
        },
    ];
    let cluster = Cluster::up(&scratch);
    for victim in &victims {
        victim.survives(&cluster, &scratch);
    }
    cluster.down();
    cluster.expect_gone();
}

/// Expects one true row for each cell, its history, and nothing of an attempt.
fn expect_whole_hunt(scratch: &Scratch) {
    let text = scratch.get("out/rows.jsonl");
    let rows = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a row is JSON"));
    let rows: Vec<Value> = rows.collect();
    let cells: BTreeSet<&str> = rows.iter().filter_map(|it| it["cell"].as_str()).collect();
    assert_eq!((rows.len(), cells.len()), (12, 12), "{text}");
    for row in &rows {
        assert!(row["error"].is_null(), "{row}");
        assert_eq!(row["ser"]["verdict"], "satisfied", "{row}");
        let folder = row["folder"].as_str().expect("a folder");
        let history = scratch.path(&format!("out/{folder}/history.jsonl"));
        assert!(Path::new(&history).exists(), "{row}");
    }
    let left = fs::read_dir(scratch.path("out/cells")).expect("cells");
    let left: Vec<_> = left.filter_map(|it| Some(it.ok()?.file_name())).collect();
    assert_eq!(left.len(), 12, "an attempt was left: {left:?}");
}

#[test]
fn slurm_needs_a_memory_limit_and_its_commands() {
    let scratch = Scratch::new();
    let study = scratch.put("one.toml", ONE);
    let out = scratch.path("out");
    let said = expect(2, &["ablate", &study, "--out", &out, "--on", "slurm"]);
    assert!(said.stderr.contains("--memory"), "{}", said.stderr);
    let ended = kingsnake(&[
        "ablate", &study, "--out", &out, "--on", "slurm", "--memory", "1G",
    ])
    .env("PATH", "/nowhere")
    .output()
    .expect("the binary runs");
    assert_eq!(ended.status.code(), Some(2));
    let words = String::from_utf8_lossy(&ended.stderr);
    assert!(words.contains("sbatch on the PATH"), "{words}");
}
