//! Scripts: without isolation each shows its anomaly, a serializable database shows none, and blocked steps complete later.
#![allow(clippy::unwrap_used)] // A test may panic.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use common::holds;
use kingsnake_collect::{
    CollectRequest, CollectRun, Collected, Database, DatabaseSession, Failure, Initially, Key,
    Load, OrderBy, SCRIPTS, Script, StoredCell, Target, Wrote, adapter, merge,
};
use kingsnake_datasets::{ReadOptions, open};
use kingsnake_solver::level::Level;

/// Rows of a value and a rank.
type Rows = Arc<Mutex<BTreeMap<Key, (i64, i64)>>>;

/// A database without transactions: everybody reads and writes the same rows at once, and nothing but an abort's own writes is
/// undone.
struct Lawless(Rows);

struct LawlessSession {
    rows: Rows,
    before: Vec<(Key, Option<(i64, i64)>)>,
}

impl Database for Lawless {
    fn version(&self) -> Result<String, Failure> {
        Ok("no isolation".to_owned())
    }
    fn prepare(&self, initially: Initially) -> Result<(), Failure> {
        let rows = initially.rows().into_iter().map(|(key, _)| (key, (0, 0)));
        *self.0.lock().unwrap() = rows.collect();
        Ok(())
    }
    fn open(&self, _: usize) -> Result<Box<dyn DatabaseSession>, Failure> {
        Ok(Box::new(LawlessSession {
            rows: self.0.clone(),
            before: Vec::new(),
        }))
    }
    fn clean(&self) -> Result<(), Failure> {
        Ok(())
    }
}

impl DatabaseSession for LawlessSession {
    fn begin(&mut self) -> Result<(), Failure> {
        self.before.clear();
        Ok(())
    }
    fn read(&mut self, key: Key) -> Result<Option<StoredCell>, Failure> {
        let found = self.rows.lock().unwrap().get(&key).copied();
        Ok(found.map(|(value, beside)| StoredCell { value, beside }))
    }
    fn write(&mut self, key: Key, cell: StoredCell) -> Result<Wrote, Failure> {
        let mut rows = self.rows.lock().unwrap();
        let old = rows.get(&key).copied();
        let rank = old.map_or(1, |(_, rank)| rank + 1);
        rows.insert(key, (cell.value, rank));
        self.before.push((key, old));
        Ok(Wrote {
            rank: Some(rank),
            txn: None,
        })
    }
    fn read_list(&mut self, _: Key) -> Result<Vec<i64>, Failure> {
        unreachable!("no script has lists")
    }
    fn append(&mut self, _: Key, _: i64) -> Result<Wrote, Failure> {
        unreachable!("no script has lists")
    }
    fn range(&mut self, low: Key, high: Key) -> Result<Vec<(Key, i64)>, Failure> {
        let rows = self.rows.lock().unwrap();
        Ok(rows
            .range(low..=high)
            .map(|(key, it)| (*key, it.0))
            .collect())
    }
    fn delete(&mut self, key: Key) -> Result<Option<Wrote>, Failure> {
        let old = self.rows.lock().unwrap().remove(&key);
        self.before.push((key, old));
        Ok(old.map(|_| Wrote::default()))
    }
    fn commit(&mut self) -> Result<Option<String>, Failure> {
        Ok(None)
    }
    fn abort(&mut self) -> Result<(), Failure> {
        let mut rows = self.rows.lock().unwrap();
        for (key, old) in self.before.drain(..).rev() {
            match old {
                Some(old) => rows.insert(key, old),
                None => rows.remove(&key),
            };
        }
        Ok(())
    }
}

fn play(database: &dyn Database, script: Script, directory: &Path) -> Collected {
    let request = CollectRequest {
        name: "test",
        isolation: "test",
        workload: "script",
        version_order: OrderBy::Rank,
        run: CollectRun {
            sessions: script.sessions.len(),
            ..CollectRun::default()
        },
        directory,
        leaves_tables: None,
    };
    let load = Load::of_script(script);
    let stop = AtomicBool::new(false);
    let collected = request.collect(database, &load, &stop, None, &mut |_| {});
    let collected = collected.unwrap();
    assert_eq!(collected.ended_early, None);
    collected
}

