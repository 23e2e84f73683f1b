//! Small histories that combine whatever a history can have, at every level: a store that keeps the level, then perhaps a lie.
//!
//! Transactions commit one after the other. Each reads from a set of those before it that its level allows: all of them (ser), a prefix
//! (si, pc), a set that is closed under what its members saw (psi, cc), any set (ra), a set that grows from statement to statement
//! (rc). So the history satisfies its level by construction, before it is changed in up to two places.

use std::collections::BTreeSet;
use std::ops::{Bound, RangeBounds};

use kingsnake_history::level::{Level, Model};
use kingsnake_history::model::{
    Act, BuildError, Column, Comparison, Condition, Function, History, HistoryBuilder, Installed,
    Operand, Query, Status, Symbols, Token,
};
use kingsnake_history::rng::Rng;

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
    /// Elements added to a set.
    Sets,
    /// Numbers added to a counter.
    Counters,
}

impl Feature {
    /// Every feature.
    pub const ALL: [Feature; 12] = [
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

/// A condition on the only column, kept small so that rows go in and out of it.
#[derive(Clone, Copy, Debug)]
enum Where {
    Always,
    AtMost(i64),
    Equal(i64),
    Not(i64),
    IsNull,
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
    Aggregate(Where, Function, bool, Token),
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
    has_table: bool,
    is_nameless: bool,
    /// In the order of the file.
    runs: Vec<Run>,
    orders: Vec<(usize, bool, Vec<Cell>)>,
}

/// The value of a register before any transaction, where it has one.
const INITIAL: i64 = 0;

/// The column of a version: a function of the key and the value, so that equal values have equal rows.
fn cell(key: usize, value: i64) -> Token {
    match (7 * value + 3 * key as i64).rem_euclid(5) {
        4 => Token::Nil,
        number => Token::Int(number),
    }
}

fn condition(asked: Where) -> Condition {
    let compare = |sign, number| {
        let literal = Operand::Literal(Token::Int(number));
        Condition::Compare(sign, Column::Cell(0), literal)
    };
    match asked {
        Where::Always => Condition::Always(true),
        Where::AtMost(number) => compare(Comparison::Le, number),
        Where::Equal(number) => compare(Comparison::Eq, number),
        Where::Not(number) => Condition::Not(Box::new(compare(Comparison::Eq, number))),
        Where::IsNull => Condition::IsNull(Column::Cell(0)),
    }
}

fn chooses(asked: Where, key: usize, value: i64) -> bool {
    let cell = |_: Column| cell(key, value);
    condition(asked).holds(&Symbols::default(), &cell) == Some(true)
}

struct CombinedStore<'r> {
    rng: &'r mut Rng,
    features: BTreeSet<Feature>,
    n_keys: usize,
    n_lists: usize,
    n_values: i64,
    drawn: Combined,
    /// Of those that took effect, what each left: rows, then lists.
    commits: Vec<Commit>,
}

#[derive(Clone, Default)]
struct Commit {
    session: usize,
    rows: Vec<Option<Cell>>,
    appends: Vec<Vec<i64>>,
    added: Vec<i64>,
    amount: i64,
    /// What it saw.
    seen: Vec<bool>,
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
        let n_keys = rng.between(1, 3);
        let has_table =
            features.contains(&Feature::Conditions) || features.contains(&Feature::Aggregates);
        let there = match rng.below(3) {
            0 => vec![false; n_keys],
            1 => vec![true; n_keys],
            _ => (0..n_keys).map(|_| rng.chance(50)).collect(),
        };
        let drawn = Combined {
            level,
            session_order: rng.chance(60),
            there,
            has_table,
            is_nameless: rng.chance(35),
            runs: Vec::new(),
            orders: Vec::new(),
        };
        let n_txns = rng.between(2, 5).max(rng.between(2, 5));
        let n_sessions = rng.between(1, 4);
        let n_mutations = [0, 1, 1, 2, 3][rng.below(5)];
        let mut store = CombinedStore {
            n_keys,
            n_lists: usize::from(features.contains(&Feature::Lists)),
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

impl CombinedStore<'_> {
    fn has(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }

    fn fresh(&mut self) -> i64 {
        self.n_values += 1;
        self.n_values
    }

    fn value(&mut self) -> i64 {
        if self.has(Feature::Repeats) && self.rng.chance(55) {
            return self.rng.between(0, 3) as i64;
        }
        // Beyond what is repeated.
        self.fresh() + 3
    }

    fn model(&mut self) -> Model {
        match self.drawn.level.spec(None).map(|spec| spec.model) {
            Some(Model::Mixed) | None => Model::MIXED[self.rng.below(Model::MIXED.len())],
            Some(model) => model,
        }
    }

    fn run(&mut self, session: usize) {
        let model = self.model();
        let n_events = self.rng.between(1, 3).max(self.rng.between(1, 3));
        let n_seen = self.commits.len();
        let must = self.session_of(session);
        let mut sight = self.sight(model, &must);
        let mut commit = Commit {
            session,
            rows: vec![None; self.n_keys],
            appends: vec![Vec::new(); self.n_lists],
            added: Vec::new(),
            amount: 0,
            seen: sight.clone(),
        };
        let mut events = Vec::new();
        // A writer sees those whose keys it overwrites; what it writes shows only while it runs, so it may run twice.
        for _ in 0..2 {
            events.clear();
            commit.rows.fill(None);
            commit.appends.iter_mut().for_each(Vec::clear);
            commit.added.clear();
            commit.amount = 0;
            commit.seen.clone_from(&sight);
            for _ in 0..n_events {
                if matches!(model, Model::Rc | Model::RcSo) {
                    for at in 0..n_seen {
                        commit.seen[at] |= self.rng.chance(30);
                    }
                }
                let event = self.event(&mut commit);
                events.push(event);
            }
            let overwrites = |other: &Commit| {
                let mut rows = other.rows.iter().zip(&commit.rows);
                let mut lists = other.appends.iter().zip(&commit.appends);
                rows.any(|(one, own)| one.is_some() && own.is_some())
                    || lists.any(|(one, own)| !one.is_empty() && !own.is_empty())
                    || other.added.iter().any(|it| commit.added.contains(it))
            };
            let mut missed = (0..n_seen).filter(|&at| !commit.seen[at]);
            let is_lost = missed.any(|at| overwrites(&self.commits[at]));
            if !is_lost || !matches!(model, Model::Si | Model::Psi) {
                break;
            }
            sight = vec![true; n_seen];
        }
        let status = match self.rng.below(100) {
            0..30 if self.has(Feature::Unknown) => Status::Unknown,
            30..50 if self.has(Feature::Aborted) => Status::Aborted,
            _ => Status::Committed,
        };
        let begun = commit.seen.iter().filter(|&&it| it).count() as i64;
        let (begin, end) = self.times(begun, n_seen as i64);
        // Parallel snapshot isolation is no level of one transaction among others.
        let recorded = match model {
            Model::Psi => Model::MIXED[self.rng.below(Model::MIXED.len())],
            model => model,
        };
        self.drawn.runs.push(Run {
            session,
            status,
            begin,
            commit: end.filter(|_| status == Status::Committed || self.rng.chance(40)),
            model: recorded,
            events,
        });
        if status == Status::Committed || status == Status::Unknown && self.rng.chance(60) {
            self.commits.push(commit);
        }
    }

    /// The possible times of a transaction, given the numbers of commits before its begin and before its commit.
    fn times(&mut self, begun: i64, committed: i64) -> (Option<i64>, Option<i64>) {
        if !self.has(Feature::Times) {
            return (None, None);
        }
        let from = match self.drawn.level {
            Level::StrongSi => 10 * begun,
            _ => 10 * committed,
        };
        let [early, late] = [0, 1].map(|_| {
            let most = if self.rng.chance(30) { 30 } else { 8 };
            self.rng.below(most) as i64
        });
        let begin = (!self.rng.chance(8)).then_some(from - early);
        let commit = (!self.rng.chance(8)).then_some(10 * committed + 5 + late);
        (begin, commit)
    }

    fn session_of(&self, session: usize) -> Vec<bool> {
        let commits = self.commits.iter();
        let is_before = |it: &Commit| self.drawn.session_order && it.session == session;
        commits.map(is_before).collect()
    }

    /// Those that a transaction of a level may read from, its session's among them where that counts.
    fn sight(&mut self, model: Model, session: &[bool]) -> Vec<bool> {
        let n_commits = session.len();
        let last = session.iter().rposition(|&it| it).map_or(0, |at| at + 1);
        match model {
            Model::Ser | Model::Mixed => vec![true; n_commits],
            Model::Si | Model::Pc => {
                let prefix = if self.rng.chance(50) {
                    n_commits
                } else {
                    self.rng.between(last, n_commits)
                };
                (0..n_commits).map(|at| at < prefix).collect()
            }
            Model::Psi | Model::Cc => {
                let mut seen = session.to_vec();
                for at in (0..n_commits).rev() {
                    if seen[at] || self.rng.chance(40) {
                        seen[at] = true;
                        for (other, is) in self.commits[at].seen.iter().enumerate() {
                            seen[other] |= is;
                        }
                    }
                }
                seen
            }
            Model::Ra | Model::RcSo => {
                let is = |&it: &bool| it || self.rng.chance(40);
                session.iter().map(is).collect()
            }
            Model::Rc => (0..n_commits).map(|_| self.rng.chance(40)).collect(),
        }
    }

    /// What a register holds in the eyes of a transaction.
    fn held(&self, own: &Commit, key: usize) -> Cell {
        own.rows[key].unwrap_or_else(|| {
            let seen = self.commits.iter().zip(&own.seen).rev();
            let mut seen = seen.filter(|it| *it.1).filter_map(|it| it.0.rows[key]);
            seen.next().unwrap_or(Cell::Initial)
        })
    }

    /// The value of a row that is there.
    fn row(&self, own: &Commit, key: usize) -> Option<i64> {
        match self.held(own, key) {
            Cell::Initial => self.drawn.there[key].then_some(INITIAL),
            Cell::Value(value) => Some(value),
            Cell::Deleted(_) => None,
        }
    }

    fn list(&self, own: &Commit, list: usize) -> Vec<i64> {
        let appends = |commit: &Commit| !commit.appends[list].is_empty();
        let seen = self.commits.iter().zip(&own.seen);
        let last = { seen }.rposition(|(commit, is)| *is && appends(commit));
        let before = &self.commits[..last.map_or(0, |at| at + 1)];
        let items = before.iter().flat_map(|it| it.appends[list].clone());
        items.chain(own.appends[list].iter().copied()).collect()
    }

    fn asked(&mut self) -> Where {
        match self.rng.below(6) {
            0 => Where::Always,
            1 | 2 => Where::AtMost(self.rng.below(3) as i64),
            3 => Where::Equal(self.rng.below(4) as i64),
            4 => Where::Not(self.rng.below(4) as i64),
            _ => Where::IsNull,
        }
    }

    fn event(&mut self, own: &mut Commit) -> Event {
        let key = self.rng.below(self.n_keys);
        let kind = loop {
            let kind = self.rng.below(18);
            let is_there = match kind {
                4 | 5 => self.has(Feature::Deletes),
                6 | 7 => self.has(Feature::Ranges),
                8..=10 => self.has(Feature::Conditions),
                11 => self.has(Feature::Aggregates),
                12 | 13 => self.has(Feature::Lists),
                14 | 15 => self.has(Feature::Sets),
                16 | 17 => self.has(Feature::Counters),
                _ => true,
            };
            if is_there {
                break kind;
            }
        };
        let shows_deleted = !self.drawn.is_nameless && self.rng.chance(70);
        match kind {
            0 | 1 => Event::Read(key, self.held(own, key), shows_deleted),
            2..=4 => {
                let value = self.value();
                own.rows[key] = Some(Cell::Value(value));
                if kind == 4 {
                    Event::Insert(key, value)
                } else {
                    Event::Write(key, value)
                }
            }
            5 => {
                let name = self.fresh();
                own.rows[key] = Some(Cell::Deleted(name));
                Event::Delete(key, name)
            }
            6 | 7 => self.range(own, shows_deleted),
            8 => {
                let asked = self.asked();
                Event::Select(asked, self.chosen(own, asked))
            }
            9 | 10 => self.change(own, kind == 10 && self.features.contains(&Feature::Deletes)),
            11 => {
                let asked = self.asked();
                let function = Function::ALL[self.rng.below(4)];
                let of_column = function != Function::Count || self.rng.chance(30);
                let chosen = self.chosen(own, asked);
                let cells = chosen.iter().map(|&(key, value)| {
                    if of_column {
                        cell(key, value)
                    } else {
                        Token::Int(1)
                    }
                });
                let result = function.apply(&Symbols::default(), cells);
                Event::Aggregate(asked, function, of_column, result.unwrap_or(Token::Nil))
            }
            12 => Event::ReadList(0, self.list(own, 0)),
            13 => {
                let value = self.fresh();
                own.appends[0].push(value);
                Event::Append(0, value)
            }
            14 => Event::ReadSet(self.elements(own)),
            15 => {
                let element = self.value();
                own.added.push(element);
                Event::Add(element)
            }
            16 => Event::ReadCounter(self.seen(own).map(|it| it.amount).sum()),
            _ => {
                let by = self.rng.between(0, 3) as i64 - 1;
                own.amount += by;
                Event::Increment(by)
            }
        }
    }

    /// What a transaction sees, and itself.
    fn seen<'a>(&'a self, own: &'a Commit) -> impl Iterator<Item = &'a Commit> {
        let seen = self.commits.iter().zip(&own.seen).filter(|it| *it.1);
        seen.map(|it| it.0).chain([own])
    }

    fn elements(&self, own: &Commit) -> Vec<i64> {
        let seen = self.seen(own).flat_map(|it| it.added.iter().copied());
        seen.collect::<BTreeSet<i64>>().into_iter().collect()
    }

    fn chosen(&self, own: &Commit, asked: Where) -> Vec<(usize, i64)> {
        let rows = (0..self.n_keys).filter_map(|key| Some((key, self.row(own, key)?)));
        rows.filter(|&(key, value)| chooses(asked, key, value))
            .collect()
    }

    fn range(&mut self, own: &Commit, shows_deleted: bool) -> Event {
        let n_keys = self.n_keys;
        let mut bound = || match self.rng.below(3) {
            0 => Bound::Excluded(self.rng.below(n_keys)),
            _ => Bound::Included(self.rng.below(n_keys)),
        };
        let (low, mut high) = (bound(), bound());
        if self.rng.chance(30) {
            high = Bound::Unbounded;
        }
        let inside = (0..n_keys).filter(|key| (low, high).contains(key));
        let rows = inside.map(|key| (key, self.held(own, key)));
        let is_row = |&(key, held): &(usize, Cell)| match held {
            Cell::Initial => self.drawn.there[key],
            Cell::Value(_) => true,
            Cell::Deleted(_) => shows_deleted,
        };
        Event::Range {
            low,
            high,
            rows: rows.filter(is_row).collect(),
            shows_deleted,
        }
    }

    fn change(&mut self, own: &mut Commit, deletes: bool) -> Event {
        let asked = self.asked();
        let chosen = self.chosen(own, asked);
        if deletes {
            let mut rows = Vec::new();
            for (key, value) in chosen {
                let name = self.fresh();
                own.rows[key] = Some(Cell::Deleted(name));
                rows.push((key, value, name));
            }
            return Event::DeleteWhere(asked, rows);
        }
        let mut rows = Vec::new();
        for (key, value) in chosen {
            let new = self.value();
            own.rows[key] = Some(Cell::Value(new));
            rows.push((key, self.rng.chance(80).then_some(value), new));
        }
        Event::Update(asked, rows)
    }

    fn give_orders(&mut self) {
        if !self.has(Feature::Orders) || self.has(Feature::Repeats) {
            return;
        }
        let is_nameless = self.drawn.is_nameless;
        for key in 0..self.n_keys {
            let installed = self.commits.iter().filter_map(|it| it.rows[key]);
            let named = installed.filter(|it| !is_nameless || !matches!(it, Cell::Deleted(_)));
            let listed: Vec<Cell> = named.filter(|_| self.rng.chance(75)).collect();
            if !listed.is_empty() && self.rng.chance(80) {
                self.drawn.orders.push((key, false, listed));
            }
        }
        for list in 0..self.n_lists {
            let appended = self.commits.iter().flat_map(|it| it.appends[list].clone());
            let listed: Vec<Cell> = appended
                .filter(|_| self.rng.chance(75))
                .map(Cell::Value)
                .collect();
            if !listed.is_empty() && self.rng.chance(50) {
                self.drawn.orders.push((list, true, listed));
            }
        }
    }
}

impl Combined {
    /// Every value that was written to a row, and the initial state.
    fn cells(&self, key: usize) -> Vec<Cell> {
        let mut cells = vec![Cell::Initial];
        for event in self.runs.iter().flat_map(|run| &run.events) {
            match event {
                Event::Write(at, value) | Event::Insert(at, value) if *at == key => {
                    cells.push(Cell::Value(*value));
                }
                Event::Delete(at, name) if *at == key => cells.push(Cell::Deleted(*name)),
                Event::Update(_, rows) => {
                    let rows = rows.iter().filter(|row| row.0 == key);
                    cells.extend(rows.map(|row| Cell::Value(row.2)));
                }
                Event::DeleteWhere(_, rows) => {
                    let rows = rows.iter().filter(|row| row.0 == key);
                    cells.extend(rows.map(|row| Cell::Deleted(row.2)));
                }
                _ => {}
            }
        }
        cells
    }

