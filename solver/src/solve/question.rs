//! The question that the loop asks: a pruned graph that lemmas grow, and what was stated of the uncertain reads and the aggregates.

use std::sync::Arc;

use super::narrow::Rules;
use super::reads::{Reads, always_stated, worth_narrowing};
use super::results::{Counted, Wrong};
use super::schedule::schedule;
use super::{Found, KeyReader, Lemma, Obligation, Ranks, Refutation};
use crate::budget::Budget;
use crate::check::CheckStats;
use crate::decide::{Backend, Decision, Side};
use crate::phases::{self, Check, Stop};
use crate::progress::Progress;
use crate::prune::{Cyclic, Outcome, PruneOptions, Pruned, Variable, prune};
use crate::relate::{Candidates, ChoiceRuns, Polygraph};
use crate::report::{CheckError, Decider};
use crate::resolve::{CountedAggregate, Node, Resolved, VersionId};
use crate::sight;
use crate::verdict::Moment;
use crate::witness::witness;
use kingsnake_graph::reach::{Reach, places};
use kingsnake_graph::session::SolverSession;

/// A graph with fewer nodes is pruned again after each lemma: that is cheap, and reduces the search.
const SMALL: usize = 2_000;

/// How a turn of the loop ended.
pub(super) enum Turn {
    /// The question has grown so much that it should be pruned again.
    Grown,
    /// An obligation states the question again.
    Anew(Box<Polygraph>),
    /// An order that meets every obligation.
    Order(Decider, Vec<(Node, Moment)>),
    /// There is none.
    No(Decider),
}

/// Results without a back end.
enum Easy {
    Sides(Decider, Vec<Side>),
    No,
}

/// A read that no version explains any more, or an aggregate that nothing gives its result.
struct Dead;

/// The question, and what was stated in it.
pub(super) struct OpenQuestion<'a> {
    check: &'a Check<'a>,
    base: &'a Resolved,
    ranks: Option<&'a Ranks>,
    budget: &'a Budget,
    pruned: Pruned,
    reach: Arc<Reach>,
    runs: ChoiceRuns,
    reads: Reads,
    counted: Counted,
    /// How many edges, guarded edges and clauses there were when it was pruned.
    n_pruned: usize,
    n_turns: u32,
    /// The variables that a no rests on.
    blamed: Vec<u32>,
}

impl<'a> OpenQuestion<'a> {
    /// Narrows the reads for which that pays, and prunes; or returns why there is no order.
    pub(super) fn new(
        (check, base, ranks): (&'a Check<'a>, &'a Resolved, Option<&'a Ranks>),
        polygraph: Polygraph,
        budget: &'a Budget,
        stats: &mut CheckStats,
    ) -> Result<Result<Self, Box<Refutation>>, Stop> {
        let mut reads = Reads::new(base);
        let narrowed = worth_narrowing(check, base);
        let counted = Counted::default();
        let given = (base, Some(polygraph));
        let asked = (narrowed.as_slice(), &counted);
        let Ok(left) = sight::narrowed(check, given, asked, &mut stats.prune, budget)? else {
            return Ok(Err(Box::new(Refutation {
                base: base.clone(),
                stated: narrowed,
                counted: Counted::default(),
                decider: Decider::Prune,
                blamed: base.in_doubt().first().copied(),
                variables: Vec::new(),
            })));
        };
        let pruned = reads.take(&narrowed, left);
        let mut question = OpenQuestion {
            check,
            base,
            ranks,
            budget,
            reach: reach(&pruned)?,
            n_pruned: size(&pruned),
            pruned,
            runs: ChoiceRuns::default(),
            reads,
            counted,
            n_turns: 0,
            blamed: Vec::new(),
        };
        question.estimate(true);
        let lemmas = always_stated(check, base).into_iter().map(Lemma::Read);
        if question.add(lemmas.collect())?.is_err() {
            return Ok(Err(question.refutation(Decider::Prune)));
        }
        question.pruned.grow();
        Ok(Ok(question))
    }

    /// Estimates the places of the nodes: by when the transactions were recorded to commit, if they were.
    fn estimate(&mut self, is_new: bool) {
        let pruned = &mut self.pruned;
        match self.ranks.filter(|it| it.are_recorded()) {
            _ if !self.check.techniques.estimate => {}
            Some(ranks) => {
                let problem = &pruned.problem;
                let likely = pruned.dag.order_by(|node| ranks.of(problem, node));
                pruned.estimate = places(&likely).into_iter().map(|it| it as f32).collect();
            }
            None if is_new => pruned.estimate_places(),
            None => {}
        }
    }

