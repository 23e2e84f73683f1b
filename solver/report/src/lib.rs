//! The forms of an answer: JSON, a page, a picture; every class of anomaly, and probable logging mistakes.
//!
//! Every output takes an [`Answer`]. Nothing here prints or writes files.

pub mod anomalies;
pub mod answer;
pub mod json;
pub mod lint;
pub mod meaning;
pub mod page;
pub mod picture;

pub use answer::{Answer, CommandRun, Cost, Source};
