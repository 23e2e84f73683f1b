//! One reader a file. Each fills a builder and leaves it unfinished.

pub(crate) mod cobra;
mod cobra_claims;
pub(crate) mod dbcop;
pub(crate) mod kingsnake;
pub(crate) mod text;
