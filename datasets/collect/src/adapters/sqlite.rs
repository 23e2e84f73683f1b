//! `SQLite`, compiled in. A session is a connection; the file is the collection's own unless a path is given.
//!
//! Write-ahead log, no synchronisation with the disk (only a crash of the machine would show it). `SQLite` promises
//! serializability, except with a shared cache and `read_uncommitted`.

use std::path::PathBuf;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, params};

use super::Target;
use crate::adapter::{
    Aggregate, Chosen, Database, DatabaseSession, Failure, Initially, Key, OrderBy, SqlAnswer,
    StoredCell, VersionLog, Wrote,
};

/// The database at a target.
#[allow(clippy::unnecessary_wraps)] // Others can fail.
pub(super) fn make(target: &Target) -> Result<Box<dyn Database>, Failure> {
    Ok(Box::new(Sqlite::new(target)))
}

struct Sqlite {
    path: PathBuf,
    is_ours: bool,
    begin: &'static str,
    shares_cache: bool,
    read_uncommitted: bool,
    order: OrderBy,
}

impl Sqlite {
    fn new(target: &Target) -> Self {
        let isolation = target.isolation.as_str();
        Sqlite {
            path: match target.urls.first() {
                Some(path) => PathBuf::from(path),
                None => target.directory.join("database.sqlite"),
            },
            is_ours: target.urls.is_empty(),
            begin: if isolation == "immediate" {
                "BEGIN IMMEDIATE"
            } else {
                "BEGIN"
            },
            shares_cache: matches!(isolation, "shared-cache" | "read-uncommitted"),
            read_uncommitted: isolation == "read-uncommitted",
            order: target.version_order,
        }
    }

    fn connect(&self) -> Result<Connection, Failure> {
        let path = self.path.display();
        let cache = if self.shares_cache {
            "shared"
        } else {
            "private"
        };
        // Question marks and the like would end the path within a URI.
        let escaped = path
            .to_string()
            .replace('%', "%25")
            .replace('?', "%3f")
            .replace('#', "%23");
        let uri = format!("file:{escaped}?cache={cache}");
        let flags = OpenFlags::default() | OpenFlags::SQLITE_OPEN_URI;
        let cannot =
            |error: rusqlite::Error| Failure::Fatal(format!("cannot open {path}: {error}"));
        let connection = Connection::open_with_flags(uri, flags).map_err(cannot)?;
        connection.busy_handler(Some(wait)).map_err(cannot)?;
        connection.set_prepared_statement_cache_capacity(32);
        let settings =
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; PRAGMA wal_autocheckpoint=10000;";
        connection.execute_batch(settings).map_err(cannot)?;
        if self.read_uncommitted {
            connection
                .execute_batch("PRAGMA read_uncommitted=1")
                .map_err(cannot)?;
        }
        Ok(connection)
    }
}

/// Waits for another session's lock, up to about a second.
fn wait(times: i32) -> bool {
    std::thread::sleep(Duration::from_micros(50));
    times < 10_000
}

#[allow(clippy::needless_pass_by_value)] // As `map_err` gives it.
fn fatal(error: rusqlite::Error) -> Failure {
    match error.sqlite_error() {
        Some(cause) => match (cause.code, cause.extended_code) {
            (ErrorCode::DatabaseBusy, 517) => Failure::Aborted("snapshot is stale"),
            (ErrorCode::DatabaseBusy, _) => Failure::Aborted("busy"),
            (ErrorCode::DatabaseLocked, _) => Failure::Aborted("table is locked"),
            _ => Failure::Fatal(format!("SQLite: {error}")),
        },
        None => Failure::Fatal(format!("SQLite: {error}")),
    }
}

impl Database for Sqlite {
    fn version(&self) -> Result<String, Failure> {
        Ok(format!("SQLite {}", rusqlite::version()))
    }

    fn prepare(&self, initially: Initially) -> Result<(), Failure> {
        let mut connection = self.connect()?;
        let there: Option<String> = connection
            .query_row(
                "SELECT name FROM sqlite_master WHERE name LIKE 'kingsnake\\_%' ESCAPE '\\'",
                [],
                |row| row.get(0),
            )
            .optional()
            .map_err(fatal)?;
        if let Some(name) = there {
            return Err(Failure::Fatal(format!(
                "a table {name} is in the way in {}; drop it, or name another file",
                self.path.display()
            )));
        }
        let transaction = connection.transaction().map_err(fatal)?;
        transaction
            .execute_batch(
                "CREATE TABLE kingsnake_registers (k INTEGER PRIMARY KEY, v INTEGER NOT NULL, b INTEGER NOT NULL, n INTEGER NOT NULL);
                 CREATE TABLE kingsnake_lists (k INTEGER PRIMARY KEY, v TEXT NOT NULL);",
            )
            .map_err(fatal)?;
        {
            let mut insert = transaction
                .prepare("INSERT INTO kingsnake_registers VALUES (?1, 0, ?2, 0)")
                .map_err(fatal)?;
            for (key, beside) in initially.rows() {
                insert.execute([key, beside]).map_err(fatal)?;
            }
        }
        if self.order == OrderBy::Trigger {
            transaction.execute_batch(TRIGGERS).map_err(fatal)?;
        }
        transaction.commit().map_err(fatal)
    }

