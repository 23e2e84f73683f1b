//! Problems with choices, guarded edges and clauses: every back end against brute force over all assignments.

mod support;

use std::path::Path;

use kingsnake_context::budget::Budget;
use kingsnake_context::progress::Silent;
use kingsnake_context::rng::Rng;
use kingsnake_encodings::export::{ExportInstance, gnf};
use kingsnake_encodings::import::Gnf;
use kingsnake_encodings::proof::{self, Proving, instance_path};
use kingsnake_encodings::{
    BACKENDS, BackendOptions, Decide, Propagator, PropagatorOptions, backend,
};
use kingsnake_graph::decide::{Backend, Decision, Origin, Side};
use kingsnake_graph::heuristic::{self, Heuristic};
use kingsnake_graph::prune::{
    Outcome, PruneOptions, PruneStats, Pruned, Reachability, Variable, prune,
};
use kingsnake_graph::witness::witness;
use kingsnake_graph::{Literal, Problem};
use support::brute::{can_be_met, is_acyclic, meets, pairs};
use support::problems::problem;

fn options(turn: u64) -> PruneOptions {
    PruneOptions {
        reachability: [Reachability::Dense, Reachability::Chains][turn as usize % 2],
        rounds: [None, Some(0), Some(1)][turn as usize % 3],
        estimate: !turn.is_multiple_of(5),
        merge: !turn.is_multiple_of(7),
        coalesce: !turn.is_multiple_of(11),
        linear: !turn.is_multiple_of(13),
        grows: false,
    }
}

/// The answer of pruning and a back end; `None` if pruning alone refutes the problem.
fn decide(problem: &Problem, name: &str, options: PruneOptions) -> Result<bool, String> {
    let backend = backend(name, &BackendOptions::default());
    let mut backend = backend.map_err(|error| error.to_string())?;
    decide_by(&mut *backend, problem, options).map(|(met, _)| met)
}

/// The same of this back end, and how many moves of annealing it took.
fn decide_by(
    backend: &mut dyn Backend,
    problem: &Problem,
    options: PruneOptions,
) -> Result<(bool, u64), String> {
    let mut stats = PruneStats::default();
    let budget = Budget::unlimited();
    let pruned = match prune(problem.clone(), options, &mut stats, &budget, &mut Silent) {
        Ok(Outcome::Pruned(pruned)) => pruned,
        Ok(Outcome::Contradiction(_)) => return Ok((false, 0)),
        Err(reason) => return Err(reason.to_string()),
    };
    let decided = backend.decide(pruned.question(), &budget, &mut Silent);
    let (decision, stats) = decided.map_err(|error| error.to_string())?;
    match decision {
        Decision::Core(_) => Ok((false, stats.moves)),
        Decision::Unknown(reason) => Err(reason.to_string()),
        Decision::Choices(choices) => {
            let mut values = 0;
            for (variable, of) in pruned.variables.iter().enumerate() {
                let value = match *of {
                    Variable::Settled(value) => value,
                    Variable::Open(at) => choices[at as usize] == Side::Either,
                };
                values |= u32::from(value) << variable;
            }
            // The orders may be any that fit: the values of the variables must be part of some answer.
            let pairs = pairs(problem);
            let fits = (0..1_u32 << pairs.len()).any(|it| meets(problem, &pairs, values, it));
            if fits {
                Ok((true, stats.moves))
            } else {
                Err("its values of the variables meet nothing".to_owned())
            }
        }
    }
}

#[test]
fn every_back_end_decides_problems_with_choices_guarded_edges_and_clauses() {
    let decides = |name: &&&str| {
        let backend = backend(name, &BackendOptions::default()).expect("it is in the table");
        backend.refuses(Origin::Other).is_none()
    };
    let names: Vec<&str> = BACKENDS.iter().filter(decides).copied().collect();
    let mut counts = [0; 2];
    for seed in 0..4_000 {
        let problem = problem(&mut Rng::new(seed));
        let truth = can_be_met(&problem);
        counts[usize::from(truth)] += 1;
        for (at, &name) in names.iter().enumerate() {
            // Every back end on every eighth problem, and one in turn on the others.
            if seed % 8 != 0 && seed as usize % names.len() != at {
                continue;
            }
            let said = decide(&problem, name, options(seed + at as u64));
            assert_eq!(said, Ok(truth), "seed {seed}, {name}: {problem:?}");
        }
    }
    println!("{} cannot be met, {} can", counts[0], counts[1]);
    assert!(counts[0] > 500 && counts[1] > 500, "{counts:?}");
}