    /// Makes one random change.
    fn mutate(&mut self, rng: &mut Rng) {
        let txn = rng.below(self.runs.len());
        match rng.below(12) {
            0..=6 => self.change_read(rng),
            7 => {
                let other = rng.below(self.runs.len());
                self.runs[txn].session = self.runs[other].session;
            }
            8 => {
                let statuses = [Status::Committed, Status::Aborted, Status::Unknown];
                self.runs[txn].status = statuses[rng.below(3)];
            }
            9 if !self.orders.is_empty() => {
                let at = rng.below(self.orders.len());
                let order = &mut self.orders[at].2;
                let (one, other) = (rng.below(order.len()), rng.below(order.len()));
                order.swap(one, other);
            }
            9 | 10 => {
                let by = rng.between(0, 40) as i64 - 20;
                let run = &mut self.runs[txn];
                run.begin = run.begin.map(|time| time + by);
                run.commit = run.commit.map(|time| time + by);
            }
            _ => {
                let events = &mut self.runs[txn].events;
                let (one, other) = (rng.below(events.len()), rng.below(events.len()));
                events.swap(one, other);
            }
        }
    }

    fn change_read(&mut self, rng: &mut Rng) {
        let is_read = |event: &Event| {
            !matches!(
                event,
                Event::Write(..)
                    | Event::Insert(..)
                    | Event::Delete(..)
                    | Event::Append(..)
                    | Event::Add(_)
                    | Event::Increment(_)
            )
        };
        let mut places: Vec<(usize, usize)> = Vec::new();
        for (txn, run) in self.runs.iter().enumerate() {
            let reads = (0..run.events.len()).filter(|&at| is_read(&run.events[at]));
            places.extend(reads.map(|at| (txn, at)));
        }
        let Some(&(txn, at)) = rng.pick(&places) else {
            return;
        };
        let key = rng.below(self.there.len());
        let mut event = self.runs[txn].events[at].clone();
        match &mut event {
            Event::Read(key, held, _) => {
                *held = *rng.pick(&self.cells(*key)).unwrap_or(held);
            }
            Event::ReadList(list, items) => {
                let events = self.runs.iter().flat_map(|run| &run.events);
                let appended = events.filter_map(|event| match event {
                    Event::Append(it, value) if it == list => Some(*value),
                    _ => None,
                });
                let appended: Vec<i64> = appended.collect();
                change_list(items, &appended, rng);
            }
            Event::ReadSet(items) => {
                let events = self.runs.iter().flat_map(|run| &run.events);
                let added = events.filter_map(|event| match event {
                    Event::Add(element) => Some(*element),
                    _ => None,
                });
                let added: Vec<i64> = added.collect();
                change_list(items, &added, rng);
            }
            Event::ReadCounter(value) => *value += rng.between(0, 2) as i64 - 1,
            Event::Range {
                low,
                high,
                rows,
                shows_deleted,
            } => {
                rows.retain(|row| row.0 != key);
                let held = *rng.pick(&self.cells(key)).unwrap_or(&Cell::Initial);
                let is_row = match held {
                    Cell::Initial => self.there[key],
                    Cell::Value(_) => true,
                    Cell::Deleted(_) => *shows_deleted,
                };
                if is_row && (*low, *high).contains(&key) {
                    rows.push((key, held));
                }
            }
            Event::Select(_, rows) => {
                rows.retain(|row| row.0 != key);
                match *rng.pick(&self.cells(key)).unwrap_or(&Cell::Initial) {
                    Cell::Value(value) => rows.push((key, value)),
                    Cell::Initial if self.there[key] => rows.push((key, INITIAL)),
                    _ => {}
                }
            }
            Event::Update(_, rows) => rows.retain(|row| row.0 != key),
            Event::DeleteWhere(_, rows) => rows.retain(|row| row.0 != key),
            Event::Aggregate(_, _, _, result) => {
                *result = match *result {
                    Token::Int(number) => Token::Int(number + rng.between(0, 2) as i64 - 1),
                    _ => Token::Int(rng.below(4) as i64),
                };
            }
            _ => {}
        }
        self.runs[txn].events[at] = event;
    }
}

fn change_list(items: &mut Vec<i64>, appended: &[i64], rng: &mut Rng) {
    match rng.below(4) {
        0 if !items.is_empty() => {
            items.remove(rng.below(items.len()));
        }
        1 if items.len() > 1 => {
            let (one, other) = (rng.below(items.len()), rng.below(items.len()));
            items.swap(one, other);
        }
        2 => {
            items.pop();
        }
        _ => {
            let fresh = rng.pick(appended).filter(|it| !items.contains(it));
            items.extend(fresh.copied());
        }
    }
}

/// Makes the history.
struct Maker<'c> {
    of: &'c Combined,
    builder: HistoryBuilder,
    keys: Vec<Token>,
    list: Token,
    set: Token,
    counter: Token,
}

impl<'c> Maker<'c> {
    fn new(of: &'c Combined) -> Self {
        let mut builder = HistoryBuilder::new();
        let keys = (0..of.there.len()).map(|key| builder.text(&format!("t/{key}")));
        let keys = keys.collect();
        // Before all rows, where no range begins.
        let [list, set, counter] = ["list", "set", "counter"].map(|name| builder.text(name));
        Maker {
            of,
            builder,
            keys,
            list,
            set,
            counter,
        }
    }

