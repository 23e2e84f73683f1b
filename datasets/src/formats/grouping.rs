//! Puts lines of interleaved transactions in order: transaction after transaction, each where its first line stood.

use kingsnake_history::model::BuildError;
use rustc_hash::FxHashMap;

use crate::cursor::{Cursor, Input};
use crate::error::ReadError;

/// Whose line it is and where it stands. A line without a transaction stays where it is.
pub(super) struct Owner {
    pub(super) txn: Option<i64>,
    pub(super) session: i64,
    pub(super) at: usize,
}

/// The places of all lines from the cursor on, grouped.
pub(super) fn group(
    mut cursor: Cursor<'_>,
    mut next: impl FnMut(&mut Cursor<'_>) -> Result<Option<Owner>, ReadError>,
) -> Result<Vec<usize>, ReadError> {
    let input: Input<'_> = cursor.input;
    let mut first_line: FxHashMap<i64, (usize, i64)> = FxHashMap::default();
    let mut lines = Vec::new();
    while let Some(Owner { txn, session, at }) = next(&mut cursor)? {
        let Some(txn) = txn else {
            lines.push((at, at));
            continue;
        };
        let (first, first_session) = *first_line.entry(txn).or_insert((at, session));
        if first_session != session {
            let error = BuildError::TwoSessions {
                txn: txn.to_string(),
                first: first_session.to_string(),
                second: session.to_string(),
            };
            return Err(input.error_in_line(at, error));
        }
        lines.push((first, at));
    }
    lines.sort_unstable();
    Ok(lines.into_iter().map(|(_, at)| at).collect())
}
