//! docs/levels.md says what the table of the lattice says. Run with `KINGSNAKE_BLESS=1` to write it again.

use std::fmt::Write;

use kingsnake_history::definition::{DEFINITIONS, Definition};
use kingsnake_history::lattice::{ANOMALIES, ANOMALY_ALIASES, MODELS, boundary};
use kingsnake_history::level::{Level, Times};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/levels.md");

const OPENING: &str = "# Levels

This page is written from the program's tables (`solver/history/src/level.rs`, `solver/history/src/lattice.rs`,
`cli/src/refused.rs`) and compared with them by tests. [Definitions](theory.md) says what each level means.

## Levels

What `--level` takes, in `check`, `explain`, `verify`, `collect --check`, the library and Python, and what `--expect`
takes of the levels that are models. Case does not matter, and words may be joined by hyphens, underscores or spaces.
`auto` asks for all that fit. *By default* is what is checked where no other switch is given: `--session-order off`
drops session order where it is a switch. *Implies* names the weaker levels that every history of this level satisfies,
each by default, without those that another one of them implies.

";

const DEFINITIONS_OPENING: &str = "
## Whose definition

Papers use one name for different levels. A level named alone is the one that [Definitions](theory.md) defines.
`PAPER/LEVEL` asks for the definition of that paper, in every command that takes `--level`; it fixes `--session-order`,
`--real-time` and `--times`, and leaves `--clock-drift` open. The table is `solver/history/src/definition.rs`.

| asked as | is | differs from the level of that name here in |
| --- | --- | --- |
";

const DEFINITIONS_CLOSING: &str = "
Viper's four levels are a chain: strong SI, strong session SI, GSI, SI. Ours are none, because `strong-session-si` does
not look at the clock and `gsi` keeps session order. Elle's names are those of the next tables; Emme's levels are `pl-*`
([recorded versions](white-box.md)).
";

const MODELS_OPENING: &str = "
## Models

`kingsnake check --all` and `--level auto` list every class of anomaly that a history shows, and from this table the
models that they rule out: the weakest ones (`not`), and the stronger ones that imply them (`also_not`). `--expect
MODEL,…` and `--anomalies A,…` set the exit status: 1 if an expected model is ruled out, or if one of the anomalies or a
worse one is there.

Names are Elle's. Adya's and SQL's names, and this program's levels, are aliases; case does not matter, and spaces are
as good as hyphens.
";

/// The levels that a level implies, with every switch as it is by default.
fn implied(level: Level) -> Vec<Level> {
    let plain = |it: Level| match it {
        Level::Linearizable | Level::AsRecorded | Level::Pl(_) => None,
        _ => it.spec(None),
    };
    let implies = |one: Level, other: Level| match (plain(one), plain(other)) {
        (Some(a), Some(b)) => a != b && a.implies(b),
        _ => false,
    };
    let all: Vec<Level> = Level::ALL
        .into_iter()
        .filter(|&it| implies(level, it))
        .collect();
    let is_direct = |it: &Level| !all.iter().any(|&between| implies(between, *it));
    all.iter().copied().filter(is_direct).collect()
}

fn levels() -> String {
    let mut out = String::from(
        "| level | also called | by default | session order | times | implies |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    for level in Level::ALL {
        let spec = level.spec(None).expect("every level has a default");
        let words = match level {
            Level::Linearizable => "linearizability of registers".to_owned(),
            Level::Pl(_) => "the recorded versions".to_owned(),
            _ => spec.to_string(),
        };
        let sessions = match (level.spec(Some(true)), level.spec(Some(false))) {
            (Some(_), Some(_)) => "a switch",
            (Some(_), None) => "always",
            _ => "never",
        };
        let times = if spec.real_time.is_some() {
            "needed"
        } else {
            ""
        };
        let implied: Vec<&str> = implied(level).into_iter().map(Level::name).collect();
        let _ = writeln!(
            out,
            "| `{level}` | {} | {words} | {sessions} | {times} | {} |",
            level.names()[1..].join(", "),
            implied.join(", ")
        );
    }
    out
}

fn definitions() -> String {
    let row = |it: &Definition| {
        let sessions = if it.session_order { "on" } else { "off" };
        let times = match it.times {
            Times::Bounds => "",
            Times::Exact => " --times exact",
        };
        format!(
            "| `{}` | `{} --session-order {sessions}{times}` | {} |\n",
            it.name, it.level, it.about
        )
    };
    DEFINITIONS.iter().map(row).collect()
}

fn document() -> String {
    let mut out = format!(
        "{OPENING}{}{DEFINITIONS_OPENING}{}{DEFINITIONS_CLOSING}{MODELS_OPENING}",
        levels(),
        definitions()
    );
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
