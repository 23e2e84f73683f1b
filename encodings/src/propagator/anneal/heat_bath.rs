//! The move: one node to a new place, drawn by how few constraints it violates there (the heat bath of Creutz, 1980).
//!
//! With all other points held fast, a constraint is violated exactly where the node lies in some intervals; so the cost of a
//! place is a step function, and drawing by its Boltzmann weights is exact. Known edges bound the interval that it is
//! drawn from. A move reads points and returns what changes: so moves of nodes that do not read each other can be drawn
//! at once.

use super::field::Field;

/// The ends of the line, which no node has.
const FIRST: u32 = 0;
const LAST: u32 = u32::MAX;
/// The cost of a violated constraint before it is raised.
pub(super) const UNIT: i32 = 4;
/// Places that cost this much more than the best have weight 0 at every temperature in use.
const COSTS: usize = 64 * UNIT as usize;

/// By cost above the least, its Boltzmann weight.
#[derive(Clone)]
pub(super) struct Weights([f64; COSTS]);

impl Weights {
    /// A place that costs one unit more is e^(1/temperature) times less likely.
    pub fn at(temperature: f64) -> Weights {
        let scale = temperature * f64::from(UNIT);
        Weights(std::array::from_fn(|cost| (-(cost as f64) / scale).exp()))
    }

    #[inline]
    fn of(&self, above: i32) -> f64 {
        self.0[above.clamp(0, COSTS as i32 - 1) as usize]
    }
}

/// The cost of each constraint.
pub(super) trait Costs {
    fn of(&self, constraint: u32) -> i32;
}

/// Every constraint costs the same.
pub(super) struct Equal;

impl Costs for Equal {
    #[inline]
    fn of(&self, _: u32) -> i32 {
        UNIT
    }
}

/// By constraint, what it costs.
impl Costs for &[i32] {
    #[inline]
    fn of(&self, constraint: u32) -> i32 {
        self[constraint as usize]
    }
}

/// A closed interval of places where a constraint is violated. Those of one constraint stand beside each other.
#[derive(Clone, Copy)]
struct Bad {
    low: u32,
    high: u32,
    constraint: u32,
}

/// What a move gathers, kept between moves.
#[derive(Clone, Default)]
pub(super) struct Scratch {
    bad: Vec<Bad>,
    /// Where the cost changes, in the upper half, and by how much: so that whole numbers are sorted.
    steps: Vec<u64>,
    /// Each interval's low end, how many places are inside it, and its cost.
    intervals: Vec<(u32, u32, i32)>,
}

/// The heat bath over some points.
pub(super) struct HeatBath<'a, C> {
    pub field: &'a Field,
    pub points: &'a [u32],
    pub weights: &'a Weights,
    pub costs: C,
}

