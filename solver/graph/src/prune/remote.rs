//! The closure on a device: the matrix stays there, and only edges, orders, lists of pairs and answers travel.
//!
//! The device judges the orders. Choices are settled here between its judgement and the next closure, by what the device
//! answers about the paths that they depend on.

use super::PruneOptions;
use super::asked::Answered;
use super::device::{Device, PairEdge, Task};
use super::engine::{Engine, Halt, Rest, Round};
use super::judge::{Judge, Pair};
use super::logic::{Settling, settling_rest};
use super::open::{Form, Placed, constraints};
use crate::edge::Edge;
use crate::problem::Problem;
use crate::reach::{Dag, positions};
use kingsnake_context::budget::Budget;

/// The engine of a device that took the task.
pub(super) struct Remote<'d> {
    device: &'d mut dyn Device,
    task: Task,
    is_loaded: bool,
    settling: Settling,
    /// The paths that choices depend on.
    asked: Vec<(u32, u32)>,
}

impl<'d> Remote<'d> {
    pub(super) fn new(
        device: &'d mut dyn Device,
        task: Task,
        problem: &Problem,
        asked: Vec<(u32, u32)>,
    ) -> Self {
        Remote {
            device,
            task,
            is_loaded: false,
            settling: Settling::new(&problem.logic),
            asked,
        }
    }

    pub(super) fn device(&self) -> &dyn Device {
        self.device
    }

    fn edge(&self, problem: &Problem, of: PairEdge) -> Result<Edge, Halt> {
        let n_pairs = self.task.n_pairs();
        let edge = (of.pair < n_pairs).then(|| of.edge(problem, &self.task));
        let wrong = || Halt::Failed("the device named an edge that does not exist".to_owned());
        edge.flatten().ok_or_else(wrong)
    }

    /// What paths imply among the edges of the open pairs, which is all that listing their constraints asks.
    fn implied(&mut self, problem: &Problem, budget: &Budget) -> Result<Vec<(u32, u32)>, Halt> {
        let implied = self.device.implied(budget)?;
        let ends = implied.into_iter().map(|of| {
            let edge = self.edge(problem, of)?;
            Ok((edge.from, edge.to))
        });
        ends.collect()
    }

    /// Which of the paths that choices depend on there are.
    fn answers(&mut self, budget: &Budget) -> Result<Answered, Halt> {
        if self.asked.is_empty() {
            return Ok(Answered::default());
        }
        let answers = self.device.reaches(&self.asked, budget)?;
        if answers.len() != self.asked.len() {
            return Err(Halt::Failed(
                "the device left questions about paths unanswered".to_owned(),
            ));
        }
        Ok(Answered::new(&self.asked, &answers))
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
        let reach = self.answers(budget)?;
        let judgement = self.device.judge(budget)?;
        let forced = judgement.forced.iter();
        let mut edges: Vec<Edge> = forced
            .map(|&of| self.edge(problem, of))
            .collect::<Result<_, Halt>>()?;
        if !problem.logic.is_empty() {
            let judge = Judge {
                orders: &problem.orders,
                reach: &reach,
                budget,
            };
            self.settling.round(&problem.logic, &judge, &mut edges);
        }
        Ok(Round {
            edges,
            n_open: judgement.n_open as usize,
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
        let numbers = self.device.open(budget)?;
        let n_pairs = self.task.n_pairs();
        if numbers.iter().any(|&number| number >= n_pairs) {
            return Err(Halt::Failed(
                "the device named a pair that does not exist".to_owned(),
            ));
        }
        let open: Vec<Pair> = numbers.iter().map(|&it| self.task.pair(it)).collect();
        let has_logic = !problem.logic.is_empty();
        let estimate = options.estimate && (has_logic || !open.is_empty());
        let mut is_closed = true;
        if let Some(new) = new {
            is_closed = estimate || has_logic;
            if is_closed {
                self.device.close(dag, new, budget)?;
            }
        }
        let mut guesses = Vec::new();
        if estimate {
            let relatives = self.device.relatives(budget)?;
            guesses = positions(&relatives.ancestors, &relatives.descendants);
        }
        let mut reach = None;
        if is_closed && (has_logic || !open.is_empty()) {
            let mut answered = self.answers(budget)?;
            answered.add(self.implied(problem, budget)?);
            reach = Some(answered);
        }
        let form = Form::of(options, problem);
        let mut placed = Placed::default();
        let place = (has_logic || options.grows).then_some(&mut placed);
        let listed = constraints(&problem.orders, &open, reach.as_ref(), form, place);
        let judge = reach.as_ref().map(|reach| Judge {
            orders: &problem.orders,
            reach,
            budget,
        });
        Ok(settling_rest(
            problem,
            &self.settling,
            judge.as_ref(),
            listed,
            placed,
            guesses,
            options,
        ))
    }
}
