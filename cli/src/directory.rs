//! `--directory`: writes every anomaly to a directory, as Elle does: a text per class, a picture per anomaly, a page
//! per list whose reads disagree, and an index.
//!
//! Everything is written to a directory beside it, which is then renamed, so that it is never seen half-written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use kingsnake_refute::widest_spec;
use kingsnake_solver::certify::Meaning;
use kingsnake_solver::model::{History, KeyId, Op, Status, TxnId, ValueId};
use kingsnake_solver::verdict::{Counterexample, LocalAnomaly};
use kingsnake_tell::{AnomalyClass, Labels, story_by};
use kingsnake_text::{Frame, page};
use maud::{Markup, html};

use crate::anomalies::FoundAnomalies;
use crate::components::{Component, components};
use crate::picture;
use crate::voice::{count, printable_lines};

/// The file that identifies an earlier result.
const INDEX: &str = "index.html";
/// Its content.
const MARK: &str = "kingsnake-directory";
/// Further reads of a list are only counted.
const MOST_READS: usize = 1_000;

/// Further components are only counted.
const MOST_COMPONENTS: usize = 100;

/// The head of the index.
pub struct Head {
    /// The verdict in one line.
    pub verdict: String,
    /// The exit status.
    pub status: u8,
    /// The command that reproduces the run.
    pub command: String,
}

/// Refuses a directory that contains anything but an earlier result.
pub fn expect_usable(path: &Path) -> Result<()> {
    if !path.exists() {
        return crate::output::expect_parent(path);
    }
    let entries = fs::read_dir(path)
        .with_context(|| format!("--directory {}: not a directory", path.display()))?;
    let is_earlier = || {
        let text =
            kingsnake_datasets::bounded::read_regular(&path.join(INDEX), crate::input::MOST_TEXT);
        text.is_ok_and(|text| text.contains(MARK))
    };
    if entries.count() > 0 && !is_earlier() {
        bail!(
            "--directory {}: it is not empty, and holds no earlier result; name another",
            path.display()
        );
    }
    Ok(())
}

/// Writes everything.
pub fn write(
    path: &Path,
    meaning: &Meaning<'_>,
    found: &FoundAnomalies,
    head: &Head,
) -> Result<()> {
    let trouble = || format!("cannot write {}", path.display());
    let name = path
        .file_name()
        .map_or("anomalies".into(), |it| it.to_string_lossy());
    let process = std::process::id();
    let aside = path.with_file_name(format!(".{name}.{process}.new"));
    let old = path.with_file_name(format!(".{name}.{process}.old"));
    kingsnake_datasets::note_pending(&aside);
    let written = fill(&aside, meaning, found, head);
    if written.is_err() {
        let _ = fs::remove_dir_all(&aside);
    }
    written.with_context(trouble)?;
    if path.exists() {
        fs::rename(path, &old).with_context(trouble)?;
    }
    fs::rename(&aside, path).with_context(trouble)?;
    if old.exists() {
        fs::remove_dir_all(&old).with_context(trouble)?;
    }
    Ok(())
}

fn fill(path: &Path, meaning: &Meaning<'_>, found: &FoundAnomalies, head: &Head) -> Result<()> {
    fs::create_dir(path)?;
    let history = meaning.history();
    for class in &found.anomalies.classes {
        fs::write(
            path.join(format!("{}.txt", class.name)),
            class_text(meaning, class),
        )?;
        let pictures = path.join(class.name);
        fs::create_dir(&pictures)?;
        for (at, example) in class.examples.iter().enumerate() {
            let told = story_by(meaning, widest_spec(history), example);
            let labels = Labels::new(history, &told.txns);
            let scene = picture::scene(history, &labels, example);
            fs::write(
                pictures.join(format!("{at}.svg")),
                picture::svg::document(&scene),
            )?;
        }
    }
    let components = components(found);
    if !components.is_empty() {
        fs::create_dir(path.join("components"))?;
    }
    for (at, part) in components.iter().take(MOST_COMPONENTS).enumerate() {
        let labels = Labels::new(history, &part.txns);
        let scene = picture::component_scene(history, &labels, &part.txns, &part.steps);
        let file = path.join("components").join(format!("{at}.svg"));
        fs::write(file, picture::svg::document(&scene))?;
    }
    let lists = disagreeing(found);
    if !lists.is_empty() {
        fs::create_dir(path.join("lists"))?;
    }
    let mut pages: BTreeMap<String, KeyId> = BTreeMap::new();
    for key in lists {
        let file = file_name(&history.key_name(key), &pages);
        fs::write(path.join("lists").join(&file), list_page(history, key))?;
        pages.insert(file, key);
    }
    fs::write(
        path.join(INDEX),
        index(history, found, head, &components, &pages),
    )?;
    Ok(())
}

