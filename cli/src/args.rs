//! What was typed. What will run is the [`plan`](crate::plan).

mod assume;
mod cells;
mod check;
mod collect;
mod export;
mod generate;
pub mod project;
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
pub use solve::SolveArgs;
pub use study::{AblateArgs, AnnealArgs, BenchCommand, EncodingsArgs, ReachArgs};
pub use techniques::{
    DecideArg, HeuristicArg, PhaseArg, Profile, ReachabilityArg, Rounds, TechniqueArgs, rounds,
};
pub use watch::{WatchArgs, WatchLevelArg};

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use kingsnake_datasets::Format;
use kingsnake_workloads::JepsenWorkload;

use crate::switches::explained;
use crate::voice::complain;

use values::formats;

/// Checks whether a database kept its isolation promise.
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
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// What every command takes.
    #[command(flatten)]
    pub general: GeneralArgs,
}

/// What every command takes.
#[derive(Clone, Debug, Args)]
pub struct GeneralArgs {
    /// How much to say, and how.
    #[command(flatten)]
    pub voice: VoiceArgs,
    /// End when stdin closes, as the processes of a study do when the study ends.
    #[arg(long, global = true, hide = true)]
    pub leash: bool,
}

/// How much to say, and how.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct VoiceArgs {
    /// Say only the verdict, and draw no progress.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say more: the plan, phase times, pruning rounds, solver statistics, peak memory.
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// Colour the words.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
}

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Even in a pipe.
    Always,
    /// Not even on a terminal.
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check histories at an isolation level.
    Check(Box<CheckManyArgs>),
    /// Replay a certificate against a history, in linear time, or judge a counterexample again.
    Verify(VerifyArgs),
    /// Check a proof that constraints cannot all be met, with nothing of what found it.
    VerifyProof(Box<VerifyProofArgs>),
    /// Check a history and tell at length what happened.
    Explain(Box<ExplainArgs>),
    /// Look for mistakes of the log that would pass for bugs of the database; exit status 1 if there are any.
    Lint(LintArgs),
    /// Count what a history holds.
    Stats(StatsArgs),
    /// Write a history in another format.
    Convert(ConvertArgs),
    /// Write what a solver would be asked, in another solver's language.
    Export(ExportArgs),
    /// Decide an instance of another solver: clauses and graphs that must be acyclic, in `MonoSAT`'s format.
    ///
    /// Exit status: 0 satisfiable, 1 unsatisfiable, 2 error, 3 unknown.
    Solve(SolveArgs),
    /// Run a workload on an embedded store that keeps its promise, or breaks it once on request.
    Generate(Box<GenerateArgs>),
    /// Run a workload on a real database, record what its clients saw, and check it.
    Collect(Box<CollectArgs>),
    /// Check a database while it runs, in bounded memory.
    ///
    /// Exit status: 0 satisfied, 1 violated, 2 error, 3 unknown.
    Watch(Box<WatchArgs>),
    /// Run a campaign: databases times levels, workloads, faults and seeds, with a page of what was found.
    Hunt(HuntArgs),
    /// Run a study: workloads times switches, with figures and a report.
    Ablate(AblateArgs),
    /// Measure, with figures and a report.
    Bench {
        /// What to measure.
        #[command(subcommand)]
        what: BenchCommand,
    },
    /// Compare two runs of the same checks: verdicts, and times where their ranges separate.
    ///
    /// Exit status: 0 if all verdicts agree, 1 if one differs, 2 error.
    Diff(DiffArgs),
    /// List what can compute reachability on this machine.
    Devices,
    /// Print the manual page, or write one for each command.
    Man(ManArgs),
    /// Print a shell's completions.
    Completions {
        /// Which shell.
        shell: Shell,
    },
}

/// How a history is read.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Reading")]
pub struct ReadArgs {
    /// The file's format; recognised from its content unless given.
    #[arg(long, value_parser = formats(&Format::ALL))]
    pub format: Option<Format>,
    /// Read the file as this workload of Jepsen and check it by that workload's rule; recognised unless given, where the
    /// operations are no transactions.
    #[arg(long, value_name = "NAME", value_parser = workloads())]
    pub workload: Option<JepsenWorkload>,
    /// A file that gives the order of the versions of some keys.
    #[arg(long, value_name = "FILE", conflicts_with = "no_version_order")]
    pub version_order: Option<PathBuf>,
    /// Ignore the order of versions that the history gives.
    #[arg(long)]
    pub no_version_order: bool,
    /// Take the rows that predicates returned as plain reads, and ignore which rows their conditions should have chosen.
    #[arg(long)]
    pub no_predicates: bool,
    /// Refuse, with exit status 2, a history that `kingsnake lint` would remark on, such as one without a transaction.
    #[arg(long)]
    pub strict: bool,
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
    /// What `kingsnake check --certificate` wrote, or the document of a violated verdict (`--json`).
    pub certificate: PathBuf,
    /// Another level than the one that the certificate claims.
    #[command(flatten)]
    pub level: LevelArgs,
    /// How the history is read.
    #[command(flatten)]
    pub read: ReadArgs,
    /// What is assumed beyond it.
    #[command(flatten)]
    pub assume: AssumeArgs,
    /// How far to go.
    #[command(flatten)]
    pub bounds: BoundArgs,
}

