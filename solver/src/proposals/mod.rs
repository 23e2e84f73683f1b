//! Levels whose engines need to know what every read is of, where reads can have been of several versions: a SAT solver proposes a version
//! for each such read, the engine decides the history with these reads, and the reads that its no rests on become a clause, until an
//! order is found or nothing is left to propose.
//!
//! The weak levels, parallel snapshot isolation and mixed levels are decided so. A no is a tree of cases ("T7 read x = 3 from T1, or from
//! T4") whose ends are the engine's proofs.

mod blame;
mod families;
mod reads;
mod stronger;
#[cfg(test)]
mod tests;

use batsat::{BasicSolver, Lit, SolverInterface, Var, lbool};
use rustc_hash::{FxHashMap, FxHashSet};

use reads::{OpenRead, Place, open_reads, places, writer};

use crate::budget::Budget;
use crate::cases::{Cases, Taken, cases};
use crate::check::{Engines, settle_order};
use crate::context::Context;
use crate::decide::Backend;
use crate::guess;
use crate::level::Model;
use crate::model::{History, KeyId};
use crate::phases::{self, Check, Evidence, Exit, Refuted, Stop};
use crate::progress::{Phase, Silent};
use crate::prune::Outcome;
use crate::prune::{PruneStats, prune};
use crate::psi;
use crate::relate::reads_at as reads_at_point;
use crate::report::Decider;
use crate::resolve::{Node, Resolved, TakenReads, Uncertain, VersionId, resolve_reads};
use crate::uncertain::impossible_sources;
use crate::verdict::{Certificate, Counterexample, Moment, OperationSource, Point, Proof};
use crate::weak::counting::{Counting, counting};
use kingsnake_graph::reach::Reach;

/// Reads that cannot all be, and why, where the reason holds whatever else was read.
struct Conflict {
    blamed: Vec<Taken>,
    proof: Option<Proof>,
}

/// What the engine says of some reads.
enum Answer {
    Order(Decider, Vec<Point>),
    No(Decider, Proof),
    /// No, and of so many reads the reasons are not found again.
    Unproved(Decider),
}

struct Search<'a, 'e> {
    check: &'a Check<'a>,
    budget: &'a Budget,
    engines: Engines<'e>,
    base: &'a Resolved,
    reads: Vec<OpenRead>,
    /// The open reads of each transaction and key.
    of: FxHashMap<(Node, KeyId), Vec<usize>>,
    /// The open reads of each transaction.
    of_reader: FxHashMap<Node, Vec<usize>>,
    /// The transactions and keys whose reads may differ.
    loose: FxHashSet<(Node, KeyId)>,
    aggregates: Vec<Counting>,
    conflicts: Vec<Conflict>,
}

/// Settles a history whose level needs to know what every read is of.
pub(crate) fn settle(
    check: &Check<'_>,
    resolved: &Resolved,
    engines: Engines<'_>,
    context: &mut Context<'_>,
) -> Result<(Decider, Certificate), Exit> {
    context.begin(Phase::Decide)?;
    let with_program;
    let base = if check.spec.model == Model::Psi {
        with_program = resolve_reads(check.history, context.budget)?;
        &with_program
    } else {
        resolved
    };
    let mut search = search(check, base, engines, context.budget)?;
    if check.techniques.witness
        && let Some(found) = search.by_stronger_level()?
    {
        return Ok(found);
    }
    let strong = if check.spec.model == Model::Mixed {
        Some(search.order_of_strong(context)?)
    } else {
        None
    };
    search.run(strong.as_deref())
}

/// An order that explains a history at a stronger level than its own, if there is one, with what was read in it.
pub(crate) fn explain(
    check: &Check<'_>,
    backend: &mut dyn Backend,
    budget: &Budget,
) -> Result<Option<Certificate>, Stop> {
    let base = resolve_reads(check.history, budget)?;
    let engines = Engines {
        device: None,
        backend,
    };
    let found = search(check, &base, engines, budget);
    match found.and_then(|mut search| search.by_stronger_level()) {
        Ok(found) => Ok(found.map(|it| it.1)),
        Err(Exit::Refuted(_)) => Ok(None),
        Err(Exit::Stop(stop)) => Err(stop),
    }
}

