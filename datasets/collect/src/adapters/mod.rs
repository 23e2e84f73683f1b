//! The table of databases; each adapter is a file behind a cargo feature of its own.

#[cfg(any(
    feature = "h2",
    feature = "hsqldb",
    feature = "derby",
    feature = "duckdb",
    feature = "turso"
))]
mod bridge;
#[cfg(any(
    feature = "h2",
    feature = "hsqldb",
    feature = "derby",
    feature = "duckdb",
    feature = "turso"
))]
#[allow(dead_code)] // Each is behind a feature of its own.
mod bridged;
pub mod broken;
#[cfg(any(
    feature = "fjall",
    feature = "redb",
    feature = "etcd",
    feature = "redis",
    feature = "rocksdb",
    feature = "surrealkv"
))]
#[allow(dead_code)] // Not every store has both.
mod encode;
#[cfg(feature = "etcd")]
mod etcd;
#[cfg(feature = "fjall")]
mod fjall;
#[cfg(any(feature = "rocksdb", feature = "surrealkv"))]
mod keyed;
#[cfg(feature = "mariadb")]
mod mariadb;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "postgres")]
mod postgres_conditions;
#[cfg(feature = "postgres")]
mod postgres_session;
#[cfg(feature = "redb")]
mod redb;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "rocksdb")]
mod rocksdb;
#[cfg(any(
    feature = "h2",
    feature = "hsqldb",
    feature = "derby",
    feature = "duckdb",
    feature = "turso"
))]
mod sql;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "surrealkv")]
mod surrealkv;
mod table;
#[cfg(any(feature = "mariadb", feature = "postgres", feature = "etcd"))]
mod tls;
#[cfg(feature = "postgres")]
mod tls_any_name;

use std::path::PathBuf;

use kingsnake_datasets::workloads::WorkloadKind;
use kingsnake_history::level::{Level, hyphenated};
use thiserror::Error;

use crate::adapter::{Database, Failure, OrderBy, SessionShare};

/// An isolation level of a database.
#[derive(Clone, Copy, Debug)]
pub struct PromisedLevel {
    /// As typed.
    pub name: &'static str,
    /// The checker's level that it must keep to; nothing where none is promised.
    pub level: Option<&'static str>,
    /// How the adapter asks for it.
    pub about: &'static str,
}

/// The database to talk to, and how.
#[derive(Clone, Debug)]
pub struct Target {
    /// Addresses, one per node; none for an embedded database's own file.
    pub urls: Vec<String>,
    /// One of the adapter's levels.
    pub isolation: String,
    /// One of the adapter's orders.
    pub version_order: OrderBy,
    /// What the workload keeps in it.
    pub kind: WorkloadKind,
    /// Where an embedded database may put its files.
    pub directory: PathBuf,
    /// Settings in place of the adapter's own, by name.
    pub settings: Vec<(String, String)>,
    /// Where transactions run that only read, of a database whose nodes have roles; [`ReadsAt::Any`] unless given.
    pub reads: Option<ReadsAt>,
}

/// The nodes that run transactions that only read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadsAt {
    /// The primary alone, as everything else.
    Primary,
    /// The standbys.
    Standby,
    /// All of them.
    Any,
}

impl ReadsAt {
    /// All of them.
    pub const ALL: [ReadsAt; 3] = [Self::Primary, Self::Standby, Self::Any];

    /// The name, as typed.
    pub fn name(self) -> &'static str {
        match self {
            ReadsAt::Primary => "primary",
            ReadsAt::Standby => "standby",
            ReadsAt::Any => "any",
        }
    }

    /// The node of a client, and what it may run there: every other client only reads.
    #[allow(dead_code)] // Only of databases with roles.
    fn place(self, session: usize, nodes: usize) -> (usize, SessionShare) {
        if self == ReadsAt::Primary || nodes < 2 {
            return (0, SessionShare::All);
        }
        if session.is_multiple_of(2) {
            return (0, SessionShare::Writers);
        }
        let reader = session / 2;
        match self {
            ReadsAt::Any => ((reader + 1) % nodes, SessionShare::Readers),
            _ => (1 + reader % (nodes - 1), SessionShare::Readers),
        }
    }
}

/// The meaning of several addresses of one database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nodes {
    /// It has one address.
    One,
    /// Equal nodes of one cluster.
    Alike,
    /// The first is a primary; the others are its standbys, which only answer reads.
    Roles,
    /// Nodes of one cluster, or with `--reads` a primary and its standbys.
    Both,
}

/// A line of the table.
#[derive(Clone, Copy)]
pub struct Adapter {
    /// The name, as typed.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// Whether it runs within this process, without a server.
    pub is_embedded: bool,
    /// Its levels, the default first.
    pub levels: &'static [PromisedLevel],
    /// How it can put versions in order, the default first.
    pub version_orders: &'static [OrderBy],
    /// Settings and their defaults.
    pub settings: &'static [(&'static str, &'static str)],
    /// The meaning of several addresses.
    pub nodes: Nodes,
    /// Whether it can be asked by conditions over columns.
    pub has_conditions: bool,
    make: Option<Make>,
}

/// How a database is reached.
type Make = fn(&Target) -> Result<Box<dyn Database>, Failure>;

/// Every adapter, compiled in or not.
pub const ADAPTERS: &[Adapter] = &[
    table::SQLITE,
    table::FJALL,
    table::REDB,
    table::POSTGRES,
    table::MARIADB,
    table::ETCD,
    table::REDIS,
    table::ROCKSDB,
    table::SURREALKV,
    table::H2,
    table::HSQLDB,
    table::DERBY,
    table::DUCKDB,
    table::TURSO,
];

