//! The nodes as points on a line, and which constraints they violate.
//!
//! Invariants: every known edge runs forward; `violated` holds exactly the constraints of which neither side does; `raised`
//! holds exactly those that cost more than a unit.

use std::sync::Arc;

use kingsnake_context::rng::Rng;
use rayon::prelude::*;

use super::super::graph::{Known, Sides};
use super::super::order::NONE;
use super::colour::colours;
use super::field::Field;
use super::heat_bath::{Equal, HeatBath, Scratch, UNIT, Weights};

/// Colours with fewer nodes are moved by one thread.
const PARALLEL: usize = 256;
/// Number of nodes that a thread moves at a time.
const CHUNK: usize = 64;

/// The points.
#[derive(Clone)]
pub(crate) struct Line {
    field: Arc<Field>,
    colours: Arc<Vec<Vec<u32>>>,
    /// By id.
    points: Vec<u32>,
    violated: Members,
    /// By constraint, what it costs.
    costs: Vec<i32>,
    raised: Vec<u32>,
    weights: Weights,
    scratch: Scratch,
    seed: u64,
    rng: Rng,
    n_moves: u64,
    /// How often a colour was moved.
    n_sweeps: u64,
}

/// The changes of some moves.
#[derive(Default)]
struct Moved {
    places: Vec<(u32, u32)>,
    flips: Vec<(u32, bool)>,
}

impl Line {
    /// At most the bytes that [`Line::new`] will take.
    pub fn bytes(known: &Known, sides: &Sides) -> u64 {
        Field::bytes(known, sides) + 12 * sides.n_constraints() as u64
    }

    /// The places of a linear extension of the known graph, evenly spaced.
    pub fn new(known: &Known, sides: &Sides, places: &[u32], seed: u64) -> Line {
        let field = Field::new(known, sides, places);
        let colours = colours(&field);
        let mut line = Line {
            points: Vec::new(),
            violated: Members::new(sides.n_constraints()),
            costs: vec![UNIT; sides.n_constraints()],
            raised: Vec::new(),
            weights: Weights::at(1.0),
            scratch: Scratch::default(),
            seed,
            rng: Rng::new(seed),
            n_moves: 0,
            n_sweeps: 0,
            field: Arc::new(field),
            colours: Arc::new(colours),
        };
        line.spread(places);
        line
    }

    /// Takes the places of a linear extension of the known graph, evenly spaced.
    pub fn spread(&mut self, places: &[u32]) {
        let nodes = self.field.nodes.iter();
        let ranks: Vec<u32> = nodes.map(|&node| places[node as usize]).collect();
        self.set_points(spaced(&ranks));
    }

    /// Takes points. Every known edge must run forward.
    pub fn set_points(&mut self, points: Vec<u32>) {
        self.points = points;
        let holds = |side: &[[u32; 2]]| {
            let mut edges = side.iter();
            edges.all(|&[from, to]| self.points[from as usize] < self.points[to as usize])
        };
        for constraint in 0..self.field.n_constraints() as u32 {
            let is_violated = !self.field.sides_of(constraint).into_iter().any(holds);
            self.violated.set(constraint, is_violated);
        }
    }

