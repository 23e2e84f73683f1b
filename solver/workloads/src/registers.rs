//! Locks as registers: to acquire one is a compare-and-set from free to held, to release it one back.

use kingsnake_history::model::{
    BuildError, CompareOutcome, History, HistoryBuilder, Status, Token,
};
use kingsnake_history::operations::Operation;
use thiserror::Error;

/// A log that cannot be made a history.
#[derive(Debug, Error)]
pub enum NoLock {
    /// An operation that a lock does not have.
    #[error("operation {name} is {f}, and a lock has acquire and release")]
    Other {
        /// Its number.
        name: i64,
        /// Its name.
        f: String,
    },
    /// The operations make no history.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// The history of a lock, to be checked for linearizability. `is_owned`: only the holder may release it.
pub fn lock(log: &[Operation], is_owned: bool) -> Result<History, NoLock> {
    let mut builder = HistoryBuilder::new();
    let free = builder.text("free");
    builder.initial_everywhere(free);
    for (at, op) in log.iter().enumerate() {
        let key = match op.input.items() {
            Some([key, _]) => builder.text(&key.to_string()),
            _ => builder.text("lock"),
        };
        let held = match op.process {
            Some(process) if is_owned => builder.text(&format!("held by {process}")),
            _ => builder.text("held"),
        };
        let (expected, new) = match op.f.as_str() {
            "acquire" => (free, held),
            "release" => (held, free),
            _ => {
                return Err(NoLock::Other {
                    name: op.name,
                    f: op.f.clone(),
                });
            }
        };
        // Operations of unknown end overlap what their process does next, so each is a session.
        let session = match (op.process, op.status) {
            (Some(process), Status::Committed | Status::Aborted) => Token::Int(process),
            _ => builder.text(&format!("alone {at}")),
        };
        let session = builder.session(session);
        builder.begin(session, Token::Int(op.name), op.status)?;
        let is_over = op.status != Status::Unknown;
        let end = op.completed.filter(|_| is_over);
        builder.times(Some(op.invoked as i64), end.map(|end| end as i64));
        if op.is_failed() {
            builder.failed_compare_and_set(key, expected, new);
        } else {
            builder.compare_and_set(key, expected, new, CompareOutcome::Applied);
        }
    }
    Ok(builder.finish()?)
}
