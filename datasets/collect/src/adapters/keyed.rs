//! Sessions of key-value stores whose transactions get, put, delete and scan: registers and lists in their bytes.

use super::encode;
use crate::adapter::{DatabaseSession, Failure, Key, StoredCell, Wrote};

/// Keys with their values.
pub(super) type KeyRows = Vec<(Vec<u8>, Vec<u8>)>;

/// A transaction of a store.
pub(super) trait KeyTransaction: Send {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure>;
    fn put(&mut self, key: &[u8], bytes: &[u8]) -> Result<(), Failure>;
    fn delete(&mut self, key: &[u8]) -> Result<(), Failure>;
    /// From one key to another, the second left out.
    fn scan(&mut self, low: &[u8], end: &[u8]) -> Result<KeyRows, Failure>;
    fn commit(self: Box<Self>) -> Result<(), Failure>;
    fn abort(self: Box<Self>) -> Result<(), Failure>;
}

/// What begins transactions.
pub(super) trait KeyStore: Send {
    fn begin(&mut self) -> Result<Box<dyn KeyTransaction>, Failure>;
}

/// A session of a store.
pub(super) struct KeyedSession<S> {
    pub(super) store: S,
    pub(super) open: Option<Box<dyn KeyTransaction>>,
}

impl<S: KeyStore> KeyedSession<S> {
    fn open(&mut self) -> Result<&mut dyn KeyTransaction, Failure> {
        match &mut self.open {
            Some(open) => Ok(&mut **open),
            None => Err(not_begun()),
        }
    }
}

fn not_begun() -> Failure {
    Failure::Fatal("no transaction was begun".to_owned())
}

impl<S: KeyStore> DatabaseSession for KeyedSession<S> {
    fn begin(&mut self) -> Result<(), Failure> {
        self.open = Some(self.store.begin()?);
        Ok(())
    }

    fn read(&mut self, key: Key) -> Result<Option<StoredCell>, Failure> {
        let found = self.open()?.get(&encode::register(key))?;
        found.map(|bytes| encode::cell_of(&bytes)).transpose()
    }

    fn write(&mut self, key: Key, cell: StoredCell) -> Result<Wrote, Failure> {
        let open = self.open()?;
        open.put(&encode::register(key), &encode::cell(cell))?;
        Ok(Wrote::default())
    }

    fn read_list(&mut self, key: Key) -> Result<Vec<i64>, Failure> {
        let found = self.open()?.get(&encode::list(key))?;
        encode::numbers(&found.unwrap_or_default())
    }

    fn append(&mut self, key: Key, value: i64) -> Result<Wrote, Failure> {
        let open = self.open()?;
        let mut bytes = open.get(&encode::list(key))?.unwrap_or_default();
        bytes.extend(value.to_be_bytes());
        open.put(&encode::list(key), &bytes)?;
        Ok(Wrote::default())
    }

    fn range(&mut self, low: Key, high: Key) -> Result<Vec<(Key, i64)>, Failure> {
        // One zero byte more takes the last key in.
        let end = [&encode::register(high)[..], &[0]].concat();
        let rows = self.open()?.scan(&encode::register(low), &end)?;
        let row = |(key, bytes): &(Vec<u8>, Vec<u8>)| {
            Ok((encode::key_of(key)?, encode::cell_of(bytes)?.value))
        };
        rows.iter().map(row).collect()
    }

    fn delete(&mut self, key: Key) -> Result<Option<Wrote>, Failure> {
        let open = self.open()?;
        let was_there = open.get(&encode::register(key))?.is_some();
        if was_there {
            open.delete(&encode::register(key))?;
        }
        Ok(was_there.then(Wrote::default))
    }

    fn commit(&mut self) -> Result<Option<String>, Failure> {
        let open = self.open.take().ok_or_else(not_begun)?;
        open.commit().map(|()| None)
    }

    fn abort(&mut self) -> Result<(), Failure> {
        self.open.take().map_or(Ok(()), KeyTransaction::abort)
    }
}
