//! What clients of a table saw, as operations of a history: rows with columns, and predicates over them.

use kingsnake_history::model::{
    Act, BuildError, Column, Condition, Function, HistoryBuilder, Operand, Query, Snapshot, Token,
    ValueId,
};

use super::engine::INITIAL;
use super::record::StoreEvent;

impl StoreEvent {
    /// Whether it changes anything.
    pub(super) fn writes(&self) -> bool {
        match self {
            StoreEvent::Put { .. }
            | StoreEvent::Write(..)
            | StoreEvent::Append(..)
            | StoreEvent::Insert(..)
            | StoreEvent::Delete(..) => true,
            StoreEvent::UpdateWhere { rows, .. } => !rows.is_empty(),
            _ => false,
        }
    }
}

/// Adds what a client of a table saw.
pub(super) fn add(builder: &mut HistoryBuilder, event: &StoreEvent) -> Result<(), BuildError> {
    let from = builder.n_ops();
    match *event {
        StoreEvent::Read(key, value) => {
            let value = match value {
                INITIAL => Token::Nil,
                value => Token::Int(value),
            };
            builder.read(Token::Int(key), value);
        }
        StoreEvent::Put {
            key,
            value,
            number,
            is_insert,
        } => {
            let (key, value) = (Token::Int(key), Token::Int(value));
            let value = if is_insert {
                builder.insert(key, value)
            } else {
                builder.write(key, value)
            };
            row(builder, value, number)?;
        }
        StoreEvent::Select { span, ref rows, at } => {
            for row in rows {
                builder.read(Token::Int(row.key), Token::Int(row.value));
            }
            builder.predicate(Act::Select, query(span), from, snapshot(at));
        }
        StoreEvent::UpdateWhere {
            span,
            ref rows,
            number,
            at,
        } => {
            for &(old, new) in rows {
                builder.read(Token::Int(old.key), Token::Int(old.value));
                let value = builder.write(Token::Int(old.key), Token::Int(new));
                row(builder, value, number)?;
            }
            builder.predicate(Act::Update, query(span), from, snapshot(at));
        }
        StoreEvent::Extreme {
            span,
            is_greatest,
            result,
            at,
        } => {
            let act = Act::Aggregate {
                function: if is_greatest {
                    Function::Max
                } else {
                    Function::Min
                },
                column: Some(Column::Cell(0)),
                result: result.map_or(Token::Nil, Token::Int),
            };
            builder.predicate(act, query(span), from, snapshot(at));
        }
        // Workloads of tables do nothing else.
        _ => {}
    }
    Ok(())
}

fn row(builder: &mut HistoryBuilder, value: ValueId, number: i64) -> Result<(), BuildError> {
    builder.row(value, &[Token::Int(number), Token::Int(number % 7)])
}

fn query((low, high): (i64, i64)) -> Query {
    let [low, high] = [low, high].map(|number| Operand::Literal(Token::Int(number)));
    Query {
        table: 0,
        condition: Condition::Between(Column::Cell(0), low, high),
    }
}

#[allow(clippy::unnecessary_wraps)] // What the history takes.
fn snapshot(at: u64) -> Option<Snapshot> {
    Some(Snapshot::At(at as i64))
}
