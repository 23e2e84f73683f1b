//! The kernels as a table: the text of each, and what it is bound to.

/// An entry point of a shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kernel {
    Sweep,
    Level,
    Seed,
    Column,
    Pivot,
    Panel,
    Rest,
    Judge,
    Emit,
    Estimate,
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

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About {
    /// The entry point's name.
    pub(crate) entry: &'static str,
    /// The shader's file, without its ending.
    pub(crate) file: &'static str,
    /// The storage buffers: binding number and use. The parameters are binding 0.
    pub(crate) bindings: &'static [(u32, Access)],
}

impl Kernel {
    /// All of them.
    #[cfg(test)]
    pub(crate) const ALL: [Kernel; 13] = [
        Kernel::Sweep,
        Kernel::Level,
        Kernel::Seed,
        Kernel::Column,
        Kernel::Pivot,
        Kernel::Panel,
        Kernel::Rest,
        Kernel::Judge,
        Kernel::Emit,
        Kernel::Estimate,
        Kernel::Anneal,
        Kernel::Count,
        Kernel::Keep,
    ];

    /// Its line.
    pub(crate) fn about(self) -> About {
        let (file, entry, bindings): (_, _, &[(u32, Access)]) = match self {
            Kernel::Sweep => (
                "closure",
                "sweep",
                &[
                    (1, ReadWrite),
                    (2, Read),
                    (3, Read),
                    (4, Read),
                    (5, Read),
                    (6, Read),
                ],
            ),
            Kernel::Level => (
                "closure",
                "level",
                &[(1, ReadWrite), (2, Read), (3, Read), (4, Read), (5, Read)],
            ),
            Kernel::Seed => (
                "warshall",
                "seed",
                &[(1, ReadWrite), (2, Read), (3, Read), (4, Read), (5, Read)],
            ),
            Kernel::Column => ("warshall", "column", &[(1, ReadWrite), (6, ReadWrite)]),
            Kernel::Pivot => ("warshall", "pivot", &[(6, ReadWrite)]),
            Kernel::Panel => ("warshall", "panel", &[(1, ReadWrite), (6, ReadWrite)]),
            Kernel::Rest => ("warshall", "rest", &[(1, ReadWrite), (6, ReadWrite)]),
            Kernel::Judge => (
                "prune",
                "judge",
                &[(1, Read), (2, Read), (3, Read), (4, Read), (5, ReadWrite)],
            ),
            Kernel::Emit => (
                "prune",
                "emit",
                &[
                    (1, Read),
                    (2, Read),
                    (3, Read),
                    (4, Read),
                    (5, ReadWrite),
                    (6, ReadWrite),
                    (7, ReadWrite),
                    (8, ReadWrite),
                ],
            ),
            Kernel::Estimate => ("estimate", "estimate", &[(1, Read), (2, ReadWrite)]),
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
        About {
            entry,
            file,
            bindings,
        }
    }

    /// The text of its module, with subgroup operations or without.
    pub(crate) fn source(self, subgroups: bool) -> String {
        match self.about().file {
            "closure" => [MATRIX, GRAPH, CLOSURE].concat(),
            "warshall" => [MATRIX, GRAPH, WARSHALL].concat(),
            // naga takes subgroup operations without the directive that enables them, and does not know it.
            "prune" if subgroups => [MATRIX, PRUNE, COMPACT_SUBGROUP].concat(),
            "prune" => [MATRIX, PRUNE, COMPACT_PLAIN].concat(),
            "anneal" => ANNEAL.to_owned(),
            _ => [MATRIX, ESTIMATE].concat(),
        }
    }
}

const MATRIX: &str = include_str!("../../shaders/shared/matrix.wgsl");
const GRAPH: &str = include_str!("../../shaders/shared/graph.wgsl");
const COMPACT_PLAIN: &str = include_str!("../../shaders/shared/compact_plain.wgsl");
const COMPACT_SUBGROUP: &str = include_str!("../../shaders/shared/compact_subgroup.wgsl");
const CLOSURE: &str = include_str!("../../shaders/closure.wgsl");
const WARSHALL: &str = include_str!("../../shaders/warshall.wgsl");
const PRUNE: &str = include_str!("../../shaders/prune.wgsl");
const ESTIMATE: &str = include_str!("../../shaders/estimate.wgsl");
const ANNEAL: &str = include_str!("../../shaders/anneal.wgsl");
