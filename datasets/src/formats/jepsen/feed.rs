//! Gives the steps of each transaction to a builder: those that its completion tells, else those that its invocation asked.

use kingsnake_history::model::{
    CompareOutcome, HistoryBuilder, ListPlace, ObjectKind, Query, Status, Token,
};
use rustc_hash::FxHashMap;

use super::events::{Action, Content, Events, MicroOp};
use super::pairs::Txn;
use super::predicates;
use crate::cursor::Input;
use crate::error::{InputProblem, ReadError};

/// Gives a builder the steps of transactions.
pub(super) struct JepsenFeed<'a> {
    input: Input<'a>,
    events: &'a Events,
    is_list: bool,
    /// What predicates ask.
    queries: Vec<Query>,
    /// Where the builder keeps the lists of each part, by their first items: lists that begin with each other have the same.
    placed: Vec<FxHashMap<u32, ListPlace>>,
}

impl<'a> JepsenFeed<'a> {
    pub(super) fn new(input: Input<'a>, events: &'a Events, is_list: bool) -> Self {
        JepsenFeed {
            input,
            events,
            is_list,
            queries: events.queries(),
            placed: vec![FxHashMap::default(); events.parts.len()],
        }
    }

    /// Adds the steps of a transaction.
    pub(super) fn steps(
        &mut self,
        txn: Txn,
        status: Status,
        builder: &mut HistoryBuilder,
    ) -> Result<(), ReadError> {
        let (input, events, is_list) = (self.input, self.events, self.is_list);
        let completion = txn.completion();
        let source = completion.filter(|&id| events.event(id).has_steps);
        let Some(id) = source.or(txn.invoke()) else {
            return Ok(());
        };
        let event = events.event(id);
        let items = &events.part(id).items;
        for step in events.steps(id) {
            let keeps_read = match status {
                Status::Committed => source.is_some(),
                Status::Unknown => source.is_some() && step.content != Content::Nil,
                Status::Aborted => false,
            };
            if step.action.is_read() && !keeps_read {
                continue;
            }
            if let Some(&kind) = events.objects.get(&step.key)
                && step.action != Action::Predicate
            {
                let fed = feed_object(step, kind, items, builder);
                fed.map_err(|problem| input.error_in_line(event.at, problem))?;
                continue;
            }
            match (step.action, step.content) {
                (Action::Predicate, Content::List(first, end)) => {
                    let (Token::Int(place), false) = (step.key, is_list) else {
                        let words = "a predicate in a history of lists".to_owned();
                        return Err(input.error_in_line(event.at, InputProblem::Unsupported(words)));
                    };
                    let rows = &items[first as usize..end as usize];
                    predicates::feed(&self.queries[place as usize], rows, builder);
                }
                (Action::Insert, Content::One(value)) => {
                    builder.insert(step.key, value);
                }
                (Action::Delete, _) => {
                    builder.delete(step.key, Token::Nil);
                }
                (Action::Read, Content::Nil) if is_list => builder.read_list(step.key, []),
                (Action::Read, Content::Nil) => {
                    builder.read(step.key, Token::Nil);
                }
                (Action::Read, Content::List(first, end)) => {
                    let items = &items[first as usize..end as usize];
                    let placed = &mut self.placed[id.part as usize];
                    read_list(step.key, first, items, placed, builder);
                }
                (Action::Read, Content::One(_)) if is_list => {
                    let words = format!(
                        "key {} is read as a single value in a history of lists",
                        builder.show(step.key)
                    );
                    return Err(input.error_in_line(event.at, InputProblem::Unsupported(words)));
                }
                (Action::Read, Content::One(value)) => {
                    builder.read(step.key, value);
                }
                (Action::Append, Content::One(value)) => {
                    builder.append(step.key, value);
                }
                (Action::Write, Content::One(value)) => {
                    builder.write(step.key, value);
                }
                (Action::Cas, Content::Pair(expected, new)) => {
                    if status == Status::Aborted {
                        builder.failed_compare_and_set(step.key, expected, new);
                    } else {
                        builder.compare_and_set(step.key, expected, new, CompareOutcome::Applied);
                    }
                }
                // Nothing was seen, such as what a predicate read returned.
                (_, Content::Pair(..) | Content::Unwritten | Content::Set(..))
                | (Action::Cas | Action::Predicate | Action::Add | Action::Increment, _) => {}
                (Action::Write | Action::Append | Action::Insert, _) => {
                    builder.write(step.key, Token::Nil);
                }
            }
        }
        Ok(())
    }
}

/// Adds the read of a list whose first item stands at `first` in its part.
fn read_list(
    key: Token,
    first: u32,
    items: &[Token],
    placed: &mut FxHashMap<u32, ListPlace>,
    builder: &mut HistoryBuilder,
) {
    if items.is_empty() {
        builder.read_list(key, []);
        return;
    }
    let place = builder.read_list_like(key, items, placed.get(&first).copied());
    placed.insert(first, place);
}

/// Adds a step of a set or a counter.
fn feed_object(
    step: &MicroOp,
    kind: ObjectKind,
    items: &[Token],
    builder: &mut HistoryBuilder,
) -> Result<(), InputProblem> {
    let key = step.key;
    match (kind, step.action, step.content) {
        (ObjectKind::Set, Action::Add, Content::One(element)) => builder.add(key, element)?,
        (ObjectKind::Set, Action::Read, Content::Nil) => builder.read_set(key, [])?,
        (ObjectKind::Set, Action::Read, Content::Set(first, end)) => {
            let elements = &items[first as usize..end as usize];
            builder.read_set(key, elements.iter().copied())?;
        }
        (ObjectKind::Counter, Action::Increment, Content::One(Token::Int(by))) => {
            builder.increment(key, by)?;
        }
        (ObjectKind::Counter, Action::Read, Content::Nil) => builder.read_counter(key, 0)?,
        (ObjectKind::Counter, Action::Read, Content::One(Token::Int(value))) => {
            builder.read_counter(key, value)?;
        }
        _ => {
            let words = format!(
                "key {} is a {}, and this step is of another kind of key",
                builder.show(key),
                kind.name()
            );
            return Err(InputProblem::Unsupported(words));
        }
    }
    Ok(())
}
