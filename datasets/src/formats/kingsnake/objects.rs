//! The operations of our own format on sets and counters, and savepoints.

use kingsnake_history::model::{HistoryBuilder, Token};

use crate::cursor::Cursor;
use crate::error::{InputProblem, ReadError};

/// Reads the rest of an operation on a set or a counter.
pub(super) fn read_object(
    cursor: &mut Cursor<'_>,
    builder: &mut HistoryBuilder,
    name: &str,
    list: &mut Vec<Token>,
) -> Result<(), ReadError> {
    cursor.json_punct(b',')?;
    let key = cursor.json_token(builder)?;
    cursor.json_punct(b',')?;
    let done = match name {
        "add" => {
            let element = cursor.json_token(builder)?;
            builder.add(key, element)
        }
        "rs" => {
            super::ops::read_list(cursor, builder, list)?;
            builder.read_set(key, list.iter().copied())
        }
        "inc" => {
            let by = cursor.json_int()?;
            builder.increment(key, by)
        }
        _ => {
            let value = cursor.json_int()?;
            builder.read_counter(key, value)
        }
    };
    done.map_err(|error| cursor.fail(error))
}

/// The savepoints of a transaction: their names, and how many operations there were.
#[derive(Default)]
pub(super) struct Savepoints {
    all: Vec<(Token, usize)>,
}

impl Savepoints {
    pub(super) fn clear(&mut self) {
        self.all.clear();
    }

    /// Reads the rest of `["savepoint",name]`, `["rollback-to",name]` or `["release",name]`.
    pub(super) fn read(
        &mut self,
        cursor: &mut Cursor<'_>,
        builder: &mut HistoryBuilder,
        word: &str,
    ) -> Result<(), ReadError> {
        cursor.json_punct(b',')?;
        let name = cursor.json_token(builder)?;
        if word == "savepoint" {
            self.all.push((name, builder.n_ops()));
            return Ok(());
        }
        let Some(at) = self.all.iter().rposition(|it| it.0 == name) else {
            let found = format!("{word} of savepoint {}", builder.show(name));
            let expected =
                "the name of a savepoint that this transaction has at this place".to_owned();
            return Err(cursor.fail(InputProblem::Syntax { found, expected }));
        };
        if word == "release" {
            self.all.truncate(at);
            return Ok(());
        }
        // The savepoint itself stays.
        self.all.truncate(at + 1);
        let done = builder.roll_back(self.all[at].1);
        done.map_err(|error| cursor.fail(error))
    }
}
