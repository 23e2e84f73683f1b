//! The cases that the benchmarks share: real histories, and what the best other checker needs for each.

/// A history, a level, and the best peer's whole-process wall seconds on a quiet two-core machine of the same class.
#[derive(Clone, Copy, Debug)]
pub struct BenchCase {
    /// Below the directory of shared data.
    pub path: &'static str,
    /// `--level`.
    pub level: &'static str,
    /// The exit status that the right verdict has.
    pub status: i32,
    /// The fastest other checker on this history.
    pub peer: &'static str,
    /// What it took.
    pub peer_seconds: f64,
}

const fn case(
    path: &'static str,
    level: &'static str,
    status: i32,
    peer: &'static str,
    peer_seconds: f64,
) -> BenchCase {
    BenchCase {
        path,
        level,
        status,
        peer,
        peer_seconds,
    }
}

/// Every case.
pub const CASES: [BenchCase; 11] = [
    case("cobra/one-shot/chengRW-4000", "ser", 0, "VeriStrong", 1.0),
    case("cobra/one-shot/chengRW-10000", "ser", 0, "VeriStrong", 6.0),
    case("cobra/one-shot/chengRM-10000", "ser", 0, "VeriStrong", 1.7),
    case("cobra/one-shot/rubis-10000", "ser", 0, "Cobra", 2.4),
    case("cobra/one-shot/twitter-10000", "ser", 0, "VeriStrong", 1.4),
    case("cobra/one-shot/tpcc-10000", "ser", 0, "Cobra", 2.75),
    case("cobra/violations/yuga-G2-a", "ser", 1, "Cobra", 2.4),
    case(
        "polysi/25_400_8_10000_0.5_uniform",
        "ser",
        0,
        "VeriStrong",
        9.1,
    ),
    case(
        "polysi/25_400_8_10000_0.5_uniform",
        "si",
        0,
        "VeriStrong",
        11.7,
    ),
    case("viper/BlindW-RW-4000/json", "si", 0, "VeriStrong", 1.2),
    case("cobra/one-shot/chengRW-10000", "si", 0, "VeriStrong", 7.8),
];

/// Sizes for the growth at the levels of snapshot isolation: transactions of 8 operations, `v-blindw-rw` with 10,000 keys
/// on a store that promises snapshots, 24 sessions, with times.
pub const SNAPSHOTS: [usize; 3] = [10_000, 100_000, 300_000];

/// The levels of snapshot isolation, and whether sessions keep their order.
pub const SNAPSHOT_LEVELS: [(&str, &str); 4] = [
    ("si", "on"),
    ("gsi", "on"),
    ("strong-si", "on"),
    ("strong-si", "off"),
];

/// Sizes for the growth table: transactions, operations each, keys; half the operations are reads, 24 sessions.
pub const GROWTH: [(usize, usize, usize); 6] = [
    (10_000, 8, 100_000),
    (100_000, 8, 100_000),
    (300_000, 8, 100_000),
    (1_000_000, 8, 100_000),
    (10_000, 20, 100_000),
    (100_000, 20, 100_000),
];
