//! Every database that an adapter was written for, compiled in or not: its name, levels, version orders and settings.

use super::{Adapter, Nodes, PromisedLevel};
use crate::adapter::OrderBy;

const fn promise(
    name: &'static str,
    level: Option<&'static str>,
    about: &'static str,
) -> PromisedLevel {
    PromisedLevel { name, level, about }
}

/// How the database is reached, where its adapter was compiled in.
macro_rules! compiled {
    ($feature:literal, $make:expr) => {{
        #[cfg(feature = $feature)]
        const MAKE: Option<super::Make> = Some($make);
        #[cfg(not(feature = $feature))]
        const MAKE: Option<super::Make> = None;
        MAKE
    }};
}

pub(super) const SQLITE: Adapter = Adapter {
    name: "sqlite",
    about: "SQLite",
    is_embedded: true,
    levels: &[
        promise("serializable", Some("ser"), "BEGIN DEFERRED"),
        promise("immediate", Some("ser"), "BEGIN IMMEDIATE"),
        promise(
            "shared-cache",
            Some("ser"),
            "BEGIN DEFERRED, one cache for all sessions",
        ),
        promise(
            "read-uncommitted",
            None,
            "the same with PRAGMA read_uncommitted",
        ),
    ],
    version_orders: &[OrderBy::Rank, OrderBy::Trigger, OrderBy::None],
    settings: &[],
    nodes: Nodes::One,
    has_conditions: true,
    make: compiled!("sqlite", super::sqlite::make),
};

pub(super) const FJALL: Adapter = Adapter {
    name: "fjall",
    about: "fjall, an embedded log-structured store",
    is_embedded: true,
    levels: &[promise(
        "serializable",
        Some("ser"),
        "optimistic transactions",
    )],
    version_orders: &[OrderBy::None],
    settings: &[],
    nodes: Nodes::One,
    has_conditions: false,
    make: compiled!("fjall", super::fjall::make),
};

pub(super) const REDB: Adapter = Adapter {
    name: "redb",
    about: "redb, an embedded store with a single writer",
    is_embedded: true,
    levels: &[promise(
        "serializable",
        Some("strict-ser"),
        "write transactions, one at a time",
    )],
    version_orders: &[OrderBy::None],
    settings: &[],
    nodes: Nodes::One,
    has_conditions: false,
    make: compiled!("redb", super::redb::make),
};

pub(super) const POSTGRES: Adapter = Adapter {
    name: "postgres",
    about: "PostgreSQL 10 or newer, at a URL such as postgres://user:password@host:5432/database; the primary first, then its standbys",
    is_embedded: false,
    levels: &[
        promise("serializable", Some("ser"), "SERIALIZABLE (SSI)"),
        promise(
            "repeatable-read",
            Some("si"),
            "REPEATABLE READ (snapshot isolation)",
        ),
        promise("read-committed", Some("rc"), "READ COMMITTED"),
    ],
    version_orders: &[OrderBy::Rank, OrderBy::Log, OrderBy::Trigger, OrderBy::None],
    settings: &[
        ("enable_seqscan", "off"),
        ("deadlock_timeout", "20ms"),
        ("synchronous_commit", "on"),
        ("statement_timeout", "20s"),
        ("snapshots", "off"),
    ],
    nodes: Nodes::Roles,
    has_conditions: true,
    make: compiled!("postgres", super::postgres::make),
};

pub(super) const MARIADB: Adapter = Adapter {
    name: "mariadb",
    about: "MariaDB, MySQL or Galera, at URLs such as mysql://user:password@host:3306/database; with --reads the primary first, then its replicas",
    is_embedded: false,
    levels: &[
        promise(
            "serializable",
            Some("ser"),
            "SERIALIZABLE (two-phase locking)",
        ),
        promise(
            "repeatable-read",
            None,
            "REPEATABLE READ: reads of a snapshot, writes of newer rows",
        ),
        promise("read-committed", Some("rc"), "READ COMMITTED"),
        promise("read-uncommitted", None, "READ UNCOMMITTED"),
    ],
    version_orders: &[OrderBy::Rank, OrderBy::Log, OrderBy::Trigger, OrderBy::None],
    settings: &[("innodb_lock_wait_timeout", "2"), ("gtid", "off")],
    nodes: Nodes::Both,
    has_conditions: false,
    make: compiled!("mariadb", super::mariadb::make),
};

pub(super) const ETCD: Adapter = Adapter {
    name: "etcd",
    about: "etcd, at URLs such as http://host:2379",
    is_embedded: false,
    levels: &[
        promise(
            "linearizable",
            Some("strict-ser"),
            "linearizable reads, compare-and-set at the commit",
        ),
        promise(
            "serializable-reads",
            None,
            "the same with reads that the node answers alone",
        ),
    ],
    version_orders: &[OrderBy::Log, OrderBy::None],
    settings: &[("timeout", "10")],
    nodes: Nodes::Alike,
    has_conditions: false,
    make: compiled!("etcd", super::etcd::make),
};

/// Databases in a Java or Python program have no log that could be read from here.
const BY_RANK: &[OrderBy] = &[OrderBy::Rank, OrderBy::None];

pub(super) const H2: Adapter = Adapter {
    name: "h2",
    about: "H2, embedded in a Java program",
    is_embedded: true,
    levels: &[
        promise(
            "serializable",
            Some("si"),
            "SERIALIZABLE, which is a snapshot: H2 documents that writes are not serializable",
        ),
        promise("snapshot", Some("si"), "SNAPSHOT"),
        promise("repeatable-read", Some("rc"), "REPEATABLE READ"),
        promise("read-committed", Some("rc"), "READ COMMITTED"),
        promise("read-uncommitted", None, "READ UNCOMMITTED"),
    ],
    version_orders: BY_RANK,
    settings: &[("java", "java"), ("jar", "/usr/share/java/h2.jar")],
    nodes: Nodes::One,
    has_conditions: false,
    make: compiled!("h2", super::bridged::h2),
};