    fn open(&self, _session: usize) -> Result<Box<dyn DatabaseSession>, Failure> {
        let connection = self.connect()?;
        let (begin, order) = (self.begin, self.order);
        Ok(Box::new(SqliteClient {
            connection,
            begin,
            order,
        }))
    }

    fn log(&self) -> Result<Option<VersionLog>, Failure> {
        if self.order != OrderBy::Trigger {
            return Ok(None);
        }
        let connection = self.connect()?;
        let mut query = connection
            .prepare("SELECT k, v FROM kingsnake_log ORDER BY id")
            .map_err(fatal)?;
        let rows = query
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .map_err(fatal)?;
        let versions = rows.collect::<Result<_, _>>().map_err(fatal)?;
        Ok(Some(VersionLog {
            versions,
            is_complete: true,
        }))
    }

    fn clean(&self) -> Result<(), Failure> {
        if !self.is_ours {
            let connection = self.connect()?;
            return connection
                .execute_batch(
                    "DROP TABLE IF EXISTS kingsnake_registers; DROP TABLE IF EXISTS kingsnake_lists; DROP TABLE IF EXISTS kingsnake_log;",
                )
                .map_err(fatal);
        }
        for suffix in ["", "-wal", "-shm", "-journal"] {
            let mut path = self.path.clone().into_os_string();
            path.push(suffix);
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Failure::Fatal(format!("{}: {error}", self.path.display())));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

const TRIGGERS: &str = "
    CREATE TABLE kingsnake_log (id INTEGER PRIMARY KEY AUTOINCREMENT, k INTEGER NOT NULL, v INTEGER NOT NULL);
    CREATE TRIGGER kingsnake_inserted AFTER INSERT ON kingsnake_registers
        BEGIN INSERT INTO kingsnake_log (k, v) VALUES (new.k, new.v); END;
    CREATE TRIGGER kingsnake_updated AFTER UPDATE ON kingsnake_registers
        BEGIN INSERT INTO kingsnake_log (k, v) VALUES (new.k, new.v); END;
    CREATE TRIGGER kingsnake_deleted AFTER DELETE ON kingsnake_registers
        BEGIN INSERT INTO kingsnake_log (k, v) VALUES (old.k, -1); END;";

struct SqliteClient {
    connection: Connection,
    begin: &'static str,
    order: OrderBy,
}

impl DatabaseSession for SqliteClient {
    fn begin(&mut self) -> Result<(), Failure> {
        self.run(self.begin)
    }

    fn read(&mut self, key: Key) -> Result<Option<StoredCell>, Failure> {
        let mut query = self
            .connection
            .prepare_cached("SELECT v, b FROM kingsnake_registers WHERE k = ?1")
            .map_err(fatal)?;
        let cell = |row: &rusqlite::Row<'_>| {
            Ok(StoredCell {
                value: row.get(0)?,
                beside: row.get(1)?,
            })
        };
        query.query_row([key], cell).optional().map_err(fatal)
    }

    fn write(&mut self, key: Key, cell: StoredCell) -> Result<Wrote, Failure> {
        let mut upsert = self
            .connection
            .prepare_cached(
                "INSERT INTO kingsnake_registers VALUES (?1, ?2, ?3, 1)
                 ON CONFLICT (k) DO UPDATE SET v = excluded.v, b = excluded.b, n = n + 1 RETURNING n",
            )
            .map_err(fatal)?;
        let rank: i64 = upsert
            .query_row(params![key, cell.value, cell.beside], |row| row.get(0))
            .map_err(fatal)?;
        let rank = (self.order == OrderBy::Rank).then_some(rank);
        Ok(Wrote { rank, txn: None })
    }

    fn read_list(&mut self, key: Key) -> Result<Vec<i64>, Failure> {
        let mut query = self
            .connection
            .prepare_cached("SELECT v FROM kingsnake_lists WHERE k = ?1")
            .map_err(fatal)?;
        let text: Option<String> = query
            .query_row([key], |row| row.get(0))
            .optional()
            .map_err(fatal)?;
        super::parse_list(text.as_deref().unwrap_or(""))
    }

    fn append(&mut self, key: Key, value: i64) -> Result<Wrote, Failure> {
        let mut upsert = self
            .connection
            .prepare_cached(
                "INSERT INTO kingsnake_lists VALUES (?1, ?2)
                 ON CONFLICT (k) DO UPDATE SET v = v || ',' || excluded.v",
            )
            .map_err(fatal)?;
        upsert
            .execute(params![key, value.to_string()])
            .map_err(fatal)?;
        Ok(Wrote::default())
    }

    fn range(&mut self, low: Key, high: Key) -> Result<Vec<(Key, i64)>, Failure> {
        let mut query = self
            .connection
            .prepare_cached(
                "SELECT k, v FROM kingsnake_registers WHERE k BETWEEN ?1 AND ?2 ORDER BY k",
            )
            .map_err(fatal)?;
        let rows = query
            .query_map([low, high], |row| Ok((row.get(0)?, row.get(1)?)))
            .map_err(fatal)?;
        rows.collect::<Result<_, _>>().map_err(fatal)
    }

    fn delete(&mut self, key: Key) -> Result<Option<Wrote>, Failure> {
        let mut delete = self
            .connection
            .prepare_cached("DELETE FROM kingsnake_registers WHERE k = ?1 RETURNING n")
            .map_err(fatal)?;
        let rank: Option<i64> = delete
            .query_row([key], |row| row.get(0))
            .optional()
            .map_err(fatal)?;
        let ranked = self.order == OrderBy::Rank;
        Ok(rank.map(|rank| Wrote {
            rank: ranked.then_some(rank + 1),
            txn: None,
        }))
    }

    fn select(&mut self, numbers: (i64, i64)) -> Result<Vec<Chosen>, Failure> {
        self.chosen(
            "SELECT k, v, n FROM kingsnake_registers WHERE b BETWEEN ?1 AND ?2",
            &[numbers.0, numbers.1],
        )
    }

    fn update_where(
        &mut self,
        numbers: (i64, i64),
        cell: StoredCell,
    ) -> Result<Vec<Chosen>, Failure> {
        self.chosen(
            "UPDATE kingsnake_registers SET v = ?3, b = ?4, n = n + 1 WHERE b BETWEEN ?1 AND ?2 RETURNING k, v, n",
            &[numbers.0, numbers.1, cell.value, cell.beside],
        )
    }

    fn delete_where(&mut self, numbers: (i64, i64)) -> Result<Vec<Chosen>, Failure> {
        self.chosen(
            "DELETE FROM kingsnake_registers WHERE b BETWEEN ?1 AND ?2 RETURNING k, v, n + 1",
            &[numbers.0, numbers.1],
        )
    }

    fn aggregate(
        &mut self,
        numbers: (i64, i64),
        function: Aggregate,
    ) -> Result<Option<i64>, Failure> {
        let query = match function {
            Aggregate::Count => {
                "SELECT count(*) FROM kingsnake_registers WHERE b BETWEEN ?1 AND ?2"
            }
            Aggregate::Sum => "SELECT sum(b) FROM kingsnake_registers WHERE b BETWEEN ?1 AND ?2",
            Aggregate::Min => "SELECT min(k) FROM kingsnake_registers WHERE b BETWEEN ?1 AND ?2",
            Aggregate::Max => "SELECT max(k) FROM kingsnake_registers WHERE b BETWEEN ?1 AND ?2",
        };
        let mut query = self.connection.prepare_cached(query).map_err(fatal)?;
        query
            .query_row([numbers.0, numbers.1], |row| row.get(0))
            .map_err(fatal)
    }

    fn sql(&mut self, statement: &str) -> Result<SqlAnswer, Failure> {
        let mut statement = self.connection.prepare(statement).map_err(fatal)?;
        let columns: Vec<String> = statement
            .column_names()
            .into_iter()
            .map(str::to_owned)
            .collect();
        let n_columns = columns.len();
        let cells = |row: &rusqlite::Row<'_>| -> rusqlite::Result<Vec<Option<String>>> {
            (0..n_columns).map(|at| cell(row, at)).collect()
        };
        let rows = statement.query_map([], cells).map_err(fatal)?;
        let rows = rows.collect::<Result<_, _>>().map_err(fatal)?;
        drop(statement);
        Ok(SqlAnswer {
            columns,
            rows,
            changed: self.connection.changes(),
        })
    }

