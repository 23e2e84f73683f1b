//! Builds the history of what was drawn.

use kingsnake_history::level::Model;
use kingsnake_history::model::{
    Act, BuildError, Column, History, HistoryBuilder, Installed, Query, Stamps, Token, ValueId,
};

use super::{Cell, Combined, Event, INITIAL, PREFIXES, TABLES, Where, cell, condition};

/// Makes the history.
pub(super) struct Maker<'c> {
    of: &'c Combined,
    builder: HistoryBuilder,
    keys: Vec<Token>,
    lists: [Token; 2],
    set: Token,
    counter: Token,
}

impl<'c> Maker<'c> {
    pub(super) fn new(of: &'c Combined) -> Self {
        let mut builder = HistoryBuilder::new();
        let prefixes = of.tables.iter().map(|&table| PREFIXES[table]);
        let names = prefixes
            .enumerate()
            .map(|(key, prefix)| format!("{prefix}/{key}"));
        let keys = names.map(|name| builder.text(&name)).collect();
        // Before all rows, where no range begins.
        let lists = ["list", "list2"].map(|name| builder.text(name));
        let [set, counter] = ["set", "counter"].map(|name| builder.text(name));
        Maker {
            of,
            builder,
            keys,
            lists,
            set,
            counter,
        }
    }

    pub(super) fn build(mut self) -> Result<History, BuildError> {
        let of = self.of;
        if of.has_table {
            // With a second table, keys that name none are in none.
            for (table, n_columns) in TABLES {
                let name = self.builder.text(table);
                let columns = ["c", "d"].map(|name| self.builder.text(name));
                self.builder.table(name, columns[..n_columns].to_vec())?;
            }
        }
        let all = of.there.iter().all(|&is| is);
        let initial = if all { Token::Int(INITIAL) } else { Token::Nil };
        self.builder.initial_everywhere(initial);
        for key in (0..of.there.len()).filter(|&key| of.there[key]) {
            if !all {
                self.builder.initial(self.keys[key], Token::Int(INITIAL));
            }
            let value = Token::Int(INITIAL).into();
            let value = self.builder.version(self.keys[key], value);
            self.row(value, key, INITIAL)?;
        }
        for (name, run) in of.runs.iter().enumerate() {
            let session = self.builder.session(Token::Int(run.session as i64));
            let name = Token::Int(name as i64 + 1);
            self.builder.begin(session, name, run.status)?;
            let is_backward = run
                .begin
                .is_some_and(|begin| run.commit.is_some_and(|it| it < begin));
            self.builder
                .times(run.begin.filter(|_| !is_backward), run.commit);
            if let Some((start, commit)) = run.stamps {
                self.builder.stamps(Stamps {
                    xid: None,
                    start_ts: Some(start),
                    commit_ts: Some(commit),
                });
            }
            let model = self.builder.text(run.model.name());
            self.builder.isolation(model);
            for event in &run.events {
                self.event(event)?;
            }
        }
        for (key, is_list, cells) in &of.orders {
            // A change may have taken a write away, and an order that names its value is bad input.
            let written = if *is_list { Vec::new() } else { of.cells(*key) };
            let is_written = |cell: &&Cell| *is_list || written.contains(cell);
            let key = if *is_list {
                self.lists[*key]
            } else {
                self.keys[*key]
            };
            let listed = cells.iter().filter(is_written).map(|cell| match *cell {
                Cell::Initial => Installed::Value(Token::Int(INITIAL)),
                Cell::Value(value) => Installed::Value(Token::Int(value)),
                Cell::Deleted(name) => Installed::Tombstone(Token::Int(name)),
            });
            self.builder.version_order(key, listed)?;
        }
        let mut history = self.builder.finish()?;
        // Named as they stand in the file, numbered session by session.
        let model = |txn: &Token| match *txn {
            Token::Int(name) => of.runs[name as usize - 1].model,
            _ => Model::Rc,
        };
        let models: Vec<Model> = history
            .txns()
            .map(|txn| model(&history.txn_token(txn)))
            .collect();
        let set: Result<(), std::convert::Infallible> =
            history.set_models(|_, txn| Ok(models[txn.index()]));
        match set {
            Ok(()) => Ok(history),
        }
    }

