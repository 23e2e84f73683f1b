//! Judges batches, by a graph watcher or a timestamp watcher.

use anyhow::{Context, Result, bail};
use kingsnake_encodings::{BACKENDS, BackendOptions, backend};
use kingsnake_history::model::Status;
use kingsnake_solver::budget::Budget;
use kingsnake_solver::decide::Backend;
use kingsnake_watch::{
    Arrival, Horizon, KeyNumber, StampViolation, Stamped, StampedWatcher, ValueName, WatchLevel,
    WatchOptions, WatchState, WatchedPoint, Watcher,
};

use super::reduce::LoggedTxn;
use crate::args::WatchLevelArg;

enum Judge {
    Graph {
        watcher: Box<Watcher>,
        backend: Box<dyn Backend>,
    },
    Stamps {
        watcher: Box<StampedWatcher>,
        violation: Option<StampViolation>,
    },
}

/// Judges batches.
pub struct Engine {
    judge: Judge,
    /// A transaction that contradicts itself.
    broken: Option<u64>,
    fence: Option<KeyNumber>,
    pub n_kept: usize,
    pub n_open: usize,
    pub n_txns: u64,
}

/// What is wrong.
#[derive(Clone, Copy, Debug)]
pub enum WatchViolation {
    /// The check gives the reason.
    Check,
    Stamps(StampViolation),
}

/// The level of a watcher, unless it is the timestamp watcher.
pub fn watch_level(level: WatchLevelArg) -> Option<WatchLevel> {
    match level {
        WatchLevelArg::StrictSer => Some(WatchLevel::StrictSer),
        WatchLevelArg::StrongSi => Some(WatchLevel::StrongSi),
        WatchLevelArg::Ser => Some(WatchLevel::Ser),
        WatchLevelArg::Si => Some(WatchLevel::Si),
        WatchLevelArg::Timestamps => None,
    }
}

fn default_backend() -> Result<Box<dyn Backend>> {
    backend(BACKENDS[0], &BackendOptions::default()).context("no back end")
}

impl Engine {
    pub fn new(
        level: WatchLevelArg,
        drift: i64,
        keeps_order: bool,
        initial: Vec<ValueName>,
        fence: Option<KeyNumber>,
    ) -> Result<Self> {
        let judge = match watch_level(level) {
            Some(level) => Judge::Graph {
                watcher: Box::new(Watcher::new(WatchOptions {
                    level,
                    drift,
                    initial,
                    keeps_order,
                })),
                backend: default_backend()?,
            },
            None => Judge::Stamps {
                watcher: Box::new(StampedWatcher::new(initial)),
                violation: None,
            },
        };
        Ok(Engine {
            judge,
            broken: None,
            fence,
            n_kept: 0,
            n_open: 0,
            n_txns: 0,
        })
    }

    /// Values of single keys that mean the initial state.
    pub fn initial(&mut self, values: &mut Vec<(KeyNumber, ValueName)>) {
        for (key, value) in values.drain(..) {
            match &mut self.judge {
                Judge::Graph { watcher, .. } => watcher.initial(key, value),
                Judge::Stamps { watcher, .. } => watcher.initial(key, value),
            }
        }
    }

    /// Takes what arrived; returns what is wrong, if anything.
    pub fn batch(
        &mut self,
        txns: Vec<LoggedTxn>,
        horizon: &Horizon,
        budget: &Budget,
    ) -> Result<Option<WatchViolation>> {
        self.n_txns += txns.len() as u64;
        let broken = txns.iter().find(|it| it.is_broken).map(|it| it.id);
        if self.broken.is_none() && broken.is_some() {
            self.broken = broken;
        }
        match &mut self.judge {
            Judge::Graph { watcher, backend } => {
                let arrivals = txns.into_iter().map(arrival);
                let report = watcher.batch(arrivals, horizon, &mut **backend, budget)?;
                (self.n_kept, self.n_open) = (report.n_kept, report.n_open);
                let is_violated = report.state == WatchState::Violated || self.broken.is_some();
                Ok(is_violated.then_some(WatchViolation::Check))
            }
            Judge::Stamps { watcher, violation } => {
                for txn in txns {
                    if !txn.lists.is_empty() || !txn.appends.is_empty() {
                        bail!(
                            "transaction {}: lists are not watched along timestamps",
                            txn.id
                        );
                    }
                    match (txn.status, txn.start_ts, txn.commit_ts) {
                        (Status::Committed, Some(start), Some(commit)) if start <= commit => {
                            let stamped = Stamped {
                                start,
                                commit,
                                id: txn.id,
                                reads: txn.reads,
                                writes: txn.writes,
                            };
                            keep_first(violation, watcher.arrive(stamped));
                        }
                        (Status::Committed, Some(start), Some(commit)) => {
                            bail!(
                                "transaction {} commits at {commit}, before it starts at {start}",
                                txn.id
                            )
                        }
                        (Status::Committed, ..) => {
                            bail!("transaction {} has no start_ts and commit_ts", txn.id)
                        }
                        _ => bail!(
                            "transaction {}: unknown ends are not watched along timestamps",
                            txn.id
                        ),
                    }
                }
                let judged = if horizon.is_closed() {
                    watcher.close()
                } else {
                    watcher.advance(horizon.watermark)
                };
                keep_first(violation, judged);
                self.n_kept = watcher.n_waiting();
                if self.broken.is_some() {
                    return Ok(Some(WatchViolation::Check));
                }
                Ok(violation.map(WatchViolation::Stamps))
            }
        }
    }