/// A search that has proposed nothing yet.
fn search<'a, 'e>(
    check: &'a Check<'a>,
    base: &'a Resolved,
    engines: Engines<'e>,
    budget: &'a Budget,
) -> Result<Search<'a, 'e>, Exit> {
    let reads = open_reads(check, base);
    if let Some(dead) = reads.iter().find(|it| it.candidates.is_empty()) {
        let proof = dead.choice(base, Vec::new());
        return Err(Refuted::Proof(Decider::Resolve, proof).into());
    }
    let place = places(base, &reads);
    Ok(Search {
        check,
        budget,
        engines,
        base,
        of: reads::by_key(&reads),
        of_reader: reads::by_reader(&reads),
        loose: reads::loose(&reads),
        aggregates: counting(check.history, base, |read: Place| place.get(&read).copied()),
        reads,
        conflicts: Vec::new(),
    })
}

impl Search<'_, '_> {
    /// An order that explains what transactions at pc, si and ser read, whatever the others read: one question with all candidates. A
    /// history that is violated without some of its reads is violated.
    fn order_of_strong(&mut self, context: &mut Context<'_>) -> Result<Vec<Point>, Exit> {
        let check = self.check;
        let is_weak = |node: Node| {
            let model = check.spec.model_of(check.history, self.base.txn(node));
            model.is_weak()
        };
        let strong = self.base.without_choices_of(is_weak, &self.loose);
        let polygraph = phases::relate(check, strong, context)?;
        let (_, order) = settle_order(check, polygraph, self.engines.lend(), context)?;
        context.begin(Phase::Decide)?;
        Ok(order)
    }

    /// Proposes, first what the reads are likely to be of in an order, if one is given.
    fn run(&mut self, likely: Option<&[Point]>) -> Result<(Decider, Certificate), Exit> {
        let nothing = vec![None; self.reads.len()];
        let first = self.ask(&nothing)?;
        let guess = match &first {
            Answer::Order(_, order) => self.guess(likely.unwrap_or(order)),
            Answer::No(..) | Answer::Unproved(_) => nothing.clone(),
        };
        let mut solver = BasicSolver::default();
        let candidates = self.reads.iter().map(|it| it.candidates.as_slice());
        let variables = guess::variables(&mut solver, candidates.zip(guess));
        if let Some(wrong) = self.state_aggregates(&mut solver, &variables) {
            return Err(Refuted::Proof(Decider::Resolve, wrong).into());
        }
        if let Answer::Unproved(decider) = first {
            return Err(Refuted::NoProof(decider).into());
        }
        if let Answer::No(decider, proof) = first {
            let blamed = self.blamed(&nothing, &proof);
            if blamed.is_empty() {
                return Err(Refuted::Proof(decider, proof).into());
            }
            self.learn(&mut solver, &variables, blamed, None);
        }
        self.narrow(&mut solver, &variables)?;
        loop {
            self.budget.check()?;
            if solver.solve_limited(&[]) != lbool::TRUE {
                let proof = cases(self)?;
                return Err(Refuted::Proof(Decider::Backend, proof).into());
            }
            let chosen = self.chosen(&solver, &variables);
            if self.refuse_results(&chosen, &mut solver, &variables) {
                continue;
            }
            let torn = self.torn_families(&chosen);
            if !torn.is_empty() {
                for blamed in torn {
                    self.learn(&mut solver, &variables, blamed, None);
                }
                continue;
            }
            match self.ask_for_proof(&chosen)? {
                Answer::Unproved(decider) => return Err(Refuted::NoProof(decider).into()),
                Answer::Order(decider, order) => {
                    let sources = self.sources(|read| chosen[read]);
                    return Ok((decider, Certificate { order, sources }));
                }
                Answer::No(decider, proof) => {
                    let blamed = self.blamed(&chosen, &proof);
                    if blamed.is_empty() {
                        return Err(Refuted::Proof(decider, proof).into());
                    }
                    self.learn(&mut solver, &variables, blamed, Some(proof));
                }
            }
        }
    }

