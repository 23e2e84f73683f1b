//! `check DIR` passes over no history: what is named as one, or cannot be read, is a row, and looking through the directory
//! takes little whatever is in it.

#![cfg(unix)]
#![allow(clippy::print_stdout)] // What was skipped is shown by `scripts/test`.

mod run;

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;
use run::{Scratch, dataset, expect, kingsnake};

const GOOD: &str = "{\"kingsnake\":1,\"initial\":0}\n{\"id\":1,\"session\":1,\"ops\":[[\"r\",\"x\",0],[\"w\",\"x\",1]]}\n";

fn directory(scratch: &Scratch) -> String {
    fs::create_dir(scratch.path("d")).expect("a new directory");
    scratch.put("d/good.jsonl", GOOD);
    scratch.path("d")
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes()).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

#[test]
fn what_is_named_as_a_history_is_never_passed_over() {
    let packed = gzip(&GOOD.repeat(20));
    for (name, content) in [
        ("empty.jsonl", Vec::new()),
        ("spoilt.edn", b"\0\0nonsense".to_vec()),
        ("spoilt.txt", b"\x89PNG".to_vec()),
        ("cut.jsonl.gz", packed[..40].to_vec()),
        ("cut.gz", packed[..40].to_vec()),
        ("no-ending", packed[..40].to_vec()),
        ("empty.json", Vec::new()),
        ("other.json", b"{\"a\":1}".to_vec()),
        ("empty.bincode.zst", Vec::new()),
    ] {
        let scratch = Scratch::new();
        let directory = directory(&scratch);
        let path = scratch.put(&format!("d/{name}"), content);
        let junit = scratch.path("junit.xml");
        let said = expect(2, &["check", &directory, "--junit", &junit]);
        assert!(said.stdout.contains(&path), "{name}: {}", said.stdout);
        assert!(said.stdout.contains("1 failed"), "{name}: {}", said.stdout);
        let junit = scratch.get("junit.xml");
        assert!(junit.contains("errors=\"1\""), "{name}: {junit}");
        assert!(junit.contains(name), "{name}: {junit}");
        assert_eq!(expect(2, &["lint", &directory]).status, 2, "{name}");
    }
}

#[test]
fn what_cannot_be_read_is_an_error_whatever_its_name() {
    let scratch = Scratch::new();
    let directory = directory(&scratch);
    symlink("nowhere", scratch.path("d/dangling")).unwrap();
    let said = expect(2, &["check", &directory]);
    assert!(said.stdout.contains("dangling"), "{}", said.stdout);
    fs::remove_file(scratch.path("d/dangling")).unwrap();
    let secret = scratch.put("d/secret", GOOD);
    fs::create_dir(scratch.path("d/closed")).unwrap();
    for name in ["d/secret", "d/closed"] {
        fs::set_permissions(scratch.path(name), fs::Permissions::from_mode(0o0)).unwrap();
    }
    if fs::read(&secret).is_ok() {
        println!("SKIPPED: this user reads every file");
    } else {
        let said = expect(2, &["check", &directory]);
        assert!(said.stdout.contains("2 failed"), "{}", said.stdout);
    }
    fs::set_permissions(scratch.path("d/closed"), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn other_files_are_counted_and_named_where_more_is_to_be_said() {
    let scratch = Scratch::new();
    let directory = directory(&scratch);
    for name in ["README.txt", "picture.png", "collection.json"] {
        scratch.put(&format!("d/{name}"), "{}");
    }
    let json = format!("--json={}", scratch.path("d/verdict.json"));
    expect(0, &["check", &scratch.path("d/good.jsonl"), &json]);
    let said = expect(0, &["check", &directory]);
    assert!(said.stdout.contains("4 other files"), "{}", said.stdout);
    let said = expect(0, &["check", &directory, "-v"]);
    assert!(said.stderr.contains("picture.png"), "{}", said.stderr);
}

#[test]
fn a_history_that_is_named_as_our_own_files_are_is_checked_where_they_are_not() {
    let lost = fs::read_to_string(run::corpus("none/lost-update.jsonl")).unwrap();
    for name in ["rows.jsonl", "summary.json", "events.jsonl"] {
        let scratch = Scratch::new();
        let directory = directory(&scratch);
        scratch.put(&format!("d/{name}"), &lost);
        expect(1, &["check", &directory]);
        scratch.put("d/collection.json", "{}");
        let said = expect(0, &["check", &directory]);
        assert!(said.stdout.contains("2 other files"), "{}", said.stdout);
    }
}

#[test]
fn options_and_names_that_are_no_utf8_reach_the_process_of_each_history() {
    let scratch = Scratch::new();
    let directory = directory(&scratch);
    let order = Path::new(&scratch.path("")).join(OsStr::from_bytes(b"order-\xff"));
    fs::write(
        &order,
        "{\"version_order\":{\"key\":\"x\",\"values\":[1]}}\n",
    )
    .unwrap();
    let ended = kingsnake(&["check", &directory, "--junit", &scratch.path("j.xml")])
        .arg("--version-order")
        .arg(&order)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert_eq!(ended.status.code(), Some(0), "{said}");
}

#[test]
fn documents_of_many_histories_are_shortened_where_they_take_too_much_memory() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("d")).unwrap();
    let key = "k".repeat(1 << 20);
    for number in 0..6 {
        let history = fs::read_to_string(run::corpus("none/lost-update.jsonl")).unwrap();
        let history = history.replace("\"x\"", &format!("\"{key}\""));
        scratch.put(&format!("d/{number}.jsonl"), history);
    }
    let json = format!("--json={}", scratch.path("all.json"));
    let directory = scratch.path("d");
    for (limit, n_short) in [("100M", 4..=6), ("8G", 0..=0)] {
        expect(1, &["check", &directory, "--memory-limit", limit, &json]);
        let all: serde_json::Value = serde_json::from_str(&scratch.get("all.json")).unwrap();
        let all = all.as_array().unwrap();
        let short = all.iter().filter(|it| it["shortened"] == true);
        assert!(n_short.contains(&short.count()), "{limit}");
        assert!(all.iter().all(|it| it["verdict"] == "violated"));
    }
}

