//! `--device` and `kingsnake devices`: the same answers on a GPU as on the CPU, and a warning where there is none.
#![cfg(feature = "gpu")]
#![allow(clippy::print_stdout)] // `scripts/test` counts the lines that say which adapter a test ran on.

mod run;

use run::{Scratch, corpus, expect, generate, kingsnake, run};
use serde_json::Value;

/// A history with open keys, broken or not.
fn history(scratch: &Scratch, name: &str, more: &[&str]) -> String {
    let mut options = vec!["--txns", "400", "--keys", "60", "--clients", "6"];
    options.extend(more);
    generate(scratch, name, &options)
}

fn document(status: i32, history: &str, device: &str, level: &str) -> (Value, String) {
    let mut line = vec!["check", history, "--json", "--device", device];
    line.extend(["--level", level, "--reachability", "dense"]);
    let said = expect(status, &line);
    let document = serde_json::from_str(&said.stdout).expect("stdout is JSON");
    (document, said.stderr)
}

/// What the document says of the device that pruned; `None` where one look at the known edges was enough.
fn pruned_on<'a>(what: &str, document: &'a Value) -> Option<&'a str> {
    let stats = &document["stats"];
    if stats["rounds"].as_array().is_none_or(Vec::is_empty) {
        println!("{what}: nothing had to be pruned, so no device was asked");
        return None;
    }
    let device = &stats["device"];
    assert_eq!(stats["reachability"], "device", "{what}");
    assert_eq!(device["why"], "--device gpu asked for it", "{what}");
    for counter in [
        "dispatches",
        "workgroups",
        "round_trips",
        "bytes_up",
        "bytes_down",
    ] {
        assert!(device[counter].as_u64() > Some(0), "{what}: {device}");
    }
    let occupancy = device["occupancy"].as_f64().unwrap_or_default();
    assert!(occupancy > 0.0 && occupancy <= 1.0, "{what}: {device}");
    let name = device["name"].as_str().unwrap_or_default();
    assert_ne!(name, "", "{what}: {device}");
    println!("gpu test: {what} through the command line on {name}");
    Some(name)
}

/// Checks on the CPU and on the GPU, and says whether the GPU pruned.
fn expect_agreement(what: &str, history: &str, level: &str, status: i32) -> bool {
    let (cpu, _) = document(status, history, "cpu", level);
    let (gpu, stderr) = document(status, history, "gpu", level);
    for field in ["verdict", "decider", "anomaly", "counterexample"] {
        assert_eq!(cpu[field], gpu[field], "{what}, {level}: {field}");
    }
    assert_eq!(cpu["stats"]["device"]["name"], "");
    assert_eq!(stderr, "");
    pruned_on(&format!("{what}, {level},"), &gpu).is_some()
}

#[test]
fn a_check_on_a_gpu_says_what_a_check_on_the_cpu_says() {
    let scratch = Scratch::new();
    let valid = history(&scratch, "valid", &[]);
    let skew = history(&scratch, "skew", &["--fault", "write-skew"]);
    let mut n_pruned = 0;
    for (what, history, level, status) in [
        ("valid", &valid, "ser", 0),
        ("valid", &valid, "si", 0),
        ("write skew", &skew, "ser", 1),
        ("write skew", &skew, "si", 0),
    ] {
        n_pruned += usize::from(expect_agreement(what, history, level, status));
    }
    assert!(n_pruned >= 2, "only {n_pruned} checks came to pruning");
}

#[test]
fn histories_of_2000_transactions_are_checked_on_a_gpu_as_on_the_cpu() {
    let scratch = Scratch::new();
    let sizes = ["--txns", "2000", "--keys", "300", "--clients", "12"];
    let valid = generate(&scratch, "valid", &sizes);
    let mut broken = sizes.to_vec();
    broken.extend(["--fault", "write-skew"]);
    let skew = generate(&scratch, "skew", &broken);
    let mut n_pruned = 0;
    for (what, history, level, status) in [
        ("2,000 transactions", &valid, "ser", 0),
        ("2,000 transactions", &valid, "si", 0),
        ("2,000 with write skew", &skew, "ser", 1),
    ] {
        n_pruned += usize::from(expect_agreement(what, history, level, status));
    }
    assert!(n_pruned >= 2, "only {n_pruned} checks came to pruning");
}

#[test]
fn the_corpus_is_judged_on_a_gpu_as_its_index_says() {
    let index = std::fs::read_to_string(corpus("INDEX.tsv")).expect("there is an index");
    let mut lines = index
        .lines()
        .map(|line| line.split('\t').collect::<Vec<_>>());
    let head = lines.next().expect("there is a head");
    let mut n_pruned = 0;
    let mut adapter = String::new();
    for line in lines {
        for level in ["ser", "strong-session-ser", "si", "strong-session-si"] {
            let column = head.iter().position(|&it| it == level);
            let answer = column.map_or("", |column| line[column]);
            let status = match answer {
                "yes" => 0,
                "no" => 1,
                _ => continue,
            };
            let history = corpus(line[0]);
            let mut check = vec!["check", &history, "--json", "--device", "gpu"];
            check.extend(["--level", level, "--no-linear"]);
            if !level.starts_with("strong") {
                check.extend(["--session-order", "off"]);
            }
            let document: Value =
                serde_json::from_str(&expect(status, &check).stdout).expect("stdout is JSON");
            let stats = &document["stats"];
            assert_eq!(stats["device"]["warning"], Value::Null, "{}", line[0]);
            // Reads with several candidates and absent rows are pruned on the CPU, and the statistics say so.
            let has_rounds = stats["rounds"].as_array().is_some_and(|it| !it.is_empty());
            if has_rounds && stats["reachability"] == "device" {
                n_pruned += 1;
                let name = stats["device"]["name"].as_str();
                name.unwrap_or_default().clone_into(&mut adapter);
            }
        }
    }
    println!("gpu test: {n_pruned} checks of the corpus through the command line on {adapter}");
    assert!(n_pruned > 10);
}