    /// What each read is likely to be of, given an order that explains some of the reads.
    fn guess(&self, order: &[Point]) -> Vec<Option<VersionId>> {
        let check = self.check;
        let commits = order.iter().filter(|it| it.moment != Moment::Begin);
        let commits = commits.filter_map(|it| self.base.node(it.txn));
        let place = guess::places(self.base.n_txns(), commits);
        // How many had committed where each transaction reads.
        let (mut reads_at, mut n_committed) = (place.clone(), 1);
        for &point in order {
            let Some(node) = self.base.node(point.txn) else {
                continue;
            };
            if point.moment != Moment::Begin {
                n_committed += 1;
            } else if reads_at_point(check.history, check.spec, point) {
                reads_at[node as usize] = n_committed;
            }
        }
        let reads = self.reads.iter();
        reads
            .map(|it| {
                let at = reads_at[it.reader as usize];
                guess::newest(self.base, &place, at, &it.candidates)
            })
            .collect()
    }

    /// States the aggregates; why not, where one cannot have its result, whatever was read.
    fn state_aggregates(&self, solver: &mut BasicSolver, variables: &[Vec<Var>]) -> Option<Proof> {
        let candidates = |read: usize| self.candidates(read);
        for (at, counting) in self.aggregates.iter().enumerate() {
            if !counting.is_possible(self.check.history, candidates, |_| None) {
                return Some(self.impossible(at));
            }
            counting.state(self.check.history, candidates, variables, solver);
        }
        None
    }

    /// Forbids what was proposed of the rows of an aggregate that has another result; whether there is one.
    fn refuse_results(
        &self,
        chosen: &[Option<VersionId>],
        solver: &mut BasicSolver,
        variables: &[Vec<Var>],
    ) -> bool {
        let candidates = |read: usize| self.candidates(read);
        let mut is_wrong = false;
        for counting in &self.aggregates {
            if counting.is_possible(self.check.history, candidates, |read| chosen[read]) {
                continue;
            }
            is_wrong = true;
            let rows = counting.rows.iter().map(|row| row.choice);
            let blamed = rows.filter_map(|read| Some((read, chosen[read]?)));
            self.forbid(solver, variables, &blamed.collect::<Vec<Taken>>());
        }
        is_wrong
    }

    fn forbid(&self, solver: &mut BasicSolver, variables: &[Vec<Var>], blamed: &[Taken]) {
        let literals = blamed.iter().map(|&(read, version)| {
            let at = self.reads[read].candidates.binary_search(&version);
            Lit::new(variables[read][at.unwrap_or(0)], false)
        });
        solver.add_clause_reuse(&mut literals.collect());
    }

    fn learn(
        &mut self,
        solver: &mut BasicSolver,
        variables: &[Vec<Var>],
        blamed: Vec<Taken>,
        proof: Option<Proof>,
    ) {
        self.forbid(solver, variables, &blamed);
        self.conflicts.push(Conflict { blamed, proof });
    }

    /// What the solver proposes.
    fn chosen(&self, solver: &BasicSolver, variables: &[Vec<Var>]) -> Vec<Option<VersionId>> {
        let reads = self.reads.iter().zip(variables);
        let chosen = reads.map(|(read, variables)| {
            let mut proposed = variables.iter();
            let place = proposed.position(|&it| solver.value_var(it) == lbool::TRUE);
            Some(read.candidates[place.unwrap_or(0)])
        });
        chosen.collect()
    }

