//! The twin of `closure`: a row is the union of its successors' rows and bits, level by level.

use super::params;
use crate::layout::{ClosureParams, Params, Shape, Strip};

/// A round's graph.
struct View<'a> {
    shape: Shape,
    strips: &'a [Strip],
    steps: &'a [u32],
    starts: &'a [u32],
    targets: &'a [u32],
}

pub(super) fn sweep(of: Params, groups: [u32; 2], bound: &mut [Vec<u32>]) {
    let of: ClosureParams = params(of);
    let [band, strips, steps, starts, targets, ends] = bound else {
        return;
    };
    let view = View::new(of.shape, [strips, steps, starts, targets]);
    for strip in 0..groups[1] {
        let first_level = view.strips[(of.shape.first_strip + strip) as usize].first_level;
        let mut first = of.first_step;
        for level in of.first..of.end {
            let end = ends[level as usize];
            if level >= first_level {
                (first..end).for_each(|at| view.absorb(band, strip, at as usize));
            }
            first = end;
        }
    }
}

pub(super) fn level(of: Params, groups: [u32; 2], bound: &mut [Vec<u32>]) {
    let of: ClosureParams = params(of);
    let [band, strips, steps, starts, targets] = bound else {
        return;
    };
    let view = View::new(of.shape, [strips, steps, starts, targets]);
    for strip in 0..groups[1] {
        (of.first_step..of.end).for_each(|at| view.absorb(band, strip, at as usize));
    }
}

impl<'a> View<'a> {
    fn new(shape: Shape, [strips, steps, starts, targets]: [&'a [u32]; 4]) -> Self {
        View {
            shape,
            strips: bytemuck::cast_slice(strips),
            steps,
            starts,
            targets,
        }
    }

    fn absorb(&self, band: &mut [u32], strip: u32, step: usize) {
        let (shape, row) = (self.shape, self.steps[step]);
        let limit = shape.limit(self.strips, strip);
        if row >= limit {
            return;
        }
        let own = shape.row(self.strips, strip, row);
        let targets = &self.targets[self.starts[step] as usize..self.starts[step + 1] as usize];
        for &target in targets {
            if target < limit {
                let row = shape.row(self.strips, strip, target);
                for word in 0..shape.strip_words() {
                    band[own + word] |= band[row + word];
                }
            }
            if shape.strip_of(target) == Some(strip) {
                band[own + shape.word_of(target)] |= 1 << (target % 32);
            }
        }
    }
}
