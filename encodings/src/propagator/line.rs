//! The nodes as points on a line, and the move that annealing makes: one node to a new place, drawn by how few constraints it
//! violates there (the heat bath of Creutz, 1980).
//!
//! With all other points held fast, a side of a constraint holds exactly while the node lies in some interval; so what a place
//! costs is a step function, and drawing by its Boltzmann weights is exact. Known edges bound the interval that it is
//! drawn from. Constraints that stay violated can be made to cost more, and less again.
//!
//! Invariants: every known edge runs forward; `violated` holds exactly the constraints of which neither side does; `raised`
//! holds exactly those that cost more than a unit.

use std::ops::Range;
use std::rc::Rc;

use kingsnake_context::rng::Rng;
use rustsat::types::Var;

use super::graph::{Known, Sides};
use super::order::NONE;

/// Points closer than this have no room between them.
const ROOM: f64 = 1e-12;
/// What a constraint costs where it is violated, before it is raised.
const UNIT: i32 = 4;
/// Places that cost so much more than the best weigh nothing at any temperature that is used.
const COSTS: usize = 64 * UNIT as usize;
/// More words of bodies than this are not worth their memory. It also keeps the edges of a side countable in 16 bits.
const LARGEST: usize = 1 << 27;

/// An open interval of places.
#[derive(Clone, Copy, PartialEq)]
struct Span {
    low: f64,
    high: f64,
}

impl Span {
    const EMPTY: Span = Span {
        low: f64::MAX,
        high: f64::MIN,
    };

    fn is_empty(self) -> bool {
        self.low >= self.high
    }

    fn holds(self, place: f64) -> bool {
        self.low < place && place < self.high
    }
}

/// The edges of a side as one of their nodes sees them: how many do not touch it, leave it, and enter it.
#[derive(Clone, Copy, Default)]
struct Part {
    others: u16,
    leaving: u16,
    entering: u16,
}

/// A constraint as one of its nodes sees it. The nodes at its edges' other ends lie in `bodies`, in the order of visits.
struct Entry {
    constraint: u32,
    parts: [Part; 2],
}

/// What a move gathers, kept between moves.
#[derive(Default)]
struct Scratch {
    /// Constraints that the new place decides, and where each side holds.
    open: Vec<(u32, [Span; 2])>,
    /// Where the cost changes, and by how much.
    steps: Vec<(f64, i32)>,
    /// The weights of all intervals up to and with each.
    sums: Vec<f64>,
}

/// The points.
pub(crate) struct Line {
    known: Rc<Known>,
    sides: Rc<Sides>,
    points: Vec<f64>,
    /// By node, where its entries and their bodies start.
    starts: Vec<(u32, u32)>,
    entries: Vec<Entry>,
    bodies: Vec<u32>,
    violated: Members,
    /// By constraint, what it costs.
    costs: Vec<i32>,
    raised: Vec<u32>,
    /// By cost above the least, its Boltzmann weight.
    weights: [f64; COSTS],
    scratch: Scratch,
    rng: Rng,
    n_moves: u64,
}

impl Line {
    /// At most the bytes that [`Line::new`] will take, or `None` if sides are so large that it is not worth while.
    pub fn bytes(sides: &Sides) -> Option<u64> {
        let n_words: usize = (0..sides.n_constraints() as u32)
            .map(|constraint| (2 * edges(sides, constraint).len()).pow(2))
            .sum();
        let n_entries = 2 * sides.n_edges();
        let n_bytes = 4 * n_words + size_of::<Entry>() * n_entries + 12 * sides.n_constraints();
        (n_words <= LARGEST).then_some(n_bytes as u64)
    }

    /// The places of a linear extension of the known graph, evenly spaced. Ask [`Line::bytes`] first.
    pub fn new(known: &Rc<Known>, sides: &Rc<Sides>, places: &[u32], seed: u64) -> Line {
        let n_nodes = known.n_nodes();
        let mut line = Line {
            known: Rc::clone(known),
            sides: Rc::clone(sides),
            points: Vec::new(),
            starts: Vec::with_capacity(n_nodes + 1),
            entries: Vec::new(),
            bodies: Vec::new(),
            violated: Members::new(sides.n_constraints()),
            costs: vec![UNIT; sides.n_constraints()],
            raised: Vec::new(),
            weights: [0.0; COSTS],
            scratch: Scratch::default(),
            rng: Rng::new(seed),
            n_moves: 0,
        };
        let touching = touching(sides, n_nodes);
        for node in 0..n_nodes as u32 {
            line.start_node();
            for &constraint in &touching[node as usize] {
                line.see(node, constraint);
            }
        }
        line.start_node();
        line.spread(places);
        line
    }

