//! A session on `PostgreSQL`: its connection, its prepared statements, and the operations of a transaction.

use postgres::{Client as Connection, SimpleQueryMessage, Statement};

use super::postgres::failure;
use super::postgres_conditions::{self as conditions, Conditions};
use crate::adapter::{
    Aggregate, Chosen, DatabaseSession, Failure, Key, SqlAnswer, StoredCell, Wrote,
};

pub(super) struct Statements {
    pub(super) read: Statement,
    pub(super) update: Statement,
    pub(super) insert: Statement,
    pub(super) range: Statement,
    pub(super) list: Statement,
    pub(super) append: Statement,
    pub(super) delete: Statement,
}

#[allow(clippy::struct_excessive_bools)] // Each is a switch of its own.
pub(super) struct PostgresClient {
    pub(super) connection: Connection,
    pub(super) statements: Statements,
    /// Prepared when the first condition is asked.
    pub(super) conditions: Option<Conditions>,
    pub(super) begin: String,
    pub(super) name: Option<String>,
    pub(super) ranked: bool,
    /// Rows are there from the first, so writes are updates.
    pub(super) updates: bool,
    pub(super) snapshots: bool,
    /// Each transaction is given a name when it begins.
    pub(super) names: bool,
    pub(super) snapshot: String,
}

impl PostgresClient {
    /// Asks by a condition: the rows, and what snapshot they were chosen on.
    fn ask(
        &mut self,
        which: impl FnOnce(&Conditions) -> &Statement,
        parameters: &[i64],
    ) -> Result<Vec<Chosen>, Failure> {
        if self.conditions.is_none() {
            let prepared = Conditions::prepare(&mut self.connection, self.snapshots);
            self.conditions = Some(prepared.map_err(|error| failure(&error))?);
        }
        let Some(conditions) = &self.conditions else {
            return Ok(Vec::new());
        };
        let (rows, snapshot) = conditions::ask(&mut self.connection, which(conditions), parameters)
            .map_err(|error| failure(&error))?;
        self.see(snapshot);
        let ranked = self.ranked;
        Ok(rows
            .into_iter()
            .map(|row| Chosen {
                rank: row.rank.filter(|_| ranked),
                ..row
            })
            .collect())
    }

    fn see(&mut self, snapshot: Option<String>) {
        self.snapshot = snapshot.unwrap_or_default();
    }
}

impl DatabaseSession for PostgresClient {
    fn begin(&mut self) -> Result<(), Failure> {
        let of = |error: postgres::Error| failure(&error);
        self.connection.batch_execute(&self.begin).map_err(of)?;
        if self.names {
            // Snapshots of others name this transaction, be it that it aborts before its first write is answered.
            let query = "SELECT txid_current()::text";
            let row = self.connection.query_one(query, &[]).map_err(of)?;
            self.name = row.get(0);
        }
        Ok(())
    }

    fn name(&mut self) -> Option<String> {
        self.name.take()
    }

    fn read(&mut self, key: Key) -> Result<Option<StoredCell>, Failure> {
        let row = self.connection.query_opt(&self.statements.read, &[&key]);
        let row = row.map_err(|error| failure(&error))?;
        self.see(row.as_ref().and_then(|row| row.get(2)));
        Ok(row.map(|row| StoredCell {
            value: row.get(0),
            beside: row.get(1),
        }))
    }

    fn write(&mut self, key: Key, cell: StoredCell) -> Result<Wrote, Failure> {
        let of = |error: postgres::Error| failure(&error);
        let (value, beside) = (cell.value, cell.beside);
        let mut row = None;
        if self.updates {
            let update = self
                .connection
                .query_opt(&self.statements.update, &[&key, &value, &beside]);
            row = update.map_err(of)?;
        }
        let row = match row {
            Some(row) => row,
            None => self
                .connection
                .query_one(&self.statements.insert, &[&key, &value, &beside])
                .map_err(of)?,
        };
        Ok(Wrote {
            rank: self.ranked.then(|| row.get(0)),
            txn: row.get(1),
        })
    }

