//! What every phase of a run is given, whatever it works on: the budget, the listener to its progress, seeded numbers.

pub mod budget;
pub mod progress;
pub mod rng;
