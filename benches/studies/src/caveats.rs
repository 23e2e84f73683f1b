//! What a reader must know before comparing the numbers of an experiment: different machines, outliers, cells that
//! requested a device and did not get it, and omitted runs.

use std::collections::{BTreeMap, BTreeSet};

use kingsnake_text::count;

use crate::design::SettledExperiment;
use crate::recipe::Measure;
use crate::row::Row;
use crate::summary::spread;

/// The caveats of an experiment, one sentence each.
pub fn caveats(
    shown: &SettledExperiment,
    points: &[Vec<&Row>],
    left_out: &[usize],
    measure: Measure,
) -> Vec<String> {
    let rows: Vec<&Row> = rows(shown, points);
    let mut all = Vec::new();
    let n_left_out: usize = distinct(shown).iter().map(|&point| left_out[point]).sum();
    if n_left_out > 0 {
        all.push(format!(
            "{} left out: the same check had run out of time on another history, and --skip-after-timeout was given. What is shown of these checks is of fewer histories.",
            if n_left_out == 1 { "1 run was".to_owned() } else { format!("{n_left_out} runs were") }
        ));
    }
    all.extend(unlike(&rows, "processors", |row| row.processor.clone()));
    all.extend(unlike(&rows, "adapters", Row::adapter));
    let without = rows.iter().filter(|row| row.lacks_device()).count();
    if without > 0 {
        let why = rows.iter().find(|row| row.lacks_device());
        all.push(format!(
            "{} left out: a device was asked for and did not compute ({}).",
            if without == 1 {
                "1 run is".to_owned()
            } else {
                format!("{without} runs are")
            },
            why.map_or_else(String::new, |row| row.why_no_device())
        ));
    }
    all.extend(waited(&rows));
    let grid = distinct(shown);
    let spreads = grid
        .iter()
        .filter_map(|&point| spread(&points[point], measure));
    let outliers: usize = spreads.map(|spread| spread.outliers).sum();
    if outliers > 0 {
        all.push(format!(
            "{} far from the others of the same check: the machine was busy, or a cache was cold. Repeat on a quiet machine.",
            if outliers == 1 { "1 run lies".to_owned() } else { format!("{outliers} runs lie") }
        ));
    }
    all
}

/// Runs that took more than twice their processor time by the clock, which a check does not do by itself. Shorter ones than these
/// seconds are not judged: they are mostly the start of a process.
const WAITED: f64 = 2.0;
const SHORT: f64 = 0.02;

fn waited(rows: &[&Row]) -> Option<String> {
    let waited = |row: &&&Row| {
        let used = row.stats.cpu_seconds.unwrap_or(f64::INFINITY);
        row.stats.seconds > SHORT && row.stats.seconds > WAITED * used
    };
    let n = rows.iter().filter(waited).count();
    (n > 0).then(|| {
        format!(
            "{} took more than twice the processor time by the clock: the machine was busy. Compare processor times \
             (--measure cpu, or both), or repeat on a quiet machine.",
            count(n, "run")
        )
    })
}

/// How often, on what: for a caption.
pub fn caption(shown: &SettledExperiment, points: &[Vec<&Row>]) -> String {
    let grid = distinct(shown);
    let runs = grid
        .iter()
        .map(|&point| points[point].len())
        .filter(|&n| n > 0);
    let mut parts = Vec::new();
    parts.extend(between(runs).map(|n| format!("n = {n} per check")));
    let rows = rows(shown, points);
    for name in ["transactions", "keys"] {
        let sizes = rows.iter().filter_map(|row| row.sizes.get(name)?.as_u64());
        let sizes = between(sizes.map(|it| it as usize));
        parts.extend(sizes.map(|it| format!("{it} {name}")));
    }
    let adapters: BTreeSet<String> = rows
        .iter()
        .map(|row| row.adapter())
        .filter(|name| !name.is_empty())
        .collect();
    parts.extend(adapters.into_iter().map(|name| format!("on {name}")));
    parts.join(", ")
}

fn between(numbers: impl Iterator<Item = usize>) -> Option<String> {
    let numbers: Vec<usize> = numbers.collect();
    let (least, most) = (*numbers.iter().min()?, *numbers.iter().max()?);
    let grouped = |number: usize| kingsnake_text::grouped(number as u64);
    Some(if least == most {
        grouped(least)
    } else {
        format!("{} to {}", grouped(least), grouped(most))
    })
}

