//! What each part of a check took, in the parts that Viper's paper tells apart.

use crate::recipe::Measure;
use crate::row::{Outcome, Row};
use crate::summary::median;

/// The parts, in the order in which they come.
pub const PARTS: [&str; 7] = [
    "parse",
    "construct",
    "prune",
    "encode",
    "solve",
    "certify",
    "explain",
];

/// The median over the runs that gave an answer, for each of [`PARTS`]; `None` if no run did.
pub fn medians(rows: &[&Row], measure: Measure) -> Option<[f64; PARTS.len()]> {
    let answered = rows.iter().filter(|row| row.outcome == Outcome::Answered);
    let all: Vec<[f64; PARTS.len()]> = answered.map(|row| parts(row, measure)).collect();
    if all.is_empty() {
        return None;
    }
    Some(std::array::from_fn(|part| {
        let mut times: Vec<f64> = all.iter().map(|of| of[part]).collect();
        times.sort_by(f64::total_cmp);
        median(&times).unwrap_or(0.0)
    }))
}

/// Finding each read's writer belongs to the construction. What decides tells its encoding by the clock only, so its processor time is
/// split in the same proportion.
fn parts(row: &Row, measure: Measure) -> [f64; PARTS.len()] {
    let mut parts = [0.0; PARTS.len()];
    for phase in &row.stats.phases {
        let time = match measure {
            Measure::Cpu => phase.cpu_seconds.unwrap_or(phase.seconds),
            Measure::Seconds | Measure::Solver => phase.seconds,
        };
        let mut add = |part: &str, time: f64| {
            if let Some(at) = PARTS.iter().position(|it| *it == part) {
                parts[at] += time;
            }
        };
        match phase.name.as_str() {
            "resolve" => add("construct", time),
            "decide" => {
                let encode = row
                    .stats
                    .solver
                    .as_ref()
                    .map_or(0.0, |it| it.encode_seconds);
                let share = (encode / phase.seconds.max(1e-12)).clamp(0.0, 1.0);
                add("encode", time * share);
                add("solve", time * (1.0 - share));
            }
            name => add(name, time),
        }
    }
    parts
}
