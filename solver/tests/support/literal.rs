//! A naive oracle: all subsets, all interleavings of begins and commits, everything checked at the end.

use kingsnake_solver::level::{Model, Snapshots, Spec, Times};
use kingsnake_solver::model::{History, KeyId, Op, RangeId, Status, Token, TxnId, ValueId};

type Event = (TxnId, bool);

/// Whether the history satisfies the level. Keep it to 4 transactions.
pub fn holds(history: &History, spec: Spec) -> bool {
    let unknown: Vec<TxnId> = history
        .txns()
        .filter(|&txn| history.status(txn) == Status::Unknown)
        .collect();
    (0..1_u32 << unknown.len()).any(|subset| {
        let counts = |txn: TxnId| match history.status(txn) {
            Status::Committed => true,
            Status::Aborted => false,
            Status::Unknown => {
                let place = unknown
                    .iter()
                    .position(|&other| other == txn)
                    .expect("it is unknown");
                subset & (1 << place) != 0
            }
        };
        let txns: Vec<TxnId> = history.txns().filter(|&txn| counts(txn)).collect();
        some_interleaving(history, spec, &txns, &mut Vec::new())
    })
}

fn some_interleaving(
    history: &History,
    spec: Spec,
    txns: &[TxnId],
    events: &mut Vec<Event>,
) -> bool {
    if events.len() == 2 * txns.len() {
        return explains(history, spec, txns, events);
    }
    // In a serial execution nothing happens between a begin and its commit.
    let open = events
        .last()
        .filter(|event| spec.model == Model::Ser && !event.1)
        .map(|event| event.0);
    for &txn in txns {
        let begun = events.contains(&(txn, false));
        if events.contains(&(txn, true)) || open.is_some_and(|open| open != txn) {
            continue;
        }
        events.push((txn, begun));
        if some_interleaving(history, spec, txns, events) {
            return true;
        }
        events.pop();
    }
    false
}

fn explains(history: &History, spec: Spec, txns: &[TxnId], events: &[Event]) -> bool {
    let at = |event: Event| {
        events
            .iter()
            .position(|&other| other == event)
            .expect("it happened")
    };
    let (begin, commit) = (|txn| at((txn, false)), |txn| at((txn, true)));
    for &a in txns {
        for &b in txns.iter().filter(|&&b| b != a) {
            let in_session =
                spec.session_order && history.session(a) == history.session(b) && a < b;
            if in_session && commit(a) > begin(b) {
                return false;
            }
            let overlap = begin(a) < commit(b) && begin(b) < commit(a);
            if overlap
                && spec.model != Model::Pc
                && history
                    .ops(a)
                    .iter()
                    .any(|op| op.is_write() && op.key().is_some_and(|key| writes(history, b, key)))
            {
                return false;
            }
        }
    }
    if spec.real_time.is_some() && !fits_the_clock(history, spec, events) {
        return false;
    }
    let commits: Vec<TxnId> = events
        .iter()
        .filter(|event| event.1)
        .map(|event| event.0)
        .collect();
    let reads = txns.iter().all(|&txn| {
        let seen = commits.iter().filter(|&&other| commit(other) < begin(txn));
        reads_match(history, txn, &seen.copied().collect::<Vec<_>>())
    });
    reads
        && history
            .version_orders()
            .iter()
            .all(|order| versions_match(history, &order.values, &commits))
}

/// Whether no event comes before one that was over, by the clock, before it could be: then all can have true times.
fn fits_the_clock(history: &History, spec: Spec, events: &[Event]) -> bool {
    let drift = spec.real_time.map_or(0, |it| i128::from(it.drift));
    (0..events.len()).all(|later| {
        (0..later).all(|earlier| {
            let over = last_time(history, spec, events[later]);
            let starts = first_time(history, spec, events[earlier]);
            !matches!((over, starts), (Some(over), Some(starts)) if over + drift < starts)
        })
    })
}

fn first_time(history: &History, spec: Spec, (txn, is_commit): Event) -> Option<i128> {
    let real_time = spec.real_time?;
    let interval = history.interval(txn);
    let known = |time: i64| (time != i64::MIN && time != i64::MAX).then_some(i128::from(time));
    if spec.model == Model::Ser || is_commit && real_time.times == Times::Bounds {
        return known(interval.begin);
    }
    if is_commit {
        return known(interval.commit).or(known(interval.begin));
    }
    known(interval.begin).filter(|_| real_time.snapshots == Snapshots::Current)
}

