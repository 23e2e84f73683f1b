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
    about: "MariaDB, MySQL or Galera, at URLs such as mysql://user:password@host:3306/database",
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
    nodes: Nodes::Alike,
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
