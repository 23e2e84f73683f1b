//! Draws an experiment as its file says: one picture for each value of the axes that are neither along it nor in colour.

use super::combinations;
use super::tables::wilson;
use crate::design::{Drawn, SettledExperiment, Study};
use crate::figure::{Bars, Cactus, FigureLabels, Lines, Series, Share, Shares, Stack};
use crate::phases::{self, PARTS};
use crate::recipe::FigureKind;
use crate::row::{Made, Row, RowOutcome};
use crate::settle::slug;
use crate::summary::{Spread, middle, spread};

/// The pictures, each with the name of its file.
pub fn draw(
    study: &Study,
    shown: &SettledExperiment,
    points: &[Vec<&Row>],
) -> Vec<(String, String)> {
    let mut rows = shown.grid.iter().flat_map(|&point| &points[point]);
    let is_run = rows.any(|row| row.outcome != RowOutcome::Failed);
    let Some(drawn) = shown.figure.as_ref().filter(|_| is_run) else {
        return Vec::new();
    };
    let artist = Artist {
        shown,
        drawn,
        points,
        limit: if drawn.figure.measure.is_count() {
            f64::INFINITY
        } else {
            study.timeout.as_secs_f64()
        },
    };
    match drawn.x {
        None => vec![(shown.name.clone(), artist.cactus())],
        Some(x) => artist.panels(x),
    }
}

struct Artist<'a> {
    shown: &'a SettledExperiment,
    drawn: &'a Drawn,
    points: &'a [Vec<&'a Row>],
    limit: f64,
}

