//! `MariaDB`, `MySQL` and Galera: one connection per session, spread over the nodes; version order from the row binlog,
//! by a rank column or by a trigger.
//!
//! The rank of a write comes back as `LAST_INSERT_ID`, because an UPDATE returns no row here. The binlog is complete once the
//! position that it had after the last commit was reached.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mysql::binlog::events::EventData;
use mysql::binlog::row::BinlogRow;
use mysql::binlog::value::BinlogValue;
use mysql::prelude::Queryable;
use mysql::{BinlogDumpFlags, BinlogRequest, Conn, DriverError, Opts, OptsBuilder, SslOpts, Value};

use super::tls::{self, TlsMode};
use super::{ReadsAt, Target, table};
use crate::adapter::{
    DELETED, Database, DatabaseSession, Failure, Initially, Key, OrderBy, SessionShare, SqlAnswer,
    StoredCell, VersionLog, Wrote,
};
use crate::address::redacted;

/// The database at a target.
pub(super) fn make(target: &Target) -> Result<Box<dyn Database>, Failure> {
    Ok(Box::new(Mariadb::new(target)?))
}

struct MariaDbNode {
    opts: Opts,
    tls: TlsMode,
    /// The address without its password, for messages.
    place: String,
}

impl MariaDbNode {
    fn connect(&self) -> mysql::Result<Conn> {
        match Conn::new(self.opts.clone()) {
            Err(mysql::Error::DriverError(DriverError::TlsNotSupported))
                if self.tls == TlsMode::Offered =>
            {
                Conn::new(OptsBuilder::from_opts(self.opts.clone()).ssl_opts(None))
            }
            connected => connected,
        }
    }
}

struct Mariadb {
    nodes: Vec<MariaDbNode>,
    level: String,
    order: OrderBy,
    settings: Vec<(String, String)>,
    /// Where transactions run that only read, of a primary with replicas.
    reads: Option<ReadsAt>,
    rows_at_first: AtomicBool,
    /// Where the binlog stood before the first transaction.
    start: Mutex<Option<(String, u64)>>,
}

impl Mariadb {
    fn new(target: &Target) -> Result<Self, Failure> {
        let node = |url: &String| {
            let place = redacted(url);
            let (url, wanted) = tls::take(url)?;
            let opts = Opts::from_url(&url)
                .map_err(|error| Failure::Fatal(format!("{place}: {error}")))?;
            let tls = (wanted.mode != TlsMode::Off).then(|| {
                SslOpts::default()
                    .with_root_cert_path(wanted.authority)
                    .with_danger_skip_domain_validation(wanted.mode == TlsMode::AnyName)
            });
            let builder = OptsBuilder::from_opts(opts)
                .tcp_connect_timeout(Some(Duration::from_secs(5)))
                .read_timeout(Some(Duration::from_secs(20)))
                .write_timeout(Some(Duration::from_secs(20)))
                .ssl_opts(tls)
                .prefer_socket(false);
            Ok(MariaDbNode {
                opts: Opts::from(builder),
                tls: wanted.mode,
                place,
            })
        };
        Ok(Mariadb {
            nodes: target.urls.iter().map(node).collect::<Result<_, _>>()?,
            level: target.isolation.replace('-', " ").to_uppercase(),
            order: target.version_order,
            settings: table::MARIADB.settings(target),
            reads: target.reads,
            rows_at_first: AtomicBool::new(false),
            start: Mutex::new(None),
        })
    }

    /// The node of a session, and what it may run there.
    fn place(&self, session: usize) -> (usize, SessionShare) {
        let nodes = self.nodes.len();
        let alike = (session % nodes, SessionShare::All);
        self.reads
            .map_or(alike, |reads| reads.place(session, nodes))
    }