impl<C: Costs> HeatBath<'_, C> {
    /// Draws a new place for a node with two random numbers from 0 to below 1, and calls for every constraint that is violated from now on, or is no longer.
    #[inline]
    pub fn draw(
        &self,
        id: u32,
        random: [f64; 2],
        scratch: &mut Scratch,
        mut flip: impl FnMut(u32, bool),
    ) -> Option<u32> {
        let (low, high) = self.bounds(id);
        if high - low < 2 {
            return None;
        }
        self.gather(id, low, high, scratch);
        let cost = self.step(low, high, scratch);
        let place = self.choose(low, high, cost, random, scratch)?;
        let old = self.point(id);
        for of_one in scratch.bad.chunk_by(|a, b| a.constraint == b.constraint) {
            let [was, is] = [old, place]
                .map(|place| of_one.iter().any(|it| it.low <= place && place <= it.high));
            if was != is {
                flip(of_one[0].constraint, is);
            }
        }
        Some(place)
    }

    #[inline]
    fn point(&self, id: u32) -> u32 {
        self.points[id as usize]
    }

    #[inline]
    fn bounds(&self, id: u32) -> (u32, u32) {
        let (mut low, mut high) = (FIRST, LAST);
        for &it in self.field.before.of_node(id) {
            low = low.max(self.point(it));
        }
        for &it in self.field.after.of_node(id) {
            high = high.min(self.point(it));
        }
        (low, high)
    }

    /// Finds where constraints are violated between the bounds.
    #[inline]
    fn gather(&self, id: u32, low: u32, high: u32, scratch: &mut Scratch) {
        let found = &mut scratch.bad;
        found.clear();
        let mut bad = |from: u32, to: u32, constraint: u32| {
            // Where nothing between the bounds is violated, or everything is, no place is better than another.
            if from <= to && from < high && to > low && (from > low || to < high) {
                found.push(Bad {
                    low: from,
                    high: to,
                    constraint,
                });
            }
        };
        for &[from, to, constraint] in self.field.between.of_node(id) {
            bad(self.point(from), self.point(to), constraint);
        }
        for &[to, w, z, constraint] in self.field.below.of_node(id) {
            let to = self.point(to);
            if to < high && self.point(w) >= self.point(z) {
                bad(to, LAST, constraint);
            }
        }
        for &[from, w, z, constraint] in self.field.above.of_node(id) {
            let from = self.point(from);
            if from > low && self.point(w) >= self.point(z) {
                bad(FIRST, from, constraint);
            }
        }
        for &constraint in self.field.rest.of_node(id) {
            let sides = self.field.sides_of(constraint);
            let spans = sides.map(|side| self.span(side, id));
            for (from, to) in gaps(spans) {
                bad(from, to, constraint);
            }
        }
    }

    /// The steps of the cost between the bounds, sorted; returns the cost at the low end.
    #[inline]
    fn step(&self, low: u32, high: u32, scratch: &mut Scratch) -> i32 {
        let mut cost = 0;
        scratch.steps.clear();
        for bad in &scratch.bad {
            let step = self.costs.of(bad.constraint);
            if bad.low > low {
                scratch.steps.push(step_at(bad.low, step));
            } else {
                cost += step;
            }
            if bad.high < high {
                scratch.steps.push(step_at(bad.high, -step));
            }
        }
        scratch.steps.sort_unstable();
        cost
    }

    /// The open interval in which a side holds, with the other points held fast.
    #[inline]
    fn span(&self, side: &[[u32; 2]], id: u32) -> (u32, u32) {
        let mut span = (FIRST, LAST);
        for &[from, to] in side {
            if from == id {
                span.1 = span.1.min(self.point(to));
            } else if to == id {
                span.0 = span.0.max(self.point(from));
            } else if self.point(from) >= self.point(to) {
                return (LAST, FIRST);
            }
        }
        span
    }

    /// Chooses a place between the bounds, given the cost at the low end and the steps.
    #[inline]
    fn choose(
        &self,
        low: u32,
        high: u32,
        cost: i32,
        random: [f64; 2],
        scratch: &mut Scratch,
    ) -> Option<u32> {
        let Scratch {
            steps, intervals, ..
        } = scratch;
        intervals.clear();
        let (mut from, mut cost, mut least) = (low, cost, i32::MAX);
        for &step in steps.iter().chain(&[step_at(high, 0)]) {
            let to = (step >> 32) as u32;
            // Ends are taken by other nodes.
            if to - from > 1 {
                intervals.push((from, to - from - 1, cost));
                least = least.min(cost);
            }
            from = to;
            cost += step as u32 as i32;
        }
        let mut total = 0.0;
        for &(_, room, cost) in intervals.iter() {
            total += f64::from(room) * self.weights.of(cost - least);
        }
        let mut drawn = random[0] * total;
        let mut chosen = None;
        for &(from, room, cost) in intervals.iter() {
            let weight = f64::from(room) * self.weights.of(cost - least);
            if weight > 0.0 {
                chosen = Some((from, room));
            }
            drawn -= weight;
            if drawn < 0.0 {
                break;
            }
        }
        let (from, room) = chosen?;
        Some(from + 1 + (random[1] * f64::from(room)) as u32)
    }
}

/// A step of the cost. Whole numbers sort by the place.
#[inline]
fn step_at(place: u32, step: i32) -> u64 {
    u64::from(place) << 32 | u64::from(step as u32)
}

/// The closed intervals that two open ones leave out.
#[inline]
fn gaps(spans: [(u32, u32); 2]) -> impl Iterator<Item = (u32, u32)> {
    let [one, other] = spans;
    let (first, second) = if one.0 <= other.0 {
        (one, other)
    } else {
        (other, one)
    };
    let is_empty = |span: (u32, u32)| span.0 >= span.1;
    let gaps = match (is_empty(first), is_empty(second)) {
        (true, true) => [Some((FIRST, LAST)), None, None],
        (false, true) => [Some((FIRST, first.0)), Some((first.1, LAST)), None],
        (true, false) => [Some((FIRST, second.0)), Some((second.1, LAST)), None],
        (false, false) => {
            let end = first.1.max(second.1);
            let middle = (first.1 <= second.0).then_some((first.1, second.0));
            [Some((FIRST, first.0)), middle, Some((end, LAST))]
        }
    };
    // What reaches to either end of the line leaves no gap there.
    gaps.into_iter()
        .flatten()
        .filter(|&(low, high)| (low, high) != (FIRST, FIRST) && (low, high) != (LAST, LAST))
}
