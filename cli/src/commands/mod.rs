//! One file per command; each returns the exit status.

pub mod ablate;
pub mod auto;
pub mod bench;
pub mod check;
pub mod collect;
pub mod completions;
pub mod convert;
pub mod devices;
pub mod diff;
pub mod export;
pub mod generate;
pub mod lint;
pub mod man;
pub mod shrink;
pub mod solve;
pub mod stats;
pub mod verify;
pub mod verify_proof;
pub mod watch;
pub mod workload;
