//! Writes rows, stamps and the operations that choose rows by a condition, in our own format.

use std::io::{self, Write};

use kingsnake_history::model::{
    Act, Column, Condition, ObjectKind, Op, Operand, Predicate, Snapshot, Token, TxnId, ValueId,
};

use super::kingsnake::Show;

impl Show<'_> {
    /// `,"tables":{…}` of the header.
    pub(super) fn tables(&self, out: &mut dyn Write) -> io::Result<()> {
        let all = self.history.tables().iter();
        let declared: Vec<_> = all.filter(|it| it.object.is_none()).collect();
        if declared.is_empty() {
            return Ok(());
        }
        for (index, table) in declared.into_iter().enumerate() {
            let before: &[u8] = if index == 0 { b",\"tables\":{" } else { b"," };
            out.write_all(before)?;
            self.token(out, table.name)?;
            out.write_all(b":[")?;
            self.tokens(out, &table.columns)?;
            out.write_all(b"]")?;
        }
        out.write_all(b"}")
    }

    fn tokens(&self, out: &mut dyn Write, tokens: &[Token]) -> io::Result<()> {
        for (index, &token) in tokens.iter().enumerate() {
            out.write_all(if index == 0 { b"" } else { b"," })?;
            self.token(out, token)?;
        }
        Ok(())
    }

    /// `,{"c0":3,…}`, if the version has a row.
    pub(super) fn row(&self, out: &mut dyn Write, before: &str, value: ValueId) -> io::Result<()> {
        let history = self.history;
        let table = history.table_of(history.value_key(value));
        let (true, Some(table)) = (history.has_row(value), table) else {
            return Ok(());
        };
        write!(out, "{before}{{")?;
        let mut first = true;
        for (at, &column) in history.tables()[table as usize].columns.iter().enumerate() {
            let cell = history.cell(value, Column::Cell(at as u32));
            if cell == Token::Nil {
                continue;
            }
            out.write_all(if first { b"" } else { b"," })?;
            first = false;
            self.token(out, column)?;
            out.write_all(b":")?;
            self.token(out, cell)?;
        }
        out.write_all(b"}")
    }

    /// `,"xid":…,"start_ts":…,"commit_ts":…`, as far as they are known.
    pub(super) fn stamps(&self, out: &mut dyn Write, txn: TxnId) -> io::Result<()> {
        let stamps = self.history.stamps(txn);
        let all = [
            ("xid", stamps.xid),
            ("start_ts", stamps.start_ts),
            ("commit_ts", stamps.commit_ts),
        ];
        for (name, stamp) in all {
            if let Some(stamp) = stamp {
                write!(out, ",\"{name}\":{stamp}")?;
            }
        }
        Ok(())
    }

    /// `["add",set,element]` or `["inc",counter,amount]`
    pub(super) fn object_write(
        &self,
        out: &mut dyn Write,
        kind: ObjectKind,
        name: Token,
        part: Token,
    ) -> io::Result<()> {
        let word = match kind {
            ObjectKind::Set => "add",
            ObjectKind::Counter => "inc",
        };
        write!(out, "[\"{word}\",")?;
        self.token(out, name)?;
        out.write_all(b",")?;
        self.token(out, part)?;
        out.write_all(b"]")
    }

    /// `["rs",set,[element,…]]` or `["rc",counter,value]`
    fn object_read(
        &self,
        out: &mut dyn Write,
        name: Token,
        act: Act,
        ops: &[Op],
    ) -> io::Result<()> {
        let is_sum = matches!(act, Act::Aggregate { .. });
        out.write_all(if is_sum { b"[\"rc\"," } else { b"[\"rs\"," })?;
        self.token(out, name)?;
        out.write_all(b",")?;
        if let Act::Aggregate { result, .. } = act {
            self.token(out, result)?;
            return out.write_all(b"]");
        }
        let rows = ops
            .iter()
            .filter_map(|op| self.history.object_row(op.key()?));
        let elements: Vec<Token> = rows.map(|it| it.2).collect();
        out.write_all(b"[")?;
        self.tokens(out, &elements)?;
        out.write_all(b"]]")
    }

    /// One operation that chooses rows, with the reads and writes that are its own.
    pub(super) fn predicate(
        &self,
        out: &mut dyn Write,
        predicate: &Predicate,
        ops: &[Op],
    ) -> io::Result<()> {
        let query = &self.history.queries()[predicate.query as usize];
        if let Some((_, name)) = self.history.tables()[query.table as usize].object {
            return self.object_read(out, name, predicate.act, ops);
        }
        let word = match predicate.act {
            Act::Select => "select",
            Act::Update => "update",
            Act::Delete => "delete",
            Act::Aggregate { .. } => "aggregate",
        };
        write!(out, "[\"{word}\",")?;
        out.write_all(b"{\"table\":")?;
        self.token(out, self.history.tables()[query.table as usize].name)?;
        if query.condition != Condition::Always(true) {
            out.write_all(b",\"where\":")?;
            self.condition(out, query.table, &query.condition)?;
        }
        out.write_all(b"},")?;
        match predicate.act {
            Act::Aggregate {
                function,
                column,
                result,
            } => {
                write!(out, "\"{}\",", function.name())?;
                match column {
                    None => out.write_all(b"null")?,
                    Some(column) => self.column(out, query.table, column)?,
                }
                out.write_all(b",")?;
                self.token(out, result)?;
            }
            _ => self.chosen(out, ops)?,
        }
        self.snapshot(out, predicate.snapshot.as_ref())?;
        out.write_all(b"]")
    }

    /// `[[key,value],…]`, `[[key,old,new,row],…]` or `[[key,old,tombstone],…]`
    fn chosen(&self, out: &mut dyn Write, ops: &[Op]) -> io::Result<()> {
        let history = self.history;
        out.write_all(b"[")?;
        let mut open = None;
        for &op in ops {
            let (Op::Read { key, value } | Op::Write { key, value }) = op else {
                continue;
            };
            if open != Some(key) {
                let before: &[u8] = if open.is_some() { b"],[" } else { b"[" };
                out.write_all(before)?;
                self.token(out, history.key_token(key))?;
                open = Some(key);
            }
            if op.is_write() && history.is_absence(value) {
                if history.is_tombstone(value) {
                    out.write_all(b",")?;
                    self.token(out, history.value_token(value))?;
                }
                continue;
            }
            out.write_all(b",")?;
            self.token(out, history.value_token(value))?;
            if op.is_write() {
                self.row(out, ",", value)?;
            }
        }
        out.write_all(if open.is_some() { b"]]" } else { b"]" })
    }

    fn snapshot(&self, out: &mut dyn Write, snapshot: Option<&Snapshot>) -> io::Result<()> {
        match snapshot {
            None => Ok(()),
            Some(Snapshot::At(at)) => write!(out, ",{{\"at\":{at}}}"),
            Some(Snapshot::Postgres {
                xmin,
                xmax,
                running,
            }) => {
                let running: Vec<String> = running.iter().map(ToString::to_string).collect();
                write!(out, ",{{\"pg\":\"{xmin}:{xmax}:{}\"}}", running.join(","))
            }
            Some(Snapshot::Set(versions)) => {
                out.write_all(b",{\"set\":[")?;
                for (index, &value) in versions.iter().enumerate() {
                    out.write_all(if index == 0 { b"[" } else { b",[" })?;
                    self.token(out, self.history.key_token(self.history.value_key(value)))?;
                    out.write_all(b",")?;
                    let is_named = self.history.is_tombstone(value);
                    out.write_all(if is_named { b"{\"deleted\":" } else { b"" })?;
                    self.token(out, self.history.value_token(value))?;
                    out.write_all(if is_named { b"}]" } else { b"]" })?;
                }
                out.write_all(b"]}")
            }
        }
    }

    fn column(&self, out: &mut dyn Write, table: u32, column: Column) -> io::Result<()> {
        let name = self.history.column_name(table, column);
        Ok(serde_json::to_writer(out, &name)?)
    }

    fn operand(&self, out: &mut dyn Write, table: u32, operand: Operand) -> io::Result<()> {
        out.write_all(b",")?;
        match operand {
            Operand::Literal(token) => self.token(out, token),
            Operand::Column(column) => {
                out.write_all(b"{\"column\":")?;
                self.column(out, table, column)?;
                out.write_all(b"}")
            }
        }
    }

    fn condition(&self, out: &mut dyn Write, table: u32, condition: &Condition) -> io::Result<()> {
        let parts = |out: &mut dyn Write, word: &str, parts: &[Condition]| {
            write!(out, "[\"{word}\"")?;
            for part in parts {
                out.write_all(b",")?;
                self.condition(out, table, part)?;
            }
            out.write_all(b"]")
        };
        match condition {
            Condition::Always(is) => return write!(out, "{is}"),
            Condition::And(all) => return parts(out, "and", all),
            Condition::Or(all) => return parts(out, "or", all),
            Condition::Not(part) => return parts(out, "not", std::slice::from_ref(part)),
            Condition::Compare(comparison, column, with) => {
                write!(out, "[\"{}\",", comparison.sign())?;
                self.column(out, table, *column)?;
                self.operand(out, table, *with)?;
            }
            Condition::Between(column, low, high) => {
                out.write_all(b"[\"between\",")?;
                self.column(out, table, *column)?;
                self.operand(out, table, *low)?;
                self.operand(out, table, *high)?;
            }
            Condition::In(column, list) => {
                out.write_all(b"[\"in\",")?;
                self.column(out, table, *column)?;
                out.write_all(b",[")?;
                self.tokens(out, list)?;
                out.write_all(b"]")?;
            }
            Condition::IsNull(column) => {
                out.write_all(b"[\"is-null\",")?;
                self.column(out, table, *column)?;
            }
        }
        out.write_all(b"]")
    }
}
