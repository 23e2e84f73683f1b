//! A database that is asked in SQL through a [`SqlLink`]: the statements that most databases share, and what differs in a [`Dialect`].

use super::parse_list;
use crate::adapter::{
    Aggregate, Chosen, DatabaseSession, Failure, Initially, Key, OrderBy, StoredCell, Wrote,
};

/// What a statement returned.
pub(super) enum Answer {
    /// Rows, each column as text.
    Rows(Vec<Vec<String>>),
    /// How many rows it changed.
    Count(u64),
}

/// Why the database refused a statement, in its own words: state, code, message.
pub(super) struct Refusal(pub(super) String);

/// A connection.
pub(super) trait SqlLink: Send {
    /// Asks `begin…`, `commit`, `rollback`, `version`, or `sql` and a statement.
    fn ask(&mut self, request: &str) -> Result<Result<Answer, Refusal>, Failure>;
}

/// What differs among databases.
#[derive(Clone, Copy)]
pub(super) struct Dialect {
    /// The database, for errors.
    pub(super) name: &'static str,
    /// Which refusals end a transaction: a part of the refusal, and the reason in a few words.
    pub(super) aborts: &'static [(&'static str, &'static str)],
    /// The type of a long text.
    pub(super) text: &'static str,
}

const REGISTERS: &str = "kingsnake_registers";
const LISTS: &str = "kingsnake_lists";

impl Dialect {
    fn failure(&self, refusal: &Refusal) -> Failure {
        let Refusal(words) = refusal;
        match self.aborts.iter().find(|(part, _)| words.contains(part)) {
            Some((_, reason)) => Failure::Aborted(reason),
            None => Failure::Fatal(format!("{}: {words}", self.name)),
        }
    }

    fn ask(&self, link: &mut dyn SqlLink, request: &str) -> Result<Answer, Failure> {
        link.ask(request)?.map_err(|refusal| self.failure(&refusal))
    }

    fn run(&self, link: &mut dyn SqlLink, statement: &str) -> Result<Answer, Failure> {
        self.ask(link, &format!("sql {statement}"))
    }

    /// The database's own name.
    pub(super) fn version(&self, link: &mut dyn SqlLink) -> Result<String, Failure> {
        match self.ask(link, "version")? {
            Answer::Rows(rows) => Ok(rows.concat().join(" ")),
            Answer::Count(_) => Ok(self.name.to_owned()),
        }
    }

    /// Makes the tables and their rows.
    pub(super) fn prepare(
        &self,
        link: &mut dyn SqlLink,
        initially: Initially,
    ) -> Result<(), Failure> {
        self.ask(link, "begin BEGIN")?;
        self.run(link, &format!("CREATE TABLE {REGISTERS} (k BIGINT NOT NULL PRIMARY KEY, v BIGINT NOT NULL, b BIGINT NOT NULL, n BIGINT NOT NULL)"))?;
        let text = self.text;
        self.run(
            link,
            &format!("CREATE TABLE {LISTS} (k BIGINT NOT NULL PRIMARY KEY, v {text} NOT NULL)"),
        )?;
        for (key, beside) in initially.rows() {
            self.run(link, &insert(key, 0, beside, 0))?;
        }
        self.ask(link, "commit").map(drop)
    }
}

fn insert(key: Key, value: i64, beside: i64, rank: i64) -> String {
    format!("INSERT INTO {REGISTERS} VALUES ({key}, {value}, {beside}, {rank})")
}

/// A session.
pub(super) struct SqlClient {
    pub(super) link: Box<dyn SqlLink>,
    pub(super) dialect: Dialect,
    /// How a transaction begins.
    pub(super) begin: String,
    pub(super) order: OrderBy,
    /// Whether there may be something to roll back.
    pub(super) is_open: bool,
}

impl SqlClient {
    fn run(&mut self, statement: &str) -> Result<Answer, Failure> {
        self.dialect.run(&mut *self.link, statement)
    }

    fn count(&mut self, statement: &str) -> Result<u64, Failure> {
        match self.run(statement)? {
            Answer::Count(n) => Ok(n),
            Answer::Rows(_) => Err(self.strange(statement)),
        }
    }

    fn texts(&mut self, statement: &str) -> Result<Vec<Vec<String>>, Failure> {
        match self.run(statement)? {
            Answer::Rows(rows) => Ok(rows),
            Answer::Count(_) => Err(self.strange(statement)),
        }
    }

    /// Rows of numbers; a column without a value is left out.
    fn numbers(&mut self, statement: &str) -> Result<Vec<Vec<i64>>, Failure> {
        let number = |text: &String| {
            let parsed = text.parse();
            parsed.map_err(|_| Failure::Fatal(format!("{statement}: got {text:?}, not a number")))
        };
        let given =
            |row: &Vec<String>| row.iter().filter(|it| !it.is_empty()).map(number).collect();
        self.texts(statement)?.iter().map(given).collect()
    }

    fn strange(&self, statement: &str) -> Failure {
        let name = self.dialect.name;
        Failure::Fatal(format!("{name}: {statement} did not answer as it should"))
    }

    fn is_ranked(&self) -> bool {
        self.order == OrderBy::Rank
    }