/// The first variables, guarded edges and clauses of a problem: this many eighths of them.
fn first_part(problem: &Problem, eighths: usize) -> Problem {
    let mut part = problem.clone();
    part.logic = kingsnake_graph::Logic::default();
    grow_to(&mut part, problem, eighths);
    part
}

/// Appends guarded edges and clauses up to that share; the variables are all there before.
fn grow_to(part: &mut Problem, whole: &Problem, eighths: usize) {
    while part.logic.n_variables() < whole.logic.n_variables() {
        part.logic.variable();
    }
    let (n_guarded, n_clauses) = (part.logic.guarded().len(), part.logic.clauses().len());
    let new = whole.logic.guarded();
    let n_new = new.len() * eighths / 8;
    for guarded in new.take(n_new).skip(n_guarded) {
        part.logic.guard(guarded.edge, guarded.guard);
    }
    let new = whole.logic.clauses();
    let n_new = new.len() * eighths / 8;
    for clause in new.take(n_new).skip(n_clauses) {
        part.logic.clause(clause);
    }
}

/// The answers of a back end to a problem that grows while it is open, and whether all of them were right. A lossy one
/// forgets to append the last part.
fn decide_growing(
    problem: &Problem,
    name: &str,
    turn: u64,
    is_lossy: bool,
) -> Result<bool, String> {
    let backend = backend(name, &BackendOptions::default());
    let mut backend = backend.map_err(|error| error.to_string())?;
    let (mut stats, budget) = (PruneStats::default(), Budget::unlimited());
    let grows = PruneOptions {
        grows: true,
        ..options(turn)
    };
    let first = first_part(problem, turn as usize % 4);
    let mut pruned = match prune(first, grows, &mut stats, &budget, &mut Silent) {
        Ok(Outcome::Pruned(pruned)) => pruned,
        Ok(Outcome::Contradiction(_)) => return Ok(false),
        Err(reason) => return Err(reason.to_string()),
    };
    let mut session = backend.session(pruned.question());
    for growth in pruned.grown() {
        session.add(growth);
    }
    for eighths in [4, 6, 8] {
        let (decision, _) = session
            .decide(&budget, &mut Silent)
            .map_err(|error| error.to_string())?;
        let part = pruned.problem.clone();
        match decision {
            Decision::Core(_) if can_be_met(&part) => {
                return Err("a core of what can be met".to_owned());
            }
            Decision::Core(_) => return Ok(false),
            Decision::Unknown(reason) => return Err(reason.to_string()),
            Decision::Choices(sides) => {
                pruned.order(&sides).map_err(|_| "a cycle".to_owned())?;
            }
        }
        if eighths == 8 && is_lossy {
            continue;
        }
        grow_to(&mut pruned.problem, problem, eighths);
        session.add(pruned.grow());
    }
    let (decision, _) = session
        .decide(&budget, &mut Silent)
        .map_err(|error| error.to_string())?;
    match decision {
        Decision::Core(_) => Ok(false),
        Decision::Unknown(reason) => Err(reason.to_string()),
        Decision::Choices(sides) => match pruned.order(&sides) {
            Ok(_) => Ok(true),
            Err(_) => Err("its sides have a cycle".to_owned()),
        },
    }
}

#[test]
fn every_back_end_answers_questions_that_grow() {
    let decides = |name: &&&str| {
        let backend = backend(name, &BackendOptions::default()).expect("it is in the table");
        backend.refuses(Origin::Other).is_none()
    };
    let names: Vec<&str> = BACKENDS.iter().filter(decides).copied().collect();
    let mut n_caught = 0;
    for seed in 0..2_000 {
        let problem = problem(&mut Rng::new(seed));
        let truth = can_be_met(&problem);
        for (at, &name) in names.iter().enumerate() {
            if seed % 8 != 0 && seed as usize % names.len() != at {
                continue;
            }
            let said = decide_growing(&problem, name, seed + at as u64, false);
            assert_eq!(said, Ok(truth), "seed {seed}, {name}: {problem:?}");
            let said = decide_growing(&problem, name, seed + at as u64, true);
            n_caught += usize::from(said != Ok(truth));
        }
    }
    println!("{n_caught} times the last part made the difference");
    assert!(n_caught > 20);
}

