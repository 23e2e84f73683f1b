//! Which versions satisfy a condition: columns in flat arrays, conditions as intervals, and an index a column.
//!
//! A conjunction of comparisons of columns with numbers is evaluated on the arrays. Everything else goes through
//! [`History::satisfies`]. The places where a key's versions begin or cease to satisfy a condition (its *changes*) are kept for
//! conditions that many predicates share. A least or greatest value adds an interval of its own: the values beyond it.

use std::borrow::Cow;
use std::sync::OnceLock;

use kingsnake_history::model::{
    Column, Extreme, Function, History, KeyId, Predicate, Token, ValueId,
};

use rustc_hash::FxHashMap;

use crate::interval::{intervals, necessary};
use crate::versions::{NOBODY, Versions};

/// A cell that holds no number.
const NONE: i64 = i64::MIN;

/// One table, column by column.
pub(crate) struct TableColumns {
    pub(crate) keys: Vec<KeyId>,
    /// How many versions its keys have.
    pub(crate) n_versions: usize,
}

pub(crate) struct Conditions<'a> {
    history: &'a History,
    versions: &'a Versions,
    pub(crate) tables: Vec<TableColumns>,
    /// The key of every version.
    key_of: Vec<KeyId>,
    /// The table of every key, or [`NOBODY`].
    table_of: Vec<u32>,
    /// Columns of all versions: those that tables declare, then `value`, then `key`. Those that no condition asks for are empty.
    columns: Vec<Vec<i64>>,
    /// Whether a column has texts, which are not in its array.
    has_texts: Vec<bool>,
    /// The versions of each table by each column's number, sorted when they are first asked for.
    index: FxHashMap<(u32, usize), OnceLock<Numbers>>,
    queries: Vec<Asked>,
}

/// A prepared condition.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) query: u32,
    pub(crate) table: u32,
    /// Every column lies in its interval.
    bounds: Vec<Bounds>,
    /// Whether the intervals are not all of the condition.
    has_more: bool,
    narrowed: Option<(Extreme, Side)>,
    /// Number of predicates with it.
    n_uses: usize,
    /// Computed on demand.
    changes: OnceLock<Changes>,
}

impl Asked {
    /// The intervals in which its columns lie.
    pub(crate) fn bounds(&self) -> impl Iterator<Item = (usize, i64, i64)> + '_ {
        self.bounds.iter().map(|it| (it.column, it.low, it.high))
    }
}

/// Where a version lies, compared with a least or greatest value that was returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// It would have been returned in its place.
    Beyond,
    /// It has this value.
    At,
}

#[derive(Clone, Copy)]
struct Bounds {
    column: usize,
    low: i64,
    high: i64,
}

/// Where the versions of each key begin or cease to satisfy a condition.
#[derive(Clone)]
struct Changes {
    end: Vec<u32>,
    places: Vec<u32>,
    /// Whether the initial version satisfies it.
    starts: Vec<bool>,
}

/// The effect of a condition on one row: whether the version that is looked at satisfies it, the last change up to it and the
/// first change after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Around {
    pub(crate) matches: bool,
    pub(crate) before: Option<usize>,
    pub(crate) after: Option<usize>,
}

/// The numbers of a column and the places of their versions, sorted.
type Numbers = Vec<(i64, u32)>;

/// How the rows of a predicate are found.
pub(crate) enum Way {
    /// All rows of the table, with changes that are known.
    Known,
    /// All rows of the table, version by version.
    Scan,
    /// The rows with a version in an interval, and those versions that satisfy the condition, sorted.
    Index(Vec<u32>),
}

