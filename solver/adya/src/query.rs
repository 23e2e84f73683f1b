//! Which versions satisfy a condition: columns in flat arrays, conditions as intervals, and an index a column.
//!
//! A conjunction of comparisons of columns with numbers is evaluated on the arrays. What else a condition asks goes through
//! [`History::satisfies`]. The places where a key's versions begin or cease to satisfy a condition (its *changes*) are kept for
//! conditions that many predicates share.

use std::ops::Range;

use kingsnake_history::model::{Column, History, KeyId, Token, ValueId};

use crate::interval::intervals;
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
    /// For each table, the versions by a column's number, for columns with an index.
    index: Vec<Vec<Vec<(i64, u32)>>>,
    queries: Vec<Asked>,
}

struct Asked {
    table: u32,
    test: Test,
    changes: Option<Changes>,
}

enum Test {
    /// Every column lies in its interval; where that is not all that it asks, the condition itself is evaluated too.
    Intervals {
        bounds: Vec<Bounds>,
        is_exact: bool,
    },
    Any,
}

#[derive(Clone, Copy)]
struct Bounds {
    column: usize,
    low: i64,
    high: i64,
}

/// Where the versions of each key begin or cease to satisfy a condition.
struct Changes {
    end: Vec<u32>,
    places: Vec<u32>,
    /// Whether the initial version satisfies it.
    starts: Vec<bool>,
}

