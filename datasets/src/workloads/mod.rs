//! Workloads: what the clients of the [`store`](crate::store) do. The table grows by one line each.
//!
//! A workload makes transactions from a stream of random numbers and from nothing else, so that a transaction which was
//! aborted can be made again.

mod emme;
mod keys;
mod lwt;
mod micro;
mod mini;
mod mix;
mod plan;
mod ranges;
mod rubis;
mod tpcc;
mod tpcc_predicates;
mod twice;
mod twitter;
mod twitter_predicates;

use kingsnake_history::rng::Rng;
use thiserror::Error;

use keys::Keys;
pub use keys::{BadDistribution, Distribution};
pub use lwt::{Lwt, LwtFault};
pub use mini::Shapes;

use crate::store::{Cells, ClientTransaction, Key, Schema};

/// What a workload's keys hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadKind {
    /// Single values.
    Registers,
    /// Lists that are appended to.
    Lists,
    /// Rows of a table that come and go, and are asked for by ranges of keys.
    Rows,
    /// Rows of a table with columns, which conditions choose.
    Table,
}

/// Makes transactions.
pub trait Workload: Sync {
    /// What the keys hold.
    fn kind(&self) -> WorkloadKind {
        WorkloadKind::Registers
    }

    /// The tables, where keys are rows of tables.
    fn schema(&self) -> Schema {
        Schema(&[])
    }

    /// The rows of tables that are there before the first transaction.
    fn initial(&self) -> Vec<(Key, Cells)> {
        Vec::new()
    }

    /// The next transaction.
    fn transaction(&self, rng: &mut Rng) -> Box<dyn ClientTransaction>;

    /// The names of its kinds of transactions, where it has several.
    fn transaction_kinds(&self) -> &'static [&'static str] {
        &[]
    }
}

/// What the percentages of a mix apply to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    /// Draw each operation independently.
    Operation,
    /// All operations of a transaction are of one kind.
    Transaction,
}

/// What can be chosen about a workload; `None` is the workload's own.
#[derive(Clone, Debug, Default)]
pub struct Parameters {
    /// How many keys.
    pub n_keys: Option<usize>,
    /// How many operations a transaction.
    pub n_ops: Option<usize>,
    /// How often each key is chosen.
    pub distribution: Distribution,
    /// What the percentages apply to.
    pub granularity: Option<Granularity>,
    /// Which shapes mini-transactions have.
    pub shapes: Option<Shapes>,
}

/// Why a workload cannot be had with these parameters.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BadParameters {
    /// No workload has this name.
    #[error("no workload {0:?}; there are {names}", names = names().join(", "))]
    UnknownWorkload(String),
    /// The operations of a transaction are on different keys.
    #[error(
        "{n_ops} operations on different keys need at least as many keys, and there are {n_keys}"
    )]
    FewKeys {
        /// How many keys there are.
        n_keys: usize,
        /// How many operations a transaction has.
        n_ops: usize,
    },
    /// The workload leaves no choice.
    #[error("the workload {workload} has its own {what}")]
    Fixed {
        /// The workload.
        workload: &'static str,
        /// What was to be changed.
        what: &'static str,
    },
}

/// A line of the table.
#[derive(Clone, Copy)]
pub struct WorkloadEntry {
    /// The name, as typed.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// How many keys unless told otherwise; 0 where the workload leaves no choice.
    pub n_keys: usize,
    /// How many operations a transaction unless told otherwise; 0 where the workload leaves no choice.
    pub n_ops: usize,
    make: Make,
}

#[derive(Clone, Copy)]
enum Make {
    /// Percentages of reads, blind writes and read-modify-writes, and what they apply to.
    Mix([usize; 3], Granularity),
    /// Weights of inserts, reads, updates, deletes and range queries.
    Ranges([usize; 5]),
    /// Emme's; which percentage of the reads and updates chooses rows by a condition.
    Emme(Option<usize>),
    Mini,
    Twice,
    /// Jepsen's, on keys that hold this.
    Micro(WorkloadKind),
    /// A schema of its own.
    Schema(fn(Distribution) -> Box<dyn Workload>),
}

