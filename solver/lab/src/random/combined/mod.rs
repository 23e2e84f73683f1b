//! Small histories that combine whatever a history can have, at every level: a store that keeps the level, then perhaps a lie.
//!
//! Transactions commit one after the other. Each reads from a set of those before it that its level allows: all of them (ser), a prefix
//! (si, pc), a set that is closed under what its members saw (psi, cc), any set (ra), a set that grows from statement to statement
//! (rc). So the history satisfies its level by construction, before it is changed in up to two places.

mod change;
mod maker;
mod store;

use std::collections::BTreeSet;
use std::ops::Bound;

use kingsnake_history::level::{Level, Model};
use kingsnake_history::model::{
    BuildError, Column, Comparison, Condition, Function, History, Operand, Status, Symbols, Token,
};
use kingsnake_history::rng::Rng;
use maker::Maker;
use store::CombinedStore;

/// What a history can have besides reads and writes of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Feature {
    /// Conditions over rows: select, update, delete.
    Conditions,
    /// Functions of the rows that a condition chooses.
    Aggregates,
    /// Range queries.
    Ranges,
    /// Deletes and inserts.
    Deletes,
    /// Values that several transactions wrote.
    Repeats,
    /// Transactions of unknown end.
    Unknown,
    /// Transactions that aborted.
    Aborted,
    /// Lists.
    Lists,
    /// Orders of versions that the database gave.
    Orders,
    /// Begins and commits.
    Times,
    /// The database's own timestamps, which promise nothing.
    Stamps,
    /// Elements added to a set.
    Sets,
    /// Numbers added to a counter.
    Counters,
}

impl Feature {
    /// Every feature.
    pub const ALL: [Feature; 13] = [
        Feature::Conditions,
        Feature::Aggregates,
        Feature::Ranges,
        Feature::Deletes,
        Feature::Repeats,
        Feature::Unknown,
        Feature::Aborted,
        Feature::Lists,
        Feature::Orders,
        Feature::Times,
        Feature::Stamps,
        Feature::Sets,
        Feature::Counters,
    ];
}

/// The levels that are asked for.
pub const COMBINED_LEVELS: [Level; 12] = [
    Level::StrictSer,
    Level::Ser,
    Level::StrongSi,
    Level::Gsi,
    Level::Si,
    Level::Psi,
    Level::Pc,
    Level::Cc,
    Level::Ra,
    Level::RcSo,
    Level::Rc,
    Level::AsRecorded,
];

/// What a register held: a value, or a delete by its name, or the initial state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cell {
    Initial,
    Value(i64),
    Deleted(i64),
}

/// A condition on the rows of a table, kept small so that rows go in and out of it.
#[derive(Clone, Copy, Debug)]
struct Where {
    table: usize,
    test: Test,
}

#[derive(Clone, Copy, Debug)]
enum Test {
    Always,
    AtMost(i64),
    Equal(i64),
    Not(i64),
    IsNull,
    /// One of two numbers.
    In(i64, i64),
    /// Between two numbers, and not the first value of all.
    Within(i64, i64),
    /// The first column is less than the last one, or the value is great.
    Less(i64),
}

#[derive(Clone, Debug)]
enum Event {
    Read(usize, Cell, bool),
    Write(usize, i64),
    Insert(usize, i64),
    Delete(usize, i64),
    Append(usize, i64),
    ReadList(usize, Vec<i64>),
    Range {
        low: Bound<usize>,
        high: Bound<usize>,
        rows: Vec<(usize, Cell)>,
        shows_deleted: bool,
    },
    Select(Where, Vec<(usize, i64)>),
    /// Rows with the value found, if it was returned, and the new one.
    Update(Where, Vec<(usize, Option<i64>, i64)>),
    DeleteWhere(Where, Vec<(usize, i64, i64)>),
    Aggregate(Where, Function, Option<Column>, Token),
    Add(i64),
    ReadSet(Vec<i64>),
    Increment(i64),
    ReadCounter(i64),
}

#[derive(Clone, Debug)]
struct Run {
    session: usize,
    status: Status,
    begin: Option<i64>,
    commit: Option<i64>,
    /// When it read and committed by the database's clock.
    stamps: Option<(i64, i64)>,
    model: Model,
    events: Vec<Event>,
}

/// A history that can still be changed.
#[derive(Clone, Debug)]
pub struct Combined {
    /// The level that the store kept.
    pub level: Level,
    /// Whether it kept the order of sessions.
    pub session_order: bool,
    /// Which row keys are there before any transaction.
    there: Vec<bool>,
    /// The table of each key, in its order; without conditions all are registers.
    tables: Vec<usize>,
    has_table: bool,
    is_nameless: bool,
    /// In the order of the file.
    runs: Vec<Run>,
    orders: Vec<(usize, bool, Vec<Cell>)>,
}

