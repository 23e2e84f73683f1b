//! Courses: a number over time, one line each, the number on a logarithmic axis.

use super::FigureLabels;
use super::canvas::{Anchor, Canvas, LEFT, RIGHT, Swatch, look};
use super::scale::{Linear, LogScale, time};

/// Courses of a number over time.
pub struct Courses<'a> {
    /// Its words.
    pub labels: FigureLabels<'a>,
    /// By name, seconds and the number then. A number below one is drawn as one.
    pub all: Vec<(String, Vec<(f64, f64)>)>,
}

const DATA: f64 = 290.0;
const INSET: f64 = 16.0;

impl Courses<'_> {
    /// The picture as SVG.
    pub fn draw(&self) -> String {
        let mut canvas = Canvas::new(&self.labels);
        let names = self.all.iter().enumerate();
        let legend: Vec<(Swatch, String)> = names
            .map(|(at, (name, _))| (Swatch::Line(look(at)), name.clone()))
            .collect();
        canvas.legend(&legend);
        let top = canvas.top + 8.0;
        let bottom = top + DATA;
        let points = || self.all.iter().flat_map(|(_, points)| points);
        let numbers = points().map(|(_, number)| number.max(1.0));
        let scale = LogScale::over(numbers, bottom, top);
        canvas.count_axis(&scale, &format!("{} (logarithmic)", self.labels.y));
        let seconds = points().map(|(seconds, _)| *seconds);
        let across = Linear::over(seconds.chain([0.0]), LEFT + INSET, RIGHT - INSET);
        for (at, (_, points)) in self.all.iter().enumerate() {
            let place = |(seconds, number): &(f64, f64)| {
                let (x, y) = (across.place(*seconds), scale.place(number.max(1.0)));
                format!("{x:.1} {y:.1}")
            };
            let all: Vec<String> = points.iter().map(place).collect();
            canvas.path(look(at), &format!("M{}", all.join("L")));
            if let Some((seconds, number)) = points.last() {
                let (x, y) = (across.place(*seconds), scale.place(number.max(1.0)));
                canvas.mark(look(at), x, y, true);
            }
        }
        canvas.base_line(bottom);
        for seconds in across.ticks() {
            let x = across.place(seconds);
            let name = if seconds > 0.0 {
                time(seconds)
            } else {
                "0".to_owned()
            };
            canvas.tick(x, bottom);
            canvas.text(x, bottom + 19.0, 11.5, Anchor::Middle, "ink", &name);
        }
        canvas.finish_below(bottom, self.labels.x)
    }
}
