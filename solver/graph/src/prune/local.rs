//! The closure on the CPU: bits (`dense`) or clocks (`chains`), chosen from the sizes.

use std::ops::Range;

use super::engine::{Engine, Halt, Rest, Round, reserve_pairs};
use super::judge::{Judge, Judged, Pair, Reaches};
use super::logic::{Settling, settling_rest};
use super::open::{Form, Placed, constraints, list_pairs};
use super::{PruneOptions, Reachability};
use rustc_hash::FxHashMap;

use crate::edge::Edge;
use crate::problem::Problem;
use crate::reach::{Clocks, Dag, Dense, Reach, positions};
use kingsnake_context::budget::{Budget, StopReason};

/// Dense rows are read by the bit, clocks by the word: clocks pay once chains are this many times fewer than nodes.
const NODES_PER_CHAIN: usize = 32;

/// Where a run has fewer pairs than this, those that it reaches are walked too: finding them first would take longer.
const RUNS_WALKED: u64 = 8;

/// Clocks follow new edges one by one if there is at most one per this many nodes.
const NODES_PER_EDGE: usize = 16;

/// If a large graph has fewer than one open pair per this many nodes, no places are estimated: any order is soon repaired.
const NODES_PER_PAIR: usize = 256;
const LARGE: usize = 1 << 17;

/// The closure in one of its forms.
enum Closure {
    /// With it, by node, how many nodes it reached before the last update.
    Dense(Dense, Vec<u32>),
    Clocks(Clocks),
}

/// The engine of this CPU.
pub(super) struct Local {
    /// The chains, if clocks were chosen.
    chains: Option<Vec<Range<u32>>>,
    pub(super) why: String,
    /// The pairs still open, once listed.
    open: Option<Vec<Pair>>,
    closure: Option<Closure>,
    /// Whether the closure has all edges, because it followed the last ones.
    is_closed: bool,
    /// The edges that it followed and the graph may not have yet.
    followed: FxHashMap<u32, Vec<u32>>,
    /// By node, whether its clock grew since the last judgement; nothing where any may have.
    moved: Option<Vec<bool>>,
    settling: Settling,
}

impl Local {
    /// Chooses the form.
    pub(super) fn new(
        problem: &Problem,
        wanted: Reachability,
        budget: &Budget,
    ) -> Result<Self, StopReason> {
        let n_nodes = problem.n_nodes;
        let chains = &problem.chains;
        let take_chains = match wanted {
            Reachability::Auto => {
                let n_chained: usize = chains.iter().map(ExactSizeIterator::len).sum();
                chains.len() * NODES_PER_CHAIN <= n_chained
            }
            Reachability::Chains => true,
            Reachability::Dense => false,
        };
        let (chains, why) = if take_chains {
            // Those that look the other way are alive beside them.
            budget.reserve("the clocks", 2 * Clocks::bytes(n_nodes, chains.len()))?;
            let why = format!("{n_nodes} nodes on {} chains", chains.len());
            (Some(chains.clone()), why)
        } else {
            let bytes = Dense::bytes(n_nodes);
            budget.reserve("the bit matrix", bytes)?;
            (None, format!("{n_nodes} nodes, {} MB of bits", bytes >> 20))
        };
        Ok(Local {
            chains,
            why,
            open: None,
            closure: None,
            is_closed: false,
            followed: FxHashMap::default(),
            moved: None,
            settling: Settling::new(&problem.logic),
        })
    }

