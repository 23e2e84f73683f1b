//! What was typed. What will run is the [`plan`](crate::plan).

mod assume;
mod cells;
mod check;
mod collect;
mod export;
mod generate;
pub mod project;
mod shrink;
mod solve;
mod study;
mod techniques;
mod values;
mod watch;

pub use assume::{AssumeArgs, KeysArg, UnwrittenArg, ValuesArg};
pub use check::{
    AnnotationsArg, BoundArgs, CheckArgs, CheckManyArgs, ExplainArgs, FailedCasArg, FileArgs,
    LevelArg, LevelArgs, LimitArgs, OnOff, TimesArg,
};
pub use collect::{CollectArgs, HuntArgs};
pub use export::{ExportArgs, ExportFormat, Stage};
pub use generate::{GenerateArgs, GranularityArg};
pub use shrink::ShrinkArgs;
pub use solve::{SolveArgs, SolveFormat};
pub use study::{AblateArgs, AnnealArgs, BenchCommand, EncodingsArgs, GpuArgs, ReachArgs};
pub use techniques::{
    DecideArg, HeuristicArg, PhaseArg, Profile, ReachabilityArg, Rounds, TechniqueArgs, rounds,
};
pub use watch::{BatchSize, WatchArgs, WatchLevelArg};

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use kingsnake_datasets::Format;
use kingsnake_gpu::DeviceChoice;
use kingsnake_workloads::JepsenWorkload;

use crate::switches::explained;
use crate::voice::complain;

use values::formats;

/// Check whether a database kept its isolation guarantees.
///
/// Exit status: 0 satisfied, 1 violated, 2 error, 3 unknown.
#[derive(Debug, Parser)]
#[command(
    name = "kingsnake",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
pub struct Typed {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
    /// Options of every command.
    #[command(flatten)]
    pub general: GeneralArgs,
}

/// Options of every command.
#[derive(Clone, Debug, Args)]
pub struct GeneralArgs {
    /// How much to print, and how.
    #[command(flatten)]
    pub voice: VoiceArgs,
    /// End when stdin closes, as the processes of a study do when the study ends.
    #[arg(long, global = true, hide = true)]
    pub leash: bool,
}

/// How much to print, and how.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct VoiceArgs {
    /// Print only the verdict; no progress bar.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print more: the plan, phase times, pruning rounds, solver statistics, peak memory.
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// When to colour the output.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
}

/// When to colour the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// Colour on a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Colour even in a pipe.
    Always,
    /// Never colour.
    Never,
}

/// The command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check histories at an isolation level.
    Check(Box<CheckManyArgs>),
    /// Replay a certificate against a history in linear time, or re-check a counterexample.
    Verify(VerifyArgs),
    /// Check an unsatisfiability proof independently of the solver.
    VerifyProof(Box<VerifyProofArgs>),
    /// Check a history and explain in detail what happened.
    Explain(Box<ExplainArgs>),
    /// Find logging mistakes that look like database bugs; exit status 1 if there are any.
    Lint(LintArgs),
    /// Print the size of a history: transactions, sessions, keys, operations.
    Stats(StatsArgs),
    /// Convert a history to another format.
    Convert(ConvertArgs),
    /// Shrink a violated history to the few transactions and operations that show the anomaly, for a bug report.
    ///
    /// Exit status: 1 violated, and FILE is written; 0 satisfied, 2 error, 3 unknown: there is nothing to shrink.
    Shrink(ShrinkArgs),
    /// Write the constraints of a history in the input format of another solver.
    Export(ExportArgs),
    /// Solve an instance in `MonoSAT`'s format: clauses, and graphs that must be acyclic.
    ///
    /// Exit status: 0 satisfiable, 1 unsatisfiable, 2 error, 3 unknown.
    Solve(SolveArgs),
    /// Generate a history: run a workload on a simulated store, with a violation on request.
    Generate(Box<GenerateArgs>),
    /// Run a workload on a real database, record what its clients observed, and check it.
    Collect(Box<CollectArgs>),
    /// Check a database while it runs, in bounded memory.
    ///
    /// Exit status: 0 satisfied, 1 violated, 2 error, 3 unknown.
    Watch(Box<WatchArgs>),
    /// Run a campaign over databases, levels, workloads, faults and seeds, with a report of the findings.
    Hunt(HuntArgs),
    /// Run a study over workloads and switches, with figures and a report.
    Ablate(AblateArgs),
    /// Run a benchmark, with figures and a report.
    Bench {
        /// The benchmark.
        #[command(subcommand)]
        what: BenchCommand,
    },
    /// Compare two runs of the same checks: verdicts, and times where their ranges do not overlap.
    ///
    /// Exit status: 0 if all verdicts agree, 1 if one differs, 2 error.
    Diff(DiffArgs),
    /// List the devices that can compute reachability on this machine.
    Devices(DevicesArgs),
    /// Print the manual page, or write one page per command.
    Man(ManArgs),
    /// Print completions for a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
}

