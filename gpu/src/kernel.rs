//! The kernels as a table: the source of each, and its bindings.

/// An entry point of a shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kernel {
    Sweep,
    Level,
    Judge,
    JudgeRows,
    Emit,
    Estimate,
    Probe,
    Anneal,
    Count,
    Keep,
}

/// How a kernel uses a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    ReadWrite,
}

use Access::{Read, ReadWrite};

/// Band, strips, steps, where their edges start, their edges, and, for `sweep`, where the levels end.
const CLOSURE_BINDINGS: &[(u32, Access)] = &[
    (1, ReadWrite),
    (2, Read),
    (3, Read),
    (4, Read),
    (5, Read),
    (6, Read),
];

/// Band, strips, runs, lists, what is impossible; for `judge` and `emit` the open pairs; for `emit` counters and edges.
const PRUNE_BINDINGS: &[(u32, Access)] = &[
    (1, Read),
    (2, Read),
    (3, Read),
    (4, Read),
    (5, ReadWrite),
    (6, ReadWrite),
    (7, ReadWrite),
    (8, ReadWrite),
];

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelSource {
    /// The entry point's name.
    pub(crate) entry: &'static str,
    /// The shader's file, without its ending.
    pub(crate) file: &'static str,
    /// The storage buffers: binding number and use. The parameters are binding 0.
    pub(crate) bindings: &'static [(u32, Access)],
}

impl Kernel {
    /// All kernels.
    #[cfg(test)]
    pub(crate) const ALL: [Kernel; 10] = [
        Kernel::Sweep,
        Kernel::Level,
        Kernel::Judge,
        Kernel::JudgeRows,
        Kernel::Emit,
        Kernel::Estimate,
        Kernel::Probe,
        Kernel::Anneal,
        Kernel::Count,
        Kernel::Keep,
    ];

    /// Its line.
    pub(crate) fn about(self) -> KernelSource {
        let (file, entry, bindings): (_, _, &[(u32, Access)]) = match self {
            Kernel::Sweep => ("closure", "sweep", CLOSURE_BINDINGS),
            Kernel::Level => ("closure", "level", &CLOSURE_BINDINGS[..5]),
            Kernel::Judge => ("prune", "judge", &PRUNE_BINDINGS[..6]),
            Kernel::JudgeRows => ("prune", "judge_rows", &PRUNE_BINDINGS[..5]),
            Kernel::Emit => ("prune", "emit", PRUNE_BINDINGS),
            Kernel::Estimate => (
                "estimate",
                "estimate",
                &[(1, Read), (2, Read), (3, ReadWrite)],
            ),
            Kernel::Probe => (
                "probe",
                "probe",
                &[(1, Read), (2, Read), (3, Read), (4, ReadWrite)],
            ),
            Kernel::Anneal => (
                "anneal",
                "anneal",
                &[
                    (1, ReadWrite),
                    (2, Read),
                    (3, Read),
                    (4, Read),
                    (5, Read),
                    (6, Read),
                    (7, Read),
                ],
            ),
            Kernel::Count => (
                "anneal",
                "count",
                &[(1, ReadWrite), (5, Read), (6, Read), (8, ReadWrite)],
            ),
            Kernel::Keep => (
                "anneal",
                "keep",
                &[
                    (1, ReadWrite),
                    (8, ReadWrite),
                    (9, ReadWrite),
                    (10, ReadWrite),
                ],
            ),
        };
        KernelSource {
            entry,
            file,
            bindings,
        }
    }

    /// The text of its module, with subgroup operations or without.
    pub(crate) fn source(self, subgroups: bool) -> String {
        match self.about().file {
            "closure" => [MATRIX, CLOSURE].concat(),
            // naga accepts subgroup operations without the directive that enables them, and does not know the directive.
            "prune" if subgroups => [MATRIX, PRUNE, COMPACT_SUBGROUP].concat(),
            "prune" => [MATRIX, PRUNE, COMPACT_PLAIN].concat(),
            "probe" => [MATRIX, PROBE].concat(),
            "anneal" => ANNEAL.to_owned(),
            _ => [MATRIX, ESTIMATE].concat(),
        }
    }
}

const MATRIX: &str = include_str!("../shaders/shared/matrix.wgsl");
const COMPACT_PLAIN: &str = include_str!("../shaders/shared/compact_plain.wgsl");
const COMPACT_SUBGROUP: &str = include_str!("../shaders/shared/compact_subgroup.wgsl");
const CLOSURE: &str = include_str!("../shaders/closure.wgsl");
const PRUNE: &str = include_str!("../shaders/prune.wgsl");
const ESTIMATE: &str = include_str!("../shaders/estimate.wgsl");
const PROBE: &str = include_str!("../shaders/probe.wgsl");
const ANNEAL: &str = include_str!("../shaders/anneal.wgsl");