    fn connect(&self, node: usize) -> Result<Conn, Failure> {
        let node = &self.nodes[node];
        let mut conn = node.connect().map_err(|error| {
            let words = format!("cannot connect to {}: {error}", node.place);
            match failure(&error) {
                Failure::Lost(_) => Failure::Lost(words),
                _ => Failure::Fatal(words),
            }
        })?;
        conn.query_drop(format!(
            "SET SESSION TRANSACTION ISOLATION LEVEL {}",
            self.level
        ))
        .map_err(|error| failure(&error))?;
        for (name, value) in self.settings.iter().filter(|(name, _)| name != "gtid") {
            expect_plain(name, value)?;
            conn.query_drop(format!("SET SESSION {name} = {value}"))
                .map_err(|error| failure(&error))?;
        }
        Ok(conn)
    }

    /// Waits until every node sees what the first one did.
    fn wait_for_nodes(&self, n_rows: usize) -> Result<(), Failure> {
        let since = Instant::now();
        for node in 1..self.nodes.len() {
            loop {
                let seen = self.connect(node).and_then(|mut conn| {
                    if self.reads.is_none() {
                        let query = "SET SESSION wsrep_sync_wait = 15";
                        conn.query_drop(query).map_err(|error| failure(&error))?;
                    }
                    let count = "SELECT COUNT(*) FROM kingsnake_registers";
                    let count = conn.query_first::<usize, _>(count);
                    count.map_err(|error| failure(&error))
                });
                let is_over = since.elapsed() > Duration::from_secs(30);
                match seen {
                    Ok(Some(n)) if n == n_rows => break,
                    Err(failure) if is_over => return Err(failure),
                    _ if is_over => {
                        return Err(Failure::Fatal(format!(
                            "node {node} does not follow the first: its rows are missing after 30 s"
                        )));
                    }
                    _ => std::thread::sleep(Duration::from_millis(50)),
                }
            }
        }
        Ok(())
    }

    fn has_setting(&self, name: &str) -> bool {
        self.settings
            .iter()
            .any(|(it, value)| it == name && value == "on")
    }
}

/// A value of a setting stands in a statement as it is, so it may only be a word or a number.
fn expect_plain(name: &str, value: &str) -> Result<(), Failure> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
    if !value.is_empty() && value.chars().all(is_plain) {
        return Ok(());
    }
    Err(Failure::Fatal(format!(
        "{name}={value}: a value is a word or a number, of letters, digits, _, - and ."
    )))
}

fn failure(error: &mysql::Error) -> Failure {
    match error {
        mysql::Error::MySqlError(cause) => match cause.code {
            1213 => Failure::Aborted("deadlock"),
            1205 => Failure::Aborted("timeout"),
            1020 => Failure::Aborted("serialization failure"),
            1062 => Failure::Aborted("unique violation"),
            1317 => Failure::Aborted("interrupted"),
            // Shutting down, no room, killed, or a node that has lost its cluster.
            1040 | 1047 | 1053 | 1077 | 1152 | 1184 | 1927 => Failure::Lost(error.to_string()),
            _ => Failure::Fatal(format!("MariaDB: {} ({})", cause.message, cause.code)),
        },
        mysql::Error::UrlError(_) => Failure::Fatal(error.to_string()),
        _ => Failure::Lost(error.to_string()),
    }
}

const NO_LOG: &str = "the order by the log needs a binlog (log_bin, binlog_format=ROW) and the rights to read it \
    (BINLOG MONITOR, REPLICATION SLAVE); --version-order rank or trigger does not";

/// Where the binlog stands.
fn position(conn: &mut Conn) -> Result<(String, u64), Failure> {
    // The first is MariaDB's and older MySQL's name, the second newer MySQL's.
    let row: Option<mysql::Row> = match conn.query_first("SHOW MASTER STATUS") {
        Err(mysql::Error::MySqlError(cause)) if cause.code != 1064 => {
            return Err(Failure::Fatal(format!("{}: {NO_LOG}", cause.message)));
        }
        Err(_) => conn.query_first("SHOW BINARY LOG STATUS"),
        shown => shown,
    }
    .map_err(|error| failure(&error))?;
    let position = row.and_then(|row| Some((row.get(0)?, row.get(1)?)));
    position.ok_or_else(|| Failure::Fatal(NO_LOG.to_owned()))
}