    /// The history where some reads are of these versions, and the others say nothing.
    fn settled(&self, chosen: &[Option<VersionId>]) -> Resolved {
        let mut taken = TakenReads {
            loose: self.loose.clone(),
            ..TakenReads::default()
        };
        for (read, version) in self.reads.iter().zip(chosen) {
            let Some(version) = read.known.or(*version) else {
                continue;
            };
            taken
                .program
                .extend(read.reads.iter().map(|&it| (it, version)));
            if read.op.is_none() && read.known.is_none() {
                taken.first.push((version, read.reader));
            }
        }
        self.base.settled(taken)
    }

    /// Asks the engine whether the history can be where some reads are of these versions.
    fn ask(&mut self, chosen: &[Option<VersionId>]) -> Result<Answer, Stop> {
        let (check, resolved) = (self.check, self.settled(chosen));
        let mut silent = Silent;
        let mut context = Context::new(self.budget, &mut silent);
        let engines = &mut self.engines;
        let found = phases::relate(check, resolved, &mut context).and_then(|polygraph| {
            if check.spec.model == Model::Psi {
                return psi::settle(check, &polygraph, engines.backend, &mut context);
            }
            let lent = engines.lend();
            let pruned = phases::prune(check, polygraph, lent.device, &mut context)?;
            let decided = phases::decide(check, pruned, lent.backend, &mut context)?;
            Ok((decided.decider, phases::order(&decided)?))
        });
        let found = found.map(|(decider, order)| (decider, Certificate::from(order)));
        if let Err(Exit::Refuted(refuted)) = &found
            && let Refuted::NoProof(decider) = **refuted
        {
            return Ok(Answer::Unproved(decider));
        }
        let (decider, evidence) = phases::explain(check, found, &mut context)?;
        Ok(match evidence {
            Evidence::Order(certificate) => Answer::Order(decider, certificate.order),
            Evidence::Violated(Counterexample::Cyclic(proof)) => Answer::No(decider, proof),
            Evidence::Violated(_) => return Err(phases::cyclic(decider).into()),
        })
    }

    /// The same; where a no has no proof, of fewer reads, until it has one.
    fn ask_for_proof(&mut self, chosen: &[Option<VersionId>]) -> Result<Answer, Stop> {
        let mut answer = self.ask(chosen)?;
        let mut left = chosen.to_vec();
        let mut size = left.len().div_ceil(2);
        while matches!(answer, Answer::Unproved(_)) && size > 0 {
            for start in (0..left.len()).step_by(size) {
                let end = left.len().min(start + size);
                if left[start..end].iter().all(Option::is_none) {
                    continue;
                }
                let mut fewer = left.clone();
                fewer[start..end].fill(None);
                match self.ask(&fewer)? {
                    Answer::Order(..) => {}
                    no @ Answer::No(..) => return Ok(no),
                    unproved @ Answer::Unproved(_) => (answer, left) = (unproved, fewer),
                }
            }
            size /= 2;
        }
        Ok(answer)
    }

    /// Rules out candidates that come after the read, or that a newer version hides from it, whatever the other reads are of.
    fn narrow(&mut self, solver: &mut BasicSolver, variables: &[Vec<Var>]) -> Result<(), Stop> {
        let check = self.check;
        let resolved = self.settled(&vec![None; self.reads.len()]);
        let mut silent = Silent;
        let mut context = Context::new(self.budget, &mut silent);
        let polygraph = match phases::relate(check, resolved, &mut context) {
            Ok(polygraph) => polygraph,
            Err(Exit::Stop(stop)) => return Err(stop),
            Err(Exit::Refuted(_)) => return Ok(()),
        };
        let places = polygraph.places().clone();
        let reach = if check.spec.model == Model::Psi {
            psi::reach(&polygraph, self.budget)?
        } else {
            let options = check.techniques.prune_options();
            let mut stats = PruneStats::default();
            match prune(polygraph, options, &mut stats, self.budget, &mut Silent)? {
                Outcome::Contradiction(_) => None,
                Outcome::Pruned(pruned) => {
                    let chains = &pruned.problem.problem().chains;
                    Some(Reach::new(&pruned.dag, chains, self.budget)?)
                }
            }
        };
        let Some(reach) = reach else {
            return Ok(());
        };
        for at in 0..self.reads.len() {
            self.budget.check()?;
            let read = self.reads[at].uncertain();
            if read.candidates.len() == 1 {
                continue;
            }
            for version in impossible_sources(self.base.versions(), &places, &reach, &read) {
                self.learn(solver, variables, vec![(at, version)], None);
            }
        }
        Ok(())
    }