    fn read_list(&mut self, key: Key) -> Result<Vec<i64>, Failure> {
        let row = self.connection.query_opt(&self.statements.list, &[&key]);
        let row = row.map_err(|error| failure(&error))?;
        self.see(row.as_ref().and_then(|row| row.get(1)));
        super::parse_list(row.as_ref().map_or("", |row| row.get(0)))
    }

    fn append(&mut self, key: Key, value: i64) -> Result<Wrote, Failure> {
        let row = self
            .connection
            .query_one(&self.statements.append, &[&key, &value.to_string()])
            .map_err(|error| failure(&error))?;
        Ok(Wrote {
            rank: None,
            txn: row.get(1),
        })
    }

    fn range(&mut self, low: Key, high: Key) -> Result<Vec<(Key, i64)>, Failure> {
        let rows = self
            .connection
            .query(&self.statements.range, &[&low, &high]);
        let rows = rows.map_err(|error| failure(&error))?;
        self.see(rows.first().and_then(|row| row.get(2)));
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    fn delete(&mut self, key: Key) -> Result<Option<Wrote>, Failure> {
        let row = self.connection.query_opt(&self.statements.delete, &[&key]);
        let row = row.map_err(|error| failure(&error))?;
        Ok(row.map(|row| Wrote {
            rank: self.ranked.then(|| row.get(0)),
            txn: row.get(1),
        }))
    }

    fn select(&mut self, numbers: (i64, i64)) -> Result<Vec<Chosen>, Failure> {
        self.ask(|it| &it.select, &[numbers.0, numbers.1])
    }

    fn update_where(
        &mut self,
        numbers: (i64, i64),
        cell: StoredCell,
    ) -> Result<Vec<Chosen>, Failure> {
        let parameters = [numbers.0, numbers.1, cell.value, cell.beside];
        self.ask(|it| &it.update, &parameters)
    }

    fn delete_where(&mut self, numbers: (i64, i64)) -> Result<Vec<Chosen>, Failure> {
        self.ask(|it| &it.delete, &[numbers.0, numbers.1])
    }

    fn aggregate(
        &mut self,
        numbers: (i64, i64),
        function: Aggregate,
    ) -> Result<Option<i64>, Failure> {
        let found = self.ask(
            |it| match function {
                Aggregate::Count => &it.count,
                Aggregate::Sum => &it.sum,
                Aggregate::Min => &it.min,
                Aggregate::Max => &it.max,
            },
            &[numbers.0, numbers.1],
        )?;
        Ok(found.first().map(|it| it.value))
    }

    fn sql(&mut self, statement: &str) -> Result<SqlAnswer, Failure> {
        // The simple protocol, in which every value is a text and parameters need no types.
        let told = self.connection.simple_query(statement);
        let mut answer = SqlAnswer::default();
        for message in told.map_err(|error| failure(&error))? {
            match message {
                SimpleQueryMessage::Row(row) => {
                    let cells = 0..row.len();
                    let cells = cells.map(|at| row.get(at).map(str::to_owned));
                    answer.rows.push(cells.collect());
                }
                SimpleQueryMessage::RowDescription(columns) => {
                    answer.columns = columns.iter().map(|it| it.name().to_owned()).collect();
                }
                SimpleQueryMessage::CommandComplete(n) => answer.changed = n,
                _ => {}
            }
        }
        Ok(answer)
    }

    fn commit(&mut self) -> Result<Option<String>, Failure> {
        self.connection
            .batch_execute("COMMIT")
            .map_err(|error| failure(&error))?;
        Ok(None)
    }

    fn abort(&mut self) -> Result<(), Failure> {
        self.connection
            .batch_execute("ROLLBACK")
            .map_err(|error| failure(&error))
    }

    fn snapshot(&mut self) -> Option<String> {
        self.snapshots.then(|| std::mem::take(&mut self.snapshot))
    }
}