/// The value of a register before any transaction, where it has one.
const INITIAL: i64 = 0;

/// The tables, and how many columns each has. Keys of the last prefix are in none.
const TABLES: [(&str, usize); 2] = [("t", 2), ("u", 1)];
const PREFIXES: [&str; 3] = ["t", "u", "x"];

/// A column of a version: a function of the key and the value, so that equal values have equal rows.
fn cell(key: usize, value: i64, column: Column) -> Token {
    let number = match column {
        Column::Key => return Token::Nil,
        Column::Value => return Token::Int(value),
        Column::Cell(0) => (7 * value + 3 * key as i64).rem_euclid(5),
        Column::Cell(_) => (3 * value + key as i64).rem_euclid(5),
    };
    match number {
        4 => Token::Nil,
        number => Token::Int(number),
    }
}

fn condition(asked: Where) -> Condition {
    let column = Column::Cell(0);
    let literal = |number| Operand::Literal(Token::Int(number));
    let compare = |sign, number| Condition::Compare(sign, column, literal(number));
    match asked.test {
        Test::Always => Condition::Always(true),
        Test::AtMost(number) => compare(Comparison::Le, number),
        Test::Equal(number) => compare(Comparison::Eq, number),
        Test::Not(number) => Condition::Not(Box::new(compare(Comparison::Eq, number))),
        Test::IsNull => Condition::IsNull(column),
        Test::In(one, other) => Condition::In(column, vec![Token::Int(one), Token::Int(other)]),
        Test::Within(low, high) => {
            let written = Condition::Compare(Comparison::Ne, Column::Value, literal(INITIAL));
            let within = Condition::Between(column, literal(low), literal(high));
            Condition::And(vec![within, written])
        }
        Test::Less(number) => {
            let last = Column::Cell(TABLES[asked.table].1 as u32 - 1);
            let less = Condition::Compare(Comparison::Lt, column, Operand::Column(last));
            let great = Condition::Compare(Comparison::Ge, Column::Value, literal(number));
            Condition::Or(vec![less, great])
        }
    }
}

fn chooses(asked: Where, key: usize, value: i64) -> bool {
    let cell = |column: Column| cell(key, value, column);
    condition(asked).holds(&Symbols::default(), &cell) == Some(true)
}

impl Combined {
    /// The history of a seed at any level with any features.
    pub fn draw(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let level = COMBINED_LEVELS[rng.below(COMBINED_LEVELS.len())];
        let features = Feature::ALL.into_iter().filter(|_| rng.chance(35));
        Combined::of(features.collect(), level, &mut rng)
    }

    fn of(mut features: BTreeSet<Feature>, level: Level, rng: &mut Rng) -> Self {
        let is_timed = matches!(level, Level::StrictSer | Level::StrongSi | Level::Gsi);
        if is_timed && rng.chance(95) {
            features.insert(Feature::Times);
        }
        let has_table =
            features.contains(&Feature::Conditions) || features.contains(&Feature::Aggregates);
        let n_keys = if has_table && rng.chance(20) {
            4
        } else {
            rng.between(1, 3)
        };
        let mut tables = vec![0; n_keys];
        if has_table && rng.chance(40) {
            tables.fill_with(|| rng.below(PREFIXES.len()));
            tables.sort_unstable();
        }
        let repeats = (0..n_keys).map(|_| features.contains(&Feature::Repeats) && rng.chance(85));
        let repeats = repeats.collect();
        let there = match rng.below(3) {
            0 => vec![false; n_keys],
            1 => vec![true; n_keys],
            _ => (0..n_keys).map(|_| rng.chance(50)).collect(),
        };
        let drawn = Combined {
            level,
            session_order: rng.chance(60),
            there,
            tables,
            has_table,
            is_nameless: rng.chance(35),
            runs: Vec::new(),
            orders: Vec::new(),
        };
        let n_txns = if rng.chance(8) {
            rng.between(6, 7)
        } else {
            rng.between(2, 5).max(rng.between(2, 5))
        };
        let n_lists = if features.contains(&Feature::Lists) {
            rng.between(1, 2)
        } else {
            0
        };
        let n_sessions = rng.between(1, 4);
        let n_mutations = [0, 1, 1, 2, 3][rng.below(5)];
        let mut store = CombinedStore {
            n_keys,
            n_lists,
            repeats,
            features,
            rng,
            n_values: INITIAL,
            drawn,
            commits: Vec::new(),
        };
        for _ in 0..n_txns {
            let session = store.rng.below(n_sessions);
            store.run(session);
        }
        store.give_orders();
        let CombinedStore { mut drawn, rng, .. } = store;
        for _ in 0..n_mutations {
            drawn.mutate(rng);
        }
        if !drawn.session_order && rng.chance(30) {
            let n_runs = drawn.runs.len();
            let (one, other) = (rng.below(n_runs), rng.below(n_runs));
            drawn.runs.swap(one, other);
        }
        drawn
    }

