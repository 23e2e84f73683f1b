//! Back ends on `CaDiCaL` without a propagator: `lazy`, which adds the cycles it meets as clauses, and `plain`, one back end
//! for every encoding in [`cnf`](crate::cnf).

mod core;
mod kept;
pub(crate) mod lazy;
pub(crate) mod plain;
pub(crate) mod solver;
mod watched;

pub(crate) use lazy::Lazy;
pub(crate) use watched::search_apart;
