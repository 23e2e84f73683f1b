//! Long studies: rows, resuming, errors, figures.

mod run;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use run::{Scratch, expect, kingsnake};
use serde_json::Value;

/// A study of checks that are done in no time.
const SMALL: &str = include_str!("run/small_study.toml");

fn lines(path: &str) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("the file was written");
    text.lines().map(str::to_owned).collect()
}

fn cells(scratch: &Scratch, directory: &str) -> Vec<String> {
    lines(&scratch.path(&format!("{directory}/rows.jsonl")))
        .iter()
        .map(|line| {
            let row: Value = serde_json::from_str(line).expect("a row is JSON");
            row["cell"].as_str().expect("a row has a cell").to_owned()
        })
        .collect()
}

fn expect_well_formed(path: &Path) {
    let text = std::fs::read_to_string(path).expect("the figure was written");
    let tree = roxmltree::Document::parse(&text).expect("the figure is XML");
    assert_eq!(tree.root_element().tag_name().name(), "svg");
}

#[test]
fn a_study_writes_rows_figures_and_a_page() {
    let scratch = Scratch::new();
    let file = scratch.put("s.toml", SMALL);
    let out = scratch.path("out");
    let said = expect(0, &["ablate", &file, "--out", &out]);
    assert!(said.stdout.contains("report.html"), "{}", said.stdout);
    assert!(said.stdout.contains("Off takes twice"), "{}", said.stdout);
    // Two workloads with two switches and one more size, twice each; the size of 60 is in both experiments but runs once.
    let cells = cells(&scratch, "out");
    assert_eq!(cells.len(), 10, "{cells:?}");
    assert_eq!(cells.iter().collect::<BTreeSet<_>>().len(), 10);
    // One at a time, rows come in the order of the plan: all first repeats before all second ones.
    let repeats: Vec<bool> = cells.iter().map(|cell| cell.contains("repeat 1")).collect();
    assert!(repeats.is_sorted(), "{cells:?}");
    for name in ["switches", "growth"] {
        expect_well_formed(Path::new(&scratch.path(&format!("out/{name}.svg"))));
    }
    let page = scratch.get("out/report.html");
    for word in [
        "A small study",
        "on &amp; off",
        "pairs before",
        "The paper&#39;s numbers",
        "<svg",
    ] {
        let plain = page.contains(word) || page.contains(&word.replace("&#39;", "'"));
        assert!(plain, "{word} is not on the page");
    }
    assert!(!page.contains("This must not happen"));
    // The table repeats the rows, names with commas and quotes included.
    let mut table = csv::Reader::from_path(scratch.path("out/rows.csv")).expect("a table");
    let names: Vec<String> = table
        .headers()
        .expect("a header")
        .iter()
        .map(str::to_owned)
        .collect();
    let first: Vec<String> = table
        .records()
        .map(|record| record.expect("a whole record")[0].to_owned())
        .collect();
    assert_eq!(names[0], "cell");
    assert_eq!(first, cells);
    // Again: nothing runs, and the page is the same.
    expect(0, &["ablate", &file, "--out", &out]);
    assert_eq!(cells.len(), lines(&scratch.path("out/rows.jsonl")).len());
    // More repeats: the old rows stay, new ones follow.
    expect(
        0,
        &[
            "ablate", &file, "--out", &out, "--repeat", "3", "--jobs", "3",
        ],
    );
    let more = self::cells(&scratch, "out");
    assert_eq!(more.len(), 15);
    assert_eq!(more[..10], cells[..]);
}

#[test]
fn another_study_in_the_directory_is_an_error_that_names_the_difference() {
    let scratch = Scratch::new();
    let file = scratch.put("s.toml", SMALL);
    let out = scratch.path("out");
    expect(0, &["ablate", &file, "--out", &out, "-q"]);
    let said = expect(2, &["ablate", &file, "--out", &out, "--txns", "70"]);
    assert!(said.stderr.contains("txns"), "{}", said.stderr);
    assert!(said.stderr.contains("--restart"), "{}", said.stderr);
    expect(
        0,
        &["ablate", &file, "--out", &out, "--txns", "70", "--restart"],
    );
}

