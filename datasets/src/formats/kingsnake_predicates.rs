//! The operations of our own format that choose rows by a condition: select, update, delete and aggregate, and their parts.

use kingsnake_history::model::{
    Act, Column, Comparison, Condition, Function, HistoryBuilder, Operand, Query, Snapshot, Token,
    ValueId,
};

use super::kingsnake_rows::{next_is_comma, read_installed};
use crate::cursor::Cursor;
use crate::error::{InputProblem, ReadError};

/// Deeper conditions than this are refused, so that no file can exhaust the stack.
const MAX_DEPTH: usize = 32;

/// What has to be checked once the whole file is read, and space that every operation uses again.
#[derive(Default)]
pub(super) struct Predicates {
    cells: Vec<Token>,
    /// Where a snapshot names a transaction, and its number.
    named: Vec<(usize, i64)>,
    /// Where a snapshot names a version.
    versions: Vec<(usize, ValueId)>,
}

/// `{"t":["c0","c1"],…}` of the header.
pub(super) fn read_tables(
    cursor: &mut Cursor<'_>,
    builder: &mut HistoryBuilder,
) -> Result<(), ReadError> {
    cursor.json_punct(b'{')?;
    let mut first = true;
    while cursor.json_more(&mut first, b'}')? {
        let name = cursor.json_text()?;
        let name = builder.text(&name);
        cursor.json_punct(b':')?;
        cursor.json_punct(b'[')?;
        let mut columns = Vec::new();
        let mut first = true;
        while cursor.json_more(&mut first, b']')? {
            let column = cursor.json_text()?;
            columns.push(builder.text(&column));
        }
        builder
            .table(name, columns)
            .map_err(|error| cursor.fail(error))?;
    }
    Ok(())
}

impl Predicates {
    /// `,{"c0":3,…}`, where it follows; else makes sure that the key's table has no columns.
    pub(super) fn read_row(
        &mut self,
        cursor: &mut Cursor<'_>,
        builder: &mut HistoryBuilder,
        key: Token,
        value: ValueId,
    ) -> Result<(), ReadError> {
        if next_is_comma(cursor) {
            cursor.json_punct(b',')?;
            return self.read_cells(cursor, builder, key, value);
        }
        expect_no_columns(cursor, builder, key)
    }

    /// `{"c0":3,…}`: columns that are not there are null.
    pub(super) fn read_cells(
        &mut self,
        cursor: &mut Cursor<'_>,
        builder: &mut HistoryBuilder,
        key: Token,
        value: ValueId,
    ) -> Result<(), ReadError> {
        if key == Token::Nil {
            let found = "a row without a primary key (the key is null)".to_owned();
            let expected = "a key".to_owned();
            return Err(cursor.fail(InputProblem::Syntax { found, expected }));
        }
        let Some(table) = builder.table_of(key) else {
            let name = builder.show(key);
            let found = format!("a row for key {name}, which is in no table");
            let expected = "a table in the header, {\"tables\":{\"t\":[\"c0\",…]}}; with several tables a key is a text such as \"t/17\"".to_owned();
            return Err(cursor.fail(InputProblem::Syntax { found, expected }));
        };
        self.cells.clear();
        self.cells.resize(builder.n_columns(table), Token::Nil);
        cursor.json_punct(b'{')?;
        let mut first = true;
        while cursor.json_more(&mut first, b'}')? {
            let at = cursor.at;
            let name = cursor.json_text()?;
            let Some(Column::Cell(column)) = builder.find_column(table, &name) else {
                cursor.at = at;
                return Err(unknown_column(cursor, builder, table, &name));
            };
            cursor.json_punct(b':')?;
            self.cells[column as usize] = cursor.json_token(builder)?;
        }
        let given = builder.row(value, &self.cells);
        given.map_err(|error| cursor.fail(error))
    }

