//! The rounds: compute reachability, judge, add what is forced, until nothing is.

use std::sync::Arc;
use std::time::Instant;

use super::asked::asked;
use super::device::{Device, Offer, Task};
use super::engine::{Engine, Halt, Rest};
use super::execute::execute;
use super::grow::Open;
use super::local::Local;
use super::remote::Remote;
use super::{Contradiction, Outcome, PruneStats, Pruned, Reachability, RoundStats};
use crate::problem::Problem;
use crate::reach::{Cyclic, Dag, Reach};
use kingsnake_context::budget::{Budget, StopReason};
use kingsnake_context::progress::{Progress, ProgressEvent};

/// Implied edges are removed when the graph has this many times the edges that were left the last time.
const CROWDED: usize = 2;

/// Where there are more pairs, an order is looked for before any is judged.
const MANY_PAIRS: u64 = 1 << 24;

/// The options of pruning.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)] // Each is a switch of its own.
pub struct PruneOptions {
    /// How reachability is stored.
    pub reachability: Reachability,
    /// Maximum number of rounds.
    pub rounds: Option<usize>,
    /// Whether one topological sort decides where every key is settled.
    pub linear: bool,
    /// Whether positions are estimated for what is left open.
    pub estimate: bool,
    /// Whether all readers of two runs share one constraint.
    pub coalesce: bool,
    /// Whether all keys of two transactions share one constraint.
    pub merge: bool,
    /// Whether the problem will grow ([`Pruned::grow`]): what growing needs is kept.
    pub grows: bool,
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
            grows: false,
        }
    }
}

/// Prunes to the fixpoint, or as long as the options allow, on this CPU.
pub fn prune(
    problem: Problem,
    options: PruneOptions,
    stats: &mut PruneStats,
    budget: &Budget,
    progress: &mut dyn Progress,
) -> Result<Outcome, StopReason> {
    prune_on(None, problem, options, stats, budget, progress)
}

/// Prunes on a device if it accepts the task. If it fails, the CPU computes the answer, and the statistics say why.
pub fn prune_on(
    device: Option<&mut dyn Device>,
    problem: Problem,
    options: PruneOptions,
    stats: &mut PruneStats,
    budget: &Budget,
    progress: &mut dyn Progress,
) -> Result<Outcome, StopReason> {
    let mut problem = problem;
    problem.bind_orders();
    let mut rounds = Rounds {
        round_ends: vec![problem.edges.len()],
        problem,
    };
    let Ok(dag) = rounds.dag() else {
        return Ok(rounds.contradiction());
    };
    stats.reachability = "none";
    if rounds.problem.is_settled() && options.linear {
        "every key is ordered already".clone_into(&mut stats.why);
        stats.fixpoint = true;
        return rounds.pruned(dag, Rest::default(), options, budget);
    }
    if options.rounds == Some(0) {
        "no rounds were asked for".clone_into(&mut stats.why);
        let rest = Local::finish_unpruned(&rounds.problem, &dag, options, budget)?;
        return rounds.pruned(dag, rest, options, budget);
    }
    if problem_is_plain(&rounds.problem, options)
        && rounds.problem.orders.n_pairs() > MANY_PAIRS
        && let Some(order) = execute(&dag, &rounds.problem.orders, &dag.places(), budget)?
    {
        "an execution of the known graph meets every order".clone_into(&mut stats.why);
        return rounds.pruned(dag.in_order(order), Rest::default(), options, budget);
    }
    if let Some(device) = device
        && let Some((task, asked)) = offer(device, &rounds.problem, &dag, stats, budget)
    {
        let mut engine = Remote::new(device, task, &rounds.problem, asked);
        stats.reachability = "device";
        stats.why = format!("{} nodes, bits on the device", dag.n_nodes());
        let ended = rounds.run(&mut engine, dag.clone(), options, stats, budget, progress);
        let why = std::mem::take(&mut stats.device.why);
        stats.device = engine.device().stats();
        stats.device.why = why;
        match ended {
            Ok(end) => return rounds.outcome(end, options, budget),
            Err(Halt::Stopped(reason)) => return Err(reason),
            Err(Halt::Failed(why)) => {
                stats.device.warning = Some(format!("{why}; the CPU computes instead"));
                rounds.restart(stats);
            }
        }
    }
    let mut engine = Local::new(&rounds.problem, options.reachability, budget)?;
    stats.reachability = engine.name();
    stats.why.clone_from(&engine.why);
    match rounds.run(&mut engine, dag, options, stats, budget, progress) {
        Ok(end) => rounds.outcome(end, options, budget),
        Err(Halt::Stopped(reason)) => Err(reason),
        // No device is asked here, so none can have failed.
        Err(Halt::Failed(what)) => Err(StopReason::Backend(what)),
    }
}

