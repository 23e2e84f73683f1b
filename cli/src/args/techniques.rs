//! How a history is checked, as typed.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{ArgAction, ArgMatches, Args, FromArgMatches, ValueEnum};
use kingsnake_gpu::DeviceChoice;

use crate::switches::SWITCHES;

/// A set of techniques.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// What Cobra does: `combine` and `coalesce`, a constraint for every pair of chains of versions, read or not, one pruning
    /// round on a matrix, one variable a constraint, no guesses.
    Cobra,
    /// The same with five pruning rounds, as in the King Cobra study.
    KingCobra,
    /// Everything.
    #[default]
    Kingsnake,
}

/// Where the solver's first guess of a constraint comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PhaseArg {
    /// The position estimate, or a topological order where there is none.
    Estimate,
    /// A topological order.
    Topological,
    /// Nowhere.
    None,
    /// A coin.
    Random,
}

/// Which constraint the solver decides next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DecideArg {
    /// One that the current order violates, surest first.
    Repair,
    /// Any, surest first.
    SurestFirst,
    /// Any, from the first place of the estimated order to the last.
    Position,
    /// What the solver's own heuristic prefers.
    Vsids,
}

/// How reachability is kept, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReachabilityArg {
    /// Chosen from the sizes.
    Auto,
    /// A bit row for each node.
    Dense,
    /// A clock over the sessions for each node.
    Chains,
}

/// Which sides are assumed, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HeuristicArg {
    /// None.
    Off,
    /// A side whose opposite runs at least k places backwards. On UNSAT, double k and start again.
    Viper,
    /// The same, but the solver keeps what it has learned, and only what it blames is given up.
    Incremental,
}

/// How it is checked. None of these changes a verdict.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Techniques (none of them changes a verdict)")]
pub struct TechniqueArgs {
    /// Who decides what pruning leaves open; two of them at once, as `portfolio:A,B`; or another program, as `exec:COMMAND`.
    #[arg(long, value_name = "NAME", value_parser = BackendParser, default_value = kingsnake_encodings::BACKENDS[0])]
    pub backend: String,
    /// The seed, of the solver and of the choice of versions.
    #[arg(long, default_value_t = 0)]
    pub seed: u32,
    /// A set of techniques. The options below override it; `--estimate` switches on what a profile has off.
    #[arg(long, value_name = "NAME", default_value = "kingsnake")]
    pub profile: Profile,
    /// Stop pruning after this many rounds; `fixpoint` is when nothing more is forced.
    #[arg(long, value_name = "N", value_parser = rounds)]
    pub prune_rounds: Option<Rounds>,
    /// How reachability is kept; chosen from the sizes unless given.
    #[arg(long, value_name = "HOW")]
    pub reachability: Option<ReachabilityArg>,
    /// Where reachability is computed: auto (a GPU where it pays), cpu, gpu, or `gpu:NAME` or `gpu:INDEX` as `kingsnake devices` lists it.
    #[arg(long, value_name = "WHERE", default_value_t)]
    pub device: DeviceChoice,
    /// Which sides of constraints are assumed, from a topological order, before the solver is asked.
    #[arg(long, value_name = "WHICH")]
    pub heuristic: Option<HeuristicArg>,
    /// Where the first guess of a constraint comes from (cadical/propagator).
    #[arg(long, value_name = "WHENCE")]
    pub phase: Option<PhaseArg>,
    /// Which constraint is decided next (cadical/propagator).
    #[arg(long, value_name = "WHICH")]
    pub decide: Option<DecideArg>,
    /// Rule out sides that a decision makes impossible, as far as looking at so many nodes each way shows
    /// (cadical/propagator); 0, which is not at all, unless given.
    #[arg(long, value_name = "N")]
    pub propagate: Option<usize>,
    /// The switches.
    #[command(flatten)]
    pub switches: SwitchArgs,
}

/// How many pruning rounds at most.
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
    /// On or off, if it was said.
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

/// Knows the back ends' names, and those that two of them make.
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
