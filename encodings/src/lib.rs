//! Puts "can the open constraints be met without a cycle?" to solvers, each under the name `solver/encoding`.

#[cfg(feature = "cadical")]
mod apart;
mod backtrack;
#[cfg(feature = "cadical")]
mod cadical;
#[cfg(feature = "cadical")]
mod cnf;
#[cfg(feature = "cadical")]
mod exec;
#[cfg(feature = "cadical")]
pub mod export;
#[cfg(feature = "cadical")]
mod faults;
#[cfg(feature = "cadical")]
mod grown;
#[cfg(feature = "cadical")]
pub mod import;
mod measured;
#[cfg(all(test, feature = "cadical"))]
mod mutants;
#[cfg(feature = "cadical")]
mod portfolio;
#[cfg_attr(not(feature = "cadical"), allow(dead_code))] // What only writes proofs.
pub mod proof;
#[cfg(feature = "cadical")]
mod propagator;
#[cfg(feature = "cadical")]
mod punctual;
#[cfg(feature = "cadical")]
mod reduce;
// The suite of the back ends' tests, also for the mutants of this crate's own.
#[cfg(test)]
extern crate self as kingsnake_encodings;
#[cfg(all(test, feature = "cadical"))]
#[path = "../tests/support/mod.rs"]
mod support;
#[cfg(feature = "z3")]
mod z3;

pub use backtrack::Backtrack;
#[cfg(feature = "cadical")]
use cadical::Lazy;
#[cfg(feature = "cadical")]
use cadical::plain::Plain;
#[cfg(feature = "cadical")]
use cnf::Encoding;
#[cfg(feature = "cadical")]
use cnf::closure::Closure;
#[cfg(feature = "cadical")]
use cnf::elimination::Elimination;
#[cfg(feature = "cadical")]
use cnf::order_binary::OrderBinary;
#[cfg(feature = "cadical")]
use cnf::order_unary::OrderUnary;
#[cfg(feature = "cadical")]
use exec::Exec;
#[cfg(all(feature = "cadical", any(test, feature = "faults")))]
#[doc(hidden)]
pub use faults::Faults;
pub use kingsnake_graph::cool::CoolerSource;
use kingsnake_graph::decide::Backend;
use measured::Measured;
#[cfg(feature = "cadical")]
use portfolio::Portfolio;
#[cfg(feature = "cadical")]
pub use propagator::{
    AnnealMoment, AnnealTrace, AnnealWay, Decide, FirstPhase, Propagator, PropagatorOptions, trace,
};
#[cfg(feature = "cadical")]
use punctual::Punctual;
#[cfg(feature = "cadical")]
pub use punctual::left_behind;
use thiserror::Error;
#[cfg(feature = "z3")]
use z3::Z3;

/// Options of a back end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackendOptions {
    /// The same seed gives the same run.
    pub seed: u32,
    /// For `cadical/propagator`.
    #[cfg(feature = "cadical")]
    pub propagator: PropagatorOptions,
    /// Where a device comes from that cools for `cadical/propagator`; without one the CPU does.
    pub cooler: Option<CoolerSource>,
}

#[cfg(feature = "cadical")]
fn plain<E: Encoding + Sync + 'static>(options: &BackendOptions) -> Box<dyn Backend> {
    let make: Make = |options| Box::new(Measured(Plain::<E>::new(options)));
    Box::new(Punctual::new(make, options))
}

pub(crate) type Make = fn(&BackendOptions) -> Box<dyn Backend>;

