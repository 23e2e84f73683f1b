//! What each profile switches on: techniques, and how the default back end searches. What was typed overrides it.

use kingsnake_encodings::{Decide, Phase, PropagatorOptions};
use kingsnake_solver::check::Techniques;
use kingsnake_solver::heuristic::Heuristic;
use kingsnake_solver::prune::Reachability;

use crate::args::{
    DecideArg, HeuristicArg, PhaseArg, Profile, ReachabilityArg, Rounds, TechniqueArgs,
};

/// Rounds of pruning in the King Cobra study.
const KING_COBRA_ROUNDS: usize = 5;

impl Profile {
    /// The name, as typed.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Cobra => "cobra",
            Profile::KingCobra => "king-cobra",
            Profile::Kingsnake => "kingsnake",
        }
    }

    fn techniques(self) -> Techniques {
        let all = Techniques::default();
        let rounds = match self {
            Profile::Cobra => 1,
            Profile::KingCobra => KING_COBRA_ROUNDS,
            Profile::Kingsnake => return all,
        };
        Techniques {
            unread: false,
            merge: false,
            linear: false,
            estimate: false,
            witness: false,
            reachability: Reachability::Dense,
            prune_rounds: Some(rounds),
            ..all
        }
    }

    fn search(self) -> PropagatorOptions {
        match self {
            Profile::Cobra | Profile::KingCobra => PropagatorOptions {
                phase: Phase::None,
                decide: Decide::Vsids,
                anneal: false,
                ..PropagatorOptions::default()
            },
            Profile::Kingsnake => PropagatorOptions::default(),
        }
    }
}

/// The techniques that were asked for.
pub fn techniques(args: &TechniqueArgs) -> Techniques {
    let profile = args.profile.techniques();
    let switches = &args.switches;
    let mut rounds = match args.prune_rounds {
        Some(Rounds::AtMost(rounds)) => Some(rounds),
        Some(Rounds::Fixpoint) => None,
        None => profile.prune_rounds,
    };
    if switches.prune() == Some(false) {
        rounds = Some(0);
    }
    Techniques {
        combine: switches.combine().unwrap_or(profile.combine),
        unread: switches.unread().unwrap_or(profile.unread),
        coalesce: switches.coalesce().unwrap_or(profile.coalesce),
        merge: switches.merge().unwrap_or(profile.merge),
        linear: switches.linear().unwrap_or(profile.linear),
        estimate: switches.estimate().unwrap_or(profile.estimate),
        witness: switches.witness().unwrap_or(profile.witness),
        heuristic: match args.heuristic {
            HeuristicArg::Off => Heuristic::Off,
            HeuristicArg::Viper => Heuristic::Viper,
            HeuristicArg::Incremental => Heuristic::Incremental,
        },
        reachability: match args.reachability {
            Some(ReachabilityArg::Auto) => Reachability::Auto,
            Some(ReachabilityArg::Dense) => Reachability::Dense,
            Some(ReachabilityArg::Chains) => Reachability::Chains,
            None => profile.reachability,
        },
        prune_rounds: rounds,
    }
}

/// How the default back end is to search.
pub fn search(args: &TechniqueArgs) -> PropagatorOptions {
    let profile = args.profile.search();
    let switches = &args.switches;
    let decide = args.decide.map(|it| match it {
        DecideArg::Repair => Decide::Repair,
        DecideArg::SurestFirst => Decide::SurestFirst,
        DecideArg::Position => Decide::Position,
        DecideArg::Vsids => Decide::Vsids,
    });
    PropagatorOptions {
        phase: match args.phase {
            Some(PhaseArg::Estimate) => Phase::Estimate,
            Some(PhaseArg::Topological) => Phase::Topological,
            Some(PhaseArg::None) => Phase::None,
            Some(PhaseArg::Random) => Phase::Random,
            None => profile.phase,
        },
        decide: decide.unwrap_or(profile.decide),
        // A better order to repair is of use only to who repairs one.
        anneal: switches
            .anneal()
            .unwrap_or(decide.map_or(profile.anneal, |it| it == Decide::Repair)),
        minimise: switches.minimise().unwrap_or(profile.minimise),
        propagate: args.propagate.unwrap_or(profile.propagate),
    }
}

/// The name of a way to keep reachability, as typed.
pub fn reachability_name(reachability: Reachability) -> &'static str {
    match reachability {
        Reachability::Auto => "auto",
        Reachability::Dense => "dense",
        Reachability::Chains => "chains",
    }
}
