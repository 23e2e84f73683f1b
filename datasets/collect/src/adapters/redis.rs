//! Redis: transactions that read at once and write at the commit, which is MULTI and EXEC under WATCH, or one script that compares
//! what was read before it writes.
//!
//! With `--version-order trigger` each commit also appends its versions to a list of ours, in the same step. Redis has no log that
//! a client could read.

use std::collections::BTreeMap;
use std::time::Duration;

use redis::{Client as Server, Connection, ErrorKind, RedisError, Value, cmd, pipe};

use super::{Target, encode};
use crate::adapter::{
    DELETED, Database, DatabaseSession, Failure, Initially, Key, OrderBy, StoredCell, VersionLog,
    Wrote,
};
use crate::address::redacted;

/// The database at a target.
pub(super) fn make(target: &Target) -> Result<Box<dyn Database>, Failure> {
    let url = target.urls.first().map_or("", String::as_str);
    let place = redacted(url);
    let server = Server::open(url).map_err(|error| {
        Failure::Fatal(format!(
            "{place}: {error}; write redis://:password@host:6379/0"
        ))
    })?;
    Ok(Box::new(Redis {
        server,
        place,
        commits: match target.isolation.as_str() {
            "script" => Commits::ByScript,
            "unwatched" => Commits::Unwatched,
            _ => Commits::Watching,
        },
        has_log: target.version_order == OrderBy::Trigger,
    }))
}

/// How a transaction ensures that what it read is still current.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Commits {
    Watching,
    ByScript,
    Unwatched,
}

struct Redis {
    server: Server,
    /// The address without its password, for messages.
    place: String,
    commits: Commits,
    has_log: bool,
}

const OURS: &[u8] = b"kingsnake:";
const LOG: &[u8] = b"kingsnake:log";
/// More rows are not read at once.
const WIDEST: Key = 100_000;
const PATIENCE: Duration = Duration::from_secs(10);

/// A key under our prefix.
fn named(key: [u8; 9]) -> Vec<u8> {
    [OURS, &key].concat()
}

impl Redis {
    fn connect(&self) -> Result<Connection, Failure> {
        let words = |error: RedisError| format!("{}: {error}", self.place);
        let link = self.server.get_connection_with_timeout(PATIENCE);
        let link = link.map_err(|error| match failure(&error) {
            Failure::Lost(_) => Failure::Lost(words(error)),
            _ => Failure::Fatal(words(error)),
        })?;
        let limits = link.set_read_timeout(Some(PATIENCE));
        limits.map_err(|error| Failure::Fatal(words(error)))?;
        Ok(link)
    }

    /// Every key of ours.
    fn ours(&self, link: &mut Connection) -> Result<Vec<Vec<u8>>, Failure> {
        let (mut keys, mut cursor) = (Vec::new(), 0_u64);
        loop {
            let mut scan = cmd("SCAN");
            scan.arg(cursor)
                .arg("MATCH")
                .arg("kingsnake:*")
                .arg("COUNT")
                .arg(1_000);
            let (next, more): (u64, Vec<Vec<u8>>) =
                scan.query(link).map_err(|error| self.refused(&error))?;
            keys.extend(more);
            cursor = next;
            if cursor == 0 {
                return Ok(keys);
            }
        }
    }

    fn refused(&self, error: &RedisError) -> Failure {
        match (failure(error), error.code()) {
            (Failure::Fatal(words), Some("NOPERM")) => Failure::Fatal(format!(
                "{}: {words}; collecting needs a user who may use keys under kingsnake:",
                self.place
            )),
            (failure, _) => failure,
        }
    }
}

fn failure(error: &RedisError) -> Failure {
    let is_over = error.is_io_error() || error.is_connection_dropped() || error.is_timeout();
    if is_over && error.kind() != ErrorKind::AuthenticationFailed {
        return Failure::Lost(error.to_string());
    }
    match error.code() {
        // Busy loading its file, or a replica that was made a primary's.
        Some("LOADING" | "MASTERDOWN" | "CLUSTERDOWN") => Failure::Lost(error.to_string()),
        _ => Failure::Fatal(format!("Redis: {error}")),
    }
}

impl Database for Redis {
    fn version(&self) -> Result<String, Failure> {
        let mut link = self.connect()?;
        let about: String = cmd("INFO")
            .arg("server")
            .query(&mut link)
            .map_err(|error| self.refused(&error))?;
        let line = about
            .lines()
            .find_map(|it| it.strip_prefix("redis_version:"));
        Ok(format!("Redis {}", line.unwrap_or("").trim()))
    }

    fn prepare(&self, initially: Initially) -> Result<(), Failure> {
        let mut link = self.connect()?;
        if !self.ours(&mut link)?.is_empty() {
            return Err(Failure::Fatal(format!(
                "keys under kingsnake: are in the way at {}; delete them first",
                self.place
            )));
        }
        let mut rows = pipe();
        rows.atomic();
        for (key, beside) in initially.rows() {
            let cell = encode::cell(StoredCell { value: 0, beside });
            rows.cmd("SET")
                .arg(named(encode::register(key)))
                .arg(&cell[..]);
        }
        let made: Result<Value, RedisError> = rows.query(&mut link);
        made.map(drop).map_err(|error| self.refused(&error))
    }

