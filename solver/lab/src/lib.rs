//! The laboratory: a brute-force [`oracle`], the levels by their [`axioms`], and [`random`] histories, for tests of engines. No part of a check links it.

pub mod adya;
pub mod axioms;
pub mod oracle;
pub mod parallel;
pub mod random;
pub mod registers;
pub mod stream;