#[test]
fn a_wrong_verdict_is_flagged_in_words_page_and_status() {
    let scratch = Scratch::new();
    let lie = SMALL.replace("expect = \"violated\"", "expect = \"satisfied\"");
    let file = scratch.put("s.toml", lie);
    let said = expect(
        1,
        &[
            "ablate",
            &file,
            "--out",
            &scratch.path("out"),
            "--repeat",
            "1",
        ],
    );
    assert!(said.stdout.contains("WRONG VERDICT"), "{}", said.stdout);
    assert!(
        scratch
            .get("out/report.html")
            .contains("This must not happen")
    );
}

#[test]
fn a_list_runs_nothing() {
    let scratch = Scratch::new();
    let file = scratch.put("s.toml", SMALL);
    let out = scratch.path("out");
    let said = expect(0, &["ablate", &file, "--out", &out, "--list"]);
    assert!(said.stdout.contains("10 cells"), "{}", said.stdout);
    assert!(!Path::new(&out).exists());
}

/// Cells that take their time: each runs into its limit.
const SLOW: &str = r#"
name = "slow"
title = "A slow study"
timeout = 0.4
check = ["--session-order", "off", "--no-estimate", "--no-witness"]

[parameters]
seed = 0

[[workload]]
name = "HW"
generate = ["king-cobra-hw", "--txns", "10000", "--keys", "10000"]

[[experiment]]
name = "seeds"
title = "Seeds"

[[experiment.axis]]
name = "rounds"
parameter = "seed"
values = [1, 2, 3, 4, 5, 6]

[experiment.figure]
kind = "bars"
x = "rounds"
series = "workload"
"#;

#[test]
fn a_check_that_ran_out_of_time_is_left_out_on_the_other_histories_where_asked() {
    let scratch = Scratch::new();
    let study = SLOW
        .replace("values = [1, 2, 3, 4, 5, 6]", "values = [1]")
        .replace("\"--no-witness\"]", "\"--no-witness\", \"--no-anneal\"]");
    let file = scratch.put("s.toml", study);
    let out = scratch.path("out");
    let mut line = vec!["ablate", &file, "--out", &out, "--seeds", "3"];
    line.push("--skip-after-timeout");
    for _ in 0..2 {
        let said = expect(0, &line);
        assert!(said.stdout.contains("2 runs left out"), "{}", said.stdout);
        assert!(said.stdout.contains("n = 1 per check"), "{}", said.stdout);
        assert_eq!(cells(&scratch, "out").len(), 1);
        let page = std::fs::read_to_string(scratch.path("out/report.html")).expect("a page");
        assert!(
            page.contains("2 runs were left out") && page.contains("✓ 1 cell, 2 runs left out")
        );
    }
    line.pop();
    let said = expect(0, &line);
    assert!(!said.stdout.contains("left out"), "{}", said.stdout);
    let page = std::fs::read_to_string(scratch.path("out/report.html")).expect("a page");
    assert!(!page.contains("left out"));
    assert_eq!(cells(&scratch, "out").len(), 3);
}

#[test]
fn shares_are_shares_in_the_words_as_in_the_figure() {
    let scratch = Scratch::new();
    let study = SLOW
        .replace("values = [1, 2, 3, 4, 5, 6]", "values = [1]")
        .replace("timeout = 0.4", "timeout = 20")
        .replace(
            "\"king-cobra-hw\", \"--txns\", \"10000\", \"--keys\", \"10000\"",
            "\"mini\", \"--txns\", \"100\"",
        )
        .replace("kind = \"bars\"", "kind = \"detection\"")
        .replace("series = \"workload\"", "");
    let file = scratch.put("s.toml", study);
    let out = scratch.path("out");
    let said = expect(0, &["ablate", &file, "--out", &out, "--seeds", "2"]);
    assert!(said.stdout.contains("0 of 2 (0–66 %)"), "{}", said.stdout);
    let figure = std::fs::read_to_string(scratch.path("out/seeds.svg")).expect("a figure");
    assert!(figure.contains("0 %"), "{figure}");
}

