//! The cases that the benchmarks share: real histories, and the time of the best other checker on each.

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

/// A history at the weak levels: what AWDIT and Plume took at rc, ra and cc, whole process, wall seconds on a quiet machine of the same
/// class.
#[derive(Clone, Copy, Debug)]
pub struct WeakCase {
    /// Below the directory of shared data.
    pub path: &'static str,
    /// AWDIT's seconds at each level.
    pub awdit: [f64; 3],
    /// Plume's, where it was measured.
    pub plume: Option<[f64; 3]>,
}

/// The weak levels, in the order of the peers' times.
pub const WEAK_LEVELS: [&str; 3] = ["rc", "ra", "cc"];

/// Real histories at the weak levels.
pub const WEAK_CASES: [WeakCase; 3] = [
    WeakCase {
        path: "polysi/25_400_8_10000_0.5_uniform",
        awdit: [0.08, 0.09, 0.20],
        plume: Some([2.3, 1.8, 2.8]),
    },
    WeakCase {
        path: "cobra/one-shot/chengRW-10000",
        awdit: [0.05, 0.08, 0.17],
        plume: None,
    },
    WeakCase {
        path: "cobra/one-shot/tpcc-10000",
        awdit: [0.19, 0.24, 0.52],
        plume: Some([9.0, 5.0, 5.0]),
    },
];

/// A generated history, what it is checked with, and what others took or what is aimed at.
#[derive(Clone, Copy, Debug)]
pub struct GeneratedCase {
    /// Its name.
    pub name: &'static str,
    /// The arguments of `generate`, as one would type them.
    pub generate: &'static str,
    /// The arguments of `check`, each in turn.
    pub checks: &'static [&'static str],
    /// AWDIT's seconds for each check, where it was measured.
    pub awdit: &'static [f64],
    /// Goals in seconds and megabytes.
    pub goal: (f64, Option<u64>),
}

const WEAK_CHECKS: &[&str] = &["--level rc", "--level ra", "--level cc"];

/// Large histories at the weak levels, lists, and mixed levels.
pub const WEAK_GENERATED: [GeneratedCase; 5] = [
    GeneratedCase {
        name: "1,000,000 × 8",
        generate: "blindw-rw --txns 1000000 --ops 8 --keys 100000 --clients 24 --format dbcop",
        checks: WEAK_CHECKS,
        awdit: &[8.1, 10.8, 47.0],
        goal: (3.0, Some(900)),
    },
    GeneratedCase {
        name: "1,000,000 × 20",
        generate: "blindw-rw --txns 1000000 --ops 20 --keys 100000 --clients 24 --format dbcop",
        checks: WEAK_CHECKS,
        awdit: &[],
        goal: (8.0, Some(2000)),
    },
    GeneratedCase {
        name: "100,000 list-append",
        generate: "list-append --txns 100000 --clients 24",
        checks: &["--level ser", "--level cc"],
        awdit: &[],
        goal: (0.25, None),
    },
    GeneratedCase {
        name: "1,000,000 list-append",
        generate: "list-append --txns 1000000 --clients 24",
        checks: &["--level ser", "--level cc"],
        awdit: &[],
        goal: (2.5, Some(1000)),
    },
    GeneratedCase {
        name: "TPC-C, 10,000, mixed",
        generate: "tpcc --txns 10000 --clients 20 \
                   --isolation-mix 'new-order=serializable,payment=snapshot,*=read committed'",
        checks: &["--level as-recorded"],
        awdit: &[],
        goal: (2.0, None),
    },
];
