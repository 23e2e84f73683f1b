//! `RocksDB`, through the C interface of its shared library, which is opened when it is asked for: pessimistic and optimistic
//! transactions, with a snapshot, with locked reads, or with neither.
#![allow(unsafe_code)] // A library in C: every call says why it is sound.

use std::ffi::{CStr, CString, c_char, c_uchar, c_void};
use std::path::PathBuf;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, PoisonError};

use libloading::Library;

use super::keyed::{KeyRows, KeyStore, KeyTransaction, KeyedSession};
use super::{Target, encode, table};
use crate::adapter::{Database, DatabaseSession, Failure, Initially, StoredCell};

/// The database at a target.
pub(super) fn make(target: &Target) -> Result<Box<dyn Database>, Failure> {
    let settings = table::ROCKSDB.settings(target);
    let library = settings.first().map_or("", |(_, value)| value.as_str());
    let given = target.urls.first().map(PathBuf::from);
    Ok(Box::new(RocksDb {
        calls: Arc::new(Calls::load(library)?),
        mode: Mode {
            is_optimistic: target.isolation.starts_with("optimistic"),
            has_snapshot: !target.isolation.ends_with("no-snapshot"),
            locks_reads: target.isolation.ends_with("for-update"),
        },
        path: given.unwrap_or_else(|| target.directory.join("database.rocksdb")),
        store: Mutex::new(None),
        settings,
    }))
}

fn fatal(error: impl std::fmt::Display) -> Failure {
    Failure::Fatal(format!("RocksDB: {error}"))
}

/// How transactions are run.
#[derive(Clone, Copy)]
struct Mode {
    is_optimistic: bool,
    /// Reads are of a snapshot of the begin, and writes of what is newer are refused.
    has_snapshot: bool,
    /// Reads are by `GetForUpdate`.
    locks_reads: bool,
}

/// A type of the library that is only ever pointed to.
type Opaque = *mut c_void;
type Error = *mut *mut c_char;
type Bytes = *const c_char;

/// The functions in use, each of the name that its field has after `rocksdb_`, and the library that they are in.
macro_rules! calls {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        struct Calls {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            _library: Library,
        }

        impl Calls {
            fn load(path: &str) -> Result<Self, Failure> {
                let missing = |error: libloading::Error| {
                    Failure::Fatal(format!(
                        "cannot open {path} ({error}); Debian's package librocksdb7.8 or librocksdb-dev has RocksDB, and --set library=FILE names another"
                    ))
                };
                // SAFETY: the library's initialisers are those of RocksDB, which ask for nothing; each name has the type that its
                // header c.h gives it, and the library stays open as long as the functions are held.
                unsafe {
                    let library = Library::new(path).map_err(missing)?;
                    Ok(Calls {
                        $($name: *library.get(concat!("rocksdb_", stringify!($name)).as_bytes()).map_err(missing)?,)*
                        _library: library,
                    })
                }
            }
        }
    };
}

calls! {
    options_create: fn() -> Opaque;
    options_set_create_if_missing: fn(Opaque, c_uchar);
    transactiondb_options_create: fn() -> Opaque;
    transactiondb_options_set_transaction_lock_timeout: fn(Opaque, i64);
    transactiondb_open: fn(Opaque, Opaque, Bytes, Error) -> Opaque;
    transactiondb_close: fn(Opaque);
    optimistictransactiondb_open: fn(Opaque, Bytes, Error) -> Opaque;
    optimistictransactiondb_close: fn(Opaque);
    writeoptions_create: fn() -> Opaque;
    readoptions_create: fn() -> Opaque;
    readoptions_destroy: fn(Opaque);
    readoptions_set_snapshot: fn(Opaque, Opaque);
    transaction_options_create: fn() -> Opaque;
    transaction_options_set_set_snapshot: fn(Opaque, c_uchar);
    transaction_options_set_deadlock_detect: fn(Opaque, c_uchar);
    optimistictransaction_options_create: fn() -> Opaque;
    optimistictransaction_options_set_set_snapshot: fn(Opaque, c_uchar);
    transaction_begin: fn(Opaque, Opaque, Opaque, Opaque) -> Opaque;
    optimistictransaction_begin: fn(Opaque, Opaque, Opaque, Opaque) -> Opaque;
    transaction_get_snapshot: fn(Opaque) -> Opaque;
    transaction_get: fn(Opaque, Opaque, Bytes, usize, *mut usize, Error) -> *mut c_char;
    transaction_get_for_update: fn(Opaque, Opaque, Bytes, usize, *mut usize, c_uchar, Error) -> *mut c_char;
    transaction_put: fn(Opaque, Bytes, usize, Bytes, usize, Error);
    transaction_delete: fn(Opaque, Bytes, usize, Error);
    transaction_create_iterator: fn(Opaque, Opaque) -> Opaque;
    transaction_commit: fn(Opaque, Error);
    transaction_rollback: fn(Opaque, Error);
    transaction_destroy: fn(Opaque);
    iter_seek: fn(Opaque, Bytes, usize);
    iter_valid: fn(Opaque) -> c_uchar;
    iter_next: fn(Opaque);
    iter_key: fn(Opaque, *mut usize) -> Bytes;
    iter_value: fn(Opaque, *mut usize) -> Bytes;
    iter_get_error: fn(Opaque, Error);
    iter_destroy: fn(Opaque);
    free: fn(Opaque);
}

