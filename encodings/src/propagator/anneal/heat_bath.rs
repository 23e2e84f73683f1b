//! The move: one node to a new place, drawn by how few constraints it violates there (the heat bath of Creutz, 1980).
//!
//! With all other points held fast, a constraint is violated exactly where the node lies in some intervals; so the cost of a
//! place is a step function, and drawing by its Boltzmann weights is exact. Known edges bound the interval that it is
//! drawn from. A move reads points and returns what changes: so moves of nodes that do not read each other can be drawn
//! at once.

use super::field::{Field, General};

/// Points closer than this have no room between them.
const ROOM: f64 = 1e-12;
/// What a violated constraint costs before it is raised.
pub(super) const UNIT: i32 = 4;
/// Places that cost so much more than the best weigh nothing at any temperature that is used.
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

/// What each constraint costs.
pub(super) trait Costs {
    fn of(&self, constraint: impl FnOnce() -> u32) -> i32;
}

/// Every constraint costs the same.
pub(super) struct Equal;

impl Costs for Equal {
    #[inline]
    fn of(&self, _: impl FnOnce() -> u32) -> i32 {
        UNIT
    }
}

/// By constraint, what it costs.
impl Costs for &[i32] {
    #[inline]
    fn of(&self, constraint: impl FnOnce() -> u32) -> i32 {
        self[constraint() as usize]
    }
}

/// A closed interval of places where a constraint is violated, and which entry says so.
#[derive(Clone, Copy)]
struct Bad {
    low: f64,
    high: f64,
    entry: FieldEntry,
}

/// An entry by its form and its index in the field.
#[derive(Clone, Copy)]
enum FieldEntry {
    Between(u32),
    Below(u32),
    Above(u32),
    General(u32),
}

/// What a move gathers, kept between moves.
#[derive(Clone, Default)]
pub(super) struct Scratch {
    bad: Vec<Bad>,
    /// Where the cost changes, and by how much.
    steps: Vec<(f64, i32)>,
    /// The weights of all intervals up to and with each.
    sums: Vec<f64>,
}

