//! Runs workloads on real databases and records what their clients saw, as histories to check.
//!
//! ```text
//! Load -driver-> journals (one a session) -merge, with the database's log-> history.jsonl
//! ```
//!
//! An adapter is one file of `adapters`, behind a cargo feature of its own; the `driver` knows none of them. Nothing here
//! decides whether a history is valid.

mod adapter;
mod adapters;
mod collection;
mod conditions;
mod driver;
mod fault;
mod journal;
mod merge;
mod meta;
mod read;
mod script;
mod selftest;
pub mod server;
mod timeline;
mod workload;

pub use adapter::{
    Aggregate, Cell, Chosen, DELETED, Database, Failure, Initially, Key, Log, OrderBy, Resolution,
    Session, Wrote,
};
pub use adapters::broken::{Broken, Mistake};
pub use adapters::{ADAPTERS, Adapter, Promise, Target, adapter};
pub use collection::{Beside, CollectError, Collected, Events, HISTORY, Request, merge, run_only};
pub use driver::{Clock, Run, Tally};
pub use fault::{Fault, Schedule};
pub use merge::{Finding, Merged};
pub use meta::Meta;
pub use read::BadJournal;
pub use script::BadScript;
pub use selftest::{SelfTest, self_test};
pub use timeline::Timeline;
pub use workload::{BadWorkload, Entry, LOADS, Load, names};