    /// Whether a read is of a transaction that writes the key too.
    fn joins(&self, read: usize) -> bool {
        let OpenRead { reader, key, .. } = self.reads[read];
        self.base.versions().of_writer(key, reader).is_some()
    }

    /// Whom the reads are of, given the version of each.
    fn sources(&self, version: impl Fn(usize) -> Option<VersionId>) -> Vec<OperationSource> {
        let program = self.base.reads();
        let mut sources = Vec::new();
        for (at, read) in self.reads.iter().enumerate() {
            let Some(version) = version(at) else { continue };
            sources.extend(read.reads.iter().map(|&it| OperationSource {
                reader: self.base.txn(read.reader),
                op: program.op(it) as usize,
                key: read.key,
                writer: writer(self.base, version),
            }));
        }
        sources
    }
}

impl Cases for Search<'_, '_> {
    type Why = Proof;
    type Failed = Stop;

    fn history(&self) -> &History {
        self.check.history
    }

    fn budget(&self) -> &Budget {
        self.budget
    }

    fn n_choices(&self) -> usize {
        self.reads.len()
    }

    fn candidates(&self, choice: usize) -> &[VersionId] {
        &self.reads[choice].candidates
    }

    fn aggregates(&self) -> &[Counting] {
        &self.aggregates
    }

    fn conflicts(&self) -> impl Iterator<Item = &[Taken]> {
        self.conflicts.iter().map(|it| it.blamed.as_slice())
    }

    fn end(&mut self, conflict: usize, taken: &[Taken]) -> Result<(Proof, Vec<usize>), Stop> {
        let Conflict { blamed, proof } = &self.conflicts[conflict];
        // What else is taken may join versions, which changes what a proof may say of them.
        let mut others = taken.iter().filter(|it| !blamed.contains(it));
        let is_joined = others.any(|it| self.joins(it.0));
        if let Some(proof) = proof.as_ref().filter(|_| !is_joined) {
            let rests_on = blamed.iter().map(|it| it.0).collect();
            return Ok((proof.clone(), rests_on));
        }
        let mut chosen = vec![None; self.reads.len()];
        for &(read, version) in if is_joined { taken } else { blamed } {
            chosen[read] = Some(version);
        }
        let mut proof = match self.ask(&chosen)? {
            Answer::No(_, proof) => proof,
            Answer::Order(decider, _) | Answer::Unproved(decider) => {
                return Err(phases::cyclic(decider).into());
            }
        };
        let mut rests_on = Vec::new();
        for (read, version) in self.blamed(&chosen, &proof) {
            if chosen[read].is_some() {
                rests_on.push(read);
            } else {
                // What the graph knows of a read is a case by itself.
                proof = self.choice(read, vec![(version, proof)]);
            }
        }
        Ok((proof, rests_on))
    }

    fn impossible(&self, aggregate: usize) -> Proof {
        let counting = &self.aggregates[aggregate];
        Proof::Aggregate {
            reader: self.base.txn(counting.reader),
            nth: counting.nth,
            ruled_out: Vec::new(),
        }
    }

    fn choice(&self, choice: usize, cases: Vec<(VersionId, Proof)>) -> Proof {
        let read = &self.reads[choice];
        let cases = cases.into_iter();
        let cases = cases.map(|(it, why)| (writer(self.base, it), why));
        read.choice(self.base, cases.collect())
    }
}

impl OpenRead {
    fn uncertain(&self) -> Uncertain {
        Uncertain {
            reader: self.reader,
            op: 0,
            key: self.key,
            candidates: self.candidates.clone(),
        }
    }
}