#[test]
fn logs_do_not_hide_the_histories_beside_them() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("d")).unwrap();
    let real = dataset("real/cobra/cock-blog");
    for entry in fs::read_dir(real).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        fs::copy(&path, scratch.path(&format!("d/{name}"))).unwrap();
    }
    expect(1, &["check", &scratch.path("d")]);
    scratch.put("d/spoilt.jsonl", "nonsense");
    let said = expect(1, &["check", &scratch.path("d")]);
    let counts = "2 histories: 0 satisfied, 1 violated, 0 unknown, 1 failed";
    assert!(said.stdout.contains(counts), "{}", said.stdout);
}

#[test]
fn links_in_a_circle_and_second_links_are_checked_once() {
    let scratch = Scratch::new();
    let directory = directory(&scratch);
    for name in ["a", "b", "c"] {
        symlink(".", scratch.path(&format!("d/{name}"))).unwrap();
    }
    fs::hard_link(scratch.path("d/good.jsonl"), scratch.path("d/same.jsonl")).unwrap();
    symlink("good.jsonl", scratch.path("d/again.jsonl")).unwrap();
    let out = scratch.path("out");
    let said = expect(0, &["check", &directory, "--out", &out]);
    assert!(
        said.stdout.contains("1 history: 1 satisfied"),
        "{}",
        said.stdout
    );
    assert!(said.stdout.contains("good.jsonl"), "{}", said.stdout);
}

#[test]
fn a_pipe_is_not_opened_and_a_bomb_is_not_unpacked() {
    let scratch = Scratch::new();
    let directory = directory(&scratch);
    for name in ["d/silent", "d/silent.jsonl"] {
        let made = Command::new("mkfifo").arg(scratch.path(name)).status();
        assert!(made.unwrap().success());
    }
    let bomb = zstd::encode_all(&vec![b' '; 64 << 20][..], 1).unwrap();
    scratch.put("d/bomb.png.zst", bomb.repeat(64));
    scratch.put("d/bomb", bomb.repeat(64));
    let said = expect(2, &["check", &directory, "--memory-limit", "300M"]);
    assert!(said.stdout.contains("is a pipe"), "{}", said.stdout);
    // Rows tell what each history holds, and a pipe holds nothing that could be told.
    let out = scratch.path("out");
    expect(2, &["check", &directory, "--out", &out]);
    assert!(
        said.stdout
            .contains("2 histories: 1 satisfied, 0 violated, 0 unknown, 1 failed; 3 other"),
        "{}",
        said.stdout
    );
}

#[test]
fn names_that_are_no_text_and_names_that_look_like_options_work() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("-d")).unwrap();
    let root = scratch.path("-d");
    let root = Path::new(&root);
    for name in [&b"\xff.jsonl"[..], b"\xfe.jsonl", b"--level.jsonl", b"-"] {
        fs::write(root.join(OsStr::from_bytes(name)), GOOD).unwrap();
    }
    let out = kingsnake(&["check", "--junit", "junit.xml", "--out", "out", "--", "-d"])
        .current_dir(scratch.path(""))
        .output()
        .unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert!(text.contains("4 histories: 4 satisfied"), "{text}{stderr}");
    assert!(text.contains("\\xff.jsonl"), "{text}");
    assert_eq!(out.status.code(), Some(0));
}
