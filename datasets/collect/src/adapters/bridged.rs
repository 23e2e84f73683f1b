//! Databases that are reached through a bridge: H2, HSQLDB and Derby in a Java virtual machine, `DuckDB` and Turso in Python.
//!
//! All are embedded: the database lives in the bridge's process, its files in a directory that the collection makes and removes.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::bridge::{self, Bridge};
use super::sql::{Dialect, SqlClient, SqlLink};
use super::{Target, table};
use crate::adapter::{Database, DatabaseSession, Failure, Initially, OrderBy};

/// How a database is run.
struct Kind {
    dialect: Dialect,
    adapter: &'static super::Adapter,
    /// The levels: what is sent when a session opens, how a transaction begins, and what its level adds to the address.
    levels: &'static [Level],
    runs: Runs,
}

struct Level {
    name: &'static str,
    /// A request before the first transaction of a session; nothing where it is empty.
    open: &'static str,
    begin: &'static str,
    /// Added to the address, or run by each new connection.
    setup: &'static str,
}

enum Runs {
    /// JDBC: the address around the directory, and the properties of the machine.
    Java(&'static str, &'static [&'static str]),
    /// The module's name.
    Python(&'static str),
}

const fn level(
    name: &'static str,
    open: &'static str,
    begin: &'static str,
    setup: &'static str,
) -> Level {
    Level {
        name,
        open,
        begin,
        setup,
    }
}

/// H2.
pub(super) fn h2(target: &Target) -> Result<Box<dyn Database>, Failure> {
    Bridged::make(&H2, target)
}

/// HSQLDB.
pub(super) fn hsqldb(target: &Target) -> Result<Box<dyn Database>, Failure> {
    Bridged::make(&HSQLDB, target)
}

/// Derby.
pub(super) fn derby(target: &Target) -> Result<Box<dyn Database>, Failure> {
    Bridged::make(&DERBY, target)
}

/// `DuckDB`.
pub(super) fn duckdb(target: &Target) -> Result<Box<dyn Database>, Failure> {
    Bridged::make(&DUCKDB, target)
}

/// Turso.
pub(super) fn turso(target: &Target) -> Result<Box<dyn Database>, Failure> {
    Bridged::make(&TURSO, target)
}

static H2: Kind = Kind {
    dialect: Dialect {
        name: "H2",
        aborts: &[
            ("40001 ", "deadlock"),
            ("HYT00 ", "timeout"),
            ("90131 ", "serialization failure"),
            ("23505 ", "unique violation"),
        ],
        text: "VARCHAR(1000000)",
    },
    adapter: &table::H2,
    levels: &[
        level("serializable", "level 8", "", ""),
        level("snapshot", "level 6", "", ""),
        level("repeatable-read", "level 4", "", ""),
        level("read-committed", "level 2", "", ""),
        level("read-uncommitted", "level 1", "", ""),
    ],
    runs: Runs::Java("jdbc:h2:{}/db;DB_CLOSE_DELAY=-1;LOCK_TIMEOUT=1000", &[]),
};

static HSQLDB: Kind = Kind {
    dialect: Dialect {
        name: "HSQLDB",
        aborts: &[
            ("40001 ", "serialization failure"),
            ("40502 ", "deadlock"),
            ("23505 ", "unique violation"),
        ],
        text: "VARCHAR(1000000)",
    },
    adapter: &table::HSQLDB,
    levels: &[
        level("serializable", "level 8", "", "locks"),
        level("read-committed", "level 2", "", "locks"),
        level("mvcc-serializable", "level 8", "", "mvcc"),
        level("mvcc-read-committed", "level 2", "", "mvcc"),
        level("mvlocks-serializable", "level 8", "", "mvlocks"),
    ],
    runs: Runs::Java("jdbc:hsqldb:file:{}/db;user=SA;hsqldb.tx=", &[]),
};

static DERBY: Kind = Kind {
    dialect: Dialect {
        name: "Derby",
        aborts: &[
            ("40001 ", "deadlock"),
            ("40XL1 ", "timeout"),
            ("23505 ", "unique violation"),
        ],
        text: "VARCHAR(32000)",
    },
    adapter: &table::DERBY,
    levels: &[
        level("serializable", "level 8", "", ""),
        level("repeatable-read", "level 4", "", ""),
        level("read-committed", "level 2", "", ""),
        level("read-uncommitted", "level 1", "", ""),
    ],
    runs: Runs::Java(
        "jdbc:derby:{}/db;create=true",
        &[
            "-Dderby.locks.waitTimeout=1",
            "-Dderby.locks.deadlockTimeout=0",
            "-Dderby.stream.error.file=/dev/null",
        ],
    ),
};

static DUCKDB: Kind = Kind {
    dialect: Dialect {
        name: "DuckDB",
        aborts: &[
            ("TransactionException ", "conflict"),
            ("ConstraintException ", "unique violation"),
            (
                "PRIMARY KEY or UNIQUE constraint violation",
                "unique violation",
            ),
        ],
        text: "VARCHAR",
    },
    adapter: &table::DUCKDB,
    levels: &[level("snapshot", "", "BEGIN", "")],
    runs: Runs::Python("duckdb"),
};

static TURSO: Kind = Kind {
    dialect: Dialect {
        name: "Turso",
        aborts: &[
            ("onflict", "conflict"),
            ("is locked", "busy"),
            ("usy", "busy"),
            ("UNIQUE constraint", "unique violation"),
        ],
        text: "TEXT",
    },
    adapter: &table::TURSO,
    levels: &[
        level("serializable", "", "BEGIN", ""),
        level("immediate", "", "BEGIN IMMEDIATE", ""),
        level(
            "concurrent",
            "",
            "BEGIN CONCURRENT",
            "PRAGMA journal_mode = 'mvcc'",
        ),
    ],
    runs: Runs::Python("turso"),
};

struct Bridged {
    kind: &'static Kind,
    level: &'static Level,
    directory: PathBuf,
    order: OrderBy,
    settings: Vec<(String, String)>,
    running: Mutex<Option<Bridge>>,
}

impl Bridged {
    fn make(kind: &'static Kind, target: &Target) -> Result<Box<dyn Database>, Failure> {
        let name = kind.adapter.name;
        let level = kind.levels.iter().find(|it| it.name == target.isolation);
        let level = level.ok_or_else(|| Failure::Fatal(format!("{name} has no such level")))?;
        let given = target.urls.first().map(PathBuf::from);
        let directory = given.unwrap_or_else(|| target.directory.join(format!("database.{name}")));
        let directory = std::path::absolute(directory);
        Ok(Box::new(Bridged {
            kind,
            level,
            directory: directory.map_err(|error| Failure::Fatal(error.to_string()))?,
            order: target.version_order,
            settings: kind.adapter.settings(target),
            running: Mutex::new(None),
        }))
    }

    fn setting(&self, name: &str) -> &str {
        let found = self.settings.iter().find(|(it, _)| it == name);
        found.map_or("", |(_, value)| value)
    }

    fn start(&self) -> Result<Bridge, Failure> {
        if self.directory.exists() {
            return Err(Failure::Fatal(format!(
                "{} is in the way: remove it, or name another directory",
                self.directory.display()
            )));
        }
        std::fs::create_dir_all(&self.directory)
            .map_err(|error| Failure::Fatal(format!("{}: {error}", self.directory.display())))?;
        let place = self.directory.display().to_string();
        let started = match self.kind.runs {
            Runs::Java(url, properties) => self.start_java(url, properties, &place),
            Runs::Python(module) => {
                let mut after = vec![module.to_owned(), format!("{place}/db")];
                after.extend((!self.level.setup.is_empty()).then(|| self.level.setup.to_owned()));
                Bridge::start(&bridge::PYTHON, self.setting("python"), &[], &after)
            }
        };
        if started.is_err() {
            let _ = std::fs::remove_dir_all(&self.directory);
        }
        started
    }

    fn start_java(&self, url: &str, properties: &[&str], place: &str) -> Result<Bridge, Failure> {
        let jar = self.setting("jar");
        if let Some(missing) = jar.split(':').find(|it| !Path::new(it).is_file()) {
            let name = self.kind.adapter.name;
            return Err(Failure::Fatal(format!(
                "{missing} was not found (Debian's package: lib{name}-java); --set jar=FILE names another"
            )));
        }
        let mut before: Vec<String> = properties.iter().map(|&it| it.to_owned()).collect();
        before.extend(["-cp".to_owned(), jar.to_owned()]);
        let after = [url.replace("{}", place) + self.level.setup];
        Bridge::start(&bridge::JAVA, self.setting("java"), &before, &after)
    }

    fn link(&self) -> Result<Box<dyn SqlLink>, Failure> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let bridge = match &mut *running {
            Some(bridge) => bridge,
            none => none.insert(self.start()?),
        };
        bridge.connect()
    }
}

impl Database for Bridged {
    fn version(&self) -> Result<String, Failure> {
        self.kind.dialect.version(&mut *self.link()?)
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.settings.clone()
    }

    fn prepare(&self, initially: Initially) -> Result<(), Failure> {
        self.kind.dialect.prepare(&mut *self.link()?, initially)
    }

    fn open(&self, _session: usize) -> Result<Box<dyn DatabaseSession>, Failure> {
        let mut link = self.link()?;
        if !self.level.open.is_empty()
            && let Err(refusal) = link.ask(self.level.open)?
        {
            let name = self.kind.dialect.name;
            return Err(Failure::Fatal(format!(
                "{name} does not take this level: {}",
                refusal.0
            )));
        }
        Ok(Box::new(SqlClient {
            link,
            dialect: self.kind.dialect,
            begin: self.level.begin.to_owned(),
            order: self.order,
            is_open: false,
        }))
    }

    fn clean(&self) -> Result<(), Failure> {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = None;
        std::fs::remove_dir_all(&self.directory)
            .map_err(|error| Failure::Fatal(format!("{}: {error}", self.directory.display())))
    }
}
