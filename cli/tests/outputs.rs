//! Outputs never destroy an input or each other, and are whole or not there.

mod run;

use run::{Scratch, corpus, expect};

fn names(scratch: &Scratch) -> Vec<String> {
    let entries = std::fs::read_dir(scratch.path("")).expect("the directory is there");
    let names = entries.map(|it| {
        it.expect("an entry")
            .file_name()
            .to_string_lossy()
            .into_owned()
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

fn copy(scratch: &Scratch, name: &str) -> String {
    let text = std::fs::read(corpus("none/lost-update.jsonl")).expect("the corpus is there");
    scratch.put(name, text)
}

#[test]
fn an_output_that_is_also_an_input_is_refused_before_anything_is_written() {
    let scratch = Scratch::new();
    let history = copy(&scratch, "h.jsonl");
    let before = scratch.get("h.jsonl");
    let spelt = scratch.path("./h.jsonl");
    let order = scratch.put("order.jsonl", "");
    let json = format!("--json={spelt}");
    for args in [
        &["check", &history, "--svg", &history][..],
        &["check", &history, "--report", &spelt],
        &["check", &history, &json],
        &["check", &history, "--certificate", &history],
        &["check", &history, "--proof", &history],
        &["check", &history, "--level", "auto", &json],
        &["explain", &history, "--dot", &history],
        &[
            "check",
            &history,
            "--version-order",
            &order,
            "--dot",
            &order,
        ],
        &["stats", &history, &json],
        &["convert", &history, &history],
        &["convert", &history, &spelt, "--to", "dbcop"],
        &["export", &history, "--to", "dot", "--out", &history],
    ] {
        let said = expect(2, args);
        assert!(
            said.stderr.contains("is also read"),
            "{args:?}: {}",
            said.stderr
        );
        assert_eq!(scratch.get("h.jsonl"), before, "{args:?}");
        assert_eq!(names(&scratch), ["h.jsonl", "order.jsonl"], "{args:?}");
    }
}

#[cfg(unix)]
#[test]
fn links_to_an_input_are_that_input() {
    let scratch = Scratch::new();
    let history = copy(&scratch, "h.jsonl");
    let before = scratch.get("h.jsonl");
    let (hard, soft) = (scratch.path("hard"), scratch.path("soft"));
    std::fs::hard_link(&history, &hard).expect("links are possible");
    std::os::unix::fs::symlink("h.jsonl", &soft).expect("links are possible");
    for link in [&hard, &soft] {
        expect(2, &["check", &history, "--svg", link]);
        expect(2, &["convert", link, &history]);
    }
    assert_eq!(scratch.get("h.jsonl"), before);
}

#[test]
fn a_log_of_a_directory_that_is_read_cannot_be_written() {
    let scratch = Scratch::new();
    let real = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../datasets/real/cobra/chengRW-100"
    );
    let logs = scratch.path("logs");
    std::fs::create_dir(&logs).expect("the directory can be made");
    let mut first = None;
    for entry in std::fs::read_dir(real).expect("the logs are there") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        std::fs::copy(&path, scratch.path(&format!("logs/{name}"))).expect("a copy");
        first.get_or_insert(scratch.path(&format!("logs/{name}")));
    }
    let first = first.expect("there is a log");
    let said = expect(2, &["check", &logs, "--svg", &first]);
    assert!(said.stderr.contains("is also read"), "{}", said.stderr);
}

#[test]
fn two_outputs_of_one_name_are_refused_before_anything_is_written() {
    let scratch = Scratch::new();
    let history = copy(&scratch, "h.jsonl");
    let (out, spelt) = (scratch.path("out"), scratch.path("./out"));
    let (proof, instance) = (scratch.path("p"), scratch.path("p.cnf"));
    for args in [
        &["check", &history, "--svg", &out, "--dot", &spelt][..],
        &["check", &history, "--json", "--svg", "-"],
        &["check", &history, "--proof", &proof, "--svg", &instance],
        &["generate", "mini", "--out", &out, "--version-order", &spelt],
    ] {
        let said = expect(2, args);
        assert!(
            said.stderr.contains("same file"),
            "{args:?}: {}",
            said.stderr
        );
        assert_eq!(names(&scratch), ["h.jsonl"], "{args:?}");
    }
    #[cfg(unix)]
    expect(
        1,
        &[
            "check",
            &history,
            "--svg",
            "/dev/null",
            "--dot",
            "/dev/null",
        ],
    );
}

#[test]
fn nothing_temporary_is_left_and_a_failed_proof_leaves_nothing() {
    let scratch = Scratch::new();
    let history = copy(&scratch, "h.jsonl");
    let (proof, svg) = (scratch.path("p"), scratch.path("s.svg"));
    // Pruning finds the cycle, so there is nothing to prove.
    expect(1, &["check", &history, "--proof", &proof, "--svg", &svg]);
    assert_eq!(names(&scratch), ["h.jsonl", "s.svg"]);
    let puzzle = run::puzzle(&scratch);
    expect(1, &["check", &puzzle, "--proof", &proof]);
    expect(0, &["verify-proof", &proof]);
    assert_eq!(
        names(&scratch),
        ["h.jsonl", "p", "p.cnf", "puzzle.jsonl", "s.svg"]
    );
}

#[test]
fn what_is_asked_for_on_stdout_stands_alone_there() {
    let said = expect(
        1,
        &["check", &corpus("none/lost-update.jsonl"), "--svg", "-"],
    );
    assert!(said.stdout.starts_with("<svg"), "{}", said.stdout);
    roxmltree::Document::parse(&said.stdout).expect("one document");
}

#[test]
fn names_with_line_ends_and_marks_of_direction_are_spelt_out_everywhere() {
    let scratch = Scratch::new();
    let history = std::fs::read_to_string(corpus("none/lost-update.jsonl")).expect("the corpus");
    let hostile = "x\\nverdict: satisfied\\u202e\\u2028\\u001b[2J";
    let history = scratch.put(
        "h.jsonl",
        history.replace("\"x\"", &format!("\"{hostile}\"")),
    );
    let (svg, dot, page) = (scratch.path("s"), scratch.path("d"), scratch.path("p"));
    let args = [
        "explain", &history, "--svg", &svg, "--dot", &dot, "--report", &page,
    ];
    let said = expect(1, &args);
    for text in [
        said.stdout,
        scratch.get("s"),
        scratch.get("d"),
        scratch.get("p"),
    ] {
        assert!(text.contains("verdict: satisfied"), "the key is shown");
        assert!(
            !text
                .lines()
                .any(|line| line.starts_with("verdict: satisfied"))
        );
        assert!(!text.contains(['\u{202e}', '\u{2028}', '\u{1b}']), "{text}");
    }
}

#[test]
fn a_picture_for_graphviz_calls_keys_as_the_words_do() {
    let scratch = Scratch::new();
    let history = std::fs::read_to_string(corpus("none/lost-update.jsonl")).expect("the corpus");
    let history = scratch.put("h.jsonl", history.replace("\"x\"", "7"));
    let dot = scratch.path("d");
    let said = expect(1, &["check", &history, "--dot", &dot]);
    assert!(said.stdout.contains("read k7 = 0"), "{}", said.stdout);
    let drawn = scratch.get("d");
    assert!(
        drawn.contains("read k7 = 0") && drawn.contains("ww k7"),
        "{drawn}"
    );
}

#[test]
fn labels_for_graphviz_are_cut() {
    let scratch = Scratch::new();
    let history = std::fs::read_to_string(corpus("none/lost-update.jsonl")).expect("the corpus");
    let long = "k".repeat(40_000);
    let history = scratch.put("h.jsonl", history.replace("\"x\"", &format!("\"{long}\"")));
    let dot = scratch.path("d");
    expect(1, &["check", &history, "--dot", &dot]);
    let exported = scratch.path("e");
    expect(0, &["export", &history, "--to", "dot", "--out", &exported]);
    for name in ["d", "e"] {
        let longest = scratch.get(name).lines().map(str::len).max();
        assert!(longest < Some(4_000), "{name}: {longest:?}");
    }
}
