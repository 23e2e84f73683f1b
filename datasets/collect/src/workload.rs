//! The clients' transactions: a table of workloads, small enough for frequent conflicts on few keys, or a file.
//!
//! Those that the embedded store has are taken from there; the others are here. A transaction is made from random numbers
//! (and, for keys that were not used yet, a shared counter), so that an aborted one can be made again.

use std::sync::atomic::{AtomicI64, Ordering};

use kingsnake_datasets::store::{ClientTransaction, TxnStep};
use kingsnake_datasets::workloads::{
    self as embedded, BadParameters, Parameters, Workload, WorkloadKind,
};
use kingsnake_history::rng::Rng;
use thiserror::Error;

use crate::adapter::{Initially, Key, SessionShare};
use crate::conditions::{self, Asked};
use crate::mix::{self, BadMix, Mix};
use crate::script::Script;
use crate::sql::{SqlFile, Statement};

/// The kind of a transaction.
pub(crate) enum TxnPlan {
    /// Steps, some of which depend on what was read.
    Steps(Box<dyn ClientTransaction>),
    /// Steps known in advance.
    Known(Vec<TxnStep>),
    /// A compare-and-set of one key, from what the session last saw there.
    Cas(Key),
    /// Statements of a user's own.
    Stated(Vec<Statement>),
    /// Rows chosen by conditions.
    Asked(Vec<Asked>),
}

/// A workload that is ready to run.
pub struct Load {
    kind: WorkloadKind,
    initially: Initially,
    make: Make,
}

enum Make {
    Embedded(Box<dyn Workload>),
    Skew { pairs: usize },
    LongFork { pairs: usize },
    Fresh { used: AtomicI64 },
    Predicate { used: AtomicI64 },
    Erase { used: AtomicI64 },
    Where,
    Bank { accounts: usize },
    Register { keys: usize },
    Mix { mix: Mix, keys: usize },
    Script(Script),
    Sql(SqlFile),
}

