//! Small random histories of rows and predicates with a complete certificate: a simulated multi-version store, with reads of
//! wrong versions, wrong results and swapped version orders now and then.

use kingsnake_history::model::{
    Act, Column, Comparison, Condition, Function, History, HistoryBuilder, Installed, Operand,
    Query, Snapshot, Stamps, Status, Token, ValueId,
};
use kingsnake_history::rng::Rng;

/// How a history of predicates goes wrong, in percent of the operations.
#[derive(Clone, Copy, Debug)]
pub struct Wrong {
    /// An operation reads another snapshot than its transaction's.
    pub snapshots: usize,
    /// A read returns any version.
    pub reads: usize,
    /// A predicate returns a row too few or too many.
    pub results: usize,
    /// Two neighbours of a version order are swapped, in percent of the keys.
    pub orders: usize,
}

impl Wrong {
    /// Nothing goes wrong, except that transactions read old snapshots.
    pub const NOT: Wrong = Wrong {
        snapshots: 0,
        reads: 0,
        results: 0,
        orders: 0,
    };
    /// Something goes wrong in about half of the histories.
    pub const OFTEN: Wrong = Wrong {
        snapshots: 12,
        reads: 3,
        results: 4,
        orders: 8,
    };
}

#[derive(Clone, Copy)]
struct Version {
    writer: usize,
    /// `None` is a delete.
    row: Option<[Token; 2]>,
    name: Token,
    value: ValueId,
}

struct PredicateStore<'r> {
    rng: &'r mut Rng,
    builder: HistoryBuilder,
    wrong: Wrong,
    /// Of each key, the committed versions, oldest first; the initial one heads the list where there is one.
    keys: Vec<Vec<Version>>,
    /// What the running transaction wrote.
    own: Vec<Option<Version>>,
    n_values: i64,
    xids: Vec<i64>,
}

const NOBODY: usize = usize::MAX;

/// A history of a few transactions on a few rows, whose certificate is complete.
pub fn small_predicates(rng: &mut Rng, wrong: Wrong) -> History {
    let n_txns = rng.between(2, 5);
    let n_keys = rng.between(1, 3);
    let mut builder = HistoryBuilder::new();
    builder.initial_everywhere(Token::Nil);
    let names = ["t", "c0", "c1"].map(|name| builder.text(name));
    builder
        .table(names[0], names[1..].to_vec())
        .expect("the names differ");
    let mut xids: Vec<i64> = (100..100 + n_txns as i64).collect();
    for at in (1..n_txns).rev() {
        xids.swap(at, rng.below(at + 1));
    }
    let mut store = PredicateStore {
        rng,
        builder,
        wrong,
        keys: vec![Vec::new(); n_keys],
        own: vec![None; n_keys],
        n_values: 0,
        xids,
    };
    for key in 0..n_keys {
        if store.rng.chance(50) {
            store.builder.initial(Token::Int(key as i64), Token::Int(0));
            let value = store
                .builder
                .version(Token::Int(key as i64), Token::Int(0).into());
            let row = store.cells();
            store.builder.row(value, &row).expect("it has one row");
            store.keys[key].push(Version {
                writer: NOBODY,
                row: Some(row),
                name: Token::Int(0),
                value,
            });
        }
    }
    for txn in 0..n_txns {
        store.run(txn);
    }
    store.finish()
}

