//! The rounds: compute reachability, judge, add what is forced, until nothing is.

use std::ops::Range;
use std::time::Instant;

use super::chains::Clocks;
use super::dag::Dag;
use super::dense::Dense;
use super::judge::{Judge, Judged, Pair, Reaches};
use super::open::{Form, constraints, list_pairs};
use super::{Contradiction, Outcome, PruneStats, Pruned, Reachability, RoundStats};
use crate::budget::{Budget, StopReason};
use crate::decide::Constraints;
#[cfg(test)]
use crate::fault::Fault;
use crate::polygraph::Polygraph;
use crate::progress::{Event, Progress};

/// Dense rows are read by the bit, clocks by the word: clocks pay once chains are this many times fewer than nodes.
const NODES_PER_CHAIN: usize = 32;

/// The choices that pruning leaves to its caller.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)] // Each is a switch of its own.
pub struct PruneOptions {
    /// How reachability is kept.
    pub reachability: Reachability,
    /// How many rounds at most.
    pub rounds: Option<usize>,
    /// Whether one topological sort decides where every key is settled.
    pub linear: bool,
    /// Whether positions are estimated for what is left open.
    pub estimate: bool,
    /// Whether all readers of two runs share one constraint.
    pub coalesce: bool,
    /// Whether all keys of two transactions share one constraint.
    pub merge: bool,
}

impl Default for PruneOptions {
    fn default() -> Self {
        PruneOptions {
            reachability: Reachability::Auto,
            rounds: None,
            linear: true,
            estimate: true,
            coalesce: true,
            merge: true,
        }
    }
}

/// The closure in one of its forms.
enum Closure {
    Dense(Dense),
    Clocks(Clocks),
}

/// Which form was chosen, and its chains.
struct Choice {
    chains: Option<Vec<Range<u32>>>,
    name: &'static str,
    why: String,
}

fn choose(
    polygraph: &Polygraph,
    wanted: Reachability,
    budget: &Budget,
) -> Result<Choice, StopReason> {
    let n_nodes = polygraph.n_nodes;
    let chains = polygraph.chains();
    let dense_bytes = Dense::bytes(n_nodes);
    let take_chains = match wanted {
        Reachability::Auto => chains.len() * NODES_PER_CHAIN <= n_nodes,
        Reachability::Chains => true,
        Reachability::Dense => false,
    };
    if take_chains {
        // Those that look the other way are alive beside them.
        budget.reserve("the clocks", 2 * Clocks::bytes(n_nodes, chains.len()))?;
        let why = format!("{n_nodes} nodes on {} chains", chains.len());
        return Ok(Choice {
            chains: Some(chains),
            name: "chains",
            why,
        });
    }
    budget.reserve("the bit matrix", dense_bytes)?;
    Ok(Choice {
        chains: None,
        name: "dense",
        why: format!("{n_nodes} nodes, {} MB of bits", dense_bytes >> 20),
    })
}

/// Prunes to the fixpoint, or as long as the options allow.
pub fn prune(
    polygraph: Polygraph,
    options: PruneOptions,
    stats: &mut PruneStats,
    budget: &Budget,
    progress: &mut dyn Progress,
) -> Result<Outcome, StopReason> {
    let mut rounds = Rounds {
        round_ends: vec![polygraph.edges.len()],
        polygraph,
        open: None,
        closure: None,
    };
    let Ok(dag) = rounds.dag() else {
        return Ok(rounds.contradiction());
    };
    stats.reachability = "none";
    if rounds.polygraph.runs.is_empty() && options.linear {
        "every key is ordered already".clone_into(&mut stats.why);
        stats.fixpoint = true;
        return Ok(rounds.pruned(dag, Constraints::default(), Vec::new()));
    }
    if options.rounds == Some(0) {
        "no rounds were asked for".clone_into(&mut stats.why);
        return rounds.finish(dag, options, None, budget);
    }
    let choice = choose(&rounds.polygraph, options.reachability, budget)?;
    stats.reachability = choice.name;
    stats.why.clone_from(&choice.why);
    let mut dag = dag;
    let mut round = 0;
    loop {
        round += 1;
        let start = Instant::now();
        rounds.close(&dag, &choice);
        let judged = rounds.judge(&dag, budget)?;
        let new_edges = judged.edges.len();
        let open = judged.open.len();
        rounds.take(judged);
        stats.rounds.push(RoundStats {
            new_edges: new_edges as u64,
            open: open as u64,
            time: start.elapsed(),
        });
        progress.event(Event::Round {
            round,
            new_edges,
            open,
        });
        if new_edges == 0 {
            stats.fixpoint = true;
            break;
        }
        match rounds.dag() {
            Ok(next) => dag = next,
            Err(_) => return Ok(rounds.contradiction()),
        }
        if options.rounds == Some(round) {
            rounds.closure = None;
            break;
        }
    }
    rounds.finish(dag, options, Some(&choice), budget)
}