/// Why there is no such workload.
#[derive(Debug, Error)]
pub enum BadWorkload {
    /// There is no such workload, and no such file.
    #[error("there is neither a workload nor a file {0:?}; workloads are {names}", names = names().join(", "))]
    Unknown(String),
    /// The parameters do not fit.
    #[error(transparent)]
    Parameters(#[from] BadParameters),
    /// There are too few keys.
    #[error("the workload {workload} needs at least {needs} keys, and there are {keys}")]
    FewKeys {
        /// The workload.
        workload: String,
        /// How many keys it needs.
        needs: usize,
        /// How many there are.
        keys: usize,
    },
    /// The workload leaves no choice.
    #[error("the workload {workload} has its own {what}")]
    Fixed {
        /// The workload.
        workload: String,
        /// What was to be changed.
        what: &'static str,
    },
    /// The file is no workload.
    #[error(transparent)]
    Mix(#[from] BadMix),
}

/// A line of the table.
#[derive(Clone, Copy)]
pub struct CollectEntry {
    /// The name, as typed.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// Keys unless told otherwise; 0 where the workload leaves no choice.
    pub keys: usize,
    /// Operations a transaction unless told otherwise; 0 where the workload leaves no choice.
    pub ops: usize,
    /// The workload of the embedded store that it is.
    embedded: Option<&'static str>,
}

const fn own(name: &'static str, about: &'static str, keys: usize) -> CollectEntry {
    CollectEntry {
        name,
        about,
        keys,
        ops: 0,
        embedded: None,
    }
}

/// Every workload.
#[rustfmt::skip]
pub const LOADS: &[CollectEntry] = &[
    CollectEntry { name: "mini", about: "at most two reads and two writes, every write after a read of its key (MTC)", keys: 20, ops: 0, embedded: Some("mini") },
    CollectEntry { name: "rmw", about: "transactions that read and then write each of their keys", keys: 20, ops: 2, embedded: Some("blindw-rmw") },
    CollectEntry { name: "read-twice", about: "half of the transactions read their keys twice, the others read and then write them: non-repeatable reads", keys: 20, ops: 2, embedded: Some("read-twice") },
    own("skew", "reads both keys of a pair and writes one: write skew where a level allows it", 20),
    CollectEntry { name: "blind", about: "50 % read-only and 50 % write-only transactions", keys: 100, ops: 4, embedded: Some("blindw-rw") },
    own("long-fork", "writes one key of a pair, or reads both: readers that see two writes in opposite orders", 20),
    own("fresh", "the same as skew, on pairs of rows that do not exist yet", 0),
    CollectEntry { name: "append", about: "reads of lists and appends (Jepsen's list-append)", keys: 20, ops: 4, embedded: Some("list-append") },
    own("predicate", "ranges of keys, with inserts into and deletes from the range that was read", 0),
    own("erase", "reads a row and, if it was not written yet, updates or deletes it: concurrent updates and deletes", 0),
    own("where", "selects, updates, deletes and aggregates by a condition over a column, and inserts", 40),
    own("bank", "transfers between two accounts, and reads of all accounts", 8),
    own("register", "a read, a write or a compare-and-set of one key, for `linearizable`", 5),
    CollectEntry { name: "tpcc", about: "a compact TPC-C: 1 warehouse, 10 districts, 30,000 customers, 100,000 items", keys: 0, ops: 0, embedded: Some("tpcc") },
];

/// The names of all workloads.
pub fn names() -> Vec<&'static str> {
    LOADS.iter().map(|entry| entry.name).collect()
}

impl Load {
    /// The workload of this name, or of the file at this path.
    pub fn new(name: &str, keys: Option<usize>, ops: Option<usize>) -> Result<Self, BadWorkload> {
        let Some(entry) = LOADS.iter().find(|entry| entry.name == name) else {
            return Self::from_file(name, keys, ops);
        };
        let fixed = |is_typed: bool, what| {
            let workload = name.to_owned();
            if is_typed {
                return Err(BadWorkload::Fixed { workload, what });
            }
            Ok(())
        };
        if entry.keys == 0 {
            fixed(keys.is_some(), "number of keys")?;
        }
        if entry.ops == 0 {
            fixed(ops.is_some(), "number of operations")?;
        }
        let n_keys = keys.unwrap_or(entry.keys);
        let (kind, make) = match entry.embedded {
            Some(workload) => {
                let parameters = Parameters {
                    n_keys: (entry.keys > 0).then_some(n_keys),
                    n_ops: (entry.ops > 0).then_some(ops.unwrap_or(entry.ops)),
                    ..Parameters::default()
                };
                let workload = embedded::find(workload)?.make(&parameters)?;
                (workload.kind(), Make::Embedded(workload))
            }
            None => own_load(name, n_keys),
        };
        if matches!(
            make,
            Make::Skew { .. } | Make::LongFork { .. } | Make::Bank { .. }
        ) && n_keys < 2
        {
            let workload = name.to_owned();
            return Err(BadWorkload::FewKeys {
                workload,
                needs: 2,
                keys: n_keys,
            });
        }
        let initially = match (kind, &make) {
            (WorkloadKind::Registers, _) if n_keys > 0 => Initially::Rows(n_keys as i64),
            (_, Make::Erase { .. }) => Initially::MarkedRows(SPAN * WINDOWS),
            (_, Make::Predicate { .. }) => Initially::EvenRows(SPAN * WINDOWS),
            (_, Make::Where) => Initially::NumberedRows(n_keys as i64),
            _ => Initially::Nothing,
        };
        Ok(Load {
            kind,
            initially,
            make,
        })
    }

    fn from_file(path: &str, keys: Option<usize>, ops: Option<usize>) -> Result<Self, BadWorkload> {
        if !std::path::Path::new(path).is_file() {
            return Err(BadWorkload::Unknown(path.to_owned()));
        }
        if ops.is_some() {
            let workload = path.to_owned();
            return Err(BadWorkload::Fixed {
                workload,
                what: "number of operations",
            });
        }
        let mix = mix::read(path)?;
        let keys = keys.unwrap_or(20);
        if keys < mix.n_variables {
            let (workload, needs) = (path.to_owned(), mix.n_variables);
            return Err(BadWorkload::FewKeys {
                workload,
                needs,
                keys,
            });
        }
        let kind = mix.kind;
        let initially = match kind {
            WorkloadKind::Registers => Initially::Rows(keys as i64),
            _ => Initially::Nothing,
        };
        Ok(Load {
            kind,
            initially,
            make: Make::Mix { mix, keys },
        })
    }

