//! The settings of each profile: techniques, and how the default back end searches. Options override it.

use clap::ValueEnum;
use kingsnake_encodings::{Decide, FirstPhase, PropagatorOptions};
use kingsnake_solver::check::Techniques;
use kingsnake_solver::heuristic::Heuristic;
use kingsnake_solver::prune::Reachability;

use crate::args::{
    DecideArg, HeuristicArg, PhaseArg, Profile, ReachabilityArg, Rounds, TechniqueArgs, rounds,
};
use crate::switches::{Kept, SWITCHES, setting};

impl Profile {
    /// The name, as typed.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Cobra => "cobra",
            Profile::Viper => "viper",
            Profile::KingCobra => "king-cobra",
            Profile::Kingsnake => "kingsnake",
        }
    }
}

/// The typed value, or the profile's value in the table.
fn setting_of<T: ValueEnum>(typed: Option<T>, name: &str, profile: Profile) -> Option<T> {
    typed.or_else(|| T::from_str(setting(name, profile), false).ok())
}

/// The requested techniques.
pub fn techniques(args: &TechniqueArgs) -> Techniques {
    let profile = args.profile;
    let rounds_of = || rounds(setting("prune-rounds", profile)).ok();
    let mut techniques = Techniques {
        heuristic: match setting_of(args.heuristic, "heuristic", profile) {
            Some(HeuristicArg::Off) | None => Heuristic::Off,
            Some(HeuristicArg::Viper) => Heuristic::Viper,
            Some(HeuristicArg::Incremental) => Heuristic::Incremental,
        },
        reachability: match setting_of(args.reachability, "reachability", profile) {
            Some(ReachabilityArg::Auto) | None => Reachability::Auto,
            Some(ReachabilityArg::Dense) => Reachability::Dense,
            Some(ReachabilityArg::Chains) => Reachability::Chains,
        },
        prune_rounds: match args.prune_rounds.or_else(rounds_of) {
            Some(Rounds::AtMost(rounds)) => Some(rounds),
            Some(Rounds::Fixpoint) | None => None,
        },
        ..Techniques::default()
    };
    for switch in &SWITCHES {
        let said = args.switches.said(switch.name);
        match switch.kept {
            Kept::Techniques(field) => {
                *field(&mut techniques) = said.unwrap_or(switch.of(profile));
            }
            Kept::Rounds if said == Some(false) => techniques.prune_rounds = Some(0),
            Kept::Rounds
                if said == Some(true)
                    && techniques.prune_rounds == Some(0)
                    && args.prune_rounds.is_none() =>
            {
                techniques.prune_rounds = None;
            }
            Kept::Rounds | Kept::Search(_) => {}
        }
    }
    techniques
}

/// The settings of the default back end.
pub fn search(args: &TechniqueArgs) -> PropagatorOptions {
    let profile = args.profile;
    let usual = PropagatorOptions::default();
    let mut search = PropagatorOptions {
        phase: match setting_of(args.phase, "phase", profile) {
            Some(PhaseArg::Estimate) => FirstPhase::Estimate,
            Some(PhaseArg::Topological) => FirstPhase::Topological,
            Some(PhaseArg::None) => FirstPhase::None,
            Some(PhaseArg::Random) => FirstPhase::Random,
            None => usual.phase,
        },
        decide: match setting_of(args.decide, "decide", profile) {
            Some(DecideArg::Repair) => Decide::Repair,
            Some(DecideArg::SurestFirst) => Decide::SurestFirst,
            Some(DecideArg::Position) => Decide::Position,
            Some(DecideArg::Vsids) => Decide::Vsids,
            None => usual.decide,
        },
        propagate: args.propagate.unwrap_or_else(|| {
            let value = setting("propagate", profile).parse();
            value.unwrap_or(usual.propagate)
        }),
        ..usual
    };
    for switch in &SWITCHES {
        if let Kept::Search(field) = switch.kept {
            *field(&mut search) = match args.switches.said(switch.name) {
                Some(on) => on,
                // Annealing only helps back ends that repair an order.
                None if switch.name == "anneal" && args.decide.is_some() => {
                    search.decide == Decide::Repair
                }
                None => switch.of(profile),
            };
        }
    }
    search
}

/// The name of a way to keep reachability, as typed.
pub fn reachability_name(reachability: Reachability) -> &'static str {
    match reachability {
        Reachability::Auto => "auto",
        Reachability::Dense => "dense",
        Reachability::Chains => "chains",
    }
}
