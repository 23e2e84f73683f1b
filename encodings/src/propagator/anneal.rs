//! `anneal`: looks for an order that violates no constraint by moving one node at a time (Kirkpatrick, Gelatt and Vecchi,
//! 1983), and in the end only nodes near what is still violated (focused, as in `WalkSAT`: Selman, Kautz and Cohen, 1994).
//!
//! Cooling finds the rough order of the whole line, which no sequence of forced moves does: an estimate that is wrong
//! somewhere pushes its mistakes before it. The focused walk then carries the few that are left until they meet. A node that cannot
//! move is held by a known neighbour; so the walk moves on to that one now and then, and without this it hardly ever ends. A
//! constraint costs more each time it is met violated, and less again while it is not (dynamic local search, as in SAPS: Hutter,
//! Tompkins and Hoos, 2002), so that the walk does not stay where only a few are left.
//!
//! Nothing depends on the result but speed: it is only ever a linear extension of the known graph.

use kingsnake_context::progress::Event;

use super::line::Line;
use super::watch::Watch;

/// The first and the last temperature of the cooling.
const HOT: f64 = 2.0;
const COLD: f64 = 0.15;
/// So many times every node moves while it cools, for one unit of effort.
const SWEEPS: usize = 60;
/// The temperature of the focused walk: warm enough to leave what only looks best.
const WALK: f64 = 0.45;
/// So many moves the walk makes for each node, for one unit of effort.
const STEPS: usize = 200;
/// The percentage of cases in which the walk goes on to a neighbour.
const NEIGHBOUR: usize = 40;
/// Between so many steps of the walk, what was raised is relaxed.
const RELAX: usize = 333;
/// Between so many steps, the time is asked for and the best order noted.
const STRIDE: usize = 1024;

/// A search that is under way.
pub(crate) struct Anneal<'a> {
    pub line: &'a mut Line,
    pub watch: &'a Watch,
    /// Cycles found before, for those who watch.
    pub n_cycles: u64,
}

/// The places of the fewest violated constraints so far.
pub(crate) struct Best {
    pub n_violated: usize,
    pub places: Vec<u32>,
}

impl Best {
    fn new(line: &Line) -> Best {
        Best {
            n_violated: line.n_violated(),
            places: line.places(),
        }
    }
}

impl Anneal<'_> {
    /// Moves the line's points, with so much effort, and returns the best places met.
    pub fn run(mut self, effort: usize) -> Best {
        let mut best = Best::new(self.line);
        let n_steps = STEPS.saturating_mul(best.places.len());
        self.line.level();
        self.cool(SWEEPS.saturating_mul(effort), &mut best);
        self.walk(n_steps.saturating_mul(effort), &mut best);
        best
    }

    fn cool(&mut self, n_sweeps: usize, best: &mut Best) {
        let n_nodes = best.places.len() as u32;
        let mut nodes: Vec<u32> = (0..n_nodes)
            .filter(|&node| self.line.is_touched(node))
            .collect();
        for sweep in 0..n_sweeps {
            if self.note(best) {
                return;
            }
            let share = sweep as f64 / n_sweeps as f64;
            self.line.heat(HOT * (COLD / HOT).powf(share));
            for at in (1..nodes.len()).rev() {
                nodes.swap(at, self.line.random(at + 1));
            }
            for chunk in nodes.chunks(STRIDE) {
                if self.is_over() {
                    break;
                }
                for &node in chunk {
                    self.line.move_node(node);
                }
            }
        }
    }

    fn walk(&mut self, n_steps: usize, best: &mut Best) {
        self.line.heat(WALK);
        for step in 0..n_steps {
            if step.is_multiple_of(STRIDE) && self.note(best) {
                return;
            }
            if step.is_multiple_of(RELAX) {
                self.line.relax();
            }
            let Some(constraint) = self.line.violated() else {
                break;
            };
            self.line.raise(constraint);
            let mut node = self.line.touched(constraint);
            while self.line.random(100) < NEIGHBOUR {
                let Some(next) = self.line.bounding(node) else {
                    break;
                };
                node = next;
            }
            self.line.move_node(node);
        }
        self.note(best);
    }

    /// Takes note of where the line is, and tells of it; true if the search should end.
    fn note(&mut self, best: &mut Best) -> bool {
        if self.line.n_violated() < best.n_violated {
            *best = Best::new(self.line);
        }
        self.watch.tell(|| Event::Deciding {
            conflicts: self.n_cycles,
            settled: self.line.n_constraints() - self.line.n_violated(),
            variables: self.line.n_constraints(),
        });
        self.is_over()
    }

    fn is_over(&self) -> bool {
        self.line.n_violated() == 0 || self.watch.over()
    }
}
