//! Puts "can the open constraints be met without a cycle?" to solvers, each under the name `solver/encoding`.

mod backtrack;
mod cadical;
mod cnf;
pub mod export;
mod measured;
#[cfg(test)]
mod mutants;
mod propagator;
mod reduce;
// The suite of the back ends' tests, also for the mutants of this crate's own.
#[cfg(test)]
extern crate self as kingsnake_encodings;
#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod support;
#[cfg(feature = "z3")]
mod z3;

pub use backtrack::Backtrack;
pub use cadical::Lazy;
use cadical::plain::Plain;
use cnf::Encoding;
use cnf::closure::Closure;
use cnf::elimination::Elimination;
use cnf::order_binary::OrderBinary;
use cnf::order_unary::OrderUnary;
use kingsnake_solver::decide::Backend;
use measured::Measured;
pub use propagator::{Decide, Faults, Phase, Propagator, PropagatorOptions};
#[cfg(feature = "z3")]
pub use z3::{Z3, Z3Faults};

/// What may be chosen about a back end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The same seed gives the same run.
    pub seed: u32,
    /// For `cadical/propagator`.
    pub propagator: PropagatorOptions,
}

fn plain<E: Encoding + Sync + 'static>(options: &Options) -> Box<dyn Backend> {
    Box::new(Measured(Plain::<E>::new(options)))
}

type Make = fn(&Options) -> Box<dyn Backend>;

const TABLE: &[(&str, Make)] = &[
    (propagator::NAME, |options| {
        Box::new(Measured(Propagator::new(options)))
    }),
    (cadical::lazy::NAME, |options| {
        Box::new(Measured(Lazy::new(options)))
    }),
    (Closure::NAME, |options| plain::<Closure>(options)),
    (OrderUnary::NAME, |options| plain::<OrderUnary>(options)),
    (OrderBinary::NAME, |options| plain::<OrderBinary>(options)),
    (Elimination::NAME, |options| plain::<Elimination>(options)),
    #[cfg(feature = "z3")]
    (z3::DIFFERENCE.name, |options| {
        Box::new(Measured(Z3::new(z3::DIFFERENCE, options)))
    }),
    #[cfg(feature = "z3")]
    (z3::ORDER.name, |options| {
        Box::new(Measured(Z3::new(z3::ORDER, options)))
    }),
    #[cfg(feature = "z3")]
    (z3::PROPAGATOR.name, |options| {
        Box::new(Measured(Z3::new(z3::PROPAGATOR, options)))
    }),
    #[cfg(feature = "z3")]
    (z3::GSI.name, |options| {
        Box::new(Measured(Z3::new(z3::GSI, options)))
    }),
    #[cfg(feature = "z3")]
    (z3::ASI.name, |options| {
        Box::new(Measured(Z3::new(z3::ASI, options)))
    }),
    (backtrack::NAME, |_| Box::new(Measured(Backtrack))),
];

/// The names of all back ends; the first is the default.
pub const BACKENDS: &[&str] = &{
    let mut names = [""; TABLE.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = TABLE[i].0;
        i += 1;
    }
    names
};

/// The back end of this name.
pub fn backend(name: &str, options: &Options) -> Option<Box<dyn Backend>> {
    TABLE
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, make)| make(options))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_back_end_answers_to_its_name() {
        for &name in BACKENDS {
            let backend = backend(name, &Options::default());
            assert_eq!(backend.map(|b| b.name().to_owned()).as_deref(), Some(name));
        }
        assert!(backend("cadical/none", &Options::default()).is_none());
    }
}