impl Calls {
    /// Calls a function that may leave an error, and takes that.
    fn checked<T>(&self, call: impl FnOnce(Error) -> T) -> Result<T, Failure> {
        let mut error = null_mut();
        let result = call(&raw mut error);
        if error.is_null() {
            return Ok(result);
        }
        // SAFETY: the library left a text of its own, which ends in a zero and is ours to free.
        let words = unsafe {
            let words = CStr::from_ptr(error).to_string_lossy().into_owned();
            (self.free)(error.cast());
            words
        };
        Err(refusal(&words))
    }
}

/// What its words mean for a transaction.
fn refusal(words: &str) -> Failure {
    let reasons = [
        ("Deadlock", "deadlock"),
        ("Operation timed out", "timeout"),
        ("Resource busy", "conflict"),
        ("Operation expired", "expired"),
        ("Operation failed. Try again", "try again"),
    ];
    match reasons.iter().find(|(start, _)| words.contains(start)) {
        Some((_, reason)) => Failure::Aborted(reason),
        None => fatal(words),
    }
}

struct RocksDb {
    calls: Arc<Calls>,
    mode: Mode,
    path: PathBuf,
    store: Mutex<Option<Arc<Store>>>,
    settings: Vec<(String, String)>,
}

/// An open database with the options of all its transactions. The options live as long as the process.
struct Store {
    calls: Arc<Calls>,
    mode: Mode,
    database: Opaque,
    write: Opaque,
    begin: Opaque,
}

// SAFETY: RocksDB's database may be used by several threads; the options are only read once they are made.
unsafe impl Send for Store {}
// SAFETY: as above.
unsafe impl Sync for Store {}

impl Store {
    fn open(calls: &Arc<Calls>, mode: Mode, path: &std::path::Path) -> Result<Self, Failure> {
        let name = CString::new(path.as_os_str().as_encoded_bytes()).map_err(fatal)?;
        let c = &**calls;
        // SAFETY: every pointer is one that the library has just made, and the name ends in a zero.
        unsafe {
            let options = (c.options_create)();
            (c.options_set_create_if_missing)(options, 1);
            let snapshot = c_uchar::from(mode.has_snapshot);
            let (database, begin) = if mode.is_optimistic {
                let begin = (c.optimistictransaction_options_create)();
                (c.optimistictransaction_options_set_set_snapshot)(begin, snapshot);
                let open = |error| (c.optimistictransactiondb_open)(options, name.as_ptr(), error);
                (c.checked(open)?, begin)
            } else {
                let how = (c.transactiondb_options_create)();
                (c.transactiondb_options_set_transaction_lock_timeout)(how, 200);
                let begin = (c.transaction_options_create)();
                (c.transaction_options_set_set_snapshot)(begin, snapshot);
                (c.transaction_options_set_deadlock_detect)(begin, 1);
                let open = |error| (c.transactiondb_open)(options, how, name.as_ptr(), error);
                (c.checked(open)?, begin)
            };
            Ok(Store {
                calls: Arc::clone(calls),
                mode,
                database,
                write: (c.writeoptions_create)(),
                begin,
            })
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // SAFETY: each transaction holds this store, so none is left.
        unsafe {
            if self.mode.is_optimistic {
                (self.calls.optimistictransactiondb_close)(self.database);
            } else {
                (self.calls.transactiondb_close)(self.database);
            }
        }
    }
}

impl KeyStore for Arc<Store> {
    fn begin(&mut self) -> Result<Box<dyn KeyTransaction>, Failure> {
        let c = &self.calls;
        // SAFETY: the database and its options are open as long as the store is; the snapshot is the transaction's own.
        let (txn, read) = unsafe {
            let txn = if self.mode.is_optimistic {
                (c.optimistictransaction_begin)(self.database, self.write, self.begin, null_mut())
            } else {
                (c.transaction_begin)(self.database, self.write, self.begin, null_mut())
            };
            let read = (c.readoptions_create)();
            if self.mode.has_snapshot {
                let snapshot = (c.transaction_get_snapshot)(txn);
                (c.readoptions_set_snapshot)(read, snapshot);
                (c.free)(snapshot);
            }
            (txn, read)
        };
        Ok(Box::new(OpenRocksDb {
            store: Arc::clone(self),
            txn,
            read,
        }))
    }
}

struct OpenRocksDb {
    store: Arc<Store>,
    txn: Opaque,
    read: Opaque,
}

// SAFETY: a transaction is used by one thread at a time, which is all that RocksDB asks.
unsafe impl Send for OpenRocksDb {}

impl Drop for OpenRocksDb {
    fn drop(&mut self) {
        // SAFETY: both are ours, and are not used after this.
        unsafe {
            (self.store.calls.readoptions_destroy)(self.read);
            (self.store.calls.transaction_destroy)(self.txn);
        }
    }
}

/// A copy of bytes of the library.
///
/// # Safety
/// There are as many bytes as it says.
unsafe fn copied(bytes: Bytes, length: usize) -> Vec<u8> {
    // SAFETY: by the caller.
    unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), length) }.to_vec()
}

