//! Reachability in an acyclic graph: as bits ([`Dense`]) or as vector clocks ([`Clocks`]).

mod chains;
mod dag;
mod dense;
#[cfg(test)]
mod twins;

pub use chains::Clocks;
pub(crate) use chains::raise;
pub use dag::{Cyclic, Dag, places};
pub use dense::Dense;