    fn build(mut self) -> Result<History, BuildError> {
        let of = self.of;
        if of.has_table {
            let names = ["t", "c", "u"].map(|name| self.builder.text(name));
            self.builder.table(names[0], vec![names[1]])?;
            // With a second table, keys that name none are in none.
            self.builder.table(names[2], Vec::new())?;
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
            let model = self.builder.text(run.model.name());
            self.builder.isolation(model);
            for event in &run.events {
                self.event(event)?;
            }
        }
        for (key, is_list, cells) in &of.orders {
            // A change may have taken a write away, and an order that names its value is bad input.
            let written = of.cells(*key);
            let is_written = |cell: &&Cell| *is_list || written.contains(cell);
            let key = if *is_list { self.list } else { self.keys[*key] };
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

    fn row(
        &mut self,
        value: kingsnake_history::model::ValueId,
        key: usize,
        number: i64,
    ) -> Result<(), BuildError> {
        if !self.of.has_table {
            return Ok(());
        }
        self.builder.row(value, &[cell(key, number)])
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
            &Event::Append(_, value) => {
                self.builder.append(self.list, Token::Int(value));
            }
            Event::ReadList(_, items) => {
                let items = items.iter().map(|&item| Token::Int(item));
                self.builder.read_list(self.list, items);
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
            &Event::Aggregate(asked, function, of_column, result) => {
                let act = Act::Aggregate {
                    function,
                    column: of_column.then_some(Column::Cell(0)),
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
            table: 0,
            condition: condition(asked),
        };
        self.builder.predicate(act, query, from, None);
    }
}