    pub(super) fn name(&self) -> &'static str {
        match self.chains {
            Some(_) => "chains",
            None => "dense",
        }
    }

    /// Computes the closure, or brings it up to date.
    fn close(&mut self, dag: &Dag) {
        self.moved = None;
        match (&mut self.closure, &self.chains) {
            (Some(Closure::Clocks(clocks)), _) => clocks.update(dag),
            (_, Some(chains)) => self.closure = Some(Closure::Clocks(Clocks::new(dag, chains))),
            (Some(Closure::Dense(dense, before)), None) => {
                *before = dense.descendants();
                dense.update(dag);
            }
            (None, None) => self.closure = Some(Closure::Dense(Dense::new(dag), Vec::new())),
        }
    }

    fn judge(
        &mut self,
        problem: &Problem,
        dag: &Dag,
        budget: &Budget,
    ) -> Result<Judged, StopReason> {
        let logic = &problem.logic;
        match self.closure.as_ref() {
            Some(Closure::Dense(reach, before)) => {
                let judge = judge_with(problem, reach, budget);
                let mut judged = match &self.open {
                    // Reachability only grows, so a node that reaches as many reaches the same; and judging asks only what the
                    // heads of the two runs reach.
                    Some(open) => {
                        let now = reach.descendants();
                        let differs = |node: u32| before[node as usize] != now[node as usize];
                        judge.again(open, |run| {
                            let run = problem.orders.run(run);
                            differs(run.install) || differs(run.commit)
                        })
                    }
                    None => judge.all_pairs(),
                }?;
                self.settling.round(logic, &judge, &mut judged.edges);
                Ok(judged)
            }
            Some(Closure::Clocks(reach)) => {
                let judge = judge_with(problem, reach, budget);
                let orders = &problem.orders;
                let mut judged = match (&self.open, &self.moved) {
                    // Judging asks only the clocks of last writers and readers.
                    (Some(open), Some(moved)) => {
                        let moved = |node: &u32| moved[*node as usize];
                        judge.again(open, |run| {
                            moved(&orders.run(run).last_commit)
                                || orders.readers(run).iter().any(moved)
                        })
                    }
                    (Some(open), None) => judge.again(open, |_| true),
                    (None, _) => {
                        let is_crowded = orders.n_pairs() > RUNS_WALKED * orders.len() as u64;
                        let descending = is_crowded.then(|| reach.descending(dag));
                        judge.along_chains(&dag.places(), descending.as_ref())
                    }
                }?;
                self.settling.round(logic, &judge, &mut judged.edges);
                Ok(judged)
            }
            None => Ok(Judged::default()),
        }
    }

    /// What is open where no round was run: every pair, and reachability serves the estimate only.
    pub(super) fn finish_unpruned(
        problem: &Problem,
        dag: &Dag,
        options: PruneOptions,
        budget: &Budget,
    ) -> Result<Rest, StopReason> {
        reserve_pairs(problem, budget)?;
        let open = list_pairs(&problem.orders);
        let is_open = !open.is_empty() || !problem.logic.is_empty();
        let mut estimate = Vec::new();
        if options.estimate && is_open {
            let mut engine = Local::new(problem, options.reachability, budget)?;
            engine.close(dag);
            estimate = engine.estimate(dag);
        }
        budget.check()?;
        let mut placed = Placed::default();
        let form = Form::of(options, problem);
        let constraints =
            constraints::<Clocks>(&problem.orders, &open, None, form, Some(&mut placed));
        let settling = Settling::new(&problem.logic);
        Ok(settling_rest::<Clocks>(
            problem,
            &settling,
            None,
            constraints,
            placed,
            estimate,
            options,
        ))
    }

    fn estimate(&self, dag: &Dag) -> Vec<f32> {
        match &self.closure {
            Some(Closure::Clocks(clocks)) => {
                positions(&clocks.totals(), &clocks.descending(dag).totals())
            }
            Some(Closure::Dense(dense, _)) => {
                let ancestors = Dense::count_descendants(&dag.reversed());
                positions(&ancestors, &dense.descendants())
            }
            None => Vec::new(),
        }
    }

    /// What is left, given the closure of the known graph if there is one.
    fn rest<R: Reaches>(
        &self,
        problem: &Problem,
        open: &[Pair],
        reach: Option<&R>,
        estimate: Vec<f32>,
        options: PruneOptions,
        budget: &Budget,
    ) -> Rest {
        let form = Form::of(options, problem);
        if problem.logic.is_empty() && !options.grows {
            return Rest {
                constraints: constraints(&problem.orders, open, reach, form, None),
                estimate,
                ..Rest::default()
            };
        }
        let mut placed = Placed::default();
        let listed = constraints(&problem.orders, open, reach, form, Some(&mut placed));
        let judge = reach.map(|reach| judge_with(problem, reach, budget));
        settling_rest(
            problem,
            &self.settling,
            judge.as_ref(),
            listed,
            placed,
            estimate,
            options,
        )
    }
}

