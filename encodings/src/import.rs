//! Reads `MonoSAT`'s graph format (Bayless et al., AAAI 2015): clauses, graphs whose edges are variables, and the demand
//! that a graph is acyclic.
//!
//! An edge is there iff its variable is true. A variable that stands for an edge and is only ever implied, by clauses
//! ¬l ∨ e, is no variable of the problem: its edge is guarded by each l.

use std::collections::{HashMap, HashSet};

use kingsnake_graph::{Edge, Literal, Problem};
use thiserror::Error;

/// Number of variables and nodes that may be declared without being named in any line.
const UNNAMED: usize = 1_000_000;

/// Why a file is not an instance; the line is counted from 1.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("line {line}: {what}")]
pub struct GnfError {
    /// Where.
    pub line: usize,
    /// What is wrong, and what is expected.
    pub what: String,
}

/// Why a model is rejected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadModel {
    /// It belongs to another instance.
    #[error("{n_values} values for {n_variables} variables")]
    Size {
        /// Number of its values.
        n_values: usize,
        /// Number of variables.
        n_variables: usize,
    },
    /// A clause does not hold.
    #[error("no literal of the clause {0:?} holds")]
    Clause(Vec<i32>),
    /// A graph that must be acyclic is not.
    #[error("the edges that are there have a cycle")]
    Cyclic,
}

/// A question in the format's own terms, for checking answers.
#[derive(Clone, Debug, Default)]
pub struct Gnf {
    n_variables: usize,
    /// Literals as in the file.
    clauses: Vec<Vec<i32>>,
    n_nodes: usize,
    /// The ends of the edges of acyclic graphs, and their variables.
    edges: Vec<(u32, u32, u32)>,
}

/// A graph of the file.
struct Graph {
    id: i64,
    first_node: usize,
    n_nodes: usize,
    /// Where and by which variable it is demanded to be acyclic.
    acyclic: Vec<(usize, i32)>,
    edges: Vec<(u32, u32, u32)>,
}

impl Gnf {
    /// Reads a file.
    pub fn read(text: &str) -> Result<Gnf, GnfError> {
        let mut reader = Reader {
            n_bytes: text.len(),
            ..Reader::default()
        };
        for (at, line) in text.lines().enumerate() {
            reader.line = at + 1;
            reader.read(line)?;
        }
        reader.finish()
    }

    /// How many variables there are; they are counted from 1.
    pub fn n_variables(&self) -> usize {
        self.n_variables
    }

    /// The problem. Its variable v stands for the file's v + 1.
    pub fn problem(&self) -> Problem {
        let mut problem = Problem::new(self.n_nodes);
        for _ in 0..self.n_variables {
            problem.logic.variable();
        }
        let implied = self.implied();
        for &(from, to, variable) in &self.edges {
            if !implied[variable as usize] {
                let guard = [Literal::Variable(variable, true)];
                problem.logic.guard(Edge::plain(from, to), &guard);
            }
        }
        let mut edges_of: Vec<Vec<Edge>> = vec![Vec::new(); self.n_variables];
        for &(from, to, variable) in &self.edges {
            edges_of[variable as usize].push(Edge::plain(from, to));
        }
        for clause in &self.clauses {
            let is_implied = |lit: &&i32| **lit > 0 && implied[**lit as usize - 1];
            if let Some(&edge) = clause.iter().find(is_implied) {
                let others: Vec<Literal> = clause
                    .iter()
                    .filter(|&&it| it != edge)
                    .map(|&it| !literal(it))
                    .collect();
                for &edge in &edges_of[edge as usize - 1] {
                    if others.is_empty() {
                        problem.edges.push(edge);
                    } else {
                        problem.logic.guard(edge, &others);
                    }
                }
            } else {
                let literals: Vec<Literal> = clause.iter().map(|&it| literal(it)).collect();
                problem.logic.clause(&literals);
            }
        }
        problem
    }

    /// The variables that only stand for an edge which other variables, or nothing, imply.
    fn implied(&self) -> Vec<bool> {
        let mut implied = vec![false; self.n_variables];
        for &(.., variable) in &self.edges {
            implied[variable as usize] = true;
        }
        for clause in &self.clauses {
            let is_edge = |lit: &i32| implied[lit.unsigned_abs() as usize - 1];
            let is_implication =
                clause.len() <= 2 && clause.iter().filter(|&it| is_edge(it)).count() <= 1;
            for &lit in clause {
                implied[lit.unsigned_abs() as usize - 1] &= is_implication && lit > 0;
            }
        }
        implied
    }