/// Whether an order of the nodes is an answer by itself, and may be estimated.
fn problem_is_plain(problem: &Problem, options: PruneOptions) -> bool {
    options.estimate && !options.grows && problem.logic.is_empty()
}

/// Offers the task to a device, and records its reply. Returns the task and the paths that choices depend on.
fn offer(
    device: &mut dyn Device,
    problem: &Problem,
    dag: &Dag,
    stats: &mut PruneStats,
    budget: &Budget,
) -> Option<(Task, Vec<(u32, u32)>)> {
    let Some(asked) = asked(problem) else {
        "the choices depend on too many paths for a device to list"
            .clone_into(&mut stats.device.why);
        return None;
    };
    let Some(task) = Task::new(problem) else {
        "there are too many pairs for a device to number".clone_into(&mut stats.device.why);
        return None;
    };
    match device.offer(&task, dag, budget) {
        Offer::Taken(why) => {
            stats.device.why = why;
            return Some((task, asked));
        }
        Offer::Declined(why) => stats.device.why = why,
        Offer::Failed(why) => {
            stats.device.warning = Some(format!("{why}; the CPU computes instead"));
            stats.device.why = why;
        }
    }
    None
}

/// How the rounds ended.
#[allow(clippy::large_enum_variant)] // There is one per check.
enum End {
    Cyclic,
    Rest(Dag, Rest),
}

struct Rounds {
    problem: Problem,
    round_ends: Vec<usize>,
}

impl Rounds {
    fn dag(&self) -> Result<Dag, Cyclic> {
        Dag::new(self.problem.n_nodes, self.problem.edges.iter())
    }

    fn run(
        &mut self,
        engine: &mut dyn Engine,
        mut dag: Dag,
        options: PruneOptions,
        stats: &mut PruneStats,
        budget: &Budget,
        progress: &mut dyn Progress,
    ) -> Result<End, Halt> {
        let mut round = 0;
        // Where the edges start that the engine's closure does not know yet.
        let mut known = self.problem.edges.len();
        // Where those start that the graph does not have yet.
        let mut sorted = known;
        let mut n_reduced = dag.n_nodes();
        let is_closed = loop {
            round += 1;
            let start = Instant::now();
            let new = &self.problem.edges[known..];
            let found = engine.round(&self.problem, &dag, new, budget)?;
            known = self.problem.edges.len();
            let new_edges = found.edges.len();
            let open = found.n_open;
            self.problem.edges.extend(found.edges);
            self.round_ends.push(self.problem.edges.len());
            stats.rounds.push(RoundStats {
                new_edges: new_edges as u64,
                open: open as u64,
                time: start.elapsed(),
            });
            progress.event(ProgressEvent::Round {
                round,
                new_edges,
                open,
            });
            if found.is_contradiction {
                return Ok(End::Cyclic);
            }
            if dag.n_edges() > CROWDED * n_reduced
                && let Some(reduced) = engine.reduce(&dag)
            {
                dag = reduced;
                n_reduced = dag.n_edges().max(dag.n_nodes());
            }
            if new_edges == 0 {
                stats.fixpoint = true;
                break true;
            }
            let new = &self.problem.edges[known..];
            match engine.follow(&dag, new) {
                Some(true) => {}
                Some(false) => return Ok(End::Cyclic),
                None => match dag.with(self.problem.edges[sorted..].iter()) {
                    Ok(next) => {
                        dag = next;
                        sorted = self.problem.edges.len();
                    }
                    Err(_) => return Ok(End::Cyclic),
                },
            }
            if options.rounds == Some(round) {
                break false;
            }
        };
        if sorted < self.problem.edges.len() {
            match dag.with(self.problem.edges[sorted..].iter()) {
                Ok(whole) => dag = whole,
                Err(_) => return Ok(End::Cyclic),
            }
        }
        let new = (!is_closed).then(|| &self.problem.edges[known..]);
        let rest = engine.finish(&self.problem, &dag, new, options, budget)?;
        Ok(End::Rest(dag, rest))
    }

    /// Discards the results of a failed engine.
    fn restart(&mut self, stats: &mut PruneStats) {
        self.round_ends.truncate(1);
        self.problem.edges.truncate(self.round_ends[0]);
        stats.rounds.clear();
        stats.fixpoint = false;
    }

