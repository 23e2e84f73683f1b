//! fjall, an embedded log-structured store: optimistic transactions of several writers, which promise serializability.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use fjall::{
    KeyspaceCreateOptions, OptimisticTxDatabase, OptimisticTxKeyspace,
    OptimisticWriteTx as WriteTransaction, Readable,
};

use super::{Target, encode};
use crate::adapter::{Database, DatabaseSession, Failure, Initially, Key, StoredCell, Wrote};

/// The database at a target.
#[allow(clippy::unnecessary_wraps)] // Others can fail.
pub(super) fn make(target: &Target) -> Result<Box<dyn Database>, Failure> {
    Ok(Box::new(Fjall::new(target)))
}

struct Fjall {
    path: PathBuf,
    open: Mutex<Option<Handle>>,
}

#[derive(Clone)]
struct Handle {
    database: OptimisticTxDatabase,
    keyspace: OptimisticTxKeyspace,
}

fn fatal(error: impl std::fmt::Display) -> Failure {
    Failure::Fatal(format!("fjall: {error}"))
}

impl Fjall {
    fn new(target: &Target) -> Self {
        let given = target.urls.first().map(PathBuf::from);
        let path = given.unwrap_or_else(|| target.directory.join("database.fjall"));
        Fjall {
            path,
            open: Mutex::new(None),
        }
    }

    fn handle(&self) -> Result<Handle, Failure> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = &*open {
            return Ok(handle.clone());
        }
        let database = OptimisticTxDatabase::builder(&self.path)
            .open()
            .map_err(fatal)?;
        let keyspace = database
            .keyspace("kingsnake", KeyspaceCreateOptions::default)
            .map_err(fatal)?;
        let handle = Handle { database, keyspace };
        *open = Some(handle.clone());
        Ok(handle)
    }
}

impl Database for Fjall {
    fn version(&self) -> Result<String, Failure> {
        Ok("fjall 3".to_owned())
    }

    fn prepare(&self, initially: Initially) -> Result<(), Failure> {
        if self.path.exists() {
            return Err(Failure::Fatal(format!(
                "{} is in the way: remove it, or name another directory",
                self.path.display()
            )));
        }
        let handle = self.handle()?;
        for (key, beside) in initially.rows() {
            let cell = encode::cell(StoredCell { value: 0, beside });
            handle
                .keyspace
                .insert(encode::register(key), cell)
                .map_err(fatal)?;
        }
        Ok(())
    }

    fn open(&self, _session: usize) -> Result<Box<dyn DatabaseSession>, Failure> {
        Ok(Box::new(FjallClient {
            handle: self.handle()?,
            open: None,
        }))
    }

    fn clean(&self) -> Result<(), Failure> {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = None;
        std::fs::remove_dir_all(&self.path).map_err(fatal)
    }
}

struct FjallClient {
    handle: Handle,
    open: Option<WriteTransaction>,
}

impl FjallClient {
    fn transaction(&mut self) -> Result<(&mut WriteTransaction, &OptimisticTxKeyspace), Failure> {
        let keyspace = &self.handle.keyspace;
        let open = self.open.as_mut().map(|it| (it, keyspace));
        open.ok_or_else(|| fatal("no transaction was begun"))
    }
}

impl DatabaseSession for FjallClient {
    fn begin(&mut self) -> Result<(), Failure> {
        self.open = Some(self.handle.database.write_tx().map_err(fatal)?);
        Ok(())
    }

    fn read(&mut self, key: Key) -> Result<Option<StoredCell>, Failure> {
        let (open, keyspace) = self.transaction()?;
        let found = open.get(keyspace, encode::register(key)).map_err(fatal)?;
        found.map(|bytes| encode::cell_of(&bytes)).transpose()
    }

    fn write(&mut self, key: Key, cell: StoredCell) -> Result<Wrote, Failure> {
        let (open, keyspace) = self.transaction()?;
        open.insert(keyspace, encode::register(key), encode::cell(cell));
        Ok(Wrote::default())
    }

    fn read_list(&mut self, key: Key) -> Result<Vec<i64>, Failure> {
        let (open, keyspace) = self.transaction()?;
        let found = open.get(keyspace, encode::list(key)).map_err(fatal)?;
        found.map_or(Ok(Vec::new()), |bytes| encode::numbers(&bytes))
    }

    fn append(&mut self, key: Key, value: i64) -> Result<Wrote, Failure> {
        let (open, keyspace) = self.transaction()?;
        let found = open.get(keyspace, encode::list(key)).map_err(fatal)?;
        let mut bytes = found.map_or(Vec::new(), |bytes| bytes.to_vec());
        bytes.extend(value.to_be_bytes());
        open.insert(keyspace, encode::list(key), bytes);
        Ok(Wrote::default())
    }

    fn range(&mut self, low: Key, high: Key) -> Result<Vec<(Key, i64)>, Failure> {
        let (open, keyspace) = self.transaction()?;
        let rows = open.range(keyspace, encode::register(low)..=encode::register(high));
        rows.map(|row| {
            let (key, bytes) = row.into_inner().map_err(fatal)?;
            Ok((encode::key_of(&key)?, encode::cell_of(&bytes)?.value))
        })
        .collect()
    }

    fn delete(&mut self, key: Key) -> Result<Option<Wrote>, Failure> {
        let was_there = self.read(key)?.is_some();
        let (open, keyspace) = self.transaction()?;
        if was_there {
            open.remove(keyspace, encode::register(key));
        }
        Ok(was_there.then(Wrote::default))
    }

    fn commit(&mut self) -> Result<Option<String>, Failure> {
        let Some(open) = self.open.take() else {
            return Err(fatal("no transaction was begun"));
        };
        match open.commit().map_err(fatal)? {
            Ok(()) => Ok(None),
            Err(_) => Err(Failure::Aborted("conflict")),
        }
    }

    fn abort(&mut self) -> Result<(), Failure> {
        if let Some(open) = self.open.take() {
            open.rollback();
        }
        Ok(())
    }
}