    fn commit(&mut self) -> Result<Option<String>, Failure> {
        self.run("COMMIT").map(|()| None)
    }

    fn abort(&mut self) -> Result<(), Failure> {
        // Some errors have rolled back already.
        if self.connection.is_autocommit() {
            return Ok(());
        }
        self.run("ROLLBACK")
    }
}

/// A value as a text.
fn cell(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Option<String>> {
    use rusqlite::types::ValueRef;
    Ok(match row.get_ref(at)? {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(text) | ValueRef::Blob(text) => {
            Some(String::from_utf8_lossy(text).into_owned())
        }
    })
}

impl SqliteClient {
    /// The rows that a statement returned: key, value, rank.
    fn chosen(&self, statement: &str, parameters: &[i64]) -> Result<Vec<Chosen>, Failure> {
        let ranked = self.order == OrderBy::Rank;
        let mut statement = self.connection.prepare_cached(statement).map_err(fatal)?;
        let row = |row: &rusqlite::Row<'_>| {
            let rank: i64 = row.get(2)?;
            Ok(Chosen {
                key: row.get(0)?,
                value: row.get(1)?,
                rank: ranked.then_some(rank),
            })
        };
        let parameters = rusqlite::params_from_iter(parameters);
        let rows = statement.query_map(parameters, row).map_err(fatal)?;
        rows.collect::<Result<_, _>>().map_err(fatal)
    }

    fn run(&self, statement: &str) -> Result<(), Failure> {
        let mut statement = self.connection.prepare_cached(statement).map_err(fatal)?;
        statement.raw_execute().map(drop).map_err(fatal)
    }
}