impl Database for Mariadb {
    fn version(&self) -> Result<String, Failure> {
        let mut conn = self.connect(0)?;
        let version: Option<String> = conn
            .query_first("SELECT VERSION()")
            .map_err(|error| failure(&error))?;
        let version = version.unwrap_or_default();
        let number = version.split('-').next().unwrap_or("");
        let name = if version.contains("MariaDB") {
            "MariaDB"
        } else {
            "MySQL"
        };
        let nodes = match self.nodes.len() {
            1 => String::new(),
            n if self.reads.is_none() => format!(", {n} Galera nodes"),
            n => format!(", a primary and {} replicas", n - 1),
        };
        Ok(format!("{name} {number}{nodes}"))
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.settings.clone()
    }

    fn node(&self, session: usize) -> Option<String> {
        let place = || match (self.place(session).0, self.reads) {
            (node, None) => format!("node {node}"),
            (0, Some(_)) => "primary".to_owned(),
            (node, Some(_)) => format!("replica {node}"),
        };
        (self.nodes.len() > 1).then(place)
    }

    fn runs(&self, session: usize) -> SessionShare {
        self.place(session).1
    }

    fn prepare(&self, initially: Initially) -> Result<(), Failure> {
        let mut conn = self.connect(0)?;
        let place = &self.nodes[0].place;
        let refused = |error: mysql::Error| match &error {
            mysql::Error::MySqlError(cause) if cause.code == 1050 => Failure::Fatal(format!(
                "a table of ours is in the way at {place}: {}; drop it, or name another database",
                cause.message
            )),
            mysql::Error::MySqlError(cause)
                if matches!(cause.code, 1044 | 1142 | 1227 | 1290 | 1419) =>
            {
                Failure::Fatal(format!(
                    "{} at {place}: collecting makes tables of its own, so it needs a user who may",
                    cause.message
                ))
            }
            _ => failure(&error),
        };
        let there: Option<String> = conn
            .query_first("SHOW TABLES LIKE 'kingsnake\\_%'")
            .map_err(refused)?;
        if let Some(table) = there {
            return Err(Failure::Fatal(format!(
                "a table {table} is in the way at {place}; drop it, or name another database"
            )));
        }
        let made = self.make(&mut conn, initially, &refused);
        if made.is_err() {
            // CREATE is not transactional here; what was created before the refusal must be removed.
            let _ = self.clean();
        }
        made
    }

    fn open(&self, session: usize) -> Result<Box<dyn DatabaseSession>, Failure> {
        Ok(Box::new(MariaDbClient {
            conn: self.connect(self.place(session).0)?,
            ranked: self.order == OrderBy::Rank,
            updates: self.rows_at_first.load(Ordering::Relaxed),
            gtid: self.has_setting("gtid"),
            has_written: false,
        }))
    }

    fn log(&self) -> Result<Option<VersionLog>, Failure> {
        match self.order {
            OrderBy::Log => {
                let start = self
                    .start
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner)
                    .clone();
                let mut conn = self.connect(0)?;
                let end = position(&mut conn)?;
                let start = start.unwrap_or_else(|| end.clone());
                read_binlog(conn, &start, &end).map(Some)
            }
            OrderBy::Trigger => {
                let mut conn = self.connect(0)?;
                let versions = conn
                    .query("SELECT k, v FROM kingsnake_log ORDER BY id")
                    .map_err(|error| failure(&error))?;
                Ok(Some(VersionLog {
                    versions,
                    is_complete: true,
                }))
            }
            _ => Ok(None),
        }
    }

    fn clean(&self) -> Result<(), Failure> {
        let mut conn = self.connect(0)?;
        conn.query_drop("DROP TABLE IF EXISTS kingsnake_registers, kingsnake_lists, kingsnake_log")
            .map_err(|error| failure(&error))
    }
}

