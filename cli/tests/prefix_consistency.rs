//! `--level pc` gives the expected verdicts of ../shared/spec/weak-verdicts.tsv, its `pc` column.

mod run;

use std::path::Path;

use run::run;

#[test]
fn every_row_of_the_expected_verdicts_is_answered_at_pc() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let table = root.join("../shared/spec/weak-verdicts.tsv");
    let Ok(table) = std::fs::read_to_string(&table) else {
        eprintln!("SKIPPED: there is no {}", table.display());
        return;
    };
    let (mut n_checked, mut n_absent, mut n_ordered, mut wrong) = (0, 0, 0, Vec::new());
    for line in table.lines() {
        let mut columns = line.split('\t');
        let Some(name) = columns.next() else { continue };
        let Some(expected) = columns.find_map(|it| it.strip_prefix("pc=")) else {
            continue;
        };
        let path = if name.starts_with("shared/") {
            root.join("..").join(name)
        } else {
            root.join(name)
        };
        if !path.exists() {
            n_absent += 1;
            continue;
        }
        // The expected verdicts are those of the reads alone: they say nothing of a version order.
        let text = std::fs::read(&path).unwrap_or_default();
        if String::from_utf8_lossy(&text).contains("\"version_order\"") {
            n_ordered += 1;
            continue;
        }
        let status = i32::from(expected == "0");
        let path = path.to_str().expect("the path is UTF-8");
        let said = run(&["check", path, "--level", "pc", "-q", "--timeout", "120"]);
        n_checked += 1;
        if said.status != status {
            wrong.push(format!(
                "{name}: expected {status}, not {}: {}",
                said.status, said.stderr
            ));
        }
    }
    if n_absent > 0 {
        println!("SKIPPED: {n_absent} rows of weak-verdicts.tsv whose files are not here");
    }
    println!("{n_checked} rows checked; left out: {n_ordered} whose files give a version order");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