fn last_time(history: &History, spec: Spec, (txn, is_commit): Event) -> Option<i128> {
    let real_time = spec.real_time?;
    let interval = history.interval(txn);
    let known = |time: i64| (time != i64::MIN && time != i64::MAX).then_some(i128::from(time));
    if spec.model == Model::Si && !is_commit && real_time.times == Times::Exact {
        return known(interval.begin).or(known(interval.commit));
    }
    known(interval.commit)
}

/// Whether the listed values are installed in their order, but for those that their writer overwrote.
fn versions_match(history: &History, listed: &[ValueId], commits: &[TxnId]) -> bool {
    let mut installed: Vec<ValueId> = Vec::new();
    let mut written: Vec<ValueId> = Vec::new();
    for &txn in commits {
        let mut last: Vec<(KeyId, ValueId)> = Vec::new();
        for op in history.ops(txn) {
            if let Op::Write { key, value } | Op::Append { key, value } = *op {
                if matches!(op, Op::Write { .. }) {
                    last.retain(|write| write.0 != key);
                }
                last.push((key, value));
                written.push(value);
            }
        }
        installed.extend(last.iter().map(|write| write.1));
    }
    let mut rest = installed.iter();
    listed
        .iter()
        .skip_while(|&&value| history.is_initial(value))
        .filter(|value| installed.contains(value) || !written.contains(value))
        .all(|value| rest.any(|other| other == value))
}

fn writes(history: &History, txn: TxnId, key: KeyId) -> bool {
    history
        .ops(txn)
        .iter()
        .any(|op| op.is_write() && op.key() == Some(key))
}

/// Each read goes back over everything that happened before it.
fn reads_match(history: &History, txn: TxnId, seen: &[TxnId]) -> bool {
    let mut past: Vec<Op> = seen
        .iter()
        .flat_map(|&txn| history.ops(txn))
        .copied()
        .collect();
    for &op in history.ops(txn) {
        let mut same_key = past
            .iter()
            .filter(|other| other.is_write() && other.key() == op.key());
        let matches = match op {
            Op::Read { value, .. } => match same_key.next_back() {
                Some(&Op::Write { value: last, .. }) => {
                    last == value
                        || history.value_token(value) == Token::Nil && history.is_absence(last)
                }
                Some(_) => false,
                None => history.is_initial(value),
            },
            Op::ReadList { list, .. } => {
                let items: Vec<Option<ValueId>> = same_key
                    .map(|op| {
                        if let Op::Append { value, .. } = op {
                            Some(*value)
                        } else {
                            None
                        }
                    })
                    .collect();
                items
                    == history
                        .list(list)
                        .iter()
                        .copied()
                        .map(Some)
                        .collect::<Vec<_>>()
            }
            Op::Range { range } => range_matches(history, range, &past),
            Op::Write { .. } | Op::Append { .. } => true,
        };
        if !matches {
            return false;
        }
        past.push(op);
    }
    true
}

/// A range query goes back over everything for each key by itself.
fn range_matches(history: &History, range: RangeId, past: &[Op]) -> bool {
    let query = history.range(range);
    let keys = (0..history.n_keys() as u32).map(KeyId);
    keys.into_iter().all(|key| {
        let last = past.iter().rev().find_map(|op| match *op {
            Op::Write { key: it, value } if it == key => Some(value),
            _ => None,
        });
        let mut returned = query
            .rows
            .iter()
            .filter(|&&row| history.value_key(row) == key);
        let is_inside = history.touches(Op::Range { range }, key);
        let is_shown = is_inside
            && match last {
                None => history.is_there_initially(key),
                Some(held) => {
                    !history.is_absence(held) || query.shows_deleted && history.is_tombstone(held)
                }
            };
        if !is_shown {
            return returned.next().is_none();
        }
        let is_right = |row: ValueId| last.map_or(history.is_initial(row), |held| held == row);
        returned.clone().next().is_some() && returned.all(|&row| is_right(row))
    })
}