/// Names that end a field, a quotation or a line, or that a spreadsheet takes for a formula.
const HOSTILE: [&str; 9] = [
    "a,b",
    "say \"x\"",
    "two\nlines",
    "back\r\nagain",
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\",=cmd|' /C calc'!A0,\"",
];

/// The fields of a table by the names of its columns.
fn table(path: &str) -> Vec<BTreeMap<String, String>> {
    let mut table = csv::Reader::from_path(path).expect("a table");
    let records = table.deserialize();
    records.map(|it| it.expect("a whole record")).collect()
}

#[test]
fn hostile_names_are_fields_of_the_table_as_they_are() {
    let scratch = Scratch::new();
    let values = Value::from(HOSTILE.to_vec()); // Quoted alike in TOML.
    let study = format!(
        "name = 's'\ntitle = 's'\ntimeout = 20\ncheck = ['--edges={{edges}}']\n[parameters]\nedges = 'e'\n[[workload]]\nname = 'w'\ngenerate = ['blindw-rw', '--txns', '9', '--keys', '9']\n[[experiment]]\nname = 'e'\ntitle = 'e'\n[[experiment.axis]]\nname = 'edges'\nparameter = 'edges'\nvalues = {values}\n"
    );
    let (file, out) = (scratch.put("s.toml", study), scratch.path("out"));
    // No file has such a name, so that the reason tells it, too.
    expect(2, &["ablate", &file, "--out", &out]);
    let table = table(&scratch.path("out/rows.csv"));
    let rows = lines(&scratch.path("out/rows.jsonl"));
    assert_eq!((table.len(), rows.len()), (HOSTILE.len(), HOSTILE.len()));
    for ((fields, row), name) in table.iter().zip(&rows).zip(HOSTILE) {
        let row: Value = serde_json::from_str(row).expect("a row is JSON");
        for column in ["cell", "history", "verdict", "reason", "command", "host"] {
            assert_eq!(fields[column], row[column].as_str().unwrap_or(""), "{row}");
        }
        assert_eq!(fields["check"], format!("--edges={name}"));
    }
}

#[cfg(unix)]
#[test]
fn a_history_with_a_hostile_name_is_a_field_of_the_annealing_table() {
    let scratch = Scratch::new();
    let name = "=1+\"1\",\n@b.jsonl";
    let (history, out) = (scratch.path(name), scratch.path("anneal"));
    let line = ["generate", "king-cobra-hw", "--txns", "60", "--keys", "30"];
    expect(
        0,
        &[&line[..], &["--seed", "1", "--out", &history]].concat(),
    );
    let line = ["bench", "anneal", &history, "--session-order", "off"];
    let rest = ["--no-version-order", "--device", "cpu", "--out", &out];
    expect(0, &[line, rest].concat());
    let table = table(&scratch.path("anneal/rows.csv"));
    assert!(!table.is_empty());
    for fields in table {
        // A name is told on one line.
        assert_eq!(fields["history"], name.replace('\n', "\\n"));
        assert_eq!(fields.len(), 6);
    }
}

#[test]
fn annealing_is_drawn_over_time_serial_and_coloured() {
    let scratch = Scratch::new();
    let (history, out) = (scratch.path("hw.jsonl"), scratch.path("anneal"));
    let line = "generate king-cobra-hw --txns 400 --keys 200 --seed 1 --out";
    let mut line: Vec<&str> = line.split(' ').collect();
    line.push(&history);
    expect(0, &line);
    let options = "--session-order off --no-version-order --device cpu --out";
    let mut line = vec!["bench", "anneal", &history];
    line.extend(options.split(' '));
    line.push(&out);
    let said = expect(0, &line);
    for way in ["serial", "coloured"] {
        assert!(said.stdout.contains(way), "{}", said.stdout);
    }
    for name in ["rows.csv", "report.html", "violated-1.svg", "moves-1.svg"] {
        let text = std::fs::read_to_string(scratch.path(&format!("anneal/{name}")));
        assert!(text.is_ok_and(|it| it.contains("serial")), "{name}");
    }
    line[2] = "absent.jsonl";
    expect(2, &line);
}

