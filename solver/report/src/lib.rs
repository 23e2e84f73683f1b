//! What an answer looks like: as JSON, as a page, as a picture; every class of anomaly beside it, and the mistakes of the log.
//!
//! Every output takes an [`Answer`]. Nothing here prints or writes files.

pub mod anomalies;
pub mod answer;
pub mod json;
pub mod lint;
pub mod meaning;
pub mod page;
pub mod picture;

pub use answer::{Answer, Cost, Run, Source};