/// The heat bath over some points.
pub(super) struct HeatBath<'a, C> {
    pub field: &'a Field,
    pub points: &'a [f64],
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
    ) -> Option<f64> {
        let (low, high) = self.bounds(id);
        if high - low < ROOM {
            return None;
        }
        let cost = self.gather(id, low, high, scratch);
        let place = self.choose(low, high, cost, random, scratch)?;
        let old = self.point(id);
        for bad in &scratch.bad {
            let [was, is] = [old, place].map(|place| bad.low <= place && place <= bad.high);
            if was != is && !matches!(bad.entry, FieldEntry::General(_)) {
                flip(self.constraint(bad.entry), is);
            }
        }
        for &at in self.field.rest.of_node(id) {
            let general = &self.field.general[at as usize];
            let [was, is] = [old, place].map(|place| self.is_violated(general, id, place));
            if was != is {
                flip(general.constraint, is);
            }
        }
        Some(place)
    }

    #[inline]
    fn point(&self, id: u32) -> f64 {
        self.points[id as usize]
    }

    fn constraint(&self, entry: FieldEntry) -> u32 {
        match entry {
            FieldEntry::Between(at) => self.field.between.constraint(at as usize),
            FieldEntry::Below(at) => self.field.below.constraint(at as usize),
            FieldEntry::Above(at) => self.field.above.constraint(at as usize),
            FieldEntry::General(at) => self.field.general[at as usize].constraint,
        }
    }

    fn bounds(&self, id: u32) -> (f64, f64) {
        let before = self.field.before.of_node(id).iter();
        let after = self.field.after.of_node(id).iter();
        let low = before.fold(0.0, |low: f64, &it| low.max(self.point(it)));
        let high = after.fold(1.0, |high: f64, &it| high.min(self.point(it)));
        (low, high)
    }

    /// Finds where constraints are violated between the bounds, and the steps of the cost there, sorted; returns the cost at the low end.
    fn gather(&self, id: u32, low: f64, high: f64, scratch: &mut Scratch) -> i32 {
        scratch.bad.clear();
        scratch.steps.clear();
        let mut bad = |from: f64, to: f64, entry| {
            // Where nothing between the bounds is violated, or everything is, no place is better than another.
            if from <= to && from < high && to > low && (from > low || to < high) {
                scratch.bad.push(Bad {
                    low: from,
                    high: to,
                    entry,
                });
            }
        };
        let (start, entries) = self.field.between.of_node(id);
        for (at, &[from, to]) in entries.iter().enumerate() {
            let entry = FieldEntry::Between((start + at) as u32);
            bad(self.point(from), self.point(to), entry);
        }
        let (start, entries) = self.field.below.of_node(id);
        for (at, &[to, w, z]) in entries.iter().enumerate() {
            if self.point(w) >= self.point(z) {
                bad(
                    self.point(to),
                    f64::MAX,
                    FieldEntry::Below((start + at) as u32),
                );
            }
        }
        let (start, entries) = self.field.above.of_node(id);
        for (at, &[from, w, z]) in entries.iter().enumerate() {
            if self.point(w) >= self.point(z) {
                bad(
                    -1.0,
                    self.point(from),
                    FieldEntry::Above((start + at) as u32),
                );
            }
        }
        for &at in self.field.rest.of_node(id) {
            let general = &self.field.general[at as usize];
            let spans = general.sides.each_ref().map(|side| self.span(side, id));
            for (from, to) in gaps(spans) {
                bad(from, to, FieldEntry::General(at));
            }
        }
        self.step(low, high, scratch)
    }

    fn step(&self, low: f64, high: f64, scratch: &mut Scratch) -> i32 {
        let mut cost = 0;
        for bad in &scratch.bad {
            let step = self.costs.of(|| self.constraint(bad.entry));
            if bad.low > low {
                scratch.steps.push((bad.low, step));
            } else {
                cost += step;
            }
            if bad.high < high {
                scratch.steps.push((bad.high, -step));
            }
        }
        scratch
            .steps
            .sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
        cost
    }

    /// The open interval in which a side holds, with the other points held fast.
    fn span(&self, side: &[(u32, u32)], id: u32) -> (f64, f64) {
        let mut span = (-1.0, f64::MAX);
        for &(from, to) in side {
            if from == id {
                span.1 = f64::min(span.1, self.point(to));
            } else if to == id {
                span.0 = f64::max(span.0, self.point(from));
            } else if self.point(from) >= self.point(to) {
                return (f64::MAX, -1.0);
            }
        }
        span
    }

    fn is_violated(&self, general: &General, id: u32, place: f64) -> bool {
        !general.sides.iter().any(|side| {
            let (low, high) = self.span(side, id);
            low < place && place < high
        })
    }

    /// Chooses a place between the bounds, given the cost at the low end and the steps.
    fn choose(
        &self,
        low: f64,
        high: f64,
        cost: i32,
        random: [f64; 2],
        scratch: &mut Scratch,
    ) -> Option<f64> {
        let (steps, end) = (&scratch.steps, [(high, 0)]);
        let intervals = || {
            let mut state = (low, cost);
            steps.iter().chain(&end).map(move |&(place, step)| {
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
            total += (high - low) * self.weights.of(cost - least);
            total
        }));
        let drawn = random[0] * total;
        let chosen = scratch.sums.iter().position(|&sum| drawn < sum)?;
        let (from, to, _) = intervals().nth(chosen)?;
        let place = from + random[1] * (to - from);
        (low < place && place < high).then_some(place)
    }
}

/// The closed intervals that two open ones leave out.
fn gaps(spans: [(f64, f64); 2]) -> impl Iterator<Item = (f64, f64)> {
    let [one, other] = spans;
    let (first, second) = if one.0 <= other.0 {
        (one, other)
    } else {
        (other, one)
    };
    let is_empty = |span: (f64, f64)| span.0 >= span.1;
    let gaps = match (is_empty(first), is_empty(second)) {
        (true, true) => [Some((-1.0, f64::MAX)), None, None],
        (false, true) => [Some((-1.0, first.0)), Some((first.1, f64::MAX)), None],
        (true, false) => [Some((-1.0, second.0)), Some((second.1, f64::MAX)), None],
        (false, false) => {
            let end = first.1.max(second.1);
            let middle = (first.1 <= second.0).then_some((first.1, second.0));
            [Some((-1.0, first.0)), middle, Some((end, f64::MAX))]
        }
    };
    // What reaches to either end of the line leaves no gap there.
    gaps.into_iter()
        .flatten()
        .filter(|&(low, high)| (low, high) != (-1.0, -1.0) && (low, high) != (f64::MAX, f64::MAX))
}