fn distinct(shown: &SettledExperiment) -> Vec<usize> {
    let mut grid = shown.grid.clone();
    grid.sort_unstable();
    grid.dedup();
    grid
}

fn rows<'a>(shown: &SettledExperiment, points: &[Vec<&'a Row>]) -> Vec<&'a Row> {
    let grid = distinct(shown);
    grid.iter()
        .flat_map(|&point| points[point].iter().copied())
        .collect()
}

fn unlike(rows: &[&Row], what: &str, of: impl Fn(&Row) -> String) -> Option<String> {
    let mut by_name: BTreeMap<String, usize> = BTreeMap::new();
    for row in rows {
        let name = of(row);
        if !name.is_empty() {
            *by_name.entry(name).or_default() += 1;
        }
    }
    if by_name.len() < 2 {
        return None;
    }
    let each: Vec<String> = by_name
        .iter()
        .map(|(name, n)| format!("{name}: {}", count(*n, "run")))
        .collect();
    Some(format!(
        "Cells that are compared ran on unlike {what} ({}); their times are not comparable.",
        each.join("; ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(processor: &str, device: &str, adapter: &str) -> Row {
        let row = serde_json::json!({
            "cell": "", "history": "w", "check": [], "seed": 0, "repeat": 0,
            "outcome": "answered", "verdict": "satisfied", "wall_seconds": 0.0,
            "peak_memory_bytes": null, "command": "", "processor": processor,
            "plan": {"device": device},
            "stats": {"seconds": 1.0, "device": {"name": adapter, "why": "no adapter was found"}},
            "sizes": {"transactions": 1000, "keys": 7},
        });
        serde_json::from_value(row).unwrap()
    }

    fn shown() -> SettledExperiment {
        SettledExperiment {
            name: String::new(),
            title: String::new(),
            about: String::new(),
            axes: Vec::new(),
            grid: vec![0, 0],
            figure: None,
            tables: Vec::new(),
            claims: Vec::new(),
            unstated: Vec::new(),
        }
    }

    #[test]
    fn unlike_machines_are_told_and_like_ones_are_not() {
        let (a, b) = (row("Xeon", "cpu", ""), row("EPYC", "cpu", ""));
        let told = caveats(&shown(), &[vec![&a, &b]], &[0], Measure::Seconds);
        assert_eq!(told.len(), 1);
        assert!(told[0].contains("EPYC: 1 run; Xeon: 1 run"), "{told:?}");
        assert!(caveats(&shown(), &[vec![&a, &a]], &[0], Measure::Seconds).is_empty());
        assert_eq!(
            caption(&shown(), &[vec![&a, &b]]),
            "n = 2 per check, 1,000 transactions, 7 keys"
        );
    }

    #[test]
    fn a_run_that_asked_for_a_device_and_got_none_is_marked() {
        let (asked, got) = (row("Xeon", "gpu", ""), row("Xeon", "gpu", "V100"));
        let told = caveats(&shown(), &[vec![&asked, &got]], &[0], Measure::Seconds);
        assert!(told[0].starts_with("1 run is left out"), "{told:?}");
        assert!(told[0].contains("no adapter was found"), "{told:?}");
    }

    #[test]
    fn a_run_that_waited_for_a_processor_is_marked_and_one_that_computed_is_not() {
        let mut busy = row("p", "cpu", "");
        busy.stats.cpu_seconds = Some(0.4);
        let told = caveats(&shown(), &[vec![&busy]], &[0], Measure::Seconds);
        assert!(
            told[0].starts_with("1 run took more than twice"),
            "{told:?}"
        );
        busy.stats.cpu_seconds = Some(0.6);
        assert!(caveats(&shown(), &[vec![&busy]], &[0], Measure::Seconds).is_empty());
    }

    #[test]
    fn runs_that_were_left_out_are_told() {
        let a = row("p", "cpu", "");
        let told = caveats(&shown(), &[vec![&a]], &[2], Measure::Seconds);
        assert_eq!(told.len(), 1);
        assert!(told[0].starts_with("2 runs were left out"), "{told:?}");
    }
}
