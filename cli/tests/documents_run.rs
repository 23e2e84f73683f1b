//! Every command of the documents runs and ends as they say, or its block says why it is not run.
//!
//! The commands of a page run in one directory, in the order of the page. A block ```` ```console ```` shows output, which must be
//! what the program prints; a line `…` stands for any lines. A command of another block must succeed, unless it ends in
//! `# exit status N`. A comment before a block, in the page's source, can say `<!-- not run: REASON -->`, or
//! `<!-- file: NAME -->`: the block is then written to that file.

#![allow(clippy::print_stderr)] // Counts what was run.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A fenced block, and what the comment before it says.
struct Block {
    line: usize,
    language: String,
    text: String,
    file: Option<String>,
    not_run: Option<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The documents that users read, by their path from the root.
fn pages() -> Vec<String> {
    let mut pages: Vec<String> = ["README.md", "CONTRIBUTING.md", "FINDINGS.md", "SECURITY.md"]
        .map(str::to_owned)
        .to_vec();
    for entry in fs::read_dir(root().join("docs")).expect("docs is a directory") {
        let name = entry.expect("it can be read").file_name();
        let name = name.to_str().expect("UTF-8").to_owned();
        if Path::new(&name).extension().is_some_and(|it| it == "md") {
            pages.push(format!("docs/{name}"));
        }
    }
    pages.sort();
    pages
}

fn blocks(page: &str) -> Vec<Block> {
    let text = fs::read_to_string(root().join(page)).expect("the page is there");
    let comment = |line: &str, what: &str| {
        let inner = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
        inner.strip_prefix(what).map(str::to_owned)
    };
    let (mut blocks, mut open, mut note) = (Vec::<Block>::new(), None, String::new());
    for (number, line) in text.lines().enumerate() {
        let fence = line.trim_start().strip_prefix("```");
        match (open.as_mut(), fence) {
            (None, Some(language)) => {
                open = Some(Block {
                    line: number + 1,
                    language: language.trim().to_owned(),
                    text: String::new(),
                    file: comment(&note, "file: "),
                    not_run: comment(&note, "not run: "),
                });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => {
                block.text += line;
                block.text.push('\n');
            }
            (None, None) => line.trim().clone_into(&mut note),
        }
    }
    assert!(open.is_none(), "{page}: a block does not end");
    blocks
}

/// Replaces what differs from run to run: the time at the end of a line.
fn steady(text: &str) -> Vec<String> {
    let lines = text
        .trim()
        .lines()
        .map(|line| match line.rsplit_once(" · ") {
            Some((rest, _)) => rest.to_owned(),
            None => line.trim_end().to_owned(),
        });
    lines.collect()
}

/// Whether lines are as shown; a shown line `…` stands for any number of lines.
fn is_shown(shown: &[String], printed: &[String]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((first, rest)) if first == "…" => {
            (0..=printed.len()).any(|skipped| is_shown(rest, &printed[skipped..]))
        }
        Some((first, rest)) => printed.first() == Some(first) && is_shown(rest, &printed[1..]),
    }
}

/// The directory of a page, in which the repository's histories are at hand.
fn directory(page: &str) -> PathBuf {
    let name = page.replace(['/', '.'], "-");
    let place = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("documents")
        .join(name);
    let _ = fs::remove_dir_all(&place);
    fs::create_dir_all(&place).expect("a directory can be made");
    let root = root().canonicalize().expect("the repository is there");
    for shared in ["benches", "datasets"] {
        std::os::unix::fs::symlink(root.join(shared), place.join(shared)).expect("a link");
    }
    place
}

/// Runs a command as a shell would; its status, stdout and stderr.
fn shell(command: &str, place: &Path) -> (i32, String, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_kingsnake"));
    let programs = program.parent().expect("it is in a directory");
    let mut path = programs.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let output = Command::new("timeout")
        .args(["300", "sh", "-c", command])
        .current_dir(place)
        .env("PATH", path)
        .env_remove("NO_COLOR")
        .stdin(Stdio::null())
        .output()
        .expect("there is a shell");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    let status = output.status.code().expect("it exits by itself");
    (status, text(output.stdout), text(output.stderr))
}

/// Runs the commands of a block that shows what they print; how many.
fn run_console(block: &Block, place: &Path, at: &str, wrong: &mut Vec<String>) -> usize {
    let mut runs = 0;
    for example in format!("\n{}", block.text).split("\n$ ").skip(1) {
        let (command, shown) = example.split_once('\n').unwrap_or((example, ""));
        let (status, stdout, stderr) = shell(command, place);
        if status > 1 || !is_shown(&steady(shown), &steady(&stdout)) {
            wrong.push(format!(
                "{at}: {command}\nexit status {status}\n{stdout}{stderr}"
            ));
        }
        runs += 1;
    }
    runs
}

/// Runs the commands of a block that must end as they say; how many.
fn run_commands(block: &Block, place: &Path, at: &str, wrong: &mut Vec<String>) -> usize {
    let mut runs = 0;
    for line in block.text.lines().filter(|it| !it.is_empty()) {
        let (command, expected) = match line.split_once("# exit status ") {
            Some((command, status)) => (command, status.trim().parse().expect("a number")),
            None => (line, 0),
        };
        let (status, stdout, stderr) = shell(command, place);
        if status != expected {
            wrong.push(format!(
                "{at}: {command}\nexit status {status}\n{stdout}{stderr}"
            ));
        }
        runs += usize::from(is_command(command));
    }
    runs
}

fn is_command(line: &str) -> bool {
    ["kingsnake ", "./kingsnake ", "$ kingsnake "]
        .iter()
        .any(|it| line.starts_with(it))
}

#[test]
fn every_command_of_the_documents_runs_or_says_why_not() {
    let (mut n_run, mut n_not_run, mut wrong) = (0, 0, Vec::new());
    for page in pages() {
        let place = directory(&page);
        for block in blocks(&page) {
            let at = format!("{page}, line {}", block.line);
            if let Some(file) = &block.file {
                let file = place.join(file);
                fs::create_dir_all(file.parent().expect("a directory")).expect("it can be made");
                fs::write(file, &block.text).expect("a file can be written");
                continue;
            }
            let commands = block.text.lines().filter(|it| is_command(it));
            match (block.not_run.as_deref(), block.language.as_str()) {
                (Some(why), _) => {
                    assert!(!why.is_empty(), "{at}: say why it is not run");
                    n_not_run += commands.count();
                }
                (None, "console") => n_run += run_console(&block, &place, &at, &mut wrong),
                (None, "sh") => n_run += run_commands(&block, &place, &at, &mut wrong),
                // Programs and settings of other languages have tests of their own.
                (None, _) if commands.count() == 0 => {}
                (None, _) => wrong.push(format!("{at}: call the block sh or console")),
            }
        }
        let _ = fs::remove_dir_all(&place);
    }
    eprintln!("commands of the documents: {n_run} run, {n_not_run} not run");
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(n_run >= 40, "only {n_run} commands run");
}

/// The links of a page, those in code left out.
fn links(text: &str) -> Vec<&str> {
    let mut is_code = false;
    let mut links = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if !is_code {
            // What stands in backticks is no link.
            for prose in line.split('`').step_by(2) {
                let targets = prose.split("](").skip(1);
                links.extend(targets.filter_map(|it| it.split(')').next()));
            }
        }
    }
    links
}