    /// `,Q,[[key,value],…]` and perhaps `,SNAP` of a select.
    pub(super) fn read_select(
        &mut self,
        cursor: &mut Cursor<'_>,
        builder: &mut HistoryBuilder,
    ) -> Result<(), ReadError> {
        cursor.json_punct(b',')?;
        let query = read_query(cursor, builder)?;
        let from = builder.n_ops();
        each_row(cursor, builder, |cursor, builder, key| {
            expect_in_table(cursor, builder, query.table, key)?;
            cursor.json_punct(b',')?;
            let at = cursor.at;
            let value = cursor.json_token(builder)?;
            if value == Token::Nil {
                cursor.at = at;
                return Err(cursor.wrong("a value: null means that there is no row"));
            }
            builder.read(key, value);
            Ok(())
        })?;
        let snapshot = self.read_snapshot(cursor, builder)?;
        builder.predicate(Act::Select, query, from, snapshot);
        Ok(())
    }

    /// `,Q,[[key,old,new,row],…]` and perhaps `,SNAP` of an update. Without `old` the client did not see what it replaced.
    pub(super) fn read_update(
        &mut self,
        cursor: &mut Cursor<'_>,
        builder: &mut HistoryBuilder,
    ) -> Result<(), ReadError> {
        cursor.json_punct(b',')?;
        let query = read_query(cursor, builder)?;
        let from = builder.n_ops();
        each_row(cursor, builder, |cursor, builder, key| {
            expect_in_table(cursor, builder, query.table, key)?;
            cursor.json_punct(b',')?;
            let mut new = cursor.json_token(builder)?;
            let mut row = false;
            if next_is_comma(cursor) {
                cursor.json_punct(b',')?;
                if cursor.peek() == b'{' {
                    row = true;
                } else {
                    builder.read(key, new);
                    new = cursor.json_token(builder)?;
                    row = next_is_comma(cursor);
                    if row {
                        cursor.json_punct(b',')?;
                    }
                }
            }
            if new == Token::Nil {
                return Err(cursor.wrong("a new value: null means that there is no row"));
            }
            let value = builder.write(key, new);
            if row {
                return self.read_cells(cursor, builder, key, value);
            }
            expect_no_columns(cursor, builder, key)
        })?;
        let snapshot = self.read_snapshot(cursor, builder)?;
        builder.predicate(Act::Update, query, from, snapshot);
        Ok(())
    }

    /// `Q,[[key,old,tombstone],…]` and perhaps `,SNAP` of a delete.
    pub(super) fn read_delete(
        &mut self,
        cursor: &mut Cursor<'_>,
        builder: &mut HistoryBuilder,
    ) -> Result<(), ReadError> {
        let query = read_query(cursor, builder)?;
        let from = builder.n_ops();
        each_row(cursor, builder, |cursor, builder, key| {
            expect_in_table(cursor, builder, query.table, key)?;
            cursor.json_punct(b',')?;
            let old = cursor.json_token(builder)?;
            builder.read(key, old);
            let tombstone = if next_is_comma(cursor) {
                cursor.json_punct(b',')?;
                cursor.json_token(builder)?
            } else {
                Token::Nil
            };
            builder.delete(key, tombstone);
            Ok(())
        })?;
        let snapshot = self.read_snapshot(cursor, builder)?;
        builder.predicate(Act::Delete, query, from, snapshot);
        Ok(())
    }

    /// `,Q,"min",column,result` and perhaps `,SNAP` of an aggregate.
    pub(super) fn read_aggregate(
        &mut self,
        cursor: &mut Cursor<'_>,
        builder: &mut HistoryBuilder,
    ) -> Result<(), ReadError> {
        cursor.json_punct(b',')?;
        let query = read_query(cursor, builder)?;
        cursor.json_punct(b',')?;
        let at = cursor.at;
        let name = cursor.json_text()?;
        let named = |function: &Function| function.name() == name;
        let Some(function) = Function::ALL.into_iter().find(named) else {
            cursor.at = at;
            return Err(cursor.wrong("\"count\", \"min\", \"max\" or \"sum\""));
        };
        cursor.json_punct(b',')?;
        let at = cursor.at;
        let column = if cursor.peek() == b'"' {
            Some(read_column(cursor, builder, query.table)?)
        } else {
            cursor.json_token(builder)?;
            None
        };
        if column.is_none() && (function != Function::Count || cursor.input.bytes[at] != b'n') {
            cursor.at = at;
            return Err(cursor.wrong("the name of a column (null only for count)"));
        }
        cursor.json_punct(b',')?;
        let result = cursor.json_token(builder)?;
        let snapshot = self.read_snapshot(cursor, builder)?;
        let from = builder.n_ops();
        let act = Act::Aggregate {
            function,
            column,
            result,
        };
        builder.predicate(act, query, from, snapshot);
        Ok(())
    }

