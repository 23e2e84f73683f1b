//! Weak levels where reads can have been of several versions: which ones, and in which order did the transactions commit?
//!
//! For fixed versions one topological sort decides. So a SAT solver proposes a version for each such read, the sort finds cycles, and each
//! cycle becomes a clause over the reads that it rests on, until an order is found or nothing is left to propose. Reads that no
//! cycle rests on are never tried again. The clauses are also the leaves of the proof, which splits on what was read.

use batsat::{BasicSolver, Lit, SolverInterface, Var, lbool};
use rustc_hash::FxHashMap;

use kingsnake_relate::visible::{Commits, Sight, Why};

use super::counting::{Counting, counting};
use super::{commits, cycle, refuted};
use crate::budget::{Budget, StopReason};
use crate::cases::{Cases, Taken, cases};
use crate::guess;
use crate::level::{Model, Spec};
use crate::model::{History, KeyId, TxnId};
use crate::resolve::{Node, Resolved, VersionId};
use crate::verdict::{Certificate, OperationSource, Proof, Step, Verdict};

/// How many cycles of one proposal become clauses.
const CYCLES: usize = 32;

/// A read that can have been of several versions.
pub(super) struct Choice {
    /// Its number among the reads in program order.
    read: usize,
    pub(super) reader: Node,
    pub(super) op: usize,
    pub(super) key: KeyId,
    /// Sorted.
    pub(super) candidates: Vec<VersionId>,
}

/// Reads that cannot all be, and the cycle that they make.
struct Conflict {
    blamed: Vec<Taken>,
    steps: Vec<Step>,
}

/// What a proposal came to.
enum Outcome {
    Order(Vec<Node>),
    Conflicts(Vec<Conflict>),
}

struct Search<'a> {
    history: &'a History,
    spec: Spec,
    budget: &'a Budget,
    resolved: Resolved,
    choices: Vec<Choice>,
    /// The choices of each reader and key.
    of: FxHashMap<(Node, KeyId), Vec<usize>>,
    /// The version that each choice is taken to be of.
    chosen: Vec<VersionId>,
    conflicts: Vec<Conflict>,
    aggregates: Vec<Counting>,
}

/// Decides a weak level by what the uncertain reads can have been of.
pub(super) fn decide(
    history: &History,
    resolved: Resolved,
    spec: Spec,
    budget: &Budget,
) -> Result<Verdict, StopReason> {
    let choices = choices(&resolved);
    decide_among(history, (resolved, choices), spec, budget)
}

/// The same, given the choices.
pub(super) fn decide_among(
    history: &History,
    (mut resolved, choices): (Resolved, Vec<Choice>),
    spec: Spec,
    budget: &Budget,
) -> Result<Verdict, StopReason> {
    resolved.keep_program_reads();
    if let Some(dead) = choices.iter().find(|it| it.candidates.is_empty()) {
        return Ok(refuted(Proof::Choice {
            reader: resolved.txn(dead.reader),
            op: Some(dead.op),
            key: dead.key,
            cases: Vec::new(),
        }));
    }
    let mut of: FxHashMap<(Node, KeyId), Vec<usize>> = FxHashMap::default();
    for (at, choice) in choices.iter().enumerate() {
        of.entry((choice.reader, choice.key)).or_default().push(at);
    }
    let places = choices.iter().enumerate();
    let places = places.map(|(at, it)| ((it.reader, it.op, it.key), at));
    let place: FxHashMap<(Node, usize, KeyId), usize> = places.collect();
    let aggregates = counting(history, &resolved, |read| place.get(&read).copied());
    let search = Search {
        history,
        aggregates,
        spec,
        budget,
        chosen: choices.iter().map(|it| it.candidates[0]).collect(),
        resolved,
        choices,
        of,
        conflicts: Vec::new(),
    };
    search.run()
}

/// The reads that can have been of several versions.
pub(super) fn choices(resolved: &Resolved) -> Vec<Choice> {
    let reads = resolved.reads();
    let mut choices = Vec::with_capacity(reads.choices().len());
    let mut reader = 0;
    for (read, candidates) in reads.choices() {
        let read = *read as usize;
        while reads.of(reader).end <= read {
            reader += 1;
        }
        choices.push(Choice {
            read,
            reader,
            op: reads.op(read) as usize,
            key: resolved.versions().key(reads.version(read)),
            candidates: candidates.clone(),
        });
    }
    choices
}

