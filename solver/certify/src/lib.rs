//! Checks answers again, independently of the code that found them.

pub mod adya;
pub mod along;
mod assumed;
mod clock;
mod conditions;
pub mod counterexample;
pub mod dependencies;
mod families;
mod findings;
mod graphs;
pub mod linearizable;
mod meaning;
pub mod order;
pub mod order_sources;
mod promise;
mod refusal;
pub mod refutation;
mod results;
mod rows;
mod sorted;
mod standing;
mod table;
mod taken;
pub mod weak;

pub use meaning::{Meaning, Traces};
pub use promise::{refute, verify};
pub use refusal::Refusal;
