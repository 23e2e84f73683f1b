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

/// How often each key was written by transactions that committed; a delete is no write.
fn writes(history: &History) -> BTreeMap<KeyId, u64> {
    let mut writes = BTreeMap::new();
    let committed = |txn: &_| history.status(*txn) == Status::Committed;
    for op in history
        .txns()
        .filter(committed)
        .flat_map(|it| history.ops(it))
    {
        if let Op::Write { key, value } | Op::Append { key, value } = *op
            && !history.is_tombstone(value)
        {
            *writes.entry(key).or_default() += 1;
        }
    }
    writes
}

#[test]
fn every_workload_replaces_keys_that_were_written_often() {
    for entry in WORKLOADS {
        let history = |most| {
            let run = run(Isolation::Serializable, 1, most);
            crowded(entry.name, &run).history(true, true).unwrap()
        };
        let (kept, replaced) = (history(None), history(Some(MOST)));
        let most = |history: &History| writes(history).into_values().max().unwrap_or(0);
        println!(
            "{}: at most {} writes of a key, {} without; {} keys, {} without",
            entry.name,
            most(&replaced),
            most(&kept),
            replaced.n_keys(),
            kept.n_keys()
        );
        // Transactions that run at the same time may each write a key once more or twice before it is replaced.
        assert!(most(&replaced) <= MOST + 4, "{}", entry.name);
        assert!(most(&kept) > MOST + 4, "{} does not show it", entry.name);
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