impl Mariadb {
    /// Makes the tables, their rows and triggers.
    fn make(
        &self,
        conn: &mut Conn,
        initially: Initially,
        refused: &dyn Fn(mysql::Error) -> Failure,
    ) -> Result<(), Failure> {
        for table in TABLES {
            conn.query_drop(table).map_err(refused)?;
        }
        let rows = initially.rows();
        let n_rows = rows.len();
        if !rows.is_empty() {
            let all = matches!(initially, Initially::Rows(_));
            self.rows_at_first.store(all, Ordering::Relaxed);
            conn.query_drop("START TRANSACTION").map_err(refused)?;
            conn.exec_batch("INSERT INTO kingsnake_registers VALUES (?, 0, ?, 0)", rows)
                .map_err(refused)?;
            conn.query_drop("COMMIT").map_err(refused)?;
        }
        self.wait_for_nodes(n_rows)?;
        match self.order {
            OrderBy::Trigger => TRIGGERS
                .iter()
                .try_for_each(|it| conn.query_drop(it).map_err(refused)),
            OrderBy::Log => position(conn).map(|position| {
                *self
                    .start
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner) = Some(position);
            }),
            _ => Ok(()),
        }
    }
}

const TABLES: [&str; 2] = [
    "CREATE TABLE kingsnake_registers (k BIGINT PRIMARY KEY, v BIGINT NOT NULL, b BIGINT NOT NULL, n BIGINT NOT NULL) ENGINE=InnoDB",
    "CREATE TABLE kingsnake_lists (k BIGINT PRIMARY KEY, v LONGTEXT NOT NULL) ENGINE=InnoDB",
];

const TRIGGERS: [&str; 6] = [
    "CREATE TABLE kingsnake_log (id BIGINT PRIMARY KEY AUTO_INCREMENT, k BIGINT NOT NULL, v BIGINT NOT NULL) ENGINE=InnoDB",
    "CREATE TRIGGER kingsnake_1 AFTER INSERT ON kingsnake_registers FOR EACH ROW INSERT INTO kingsnake_log (k, v) VALUES (new.k, new.v)",
    "CREATE TRIGGER kingsnake_2 AFTER UPDATE ON kingsnake_registers FOR EACH ROW INSERT INTO kingsnake_log (k, v) VALUES (new.k, new.v)",
    "CREATE TRIGGER kingsnake_3 AFTER INSERT ON kingsnake_lists FOR EACH ROW INSERT INTO kingsnake_log (k, v) VALUES (new.k, new.v)",
    "CREATE TRIGGER kingsnake_4 AFTER UPDATE ON kingsnake_lists FOR EACH ROW INSERT INTO kingsnake_log (k, v) VALUES (new.k, SUBSTRING_INDEX(new.v, ',', -1))",
    "CREATE TRIGGER kingsnake_5 AFTER DELETE ON kingsnake_registers FOR EACH ROW INSERT INTO kingsnake_log (k, v) VALUES (old.k, -1)",
];