    /// Completes a model of the problem: edges that are only implied are there iff something implies them.
    pub fn complete(&self, model: &mut [bool]) {
        let implied = self.implied();
        for (variable, value) in model.iter_mut().enumerate() {
            *value &= !implied[variable];
        }
        for clause in &self.clauses {
            let Some(&edge) = clause
                .iter()
                .find(|&&it| it > 0 && implied[it as usize - 1])
            else {
                continue;
            };
            let holds = |&lit: &i32| model[lit.unsigned_abs() as usize - 1] == (lit > 0);
            if !clause.iter().filter(|&&it| it != edge).any(holds) {
                model[edge as usize - 1] = true;
            }
        }
    }

    /// Checks a model, independently of how it was found.
    pub fn check(&self, model: &[bool]) -> Result<(), BadModel> {
        if model.len() != self.n_variables {
            return Err(BadModel::Size {
                n_values: model.len(),
                n_variables: self.n_variables,
            });
        }
        let holds = |&lit: &i32| model[lit.unsigned_abs() as usize - 1] == (lit > 0);
        for clause in &self.clauses {
            if !clause.iter().any(holds) {
                return Err(BadModel::Clause(clause.clone()));
            }
        }
        let mut next: Vec<Vec<u32>> = vec![Vec::new(); self.n_nodes];
        let mut waiting = vec![0_usize; self.n_nodes];
        for &(from, to, variable) in &self.edges {
            if model[variable as usize] {
                next[from as usize].push(to);
                waiting[to as usize] += 1;
            }
        }
        let mut ready: Vec<usize> = (0..self.n_nodes).filter(|&it| waiting[it] == 0).collect();
        let mut removed = 0;
        while let Some(node) = ready.pop() {
            removed += 1;
            for &to in &next[node] {
                waiting[to as usize] -= 1;
                if waiting[to as usize] == 0 {
                    ready.push(to as usize);
                }
            }
        }
        if removed < self.n_nodes {
            return Err(BadModel::Cyclic);
        }
        Ok(())
    }
}

fn literal(lit: i32) -> Literal {
    Literal::Variable(lit.unsigned_abs() - 1, lit > 0)
}

#[derive(Default)]
struct Reader {
    n_bytes: usize,
    line: usize,
    declared: Option<usize>,
    gnf: Gnf,
    graphs: Vec<Graph>,
    /// Where each graph is, by its number.
    places: HashMap<i64, usize>,
}

impl Reader {
    fn error(&self, what: impl Into<String>) -> GnfError {
        GnfError {
            line: self.line,
            what: what.into(),
        }
    }

    fn read(&mut self, line: &str) -> Result<(), GnfError> {
        let mut words = line.split_ascii_whitespace();
        let Some(first) = words.next() else {
            return Ok(());
        };
        let rest: Vec<&str> = words.collect();
        match first {
            "c" => Ok(()),
            _ if first.starts_with('c') && first.parse::<i64>().is_err() => Ok(()),
            "p" => self.header(&rest),
            "digraph" => self.graph(&rest),
            "edge" => self.edge(&rest),
            "acyclic" => self.acyclic(&rest),
            _ if first.parse::<i32>().is_ok() => self.clause(line),
            _ => Err(self.error(format!(
                "{first:?} is not read here; a file has clauses, digraph, edge and acyclic lines"
            ))),
        }
    }

    fn numbers(&self, words: &[&str]) -> Result<Vec<i64>, GnfError> {
        let number = |word: &&str| {
            let number = word.parse::<i64>();
            number.map_err(|_| self.error(format!("expected a whole number, not {word:?}")))
        };
        words.iter().map(number).collect()
    }

    fn header(&mut self, rest: &[&str]) -> Result<(), GnfError> {
        let ["cnf", numbers @ ..] = rest else {
            return Err(self.error("expected `p cnf VARIABLES CLAUSES`"));
        };
        match self.numbers(numbers)?[..] {
            [variables, _] if (0..=i64::from(i32::MAX)).contains(&variables) => {
                self.expect_room("variables", variables as usize)?;
                self.declared = Some(variables as usize);
                self.gnf.n_variables = self.gnf.n_variables.max(variables as usize);
                Ok(())
            }
            _ => Err(self.error("expected `p cnf VARIABLES CLAUSES`")),
        }
    }

    /// Numbers claimed in the file are bounded by the file's size.
    fn expect_room(&self, what: &str, claimed: usize) -> Result<(), GnfError> {
        let most = self.n_bytes.saturating_add(UNNAMED);
        if claimed > most {
            return Err(self.error(format!(
                "{claimed} {what}, which are more than a file of {} bytes speaks of; at most {most} are taken",
                self.n_bytes
            )));
        }
        Ok(())
    }