/// The anchor that a forge and the book give a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = kept.chars().filter_map(|it| match it {
        ' ' => Some('-'),
        _ if it.is_alphanumeric() || it == '-' || it == '_' => Some(it),
        _ => None,
    });
    kept.collect()
}

#[test]
fn every_link_of_the_documents_leads_somewhere() {
    let mut wrong = Vec::new();
    for page in pages() {
        let path = root().join(&page);
        let text = fs::read_to_string(&path).expect("the page is there");
        for link in links(&text) {
            if link.starts_with("http") || link.starts_with("mailto:") {
                continue;
            }
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => path.clone(),
                file => path.parent().expect("a directory").join(file),
            };
            let text = fs::read_to_string(&target).unwrap_or_default();
            let mut headings = text.lines().filter(|it| it.starts_with('#'));
            let has_place = place.is_empty() || headings.any(|it| anchor(it) == place);
            if !target.exists() || !has_place {
                wrong.push(format!("{page}: {link}"));
            }
        }
    }
    assert!(wrong.is_empty(), "links that lead nowhere: {wrong:#?}");
}

#[test]
fn every_page_is_in_the_book_once() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).expect("a summary");
    let listed: Vec<&str> = links(&summary);
    let listed_once: BTreeSet<&str> = listed.iter().copied().collect();
    assert_eq!(listed.len(), listed_once.len(), "{listed:?}");
    let pages = pages();
    let pages = pages.iter().filter_map(|it| it.strip_prefix("docs/"));
    let pages: BTreeSet<&str> = pages.filter(|it| *it != "SUMMARY.md").collect();
    assert_eq!(listed_once, pages);
}

#[test]
fn the_page_of_commands_has_every_command_and_no_other() {
    let (_, help, _) = shell("kingsnake --help", &root());
    let listed = help.split("Commands:\n").nth(1).expect("a list");
    let listed = listed.split("\n\n").next().expect("it ends");
    let listed = listed.lines().filter(|it| !it.starts_with("    "));
    let listed: Vec<&str> = listed
        .filter_map(|it| it.split_whitespace().next())
        .collect();
    let page = fs::read_to_string(root().join("docs/commands.md")).expect("the page is there");
    let rows = page.lines().filter_map(|it| it.strip_prefix("| `"));
    let rows: Vec<&str> = rows.filter_map(|it| it.split('`').next()).collect();
    assert_eq!(rows, listed);
}