#[cfg(unix)]
#[test]
fn a_killed_study_goes_on_without_losing_or_doubling_a_row() {
    let scratch = Scratch::new();
    // Each value is another check, by a switch that changes nothing else.
    let study = SLOW.replace(
        "\"--no-witness\"]",
        "\"--no-witness\", \"--prune-rounds\", \"{seed}\"]",
    );
    let file = scratch.put("s.toml", study);
    let out = scratch.path("out");
    let rows = scratch.path("out/rows.jsonl");
    let mut n_before = 0;
    for signal in ["-KILL", "-INT"] {
        let mut child = kingsnake(&["ablate", &file, "--out", &out])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        let begun = Instant::now();
        let written = || std::fs::read_to_string(&rows).map_or(0, |text| text.lines().count());
        while written() < n_before + 2 && begun.elapsed() < Duration::from_secs(120) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let sent = std::process::Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status();
        assert!(sent.expect("kill runs").success());
        let status = child.wait().expect("the binary ends");
        if signal == "-INT" {
            assert_eq!(status.code(), Some(3), "a stopped study says so");
        }
        let n_rows = written();
        assert!(
            n_rows >= n_before + 2 && n_rows < 6,
            "{n_rows} rows after {signal}"
        );
        n_before = n_rows;
    }
    // A torn line, as a crash in the middle of a write would leave it.
    let whole = std::fs::read_to_string(&rows).expect("rows");
    std::fs::write(&rows, format!("{whole}{{\"cell\":\"HW se")).expect("rows");
    expect(0, &["ablate", &file, "--out", &out]);
    let after = std::fs::read_to_string(&rows).expect("rows");
    assert!(after.starts_with(&whole), "the old rows stay as they were");
    let cells = cells(&scratch, "out");
    assert_eq!(cells.len(), 6, "{cells:?}");
    assert_eq!(cells.iter().collect::<BTreeSet<_>>().len(), 6);
    assert_eq!(lines(&scratch.path("out/rows.csv")).len(), 7);
}

#[cfg(target_os = "linux")]
#[test]
fn no_check_outlives_its_killed_study() {
    let scratch = Scratch::new();
    let file = scratch.put("s.toml", SLOW.replace("timeout = 0.4", "timeout = 120"));
    let out = scratch.path("out");
    let mut child = kingsnake(&["ablate", &file, "--out", &out])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary runs");
    let ours = || {
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").expect("/proc").flatten() {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            if line.contains("check") && line.contains(&out) {
                found.push(line);
            }
        }
        found
    };
    let wait = |until: &dyn Fn() -> bool| {
        let begun = Instant::now();
        while !until() && begun.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    wait(&|| !ours().is_empty());
    assert_eq!(ours().len(), 1);
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    wait(&|| ours().is_empty());
    assert!(ours().is_empty(), "{:?}", ours());
}

#[test]
fn a_check_that_grows_beyond_its_memory_is_out_of_memory() {
    let scratch = Scratch::new();
    let file = scratch.put("s.toml", SMALL.replace("txns = 60", "txns = 20000"));
    let args = [
        "ablate",
        &file,
        "--out",
        &scratch.path("out"),
        "--repeat",
        "1",
        "--memory",
        "8M",
    ];
    expect(0, &args);
    let rows = scratch.get("out/rows.jsonl");
    assert!(rows.contains("\"outcome\":\"memory\""), "{rows}");
}

#[test]
fn back_ends_are_compared_on_given_histories() {
    let scratch = Scratch::new();
    let history = run::corpus("strong-session-ser/blind-writes.jsonl");
    let out = scratch.path("out");
    let args = [
        "bench",
        "encodings",
        &history,
        "--backends",
        "cadical/propagator,search/backtrack",
        "--out",
        &out,
    ];
    let said = expect(0, &args);
    assert!(said.stdout.contains("search/backtrack"), "{}", said.stdout);
    expect_well_formed(Path::new(&scratch.path("out/cactus.svg")));
    assert_eq!(cells(&scratch, "out").len(), 2);
}

