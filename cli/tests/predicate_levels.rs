//! Conditions over rows at every level from the command line: certificates that `verify` accepts and refuses, what `export` writes and
//! refuses, and a phantom in words.

mod run;

use run::{Scratch, expect};

/// The levels that a run of the store at snapshot isolation satisfies.
const LEVELS: [&str; 7] = ["rc", "rc-so", "ra", "cc", "pc", "psi", "si"];

/// A run of Emme's table with conditions and aggregates.
fn generated(scratch: &Scratch, isolation: &str) -> String {
    let path = scratch.path("history.jsonl");
    let table = ["generate", "emme-predicates", "--keys", "8", "--seed", "3"];
    let size = ["--txns", "15", "--clients", "3", "--isolation", isolation];
    let args: Vec<&str> = table.into_iter().chain(size).collect();
    expect(0, &[&args[..], &["--out", &path]].concat());
    path
}

/// T5 saw T2, and missed the row that T2 had inserted.
const PHANTOM: &str = r#"{"kingsnake":1,"initial":null,"tables":{"t":["c1"]}}
{"id":2,"session":0,"start_ts":1,"commit_ts":2,"ops":[["insert",17,1,{"c1":4}],["w",5,1,{"c1":100}]]}
{"id":5,"session":1,"start_ts":3,"commit_ts":4,"ops":[["r",5,1],["select",{"table":"t","where":["between","c1",3,9]},[],{"at":3}]]}
{"version_order":{"key":17,"values":[1]}}
{"version_order":{"key":5,"values":[1]}}
"#;

#[test]
fn certificates_of_conditions_are_verified_at_every_level() {
    let scratch = Scratch::new();
    let history = generated(&scratch, "snapshot");
    let order = scratch.path("order");
    for level in LEVELS {
        expect(
            0,
            &["check", &history, "--level", level, "--certificate", &order],
        );
        expect(0, &["verify", &history, &order]);
        let text = std::fs::read_to_string(&order).expect("it was written");
        let mut lines: Vec<&str> = text.lines().collect();
        // The first and the last commit change places.
        let is_commit =
            |line: &&str| !line.contains("begin") && !line.contains(',') || line.contains("commit");
        let places: Vec<usize> = (1..lines.len())
            .filter(|&at| is_commit(&lines[at]))
            .collect();
        let (first, last) = (places[0], places[places.len() - 1]);
        lines.swap(first, last);
        let damaged = scratch.put("damaged", format!("{}\n", lines.join("\n")));
        let said = expect(1, &["verify", &history, &damaged]).stdout;
        assert!(said.contains("does not hold"), "{level}: {said}");
        std::fs::remove_file(&order).expect("it was written");
    }
}

#[test]
fn certificates_of_conditions_at_levels_of_their_own_are_verified() {
    let scratch = Scratch::new();
    let history = generated(&scratch, "snapshot");
    let order = scratch.path("order");
    for map in ["*=si", "*=rc", "*=cc"] {
        let level = ["--level", "as-recorded", "--isolation-map", map];
        let check = ["check", &history, "--certificate", &order];
        expect(0, &[&check[..], &level].concat());
        expect(0, &[&["verify", &history, &order][..], &level].concat());
        std::fs::remove_file(&order).expect("it was written");
    }
}

#[test]
fn conditions_are_exported_where_one_question_decides_and_refused_with_a_reason_elsewhere() {
    let scratch = Scratch::new();
    let history = generated(&scratch, "serializable");
    for level in ["ser", "si", "pc"] {
        for to in ["gnf", "smtlib2", "dimacs"] {
            let out = scratch.path(&format!("{level}.{to}"));
            expect(
                0,
                &[
                    "export", &history, "--level", level, "--to", to, "--out", &out,
                ],
            );
            let written = std::fs::metadata(&out).expect("it was written");
            assert!(written.len() > 0, "{level} {to}");
        }
    }
    let refused = [
        ("psi", "several questions"),
        ("rc", "decided by a sort"),
        ("ra", "decided by a sort"),
        ("cc", "decided by a sort"),
    ];
    for (level, why) in refused {
        let said = expect(2, &["export", &history, "--level", level, "--to", "gnf"]).stderr;
        assert!(said.contains(why), "{level}: {said}");
    }
    let mixed = ["export", &history, "--level", "as-recorded", "--to", "gnf"];
    let weak = expect(2, &[&mixed[..], &["--isolation-map", "*=rc"]].concat()).stderr;
    assert!(weak.contains("no single one to write"), "{weak}");
    expect(0, &[&mixed[..], &["--isolation-map", "*=si"]].concat());
}

#[test]
fn a_phantom_is_told_in_words_at_every_level_and_on_a_certificate() {
    let scratch = Scratch::new();
    let history = scratch.put("history.jsonl", PHANTOM);
    let words = "T5 asked for rows with c1 between 3 and 9 and did not get row k17, though T2 had set its c1 to 4";
    for level in LEVELS.into_iter().chain(["ser"]) {
        let said = expect(1, &["check", &history, "--level", level]).stdout;
        assert!(said.contains(words), "{level}: {said}");
    }
    let certificate = ["--certificate-from", "history", "--level", "pl-3"];
    let said = expect(1, &[&["check", &history][..], &certificate].concat()).stdout;
    let words = "did not get row 17, though T2 had set its c1 to 4";
    assert!(said.contains(words), "{said}");
}