/// There is no adapter, or no level of it, of that name: what was given, and the names that there are.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnknownDatabase {
    /// No adapter.
    #[error("there is no adapter for {0:?}; there are {1}")]
    Adapter(String, String),
    /// The database has no such level.
    #[error("{database} has no isolation level {name:?}; it has {known}")]
    Isolation {
        /// Which database.
        database: &'static str,
        /// What was given.
        name: String,
        /// What it has.
        known: String,
    },
}

/// The adapter of a name.
pub fn adapter(name: &str) -> Result<&'static Adapter, UnknownDatabase> {
    ADAPTERS.iter().find(|it| it.name == name).ok_or_else(|| {
        let names: Vec<&str> = ADAPTERS.iter().map(|it| it.name).collect();
        UnknownDatabase::Adapter(name.to_owned(), names.join(", "))
    })
}

impl Adapter {
    /// The level of a name, in any case and with spaces or hyphens, or of another name of the same level.
    pub fn level(&self, name: &str) -> Result<&'static PromisedLevel, UnknownDatabase> {
        let of = |name: &str| {
            let mut levels = self.levels.iter();
            levels.find(|it| hyphenated(it.name) == hyphenated(name))
        };
        let by_alias = || {
            let level: Level = name.parse().ok()?;
            level.names().iter().find_map(|it| of(it))
        };
        of(name).or_else(by_alias).ok_or_else(|| {
            let names: Vec<&str> = self.levels.iter().map(|it| it.name).collect();
            UnknownDatabase::Isolation {
                database: self.name,
                name: name.to_owned(),
                known: names.join(", "),
            }
        })
    }

    /// Whether a second connection of a client would wait for the locks of its first, which makes a mistake of the two impossible.
    pub fn readers_wait(&self) -> bool {
        matches!(self.name, "redb" | "hsqldb" | "derby")
    }

    /// Whether this program can talk to it.
    pub fn is_compiled_in(&self) -> bool {
        self.make.is_some()
    }

    /// What must be built to talk to it.
    pub fn how_to_build(&self) -> String {
        format!(
            "cargo build --release -p kingsnake-cli --features {}",
            self.name
        )
    }

    /// The database at a target.
    pub fn connect(&self, target: &Target) -> Result<Box<dyn Database>, Failure> {
        let make = self.make.ok_or_else(|| {
            Failure::Fatal(format!(
                "{} was not compiled in; build it with: {}",
                self.name,
                self.how_to_build()
            ))
        })?;
        let level = self.level(&target.isolation);
        level.map_err(|unknown| Failure::Fatal(unknown.to_string()))?;
        if !self.version_orders.contains(&target.version_order) {
            let names: Vec<&str> = self.version_orders.iter().map(|it| it.name()).collect();
            return Err(Failure::Fatal(format!(
                "{} cannot put versions in order by {}; it can by {}",
                self.name,
                target.version_order.name(),
                names.join(", ")
            )));
        }
        if let Some((name, _)) = target
            .settings
            .iter()
            .find(|(name, _)| !self.has_setting(name))
        {
            let names: Vec<&str> = self.settings.iter().map(|(name, _)| *name).collect();
            return Err(Failure::Fatal(format!(
                "{} has no setting {name:?}; it has {}",
                self.name,
                if names.is_empty() {
                    "none".to_owned()
                } else {
                    names.join(", ")
                }
            )));
        }
        if target.kind == WorkloadKind::Table && !self.has_conditions {
            let able = ADAPTERS.iter().filter(|it| it.has_conditions);
            let names: Vec<&str> = able.map(|it| it.name).collect();
            return Err(Failure::Fatal(format!(
                "{} is not asked by conditions over columns; ask {}",
                self.name,
                names.join(", ")
            )));
        }
        if self.nodes == Nodes::One && target.urls.len() > 1 {
            return Err(Failure::Fatal(format!("{} takes one --url", self.name)));
        }
        if !self.is_embedded && target.urls.is_empty() {
            return Err(Failure::Fatal(format!(
                "{} is a server: say where it is with --url, or start a private one with --start",
                self.name
            )));
        }
        let has_roles = matches!(self.nodes, Nodes::Roles | Nodes::Both);
        if target.reads.is_some() && (!has_roles || target.urls.len() < 2) {
            return Err(Failure::Fatal(format!(
                "--reads chooses between a primary and its standbys; {}",
                if has_roles {
                    "there is one node: add --nodes 2, or the standby's address"
                } else {
                    "this database has no such nodes"
                }
            )));
        }
        make(target)
    }

    fn has_setting(&self, name: &str) -> bool {
        self.settings.iter().any(|(it, _)| *it == name)
    }

    /// The settings with those of the target in place of the defaults.
    #[allow(dead_code)] // Not every adapter has settings.
    fn settings(&self, target: &Target) -> Vec<(String, String)> {
        let given = |name: &str| target.settings.iter().rev().find(|(it, _)| it == name);
        let setting = |&(name, default): &(&str, &str)| {
            let value = given(name).map_or(default, |(_, value)| value);
            (name.to_owned(), value.to_owned())
        };
        self.settings.iter().map(setting).collect()
    }
}

/// Numbers between commas, as lists are kept in a text.
#[allow(dead_code)] // Not every adapter keeps them so.
fn parse_list(text: &str) -> Result<Vec<i64>, Failure> {
    let numbers = text.split(',').filter(|it| !it.is_empty());
    numbers
        .map(str::parse)
        .collect::<Result<_, _>>()
        .map_err(|_| {
            Failure::Fatal(format!(
                "a list holds {text:?}, which was not appended by a client"
            ))
        })
}
