//! Jepsen histories in EDN or JSON: events, of which an invocation and its completion make a transaction.
//!
//! `parts` reads events, by several threads; `pairs` makes transactions of them.

mod datum;
mod events;
mod fast;
mod feed;
mod general;
mod lists;
pub(crate) mod log;
mod pairs;
mod parts;
mod predicates;
mod processes;
mod skipped;
mod survey;
#[cfg(test)]
mod twin;

use kingsnake_history::model::{HistoryBuilder, Token};
use rustc_hash::FxHashSet;

use crate::cursor::Input;
use crate::error::{InputProblem, ReadError};
use crate::split;
use datum::Dialect;
use events::{Action, Content, Events};

/// How events are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Those of the usual form without a tree.
    Fast,
    /// All by the general reader, for tests.
    #[cfg(test)]
    General,
    /// As `Fast`, with a mistake: of two fields of one name the last counts. For tests.
    #[cfg(test)]
    Hasty,
    /// As `Fast`, with a mistake: every part counts as read from where an event begins. For tests.
    #[cfg(test)]
    Trusting,
}

impl Way {
    fn is_hasty(self) -> bool {
        match self {
            Way::Fast => false,
            #[cfg(test)]
            it => it == Way::Hasty,
        }
    }

    fn is_trusting(self) -> bool {
        match self {
            Way::Fast => false,
            #[cfg(test)]
            it => it == Way::Trusting,
        }
    }
}

/// What is read, and how.
#[derive(Clone, Copy)]
struct Reading<'a> {
    input: Input<'a>,
    dialect: Dialect,
    way: Way,
    /// About how many bytes a part has.
    part_size: usize,
}

/// Reads one file.
pub(crate) fn read(
    input: Input<'_>,
    is_json: bool,
    ignore_unwritten: bool,
    builder: &mut HistoryBuilder,
    warnings: &mut Vec<String>,
) -> Result<(), ReadError> {
    let reading = Reading {
        input,
        dialect: if is_json { Dialect::Json } else { Dialect::Edn },
        way: Way::Fast,
        part_size: split::part_size(input.bytes.len()),
    };
    read_by(reading, ignore_unwritten, builder, warnings)
}

fn read_by(
    reading: Reading<'_>,
    ignore_unwritten: bool,
    builder: &mut HistoryBuilder,
    warnings: &mut Vec<String>,
) -> Result<(), ReadError> {
    let input = reading.input;
    let mut parts = parts::read(reading)?;
    if parts.iter().all(|part| part.n_events == 0) {
        return Err(input.empty());
    }
    skipped::read(reading, &mut parts)?;
    input.release(0..input.bytes.len());
    let mut events = Events::new(parts, builder);
    events.judge_others(input, warnings)?;
    if ignore_unwritten {
        events.drop_unwritten(warnings);
    }
    pairs::build(input, &events, builder, warnings)
}

impl Events {
    /// Makes reads of values that no event writes reads of nothing known.
    fn drop_unwritten(&mut self, warnings: &mut Vec<String>) {
        let written: FxHashSet<(Token, Token)> = self
            .all_steps()
            .filter_map(|step| match (step.action, step.content) {
                (Action::Write | Action::Insert, Content::One(value)) => Some((step.key, value)),
                (Action::Cas, Content::Pair(_, new)) => Some((step.key, new)),
                _ => None,
            })
            .chain(self.initial.iter().copied())
            .collect();
        let mut n_dropped = 0;
        for step in self.parts.iter_mut().flat_map(|part| &mut part.steps) {
            if let (Action::Read, Content::One(value)) = (step.action, step.content)
                && !self.objects.contains_key(&step.key)
                && !written.contains(&(step.key, value))
            {
                step.content = Content::Unwritten;
                n_dropped += 1;
            }
        }
        if n_dropped > 0 {
            warnings.push(format!(
                "{n_dropped} reads of values that were never written were ignored"
            ));
        }
    }

    /// Events of other operations: skipped beside transactions, refused where registers could not be judged without.
    fn judge_others(&self, input: Input<'_>, warnings: &mut Vec<String>) -> Result<(), ReadError> {
        let parts = &self.parts;
        let n_nemesis: usize = parts.iter().map(|part| part.n_nemesis).sum();
        if n_nemesis > 0 {
            warnings.push(format!(
                "{n_nemesis} events are of no client and were skipped"
            ));
        }
        let first = parts.iter().find_map(|part| part.first_other.as_ref());
        let Some((at, name)) = first else {
            return Ok(());
        };
        if parts.iter().any(|part| part.has_txns) {
            let n_others: usize = parts.iter().map(|part| part.n_others).sum();
            warnings.push(format!(
                "{n_others} events are of operations such as {name}, which are no transactions, and were skipped"
            ));
            return Ok(());
        }
        let message = format!(
            "operation {name} is no transaction over keys; supported are transactions of :r, :w, :append, :insert, :delete, :add, :inc and :rp, and :read, :write and :cas of registers; for other workloads of Jepsen say which by --workload"
        );
        Err(input.error_in_line(*at, InputProblem::Unsupported(message)))
    }
}