struct Rounds {
    polygraph: Polygraph,
    round_ends: Vec<usize>,
    /// The pairs still open, once they have been listed.
    open: Option<Vec<Pair>>,
    closure: Option<Closure>,
}

impl Rounds {
    fn dag(&self) -> Result<Dag, super::Cyclic> {
        Dag::new(self.polygraph.n_nodes, self.polygraph.edges.iter())
    }

    fn contradiction(self) -> Outcome {
        Outcome::Contradiction(Contradiction {
            polygraph: self.polygraph,
            round_ends: self.round_ends,
        })
    }

    fn pruned(self, dag: Dag, constraints: Constraints, estimate: Vec<f32>) -> Outcome {
        Outcome::Pruned(Pruned {
            polygraph: self.polygraph,
            round_ends: self.round_ends,
            dag,
            constraints,
            estimate,
        })
    }

    /// Computes the closure, or brings it up to date.
    fn close(&mut self, dag: &Dag, choice: &Choice) {
        match (&mut self.closure, &choice.chains) {
            (Some(Closure::Clocks(clocks)), _) => clocks.update(dag),
            (_, Some(chains)) => self.closure = Some(Closure::Clocks(Clocks::new(dag, chains))),
            (_, None) => self.closure = Some(Closure::Dense(Dense::new(dag))),
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

    fn judge(&self, dag: &Dag, budget: &Budget) -> Result<Judged, StopReason> {
        match self.closure.as_ref() {
            Some(Closure::Dense(reach)) => {
                let judge = self.judge_with(reach, budget);
                match &self.open {
                    Some(open) => judge.again(open),
                    None => judge.all_pairs(),
                }
            }
            Some(Closure::Clocks(reach)) => {
                let judge = self.judge_with(reach, budget);
                match &self.open {
                    Some(open) => judge.again(open),
                    None => judge.along_chains(&reach.descending(dag)),
                }
            }
            None => Ok(Judged::default()),
        }
    }

    fn judge_with<'a, R: Reaches>(&'a self, reach: &'a R, budget: &'a Budget) -> Judge<'a, R> {
        Judge {
            polygraph: &self.polygraph,
            reach,
            budget,
        }
    }

    fn take(&mut self, judged: Judged) {
        self.polygraph.edges.extend(judged.edges);
        self.round_ends.push(self.polygraph.edges.len());
        self.open = Some(judged.open);
    }

    /// Lists what is open, and estimates positions for it.
    fn finish(
        mut self,
        dag: Dag,
        options: PruneOptions,
        choice: Option<&Choice>,
        budget: &Budget,
    ) -> Result<Outcome, StopReason> {
        let pairs = self.polygraph.runs.n_pairs();
        let open = if let Some(open) = self.open.take() {
            open
        } else {
            budget.reserve("the list of constraints", pairs.saturating_mul(64))?;
            list_pairs(&self.polygraph)
        };
        let mut estimate = Vec::new();
        if options.estimate && !open.is_empty() {
            let choice = match choice {
                Some(choice) => choice,
                None => &choose(&self.polygraph, options.reachability, budget)?,
            };
            if self.closure.is_none() {
                self.close(&dag, choice);
            }
            estimate = self
                .closure
                .as_ref()
                .map_or_else(Vec::new, |it| positions(it, &dag));
        }
        budget.check()?;
        let polygraph = &self.polygraph;
        let form = Form {
            coalesce: options.coalesce,
            merge: options.merge,
        };
        // Without pruning nothing may be learned from reachability.
        let constraints = match self.closure.as_ref().filter(|_| choice.is_some()) {
            Some(Closure::Dense(reach)) => constraints(polygraph, &open, Some(reach), form),
            Some(Closure::Clocks(reach)) => constraints(polygraph, &open, Some(reach), form),
            None => constraints::<Clocks>(polygraph, &open, None, form),
        };
        Ok(self.pruned(dag, constraints, estimate))
    }
}

/// The position estimate: ancestors minus descendants, a linear extension close to the real execution.
fn positions(closure: &Closure, dag: &Dag) -> Vec<f32> {
    let (ancestors, descendants) = match closure {
        Closure::Clocks(clocks) => (clocks.totals(), clocks.descending(dag).totals()),
        Closure::Dense(dense) => {
            let ancestors = Dense::count_descendants(&dag.reversed());
            (ancestors, dense.descendants())
        }
    };
    let pairs = ancestors.iter().zip(&descendants);
    pairs
        .map(|(&before, &after)| before as f32 - after as f32)
        .collect()
}
