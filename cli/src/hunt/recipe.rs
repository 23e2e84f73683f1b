//! A hunt's file: databases, levels, workloads, faults and repetitions.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::Parser;
use kingsnake_collect::{SCRIPTS, Script};
use serde::Deserialize;

use crate::args::Typed;

/// The name for all scripts that come with the program.
const CLASSIC: &str = "classic";
/// Each database is compared with the others, so their number is bounded.
const MOST_DATABASES: usize = 1_000;

/// A hunt.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HuntRecipe {
    /// The title of the page.
    pub name: String,
    /// Transactions per cell.
    #[serde(default = "txns")]
    pub txns: u64,
    /// Sessions per cell.
    #[serde(default = "sessions")]
    pub sessions: u16,
    /// Time limits in seconds of a collection and of its check.
    #[serde(default = "seconds")]
    pub seconds: f64,
    /// Number of seeds.
    #[serde(default = "seeds")]
    pub seeds: u64,
    /// The first seed.
    #[serde(default = "first_seed")]
    pub first_seed: u64,
    /// Seconds between two faults.
    #[serde(default = "every")]
    pub every: f64,
    /// The databases.
    pub database: Vec<HuntTarget>,
}

/// One database of a hunt.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HuntTarget {
    /// The adapter.
    pub name: String,
    /// Start a private server.
    #[serde(default)]
    pub start: bool,
    /// Nodes of a private cluster.
    #[serde(default = "one")]
    pub nodes: u8,
    /// The server's program, in place of the installed one.
    pub binary: Option<String>,
    /// Where read-only transactions run: primary, standby or any.
    pub reads: Option<String>,
    /// Number of keys [default: the workload's].
    pub keys: Option<u32>,
    /// The addresses, in place of `start`.
    #[serde(default)]
    pub url: Vec<String>,
    /// Levels [default: all of the adapter].
    #[serde(default)]
    pub isolation: Vec<String>,
    /// Workloads.
    #[serde(default)]
    pub workload: Vec<String>,
    /// Scripts, by name or file; `classic` is all that come with the program.
    #[serde(default)]
    pub script: Vec<String>,
    /// Operations per transaction, for workloads that do not fix it.
    #[serde(default)]
    pub ops: Vec<u32>,
    /// Faults; several for one cell are separated by commas; `none` is none.
    #[serde(default = "none")]
    pub fault: Vec<String>,
    /// Source of the version order.
    pub version_order: Option<String>,
    /// Levels to check each history at, besides the promised one.
    #[serde(default = "ser")]
    pub check: Vec<String>,
    /// Settings in place of the adapter's own.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
}

fn txns() -> u64 {
    2_000
}
fn sessions() -> u16 {
    8
}
fn seconds() -> f64 {
    30.0
}
fn seeds() -> u64 {
    3
}
fn first_seed() -> u64 {
    1
}
fn every() -> f64 {
    0.5
}
fn one() -> u8 {
    1
}
fn ser() -> Vec<String> {
    vec!["ser".to_owned()]
}
fn none() -> Vec<String> {
    vec!["none".to_owned()]
}

/// Reads the file; an error states the problem and its position.
pub fn read(path: &Path) -> Result<HuntRecipe> {
    let text = kingsnake_datasets::bounded::read_text(path, crate::input::MOST_TEXT)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let mut recipe: HuntRecipe =
        toml::from_str(&text).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
    match recipe.database.len() {
        0 => bail!("{}: there is no [[database]]", path.display()),
        1..=MOST_DATABASES => {}
        n => bail!(
            "{}: {n} [[database]], at most {MOST_DATABASES}",
            path.display()
        ),
    }
    for database in &mut recipe.database {
        if let Some(at) = database.script.iter().position(|it| it == CLASSIC) {
            let names = SCRIPTS.iter().map(|it| it.name.to_owned());
            database.script.splice(at..=at, names);
        }
        if database.workload.is_empty() && database.script.is_empty() {
            bail!(
                "{}: {} has neither a workload nor a script",
                path.display(),
                database.name
            );
        }
        // Reject a bad script before the first collection.
        for script in &database.script {
            Script::open(script).with_context(|| path.display().to_string())?;
        }
    }
    for level in recipe.database.iter().flat_map(|it| &it.check) {
        // Reject an unknown level before the first collection.
        let line = ["kingsnake", "check", "h", "--level", level];
        Typed::try_parse_from(line).with_context(|| format!("{}: check", path.display()))?;
    }
    Ok(recipe)
}
