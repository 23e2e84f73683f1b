//! One reader per file. Each fills a builder and leaves it unfinished.

pub(crate) mod awdit;
pub(crate) mod cobra;
mod cobra_claims;
mod cobra_records;
pub(crate) mod dbcop;
mod grouping;
pub(crate) mod jepsen;
pub(crate) mod kingsnake;
mod kingsnake_predicates;
mod kingsnake_rows;
pub(crate) mod list_append;
pub(crate) mod text;
pub(crate) mod viper;