    /// `,{"set":[[key,value],…]}`, `,{"at":N}` or `,{"pg":"xmin:xmax:xip"}`, if it follows.
    fn read_snapshot(
        &mut self,
        cursor: &mut Cursor<'_>,
        builder: &mut HistoryBuilder,
    ) -> Result<Option<Snapshot>, ReadError> {
        if !next_is_comma(cursor) {
            return Ok(None);
        }
        cursor.json_punct(b',')?;
        cursor.json_punct(b'{')?;
        let at = cursor.at;
        let name = cursor.json_text()?;
        cursor.json_punct(b':')?;
        let snapshot = match &*name {
            "at" => Snapshot::At(cursor.json_int()?),
            "pg" => self.read_postgres(cursor)?,
            "set" => {
                let mut versions = Vec::new();
                each_row(cursor, builder, |cursor, builder, key| {
                    cursor.json_punct(b',')?;
                    let at = cursor.at;
                    let installed = read_installed(cursor, builder)?;
                    let version = builder.version(key, installed);
                    self.versions.push((at, version));
                    versions.push(version);
                    Ok(())
                })?;
                Snapshot::Set(versions)
            }
            _ => {
                cursor.at = at;
                return Err(cursor.wrong("a snapshot: \"set\", \"at\" or \"pg\""));
            }
        };
        cursor.json_punct(b'}')?;
        Ok(Some(snapshot))
    }

    fn read_postgres(&mut self, cursor: &mut Cursor<'_>) -> Result<Snapshot, ReadError> {
        let at = cursor.at;
        let text = cursor.json_text()?;
        let end = cursor.at;
        let Some((xmin, xmax, mut running)) = postgres(&text) else {
            cursor.at = at;
            return Err(cursor.wrong(
                "a snapshot of PostgreSQL, \"xmin:xmax:xip\", such as \"100:104:100,102\"",
            ));
        };
        if let Some(wrong) = running.iter().find(|&&xid| xid < xmin || xid >= xmax) {
            cursor.at = at;
            let problem = format!(
                "the snapshot \"{text}\" lists {wrong}, which is not from {xmin} to {xmax}"
            );
            return Err(cursor.fail(InputProblem::Contradiction(problem)));
        }
        self.named.extend(running.iter().map(|&xid| (at, xid)));
        running.sort_unstable();
        running.dedup();
        cursor.at = end;
        Ok(Snapshot::Postgres {
            xmin,
            xmax,
            running,
        })
    }

    /// Once the whole file is read: every transaction and version that a snapshot names is in it.
    pub(super) fn finish(
        &self,
        cursor: &mut Cursor<'_>,
        builder: &HistoryBuilder,
    ) -> Result<(), ReadError> {
        if !self.named.is_empty() {
            let xids = builder.xids();
            if let Some(&(at, xid)) = self.named.iter().find(|it| !xids.contains(&it.1)) {
                cursor.at = at;
                let problem = format!(
                    "field `pg`: the snapshot names transaction {xid} as running, and no transaction has \"xid\":{xid}; record aborted transactions too"
                );
                return Err(cursor.fail(InputProblem::Contradiction(problem)));
            }
        }
        if self.versions.is_empty() {
            return Ok(());
        }
        if let Some(&(at, value)) = builder.first_unwritten(&self.versions) {
            cursor.at = at;
            let problem = format!(
                "field `set`: the snapshot names {}, which no transaction wrote",
                builder.show_version(value)
            );
            return Err(cursor.fail(InputProblem::Contradiction(problem)));
        }
        Ok(())
    }
}