    fn start_node(&mut self) {
        let start = (self.entries.len() as u32, self.bodies.len() as u32);
        self.starts.push(start);
    }

    /// Adds the entry of a constraint for one of its nodes.
    fn see(&mut self, node: u32, constraint: u32) {
        let var = Var::new(constraint);
        let parts = [var.pos_lit(), var.neg_lit()].map(|lit| {
            let sides = &self.sides;
            let ends = || sides.edges(lit).map(|edge| sides.ends(edge));
            let mut part = Part::default();
            for (from, to) in ends().filter(|&(from, to)| from != node && to != node) {
                part.others += 1;
                self.bodies.extend([from, to]);
            }
            for (_, to) in ends().filter(|&(from, _)| from == node) {
                part.leaving += 1;
                self.bodies.push(to);
            }
            for (from, _) in ends().filter(|&(from, to)| to == node && from != node) {
                part.entering += 1;
                self.bodies.push(from);
            }
            part
        });
        self.entries.push(Entry { constraint, parts });
    }

    /// Takes the places of a linear extension of the known graph, evenly spaced.
    pub fn spread(&mut self, places: &[u32]) {
        let n = places.len() as f64;
        self.points.clear();
        self.points
            .extend(places.iter().map(|&place| (f64::from(place) + 0.5) / n));
        for constraint in 0..self.sides.n_constraints() as u32 {
            let lit = Var::new(constraint).pos_lit();
            let forward = [lit, !lit].map(|lit| self.sides.forward(lit, places));
            self.violated.set(constraint, forward == [false, false]);
        }
    }

    /// How many constraints there are.
    pub fn n_constraints(&self) -> usize {
        self.sides.n_constraints()
    }

    /// How many constraints are violated.
    pub fn n_violated(&self) -> usize {
        self.violated.members.len()
    }

    /// How many moves were made.
    pub fn n_moves(&self) -> u64 {
        self.n_moves
    }

