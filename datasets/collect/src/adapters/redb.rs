//! redb, an embedded store with a single writer: every transaction runs alone, which is the baseline that cannot go wrong.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use redb::{Database as Store, Durability, ReadableTable, TableDefinition, WriteTransaction};

use super::{Target, encode};
use crate::adapter::{Database, DatabaseSession, Failure, Initially, Key, StoredCell, Wrote};

/// The database at a target.
#[allow(clippy::unnecessary_wraps)] // Others can fail.
pub(super) fn make(target: &Target) -> Result<Box<dyn Database>, Failure> {
    Ok(Box::new(Redb::new(target)))
}

const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("kingsnake");

struct Redb {
    path: PathBuf,
    open: Mutex<Option<Arc<Store>>>,
}

fn fatal(error: impl std::fmt::Display) -> Failure {
    Failure::Fatal(format!("redb: {error}"))
}

impl Redb {
    fn new(target: &Target) -> Self {
        let given = target.urls.first().map(PathBuf::from);
        let path = given.unwrap_or_else(|| target.directory.join("database.redb"));
        Redb {
            path,
            open: Mutex::new(None),
        }
    }

    fn store(&self) -> Result<Arc<Store>, Failure> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = &*open {
            return Ok(Arc::clone(store));
        }
        let store = Arc::new(Store::create(&self.path).map_err(fatal)?);
        *open = Some(Arc::clone(&store));
        Ok(store)
    }
}

impl Database for Redb {
    fn version(&self) -> Result<String, Failure> {
        Ok("redb 4".to_owned())
    }

    fn prepare(&self, initially: Initially) -> Result<(), Failure> {
        if self.path.exists() {
            return Err(Failure::Fatal(format!(
                "{} is in the way: remove it, or name another file",
                self.path.display()
            )));
        }
        let open = self.store()?.begin_write().map_err(fatal)?;
        {
            let mut table = open.open_table(TABLE).map_err(fatal)?;
            for (key, beside) in initially.rows() {
                let cell = encode::cell(StoredCell { value: 0, beside });
                table
                    .insert(&encode::register(key)[..], &cell[..])
                    .map_err(fatal)?;
            }
        }
        open.commit().map_err(fatal)
    }

    fn open(&self, _session: usize) -> Result<Box<dyn DatabaseSession>, Failure> {
        Ok(Box::new(RedbClient {
            store: self.store()?,
            open: None,
        }))
    }

    fn clean(&self) -> Result<(), Failure> {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = None;
        std::fs::remove_file(&self.path).map_err(fatal)
    }
}

struct RedbClient {
    store: Arc<Store>,
    open: Option<WriteTransaction>,
}

impl RedbClient {
    fn get(&self, key: [u8; 9]) -> Result<Option<Vec<u8>>, Failure> {
        let Some(open) = &self.open else {
            return Err(fatal("no transaction was begun"));
        };
        let table = open.open_table(TABLE).map_err(fatal)?;
        let found = table.get(&key[..]).map_err(fatal)?;
        Ok(found.map(|bytes| bytes.value().to_vec()))
    }

    fn put(&self, key: [u8; 9], bytes: &[u8]) -> Result<Wrote, Failure> {
        let Some(open) = &self.open else {
            return Err(fatal("no transaction was begun"));
        };
        let mut table = open.open_table(TABLE).map_err(fatal)?;
        table.insert(&key[..], bytes).map_err(fatal)?;
        Ok(Wrote::default())
    }
}

impl DatabaseSession for RedbClient {
    fn begin(&mut self) -> Result<(), Failure> {
        let mut open = self.store.begin_write().map_err(fatal)?;
        open.set_durability(Durability::None).map_err(fatal)?;
        self.open = Some(open);
        Ok(())
    }

    fn read(&mut self, key: Key) -> Result<Option<StoredCell>, Failure> {
        let found = self.get(encode::register(key))?;
        found.map(|bytes| encode::cell_of(&bytes)).transpose()
    }

    fn write(&mut self, key: Key, cell: StoredCell) -> Result<Wrote, Failure> {
        self.put(encode::register(key), &encode::cell(cell))
    }

    fn read_list(&mut self, key: Key) -> Result<Vec<i64>, Failure> {
        let found = self.get(encode::list(key))?;
        found.map_or(Ok(Vec::new()), |bytes| encode::numbers(&bytes))
    }

    fn append(&mut self, key: Key, value: i64) -> Result<Wrote, Failure> {
        let mut bytes = self.get(encode::list(key))?.unwrap_or_default();
        bytes.extend(value.to_be_bytes());
        self.put(encode::list(key), &bytes)
    }

    fn range(&mut self, low: Key, high: Key) -> Result<Vec<(Key, i64)>, Failure> {
        let Some(open) = &self.open else {
            return Err(fatal("no transaction was begun"));
        };
        let table = open.open_table(TABLE).map_err(fatal)?;
        let (low, high) = (encode::register(low), encode::register(high));
        let rows = table.range(&low[..]..=&high[..]).map_err(fatal)?;
        rows.map(|row| {
            let (key, bytes) = row.map_err(fatal)?;
            Ok((
                encode::key_of(key.value())?,
                encode::cell_of(bytes.value())?.value,
            ))
        })
        .collect()
    }

    fn delete(&mut self, key: Key) -> Result<Option<Wrote>, Failure> {
        let Some(open) = &self.open else {
            return Err(fatal("no transaction was begun"));
        };
        let mut table = open.open_table(TABLE).map_err(fatal)?;
        let removed = table.remove(&encode::register(key)[..]).map_err(fatal)?;
        Ok(removed.map(|_| Wrote::default()))
    }

    fn commit(&mut self) -> Result<Option<String>, Failure> {
        let Some(open) = self.open.take() else {
            return Err(fatal("no transaction was begun"));
        };
        open.commit().map_err(fatal)?;
        Ok(None)
    }

    fn abort(&mut self) -> Result<(), Failure> {
        match self.open.take() {
            Some(open) => open.abort().map_err(fatal),
            None => Ok(()),
        }
    }
}
