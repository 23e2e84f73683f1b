//! Measures closures on an adapter, and fits the constants of the cost model to them.
//!
//! Five sizes of three shapes: deep graphs wait for memory level by level, wide ones move it, and histories are in
//! between. The constants are moved one at a time, by smaller and smaller factors, while the model comes closer to the
//! measurements: least squares of the logarithms, since a factor of two is as wrong at a millisecond as at a second.

use std::time::{Duration, Instant};

use kingsnake_context::budget::Budget;
use kingsnake_graph::reach::Dag;
use kingsnake_graph::session_graph::SessionGraph;

use crate::adapter::{About, AdapterKind};
use crate::closure::Form;
use crate::cost::{self, Speed};
use crate::meter::Meter;
use crate::{DeviceChoice, GpuError};

/// How often each closure is computed; the shortest time counts.
const REPEATS: u32 = 3;

/// A shape of graphs: number of sessions, and how far an edge reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalibrationShape {
    /// Its name in tables.
    pub name: &'static str,
    sessions: u32,
    span: u32,
}

/// The shapes.
const SHAPES: [CalibrationShape; 3] = [
    CalibrationShape {
        name: "deep",
        sessions: 4,
        span: 40,
    },
    CalibrationShape {
        name: "history",
        sessions: 24,
        span: 400,
    },
    CalibrationShape {
        name: "wide",
        sessions: 400,
        span: 100_000,
    },
];

/// Edges of each node.
const DEGREE: u32 = 6;

/// A measured closure, and the model's prediction.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibrationPoint {
    /// The graph's shape.
    pub shape: &'static str,
    /// Its nodes.
    pub nodes: u32,
    /// Its edges.
    pub edges: usize,
    /// Its longest path, in nodes.
    pub levels: usize,
    /// Time in seconds from the first byte sent to the last kernel's end.
    pub measured: f64,
    /// Time of the kernels, if the adapter has timestamps.
    pub kernels: Option<f64>,
    /// The prediction with the data sheets' constants.
    pub by_data_sheet: f64,
    /// The prediction with the fitted constants.
    pub by_fit: f64,
}

impl CalibrationPoint {
    /// The factor by which the fitted model is wrong, at least one.
    pub fn error(&self) -> f64 {
        (self.by_fit / self.measured).max(self.measured / self.by_fit)
    }
}

/// The measurements of an adapter.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The adapter.
    pub about: About,
    /// Its constants.
    pub speed: Speed,
    /// Each closure.
    pub points: Vec<CalibrationPoint>,
}

impl Calibration {
    /// The largest factor by which the fitted model is wrong.
    pub fn worst(&self) -> f64 {
        let errors = self.points.iter().map(CalibrationPoint::error);
        errors.fold(1.0, f64::max)
    }
}

/// Measures an adapter within a budget and fits the model to it.
pub fn calibrate(choice: &DeviceChoice, budget: &Budget) -> Result<Calibration, GpuError> {
    let begun = Instant::now();
    let mut meter = Meter::open(choice)?;
    let about = meter.about().clone();
    // The first closure compiles the kernels.
    let first = graph(SHAPES[1], 200);
    meter.closure(&first, Form::Auto, budget)?;
    let start = begun.elapsed().as_secs_f64();
    let sizes: [u32; 5] = match about.kind {
        AdapterKind::Software => [250, 500, 1_000, 2_000, 4_000],
        _ => [1_000, 4_000, 16_000, 40_000, 80_000],
    };
    let sheet = Speed::of_kind(about.kind);
    let mut measured = Vec::new();
    for shape in SHAPES {
        for nodes in sizes {
            let dag = graph(shape, nodes);
            let mut best: Option<crate::Measured> = None;
            for _ in 0..REPEATS {
                let found = meter.closure(&dag, Form::Auto, budget)?;
                if best.as_ref().is_none_or(|it| found.time < it.time) {
                    best = Some(found);
                }
            }
            if let Some(found) = best {
                measured.push((shape, dag, found));
            }
        }
    }
    let closures: Vec<TimedClosure> = measured
        .iter()
        .map(|it| TimedClosure::of(&it.1, &it.2))
        .collect();
    let speed = Speed {
        start,
        ..fit(sheet, &closures)
    };
    let points = measured.iter().zip(&closures);
    let points = points.map(|((shape, dag, found), closure)| CalibrationPoint {
        shape: shape.name,
        nodes: dag.n_nodes() as u32,
        edges: dag.n_edges(),
        levels: closure.model.n_levels(),
        measured: closure.measured,
        kernels: found.kernels.as_ref().map(Duration::as_secs_f64),
        by_data_sheet: closure.predicted(sheet),
        by_fit: closure.predicted(speed),
    });
    Ok(Calibration {
        about,
        speed,
        points: points.collect(),
    })
}

