//! The tables of docs/gpu.md are what the formulas of `cost` give: the document cannot say anything else.

use crate::cost::{self, Forms, Level, Speed};
use crate::matrix::Cut;

const DOCUMENT: &str = include_str!("../../../docs/gpu.md");

/// A machine whose data sheet is known: name, GB/s of memory and of the bus, workgroups at once, words from workgroup
/// memory in a second.
const MACHINES: [(&str, Speed); 3] = [
    ("V100", speed(900e9, 12e9, 640.0, 3e12)),
    ("laptop", speed(256e9, 12e9, 144.0, 8e11)),
    ("Apple", speed(200e9, 100e9, 76.0, 5e11)),
];

const fn speed(bytes: f64, bus: f64, groups: f64, words: f64) -> Speed {
    Speed {
        bytes,
        bus,
        groups,
        words,
    }
}

/// Graphs of the tables: nodes, edges a node, levels.
const GRAPHS: [(u32, u32, u32); 6] = [
    (1_000, 6, 40),
    (10_000, 6, 400),
    (50_000, 6, 2_000),
    (100_000, 6, 4_000),
    (50_000, 20, 3_000),
    (50_000, 6, 100),
];

/// A single-precision product on a V100: operations in a second.
const V100_OPERATIONS: f64 = 15.7e12;

fn forms(nodes: u32, degree: u32, n_levels: u32, speed: Speed) -> Forms {
    let cut = Cut::new(nodes as usize, 1 << 31).unwrap();
    let nodes = f64::from(nodes) / f64::from(n_levels);
    let level = Level {
        nodes,
        rows: nodes * f64::from(degree + 1),
    };
    Forms::new(&cut, &vec![level; n_levels as usize], speed)
}

fn time(seconds: f64) -> String {
    match seconds {
        _ if seconds < 0.9995e-3 => format!("{:.0} µs", seconds * 1e6),
        _ if seconds < 0.9995 => format!("{:.3} ms", seconds * 1e3)
            .trim_end_matches('0')
            .to_owned(),
        _ => format!("{seconds:.1} s"),
    }
}
