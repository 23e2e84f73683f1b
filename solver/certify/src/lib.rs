//! Checks answers again, with code that knows nothing of how they were found.

pub mod adya;
mod adya_reading;
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
pub mod refutation;
mod rows;
mod sorted;
mod table;
pub mod weak;
pub mod weak_cycle;
mod weak_reads;
mod weak_sees;

pub use meaning::Meaning;
