//! Grouped bars of shares over an axis from 0 to 100 %, each with the interval that it lies in.

use super::FigureLabels;
use super::canvas::{Anchor, Canvas, boxes, look};
use super::columns::Columns;
use super::scale::Linear;

/// A share of 1, and an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// How much.
    pub value: f64,
    /// From where to where it may be.
    pub interval: [f64; 2],
}

/// Grouped bars of shares.
pub struct Shares<'a> {
    /// Its words.
    pub labels: FigureLabels<'a>,
    /// The groups along the picture.
    pub groups: Vec<String>,
    /// The bars of a group; one has no name and no legend.
    pub series: Vec<String>,
    /// For each group, its bars.
    pub bars: Vec<Vec<Option<Share>>>,
}

const DATA: f64 = 268.0;
const HEADROOM: f64 = 20.0;

impl Shares<'_> {
    /// The picture as SVG.
    pub fn draw(&self) -> String {
        let mut canvas = Canvas::new(&self.labels);
        let named = if self.series.len() > 1 {
            &self.series[..]
        } else {
            &[]
        };
        canvas.legend(&boxes(named));
        let top = canvas.top + HEADROOM;
        let bottom = top + DATA;
        let scale = Linear::over([0.0, 100.0], bottom, top);
        canvas.share_axis(&scale, self.labels.y);
        let columns = Columns::of(self.groups.len());
        let n_bars = self.series.len().max(1) as f64;
        let breadth = (columns.each / (n_bars + 0.9)).min(64.0);
        columns.name(&mut canvas, bottom, self.groups.iter());
        for (group, shares) in self.bars.iter().enumerate() {
            let first = columns.middle(group) - breadth * n_bars / 2.0;
            for (at, share) in shares.iter().enumerate() {
                let x = first + at as f64 * breadth;
                bar(&mut canvas, at, x, breadth, *share, &scale);
            }
        }
        canvas.base_line(bottom);
        canvas.finish_below(bottom, self.labels.x)
    }
}

fn bar(
    canvas: &mut Canvas,
    series: usize,
    x: f64,
    breadth: f64,
    share: Option<Share>,
    scale: &Linear,
) {
    let middle = x + breadth / 2.0;
    let bottom = scale.place(0.0);
    let Some(share) = share else {
        canvas.text(middle, bottom - 5.0, 11.0, Anchor::Middle, "soft", "–");
        return;
    };
    let [low, high] = share.interval.map(|it| scale.place(100.0 * it));
    let top = scale.place(100.0 * share.value).min(bottom - 1.5);
    let gap = (breadth * 0.06).max(1.0);
    canvas.bar(
        look(series),
        x + gap,
        top,
        breadth - 2.0 * gap,
        bottom - top,
    );
    if low - high > 2.0 {
        canvas.whisker(middle, low, high);
    }
    canvas.over_grid(middle, high.min(top) - 6.0, 10.5, &percent(share.value));
}

/// A share in words: two digits where it is small.
fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent > 0.0 && percent < 9.95 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::Measure;

    #[test]
    fn shares_are_drawn_with_their_words_and_lie_within_the_picture() {
        let share = |value, low, high| {
            Some(Share {
                value,
                interval: [low, high],
            })
        };
        let svg = Shares {
            labels: FigureLabels {
                id: "x",
                title: "Aborts",
                y: "attempts that aborted",
                x: "sessions",
                measure: Measure::Seconds,
            },
            groups: vec!["4".to_owned(), "8".to_owned()],
            series: vec!["MT".to_owned(), "GT".to_owned()],
            bars: vec![
                vec![share(0.013, 0.01, 0.02), share(0.44, 0.4, 0.5)],
                vec![share(1.0, 0.84, 1.0), None],
            ],
        }
        .draw();
        for words in ["1.3 %", "44 %", "100 %", "–", "MT", "attempts that aborted"] {
            assert!(svg.contains(words), "{words}");
        }
        assert_eq!(percent(0.0), "0 %");
    }
}
