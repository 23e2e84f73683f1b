//! Small histories whose transactions have levels of their own: arbitrary reads, so that every level is kept and broken.

use kingsnake_history::level::Model;
use kingsnake_history::model::{History, Status};
use kingsnake_history::rng::Rng;

use super::draft::{Draft, DraftOp, DraftTxn, INITIAL};
use super::small::{Execution, KeyKind, RowBehaviour, Small};

/// A history of 2 to 5 transactions over 1 to 3 keys. Each reads from anybody, then writes; only read committed reads a key twice
/// and differently, but for a few. The levels are drawn from up to four.
pub fn small_mixed(seed: u64) -> History {
    let mut rng = Rng::new(seed);
    let (n_txns, n_keys) = (rng.between(2, 5), rng.between(1, 3));
    let n_sessions = rng.between(1, 4);
    let n_levels = rng.between(1, 4);
    let pool: Vec<Model> = (0..n_levels)
        .map(|_| Model::MIXED[rng.below(Model::MIXED.len())])
        .collect();
    let models: Vec<Model> = (0..n_txns).map(|_| pool[rng.below(n_levels)]).collect();
    let writes: Vec<Vec<bool>> = (0..n_txns)
        .map(|_| (0..n_keys).map(|_| rng.chance(45)).collect())
        .collect();
    let mut sessions: Vec<usize> = (0..n_txns).map(|_| rng.below(n_sessions)).collect();
    // The history numbers transactions session by session; so do the models.
    sessions.sort_unstable();
    let mut txns = Vec::new();
    for txn in 0..n_txns {
        let mut ops = reads(&mut rng, &writes, models[txn], txn);
        for key in (0..n_keys).filter(|&key| writes[txn][key]) {
            ops.push(DraftOp::Write(key, txn as i64 + 1));
        }
        txns.push(DraftTxn {
            session: sessions[txn],
            status: Status::Committed,
            begin: None,
            commit: None,
            ops,
        });
    }
    let draft = Draft {
        txns,
        ..Draft::default()
    };
    with_models(draft.build(), &models)
}

fn with_models(mut history: History, models: &[Model]) -> History {
    let set: Result<(), ()> = history.set_models(|_, txn| Ok(models[txn.index()]));
    set.expect("every transaction has a level");
    history
}

/// Rows that range queries read, and inserts and deletes; some clients see deletes by name.
pub fn small_weak_rows(seed: u64) -> History {
    let mut rng = Rng::new(seed);
    weak_rows(&mut rng)
}

/// Such rows, read by transactions that have levels of their own, drawn from up to four.
pub fn small_mixed_rows(seed: u64) -> History {
    let mut rng = Rng::new(seed);
    let history = weak_rows(&mut rng);
    let n_levels = rng.between(1, 4);
    let pool: Vec<Model> = (0..n_levels)
        .map(|_| Model::MIXED[rng.below(Model::MIXED.len())])
        .collect();
    let models: Vec<Model> = history.txns().map(|_| pool[rng.below(n_levels)]).collect();
    with_models(history, &models)
}

fn weak_rows(rng: &mut Rng) -> History {
    let mut small = Small::draw(rng);
    small.kind = KeyKind::Rows(RowBehaviour {
        start_empty: rng.chance(75),
        hidden: [0, 0, 20, 100][rng.below(4)],
        nameless: rng.chance(15),
    });
    small.n_txns = small.n_txns.min(5);
    small.version_orders = false;
    if rng.chance(70) {
        small.execution = [Execution::ReadCommitted, Execution::PerKey][rng.below(2)];
        small.n_mutations = [0, 1][rng.below(2)];
    }
    small.history(rng)
}

fn reads(rng: &mut Rng, writes: &[Vec<bool>], model: Model, reader: usize) -> Vec<DraftOp> {
    let n_keys = writes[reader].len();
    let mut keys: Vec<usize> = Vec::new();
    for key in (0..n_keys).chain(0..n_keys) {
        if rng.chance(35) {
            keys.insert(rng.below(keys.len() + 1), key);
        }
    }
    let mut reads: Vec<(usize, i64)> = Vec::new();
    for key in keys {
        let others = (0..writes.len()).filter(|&it| it != reader && writes[it][key]);
        let mut values: Vec<i64> = others.map(|it| it as i64 + 1).collect();
        values.push(INITIAL);
        let first = reads.iter().find(|read| read.0 == key).map(|read| read.1);
        let keeps = !matches!(model, Model::Rc | Model::RcSo) && !rng.chance(2);
        let value = first
            .filter(|_| keeps)
            .unwrap_or(values[rng.below(values.len())]);
        reads.push((key, value));
    }
    let op = |(key, value)| DraftOp::Read(key, value);
    reads.into_iter().map(op).collect()
}
