//! The user's assumptions, derived again: which version of a key a transaction had last and which another found first,
//! and whether an order of versions, or of transactions, satisfies every assumption.

use rustc_hash::FxHashMap;

use kingsnake_history::model::{
    History, KeyAssumption, KeyId, Op, OrderSource, Shown, Status, TxnId, ValueId, VersionOrder,
};
use kingsnake_history::verdict::Finding;

/// Whether an order of versions is what it says: one that came with the history or that the user gave always is; of one that
/// assumptions give, every two neighbours must follow.
pub(super) fn is_founded(history: &History, order: &VersionOrder) -> bool {
    let OrderSource::Keys(shown) = &order.source else {
        return true;
    };
    let pairs = order.values.windows(2).zip(shown);
    shown.len() + 1 == order.values.len()
        && pairs
            .into_iter()
            .all(|(pair, shown)| follows(history, order.key, pair, *shown))
}

/// Whether an assumption puts one transaction after another, or one operation of a transaction after another.
fn is_later(history: &History, shown: Shown) -> bool {
    let Shown { by, earlier, later } = shown;
    let is_known = |txn: TxnId| txn.index() < history.n_txns();
    history.key_assumptions().contains(&by)
        && is_known(earlier)
        && is_known(later)
        && (earlier == later
            || match by {
                KeyAssumption::Linearizable => {
                    history.interval(earlier).commit < history.interval(later).begin
                }
                KeyAssumption::Sequential => {
                    history.session(earlier) == history.session(later) && earlier < later
                }
                KeyAssumption::WritesFollowReads => false,
            })
}

fn follows(history: &History, key: KeyId, pair: &[ValueId], shown: Shown) -> bool {
    let Shown { by, earlier, later } = shown;
    if !is_later(history, shown) || history.status(earlier) == Status::Aborted {
        return false;
    }
    let (had, found) = (touches(history, earlier, key), touches(history, later, key));
    if earlier != later {
        return had.last().and_then(|it| it.1) == Some(pair[0])
            && found.first().and_then(|it| it.1) == Some(pair[1]);
    }
    let is_write = |at: usize| history.ops(later)[had[at].0].is_write();
    let first = had.iter().position(|it| it.1 == Some(pair[0]));
    let last = had.iter().rposition(|it| it.1 == Some(pair[1]));
    match (first, last) {
        (Some(one), Some(two)) => {
            one < two && (by != KeyAssumption::WritesFollowReads || is_write(two))
        }
        _ => false,
    }
}

/// The versions of a key that a transaction found before it wrote the key, and the one that it left, each with its operation. The
/// version of a list is its last element; `None` is the initial state.
fn touches(history: &History, txn: TxnId, key: KeyId) -> Vec<(usize, Option<ValueId>)> {
    let ops = history.ops(txn);
    let is_write = |op: &Op| op.is_write() && op.key() == Some(key);
    let first = ops.iter().position(is_write).unwrap_or(ops.len());
    let last = ops.iter().rposition(is_write);
    let read = ops[..first]
        .iter()
        .enumerate()
        .filter_map(|(at, op)| match *op {
            Op::Read { key: of, value } if of == key => {
                Some((at, (!history.is_initial(value)).then_some(value)))
            }
            Op::ReadList { key: of, list } if of == key => {
                Some((at, history.list(list).last().copied()))
            }
            _ => None,
        });
    let written = last.and_then(|at| match ops[at] {
        Op::Write { value, .. } | Op::Append { value, .. } => Some((at, Some(value))),
        _ => None,
    });
    read.chain(written).collect()
}

