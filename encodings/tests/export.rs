//! What is exported is the question: other solvers, and a reading of our own, give the answers that enumeration gives.

mod support;

use std::path::PathBuf;
use std::process::Command;

use batsat::{BasicSolver, SolverInterface, lbool};
use kingsnake_context::budget::Budget;
use kingsnake_encodings::export::{ENCODINGS, ExportInstance, dimacs, dot, gnf, smtlib2};
use kingsnake_graph::decide::{Constraints, Side};
use support::{Owned, Rng, chosen, planted, small};

fn name(node: u32) -> String {
    format!("T{node}")
}

fn known(owned: &Owned) -> Vec<(u32, u32)> {
    let question = owned.question();
    let mut known: Vec<(u32, u32)> = (0..question.n_nodes)
        .flat_map(|from| {
            let range = question.starts[from] as usize..question.starts[from + 1] as usize;
            question.targets[range]
                .iter()
                .map(move |&to| (from as u32, to))
        })
        .collect();
    known.dedup();
    known
}

type Write = fn(&ExportInstance<'_>, &mut dyn std::io::Write) -> std::io::Result<()>;

fn text(owned: &Owned, write: Write) -> String {
    let known = known(owned);
    let instance = ExportInstance {
        n_nodes: owned.n_nodes,
        known: &known,
        constraints: &owned.constraints,
        name: &name,
        about: &["a test".to_owned()],
    };
    let mut bytes = Vec::new();
    write(&instance, &mut bytes).expect("memory can be written");
    String::from_utf8(bytes).expect("text")
}

fn cnf(owned: &Owned, encoding: &str) -> String {
    let mut bytes = Vec::new();
    dimacs(
        &owned.question(),
        encoding,
        &name,
        &["a test".to_owned()],
        &Budget::unlimited(),
        &mut bytes,
    )
    .expect("memory can be written");
    String::from_utf8(bytes).expect("text")
}

/// The clauses of a DIMACS file, read independently of the crate that wrote it.
fn clauses(text: &str) -> Vec<Vec<i32>> {
    let mut header = None;
    let mut clauses = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [] | ["c", ..] => {}
            ["p", "cnf", variables, n_clauses] => header = Some((variables, n_clauses)),
            _ => {
                let numbers: Vec<i32> =
                    words.iter().map(|it| it.parse().expect("number")).collect();
                let (&last, clause) = numbers.split_last().expect("a clause");
                assert_eq!(last, 0);
                clauses.push(clause.to_vec());
            }
        }
    }
    let (variables, n_clauses) = header.expect("a header");
    assert_eq!(n_clauses, clauses.len().to_string());
    let variables: i32 = variables.parse().expect("a number");
    assert!(clauses.iter().flatten().all(|lit| lit.abs() <= variables));
    clauses
}

/// The answer of another SAT solver.
fn batsat_meets(clauses: &[Vec<i32>]) -> bool {
    let mut solver = BasicSolver::default();
    let mut variables = Vec::new();
    for clause in clauses {
        let mut literals = Vec::new();
        for &lit in clause {
            while variables.len() < lit.unsigned_abs() as usize {
                variables.push(solver.new_var_default());
            }
            let variable = variables[lit.unsigned_abs() as usize - 1];
            literals.push(batsat::Lit::new(variable, lit > 0));
        }
        solver.add_clause_reuse(&mut literals);
    }
    solver.solve_limited(&[]) == lbool::TRUE
}

#[test]
fn another_sat_solver_decides_the_dimacs_of_every_encoding_as_enumeration_does() {
    let mut random = Rng::new(31);
    let mut tally = [0; 2];
    for round in 0..400 {
        let owned = small(&mut random);
        let truth = owned.can_meet(&owned.all());
        tally[usize::from(truth)] += 1;
        for encoding in ENCODINGS {
            let met = batsat_meets(&clauses(&cnf(&owned, encoding)));
            assert_eq!(met, truth, "{encoding}, question {round}: {owned:?}");
        }
    }
    println!("{tally:?}");
    assert!(tally.iter().all(|&n| n > 80), "{tally:?}");
    for torn in [false, true] {
        let owned = planted(60, 120, torn, &mut random);
        for encoding in ENCODINGS {
            assert_eq!(batsat_meets(&clauses(&cnf(&owned, encoding))), !torn);
        }
    }
}

/// The same questions without their last constraint: the mutant of a writer that forgets one.
fn shortened(owned: &Owned) -> Owned {
    let mut shorter = owned.clone();
    let all = &owned.constraints;
    shorter.constraints = Constraints::default();
    for at in 0..all.len().saturating_sub(1) {
        let side = |side| all.side(at, side).iter().copied();
        let (either, or) = (side(Side::Either), side(Side::Or));
        shorter.constraints.push(either, or);
    }
    shorter
}

#[test]
fn choices_guarded_edges_and_clauses_are_exported_in_every_language() {
    let (mut tally, mut n_different) = ([0; 2], [0; 5]);
    let met = |owned: &Owned| {
        let mut met = ENCODINGS
            .map(|it| batsat_meets(&clauses(&cnf(owned, it))))
            .to_vec();
        met.push(meets_gnf(&text(owned, gnf), owned.constraints.len()));
        met
    };
    for (owned, truth) in (0..2_000).filter_map(chosen) {
        tally[usize::from(truth)] += 1;
        assert_eq!(met(&owned), [truth; 5], "{owned:?}");
        let arrows = text(&owned, dot).matches(" -> ").count();
        assert_eq!(arrows, known(&owned).len() + owned.constraints.n_edges());
        for (n, met) in n_different.iter_mut().zip(met(&shortened(&owned))) {
            *n += usize::from(met != truth);
        }
    }
    println!("{tally:?}; without the last constraint {n_different:?} differ");
    assert!(tally.iter().all(|&n| n > 80), "{tally:?}");
    assert!(n_different.iter().all(|&n| n > 0), "{n_different:?}");
}

