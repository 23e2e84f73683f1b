//! The checkers' own reading of conditions over rows: which keys can ever satisfy one, and what a transaction saw of a
//! key, by what a condition did and did not choose.

use kingsnake_history::level::Model;
use kingsnake_history::model::{
    Act, Column, Comparison, Condition, History, KeyId, Op, Operand, Predicate, Token, TxnId,
    ValueId,
};
use rustc_hash::FxHashMap;

/// The data for evaluating conditions.
pub(super) struct Conditions {
    queries: Vec<Satisfying>,
    /// The keys of each table, sorted.
    tables: Vec<Vec<KeyId>>,
    /// The row of each key before any transaction.
    initial: Vec<Option<ValueId>>,
}

/// The rows that can satisfy a query.
enum Satisfying {
    /// Any row of its table: evaluating those that are met is less work than evaluating all versions in advance.
    AnyOf(u32),
    /// Rows of these keys, sorted.
    Only(Vec<KeyId>),
}

impl Conditions {
    /// Reads all rows; nothing where there are no predicates.
    pub(super) fn of(history: &History) -> Option<Self> {
        if history.n_predicates() == 0 {
            return None;
        }
        let mut initial = vec![None; history.n_keys()];
        let mut rows: Vec<Vec<ValueId>> = vec![Vec::new(); history.tables().len()];
        for value in (0..history.n_values() as u32).map(ValueId) {
            let key = history.value_key(value);
            if history.is_absence(value) {
                continue;
            }
            if history.is_initial(value) {
                initial[key.index()] = Some(value);
            }
            if let Some(table) = history.table_of(key) {
                rows[table as usize].push(value);
            }
        }
        let mut tables: Vec<Vec<KeyId>> = vec![Vec::new(); history.tables().len()];
        for key in (0..history.n_keys() as u32).map(KeyId) {
            if let Some(table) = history.table_of(key) {
                tables[table as usize].push(key);
            }
        }
        // What a transaction read of any row, chosen or not, happened before those that it comes before.
        let has_causal = history.models().contains(&Model::Cc);
        let mut n_uses = vec![0_usize; history.queries().len()];
        for (_, predicate) in history.all_predicates() {
            n_uses[predicate.query as usize] += 1;
        }
        let mut sorted: FxHashMap<(u32, Column), Vec<(Token, ValueId)>> = FxHashMap::default();
        let mut queries = Vec::new();
        for (at, query) in history.queries().iter().enumerate() {
            let all = &rows[query.table as usize];
            let mut spans = Vec::new();
            spans_of(&query.condition, &mut spans);
            for &(column, _) in &spans {
                sorted.entry((query.table, column)).or_insert_with(|| {
                    let cells = all.iter().map(|&row| (history.cell(row, column), row));
                    let mut cells: Vec<(Token, ValueId)> = cells.collect();
                    cells.sort_unstable_by_key(|it| it.0);
                    cells
                });
            }
            let slices = spans.iter().map(|(column, spans)| {
                let cells = &sorted[&(query.table, *column)];
                let slice = |&(low, high): &(Token, Token)| {
                    let from = cells.partition_point(|it| it.0 < low);
                    let to = cells.partition_point(|it| it.0 <= high);
                    &cells[from..to.max(from)]
                };
                spans.iter().map(slice).collect::<Vec<_>>()
            });
            let size = |slices: &Vec<&[(Token, ValueId)]>| -> usize {
                slices.iter().map(|slice| slice.len()).sum()
            };
            let narrowest = slices.min_by_key(size);
            let n_versions = narrowest.as_ref().map_or(all.len(), size);
            if has_causal || n_uses[at] * tables[query.table as usize].len() <= n_versions {
                queries.push(Satisfying::AnyOf(query.table));
                continue;
            }
            let is = |row: &ValueId| history.satisfies(at as u32, *row);
            let found: Vec<ValueId> = match narrowest {
                Some(slices) => {
                    let rows = slices.into_iter().flatten().map(|it| it.1);
                    rows.filter(is).collect()
                }
                None => all.iter().copied().filter(is).collect(),
            };
            let mut of_found: Vec<KeyId> = found.iter().map(|&it| history.value_key(it)).collect();
            of_found.sort_unstable();
            of_found.dedup();
            queries.push(Satisfying::Only(of_found));
        }
        Some(Conditions {
            queries,
            tables,
            initial,
        })
    }

