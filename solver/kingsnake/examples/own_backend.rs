//! A custom back end: tries every choice of sides. Its answers are checked again, so a mistake here can never become a verdict.
//!
//! `cargo run -p kingsnake --example own_backend -- HISTORY`

use kingsnake::decide::{Backend, DecideError, DecideStats, Decision, Question, Side};
use kingsnake::{Budget, Checker, Level, Progress};

/// Depth-first search over the constraints; only for small questions.
struct Exhaustive;

/// Whether the known edges and these sides have a cycle.
fn is_cyclic(question: Question<'_>, sides: &[Side]) -> bool {
    let mut targets: Vec<Vec<u32>> = vec![Vec::new(); question.n_nodes];
    let mut n_into = vec![0_u32; question.n_nodes];
    let chosen = sides
        .iter()
        .enumerate()
        .flat_map(|(at, &side)| question.constraints.side(at, side).iter().copied());
    for edge in question.known().chain(chosen) {
        targets[edge.from as usize].push(edge.to);
        n_into[edge.to as usize] += 1;
    }
    let mut ready: Vec<u32> = (0..question.n_nodes as u32)
        .filter(|&it| n_into[it as usize] == 0)
        .collect();
    let mut n_sorted = 0;
    while let Some(node) = ready.pop() {
        n_sorted += 1;
        for &next in &targets[node as usize] {
            n_into[next as usize] -= 1;
            if n_into[next as usize] == 0 {
                ready.push(next);
            }
        }
    }
    n_sorted < question.n_nodes
}

fn search(
    question: Question<'_>,
    sides: &mut Vec<Side>,
    budget: &Budget,
) -> Result<bool, kingsnake::StopReason> {
    budget.check()?;
    if is_cyclic(question, sides) {
        return Ok(false);
    }
    if sides.len() == question.constraints.len() {
        return Ok(true);
    }
    for side in [Side::Either, Side::Or] {
        sides.push(side);
        if search(question, sides, budget)? {
            return Ok(true);
        }
        sides.pop();
    }
    Ok(false)
}

impl Backend for Exhaustive {
    fn name(&self) -> &'static str {
        "own/exhaustive"
    }

    fn decide(
        &mut self,
        question: Question<'_>,
        budget: &Budget,
        _: &mut dyn Progress,
    ) -> Result<(Decision, DecideStats), DecideError> {
        let mut sides = Vec::new();
        let decision = match search(question, &mut sides, budget) {
            Ok(true) => Decision::Choices(sides),
            Ok(false) => Decision::Core((0..question.constraints.len() as u32).collect()),
            Err(reason) => Decision::Unknown(reason),
        };
        let stats = DecideStats {
            backend: self.name().to_owned(),
            ..DecideStats::default()
        };
        Ok((decision, stats))
    }
}

#[allow(clippy::print_stdout)] // An example shows what it found.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let corpus = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../datasets/corpus/none/long-fork.jsonl"
    );
    let path = std::env::args().nth(1).unwrap_or_else(|| corpus.to_owned());
    let history = kingsnake::open(path)?;
    let verdict = Checker::new()
        .level(Level::Ser)
        .own_backend(Exhaustive)
        .check(&history)?;
    println!("{verdict}");
    Ok(())
}
