//! Problems with choices, guarded edges and clauses: every back end against brute force over all assignments.

#[path = "support/problems.rs"]
mod problems;

use std::path::Path;

use kingsnake_context::budget::Budget;
use kingsnake_context::progress::Silent;
use kingsnake_context::rng::Rng;
use kingsnake_encodings::export::{ExportInstance, gnf};
use kingsnake_encodings::import::Gnf;
use kingsnake_encodings::proof::{self, Proving, instance_path};
use kingsnake_encodings::{BACKENDS, BackendOptions, Decide, PropagatorOptions, backend};
use kingsnake_graph::decide::{Backend, Decision, Origin, Side};
use kingsnake_graph::heuristic::{self, Heuristic};
use kingsnake_graph::prune::{
    Outcome, PruneOptions, PruneStats, Pruned, Reachability, Variable, prune,
};
use kingsnake_graph::witness::witness;
use kingsnake_graph::{Literal, Problem};
use problems::problem;

fn is_acyclic(n_nodes: usize, edges: &[(u32, u32)]) -> bool {
    let mut left: Vec<u32> = (0..n_nodes as u32).collect();
    loop {
        let has_incoming = |node: u32| {
            edges
                .iter()
                .any(|&(from, to)| to == node && left.contains(&from))
        };
        let kept: Vec<u32> = left
            .iter()
            .copied()
            .filter(|&it| has_incoming(it))
            .collect();
        if kept.len() == left.len() {
            return left.is_empty();
        }
        left = kept;
    }
}

/// The pairs of runs of one key.
fn pairs(problem: &Problem) -> Vec<(u32, u32)> {
    let mut pairs = Vec::new();
    for key in 0..problem.orders.n_keys() {
        let range = problem.orders.range(key);
        for b in range.clone() {
            pairs.extend((range.start..b).map(|a| (a as u32, b as u32)));
        }
    }
    pairs
}

/// Whether an assignment meets everything.
fn meets(problem: &Problem, pairs: &[(u32, u32)], values: u32, orders: u32) -> bool {
    let holds = |literal: &Literal| match *literal {
        Literal::Variable(variable, value) => (values >> variable & 1 == 1) == value,
        Literal::Order(a, b) => {
            let at = pairs.iter().position(|&pair| pair == (a.min(b), a.max(b)));
            (orders >> at.expect("a pair") & 1 == 1) == (a < b)
        }
    };
    if !problem
        .logic
        .clauses()
        .all(|clause| clause.iter().any(holds))
    {
        return false;
    }
    let mut edges: Vec<(u32, u32)> = problem.edges.iter().map(|it| (it.from, it.to)).collect();
    for (at, &(a, b)) in pairs.iter().enumerate() {
        let (a, b) = if orders >> at & 1 == 1 {
            (a, b)
        } else {
            (b, a)
        };
        edges.extend(problem.orders.edges(a, b).map(|it| (it.from, it.to)));
    }
    for guarded in problem.logic.guarded() {
        if guarded.guard.iter().all(holds) {
            edges.push((guarded.edge.from, guarded.edge.to));
        }
    }
    is_acyclic(problem.n_nodes, &edges)
}

/// Tries all assignments.
fn can_be_met(problem: &Problem) -> bool {
    let pairs = pairs(problem);
    let n_variables = problem.logic.n_variables();
    (0..1_u32 << n_variables).any(|values| {
        (0..1_u32 << pairs.len()).any(|orders| meets(problem, &pairs, values, orders))
    })
}

fn options(turn: u64) -> PruneOptions {
    PruneOptions {
        reachability: [Reachability::Dense, Reachability::Chains][turn as usize % 2],
        rounds: [None, Some(0), Some(1)][turn as usize % 3],
        estimate: !turn.is_multiple_of(5),
        merge: !turn.is_multiple_of(7),
        coalesce: !turn.is_multiple_of(11),
        linear: !turn.is_multiple_of(13),
    }
}

/// What pruning and a back end say; `None` where pruning alone refutes the problem.
fn decide(problem: &Problem, name: &str, options: PruneOptions) -> Result<bool, String> {
    let mut stats = PruneStats::default();
    let budget = Budget::unlimited();
    let pruned = match prune(problem.clone(), options, &mut stats, &budget, &mut Silent) {
        Ok(Outcome::Pruned(pruned)) => pruned,
        Ok(Outcome::Contradiction(_)) => return Ok(false),
        Err(reason) => return Err(reason.to_string()),
    };
    let mut backend =
        backend(name, &BackendOptions::default()).map_err(|error| error.to_string())?;
    let decided = backend.decide(pruned.question(), &budget, &mut Silent);
    let (decision, _) = decided.map_err(|error| error.to_string())?;
    match decision {
        Decision::Core(_) => Ok(false),
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
                Ok(true)
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

#[test]
fn problems_that_lost_a_clause_a_guard_or_an_edge_are_told_apart() {
    let damages: [(&str, Damage); 3] = [
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
    for (what, damage) in damages {
        let caught = (0..2_000).find(|&seed| {
            let problem = problem(&mut Rng::new(seed));
            let said = decide(&damage(&problem), BACKENDS[0], PruneOptions::default());
            said != Ok(can_be_met(&problem))
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
        let unpruned = PruneOptions {
            rounds: Some(0),
            ..PruneOptions::default()
        };
        let pruned = match asked(&problem, unpruned) {
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
