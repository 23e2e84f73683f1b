//! The laboratory: a brute-force [`oracle`] and [`random`] histories, for tests of engines. No part of a check links it.

pub mod adya;
pub mod oracle;
pub mod random;
pub mod registers;
