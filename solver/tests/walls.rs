//! The walls between the crates (docs/ARCHITECTURE.md), read from their manifests: which crate may know which.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

type Graph = BTreeMap<String, BTreeSet<String>>;

/// Every manifest below a folder.
fn manifests(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the entry can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && !name.starts_with('.') && name != "target" && name != "out" {
            manifests(&path, found);
        } else if name == "Cargo.toml" {
            found.push(path);
        }
    }
}

/// The name of a manifest's crate and the crates that it links: neither those of its tests nor of its build script.
fn read(manifest: &str) -> Option<(String, BTreeSet<String>)> {
    let (mut section, mut name, mut links) = ("", None, BTreeSet::new());
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line.trim();
        } else if let Some((key, value)) = line.split_once('=') {
            let key = key.split('.').next().unwrap_or_default().trim();
            if section == "[package]" && key == "name" {
                name = Some(value.trim().trim_matches('"').to_owned());
            }
            let is_linked = section == "[dependencies]" || section.ends_with(".dependencies]");
            if is_linked && section != "[workspace.dependencies]" {
                links.insert(key.to_owned());
            }
        }
    }
    name.map(|name| (name, links))
}

fn graph() -> Graph {
    let mut found = Vec::new();
    manifests(Path::new(ROOT), &mut found);
    let texts = found
        .iter()
        .map(|path| fs::read_to_string(path).expect("a manifest can be read"));
    texts.filter_map(|text| read(&text)).collect()
}

/// The crates that one knows, directly or through others.
fn known(graph: &Graph, name: &str) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let mut waiting = vec![name.to_owned()];
    while let Some(next) = waiting.pop() {
        for link in graph.get(&next).into_iter().flatten() {
            if seen.insert(link.clone()) {
                waiting.push(link.clone());
            }
        }
    }
    seen
}

/// Of these, the crates of this repository, without their prefix.
fn ours(links: &BTreeSet<String>) -> Vec<&str> {
    let ours = links.iter();
    ours.filter_map(|it| it.strip_prefix("kingsnake-"))
        .collect()
}

fn expect_unknown(graph: &Graph, name: &str, others: &[&str]) {
    let known = known(graph, name);
    for other in others {
        assert!(!known.contains(*other), "{name} must not know {other}");
    }
}

#[test]
fn history_is_below_everything_and_certify_knows_only_it() {
    let graph = graph();
    assert!(graph.len() > 15, "{graph:?}");
    assert_eq!(ours(&known(&graph, "kingsnake-context")), [""; 0]);
    assert_eq!(ours(&known(&graph, "kingsnake-history")), ["context"]);
    let certify = known(&graph, "kingsnake-certify");
    assert_eq!(ours(&certify), ["context", "history"]);
    let others = graph["kingsnake-certify"].iter();
    let others: Vec<&String> = others.filter(|it| !it.starts_with("kingsnake")).collect();
    assert_eq!(others, ["petgraph", "rustc-hash", "thiserror"]);
}

#[test]
fn graphs_devices_and_back_ends_know_no_history() {
    let graph = graph();
    for name in ["kingsnake-graph", "kingsnake-gpu", "kingsnake-encodings"] {
        expect_unknown(&graph, name, &["kingsnake-history", "kingsnake-relate"]);
    }
}

#[test]
fn the_watcher_knows_graphs_and_no_history() {
    let graph = graph();
    let watch = known(&graph, "kingsnake-watch");
    assert_eq!(ours(&watch), ["context", "graph"]);
}

#[test]
fn the_prover_and_the_teller_do_not_know_each_other() {
    let graph = graph();
    expect_unknown(
        &graph,
        "kingsnake-refute",
        &["kingsnake-tell", "kingsnake-certify"],
    );
    expect_unknown(
        &graph,
        "kingsnake-tell",
        &["kingsnake-refute", "kingsnake-relate", "kingsnake-graph"],
    );
}

#[test]
fn what_a_user_links_holds_no_laboratory_study_collector_or_command_line() {
    let graph = graph();
    let outside = [
        "kingsnake-lab",
        "kingsnake-studies",
        "kingsnake-collect",
        "kingsnake-cli",
    ];
    for name in ["kingsnake", "kingsnake-solver", "kingsnake-datasets"] {
        expect_unknown(&graph, name, &outside);
    }
    expect_unknown(&graph, "kingsnake-cli", &["kingsnake-lab"]);
    expect_unknown(
        &graph,
        "kingsnake-solver",
        &[
            "kingsnake-encodings",
            "kingsnake-gpu",
            "kingsnake-datasets",
            "kingsnake-tell",
        ],
    );
}

#[test]
fn the_parsers_never_reach_a_client_of_a_database() {
    let graph = graph();
    let clients = ["fjall", "mysql", "postgres", "redb", "rusqlite", "ureq"];
    let collect = known(&graph, "kingsnake-collect");
    for client in clients {
        assert!(collect.contains(client), "{client} is no client any more");
    }
    expect_unknown(&graph, "kingsnake-datasets", &clients);
    expect_unknown(&graph, "kingsnake", &clients);
    assert!(
        known(&graph, "kingsnake-record")
            .iter()
            .all(|it| !it.starts_with("kingsnake"))
    );
}

#[test]
fn a_manifest_that_breaks_a_wall_is_noticed() {
    let mut graph = graph();
    let certify = graph.get_mut("kingsnake-certify").expect("it is there");
    certify.insert("kingsnake-relate".to_owned());
    assert!(known(&graph, "kingsnake-certify").contains("kingsnake-graph"));
    let manifest = "[package]\nname = \"a\"\n[dependencies]\nb.workspace = true\n[dev-dependencies]\nc = \"1\"\n";
    let (name, links) = read(manifest).expect("it has a name");
    assert_eq!((name.as_str(), links.len()), ("a", 1));
}