/// `kingsnake verify-proof`.
#[derive(Clone, Debug, Args)]
pub struct VerifyProofArgs {
    /// What `kingsnake check --proof` wrote.
    pub proof: PathBuf,
    /// The instance; PROOF.cnf unless given.
    #[arg(long, value_name = "FILE")]
    pub cnf: Option<PathBuf>,
    /// A history: the instance must be about it, at this level and with these techniques.
    #[arg(long, value_name = "HISTORY")]
    pub history: Option<PathBuf>,
    /// What is checked.
    #[command(flatten)]
    pub level: LevelArgs,
    /// How the history is read.
    #[command(flatten)]
    pub read: ReadArgs,
    /// How far to go.
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
    /// Write the remarks as JSON, to stdout in place of the words unless a file is given.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    /// How the history is read.
    #[command(flatten)]
    pub read: ReadArgs,
    /// How far to go.
    #[command(flatten)]
    pub bounds: BoundArgs,
}

/// `kingsnake diff`.
#[derive(Clone, Debug, Args)]
pub struct DiffArgs {
    /// The first run: the --out of a study, of `check` or of `hunt`, or a document of `check --json`.
    pub before: PathBuf,
    /// The second.
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
    /// How the history is read.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Write one JSON document, to stdout in place of the words unless a file is given.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    /// How far to go.
    #[command(flatten)]
    pub bounds: BoundArgs,
}

/// `kingsnake convert`.
#[derive(Clone, Debug, Args)]
pub struct ConvertArgs {
    /// The history: a file, or a directory of logs.
    pub from: PathBuf,
    /// Where to write it; `-` is stdout.
    pub to: PathBuf,
    /// The format to write; unless given what the name's ending says: .txt is text, .edn and .json are Jepsen's, .bincode is dbcop's,
    /// a directory is Cobra's, and everything else is our own.
    #[arg(long = "to", value_name = "FORMAT", value_parser = formats(&Format::WRITTEN))]
    pub format_to: Option<Format>,
    /// Leave these out, where the format to write has no words for them.
    #[arg(long, value_name = "WHAT,…", value_delimiter = ',')]
    pub drop: Vec<DropArg>,
    /// How the history is read.
    #[command(flatten)]
    pub read: ReadArgs,
    /// How far to go.
    #[command(flatten)]
    pub bounds: BoundArgs,
}

/// What of a history may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DropArg {
    /// Begin and commit times.
    Times,
    /// The order of versions that the history gives.
    VersionOrder,
}

/// `kingsnake man`.
#[derive(Clone, Debug, Args)]
pub struct ManArgs {
    /// Write a page for each command to this directory, in place of the first page to stdout.
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
    // What is wrong is said, and helped with, by the whole command line.
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

/// The command line with `check` alone: to build all commands takes longer than to check a small history.
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
        // The two spellings of a technique are one row.
        for row in page.lines().filter_map(|line| line.strip_prefix("| `")) {
            let name = row.split('`').next().unwrap_or_default();
            if !name.starts_with("--") && known.contains(format!("no-{name}").as_str()) {
                documented.extend([name.to_owned(), format!("no-{name}")]);
            }
        }
        for general in ["help", "version", "leash"] {
            documented.insert(general.to_owned());
        }
        let missing: Vec<&&str> = known
            .iter()
            .filter(|it| !documented.contains(**it))
            .collect();
        assert!(missing.is_empty(), "docs/switches.md lacks {missing:?}");
        let invented = |name: &&String| {
            let general = ["name", "no-name", "help", "version", "leash"];
            !known.contains(name.as_str()) && !general.contains(&name.as_str())
        };
        let invented: Vec<&String> = documented.iter().filter(invented).collect();
        assert!(invented.is_empty(), "there is no {invented:?}");
    }
}