    /// The nodes' places in the order of their points.
    pub fn places(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.points.len() as u32).collect();
        order.sort_unstable_by(|&a, &b| self.point(a).total_cmp(&self.point(b)).then(a.cmp(&b)));
        let mut places = vec![0; order.len()];
        for (place, &node) in order.iter().enumerate() {
            places[node as usize] = place as u32;
        }
        places
    }

    /// At this temperature a place that costs one unit more is e^(1/temperature) times less likely.
    pub fn heat(&mut self, temperature: f64) {
        for (cost, weight) in self.weights.iter_mut().enumerate() {
            *weight = (-(cost as f64) / (temperature * f64::from(UNIT))).exp();
        }
    }

    /// A random number below `bound`.
    pub fn random(&mut self, bound: usize) -> usize {
        self.rng.below(bound)
    }

    /// A constraint at random among those that are violated; `None` if none is.
    pub fn violated(&mut self) -> Option<u32> {
        self.rng.pick(&self.violated.members).copied()
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

    /// A node that the constraint touches, at random.
    pub fn touched(&mut self, constraint: u32) -> u32 {
        let edges = edges(&self.sides, constraint);
        let (from, to) = self.sides.ends(edges.start + self.rng.below(edges.len()));
        if self.rng.chance(50) { from } else { to }
    }

    /// The known neighbour that bounds the node's move, on one side at random.
    pub fn bounding(&mut self, node: u32) -> Option<u32> {
        let is_after = self.rng.chance(50);
        let by_point = |a: &u32, b: &u32| self.point(*a).total_cmp(&self.point(*b));
        if is_after {
            let after = self.known.successors(node).iter().copied();
            after.min_by(by_point)
        } else {
            let before = self.known.predecessors(node).iter().copied();
            before.max_by(by_point)
        }
    }

    /// Whether some constraint touches the node.
    pub fn is_touched(&self, node: u32) -> bool {
        !self.entries_of(node).is_empty()
    }

    /// Moves a node to a new place between its known neighbours.
    pub fn move_node(&mut self, node: u32) {
        self.n_moves += 1;
        let bounds = self.bounds(node);
        if bounds.high - bounds.low < ROOM {
            return;
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let cost = self.gather(node, bounds, &mut scratch);
        if let Some(place) = self.draw(bounds, cost, &mut scratch) {
            self.points[node as usize] = place;
            for &(constraint, spans) in &scratch.open {
                let holds = spans.iter().any(|span| span.holds(place));
                self.violated.set(constraint, !holds);
            }
        }
        self.scratch = scratch;
    }

    #[inline]
    fn point(&self, node: u32) -> f64 {
        self.points[node as usize]
    }

    fn entries_of(&self, node: u32) -> Range<usize> {
        let node = node as usize;
        self.starts[node].0 as usize..self.starts[node + 1].0 as usize
    }

    fn bounds(&self, node: u32) -> Span {
        let points = |nodes: &[u32], start, choose: fn(f64, f64) -> f64| {
            nodes
                .iter()
                .fold(start, |so_far, &node| choose(so_far, self.point(node)))
        };
        Span {
            low: points(self.known.predecessors(node), 0.0, f64::max),
            high: points(self.known.successors(node), 1.0, f64::min),
        }
    }

    /// Finds the steps of the cost between the bounds, sorted; returns the cost at the low end.
    fn gather(&self, node: u32, bounds: Span, scratch: &mut Scratch) -> i32 {
        scratch.open.clear();
        scratch.steps.clear();
        let mut cost = 0;
        let mut at = self.starts[node as usize].1 as usize;
        for entry in &self.entries[self.entries_of(node)] {
            let spans = entry.parts.map(|part| self.span(part, &mut at, bounds));
            // What holds everywhere, or nowhere, changes nothing.
            if spans.contains(&bounds) || spans.iter().all(|span| span.is_empty()) {
                continue;
            }
            scratch.open.push((entry.constraint, spans));
            let step = self.costs[entry.constraint as usize];
            let [first, second] = spans;
            let (first, second) = if first.low <= second.low {
                (first, second)
            } else {
                (second, first)
            };
            let mut holds = |low: f64, high: f64| {
                if low > bounds.low {
                    scratch.steps.push((low, -step));
                }
                if high < bounds.high {
                    scratch.steps.push((high, step));
                }
            };
            if second.is_empty() {
                holds(first.low, first.high);
            } else if second.low <= first.high {
                holds(first.low, first.high.max(second.high));
            } else {
                holds(first.low, first.high);
                holds(second.low, second.high);
            }
            cost += step * i32::from(first.low > bounds.low);
        }
        scratch.steps.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        cost
    }

    /// Where a side holds within the bounds. Passes over the side's body.
    #[inline]
    fn span(&self, part: Part, at: &mut usize, bounds: Span) -> Span {
        let (others, leaving) = (2 * part.others as usize, part.leaving as usize);
        let length = others + leaving + part.entering as usize;
        let body = &self.bodies[*at..*at + length];
        *at += length;
        let (others, rest) = body.split_at(others);
        let (leaving, entering) = rest.split_at(leaving);
        let backward = |edge: &[u32]| self.point(edge[0]) >= self.point(edge[1]);
        if others.chunks_exact(2).any(backward) {
            return Span::EMPTY;
        }
        let mut span = bounds;
        for &to in leaving {
            span.high = span.high.min(self.point(to));
        }
        for &from in entering {
            span.low = span.low.max(self.point(from));
        }
        if span.is_empty() { Span::EMPTY } else { span }
    }

    /// Draws a place between the bounds, given the cost at the low end and the steps.
    fn draw(&mut self, bounds: Span, cost: i32, scratch: &mut Scratch) -> Option<f64> {
        let end = (bounds.high, 0);
        let intervals = || {
            let mut state = (bounds.low, cost);
            scratch
                .steps
                .iter()
                .chain([&end])
                .map(move |&(place, step)| {
                    let (low, cost) = state;
                    state = (place, cost + step);
                    (low, place, cost)
                })
        };
        let roomy = intervals().filter(|(low, high, _)| low < high);
        let least = roomy.map(|(_, _, cost)| cost).min()?;
        let mut total = 0.0;
        scratch.sums.clear();
        scratch.sums.extend(intervals().map(|(low, high, cost)| {
            let above = (cost - least).clamp(0, COSTS as i32 - 1);
            total += (high - low) * self.weights[above as usize];
            total
        }));
        let drawn = self.unit() * total;
        let chosen = scratch.sums.iter().position(|&sum| drawn < sum)?;
        let (low, high, _) = intervals().nth(chosen)?;
        let place = low + self.unit() * (high - low);
        bounds.holds(place).then_some(place)
    }

    /// A random number from 0 to below 1.
    fn unit(&mut self) -> f64 {
        (self.rng.number() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The edges of both sides of a constraint.
fn edges(sides: &Sides, constraint: u32) -> Range<usize> {
    let var = Var::new(constraint);
    sides.edges(var.pos_lit()).start..sides.edges(var.neg_lit()).end
}

/// The constraints that touch each node.
fn touching(sides: &Sides, n_nodes: usize) -> Vec<Vec<u32>> {
    let mut touching = vec![Vec::new(); n_nodes];
    for constraint in 0..sides.n_constraints() as u32 {
        for edge in edges(sides, constraint) {
            let (from, to) = sides.ends(edge);
            for node in [from, to] {
                let list = &mut touching[node as usize];
                if list.last() != Some(&constraint) {
                    list.push(constraint);
                }
            }
        }
    }
    touching
}

/// A set of small numbers from which one can be drawn.
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
    use crate::support::{Random, planted};

    fn line(torn: bool, random: &mut Random) -> Line {
        let owned = planted(60, 400, torn, random);
        let question = owned.question();
        let known = Rc::new(Known::of(&question));
        let sides = Rc::new(Sides::of(&owned.constraints, 0..owned.constraints.len()));
        let places = start::places(&question).expect("it has no cycle");
        Line::new(&known, &sides, &places, 1)
    }

    /// What the places say, counted anew.
    fn counted(line: &Line) -> usize {
        let places = line.places();
        for node in 0..places.len() as u32 {
            for &to in line.known.successors(node) {
                assert!(places[node as usize] < places[to as usize]);
            }
        }
        let is_violated = |&constraint: &u32| {
            let lit = Var::new(constraint).pos_lit();
            !line.sides.forward(lit, &places) && !line.sides.forward(!lit, &places)
        };
        (0..line.n_constraints() as u32).filter(is_violated).count()
    }

    #[test]
    fn what_is_violated_is_known_after_every_move() {
        let mut random = Random::new(1);
        for torn in [false, true] {
            let mut line = line(torn, &mut random);
            for temperature in [5.0, 1.0, 0.3] {
                line.heat(temperature);
                for _ in 0..500 {
                    let node = line.random(60) as u32;
                    line.move_node(node);
                    assert_eq!(line.n_violated(), counted(&line));
                }
            }
        }
    }

    #[test]
    fn in_the_cold_no_move_violates_more() {
        let mut random = Random::new(2);
        let mut line = line(true, &mut random);
        line.heat(0.01);
        for _ in 0..3000 {
            let before = line.n_violated();
            let node = line.random(60) as u32;
            line.move_node(node);
            assert!(line.n_violated() <= before);
        }
    }

    #[test]
    fn what_costs_more_is_known_after_every_step() {
        let mut random = Random::new(4);
        let mut line = line(true, &mut random);
        line.heat(0.4);
        for step in 0..2000 {
            let Some(constraint) = line.violated() else {
                break;
            };
            let node = line.touched(constraint);
            line.move_node(node);
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
        let mut random = Random::new(3);
        let mut line = line(true, &mut random);
        line.heat(1.0);
        let node = (0..60).find(|&node| line.is_touched(node)).expect("one is");
        let mut times_at = std::collections::BTreeMap::new();
        for _ in 0..20_000 {
            line.move_node(node);
            *times_at.entry(line.n_violated()).or_insert(0u32) += 1;
        }
        // The same by trying 20,000 places that are evenly spread between the bounds.
        let bounds = line.bounds(node);
        let mut weight_at = std::collections::BTreeMap::new();
        for at in 0..20_000 {
            let share = (f64::from(at) + 0.5) / 20_000.0;
            line.points[node as usize] = bounds.low + share * (bounds.high - bounds.low);
            let cost = counted(&line);
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