impl Artist<'_> {
    fn names(&self, axis: usize) -> Vec<String> {
        let values = &self.shown.axes[axis].values;
        values.iter().map(|label| label.name.clone()).collect()
    }

    fn spread(&self, at: &[usize]) -> Option<Spread> {
        let rows = &self.points[self.shown.point(at)];
        spread(rows, self.drawn.figure.measure)
    }

    fn cactus(&self) -> String {
        let series = self.drawn.series;
        let mut times: Vec<(String, Vec<f64>)> = self
            .names(series)
            .into_iter()
            .map(|name| (name, Vec::new()))
            .collect();
        for (at, _) in combinations(self.shown) {
            if let Some(spread) = self.spread(&at)
                && spread.is_answered()
            {
                times[at[series]].1.push(spread.median);
            }
        }
        // Instances solved by pruning alone are not counted; those that the best series was asked are all.
        let asked = |at: usize| {
            let mut n = 0;
            for (combination, _) in combinations(self.shown) {
                n += usize::from(combination[series] == at && self.spread(&combination).is_some());
            }
            n
        };
        let n_instances = (0..times.len()).map(asked).max().unwrap_or(0);
        Cactus {
            labels: FigureLabels {
                id: &self.shown.name,
                title: &self.shown.title,
                y: self.drawn.figure.measure.label(),
                x: &format!("instances answered, of {n_instances}"),
                measure: self.drawn.figure.measure,
            },
            n_instances,
            series: times,
            limit: self.limit,
        }
        .draw()
    }

    fn panels(&self, x: usize) -> Vec<(String, String)> {
        let series = self.drawn.series;
        let mut panels = Vec::new();
        for (at, _) in combinations(self.shown) {
            if at[x] != 0 || at[series] != 0 {
                continue;
            }
            let others: Vec<&str> = (0..at.len())
                .filter(|&axis| axis != x && axis != series)
                .filter(|&axis| self.shown.axes[axis].values.len() > 1)
                .map(|axis| self.shown.axes[axis].values[at[axis]].name.as_str())
                .collect();
            let (name, title) = if others.is_empty() {
                (self.shown.name.clone(), self.shown.title.clone())
            } else {
                let others = others.join(", ");
                (
                    format!("{}-{}", self.shown.name, slug(&others)),
                    format!("{}: {others}", self.shown.title),
                )
            };
            let svg = self.panel(&name, &title, x, at);
            panels.push((name, svg));
        }
        panels
    }

    fn panel(&self, id: &str, title: &str, x: usize, mut at: Vec<usize>) -> String {
        let figure = &self.drawn.figure;
        let series = self.drawn.series;
        let x_label = figure
            .x_label
            .as_deref()
            .unwrap_or(&self.shown.axes[x].name);
        let labels = FigureLabels {
            id,
            title,
            y: figure.measure.label(),
            x: x_label,
            measure: figure.measure,
        };
        let n_along = self.shown.axes[x].values.len();
        match figure.kind {
            FigureKind::Phases => return self.phases(labels, x, at),
            FigureKind::Making => return self.making(labels, x, at),
            FigureKind::Detection | FigureKind::Aborts => {
                return self.shares(labels, x, at);
            }
            FigureKind::Bars | FigureKind::Lines | FigureKind::Cactus => {}
        }
        let n_series = self.shown.axes[series].values.len();
        let mut spread_at = |along: usize, of: usize| {
            at[x] = along;
            at[series] = of;
            self.spread(&at)
        };
        if figure.kind == FigureKind::Bars {
            let spreads = (0..n_along)
                .map(|along| (0..n_series).map(|of| spread_at(along, of)).collect())
                .collect();
            return Bars {
                labels,
                groups: self.names(x),
                series: self.names(series),
                spreads,
                limit: self.limit,
            }
            .draw();
        }
        let lines = (0..n_series).map(|of| {
            let along = self.shown.axes[x].values.iter().enumerate();
            let mut points: Vec<(f64, String, Spread)> = along
                .filter_map(|(place, label)| {
                    Some((label.number?, label.name.clone(), spread_at(place, of)?))
                })
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            Series {
                name: self.shown.axes[series].values[of].name.clone(),
                points,
            }
        });
        Lines {
            labels,
            x_log: figure.x_log,
            all: lines.collect(),
            limit: self.limit,
        }
        .draw()
    }

    /// How many runs found a violation, or how many attempts aborted.
    fn shares(&self, labels: FigureLabels<'_>, x: usize, mut at: Vec<usize>) -> String {
        let series = self.drawn.series;
        let is_detection = self.drawn.figure.kind == FigureKind::Detection;
        let share = if is_detection { detection } else { aborts };
        let y = if is_detection {
            "trials that found a violation, and the 95 % interval"
        } else {
            "attempts that aborted: median, least and most"
        };
        let n_series = if x == series {
            1
        } else {
            self.names(series).len()
        };
        let mut shares = Vec::new();
        for along in 0..self.names(x).len() {
            let mut group = Vec::new();
            for of in 0..n_series {
                at[series] = of;
                at[x] = along;
                group.push(share(&self.points[self.shown.point(&at)]));
            }
            shares.push(group);
        }
        Shares {
            labels: FigureLabels { y, ..labels },
            groups: self.names(x),
            series: self.names(series)[..n_series].to_vec(),
            bars: shares,
        }
        .draw()
    }

    fn making(&self, labels: FigureLabels<'_>, x: usize, mut at: Vec<usize>) -> String {
        let mut bars = Vec::new();
        for (along, name) in self.names(x).into_iter().enumerate() {
            at[x] = along;
            let rows = &self.points[self.shown.point(&at)];
            let made = middle(rows, |row| row.made.map(|it| it.seconds));
            let checked = middle(rows, |row| Some(row.stats.seconds));
            bars.push((name, made.zip(checked).map(|it| vec![it.0, it.1])));
        }
        Stack {
            labels: FigureLabels {
                y: "time by the clock (medians)",
                ..labels
            },
            parts: ["making the history", "checking it"]
                .map(str::to_owned)
                .into(),
            bars,
        }
        .draw()
    }

    /// Parts that no bar has are not drawn.
    fn phases(&self, labels: FigureLabels<'_>, x: usize, mut at: Vec<usize>) -> String {
        let measure = self.drawn.figure.measure;
        let mut bars = Vec::new();
        for (along, name) in self.names(x).into_iter().enumerate() {
            at[x] = along;
            let rows = &self.points[self.shown.point(&at)];
            bars.push((name, phases::medians(rows, measure)));
        }
        let is_there = |part: &usize| {
            let mut times = bars.iter().filter_map(|(_, times)| times.as_ref());
            times.any(|times| times[*part] > 0.0)
        };
        let drawn: Vec<usize> = (0..PARTS.len()).filter(is_there).collect();
        Stack {
            labels: FigureLabels {
                y: &format!("{}, by phase", measure.label()),
                ..labels
            },
            parts: drawn.iter().map(|&part| PARTS[part].to_owned()).collect(),
            bars: bars
                .into_iter()
                .map(|(name, times)| {
                    (
                        name,
                        times.map(|times| drawn.iter().map(|&part| times[part]).collect()),
                    )
                })
                .collect(),
        }
        .draw()
    }
}

fn detection(rows: &[&Row]) -> Option<Share> {
    let found = rows.iter().filter(|row| row.verdict == "violated").count();
    (!rows.is_empty()).then(|| Share {
        value: found as f64 / rows.len() as f64,
        interval: wilson(found, rows.len()),
    })
}

fn aborts(rows: &[&Row]) -> Option<Share> {
    let rate = |row: &Row| row.made.map(Made::abort_rate);
    let rates = || rows.iter().copied().filter_map(rate);
    Some(Share {
        value: middle(rows, rate)?,
        interval: [
            rates().fold(f64::INFINITY, f64::min),
            rates().fold(0.0, f64::max),
        ],
    })
}
