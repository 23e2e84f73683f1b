//! Options for assumptions that the history does not state, as Elle has them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// An assumption about every key, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KeysArg {
    /// A transaction that begins after another ended sees its version of the key or a newer one.
    #[value(name = "linearizable-keys")]
    Linearizable,
    /// A later transaction of a session sees the session's version of the key or a newer one.
    #[value(name = "sequential-keys")]
    Sequential,
    /// A transaction that reads a version of a key and writes the key writes a newer version.
    #[value(name = "wfr-keys")]
    WritesFollowReads,
}

/// How to treat a read value with no writer, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UnwrittenArg {
    /// It existed before any transaction.
    Initial,
    /// It was written by a transaction that is missing from the history.
    Unseen,
    /// It is a thin-air read: a violation.
    ThinAir,
}

impl UnwrittenArg {
    /// The name, as typed.
    pub fn name(self) -> &'static str {
        match self {
            UnwrittenArg::Initial => "initial",
            UnwrittenArg::Unseen => "unseen",
            UnwrittenArg::ThinAir => "thin-air",
        }
    }
}

/// How to treat repeated values, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ValuesArg {
    /// A read may be of any writer of the value.
    Any,
    /// Repeated values are an error.
    Unique,
}

/// Assumptions beyond the history. The verdict is about the level and these assumptions together.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Assumptions")]
pub struct AssumeArgs {
    /// Order the versions of each key by real time, by sessions, or by read-modify-writes, although the level does not require it.
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    pub assume: Vec<KeysArg>,
    /// Order the versions of every key by a file with one transaction and its number per line.
    #[arg(long, value_name = "FILE")]
    pub transaction_order: Option<PathBuf>,
    /// Order transactions by a file with two transactions and an optional name per line: the first comes before the second.
    #[arg(long, value_name = "FILE")]
    pub edges: Option<PathBuf>,
    /// How to treat a read value with no writer [default: thin-air].
    #[arg(long, value_name = "MEANING")]
    pub unwritten: Option<UnwrittenArg>,
    /// Whether values may repeat within a key: with `any` a read may be of any of its writers; `unique` refuses them [default: any].
    #[arg(long, value_name = "VALUES")]
    pub values: Option<ValuesArg>,
}

impl AssumeArgs {
    /// Whether any assumption was given.
    pub fn is_asked(&self) -> bool {
        !self.assume.is_empty()
            || self.transaction_order.is_some()
            || self.edges.is_some()
            || self.unwritten.is_some()
    }
}