use Granularity::{Operation, Transaction as Whole};

const fn mix(
    name: &'static str,
    about: &'static str,
    percentages: [usize; 3],
    granularity: Granularity,
    n_keys: usize,
) -> WorkloadEntry {
    WorkloadEntry {
        name,
        about,
        n_keys,
        n_ops: 8,
        make: Make::Mix(percentages, granularity),
    }
}

const fn ranges(name: &'static str, about: &'static str, weights: [usize; 5]) -> WorkloadEntry {
    WorkloadEntry {
        name,
        about,
        n_keys: 2_000,
        n_ops: 8,
        make: Make::Ranges(weights),
    }
}

const fn schema(
    name: &'static str,
    about: &'static str,
    make: fn(Distribution) -> Box<dyn Workload>,
) -> WorkloadEntry {
    WorkloadEntry {
        name,
        about,
        n_keys: 0,
        n_ops: 0,
        make: Make::Schema(make),
    }
}

/// Every workload.
#[rustfmt::skip]
pub const WORKLOADS: &[WorkloadEntry] = &[
    mix("king-cobra-rmw", "25 % reads, 25 % blind writes, 50 % read-modify-writes", [25, 25, 50], Operation, 10_000),
    mix("king-cobra-rw", "50 % reads, 50 % blind writes", [50, 50, 0], Operation, 10_000),
    mix("king-cobra-hw", "10 % reads, 80 % blind writes, 10 % read-modify-writes", [10, 80, 10], Operation, 10_000),
    mix("blindw-rm", "90 % read-only and 10 % write-only transactions", [90, 10, 0], Whole, 10_000),
    mix("blindw-rw", "50 % read-only and 50 % write-only transactions", [50, 50, 0], Whole, 10_000),
    mix("blindw-rmw", "transactions that read and then write each of their keys", [0, 0, 100], Whole, 10_000),
    mix("cobra-general", "Cobra's and MTC's general transactions: 20 % read-only, 40 % write-only, 40 % of read-modify-writes", [20, 40, 40], Whole, 10_000),
    WorkloadEntry { name: "mini", about: "at most two reads and two writes, every write after a read of its key", n_keys: 10_000, n_ops: 0, make: Make::Mini },
    WorkloadEntry { name: "read-twice", about: "half of the transactions read their keys twice, the others read and then write them", n_keys: 1_000, n_ops: 2, make: Make::Twice },
    mix("v-blindw-rm", "Viper's: 90 % read-only and 10 % write-only transactions", [90, 10, 0], Whole, 2_000),
    mix("v-blindw-rw", "Viper's: 50 % read-only and 50 % write-only transactions", [50, 50, 0], Whole, 2_000),
    ranges("v-range-b", "Viper's: 20 % each of inserts, reads, updates, deletes, range queries", [20, 20, 20, 20, 20]),
    ranges("v-range-rqh", "the same with 50 % range queries, 12.5 % each of the others", [1, 1, 1, 1, 4]),
    ranges("v-range-idh", "the same with 35 % inserts, 35 % deletes, 10 % each of the others", [35, 10, 10, 35, 10]),
    WorkloadEntry { name: "list-append", about: "Jepsen's: up to 4 reads of lists and appends", n_keys: 1_000, n_ops: 4, make: Make::Micro(WorkloadKind::Lists) },
    WorkloadEntry { name: "rw-register", about: "Jepsen's: up to 4 reads and writes of registers", n_keys: 1_000, n_ops: 4, make: Make::Micro(WorkloadKind::Registers) },
    WorkloadEntry { name: "emme-items", about: "Emme's: 30 % updates, 40 % reads, 20 % increments, 10 % inserts of a table's rows", n_keys: 1_000, n_ops: 5, make: Make::Emme(None) },
    WorkloadEntry { name: "emme-predicates", about: "Emme's: 10 % inserts, reads and updates in equal parts, half of them by a condition", n_keys: 100, n_ops: 5, make: Make::Emme(Some(50)) },
    WorkloadEntry { name: "emme-predicates-25", about: "the same with a quarter of them by a condition", n_keys: 100, n_ops: 5, make: Make::Emme(Some(25)) },
    WorkloadEntry { name: "emme-predicates-75", about: "the same with three quarters of them by a condition", n_keys: 100, n_ops: 5, make: Make::Emme(Some(75)) },
    WorkloadEntry { name: "emme-predicates-100", about: "the same with all of them by a condition", n_keys: 100, n_ops: 5, make: Make::Emme(Some(100)) },
    schema("tpcc", "a compact TPC-C: 1 warehouse, 10 districts, 30,000 customers, 100,000 items", |it| Box::new(tpcc::Tpcc::new(it))),
    schema("rubis", "a compact RUBiS: 20,000 users, 80,000 items", |it| Box::new(rubis::Rubis::new(it))),
    schema("twitter", "a compact Twitter: 1,000 users", |it| Box::new(twitter::Twitter::new(it))),
    schema("tpcc-predicates", "TPC-C on tables: 10 districts, 3,000 customers, 10,000 items; rows chosen by conditions, inserted and deleted", |it| Box::new(tpcc_predicates::TpccTables::new(it))),
    schema("twitter-predicates", "Twitter on tables: 1,000 users; rows chosen by conditions, inserted and deleted", |it| Box::new(twitter_predicates::TwitterTables::new(it))),
];

