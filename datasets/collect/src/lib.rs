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
mod address;
mod collection;
mod conditions;
mod driver;
mod fault;
mod journal;
mod merge;
mod meta;
mod mix;
mod read;
mod script;
mod selftest;
pub mod server;
mod sql;
mod tail;
mod timeline;
mod workload;

pub use adapter::{
    Aggregate, Chosen, DELETED, Database, DatabaseSession, Failure, Initially, Key, OrderBy,
    Resolution, SessionShare, SqlAnswer, StoredCell, VersionLog, Wrote,
};
pub use adapters::broken::{Broken, Mistake};
pub use adapters::{
    ADAPTERS, Adapter, Nodes, PromisedLevel, ReadsAt, Target, UnknownDatabase, adapter,
};
pub use address::{AddressError, redacted, resolve};
pub use collection::{
    Beside, CollectError, CollectRequest, Collected, Events, HISTORY, is_held, merge, run_only,
};
pub use driver::{Clock, CollectRun, StepTold, Tally};
pub use fault::{Schedule, ServerFault};
pub use merge::{MergeFinding, Merged};
pub use meta::Meta;
pub use mix::BadMix;
pub use read::BadJournal;
pub use script::{BadScript, ClassicScript, SCRIPTS, Script};
pub use selftest::{AdapterSelfTest, self_test};
pub use sql::{BadSql, SqlFile};
pub use tail::JournalTail;
pub use timeline::CollectTimeline;
pub use workload::{BadWorkload, CollectEntry, LOADS, Load, names};
