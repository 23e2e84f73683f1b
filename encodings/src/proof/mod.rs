//! Proofs that constraints cannot all be met, which other programs can check: cycles as clauses, and LRAT. docs/proofs.md
//! describes the files.

mod check;
mod instance;
mod proving;
mod refusal;
mod write;

pub use check::{Checked, check, same_question};
pub use instance::ProofInstance;
pub use proving::Proving;
pub use refusal::ProofRefusal;
pub use write::{ProofError, instance_path};
