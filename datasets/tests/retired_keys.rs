//! Keys that were written often are replaced by fresh ones, in every workload, and the store keeps its promises.

mod decided;

use std::collections::BTreeMap;

use decided::{crowded, holds, small, spec};
use kingsnake_datasets::store::{Isolation, StoreRun};
use kingsnake_datasets::workloads::WORKLOADS;
use kingsnake_solver::level::{Level, RealTime, Spec};
use kingsnake_solver::model::{History, KeyId, Op, Status};

const MOST: u64 = 3;

fn run(isolation: Isolation, seed: u64, max_writes_per_key: Option<u64>) -> StoreRun {
    StoreRun {
        isolation,
        max_writes_per_key,
        ..small(seed)
    }
}

/// The most writes of a key by transactions that committed, a delete being none, and the most by one of them.
fn most_writes(history: &History) -> (u64, u64) {
    let mut writes: BTreeMap<KeyId, u64> = BTreeMap::new();
    let mut most_own = 0;
    let committed = |txn: &_| history.status(*txn) == Status::Committed;
    for txn in history.txns().filter(committed) {
        let mut own: BTreeMap<KeyId, u64> = BTreeMap::new();
        for op in history.ops(txn) {
            if let Op::Write { key, value } | Op::Append { key, value } = *op
                && !history.is_tombstone(value)
            {
                *writes.entry(key).or_default() += 1;
                *own.entry(key).or_default() += 1;
            }
        }
        most_own = most_own.max(own.into_values().max().unwrap_or(0));
    }
    (writes.into_values().max().unwrap_or(0), most_own)
}

#[test]
fn every_workload_replaces_keys_that_were_written_often() {
    for entry in WORKLOADS {
        let history = |most| {
            let run = run(Isolation::Serializable, 1, most);
            crowded(entry.name, &run).history(true, true).unwrap()
        };
        let (kept, replaced) = (history(None), history(Some(MOST)));
        let most = |history: &History| most_writes(history).0;
        println!(
            "{}: at most {} writes of a key, {} without; {} keys, {} without",
            entry.name,
            most(&replaced),
            most(&kept),
            replaced.n_keys(),
            kept.n_keys()
        );
        assert!(most(&replaced) <= MOST + 4, "{}", entry.name);
        assert!(most(&kept) > MOST + 4, "{} does not show it", entry.name);
    }
}

#[test]
fn no_key_is_written_more_often_than_allowed() {
    // Rows that conditions choose may be written a few times more by transactions that run at the same time.
    let is_table = |name: &str| name.starts_with("emme") || name.ends_with("-predicates");
    for entry in WORKLOADS.iter().filter(|it| !is_table(it.name)) {
        for (seed, most) in [(1, 1), (2, 2), (3, MOST), (4, 8)] {
            for isolation in [
                Isolation::Serializable,
                Isolation::Snapshot,
                Isolation::ReadCommitted,
            ] {
                let run = run(isolation, seed, Some(most));
                let history = crowded(entry.name, &run).history(true, true).unwrap();
                let (n_writes, n_own) = most_writes(&history);
                let name = entry.name;
                assert!(
                    n_writes <= most.max(n_own),
                    "{name} {isolation:?}: {n_writes} writes, at most {most} wanted"
                );
            }
        }
    }
}

#[test]
fn the_store_keeps_its_promises_while_it_replaces_keys() {
    for entry in WORKLOADS {
        for seed in 0..4 {
            for isolation in [Isolation::Serializable, Isolation::Snapshot] {
                let run = run(isolation, seed, Some(MOST));
                let mut history = crowded(entry.name, &run).history(true, true).unwrap();
                history.forget_predicates();
                let spec = match isolation {
                    Isolation::Serializable => spec(Level::StrictSer),
                    _ => Spec {
                        real_time: Some(RealTime::STRICT),
                        ..spec(Level::StrongSessionSi)
                    },
                };
                assert!(holds(&history, spec), "{} {seed} {isolation:?}", entry.name);
            }
        }
    }
}