    /// The history, unless it is not well formed.
    pub fn history(&self) -> Result<History, BuildError> {
        Maker::new(self).build()
    }

    /// What it has.
    pub fn features(&self) -> BTreeSet<Feature> {
        let mut found = BTreeSet::new();
        let mut written: Vec<(usize, i64)> = Vec::new();
        for run in &self.runs {
            match run.status {
                Status::Committed => {}
                Status::Aborted => {
                    found.insert(Feature::Aborted);
                }
                Status::Unknown => {
                    found.insert(Feature::Unknown);
                }
            }
            if run.begin.is_some() || run.commit.is_some() {
                found.insert(Feature::Times);
            }
            if run.stamps.is_some() {
                found.insert(Feature::Stamps);
            }
            for event in &run.events {
                let feature = match event {
                    Event::Read(..) | Event::Write(..) => None,
                    Event::Insert(..) | Event::Delete(..) => Some(Feature::Deletes),
                    Event::Append(..) | Event::ReadList(..) => Some(Feature::Lists),
                    Event::Range { .. } => Some(Feature::Ranges),
                    Event::Select(..) | Event::Update(..) => Some(Feature::Conditions),
                    Event::DeleteWhere(..) => {
                        found.insert(Feature::Deletes);
                        Some(Feature::Conditions)
                    }
                    Event::Aggregate(..) => Some(Feature::Aggregates),
                    Event::Add(_) | Event::ReadSet(_) => Some(Feature::Sets),
                    Event::Increment(_) | Event::ReadCounter(_) => Some(Feature::Counters),
                };
                found.extend(feature);
                if let Event::Write(key, value) | Event::Insert(key, value) = *event {
                    if written.contains(&(key, value)) || value == INITIAL {
                        found.insert(Feature::Repeats);
                    }
                    written.push((key, value));
                }
            }
        }
        if !self.orders.is_empty() {
            found.insert(Feature::Orders);
        }
        found
    }

    /// The same with one thing less, for finding the smallest one that shows a defect.
    pub fn smaller(&self) -> Vec<Combined> {
        let mut all = Vec::new();
        let mut add = |change: &dyn Fn(&mut Combined)| {
            let mut less = self.clone();
            change(&mut less);
            all.push(less);
        };
        for txn in 0..self.runs.len() {
            add(&|it| {
                it.runs.remove(txn);
            });
        }
        for order in 0..self.orders.len() {
            add(&|it| {
                it.orders.remove(order);
            });
        }
        for (txn, run) in self.runs.iter().enumerate() {
            for at in 0..run.events.len() {
                add(&|it| {
                    it.runs[txn].events.remove(at);
                });
                let n_rows = match &run.events[at] {
                    Event::Range { rows, .. } => rows.len(),
                    Event::Select(_, rows) => rows.len(),
                    Event::Update(_, rows) => rows.len(),
                    Event::DeleteWhere(_, rows) => rows.len(),
                    Event::ReadList(_, items) | Event::ReadSet(items) => items.len(),
                    _ => 0,
                };
                for row in 0..n_rows {
                    add(&|it| match &mut it.runs[txn].events[at] {
                        Event::Range { rows, .. } => {
                            rows.remove(row);
                        }
                        Event::Select(_, rows) => {
                            rows.remove(row);
                        }
                        Event::Update(_, rows) => {
                            rows.remove(row);
                        }
                        Event::DeleteWhere(_, rows) => {
                            rows.remove(row);
                        }
                        Event::ReadList(_, items) | Event::ReadSet(items) => {
                            items.remove(row);
                        }
                        _ => {}
                    });
                }
            }
            if run.status != Status::Committed {
                add(&|it| it.runs[txn].status = Status::Committed);
            }
            if run.begin.is_some() || run.commit.is_some() {
                add(&|it| it.runs[txn].begin = None);
                add(&|it| it.runs[txn].commit = None);
            }
            if run.stamps.is_some() {
                add(&|it| it.runs[txn].stamps = None);
            }
            if run.model != Model::Rc {
                add(&|it| it.runs[txn].model = Model::Rc);
            }
        }
        for key in 0..self.there.len() {
            if self.there[key] {
                add(&|it| it.there[key] = false);
            }
        }
        all.retain(|it| !it.runs.is_empty());
        all
    }
}
