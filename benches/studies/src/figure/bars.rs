//! Grouped bars over a logarithmic axis; a bar without an answer is hatched up to the limit and says so.

use super::FigureLabels;
use super::canvas::{Anchor, Canvas, LEFT, RIGHT, Swatch, boxes, look, width};
use super::columns::Columns;
use super::lacking;
use super::scale::{LogScale, time};
use crate::summary::Spread;

/// Grouped bars.
pub struct Bars<'a> {
    /// Its words.
    pub labels: FigureLabels<'a>,
    /// The groups along the picture.
    pub groups: Vec<String>,
    /// The bars of a group.
    pub series: Vec<String>,
    /// For each group, its bars.
    pub spreads: Vec<Vec<Option<Spread>>>,
    /// The time limit.
    pub limit: f64,
}

const DATA: f64 = 268.0;

impl Bars<'_> {
    /// The picture as SVG.
    pub fn draw(&self) -> String {
        let all = || self.spreads.iter().flatten().flatten();
        let over = all().any(|spread| spread.high.is_infinite());
        let unanswered = all().any(|spread| !spread.is_answered());
        let spreads = all().any(|spread| spread.n > 1);
        let n_bars = (self.series.len() as f64 + 0.9) * self.groups.len().max(1) as f64;
        let bar = ((RIGHT - LEFT) / n_bars).min(64.0);
        let widest = all().map(|spread| width(&self.label(spread), 10.5));
        let upward = widest.fold(0.0, f64::max) > bar;
        let headroom = if upward { 56.0 } else { 20.0 };

        let mut canvas = Canvas::new(&self.labels);
        let mut legend = boxes(&self.series);
        if unanswered {
            legend.push((Swatch::Hatched, "not answered".to_owned()));
        }
        if over {
            let words = format!("limit of {}", time(self.limit));
            legend.push((Swatch::Limit, words));
        }
        canvas.legend(&legend);
        let bottom = canvas.top + headroom + DATA;
        let mut shown: Vec<f64> = all().flat_map(|it| [it.low, it.median, it.high]).collect();
        if over {
            shown.push(self.limit);
        }
        let scale = LogScale::over(shown, bottom, canvas.top + headroom);
        let note = if spreads {
            format!("{} (logarithmic): median, least and most", self.labels.y)
        } else {
            format!("{} (logarithmic)", self.labels.y)
        };
        canvas.log_axis(&scale, &note, self.labels.measure);
        let columns = Columns::of(self.groups.len());
        for (group, name) in self.groups.iter().enumerate() {
            let middle = columns.middle(group);
            let first = middle - bar * self.series.len() as f64 / 2.0;
            for (at, spread) in self.spreads[group].iter().enumerate() {
                let x = first + at as f64 * bar;
                self.bar(
                    &mut canvas,
                    at,
                    x,
                    bar,
                    spread.as_ref(),
                    &scale,
                    bottom,
                    upward,
                );
            }
            let size = if width(name, 12.5) > columns.each - 4.0 {
                10.0
            } else {
                12.5
            };
            canvas.text(middle, bottom + 19.0, size, Anchor::Middle, "ink", name);
        }
        if over {
            canvas.limit_line(LEFT, RIGHT, scale.place(self.limit));
        }
        canvas.base_line(bottom);
        canvas.finish_below(bottom, self.labels.x)
    }

    #[allow(clippy::too_many_arguments)] // All of them are of one bar.
    fn bar(
        &self,
        canvas: &mut Canvas,
        series: usize,
        x: f64,
        width: f64,
        spread: Option<&Spread>,
        scale: &LogScale,
        bottom: f64,
        upward: bool,
    ) {
        let middle = x + width / 2.0;
        let Some(spread) = spread else {
            canvas.text(middle, bottom - 5.0, 11.0, Anchor::Middle, "soft", "–");
            return;
        };
        let gap = (width * 0.06).max(1.0);
        let end = if spread.is_answered() {
            spread.median
        } else {
            self.limit
        };
        let top = scale.place(end).min(bottom - 1.5);
        let inner = width - 2.0 * gap;
        if spread.is_answered() {
            canvas.bar(look(series), x + gap, top, inner, bottom - top);
        } else {
            canvas.hatched(Some(look(series)), x + gap, top, inner, bottom - top);
        }
        let mut above = top;
        if spread.n > 1 && spread.low.is_finite() {
            let high = if spread.high.is_finite() {
                spread.high
            } else {
                self.limit
            };
            above = scale.place(high).min(top);
            if scale.place(spread.low) - above > 2.0 {
                canvas.whisker(middle, scale.place(spread.low), above);
            }
        }
        let words = self.label(spread);
        if upward {
            canvas.upward(middle + 3.8, above - 5.0, 10.5, &words);
        } else {
            canvas.over_grid(middle, above - 6.0, 10.5, &words);
        }
    }

    fn label(&self, spread: &Spread) -> String {
        if spread.is_answered() {
            self.labels.measure.number(spread.median)
        } else {
            lacking(spread, self.limit)
        }
    }
}