impl PredicateStore<'_> {
    fn cells(&mut self) -> [Token; 2] {
        [0, 1].map(|_| match self.rng.below(6) {
            0 => Token::Nil,
            n => Token::Int(n as i64),
        })
    }

    fn run(&mut self, txn: usize) {
        let session = self.builder.session(Token::Int(self.rng.below(3) as i64));
        let is_aborted = self.rng.chance(8);
        let status = if is_aborted {
            Status::Aborted
        } else {
            Status::Committed
        };
        self.builder
            .begin(session, Token::Int(txn as i64 + 1), status)
            .expect("every transaction has its own name");
        let base = if self.rng.chance(60) {
            txn
        } else {
            self.rng.below(txn + 1)
        };
        // Commits out of the order of the file; drawn aside, so that the rest of a seed's history stays as it was.
        let is_late = self.rng.clone().chance(self.wrong.orders);
        let late = if is_late { 15 } else { 0 };
        self.builder.stamps(Stamps {
            xid: Some(self.xids[txn]),
            start_ts: Some(10 * base as i64),
            commit_ts: (!is_aborted).then_some(10 * (txn as i64 + 1) + late),
        });
        self.own.fill(None);
        for _ in 0..self.rng.between(1, 4) {
            let snapshot = if self.rng.chance(self.wrong.snapshots) {
                self.rng.below(txn + 1)
            } else {
                base
            };
            match self.rng.below(8) {
                0 | 1 => self.write(txn),
                2 => self.read(snapshot),
                3 => self.delete(txn),
                _ => self.predicate(txn, base, snapshot),
            }
        }
        if !is_aborted {
            for key in 0..self.keys.len() {
                self.keys[key].extend(self.own[key].take());
            }
        }
    }

    fn write(&mut self, txn: usize) {
        let key = self.rng.below(self.keys.len());
        let row = self.cells();
        self.install(txn, key, Some(row));
    }

    fn delete(&mut self, txn: usize) {
        let key = self.rng.below(self.keys.len());
        self.install(txn, key, None);
    }

    fn install(&mut self, writer: usize, key: usize, row: Option<[Token; 2]>) {
        self.n_values += 1;
        let name = Token::Int(self.n_values);
        let token = Token::Int(key as i64);
        let value = match row {
            None => self.builder.delete(token, name),
            Some(row) => {
                let value = self.builder.write(token, name);
                self.builder.row(value, &row).expect("the value is new");
                value
            }
        };
        self.own[key] = Some(Version {
            writer,
            row,
            name,
            value,
        });
    }

    fn committed(&self, key: usize, snapshot: usize) -> Option<Version> {
        let seen = |version: &&Version| version.writer == NOBODY || version.writer < snapshot;
        self.keys[key].iter().rev().find(seen).copied()
    }

    fn visible(&self, key: usize, snapshot: usize) -> Option<Version> {
        self.own[key].or_else(|| self.committed(key, snapshot))
    }

    fn read(&mut self, snapshot: usize) {
        let key = self.rng.below(self.keys.len());
        let seen = if self.rng.chance(self.wrong.reads) {
            self.rng.pick(&self.keys[key]).copied()
        } else {
            self.visible(key, snapshot)
        };
        let token = Token::Int(key as i64);
        match seen {
            Some(Version {
                row: None, name, ..
            }) => {
                self.builder.read_tombstone(token, name);
            }
            Some(version) => {
                self.builder.read(token, version.name);
            }
            // A client that sees deletes says that it saw none.
            None => {
                let here = std::ops::Bound::Included(token);
                let asked = self.builder.range(here, here, &[], Some(&[]));
                asked.expect("it is one key");
            }
        }
    }

    fn predicate(&mut self, txn: usize, base: usize, snapshot: usize) {
        let query = Query {
            table: 0,
            condition: self.condition(2),
        };
        let notation = self.notation(base, snapshot);
        let mut chosen = Vec::new();
        let is_wrong = self.rng.chance(self.wrong.results);
        let victim = self.rng.below(self.keys.len());
        for key in 0..self.keys.len() {
            let seen = self.visible(key, snapshot);
            let Some(version) = seen.filter(|it| it.row.is_some()) else {
                continue;
            };
            let row = version.row.expect("it was just seen");
            let cell = |column: Column| match column {
                Column::Key => Token::Int(key as i64),
                Column::Value => version.name,
                Column::Cell(at) => row[at as usize],
            };
            let symbols = kingsnake_history::model::Symbols::default();
            let is = query.condition.holds(&symbols, &cell) == Some(true);
            if is != (is_wrong && key == victim) {
                chosen.push((key, version, row));
            }
        }
        let from = self.builder.n_ops();
        let act = match self.rng.below(6) {
            0 | 1 => {
                let function = Function::ALL[self.rng.below(4)];
                let column = match (function, self.rng.below(3)) {
                    (Function::Count, 0) => None,
                    (_, at) => Some(Column::Cell(at.min(1) as u32)),
                };
                let values = chosen.iter().map(|it| match column {
                    Some(Column::Cell(at)) => it.2[at as usize],
                    _ => Token::Int(1),
                });
                let symbols = kingsnake_history::model::Symbols::default();
                let result = function.apply(&symbols, values).expect("numbers are small");
                Act::Aggregate {
                    function,
                    column,
                    result,
                }
            }
            2 => {
                for &(key, version, mut row) in &chosen {
                    if self.rng.chance(70) {
                        self.builder.read(Token::Int(key as i64), version.name);
                    }
                    row[self.rng.below(2)] = Token::Int(self.rng.below(6) as i64);
                    self.install(txn, key, Some(row));
                }
                Act::Update
            }
            3 => {
                for &(key, version, _) in &chosen {
                    self.builder.read(Token::Int(key as i64), version.name);
                    self.install(txn, key, None);
                }
                Act::Delete
            }
            _ => {
                for &(key, version, _) in &chosen {
                    self.builder.read(Token::Int(key as i64), version.name);
                }
                Act::Select
            }
        };
        self.builder.predicate(act, query, from, notation);
    }

    /// One of the ways to say which snapshot it was.
    fn notation(&mut self, base: usize, snapshot: usize) -> Option<Snapshot> {
        match self.rng.below(4) {
            0 if base == snapshot => None,
            0 | 1 => Some(Snapshot::At(10 * snapshot as i64)),
            2 => {
                let seen = (0..self.keys.len()).filter_map(|key| self.committed(key, snapshot));
                Some(Snapshot::Set(seen.map(|version| version.value).collect()))
            }
            _ => {
                let mut running = self.xids[snapshot..].to_vec();
                running.sort_unstable();
                let xmax = 100 + self.xids.len() as i64;
                let xmin = running.first().copied().unwrap_or(xmax);
                Some(Snapshot::Postgres {
                    xmin,
                    xmax,
                    running,
                })
            }
        }
    }

    fn condition(&mut self, depth: usize) -> Condition {
        let column = *self
            .rng
            .pick(&[
                Column::Cell(0),
                Column::Cell(1),
                Column::Cell(0),
                Column::Key,
                Column::Value,
            ])
            .expect("there are some");
        let mut literal = || Token::Int(self.rng.below(6) as i64);
        let (one, other) = (literal(), literal());
        match self.rng.below(if depth == 0 { 5 } else { 8 }) {
            0 => Condition::IsNull(column),
            1 => Condition::In(column, vec![one, other]),
            2 | 3 => {
                let (low, high) = (one.min(other), one.max(other));
                Condition::Between(column, Operand::Literal(low), Operand::Literal(high))
            }
            4 => {
                let comparison = Comparison::ALL[self.rng.below(6)];
                let with = if self.rng.chance(15) {
                    Operand::Column(Column::Cell(1))
                } else {
                    Operand::Literal(one)
                };
                Condition::Compare(comparison, column, with)
            }
            5 => Condition::And(vec![self.condition(depth - 1), self.condition(depth - 1)]),
            6 => Condition::Or(vec![self.condition(depth - 1), self.condition(depth - 1)]),
            _ => Condition::Not(Box::new(self.condition(depth - 1))),
        }
    }

    fn finish(mut self) -> History {
        for key in 0..self.keys.len() {
            let mut list: Vec<Version> = self.keys[key].clone();
            list.retain(|version| version.writer != NOBODY);
            if list.len() > 1 && self.rng.chance(self.wrong.orders) {
                let at = self.rng.below(list.len() - 1);
                list.swap(at, at + 1);
            }
            let installed = list.iter().map(|version| match version.row {
                None => Installed::Tombstone(version.name),
                Some(_) => Installed::Value(version.name),
            });
            self.builder
                .version_order(Token::Int(key as i64), installed)
                .expect("every version is there once");
        }
        self.builder.finish().expect("it is a history")
    }
}