    /// Gives the clients one key more, which no transaction of the workload uses: the key of fences.
    #[must_use]
    pub fn with_fence(self) -> Self {
        let initially = match self.initially {
            Initially::Rows(n_keys) => Initially::Rows(n_keys + 1),
            other => other,
        };
        Load { initially, ..self }
    }

    /// The key of fences, where there is one.
    pub fn fence_key(&self) -> Key {
        match self.initially {
            Initially::Rows(n_keys) => n_keys - 1,
            // The other keys count from 0.
            _ => -1,
        }
    }

    /// A fence: it reads and writes its key. Where a session may only read, that is its part of it.
    pub(crate) fn fence(&self, runs: SessionShare) -> TxnPlan {
        let key = self.fence_key();
        let steps = match self.kind {
            WorkloadKind::Lists => [TxnStep::ReadList(key), TxnStep::Append(key)],
            _ => [TxnStep::Read(key), TxnStep::Write(key, 0)],
        };
        let n_steps = if runs == SessionShare::Readers { 1 } else { 2 };
        TxnPlan::Known(steps[..n_steps].to_vec())
    }

    /// Sessions that take the steps of a script.
    pub fn of_script(script: Script) -> Self {
        Load {
            kind: script.kind(),
            initially: script.initially(),
            make: Make::Script(script),
        }
    }

    /// A user's own statements.
    pub fn of_sql(sql: SqlFile) -> Self {
        Load {
            kind: WorkloadKind::Registers,
            // Every row of the set-up is of writer 0.
            initially: Initially::Rows(0),
            make: Make::Sql(sql),
        }
    }

    /// Statements that make own tables, and those that remove them.
    pub(crate) fn own_tables(&self) -> (&[Statement], &[Statement]) {
        match &self.make {
            Make::Sql(sql) => (&sql.setup, &sql.teardown),
            Make::Script(script) => (&script.setup, &script.teardown),
            _ => (&[], &[]),
        }
    }

    /// The script, if it is one.
    pub fn script(&self) -> Option<&Script> {
        match &self.make {
            Make::Script(script) => Some(script),
            _ => None,
        }
    }

    /// What the keys hold.
    pub fn kind(&self) -> WorkloadKind {
        self.kind
    }

    /// What the keys hold before the first transaction.
    pub fn initially(&self) -> Initially {
        self.initially
    }

    /// Whether a row may be made again where one was deleted. Then the ranks of its versions begin again too.
    pub(crate) fn makes_rows_again(&self) -> bool {
        matches!(self.make, Make::Erase { .. })
    }

    /// Whether some transactions compare and set what their session last saw.
    pub(crate) fn compares_and_sets(&self) -> bool {
        matches!(self.make, Make::Register { .. })
    }

    /// The next transaction.
    pub(crate) fn plan(&self, rng: &mut Rng) -> TxnPlan {
        let steps = match &self.make {
            Make::Sql(sql) => return TxnPlan::Stated(sql.transaction(rng)),
            Make::Embedded(workload) => return TxnPlan::Steps(workload.transaction(rng)),
            Make::Skew { pairs } => skew(2 * rng.below(*pairs) as Key, rng),
            Make::LongFork { pairs } => long_fork(2 * rng.below(*pairs) as Key, rng),
            Make::Fresh { used } => {
                // Four transactions share a pair on average, so that several of them meet on it.
                let pair = used.fetch_add(1, Ordering::Relaxed) / 4 + rng.below(2) as Key;
                skew(2 * pair, rng)
            }
            Make::Where => return TxnPlan::Asked(conditions::plan(rng)),
            Make::Predicate { used } => predicate(used.fetch_add(1, Ordering::Relaxed), rng),
            Make::Erase { used } => {
                let window = used.fetch_add(1, Ordering::Relaxed) / ERASERS % (SPAN * WINDOWS / 4);
                return TxnPlan::Steps(Box::new(Erase {
                    key: 4 * window + 2 * rng.below(2) as Key,
                    deletes: rng.below(3) == 0,
                    at: 0,
                }));
            }
            Make::Bank { accounts } => return TxnPlan::Steps(bank(*accounts, rng)),
            Make::Register { keys } => {
                let key = rng.below(*keys) as Key;
                match rng.below(3) {
                    0 => vec![TxnStep::Read(key)],
                    1 => vec![TxnStep::Write(key, 0)],
                    _ => return TxnPlan::Cas(key),
                }
            }
            Make::Mix { mix, keys } => mix.steps(*keys, rng),
            // Each session gets its steps one by one.
            Make::Script(_) => Vec::new(),
        };
        TxnPlan::Known(steps)
    }