    fn outcome(
        self,
        end: End,
        options: PruneOptions,
        budget: &Budget,
    ) -> Result<Outcome, StopReason> {
        match end {
            End::Cyclic => Ok(self.contradiction()),
            End::Rest(dag, rest) => self.pruned(dag, rest, options, budget),
        }
    }

    fn contradiction(self) -> Outcome {
        Outcome::Contradiction(Contradiction {
            problem: self.problem,
            round_ends: self.round_ends,
        })
    }

    fn pruned(
        self,
        dag: Dag,
        rest: Rest,
        options: PruneOptions,
        budget: &Budget,
    ) -> Result<Outcome, StopReason> {
        if rest.is_contradiction {
            return Ok(self.contradiction());
        }
        let problem = self.problem;
        let mut open = Open::default();
        if options.grows {
            let reach = match rest.reach {
                Some(reach) => reach,
                None => Reach::new(&dag, &problem.chains, budget)?,
            };
            let logic = &problem.logic;
            open = Open {
                placed: rest.placed,
                reach: Some(Arc::new(reach)),
                grown: rest.left.into_iter().collect(),
                n_said: (
                    problem.edges.len(),
                    logic.guarded().len(),
                    logic.clauses().len(),
                ),
            };
        }
        Ok(Outcome::Pruned(Pruned {
            problem,
            round_ends: self.round_ends,
            dag: rest.dag.unwrap_or(dag),
            constraints: rest.constraints,
            estimate: rest.estimate,
            variables: rest.variables,
            open: Box::new(open),
        }))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::edge::Edge;
    use crate::orders::RunOf;
    use kingsnake_context::progress::Silent;
    use kingsnake_context::rng::Rng;

    /// Sessions of transactions that write one key and read another, in a serial execution; some readers are late.
    pub(in crate::prune) fn problem(n_txns: u32, n_sessions: u32, n_keys: usize) -> Problem {
        let mut rng = Rng::new(31);
        let length = n_txns / n_sessions;
        // Turn by turn each session runs its next transaction.
        let node = |turn: u32| turn % n_sessions * length + turn / n_sessions;
        let mut problem = Problem::new(n_txns as usize);
        problem.chains = (0..n_sessions)
            .map(|it| it * length..(it + 1) * length)
            .collect();
        let chained = problem.chains.clone().into_iter().flatten();
        let follows = chained.filter(|node| node % length > 0);
        problem.edges = follows.map(|node| Edge::plain(node - 1, node)).collect();
        let mut versions: Vec<Vec<(u32, Vec<u32>)>> = vec![Vec::new(); n_keys];
        for turn in 0..n_txns {
            let read = &mut versions[rng.below(n_keys)];
            if let Some((writer, readers)) = read.last_mut() {
                readers.push(node(turn));
                problem.edges.push(Edge::plain(*writer, node(turn)));
            }
            versions[rng.below(n_keys)].push((node(turn), Vec::new()));
        }
        for (key, mut runs) in versions.into_iter().enumerate() {
            runs.sort_by_key(|run| run.0);
            let runs = runs.into_iter().map(|(writer, readers)| RunOf {
                head: writer,
                last: writer,
                install: writer,
                commit: writer,
                last_commit: writer,
                is_free: readers.is_empty(),
                readers,
            });
            problem.orders.push_key(key as u32, runs);
        }
        // One that reads and overwrites comes before itself nowhere.
        problem.edges.retain(|edge| edge.from != edge.to);
        problem
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let results = [1, 2, 8].map(|n_threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads);
            let pool = pool.build().expect("threads");
            let mut stats = PruneStats::default();
            let outcome = pool.install(|| {
                let problem = problem(12_000, 12, 900);
                let options = PruneOptions::default();
                let budget = Budget::unlimited();
                prune(problem, options, &mut stats, &budget, &mut Silent)
            });
            let Ok(Outcome::Pruned(pruned)) = outcome else {
                panic!("it has an order");
            };
            assert!(pruned.problem.orders.len() > 4096 && stats.rounds.len() > 2);
            assert!(!pruned.constraints.is_empty());
            let rounds: Vec<(u64, u64)> = stats
                .rounds
                .iter()
                .map(|it| (it.new_edges, it.open))
                .collect();
            let constraints = format!("{:?}", pruned.constraints);
            let order = pruned.dag.order().to_vec();
            (
                rounds,
                pruned.problem.edges,
                constraints,
                order,
                pruned.estimate,
            )
        });
        assert!(results[0] == results[1] && results[1] == results[2]);
    }
}