/// `kingsnake devices`.
#[derive(Clone, Debug, Args)]
pub struct DevicesArgs {
    /// Measure closures on the adapters, fit the constants of the cost model to them, and keep these in `kingsnake/devices.json`
    /// below `$XDG_CONFIG_HOME`, where `--device auto` finds them.
    #[arg(long)]
    pub calibrate: bool,
    /// Calibrate this adapter alone [default: all].
    #[arg(long, value_name = "WHERE", requires = "calibrate")]
    pub device: Option<DeviceChoice>,
}

/// How a history is read.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Reading")]
pub struct ReadArgs {
    /// Input format [default: recognised from the content].
    #[arg(long, value_parser = formats(&Format::ALL))]
    pub format: Option<Format>,
    /// Read the file as this Jepsen workload and check it by the workload's rule [default: recognised, where the
    /// operations are not transactions].
    #[arg(long, value_name = "NAME", value_parser = workloads())]
    pub workload: Option<JepsenWorkload>,
    /// Read the version order of some keys from this file.
    #[arg(long, value_name = "FILE", conflicts_with = "no_version_order")]
    pub version_order: Option<PathBuf>,
    /// Ignore the version order in the history.
    #[arg(long)]
    pub no_version_order: bool,
    /// Treat the rows that predicates returned as plain reads; do not check which rows should have matched.
    #[arg(long)]
    pub no_predicates: bool,
    /// Whether a transaction sees its own writes: `invisible` is for stores that apply all writes at the commit [default: visible].
    #[arg(long, value_name = "SEEN")]
    pub own_writes: Option<OwnWritesArg>,
    /// Refuse, with exit status 2, a history in which `kingsnake lint` finds a problem, such as one without transactions.
    #[arg(long)]
    pub strict: bool,
}

/// Whether a transaction sees its own writes, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OwnWritesArg {
    /// A read after a write of the key returns what was written.
    Visible,
    /// Every read returns what other transactions wrote.
    Invisible,
}

fn workloads() -> impl TypedValueParser<Value = JepsenWorkload> {
    PossibleValuesParser::new(JepsenWorkload::ALL.map(JepsenWorkload::name))
        .try_map(|name| name.parse::<JepsenWorkload>())
}

/// `kingsnake verify`.
#[derive(Clone, Debug, Args)]
pub struct VerifyArgs {
    /// The history: a file, or a directory of logs.
    pub history: PathBuf,
    /// The file written by `kingsnake check --certificate`, or by `--json` for a violation.
    pub certificate: PathBuf,
    /// A level other than the one that the certificate claims.
    #[command(flatten)]
    pub level: LevelArgs,
    /// How the history is read.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Assumptions beyond the history.
    #[command(flatten)]
    pub assume: AssumeArgs,
    /// Limits.
    #[command(flatten)]
    pub bounds: BoundArgs,
}

/// `kingsnake verify-proof`.
#[derive(Clone, Debug, Args)]
pub struct VerifyProofArgs {
    /// The file written by `kingsnake check --proof`.
    pub proof: PathBuf,
    /// The instance [default: PROOF.cnf].
    #[arg(long, value_name = "FILE")]
    pub cnf: Option<PathBuf>,
    /// Check that the instance was made from this history, at this level and with these techniques.
    #[arg(long, value_name = "HISTORY")]
    pub history: Option<PathBuf>,
    /// What is checked.
    #[command(flatten)]
    pub level: LevelArgs,
    /// How the history is read.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Limits.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// How it was checked.
    #[command(flatten)]
    pub techniques: TechniqueArgs,
}

/// `kingsnake lint`.
#[derive(Clone, Debug, Args)]
pub struct LintArgs {
    /// The histories, each a file, a directory of logs, or `-` for stdin.
    #[arg(required = true, value_name = "HISTORY")]
    pub histories: Vec<PathBuf>,
    /// Write the problems as JSON to a file, or to stdout instead of text.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    /// How the history is read.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Limits.
    #[command(flatten)]
    pub bounds: BoundArgs,
}

