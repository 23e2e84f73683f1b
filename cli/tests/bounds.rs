//! What a command must not touch or show: directories of others, passwords, and a disk that is full.

#![cfg(target_os = "linux")]
#![allow(clippy::print_stdout)] // What was skipped is shown by `scripts/test`.

mod run;

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use run::{Scratch, corpus, expect, kingsnake};

/// Everything below a directory but what is below `but`.
fn tree(directory: &str, but: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).expect("a directory").flatten() {
            let path = entry.path().display().to_string();
            if path == but {
                continue;
            }
            if entry.path().is_dir() {
                open.push(path.clone());
            }
            found.insert(path);
        }
    }
    found
}

#[test]
fn a_hunt_touches_nothing_outside_its_directory() {
    let scratch = Scratch::new();
    for name in ["victim", "here", "here/cells"] {
        fs::create_dir(scratch.path(name)).expect("a new directory");
    }
    scratch.put("victim/kept", "x");
    scratch.put("victim/w.toml", include_str!("../src/fuzz/script-1"));
    let deep = format!("{}/../victim/w.toml", scratch.path("here"));
    let hunt = format!(
        "name = '../../victim'\ntxns = 20\nsessions = 1\nseeds = 1\nseconds = 5\n[[database]]\nname = 'sqlite'\nisolation = ['serializable']\nworkload = ['../victim/w.toml', '../../../victim', '..', '{deep}']\n"
    );
    let hunt = scratch.put("hunt.toml", hunt);
    let (root, out) = (scratch.path(""), scratch.path("here/out"));
    let root = root.trim_end_matches('/');
    let before = tree(root, &out);
    for _ in 0..2 {
        let ended = kingsnake(&["hunt", &hunt, "--out", "out", "--restart"])
            .current_dir(scratch.path("here"))
            .output()
            .expect("the binary runs");
        // The last three name no workload.
        assert!(ended.status.code().is_some_and(|it| it <= 2), "{ended:?}");
    }
    assert_eq!(tree(root, &out), before);
    for folder in fs::read_dir(scratch.path("here/out/cells")).expect("cells") {
        let name = folder.expect("an entry").file_name();
        let name = name.to_str().expect("safe letters");
        assert!(!name.contains("..") && !name.starts_with('.'), "{name}");
    }
}

#[test]
fn a_password_is_in_no_row_page_list_or_command_line_of_a_hunt() {
    let scratch = Scratch::new();
    // It takes connections and says nothing, so that the collector waits.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("an address").port();
    let table = |name: &str, url: &str, set: u32| {
        format!(
            "[[database]]\nname = '{name}'\nisolation = ['serializable']\nworkload = ['rmw']\nkeys = {set}\nurl = ['{url}']\n"
        )
    };
    let hunt = [
        table(
            "postgres",
            &format!("postgres://u:hunter2@127.0.0.1:{port}/d"),
            5,
        ),
        table("postgres", "postgres://u@127.0.0.1:1/d?password=hunter2", 2),
        table(
            "postgres",
            "host=127.0.0.1 port=1 user=u password=hunter2",
            3,
        ),
        table("mariadb", "mysql://u:hunter2@127.0.0.1:1/d", 4),
    ];
    let text = format!(
        "name = 'x'\ntxns = 9\nseeds = 1\nseconds = 3\n{}",
        hunt.concat()
    );
    let hunt = scratch.put("hunt.toml", text);
    let out = scratch.path("out");
    let child = kingsnake(&["hunt", &hunt, "--out", &out])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    drop(silent.accept().expect("the collector connects"));
    for process in fs::read_dir("/proc").expect("processes").flatten() {
        let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        assert!(!line.contains("hunter2"), "{line}");
    }
    drop(silent);
    let ended = child.wait_with_output().expect("it ends");
    let mut told = vec![ended.stdout, ended.stderr];
    for more in [&["--list"][..], &["--list", "--json"]] {
        let args = [&["hunt", &hunt, "--out", &out][..], more].concat();
        told.push(expect(0, &args).stdout.into_bytes());
    }
    for path in tree(&out, "") {
        told.extend(fs::read(path));
    }
    for text in &told {
        let text = String::from_utf8_lossy(text);
        assert!(!text.contains("hunter2"), "{text}");
    }
    let rows = scratch.get("out/rows.jsonl");
    assert_eq!(rows.lines().count(), 4, "{rows}");
    assert!(
        rows.lines().all(|it| !it.contains("\"error\":null")),
        "{rows}"
    );
}