fn sqlite(script: &Script, isolation: &str, directory: &Path) -> Box<dyn Database> {
    let target = Target {
        urls: Vec::new(),
        isolation: isolation.to_owned(),
        version_order: OrderBy::Rank,
        kind: script.kind(),
        directory: directory.to_owned(),
        settings: Vec::new(),
        reads: None,
    };
    adapter("sqlite").unwrap().connect(&target).unwrap()
}

fn level(name: &str) -> Level {
    name.parse().unwrap()
}

#[test]
fn without_isolation_every_classic_script_breaks_its_level_and_no_weaker_one() {
    // Each level with those just below it.
    let weaker = |level: &str| match level {
        "ra" => &["rc"][..],
        "psi" => &["rc", "ra", "cc", "pc"],
        "ser" => &["rc", "ra", "cc", "pc", "psi", "si"],
        _ => &[],
    };
    for classic in SCRIPTS {
        let directory = tempfile::tempdir().unwrap();
        let lawless = Lawless(Rows::default());
        let script = Script::open(classic.name).unwrap();
        assert_eq!(script.breaks.as_deref(), Some(classic.breaks()));
        let collected = play(&lawless, script, directory.path());
        let history = &collected.history;
        assert!(!holds(history, level(classic.breaks())), "{}", classic.name);
        for weak in weaker(classic.breaks()) {
            assert!(holds(history, level(weak)), "{} {weak}", classic.name);
        }
    }
}

#[test]
fn sqlite_shows_no_anomaly_of_a_script_and_blocked_steps_complete_later() {
    for classic in SCRIPTS {
        let directory = tempfile::tempdir().unwrap();
        let script = Script::open(classic.name).unwrap();
        let database = sqlite(&script, "serializable", directory.path());
        let collected = play(&*database, script, &directory.path().join("out"));
        assert!(holds(&collected.history, Level::Ser), "{}", classic.name);
        if classic.name == "g0" {
            let second = &collected.steps[1];
            assert!(
                second.blocked && second.said.starts_with("wrote"),
                "{second:?}"
            );
            assert_eq!(collected.tally.committed, 2);
        }
    }
}

#[test]
fn every_order_of_a_script_has_keys_of_its_own_and_merging_again_names_them_too() {
    let text = "rows p s\nkeys q\norder all\norder b a a b a\n\
                a: range p s\na: insert q\na: commit\nb: range p s\nb: commit\n";
    let directory = tempfile::tempdir().unwrap();
    let script = Script::parse(text, "own.script").unwrap();
    let collected = play(&Lawless(Rows::default()), script, directory.path());
    assert_eq!(collected.merged.n_txns, 2 * (10 + 1));
    assert_eq!(collected.steps.len(), 5 * (10 + 1));
    let history = std::fs::read_to_string(&collected.history).unwrap();
    assert!(history.contains("[\"range\",\"11p\",\"11s\","), "{history}");
    assert!(history.contains("{\"initial\":{\"key\":\"p\",\"value\":0}}"));
    open(&collected.history, &ReadOptions::default()).unwrap();
    merge(directory.path()).unwrap();
    assert_eq!(
        std::fs::read_to_string(&collected.history).unwrap(),
        history
    );
}

#[test]
fn a_step_of_an_aborted_transaction_is_left_out_and_the_next_transaction_runs() {
    let text = "rows x\na: read x\nb: read x\na: write x\nb: write x\na: commit\nb: commit\n\
                b: read x\nb: write x\nb: commit\n";
    let directory = tempfile::tempdir().unwrap();
    let script = Script::parse(text, "own.script").unwrap();
    let database = sqlite(&script, "serializable", directory.path());
    let collected = play(&*database, script, &directory.path().join("out"));
    let said: Vec<&str> = collected.steps.iter().map(|it| it.said.as_str()).collect();
    assert_eq!(said[3], "aborted: busy");
    assert_eq!(said[5..], ["left out", "1", "wrote 3", "committed"]);
    assert!(holds(&collected.history, Level::Ser));
}