impl<'a> Conditions<'a> {
    pub(crate) fn new(history: &'a History, versions: &'a Versions) -> Self {
        let n_columns = history.tables().iter().map(|it| it.columns.len()).max();
        let n_columns = n_columns.unwrap_or(0) + 2;
        let mut tables: Vec<TableColumns> = history
            .tables()
            .iter()
            .map(|_| TableColumns {
                keys: Vec::new(),
                n_versions: 0,
            })
            .collect();
        let mut key_of = vec![KeyId(0); versions.len()];
        let mut table_of = vec![NOBODY; history.n_keys()];
        for key in (0..history.n_keys() as u32).map(KeyId) {
            let places = versions.of_key(key);
            key_of[places.clone()].fill(key);
            if let Some(table) = history.table_of(key) {
                table_of[key.index()] = table;
                tables[table as usize].keys.push(key);
                tables[table as usize].n_versions += places.len();
            }
        }
        let mut conditions = Conditions {
            history,
            versions,
            tables,
            key_of,
            table_of,
            columns: vec![Vec::new(); n_columns],
            has_texts: vec![false; n_columns],
            index: FxHashMap::default(),
            queries: Vec::new(),
        };
        conditions.ask();
        conditions
    }

    fn column(&self, column: Column) -> usize {
        match column {
            Column::Cell(at) => at as usize,
            Column::Value => self.columns.len() - 2,
            Column::Key => self.columns.len() - 1,
        }
    }

    fn ask(&mut self) {
        let mut n_uses = vec![0_usize; self.history.queries().len()];
        for (_, predicate) in self.history.all_predicates() {
            match predicate.act.extreme() {
                Some(extreme) => {
                    let column = self.column(extreme.column);
                    let table = self.history.queries()[predicate.query as usize].table;
                    self.index.entry((table, column)).or_default();
                    self.load(column);
                }
                None => n_uses[predicate.query as usize] += 1,
            }
        }
        for (number, query) in self.history.queries().iter().enumerate() {
            let is_all = intervals(&query.condition).is_some();
            let mut bounds: Vec<Bounds> = necessary(&query.condition)
                .into_iter()
                .map(|it| Bounds {
                    column: self.column(it.column),
                    low: it.low.max(NONE + 1),
                    high: it.high,
                })
                .collect();
            for it in &bounds {
                self.index.entry((query.table, it.column)).or_default();
                self.load(it.column);
            }
            let n_bounds = bounds.len();
            bounds.retain(|it| !self.columns[it.column].is_empty());
            self.queries.push(Asked {
                query: number as u32,
                table: query.table,
                has_more: !is_all || bounds.len() < n_bounds,
                bounds,
                narrowed: None,
                n_uses: n_uses[number],
                changes: OnceLock::new(),
            });
        }
    }

    /// Fills a column's array; leaves it empty where a number is the one that stands for none.
    fn load(&mut self, column: usize) {
        if !self.columns[column].is_empty() {
            return;
        }
        let n = self.columns.len();
        let named = match n - column {
            1 => Column::Key,
            2 => Column::Value,
            _ => Column::Cell(column as u32),
        };
        let history = self.history;
        let mut has_texts = false;
        let mut cell = |place: usize, value: u32| {
            let table = self.table_of[self.key_of[place].index()];
            if table == NOBODY || value == NOBODY || history.is_absence(ValueId(value)) {
                return Some(NONE);
            }
            if let Column::Cell(at) = named
                && at as usize >= history.tables()[table as usize].columns.len()
            {
                return Some(NONE);
            }
            match history.cell(ValueId(value), named) {
                Token::Int(NONE) => None,
                Token::Int(number) => Some(number),
                other => {
                    has_texts |= other != Token::Nil;
                    Some(NONE)
                }
            }
        };
        let all = self.versions.all().iter().enumerate();
        let cells: Option<Vec<i64>> = all.map(|(place, it)| cell(place, it.value)).collect();
        self.columns[column] = cells.unwrap_or_default();
        self.has_texts[column] = has_texts;
    }

    /// The number in a column of the version at a place, if it has one.
    pub(crate) fn number(&self, column: usize, place: usize) -> Option<i64> {
        Some(self.columns[column][place]).filter(|&it| it != NONE)
    }

