//! Bars of parts, one on top of the other, over a linear time axis: only on such an axis does a part's height tell its time.

use super::FigureLabels;
use super::canvas::{Anchor, Canvas, boxes, look};
use super::columns::Columns;
use super::scale::{Linear, time};

/// Stacked bars.
pub struct Stack<'a> {
    /// Its words.
    pub labels: FigureLabels<'a>,
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
        let mut canvas = Canvas::new(&self.labels);
        canvas.legend(&boxes(&self.parts));
        let bottom = canvas.top + HEADROOM + DATA;
        let totals = self.bars.iter().flat_map(|(_, parts)| parts);
        let highest = totals.map(|parts| parts.iter().sum()).fold(1e-6, f64::max);
        let scale = Linear::over([0.0, highest], bottom, canvas.top + HEADROOM);
        canvas.linear_time_axis(&scale, self.labels.y);
        let columns = Columns::of(self.bars.len());
        let breadth = (columns.each * 0.62).min(64.0);
        columns.name(&mut canvas, bottom, self.bars.iter().map(|(name, _)| name));
        for (at, (_, parts)) in self.bars.iter().enumerate() {
            let middle = columns.middle(at);
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
        canvas.finish_below(bottom, self.labels.x)
    }
}
