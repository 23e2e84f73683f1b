//! What each part of a check took, in the parts that Viper's paper tells apart.

use crate::recipe::Measure;
use crate::row::Row;
use crate::summary::measured;

/// The parts, in the order in which they come.
pub const PARTS: [&str; 8] = [
    "parse",
    "construct",
    "prune",
    "encode",
    "solve",
    "certify",
    "explain",
    "other",
];

/// What each of [`PARTS`] took in the median run, or on average in the two in the middle, so that the parts add up to the
/// median that tables and the terminal show. `None` if the median run gave no answer.
pub fn medians(rows: &[&Row], measure: Measure) -> Option<[f64; PARTS.len()]> {
    let whole = match measure {
        Measure::Cpu => Measure::Cpu,
        _ => Measure::Seconds,
    };
    let mut timed: Vec<(f64, &Row)> = rows
        .iter()
        .filter_map(|row| Some((measured(row, whole)?, *row)))
        .collect();
    timed.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = timed.len() / 2;
    let middle = match timed.len() {
        0 => return None,
        odd if odd % 2 == 1 => &timed[half..=half],
        _ => &timed[half - 1..=half],
    };
    if middle.iter().any(|(time, _)| time.is_infinite()) {
        return None;
    }
    let mut sums = [0.0; PARTS.len()];
    for (whole, row) in middle {
        let parts = parts(row, measure, *whole);
        for (sum, part) in sums.iter_mut().zip(parts) {
            *sum += part / middle.len() as f64;
        }
    }
    Some(sums)
}

/// Finding each read's writer belongs to the construction. What decides tells its encoding by the clock only, so its processor time is
/// split in the same proportion.
fn parts(row: &Row, measure: Measure, whole: f64) -> [f64; PARTS.len()] {
    let mut parts = [0.0; PARTS.len()];
    for phase in &row.stats.phases {
        let time = match measure {
            Measure::Cpu => phase.cpu_seconds.unwrap_or(phase.seconds),
            _ => phase.seconds,
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
    // Starting the process, and what lies between the phases.
    let told: f64 = parts.iter().sum();
    parts[PARTS.len() - 1] = (whole - told).max(0.0);
    parts
}