    /// Another walk from here: the same points, other random numbers.
    pub fn fork(&self, walk: u64) -> Line {
        let mut line = self.clone();
        line.n_moves = 0;
        line.rng = Rng::new(self.seed ^ (walk + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        line
    }

    /// How many constraints there are.
    pub fn n_constraints(&self) -> usize {
        self.field.n_constraints()
    }

    /// How many nodes there are.
    pub fn n_nodes(&self) -> usize {
        self.field.n_nodes()
    }

    /// Number of violated constraints.
    pub fn n_violated(&self) -> usize {
        self.violated.members.len()
    }

    /// Number of moves.
    pub fn n_moves(&self) -> u64 {
        self.n_moves
    }

    /// Adds moves that forks of this line made.
    pub fn count_moves(&mut self, n_moves: u64) {
        self.n_moves += n_moves;
    }

    /// The points, for [`Line::places`].
    pub fn points(&self) -> &[u32] {
        &self.points
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The constraints as nodes see them.
    pub(super) fn field(&self) -> &Field {
        &self.field
    }

    /// The ids that move, by colour.
    pub(super) fn colours(&self) -> &[Vec<u32>] {
        &self.colours
    }

    /// The nodes' places in the order of these points.
    pub fn places(&self, points: &[u32]) -> Vec<u32> {
        let mut places = vec![0; points.len()];
        for (id, rank) in self.ranks(points).into_iter().enumerate() {
            places[self.field.nodes[id] as usize] = rank;
        }
        places
    }

    /// By id, its place in the order of these points. Of equal ones the smaller id comes first.
    #[allow(clippy::unused_self)] // It says whose points they are.
    pub(super) fn ranks(&self, points: &[u32]) -> Vec<u32> {
        let ids = 0..points.len() as u64;
        let mut order: Vec<u64> = ids
            .map(|id| u64::from(points[id as usize]) << 32 | id)
            .collect();
        order.sort_unstable();
        let mut ranks = vec![0; order.len()];
        for (rank, &both) in order.iter().enumerate() {
            ranks[both as u32 as usize] = rank as u32;
        }
        ranks
    }

    /// At this temperature a place that costs one unit more is e^(1/temperature) times less likely.
    pub fn heat(&mut self, temperature: f64) {
        self.weights = Weights::at(temperature);
    }

    /// A constraint at random among those that are violated; `None` if none is.
    pub fn violated(&mut self) -> Option<u32> {
        self.rng.pick(&self.violated.members).copied()
    }

    /// A random number below `bound`.
    pub fn random(&mut self, bound: usize) -> usize {
        self.rng.below(bound)
    }

    /// Lets a constraint cost a little more.
    pub fn raise(&mut self, constraint: u32) {
        let cost = &mut self.costs[constraint as usize];
        if *cost == UNIT {
            self.raised.push(constraint);
        }
        *cost += 1;
    }

    /// Lets every constraint that costs more than a unit, and is not violated, cost a little less.
    pub fn relax(&mut self) {
        let (costs, violated) = (&mut self.costs, &self.violated);
        self.raised.retain(|&constraint| {
            let cost = &mut costs[constraint as usize];
            *cost -= i32::from(!violated.holds(constraint));
            *cost > UNIT
        });
    }

    /// Lets all constraints cost the same again.
    pub fn level(&mut self) {
        self.raised.clear();
        self.costs.fill(UNIT);
    }

    /// The id of a node that the constraint touches, at random.
    pub fn touched(&mut self, constraint: u32) -> Option<u32> {
        let touched = self.field.touched.of_node(constraint);
        self.rng.pick(touched).copied()
    }

    /// The known neighbour that bounds the node's move, on one side at random.
    pub fn bounding(&mut self, id: u32) -> Option<u32> {
        let is_after = self.rng.chance(50);
        let field = &self.field;
        let point = |id: &u32| self.points[*id as usize];
        if is_after {
            field.after.of_node(id).iter().copied().min_by_key(point)
        } else {
            field.before.of_node(id).iter().copied().max_by_key(point)
        }
    }

    /// Moves the node of this id to a new place between its known neighbours, at the constraints' own costs.
    pub fn move_node(&mut self, id: u32) {
        self.n_moves += 1;
        let random = [unit(&mut self.rng), unit(&mut self.rng)];
        let bath = HeatBath {
            field: &self.field,
            points: &self.points,
            weights: &self.weights,
            costs: self.costs.as_slice(),
        };
        let violated = &mut self.violated;
        let flip = |constraint, is_violated| violated.set(constraint, is_violated);
        if let Some(place) = bath.draw(id, random, &mut self.scratch, flip) {
            self.points[id as usize] = place;
        }
    }

    /// Moves every node that a constraint touches, one after the other.
    pub fn move_all(&mut self) {
        for id in 0..self.n_nodes() as u32 {
            if self.field.is_touched(id) {
                self.move_node(id);
            }
        }
    }

    /// How many colours there are to sweep.
    pub fn n_colours(&self) -> usize {
        self.colours.len()
    }

    /// Moves all nodes of a colour, all constraints costing the same. The result depends on the seed and on how many colours were
    /// moved before, not on the threads.
    pub fn move_colour(&mut self, colour: usize) {
        let sweep = self.n_sweeps;
        self.n_sweeps += 1;
        let colours = Arc::clone(&self.colours);
        let ids = &colours[colour];
        self.n_moves += ids.len() as u64;
        if ids.len() < PARALLEL || rayon::current_num_threads() == 1 {
            let mut scratch = std::mem::take(&mut self.scratch);
            for &id in ids {
                let mut moved = Moved::default();
                self.draw_all(&[id], sweep, &mut scratch, &mut moved);
                self.apply(moved);
            }
            self.scratch = scratch;
            return;
        }
        let moved: Vec<Moved> = ids
            .par_chunks(CHUNK)
            .map_init(Scratch::default, |scratch, ids| {
                let mut moved = Moved::default();
                self.draw_all(ids, sweep, scratch, &mut moved);
                moved
            })
            .collect();
        for moved in moved {
            self.apply(moved);
        }
    }

    fn draw_all(&self, ids: &[u32], sweep: u64, scratch: &mut Scratch, moved: &mut Moved) {
        let bath = HeatBath {
            field: &self.field,
            points: &self.points,
            weights: &self.weights,
            costs: Equal,
        };
        for &id in ids {
            let mut rng = Rng::new(hash(self.seed, sweep, id));
            let random = [unit(&mut rng), unit(&mut rng)];
            let flips = &mut moved.flips;
            let flip = |constraint, is_violated| flips.push((constraint, is_violated));
            if let Some(place) = bath.draw(id, random, scratch, flip) {
                moved.places.push((id, place));
            }
        }
    }

    fn apply(&mut self, moved: Moved) {
        for (id, place) in moved.places {
            self.points[id as usize] = place;
        }
        for (constraint, is_violated) in moved.flips {
            self.violated.set(constraint, is_violated);
        }
    }
}

/// Points by rank, evenly spaced, neither end of the line taken.
pub(super) fn spaced(ranks: &[u32]) -> Vec<u32> {
    let step = f64::from(u32::MAX) / (ranks.len() as f64 + 1.0);
    let point = |&rank: &u32| ((f64::from(rank) + 1.0) * step) as u32;
    ranks.iter().map(point).collect()
}

/// A random number from 0 to below 1.
fn unit(rng: &mut Rng) -> f64 {
    (rng.number() >> 11) as f64 / (1u64 << 53) as f64
}

/// A seed of its own for every node in every sweep.
fn hash(seed: u64, sweep: u64, id: u32) -> u64 {
    let mixed = seed ^ sweep.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ u64::from(id) << 20
}

/// A set of small numbers from which one can be drawn.
#[derive(Clone)]
struct Members {
    members: Vec<u32>,
    /// By number, its place among the members.
    place: Vec<u32>,
}

impl Members {
    fn new(size: usize) -> Members {
        Members {
            members: Vec::new(),
            place: vec![NONE; size],
        }
    }

    fn holds(&self, number: u32) -> bool {
        self.place[number as usize] != NONE
    }

    #[inline]
    fn set(&mut self, number: u32, is_member: bool) {
        let place = self.place[number as usize];
        if is_member == (place != NONE) {
            return;
        }
        if is_member {
            self.place[number as usize] = self.members.len() as u32;
            self.members.push(number);
        } else {
            self.place[number as usize] = NONE;
            self.members.swap_remove(place as usize);
            if let Some(&moved) = self.members.get(place as usize) {
                self.place[moved as usize] = place;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::propagator::start;
    use crate::support::{Rng, planted};

    /// A question, and its line.
    struct Case {
        known: Known,
        sides: Sides,
        line: Line,
    }

    fn case(n_nodes: usize, n_constraints: usize, torn: bool, random: &mut Rng) -> Case {
        let owned = planted(n_nodes, n_constraints, torn, random);
        let question = owned.question();
        let known = Known::of(&question);
        let sides = Sides::of(&owned.constraints, 0..owned.constraints.len());
        let places = start::places(&question).expect("it has no cycle");
        let line = Line::new(&known, &sides, &places, 1);
        Case { known, sides, line }
    }

    impl Case {
        /// The violated constraints, counted from the places. No known edge may run backward.
        fn counted(&self) -> usize {
            let places = self.line.places(self.line.points());
            for node in 0..places.len() as u32 {
                for &to in self.known.successors(node) {
                    assert!(places[node as usize] < places[to as usize]);
                }
            }
            let all = 0..self.line.n_constraints() as u32;
            all.filter(|&at| self.sides.is_violated(at, &places))
                .count()
        }
    }

    #[test]
    fn what_is_violated_is_known_after_every_move() {
        let mut random = Rng::new(1);
        for torn in [false, true] {
            let mut case = case(60, 400, torn, &mut random);
            for temperature in [5.0, 1.0, 0.3] {
                case.line.heat(temperature);
                for _ in 0..500 {
                    let id = case.line.random(60) as u32;
                    case.line.move_node(id);
                    assert_eq!(case.line.n_violated(), case.counted());
                }
                for colour in 0..case.line.n_colours() {
                    case.line.move_colour(colour);
                    assert_eq!(case.line.n_violated(), case.counted());
                }
            }
        }
    }

    #[test]
    fn a_colour_moves_alike_with_any_number_of_threads() {
        let lines = [1, 2, 8].map(|n_threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads);
            let pool = pool.build().expect("threads");
            let mut case = case(3_000, 4_000, true, &mut Rng::new(7));
            assert!(case.line.colours.iter().any(|ids| ids.len() > PARALLEL));
            pool.install(|| {
                for temperature in [2.0, 0.5] {
                    case.line.heat(temperature);
                    for colour in 0..case.line.n_colours() {
                        case.line.move_colour(colour);
                    }
                }
            });
            assert_eq!(case.line.n_violated(), case.counted());
            case.line.points
        });
        assert_eq!(lines[0], lines[1]);
        assert_eq!(lines[0], lines[2]);
    }

    #[test]
    fn no_node_of_a_colour_reads_another() {
        let case = case(500, 3_000, true, &mut Rng::new(5));
        for ids in case.line.colours.iter() {
            for &id in ids {
                case.line.field.for_each_read(id, |other| {
                    assert!(ids.binary_search(&other).is_err(), "{id} reads {other}");
                });
            }
        }
    }

    #[test]
    fn in_the_cold_no_move_violates_more() {
        let mut case = case(60, 400, true, &mut Rng::new(2));
        case.line.heat(0.01);
        for _ in 0..3000 {
            let before = case.line.n_violated();
            let id = case.line.random(60) as u32;
            case.line.move_node(id);
            assert!(case.line.n_violated() <= before);
        }
    }

    #[test]
    fn what_costs_more_is_known_after_every_step() {
        let mut line = case(60, 400, true, &mut Rng::new(4)).line;
        line.heat(0.4);
        for step in 0..2000 {
            let Some(constraint) = line.violated() else {
                break;
            };
            let id = line.touched(constraint).expect("it touches nodes");
            line.move_node(id);
            line.raise(constraint);
            if step % 7 == 0 {
                line.relax();
            }
            let mut raised = line.raised.clone();
            raised.sort_unstable();
            let all = 0..line.n_constraints() as u32;
            let dear: Vec<u32> = all.filter(|&at| line.costs[at as usize] > UNIT).collect();
            assert_eq!(raised, dear);
            assert!(line.costs.iter().all(|&cost| cost >= UNIT));
        }
        line.level();
        assert!(line.raised.is_empty() && line.costs.iter().all(|&cost| cost == UNIT));
    }

    #[test]
    fn places_are_as_likely_as_their_weights_say() {
        let mut case = case(60, 400, true, &mut Rng::new(3));
        case.line.heat(1.0);
        let field = Arc::clone(&case.line.field);
        let id = (0..60).find(|&id| field.is_touched(id)).expect("one is");
        let mut times_at = std::collections::BTreeMap::new();
        for _ in 0..20_000 {
            case.line.move_node(id);
            *times_at.entry(case.line.n_violated()).or_insert(0u32) += 1;
        }
        // The same by trying 20,000 places that are evenly spread between the bounds.
        let points = &case.line.points;
        let before = field.before.of_node(id).iter();
        let after = field.after.of_node(id).iter();
        let low = before.map(|&it| points[it as usize]).max().unwrap_or(0);
        let high = after.map(|&it| points[it as usize]).min();
        let (low, high) = (f64::from(low), f64::from(high.unwrap_or(u32::MAX)));
        let mut weight_at = std::collections::BTreeMap::new();
        for at in 0..20_000 {
            let share = (f64::from(at) + 0.5) / 20_000.0;
            case.line.points[id as usize] = (low + share * (high - low)) as u32;
            let cost = case.counted();
            *weight_at.entry(cost).or_insert(0.0) += (-(cost as f64)).exp();
        }
        let total: f64 = weight_at.values().sum();
        for (cost, weight) in weight_at {
            let expected = weight / total;
            let seen = f64::from(*times_at.get(&cost).unwrap_or(&0)) / 20_000.0;
            assert!((expected - seen).abs() < 0.02, "{cost}: {expected} {seen}");
        }
    }
}
