//! The interface of annealing on a device: it cools points on a line, all nodes of a colour at once.
//!
//! Everything is in whole numbers, so that every device gives the same answer for a seed: points are 32 bits, Boltzmann
//! weights 16, and their products add up in 64.

use std::fmt;
use std::sync::Arc;

use kingsnake_context::budget::Budget;

use crate::prune::{DeviceError, DeviceStats, Offer};

/// Costs this far above the minimum have weight 0.
pub const N_WEIGHTS: usize = 64;

/// What a node reads when it moves: places in [`Cooling::field`] where its lists start. Each ends where the next starts, the
/// last where the next node's first starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct NodeReads {
    /// Nodes that are known to come before.
    pub before: u32,
    /// Nodes that are known to come after.
    pub after: u32,
    /// `low, high`: violated exactly where the node lies from `low` to `high`.
    pub between: u32,
    /// `to, w, z`: unless w is before z, the node must come before `to`.
    pub below: u32,
    /// `from, w, z`: unless w is before z, the node must come after `from`.
    pub above: u32,
    /// Constraints that have none of these forms.
    pub rest: u32,
}

/// The size of a line: enough to tell whether a device pays, before anything is laid out for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoolingSize {
    /// Nodes.
    pub n_nodes: usize,
    /// Words of the lists of all nodes.
    pub n_words: usize,
    /// Words of the lists of the nodes that move.
    pub n_moved_words: usize,
    /// Constraints.
    pub n_constraints: usize,
    /// Edges of their sides, at most.
    pub n_edges: usize,
    /// How many nodes of each colour move.
    pub colours: Vec<u32>,
    /// How often all colours move.
    pub n_sweeps: usize,
}

impl CoolingSize {
    /// Words that go to a device.
    pub fn words_up(&self) -> u64 {
        let n_movers: u64 = self.colours.iter().map(|&it| u64::from(it)).sum();
        let words = self.n_nodes + 6 * (self.n_nodes + 1) + self.n_words;
        let sides = 2 * self.n_constraints + 1 + 2 * self.n_edges;
        n_movers + (words + sides + N_WEIGHTS * self.n_sweeps) as u64
    }

    /// Words of all buffers of a device: also the best points and two counts a sweep.
    pub fn words(&self) -> u64 {
        self.words_up() + (self.n_nodes + 2 * (self.n_sweeps + 1)) as u64
    }
}

/// Which colour moves in a turn of a sweep: every other sweep the other way round.
pub fn colour_at(n_colours: usize, sweep: usize, turn: usize) -> usize {
    if sweep.is_multiple_of(2) {
        turn
    } else {
        n_colours - 1 - turn
    }
}

/// A line to cool.
#[derive(Clone, Debug, Default)]
pub struct Cooling {
    /// The nodes' points. Every known edge runs forward.
    pub points: Vec<u32>,
    /// By node, what it reads; and one more for the end.
    pub reads: Vec<NodeReads>,
    /// The lists.
    pub field: Vec<u32>,
    /// Two a constraint, and one more for the end: where the edges of its sides start in [`Cooling::sides`].
    pub side_starts: Vec<u32>,
    /// Edges, as two nodes each.
    pub sides: Vec<[u32; 2]>,
    /// The nodes that move, colour by colour. No node reads another of its colour.
    pub movers: Vec<u32>,
    /// Where each colour ends.
    pub colour_ends: Vec<u32>,
    /// A sweep a row: by cost above the least, its weight.
    pub weights: Vec<[u32; N_WEIGHTS]>,
    /// The same seed gives the same points.
    pub seed: u32,
}

impl Cooling {
    /// How often all colours move.
    pub fn n_sweeps(&self) -> usize {
        self.weights.len()
    }

    /// How many constraints there are.
    pub fn n_constraints(&self) -> usize {
        self.side_starts.len().saturating_sub(1) / 2
    }

    /// The movers of a colour, as places in [`Cooling::movers`].
    pub fn colour(&self, colour: usize) -> std::ops::Range<u32> {
        let start = if colour == 0 {
            0
        } else {
            self.colour_ends[colour - 1]
        };
        start..self.colour_ends[colour]
    }

    /// Words of a node's lists.
    pub fn n_words(&self, id: u32) -> u32 {
        self.reads[id as usize + 1].before - self.reads[id as usize].before
    }

    /// The size.
    pub fn size(&self) -> CoolingSize {
        let colours = 0..self.colour_ends.len();
        CoolingSize {
            n_nodes: self.points.len(),
            n_words: self.field.len(),
            n_moved_words: self
                .movers
                .iter()
                .map(|&id| self.n_words(id) as usize)
                .sum(),
            n_constraints: self.n_constraints(),
            n_edges: self.sides.len(),
            colours: colours
                .map(|colour| self.colour(colour).len() as u32)
                .collect(),
            n_sweeps: self.n_sweeps(),
        }
    }
}

/// A temperature's weights: a place that costs one more is e^(1/temperature) times less likely.
pub fn weights(temperature: f64) -> [u32; N_WEIGHTS] {
    std::array::from_fn(|cost| (65_535.0 * (-(cost as f64) / temperature).exp()).round() as u32)
}

/// A line that was cooled.
#[derive(Clone, Debug, Default)]
pub struct Cooled {
    /// The points after the sweep that left the fewest constraints violated. Every known edge runs forward.
    pub points: Vec<u32>,
    /// How many were violated before the first sweep and after each.
    pub n_violated: Vec<u32>,
    /// How many nodes were moved, sweep by sweep.
    pub n_moves: u64,
    /// The device, and its statistics.
    pub device: DeviceStats,
}

/// Cools lines on another device than this CPU.
pub trait Cooler: Send {
    /// Accepts a task of this size, or gives a reason against it.
    fn offer(&mut self, size: &CoolingSize, budget: &Budget) -> Offer;

    /// Cools a line. `watch` gets the number of violated constraints every few sweeps, and returns whether to continue.
    fn cool(
        &mut self,
        task: &Cooling,
        budget: &Budget,
        watch: &mut dyn FnMut(u32) -> bool,
    ) -> Result<Cooled, DeviceError>;
}

/// Makes a cooler for annealing.
#[derive(Clone)]
pub struct CoolerSource(Arc<dyn Fn() -> Box<dyn Cooler> + Send + Sync>);

impl CoolerSource {
    /// From a function.
    pub fn new(make: impl Fn() -> Box<dyn Cooler> + Send + Sync + 'static) -> Self {
        CoolerSource(Arc::new(make))
    }

    /// A cooler.
    pub fn make(&self) -> Box<dyn Cooler> {
        (self.0)()
    }
}

impl fmt::Debug for CoolerSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CoolerSource")
    }
}

impl PartialEq for CoolerSource {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for CoolerSource {}
