//! Names and words for evidence: the name of an anomaly, and the story of a counterexample.
//!
//! Everything is made from the evidence and the history alone, as the checker of answers reads it; how the evidence was found is not
//! known here.

mod advice;
mod aggregates;
mod anomalies;
mod assumed;
mod conditions;
mod direct;
mod findings;
mod involved;
mod labels;
mod name;
mod notes;
mod noticed;
mod recorded;
mod story;
mod words;

pub use advice::{causes, definition, promised};
pub use anomalies::{Anomalies, AnomalyClass, Collector, local_class};
pub use findings::changed_by;
pub use labels::Labels;
pub use name::{AnomalyName, local_name, name, name_by};
pub use notes::{beside, meanwhile};
pub use recorded::{
    RecordedWords, author, differing, expected_value, recorded_keys, recorded_txns,
};
pub use story::{Story, StoryLine, story, story_by, story_of};

use kingsnake_certify as certify;
use kingsnake_history::{lattice, level, model, promise, verdict};
