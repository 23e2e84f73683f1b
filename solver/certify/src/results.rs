//! The possible results of an aggregate, given which versions of each row its transaction can have read.

use rustc_hash::{FxHashMap, FxHashSet};

use super::meaning::{Meaning, Version};
use kingsnake_history::model::{
    Act, Function, History, KeyId, Op, Predicate, Token, TxnId, ValueId,
};

/// Limit of partial results.
const MOST: usize = 1 << 16;

impl Meaning<'_> {
    /// Every result that an aggregate can have by what its transaction can have read of each row, but for the versions that are ruled
    /// out; `None` where there are too many to tell, or it is no aggregate.
    pub fn results(
        &self,
        reader: TxnId,
        nth: usize,
        is_ruled_out: impl Fn(KeyId, Version) -> bool,
    ) -> Option<Vec<Token>> {
        let predicate = self.history().predicates(reader).nth(nth)?;
        self.results_of(reader, predicate, |key| {
            let mut sources = match self.version_read(reader, key) {
                Some(version) => vec![version],
                None => self.sources(reader, key).unwrap_or_default(),
            };
            sources.retain(|&version| !is_ruled_out(key, version));
            sources
        })
    }

    /// Every result that an aggregate can have as a statement of its own, by what it is assumed to have read, and the one that it had.
    pub(super) fn statement_results(
        &self,
        reader: TxnId,
        nth: usize,
    ) -> Option<(Vec<Token>, Token)> {
        let history = self.history();
        let predicate = history.predicates(reader).nth(nth)?;
        let Act::Aggregate { result, .. } = predicate.act else {
            return None;
        };
        let read = history.statements(reader).read_by(nth);
        let results = self.results_of(reader, predicate, |key| {
            match self.taken_read((reader, read, key)) {
                Some(version) => vec![version],
                None => self.sources_of(reader, read, key).unwrap_or_default(),
            }
        })?;
        Some((results, result))
    }

    /// The same, given what each row that the transaction had not written itself can have been read from.
    pub(super) fn results_of(
        &self,
        reader: TxnId,
        predicate: &Predicate,
        sources: impl Fn(KeyId) -> Vec<Version>,
    ) -> Option<Vec<Token>> {
        let history = self.history();
        let Act::Aggregate {
            function, column, ..
        } = predicate.act
        else {
            return None;
        };
        let conditions = self.conditions()?;
        let cell = |row: Option<ValueId>| match row {
            Some(row) if history.satisfies(predicate.query, row) => match column {
                None => Token::Int(1),
                Some(column) => history.cell(row, column),
            },
            _ => Token::Nil,
        };
        let own = own_rows(history, reader, predicate);
        let mut rows: Vec<Vec<Token>> = own.values().map(|&row| vec![cell(Some(row))]).collect();
        for &key in conditions.keys(predicate.query) {
            if own.contains_key(&key) {
                continue;
            }
            let row = |version: Version| match version {
                None => conditions.initial(key),
                Some(writer) => self.left(writer, key),
            };
            let mut cells: Vec<Token> = sources(key).into_iter().map(|it| cell(row(it))).collect();
            cells.sort_unstable();
            cells.dedup();
            rows.push(cells);
        }
        all_results(history, function, &rows)
    }
}

/// What a transaction had written itself of a table before it asked.
fn own_rows(history: &History, reader: TxnId, predicate: &Predicate) -> FxHashMap<KeyId, ValueId> {
    let table = history.queries()[predicate.query as usize].table;
    let mut own = FxHashMap::default();
    for &op in &history.ops(reader)[..predicate.at as usize] {
        if let Op::Write { key, value } = op
            && history.table_of(key) == Some(table)
        {
            own.insert(key, value);
        }
    }
    own
}

/// A function of some of the rows: how many there were, their sum, or the best of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Partial {
    n: i128,
    best: Token,
}

/// Every result over one cell of each row.
fn all_results(history: &History, function: Function, rows: &[Vec<Token>]) -> Option<Vec<Token>> {
    let none = Partial {
        n: 0,
        best: Token::Nil,
    };
    let mut partials: FxHashSet<Partial> = std::iter::once(none).collect();
    for cells in rows {
        let mut more = FxHashSet::default();
        for &partial in &partials {
            let next = cells
                .iter()
                .filter_map(|&it| add(history, function, partial, it));
            more.extend(next);
        }
        if more.len() > MOST {
            return None;
        }
        partials = more;
    }
    let results = partials.into_iter().filter_map(|it| match function {
        Function::Count => Some(Token::Int(it.n as i64)),
        Function::Min | Function::Max => Some(it.best),
        Function::Sum if it.best == Token::Nil => Some(Token::Nil),
        Function::Sum => i64::try_from(it.n).ok().map(Token::Int),
    });
    let mut results: Vec<Token> = results.collect();
    results.sort_unstable();
    results.dedup();
    Some(results)
}

/// With one more row; nothing where there is no such result. Of a sum, `best` tells that there is a row.
fn add(history: &History, function: Function, partial: Partial, cell: Token) -> Option<Partial> {
    if cell == Token::Nil {
        return Some(partial);
    }
    Some(match (function, cell) {
        (Function::Count, _) => Partial {
            n: partial.n + 1,
            ..partial
        },
        (Function::Sum, Token::Int(number)) => Partial {
            n: partial.n + i128::from(number),
            best: Token::Int(1),
        },
        (Function::Sum, _) => return None,
        (Function::Min | Function::Max, _) => {
            let of_two = [partial.best, cell].into_iter();
            let best = function.apply(history.symbols(), of_two)?;
            Partial { n: 0, best }
        }
    })
}