impl KeyTransaction for OpenRocksDb {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let c = &self.store.calls;
        let (place, mut length) = (key.as_ptr().cast(), 0);
        let n = &raw mut length;
        // SAFETY: the key's bytes are read during the call only, and what is returned is copied and freed.
        unsafe {
            let found = c.checked(|error| {
                if self.store.mode.locks_reads {
                    let get = c.transaction_get_for_update;
                    get(self.txn, self.read, place, key.len(), n, 1, error)
                } else {
                    (c.transaction_get)(self.txn, self.read, place, key.len(), n, error)
                }
            })?;
            if found.is_null() {
                return Ok(None);
            }
            let bytes = copied(found, length);
            (c.free)(found.cast());
            Ok(Some(bytes))
        }
    }

    fn put(&mut self, key: &[u8], bytes: &[u8]) -> Result<(), Failure> {
        let c = &self.store.calls;
        let (place, value) = (key.as_ptr().cast(), bytes.as_ptr().cast());
        // SAFETY: both are read during the call only.
        c.checked(|error| unsafe {
            (c.transaction_put)(self.txn, place, key.len(), value, bytes.len(), error);
        })
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Failure> {
        let c = &self.store.calls;
        // SAFETY: the key is read during the call only.
        c.checked(|error| unsafe {
            (c.transaction_delete)(self.txn, key.as_ptr().cast(), key.len(), error);
        })
    }

    fn scan(&mut self, low: &[u8], end: &[u8]) -> Result<KeyRows, Failure> {
        let c = &self.store.calls;
        let mut rows = Vec::new();
        // SAFETY: the iterator is destroyed before the transaction, and what it points to is copied before it moves.
        unsafe {
            let at = (c.transaction_create_iterator)(self.txn, self.read);
            (c.iter_seek)(at, low.as_ptr().cast(), low.len());
            while (c.iter_valid)(at) != 0 {
                let mut length = 0;
                let key = copied((c.iter_key)(at, &raw mut length), length);
                if key.as_slice() >= end {
                    break;
                }
                rows.push((key, copied((c.iter_value)(at, &raw mut length), length)));
                (c.iter_next)(at);
            }
            let ended = c.checked(|error| (c.iter_get_error)(at, error));
            (c.iter_destroy)(at);
            ended.map(|()| rows)
        }
    }

    fn commit(self: Box<Self>) -> Result<(), Failure> {
        let c = &self.store.calls;
        // SAFETY: the transaction is ours.
        c.checked(|error| unsafe { (c.transaction_commit)(self.txn, error) })
    }

    fn abort(self: Box<Self>) -> Result<(), Failure> {
        let c = &self.store.calls;
        // SAFETY: the transaction is ours.
        c.checked(|error| unsafe { (c.transaction_rollback)(self.txn, error) })
    }
}

impl RocksDb {
    fn store(&self) -> Result<Arc<Store>, Failure> {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = &*store {
            return Ok(Arc::clone(open));
        }
        let open = Arc::new(Store::open(&self.calls, self.mode, &self.path)?);
        *store = Some(Arc::clone(&open));
        Ok(open)
    }
}

impl Database for RocksDb {
    fn version(&self) -> Result<String, Failure> {
        // The library tells its version in its file's name only.
        let library = self.settings.first().map_or("", |(_, value)| value);
        let path = std::fs::canonicalize(library).unwrap_or_else(|_| library.into());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let number = name.split_once(".so.").map_or("", |(_, number)| number);
        Ok(format!("RocksDB {number}").trim_end().to_owned())
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.settings.clone()
    }

    fn prepare(&self, initially: Initially) -> Result<(), Failure> {
        if self.path.exists() {
            return Err(Failure::Fatal(format!(
                "{} is in the way: remove it, or name another directory",
                self.path.display()
            )));
        }
        let mut open = self.store()?.begin()?;
        for (key, beside) in initially.rows() {
            let cell = encode::cell(StoredCell { value: 0, beside });
            open.put(&encode::register(key), &cell)?;
        }
        open.commit()
    }

    fn open(&self, _session: usize) -> Result<Box<dyn DatabaseSession>, Failure> {
        let (store, open) = (self.store()?, None);
        Ok(Box::new(KeyedSession { store, open }))
    }

    fn clean(&self) -> Result<(), Failure> {
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = None;
        std::fs::remove_dir_all(&self.path).map_err(fatal)
    }
}