    fn open(&self, _session: usize) -> Result<Box<dyn DatabaseSession>, Failure> {
        Ok(Box::new(RedisClient {
            link: self.connect()?,
            commits: self.commits,
            has_log: self.has_log,
            is_watching: false,
            seen: BTreeMap::new(),
            lists: BTreeMap::new(),
            puts: BTreeMap::new(),
            appends: Vec::new(),
        }))
    }

    fn log(&self) -> Result<Option<VersionLog>, Failure> {
        if !self.has_log {
            return Ok(None);
        }
        let mut link = self.connect()?;
        let lines: Vec<Vec<u8>> = cmd("LRANGE")
            .arg(LOG)
            .arg(0)
            .arg(-1)
            .query(&mut link)
            .map_err(|error| self.refused(&error))?;
        let mut log = VersionLog {
            versions: Vec::new(),
            is_complete: true,
        };
        for line in lines {
            let version = encode::cell_of(&line)?;
            log.versions.push((version.value, version.beside));
        }
        Ok(Some(log))
    }

    fn clean(&self) -> Result<(), Failure> {
        let mut link = self.connect()?;
        for keys in self.ours(&mut link)?.chunks(1_000) {
            let deleted: Result<Value, RedisError> = cmd("DEL").arg(keys).query(&mut link);
            deleted.map_err(|error| self.refused(&error))?;
        }
        Ok(())
    }
}

/// Compares what was read, and writes if all of it still holds. A value that was not there is the empty one.
const SCRIPT: &str = "
local at = 2
for _ = 1, tonumber(ARGV[1]) do
    local kind, key, seen = ARGV[at], ARGV[at + 1], ARGV[at + 2]
    if kind == 'GET' then
        if (redis.call('GET', key) or '') ~= seen then return 0 end
    elseif redis.call('LLEN', key) ~= tonumber(seen) then
        return 0
    end
    at = at + 3
end
while at < #ARGV do
    if ARGV[at] == 'DEL' then
        redis.call('DEL', ARGV[at + 1])
    else
        redis.call(ARGV[at], ARGV[at + 1], ARGV[at + 2])
    end
    at = at + 3
end
return 1";

struct RedisClient {
    link: Connection,
    commits: Commits,
    has_log: bool,
    is_watching: bool,
    /// What was read, so that a second read of a key agrees.
    seen: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// Lists that were read.
    lists: BTreeMap<Key, Vec<i64>>,
    /// What is to be written; nothing for a delete.
    puts: BTreeMap<Key, Option<Vec<u8>>>,
    /// What is to be appended.
    appends: Vec<(Key, i64)>,
}

impl RedisClient {
    fn watch(&mut self, keys: &[Vec<u8>]) -> Result<(), Failure> {
        if self.commits != Commits::Watching {
            return Ok(());
        }
        self.is_watching = true;
        let watched: Result<Value, RedisError> = cmd("WATCH").arg(keys).query(&mut self.link);
        watched.map(drop).map_err(|error| failure(&error))
    }

    /// What registers hold, the transaction's own writes left out.
    fn get(&mut self, keys: &[Vec<u8>]) -> Result<(), Failure> {
        let unseen = |key: &&Vec<u8>| !self.seen.contains_key(*key);
        let keys: Vec<Vec<u8>> = keys.iter().filter(unseen).cloned().collect();
        if keys.is_empty() {
            return Ok(());
        }
        self.watch(&keys)?;
        let found: Vec<Option<Vec<u8>>> = cmd("MGET")
            .arg(&keys)
            .query(&mut self.link)
            .map_err(|error| failure(&error))?;
        self.seen.extend(keys.into_iter().zip(found));
        Ok(())
    }

    fn register(&mut self, key: Key) -> Result<Option<Vec<u8>>, Failure> {
        if let Some(own) = self.puts.get(&key) {
            return Ok(own.clone());
        }
        let name = named(encode::register(key));
        self.get(std::slice::from_ref(&name))?;
        Ok(self.seen.get(&name).cloned().flatten())
    }

    /// What the commit writes: a command, a key and its value.
    fn writes(&self) -> Vec<[Vec<u8>; 3]> {
        let mut writes = Vec::new();
        let log = |key: Key, value: i64| {
            let version = StoredCell {
                value: key,
                beside: value,
            };
            let line = encode::cell(version).to_vec();
            [b"RPUSH".to_vec(), LOG.to_vec(), line]
        };
        for (key, bytes) in &self.puts {
            let name = named(encode::register(*key));
            writes.push(match bytes {
                Some(bytes) => [b"SET".to_vec(), name, bytes.clone()],
                None => [b"DEL".to_vec(), name, Vec::new()],
            });
            if self.has_log {
                let cell = bytes.as_deref().map(encode::cell_of);
                writes.push(log(
                    *key,
                    cell.and_then(Result::ok).map_or(DELETED, |it| it.value),
                ));
            }
        }
        for &(key, value) in &self.appends {
            let line = value.to_be_bytes().to_vec();
            writes.push([b"RPUSH".to_vec(), named(encode::list(key)), line]);
            if self.has_log {
                writes.push(log(key, value));
            }
        }
        writes
    }