impl Search<'_> {
    fn run(mut self) -> Result<Verdict, StopReason> {
        let mut solver = BasicSolver::default();
        let candidates = self.choices.iter().map(|it| it.candidates.as_slice());
        let variables = guess::variables(&mut solver, candidates.zip(self.guess()?));
        if let Some(wrong) = self.state_aggregates(&mut solver, &variables) {
            return Ok(refuted(wrong));
        }
        loop {
            self.budget.check()?;
            if solver.solve_limited(&[]) != lbool::TRUE {
                return cases(&mut self).map(refuted);
            }
            self.take(&solver, &variables);
            if self.refuse_results(&mut solver, &variables) {
                continue;
            }
            match self.sort()? {
                Outcome::Order(order) => return Ok(self.explained(&order)),
                Outcome::Conflicts(conflicts) => {
                    for conflict in conflicts {
                        if conflict.blamed.is_empty() {
                            return Ok(refuted(Proof::Cycle(conflict.steps)));
                        }
                        let blamed = conflict.blamed.iter();
                        let literals = blamed.map(|&(choice, version)| {
                            let at = self.choices[choice].candidates.binary_search(&version);
                            Lit::new(variables[choice][at.unwrap_or(0)], false)
                        });
                        solver.add_clause_reuse(&mut literals.collect());
                        self.conflicts.push(conflict);
                    }
                }
            }
        }
    }

    /// States the aggregates; one whose result cannot be, whatever was read.
    fn state_aggregates(&self, solver: &mut BasicSolver, variables: &[Vec<Var>]) -> Option<Proof> {
        let all = |_: usize| None;
        let candidates = |choice: usize| self.candidates(choice);
        for (at, counting) in self.aggregates.iter().enumerate() {
            if !counting.is_possible(self.history, candidates, all) {
                return Some(self.impossible(at));
            }
            counting.state(self.history, candidates, variables, solver);
        }
        None
    }

    /// Forbids what was proposed of the rows of an aggregate that has another result; whether there is one.
    fn refuse_results(&self, solver: &mut BasicSolver, variables: &[Vec<Var>]) -> bool {
        let chosen = |choice: usize| Some(self.chosen[choice]);
        let mut is_wrong = false;
        for counting in &self.aggregates {
            if counting.is_possible(self.history, |it| self.candidates(it), chosen) {
                continue;
            }
            is_wrong = true;
            let literals = counting.rows.iter().map(|row| {
                let candidates = &self.choices[row.choice].candidates;
                let at = candidates.binary_search(&self.chosen[row.choice]);
                Lit::new(variables[row.choice][at.unwrap_or(0)], false)
            });
            solver.add_clause_reuse(&mut literals.collect());
        }
        is_wrong
    }

    /// What each read is likely to be of: the newest in an order that explains the certain reads, if there is one.
    fn guess(&self) -> Result<Vec<Option<VersionId>>, StopReason> {
        let certain = self.resolved.without_program_choices();
        let edges = commits(self.history, &certain, self.spec, self.budget)?;
        let n_txns = certain.n_txns();
        let Ok(order) = cycle::order(n_txns, &edges) else {
            return Ok(vec![None; self.choices.len()]);
        };
        let place = guess::places(n_txns, order);
        let choices = self.choices.iter();
        let newest = |it: &Choice| {
            let read_at = place[it.reader as usize];
            guess::newest(&certain, &place, read_at, &it.candidates)
        };
        Ok(choices.map(newest).collect())
    }

    /// Takes the reads to be of what the solver proposes.
    fn take(&mut self, solver: &BasicSolver, variables: &[Vec<Var>]) {
        for (at, choice) in self.choices.iter().enumerate() {
            let mut proposed = variables[at].iter();
            let place = proposed.position(|&it| solver.value_var(it) == lbool::TRUE);
            let version = choice.candidates[place.unwrap_or(0)];
            self.chosen[at] = version;
            self.resolved.assign(choice.read, version);
        }
    }

    /// Sorts the commits; or some cycles, no two of which rest on one and the same read alone.
    fn sort(&self) -> Result<Outcome, StopReason> {
        let mut edges = commits(self.history, &self.resolved, self.spec, self.budget)?;
        if self.spec.model == Model::Ra {
            self.add_repeated(&mut edges);
        }
        let mut conflicts: Vec<Conflict> = Vec::new();
        while conflicts.len() < CYCLES {
            self.budget.check()?;
            let cycle = match cycle::order(self.resolved.n_txns(), &edges) {
                Ok(order) if conflicts.is_empty() => return Ok(Outcome::Order(order)),
                Ok(_) => break,
                Err(cycle) => cycle,
            };
            let steps = cycle::steps(self.history, &self.resolved, &cycle);
            let blamed = self.blamed(&cycle);
            let Some(&first) = blamed.first() else {
                return Ok(Outcome::Conflicts(vec![Conflict { blamed, steps }]));
            };
            let reader = self.choices[first.0].reader;
            // Paths may rest on it as well.
            let is_past = |edge: &Commits| {
                matches!(
                    edge.why,
                    Why::Vis {
                        sight: Sight::Past,
                        ..
                    }
                ) && cycle.contains(edge)
            };
            let n_before = edges.len();
            edges.retain(|edge| !rests_on(edge, reader, first.1) && !is_past(edge));
            if edges.len() == n_before {
                edges.retain(|edge| !cycle.contains(edge));
            }
            conflicts.push(Conflict { blamed, steps });
        }
        Ok(Outcome::Conflicts(conflicts))
    }

    /// At read atomic a transaction that read two versions of a key saw the writers of both at either read. Where reads are certain
    /// that is a finding, so the edges of the level leave it out.
    fn add_repeated(&self, edges: &mut Vec<Commits>) {
        let (reads, versions) = (self.resolved.reads(), self.resolved.versions());
        for &(reader, key) in self.of.keys() {
            let of_reader = reads.of(reader).map(|read| reads.version(read));
            let mut seen: Vec<VersionId> =
                of_reader.filter(|&it| versions.key(it) == key).collect();
            seen.sort_unstable();
            seen.dedup();
            for &by in seen.iter().filter(|&&it| !versions.is_initial(it)) {
                for &version in seen.iter().filter(|&&it| it != by) {
                    let why = Why::Vis {
                        reader,
                        version,
                        sight: Sight::Source(by),
                    };
                    let (from, to) = (versions.writer(by), versions.writer(version));
                    edges.push(Commits { from, to, why });
                }
            }
        }
    }

    /// The choices that a cycle rests on.
    fn blamed(&self, cycle: &[Commits]) -> Vec<Taken> {
        let mut blamed: Vec<Taken> = Vec::new();
        let mut blame = |reader: Node, key: KeyId, writer: Node| {
            for &choice in self.of.get(&(reader, key)).into_iter().flatten() {
                let chosen = self.chosen[choice];
                if self.resolved.versions().writer(chosen) == writer {
                    blamed.push((choice, chosen));
                }
            }
        };
        let versions = self.resolved.versions();
        for edge in cycle {
            match edge.why {
                Why::Session | Why::Stated(_) | Why::Given(_) => {}
                Why::Wr(version) => blame(edge.to, versions.key(version), edge.from),
                Why::Vis {
                    reader,
                    version,
                    sight,
                } => {
                    blame(reader, versions.key(version), edge.to);
                    match sight {
                        Sight::EarlierRead(by) | Sight::Source(by) => {
                            blame(reader, versions.key(by), edge.from);
                        }
                        Sight::Session => {}
                        Sight::Past => {
                            let by_session = self.spec.session_order;
                            let path =
                                cycle::reads_between(&self.resolved, by_session, edge.from, reader);
                            for (reader, key, writer) in path {
                                blame(reader, key, writer);
                            }
                        }
                    }
                }
            }
        }
        blamed.sort_unstable();
        blamed.dedup();
        blamed
    }

    fn writer(&self, version: VersionId) -> Option<TxnId> {
        let versions = self.resolved.versions();
        (!versions.is_initial(version)).then(|| self.resolved.txn(versions.writer(version)))
    }

    fn explained(&self, order: &[Node]) -> Verdict {
        let order = order.iter().map(|&node| self.resolved.txn(node));
        let choices = self.choices.iter().zip(&self.chosen);
        let sources = choices.map(|(choice, &version)| OperationSource {
            reader: self.resolved.txn(choice.reader),
            op: choice.op,
            key: choice.key,
            writer: self.writer(version),
        });
        Verdict::Satisfied(Certificate {
            sources: sources.collect(),
            ..Certificate::of_txns(order)
        })
    }
}