#[test]
fn an_adapter_that_does_not_exist_is_an_error() {
    let scratch = Scratch::new();
    let valid = history(&scratch, "valid", &[]);
    for level in ["ser", "auto"] {
        let line = [
            "check",
            &valid,
            "--level",
            level,
            "--device",
            "gpu:no such thing",
        ];
        let said = expect(2, &line);
        assert!(said.stderr.contains("no such thing"), "{}", said.stderr);
        assert_eq!(said.stdout, "");
    }
}

#[test]
fn a_device_that_means_nothing_is_an_error() {
    for device in ["tpu", "gpu:", ""] {
        let said = run(&["check", "x", "--device", device]);
        assert_eq!(said.status, 2, "{device}");
        assert!(
            said.stderr.contains("gpu:<name or index>"),
            "{}",
            said.stderr
        );
    }
}

#[test]
fn devices_are_listed_with_their_limits_and_tested() {
    let said = expect(0, &["devices"]);
    assert_eq!(said.stderr, "");
    for word in ["cpu: ", "gpu:0 ", "buffers of ", "driver ", "self-test "] {
        assert!(said.stdout.contains(word), "{}", said.stdout);
    }
}

/// The formulas of docs/gpu.md for a closure: what goes up, and how many kernels start.
fn expect_formulas(row: &Value) {
    let number = |field: &str| {
        row[field]
            .as_u64()
            .unwrap_or_else(|| panic!("{field}: {row}"))
    };
    let (n, m, levels) = (number("nodes"), number("edges"), number("levels"));
    let dispatches = number("dispatches");
    assert_eq!(row["form"], "sweep");
    assert_eq!(dispatches, 1, "one band, one sweep");
    let strips = n.div_ceil(256);
    let up = 12 * strips + 4 * (2 * n + 1 + m + levels) + 32 * dispatches;
    assert_eq!(number("bytes_up"), up, "{row}");
    // A strip has the rows that can have a bit in it.
    let ored = number("words_ored");
    assert!(m * 8 <= ored && ored <= m * strips * 8, "{row}");
    assert_eq!(number("workgroups"), strips, "a workgroup a strip");
}

#[test]
fn reachability_is_measured_on_every_engine_and_the_counters_keep_the_formulas() {
    let scratch = Scratch::new();
    let out = scratch.path("reach");
    let mut line = vec!["bench", "reach", "--out", &out, "--nodes", "100,300"];
    line.extend(["--degrees", "2,5", "--repeat", "1", "--quiet"]);
    expect(0, &line);
    let rows = scratch.get("reach/rows.json");
    let document: Value = serde_json::from_str(&rows).expect("rows.json is JSON");
    let rows = document["rows"].as_array().expect("there are rows");
    assert_eq!(rows.len(), 16, "two sizes, two degrees, four engines");
    let on_device = rows.iter().filter(|row| row["dispatches"] != 0);
    assert_eq!(on_device.clone().count(), 4);
    on_device.for_each(expect_formulas);
    assert_eq!(scratch.get("reach/rows.csv").lines().count(), 17);
    assert!(scratch.get("reach/reach-5.svg").contains("<svg"));
    assert!(scratch.get("reach/report.html").contains("of copying"));
}

/// The commands of docs/gpu-box.md, typed line by line; of a study, what it would run.
#[test]
fn the_page_of_the_gpu_box_works_line_by_line() {
    let scratch = Scratch::new();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/gpu-box.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let blocks = page.split("```sh\n").skip(1);
    let blocks = blocks.filter_map(|it| it.split("```").next());
    let mut n_commands = 0;
    for command in blocks.flat_map(str::lines) {
        let mut words = command.split(' ');
        assert_eq!(words.next(), Some("kingsnake"), "{command}");
        let words: Vec<&str> = words.collect();
        let mut program = kingsnake(&words);
        if words[0] == "ablate" {
            program.arg("--list");
        }
        program.current_dir(scratch.path(""));
        program.env("XDG_CONFIG_HOME", scratch.path("config"));
        let output = program.output().expect("it can be run");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {stderr}");
        n_commands += 1;
    }
    assert_eq!(n_commands, 5);
    let kept: Value = serde_json::from_str(&scratch.get("config/kingsnake/devices.json"))
        .expect("constants are kept as JSON");
    let name = kept["adapters"][0]["adapter"].as_str().expect("a name");
    println!("gpu test: calibration through the command line on {name}");
    let measured = scratch.path("gpu/calibration.json");
    let said = expect(0, &["bench", "gpu", "--import", &measured]);
    assert!(said.stdout.contains(name), "{}", said.stdout);
    let wrong = scratch.put("wrong.json", "{\"schema\":1}");
    let said = expect(2, &["bench", "gpu", "--import", &wrong]);
    assert!(
        said.stderr.contains("devices --calibrate"),
        "{}",
        said.stderr
    );
}