    fn variable(&mut self, number: i64) -> Result<u32, GnfError> {
        if number <= 0 || number > i64::from(i32::MAX) {
            return Err(self.error(format!("{number} is no variable; they are counted from 1")));
        }
        if let Some(declared) = self.declared.filter(|&it| number as usize > it) {
            let what = format!("variable {number}, but the header declares {declared}");
            return Err(self.error(what));
        }
        self.expect_room("variables", number as usize)?;
        self.gnf.n_variables = self.gnf.n_variables.max(number as usize);
        Ok(number as u32 - 1)
    }

    fn clause(&mut self, line: &str) -> Result<(), GnfError> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let mut numbers = self.numbers(&words)?;
        if numbers.pop() != Some(0) || numbers.contains(&0) {
            return Err(self.error("a clause is literals that end with 0, one clause a line"));
        }
        let mut clause = Vec::with_capacity(numbers.len());
        for number in numbers {
            self.variable(number.saturating_abs())?;
            clause.push(number as i32);
        }
        clause.sort_unstable();
        clause.dedup();
        if !clause.iter().any(|lit| clause.binary_search(&-lit).is_ok()) {
            self.gnf.clauses.push(clause);
        }
        Ok(())
    }

    fn graph(&mut self, rest: &[&str]) -> Result<(), GnfError> {
        let rest = rest.strip_prefix(&["int"]).unwrap_or(rest);
        let [n_nodes, _, id] = self.numbers(rest)?[..] else {
            return Err(self.error("expected `digraph int NODES EDGES ID`"));
        };
        let first_node = self.gnf.n_nodes;
        let n_nodes = usize::try_from(n_nodes).ok();
        let fits = |it: &usize| first_node + it < u32::MAX as usize;
        let Some(n_nodes) = n_nodes.filter(fits) else {
            return Err(self.error("too many nodes, or fewer than none"));
        };
        self.expect_room("nodes", first_node + n_nodes)?;
        if self.places.insert(id, self.graphs.len()).is_some() {
            return Err(self.error(format!("graph {id} is there already")));
        }
        self.gnf.n_nodes += n_nodes;
        self.graphs.push(Graph {
            id,
            first_node,
            n_nodes,
            acyclic: Vec::new(),
            edges: Vec::new(),
        });
        Ok(())
    }

    fn graph_of(&self, id: i64) -> Result<usize, GnfError> {
        let found = self.places.get(&id).copied();
        found.ok_or_else(|| self.error(format!("there is no graph {id} above")))
    }

    fn edge(&mut self, rest: &[&str]) -> Result<(), GnfError> {
        // A weight may follow, which acyclicity does not look at.
        let numbers = self.numbers(&rest[..rest.len().min(4)])?;
        let [id, from, to, variable] = numbers[..] else {
            return Err(self.error("expected `edge GRAPH FROM TO VARIABLE`"));
        };
        let variable = self.variable(variable)?;
        let graph = self.graph_of(id)?;
        let Graph {
            first_node,
            n_nodes,
            ..
        } = self.graphs[graph];
        let node = |number: i64| {
            let number = usize::try_from(number).ok().filter(|&it| it < n_nodes);
            number.map(|it| (first_node + it) as u32)
        };
        let (Some(from), Some(to)) = (node(from), node(to)) else {
            return Err(self.error(format!(
                "graph {id} has the nodes 0 to {}",
                n_nodes.max(1) - 1
            )));
        };
        self.graphs[graph].edges.push((from, to, variable));
        Ok(())
    }

    fn acyclic(&mut self, rest: &[&str]) -> Result<(), GnfError> {
        let [id, variable] = self.numbers(rest)?[..] else {
            return Err(self.error("expected `acyclic GRAPH VARIABLE`"));
        };
        let variable = self.variable(variable)? as i32 + 1;
        let graph = self.graph_of(id)?;
        let line = self.line;
        self.graphs[graph].acyclic.push((line, variable));
        Ok(())
    }

    fn finish(mut self) -> Result<Gnf, GnfError> {
        let alone = self.gnf.clauses.iter().filter(|it| it.len() == 1);
        let alone: HashSet<i32> = alone.map(|it| it[0]).collect();
        for graph in &self.graphs {
            for &(line, variable) in &graph.acyclic {
                if !alone.contains(&variable) {
                    let what = format!(
                        "graph {} may be cyclic: there is no clause `{variable} 0`, and only graphs that must be acyclic \
                         are decided here",
                        graph.id
                    );
                    return Err(GnfError { line, what });
                }
            }
        }
        for graph in self.graphs {
            if !graph.acyclic.is_empty() {
                self.gnf.edges.extend(graph.edges);
            }
        }
        Ok(self.gnf)
    }
}
