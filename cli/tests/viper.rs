//! Viper's experiments, in small.

mod run;

use run::{Scratch, expect};
use serde_json::Value;

const STUDY: &str = include_str!("../../benches/studies/viper.toml");

/// The study with other numbers, so that it is over in seconds.
fn small() -> String {
    let mut text = STUDY.to_owned();
    for (large, small) in [
        (
            "txns = 5000\nclients = 24\nkeys = 2000",
            "txns = 60\nclients = 8\nkeys = 20",
        ),
        (
            "[100, 200, 400, 600, 800, 1000, 2000, 5000, 10000]",
            "[20, 40]",
        ),
        ("[1000, 5000, 10000, 50000, 100000]", "[20, 40]"),
        ("transactions = 10000", "transactions = 40"),
        ("transactions = 800", "transactions = 30"),
        (
            "values = [8, 16, 24, 32, 40, 48, 56, 64]",
            "values = [4, 8]",
        ),
        ("set = { txns = 2000 }", "set = { txns = 40 }"),
        ("set = { txns = 5000 }", "set = { txns = 50 }"),
        ("{ txns = 8000, keys = 10000 }", "{ txns = 60, keys = 40 }"),
        ("values = [100, 200, 400]", "values = [20, 40]"),
        ("values = [1000, 2000, 5000]", "values = [40]"),
        ("seeds = 20", "seeds = 3"),
    ] {
        assert!(text.contains(large), "{large}");
        text = text.replace(large, small);
    }
    text
}

fn rows(scratch: &Scratch) -> Vec<Value> {
    let text = scratch.get("out/rows.jsonl");
    let parse = |line| serde_json::from_str(line).expect("a row is JSON");
    text.lines().map(parse).collect()
}

#[test]
fn every_figure_of_a_small_version_is_drawn_and_no_verdict_is_wrong() {
    let scratch = Scratch::new();
    let file = scratch.put("viper.toml", small());
    let out = scratch.path("out");
    // A wrong verdict, such as an anomaly that is not found, would be another exit status.
    let said = expect(0, &["ablate", &file, "--out", &out, "--jobs", "2"]);
    let panels = |name: &str| ["without", "with"].map(|it| format!("{name}-{it}-session-order"));
    let whole = ["figure-9", "figure-10", "figure-11", "figure-15"];
    let mut figures = whole.map(str::to_owned).to_vec();
    for name in ["figure-8", "figure-12", "figure-13", "figure-13-ours"] {
        figures.extend(panels(name));
    }
    for name in figures {
        let svg = scratch.get(&format!("out/{name}.svg"));
        let tree = roxmltree::Document::parse(&svg).expect("the figure is XML");
        assert_eq!(tree.root_element().tag_name().name(), "svg");
    }
    let svg = scratch.get("out/figure-10.svg");
    for word in ["parse", "construct", "prune", "certify", "Twitter"] {
        assert!(svg.contains(word), "{word}");
    }
    let rows = rows(&scratch);
    let count = |of: &dyn Fn(&str) -> bool| {
        let cells = rows.iter().filter_map(|row| row["cell"].as_str());
        cells.filter(|cell| of(cell)).count()
    };
    // The baselines of figure 8 run at 20 transactions only. Those of figure 13 without a heuristic are the same checks on three
    // histories of two sizes.
    let baseline = |cell: &str| cell.contains("z3/gsi") && !cell.contains("--heuristic");
    assert_eq!(count(&baseline), 2 * 2 * 3);
    // Each fault at two sizes in three histories, each checked twice.
    assert_eq!(count(&|cell| cell.starts_with("g-sib")), 2 * 3 * 2);
    let summary: Value = serde_json::from_str(&scratch.get("out/summary.json")).expect("JSON");
    let experiments = summary["experiments"].as_array().expect("an array");
    let claims_of = |name: &str| {
        let named = experiments.iter().find(|it| it["experiment"] == name);
        named.and_then(|it| it["claims"].as_array()).map(Vec::len)
    };
    assert_eq!(claims_of("figure-8"), Some(4));
    assert_eq!(claims_of("figure-15"), Some(2));
    assert!(said.stdout.contains("15 times as many"), "{}", said.stdout);
    assert!(!said.stdout.contains("rows are missing"), "{}", said.stdout);
    // Whatever was learned, a history has one answer: problems would say otherwise.
    assert!(
        !scratch
            .get("out/report.html")
            .contains("This must not happen")
    );
}

#[test]
fn figures_are_chosen_by_number_and_other_rows_stay() {
    let scratch = Scratch::new();
    let file = scratch.put("viper.toml", small());
    let out = scratch.path("out");
    let run = |figure: &str| {
        let args = [
            "ablate", &file, "--out", &out, "--figure", figure, "--repeat", "1", "--seeds", "1",
        ];
        expect(0, &args)
    };
    let said = run("15");
    assert!(said.stdout.contains("Figure 15"), "{}", said.stdout);
    assert!(!said.stdout.contains("Figure 10"), "{}", said.stdout);
    let n_first = rows(&scratch).len();
    assert_eq!(n_first, 3 * 2);
    run("10,15");
    assert_eq!(rows(&scratch).len(), n_first + 8);
    assert!(scratch.get("out/report.html").contains("Figure 10"));
    let args = ["ablate", "viper", "--out", &out, "--figure", "14"];
    let said = expect(2, &args);
    assert!(said.stderr.contains("figure-15"), "{}", said.stderr);
}

#[test]
fn the_papers_sizes_are_there_on_request() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    let list = |more: &[&str]| {
        let mut args = vec!["ablate", "viper", "--figure", "8", "--list", "--out", &out];
        args.extend(more);
        expect(0, &args).stdout
    };
    let (own, papers) = (list(&[]), list(&["--paper-sizes"]));
    // Ours at nine and at 24 sizes, two baselines at five of them, with and without session order.
    assert!(own.contains(&format!("{} cells", 2 * (9 + 2 * 5))), "{own}");
    assert!(
        papers.contains(&format!("{} cells", 2 * (24 + 2 * 5))),
        "{papers}"
    );
    assert!(papers.contains("--timeout 500"), "{papers}");
    let said = expect(
        2,
        &["ablate", "ingredients", "--paper-sizes", "--out", &out],
    );
    assert!(said.stderr.contains("a paper's sizes"), "{}", said.stderr);
}

#[test]
fn the_levels_of_a_paper_are_asked_by_its_name() {
    let scratch = Scratch::new();
    // A session that does not see its own last write.
    let history = scratch.put(
        "h.jsonl",
        "{\"kingsnake\":1,\"initial\":0}\n\
         {\"id\":1,\"session\":1,\"begin\":1,\"commit\":2,\"ops\":[[\"w\",1,1]]}\n\
         {\"id\":2,\"session\":1,\"begin\":3,\"commit\":4,\"ops\":[[\"r\",1,0]]}\n",
    );
    for (level, status) in [
        ("viper/si", 0),
        ("viper/gsi", 0),
        ("viper/strong-session-si", 1),
        ("Viper/Strong-SI", 1),
        ("polysi/si", 1),
        ("si", 1),
    ] {
        expect(status, &["check", &history, "--level", level]);
    }
    let switch = ["--session-order", "on"];
    let args = ["check", &history, "--level", "viper/si"];
    let said = expect(2, &[&args[..], &switch].concat());
    assert!(said.stderr.contains("--level si"), "{}", said.stderr);
    expect(2, &["check", &history, "--level", "viper/ser"]);
}
