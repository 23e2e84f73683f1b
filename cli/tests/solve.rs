//! `solve` gives the verdict of `check` on what `export` wrote, and refuses bad files with their line.

mod run;

use std::path::Path;

use run::{Scratch, corpus, expect, run};

#[test]
fn what_export_wrote_is_solved_with_the_verdict_of_check() {
    let index = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../datasets/corpus/INDEX.tsv"
    ));
    let index = std::fs::read_to_string(index).expect("the corpus has an index");
    let names = index
        .lines()
        .skip(1)
        .filter_map(|line| line.split('\t').next());
    let scratch = Scratch::new();
    let mut counts = [0; 2];
    for (at, name) in names.enumerate() {
        let history = corpus(name);
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
        assert!(solved.stdout.starts_with(word), "{name}: {}", solved.stdout);
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
