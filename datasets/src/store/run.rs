//! Runs clients against the store: interleaved by a seeded scheduler, or on threads.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use kingsnake_history::rng::Rng;
use thiserror::Error;

use super::bug::{BugRate, Bugs};
use super::client::Client;
use super::engine::{Clock, Store};
use super::fault::{Fault, inject};
use super::isolation::{Isolation, IsolationMix};
use super::record::Recorded;
use crate::workloads::Workload;

/// The parameters of a run.
#[derive(Clone, Debug)]
pub struct StoreRun {
    /// Number of commits; a fault adds its own.
    pub n_txns: usize,
    /// Number of clients, each one session.
    pub n_clients: usize,
    /// What the store promises.
    pub isolation: Isolation,
    /// What it promises each transaction, in place of one promise to all; then the history records it.
    pub isolation_mix: Option<IsolationMix>,
    /// What goes wrong once, at a random place.
    pub fault: Option<Fault>,
    /// The bugs of the store.
    pub bugs: Vec<BugRate>,
    /// After how many writes a key is replaced by a fresh one; never unless given.
    pub max_writes_per_key: Option<u64>,
    /// The percentage of attempts that roll back by themselves.
    pub rollbacks: usize,
    /// Whether aborted transactions are recorded. Those that a fault needs always are.
    pub keep_aborted: bool,
    /// Whether conditions are validated, so that no phantom comes through.
    pub predicate_locks: bool,
    /// Whether every client is a thread; then the machine decides how they interleave, and a seed does not repeat it.
    pub threads: bool,
    /// The seed.
    pub seed: u64,
}

impl Default for StoreRun {
    fn default() -> Self {
        StoreRun {
            n_txns: 10_000,
            n_clients: 20,
            isolation: Isolation::Serializable,
            isolation_mix: None,
            fault: None,
            bugs: Vec::new(),
            max_writes_per_key: None,
            rollbacks: 0,
            keep_aborted: false,
            predicate_locks: true,
            threads: false,
            seed: 0,
        }
    }
}

/// Why a run is not possible.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RunError {
    /// There must be one.
    #[error("a run needs at least one client")]
    NoClients,
    /// If every attempt rolls back, nothing commits.
    #[error("at most 99 % of the attempts may roll back")]
    AlwaysRollsBack,
    /// The fault is one of rows.
    #[error("the fault {0} needs a workload of rows, such as v-range-b")]
    NoRows(Fault),
    /// A mix names a kind that the workload does not have.
    #[error("the workload has no transactions of the kind {kind:?}; {}", known_kinds(.kinds))]
    NoKind {
        /// What was named.
        kind: String,
        /// What there is.
        kinds: &'static [&'static str],
    },
    /// The fault is one between clients.
    #[error("the fault {fault} needs {needs} clients, and there are {clients}")]
    FewClients {
        /// The fault.
        fault: Fault,
        /// How many it needs.
        needs: usize,
        /// How many there are.
        clients: usize,
    },
}

fn known_kinds(kinds: &[&str]) -> String {
    match kinds {
        [] => "it has one kind only, so give shares, such as serializable=30,\"read committed\"=70"
            .to_owned(),
        kinds => format!("it has {}", kinds.join(", ")),
    }
}

impl StoreRun {
    /// Runs the workload to its end.
    pub fn run(&self, workload: &dyn Workload) -> Result<Recorded, RunError> {
        if self.n_clients == 0 {
            return Err(RunError::NoClients);
        }
        if self.rollbacks >= 100 {
            return Err(RunError::AlwaysRollsBack);
        }
        let mut rng = Rng::new(self.seed);
        let clock = if self.threads {
            Clock::Machine(Instant::now())
        } else {
            Clock::Steps
        };
        let bugs = Bugs::new(&self.bugs, self.seed);
        let mut store = Store::new(self.isolation, clock, self.keep_aborted, bugs);
        store.max_writes = self.max_writes_per_key;
        store.predicate_locks = self.predicate_locks;
        for (key, cells) in workload.initial() {
            store.load(key, cells);
        }
        let mix = self.isolation_mix.as_ref();
        let kinds = workload.transaction_kinds();
        if let Some(kind) = mix.and_then(|mix| mix.unknown_kind(kinds)) {
            let kind = kind.to_owned();
            return Err(RunError::NoKind { kind, kinds });
        }
        let new_client = |id| Client::new(id, workload, mix, self.rollbacks, self.seed);
        let mut clients: Vec<Client<'_>> = (0..self.n_clients).map(new_client).collect();
        let mut done = 0;
        if let Some(fault) = self.fault {
            // All clients pause there, so that the fault's transactions have their sessions to themselves.
            done = rng.below(self.n_txns + 1);
            store = self.spend(done, &mut clients, store, &mut rng);
            inject(fault, self.n_clients, workload.kind(), &mut store, &mut rng)?;
        }
        let mut store = self.spend(self.n_txns - done, &mut clients, store, &mut rng);
        store.settle();
        Ok(Recorded {
            n_clients: self.n_clients,
            kind: workload.kind(),
            schema: workload.schema(),
            initial: store.initial_rows(),
            rows: std::mem::take(&mut store.rows),
            is_mixed: self.isolation_mix.is_some(),
            version_orders: store.version_orders(),
            n_aborted: store.n_aborted,
            records: store.records,
        })
    }

    /// Lets the clients commit this many transactions.
    fn spend(
        &self,
        n_txns: usize,
        clients: &mut [Client<'_>],
        mut store: Store,
        rng: &mut Rng,
    ) -> Store {
        store.left = n_txns;
        if self.threads {
            on_threads(clients, store)
        } else {
            interleave(clients, &mut store, rng);
            store
        }
    }
}

/// One step of a random client, until none has anything left to do.
fn interleave(clients: &mut [Client<'_>], store: &mut Store, rng: &mut Rng) {
    let mut busy: Vec<usize> = (0..clients.len()).collect();
    while !busy.is_empty() {
        let at = rng.below(busy.len());
        if !clients[busy[at]].step(store) {
            busy.swap_remove(at);
        }
    }
}

fn on_threads(clients: &mut [Client<'_>], store: Store) -> Store {
    let store = Mutex::new(store);
    std::thread::scope(|scope| {
        for client in clients {
            let store = &store;
            scope.spawn(move || {
                while client.step(&mut store.lock().unwrap_or_else(PoisonError::into_inner)) {
                    // A transaction is far shorter than a scheduler's slice; without this, clients would hardly overlap.
                    if client.has_just_begun() {
                        std::thread::yield_now();
                    }
                }
            });
        }
    });
    store.into_inner().unwrap_or_else(PoisonError::into_inner)
}