/// `xmin:xmax:xip`
fn postgres(text: &str) -> Option<(i64, i64, Vec<i64>)> {
    let mut parts = text.split(':');
    let xmin = parts.next()?.parse().ok()?;
    let xmax = parts.next()?.parse().ok()?;
    let running = parts.next()?;
    if parts.next().is_some() || xmin > xmax {
        return None;
    }
    let running = running.split(',').filter(|part| !part.is_empty());
    let running: Result<Vec<i64>, _> = running.map(str::parse).collect();
    Some((xmin, xmax, running.ok()?))
}

/// `[[key,…],…]`: the rest of each row is read by `rest`.
fn each_row<'a>(
    cursor: &mut Cursor<'a>,
    builder: &mut HistoryBuilder,
    mut rest: impl FnMut(&mut Cursor<'a>, &mut HistoryBuilder, Token) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    if cursor.peek() == b',' {
        cursor.json_punct(b',')?;
    }
    cursor.json_punct(b'[')?;
    let mut first = true;
    while cursor.json_more(&mut first, b']')? {
        cursor.json_punct(b'[')?;
        let at = cursor.at;
        let key = cursor.json_token(builder)?;
        if key == Token::Nil {
            cursor.at = at;
            return Err(cursor.wrong("a key: a row has a primary key"));
        }
        rest(cursor, builder, key)?;
        cursor.json_punct(b']')?;
    }
    Ok(())
}

/// `{"table":t,"where":E}`
fn read_query(cursor: &mut Cursor<'_>, builder: &mut HistoryBuilder) -> Result<Query, ReadError> {
    cursor.json_punct(b'{')?;
    let at = cursor.at;
    if cursor.json_text()? != "table" {
        cursor.at = at;
        return Err(cursor.wrong("{\"table\":…,\"where\":…}"));
    }
    cursor.json_punct(b':')?;
    let at = cursor.at;
    let name = cursor.json_text()?;
    let Some(table) = builder.find_table(&name) else {
        cursor.at = at;
        let found = format!("a query of table `{name}`");
        let expected = match builder.table_names() {
            none if none.is_empty() => {
                "a table that the header declares, {\"kingsnake\":1,\"tables\":{\"t\":[\"c0\",…]}}"
                    .to_owned()
            }
            names => format!("a table that the header declares: {names}"),
        };
        return Err(cursor.fail(InputProblem::Syntax { found, expected }));
    };
    cursor.pass_blanks();
    let mut condition = Condition::Always(true);
    if next_is_comma(cursor) {
        cursor.json_punct(b',')?;
        let at = cursor.at;
        if cursor.json_text()? != "where" {
            cursor.at = at;
            return Err(cursor.wrong("field \"where\""));
        }
        cursor.json_punct(b':')?;
        condition = read_condition(cursor, builder, table, MAX_DEPTH)?;
    }
    cursor.json_punct(b'}')?;
    Ok(Query { table, condition })
}

