//! The structures that kernels and host share. A test compares each with its WGSL namesake, by the names and offsets of
//! its fields.

use bytemuck::{Pod, Zeroable};

/// A structure of the kernels, as the host lays it out.
#[cfg(test)]
pub(crate) trait Layout {
    /// Its size in bytes.
    const SIZE: usize;
    /// Its fields' names and offsets.
    const FIELDS: &'static [(&'static str, usize)];
}

/// Declares a structure of 32-bit numbers.
macro_rules! numbers {
    ($(#[$doc:meta])* $name:ident { $($field:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
        pub(crate) struct $name {
            $(pub(crate) $field: u32),+
        }

        #[cfg(test)]
        impl Layout for $name {
            const SIZE: usize = size_of::<$name>();
            const FIELDS: &'static [(&'static str, usize)] =
                &[$((stringify!($field), std::mem::offset_of!($name, $field))),+];
        }
    };
}

/// Declares the parameters of a kernel: the shape of the matrix, and four numbers.
macro_rules! params {
    ($(#[$doc:meta])* $name:ident { $($field:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
        pub(crate) struct $name {
            pub(crate) shape: Shape,
            $(pub(crate) $field: u32),+
        }

        #[cfg(test)]
        impl Layout for $name {
            const SIZE: usize = size_of::<$name>();
            const FIELDS: &'static [(&'static str, usize)] = &[
                ("shape", std::mem::offset_of!($name, shape)),
                $((stringify!($field), std::mem::offset_of!($name, $field))),+
            ];
        }
    };
}

numbers! {
    /// The part of the matrix that a dispatch sees.
    Shape { n_rows, strip_shift, first_strip, n_strips }
}

numbers! {
    /// A strip: where its rows start in the band, in quads; the first row that it does not have; the first level of the
    /// round with a row in it.
    Strip { base, limit, first_level }
}

numbers! {
    /// A run as places, where its readers are, and the runs of its key.
    Run { head_begin, head_commit, last_commit, readers, readers_end, is_unread, first, end }
}

params! {
    /// Of `closure`.
    ClosureParams { first_step, first, end, unused }
}

params! {
    /// Of `prune`.
    PruneParams { first, end, n_runs, mode }
}

params! {
    /// Of `estimate`.
    EstimateParams { first_row, unused, unused_too, unused_also }
}

params! {
    /// Of `probe`.
    ProbeParams { first, end, unused, unused_too }
}

numbers! {
    /// Of `anneal`, `count` and `keep`.
    AnnealParams { first, end, seed, turn, sweep, unused, unused_too, unused_also }
}

numbers! {
    /// Where the lists of a node start.
    Reads { before, after, between, below, above, rest }
}

/// The parameters of any kernel: eight numbers.
pub(crate) type Params = [u32; 8];

/// The bytes of a kernel's parameters.
pub(crate) const PARAMS_BYTES: u64 = size_of::<Params>() as u64;

/// No place.
#[cfg(test)]
pub(crate) const NONE: u32 = u32::MAX;

/// The threads of a workgroup.
pub(crate) const THREADS: u32 = 256;

/// `prune`: the items are listed pairs.
pub(crate) const LISTED: u32 = 1;
/// `prune`: the dispatch is the last that sees its items.
pub(crate) const LAST_BAND: u32 = 2;
/// `prune`: list what paths imply.
pub(crate) const IMPLIED: u32 = 4;
/// `prune`: the listed items are in the upper half of their buffer.
pub(crate) const UPPER: u32 = 8;
/// `prune`: set where the pair's first run comes before the second.
pub(crate) const FIRST_BEFORE: u32 = 1 << 31;
/// `prune`: places in the counters.
pub(crate) const EDGES: usize = 0;
pub(crate) const OPEN: usize = 1;
pub(crate) const VIOLATIONS: usize = 2;
pub(crate) const VIOLATED: usize = 4;
/// `prune`: this many violated pairs are named.
pub(crate) const MOST_VIOLATED: usize = 60;
/// `prune`: the length of the counters.
pub(crate) const COUNTERS: usize = VIOLATED + MOST_VIOLATED;

/// `anneal`, `judge_rows`: the threads of a workgroup.
pub(crate) const GROUP: u32 = 64;
/// `anneal`: a node that could have more intervals stays where it is.
pub(crate) const MOST: u32 = 448;
