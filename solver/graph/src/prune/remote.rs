//! The closure on a device: the matrix stays there, and only edges, orders and lists of pairs travel.

use rustc_hash::FxHashSet;

use super::PruneOptions;
use super::device::{Device, PairEdge, Task};
use super::engine::{Engine, Halt, Rest, Round, positions};
use super::judge::{Pair, Reaches};
use super::open::{Form, constraints};
use crate::edge::Edge;
use crate::problem::Problem;
use crate::reach::Dag;
use kingsnake_context::budget::Budget;

/// The engine of a device that took the task.
pub(super) struct Remote<'d> {
    pub(super) device: &'d mut dyn Device,
    pub(super) task: Task,
    pub(super) is_loaded: bool,
}

/// What paths imply among the edges of the open pairs: all that listing constraints asks.
struct Implied(FxHashSet<(u32, u32)>);

impl Reaches for Implied {
    fn reaches(&self, from: u32, to: u32) -> bool {
        self.0.contains(&(from, to))
    }
}

impl Remote<'_> {
    fn edge(&self, problem: &Problem, of: PairEdge) -> Result<Edge, Halt> {
        let n_pairs = self.task.n_pairs();
        let edge = (of.pair < n_pairs).then(|| of.edge(problem, &self.task));
        let wrong = || Halt::Failed("the device named an edge that does not exist".to_owned());
        edge.flatten().ok_or_else(wrong)
    }

    fn implied(&mut self, problem: &Problem, budget: &Budget) -> Result<Implied, Halt> {
        let implied = self.device.implied(budget)?;
        let ends = implied.into_iter().map(|of| {
            let edge = self.edge(problem, of)?;
            Ok((edge.from, edge.to))
        });
        ends.collect::<Result<_, Halt>>().map(Implied)
    }
}

impl Engine for Remote<'_> {
    fn round(
        &mut self,
        problem: &Problem,
        dag: &Dag,
        new: &[Edge],
        budget: &Budget,
    ) -> Result<Round, Halt> {
        if !self.is_loaded {
            self.device.load(&self.task, dag, budget)?;
            self.is_loaded = true;
        }
        self.device.close(dag, new, budget)?;
        let judgement = self.device.judge(budget)?;
        let edges = judgement.forced.iter();
        let edges: Result<Vec<Edge>, Halt> = edges.map(|&of| self.edge(problem, of)).collect();
        Ok(Round {
            edges: edges?,
            n_open: judgement.n_open as usize,
            is_contradiction: false,
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
        let numbers = self.device.open(budget)?;
        let n_pairs = self.task.n_pairs();
        if numbers.iter().any(|&number| number >= n_pairs) {
            return Err(Halt::Failed(
                "the device named a pair that does not exist".to_owned(),
            ));
        }
        let open: Vec<Pair> = numbers.iter().map(|&it| self.task.pair(it)).collect();
        let estimate = options.estimate && !open.is_empty();
        let mut is_closed = true;
        if let Some(new) = new {
            is_closed = estimate;
            if estimate {
                self.device.close(dag, new, budget)?;
            }
        }
        let mut guesses = Vec::new();
        if estimate {
            let relatives = self.device.relatives(budget)?;
            guesses = positions(&relatives.ancestors, &relatives.descendants);
        }
        let reach = if is_closed && !open.is_empty() {
            Some(self.implied(problem, budget)?)
        } else {
            None
        };
        let form = Form::of(options, problem);
        let constraints = constraints(&problem.orders, &open, reach.as_ref(), form, None);
        Ok(Rest {
            constraints,
            estimate: guesses,
            ..Rest::default()
        })
    }
}