#[test]
fn a_small_king_cobra_study_runs_from_end_to_end() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    let args = [
        "ablate",
        "king-cobra",
        "--txns",
        "200",
        "--keys",
        "50",
        "--timeout",
        "60",
        "--jobs",
        "2",
        "--out",
        &out,
    ];
    let said = expect(0, &args);
    // Three seeds, two sets of techniques, three workloads: four settings of the orders, and nine more shares of the version order.
    assert_eq!(cells(&scratch, "out").len(), 3 * 2 * 3 * (4 + 9));
    for name in ["figure-13-rmw", "figure-13-hw", "figure-14-rw"] {
        expect_well_formed(Path::new(&scratch.path(&format!("out/{name}.svg"))));
    }
    // Every number that the paper states is beside ours.
    let summary: Value = serde_json::from_str(&scratch.get("out/summary.json")).expect("JSON");
    let claims = |at: usize| {
        summary["experiments"][at]["claims"]
            .as_array()
            .map(Vec::len)
    };
    assert_eq!((claims(0), claims(1)), (Some(2 * 14), Some(2 * 3)));
    assert!(!said.stdout.contains("no row yet"), "{}", said.stdout);
    // The paper measured other sizes, so nothing agrees.
    assert!(
        said.stdout.contains("sizes differ: txns 200"),
        "{}",
        said.stdout
    );
    assert!(!said.stdout.contains(": agrees"), "{}", said.stdout);
    assert!(said.stdout.contains("200 transactions"), "{}", said.stdout);
    faithful_profiles_make_a_constraint_of_every_pair(&scratch);
    // Without either order constraints are left after pruning or before it, and the rows say how many.
    let rows = scratch.get("out/rows.jsonl");
    assert!(rows.contains("\"rounds\":[{"), "{rows}");
}

/// King Cobra's techniques start from more constraints than ours: pairs without readers are some too.
fn faithful_profiles_make_a_constraint_of_every_pair(scratch: &Scratch) {
    let mut pairs = std::collections::BTreeMap::new();
    for line in lines(&scratch.path("out/rows.jsonl")) {
        let row: Value = serde_json::from_str(&line).expect("a row is JSON");
        let cell = row["cell"].as_str().expect("a name").to_owned();
        pairs.insert(cell, row["stats"]["pairs"].as_u64().expect("a number"));
    }
    let faithful: Vec<_> = pairs
        .iter()
        .filter(|it| it.0.contains("king-cobra"))
        .collect();
    assert_eq!(2 * faithful.len(), pairs.len());
    for (cell, &more) in faithful {
        let ours = pairs[&cell.replace("--profile king-cobra", "--profile kingsnake")];
        assert!(more >= ours, "{cell}: {more} pairs, ours {ours}");
        if cell.starts_with("hw") && cell.ends_with("--version-order-share 0") {
            assert!(more > ours, "{cell}: {more} pairs, ours {ours}");
        }
    }
}

#[test]
fn a_size_that_an_axis_varies_shortens_it_or_is_an_error() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    let listed = |args: &[&str]| {
        let line = [&["ablate"], args, &["--out", &out, "--list"]].concat();
        expect(0, &line).stdout
    };
    let all = listed(&["sizes"]);
    let short = listed(&["sizes", "--txns", "2000"]);
    assert!(short.lines().count() < all.lines().count());
    assert!(short.lines().count() > 2, "{short}");
    assert_eq!(listed(&["sizes", "--txns", "7"]).lines().count(), 4);
    let said = expect(
        2,
        &[
            "ablate",
            "king-cobra",
            "--set",
            "share=0.5",
            "--out",
            &out,
            "--list",
        ],
    );
    assert!(said.stderr.contains("share=0.5"), "{}", said.stderr);
    let half = listed(&["king-cobra", "--profile", "king-cobra"]);
    assert_eq!(
        2 * (half.lines().count() - 1),
        listed(&["king-cobra"]).lines().count() - 1
    );
}