    /// The row of a key before any transaction, if it has one.
    pub(super) fn initial(&self, key: KeyId) -> Option<ValueId> {
        self.initial[key.index()]
    }

    /// The keys that can have a value which satisfies a query, sorted.
    pub(super) fn keys(&self, query: u32) -> &[KeyId] {
        match &self.queries[query as usize] {
            Satisfying::AnyOf(table) => &self.tables[*table as usize],
            Satisfying::Only(keys) => keys,
        }
    }
}

/// A column that must lie in one of these spans of cells, both ends included, where a condition holds.
pub(super) type Spans = (Column, Vec<(Token, Token)>);

pub(super) fn spans_of(condition: &Condition, spans: &mut Vec<Spans>) {
    let mut span = |column: Column, low: Token, high: Token| {
        spans.push((column, vec![(low, high)]));
    };
    let (least, greatest) = (Token::Int(i64::MIN), Token::Int(i64::MAX));
    match condition {
        Condition::And(parts) => parts.iter().for_each(|part| spans_of(part, spans)),
        Condition::Between(
            column,
            Operand::Literal(low @ Token::Int(_)),
            Operand::Literal(high @ Token::Int(_)),
        ) => span(*column, *low, *high),
        Condition::Compare(Comparison::Eq, column, Operand::Literal(with)) => {
            span(*column, *with, *with);
        }
        Condition::Compare(sign, column, Operand::Literal(with @ Token::Int(_))) => match sign {
            Comparison::Le | Comparison::Lt => span(*column, least, *with),
            Comparison::Ge | Comparison::Gt => span(*column, *with, greatest),
            Comparison::Eq | Comparison::Ne => {}
        },
        Condition::In(column, list) => {
            let mut list = list.clone();
            list.sort_unstable();
            list.dedup();
            spans.push((*column, list.into_iter().map(|it| (it, it)).collect()));
        }
        _ => {}
    }
}

/// The keys that a predicate returned or changed.
pub(super) fn returned(history: &History, txn: TxnId, predicate: &Predicate) -> Vec<KeyId> {
    let start = predicate.at as usize;
    let ops = &history.ops(txn)[start..start + predicate.n_ops as usize];
    let mut keys: Vec<KeyId> = ops.iter().filter_map(|op| op.key()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Whether a predicate returned a row as it was before the predicate changed it: then that read says what it was.
pub(super) fn is_read_by(history: &History, txn: TxnId, predicate: &Predicate, key: KeyId) -> bool {
    let start = predicate.at as usize;
    let ops = &history.ops(txn)[start..start + predicate.n_ops as usize];
    let first = ops.iter().find(|op| op.key() == Some(key));
    matches!(first, Some(Op::Read { .. }))
}

/// What a predicate shows about the version of a key that it looked at; `None` if it is of another table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// It satisfies the condition, or does not.
    Satisfies(bool),
    /// It is this one, which does not satisfy the condition: impossible.
    Never,
    /// It can be any: an aggregate tells nothing of one row.
    Anything,
}

/// What a predicate shows about a key.
pub(super) fn look(
    history: &History,
    txn: TxnId,
    predicate: &Predicate,
    key: KeyId,
) -> Option<Look> {
    let table = history.queries()[predicate.query as usize].table;
    if history.table_of(key) != Some(table) {
        return None;
    }
    if matches!(predicate.act, Act::Aggregate { .. }) {
        return Some(Look::Anything);
    }
    let start = predicate.at as usize;
    let ops = &history.ops(txn)[start..start + predicate.n_ops as usize];
    Some(match ops.iter().find(|op| op.key() == Some(key)) {
        None => Look::Satisfies(false),
        Some(&Op::Read { value, .. }) if !history.satisfies(predicate.query, value) => Look::Never,
        Some(_) => Look::Satisfies(true),
    })
}