/// The z3 that `scripts/setup` fetches, or one on the path.
fn z3() -> Option<PathBuf> {
    let fetched = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.z3/bin/z3"));
    if fetched.exists() {
        return Some(fetched);
    }
    let on_path = Command::new("z3").arg("--version").output().is_ok();
    on_path.then(|| PathBuf::from("z3"))
}

#[test]
fn z3_decides_the_smt_lib_as_enumeration_does() {
    let Some(z3) = z3() else {
        eprintln!(
            "SKIPPED: SMT-LIB, there is no z3, neither fetched by scripts/setup nor on the path"
        );
        return;
    };
    // One file for all, because z3 takes long to start.
    let mut random = Rng::new(32);
    let mut questions = String::new();
    let mut expected = Vec::new();
    let mut n_chosen = 0;
    for round in 0..300 {
        let (owned, truth) = if round % 50 == 0 {
            (planted(100, 200, round == 0, &mut random), round != 0)
        } else if let Some(chosen) = chosen(round).filter(|_| round % 2 == 0) {
            n_chosen += 1;
            chosen
        } else {
            let owned = small(&mut random);
            let truth = owned.can_meet(&owned.all());
            (owned, truth)
        };
        questions.push_str(&text(&owned, smtlib2).replace("(exit)", "(reset)"));
        expected.push(if truth { "sat" } else { "unsat" });
    }
    let file = std::env::temp_dir().join(format!("kingsnake-export-{}.smt2", std::process::id()));
    std::fs::write(&file, questions).expect("a temporary file");
    let said = Command::new(&z3).arg(&file).output();
    let _ = std::fs::remove_file(&file);
    let said = String::from_utf8_lossy(&said.expect("z3 runs").stdout).into_owned();
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
    let n_sat = expected.iter().filter(|&&answer| answer == "sat").count();
    let n_unsat = expected.len() - n_sat;
    println!("{n_sat} can be met, {n_unsat} cannot; {n_chosen} are of choices");
    assert!(n_chosen > 50 && n_sat > 40 && expected.len() - n_sat > 40);
}

/// Reads the graph format as its description says, and tries all values of the first variables.
fn meets_gnf(text: &str, n_constraints: usize) -> bool {
    let mut edges = Vec::new();
    let mut acyclic = None;
    let mut plain = String::new();
    let mut n_nodes = 0usize;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| words[at].parse::<usize>().expect("a number");
        match words[..] {
            ["digraph", "int", nodes, n_edges, "0"] => {
                n_nodes = nodes.parse().expect("a number");
                edges.reserve(n_edges.parse().expect("a number"));
            }
            ["edge", "0", ..] => edges.push((number(2), number(3), number(4))),
            ["acyclic", "0", _] => acyclic = Some(number(2)),
            _ => {
                plain.push_str(line);
                plain.push('\n');
            }
        }
    }
    let clauses = clauses(&plain);
    let acyclic = acyclic.expect("it must be acyclic") as i32;
    assert!(clauses.contains(&vec![acyclic]));
    let mut own: Vec<usize> = edges.iter().map(|&(_, _, variable)| variable).collect();
    own.sort_unstable();
    own.dedup();
    assert_eq!(
        own.len(),
        edges.len(),
        "every edge has a variable of its own"
    );
    (0u32..1 << n_constraints).any(|sides| {
        let chosen = |lit: i32| {
            let at = lit.unsigned_abs() as usize - 1;
            at < n_constraints && (sides >> at & 1 == 1) == (lit > 0)
        };
        // Every clause demands at most one variable that is not a side's.
        let demanded: Vec<usize> = clauses
            .iter()
            .filter(|clause| !clause.iter().any(|&lit| chosen(lit)))
            .filter_map(|clause| {
                clause
                    .iter()
                    .find(|&&lit| lit as usize > n_constraints && lit > 0)
            })
            .map(|&lit| lit as usize)
            .collect();
        let mut left: Vec<(usize, usize)> = edges
            .iter()
            .filter(|(_, _, variable)| demanded.contains(variable))
            .map(|&(from, to, _)| (from, to))
            .collect();
        for _ in 0..=n_nodes {
            let targets: Vec<usize> = left.iter().map(|&(_, to)| to).collect();
            left.retain(|(from, _)| targets.contains(from));
        }
        left.is_empty()
    })
}

#[test]
fn the_graph_format_says_what_enumeration_finds() {
    let mut random = Rng::new(33);
    let mut tally = [0; 2];
    for round in 0..400 {
        let owned = small(&mut random);
        let truth = owned.can_meet(&owned.all());
        tally[usize::from(truth)] += 1;
        let written = text(&owned, gnf);
        let met = meets_gnf(&written, owned.constraints.len());
        assert_eq!(met, truth, "question {round}:\n{written}");
    }
    assert!(tally.iter().all(|&n| n > 80), "{tally:?}");
}

#[test]
fn the_picture_has_every_edge() {
    let owned = planted(30, 40, false, &mut Rng::new(34));
    let picture = text(&owned, dot);
    let arrows = picture.matches(" -> ").count();
    assert_eq!(arrows, known(&owned).len() + owned.constraints.n_edges());
    assert!(picture.starts_with("// a test\ndigraph polygraph {") && picture.ends_with("}\n"));
}