/// `kingsnake diff`.
#[derive(Clone, Debug, Args)]
pub struct DiffArgs {
    /// The first run: the --out directory of a study, of `check` or of `hunt`, or a document of `check --json`.
    pub before: PathBuf,
    /// The second run.
    pub after: PathBuf,
    /// Print the comparison as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `kingsnake stats`.
#[derive(Clone, Debug, Args)]
pub struct StatsArgs {
    /// The history: a file, or a directory of logs.
    pub history: PathBuf,
    /// The level whose graph is counted.
    #[command(flatten)]
    pub level: LevelArgs,
    /// How the history is read.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Write one JSON document to a file, or to stdout instead of text.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    /// Limits.
    #[command(flatten)]
    pub bounds: BoundArgs,
}

/// `kingsnake convert`.
#[derive(Clone, Debug, Args)]
pub struct ConvertArgs {
    /// The history: a file, or a directory of logs.
    pub from: PathBuf,
    /// The output file or directory; `-` is stdout.
    pub to: PathBuf,
    /// Output format [default: by the extension: .txt is text, .edn and .json are Jepsen's, .bincode is dbcop's,
    /// a directory is Cobra's, and anything else is our own].
    #[arg(long = "to", value_name = "FORMAT", value_parser = formats(&Format::WRITTEN))]
    pub format_to: Option<Format>,
    /// Drop these where the output format cannot express them.
    #[arg(long, value_name = "WHAT,…", value_delimiter = ',')]
    pub drop: Vec<DropArg>,
    /// How the history is read.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Limits.
    #[command(flatten)]
    pub bounds: BoundArgs,
}

/// A part of a history that may be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DropArg {
    /// Begin and commit times.
    Times,
    /// The version order in the history.
    VersionOrder,
}

/// `kingsnake man`.
#[derive(Clone, Debug, Args)]
pub struct ManArgs {
    /// Write one page per command to this directory, instead of the first page to stdout.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Takes the command line apart.
pub fn parse() -> Result<(ArgMatches, Typed), clap::Error> {
    let line: Vec<OsString> = std::env::args_os().collect();
    let matches = match line.get(1) {
        Some(name) if name == "check" => only_check().try_get_matches_from(&line).ok(),
        _ => None,
    };
    // Errors and help use the whole command line.
    let mut matches = matches.map_or_else(|| short().try_get_matches_from(&line), Ok)?;
    let settings = project::settings(&matches, only_check)?;
    if !settings.is_empty() {
        let whole = project::completed(&line, &settings);
        matches = short().try_get_matches_from(&whole)?;
    }
    let typed = Typed::from_arg_matches(&matches)?;
    if !settings.is_empty() && !typed.general.voice.quiet {
        complain(&format!("kingsnake.toml says {}", settings.join(" ")));
    }
    Ok((matches, typed))
}

/// The command line with `check` alone: building all commands takes longer than checking a small history.
pub fn only_check() -> clap::Command {
    let check = CheckManyArgs::augment_args(clap::Command::new("check"));
    let whole = clap::Command::new("kingsnake").subcommand(check);
    GeneralArgs::augment_args(whole)
}

/// The command line, for help: techniques are behind `--help-techniques`.
fn short() -> clap::Command {
    let mut command = Typed::command();
    for name in ["check", "explain"] {
        command = command.mut_subcommand(name, |it| {
            it.mut_args(|arg| {
                if is_technique(&arg) {
                    arg.hide(true)
                } else {
                    arg
                }
            })
        });
    }
    command
}

/// The techniques of `check` as help.
pub fn techniques() -> clap::builder::StyledStr {
    let mut command = Typed::command();
    command.build();
    let check = command.find_subcommand("check").cloned();
    let mut check = explained(check.unwrap_or_default()).mut_args(|arg| {
        let hides = arg.is_hide_set() || !is_technique(&arg);
        arg.hide(hides)
    });
    check.render_long_help()
}

fn is_technique(arg: &clap::Arg) -> bool {
    let heading = arg.get_help_heading().unwrap_or_default();
    heading.starts_with("Techniques")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Typed::command().debug_assert();
    }

    #[test]
    fn check_alone_is_taken_apart_as_in_the_whole_command_line() {
        let lines = [
            "kingsnake check a",
            "kingsnake check a b --level si --threads 2 -v --leash",
            "kingsnake check a --no-combine --profile cobra --json --timeout 3",
            "kingsnake check a --expect G0 --color always --memory-limit 100M -q",
        ];
        for line in lines {
            let typed = |command: clap::Command| {
                let matches = command.try_get_matches_from(line.split(' '));
                let matches = matches.unwrap_or_else(|error| panic!("{line}: {error}"));
                format!("{:?}", Typed::from_arg_matches(&matches).expect("typed"))
            };
            assert_eq!(typed(only_check()), typed(short()), "{line}");
        }
    }

