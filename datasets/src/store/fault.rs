//! Faults: each is a short script of transactions in which the store breaks its promise once, in isolation from others.
//!
//! The first fourteen are the anomalies of MTC's mini-transactions. Every write that matters for a cycle is a read-modify-write, or
//! either order of the writes makes a cycle, so that the anomaly is one whatever the other transactions do. The table grows by
//! one line each. Faults of range queries have two keys to themselves, between which there is no other.

use std::fmt;
use std::str::FromStr;

use kingsnake_history::model::Status;
use kingsnake_history::rng::Rng;
use thiserror::Error;

use super::Key;
use super::engine::{INITIAL, Open, PendingCommit, Sort, Store};
use super::record::{Chosen, StoreEvent, StoredRow};
use super::run::RunError;
use crate::workloads::WorkloadKind;

/// Which levels a fault breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breaks {
    /// Every level.
    Everything,
    /// Every level as long as a session's transactions keep their order.
    Sessions,
    /// Serializability; snapshot isolation holds.
    Serializability,
}

/// The fault's two keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    X,
    Y,
}

/// What a read returns.
#[derive(Clone, Copy, Debug)]
enum ReadsFrom {
    /// The newest version from before the fault.
    Before,
    /// What the script's transaction of this number writes to the key, its first write or its second.
    Write(usize, usize),
    /// What was never written.
    ThinAir,
    /// The initial state.
    Initial,
}

#[derive(Clone, Copy, Debug)]
enum Act {
    R(Of, ReadsFrom),
    W(Of),
    /// Inserts a row.
    I(Of),
    /// Asks for the range from x to y, and finds this of each.
    Q(ReadsFrom, ReadsFrom),
}

/// A transaction of a script: its client, whether it aborts, and what it does.
#[derive(Clone, Copy, Debug)]
struct FaultPart {
    client: usize,
    aborts: bool,
    acts: &'static [Act],
}

const fn by(client: usize, acts: &'static [Act]) -> FaultPart {
    FaultPart {
        client,
        aborts: false,
        acts,
    }
}

const fn aborted(client: usize, acts: &'static [Act]) -> FaultPart {
    FaultPart {
        client,
        aborts: true,
        acts,
    }
}

struct FaultRow {
    fault: Fault,
    name: &'static str,
    breaks: Breaks,
    script: &'static [FaultPart],
}

macro_rules! faults {
    ($($fault:ident $name:literal $about:literal $breaks:ident [$($part:expr),* $(,)?])*) => {
        /// What can go wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Fault {
            $(#[doc = $about] $fault,)*
        }

        use Act::{I, Q, R, W};
        use ReadsFrom::{Before, Initial, ThinAir, Write};
        use Of::{X, Y};

        const TABLE: &[FaultRow] = &[$(FaultRow {
            fault: Fault::$fault,
            name: $name,
            breaks: Breaks::$breaks,
            script: &[$($part),*],
        },)*];
    };
}

faults! {
    ThinAirRead "thin-air-read" "A transaction reads a value that was never written." Everything
        [by(0, &[R(X, ThinAir)])]
    AbortedRead "aborted-read" "A transaction reads what an aborted one wrote." Everything
        [aborted(0, &[R(X, Before), W(X)]), by(1, &[R(X, Write(0, 0))])]
    FutureRead "future-read" "A transaction reads what it writes only later." Everything
        [by(0, &[R(X, Write(0, 0)), W(X)])]
    NotMyLastWrite "not-my-last-write" "A transaction reads its last write but one." Everything
        [by(0, &[R(X, Before), W(X), W(X), R(X, Write(0, 0))])]
    NotMyOwnWrite "not-my-own-write" "After its own write a transaction reads another's." Everything
        [by(0, &[R(X, Before), W(X), R(X, Before)])]
    IntermediateRead "intermediate-read" "A transaction reads what its writer replaced." Everything
        [by(0, &[R(X, Before), W(X), W(X)]), by(1, &[R(X, Write(0, 0))])]
    NonRepeatableReads "non-repeatable-reads" "A transaction reads a key twice and gets two values." Everything
        [by(0, &[R(X, Before), W(X)]), by(1, &[R(X, Before), R(X, Write(0, 0))])]
    SessionGuaranteeViolation "session-guarantee-violation" "A session does not find its own update." Sessions
        [by(0, &[R(X, Before), W(X)]), by(0, &[R(X, Before)])]
    NonMonotonicRead "non-monotonic-read" "A transaction reads the new x and then the old y." Everything
        [by(0, &[R(X, Before), W(X), R(Y, Before), W(Y)]), by(1, &[R(X, Write(0, 0)), R(Y, Before)])]
    FracturedRead "fractured-read" "A transaction reads the old x and then the new y." Everything
        [by(0, &[R(X, Before), W(X), R(Y, Before), W(Y)]), by(1, &[R(X, Before), R(Y, Write(0, 0))])]
    CausalityViolation "causality-violation" "A transaction sees an effect and misses its cause." Everything
        [by(0, &[R(X, Before), W(X)]), by(1, &[R(X, Write(0, 0)), R(Y, Before), W(Y)]),
         by(2, &[R(Y, Write(1, 0)), R(X, Before)])]
    LongFork "long-fork" "Two readers see two updates in opposite orders." Everything
        [by(0, &[R(X, Before), W(X)]), by(1, &[R(Y, Before), W(Y)]),
         by(2, &[R(X, Write(0, 0)), R(Y, Before)]), by(3, &[R(X, Before), R(Y, Write(1, 0))])]
    LostUpdate "lost-update" "Two transactions update the same version." Everything
        [by(0, &[R(X, Before), W(X)]), by(1, &[R(X, Before), W(X)])]
    WriteSkew "write-skew" "Two transactions read two keys and each updates one." Serializability
        [by(0, &[R(X, Before), R(Y, Before), W(X)]), by(1, &[R(X, Before), R(Y, Before), W(Y)])]
    StaleInitialRead "stale-initial-read" "A session updates a key and then finds its initial state." Sessions
        [by(0, &[R(X, Before), W(X)]), by(0, &[R(X, Initial)])]
    CircularInformationFlow "g1c" "Two transactions each read what the other wrote." Everything
        [by(0, &[R(X, Before), W(X), R(Y, Write(1, 0))]), by(1, &[R(X, Write(0, 0)), W(Y)])]
    MissedEffects "g-sib" "A transaction reads one key of each of two that blindly write both: it misses an effect of one." Everything
        [by(0, &[W(X), W(Y)]), by(1, &[W(X), W(Y)]), by(2, &[R(X, Write(0, 0)), R(Y, Write(1, 0))])]
    Phantom "phantom" "A range query finds one of two rows that were inserted together." Everything
        [by(0, &[I(X), I(Y)]), by(1, &[Q(Write(0, 0), Before)])]
    PhantomSkew "phantom-skew" "Two transactions ask for a range, and each inserts into it." Serializability
        [by(0, &[Q(Before, Before), I(X)]), by(1, &[Q(Before, Before), I(Y)])]
}

