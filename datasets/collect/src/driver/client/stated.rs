//! Records a user's own statement by the columns `version` and `writer` of what it returned: a row whose writer is the number of
//! a statement of this transaction was written by it, any other was read.

use std::io;

use super::Client;
use crate::adapter::{DatabaseSession, Failure, Key, SqlAnswer};
use crate::sql::Statement;

/// A statement of the transaction at hand that changed rows.
pub(super) struct SqlWrite {
    /// Its number, which is the writer of what it wrote.
    number: i64,
    /// How many rows it changed.
    changed: u64,
    /// The keys of those that were shown.
    shown: Vec<Key>,
    place: String,
}

impl Client<'_> {
    /// Sends a statement and records what it shows.
    pub(in crate::driver) fn state(
        &mut self,
        session: &mut dyn DatabaseSession,
        statement: &Statement,
    ) -> io::Result<Result<SqlAnswer, Failure>> {
        let number = self.value();
        let (text, _) = statement.written_by(number);
        let answer = match session.sql(&text) {
            Ok(answer) => answer,
            Err(Failure::Fatal(why)) => {
                let why = format!("{}: {why}", statement.place);
                return Ok(Err(Failure::Fatal(why)));
            }
            Err(failure) => return Ok(Err(failure)),
        };
        if statement.changes() {
            self.sql_writes.push(SqlWrite {
                number,
                changed: answer.changed,
                shown: Vec::new(),
                place: statement.place.clone(),
            });
        }
        let column = |name: &str| {
            let mut columns = answer.columns.iter();
            columns.position(|it| it.eq_ignore_ascii_case(name))
        };
        let Some(writer_at) = column("writer") else {
            return Ok(Ok(answer));
        };
        let version_at = column("version");
        for row in &answer.rows {
            let cell = |at: usize| row.get(at).and_then(|it| it.as_deref());
            let key = cell(0).unwrap_or("null");
            let key = self.key(&format!("{} {key}", statement.table()))?;
            let Some(writer) = cell(writer_at).and_then(|it| it.parse::<i64>().ok()) else {
                let why = format!(
                    "{}: the column writer is no number; its type is BIGINT NOT NULL DEFAULT 0",
                    statement.place
                );
                return Ok(Err(Failure::Fatal(why)));
            };
            let version = version_at.and_then(cell).and_then(|it| it.parse().ok());
            self.shown(statement, (key, writer, version), number)?;
        }
        Ok(Ok(answer))
    }

    fn shown(
        &mut self,
        statement: &Statement,
        (key, writer, version): (Key, i64, Option<i64>),
        number: i64,
    ) -> io::Result<()> {
        if statement.deletes() {
            self.journal.read(key, Some(writer))?;
            self.journal.write("delete", key, number)?;
            if let Some(version) = version {
                self.journal.rank(version + 1)?;
            }
            if let Some(write) = self.sql_writes.last_mut() {
                write.shown.push(key);
            }
            return Ok(());
        }
        let mut writes = self.sql_writes.iter_mut();
        match writes.find(|it| it.number == writer && !it.shown.contains(&key)) {
            Some(write) => {
                write.shown.push(key);
                self.journal.write("w", key, writer)?;
                version.map_or(Ok(()), |version| self.journal.rank(version))
            }
            None => self.journal.read(key, Some(writer)),
        }
    }

    /// What a transaction changed and did not show would be missing in the history, and make it wrong.
    pub(super) fn expect_shown(&mut self) -> Result<(), Failure> {
        for write in self.sql_writes.drain(..) {
            if write.changed > write.shown.len() as u64 {
                return Err(Failure::Fatal(format!(
                    "{}: this statement changed {} rows and showed {} of them; end it with RETURNING and the key, version and \
                     writer, or let a SELECT of the same columns of these rows follow it in its transaction",
                    write.place,
                    write.changed,
                    write.shown.len()
                )));
            }
        }
        Ok(())
    }

    /// The number of a key, which is recorded with its name when it is first met.
    fn key(&mut self, name: &str) -> io::Result<Key> {
        let mut keys = self.shared.keys.lock();
        let keys = match &mut keys {
            Ok(keys) => keys,
            Err(poisoned) => poisoned.get_mut(),
        };
        if let Some(&key) = keys.get(name) {
            return Ok(key);
        }
        let key = keys.len() as Key;
        keys.insert(name.to_owned(), key);
        self.journal.key_name(key, name)?;
        Ok(key)
    }
}