    fn row(&mut self, value: ValueId, key: usize, number: i64) -> Result<(), BuildError> {
        let table = TABLES.get(self.of.tables[key]);
        let Some(&(_, n_columns)) = table.filter(|_| self.of.has_table) else {
            return Ok(());
        };
        let cells = (0..n_columns as u32).map(|column| cell(key, number, Column::Cell(column)));
        self.builder.row(value, &cells.collect::<Vec<_>>())
    }

    fn write(&mut self, key: usize, value: i64) -> Result<(), BuildError> {
        let written = self.builder.write(self.keys[key], Token::Int(value));
        self.row(written, key, value)
    }

    fn name(&self, name: i64) -> Token {
        if self.of.is_nameless {
            Token::Nil
        } else {
            Token::Int(name)
        }
    }

    fn initial(&self, key: usize) -> Token {
        if self.of.there[key] {
            Token::Int(INITIAL)
        } else {
            Token::Nil
        }
    }

    fn event(&mut self, event: &Event) -> Result<(), BuildError> {
        let from = self.builder.n_ops();
        match event {
            &Event::Read(key, held, shows_deleted) => {
                let token = self.keys[key];
                match held {
                    Cell::Initial => self.builder.read(token, self.initial(key)),
                    Cell::Value(value) => self.builder.read(token, Token::Int(value)),
                    Cell::Deleted(name) if shows_deleted => {
                        self.builder.read_tombstone(token, self.name(name))
                    }
                    Cell::Deleted(_) => self.builder.read(token, Token::Nil),
                };
            }
            &Event::Write(key, value) => self.write(key, value)?,
            &Event::Insert(key, value) => {
                let written = self.builder.insert(self.keys[key], Token::Int(value));
                self.row(written, key, value)?;
            }
            &Event::Delete(key, name) => {
                self.builder.delete(self.keys[key], self.name(name));
            }
            &Event::Append(list, value) => {
                self.builder.append(self.lists[list], Token::Int(value));
            }
            Event::ReadList(list, items) => {
                let items = items.iter().map(|&item| Token::Int(item));
                self.builder.read_list(self.lists[*list], items);
            }
            Event::Range {
                low,
                high,
                rows,
                shows_deleted,
            } => {
                let (mut live, mut dead) = (Vec::new(), Vec::new());
                for &(key, held) in rows {
                    match held {
                        Cell::Initial => live.push((self.keys[key], Token::Int(INITIAL))),
                        Cell::Value(value) => live.push((self.keys[key], Token::Int(value))),
                        Cell::Deleted(name) => dead.push((self.keys[key], self.name(name))),
                    }
                }
                let key = |key: usize| self.keys[key];
                let (low, high) = (low.map(key), high.map(key));
                let dead = shows_deleted.then_some(dead.as_slice());
                self.builder.range(low, high, &live, dead)?;
            }
            Event::Select(asked, rows) => {
                for &(key, value) in rows {
                    self.builder.read(self.keys[key], Token::Int(value));
                }
                self.predicate(Act::Select, *asked, from);
            }
            Event::Update(asked, rows) => {
                for &(key, old, new) in rows {
                    if let Some(old) = old {
                        self.builder.read(self.keys[key], Token::Int(old));
                    }
                    self.write(key, new)?;
                }
                self.predicate(Act::Update, *asked, from);
            }
            Event::DeleteWhere(asked, rows) => {
                for &(key, old, name) in rows {
                    self.builder.read(self.keys[key], Token::Int(old));
                    self.builder.delete(self.keys[key], self.name(name));
                }
                self.predicate(Act::Delete, *asked, from);
            }
            &Event::Aggregate(asked, function, column, result) => {
                let act = Act::Aggregate {
                    function,
                    column,
                    result,
                };
                self.predicate(act, asked, from);
            }
            &Event::Add(element) => self.builder.add(self.set, Token::Int(element))?,
            Event::ReadSet(elements) => {
                let elements = elements.iter().map(|&element| Token::Int(element));
                self.builder.read_set(self.set, elements)?;
            }
            &Event::Increment(by) => self.builder.increment(self.counter, by)?,
            &Event::ReadCounter(value) => self.builder.read_counter(self.counter, value)?,
        }
        Ok(())
    }

    fn predicate(&mut self, act: Act, asked: Where, from: usize) {
        let query = Query {
            table: asked.table as u32,
            condition: condition(asked),
        };
        self.builder.predicate(act, query, from, None);
    }
}