/// What a condition means for one row: whether the version that is looked at satisfies it, the last change up to it and the
/// first change after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Around {
    pub(crate) matches: bool,
    pub(crate) before: Option<usize>,
    pub(crate) after: Option<usize>,
}

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
            index: vec![vec![Vec::new(); n_columns]; history.tables().len()],
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
            n_uses[predicate.query as usize] += 1;
        }
        let mut asked = Vec::new();
        for query in self.history.queries() {
            let (found, is_exact) = intervals(&query.condition);
            let found: Vec<Bounds> = found
                .into_iter()
                .map(|it| Bounds {
                    column: self.column(it.column),
                    low: it.low.max(NONE + 1),
                    high: it.high,
                })
                .collect();
            for bounds in &found {
                self.load(bounds.column);
            }
            let is_loaded = |it: &Bounds| !self.columns[it.column].is_empty();
            let test = if !found.is_empty() && found.iter().all(is_loaded) {
                Test::Intervals {
                    bounds: found,
                    is_exact,
                }
            } else {
                Test::Any
            };
            asked.push(Asked {
                table: query.table,
                test,
                changes: None,
            });
        }
        self.queries = asked;
        for column in 0..self.columns.len() {
            self.sort(column);
        }
        for (query, n_uses) in n_uses.into_iter().enumerate() {
            if self.is_shared(query, n_uses) {
                self.queries[query].changes = Some(self.changes(query));
            }
        }
    }

    /// Whether so many predicates ask a query that the changes of every row are worth knowing.
    fn is_shared(&self, query: usize, n_uses: usize) -> bool {
        let asked = &self.queries[query];
        let table = &self.tables[asked.table as usize];
        let Some((_, span)) = self.narrowest(asked) else {
            return true;
        };
        let n_looks = n_uses * table.keys.len();
        4 * n_looks >= table.n_versions && table.n_versions + n_looks <= 4 * n_uses * span.len()
    }

    /// The column of whose index a query needs least, and the part of the index.
    fn narrowest(&self, asked: &Asked) -> Option<(usize, Range<usize>)> {
        let Test::Intervals { bounds, .. } = &asked.test else {
            return None;
        };
        let span = |it: &Bounds| {
            let index = &self.index[asked.table as usize][it.column];
            let low = index.partition_point(|cell| cell.0 < it.low);
            low..index.partition_point(|cell| cell.0 <= it.high).max(low)
        };
        let spans = bounds.iter().map(|it| (it.column, span(it)));
        spans.min_by_key(|it| it.1.len())
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
        let cell = |place: usize, value: u32| {
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
                _ => Some(NONE),
            }
        };
        let all = self.versions.all().iter().enumerate();
        let cells: Option<Vec<i64>> = all.map(|(place, it)| cell(place, it.value)).collect();
        self.columns[column] = cells.unwrap_or_default();
    }

    fn sort(&mut self, column: usize) {
        for (place, &cell) in self.columns[column].iter().enumerate() {
            let table = self.table_of[self.key_of[place].index()];
            if cell != NONE && table != NOBODY {
                self.index[table as usize][column].push((cell, place as u32));
            }
        }
        for index in &mut self.index {
            index[column].sort_unstable();
        }
    }

    /// Whether the version at a place satisfies a query's condition.
    #[inline]
    pub(crate) fn matches(&self, query: u32, place: usize) -> bool {
        let evaluate = || match self.versions.at(place).value {
            NOBODY => false,
            value => self.history.satisfies(query, ValueId(value)),
        };
        match &self.queries[query as usize].test {
            Test::Intervals { bounds, is_exact } => {
                let lies = |it: &Bounds| {
                    let cell = self.columns[it.column][place];
                    it.low <= cell && cell <= it.high
                };
                bounds.iter().all(lies) && (*is_exact || evaluate())
            }
            Test::Any => evaluate(),
        }
    }

    fn changes(&self, query: usize) -> Changes {
        let table = &self.tables[self.queries[query].table as usize];
        let mut changes = Changes {
            end: Vec::with_capacity(table.keys.len()),
            places: Vec::new(),
            starts: Vec::with_capacity(table.keys.len()),
        };
        for &key in &table.keys {
            let range = self.versions.of_key(key);
            let mut last = self.matches(query as u32, range.start);
            changes.starts.push(last);
            for place in range.skip(1) {
                let is = self.matches(query as u32, place);
                if is != last {
                    changes.places.push(place as u32);
                    last = is;
                }
            }
            changes.end.push(changes.places.len() as u32);
        }
        changes
    }

    /// How to find the rows of a query that few predicates ask.
    pub(crate) fn way(&self, query: u32) -> Way {
        let asked = &self.queries[query as usize];
        if asked.changes.is_some() {
            return Way::Known;
        }
        let Some((column, span)) = self.narrowest(asked) else {
            return Way::Scan;
        };
        let table = &self.tables[asked.table as usize];
        // Where a version in n lies in the interval, a scan meets a change after about n versions.
        let scanned = table.keys.len()
            * 2
            * (table.n_versions / span.len().max(1))
                .min(table.n_versions / table.keys.len().max(1) + 1);
        if span.len() > scanned {
            return Way::Scan;
        }
        let found = self.index[asked.table as usize][column][span].iter();
        let mut places: Vec<u32> = found
            .map(|it| it.1)
            .filter(|place| self.matches(query, *place as usize))
            .collect();
        places.sort_unstable();
        Way::Index(places)
    }

    /// What a query with known changes means for the row of this number in its table.
    #[inline]
    pub(crate) fn known(&self, query: u32, row: usize, place: usize) -> Around {
        let Some(changes) = &self.queries[query as usize].changes else {
            return self.scan(query, self.key_of[place], place);
        };
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
    pub(crate) fn scan(&self, query: u32, key: KeyId, place: usize) -> Around {
        let range = self.versions.of_key(key);
        match &self.queries[query as usize].test {
            // The usual case, without a call for every version.
            Test::Intervals {
                bounds,
                is_exact: true,
            } if bounds.len() == 1 => {
                let Bounds { column, low, high } = bounds[0];
                let cells = &self.columns[column][..range.end];
                scan_by(range, place, |at| low <= cells[at] && cells[at] <= high)
            }
            _ => scan_by(range, place, |at| self.matches(query, at)),
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

    pub(crate) fn table(&self, query: u32) -> u32 {
        self.queries[query as usize].table
    }
}

#[inline]
fn scan_by(range: Range<usize>, place: usize, is: impl Fn(usize) -> bool) -> Around {
    let matches = is(place);
    let mut before = place;
    while before > range.start && is(before - 1) == matches {
        before -= 1;
    }
    let mut after = place + 1;
    while after < range.end && is(after) == matches {
        after += 1;
    }
    Around {
        matches,
        before: (before > range.start).then_some(before),
        after: (after < range.end).then_some(after),
    }
}
