//! Conditions over rows in words: the condition, the missing row, and what others had made of the row.

use kingsnake_history::model::{Act, Column, Condition, KeyId, Op, Predicate, TxnId, ValueId};

use crate::words::Words;

impl<'h> Words<'h> {
    /// The first predicate of a transaction that looked at a key which it did not read by itself.
    pub(super) fn predicate_on(&self, txn: TxnId, key: KeyId) -> Option<&'h Predicate> {
        let history = self.meaning.history();
        let mut ops = history.ops(txn).iter();
        if ops.any(|op| matches!(op, Op::Read { key: it, .. } if *it == key)) {
            return None;
        }
        self.any_predicate_on(txn, key)
    }

    /// The first predicate of a transaction that looked at a key.
    pub(super) fn any_predicate_on(&self, txn: TxnId, key: KeyId) -> Option<&'h Predicate> {
        let history = self.meaning.history();
        let table = history.table_of(key)?;
        history.predicates(txn).find(|it| {
            !matches!(it.act, Act::Aggregate { .. })
                && history.queries()[it.query as usize].table == table
        })
    }

    /// What one operation, or one condition, saw of a key: `T1 read x = 1 in operation 3`.
    pub(super) fn sight_by(&self, txn: TxnId, op: usize, key: KeyId) -> String {
        let history = self.meaning.history();
        let (who, ops) = (self.labels.txn(txn), history.ops(txn));
        let asked = op.checked_sub(ops.len());
        let asked = asked.and_then(|nth| history.predicates(txn).nth(nth));
        match asked {
            Some(predicate) if matches!(predicate.act, Act::Aggregate { .. }) => {
                let (asked, row) = (self.counted(txn, predicate), self.labels.key(key));
                format!("{asked}, for which it read row {row}")
            }
            Some(predicate) => self.asked(txn, predicate, key),
            None => match ops.get(op) {
                Some(&Op::Read { value, .. }) if !history.is_tombstone(value) => {
                    format!("{who} read {} in operation {op}", self.labels.row(value))
                }
                _ => format!("{who} read {} in operation {op}", self.labels.key(key)),
            },
        }
    }

    /// `T5 asked for rows with c1 between 3 and 9 and did not get row 17`.
    pub(super) fn asked(&self, txn: TxnId, predicate: &Predicate, key: KeyId) -> String {
        let history = self.meaning.history();
        let (who, row) = (self.labels.txn(txn), self.labels.key(key));
        if let Some((kind, name, part)) = history.object_row(key) {
            let (kind, show) = (kind.name(), |token| history.symbols().spell(token));
            return format!("{who} read {kind} {} without {}", show(name), show(part));
        }
        let condition = match &history.queries()[predicate.query as usize].condition {
            Condition::Always(true) => "all rows".to_owned(),
            _ => format!("rows with {}", history.condition_text(predicate.query)),
        };
        let start = predicate.at as usize;
        let ops = &history.ops(txn)[start..start + predicate.n_ops as usize];
        if ops.iter().any(|op| op.key() == Some(key)) {
            let did = match predicate.act {
                Act::Delete => "deleted",
                _ => "updated",
            };
            return format!("{who} {did} {condition}, row {row} among them");
        }
        format!("{who} asked for {condition} and did not get row {row}")
    }

    /// `T2 had set its c1 to 4`, by the columns that a condition asks for.
    pub(super) fn had_set(&self, txn: TxnId, predicate: &Predicate, key: KeyId) -> String {
        let who = self.labels.txn(txn);
        let Some(value) = self.meaning.left(txn, key) else {
            return format!("{who} had written it");
        };
        let history = self.meaning.history();
        if history.is_absence(value) {
            return format!("{who} had deleted it");
        }
        if let Some((kind, name, part)) = history.object_row(key) {
            let show = |token| history.symbols().spell(token);
            return format!(
                "{who} had added {} to {} {}",
                show(part),
                kind.name(),
                show(name)
            );
        }
        format!("{who} had set {}", self.cells(predicate, value))
    }

    fn cells(&self, predicate: &Predicate, value: ValueId) -> String {
        let history = self.meaning.history();
        let query = &history.queries()[predicate.query as usize];
        let mut columns = Vec::new();
        collect_columns(&query.condition, &mut columns);
        let told: Vec<String> = columns
            .into_iter()
            .filter(|&column| column != Column::Key)
            .map(|column| {
                let name = history.column_name(query.table, column);
                let cell = history.symbols().show(history.cell(value, column));
                format!("its {name} to {cell}")
            })
            .collect();
        if told.is_empty() {
            return format!("it to {}", self.labels.value(value));
        }
        told.join(", ")
    }
}

fn collect_columns(condition: &Condition, columns: &mut Vec<Column>) {
    let column = match condition {
        Condition::Always(_) => return,
        Condition::And(parts) | Condition::Or(parts) => {
            return parts.iter().for_each(|part| collect_columns(part, columns));
        }
        Condition::Not(part) => return collect_columns(part, columns),
        Condition::Compare(_, column, _)
        | Condition::Between(column, ..)
        | Condition::In(column, _)
        | Condition::IsNull(column) => *column,
    };
    if !columns.contains(&column) {
        columns.push(column);
    }
}