impl Engine for Local {
    /// To clocks most implied edges cost one comparison, so only the bits pay for looking which these are.
    fn reduce(&self, dag: &Dag) -> Option<Dag> {
        match &self.closure {
            Some(Closure::Dense(reach, _)) => Some(dag.reduced(|from, to| reach.reaches(from, to))),
            _ => None,
        }
    }

    fn follow(&mut self, dag: &Dag, new: &[Edge]) -> Option<bool> {
        let Some(Closure::Clocks(clocks)) = &mut self.closure else {
            return None;
        };
        let mut ends = new.iter().flat_map(|edge| [edge.from, edge.to]);
        if new.len() * NODES_PER_EDGE > dag.n_nodes() || !ends.all(|it| clocks.is_chained(it)) {
            self.followed.clear();
            return None;
        }
        self.is_closed = true;
        for edge in new {
            self.followed.entry(edge.from).or_default().push(edge.to);
        }
        let followed = &self.followed;
        let more = |node| followed.get(&node).map_or(&[][..], Vec::as_slice);
        let Ok(nodes) = clocks.follow(dag, new, more) else {
            return Some(false);
        };
        let mut moved = vec![false; dag.n_nodes()];
        for node in nodes {
            moved[node as usize] = true;
        }
        self.moved = Some(moved);
        Some(true)
    }

    fn round(
        &mut self,
        problem: &Problem,
        dag: &Dag,
        _: &[Edge],
        budget: &Budget,
    ) -> Result<Round, Halt> {
        if !std::mem::take(&mut self.is_closed) {
            self.close(dag);
        }
        let judged = self.judge(problem, dag, budget)?;
        let n_open = judged.open.len();
        self.open = Some(judged.open);
        Ok(Round {
            edges: judged.edges,
            n_open,
            is_contradiction: self.settling.is_contradiction,
        })
    }

    fn finish(
        &mut self,
        problem: &Problem,
        dag: &Dag,
        new: Option<&[Edge]>,
        options: PruneOptions,
        budget: &Budget,
    ) -> Result<Rest, Halt> {
        let open = self.open.take().unwrap_or_default();
        let mut positions = Vec::new();
        if new.is_some() {
            self.closure = None;
        }
        let has_logic = !problem.logic.is_empty();
        if (has_logic || options.grows) && self.closure.is_none() {
            self.close(dag);
        }
        let n_nodes = problem.n_nodes;
        let is_worth = n_nodes < LARGE || open.len() > n_nodes / NODES_PER_PAIR;
        if options.estimate && (has_logic || !open.is_empty() && is_worth) {
            if self.closure.is_none() {
                self.close(dag);
            }
            positions = self.estimate(dag);
        }
        budget.check()?;
        let mut rest = match &self.closure {
            Some(Closure::Dense(reach, _)) => {
                self.rest(problem, &open, Some(reach), positions, options, budget)
            }
            Some(Closure::Clocks(reach)) => {
                self.rest(problem, &open, Some(reach), positions, options, budget)
            }
            None => self.rest::<Clocks>(problem, &open, None, positions, options, budget),
        };
        rest.reach = match self.closure.take().filter(|_| options.grows) {
            Some(Closure::Dense(reach, _)) => Some(Reach::Dense(reach)),
            Some(Closure::Clocks(reach)) => Some(Reach::Clocks(reach)),
            None => None,
        };
        Ok(rest)
    }
}

fn judge_with<'a, R: Reaches>(
    problem: &'a Problem,
    reach: &'a R,
    budget: &'a Budget,
) -> Judge<'a, R> {
    Judge {
        orders: &problem.orders,
        reach,
        budget,
    }
}
