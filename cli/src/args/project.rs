//! Settings of a project: the table `[check]` of kingsnake.toml in the working directory, by the names of the long switches.
//!
//! The file may come from anyone: it starts no program, and writes only below the working directory.
//!
//! The command line overrides the file. Child processes of a check do not read it again: they get its settings as arguments.

use std::ffi::OsString;
use std::path::{Component, Path};

use clap::ArgMatches;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use toml::{Table, Value};

/// The file.
const FILE: &str = "kingsnake.toml";

/// Switches whose values are written.
const WRITES: [&str; 12] = [
    "certificate",
    "code-quality",
    "directory",
    "dot",
    "edn",
    "json",
    "junit",
    "out",
    "proof",
    "report",
    "sarif",
    "svg",
];
/// Switches that start programs, whatever their value.
const STARTS: [&str; 2] = ["on", "slurm-arg"];

/// Whether a word of a command line names a file or a directory that is written.
pub fn is_written(word: &str) -> bool {
    let name = word.strip_prefix("--").map(|it| it.split('=').next());
    name.flatten().is_some_and(|it| WRITES.contains(&it))
}

/// Why a value is taken from a command line only.
fn refusal(name: &str, value: &str) -> Option<String> {
    if STARTS.contains(&name) || name == "backend" && value.contains("exec:") {
        return Some(format!(
            "{name} = {value:?} starts a program; type --{name} instead"
        ));
    }
    let is_outside = WRITES.contains(&name) && value != "-" && !stays_here(Path::new(value));
    is_outside.then(|| {
        format!("{name} = {value:?} is written outside of this directory, or through a link; type --{name} instead")
    })
}

/// Whether a path is below the working directory, without links that lead elsewhere.
fn stays_here(path: &Path) -> bool {
    let is_plain = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    path.components().all(is_plain) && !path.ancestors().any(Path::is_symlink)
}

/// The arguments that the project's file adds to a command line of `check`, if the file exists.
pub fn settings(
    matches: &ArgMatches,
    command: fn() -> clap::Command,
) -> Result<Vec<String>, clap::Error> {
    let Some(("check", typed)) = matches.subcommand() else {
        return Ok(Vec::new());
    };
    let is_told = [matches, typed]
        .iter()
        .any(|it| matches!(it.try_get_one::<bool>("leash"), Ok(Some(true))));
    if is_told || !Path::new(FILE).exists() {
        return Ok(Vec::new());
    }
    let text = kingsnake_datasets::bounded::read_regular(Path::new(FILE), crate::input::MOST_TEXT)
        .map_err(|error| wrong(&error.to_string()))?;
    let is_typed = |id: &str| typed.value_source(id) == Some(ValueSource::CommandLine);
    let command = command();
    let check = command.find_subcommand("check");
    words(&text, check.unwrap_or(&command), is_typed).map_err(|error| wrong(&error))
}

/// The command line with these arguments inserted after the command's name.
pub fn completed(line: &[OsString], words: &[String]) -> Vec<OsString> {
    let place = line
        .iter()
        .position(|it| it == "check")
        .map_or(1, |it| it + 1);
    let mut whole = line.to_vec();
    whole.splice(place..place, words.iter().map(OsString::from));
    whole
}

fn wrong(what: &str) -> clap::Error {
    clap::Error::raw(ErrorKind::InvalidValue, format!("{FILE}: {what}\n"))
}

/// Tests: reads a file's text as for a check with a history and no options, and parses the resulting command line.
#[cfg(test)]
pub fn read(text: &str, command: &mut clap::Command) -> Result<ArgMatches, clap::Error> {
    let check = command.find_subcommand("check").unwrap_or(command);
    let words = words(text, check, |_| false).map_err(|error| wrong(&error))?;
    let line = ["kingsnake", "check", "h"].map(OsString::from);
    command.try_get_matches_from_mut(completed(&line, &words))
}

