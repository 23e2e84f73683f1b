//! Cells that failed for a reason that may have passed, such as a signal or a full disk, run again when their directory
//! is opened again, a limited number of times.
//!
//! A row's field `attempt` is 0 where it ended by itself. Otherwise it counts how often its cell has failed so.

use std::collections::BTreeMap;

use kingsnake_text::count;

/// After this many failures a cell keeps its row.
const MOST_ATTEMPTS: u32 = 3;

/// Whether a row's cell runs again.
pub fn is_due(attempt: u32) -> bool {
    (1..MOST_ATTEMPTS).contains(&attempt)
}

/// Whether a row stands.
#[allow(clippy::trivially_copy_pass_by_ref)] // As serde calls it.
pub fn is_settled(attempt: &u32) -> bool {
    *attempt == 0
}

/// The cells that run again, with how often they have failed.
#[derive(Debug, Default)]
pub struct Again(BTreeMap<String, u32>);

impl Again {
    /// Notes a cell.
    pub fn note(&mut self, cell: String, attempt: u32) {
        self.0.insert(cell, attempt);
    }

    /// How often a cell has failed.
    pub fn attempts(&self, cell: &str) -> u32 {
        self.0.get(cell).copied().unwrap_or(0)
    }

    /// Whether a cell is noted; it is not any more.
    pub fn take(&mut self, cell: &str) -> bool {
        self.0.remove(cell).is_some()
    }

    /// The message about them, if there are any.
    pub fn words(&self) -> Option<String> {
        let n_cells = self.0.len();
        (n_cells > 0).then(|| {
            format!(
                "tried again: {} ended by a signal, or by a full or broken disk",
                count(n_cells, "cell")
            )
        })
    }
}
