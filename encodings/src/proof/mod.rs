//! Proofs that constraints cannot all be met, which other programs can check: cycles as clauses, and LRAT. docs/proofs.md
//! describes the files.

mod check;
mod instance;
#[cfg(feature = "cadical")]
mod proving;
mod refusal;
#[cfg(feature = "cadical")]
mod write;

pub use check::{Checked, check, same_question};
pub use instance::{ProofInstance, instance_path};
#[cfg(feature = "cadical")]
pub use proving::Proving;
pub use refusal::ProofRefusal;
#[cfg(feature = "cadical")]
pub use write::ProofError;