/// A mistake in a problem.
type Damage = fn(&Problem) -> Problem;

fn with_logic(
    problem: &Problem,
    keep_guard: impl Fn(usize, &[Literal]) -> Vec<Literal>,
    keep_clause: impl Fn(usize) -> bool,
) -> Problem {
    let mut damaged = problem.clone();
    damaged.logic = kingsnake_graph::Logic::default();
    for _ in 0..problem.logic.n_variables() {
        damaged.logic.variable();
    }
    for (at, guarded) in problem.logic.guarded().enumerate() {
        damaged
            .logic
            .guard(guarded.edge, &keep_guard(at, guarded.guard));
    }
    for (at, clause) in problem.logic.clauses().enumerate() {
        if keep_clause(at) {
            damaged.logic.clause(clause);
        }
    }
    damaged
}

const DAMAGES: [(&str, Damage); 3] = [
    ("the first clause is lost", |it| {
        with_logic(it, |_, guard| guard.to_vec(), |at| at > 0)
    }),
    ("guards lose their last literal", |it| {
        let shorter = |_, guard: &[Literal]| guard[..1.max(guard.len() - 1)].to_vec();
        with_logic(it, shorter, |_| true)
    }),
    ("guards are negated", |it| {
        with_logic(
            it,
            |_, guard| guard.iter().map(|&it| !it).collect(),
            |_| true,
        )
    }),
];

#[test]
fn problems_that_lost_a_clause_a_guard_or_an_edge_are_told_apart() {
    for (what, damage) in DAMAGES {
        let caught = (0..2_000).find(|&seed| {
            let problem = problem(&mut Rng::new(seed));
            let said = decide(&damage(&problem), BACKENDS[0], PruneOptions::default());
            said != Ok(can_be_met(&problem))
        });
        println!("{what}: caught by problem {caught:?}");
        assert!(caught.is_some(), "{what}");
    }
}

/// Anneals small questions too, and those with choices: at once, or after the first cycle.
fn annealing(turn: u64) -> Propagator {
    let usual = Propagator::new(&BackendOptions::default()).anneal_choices();
    match turn % 2 {
        0 => usual.anneal_small(),
        _ => usual.hard_after(1),
    }
}

/// Nothing is decided before, so that annealing has work.
const UNPRUNED: PruneOptions = PruneOptions {
    reachability: Reachability::Dense,
    rounds: Some(0),
    estimate: true,
    merge: true,
    coalesce: true,
    linear: false,
    grows: false,
};

#[test]
fn annealing_takes_choices() {
    let (mut n_annealed, mut counts) = (0, [0; 2]);
    for seed in 0..2_000 {
        let problem = problem(&mut Rng::new(seed));
        let truth = can_be_met(&problem);
        let said = decide_by(&mut annealing(seed), &problem, UNPRUNED);
        let (met, n_moves) = said.unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        assert_eq!(met, truth, "seed {seed}: {problem:?}");
        if n_moves > 0 && problem.logic.n_variables() > 0 {
            n_annealed += 1;
            counts[usize::from(truth)] += 1;
        }
    }
    println!("{n_annealed} problems with choices annealed: {counts:?}");
    assert!(counts[0] > 50 && counts[1] > 50, "{counts:?}");
    for (what, damage) in DAMAGES {
        let caught = (0..2_000).find(|&seed| {
            let problem = problem(&mut Rng::new(seed));
            let said = decide_by(&mut annealing(seed), &damage(&problem), UNPRUNED);
            !matches!(said, Ok((met, n_moves)) if met == can_be_met(&problem) || n_moves == 0)
        });
        println!("{what}: caught by problem {caught:?}");
        assert!(caught.is_some(), "{what}");
    }
}