    fn rank(&mut self, key: Key) -> Result<Option<i64>, Failure> {
        if !self.is_ranked() {
            return Ok(None);
        }
        // No other transaction can write the row before this one ends.
        let rows = self.numbers(&format!("SELECT n FROM {REGISTERS} WHERE k = {key}"))?;
        Ok(rows.concat().first().copied())
    }

    fn chosen(&mut self, statement: &str) -> Result<Vec<Chosen>, Failure> {
        let ranked = self.is_ranked();
        let rows = self.numbers(statement)?;
        let row = |row: &Vec<i64>| match row[..] {
            [key, value, rank] => Ok(Chosen {
                key,
                value,
                rank: ranked.then_some(rank),
            }),
            _ => Err(self.strange(statement)),
        };
        rows.iter().map(row).collect()
    }
}

impl DatabaseSession for SqlClient {
    fn begin(&mut self) -> Result<(), Failure> {
        self.is_open = true;
        let begin = format!("begin {}", self.begin);
        self.dialect.ask(&mut *self.link, &begin).map(drop)
    }

    fn read(&mut self, key: Key) -> Result<Option<StoredCell>, Failure> {
        let rows = self.numbers(&format!("SELECT v, b FROM {REGISTERS} WHERE k = {key}"))?;
        Ok(rows.first().map(|row| StoredCell {
            value: row[0],
            beside: row[1],
        }))
    }

    fn write(&mut self, key: Key, cell: StoredCell) -> Result<Wrote, Failure> {
        let StoredCell { value, beside } = cell;
        let update =
            format!("UPDATE {REGISTERS} SET v = {value}, b = {beside}, n = n + 1 WHERE k = {key}");
        if self.count(&update)? == 0 {
            self.count(&insert(key, value, beside, 1))?;
        }
        let rank = self.rank(key)?;
        Ok(Wrote { rank, txn: None })
    }

    fn read_list(&mut self, key: Key) -> Result<Vec<i64>, Failure> {
        let rows = self.texts(&format!("SELECT v FROM {LISTS} WHERE k = {key}"))?;
        parse_list(&rows.concat().concat())
    }

    fn append(&mut self, key: Key, value: i64) -> Result<Wrote, Failure> {
        let update = format!("UPDATE {LISTS} SET v = v || ',{value}' WHERE k = {key}");
        if self.count(&update)? == 0 {
            self.count(&format!("INSERT INTO {LISTS} VALUES ({key}, '{value}')"))?;
        }
        Ok(Wrote::default())
    }

    fn range(&mut self, low: Key, high: Key) -> Result<Vec<(Key, i64)>, Failure> {
        let rows = self.numbers(&format!(
            "SELECT k, v FROM {REGISTERS} WHERE k BETWEEN {low} AND {high} ORDER BY k"
        ))?;
        Ok(rows.iter().map(|row| (row[0], row[1])).collect())
    }

    fn delete(&mut self, key: Key) -> Result<Option<Wrote>, Failure> {
        // A deleted row cannot be asked for its rank, and a write just before would make another transaction of it.
        let deleted = self.count(&format!("DELETE FROM {REGISTERS} WHERE k = {key}"))?;
        Ok((deleted > 0).then(Wrote::default))
    }

    fn select(&mut self, (low, high): (i64, i64)) -> Result<Vec<Chosen>, Failure> {
        self.chosen(&format!(
            "SELECT k, v, n FROM {REGISTERS} WHERE b BETWEEN {low} AND {high}"
        ))
    }

    fn update_where(
        &mut self,
        (low, high): (i64, i64),
        cell: StoredCell,
    ) -> Result<Vec<Chosen>, Failure> {
        let StoredCell { value, beside } = cell;
        self.chosen(&format!(
            "UPDATE {REGISTERS} SET v = {value}, b = {beside}, n = n + 1 WHERE b BETWEEN {low} AND {high} RETURNING k, v, n"
        ))
    }

    fn delete_where(&mut self, (low, high): (i64, i64)) -> Result<Vec<Chosen>, Failure> {
        self.chosen(&format!(
            "DELETE FROM {REGISTERS} WHERE b BETWEEN {low} AND {high} RETURNING k, v, n + 1"
        ))
    }

    fn aggregate(
        &mut self,
        (low, high): (i64, i64),
        function: Aggregate,
    ) -> Result<Option<i64>, Failure> {
        let function = match function {
            Aggregate::Count => "count(*)",
            Aggregate::Sum => "sum(b)",
            Aggregate::Min => "min(k)",
            Aggregate::Max => "max(k)",
        };
        let rows = self.numbers(&format!(
            "SELECT {function} FROM {REGISTERS} WHERE b BETWEEN {low} AND {high}"
        ))?;
        Ok(rows.concat().first().copied())
    }

    fn commit(&mut self) -> Result<Option<String>, Failure> {
        let committed = self.dialect.ask(&mut *self.link, "commit");
        // What was refused now was rolled back by it, or is by the abort that follows.
        self.is_open = committed.is_err();
        committed.map(|_| None)
    }

    fn abort(&mut self) -> Result<(), Failure> {
        if !std::mem::take(&mut self.is_open) {
            return Ok(());
        }
        // A refusal says that the database rolled back by itself.
        self.link.ask("rollback").map(drop)
    }
}
