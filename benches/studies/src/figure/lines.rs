//! Lines over an axis of numbers: medians joined, the spread as a faint area, runs without an answer hollow at the limit.

use super::FigureLabels;
use super::canvas::{Anchor, Canvas, LEFT, RIGHT, Swatch, look};
use super::scale::{Linear, LogScale, time};
use crate::summary::Spread;

/// Lines.
pub struct Lines<'a> {
    /// Its words.
    pub labels: FigureLabels<'a>,
    /// Whether it varies by factors.
    pub x_log: bool,
    /// The lines.
    pub all: Vec<Series>,
    /// The time limit.
    pub limit: f64,
}

/// One line.
pub struct Series {
    /// Its name.
    pub name: String,
    /// Its points, from left to right, with the name of each place.
    pub points: Vec<(f64, String, Spread)>,
}

const DATA: f64 = 290.0;
const INSET: f64 = 16.0;

enum Across {
    Linear(Linear),
    Log(LogScale),
}

impl Across {
    fn place(&self, number: f64) -> f64 {
        match self {
            Across::Linear(scale) => scale.place(number),
            Across::Log(scale) => scale.place(number),
        }
    }
}

impl Lines<'_> {
    /// The picture as SVG.
    pub fn draw(&self) -> String {
        let all = || self.all.iter().flat_map(|line| &line.points);
        let over = all().any(|(_, _, spread)| spread.high.is_infinite());
        let mut canvas = Canvas::new(&self.labels);
        let mut legend: Vec<(Swatch, String)> = self
            .all
            .iter()
            .enumerate()
            .map(|(at, line)| (Swatch::Line(look(at)), line.name.clone()))
            .collect();
        if all().any(|(_, _, spread)| !spread.is_answered()) {
            legend.push((Swatch::Hollow, "not answered".to_owned()));
        }
        if over {
            legend.push((Swatch::Limit, format!("limit of {}", time(self.limit))));
        }
        canvas.legend(&legend);
        let bottom = canvas.top + 8.0 + DATA;
        let mut shown: Vec<f64> = all()
            .flat_map(|(_, _, it)| [it.low, it.median, it.high])
            .collect();
        if over {
            shown.push(self.limit);
        }
        let scale = LogScale::over(shown, bottom, canvas.top + 8.0);
        let note = if all().any(|(_, _, spread)| spread.n > 1) {
            format!("{} (logarithmic): median, least to most", self.labels.y)
        } else {
            format!("{} (logarithmic)", self.labels.y)
        };
        canvas.log_axis(&scale, &note, self.labels.measure);
        let numbers = all().map(|(x, _, _)| *x);
        let across = if self.x_log {
            Across::Log(LogScale::within(numbers, LEFT + INSET, RIGHT - INSET))
        } else {
            Across::Linear(Linear::over(numbers, LEFT + INSET, RIGHT - INSET))
        };
        if over {
            canvas.limit_line(LEFT, RIGHT, scale.place(self.limit));
        }
        // All spreads first, so that none of them veils a line.
        for (at, line) in self.all.iter().enumerate() {
            self.spread(&mut canvas, at, line, &across, &scale);
        }
        for (at, line) in self.all.iter().enumerate() {
            self.line(&mut canvas, at, line, &across, &scale);
        }
        canvas.base_line(bottom);
        self.names(&mut canvas, &across, bottom);
        canvas.finish_below(bottom, self.labels.x)
    }

    /// Names the places of the points, but none that would run into the last.
    fn names(&self, canvas: &mut Canvas, across: &Across, bottom: f64) {
        let mut places: Vec<(f64, &str)> = Vec::new();
        for (x, name, _) in self.all.iter().flat_map(|line| &line.points) {
            if !places.iter().any(|(other, _)| (other - x).abs() < 1e-12) {
                places.push((*x, name));
            }
        }
        places.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut free = f64::NEG_INFINITY;
        for (x, name) in places {
            let x = across.place(x);
            canvas.tick(x, bottom);
            let half = super::canvas::width(name, 11.5) / 2.0;
            if x - half > free {
                canvas.text(x, bottom + 19.0, 11.5, Anchor::Middle, "ink", name);
                free = x + half + 4.0;
            }
        }
    }

    fn spread(
        &self,
        canvas: &mut Canvas,
        at: usize,
        line: &Series,
        across: &Across,
        scale: &LogScale,
    ) {
        if line.points.iter().all(|(_, _, spread)| spread.n < 2) {
            return;
        }
        let y = |seconds: f64| scale.place(seconds.min(self.limit));
        let there = line.points.iter().map(|(x, _, it)| (*x, y(it.high)));
        let back = line.points.iter().rev().map(|(x, _, it)| (*x, y(it.low)));
        let all: Vec<String> = there
            .chain(back)
            .map(|(x, y)| format!("{:.1} {y:.1}", across.place(x)))
            .collect();
        canvas.area(look(at), &format!("M{}z", all.join("L")));
    }

    fn line(
        &self,
        canvas: &mut Canvas,
        at: usize,
        line: &Series,
        across: &Across,
        scale: &LogScale,
    ) {
        let look = look(at);
        let y = |seconds: f64| scale.place(seconds.min(self.limit));
        let points: Vec<(f64, &Spread)> = line
            .points
            .iter()
            .map(|(x, _, spread)| (across.place(*x), spread))
            .collect();
        for pair in points.windows(2) {
            let d = format!(
                "M{:.1} {:.1}L{:.1} {:.1}",
                pair[0].0,
                y(pair[0].1.median),
                pair[1].0,
                y(pair[1].1.median)
            );
            if pair.iter().all(|(_, spread)| spread.is_answered()) {
                canvas.path(look, &d);
            } else {
                canvas.dashed(look, &d, "1.5 4");
            }
        }
        for (x, spread) in points {
            canvas.mark(look, x, y(spread.median), spread.is_answered());
        }
    }
}
