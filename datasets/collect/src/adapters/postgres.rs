//! `PostgreSQL`: a connection a session, version order by logical decoding, by a rank column or by a trigger.
//!
//! Sequential scans are off, or else SSI locks whole tables; deadlocks are found after 20 ms. The log is complete only up to
//! an end mark that is written with synchronous commit; without it the tail would be missing silently.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use postgres::config::SslMode;
use postgres::error::SqlState;
use postgres::{Client as Connection, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::postgres_session::{PostgresClient, Statements};
use super::tls::{self, TlsMode};
use super::{ReadsAt, Target, table};
use crate::adapter::{
    DELETED, Database, DatabaseSession, Failure, Initially, Key, OrderBy, Resolution, SessionShare,
    VersionLog,
};
use crate::address::redacted;

/// The database at a target.
pub(super) fn make(target: &Target) -> Result<Box<dyn Database>, Failure> {
    Ok(Box::new(Postgres::new(target)?))
}

const TABLES: [&str; 2] = ["kingsnake_registers", "kingsnake_lists"];
const SLOT: &str = "kingsnake";
/// The oldest version that has the functions which are used here.
const OLDEST: u32 = 10;

struct Postgres {
    /// The primary, then its standbys.
    nodes: Vec<Node>,
    reads: ReadsAt,
    begin: String,
    order: OrderBy,
    settings: Vec<(String, String)>,
    rows_at_first: AtomicBool,
}

struct Node {
    config: Config,
    tls: MakeRustlsConnect,
    /// The address without its password, for messages.
    place: String,
}

impl Node {
    fn new(url: &str) -> Result<Self, Failure> {
        let place = redacted(url);
        let (url, wanted) = tls::take(url)?;
        let mut config: Config = url
            .parse()
            .map_err(|error| Failure::Fatal(format!("{place}: {error}")))?;
        config
            .application_name("kingsnake")
            .connect_timeout(Duration::from_secs(5))
            .ssl_mode(match wanted.mode {
                TlsMode::Off => SslMode::Disable,
                TlsMode::Offered => SslMode::Prefer,
                TlsMode::Required | TlsMode::AnyName => SslMode::Require,
            });
        Ok(Node {
            config,
            tls: tls::connector(&wanted)?,
            place,
        })
    }
}

impl Postgres {
    fn new(target: &Target) -> Result<Self, Failure> {
        let level = target.isolation.replace('-', " ").to_uppercase();
        let nodes: Vec<Node> = target
            .urls
            .iter()
            .map(|url| Node::new(url))
            .collect::<Result<_, _>>()?;
        let reads = target.reads.unwrap_or(ReadsAt::Any);
        if level == "SERIALIZABLE" && nodes.len() > 1 && reads != ReadsAt::Primary {
            return Err(Failure::Fatal(
                "a standby of PostgreSQL does not run SERIALIZABLE; choose --isolation repeatable-read, or --reads primary".to_owned(),
            ));
        }
        Ok(Postgres {
            nodes,
            reads,
            begin: format!("BEGIN ISOLATION LEVEL {level}"),
            order: target.version_order,
            settings: table::POSTGRES.settings(target),
            rows_at_first: AtomicBool::new(false),
        })
    }

    /// The address of the primary, for messages.
    fn place(&self) -> &str {
        self.nodes.first().map_or("", |it| &it.place)
    }

    fn connect(&self) -> Result<Connection, Failure> {
        self.connect_to(0)
    }

    fn connect_to(&self, node: usize) -> Result<Connection, Failure> {
        let node = &self.nodes[node];
        let mut connected = node.config.connect(node.tls.clone());
        // A server that is starting or recovering says so, and is there in a moment.
        let since = Instant::now();
        while let Err(error) = &connected
            && error.code() == Some(&SqlState::CANNOT_CONNECT_NOW)
            && since.elapsed() < Duration::from_secs(20)
        {
            std::thread::sleep(Duration::from_millis(20));
            connected = node.config.connect(node.tls.clone());
        }
        let mut connection = connected.map_err(|error| {
            let words = format!("cannot connect to {}: {}", node.place, told(&error));
            match error.code() {
                // It is starting, stopping, or has no room yet.
                Some(code) if is_passing(code) => Failure::Lost(words),
                None if is_of_connection(&error) => Failure::Lost(words),
                _ => Failure::Fatal(words),
            }
        })?;
        for (name, value) in &self.settings {
            if name == "snapshots" {
                continue;
            }
            let set = connection.execute("SELECT set_config($1, $2, false)", &[name, value]);
            match set {
                // Only a superuser may change it; the server's own is kept.
                Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {}
                Err(error) => return Err(failure(&error)),
                Ok(_) => {}
            }
        }
        Ok(connection)
    }

    fn wait_for_ends(&self, connection: &mut Connection) -> Result<(), Failure> {
        // A commit under way when its connection was lost may still be working.
        for _ in 0..100 {
            let row = connection
                .query_one(
                    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'kingsnake' AND pid <> pg_backend_pid() AND state <> 'idle'",
                    &[],
                )
                .map_err(|error| failure(&error))?;
            if row.get::<_, i64>(0) == 0 {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err(Failure::Fatal(format!(
            "transactions are still running on {}",
            self.place()
        )))
    }

    /// Each node must be what its place says.
    fn check_roles(&self) -> Result<(), Failure> {
        for (number, node) in self.nodes.iter().enumerate() {
            let row = self
                .connect_to(number)?
                .query_one("SELECT pg_is_in_recovery()", &[]);
            let is_standby: bool = row.map_err(|error| failure(&error))?.get(0);
            if is_standby != (number > 0) {
                let role = if is_standby {
                    "a standby"
                } else {
                    "no standby"
                };
                return Err(Failure::Fatal(format!(
                    "{} is {role}; give the address of the primary first, then those of its standbys",
                    node.place
                )));
            }
        }
        Ok(())
    }

    /// The tables are on a standby when it has applied what made them.
    fn wait_for_standbys(&self, primary: &mut Connection) -> Result<(), Failure> {
        let of = |error: postgres::Error| failure(&error);
        for (number, node) in self.nodes.iter().enumerate().skip(1) {
            let row = primary.query_one("SELECT pg_current_wal_lsn()::text", &[]);
            let reached: String = row.map_err(of)?.get(0);
            let mut standby = self.connect_to(number)?;
            let query = "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn AND to_regclass('kingsnake_registers') IS NOT NULL";
            let since = Instant::now();
            while standby
                .query_one(query, &[&reached])
                .map_err(of)?
                .get::<_, Option<bool>>(0)
                != Some(true)
            {
                if since.elapsed() > Duration::from_secs(20) {
                    self.clean()?;
                    return Err(Failure::Fatal(format!(
                        "{} did not get the tables in 20 s: is it a standby of {}?",
                        node.place,
                        self.place()
                    )));
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(())
    }

    fn decoded(connection: &mut Connection) -> Result<VersionLog, Failure> {
        let whole = |error: postgres::Error| failure(&error);
        connection
            .batch_execute("SET synchronous_commit = on")
            .map_err(whole)?;
        connection
            .execute(
                "SELECT pg_logical_emit_message(true, 'kingsnake', 'end')",
                &[],
            )
            .map_err(whole)?;
        let rows = connection
            .query(
                "SELECT data FROM pg_logical_slot_get_changes($1, NULL, NULL)",
                &[&SLOT],
            )
            .map_err(whole)?;
        let mut log = VersionLog::default();
        for row in rows {
            let line: &str = row.get(0);
            if line.starts_with("message:") && line.contains("prefix: kingsnake") {
                log.is_complete = true;
            } else if let Some(version) = decode(line) {
                log.versions.push(version);
            }
        }
        Ok(log)
    }
}

fn plural(standbys: usize) -> String {
    let end = if standbys == 1 { "" } else { "s" };
    format!("{standbys} standby{end}")
}

/// A line of `test_decoding` as a version; nothing where it is none, or an initial value.
fn decode(line: &str) -> Option<(Key, i64)> {
    let rest = line.strip_prefix("table ")?;
    let rest = &rest[rest.find("kingsnake_")?..];
    let (table, rest) = rest.split_once(": ")?;
    let (action, rest) = rest.split_once(": ")?;
    if !matches!(action, "INSERT" | "UPDATE" | "DELETE") {
        return None;
    }
    let field = |name: &str| {
        let at = rest.find(name)? + name.len();
        Some(rest[at..].split([' ', '\'']).next().unwrap_or(""))
    };
    let key = field("k[bigint]:")?.parse().ok()?;
    if action == "DELETE" {
        return Some((key, DELETED));
    }
    let value = if table == TABLES[0] {
        field("v[bigint]:")?
    } else {
        field("v[text]:'")?.rsplit(',').next()?
    };
    let value = value.parse().ok()?;
    (value != 0).then_some((key, value))
}

fn told(error: &postgres::Error) -> String {
    match error.as_db_error() {
        Some(cause) => format!("{} ({})", cause.message(), cause.code().code()),
        None => match std::error::Error::source(error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        },
    }
}

/// Whether the connection failed, rather than what was sent over it.
fn is_of_connection(error: &postgres::Error) -> bool {
    let cause = std::error::Error::source(error);
    error.is_closed()
        || cause.is_some_and(<dyn std::error::Error>::is::<std::io::Error>)
        || error.to_string().contains("timeout")
}

/// Whether the server may be there again in a moment.
fn is_passing(code: &SqlState) -> bool {
    matches!(&code.code()[..2], "57" | "53" | "08") || code.code() == "55006"
}

/// What an error means for the transaction.
pub(super) fn failure(error: &postgres::Error) -> Failure {
    let Some(code) = error.code() else {
        return if is_of_connection(error) {
            Failure::Lost(told(error))
        } else {
            Failure::Fatal(format!("PostgreSQL: {}", told(error)))
        };
    };
    match code.code() {
        "40001" => Failure::Aborted("serialization failure"),
        "40P01" => Failure::Aborted("deadlock"),
        "55P03" | "57014" => Failure::Aborted("timeout"),
        "23505" => Failure::Aborted("unique violation"),
        _ if is_passing(code) => Failure::Lost(told(error)),
        _ => Failure::Fatal(format!("PostgreSQL: {}", told(error))),
    }
}

impl Database for Postgres {
    fn version(&self) -> Result<String, Failure> {
        let mut connection = self.connect()?;
        let row = connection
            .query_one("SHOW server_version", &[])
            .map_err(|error| failure(&error))?;
        let version: String = row.get(0);
        let number = version.split(' ').next().unwrap_or("");
        let major = number
            .split('.')
            .next()
            .and_then(|it| it.parse::<u32>().ok());
        if major.is_some_and(|major| major < OLDEST) {
            return Err(Failure::Fatal(format!(
                "{} is PostgreSQL {number}; {OLDEST} and newer are collected from",
                self.place()
            )));
        }
        self.check_roles()?;
        Ok(match self.nodes.len() {
            1 => format!("PostgreSQL {number}"),
            nodes => format!("PostgreSQL {number} with {}", plural(nodes - 1)),
        })
    }

    fn node(&self, session: usize) -> Option<String> {
        let name = match self.reads.place(session, self.nodes.len()).0 {
            0 => "primary".to_owned(),
            _ if self.nodes.len() == 2 => "standby".to_owned(),
            node => format!("standby {node}"),
        };
        (self.nodes.len() > 1).then_some(name)
    }

    fn runs(&self, session: usize) -> SessionShare {
        self.reads.place(session, self.nodes.len()).1
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.settings.clone()
    }

    fn prepare(&self, initially: Initially) -> Result<(), Failure> {
        let mut connection = self.connect()?;
        let refused = |error: postgres::Error| match error.code() {
            Some(code) if *code == SqlState::DUPLICATE_TABLE => Failure::Fatal(format!(
                "{} at {}: drop it, or name another database",
                told(&error).replace("already exists", "is in the way"),
                self.place()
            )),
            Some(code)
                if *code == SqlState::INSUFFICIENT_PRIVILEGE
                    || *code == SqlState::READ_ONLY_SQL_TRANSACTION =>
            {
                Failure::Fatal(format!(
                    "{} at {}: collecting makes tables of its own, so it needs a user who may",
                    told(&error),
                    self.place()
                ))
            }
            _ => failure(&error),
        };
        let mut made = connection.transaction().map_err(refused)?;
        made.batch_execute(
            "CREATE TABLE kingsnake_registers (k BIGINT PRIMARY KEY, v BIGINT NOT NULL, b BIGINT NOT NULL, n BIGINT NOT NULL);
             CREATE TABLE kingsnake_lists (k BIGINT PRIMARY KEY, v TEXT NOT NULL);",
        )
        .map_err(refused)?;
        let rows = initially.rows();
        if !rows.is_empty() {
            let all = matches!(initially, Initially::Rows(_));
            self.rows_at_first.store(all, Ordering::Relaxed);
            let (keys, numbers): (Vec<i64>, Vec<i64>) = rows.into_iter().unzip();
            made.execute(
                "INSERT INTO kingsnake_registers SELECT k, 0, b, 0 FROM unnest($1::bigint[], $2::bigint[]) AS t (k, b)",
                &[&keys, &numbers],
            )
            .map_err(refused)?;
        }
        if matches!(initially, Initially::NumberedRows(_)) {
            made.batch_execute("CREATE INDEX ON kingsnake_registers (b)")
                .map_err(refused)?;
        }
        if self.order == OrderBy::Trigger {
            made.batch_execute(TRIGGER).map_err(refused)?;
        }
        made.commit().map_err(refused)?;
        if self.order == OrderBy::Log {
            let slot = connection.execute(
                "SELECT pg_create_logical_replication_slot($1, 'test_decoding')",
                &[&SLOT],
            );
            if let Err(error) = slot {
                self.clean()?;
                return Err(Failure::Fatal(format!(
                    "{} at {}: the order by the log needs wal_level = logical and the right to replicate; \
                     --version-order rank or trigger does not",
                    told(&error),
                    self.place()
                )));
            }
        }
        self.wait_for_standbys(&mut connection)
    }

    fn open(&self, session: usize) -> Result<Box<dyn DatabaseSession>, Failure> {
        let (node, _) = self.reads.place(session, self.nodes.len());
        let mut connection = self.connect_to(node)?;
        let snapshots = self
            .settings
            .iter()
            .any(|(name, value)| name == "snapshots" && value == "on");
        let snapshot = if snapshots {
            "txid_current_snapshot()::text"
        } else {
            "NULL::text"
        };
        let name = ", txid_current()::text";
        let insert = format!(
            "INSERT INTO kingsnake_registers AS r VALUES ($1, $2, $3, 1)
             ON CONFLICT (k) DO UPDATE SET v = excluded.v, b = excluded.b, n = r.n + 1 RETURNING n{name}"
        );
        let mut prepare = |text: &str| connection.prepare(text).map_err(|error| failure(&error));
        let statements = Statements {
            read: prepare(&format!("SELECT v, b, {snapshot} FROM kingsnake_registers WHERE k = $1"))?,
            update: prepare(&format!(
                "UPDATE kingsnake_registers SET v = $2, b = $3, n = n + 1 WHERE k = $1 RETURNING n{name}"
            ))?,
            insert: prepare(&insert)?,
            range: prepare(&format!(
                "SELECT k, v, {snapshot} FROM kingsnake_registers WHERE k BETWEEN $1 AND $2 ORDER BY k"
            ))?,
            list: prepare(&format!("SELECT v, {snapshot} FROM kingsnake_lists WHERE k = $1"))?,
            append: prepare(&format!(
                "INSERT INTO kingsnake_lists AS l VALUES ($1, $2)
                 ON CONFLICT (k) DO UPDATE SET v = l.v || ',' || excluded.v RETURNING 1::bigint{name}"
            ))?,
            delete: prepare(&format!(
                "DELETE FROM kingsnake_registers WHERE k = $1 RETURNING n + 1{name}"
            ))?,
        };
        Ok(Box::new(PostgresClient {
            connection,
            statements,
            conditions: None,
            begin: self.begin.clone(),
            name: None,
            ranked: self.order == OrderBy::Rank,
            updates: self.rows_at_first.load(Ordering::Relaxed),
            snapshots,
            // A standby gives no transaction a name.
            names: snapshots && node == 0,
            snapshot: String::new(),
        }))
    }

    fn log(&self) -> Result<Option<VersionLog>, Failure> {
        let mut connection = self.connect()?;
        self.wait_for_ends(&mut connection)?;
        match self.order {
            OrderBy::Log => Self::decoded(&mut connection).map(Some),
            OrderBy::Trigger => {
                let rows = connection
                    .query("SELECT k, v FROM kingsnake_log ORDER BY id", &[])
                    .map_err(|error| failure(&error))?;
                let versions = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
                Ok(Some(VersionLog {
                    versions,
                    is_complete: true,
                }))
            }
            _ => Ok(None),
        }
    }

    fn resolve(&self, txn: &str) -> Resolution {
        let Ok(mut connection) = self.connect() else {
            return Resolution::Unknown;
        };
        for _ in 0..40 {
            let Ok(row) = connection.query_one("SELECT txid_status($1::text::bigint)", &[&txn])
            else {
                return Resolution::Unknown;
            };
            match row.get::<_, Option<&str>>(0) {
                Some("committed") => return Resolution::Committed,
                Some("aborted") => return Resolution::Aborted,
                Some("in progress") => std::thread::sleep(Duration::from_millis(50)),
                _ => return Resolution::Unknown,
            }
        }
        Resolution::Unknown
    }

    fn clean(&self) -> Result<(), Failure> {
        let mut connection = self.connect()?;
        if self.order == OrderBy::Log {
            connection
                .execute(
                    "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = $1 AND NOT active",
                    &[&SLOT],
                )
                .map_err(|error| failure(&error))?;
        }
        connection
            .batch_execute(
                "DROP TABLE IF EXISTS kingsnake_registers, kingsnake_lists, kingsnake_log;
                 DROP FUNCTION IF EXISTS kingsnake_note();",
            )
            .map_err(|error| failure(&error))
    }
}

const TRIGGER: &str = "
    CREATE TABLE kingsnake_log (id BIGSERIAL PRIMARY KEY, k BIGINT NOT NULL, v BIGINT NOT NULL);
    CREATE FUNCTION kingsnake_note() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN IF tg_op = ''DELETE'' THEN INSERT INTO kingsnake_log (k, v) VALUES (old.k, -1);
         ELSE INSERT INTO kingsnake_log (k, v) VALUES (new.k, substring(new.v::text from ''[^,]*$'')::bigint); END IF; RETURN NULL; END';
    CREATE TRIGGER kingsnake_note AFTER INSERT OR UPDATE OR DELETE ON kingsnake_registers
        FOR EACH ROW EXECUTE PROCEDURE kingsnake_note();
    CREATE TRIGGER kingsnake_note AFTER INSERT OR UPDATE ON kingsnake_lists
        FOR EACH ROW EXECUTE PROCEDURE kingsnake_note();";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_log_become_versions() {
        let line = "table public.kingsnake_registers: UPDATE: k[bigint]:3 v[bigint]:8 b[bigint]:-5 n[bigint]:4";
        assert_eq!(decode(line), Some((3, 8)));
        let line = "table public.kingsnake_lists: UPDATE: k[bigint]:3 v[text]:'1,2,77'";
        assert_eq!(decode(line), Some((3, 77)));
        let line = "table public.kingsnake_registers: INSERT: k[bigint]:3 v[bigint]:0 b[bigint]:0 n[bigint]:0";
        assert_eq!(decode(line), None);
        let line = "table public.kingsnake_registers: DELETE: k[bigint]:3";
        assert_eq!(decode(line), Some((3, DELETED)));
        assert_eq!(decode("BEGIN 774"), None);
    }
}