const TABLE: &[(&str, Make)] = &[
    #[cfg(feature = "cadical")]
    (propagator::NAME, |options| {
        Box::new(Measured(Propagator::new(options)))
    }),
    #[cfg(feature = "cadical")]
    (cadical::lazy::NAME, |options| {
        Box::new(Measured(Lazy::new(options)))
    }),
    #[cfg(feature = "cadical")]
    (Closure::NAME, |options| plain::<Closure>(options)),
    #[cfg(feature = "cadical")]
    (OrderUnary::NAME, |options| plain::<OrderUnary>(options)),
    #[cfg(feature = "cadical")]
    (OrderBinary::NAME, |options| plain::<OrderBinary>(options)),
    #[cfg(feature = "cadical")]
    (Elimination::NAME, |options| plain::<Elimination>(options)),
    #[cfg(feature = "z3")]
    (z3::DIFFERENCE.name, |options| {
        let make: Make = |options| Box::new(Measured(Z3::new(z3::DIFFERENCE, options)));
        Box::new(Punctual::new(make, options))
    }),
    #[cfg(feature = "z3")]
    (z3::ORDER.name, |options| {
        let make: Make = |options| Box::new(Measured(Z3::new(z3::ORDER, options)));
        Box::new(Punctual::new(make, options))
    }),
    #[cfg(feature = "z3")]
    (z3::PROPAGATOR.name, |options| {
        let make: Make = |options| Box::new(Measured(Z3::new(z3::PROPAGATOR, options)));
        Box::new(Punctual::new(make, options))
    }),
    #[cfg(feature = "z3")]
    (z3::GSI.name, |options| {
        let make: Make = |options| Box::new(Measured(Z3::new(z3::GSI, options)));
        Box::new(Punctual::new(make, options))
    }),
    #[cfg(feature = "z3")]
    (z3::ASI.name, |options| {
        let make: Make = |options| Box::new(Measured(Z3::new(z3::ASI, options)));
        Box::new(Punctual::new(make, options))
    }),
    #[cfg(feature = "cadical")]
    (portfolio::NAME, |options| {
        Box::new(Measured(Portfolio::new(options)))
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

/// There is no such back end, and why.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct UnknownBackend(String);

/// The back end of this name: one of [`BACKENDS`], `portfolio:A,B` of two of them, or another program as `exec:COMMAND`.
pub fn backend(name: &str, options: &BackendOptions) -> Result<Box<dyn Backend>, UnknownBackend> {
    if let Some((_, make)) = TABLE.iter().find(|(known, _)| *known == name) {
        return Ok(make(options));
    }
    #[cfg(feature = "cadical")]
    if let Some(exec) = Exec::named(name, options) {
        return Ok(Box::new(Measured(exec?)));
    }
    #[cfg(feature = "cadical")]
    if let Some((portfolio::NAME, members)) = name.split_once(':') {
        let portfolio = Portfolio::named(name, members, options)?;
        return Ok(Box::new(Measured(portfolio)));
    }
    Err(UnknownBackend(
        if cfg!(not(feature = "z3")) && name.starts_with("z3/") {
            format!("{name} needs Z3, and this program was built without it")
        } else if cfg!(not(feature = "cadical")) {
            format!(
                "there is no back end {name:?} without the feature cadical; there is {}",
                BACKENDS.join(", ")
            )
        } else {
            format!(
                "there is no back end {name:?}; there are {}, and exec:COMMAND for another program",
                BACKENDS.join(", ")
            )
        },
    ))
}

#[cfg(all(test, feature = "cadical"))]
mod tests {
    use super::*;

    #[test]
    fn every_back_end_answers_to_its_name() {
        for &name in BACKENDS {
            let backend = backend(name, &BackendOptions::default());
            assert_eq!(backend.map(|b| b.name().to_owned()), Ok(name.to_owned()));
        }
    }

    fn refusal(name: &str) -> String {
        match backend(name, &BackendOptions::default()) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn an_unknown_name_is_told_the_known_ones() {
        assert!(refusal("cadical/none").contains("cadical/propagator"));
    }

    #[test]
    fn a_portfolio_is_of_two_known_back_ends() {
        assert_eq!(refusal("portfolio:cadical/lazy,search/backtrack"), "");
        assert_eq!(refusal("portfolio:cadical/lazy+search/backtrack"), "");
        assert!(refusal("portfolio:cadical/lazy").contains("of two"));
        assert!(refusal("portfolio:cadical/lazy,none").contains("no back end \"none\""));
        assert!(refusal("portfolio:portfolio,cadical/lazy").contains("cannot hold"));
    }

    #[cfg(not(feature = "z3"))]
    #[test]
    fn without_z3_its_names_say_so() {
        assert!(refusal("z3/order").contains("built without"));
        assert!(refusal("portfolio:z3/order,cadical/lazy").contains("built without"));
    }
}
