//! Cobra's logs: a directory of `T<n>.log`, one file per session, big-endian records without padding.
//!
//! `S txn` · `C txn` · `W write_id key value` · `R writer_txn write_id key value`, a letter and 64-bit fields.
//! A version is known by its write id; where write ids repeat, by its value.

use kingsnake_history::model::{HistoryBuilder, NumberOp, Op, SessionId, Status, Token};
use rustc_hash::FxHashMap;

use super::cobra_claims::Claims;
use super::cobra_records::{CobraRecord, Layout, in_layout, walk};
use crate::cursor::Input;
use crate::error::{InputProblem, ReadError};
use crate::format::Format;

/// The writer and write id of a value that was there before the run.
pub(crate) const INITIAL: i64 = 0xbebe_ebee;
/// The writer and write id of a key that did not exist before the run.
pub(crate) const ABSENT: i64 = 0xdead_beef;
/// The write ids of versions whose writer the producer has already forgotten.
const COLLECTED: [i64; 2] = [0x2333_2333, 0x6666_6666];

/// One session's log.
pub(crate) struct SessionLog<'a> {
    pub(crate) session: i64,
    pub(crate) input: Input<'a>,
}

/// The identity of a version within its key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity {
    /// The write id, unless write ids repeat; then the value.
    Detect,
    /// The value.
    Value,
}