    /// The next transaction for a client that may run only some; nothing where the workload seems to have none of them.
    pub(crate) fn plan_for(&self, runs: SessionShare, rng: &mut Rng) -> Option<TxnPlan> {
        let suits: fn(&TxnStep) -> bool = match runs {
            SessionShare::All => return Some(self.plan(rng)),
            SessionShare::Writers => |step| !is_read(step),
            SessionShare::Readers => is_read,
        };
        for _ in 0..DRAWS {
            let mut again = rng.clone();
            let plan = match self.plan(rng) {
                // What it does depends on what it reads, so it is tried on nothing and made again.
                TxnPlan::Steps(mut tried) => {
                    let mut steps = std::iter::from_fn(|| tried.next(0)).take(MOST_TRIED);
                    if !steps.any(|step| suits(&step)) {
                        continue;
                    }
                    self.plan(&mut again)
                }
                TxnPlan::Known(steps) if !steps.iter().any(suits) => continue,
                TxnPlan::Asked(all)
                    if !all
                        .iter()
                        .any(|it| it.is_read() == (runs == SessionShare::Readers)) =>
                {
                    continue;
                }
                other => other,
            };
            return Some(if runs == SessionShare::Readers {
                plan.reads()
            } else {
                plan
            });
        }
        None
    }
}

/// How often a transaction is drawn before concluding that the workload has no suitable one.
const DRAWS: usize = 200;

/// More steps of a transaction are not tried.
const MOST_TRIED: usize = 1_000;

impl TxnPlan {
    /// The same without its writes.
    fn reads(self) -> Self {
        match self {
            TxnPlan::Steps(inner) => TxnPlan::Steps(Box::new(ItsReads(inner))),
            TxnPlan::Known(mut steps) => {
                steps.retain(is_read);
                TxnPlan::Known(steps)
            }
            TxnPlan::Cas(key) => TxnPlan::Known(vec![TxnStep::Read(key)]),
            TxnPlan::Stated(mut statements) => {
                statements.retain(|it| !it.changes());
                TxnPlan::Stated(statements)
            }
            TxnPlan::Asked(mut all) => {
                all.retain(Asked::is_read);
                TxnPlan::Asked(all)
            }
        }
    }
}

fn is_read(step: &TxnStep) -> bool {
    matches!(
        step,
        TxnStep::Read(_) | TxnStep::ReadRow(_) | TxnStep::ReadList(_) | TxnStep::Range(..)
    )
}

/// A transaction without its writes.
struct ItsReads(Box<dyn ClientTransaction>);

impl ClientTransaction for ItsReads {
    fn next(&mut self, read: i64) -> Option<TxnStep> {
        let mut step = self.0.next(read);
        while step.as_ref().is_some_and(|step| !is_read(step)) {
            step = self.0.next(0);
        }
        step
    }
}

fn own_load(name: &str, keys: usize) -> (WorkloadKind, Make) {
    let used = AtomicI64::new(0);
    match name {
        "skew" => (WorkloadKind::Registers, Make::Skew { pairs: keys / 2 }),
        "long-fork" => (WorkloadKind::Registers, Make::LongFork { pairs: keys / 2 }),
        "fresh" => (WorkloadKind::Registers, Make::Fresh { used }),
        "where" => (WorkloadKind::Table, Make::Where),
        "predicate" => (WorkloadKind::Rows, Make::Predicate { used }),
        "erase" => (WorkloadKind::Rows, Make::Erase { used }),
        "bank" => (WorkloadKind::Registers, Make::Bank { accounts: keys }),
        _ => (WorkloadKind::Registers, Make::Register { keys }),
    }
}

/// Half of the transactions read and write one key of the pair; the others read both, in either order.
fn long_fork(first: Key, rng: &mut Rng) -> Vec<TxnStep> {
    let (one, other) = (rng.below(2) as Key, rng.below(2));
    let key = first + one;
    if other == 0 {
        vec![TxnStep::Read(key), TxnStep::Write(key, 0)]
    } else {
        vec![TxnStep::Read(key), TxnStep::Read(first + 1 - one)]
    }
}

fn skew(first: Key, rng: &mut Rng) -> Vec<TxnStep> {
    let written = first + rng.below(2) as Key;
    vec![
        TxnStep::Read(first),
        TxnStep::Read(first + 1),
        TxnStep::Write(written, 0),
    ]
}

/// How many keys a range spans.
const SPAN: Key = 8;

/// How many windows there are, before they are used again.
const WINDOWS: i64 = 512;

/// Every few transactions the window moves on, so that there are always rows that were not inserted or deleted yet.
///
/// Even keys have a row at first and are only deleted; odd keys have none and are only inserted. So a client that finds no row
/// knows what it found: a row that was deleted, and only once, or one that was not there yet.
fn predicate(used: i64, rng: &mut Rng) -> Vec<TxnStep> {
    let low = SPAN * (used / 6 % WINDOWS);
    let mut even = || low + 2 * rng.below(SPAN as usize / 2) as Key;
    let (deleted, inserted, second) = (even(), even() + 1, even() + 1);
    let range = TxnStep::Range(low, low + SPAN - 1);
    match rng.below(6) {
        0 => vec![range],
        1 => vec![TxnStep::Insert(inserted), TxnStep::Insert(second)],
        2 => vec![range, TxnStep::Delete(deleted)],
        3 => vec![TxnStep::Delete(deleted), TxnStep::Insert(inserted)],
        _ => vec![range, TxnStep::Insert(inserted)],
    }
}

/// Average number of transactions that share two rows.
const ERASERS: i64 = 10;

/// Reads a row and, if it was not written yet, updates or deletes it. So a row is deleted at most once, and a missing
/// row has a single possible delete.
struct Erase {
    key: Key,
    deletes: bool,
    at: usize,
}

impl ClientTransaction for Erase {
    fn next(&mut self, read: i64) -> Option<TxnStep> {
        self.at += 1;
        match self.at {
            1 => Some(TxnStep::ReadRow(self.key)),
            2 if read != 1 => None,
            2 if self.deletes => Some(TxnStep::Delete(self.key)),
            2 => Some(TxnStep::Write(self.key, 2)),
            _ => None,
        }
    }
}

fn bank(accounts: usize, rng: &mut Rng) -> Box<dyn ClientTransaction> {
    if rng.below(5) == 0 {
        let all = (0..accounts as Key).map(TxnStep::Read);
        return Box::new(all.collect::<Vec<_>>().into_iter());
    }
    let from = rng.below(accounts);
    let to = (from + 1 + rng.below(accounts - 1)) % accounts;
    Box::new(Transfer {
        accounts: [from as Key, to as Key],
        amount: 1 + rng.below(5) as i64,
        held: [0; 2],
        at: 0,
    })
}

/// Reads two accounts, then writes both.
struct Transfer {
    accounts: [Key; 2],
    amount: i64,
    held: [i64; 2],
    at: usize,
}

impl ClientTransaction for Transfer {
    fn next(&mut self, read: i64) -> Option<TxnStep> {
        let at = self.at;
        self.at += 1;
        if (1..=2).contains(&at) {
            self.held[at - 1] = read;
        }
        match at {
            0 | 1 => Some(TxnStep::Read(self.accounts[at])),
            2 => Some(TxnStep::Write(self.accounts[0], self.held[0] - self.amount)),
            3 => Some(TxnStep::Write(self.accounts[1], self.held[1] + self.amount)),
            _ => None,
        }
    }
}
