//! Bars of parts, one on top of the other, over a linear time axis: only on such an axis does a part's height tell its time.

use super::canvas::{Anchor, Canvas, LEFT, RIGHT, Swatch, look, width};
use super::scale::{Linear, time};

/// Stacked bars.
pub struct Stack<'a> {
    /// Unique on its page.
    pub id: &'a str,
    /// The heading.
    pub title: &'a str,
    /// What is measured.
    pub y_label: &'a str,
    /// What the bars are.
    pub x_label: &'a str,
    /// The parts, from the bottom to the top.
    pub parts: Vec<String>,
    /// The bars: their names, and the seconds of each part; `None` without an answer.
    pub bars: Vec<(String, Option<Vec<f64>>)>,
}

const DATA: f64 = 268.0;
const HEADROOM: f64 = 20.0;

impl Stack<'_> {
    /// The picture as SVG.
    pub fn draw(&self) -> String {
        let mut canvas = Canvas::new(self.id, self.title);
        let legend: Vec<(Swatch, String)> = self
            .parts
            .iter()
            .enumerate()
            .map(|(at, name)| (Swatch::Box(look(at)), name.clone()))
            .collect();
        canvas.legend(&legend);
        let bottom = canvas.top + HEADROOM + DATA;
        let totals = self.bars.iter().flat_map(|(_, parts)| parts);
        let highest = totals.map(|parts| parts.iter().sum()).fold(1e-6, f64::max);
        let scale = Linear::over([0.0, highest], bottom, canvas.top + HEADROOM);
        canvas.linear_time_axis(&scale, self.y_label);
        let each = (RIGHT - LEFT) / self.bars.len().max(1) as f64;
        let breadth = (each * 0.62).min(64.0);
        let fits = |size: f64| {
            let mut names = self.bars.iter().map(|(name, _)| width(name, size));
            names.all(|width| width < each - 4.0)
        };
        let sizes = [12.5, 10.0, 9.0, 8.0];
        let size = sizes.into_iter().find(|&it| fits(it)).unwrap_or(7.0);
        for (at, (name, parts)) in self.bars.iter().enumerate() {
            let middle = LEFT + (at as f64 + 0.5) * each;
            canvas.text(middle, bottom + 19.0, size, Anchor::Middle, "ink", name);
            let Some(parts) = parts else {
                canvas.text(
                    middle,
                    bottom - 5.0,
                    11.0,
                    Anchor::Middle,
                    "soft",
                    "not answered",
                );
                continue;
            };
            let mut sum = 0.0;
            for (part, seconds) in parts.iter().enumerate() {
                let (low, high) = (scale.place(sum), scale.place(sum + seconds));
                sum += seconds;
                if low - high > 0.05 {
                    canvas.piece(
                        look(part),
                        middle - breadth / 2.0,
                        high,
                        breadth,
                        low - high,
                    );
                }
            }
            canvas.over_grid(middle, scale.place(sum) - 6.0, 10.5, &time(sum));
        }
        canvas.base_line(bottom);
        canvas.finish_below(bottom, self.x_label)
    }
}
