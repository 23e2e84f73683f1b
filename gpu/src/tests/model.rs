//! The tables of docs/gpu.md are what `cost` computes: the document cannot say anything else.

use crate::cost::{self, Level, Speed};
use crate::matrix::Cut;

const DOCUMENT: &str = include_str!("../../../docs/gpu.md");

/// Machines by their data sheets, as the document names them.
const MACHINES: [(&str, Speed); 3] = [
    ("V100", speed(900e9, 12e9, 640.0)),
    ("laptop GPU", speed(256e9, 12e9, 144.0)),
    ("Apple M2 Pro", speed(200e9, 100e9, 76.0)),
];

const fn speed(bytes: f64, bus: f64, groups: f64) -> Speed {
    Speed { bytes, bus, groups }
}

/// Nodes, edges a node, levels: those of `bench reach`, one that is twice as large, and one that is wide.
const GRAPHS: [(u32, u32, u32); 6] = [
    (1_000, 6, 57),
    (10_000, 6, 558),
    (50_000, 6, 2_787),
    (100_000, 6, 5_574),
    (50_000, 20, 4_825),
    (50_000, 6, 50),
];

/// Additions and multiplications in single precision that a V100 does in a second.
const V100_OPERATIONS: f64 = 15.7e12;

fn closure(nodes: u32, degree: u32, n_levels: u32, speed: Speed) -> f64 {
    let cut = Cut::new(nodes as usize, 1 << 31).unwrap();
    let nodes = f64::from(nodes) / f64::from(n_levels);
    let level = Level {
        nodes,
        rows: nodes * f64::from(degree + 1),
    };
    cost::closure(&cut, &vec![level; n_levels as usize], speed)
}

fn on_cpu(nodes: u32, degree: u32) -> f64 {
    let (n, m) = (f64::from(nodes), f64::from(nodes * degree));
    cost::dense_bytes(n, m) / cost::CPU_BYTES
}

/// Two digits that mean something.
fn time(seconds: f64) -> String {
    let (scaled, unit) = match seconds {
        _ if seconds < 0.9995e-3 => (seconds * 1e6, "µs"),
        _ if seconds < 0.9995 => (seconds * 1e3, "ms"),
        _ => (seconds, "s"),
    };
    let digits = usize::from(scaled < 10.0);
    format!("{scaled:.digits$} {unit}")
}

fn grouped(number: u32) -> String {
    let digits = number.to_string();
    match digits.len() {
        0..=3 => digits,
        long => format!("{},{}", &digits[..long - 3], &digits[long - 3..]),
    }
}

fn prediction((nodes, degree, n_levels): (u32, u32, u32)) -> String {
    let on_devices = MACHINES.map(|(_, speed)| time(closure(nodes, degree, n_levels, speed)));
    let n = f64::from(nodes);
    let product = 2.0 * n * n * n / V100_OPERATIONS;
    format!(
        "| {} | {degree} | {} | {} | {} | {} |\n",
        grouped(nodes),
        grouped(n_levels),
        on_devices.join(" | "),
        time(on_cpu(nodes, degree)),
        time(product * n.log2().ceil()),
    )
}

/// From how many thousand nodes on three rounds are faster on a device than on so many threads, with all that a device
/// takes to start or without.
fn crossover(speed: Speed, threads: f64, start: f64) -> Option<u32> {
    (1..=200).map(|thousands| thousands * 1_000).find(|&nodes| {
        let degree = 6;
        let up = 4.0 * f64::from(nodes) * f64::from(3 + degree);
        let round = closure(nodes, degree, nodes / 18, speed);
        let on_device = start + up / speed.bus + 3.0 * round;
        on_device < 3.0 * on_cpu(nodes, degree) / threads
    })
}

fn crossovers((name, speed): (&str, Speed)) -> String {
    let cell = |threads, start| match crossover(speed, threads, start) {
        Some(nodes) => grouped(nodes),
        None => "beyond 200,000".to_owned(),
    };
    format!(
        "| {name} | {} | {} | {} | {} |\n",
        cell(1.0, 0.0),
        cell(1.0, cost::START),
        cell(8.0, 0.0),
        cell(8.0, cost::START),
    )
}

fn expect_table(rows: &[String]) {
    let table = rows.concat();
    assert!(DOCUMENT.contains(&table), "docs/gpu.md should say\n{table}");
}

#[test]
fn the_predictions_of_the_document_are_those_of_the_formulas() {
    expect_table(&GRAPHS.map(prediction));
}

#[test]
fn the_crossovers_of_the_document_are_those_of_the_formulas() {
    expect_table(&MACHINES.map(crossovers));
}