/// The stories of a class.
fn class_text(meaning: &Meaning<'_>, class: &AnomalyClass) -> String {
    let spec = widest_spec(meaning.history());
    let mut out = format!("{}: {} found\n", class.name, class.count);
    if class.examples.len() < class.count {
        let _ = writeln!(out, "The first {} are listed.", class.examples.len());
    }
    for (at, example) in class.examples.iter().enumerate() {
        let told = story_by(meaning, spec, example);
        let _ = write!(out, "\n#{at} {}\n", told.name.short);
        let mut text = String::new();
        for line in &told.lines {
            let _ = writeln!(text, "  {}{}", "  ".repeat(line.depth), line.text);
        }
        for operations in &told.operations {
            let _ = writeln!(text, "    {operations}");
        }
        for (label, full) in told.legend_of_words() {
            let _ = writeln!(text, "    {label}: {full}");
        }
        out.push_str(&printable_lines(&text));
    }
    out
}

/// The lists whose reads disagree.
fn disagreeing(found: &FoundAnomalies) -> BTreeSet<KeyId> {
    let examples = found.anomalies.classes.iter().flat_map(|it| &it.examples);
    let findings = examples.filter_map(|it| match it {
        Counterexample::Local(findings) => Some(findings),
        _ => None,
    });
    let about_lists = [
        LocalAnomaly::IncompatibleOrder,
        LocalAnomaly::DuplicateElements,
    ];
    findings
        .flatten()
        .filter(|it| about_lists.contains(&it.anomaly))
        .map(|it| it.key)
        .collect()
}

/// A name that every file system accepts, different from those of other lists.
fn file_name(key: &str, taken: &BTreeMap<String, KeyId>) -> String {
    let plain = |letter: char| match letter {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' => letter,
        _ => '_',
    };
    let plain: String = key.chars().take(60).map(plain).collect();
    let numbers = std::iter::once(String::new()).chain((2..).map(|it| format!("-{it}")));
    let mut names = numbers.map(|number| format!("{plain}{number}.html"));
    names
        .find(|name| !taken.contains_key(name))
        .unwrap_or(plain)
}

/// One list that was read, and its reader.
struct Read<'h> {
    items: &'h [ValueId],
    readers: Vec<TxnId>,
}

/// Every list read from a key, the longest first; in each the first element that differs is coloured.
fn list_page(history: &History, key: KeyId) -> String {
    let mut reads: BTreeMap<&[ValueId], Vec<TxnId>> = BTreeMap::new();
    let txns = history.txns();
    for txn in txns.filter(|&txn| history.status(txn) != Status::Aborted) {
        for &op in history.ops(txn) {
            if let Op::ReadList { key: of, list } = op
                && of == key
            {
                let readers = reads.entry(history.list(list)).or_default();
                if readers.last() != Some(&txn) {
                    readers.push(txn);
                }
            }
        }
    }
    let mut reads: Vec<Read<'_>> = reads
        .into_iter()
        .map(|(items, readers)| Read { items, readers })
        .collect();
    reads.sort_by_key(|it| std::cmp::Reverse(it.items.len()));
    let longest: &[ValueId] = reads.first().map_or(&[], |it| it.items);
    let n_more = reads.len().saturating_sub(MOST_READS);
    let name = history.key_name(key);
    let body = html! {
        header { h1 { "Reads of list " code { (name) } } p.soft { "The longest first. In each, the first element that the longest does not have there, or that is there twice, is coloured." } }
        table { tbody { @for read in reads.iter().take(MOST_READS) {
            tr {
                th scope="row" { (readers(history, &read.readers)) }
                td { (items(history, longest, read.items)) }
            }
        } } }
        @if n_more > 0 { p { "And " (count(n_more, "other read")) "." } }
        p { a href="../index.html" { "All anomalies" } }
    };
    let frame = Frame {
        title: &format!("Reads of list {name}"),
        mood: "violated",
        style: STYLE,
        script: "",
    };
    page(frame, &body)
}

