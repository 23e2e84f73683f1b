//! `collect --script` and hunts of scripts, as a user types them.

#![cfg(unix)]

mod run;

use run::{Scratch, expect};

#[test]
fn a_script_is_run_and_checked_in_one_command() {
    let scratch = Scratch::new();
    let list = expect(0, &["collect", "--list-scripts"]).stdout;
    assert_eq!(list.lines().count(), 11, "{list}");
    let out = scratch.path("g0");
    let args = ["collect", "sqlite", "--script", "g0", "--out", &out];
    let said = expect(0, &[&args[..], &["--check", "ser"]].concat()).stdout;
    for words in [
        "  b: write x  blocked, then wrote 2\n",
        "workload g0, 2 sessions",
        "satisfied: serializability",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(
        scratch
            .get("g0/steps.txt")
            .contains("a: commit   committed")
    );
    assert!(scratch.get("g0/summary.json").contains("\"blocked\": true"));
    let own = scratch.put(
        "own.script",
        "rows x\na: write x\nb blocks: read x\na: commit\nb: commit\n",
    );
    let out = scratch.path("own");
    let said = expect(0, &["collect", "sqlite", "--script", &own, "--out", &out]);
    let warning = "line 3: `b: read x` was expected to block, and did not: 0";
    assert!(said.stderr.contains(warning), "{}", said.stderr);
}

#[test]
fn a_bad_script_is_an_error_with_file_and_line() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    for (text, expected) in [
        (
            "rows x\na: reads x\n",
            "bad.script, line 2: \"reads x\" is no step; write `begin`",
        ),
        (
            "rows x\na: read x\n",
            "bad.script, line 2: the last transaction of a does not end",
        ),
    ] {
        let bad = scratch.put("bad.script", text);
        let said = expect(2, &["collect", "sqlite", "--script", &bad, "--out", &out]);
        assert!(said.stderr.contains(expected), "{}", said.stderr);
    }
    let said = expect(2, &["collect", "sqlite", "--script", "g9", "--out", &out]);
    assert!(
        said.stderr.contains("scripts are g0, g1a"),
        "{}",
        said.stderr
    );
    let both = ["collect", "sqlite", "--script", "g0", "--workload", "rmw"];
    expect(2, &[&both[..], &["--out", &out]].concat());
    assert!(!std::path::Path::new(&out).exists());
}

#[test]
fn a_hunt_of_scripts_makes_a_table_and_a_page_of_each_finding() {
    let scratch = Scratch::new();
    let file = scratch.put(
        "hunt.toml",
        "name = \"Scripts\"\nseeds = 1\nseconds = 10\n[[database]]\nname = \"sqlite\"\n\
         isolation = [\"serializable\", \"read-uncommitted\"]\nscript = [\"g1a\", \"p4\"]\n",
    );
    let out = scratch.path("hunt");
    expect(0, &["hunt", &file, "--out", &out, "--shrink"]);
    let table = scratch.get("hunt/README.md");
    assert!(
        table.contains("| serializable | ser | – | abort |"),
        "{table}"
    );
    assert!(
        table.contains("| read-uncommitted | nothing | shown | abort |"),
        "{table}"
    );
    let cells = std::fs::read_dir(format!("{out}/cells")).expect("cells");
    let folders: Vec<_> = cells.map(|it| it.expect("an entry").path()).collect();
    let found = folders.iter().find(|it| it.join("finding.html").is_file());
    let page = std::fs::read_to_string(found.expect("a finding").join("finding.html"));
    let page = page.expect("readable");
    for words in [
        "kingsnake collect sqlite --isolation read-uncommitted --script g1a",
        "--check rc",
        "SQLite 3.",
        "Shrunk to 2 transactions",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    expect(0, &["hunt", &file, "--out", &out, "--shrink"]);
}
