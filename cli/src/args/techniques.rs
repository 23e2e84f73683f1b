//! Technique options: how a history is checked.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{ArgAction, ArgMatches, Args, FromArgMatches, ValueEnum};
use kingsnake_gpu::DeviceChoice;

use crate::switches::SWITCHES;

/// A set of techniques.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// As in Cobra: `combine` and `coalesce`, a constraint for every pair of chains of versions, read or not, one pruning
    /// round on a matrix, one variable per constraint, no guesses.
    Cobra,
    /// As in Viper: Cobra's `combine` and `coalesce`, no pruning by reachability, Viper's heuristic pruning.
    Viper,
    /// Cobra's with five pruning rounds, as in the King Cobra study.
    KingCobra,
    /// All techniques.
    #[default]
    Kingsnake,
}

/// Source of the solver's first guess for a constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PhaseArg {
    /// The position estimate, or a topological order if there is none.
    Estimate,
    /// A topological order.
    Topological,
    /// No guess.
    None,
    /// A random guess.
    Random,
}

/// Which constraint the solver decides next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DecideArg {
    /// One that the current order violates, most certain first.
    Repair,
    /// Any, most certain first.
    SurestFirst,
    /// Any, from the first place of the estimated order to the last.
    Position,
    /// By the solver's own heuristic.
    Vsids,
}

/// How reachability is stored, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReachabilityArg {
    /// Chosen from the sizes.
    Auto,
    /// One bit row per node.
    Dense,
    /// One clock over the sessions per node.
    Chains,
}

/// Which sides are assumed, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HeuristicArg {
    /// None.
    Off,
    /// A side whose opposite runs at least k places backwards. On UNSAT, double k and start again.
    Viper,
    /// The same, but keep the learned clauses and drop only the assumptions in the UNSAT core.
    Incremental,
}

/// How it is checked. None of these changes a verdict.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Techniques (none of them changes a verdict)")]
pub struct TechniqueArgs {
    /// Back end that decides what pruning leaves open; or two in parallel, as `portfolio:A,B`; or another program, as `exec:COMMAND`.
    #[arg(long, value_name = "NAME", value_parser = BackendParser, default_value = kingsnake_encodings::BACKENDS[0])]
    pub backend: String,
    /// The seed of the solver and of `--version-order-share`.
    #[arg(long, default_value_t = 0)]
    pub seed: u32,
    /// A set of techniques. The options below override it; for instance `--estimate` switches on a technique that the profile has off.
    #[arg(long, value_name = "NAME", default_value = "kingsnake")]
    pub profile: Profile,
    /// Stop pruning after this many rounds; `fixpoint` prunes until nothing more is forced.
    #[arg(long, value_name = "N", value_parser = rounds)]
    pub prune_rounds: Option<Rounds>,
    /// How to store reachability [default: by the sizes].
    #[arg(long, value_name = "HOW")]
    pub reachability: Option<ReachabilityArg>,
    /// Where to compute reachability: auto (a GPU where it is faster), cpu, gpu, or `gpu:NAME` or `gpu:INDEX` as `kingsnake devices` lists it.
    #[arg(long, value_name = "WHERE", default_value_t)]
    pub device: DeviceChoice,
    /// Which sides of constraints to assume, from a topological order, before solving.
    #[arg(long, value_name = "WHICH")]
    pub heuristic: Option<HeuristicArg>,
    /// Source of the first guess for a constraint (cadical/propagator).
    #[arg(long, value_name = "SOURCE")]
    pub phase: Option<PhaseArg>,
    /// Which constraint to decide next (cadical/propagator).
    #[arg(long, value_name = "WHICH")]
    pub decide: Option<DecideArg>,
    /// Rule out sides that a decision makes impossible, searching up to N nodes in each direction
    /// (cadical/propagator) [default: 0, off].
    #[arg(long, value_name = "N")]
    pub propagate: Option<usize>,
    /// The switches.
    #[command(flatten)]
    pub switches: SwitchArgs,
}

/// The largest number of pruning rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounds {
    /// This many.
    AtMost(usize),
    /// Until nothing more is forced.
    Fixpoint,
}

/// Reads a number of rounds, as typed.
pub fn rounds(typed: &str) -> Result<Rounds, String> {
    match typed.parse() {
        Ok(rounds) => Ok(Rounds::AtMost(rounds)),
        Err(_) if typed == "fixpoint" => Ok(Rounds::Fixpoint),
        Err(_) => Err("neither a number of rounds nor `fixpoint`".to_owned()),
    }
}

/// Techniques that are on or off: `--no-name`, and `--name`, which takes it back; the last one counts. The table is
/// [`SWITCHES`].
#[derive(Clone, Debug, Default)]
pub struct SwitchArgs {
    said: [Option<bool>; SWITCHES.len()],
}

impl SwitchArgs {
    /// On or off, if given.
    pub fn said(&self, name: &str) -> Option<bool> {
        let at = SWITCHES.iter().position(|it| it.name == name)?;
        self.said[at]
    }
}

impl FromArgMatches for SwitchArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let said = SWITCHES.each_ref().map(|it| {
            let (on, off) = (matches.get_flag(it.name), matches.get_flag(it.no));
            (on || off).then_some(on)
        });
        Ok(SwitchArgs { said })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for SwitchArgs {
    fn augment_args(command: clap::Command) -> clap::Command {
        SWITCHES.iter().fold(command, |command, it| {
            let switched_off = clap::Arg::new(it.no)
                .long(it.no)
                .help(it.help)
                .action(ArgAction::SetTrue)
                .overrides_with(it.name);
            let switched_on = clap::Arg::new(it.name)
                .long(it.name)
                .hide(true)
                .action(ArgAction::SetTrue)
                .overrides_with(it.no);
            command.arg(switched_off).arg(switched_on)
        })
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

/// Parses names of back ends and of portfolios.
#[derive(Clone)]
pub(super) struct BackendParser;

impl TypedValueParser for BackendParser {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        let known = |name: String| {
            kingsnake_encodings::backend(&name, &kingsnake_encodings::BackendOptions::default())
                .map(|_| name)
        };
        let parser = clap::builder::StringValueParser::new().try_map(known);
        parser.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let names = kingsnake_encodings::BACKENDS.iter();
        Some(Box::new(names.map(PossibleValue::new)))
    }
}