#[test]
fn what_is_exported_as_gnf_is_read_back_with_the_same_answer() {
    let mut counts = [0; 2];
    for seed in 0..2_000 {
        let problem = problem(&mut Rng::new(seed));
        let truth = can_be_met(&problem);
        let mut stats = PruneStats::default();
        let outcome = prune(
            problem,
            options(3 * seed + 1),
            &mut stats,
            &Budget::unlimited(),
            &mut Silent,
        );
        let Ok(Outcome::Pruned(pruned)) = outcome else {
            continue;
        };
        let known: Vec<(u32, u32)> = pruned
            .question()
            .known()
            .map(|it| (it.from, it.to))
            .collect();
        let instance = ExportInstance {
            n_nodes: pruned.dag.n_nodes(),
            known: &known,
            constraints: &pruned.constraints,
            name: &|node| node.to_string(),
            about: &[],
        };
        let mut written = Vec::new();
        gnf(&instance, &mut written).expect("memory");
        let text = String::from_utf8(written).expect("it is text");
        let read = Gnf::read(&text).expect("it was just written");
        let again = read.problem();
        // Sides are variables again, and edges are guarded by them.
        assert!(again.logic.clauses().len() <= 1, "seed {seed}");
        let outcome = prune(
            again,
            options(seed),
            &mut stats,
            &Budget::unlimited(),
            &mut Silent,
        );
        let said = match outcome {
            Ok(Outcome::Contradiction(_)) => false,
            Ok(Outcome::Pruned(pruned)) => {
                let mut backend =
                    backend(BACKENDS[0], &BackendOptions::default()).expect("the default");
                let decided = backend.decide(pruned.question(), &Budget::unlimited(), &mut Silent);
                match decided.expect("it decides").0 {
                    Decision::Choices(choices) => {
                        let mut model: Vec<bool> = pruned
                            .variables
                            .iter()
                            .map(|of| match *of {
                                Variable::Settled(value) => value,
                                Variable::Open(at) => choices[at as usize] == Side::Either,
                            })
                            .collect();
                        read.complete(&mut model);
                        assert_eq!(read.check(&model), Ok(()), "seed {seed}");
                        true
                    }
                    Decision::Core(_) => false,
                    Decision::Unknown(reason) => panic!("{reason}"),
                }
            }
            Err(reason) => panic!("{reason}"),
        };
        assert_eq!(said, truth, "seed {seed}");
        counts[usize::from(said)] += 1;
    }
    println!("{counts:?}");
    assert!(counts[0] > 50 && counts[1] > 300, "{counts:?}");
}

/// What is left of a problem, where pruning alone does not refute it.
fn asked(problem: &Problem, options: PruneOptions) -> Option<Pruned> {
    let (mut stats, budget) = (PruneStats::default(), Budget::unlimited());
    match prune(problem.clone(), options, &mut stats, &budget, &mut Silent) {
        Ok(Outcome::Pruned(pruned)) => Some(pruned),
        Ok(Outcome::Contradiction(_)) => None,
        Err(reason) => panic!("{reason}"),
    }
}

/// Whether these sides leave no cycle.
fn leaves_no_cycle(pruned: &Pruned, sides: &[Side]) -> bool {
    let chosen = sides.iter().enumerate();
    let chosen = chosen.flat_map(|(at, &side)| pruned.constraints.side(at, side));
    let edges = pruned.question().known().chain(chosen.copied());
    let edges: Vec<(u32, u32)> = edges.map(|it| (it.from, it.to)).collect();
    is_acyclic(pruned.dag.n_nodes(), &edges)
}

