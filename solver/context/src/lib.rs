//! What every phase of a run gets: the budget, the progress listener, seeded random numbers.

pub mod budget;
pub mod progress;
pub mod rng;
