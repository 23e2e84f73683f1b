//! The twin of `estimate`: counts the bits of rows and columns.

use super::params;
use crate::layout::{EstimateParams, Params, Strip, THREADS};

pub(super) fn estimate(of: Params, groups: [u32; 2], bound: &mut [Vec<u32>]) {
    let of: EstimateParams = params(of);
    let [band, strips, relatives] = bound else {
        return;
    };
    let strips: &[Strip] = bytemuck::cast_slice(strips);
    let n_rows = of.shape.n_rows;
    let end = n_rows.min(of.first_row + groups[0] * THREADS);
    for strip in 0..groups[1] {
        let first_column = (of.shape.first_strip + strip) as usize * of.shape.strip_words() * 32;
        for row in of.first_row..end.min(of.shape.limit(strips, strip)) {
            let words = &band[of.shape.row(strips, strip, row)..][..of.shape.strip_words()];
            for (word, &bits) in words.iter().enumerate() {
                relatives[row as usize] += bits.count_ones();
                let mut left = bits;
                while left != 0 {
                    let column = first_column + word * 32 + left.trailing_zeros() as usize;
                    if column < n_rows as usize {
                        relatives[n_rows as usize + column] += 1;
                    }
                    left &= left - 1;
                }
            }
        }
    }
}