    /// Reads that wait for their writers, as names and keys, except those that show a violation.
    pub fn pending(&self) -> Vec<(u64, KeyNumber)> {
        let Judge::Graph { watcher, .. } = &self.judge else {
            return Vec::new();
        };
        let refused = watcher.refused();
        let pending = watcher.pending().unwrap_or_default();
        pending
            .into_iter()
            .filter(|it| !refused.contains(it))
            .collect()
    }

    /// Whether the violation is a read of what nothing wrote.
    pub fn is_unexplained(&self) -> bool {
        matches!(&self.judge, Judge::Graph { watcher, .. } if !watcher.refused().is_empty())
    }

    /// The order of what was dropped.
    pub fn take_order(&mut self) -> Vec<WatchedPoint> {
        match &mut self.judge {
            Judge::Graph { watcher, .. } => watcher.take_order(),
            Judge::Stamps { .. } => Vec::new(),
        }
    }

    /// The names of retained transactions.
    pub fn kept_ids(&self) -> Vec<u64> {
        match &self.judge {
            Judge::Graph { watcher, .. } => watcher.kept_ids().collect(),
            Judge::Stamps { watcher, .. } => watcher.waiting_ids().collect(),
        }
    }

    /// Approximate number of retained bytes.
    pub fn n_bytes(&self) -> usize {
        match &self.judge {
            Judge::Graph { watcher, .. } => watcher.n_bytes(),
            Judge::Stamps { watcher, .. } => watcher.n_bytes(),
        }
    }

    /// The watcher that has stubs, where there is one.
    pub fn watcher(&mut self) -> Option<&mut Watcher> {
        match &mut self.judge {
            Judge::Graph { watcher, .. } => Some(watcher),
            Judge::Stamps { .. } => None,
        }
    }

    /// Forgets everything; from here on only violations count.
    pub fn forget(&mut self) {
        self.broken = None;
        match &mut self.judge {
            Judge::Graph { watcher, .. } => watcher.forget(self.fence),
            Judge::Stamps { watcher, violation } => {
                watcher.forget();
                *violation = None;
            }
        }
    }

    /// Whether anything was discarded.
    pub fn is_partial(&self) -> bool {
        match &self.judge {
            Judge::Graph { watcher, .. } => watcher.is_partial(),
            Judge::Stamps { watcher, .. } => watcher.is_partial(),
        }
    }

    /// The watcher as JSON, if there is one.
    pub fn snapshot(&self) -> Result<String> {
        Ok(match &self.judge {
            Judge::Graph { watcher, .. } => serde_json::to_string(&watcher.snapshot())?,
            Judge::Stamps { .. } => bail!("--state does not work with timestamps"),
        })
    }

    /// The watcher from its snapshot.
    pub fn restore(snapshot: &str, fence: Option<KeyNumber>, n_txns: u64) -> Result<Self> {
        let mut snapshot = serde_json::Deserializer::from_str(snapshot);
        let watcher = Watcher::restore(&mut snapshot).context("the snapshot is damaged")?;
        Ok(Engine {
            judge: Judge::Graph {
                watcher: Box::new(watcher),
                backend: default_backend()?,
            },
            broken: None,
            fence,
            n_kept: 0,
            n_open: 0,
            n_txns,
        })
    }
}

fn keep_first(violation: &mut Option<StampViolation>, judged: Result<(), StampViolation>) {
    if violation.is_none() {
        *violation = judged.err();
    }
}

fn arrival(txn: LoggedTxn) -> Arrival {
    Arrival {
        id: txn.id,
        session: txn.session,
        begin: txn.begin,
        commit: txn.commit,
        is_unknown: txn.status == Status::Unknown,
        reads: txn.reads,
        writes: txn.writes,
        lists: txn.lists,
        appends: txn.appends,
    }
}
