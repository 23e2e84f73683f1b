//! Long studies: every cell (a history, switches, a seed) is checked in a process of its own, each row is written as it
//! finishes, a stopped study goes on where it stopped, and figures and a page are drawn from the rows.
//!
//! ```text
//! file.toml -recipe-> Recipe -design-> Study -conduct-> rows -summary-> points -figure, report-> SVG, PNG, HTML
//! ```
//!
//! Invariant: `rows.jsonl` holds exactly one line for each finished cell, whatever ended the process.

mod blame;
mod claims;
mod conduct;
mod design;
mod embedded;
mod error;
mod figure;
mod histories;
mod ledger;
mod listener;
mod machine;
mod phases;
mod problems;
mod process;
mod progress;
mod reach;
mod recipe;
mod report;
mod row;
mod rules;
mod settle;
mod start;
mod stating;
mod summary;
mod switches;
mod words;

pub use error::Error;
pub use listener::{Event, Listener};
pub use process::stay_on_leash;
pub use reach::{Reach, reach};
pub use recipe::Measure;
pub use rules::{Refusal, Rules};
pub use start::{Ablation, Caller, Encodings, Request, ablate, encodings};
