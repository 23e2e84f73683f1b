//! Reads what invocations asked where it is needed: the completion does not repeat it, is missing, or may be another's.

use super::datum::scan;
use super::events::{EventId, EventKind, Part, numbered};
use super::processes::Processes;
use super::{Reading, fast};
use crate::cursor::Cursor;
use crate::error::ReadError;

/// Reads the steps of invocations that were passed over and are needed.
pub(super) fn read(reading: Reading<'_>, parts: &mut [Part]) -> Result<(), ReadError> {
    let mut all = parts.iter().flat_map(|part| &part.all);
    if all.all(|event| event.skipped.is_none()) {
        return Ok(());
    }
    for id in needed(parts) {
        read_one(reading, &mut parts[id.part as usize], id.index as usize)?;
    }
    Ok(())
}

/// The invocations whose steps are needed, in the order of the file.
fn needed(parts: &[Part]) -> Vec<EventId> {
    // Of each process the invocation that it waits for, and how many are open.
    let mut open: Vec<(Option<EventId>, u32)> = Vec::new();
    let mut processes = Processes::default();
    let mut needed = Vec::new();
    for (id, event) in numbered(parts) {
        let process = processes.number(event.process) as usize;
        if process >= open.len() {
            open.resize((2 * process).max(64), (None, 0));
        }
        let (waiting, n_open) = &mut open[process];
        if event.kind == EventKind::Invoke {
            *n_open += 1;
            if *n_open > 1 {
                needed.extend(waiting.take());
                needed.push(id);
            } else {
                *waiting = Some(id);
            }
            continue;
        }
        *n_open = n_open.saturating_sub(1);
        if let Some(invoke) = waiting.take()
            && !event.has_steps
        {
            needed.push(invoke);
        }
    }
    needed.extend(open.into_iter().filter_map(|(waiting, _)| waiting));
    needed.sort_unstable();
    needed
}

fn read_one(reading: Reading<'_>, part: &mut Part, index: usize) -> Result<(), ReadError> {
    let event = part.all[index];
    let Some(at) = event.skipped_at() else {
        return Ok(());
    };
    let (input, dialect) = (reading.input, reading.dialect);
    let mut cursor = Cursor { input, at };
    let steps = if let Some(steps) = fast::read_steps(part, &mut cursor, dialect) {
        steps
    } else {
        cursor.at = at;
        let value = scan(&mut cursor, dialect)?;
        let first = part.steps.len() as u32;
        let here = Cursor {
            input,
            at: event.at,
        };
        part.read_steps(&here, Some("txn"), &value)?;
        (first, part.steps.len() as u32)
    };
    part.all[index].steps = steps;
    part.all[index].skipped = None;
    Ok(())
}
