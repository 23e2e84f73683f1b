//! A cactus plot: how many instances each series answers, each within which time. Lower and further right is better.

use super::FigureLabels;
use super::canvas::{Anchor, Canvas, LEFT, RIGHT, Swatch, look};
use super::scale::{Linear, LogScale, time};

/// A cactus plot.
pub struct Cactus<'a> {
    /// Its words.
    pub labels: FigureLabels<'a>,
    /// How many instances there are.
    pub n_instances: usize,
    /// The series and the times of those that it answered.
    pub series: Vec<(String, Vec<f64>)>,
    /// The time limit.
    pub limit: f64,
}

const DATA: f64 = 320.0;

impl Cactus<'_> {
    /// The picture as SVG.
    pub fn draw(&self) -> String {
        let mut canvas = Canvas::new(&self.labels);
        let mut legend: Vec<(Swatch, String)> = self
            .series
            .iter()
            .enumerate()
            .map(|(at, (name, times))| {
                let words = format!("{name} ({})", times.len());
                (Swatch::Line(look(at)), words)
            })
            .collect();
        legend.push((Swatch::Limit, format!("limit of {}", time(self.limit))));
        canvas.legend(&legend);
        let bottom = canvas.top + 8.0 + DATA;
        let shown = self
            .series
            .iter()
            .flat_map(|(_, times)| times.iter().copied());
        let scale = LogScale::over(shown.chain([self.limit]), bottom, canvas.top + 8.0);
        let label = format!("{} (logarithmic)", self.labels.y);
        canvas.log_axis(&scale, &label, self.labels.measure);
        let n = self.n_instances.max(1) as f64;
        let across = Linear::over([0.0, n], LEFT, RIGHT - 12.0);
        canvas.limit_line(LEFT, RIGHT, scale.place(self.limit));
        for (at, (_, times)) in self.series.iter().enumerate() {
            let mut times = times.clone();
            times.sort_by(f64::total_cmp);
            let places: Vec<(f64, f64)> = times
                .iter()
                .enumerate()
                .map(|(at, &seconds)| (across.place(at as f64 + 1.0), scale.place(seconds)))
                .collect();
            let d: Vec<String> = places
                .iter()
                .map(|(x, y)| format!("{x:.1} {y:.1}"))
                .collect();
            if d.len() > 1 {
                canvas.path(look(at), &format!("M{}", d.join("L")));
            }
            // Marks on a long line would be a smear; every so often is enough to tell it.
            let every = (times.len() / 25).max(1);
            for (place, (x, y)) in places.iter().enumerate() {
                if place % every == 0 || place + 1 == places.len() {
                    canvas.mark(look(at), *x, *y, true);
                }
            }
        }
        canvas.base_line(bottom);
        for tick in across.ticks() {
            if tick.fract() == 0.0 {
                let x = across.place(tick);
                canvas.tick(x, bottom);
                canvas.text(
                    x,
                    bottom + 19.0,
                    12.0,
                    Anchor::Middle,
                    "ink",
                    &tick.to_string(),
                );
            }
        }
        canvas.finish_below(bottom, self.labels.x)
    }
}