#[test]
fn the_witness_every_heuristic_and_every_way_to_search_take_choices() {
    let (mut n_witnessed, mut counts) = (0, [0; 2]);
    for seed in 0..1_500_usize {
        let problem = problem(&mut Rng::new(seed as u64));
        let truth = can_be_met(&problem);
        let usual = PruneOptions {
            rounds: [Some(0), Some(1)][seed % 2],
            linear: false,
            ..PruneOptions::default()
        };
        let Some(pruned) = asked(&problem, usual) else {
            assert!(!truth, "seed {seed}");
            continue;
        };
        if let Some(sides) = witness(pruned.question()) {
            assert!(truth && leaves_no_cycle(&pruned, &sides), "seed {seed}");
            n_witnessed += 1;
        }
        let options = BackendOptions {
            propagator: PropagatorOptions {
                decide: Decide::ALL[seed % 4],
                anneal: seed % 3 > 0,
                minimise: seed % 5 > 0,
                propagate: [0, 8][seed / 4 % 2],
                ..PropagatorOptions::default()
            },
            ..BackendOptions::default()
        };
        for heuristic in [Heuristic::Off, Heuristic::Viper, Heuristic::Incremental] {
            let mut backend = backend(BACKENDS[0], &options).expect("the default");
            let (question, budget) = (pruned.question(), Budget::unlimited());
            let decision = if heuristic == Heuristic::Off {
                let decided = backend.decide(question, &budget, &mut Silent);
                decided.expect("it decides").0
            } else {
                let backend = &mut *backend;
                let decided =
                    heuristic::decide(heuristic, question, &[], backend, &budget, &mut Silent);
                decided.expect("it decides").0
            };
            let said = match decision {
                Decision::Choices(sides) => {
                    assert!(leaves_no_cycle(&pruned, &sides), "seed {seed}");
                    true
                }
                Decision::Core(_) => false,
                Decision::Unknown(reason) => panic!("{reason}"),
            };
            assert_eq!(said, truth, "seed {seed}, {}", heuristic.name());
            counts[usize::from(said)] += 1;
        }
    }
    println!("{n_witnessed} by the witness, {counts:?} by back ends");
    assert!(
        n_witnessed > 50 && counts[0] > 200 && counts[1] > 200,
        "{n_witnessed}, {counts:?}"
    );
}

#[test]
fn a_proof_is_written_of_choices_that_cannot_be_made() {
    let path = std::env::temp_dir().join(format!("kingsnake-logic-{}.lrat", std::process::id()));
    let mut n_proved = 0;
    for seed in 0..800 {
        let problem = problem(&mut Rng::new(seed));
        let pruned = match asked(&problem, UNPRUNED) {
            Some(pruned) if !can_be_met(&problem) => pruned,
            _ => continue,
        };
        let inner = backend(BACKENDS[0], &BackendOptions::default()).expect("the default");
        let mut proving = Proving::new(inner, path.clone(), Vec::new(), 0);
        let decided = proving.decide(pruned.question(), &Budget::unlimited(), &mut Silent);
        assert!(matches!(decided, Ok((Decision::Core(_), _))), "seed {seed}");
        proving.written().expect("a proof").expect("it was checked");
        let read = |path: &Path| std::fs::read_to_string(path).expect("it was written");
        let instance =
            proof::ProofInstance::read(&read(&instance_path(&path))).expect("as written");
        proof::check(&instance, &read(&path)).expect("as checked when it was written");
        proof::same_question(&instance, &pruned.question()).expect("the same question");
        n_proved += 1;
    }
    let _ = std::fs::remove_file(instance_path(&path));
    let _ = std::fs::remove_file(&path);
    println!("{n_proved} proofs");
    assert!(n_proved > 50, "{n_proved}");
}

#[test]
fn bad_files_are_refused_with_their_line() {
    for (text, line, what) in [
        ("p cnf 1 1\n1\n", 2, "end with 0"),
        ("p cnf 1 1\n2 0\n", 2, "declares 1"),
        ("p cnf 1 1\n1 -9223372036854775808 0\n", 2, "is no variable"),
        ("p cnf 1 0\nedge 0 0 1 1\n", 2, "no graph 0"),
        (
            "p cnf 1 0\ndigraph int 2 1 0\nedge 0 0 2 1\n",
            3,
            "nodes 0 to 1",
        ),
        (
            "p cnf 2 0\ndigraph int 2 1 0\nacyclic 0 2\n",
            3,
            "may be cyclic",
        ),
        ("p cnf 1 0\nreach 0 0 1 1\n", 2, "not read here"),
        ("p dnf 1 0\n", 1, "p cnf"),
    ] {
        let error = Gnf::read(text).expect_err(text);
        assert_eq!(error.line, line, "{text}: {error}");
        assert!(error.what.contains(what), "{text}: {error}");
    }
}
