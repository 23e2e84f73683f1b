//! The twin of `closure`: a row is the union of its successors' rows and bits, level by level.

use super::{params, successors};
#[cfg(test)]
use crate::fault::{self, Fault};
use crate::layout::{ClosureParams, Params, Shape};

pub(super) fn sweep(of: Params, groups: [u32; 2], bound: &mut [Vec<u32>]) {
    let of: ClosureParams = params(of);
    let [band, starts, targets, extras, steps, ends] = bound else {
        return;
    };
    for strip in 0..groups[1] {
        let mut first = of.first_step;
        for level in of.first..of.end {
            let end = ends[level as usize];
            for at in first..end {
                let step = [steps[2 * at as usize], steps[2 * at as usize + 1]];
                absorb(of.shape, band, strip, step, starts, targets, extras);
            }
            first = end;
        }
    }
}

pub(super) fn level(of: Params, groups: [u32; 2], bound: &mut [Vec<u32>]) {
    let of: ClosureParams = params(of);
    let [band, starts, targets, extras, steps] = bound else {
        return;
    };
    for strip in 0..groups[1] {
        for at in of.first_step..of.end {
            let step = [steps[2 * at as usize], steps[2 * at as usize + 1]];
            absorb(of.shape, band, strip, step, starts, targets, extras);
        }
    }
}

fn absorb(
    shape: Shape,
    band: &mut [u32],
    strip: u32,
    [node, head]: [u32; 2],
    starts: &[u32],
    targets: &[u32],
    extras: &[u32],
) {
    let own = shape.row(strip, node);
    #[cfg(test)]
    let head = if fault::is(Fault::ClosureForgetsNewEdges) {
        crate::layout::NONE
    } else {
        head
    };
    successors(node, head, starts, targets, extras, |target| {
        let row = shape.row(strip, target);
        for word in 0..shape.strip_words() {
            band[own + word] |= band[row + word];
        }
        #[cfg(test)]
        if fault::is(Fault::ClosureForgetsTheEdgeItself) {
            return;
        }
        if shape.strip_of(target) == Some(strip) {
            band[own + shape.word_of(target)] |= 1 << (target % 32);
        }
    });
}
