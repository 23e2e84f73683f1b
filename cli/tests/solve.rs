//! `solve` gives the verdict of `check` on what `export` wrote, and refuses bad files with their line.

mod run;

use run::{Scratch, corpus_histories, expect, run};
use serde_json::Value;

#[test]
fn what_export_wrote_is_solved_with_the_verdict_of_check() {
    let scratch = Scratch::new();
    let mut counts = [0; 2];
    for (at, history) in corpus_histories().into_iter().enumerate() {
        let file = scratch.path(&format!("{at}.gnf"));
        let level = ["ser", "si", "pc"][at % 3];
        let stage = ["constructed", "pruned"][at % 2];
        let written = run(&[
            "export", &history, "--to", "gnf", "--stage", stage, "--level", level, "--out", &file,
            "-q",
        ]);
        if written.status != 0 {
            // Reads that no order explains leave no question.
            continue;
        }
        let checked = run(&["check", &history, "--level", level, "-q"]);
        let backend = ["cadical/propagator", "cadical/lazy", "cadical/closure"][at / 3 % 3];
        let solved = expect(checked.status, &["solve", &file, "--backend", backend]);
        let word = ["satisfiable\nv ", "unsatisfiable\ncore "][checked.status as usize];
        assert!(
            solved.stdout.starts_with(word),
            "{history}: {}",
            solved.stdout
        );
        counts[checked.status as usize] += 1;
    }
    assert!(counts[0] > 10 && counts[1] > 5, "{counts:?}");
}

#[test]
fn an_instance_that_is_not_ours_is_solved() {
    let scratch = Scratch::new();
    let file = scratch.path("triangle.gnf");
    // Three edges of a triangle, of which at most two may be there; then all three are demanded.
    let triangle = "c a triangle\np cnf 4 2\n4 0\n1 2 0\ndigraph int 3 3 0\nedge 0 0 1 1\nedge 0 1 2 2\nedge 0 2 0 3\nacyclic 0 4\n";
    std::fs::write(&file, triangle).expect("it can be written");
    let said = expect(0, &["solve", &file]);
    assert!(said.stdout.contains(" 4 0"), "{}", said.stdout);
    std::fs::write(&file, triangle.replace("1 2 0", "1 0\n2 0\n3 0")).expect("it can be written");
    expect(1, &["solve", &file, "--backend", "search/backtrack"]);
    std::fs::write(&file, "p cnf 1 1\nmaximum_flow 0\n").expect("it can be written");
    let said = expect(2, &["solve", &file]);
    assert!(
        said.stderr.contains("triangle.gnf: line 2:"),
        "{}",
        said.stderr
    );
    let said = expect(2, &["solve", &file, "--backend", "z3/gsi"]);
    assert!(!said.stderr.is_empty());
}

/// Three edges of a triangle of which all, or all but one, are demanded.
fn triangle(scratch: &Scratch, name: &str, demanded: &str) -> String {
    let text = format!(
        "p cnf 4 2\n4 0\n{demanded}digraph int 3 3 0\nedge 0 0 1 1\nedge 0 1 2 2\nedge 0 2 0 3\nacyclic 0 4\n"
    );
    scratch.put(name, text)
}

#[test]
fn the_json_document_of_an_instance_has_the_fields_of_a_check() {
    let scratch = Scratch::new();
    let open = triangle(&scratch, "open.gnf", "1 2 0\n");
    let said = expect(0, &["solve", &open, "--json", "--no-prune"]);
    let document: Value = serde_json::from_str(&said.stdout).expect("one JSON document");
    assert_eq!(document["verdict"], "satisfied");
    assert_eq!(document["decider"], "backend");
    assert_eq!(document["model"].as_array().map(Vec::len), Some(4));
    assert_eq!(document["stats"]["solver"]["backend"], "cadical/propagator");
    let shut = triangle(&scratch, "shut.gnf", "1 0\n2 0\n3 0\n");
    let said = expect(1, &["solve", &shut, "--json"]);
    let document: Value = serde_json::from_str(&said.stdout).expect("one JSON document");
    assert_eq!(document["verdict"], "violated");
    assert!(document["core"].is_array(), "{document}");
}

#[test]
fn the_benchmark_of_back_ends_takes_instances() {
    let scratch = Scratch::new();
    let open = triangle(&scratch, "open.gnf", "1 2 0\n1 2 3 0\n");
    let shut = triangle(&scratch, "shut.gnf", "1 0\n2 0\n3 0\n");
    let out = scratch.path("out");
    let backends = "cadical/propagator,cadical/closure,search/backtrack,z3/asi";
    let line = [
        "bench",
        "encodings",
        &open,
        &shut,
        "--backends",
        backends,
        "--out",
        &out,
        "-q",
    ];
    expect(0, &line);
    let rows = std::fs::read_to_string(format!("{out}/rows.jsonl")).expect("there are rows");
    let rows: Vec<Value> = rows
        .lines()
        .map(|line| serde_json::from_str(line).expect("one row per line"))
        .collect();
    // The back end that states the rules of snapshot isolation does not take part.
    assert_eq!(rows.len(), 6, "{rows:?}");
    for row in &rows {
        let expected = match row["history"].as_str() {
            Some("open-gnf") => "satisfied",
            _ => "violated",
        };
        assert_eq!(row["verdict"], expected, "{row}");
        assert_eq!(row["outcome"], "answered", "{row}");
        assert!(
            row["command"]
                .as_str()
                .is_some_and(|it| it.starts_with("kingsnake solve "))
        );
    }
}
