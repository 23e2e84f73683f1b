//! Columns side by side along a picture, each with its name below.

use super::canvas::{Anchor, Canvas, LEFT, RIGHT, width};

/// Where the columns are.
pub struct Columns {
    /// How wide each is.
    pub each: f64,
}

impl Columns {
    /// So many.
    pub fn of(n: usize) -> Columns {
        Columns {
            each: (RIGHT - LEFT) / n.max(1) as f64,
        }
    }

    /// The middle of a column.
    pub fn middle(&self, at: usize) -> f64 {
        LEFT + (at as f64 + 0.5) * self.each
    }

    /// Names them below the base line, all in the largest size that fits.
    pub fn name<'a>(
        &self,
        canvas: &mut Canvas,
        bottom: f64,
        names: impl Iterator<Item = &'a String> + Clone,
    ) {
        let fits = |size: f64| names.clone().all(|it| width(it, size) < self.each - 4.0);
        let sizes = [12.5, 10.0, 9.0, 8.0];
        let size = sizes.into_iter().find(|&it| fits(it)).unwrap_or(7.0);
        for (at, name) in names.enumerate() {
            let middle = self.middle(at);
            canvas.text(middle, bottom + 19.0, size, Anchor::Middle, "ink", name);
        }
    }
}