    /// What looks like a long option in a text: `--name`.
    fn options_in(text: &str) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for (at, _) in text.match_indices("--") {
            let before = text[..at].chars().next_back();
            let name: String = text[at + 2..]
                .chars()
                .take_while(|letter| letter.is_ascii_lowercase() || *letter == '-')
                .collect();
            if !name.starts_with('-') && !name.is_empty() && before != Some('-') {
                found.insert(name);
            }
        }
        found
    }

    #[test]
    fn the_page_of_switches_names_every_option_of_check_and_no_other() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/switches.md");
        let page = std::fs::read_to_string(page).expect("docs/switches.md is there");
        let mut typed = Typed::command();
        typed.build();
        let check = typed.find_subcommand("check").expect("there is `check`");
        let known: BTreeSet<&str> = check
            .get_arguments()
            .filter_map(|it| it.get_long())
            .collect();
        let mut documented = options_in(&page);
        // The two spellings of a technique share one row.
        for row in page.lines().filter_map(|line| line.strip_prefix("| `")) {
            let name = row.split('`').next().unwrap_or_default();
            if !name.starts_with("--") && known.contains(format!("no-{name}").as_str()) {
                documented.extend([name.to_owned(), format!("no-{name}")]);
            }
        }
        for general in ["help", "version", "leash", "serve"] {
            documented.insert(general.to_owned());
        }
        let missing: Vec<&&str> = known
            .iter()
            .filter(|it| !documented.contains(**it))
            .collect();
        assert!(missing.is_empty(), "docs/switches.md lacks {missing:?}");
        let invented = |name: &&String| {
            let general = ["name", "no-name", "help", "version", "leash", "serve"];
            !known.contains(name.as_str()) && !general.contains(&name.as_str())
        };
        let invented: Vec<&String> = documented.iter().filter(invented).collect();
        assert!(invented.is_empty(), "there is no {invented:?}");
    }
}

#[cfg(test)]
mod documents {
    use clap::Parser;
    use clap::error::ErrorKind;

    use super::Typed;

    /// The commands on a page: in its blocks, and between backticks, where required arguments may be omitted.
    fn commands(page: &str) -> (Vec<&str>, Vec<&str>) {
        let (mut is_block, mut whole, mut inline) = (false, Vec::new(), Vec::new());
        for line in page.lines() {
            if line.trim_start().starts_with("```") {
                is_block = !is_block;
            } else if is_block {
                let line = line.strip_prefix("$ ").unwrap_or(line);
                whole.extend(line.starts_with("kingsnake ").then_some(line));
            } else {
                let code = line.split('`').skip(1).step_by(2);
                inline.extend(code.filter(|it| it.starts_with("kingsnake ")));
            }
        }
        (whole, inline)
    }

    /// The words of a command as a shell sees them: quotes are gone, and comments, pipes and redirections are left out.
    fn words(command: &str) -> Vec<String> {
        let (mut words, mut word, mut is_quoted) = (Vec::new(), String::new(), false);
        for letter in command.chars().chain([' ']) {
            match letter {
                '"' => is_quoted = !is_quoted,
                // Arguments that may be omitted.
                '[' | ']' if !is_quoted => {}
                '#' | '|' | '<' | '>' | '…' if !is_quoted && word.is_empty() => break,
                ' ' if !is_quoted => {
                    words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
                }
                _ => word.push(letter),
            }
        }
        words
    }

    fn refused(command: &str) -> Option<ErrorKind> {
        Typed::try_parse_from(words(command))
            .err()
            .map(|it| it.kind())
    }

    #[test]
    fn the_commands_of_the_documents_are_commands() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let pages = std::fs::read_dir(format!("{root}/docs")).expect("docs is a directory");
        let pages = pages.map(|it| it.expect("it can be read").path());
        let others = ["README.md", "CONTRIBUTING.md", "FINDINGS.md", "SECURITY.md"];
        let pages = pages.chain(others.map(|it| format!("{root}/{it}").into()));
        let mut wrong = Vec::new();
        for page in pages.filter(|it| it.extension().is_some_and(|it| it == "md")) {
            let text = std::fs::read_to_string(&page).expect("it is a page");
            let (whole, inline) = commands(&text);
            let whole = whole.into_iter().filter_map(|it| Some((it, refused(it)?)));
            // `kingsnake lint` and `--workload NAME` may stand in a sentence.
            let inline = inline.into_iter().filter_map(|it| Some((it, refused(it)?)));
            let inline = inline.filter(|it| {
                matches!(
                    it.1,
                    ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand
                )
            });
            for (command, why) in whole.chain(inline) {
                if why != ErrorKind::DisplayHelp {
                    wrong.push(format!("{}: {command}: {why}", page.display()));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
