//! Random histories for tests of engines: small ones that the oracle can decide, and large ones that are valid by construction.
//!
//! Both come from simulated executions, so that what they show could have happened; a mutation then breaks some of
//! the small ones, and an injected anomaly the large ones. A [`CaseSplit`] is a puzzle on purpose. Everything is a
//! function of the seed.

mod case_split;
mod combined;
mod draft;
mod large;
mod mixed;
mod mutate;
mod parallel;
mod predicates;
mod registers;
mod sketch;
mod small;

pub use case_split::{CaseSplit, OrderedPair};
pub use combined::{COMBINED_LEVELS, Combined, Feature};
pub use kingsnake_history::rng::Rng;
pub use large::{Injected, Large, SerialHistory};
pub use mixed::{small_mixed, small_mixed_rows, small_weak_rows};
pub use parallel::small_parallel;
pub use predicates::{Wrong, small_predicates};
pub use registers::{Registers, registers};
pub use sketch::sketch;
pub use small::{
    Execution, KeyKind, Misread, RowBehaviour, Small, small, small_repeats,
    small_repeats_committed, small_rows, small_rows_misread,
};