#[test]
fn every_check_runs_on_every_device_side_by_side() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    let said = expect(
        0,
        &[
            "ablate",
            "king-cobra",
            "--device",
            "cpu,gpu",
            "--out",
            &out,
            "--list",
        ],
    );
    assert!(said.stdout.contains("468 cells"), "{}", said.stdout);
    let said = expect(
        0,
        &[
            "ablate", "sizes", "--device", "gpu", "--out", &out, "--list",
        ],
    );
    assert!(said.stdout.contains("--device gpu"), "{}", said.stdout);
}

/// Runs figure 13 of King Cobra's study at a small size where no adapter is found.
fn figure_13_without_an_adapter(out: &str, device: &str) -> (i32, String) {
    let args = ["ablate", "king-cobra", "--figure", "13", "--txns", "60"];
    let more = ["--keys=20", "--seeds=1", "--device", device, "--out", out];
    let output = kingsnake(&[&args[..], &more[..]].concat())
        .env("VK_DRIVER_FILES", "/nonexistent")
        .env("VK_ICD_FILENAMES", "/nonexistent")
        .output()
        .expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code().expect("it exits by itself"), said)
}

#[test]
fn a_cell_that_asked_for_a_device_and_got_none_is_an_error_and_is_not_drawn() {
    let scratch = Scratch::new();
    let (status, said) = figure_13_without_an_adapter(&scratch.path("both"), "cpu,gpu");
    assert_eq!(status, 2, "{said}");
    assert!(
        said.contains("FAILED (24 cells): asked for the device gpu"),
        "{said}"
    );
    assert!(said.contains("24 runs are left out"), "{said}");
    assert!(std::path::Path::new(&scratch.path("both/figure-13-rw.svg")).exists());
    let (status, said) = figure_13_without_an_adapter(&scratch.path("one"), "gpu");
    assert_eq!(status, 2, "{said}");
    assert!(!std::path::Path::new(&scratch.path("one/figure-13-rw.svg")).exists());
}

#[test]
fn studies_run_at_sizes_below_their_smallest_and_say_which_claims_that_leaves_out() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    for args in [
        &["mtc", "--txns", "2000"][..],
        &["viper", "--txns", "500", "--figure", "15"],
        &["viper", "--txns", "200", "--figure", "8,13"],
    ] {
        let said = expect(0, &[&["ablate"], args, &["--out", &out, "--list"]].concat());
        assert!(said.stdout.contains("kingsnake check"), "{}", said.stdout);
    }
}

#[test]
fn back_ends_and_profiles_stand_side_by_side() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    let listed = |more: &[&str]| {
        let args = [
            "ablate",
            "king-cobra",
            "--figure",
            "13",
            "--out",
            &out,
            "--list",
        ];
        expect(0, &[&args[..], more].concat()).stdout
    };
    let profiles = listed(&["--profile", "cobra,king-cobra,kingsnake"]);
    assert_eq!(
        profiles.matches("--profile cobra").count(),
        36,
        "{profiles}"
    );
    let backends = listed(&["--backend", "cadical/propagator,search/backtrack"]);
    assert_eq!(
        backends.matches("search/backtrack").count(),
        72,
        "{backends}"
    );
}

#[test]
fn the_built_in_studies_hold_together() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    for args in [
        ["bench", "encodings"],
        ["ablate", "king-cobra"],
        ["ablate", "ingredients"],
        ["ablate", "viper"],
        ["ablate", "sizes"],
        ["ablate", "mtc"],
        ["ablate", "mini-vs-general"],
        ["ablate", "sweep"],
    ] {
        let said = expect(0, &[args[0], args[1], "--out", &out, "--list"]);
        assert!(said.stdout.contains("kingsnake check"), "{}", said.stdout);
    }
}