fn graph(shape: CalibrationShape, nodes: u32) -> Dag {
    let of = SessionGraph {
        n_nodes: nodes,
        degree: DEGREE,
        n_sessions: shape.sessions.min(nodes / 4).max(1),
        span: shape.span.min(nodes),
    };
    of.dag()
}

/// A closure as the model sees it, and its time.
struct TimedClosure {
    model: cost::ClosureModel,
    bytes_up: f64,
    measured: f64,
}

impl TimedClosure {
    fn of(dag: &Dag, found: &crate::Measured) -> Self {
        TimedClosure {
            model: cost::ClosureModel::of(dag),
            bytes_up: found.bytes_up as f64,
            measured: found.time.as_secs_f64().max(1e-9),
        }
    }

    fn predicted(&self, speed: Speed) -> f64 {
        self.bytes_up / speed.bus + self.model.seconds(speed)
    }
}

/// The constants that fit the measurements best, starting from others.
fn fit(from: Speed, closures: &[TimedClosure]) -> Speed {
    let distance = |speed: Speed| -> f64 {
        let logs = closures
            .iter()
            .map(|it| (it.predicted(speed) / it.measured).ln());
        logs.map(|log| log * log).sum()
    };
    let mut best = from;
    let mut least = distance(best);
    let mut factor = 8.0_f64;
    while factor > 1.01 {
        let mut is_better = false;
        for constant in 0..Speed::N_FITTED {
            for by in [factor, 1.0 / factor] {
                let tried = best.with(constant, by);
                let found = distance(tried);
                if found < least {
                    (best, least, is_better) = (tried, found, true);
                }
            }
        }
        if !is_better {
            factor = factor.sqrt();
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fit_finds_the_constants_of_a_machine_that_follows_the_model() {
        let truth = Speed {
            bytes: 70e9,
            bus: 4e9,
            groups: 30.0,
            dispatch: 20e-6,
            latency: 2e-6,
            start: 0.1,
        };
        let closures = SHAPES.into_iter().flat_map(|shape| {
            [250, 1_000, 4_000].map(|nodes| {
                let dag = graph(shape, nodes);
                let mut closure = TimedClosure {
                    model: cost::ClosureModel::of(&dag),
                    bytes_up: 4.0 * (3 * dag.n_nodes() + dag.n_edges()) as f64,
                    measured: 1.0,
                };
                closure.measured = closure.predicted(truth);
                closure
            })
        });
        let closures: Vec<TimedClosure> = closures.collect();
        let worst = |speed: Speed| {
            let errors = closures
                .iter()
                .map(|it| (it.predicted(speed) / it.measured).ln().abs());
            errors.fold(0.0, f64::max).exp()
        };
        let sheet = Speed::of_kind(AdapterKind::Discrete);
        let fitted = fit(sheet, &closures);
        assert!(worst(sheet) > 2.0, "{}", worst(sheet));
        assert!(worst(fitted) < 1.2, "{fitted:?} {}", worst(fitted));
    }

    #[cfg(feature = "wgpu")]
    #[test]
    fn the_fitted_model_predicts_its_own_closures_within_a_factor_of_two() {
        // Other work disturbs a measurement, so one of several must do.
        let mut errors = Vec::new();
        while errors.len() < 5 && errors.iter().all(|&it| it >= 2.0) {
            let found = calibrate(&DeviceChoice::Gpu, &Budget::unlimited()).unwrap();
            let about = &found.about;
            println!(
                "gpu test: calibration on {} ({})",
                about.name, about.backend
            );
            assert_eq!(found.points.len(), 15);
            let logs = found.points.iter().map(|it| it.error().ln());
            errors.push((logs.sum::<f64>() / 15.0).exp());
        }
        assert!(errors.iter().any(|&it| it < 2.0), "{errors:?}");
    }
}
