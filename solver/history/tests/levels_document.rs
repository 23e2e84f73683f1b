//! docs/levels.md says what the table of the lattice says. Run with `KINGSNAKE_BLESS=1` to write it again.

use std::fmt::Write;

use kingsnake_history::lattice::{ANOMALIES, ANOMALY_ALIASES, MODELS, boundary};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/levels.md");

const OPENING: &str = "# Models and anomalies

This page is written from one table (`solver/history/src/lattice.rs`) and held to it by a test. `kingsnake check --all`
and `--level auto` list every class of anomaly that a history shows, and from this table the models that they rule out:
the weakest ones (`not`), and the stronger ones that imply them (`also_not`). `--expect MODEL,…` and `--anomalies A,…`
set the exit status: 1 if an expected model is ruled out, or if one of the anomalies or a worse one is there.

Names are Elle's. Adya's and SQL's names, and this program's levels, are aliases; case does not matter, and spaces are
as good as hyphens.

## Models
";

fn document() -> String {
    let mut out = String::from(OPENING);
    out.push_str("\n| model | also called | implies directly |\n| --- | --- | --- |\n");
    for model in MODELS {
        let (aliases, implies) = (model.aliases.join(", "), model.implies.join(", "));
        let _ = writeln!(out, "| {} | {aliases} | {implies} |", model.name);
    }
    out.push_str(
        "\n## Anomalies\n\nA cycle's class follows from its edges: `G0` is ww only, `G1c` has wr as well, `G-single` exactly one rw,\n\
         `G-nonadjacent` several rw but no two in a row, `G2` two in a row. `-item` says that no rw edge rests on a range query,\n\
         `-process` that the cycle needs session order, `-realtime` that it needs the clock.\n\n\
         | anomaly | also called | implies | weakest models ruled out | stronger ones |\n| --- | --- | --- | --- | --- |\n",
    );
    for anomaly in ANOMALIES {
        let found = boundary([anomaly.name]);
        let aliases = ANOMALY_ALIASES.iter().filter(|it| it.1 == anomaly.name);
        let aliases: Vec<&str> = aliases.map(|it| it.0).collect();
        let not: Vec<&str> = found.not.iter().copied().collect();
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} |",
            anomaly.name,
            aliases.join(", "),
            anomaly.implies.join(", "),
            not.join(", "),
            found.also_not.len()
        );
    }
    out
}

#[test]
fn the_document_of_the_lattice_is_the_table() {
    let document = document();
    let written = std::fs::read_to_string(PATH).expect("there is a document");
    // The program has a table of its own after these.
    let (written, rest) = written.split_once("\n## Outputs").expect("the outputs");
    if std::env::var_os("KINGSNAKE_BLESS").is_some() {
        let whole = format!("{document}\n## Outputs{rest}");
        std::fs::write(PATH, whole).expect("the document can be written");
        return;
    }
    assert!(written == document, "run this test with KINGSNAKE_BLESS=1");
}
