//! Long studies: every cell (a history, switches, a seed) is checked in a process of its own, each row is written when
//! it finishes, an interrupted study resumes, and figures and a page are drawn from the rows.
//!
//! ```text
//! file.toml -recipe-> Recipe -design-> Study -conduct-> rows -summary-> points -figure, report-> SVG, HTML
//! ```
//!
//! Cells that are no study (many histories, a hunt) run as a [`batch`]. Cells may run elsewhere: `rows.d/` takes their rows, one file per row, and `slurm` submits them to a cluster.
//!
//! Invariant: `rows.jsonl` has exactly one line per finished cell, however the process ended.

mod again;
mod anneal;
mod batch;
mod beside;
mod blame;
mod caveats;
mod cell;
mod cells;
#[cfg(target_os = "linux")]
mod cgroup;
mod claims;
mod conduct;
mod design;
mod embedded;
mod error;
mod figure;
mod histories;
mod ledger;
mod listener;
pub mod machine;
mod phases;
mod problems;
mod process;
mod progress;
mod reach;
mod recipe;
mod report;
mod row;
mod rowfiles;
mod rules;
mod settle;
mod slurm;
mod start;
mod stating;
mod summary;
mod switches;
mod watching;
mod words;

pub use anneal::{AnnealRun, AnnealStudy};
pub use batch::{Batch, BatchEnded, BatchOptions, Item, batch};
pub use conduct::{memory as memory_each, threads as threads_each};
pub use error::Error;
pub use ledger::{content as fingerprint, content_within as fingerprint_within};
pub use listener::{StudyEvent, StudyListener};
pub use process::{ChildEnding, EndedChild, Limits, is_passing, run as run_process, stay_on_leash};
pub use reach::{ReachStudy, reach};
pub use recipe::Measure;
pub use row::command;
pub use rowfiles::id as short_name;
pub use rules::{RuleRefusal, Rules};
pub use slurm::Slurm;
pub use start::{Ablation, Caller, Encodings, Mode, StudyRequest, ablate, encodings};
pub use watching::{WatchStudy, watching};
