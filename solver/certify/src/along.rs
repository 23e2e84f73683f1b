//! Replays an expected order once more, in the plainest way: what each key holds, and every condition on the rows that can satisfy it.

use kingsnake_history::model::{Act, History, KeyId, Op, Predicate, Token, TxnId, ValueId};
use rustc_hash::FxHashMap;

use crate::adya::count;
use crate::standing::Standing;

/// The transactions that an order must hold: those that committed, and those of unknown end that were seen.
pub fn counted(history: &History) -> Vec<TxnId> {
    let counted = count(history);
    history.txns().filter(|txn| counted.contains(txn)).collect()
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
