//! Rows, predicates and stamps of a history, and how a builder takes them.

use super::build_error::BuildError;
use super::builder::HistoryBuilder;
use super::history::{History, Op};
use super::ids::{KeyId, TxnId, ValueId};
use super::names::Token;
use super::predicates::{Act, Column, NO_ROW, Predicate, Query, Snapshot, Stamps, Table};

/// The built-in columns' names.
pub const BUILT_IN: [(&str, Column); 2] = [("key", Column::Key), ("value", Column::Value)];

impl History {
    /// The tables that the history declares.
    pub fn tables(&self) -> &[Table] {
        &self.rows.tables
    }

    /// The table of a key: that of its set or counter, the only declared one, or the one whose name stands before the first `/`
    /// of the key.
    pub fn table_of(&self, key: KeyId) -> Option<u32> {
        self.rows.table_of(&self.symbols, self.key_token(key))
    }

    /// Whether a version came with its row.
    pub fn has_row(&self, value: ValueId) -> bool {
        self.rows.row(value).is_some()
    }

    /// A column of a version; null where the version came without a row.
    pub fn cell(&self, value: ValueId, column: Column) -> Token {
        match column {
            Column::Key => self.key_token(self.value_key(value)),
            Column::Value => self.value_token(value),
            Column::Cell(at) => match self.rows.row(value) {
                None => Token::Nil,
                Some(start) => self.rows.cells[start + at as usize],
            },
        }
    }

    /// The number of operations that choose rows by a condition.
    pub fn n_predicates(&self) -> usize {
        self.rows.predicates.len()
    }

    /// A transaction's operations that choose rows by a condition, in program order.
    pub fn predicates(&self, txn: TxnId) -> impl ExactSizeIterator<Item = &Predicate> + Clone {
        self.numbered_predicates(txn).map(|it| it.1)
    }

    /// The same, each with its number among all of the history.
    pub fn numbered_predicates(
        &self,
        txn: TxnId,
    ) -> impl ExactSizeIterator<Item = (u32, &Predicate)> + Clone {
        let all = &self.rows.predicates;
        let start = all.partition_point(|it| it.0 < txn);
        let end = start + all[start..].partition_point(|it| it.0 == txn);
        let own = all[start..end].iter().enumerate();
        own.map(move |(at, it)| ((start + at) as u32, &it.1))
    }

    /// Every operation that chooses rows by a condition, transaction by transaction.
    pub fn all_predicates(&self) -> &[(TxnId, Predicate)] {
        &self.rows.predicates
    }

    /// The queries, each once.
    pub fn queries(&self) -> &[Query] {
        &self.rows.queries
    }

    /// The database's record of when a transaction ran.
    pub fn stamps(&self, txn: TxnId) -> Stamps {
        let stamps = self.rows.stamps.get(txn.index());
        stamps.copied().unwrap_or_default()
    }

    /// Whether any transaction has a stamp.
    pub fn has_stamps(&self) -> bool {
        !self.rows.stamps.is_empty()
    }

    /// Drops the conditions: the chosen rows stay, as plain reads and writes.
    pub fn forget_predicates(&mut self) {
        self.rows.predicates.clear();
        self.rows.queries.clear();
        self.rows.query_ids.clear();
    }

    /// The name of a column of a table.
    pub fn column_name(&self, table: u32, column: Column) -> String {
        match column {
            Column::Cell(at) => {
                let columns = &self.rows.tables[table as usize].columns;
                self.symbols.show(columns[at as usize])
            }
            other => built_in_name(other).to_owned(),
        }
    }

    /// A query's condition, in SQL's notation.
    pub fn condition_text(&self, query: u32) -> String {
        let query = &self.rows.queries[query as usize];
        let show = |token: Token| self.symbols.show(token);
        let name = |column: Column| self.column_name(query.table, column);
        query.condition.show(&show, &name)
    }

    /// Whether a version satisfies a query's condition: it has a row, and the condition is true of it.
    pub fn satisfies(&self, query: u32, value: ValueId) -> bool {
        let condition = &self.rows.queries[query as usize].condition;
        !self.is_absence(value)
            && condition.holds(&self.symbols, &|column| self.cell(value, column)) == Some(true)
    }
}

fn built_in_name(column: Column) -> &'static str {
    let found = BUILT_IN.iter().find(|it| it.1 == column);
    found.map_or("", |it| it.0)
}

impl HistoryBuilder {
    /// Declares a table and its columns. Call it before the first row.
    pub fn table(&mut self, name: Token, columns: Vec<Token>) -> Result<(), BuildError> {
        let text = self.show(name);
        let has_slash = text.contains('/') || text.is_empty();
        if has_slash || !matches!(name, Token::Text(_)) {
            return Err(BuildError::TableName { name: text });
        }
        let rows = &mut self.history.rows;
        let table = rows.tables.len() as u32;
        if rows.table_ids.contains_key(&name) {
            return Err(BuildError::DuplicateTable { name: text });
        }
        for (at, &column) in columns.iter().enumerate() {
            let column_text = self.history.symbols.show(column);
            let is_built_in = BUILT_IN.iter().any(|it| it.0 == column_text);
            let before = rows.column_ids.insert((table, column), at as u32);
            if is_built_in || before.is_some() {
                return Err(BuildError::DuplicateColumn {
                    table: text,
                    column: column_text,
                });
            }
        }
        rows.table_ids.insert(name, table);
        rows.tables.push(Table {
            name,
            columns,
            object: None,
        });
        Ok(())
    }