impl Cases for Search<'_> {
    type Why = Proof;
    type Failed = StopReason;

    fn history(&self) -> &History {
        self.history
    }

    fn budget(&self) -> &Budget {
        self.budget
    }

    fn n_choices(&self) -> usize {
        self.choices.len()
    }

    fn candidates(&self, choice: usize) -> &[VersionId] {
        &self.choices[choice].candidates
    }

    fn aggregates(&self) -> &[Counting] {
        &self.aggregates
    }

    fn conflicts(&self) -> impl Iterator<Item = &[Taken]> {
        self.conflicts.iter().map(|it| it.blamed.as_slice())
    }

    fn end(&mut self, conflict: usize, _: &[Taken]) -> Result<(Proof, Vec<usize>), StopReason> {
        let Conflict { blamed, steps } = &self.conflicts[conflict];
        let rests_on = blamed.iter().map(|it| it.0).collect();
        Ok((Proof::Cycle(steps.clone()), rests_on))
    }

    fn impossible(&self, aggregate: usize) -> Proof {
        let counting = &self.aggregates[aggregate];
        Proof::Aggregate {
            reader: self.resolved.txn(counting.reader),
            nth: counting.nth,
            ruled_out: Vec::new(),
        }
    }

    fn choice(&self, choice: usize, cases: Vec<(VersionId, Proof)>) -> Proof {
        let choice = &self.choices[choice];
        let cases = cases.into_iter();
        Proof::Choice {
            reader: self.resolved.txn(choice.reader),
            op: Some(choice.op),
            key: choice.key,
            cases: cases.map(|(it, why)| (self.writer(it), why)).collect(),
        }
    }
}

/// Whether an edge rests on a transaction's having read a version, as far as it says so itself.
fn rests_on(edge: &Commits, reader: Node, version: VersionId) -> bool {
    match edge.why {
        Why::Wr(it) => it == version && edge.to == reader,
        Why::Vis {
            reader: who,
            version: it,
            sight,
        } => {
            let by = match sight {
                Sight::EarlierRead(by) | Sight::Source(by) => Some(by),
                Sight::Session | Sight::Past => None,
            };
            who == reader && (it == version || by == Some(version))
        }
        Why::Session | Why::Given(_) | Why::Stated(_) => false,
    }
}
