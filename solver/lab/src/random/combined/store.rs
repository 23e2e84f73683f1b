//! A store that keeps a level: what its transactions read and write.

use std::collections::BTreeSet;
use std::ops::{Bound, RangeBounds};

use kingsnake_history::level::{Level, Model};
use kingsnake_history::model::{Column, Function, Status, Symbols, Token};
use kingsnake_history::rng::Rng;

use super::{Cell, Combined, Event, Feature, INITIAL, Run, TABLES, Test, Where, cell, chooses};

pub(super) struct CombinedStore<'r> {
    pub(super) rng: &'r mut Rng,
    pub(super) features: BTreeSet<Feature>,
    pub(super) n_keys: usize,
    pub(super) n_lists: usize,
    /// The keys whose values may be written several times.
    pub(super) repeats: Vec<bool>,
    pub(super) n_values: i64,
    pub(super) drawn: Combined,
    /// Of those that took effect, what each left: rows, then lists.
    pub(super) commits: Vec<Commit>,
}

#[derive(Clone, Default)]
pub(super) struct Commit {
    session: usize,
    rows: Vec<Option<Cell>>,
    appends: Vec<Vec<i64>>,
    added: Vec<i64>,
    amount: i64,
    /// What it saw.
    seen: Vec<bool>,
}

impl CombinedStore<'_> {
    fn has(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }

    fn fresh(&mut self) -> i64 {
        self.n_values += 1;
        self.n_values
    }

    fn value(&mut self, key: usize) -> i64 {
        if self.repeats[key] && self.rng.chance(55) {
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

    pub(super) fn run(&mut self, session: usize) {
        let model = self.model();
        let most = if self.rng.chance(10) { 5 } else { 3 };
        let n_events = self.rng.between(1, most).max(self.rng.between(1, most));
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
        let has_stamps = self.has(Feature::Stamps) && !self.rng.chance(4);
        let stamps = has_stamps.then_some((begun, n_seen as i64 + 1));
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
            stamps,
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
        let table = self.drawn.tables[self.rng.below(self.n_keys)] % TABLES.len();
        let [one, other] = [0, 1].map(|_| self.rng.below(4) as i64);
        let test = match self.rng.below(9) {
            0 => Test::Always,
            1 | 2 => Test::AtMost(one % 3),
            3 => Test::Equal(one),
            4 => Test::Not(one),
            5 => Test::In(one, other),
            6 => Test::Within(one.min(other), one.max(other)),
            7 => Test::Less(one + other),
            _ => Test::IsNull,
        };
        Where { table, test }
    }

    fn event(&mut self, own: &mut Commit) -> Event {
        let key = self.rng.below(self.n_keys);
        let list = self.rng.below(self.n_lists.max(1));
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
                let value = self.value(key);
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
                let columns = [
                    Column::Cell(0),
                    Column::Value,
                    Column::Cell(TABLES[asked.table].1 as u32 - 1),
                ];
                let column = of_column.then(|| columns[self.rng.below(3)]);
                let chosen = self.chosen(own, asked);
                let cells = chosen.iter().map(|&(key, value)| match column {
                    Some(column) => cell(key, value, column),
                    None => Token::Int(1),
                });
                let result = function.apply(&Symbols::default(), cells);
                Event::Aggregate(asked, function, column, result.unwrap_or(Token::Nil))
            }
            12 => Event::ReadList(list, self.list(own, list)),
            13 => {
                let value = self.fresh();
                own.appends[list].push(value);
                Event::Append(list, value)
            }
            14 => Event::ReadSet(self.elements(own)),
            15 => {
                let element = self.value(key);
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
        let in_table = rows.filter(|&(key, _)| self.drawn.tables[key] == asked.table);
        in_table
            .filter(|&(key, value)| chooses(asked, key, value))
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
            let new = self.value(key);
            own.rows[key] = Some(Cell::Value(new));
            rows.push((key, self.rng.chance(80).then_some(value), new));
        }
        Event::Update(asked, rows)
    }

    pub(super) fn give_orders(&mut self) {
        if !self.has(Feature::Orders) {
            return;
        }
        let is_nameless = self.drawn.is_nameless;
        for key in 0..self.n_keys {
            // What an order lists is unique.
            if self.repeats[key] {
                continue;
            }
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