/// Whether a transaction read the initial state of a key after, by an assumption, another had a version of it.
pub(super) fn is_stale(history: &History, finding: &Finding) -> bool {
    let Some((earlier, had)) = finding.other else {
        return false;
    };
    let is_later_by = |&by: &KeyAssumption| {
        is_later(
            history,
            Shown {
                by,
                earlier,
                later: finding.txn,
            },
        )
    };
    if !history.key_assumptions().iter().any(is_later_by)
        || history.status(earlier) == Status::Aborted
    {
        return false;
    }
    let before = touches(history, earlier, finding.key);
    let after = touches(history, finding.txn, finding.key);
    let version = before.iter().find(|it| it.0 == had);
    let initial = after.iter().find(|it| it.0 == finding.op);
    version.is_some_and(|it| it.1.is_some())
        && initial.is_some_and(|it| it.1.is_none())
        && (earlier != finding.txn || had < finding.op)
}

/// Checks that an order satisfies the assumptions about keys. `place` is where a version stands among those of its key,
/// from 1, if it was
/// installed.
pub(super) fn check_keys(
    history: &History,
    counts: impl Fn(TxnId) -> bool,
    place: impl Fn(ValueId) -> Option<usize>,
) -> Result<(), String> {
    if history.key_assumptions().is_empty() {
        return Ok(());
    }
    let mut visits: FxHashMap<KeyId, Vec<(TxnId, Vec<usize>)>> = FxHashMap::default();
    for txn in history.txns().filter(|&txn| counts(txn)) {
        let mut keys: Vec<KeyId> = history.ops(txn).iter().filter_map(|op| op.key()).collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            let all = touches(history, txn, key).into_iter();
            let places = all.filter_map(|(_, value)| value.map_or(Some(0), &place));
            let places: Vec<usize> = places.collect();
            if !places.is_empty() {
                visits.entry(key).or_default().push((txn, places));
            }
        }
    }
    for (key, visits) in visits {
        for &by in history.key_assumptions() {
            if !keeps(history, by, &visits) {
                let key = history.key_name(key);
                return Err(format!("the order breaks {} of key {key}", by.name()));
            }
        }
    }
    Ok(())
}

/// Whether the later transaction of an assumption found no older version.
fn keeps(history: &History, by: KeyAssumption, visits: &[(TxnId, Vec<usize>)]) -> bool {
    let is_sorted = |places: &[usize]| match by {
        KeyAssumption::WritesFollowReads => places.iter().all(|it| places.last() >= Some(it)),
        _ => places.is_sorted(),
    };
    if !visits.iter().all(|it| is_sorted(&it.1)) {
        return false;
    }
    let newest = |places: &[usize]| places.last().copied().unwrap_or(0);
    match by {
        KeyAssumption::WritesFollowReads => true,
        KeyAssumption::Sequential => {
            let mut had: FxHashMap<u32, usize> = FxHashMap::default();
            visits.iter().all(|(txn, places)| {
                let had = had.entry(history.session(*txn).0).or_default();
                let is_newer = *had <= places[0];
                *had = (*had).max(newest(places));
                is_newer
            })
        }
        KeyAssumption::Linearizable => {
            let mut begun: Vec<(i64, usize)> = Vec::new();
            let mut ended: Vec<(i64, usize)> = Vec::new();
            for (txn, places) in visits {
                let interval = history.interval(*txn);
                begun.push((interval.begin, places[0]));
                ended.push((interval.commit, newest(places)));
            }
            begun.sort_unstable();
            ended.sort_unstable();
            let (mut had, mut next) = (0, 0);
            begun.into_iter().all(|(begin, found)| {
                while next < ended.len() && ended[next].0 < begin {
                    had = had.max(ended[next].1);
                    next += 1;
                }
                had <= found
            })
        }
    }
}

/// Checks that an order of transactions keeps to the orders that the user gave. `ends` and `begins` are places in it; 0 for who is not
/// there.
pub(super) fn check_edges(
    history: &History,
    ends: impl Fn(TxnId) -> usize,
    begins: impl Fn(TxnId) -> usize,
) -> Result<(), String> {
    for edge in history.given_edges() {
        let (end, begin) = (ends(edge.from), begins(edge.to));
        if end != 0 && begin != 0 && end >= begin {
            return Err(format!(
                "transaction {} is not before transaction {}, as {} says",
                history.txn_name(edge.from),
                history.txn_name(edge.to),
                edge.name
            ));
        }
    }
    Ok(())
}
