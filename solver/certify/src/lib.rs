//! Checks answers again, with code that knows nothing of how they were found.

pub mod adya;
mod adya_reading;
mod adya_walk;
mod adya_window;
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
mod refusal;
pub mod refutation;
mod results;
mod rows;
mod sorted;
mod standing;
mod table;
pub mod weak;
mod weak_absents;
mod weak_blocks;
pub mod weak_cycle;
mod weak_orders;
mod weak_past;
pub mod weak_plain;
mod weak_reads;
mod weak_sees;
mod weak_writers;

pub use meaning::{Meaning, Traces};
pub use refusal::Refusal;
