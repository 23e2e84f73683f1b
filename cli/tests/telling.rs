//! What is told is bounded, whatever a history holds, and harmless wherever it is shown; JSON keeps the whole.

#![allow(clippy::print_stderr)] // A test that skips says so.

mod browser;
mod run;

use std::fmt::Write;

use browser::{Browser, PageLook};
use run::{Scratch, corpus, expect, kingsnake, run};
use serde_json::Value;

/// A lost update of a key of this name.
fn lost_update(key: &str) -> String {
    let key = Value::from(key);
    format!(
        "{{\"kingsnake\":1,\"initial\":0}}\n\
         {{\"id\":1,\"session\":1,\"ops\":[[\"r\",{key},0],[\"w\",{key},1]]}}\n\
         {{\"id\":2,\"session\":2,\"ops\":[[\"r\",{key},0],[\"w\",{key},2]]}}\n"
    )
}

#[test]
fn a_key_of_megabytes_is_shown_by_its_ends_in_every_output_but_json() {
    let scratch = Scratch::new();
    let key = "k".repeat(3_000_000);
    let history = scratch.put("h.jsonl", lost_update(&key));
    let outputs = ["r.html", "s.svg", "d.dot"].map(|name| scratch.path(name));
    let json = format!("--json={}", scratch.path("v.json"));
    let directory = scratch.path("anomalies");
    let files = [
        "--report",
        &outputs[0],
        "--svg",
        &outputs[1],
        "--dot",
        &outputs[2],
        "--directory",
        &directory,
    ];
    let said = expect(
        1,
        &[&["check", &history, "--all", &json][..], &files].concat(),
    );
    assert!(said.stdout.len() < 100_000, "{} bytes", said.stdout.len());
    assert!(
        said.stdout.contains("3000000 characters"),
        "{}",
        said.stdout
    );
    for path in &outputs {
        let n_bytes = std::fs::metadata(path).expect("written").len();
        assert!(n_bytes < 300_000, "{path}: {n_bytes} bytes");
    }
    assert!(scratch.get("v.json").contains(&key), "JSON keeps the whole");
    for args in [
        &["explain", &history][..],
        &["lint", &history],
        &["stats", &history],
    ] {
        let said = run(args);
        let n_bytes = said.stdout.len() + said.stderr.len();
        assert!(n_bytes < 100_000, "{args:?}: {n_bytes} bytes");
    }
    // An error that quotes the file.
    let broken = scratch.put(
        "b.jsonl",
        lost_update(&key).replace("\"ops\"", &format!("\"{key}\"")),
    );
    let said = expect(2, &["check", &broken]);
    assert!(said.stderr.len() < 100_000, "{} bytes", said.stderr.len());
}

#[test]
fn very_many_warnings_are_counted_and_json_lists_them() {
    let scratch = Scratch::new();
    let mut text = "=====\n".repeat(20_000);
    text.insert_str(0, "r 1 1\n-----\n");
    let history = scratch.put("empty.awdit", text);
    let args = ["check", &history, "--format", "awdit"];
    let said = run(&args);
    let n_warnings = said.stderr.lines().count();
    assert!(
        (2..50).contains(&n_warnings),
        "{n_warnings} lines\n{}",
        &said.stderr[..500.min(said.stderr.len())]
    );
    assert!(said.stderr.contains("more warnings"), "{}", said.stderr);
}

#[test]
fn very_many_events_do_not_make_a_large_page() {
    let scratch = Scratch::new();
    let mut text = String::from("{\"kingsnake\":1,\"initial\":0}\n");
    for (id, time) in [(1, 0), (2, 1)] {
        let _ = writeln!(
            text,
            "{{\"id\":{id},\"session\":{id},\"begin\":{time},\"commit\":{},\"ops\":[[\"r\",\"x\",0],[\"w\",\"x\",{id}]]}}",
            1_000_000 + time
        );
    }
    for time in 0..100_000 {
        let _ = writeln!(
            text,
            "{{\"event\":{{\"time\":{time},\"what\":\"a crash of the node with a long name\"}}}}"
        );
    }
    let history = scratch.put("h.jsonl", text);
    let page = scratch.path("p.html");
    let said = expect(1, &["check", &history, "--report", &page]);
    assert!(said.stdout.len() < 20_000, "{} bytes", said.stdout.len());
    let n_bytes = std::fs::metadata(&page).expect("written").len();
    assert!(n_bytes < 500_000, "{n_bytes} bytes");
}

/// Names that would be commands, markup, formulas or ends of quotations somewhere.
const HOSTILE: [&str; 12] = [
    "::error file=x::owned",
    "a\n::set-env name=PATH::x",
    "##[command]rm -rf",
    "##vso[task.setvariable]x",
    "<script>window.owned=1</script>",
    "\"><img src=http://127.0.0.1:9/x onerror='window.owned=1'>",
    "</style><style>*{background:url(http://127.0.0.1:9/y)}</style>",
    "</script><script>window.owned=1</script>",
    "\"]; owned [label=\"x\"]; \"\\",
    "\"} {:valid? true :x \"\\",
    "=cmd|'/c calc'!A1",
    "|x|](http://127.0.0.1:9/) `y` <b>\n# owned",
];