pub(super) const HSQLDB: Adapter = Adapter {
    name: "hsqldb",
    about: "HSQLDB, embedded in a Java program",
    is_embedded: true,
    levels: &[
        promise(
            "serializable",
            Some("ser"),
            "SERIALIZABLE, LOCKS (two-phase locking of tables)",
        ),
        promise("read-committed", Some("rc"), "READ COMMITTED, LOCKS"),
        promise(
            "mvcc-serializable",
            Some("si"),
            "SERIALIZABLE, MVCC, which is snapshot isolation",
        ),
        promise("mvcc-read-committed", Some("rc"), "READ COMMITTED, MVCC"),
        promise(
            "mvlocks-serializable",
            Some("ser"),
            "SERIALIZABLE, MVLOCKS (writers lock, readers have a snapshot)",
        ),
    ],
    version_orders: BY_RANK,
    settings: &[("java", "java"), ("jar", "/usr/share/java/hsqldb.jar")],
    nodes: Nodes::One,
    has_conditions: false,
    make: compiled!("hsqldb", super::bridged::hsqldb),
};

pub(super) const DERBY: Adapter = Adapter {
    name: "derby",
    about: "Derby, embedded in a Java program",
    is_embedded: true,
    levels: &[
        promise(
            "serializable",
            Some("ser"),
            "SERIALIZABLE (two-phase locking)",
        ),
        promise(
            "repeatable-read",
            Some("rc"),
            "REPEATABLE READ: rows stay locked, ranges do not, and are not read at one moment",
        ),
        promise(
            "read-committed",
            Some("rc"),
            "READ COMMITTED; a range is not read at one moment",
        ),
        promise("read-uncommitted", None, "READ UNCOMMITTED"),
    ],
    version_orders: BY_RANK,
    settings: &[("java", "java"), ("jar", "/usr/share/java/derby.jar")],
    nodes: Nodes::One,
    has_conditions: false,
    make: compiled!("derby", super::bridged::derby),
};

pub(super) const DUCKDB: Adapter = Adapter {
    name: "duckdb",
    about: "DuckDB, embedded in a Python program with the package duckdb",
    is_embedded: true,
    levels: &[promise(
        "snapshot",
        Some("si"),
        "its only level, snapshot isolation",
    )],
    version_orders: BY_RANK,
    settings: &[("python", "python3")],
    nodes: Nodes::One,
    has_conditions: true,
    make: compiled!("duckdb", super::bridged::duckdb),
};

pub(super) const TURSO: Adapter = Adapter {
    name: "turso",
    about: "Turso, the rewrite of SQLite, embedded in a Python program with the package pyturso",
    is_embedded: true,
    levels: &[
        promise("serializable", Some("ser"), "BEGIN"),
        promise("immediate", Some("ser"), "BEGIN IMMEDIATE"),
        promise(
            "concurrent",
            Some("si"),
            "BEGIN CONCURRENT, journal_mode = mvcc",
        ),
    ],
    version_orders: BY_RANK,
    settings: &[("python", "python3")],
    nodes: Nodes::One,
    has_conditions: true,
    make: compiled!("turso", super::bridged::turso),
};

pub(super) const REDIS: Adapter = Adapter {
    name: "redis",
    about: "Redis or Valkey, at a URL such as redis://:password@host:6379/0",
    is_embedded: false,
    levels: &[
        promise(
            "watch",
            Some("strict-ser"),
            "MULTI and EXEC, each key watched before it is read",
        ),
        promise(
            "script",
            Some("strict-ser"),
            "a script that compares what was read and writes",
        ),
        promise("unwatched", None, "MULTI and EXEC for the writes alone"),
    ],
    version_orders: &[OrderBy::Trigger, OrderBy::None],
    settings: &[],
    nodes: Nodes::One,
    has_conditions: false,
    make: compiled!("redis", super::redis::make),
};

pub(super) const ROCKSDB: Adapter = Adapter {
    name: "rocksdb",
    about: "RocksDB, by its shared library",
    is_embedded: true,
    levels: &[
        promise(
            "pessimistic",
            Some("si"),
            "TransactionDB: writes lock, reads of a snapshot",
        ),
        promise(
            "pessimistic-for-update",
            Some("ser"),
            "the same, reads by GetForUpdate (no ranges)",
        ),
        promise(
            "pessimistic-no-snapshot",
            None,
            "writes lock, reads of what is newest",
        ),
        promise(
            "optimistic",
            Some("si"),
            "OptimisticTransactionDB, reads of a snapshot",
        ),
        promise(
            "optimistic-for-update",
            Some("ser"),
            "the same, reads by GetForUpdate (no ranges)",
        ),
        promise("optimistic-no-snapshot", None, "reads of what is newest"),
    ],
    version_orders: &[OrderBy::None],
    settings: &[("library", "/usr/lib/x86_64-linux-gnu/librocksdb.so.7.8")],
    nodes: Nodes::One,
    has_conditions: false,
    make: compiled!("rocksdb", super::rocksdb::make),
};

pub(super) const SURREALKV: Adapter = Adapter {
    name: "surrealkv",
    about: "surrealkv, an embedded log-structured store, version 1.2 or 0.21",
    is_embedded: true,
    levels: &[promise(
        "snapshot",
        Some("si"),
        "its only level, snapshot isolation",
    )],
    version_orders: &[OrderBy::None],
    settings: &[("version", "1.2")],
    nodes: Nodes::One,
    has_conditions: false,
    make: compiled!("surrealkv", super::surrealkv::make),
};
