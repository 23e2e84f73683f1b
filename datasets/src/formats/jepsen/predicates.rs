//! Predicate reads of Jepsen histories, as elle.closed-predicate writes them: `[:rp :true {k v}]`, `[:rp [:= v] {…}]` and
//! `[:rp [:mod m r] {…}]` are selects over one table of all keys, whose conditions are about the value.
//!
//! Our conditions have no remainder, so `[:mod m r]` lists the values of the file that have it.

use kingsnake_history::model::{
    Act, Column, Comparison, Condition, HistoryBuilder, Operand, Query, Token,
};

use super::datum::Datum;
use super::events::{Action, Content, Events, MicroOp, Part};
use crate::cursor::{Cursor, Input};
use crate::error::{InputProblem, ReadError};

/// The name of the table of all keys.
const TABLE: &str = "keys";

/// What a predicate asks of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    True,
    Equals(Token),
    /// The remainder by the first is the second.
    Mod(i64, i64),
}

/// Reads `:true`, `[:= v]` or `[:mod m r]`.
fn asked(datum: &Datum<'_>, part: &mut Part) -> Option<Asked> {
    match datum.seq() {
        None => match datum {
            Datum::Other("true") => Some(Asked::True),
            _ => (datum.word() == Some("true")).then_some(Asked::True),
        },
        Some([sign, value]) if sign.word() == Some("=") => Some(Asked::Equals(part.token(value))),
        Some([word, Datum::Int(modulus), Datum::Int(rest)])
            if word.word() == Some("mod") && *modulus != 0 =>
        {
            Some(Asked::Mod(*modulus, *rest))
        }
        _ => None,
    }
}

/// A key of a map. JSON writes them all as texts, so there a whole number stands for the number.
fn map_key(datum: &Datum<'_>, part: &mut Part) -> Token {
    match datum {
        Datum::Text(text) if part.is_json => match text.parse() {
            Ok(number) => Token::Int(number),
            Err(_) => part.text(text),
        },
        other => part.token(other),
    }
}

impl Part {
    /// Reads a step `[:rp predicate rows]`; an invocation has no rows.
    pub(super) fn read_predicate(
        &mut self,
        here: &Cursor<'_>,
        parts: &[Datum<'_>],
    ) -> Result<MicroOp, ReadError> {
        let wrong = |found: &str| {
            here.fail(InputProblem::Syntax {
                found: found.to_owned(),
                expected: "[:rp predicate {key value, …}], where the predicate is :true, [:= value] or [:mod modulus remainder]"
                    .to_owned(),
            })
        };
        let (predicate, rows) = match parts {
            [_, predicate] => (predicate, &Datum::Nil),
            [_, predicate, rows] => (predicate, rows),
            _ => return Err(wrong("a step :rp of other parts")),
        };
        let Some(asked) = asked(predicate, self) else {
            return Err(wrong("a predicate of another form"));
        };
        let place = self.asked.iter().position(|it| *it == asked);
        let place = place.unwrap_or(self.asked.len());
        if place == self.asked.len() {
            self.asked.push(asked);
        }
        let content = match rows {
            Datum::Nil => Content::Nil,
            Datum::Map(rows, _) => {
                let first = self.items.len() as u32;
                for (key, value) in rows {
                    let key = map_key(key, self);
                    let value = self.token(value);
                    self.items.extend([key, value]);
                }
                Content::List(first, self.items.len() as u32)
            }
            _ => return Err(wrong("rows that are no map")),
        };
        Ok(MicroOp {
            action: Action::Predicate,
            key: Token::Int(place as i64),
            content,
        })
    }

    /// Takes `{:f :init, :value {k v}}`: what the keys hold before the first transaction.
    pub(super) fn read_init(&mut self, value: &Datum<'_>) -> bool {
        let Datum::Map(rows, _) = value else {
            return false;
        };
        for (key, value) in rows {
            let key = map_key(key, self);
            let value = self.token(value);
            self.initial.push((key, value));
        }
        true
    }
}

impl Events {
    /// Declares the table of all keys, and what they hold at first.
    pub(super) fn declare(
        &self,
        input: Input<'_>,
        builder: &mut HistoryBuilder,
    ) -> Result<(), ReadError> {
        if !self.asked.is_empty() {
            let name = builder.text(TABLE);
            builder
                .table(name, Vec::new())
                .map_err(|error| input.error_in_line(0, error))?;
        }
        for &(key, value) in &self.initial {
            builder.initial(key, value);
        }
        Ok(())
    }

    /// What each predicate asks, as conditions.
    pub(super) fn queries(&self) -> Vec<Query> {
        let mut numbers: Vec<i64> = Vec::new();
        if self.asked.iter().any(|it| matches!(it, Asked::Mod(..))) {
            let written = self.all_steps().filter_map(|step| match step.content {
                Content::One(Token::Int(number)) => Some(number),
                _ => None,
            });
            let initial = self.initial.iter().filter_map(|it| match it.1 {
                Token::Int(number) => Some(number),
                _ => None,
            });
            let items = self.parts.iter().flat_map(|part| &part.items);
            let read = items.filter_map(|it| match it {
                Token::Int(number) => Some(*number),
                _ => None,
            });
            numbers.extend(written.chain(initial).chain(read));
            numbers.sort_unstable();
            numbers.dedup();
        }
        let value = Column::Value;
        let condition = |asked: &Asked| match *asked {
            Asked::True => Condition::Always(true),
            Asked::Equals(token) => {
                Condition::Compare(Comparison::Eq, value, Operand::Literal(token))
            }
            Asked::Mod(modulus, rest) => {
                let has = |number: &&i64| floor_mod(**number, modulus) == rest;
                let list = numbers.iter().filter(has).map(|&it| Token::Int(it));
                Condition::In(value, list.collect())
            }
        };
        self.asked
            .iter()
            .map(|asked| Query {
                table: 0,
                condition: condition(asked),
            })
            .collect()
    }
}

/// Clojure's `mod`: the remainder has the sign of the modulus.
fn floor_mod(number: i64, modulus: i64) -> i64 {
    let rest = number.wrapping_rem(modulus);
    if rest != 0 && (rest < 0) != (modulus < 0) {
        rest + modulus
    } else {
        rest
    }
}

/// Adds a predicate read and the rows that it returned.
pub(super) fn feed(query: &Query, rows: &[Token], builder: &mut HistoryBuilder) {
    let from = builder.n_ops();
    for row in rows.chunks_exact(2) {
        builder.read(row[0], row[1]);
    }
    builder.predicate(Act::Select, query.clone(), from, None);
}
