//! The checkers' own reading of conditions over rows: which keys can ever satisfy one, and what a transaction saw of a key by what a
//! condition did and did not choose.

use kingsnake_history::model::{
    Act, Column, Comparison, Condition, History, KeyId, Op, Operand, Predicate, Token, TxnId,
    ValueId,
};
use rustc_hash::FxHashMap;

/// What is needed to evaluate conditions.
pub(super) struct Conditions {
    /// For each query, the keys with a value that satisfies it, sorted.
    keys: Vec<Vec<KeyId>>,
    /// The row of each key before any transaction.
    initial: Vec<Option<ValueId>>,
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
        let mut sorted: FxHashMap<(u32, Column), Vec<(i64, ValueId)>> = FxHashMap::default();
        let mut keys = Vec::new();
        for (at, query) in history.queries().iter().enumerate() {
            let all = &rows[query.table as usize];
            let mut spans = Vec::new();
            numbers(&query.condition, &mut spans);
            for &(column, ..) in &spans {
                sorted.entry((query.table, column)).or_insert_with(|| {
                    let cells = all
                        .iter()
                        .filter_map(|&row| match history.cell(row, column) {
                            Token::Int(number) => Some((number, row)),
                            _ => None,
                        });
                    let mut cells: Vec<(i64, ValueId)> = cells.collect();
                    cells.sort_unstable_by_key(|it| it.0);
                    cells
                });
            }
            let slices = spans.iter().map(|&(column, low, high)| {
                let cells = &sorted[&(query.table, column)];
                let from = cells.partition_point(|it| it.0 < low);
                let to = cells.partition_point(|it| it.0 <= high);
                &cells[from..to.max(from)]
            });
            let is = |row: ValueId| history.satisfies(at as u32, row);
            let narrowest = slices.min_by_key(|slice| slice.len());
            let mut found: Vec<KeyId> = if let Some(slice) = narrowest {
                let rows = slice.iter().filter(|it| is(it.1));
                rows.map(|it| history.value_key(it.1)).collect()
            } else {
                let rows = all.iter().filter(|&&it| is(it));
                rows.map(|&it| history.value_key(it)).collect()
            };
            found.sort_unstable();
            found.dedup();
            keys.push(found);
        }
        Some(Conditions { keys, initial })
    }

    /// The row of a key before any transaction, if it has one.
    pub(super) fn initial(&self, key: KeyId) -> Option<ValueId> {
        self.initial[key.index()]
    }

    /// Whether a predicate chose what it should have, given what each key holds; the error names a key. The result of an
    /// aggregate is of no key.
    pub(super) fn check(
        &self,
        history: &History,
        txn: TxnId,
        predicate: &Predicate,
        held: impl Fn(KeyId) -> Option<ValueId>,
    ) -> Result<(), Option<KeyId>> {
        let is_chosen = |key: KeyId| {
            let held = held(key).or_else(|| self.initial(key));
            held.filter(|&held| history.satisfies(predicate.query, held))
        };
        let keys = &self.keys[predicate.query as usize];
        if let Act::Aggregate {
            function,
            column,
            result,
        } = predicate.act
        {
            let rows = keys.iter().filter_map(|&key| is_chosen(key));
            let cells = rows.map(|row| match column {
                None => Token::Int(1),
                Some(column) => history.cell(row, column),
            });
            let is_result = function.apply(history.symbols(), cells) == Some(result);
            return if is_result { Ok(()) } else { Err(None) };
        }
        let returned = returned(history, txn, predicate);
        for &key in keys {
            if is_chosen(key).is_some() != returned.contains(&key) {
                return Err(Some(key));
            }
        }
        match returned.into_iter().find(|&key| is_chosen(key).is_none()) {
            Some(key) => Err(Some(key)),
            None => Ok(()),
        }
    }
}

/// Columns that must lie between two numbers where a condition holds.
fn numbers(condition: &Condition, spans: &mut Vec<(Column, i64, i64)>) {
    match condition {
        Condition::And(parts) => parts.iter().for_each(|part| numbers(part, spans)),
        Condition::Between(
            column,
            Operand::Literal(Token::Int(low)),
            Operand::Literal(Token::Int(high)),
        ) => spans.push((*column, *low, *high)),
        Condition::Compare(sign, column, Operand::Literal(Token::Int(with))) => match sign {
            Comparison::Eq => spans.push((*column, *with, *with)),
            Comparison::Le | Comparison::Lt => spans.push((*column, i64::MIN, *with)),
            Comparison::Ge | Comparison::Gt => spans.push((*column, *with, i64::MAX)),
            Comparison::Ne => {}
        },
        _ => {}
    }
}

/// The keys that a predicate returned or changed.
fn returned(history: &History, txn: TxnId, predicate: &Predicate) -> Vec<KeyId> {
    let start = predicate.at as usize;
    let ops = &history.ops(txn)[start..start + predicate.n_ops as usize];
    let mut keys: Vec<KeyId> = ops.iter().filter_map(|op| op.key()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// What a predicate says of the version of a key that it looked at; `None` if it is of another table, or an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// It satisfies the condition, or does not.
    Satisfies(bool),
    /// It is this one, which does not satisfy the condition: that cannot be.
    Never,
}

/// What a predicate says of a key.
pub(super) fn look(
    history: &History,
    txn: TxnId,
    predicate: &Predicate,
    key: KeyId,
) -> Option<Look> {
    let table = history.queries()[predicate.query as usize].table;
    if matches!(predicate.act, Act::Aggregate { .. }) || history.table_of(key) != Some(table) {
        return None;
    }
    let start = predicate.at as usize;
    let ops = &history.ops(txn)[start..start + predicate.n_ops as usize];
    Some(match ops.iter().find(|op| op.key() == Some(key)) {
        None => Look::Satisfies(false),
        Some(&Op::Read { value, .. }) if !history.satisfies(predicate.query, value) => Look::Never,
        Some(_) => Look::Satisfies(true),
    })
}