#[test]
fn the_settings_of_a_project_start_no_program_and_write_nothing_elsewhere() {
    let scratch = Scratch::new();
    let history = corpus("strong-session-si/write-skew.jsonl");
    fs::create_dir_all(scratch.path("here/out")).expect("a new directory");
    scratch.put("victim", "kept");
    std::os::unix::fs::symlink("../victim", scratch.path("here/link")).expect("a link");
    let (victim, owned) = (scratch.path("victim"), scratch.path("owned"));
    for (settings, status) in [
        (
            format!("backend = 'exec:touch {owned}'\nprofile = 'cobra'"),
            2,
        ),
        (format!("report = '{victim}'"), 2),
        ("report = '../victim'".to_owned(), 2),
        ("report = 'link'".to_owned(), 2),
        ("out = 'link'".to_owned(), 2),
        ("report = 'out/page.html'".to_owned(), 1),
    ] {
        scratch.put("here/kingsnake.toml", format!("[check]\n{settings}\n"));
        let ended = kingsnake(&["check", &history])
            .current_dir(scratch.path("here"))
            .output()
            .expect("the binary runs");
        assert_eq!(ended.status.code(), Some(status), "{settings}: {ended:?}");
        assert_eq!(scratch.get("victim"), "kept", "{settings}");
        assert!(!std::path::Path::new(&owned).exists(), "{settings}");
    }
    assert!(scratch.get("here/out/page.html").contains("</html>"));
}

#[test]
fn the_checks_of_a_study_write_no_files_of_their_own() {
    let scratch = Scratch::new();
    let victim = scratch.put("victim", "kept");
    let study = format!(
        "name = 's'\ntitle = 's'\ntimeout = 5\ncheck = ['--report', '{victim}']\n[[workload]]\nname = 'w'\ngenerate = ['blindw-rw', '--txns', '9', '--keys', '9']\n[[experiment]]\nname = 'e'\ntitle = 'e'\n"
    );
    let study = scratch.put("s.toml", study);
    let said = expect(2, &["ablate", &study, "--out", &scratch.path("out")]);
    assert!(said.stderr.contains("--report"), "{}", said.stderr);
    assert_eq!(scratch.get("victim"), "kept");
}

#[test]
fn a_command_refuses_the_directory_of_another() {
    let scratch = Scratch::new();
    let history = corpus("none/lost-update.jsonl");
    let collect = [
        "collect",
        "sqlite",
        "--workload",
        "rmw",
        "--txns",
        "20",
        "--out",
    ];
    let (batch, collection) = (scratch.path("batch"), scratch.path("collection"));
    expect(1, &["check", &history, "--out", &batch]);
    expect(0, &[&collect[..], &[&collection]].concat());
    let said = expect(2, &[&collect[..], &[&batch]].concat());
    assert!(said.stderr.contains("another --out"), "{}", said.stderr);
    let said = expect(2, &["check", &history, "--out", &collection]);
    assert!(said.stderr.contains("another --out"), "{}", said.stderr);
    let study = scratch.put("s.toml", include_str!("run/small_study.toml"));
    for directory in [&batch, &collection] {
        let said = expect(2, &["ablate", &study, "--out", directory]);
        assert!(said.stderr.contains("another --out"), "{}", said.stderr);
    }
}

#[test]
fn journals_on_a_full_disk_are_an_error_and_no_signal() {
    let scratch = Scratch::new();
    let disk = scratch.path("disk");
    fs::create_dir(&disk).expect("a new directory");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=3m", "tmpfs", &disk])
        .stderr(Stdio::null())
        .status();
    if !mounted.is_ok_and(|it| it.success()) {
        println!("SKIPPED: journals on a full disk, because this user mounts nothing");
        return;
    }
    let out = format!("{disk}/out");
    let args = [
        "collect",
        "redb",
        "--workload",
        "rmw",
        "--sessions",
        "8",
        "--txns",
        "1000000",
    ];
    let ended = kingsnake(&[&args[..], &["--seconds", "60", "--out", &out]].concat()).output();
    Command::new("umount").arg(&disk).status().expect("umount");
    let ended = ended.expect("the binary runs");
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    assert!(!ended.stderr.is_empty());
}