/// `["and",E,…]`, `["<","c1",5]`, …
fn read_condition(
    cursor: &mut Cursor<'_>,
    builder: &mut HistoryBuilder,
    table: u32,
    depth: usize,
) -> Result<Condition, ReadError> {
    if depth == 0 {
        return Err(cursor.wrong("a condition of at most 32 levels"));
    }
    cursor.pass_blanks();
    if matches!(cursor.peek(), b't' | b'f') {
        return Ok(Condition::Always(cursor.json_bool()?));
    }
    cursor.json_punct(b'[')?;
    let at = cursor.at;
    let name = cursor.json_text()?;
    let condition = match &*name {
        "and" | "or" => {
            let mut parts = Vec::new();
            while next_is_comma(cursor) {
                cursor.json_punct(b',')?;
                parts.push(read_condition(cursor, builder, table, depth - 1)?);
            }
            if name == "and" {
                Condition::And(parts)
            } else {
                Condition::Or(parts)
            }
        }
        "not" => {
            cursor.json_punct(b',')?;
            Condition::Not(Box::new(read_condition(cursor, builder, table, depth - 1)?))
        }
        "is-null" => {
            cursor.json_punct(b',')?;
            Condition::IsNull(read_column(cursor, builder, table)?)
        }
        "between" => {
            cursor.json_punct(b',')?;
            let column = read_column(cursor, builder, table)?;
            let low = read_operand(cursor, builder, table)?;
            let high = read_operand(cursor, builder, table)?;
            Condition::Between(column, low, high)
        }
        "in" => {
            cursor.json_punct(b',')?;
            let column = read_column(cursor, builder, table)?;
            cursor.json_punct(b',')?;
            cursor.json_punct(b'[')?;
            let mut list = Vec::new();
            let mut first = true;
            while cursor.json_more(&mut first, b']')? {
                list.push(cursor.json_token(builder)?);
            }
            Condition::In(column, list)
        }
        sign => {
            let named = |comparison: &Comparison| comparison.sign() == sign;
            let Some(comparison) = Comparison::ALL.into_iter().find(named) else {
                cursor.at = at;
                return Err(cursor.wrong(
                    "a condition: \"and\", \"or\", \"not\", \"=\", \"<>\", \"<\", \"<=\", \">\", \">=\", \"between\", \"in\" or \"is-null\"",
                ));
            };
            cursor.json_punct(b',')?;
            let column = read_column(cursor, builder, table)?;
            Condition::Compare(comparison, column, read_operand(cursor, builder, table)?)
        }
    };
    cursor.json_punct(b']')?;
    Ok(condition)
}

fn read_column(
    cursor: &mut Cursor<'_>,
    builder: &HistoryBuilder,
    table: u32,
) -> Result<Column, ReadError> {
    let at = cursor.at;
    let name = cursor.json_text()?;
    builder.find_column(table, &name).ok_or_else(|| {
        cursor.at = at;
        unknown_column(cursor, builder, table, &name)
    })
}

/// `,5`, `,"text"`, `,null` or `,{"column":"c2"}`
fn read_operand(
    cursor: &mut Cursor<'_>,
    builder: &mut HistoryBuilder,
    table: u32,
) -> Result<Operand, ReadError> {
    cursor.json_punct(b',')?;
    if cursor.peek() != b'{' {
        return Ok(Operand::Literal(cursor.json_token(builder)?));
    }
    cursor.json_punct(b'{')?;
    let at = cursor.at;
    if cursor.json_text()? != "column" {
        cursor.at = at;
        return Err(cursor.wrong("{\"column\":…}"));
    }
    cursor.json_punct(b':')?;
    let column = read_column(cursor, builder, table)?;
    cursor.json_punct(b'}')?;
    Ok(Operand::Column(column))
}

fn expect_no_columns(
    cursor: &Cursor<'_>,
    builder: &HistoryBuilder,
    key: Token,
) -> Result<(), ReadError> {
    match builder.table_of(key) {
        Some(table) if builder.n_columns(table) > 0 => {
            let name = builder.show(key);
            let found = format!("a write of key {name} without its row");
            let expected = format!(
                "the row after the value, such as {{\"c0\":3}}; the columns are {}",
                builder.column_names(table)
            );
            Err(cursor.fail(InputProblem::Syntax { found, expected }))
        }
        _ => Ok(()),
    }
}

fn expect_in_table(
    cursor: &Cursor<'_>,
    builder: &HistoryBuilder,
    table: u32,
    key: Token,
) -> Result<(), ReadError> {
    if builder.table_of(key) == Some(table) {
        return Ok(());
    }
    let name = builder.show(key);
    let problem = format!("the query returned key {name}, which is not in the table that it asked");
    Err(cursor.fail(InputProblem::Contradiction(problem)))
}

#[cold]
fn unknown_column(
    cursor: &Cursor<'_>,
    builder: &HistoryBuilder,
    table: u32,
    name: &str,
) -> ReadError {
    cursor.fail(InputProblem::Syntax {
        found: format!("column `{name}`"),
        expected: format!("a column of the table: {}", builder.column_names(table)),
    })
}