/// The names of all workloads.
pub fn names() -> Vec<&'static str> {
    WORKLOADS.iter().map(|entry| entry.name).collect()
}

/// The workload of a name.
pub fn find(name: &str) -> Result<WorkloadEntry, BadParameters> {
    let found = WORKLOADS.iter().find(|entry| entry.name == name);
    found
        .copied()
        .ok_or_else(|| BadParameters::UnknownWorkload(name.to_owned()))
}

impl WorkloadEntry {
    /// The workload with these parameters.
    pub fn make(&self, parameters: &Parameters) -> Result<Box<dyn Workload>, BadParameters> {
        let n_keys = parameters.n_keys.unwrap_or(self.n_keys);
        let n_ops = parameters.n_ops.unwrap_or(self.n_ops);
        let fixed = |is_typed: bool, what| {
            let workload = self.name;
            if is_typed {
                return Err(BadParameters::Fixed { workload, what });
            }
            Ok(())
        };
        let keys = |n_ops| {
            if n_keys < n_ops || n_keys == 0 {
                return Err(BadParameters::FewKeys { n_keys, n_ops });
            }
            Ok(Keys::new(n_keys, parameters.distribution))
        };
        if self.n_keys == 0 {
            fixed(parameters.n_keys.is_some(), "number of keys")?;
        }
        if self.n_ops == 0 {
            fixed(parameters.n_ops.is_some(), "number of operations")?;
        }
        if !matches!(self.make, Make::Mini) {
            fixed(parameters.shapes.is_some(), "shapes")?;
        }
        if !matches!(self.make, Make::Mix(..) | Make::Ranges(_)) {
            fixed(parameters.granularity.is_some(), "granularity")?;
        }
        Ok(match self.make {
            Make::Mix(percentages, granularity) => Box::new(mix::Mix {
                keys: keys(n_ops)?,
                n_ops,
                percentages,
                granularity: parameters.granularity.unwrap_or(granularity),
            }),
            Make::Ranges(weights) => Box::new(ranges::Ranges {
                keys: keys(n_ops)?,
                n_ops,
                weights,
                granularity: parameters.granularity.unwrap_or(Whole),
            }),
            Make::Emme(predicates) => Box::new(emme::Emme {
                keys: keys(1)?,
                n_ops,
                predicates,
            }),
            Make::Mini => Box::new(mini::Mini {
                keys: keys(2)?,
                shapes: parameters.shapes.unwrap_or_default(),
            }),
            Make::Twice => Box::new(twice::Twice {
                keys: keys(n_ops)?,
                n_ops,
            }),
            Make::Micro(kind) => Box::new(micro::Micro {
                keys: keys(1)?,
                n_ops: n_ops.max(1),
                kind,
            }),
            Make::Schema(make) => make(parameters.distribution),
        })
    }
}
