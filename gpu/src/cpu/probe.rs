//! The twin of `probe`: whether one place reaches another, for each pair in a list.

use super::params;
use crate::layout::{Params, ProbeParams, Strip};

pub(super) fn probe(of: Params, bound: &mut [Vec<u32>]) {
    let of: ProbeParams = params(of);
    let [band, strips, pairs, answers] = bound else {
        return;
    };
    let strips: &[Strip] = bytemuck::cast_slice(strips);
    for item in of.first..of.end {
        let at = 2 * item as usize;
        let (from, to) = (pairs[at], pairs[at + 1]);
        let place = of.shape.place(strips, from, to);
        if place.is_some_and(|place| band[place] >> (to % 32) & 1 == 1) {
            answers[item as usize / 32] |= 1 << (item % 32);
        }
    }
}