/// Reads all logs of one history.
pub(crate) fn read(
    logs: &[SessionLog<'_>],
    identity: Identity,
    builder: &mut HistoryBuilder,
    warnings: &mut Vec<String>,
) -> Result<Format, ReadError> {
    in_layout(logs, |layout| {
        for log in logs.iter().filter(|log| log.input.bytes.is_empty()) {
            warnings.push(format!("session {} is empty", log.session));
        }
        if identity == Identity::Detect {
            let ids_repeat = read_by_write_id(logs, layout, builder, warnings)?;
            if !ids_repeat {
                return Ok(Format::Cobra);
            }
            warnings
                .push("write ids repeat, so versions are told apart by their values".to_owned());
        }
        *builder = HistoryBuilder::new();
        read_by_value(logs, layout, builder)?;
        Ok(Format::CobraValues)
    })
}

/// Reads with write ids for values; tells whether some version was written twice.
fn read_by_write_id(
    logs: &[SessionLog<'_>],
    layout: Layout,
    builder: &mut HistoryBuilder,
    warnings: &mut Vec<String>,
) -> Result<bool, ReadError> {
    reserve(logs, builder);
    for initial in [INITIAL, ABSENT].into_iter().chain(COLLECTED) {
        builder.initial_everywhere(Token::Int(initial));
    }
    let mut feed = CobraFeed::default();
    feed.claims.reserve(n_ops(logs) / 2);
    for log in logs {
        let session = builder.session(Token::Int(log.session));
        walk(log.input, layout, |record, at| {
            match record {
                CobraRecord::Start { txn, .. } => feed.txn = txn,
                CobraRecord::Commit { .. } => feed.flush(log.input, builder),
                CobraRecord::Write { id, key, .. } => {
                    feed.put(true, key, id, OperationOrigin { at, claim: None });
                    return Ok(());
                }
                CobraRecord::Read {
                    writer,
                    id,
                    key,
                    value,
                } => {
                    let is_initial = is_reserved(id) || is_reserved(writer);
                    let claim = (!is_initial).then_some(writer);
                    feed.put(false, key, id, OperationOrigin { at, claim });
                    if is_initial {
                        check_initial(&mut feed.claims, log.input, at, [writer, id, key, value]);
                    }
                    return Ok(());
                }
            }
            mark(builder, session, record, log.input, at)
        })?;
        feed.flush(log.input, builder);
    }
    let mut claims = feed.claims;
    if claims.ids_repeat {
        return Ok(true);
    }
    if let Some(error) = claims.contradiction.take() {
        return Err(error);
    }
    if claims.n_unwritten() > 0 {
        check_keys(logs, layout)?;
    }
    claims.report(warnings);
    Ok(false)
}

pub(crate) fn is_reserved(id: i64) -> bool {
    id == INITIAL || id == ABSENT || COLLECTED.contains(&id)
}

/// Where an operation stands, and the writer that it names if it reads what a transaction wrote.
#[derive(Clone, Copy)]
struct OperationOrigin {
    at: usize,
    claim: Option<i64>,
}

/// The operations of the open transaction, which go to the builder together.
#[derive(Default)]
struct CobraFeed {
    txn: i64,
    run: Vec<NumberOp>,
    origins: Vec<OperationOrigin>,
    claims: Claims,
}

impl CobraFeed {
    #[inline]
    fn put(&mut self, is_write: bool, key: i64, value: i64, origin: OperationOrigin) {
        self.run.push(NumberOp {
            is_write,
            key,
            value,
        });
        self.origins.push(origin);
    }

    fn flush(&mut self, input: Input<'_>, builder: &mut HistoryBuilder) {
        if self.run.is_empty() {
            return;
        }
        let (txn, claims) = (self.txn, &mut self.claims);
        for ((&op, asked), origin) in builder
            .extend(&self.run)
            .iter()
            .zip(&self.run)
            .zip(&self.origins)
        {
            let id = asked.value;
            match (op, origin.claim) {
                (Op::Write { value, .. }, _) => {
                    if is_reserved(id) {
                        claims.contradict(input, origin.at, || {
                            format!("transaction {txn} writes with id {id}, which is reserved for the initial state")
                        });
                    }
                    claims.written(value, txn, input, origin.at);
                }
                (Op::Read { value, .. }, Some(writer)) => {
                    claims.claimed(value, writer, input, origin.at);
                }
                _ => {}
            }
        }
        self.run.clear();
        self.origins.clear();
    }
}

/// A read of the state before the log: its two ids must say the same.
fn check_initial(
    claims: &mut Claims,
    input: Input<'_>,
    at: usize,
    [writer, id, key, value]: [i64; 4],
) {
    if COLLECTED.contains(&id) {
        let first = *claims.collected.entry(key).or_insert(value);
        if first != value {
            claims.contradict(input, at, || {
                format!(
                    "two garbage-collected versions of key {key} were read, and their order is lost"
                )
            });
        }
    } else if !is_reserved(id) || !is_reserved(writer) {
        claims.contradict(input, at, || {
            format!("a read of key {key} names writer {writer} and write id {id}, of which one is the initial state and the other is not")
        });
    }
}

/// A write id that is claimed for one key and written to another.
fn check_keys(logs: &[SessionLog<'_>], layout: Layout) -> Result<(), ReadError> {
    let mut key_of = FxHashMap::default();
    for log in logs {
        walk(log.input, layout, |record, _| {
            if let CobraRecord::Write { id, key, .. } = record {
                key_of.insert(id, key);
            }
            Ok(())
        })?;
    }
    for log in logs {
        walk(log.input, layout, |record, at| match record {
            CobraRecord::Read { id, key, .. } => match key_of.get(&id) {
                Some(&other) if other != key => Err(log.input.error_at(
                    at,
                    InputProblem::Contradiction(format!(
                        "a read of key {key} names write id {id}, which wrote key {other}"
                    )),
                )),
                _ => Ok(()),
            },
            _ => Ok(()),
        })?;
    }
    Ok(())
}

fn read_by_value(
    logs: &[SessionLog<'_>],
    layout: Layout,
    builder: &mut HistoryBuilder,
) -> Result<(), ReadError> {
    reserve(logs, builder);
    for log in logs {
        let session = builder.session(Token::Int(log.session));
        walk(log.input, layout, |record, at| {
            match record {
                CobraRecord::Write { key, value, .. } => {
                    builder.write(Token::Int(key), Token::Int(value));
                }
                CobraRecord::Read { id, key, value, .. } => {
                    if is_reserved(id) {
                        builder.initial(Token::Int(key), Token::Int(value));
                    }
                    builder.read(Token::Int(key), Token::Int(value));
                }
                CobraRecord::Start { .. } | CobraRecord::Commit { .. } => {
                    return mark(builder, session, record, log.input, at);
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Begins or ends a transaction.
fn mark(
    builder: &mut HistoryBuilder,
    session: SessionId,
    record: CobraRecord,
    input: Input<'_>,
    at: usize,
) -> Result<(), ReadError> {
    match record {
        CobraRecord::Start { txn, begin } => {
            // Nothing is known of the end until the commit is seen.
            builder
                .begin(session, Token::Int(txn), Status::Unknown)
                .map_err(|error| input.error_at(at, error))?;
            if begin.is_some() {
                builder.times(begin, None);
            }
        }
        CobraRecord::Commit { times } => {
            builder.status(Status::Committed);
            if let Some((begin, commit)) = times {
                if commit < begin {
                    return Err(input.error_at(
                        at,
                        InputProblem::Contradiction(format!(
                            "the transaction commits at {commit}, before it begins at {begin}"
                        )),
                    ));
                }
                builder.times(Some(begin), Some(commit));
            }
        }
        CobraRecord::Write { .. } | CobraRecord::Read { .. } => {}
    }
    Ok(())
}

fn reserve(logs: &[SessionLog<'_>], builder: &mut HistoryBuilder) {
    builder.reserve_ops(n_ops(logs));
}

/// How many operations there are, if all are reads; where many are writes, which are shorter, there are some more.
fn n_ops(logs: &[SessionLog<'_>]) -> usize {
    let bytes: usize = logs.iter().map(|log| log.input.bytes.len()).sum();
    bytes / 33
}
