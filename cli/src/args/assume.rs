//! What was typed about what the history does not say: assumptions of the user, as Elle has them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// What is assumed of every key, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KeysArg {
    /// Whoever began after another had ended finds its version of the key or a newer one.
    #[value(name = "linearizable-keys")]
    Linearizable,
    /// Whoever comes later in a session finds the session's version of the key or a newer one.
    #[value(name = "sequential-keys")]
    Sequential,
    /// Whoever reads a version of a key and writes the key writes a newer one.
    #[value(name = "wfr-keys")]
    WritesFollowReads,
}

/// What values are that were read and that nobody wrote, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UnwrittenArg {
    /// They were there before any transaction.
    Initial,
    /// Somebody wrote them whom the history leaves out.
    Unseen,
    /// Nobody can have written them: a thin-air read.
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

/// What repeated values are, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ValuesArg {
    /// A read of one may be of any of its writers.
    Any,
    /// An error.
    Unique,
}

/// What is assumed beyond the history. The verdict is about the level and these assumptions together.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Assumptions")]
pub struct AssumeArgs {
    /// Order the versions of each key by real time, by sessions, or by read-modify-writes, though the level does not demand it.
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    pub assume: Vec<KeysArg>,
    /// Order the versions of every key by a file with a transaction and its number a line.
    #[arg(long, value_name = "FILE")]
    pub transaction_order: Option<PathBuf>,
    /// Put transactions before others by a file with two transactions and, if any, a name a line: the first comes before the second.
    #[arg(long, value_name = "FILE")]
    pub edges: Option<PathBuf>,
    /// What a value is that was read and that nobody wrote; `thin-air` unless given.
    #[arg(long, value_name = "MEANING")]
    pub unwritten: Option<UnwrittenArg>,
    /// Whether values may repeat within a key: `any` unless given, where a read may be of each of its writers; `unique` refuses them.
    #[arg(long, value_name = "VALUES")]
    pub values: Option<ValuesArg>,
}

impl AssumeArgs {
    /// Whether something was assumed.
    pub fn is_asked(&self) -> bool {
        !self.assume.is_empty()
            || self.transaction_order.is_some()
            || self.edges.is_some()
            || self.unwritten.is_some()
    }
}
