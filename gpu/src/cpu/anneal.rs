//! The twin of `anneal`: moves the nodes of a colour one after another, counts violated constraints, keeps the best points.

use kingsnake_graph::cool::N_WEIGHTS;

use super::params;
use crate::layout::{AnnealParams, MOST, Params, Reads};

const LAST: u32 = u32::MAX;

/// The data that a move reads.
struct MoveView<'a> {
    of: AnnealParams,
    points: &'a [u32],
    reads: &'a [Reads],
    field: &'a [u32],
    side_starts: &'a [u32],
    sides: &'a [[u32; 2]],
    weights: &'a [u32],
}

pub(super) fn anneal(of: Params, bound: &mut [Vec<u32>]) {
    let of: AnnealParams = params(of);
    let [points, movers, reads, field, side_starts, sides, weights] = bound else {
        return;
    };
    for &id in &movers[of.first as usize..of.end as usize] {
        let line = MoveView {
            of,
            points,
            reads: bytemuck::cast_slice(reads),
            field,
            side_starts,
            sides: sides.as_chunks::<2>().0,
            weights,
        };
        if let Some(point) = line.draw(id) {
            points[id as usize] = point;
        }
    }
}

pub(super) fn count(of: Params, bound: &mut [Vec<u32>]) {
    let of: AnnealParams = params(of);
    let [points, side_starts, sides, violated] = bound else {
        return;
    };
    let (sides, _) = sides.as_chunks::<2>();
    let holds = |at: usize| {
        let mut edges = sides[side_starts[at] as usize..side_starts[at + 1] as usize].iter();
        edges.all(|edge| points[edge[0] as usize] < points[edge[1] as usize])
    };
    for constraint in of.first as usize..of.end as usize {
        let is_violated = !holds(2 * constraint) && !holds(2 * constraint + 1);
        violated[of.sweep as usize] += u32::from(is_violated);
    }
}

pub(super) fn keep(of: Params, bound: &mut [Vec<u32>]) {
    let of: AnnealParams = params(of);
    let [points, violated, least, best] = bound else {
        return;
    };
    let sweep = of.sweep as usize;
    let now = violated[sweep];
    let before = if sweep == 0 { LAST } else { least[sweep - 1] };
    if of.first == 0 {
        least[sweep] = now.min(before);
    }
    if now < before {
        let range = of.first as usize..of.end as usize;
        best[range.clone()].copy_from_slice(&points[range]);
    }
}