#[test]
fn no_name_is_a_command_of_a_service() {
    let scratch = Scratch::new();
    for (number, key) in HOSTILE.iter().enumerate() {
        let history = scratch.put(&format!("{number}.jsonl"), lost_update(key));
        let junit = scratch.path("junit.xml");
        for args in [
            &["check", &history][..],
            &["explain", &history],
            &["check", &history, "--json"],
            &["check", &history, "--edn"],
            &["check", &history, "--dot", "-"],
            &["check", &history, "--junit", &junit, "-v"],
            &["stats", &history],
            &["lint", &history],
            &["check", &history, "--annotations", "github"],
        ] {
            let output = kingsnake(args)
                .env("GITHUB_ACTIONS", "true")
                .output()
                .expect("the binary runs");
            for stream in [&output.stdout, &output.stderr] {
                let text = String::from_utf8_lossy(stream);
                assert!(!text.contains("##"), "{args:?}: {text}");
                let mut commands = text.lines().filter(|it| it.trim_start().starts_with("::"));
                let ours = |line: &str| {
                    line.starts_with("::error file=")
                        && args.contains(&"github")
                        && !line.starts_with("::error file=x")
                };
                assert!(commands.all(ours), "{args:?}: {text}");
            }
            if args.contains(&"--json") {
                let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
                assert_eq!(document["transactions"][0]["operations"][0]["key"], *key);
            }
        }
    }
}

/// The tokens of a quoted string in DOT and EDN: everything up to the quote that ends it.
fn outside_quotes(text: &str) -> String {
    let mut out = String::new();
    let mut letters = text.chars();
    let mut is_quoted = false;
    while let Some(letter) = letters.next() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '\\' if is_quoted => drop(letters.next()),
            _ if is_quoted => {}
            _ => out.push(letter),
        }
    }
    assert!(!is_quoted, "a quotation has no end: {text}");
    out
}

#[test]
fn hostile_keys_stay_within_their_quotations_in_dot_and_edn() {
    let scratch = Scratch::new();
    for (number, key) in HOSTILE.iter().enumerate() {
        let history = scratch.put(&format!("{number}.jsonl"), lost_update(key));
        let dot = scratch.path("d.dot");
        let edn = format!("--edn={}", scratch.path("e.edn"));
        expect(1, &["check", &history, "--dot", &dot, &edn]);
        for name in ["d.dot", "e.edn"] {
            let outside = outside_quotes(&scratch.get(name));
            for word in ["owned", "http", "cmd", "valid? true"] {
                assert!(!outside.contains(word), "{key:?} in {name}: {outside}");
            }
        }
        let exported = run(&["export", &history, "--to", "dot"]);
        assert!(
            !outside_quotes(&exported.stdout).contains("owned"),
            "{key:?}"
        );
        let out = scratch.path(&format!("out{number}"));
        expect(1, &["check", &history, "--out", &out]);
        let report = scratch.get(&format!("out{number}/report.html"));
        assert!(!report.contains("<script>window"), "{report}");
    }
}

#[test]
fn a_hostile_history_runs_nothing_and_requests_nothing_in_a_browser() {
    let Some(mut browser) = Browser::start() else {
        eprintln!("SKIPPED: hostile pages, because chromium is not installed");
        return;
    };
    let scratch = Scratch::new();
    let look = PageLook {
        width: 1280,
        dark: false,
        script: true,
    };
    let text: Vec<String> = HOSTILE.iter().map(|key| lost_update(key)).collect();
    for (number, text) in text.iter().enumerate() {
        let history = scratch.put(&format!("{number}.jsonl"), text);
        let page = scratch.path(&format!("{number}.html"));
        expect(1, &["check", &history, "--all", "--report", &page]);
        let mut tab = browser.open(page.as_ref(), look);
        assert!(tab.holds("window.owned === undefined"), "{number}");
        assert!(tab.holds("document.scripts.length === 1"), "{number}");
        assert!(
            tab.holds("performance.getEntriesByType('resource').length === 0"),
            "{number}"
        );
        // Our own program and style are those that the policy names.
        assert!(
            tab.holds("getComputedStyle(document.body).margin !== '8px'"),
            "{number}"
        );
    }
    // What got in would not run: the policy is what holds it.
    let page = scratch.path("page.html");
    let history = corpus("none/lost-update.jsonl");
    expect(1, &["check", &history, "--report", &page]);
    let markup = "<main><script>window.owned=1</script><img src=x onerror='window.owned=1'><img src='http://127.0.0.1:9/z'>";
    let spoilt = scratch.get("page.html").replacen("<main>", markup, 1);
    let spoilt = scratch.put("spoilt.html", spoilt);
    let mut tab = browser.open(spoilt.as_ref(), look);
    assert!(tab.holds("window.owned === undefined"));
    let requests = "performance.getEntriesByType('resource').filter(it => it.responseStatus || it.transferSize).length === 0";
    assert!(tab.holds(requests));
}

#[test]
fn every_kind_of_page_has_the_policy() {
    let scratch = Scratch::new();
    let history = corpus("none/lost-update.jsonl");
    let (page, out, directory) = (
        scratch.path("p.html"),
        scratch.path("out"),
        scratch.path("a"),
    );
    expect(1, &["check", &history, "--report", &page]);
    expect(1, &["check", &history, "--out", &out]);
    expect(1, &["check", &history, "--directory", &directory]);
    let auto = scratch.path("auto.html");
    run(&["check", &history, "--level", "auto", "--report", &auto]);
    for name in ["p.html", "out/report.html", "a/index.html", "auto.html"] {
        let text = scratch.get(name);
        assert!(text.contains("Content-Security-Policy"), "{name}");
        assert!(text.contains("default-src 'none'"), "{name}");
        assert_eq!(text.matches("<style").count(), 1, "{name}");
    }
}