/// No fault has this name.
#[derive(Clone, Debug, Error)]
#[error("no fault {0:?}; there are {names}", names = Fault::names().join(", "))]
pub struct UnknownFault(String);

impl Fault {
    /// Every fault.
    pub fn all() -> impl Iterator<Item = Fault> {
        TABLE.iter().map(|row| row.fault)
    }

    /// Every name.
    pub fn names() -> Vec<&'static str> {
        TABLE.iter().map(|row| row.name).collect()
    }

    /// The name, as typed.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Which levels it breaks.
    pub fn breaks(self) -> Breaks {
        self.row().breaks
    }

    /// Whether it asks for ranges and inserts rows, so that only a workload of rows can have it.
    pub fn needs_rows(self) -> bool {
        let mut acts = self.row().script.iter().flat_map(|part| part.acts);
        acts.any(|act| matches!(act, I(_) | Q(..)))
    }

    fn row(self) -> &'static FaultRow {
        // The table and the enum are made of the same lines, in the same order.
        &TABLE[self as usize]
    }

    fn n_clients(self) -> usize {
        let clients = self.row().script.iter().map(|part| part.client + 1);
        clients.max().unwrap_or(0)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = TABLE.iter().find(|row| row.name == name);
        found
            .map(|row| row.fault)
            .ok_or_else(|| UnknownFault(name.to_owned()))
    }
}

/// Runs a fault's script, while no client is in a transaction.
pub(super) fn inject(
    fault: Fault,
    n_clients: usize,
    kind: WorkloadKind,
    store: &mut Store,
    rng: &mut Rng,
) -> Result<(), RunError> {
    let needs = fault.n_clients();
    if n_clients < needs {
        return Err(RunError::FewClients {
            fault,
            needs,
            clients: n_clients,
        });
    }
    if fault.needs_rows() && kind != WorkloadKind::Rows {
        return Err(RunError::NoRows(fault));
    }
    let script = fault.row().script;
    let keys = if fault.needs_rows() {
        two_new_keys(store)
    } else {
        two_keys(store, rng)
    };
    let first_client = rng.below(n_clients);
    let client = |part: &FaultPart| (first_client + part.client) % n_clients;
    store.met.extend(keys);
    let scene = Scene::new(script, keys, kind, store);
    let mut begun: Vec<Option<Open>> = Vec::new();
    for (at, part) in script.iter().enumerate() {
        // The others all overlap; a session's transactions cannot.
        let waits = script[..at].iter().any(|other| other.client == part.client);
        begun.push((!waits).then(|| store.begin()));
    }
    for (at, part) in script.iter().enumerate() {
        let mut open = begun[at].take().unwrap_or_else(|| store.begin());
        scene.act(at, part, &mut open);
        if part.aborts {
            store.n_aborted += 1;
            store.record(client(part), open, Status::Aborted);
        } else {
            store.install(&open.pending);
            store.record(client(part), open, Status::Committed);
        }
    }
    Ok(())
}

/// Two keys that were written already, where there are two.
fn two_keys(store: &Store, rng: &mut Rng) -> [Key; 2] {
    let mut known = store.known_keys();
    let beyond = known.last().map_or(0, |last| last + 1);
    known.extend((beyond..).take(2usize.saturating_sub(known.len())));
    let x = rng.below(known.len());
    let y = (x + 1 + rng.below(known.len() - 1)) % known.len();
    [known[x], known[y]]
}

