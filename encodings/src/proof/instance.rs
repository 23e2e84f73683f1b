//! The instance that a proof is about: a CNF whose every clause is a cycle, with comments that justify it.
//!
//! Variable v says that some constraint's first side is taken. A clause says that some sides, together with known edges,
//! close a cycle, so that not all of them can be taken. Nothing else is a clause: a constraint is met by its variable having
//! a value. The comments, of which [`ProofInstance::read`] understands every line that starts with one of these words:
//!
//! ```text
//! c constraint V I          variable V is constraint I of the question
//! c side L FROM TO          the side that literal L stands for demands this edge
//! c known FROM TO           a known edge
//! c cycle K N1 N2 … N1      clause K is justified by this cycle
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::refusal::ProofRefusal;

/// Where the instance of a proof is: beside it, with `.cnf` at the end of its name.
pub fn instance_path(proof: &Path) -> PathBuf {
    let mut name = proof.as_os_str().to_owned();
    name.push(".cnf");
    name.into()
}

type Arc = (u32, u32);

/// The CNF and what its comments say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProofInstance {
    /// Comments that mean nothing to a checker.
    pub about: Vec<String>,
    /// Which constraint of the question each variable is, from variable 1 on.
    pub constraints: Vec<u32>,
    /// The edges that the sides demand, by literal.
    pub sides: BTreeMap<i32, BTreeSet<Arc>>,
    /// The known edges that some cycle uses.
    pub known: BTreeSet<Arc>,
    /// The clauses.
    pub clauses: Vec<Vec<i32>>,
    /// For each clause the nodes of its cycle, the first once more at the end.
    pub cycles: Vec<Vec<u32>>,
}

impl ProofInstance {
    /// As text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in &self.about {
            // A path may hold anything, and a comment ends at the end of its line.
            let _ = writeln!(text, "c {}", line.replace(['\n', '\r'], " "));
        }
        for (at, constraint) in self.constraints.iter().enumerate() {
            let _ = writeln!(text, "c constraint {} {constraint}", at + 1);
        }
        for (lit, edges) in &self.sides {
            for (from, to) in edges {
                let _ = writeln!(text, "c side {lit} {from} {to}");
            }
        }
        for (from, to) in &self.known {
            let _ = writeln!(text, "c known {from} {to}");
        }
        let _ = writeln!(
            text,
            "p cnf {} {}",
            self.constraints.len(),
            self.clauses.len()
        );
        for (at, (clause, cycle)) in self.clauses.iter().zip(&self.cycles).enumerate() {
            let _ = write!(text, "c cycle {}", at + 1);
            for node in cycle {
                let _ = write!(text, " {node}");
            }
            text.push('\n');
            for lit in clause {
                let _ = write!(text, "{lit} ");
            }
            text.push_str("0\n");
        }
        text
    }

    /// Reads it back; what is wrong is said with its line.
    pub fn read(text: &str) -> Result<ProofInstance, ProofRefusal> {
        let mut instance = ProofInstance::default();
        let mut header = None;
        let mut cycles = BTreeMap::new();
        for (at, line) in text.lines().enumerate() {
            instance
                .read_line(line, &mut header, &mut cycles)
                .map_err(|what| ProofRefusal::Line { line: at + 1, what })?;
        }
        let (n_variables, n_clauses) = header.ok_or(ProofRefusal::NoHeader)?;
        let announced = (n_variables, n_clauses);
        let found = (instance.constraints.len(), instance.clauses.len());
        if announced != found {
            return Err(ProofRefusal::Size { announced, found });
        }
        for clause in 1..=n_clauses {
            let cycle = cycles.remove(&(clause as u64));
            let cycle = cycle.ok_or(ProofRefusal::NoCycle(clause))?;
            instance.cycles.push(cycle);
        }
        if let Some(&clause) = cycles.keys().next() {
            return Err(ProofRefusal::NoClause(clause));
        }
        Ok(instance)
    }

    fn read_line(
        &mut self,
        line: &str,
        header: &mut Option<(usize, usize)>,
        cycles: &mut BTreeMap<u64, Vec<u32>>,
    ) -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [] => {}
            ["c", "constraint", variable, constraint] => {
                if number::<usize>(variable)? != self.constraints.len() + 1 {
                    return Err("the variables are not numbered from 1 on".to_owned());
                }
                self.constraints.push(number(constraint)?);
            }
            ["c", "side", lit, from, to] => {
                let edges = self.sides.entry(self.literal(lit)?).or_default();
                edges.insert((number(from)?, number(to)?));
            }
            ["c", "known", from, to] => {
                self.known.insert((number(from)?, number(to)?));
            }
            ["c", "cycle", clause, ref nodes @ ..] => {
                let nodes: Result<Vec<u32>, String> = nodes.iter().map(|it| number(it)).collect();
                if cycles.insert(number(clause)?, nodes?).is_some() {
                    return Err(format!("two cycles for clause {clause}"));
                }
            }
            ["c", ..] => self.about.push(line[1..].trim().to_owned()),
            ["p", "cnf", variables, clauses] => {
                *header = Some((number(variables)?, number(clauses)?));
            }
            [ref literals @ .., "0"] => {
                let clause: Result<Vec<i32>, String> =
                    literals.iter().map(|it| self.literal(it)).collect();
                self.clauses.push(clause?);
            }
            _ => return Err("neither a comment nor a clause that 0 ends".to_owned()),
        }
        Ok(())
    }

    /// A literal of a variable that is known already.
    fn literal(&self, word: &str) -> Result<i32, String> {
        let lit: i32 = number(word)?;
        if lit == 0 || lit.unsigned_abs() as usize > self.constraints.len() {
            return Err(format!("there is no variable of literal {lit}"));
        }
        Ok(lit)
    }
}

pub(super) fn number<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse()
        .map_err(|_| format!("{word:?} is no number that fits"))
}