const STYLE: &str = "th,td{padding:0 .9em .2em 0;vertical-align:top}td code{margin-right:.35em}.deviates{background:#c62828;color:#fff;border-radius:3px;padding:0 .25em}";

fn readers(history: &History, readers: &[TxnId]) -> String {
    let names = readers.iter().take(3).map(|&txn| history.txn_name(txn));
    let mut names = names.collect::<Vec<_>>().join(", ");
    if readers.len() > 3 {
        let _ = write!(names, " and {} more", readers.len() - 3);
    }
    names
}

/// Where a list first differs from the longest one, or repeats an element.
fn deviation(longest: &[ValueId], items: &[ValueId]) -> Option<usize> {
    let mut seen = BTreeSet::new();
    let differs = |(at, item): (usize, &ValueId)| longest.get(at) != Some(item);
    let twice = items.iter().position(|item| !seen.insert(*item));
    let other = items.iter().enumerate().position(differs);
    match (twice, other) {
        (Some(twice), Some(other)) => Some(twice.min(other)),
        (twice, other) => twice.or(other),
    }
}

fn items(history: &History, longest: &[ValueId], items: &[ValueId]) -> Markup {
    let first = deviation(longest, items);
    html! {
        @if items.is_empty() { span.soft { "empty" } }
        @for (at, &item) in items.iter().enumerate() {
            @if first == Some(at) { code.deviates title="the first that deviates" { (history.value_name(item)) } " " }
            @else { code { (history.value_name(item)) } " " }
        }
    }
}

fn index(
    history: &History,
    found: &FoundAnomalies,
    head: &Head,
    components: &[Component],
    lists: &BTreeMap<String, KeyId>,
) -> String {
    let list = |names: &kingsnake_solver::lattice::Names| {
        let names: Vec<&str> = names.iter().copied().collect();
        names.join(", ")
    };
    let mood = match head.status {
        0 => "satisfied",
        1 => "violated",
        _ => "unknown",
    };
    let body = html! {
        header {
            h1 { (head.verdict) }
            @if !found.boundary.not.is_empty() { p { "Ruled out: " (list(&found.boundary.not)) "." } }
            @if !found.anomalies.is_complete { p.warning { "There may be more: the search stopped at its limit." } }
        }
        section #(MARK) {
            h2 { @if found.anomalies.classes.is_empty() { "No anomaly" } @else { "Anomalies, the worst first" } }
            ul { @for class in &found.anomalies.classes {
                li {
                    a href={ (class.name) ".txt" } { (class.name) } " × " (class.count) ": "
                    @for at in 0..class.examples.len().min(20) { a href={ (class.name) "/" (at) ".svg" } { (at) } " " }
                    @if class.examples.len() > 20 { "… in " a href={ (class.name) "/" } { (class.name) "/" } }
                }
            } }
        }
        @if !components.is_empty() {
            section {
                h2 { "Components: cycles that share transactions" }
                ul { @for (at, part) in components.iter().take(MOST_COMPONENTS).enumerate() {
                    li {
                        a href={ "components/" (at) ".svg" } { (count(part.n_txns, "transaction")) }
                        @if part.n_txns > part.txns.len() { ", of which " (part.txns.len()) " are drawn" }
                    }
                } }
                @if components.len() > MOST_COMPONENTS { p { "And " (count(components.len() - MOST_COMPONENTS, "smaller component")) "." } }
            }
        }
        @if !lists.is_empty() {
            section {
                h2 { "Lists whose reads disagree" }
                ul { @for (file, key) in lists { li { a href={ "lists/" (file) } { (history.key_name(*key)) } } } }
            }
        }
        section { h2 { "The run" } pre.command { code { (head.command) } } }
    };
    let frame = Frame {
        title: &head.verdict,
        mood,
        style: "",
        script: "",
    };
    page(frame, &body)
}