fn words(
    text: &str,
    check: &clap::Command,
    is_typed: impl Fn(&str) -> bool,
) -> Result<Vec<String>, String> {
    let file: Table = text.parse().map_err(|error| format!("{error}"))?;
    let mut words = Vec::new();
    for (table, settings) in &file {
        let Some(settings) = settings.as_table().filter(|_| table == "check") else {
            return Err(format!(
                "there is no setting {table}; write the switches of `kingsnake check` under [check]"
            ));
        };
        for (name, value) in settings {
            let known = check
                .get_arguments()
                .find(|arg| arg.get_long() == Some(name));
            let Some(arg) = known else {
                return Err(format!("`kingsnake check` has no switch --{name}"));
            };
            if is_typed(arg.get_id().as_str()) {
                continue;
            }
            let values = match value {
                Value::Array(many) => many.as_slice(),
                one => std::slice::from_ref(one),
            };
            for value in values {
                if let Some(why) = value.as_str().and_then(|it| refusal(name, it)) {
                    return Err(why);
                }
                match value {
                    Value::Boolean(true) => words.push(format!("--{name}")),
                    Value::Boolean(false) => {}
                    Value::String(text) => words.push(format!("--{name}={text}")),
                    Value::Integer(number) => words.push(format!("--{name}={number}")),
                    Value::Float(number) => words.push(format!("--{name}={number}")),
                    _ => {
                        return Err(format!(
                            "{name} is a text, a number, true or false, or a list of these"
                        ));
                    }
                }
            }
        }
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Typed;

    fn read(text: &str, typed: &str) -> Result<Vec<String>, String> {
        let command = Typed::command();
        let check = command.find_subcommand("check").expect("it is there");
        words(text, check, |id| id == typed)
    }

    #[test]
    fn what_is_typed_goes_before_what_the_file_says() {
        let text =
            "[check]\nlevel = \"si\"\ntimeout = 60\nstrict = true\nno-version-order = false\n";
        let all = ["--level=si", "--strict", "--timeout=60"];
        let mut found = read(text, "").expect("it is right");
        found.sort();
        assert_eq!(found, all);
        assert!(
            !read(text, "level")
                .expect("it is right")
                .contains(&all[0].to_owned())
        );
        let line: Vec<OsString> = ["kingsnake", "check", "a"].map(OsString::from).into();
        let whole = completed(&line, &["--strict".to_owned()]);
        assert_eq!(
            whole,
            ["kingsnake", "check", "--strict", "a"].map(OsString::from)
        );
    }

    #[test]
    fn every_switch_that_takes_a_file_is_known_to_read_or_to_write() {
        let reads = ["edges", "transaction-order", "version-order"];
        let command = Typed::command();
        let check = command.find_subcommand("check").expect("it is there");
        for arg in check.get_arguments() {
            let names = arg.get_value_names().unwrap_or_default();
            let is_path = names
                .iter()
                .any(|it| ["FILE", "DIR"].contains(&it.as_str()));
            let Some(name) = arg.get_long().filter(|_| is_path) else {
                continue;
            };
            let is_known = reads.contains(&name) || WRITES.contains(&name);
            assert!(is_known, "does --{name} write?");
        }
        assert_eq!(refusal("report", "out/page.html"), None);
        assert_eq!(refusal("json", "-"), None);
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (text, what) in [
            ("level = \"si\"", "under [check]"),
            ("[check]\nlevle = \"si\"", "no switch --levle"),
            ("[check]\nlevel = { a = 1 }", "level is a text"),
            ("[check", "TOML"),
            ("[check]\nbackend = \"exec:touch x\"", "starts a program"),
            (
                "[check]\nbackend = \"portfolio:exec:x,z3/order\"",
                "starts a program",
            ),
            ("[check]\non = \"slurm\"", "starts a program"),
            ("[check]\nslurm-arg = [\"--x\"]", "starts a program"),
            ("[check]\nreport = \"/etc/x\"", "outside"),
            ("[check]\njunit = \"a/../../x\"", "outside"),
        ] {
            let said = read(text, "").expect_err(text);
            assert!(said.contains(what), "{said}");
        }
    }
}
