//! Checks a proof, independently of the solver: every clause of the instance is a cycle, and the clauses refute each other.
//!
//! The second part is LRAT (Cruz-Filipe et al., CADE 2017), forward: every step names the clauses that make it follow by unit
//! propagation, one after the other. Steps that would need more than that (RAT) are refused; none is needed here.

use std::collections::HashMap;

use kingsnake_graph::decide::{Question, Side};

use super::instance::{ProofInstance, number};
use super::refusal::ProofRefusal;

/// Statistics of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Clauses that are cycles.
    pub cycles: usize,
    /// Steps up to the empty clause.
    pub steps: usize,
}

/// Checks that the instance's clauses are cycles, and that the proof derives the empty clause from them.
pub fn check(instance: &ProofInstance, proof: &str) -> Result<Checked, ProofRefusal> {
    for at in 0..instance.clauses.len() {
        let unjustified = |what| ProofRefusal::Unjustified {
            clause: at + 1,
            what,
        };
        justified(instance, at).map_err(unjustified)?;
    }
    let steps = refuted(instance, proof)?;
    Ok(Checked {
        cycles: instance.clauses.len(),
        steps,
    })
}

/// A cycle's edges are known, or demanded by sides that the clause forbids.
fn justified(instance: &ProofInstance, at: usize) -> Result<(), String> {
    let (clause, cycle) = (&instance.clauses[at], &instance.cycles[at]);
    if cycle.len() < 2 || cycle.first() != cycle.last() {
        return Err(format!("{cycle:?} is no cycle"));
    }
    for pair in cycle.windows(2) {
        let edge = (pair[0], pair[1]);
        let demanded = |lit: &i32| {
            let edges = instance.sides.get(&-lit);
            edges.is_some_and(|edges| edges.contains(&edge))
        };
        if !instance.known.contains(&edge) && !clause.iter().any(demanded) {
            return Err(format!(
                "the edge from {} to {} is neither known nor of a side that the clause forbids",
                edge.0, edge.1
            ));
        }
    }
    Ok(())
}

/// The number of steps until the empty clause.
fn refuted(instance: &ProofInstance, proof: &str) -> Result<usize, ProofRefusal> {
    let mut clauses: HashMap<u64, Vec<i32>> = (1..).zip(instance.clauses.iter().cloned()).collect();
    let mut values = vec![0i8; instance.constraints.len() + 1];
    let mut n_steps = 0;
    if clauses.values().any(Vec::is_empty) {
        return Ok(0);
    }
    for (at, line) in proof.lines().enumerate() {
        let wrong = |what: String| ProofRefusal::Step { line: at + 1, what };
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [] | ["c", ..] => {}
            [_, "d", ref gone @ .., "0"] => {
                for id in gone {
                    let id: u64 = number(id).map_err(wrong)?;
                    if clauses.remove(&id).is_none() {
                        return Err(wrong(format!("there is no clause {id} to delete")));
                    }
                }
            }
            [id, ref rest @ .., "0"] => {
                n_steps += 1;
                let id: u64 = number(id).map_err(wrong)?;
                let zero = rest.iter().position(|&word| word == "0");
                let zero =
                    zero.ok_or_else(|| wrong("a step has two parts, each ended by 0".to_owned()))?;
                let clause: Vec<i32> = numbers(&rest[..zero]).map_err(wrong)?;
                let hints: Vec<i64> = numbers(&rest[zero + 1..]).map_err(wrong)?;
                follows(&clause, &hints, &clauses, &mut values).map_err(wrong)?;
                if clause.is_empty() {
                    return Ok(n_steps);
                }
                if clauses.insert(id, clause).is_some() {
                    return Err(wrong(format!("there is a clause {id} already")));
                }
            }
            _ => return Err(wrong("it does not end with 0".to_owned())),
        }
    }
    Err(ProofRefusal::Unfinished)
}

fn numbers<T: std::str::FromStr>(words: &[&str]) -> Result<Vec<T>, String> {
    words.iter().map(|word| number(word)).collect()
}

/// With all literals false, each hint but the last gives a literal its value, and the last is false.
fn follows(
    clause: &[i32],
    hints: &[i64],
    clauses: &HashMap<u64, Vec<i32>>,
    values: &mut [i8],
) -> Result<(), String> {
    let mut assigned = Vec::new();
    let result = propagate(clause, hints, clauses, values, &mut assigned);
    for variable in assigned {
        values[variable] = 0;
    }
    result
}

fn propagate(
    clause: &[i32],
    hints: &[i64],
    clauses: &HashMap<u64, Vec<i32>>,
    values: &mut [i8],
    assigned: &mut Vec<usize>,
) -> Result<(), String> {
    let mut assign = |values: &mut [i8], lit: i32| -> Result<(), String> {
        let variable = lit.unsigned_abs() as usize;
        let value = if lit > 0 { 1 } else { -1 };
        match values.get_mut(variable) {
            Some(old) if variable > 0 => {
                if *old == 0 {
                    *old = value;
                    assigned.push(variable);
                }
                Ok(())
            }
            _ => Err(format!("there is no variable of literal {lit}")),
        }
    };
    let value = |values: &[i8], lit: i32| {
        let value = values[lit.unsigned_abs() as usize];
        if lit > 0 { value } else { -value }
    };
    for &lit in clause {
        assign(values, -lit)?;
    }
    for hint in hints {
        let named = u64::try_from(*hint).ok().and_then(|id| clauses.get(&id));
        let named = named.ok_or_else(|| format!("there is no clause {hint}"))?;
        let mut open = named.iter().filter(|&&lit| value(values, lit) >= 0);
        match (open.next(), open.next()) {
            (None, _) => return Ok(()),
            // One that holds already adds nothing, and does no harm.
            (Some(&unit), None) => assign(values, unit)?,
            _ => return Err(format!("clause {hint} gives nothing when it is named")),
        }
    }
    Err("the clauses that are named do not contradict each other".to_owned())
}

/// Checks that the instance is about this question: its constraints, their sides' edges and its known edges.
pub fn same_question(
    instance: &ProofInstance,
    question: &Question<'_>,
) -> Result<(), ProofRefusal> {
    for &(from, to) in &instance.known {
        let known = question
            .starts
            .get(from as usize..from as usize + 2)
            .is_some_and(|range| {
                question.targets[range[0] as usize..range[1] as usize].contains(&to)
            });
        if !known {
            return Err(ProofRefusal::UnknownEdge(from, to));
        }
    }
    for (&lit, edges) in &instance.sides {
        let constraint = instance.constraints[lit.unsigned_abs() as usize - 1] as usize;
        if constraint >= question.constraints.len() {
            return Err(ProofRefusal::NoConstraint(constraint));
        }
        let side = if lit > 0 { Side::Either } else { Side::Or };
        let demanded = question.constraints.side(constraint, side);
        for &(from, to) in edges {
            if !demanded
                .iter()
                .any(|edge| (edge.from, edge.to) == (from, to))
            {
                let edge = (from, to);
                return Err(ProofRefusal::NotDemanded { constraint, edge });
            }
        }
    }
    let mut distinct = instance.constraints.clone();
    distinct.sort_unstable();
    distinct.dedup();
    if distinct.len() < instance.constraints.len() {
        return Err(ProofRefusal::SameConstraint);
    }
    Ok(())
}
