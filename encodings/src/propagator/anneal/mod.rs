//! `anneal`: looks for an order that violates no constraint by moving one node at a time (Kirkpatrick, Gelatt and Vecchi,
//! 1983), and in the end only nodes near what is still violated (focused, as in `WalkSAT`: Selman, Kautz and Cohen, 1994).
//!
//! Cooling finds the rough order of the whole line, which no sequence of forced moves does: an estimate that is wrong
//! somewhere pushes its mistakes before it. It moves all nodes of a colour at once, on all threads. The focused walk then
//! carries the few that are left until they meet; each thread walks by itself, from the same points. A node that cannot
//! move is held by a known neighbour; so the walk moves on to that one now and then, and without this it hardly ever ends. A
//! constraint costs more each time it is met violated, and less again while it is not (dynamic local search, as in SAPS: Hutter,
//! Tompkins and Hoos, 2002), so that the walk does not stay where only a few are left.
//!
//! Only speed depends on the result: it is always a linear extension of the known graph.

mod colour;
mod device;
mod field;
mod heat_bath;
mod line;
mod thin;
mod trace;

use kingsnake_context::progress::ProgressEvent;
use kingsnake_graph::cool::{Cooler, colour_at};
use kingsnake_graph::prune::{DeviceStats, Offer};
use rayon::prelude::*;

pub(crate) use self::line::Line;
use self::trace::Notes;
pub use self::trace::{AnnealMoment, AnnealTrace, AnnealWay, trace};
use super::watch::Watch;

/// The first and the last temperature of the cooling.
const HOT: f64 = 2.0;
const COLD: f64 = 0.25;
/// How often every node moves while it cools, per unit of effort.
const SWEEPS: usize = 60;
/// The temperature of the focused walk: warm enough to leave local optima.
const WALK: f64 = 0.55;
/// Moves of the walk per node, per unit of effort.
const STEPS: usize = 200;
/// The walk ends after this many moves per node without improvement.
const PATIENCE: usize = 60;
/// The percentage of steps in which the walk continues at a neighbour.
const NEIGHBOUR: usize = 40;
/// Interval in steps of the walk at which raised costs are relaxed.
const RELAX: usize = 333;
/// Steps of the walks before they are compared, and the time is checked.
const ROUND: usize = 8192;

/// The length of a walk, in moves per node.
#[derive(Clone, Copy)]
struct Patience {
    steps: f64,
    /// It ends after this many without improvement.
    without_better: usize,
}

/// Of the walk after a cooling that is shorter than the size of the line demands.
const TRIAL: Patience = Patience {
    steps: 20.0,
    without_better: 6,
};

/// The effort for a hard line of this many nodes.
pub(crate) fn effort_by_size(n_nodes: usize) -> f64 {
    (n_nodes as f64 / 10_000.0).powf(1.4)
}

/// A running search.
pub(crate) struct Anneal<'a> {
    pub line: &'a mut Line,
    pub watch: &'a Watch,
    /// Cycles found before, for those who watch.
    pub n_cycles: u64,
    /// The device that may cool, with its data.
    pub device: Option<Device<'a>>,
    /// Whether it cools one node after the other, for comparison.
    pub is_serial: bool,
    /// Records every sweep, where it is measured.
    pub notes: Option<&'a mut Notes>,
}

/// A device that may cool.
pub(crate) struct Device<'a> {
    pub cooler: &'a mut dyn Cooler,
    /// Its statistics; a warning if it failed.
    pub stats: &'a mut DeviceStats,
}

/// The points of the fewest violated constraints so far.
struct Best {
    n_violated: usize,
    points: Vec<u32>,
}

impl Best {
    fn new(line: &Line) -> Best {
        Best {
            n_violated: line.n_violated(),
            points: line.points().to_vec(),
        }
    }

    /// Takes the line's points if they are better.
    fn note(&mut self, line: &Line) -> bool {
        let is_better = line.n_violated() < self.n_violated;
        if is_better {
            *self = Best::new(line);
        }
        is_better
    }
}