/// Two neighbours that were never touched.
fn two_new_keys(store: &Store) -> [Key; 2] {
    let beyond = store.known_keys().last().map_or(0, |last| last + 1);
    [beyond, beyond + 1]
}

/// The values of a script, chosen before it runs, because a fault may read what is written only later.
struct Scene {
    keys: [Key; 2],
    kind: WorkloadKind,
    /// The newest values, and the numbers beside them, which the fault's writes keep.
    before: [(i64, i64); 2],
    before_lists: [Vec<i64>; 2],
    before_rows: [StoredRow; 2],
    thin_air: [i64; 2],
    /// For each transaction and key, the values of its writes.
    written: Vec<[Vec<i64>; 2]>,
}

impl Scene {
    fn new(script: &[FaultPart], keys: [Key; 2], kind: WorkloadKind, store: &mut Store) -> Self {
        let mut written = Vec::new();
        for part in script {
            let mut values = [Vec::new(), Vec::new()];
            for act in part.acts {
                if let W(of) | I(of) = *act {
                    values[of as usize].push(store.fresh(keys[of as usize]));
                }
            }
            written.push(values);
        }
        Scene {
            keys,
            kind,
            before: keys.map(|key| store.newest(key)),
            before_lists: keys.map(|key| store.newest_list(key)),
            before_rows: keys.map(|key| store.newest_row(key)),
            // Never used again: no version has it.
            thin_air: keys.map(|key| store.fresh(key)),
            written,
        }
    }

    fn act(&self, at: usize, part: &FaultPart, open: &mut Open) {
        let mut n_written = [0, 0];
        for act in part.acts {
            match *act {
                R(of, from) => open.events.push(self.read(of, from)),
                Q(x, y) => open.events.push(self.range(x, y)),
                W(of) | I(of) => {
                    let key = self.keys[of as usize];
                    let value = self.written[at][of as usize][n_written[of as usize]];
                    n_written[of as usize] += 1;
                    let is_insert = matches!(act, I(_));
                    open.events.push(match self.kind {
                        WorkloadKind::Lists => StoreEvent::Append(key, value),
                        WorkloadKind::Rows if is_insert => StoreEvent::Insert(key, value),
                        WorkloadKind::Registers | WorkloadKind::Rows => {
                            StoreEvent::Write(key, value)
                        }
                        WorkloadKind::Table => {
                            let place = self.before[of as usize].1;
                            let row = Chosen { key, value, place };
                            StoreEvent::Put { row, is_insert }
                        }
                    });
                    open.pending.push(PendingCommit {
                        key,
                        value,
                        beside: self.before[of as usize].1,
                        sort: match self.kind {
                            WorkloadKind::Lists => Sort::Append,
                            WorkloadKind::Registers | WorkloadKind::Rows | WorkloadKind::Table => {
                                Sort::Set
                            }
                        },
                    });
                }
            }
        }
    }

    /// What a source gives that is not from before.
    fn new_value(&self, of: Of, from: ReadsFrom) -> Option<i64> {
        match from {
            Before | Initial => None,
            Write(txn, write) => Some(self.written[txn][of as usize][write]),
            ThinAir => Some(self.thin_air[of as usize]),
        }
    }

    fn found_row(&self, of: Of, from: ReadsFrom) -> StoredRow {
        match (from, self.new_value(of, from)) {
            (_, Some(value)) => StoredRow::Value(value),
            (Initial, None) => StoredRow::Nothing,
            (_, None) => self.before_rows[of as usize],
        }
    }

    fn range(&self, x: ReadsFrom, y: ReadsFrom) -> StoreEvent {
        let rows =
            [(X, x), (Y, y)].map(|(of, from)| (self.keys[of as usize], self.found_row(of, from)));
        let found = rows
            .into_iter()
            .filter(|(_, row)| *row != StoredRow::Nothing);
        StoreEvent::Range(self.keys[0], self.keys[1], found.collect())
    }

    fn read(&self, of: Of, from: ReadsFrom) -> StoreEvent {
        let key = self.keys[of as usize];
        let new = self.new_value(of, from);
        match self.kind {
            WorkloadKind::Rows => StoreEvent::ReadRow(key, self.found_row(of, from)),
            WorkloadKind::Registers | WorkloadKind::Table => {
                let old = match from {
                    Initial => INITIAL,
                    _ => self.before[of as usize].0,
                };
                StoreEvent::Read(key, new.unwrap_or(old))
            }
            WorkloadKind::Lists => {
                let mut list = match from {
                    Initial => Vec::new(),
                    _ => self.before_lists[of as usize].clone(),
                };
                list.extend(new);
                StoreEvent::ReadList(key, list)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_finds_its_fault() {
        for fault in Fault::all() {
            assert_eq!(fault.name().parse::<Fault>().ok(), Some(fault));
            assert_eq!(fault.row().fault, fault);
        }
        assert!("none".parse::<Fault>().is_err());
    }
}