    /// The versions of a table by a column's number.
    fn index(&self, table: u32, column: usize) -> &[(i64, u32)] {
        self.index[&(table, column)].get_or_init(|| {
            let keys = self.tables[table as usize].keys.iter();
            let places = keys.flat_map(|&key| self.versions.of_key(key));
            let cells = places.map(|place| (self.columns[column][place], place as u32));
            let mut index: Vec<(i64, u32)> = cells.filter(|it| it.0 != NONE).collect();
            index.sort_unstable();
            index
        })
    }

    /// A query's condition.
    pub(crate) fn asked(&self, query: u32) -> &Asked {
        &self.queries[query as usize]
    }

    /// The condition that a predicate's result depends on: its own, or of a least or greatest value that rows are beyond it too.
    pub(crate) fn of(&self, predicate: &Predicate) -> Cow<'_, Asked> {
        match predicate.act.extreme() {
            None => Cow::Borrowed(self.asked(predicate.query)),
            Some(extreme) => Cow::Owned(self.narrowed(predicate.query, extreme, Side::Beyond)),
        }
    }

    /// A query's condition, and that a version lies on this side of a least or greatest value.
    pub(crate) fn narrowed(&self, query: u32, extreme: Extreme, side: Side) -> Asked {
        let asked = self.asked(query);
        let column = self.column(extreme.column);
        let mut narrowed = Asked {
            query,
            table: asked.table,
            bounds: asked.bounds.clone(),
            has_more: asked.has_more,
            narrowed: None,
            n_uses: 0,
            changes: OnceLock::new(),
        };
        let is_array = !self.columns[column].is_empty() && !self.has_texts[column];
        let interval = match (extreme.result, side, extreme.function) {
            (Token::Text(_), _, _) => None,
            (Token::Nil, Side::At, _) => Some((i64::MAX, NONE + 1)),
            (Token::Nil, Side::Beyond, _) => Some((NONE + 1, i64::MAX)),
            (Token::Int(number), Side::At, _) => Some((number, number)),
            (Token::Int(number), Side::Beyond, Function::Min) => {
                Some((NONE + 1, number.saturating_sub(1)))
            }
            (Token::Int(number), Side::Beyond, _) => Some(
                number
                    .checked_add(1)
                    .map_or((number, NONE + 1), |it| (it, i64::MAX)),
            ),
        };
        match interval.filter(|_| is_array) {
            Some((low, high)) => narrowed.bounds.push(Bounds { column, low, high }),
            None => narrowed.narrowed = Some((extreme, side)),
        }
        narrowed
    }

    /// Whether the version at a place satisfies a condition.
    #[inline]
    pub(crate) fn matches(&self, asked: &Asked, place: usize) -> bool {
        let is_within = asked.bounds.iter().all(|it| {
            let cell = self.columns[it.column][place];
            it.low <= cell && cell <= it.high
        });
        is_within && (!(asked.has_more || asked.narrowed.is_some()) || self.satisfies(asked, place))
    }

    /// The same by the condition itself, and by the value that was returned.
    fn satisfies(&self, asked: &Asked, place: usize) -> bool {
        let value = match self.versions.at(place).value {
            NOBODY => return false,
            value => ValueId(value),
        };
        let is_side = asked.narrowed.is_none_or(|(extreme, side)| {
            let cell = self.history.cell(value, extreme.column);
            let symbols = self.history.symbols();
            match side {
                Side::Beyond => extreme.function.is_beyond(symbols, cell, extreme.result),
                Side::At => cell == extreme.result && cell != Token::Nil,
            }
        });
        is_side && self.history.satisfies(asked.query, value)
    }

    fn changes(&self, asked: &Asked) -> Changes {
        let table = &self.tables[asked.table as usize];
        let mut changes = Changes {
            end: Vec::with_capacity(table.keys.len()),
            places: Vec::new(),
            starts: Vec::with_capacity(table.keys.len()),
        };
        for &key in &table.keys {
            let range = self.versions.of_key(key);
            let mut last = self.matches(asked, range.start);
            changes.starts.push(last);
            for place in range.skip(1) {
                let is = self.matches(asked, place);
                if is != last {
                    changes.places.push(place as u32);
                    last = is;
                }
            }
            changes.end.push(changes.places.len() as u32);
        }
        changes
    }

    /// The cheapest way to find the rows of a condition.
    pub(crate) fn way(&self, asked: &Asked) -> Way {
        if asked.changes.get().is_some() {
            return Way::Known;
        }
        let span = |it: &Bounds| {
            let index = self.index(asked.table, it.column);
            let low = index.partition_point(|cell| cell.0 < it.low);
            &index[low..index.partition_point(|cell| cell.0 <= it.high).max(low)]
        };
        let best = asked.bounds.iter().map(span).min_by_key(|it| it.len());
        let table = &self.tables[asked.table as usize];
        let n_found = best.map_or(table.n_versions, <[_]>::len);
        // Where a version in n lies in the interval, a scan meets a change after about n versions.
        let n_scanned = table.keys.len()
            * 2
            * (table.n_versions / n_found.max(1))
                .min(table.n_versions / table.keys.len().max(1) + 1);
        let by_memory = table.n_versions + asked.n_uses * table.keys.len() * 2;
        if asked.n_uses * n_found.min(n_scanned) > by_memory {
            asked.changes.get_or_init(|| self.changes(asked));
            return Way::Known;
        }
        let Some(found) = best.filter(|_| n_found <= n_scanned) else {
            return Way::Scan;
        };
        let places = found.iter().map(|it| it.1);
        let mut places: Vec<u32> = places
            .filter(|place| self.matches(asked, *place as usize))
            .collect();
        places.sort_unstable();
        Way::Index(places)
    }

    /// What a condition with known changes means for the row of this number in its table.
    #[inline]
    pub(crate) fn known(&self, asked: &Asked, row: usize, place: usize) -> Around {
        let changes = asked.changes.get_or_init(|| self.changes(asked));
        let start = if row == 0 {
            0
        } else {
            changes.end[row - 1] as usize
        };
        let places = &changes.places[start..changes.end[row] as usize];
        let n_before = places.partition_point(|&it| it as usize <= place);
        Around {
            matches: changes.starts[row] ^ (n_before % 2 == 1),
            before: n_before.checked_sub(1).map(|at| places[at] as usize),
            after: places.get(n_before).map(|&it| it as usize),
        }
    }

    /// The same, version by version.
    pub(crate) fn scan(&self, asked: &Asked, key: KeyId, place: usize) -> Around {
        let range = self.versions.of_key(key);
        let matches = self.matches(asked, place);
        let mut before = place;
        while before > range.start && self.matches(asked, before - 1) == matches {
            before -= 1;
        }
        let mut after = place + 1;
        while after < range.end && self.matches(asked, after) == matches {
            after += 1;
        }
        Around {
            matches,
            before: (before > range.start).then_some(before),
            after: (after < range.end).then_some(after),
        }
    }

    /// The same, given the sorted places of the row's versions that satisfy the condition.
    pub(crate) fn among(&self, key: KeyId, place: usize, matching: &[u32]) -> Around {
        let range = self.versions.of_key(key);
        match matching.binary_search(&(place as u32)) {
            Ok(at) => {
                let (mut first, mut last) = (at, at);
                while first > 0 && matching[first - 1] + 1 == matching[first] {
                    first -= 1;
                }
                while last + 1 < matching.len() && matching[last] + 1 == matching[last + 1] {
                    last += 1;
                }
                let before = matching[first] as usize;
                let after = matching[last] as usize + 1;
                Around {
                    matches: true,
                    before: (before > range.start).then_some(before),
                    after: (after < range.end).then_some(after),
                }
            }
            Err(at) => Around {
                matches: false,
                before: at.checked_sub(1).map(|at| matching[at] as usize + 1),
                after: matching.get(at).map(|&it| it as usize),
            },
        }
    }

    pub(crate) fn key_of(&self, place: usize) -> KeyId {
        self.key_of[place]
    }
}