    /// Why there is no order.
    pub(super) fn refutation(&self, decider: Decider) -> Box<Refutation> {
        Box::new(Refutation {
            base: self.reads.view(self.base),
            stated: self.reads.stated(),
            counted: self.counted.clone(),
            decider,
            blamed: self.blamed_end(),
            variables: self.blamed.clone(),
        })
    }

    /// Prunes the current question; or returns why nothing is left.
    pub(super) fn prune_again(
        &mut self,
        stats: &mut CheckStats,
        progress: &mut dyn Progress,
    ) -> Result<Result<(), Decider>, Stop> {
        let options = PruneOptions {
            grows: true,
            ..self.check.techniques.prune_options()
        };
        // What pruning leaves of a problem is the problem with more known edges.
        let polygraph = self.pruned.problem.clone();
        stats.prune.rounds.clear();
        match prune(polygraph, options, &mut stats.prune, self.budget, progress)? {
            Outcome::Contradiction(_) => return Ok(Err(Decider::Prune)),
            Outcome::Pruned(pruned) => self.pruned = pruned,
        }
        self.estimate(false);
        self.reach = reach(&self.pruned)?;
        self.n_pruned = size(&self.pruned);
        Ok(Ok(()))
    }

    /// Decides, asks the obligations and adds their lemmas, until an order meets all, or there is none, or the question has grown much.
    pub(super) fn turn(
        &mut self,
        obligations: &mut [Box<dyn Obligation + '_>],
        backend: &mut dyn Backend,
        stats: &mut CheckStats,
        progress: &mut dyn Progress,
    ) -> Result<Turn, Stop> {
        let mut session: Option<Box<dyn SolverSession + '_>> = None;
        let mut backend = Some(backend);
        loop {
            self.budget.check()?;
            let (decider, sides) = match self.easy() {
                Some(Easy::Sides(decider, sides)) => (decider, sides),
                Some(Easy::No) => return Ok(Turn::No(Decider::Prune)),
                None => {
                    if let Some(backend) = backend.take() {
                        let mut new = backend.session(self.pruned.question());
                        self.pruned.grown().iter().for_each(|it| new.add(it));
                        session = Some(new);
                    }
                    let Some(session) = &mut session else {
                        unreachable!("the first time it is made");
                    };
                    let decided = session.decide(self.budget, progress);
                    let (decision, took) = decided.map_err(CheckError::from)?;
                    stats.decide = Some(took);
                    match decision {
                        Decision::Choices(sides) => (Decider::Backend, sides),
                        Decision::Core(core) => {
                            self.blamed = self.blamed(&core);
                            return Ok(Turn::No(Decider::Backend));
                        }
                        Decision::Unknown(reason) => return Err(Stop::Budget(reason)),
                    }
                }
            };
            let found = self.found(decider, &sides)?;
            let mut lemmas = Vec::new();
            for obligation in obligations.iter_mut() {
                lemmas.extend(obligation.check(&found)?);
            }
            if lemmas.is_empty() {
                return Ok(Turn::Order(decider, found.moments().collect()));
            }
            drop(found);
            self.n_turns += 1;
            if let Some(polygraph) = anew(&mut lemmas) {
                return Ok(Turn::Anew(polygraph));
            }
            if self.add(lemmas)?.is_err() {
                return Ok(Turn::No(Decider::Prune));
            }
            if self.is_worth_pruning() {
                return Ok(Turn::Grown);
            }
            let growth = self.pruned.grow();
            if let Some(session) = &mut session {
                session.add(growth);
            }
        }
    }

    /// The sides where nothing is open, or where the estimated order meets every constraint.
    fn easy(&self) -> Option<Easy> {
        let pruned = &self.pruned;
        let is_plain = |it: &kingsnake_graph::session::Growth| {
            it.n_constraints <= pruned.constraints.len() && it.clauses().len() == 0
        };
        if !pruned.grown().iter().all(is_plain) {
            return None;
        }
        if pruned.constraints.is_empty() {
            return Some(match pruned.order(&[]) {
                Ok(_) => Easy::Sides(Decider::Prune, Vec::new()),
                Err(Cyclic) => Easy::No,
            });
        }
        let is_tried = self.check.techniques.witness && self.n_turns == 0;
        let sides = is_tried.then(|| witness(pruned.question()))??;
        // Known edges may have been added meanwhile.
        pruned.order(&sides).ok()?;
        Some(Easy::Sides(Decider::Witness, sides))
    }

    /// The order that sides leave.
    fn found<'f>(&'f self, decider: Decider, sides: &'f [Side]) -> Result<Found<'f>, Stop> {
        let (pruned, base) = (&self.pruned, self.base);
        let (order, shown) = if base.unreturned().is_empty() {
            let order = match self.ranks {
                Some(ranks) => pruned.order_by(sides, |node| ranks.of(&pruned.problem, node)),
                None => pruned.order(sides),
            };
            (order.map_err(|Cyclic| phases::cyclic(decider))?, Vec::new())
        } else {
            let n_rows = super::absent::ROWS << self.n_turns.min(16);
            let history = self.check.history;
            let tried = schedule(history, base, (decider, pruned, sides), n_rows, self.budget)?;
            (tried.order, tried.missed)
        };
        Ok(Found {
            check: self.check,
            base,
            pruned,
            reads: &self.reads,
            counted: &self.counted,
            decider,
            order,
            shown,
            without_effect: self.without_effect(sides),
            sides,
        })
    }

    /// The transactions in doubt that did not take effect.
    fn without_effect(&self, sides: &[Side]) -> Vec<Node> {
        let polygraph = &self.pruned.problem;
        let in_doubt = self.base.in_doubt().iter().copied();
        let has_effect = |node: Node| {
            let variable = polygraph.took_effect(node);
            let variable = variable.and_then(|it| self.pruned.variables.get(it as usize));
            match variable {
                Some(Variable::Settled(value)) => *value,
                Some(Variable::Open(at)) => sides[*at as usize] == Side::Either,
                None => true,
            }
        };
        in_doubt.filter(|&node| !has_effect(node)).collect()
    }

    /// The variables that a core names.
    fn blamed(&self, core: &[u32]) -> Vec<u32> {
        let variables = self.pruned.variables.iter().zip(0..);
        let is_blamed = |it: &Variable| matches!(it, Variable::Open(at) if core.contains(at));
        let blamed = variables.filter(|it| is_blamed(it.0));
        blamed.map(|it| it.1).collect()
    }

    /// A transaction in doubt, of those whose ends are blamed if there are such.
    fn blamed_end(&self) -> Option<Node> {
        let in_doubt = self.base.in_doubt().iter().copied();
        let is_blamed = |node: &Node| {
            let variable = self.pruned.problem.took_effect(*node);
            variable.is_some_and(|it| self.blamed.contains(&it))
        };
        in_doubt.clone().find(is_blamed).or(in_doubt.min())
    }

    fn is_worth_pruning(&self) -> bool {
        let size = size(&self.pruned);
        self.pruned.dag.n_nodes() < SMALL || size > 2 * self.n_pruned
    }

    /// Adds lemmas to the problem.
    fn add(&mut self, lemmas: Vec<Lemma>) -> Result<Result<(), Dead>, Stop> {
        let mut poll = self.budget.poll();
        for lemma in lemmas {
            poll.step()?;
            let added = match lemma {
                Lemma::Read(read) => self.state(read, None),
                Lemma::Absent(row) => self.state_absent(row),
                Lemma::Count(aggregate) => self.count(aggregate)?,
                Lemma::Refuse(wrong) => {
                    self.refuse(&wrong);
                    Ok(())
                }
                Lemma::Guarded(edge, guard) => {
                    self.pruned.problem.problem_mut().logic.guard(edge, &guard);
                    Ok(())
                }
                Lemma::Anew(_) => unreachable!("it takes the place of the question"),
                Lemma::Conflict(literals) => {
                    let negated: Vec<_> = literals.into_iter().map(|it| !it).collect();
                    self.pruned.problem.problem_mut().logic.clause(&negated);
                    if negated.is_empty() {
                        Err(Dead)
                    } else {
                        Ok(())
                    }
                }
            };
            if added.is_err() {
                return Ok(Err(Dead));
            }
        }
        Ok(Ok(()))
    }

    /// States a read: it is of one of its candidates. Of the versions that a row of an aggregate tells apart, only one class.
    fn state(&mut self, read: usize, row: Option<(usize, usize)>) -> Result<(), Dead> {
        let reach = self.reach.clone();
        let reaches = |from: u32, to: u32| reach.reaches(from, to);
        let known = self.reads.how_stated(read);
        if known.is_some() && row.is_none() {
            return Ok(());
        }
        let uncertain = self.reads.of(read).clone();
        if known.is_none() {
            let places = self.pruned.problem.places();
            if !self.base.is_in_doubt(uncertain.reader) {
                let mut left = self.reads.left(read).to_vec();
                Rules::new(self.base, places, &reach, &uncertain).narrow(&mut left);
                self.reads.leave(read, left);
            }
        }
        let left = self.reads.left(read);
        if left.is_empty() && !self.base.is_in_doubt(uncertain.reader) {
            self.reads.set_stated(read, None);
            return Err(Dead);
        }
        let counted = &self.counted;
        let differ = |one: VersionId, other: VersionId| match (known, row) {
            (Some(_), Some(row)) => {
                counted.differ_in(row, one, other) && !counted.differ_but(row, read, one, other)
            }
            _ => counted.differ(read, one, other),
        };
        let candidates = Candidates {
            reader: uncertain.reader,
            key: uncertain.key,
            acceptable: &uncertain.candidates,
            open: left,
            differ: &differ,
        };
        let polygraph = &mut self.pruned.problem;
        if let Some(stated) = known {
            let first = stated.first_variable();
            self.runs
                .tell_apart(polygraph, &candidates, first, &reaches);
        } else {
            let first = self.runs.add(polygraph, &candidates, &reaches);
            self.reads.set_stated(read, first);
        }
        Ok(())
    }

    fn state_absent(&mut self, (reader, key): KeyReader) -> Result<(), Dead> {
        let read = self.base.unreturned_read(self.check.history, reader, key);
        let read = self.reads.number(read);
        self.state(read, None)
    }

    /// Counts an aggregate: its rows become uncertain reads, and clauses say that they give the result.
    fn count(&mut self, aggregate: CountedAggregate) -> Result<Result<(), Dead>, Stop> {
        let (history, base) = (self.check.history, self.base);
        let at = self
            .counted
            .count(history, base, aggregate, &mut self.reads)?;
        for row in 0..self.counted.all[at].rows.len() {
            let read = self.counted.all[at].rows[row].read;
            if self.state(read, Some((at, row))).is_err() {
                return Ok(Err(Dead));
            }
        }
        let counting = &self.counted.all[at];
        let left = |read: usize| self.reads.left(read);
        if !counting.is_possible(history, left) {
            return Ok(Err(Dead));
        }
        let first = |read: usize| self.reads.first_variable(read);
        let logic = &mut self.pruned.problem.problem_mut().logic;
        let is_said = counting.state(history, logic, left, first);
        self.counted.all[at].is_said = is_said;
        Ok(Ok(()))
    }

    /// Refuses what an order gave an aggregate that could not be stated.
    fn refuse(&mut self, wrong: &Wrong) {
        let Some(at) = self.counted.has(wrong.reader, wrong.nth) else {
            return;
        };
        let counting = &mut self.counted.all[at];
        let cells = counting.cells(wrong);
        let left = |read: usize| self.reads.left(read);
        let first = |read: usize| self.reads.first_variable(read);
        let logic = &mut self.pruned.problem.problem_mut().logic;
        counting.forbid(logic, &cells, left, first);
        counting.refused.push(cells);
    }
}

/// The question in place of this one, if a lemma is one.
fn anew(lemmas: &mut Vec<Lemma>) -> Option<Box<Polygraph>> {
    let at = lemmas.iter().position(|it| matches!(it, Lemma::Anew(_)))?;
    match lemmas.swap_remove(at) {
        Lemma::Anew(polygraph) => Some(polygraph),
        _ => None,
    }
}

/// How large a problem is.
fn size(pruned: &Pruned) -> usize {
    let problem = pruned.problem.problem();
    problem.edges.len() + problem.logic.guarded().len() + problem.logic.clauses().len()
}

fn reach(pruned: &Pruned) -> Result<Arc<Reach>, Stop> {
    match pruned.reach() {
        Some(reach) => Ok(reach),
        None => Err(phases::cyclic(Decider::Prune).into()),
    }
}
