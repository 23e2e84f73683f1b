//! The closure on this CPU: bits (`dense`) or clocks (`chains`), chosen from the sizes.

use std::ops::Range;

use super::chains::Clocks;
use super::dag::Dag;
use super::dense::Dense;
use super::engine::{Engine, Halt, Rest, Round, positions, reserve_pairs};
use super::judge::{Judge, Judged, Pair, Reaches};
use super::open::{Form, constraints, list_pairs};
use super::{PruneOptions, Reachability};
use crate::budget::{Budget, StopReason};
#[cfg(test)]
use crate::fault::Fault;
use crate::polygraph::{Edge, Polygraph};

/// Dense rows are read by the bit, clocks by the word: clocks pay once chains are this many times fewer than nodes.
const NODES_PER_CHAIN: usize = 32;

/// The closure in one of its forms.
enum Closure {
    Dense(Dense),
    Clocks(Clocks),
}

/// The engine of this CPU.
pub(super) struct Local {
    /// The chains, if clocks were chosen.
    chains: Option<Vec<Range<u32>>>,
    pub(super) why: String,
    /// The pairs still open, once they have been listed.
    open: Option<Vec<Pair>>,
    closure: Option<Closure>,
}

impl Local {
    /// Chooses the form.
    pub(super) fn new(
        polygraph: &Polygraph,
        wanted: Reachability,
        budget: &Budget,
    ) -> Result<Self, StopReason> {
        let n_nodes = polygraph.n_nodes;
        let chains = polygraph.chains();
        let take_chains = match wanted {
            Reachability::Auto => chains.len() * NODES_PER_CHAIN <= n_nodes,
            Reachability::Chains => true,
            Reachability::Dense => false,
        };
        let (chains, why) = if take_chains {
            // Those that look the other way are alive beside them.
            budget.reserve("the clocks", 2 * Clocks::bytes(n_nodes, chains.len()))?;
            let why = format!("{n_nodes} nodes on {} chains", chains.len());
            (Some(chains), why)
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
        match (&mut self.closure, &self.chains) {
            (Some(Closure::Clocks(clocks)), _) => clocks.update(dag),
            (_, Some(chains)) => self.closure = Some(Closure::Clocks(Clocks::new(dag, chains))),
            (Some(Closure::Dense(dense)), None) => dense.update(dag),
            (None, None) => self.closure = Some(Closure::Dense(Dense::new(dag))),
        }
        #[cfg(test)]
        match &mut self.closure {
            Some(Closure::Dense(dense)) if crate::fault::is(Fault::ShiftedColumn) => {
                dense.shift_columns();
            }
            Some(Closure::Clocks(clocks)) if crate::fault::is(Fault::EarlyClock) => {
                clocks.be_early();
            }
            _ => {}
        }
    }

    fn judge(
        &self,
        polygraph: &Polygraph,
        dag: &Dag,
        budget: &Budget,
    ) -> Result<Judged, StopReason> {
        match self.closure.as_ref() {
            Some(Closure::Dense(reach)) => {
                let judge = judge_with(polygraph, reach, budget);
                match &self.open {
                    Some(open) => judge.again(open),
                    None => judge.all_pairs(),
                }
            }
            Some(Closure::Clocks(reach)) => {
                let judge = judge_with(polygraph, reach, budget);
                match &self.open {
                    Some(open) => judge.again(open),
                    None => judge.along_chains(&reach.descending(dag)),
                }
            }
            None => Ok(Judged::default()),
        }
    }

    /// What is open where no round was run: every pair, and reachability serves the estimate only.
    pub(super) fn finish_unpruned(
        polygraph: &Polygraph,
        dag: &Dag,
        options: PruneOptions,
        budget: &Budget,
    ) -> Result<Rest, StopReason> {
        reserve_pairs(polygraph, budget)?;
        let open = list_pairs(polygraph);
        let mut estimate = Vec::new();
        if options.estimate && !open.is_empty() {
            let mut engine = Local::new(polygraph, options.reachability, budget)?;
            engine.close(dag);
            estimate = engine.estimate(dag);
        }
        budget.check()?;
        let form = Form::of(options);
        let constraints = constraints::<Clocks>(polygraph, &open, None, form);
        Ok((constraints, estimate))
    }

    fn estimate(&self, dag: &Dag) -> Vec<f32> {
        match &self.closure {
            Some(Closure::Clocks(clocks)) => {
                positions(&clocks.totals(), &clocks.descending(dag).totals())
            }
            Some(Closure::Dense(dense)) => {
                let ancestors = Dense::count_descendants(&dag.reversed());
                positions(&ancestors, &dense.descendants())
            }
            None => Vec::new(),
        }
    }
}

impl Engine for Local {
    fn round(
        &mut self,
        polygraph: &Polygraph,
        dag: &Dag,
        _: &[Edge],
        budget: &Budget,
    ) -> Result<Round, Halt> {
        self.close(dag);
        let judged = self.judge(polygraph, dag, budget)?;
        let n_open = judged.open.len();
        self.open = Some(judged.open);
        Ok(Round {
            edges: judged.edges,
            n_open,
        })
    }

    fn finish(
        &mut self,
        polygraph: &Polygraph,
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
        if options.estimate && !open.is_empty() {
            if self.closure.is_none() {
                self.close(dag);
            }
            positions = self.estimate(dag);
        }
        budget.check()?;
        let form = Form::of(options);
        let constraints = match &self.closure {
            Some(Closure::Dense(reach)) => constraints(polygraph, &open, Some(reach), form),
            Some(Closure::Clocks(reach)) => constraints(polygraph, &open, Some(reach), form),
            None => constraints::<Clocks>(polygraph, &open, None, form),
        };
        Ok((constraints, positions))
    }
}

fn judge_with<'a, R: Reaches>(
    polygraph: &'a Polygraph,
    reach: &'a R,
    budget: &'a Budget,
) -> Judge<'a, R> {
    Judge {
        polygraph,
        reach,
        budget,
    }
}