impl Anneal<'_> {
    /// Moves the line's points, with so much effort or more, and returns the best places met and the effort that it took.
    ///
    /// A short cooling and a short walk serve many large lines, and cost little. Where they do not, the line is cooled again, as long
    /// as its size demands.
    pub fn run(mut self, effort: f64) -> (Vec<u32>, f64) {
        let mut best = Best::new(self.line);
        self.line.level();
        let by_size = effort_by_size(self.line.n_nodes());
        let mut effort = effort;
        if effort < by_size {
            self.cool_and_walk(effort, TRIAL, &mut best);
            effort = by_size;
        }
        if best.n_violated > 0 && !self.watch.over() {
            let whole = Patience {
                steps: STEPS as f64 * effort,
                without_better: PATIENCE,
            };
            self.cool_and_walk(effort, whole, &mut best);
        }
        (self.line.places(&best.points), effort)
    }

    fn cool_and_walk(&mut self, effort: f64, patience: Patience, best: &mut Best) {
        self.cool(effort, best);
        if !self.is_over() {
            self.walk(patience, best);
        }
    }

    fn cool(&mut self, effort: f64, best: &mut Best) {
        let temperatures = temperatures(effort);
        if self.cool_on_device(&temperatures) {
            best.note(self.line);
            return;
        }
        let n_colours = self.line.n_colours();
        for (sweep, &temperature) in temperatures.iter().enumerate() {
            best.note(self.line);
            self.tell();
            self.line.heat(temperature);
            if self.is_serial {
                self.line.move_all();
                continue;
            }
            for turn in 0..n_colours {
                if self.is_over() {
                    best.note(self.line);
                    return;
                }
                self.line.move_colour(colour_at(n_colours, sweep, turn));
            }
        }
        best.note(self.line);
        self.tell();
    }

    /// Whether a device cooled the line. Where it failed, its statistics say why.
    fn cool_on_device(&mut self, temperatures: &[f64]) -> bool {
        let Some(device) = &mut self.device else {
            return false;
        };
        let (watch, n_cycles) = (self.watch, self.n_cycles);
        let size = self.line.cooling_size(temperatures.len());
        let (started, n_moves) = (
            self.notes.as_ref().map_or(0.0, |it| it.seconds()),
            self.line.n_moves(),
        );
        let cooled = match device.cooler.offer(&size, watch.budget()) {
            Offer::Declined(_) => Ok(None),
            Offer::Failed(why) => Err(why),
            Offer::Taken(_) => {
                let task = self.line.cooling(temperatures);
                let mut go_on = |n_violated: u32| {
                    watch.tell(|| deciding(n_cycles, size.n_constraints, n_violated as usize));
                    !watch.over()
                };
                device::cool(device.cooler, &task, watch.budget(), &mut go_on)
            }
        };
        match cooled {
            Ok(Some(cooled)) => {
                self.line.take(&cooled);
                if let Some(notes) = &mut self.notes {
                    // A device reports its progress only now, so its sweeps are assumed to be equally long.
                    let n_sweeps = cooled.n_violated.len().saturating_sub(1).max(1);
                    let (took, a_sweep) =
                        (notes.seconds() - started, cooled.n_moves / n_sweeps as u64);
                    for (sweep, &n_violated) in cooled.n_violated.iter().enumerate() {
                        let seconds = started + took * sweep as f64 / n_sweeps as f64;
                        let n_moves = n_moves + sweep as u64 * a_sweep;
                        notes.note_at(seconds, n_violated as usize, n_moves, false);
                    }
                }
                add(device.stats, cooled.device);
                true
            }
            Ok(None) => false,
            Err(why) => {
                device.stats.warning = Some(format!("annealing on a device: {why}"));
                self.device = None;
                false
            }
        }
    }

    fn walk(&mut self, patience: Patience, best: &mut Best) {
        self.line.heat(WALK);
        let n_walks = if self.is_serial {
            1
        } else {
            rayon::current_num_threads() as u64
        };
        let mut walks: Vec<Line> = (0..n_walks).map(|walk| self.line.fork(walk)).collect();
        let n_nodes = self.line.n_nodes();
        let n_rounds = patience.steps as usize * n_nodes / ROUND + 1;
        let patience = patience.without_better * n_nodes / ROUND + 8;
        let mut since_better = 0;
        for _ in 0..n_rounds {
            walks.par_iter_mut().for_each(|line| steps(line, ROUND));
            let least = walks.iter().min_by_key(|line| line.n_violated());
            let Some(least) = least else { break };
            since_better = if best.note(least) {
                0
            } else {
                since_better + 1
            };
            if let Some(notes) = &mut self.notes {
                let n_moves: u64 = walks.iter().map(Line::n_moves).sum();
                notes.note(least.n_violated(), self.line.n_moves() + n_moves, true);
            }
            self.tell_of(best.n_violated);
            if best.n_violated == 0 || since_better > patience || self.watch.over() {
                break;
            }
        }
        self.line.count_moves(walks.iter().map(Line::n_moves).sum());
    }

    fn tell(&mut self) {
        let n_violated = self.line.n_violated();
        if let Some(notes) = &mut self.notes {
            notes.note(n_violated, self.line.n_moves(), false);
        }
        self.tell_of(n_violated);
    }

    fn tell_of(&self, n_violated: usize) {
        let n_constraints = self.line.n_constraints();
        self.watch
            .tell(|| deciding(self.n_cycles, n_constraints, n_violated));
    }

    fn is_over(&self) -> bool {
        self.line.n_violated() == 0 || self.watch.over()
    }
}

/// The progress of the search.
fn deciding(n_cycles: u64, n_constraints: usize, n_violated: usize) -> ProgressEvent {
    ProgressEvent::Deciding {
        conflicts: n_cycles,
        settled: n_constraints - n_violated,
        variables: n_constraints,
    }
}

/// The temperatures of the sweeps, from hot to cold.
fn temperatures(effort: f64) -> Vec<f64> {
    let n_sweeps = (SWEEPS as f64 * effort) as usize;
    // A longer cooling pays only if it starts from where the order is still loose.
    let hot = HOT * effort.sqrt().clamp(1.0, 2.5);
    let share = |sweep: usize| sweep as f64 / n_sweeps as f64;
    let sweeps = 0..n_sweeps;
    sweeps
        .map(|sweep| hot * (COLD / hot).powf(share(sweep)))
        .collect()
}

/// Adds the statistics of one cooling to those before.
fn add(stats: &mut DeviceStats, cooled: DeviceStats) {
    let before = std::mem::replace(stats, cooled);
    stats.bytes_up += before.bytes_up;
    stats.bytes_down += before.bytes_down;
    stats.dispatches += before.dispatches;
    stats.workgroups += before.workgroups;
    stats.time = stats
        .time
        .map(|time| time + before.time.unwrap_or_default());
}

/// Some steps of the focused walk, or until nothing is violated.
fn steps(line: &mut Line, n_steps: usize) {
    for step in 0..n_steps {
        if step % RELAX == 0 {
            line.relax();
        }
        let Some(constraint) = line.violated() else {
            return;
        };
        line.raise(constraint);
        let Some(mut id) = line.touched(constraint) else {
            return;
        };
        while line.random(100) < NEIGHBOUR {
            let Some(next) = line.bounding(id) else {
                break;
            };
            id = next;
        }
        line.move_node(id);
    }
}