impl MoveView<'_> {
    fn point(&self, id: u32) -> u32 {
        self.points[id as usize]
    }

    fn list(&self, from: u32, to: u32) -> &[u32] {
        &self.field[from as usize..to as usize]
    }

    /// A new point for a node; `None` if it stays.
    fn draw(&self, id: u32) -> Option<u32> {
        let own = self.reads[id as usize];
        let end = self.reads[id as usize + 1].before;
        let points = |from, to| self.list(from, to).iter().map(|&it| self.point(it));
        let lower = points(own.before, own.after).max().unwrap_or(0);
        let upper = points(own.after, own.between).min().unwrap_or(LAST);
        if upper - lower < 2 || is_too_wide(own, end) {
            return None;
        }
        let bad = self.gather(id, own, end, lower, upper);
        let mut marks = vec![lower + 1];
        marks.extend(bad.iter().map(|it| it.0).filter(|&it| it > lower + 1));
        marks.extend(bad.iter().filter(|it| it.1 < upper - 1).map(|it| it.1 + 1));
        marks.sort_unstable();
        marks.dedup();
        let cost = |mark: u32| bad.iter().filter(|it| it.0 <= mark && mark <= it.1).count();
        let costs: Vec<usize> = marks.iter().map(|&mark| cost(mark)).collect();
        let least = costs.iter().copied().min()?;
        let ends = marks[1..].iter().chain([&upper]);
        let mut total = 0u64;
        let sums: Vec<u64> = marks
            .iter()
            .zip(ends.clone())
            .zip(&costs)
            .map(|((start, end), cost)| {
                total += u64::from(end - start) * u64::from(self.weight(cost - least));
                total
            })
            .collect();
        let chance = self.random(id, 0);
        let drawn = ((u128::from(chance) * u128::from(total)) >> 32) as u64;
        let chosen = sums.iter().position(|&sum| drawn < sum)?;
        let length = ends.copied().nth(chosen)? - marks[chosen];
        let share = (u64::from(self.random(id, 1)) * u64::from(length)) >> 32;
        Some(marks[chosen] + share as u32)
    }

    fn weight(&self, above: usize) -> u32 {
        if above < N_WEIGHTS {
            self.weights[self.of.sweep as usize * N_WEIGHTS + above]
        } else {
            0
        }
    }

    /// Where constraints are violated, if that makes a difference between the bounds.
    fn gather(&self, id: u32, own: Reads, end: u32, lower: u32, upper: u32) -> Vec<(u32, u32)> {
        let mut bad = Vec::new();
        for entry in self.list(own.between, own.below).chunks_exact(2) {
            bad.push((self.point(entry[0]), self.point(entry[1])));
        }
        let is_open = |entry: &&[u32]| self.point(entry[1]) >= self.point(entry[2]);
        let below = self.list(own.below, own.above).chunks_exact(3);
        bad.extend(
            below
                .filter(is_open)
                .map(|entry| (self.point(entry[0]), LAST)),
        );
        let above = self.list(own.above, own.rest).chunks_exact(3);
        bad.extend(above.filter(is_open).map(|entry| (0, self.point(entry[0]))));
        for &constraint in self.list(own.rest, end) {
            let at = 2 * constraint as usize;
            self.gaps([at, at + 1].map(|side| self.span(side, id)), &mut bad);
        }
        bad.retain(|&(from, to)| {
            from <= to && from < upper && to > lower && (from > lower + 1 || to < upper - 1)
        });
        bad
    }

    /// Where a side holds: strictly between the two points.
    fn span(&self, side: usize, id: u32) -> (u32, u32) {
        let (mut from, mut to) = (0, LAST);
        let range = self.side_starts[side] as usize..self.side_starts[side + 1] as usize;
        for &[start, end] in &self.sides[range] {
            if start == id {
                to = to.min(self.point(end));
            } else if end == id {
                from = from.max(self.point(start));
            } else if self.point(start) >= self.point(end) {
                return (LAST, 0);
            }
        }
        (from, to)
    }

    #[allow(clippy::unused_self)] // Corresponds to the kernel's function of the same name.
    fn gaps(&self, mut spans: [(u32, u32); 2], bad: &mut Vec<(u32, u32)>) {
        spans.sort_by_key(|span| span.0);
        let mut open = spans.iter().filter(|span| span.0 < span.1);
        let Some(&first) = open.next() else { return };
        let &second = open.next().unwrap_or(&first);
        bad.push((0, first.0));
        bad.push((first.1, second.0));
        bad.push((first.1.max(second.1), LAST));
    }

    fn random(&self, id: u32, which: u32) -> u32 {
        let seed = self.of.seed.wrapping_add(which.wrapping_mul(0x9e37_79b9));
        let turn = mixed(mixed(seed) ^ self.of.turn);
        mixed(turn.wrapping_add(id.wrapping_mul(0x85eb_ca6b)))
    }
}

/// Whether a node could have more intervals than the kernel has room for.
pub(crate) fn is_too_wide(own: Reads, end: u32) -> bool {
    let entries =
        (own.below - own.between) / 2 + (own.above - own.below) / 3 + (own.rest - own.above) / 3;
    entries + 3 * (end - own.rest) > MOST
}

fn mixed(number: u32) -> u32 {
    let mut bits = number;
    bits = (bits ^ bits >> 16).wrapping_mul(0x7feb_352d);
    bits = (bits ^ bits >> 15).wrapping_mul(0x846c_a68b);
    bits ^ bits >> 16
}