/// The versions between two positions.
fn read_binlog(
    conn: Conn,
    start: &(String, u64),
    end: &(String, u64),
) -> Result<VersionLog, Failure> {
    let request = BinlogRequest::new(4_000_000_001)
        .with_filename(start.0.as_bytes())
        .with_pos(start.1)
        .with_flags(BinlogDumpFlags::BINLOG_DUMP_NON_BLOCK);
    let stream = conn
        .get_binlog_stream(request)
        .map_err(|error| failure(&error))?;
    let mut log = VersionLog::default();
    let mut file = start.0.clone();
    let mut tables = HashMap::new();
    for event in stream {
        let event = event.map_err(|error| failure(&error))?;
        let at = u64::from(event.header().log_pos());
        // Events that this client does not know are none of rows.
        match event.read_data().ok().flatten() {
            Some(EventData::RotateEvent(rotate)) => file = rotate.name().into_owned(),
            Some(EventData::TableMapEvent(table)) => {
                tables.insert(table.table_id(), table.into_owned());
            }
            Some(EventData::RowsEvent(rows)) => {
                if let Some(table) = tables.get(&rows.table_id()) {
                    let name = table.table_name();
                    for row in rows.rows(table) {
                        let (before, after) =
                            row.map_err(|error| Failure::Fatal(format!("binlog: {error}")))?;
                        log.versions.extend(match (before, after) {
                            (_, Some(after)) => version(&name, &after),
                            (Some(before), None) => {
                                key_of(&name, &before).map(|key| (key, DELETED))
                            }
                            (None, None) => None,
                        });
                    }
                }
            }
            _ => {}
        }
        log.is_complete |= file == end.0 && at >= end.1;
        if log.is_complete {
            break;
        }
    }
    log.is_complete |= start == end;
    Ok(log)
}

/// A column as a number; of a list the last one.
fn number(row: &BinlogRow, at: usize) -> Option<i64> {
    let Some(BinlogValue::Value(value)) = row.as_ref(at) else {
        return None;
    };
    match value {
        Value::Int(number) => Some(*number),
        Value::UInt(number) => i64::try_from(*number).ok(),
        Value::Bytes(text) => std::str::from_utf8(text)
            .ok()?
            .rsplit(',')
            .next()?
            .parse()
            .ok(),
        _ => None,
    }
}

fn key_of(table: &str, row: &BinlogRow) -> Option<Key> {
    let is_ours = matches!(table, "kingsnake_registers" | "kingsnake_lists");
    is_ours.then(|| number(row, 0)).flatten()
}

fn version(table: &str, row: &BinlogRow) -> Option<(Key, i64)> {
    let version = (key_of(table, row)?, number(row, 1)?);
    (version.1 != 0).then_some(version)
}

#[allow(clippy::struct_excessive_bools)] // Each is a switch of its own.
struct MariaDbClient {
    conn: Conn,
    ranked: bool,
    updates: bool,
    gtid: bool,
    has_written: bool,
}

impl DatabaseSession for MariaDbClient {
    fn begin(&mut self) -> Result<(), Failure> {
        self.has_written = false;
        self.run("START TRANSACTION")
    }

    fn read(&mut self, key: Key) -> Result<Option<StoredCell>, Failure> {
        let row: Option<(i64, i64)> = self
            .conn
            .exec_first("SELECT v, b FROM kingsnake_registers WHERE k = ?", (key,))
            .map_err(|error| failure(&error))?;
        Ok(row.map(|(value, beside)| StoredCell { value, beside }))
    }

    fn write(&mut self, key: Key, cell: StoredCell) -> Result<Wrote, Failure> {
        self.has_written = true;
        let of = |error: mysql::Error| failure(&error);
        let (value, beside) = (cell.value, cell.beside);
        let mut n_updated = 0;
        if self.updates {
            let update = "UPDATE kingsnake_registers SET v = ?, b = ?, n = LAST_INSERT_ID(n + 1) WHERE k = ?";
            self.conn
                .exec_drop(update, (value, beside, key))
                .map_err(of)?;
            n_updated = self.conn.affected_rows();
        }
        if n_updated == 0 {
            let upsert = "INSERT INTO kingsnake_registers VALUES (?, ?, ?, LAST_INSERT_ID(1))
                ON DUPLICATE KEY UPDATE v = VALUES(v), b = VALUES(b), n = LAST_INSERT_ID(n + 1)";
            self.conn
                .exec_drop(upsert, (key, value, beside))
                .map_err(of)?;
        }
        let rank = self.ranked.then(|| self.conn.last_insert_id() as i64);
        Ok(Wrote { rank, txn: None })
    }

