//! Replays an expected order, in the simplest way: the value of each key, and every condition on the rows that can satisfy it.

use kingsnake_history::adya::Disagreement;
use kingsnake_history::model::{Act, History, KeyId, Op, Predicate, Token, TxnId, ValueId};
use kingsnake_history::promise::Along;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::Refusal;
use crate::adya::count;
use crate::standing::Standing;

/// The transactions that an order must contain: those that committed, and those of unknown outcome that were seen.
pub fn counted(history: &History) -> Vec<TxnId> {
    let counted = count(history);
    history.txns().filter(|txn| counted.contains(txn)).collect()
}

/// Checks that an order, or its first part, is the expected one. The error tells where it differs.
pub fn is_expected(history: &History, along: &Along, order: &[TxnId]) -> Result<(), String> {
    let counted = count(history);
    let mut seen = FxHashSet::default();
    let mut last = (i64::MIN, false);
    let time = |txn: TxnId| -> Result<(i64, bool), String> {
        let stamps = history.stamps(txn);
        let time = match along {
            Along::CommitTs => stamps.commit_ts,
            Along::StartTs => stamps.start_ts,
            Along::Order(_) => return Ok((0, false)),
        };
        let is_reader = !history.ops(txn).iter().any(|op| op.is_write());
        let lacks = || format!("transaction {} has no timestamp", history.txn_name(txn));
        Ok((time.ok_or_else(lacks)?, is_reader))
    };
    for &txn in order {
        if txn.index() >= history.n_txns() || !counted.contains(&txn) || !seen.insert(txn) {
            return Err(
                "the order names a transaction twice, or one that does not count".to_owned(),
            );
        }
        let now = time(txn)?;
        if now < last {
            let name = history.txn_name(txn);
            return Err(format!("transaction {name} is too late in the order"));
        }
        last = now;
    }
    for txn in history.txns().filter(|txn| counted.contains(txn)) {
        if !seen.contains(&txn) && time(txn)? < last {
            let name = history.txn_name(txn);
            return Err(format!("the order lacks transaction {name}"));
        }
    }
    match along {
        Along::Order(expected) if !expected.starts_with(order) => {
            Err("this is not the expected order".to_owned())
        }
        _ => Ok(()),
    }
}

/// Checks that an expected order explains the history.
pub fn check_order(history: &History, along: &Along, order: &[TxnId]) -> Result<(), Refusal> {
    is_expected(history, along, order).map_err(Refusal::Order)?;
    if order.len() != count(history).len() {
        return Err(Refusal::Order("the order lacks transactions".to_owned()));
    }
    match replay(history, order) {
        None => Ok(()),
        Some((txn, op)) => Err(Refusal::Order(format!(
            "operation {op} of transaction {} does not fit",
            history.txn_name(txn)
        ))),
    }
}

/// Checks that the last transaction of the first part of an expected order fails at this operation.
pub fn check_disagreement(
    history: &History,
    along: &Along,
    order: &[TxnId],
    found: &Disagreement,
) -> Result<(), Refusal> {
    is_expected(history, along, order).map_err(Refusal::Refutation)?;
    let is_last = order.last() == Some(&found.txn) && found.place + 1 == order.len();
    if is_last && replay(history, order) == Some((found.txn, found.op)) {
        return Ok(());
    }
    let why = "the operation fits the order".to_owned();
    Err(Refusal::Refutation(why))
}

/// The first transaction and operation that does not fit.
pub fn replay(history: &History, order: &[TxnId]) -> Option<(TxnId, usize)> {
    let mut standing = Standing::new(history);
    let mut lists: FxHashMap<KeyId, Vec<ValueId>> = FxHashMap::default();
    for &txn in order {
        let mut predicates = history.predicates(txn).peekable();
        let ops = history.ops(txn);
        for at in 0..=ops.len() {
            while let Some(predicate) = predicates.next_if(|it| it.at as usize == at) {
                let chosen = standing.chosen(predicate.query);
                if !returns(history, txn, predicate, &chosen) {
                    return Some((txn, at));
                }
            }
            let fits = match ops.get(at) {
                None => break,
                Some(&Op::Write { key, value }) => {
                    standing.put(key, value);
                    true
                }
                Some(&Op::Append { key, value }) => {
                    lists.entry(key).or_default().push(value);
                    true
                }
                Some(&Op::Read { key, value }) => match standing.held(key) {
                    None => history.is_initial(value),
                    Some(now) if now == value => true,
                    Some(now) => {
                        history.value_token(value) == Token::Nil && history.is_absence(now)
                    }
                },
                Some(&Op::ReadList { key, list }) => {
                    lists.get(&key).map_or(&[][..], |it| it) == history.list(list)
                }
                Some(&op @ Op::Range { .. }) => range(history, op, &standing),
            };
            if !fits {
                return Some((txn, at));
            }
        }
    }
    None
}

fn range(history: &History, op: Op, standing: &Standing<'_>) -> bool {
    let Op::Range { range } = op else {
        return true;
    };
    let rows = history.range(range).rows;
    let keys = (0..history.n_keys() as u32).map(KeyId);
    let mut inside = keys.filter(|&key| history.touches(op, key));
    inside.all(|key| {
        let returned = rows
            .iter()
            .rev()
            .find(|&&row| history.value_key(row) == key);
        let now = standing.held(key);
        match (now, returned) {
            (None, None) => true,
            (Some(now), None) => history.is_absence(now),
            (None, Some(_)) => false,
            (Some(now), Some(&returned)) => now == returned,
        }
    })
}

fn returns(history: &History, txn: TxnId, predicate: &Predicate, chosen: &[ValueId]) -> bool {
    if let Act::Aggregate {
        function,
        column,
        result,
    } = predicate.act
    {
        let values = chosen.iter().map(|&value| match column {
            None => Token::Int(1),
            Some(column) => history.cell(value, column),
        });
        return function.apply(history.symbols(), values) == Some(result);
    }
    let start = predicate.at as usize;
    let ops = &history.ops(txn)[start..start + predicate.n_ops as usize];
    let has = |value: &ValueId| {
        let key = history.value_key(*value);
        let first = ops.iter().find(|op| op.key() == Some(key));
        match first {
            None => false,
            Some(Op::Read { value: read, .. }) => read == value,
            Some(_) => true,
        }
    };
    let mut returned: Vec<KeyId> = ops.iter().filter_map(|op| op.key()).collect();
    returned.sort_unstable();
    returned.dedup();
    returned.len() == chosen.len() && chosen.iter().all(has)
}