    fn by_script(&mut self, writes: &[[Vec<u8>; 3]]) -> Result<bool, Failure> {
        let mut call = cmd("EVAL");
        call.arg(SCRIPT)
            .arg(0)
            .arg(self.seen.len() + self.lists.len());
        for (key, bytes) in &self.seen {
            let seen = bytes.clone().unwrap_or_default();
            call.arg("GET").arg(&key[..]).arg(seen);
        }
        for (key, list) in &self.lists {
            call.arg("LLEN")
                .arg(named(encode::list(*key)))
                .arg(list.len());
        }
        for part in writes.iter().flatten() {
            call.arg(&part[..]);
        }
        let done: Result<i64, RedisError> = call.query(&mut self.link);
        done.map(|it| it == 1).map_err(|error| failure(&error))
    }

    fn by_exec(&mut self, writes: &[[Vec<u8>; 3]]) -> Result<bool, Failure> {
        let mut all = pipe();
        all.atomic();
        // Without a command nothing would be sent, and nothing compared.
        all.cmd("PING");
        for [command, key, value] in writes {
            let it = all.cmd(if command == b"SET" {
                "SET"
            } else if command == b"DEL" {
                "DEL"
            } else {
                "RPUSH"
            });
            it.arg(&key[..]);
            if command != b"DEL" {
                it.arg(&value[..]);
            }
        }
        self.is_watching = false;
        let done: Result<Value, RedisError> = all.query(&mut self.link);
        done.map(|it| it != Value::Nil)
            .map_err(|error| failure(&error))
    }
}

impl DatabaseSession for RedisClient {
    fn begin(&mut self) -> Result<(), Failure> {
        self.abort()
    }

    fn read(&mut self, key: Key) -> Result<Option<StoredCell>, Failure> {
        let found = self.register(key)?;
        found.map(|bytes| encode::cell_of(&bytes)).transpose()
    }

    fn write(&mut self, key: Key, cell: StoredCell) -> Result<Wrote, Failure> {
        self.puts.insert(key, Some(encode::cell(cell).to_vec()));
        Ok(Wrote::default())
    }

    fn read_list(&mut self, key: Key) -> Result<Vec<i64>, Failure> {
        if !self.lists.contains_key(&key) {
            let name = named(encode::list(key));
            self.watch(std::slice::from_ref(&name))?;
            let found: Vec<Vec<u8>> = cmd("LRANGE")
                .arg(&name)
                .arg(0)
                .arg(-1)
                .query(&mut self.link)
                .map_err(|error| failure(&error))?;
            self.lists.insert(key, encode::numbers(&found.concat())?);
        }
        let own = self.appends.iter().filter(|(of, _)| *of == key);
        let held = self.lists.get(&key).into_iter().flatten();
        Ok(held.copied().chain(own.map(|(_, value)| *value)).collect())
    }

    fn append(&mut self, key: Key, value: i64) -> Result<Wrote, Failure> {
        self.appends.push((key, value));
        Ok(Wrote::default())
    }

    fn range(&mut self, low: Key, high: Key) -> Result<Vec<(Key, i64)>, Failure> {
        if high - low > WIDEST {
            return Err(Failure::Fatal(format!(
                "Redis has no ordered keys: a range spans at most {WIDEST}"
            )));
        }
        let names: Vec<Vec<u8>> = (low..=high)
            .map(|key| named(encode::register(key)))
            .collect();
        self.get(&names)?;
        let mut rows = Vec::new();
        for key in low..=high {
            if let Some(bytes) = self.register(key)? {
                rows.push((key, encode::cell_of(&bytes)?.value));
            }
        }
        Ok(rows)
    }

    fn delete(&mut self, key: Key) -> Result<Option<Wrote>, Failure> {
        let was_there = self.register(key)?.is_some();
        if was_there {
            self.puts.insert(key, None);
        }
        Ok(was_there.then(Wrote::default))
    }

    fn commit(&mut self) -> Result<Option<String>, Failure> {
        let writes = self.writes();
        let n_reads = self.seen.len() + self.lists.len();
        if writes.is_empty() && (n_reads <= 1 || self.commits == Commits::Unwatched) {
            return self.abort().map(|()| None);
        }
        let done = match self.commits {
            Commits::ByScript => self.by_script(&writes)?,
            Commits::Watching | Commits::Unwatched => self.by_exec(&writes)?,
        };
        if done {
            Ok(None)
        } else {
            Err(Failure::Aborted("conflict"))
        }
    }

    fn abort(&mut self) -> Result<(), Failure> {
        self.seen.clear();
        self.lists.clear();
        self.puts.clear();
        self.appends.clear();
        if !std::mem::take(&mut self.is_watching) {
            return Ok(());
        }
        let over: Result<Value, RedisError> = cmd("UNWATCH").query(&mut self.link);
        over.map(drop).map_err(|error| failure(&error))
    }
}