    /// The table of this name, by its place.
    pub fn find_table(&self, name: &str) -> Option<u32> {
        self.history.rows.find_table(&self.history.symbols, name)
    }

    /// The names of all tables, for error messages.
    pub fn table_names(&self) -> String {
        let names = self.history.rows.tables.iter();
        let names = names.map(|table| self.show(table.name));
        names.collect::<Vec<_>>().join(", ")
    }

    /// The column of this name.
    pub fn find_column(&self, table: u32, name: &str) -> Option<Column> {
        if let Some(built_in) = BUILT_IN.iter().find(|it| it.0 == name) {
            return Some(built_in.1);
        }
        let symbol = self.history.symbols.find(name)?;
        let found = self
            .history
            .rows
            .column_ids
            .get(&(table, Token::Text(symbol)));
        found.map(|&at| Column::Cell(at))
    }

    /// The names of a table's columns, for error messages.
    pub fn column_names(&self, table: u32) -> String {
        let own = self.history.rows.tables[table as usize].columns.iter();
        let own = own.map(|&column| self.show(column));
        let all = own.chain(BUILT_IN.iter().map(|it| it.0.to_owned()));
        all.collect::<Vec<_>>().join(", ")
    }

    /// Whether some table of the file declares columns.
    pub fn has_columns(&self) -> bool {
        !self.history.rows.column_ids.is_empty()
    }

    /// The table of a key, if it has one.
    pub fn table_of(&self, key: Token) -> Option<u32> {
        self.history.rows.table_of(&self.history.symbols, key)
    }

    /// How many columns a table declares.
    pub fn n_columns(&self, table: u32) -> usize {
        self.history.rows.tables[table as usize].columns.len()
    }

    /// Gives the row of a version: a cell for each column that its table declares.
    pub fn row(&mut self, value: ValueId, cells: &[Token]) -> Result<(), BuildError> {
        let rows = &mut self.history.rows;
        if let Some(start) = rows.row(value) {
            if rows.cells[start..start + cells.len()] == *cells {
                return Ok(());
            }
            let key = self.history.value_key[value.index()];
            return Err(BuildError::TwoRows {
                key: self.show(self.history.key_names.get(key.index())),
                value: self.show(self.history.value_names.get(value.index())),
            });
        }
        if rows.row_start.len() <= value.index() {
            rows.row_start.resize(value.index() + 1, NO_ROW);
        }
        rows.row_start[value.index()] = rows.cells.len() as u32;
        rows.cells.extend_from_slice(cells);
        Ok(())
    }

    /// The value of a key, for the versions of a snapshot.
    pub fn version(&mut self, key: Token, installed: super::Installed) -> ValueId {
        let key = self.key(key);
        match installed {
            super::Installed::Value(value) => self.value(key, value),
            super::Installed::Tombstone(name) => self.tombstone(key, name),
        }
    }

    /// How many operations the transaction begun last has, to say later where those of a predicate began.
    pub fn n_ops(&self) -> usize {
        self.history.ops.len() - self.ops_start()
    }

    /// The operations of the transaction begun last, from `from` on, are those of one predicate.
    pub fn predicate(&mut self, act: Act, query: Query, from: usize, snapshot: Option<Snapshot>) {
        let n_ops = self.n_ops() - from;
        let txn = TxnId(self.history.txns.len() as u32 - 1);
        let rows = &mut self.history.rows;
        let next = rows.queries.len() as u32;
        let query = *rows.query_ids.entry(query).or_insert_with_key(|query| {
            rows.queries.push(query.clone());
            next
        });
        let predicate = Predicate {
            act,
            query,
            at: from as u32,
            n_ops: n_ops as u32,
            snapshot,
        };
        rows.predicates.push((txn, predicate));
    }

    /// Sets the database's record of when the transaction begun last ran.
    pub fn stamps(&mut self, stamps: Stamps) {
        let n_txns = self.history.txns.len();
        let all = &mut self.history.rows.stamps;
        all.resize(n_txns, Stamps::default());
        all[n_txns - 1] = stamps;
    }

    /// The numbers that transactions have.
    pub fn xids(&self) -> rustc_hash::FxHashSet<i64> {
        let stamps = self.history.rows.stamps.iter();
        stamps.filter_map(|stamps| stamps.xid).collect()
    }

    /// The first of these versions that no operation wrote and that is not initial.
    pub fn first_unwritten<'v>(
        &self,
        versions: &'v [(usize, ValueId)],
    ) -> Option<&'v (usize, ValueId)> {
        let mut written = self.history.value_initial.clone();
        for op in &self.history.ops {
            if let Op::Write { value, .. } | Op::Append { value, .. } = *op {
                written[value.index()] = true;
            }
        }
        versions.iter().find(|it| !written[it.1.index()])
    }

    /// A version in words, for error messages.
    pub fn show_version(&self, value: ValueId) -> String {
        let key = self.history.value_key[value.index()];
        let key = self.show(self.history.key_names.get(key.index()));
        format!(
            "value {} of key {key}",
            self.show(self.history.value_names.get(value.index()))
        )
    }
}