    fn read_list(&mut self, key: Key) -> Result<Vec<i64>, Failure> {
        let text: Option<String> = self
            .conn
            .exec_first("SELECT v FROM kingsnake_lists WHERE k = ?", (key,))
            .map_err(|error| failure(&error))?;
        super::parse_list(text.as_deref().unwrap_or(""))
    }

    fn append(&mut self, key: Key, value: i64) -> Result<Wrote, Failure> {
        self.has_written = true;
        let upsert = "INSERT INTO kingsnake_lists VALUES (?, ?) ON DUPLICATE KEY UPDATE v = CONCAT(v, ',', VALUES(v))";
        self.conn
            .exec_drop(upsert, (key, value.to_string()))
            .map_err(|error| failure(&error))?;
        Ok(Wrote::default())
    }

    fn range(&mut self, low: Key, high: Key) -> Result<Vec<(Key, i64)>, Failure> {
        self.conn
            .exec(
                "SELECT k, v FROM kingsnake_registers WHERE k BETWEEN ? AND ? ORDER BY k",
                (low, high),
            )
            .map_err(|error| failure(&error))
    }

    fn delete(&mut self, key: Key) -> Result<Option<Wrote>, Failure> {
        self.has_written = true;
        let of = |error: mysql::Error| failure(&error);
        if self.ranked {
            let delete = "DELETE FROM kingsnake_registers WHERE k = ? RETURNING n";
            let rank: Option<i64> = self.conn.exec_first(delete, (key,)).map_err(of)?;
            return Ok(rank.map(|rank| Wrote {
                rank: Some(rank + 1),
                txn: None,
            }));
        }
        let delete = "DELETE FROM kingsnake_registers WHERE k = ?";
        self.conn.exec_drop(delete, (key,)).map_err(of)?;
        Ok((self.conn.affected_rows() > 0).then(Wrote::default))
    }

    fn sql(&mut self, statement: &str) -> Result<SqlAnswer, Failure> {
        self.has_written = true;
        let of = |error: mysql::Error| failure(&error);
        let mut result = self.conn.query_iter(statement).map_err(of)?;
        let columns = result.columns();
        let columns = columns.as_ref().iter();
        let mut answer = SqlAnswer {
            columns: columns.map(|it| it.name_str().into_owned()).collect(),
            rows: Vec::new(),
            changed: result.affected_rows(),
        };
        for row in result.by_ref() {
            let values = row.map_err(of)?.unwrap();
            answer.rows.push(values.iter().map(cell).collect());
        }
        Ok(answer)
    }

    fn commit(&mut self) -> Result<Option<String>, Failure> {
        // A commit that was interrupted may have happened even so.
        self.run("COMMIT").map_err(|failure| match failure {
            Failure::Aborted("interrupted") => {
                Failure::Lost("the commit was interrupted".to_owned())
            }
            other => other,
        })?;
        if !(self.gtid && self.has_written) {
            return Ok(None);
        }
        // The commit has happened; failing to get its name does not undo it.
        Ok(self.conn.query_first("SELECT @@last_gtid").ok().flatten())
    }

    fn abort(&mut self) -> Result<(), Failure> {
        self.run("ROLLBACK")
    }
}

/// A value as a text.
fn cell(value: &Value) -> Option<String> {
    match value {
        Value::NULL => None,
        Value::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        other => Some(other.as_sql(true)),
    }
}

impl MariaDbClient {
    fn run(&mut self, statement: &str) -> Result<(), Failure> {
        self.conn
            .query_drop(statement)
            .map_err(|error| failure(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_cannot_carry_a_statement() {
        for value in ["2", "on", "READ-COMMITTED", "0.5"] {
            assert!(expect_plain("x", value).is_ok(), "{value}");
        }
        for value in [
            "",
            "2; DROP TABLE t",
            "2, GLOBAL y = 1",
            "(SELECT 1)",
            "'a'",
            "@@x",
        ] {
            assert!(expect_plain("x", value).is_err(), "{value}");
        }
    }
}
