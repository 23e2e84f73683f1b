//! surrealkv, an embedded log-structured store with snapshot isolation, in two versions at once: a hunt finds lost updates before
//! 1.0 and none after.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::Runtime;

use super::keyed::{KeyRows, KeyStore, KeyTransaction, KeyedSession};
use super::{Target, encode, table};
use crate::adapter::{Database, DatabaseSession, Failure, Initially, StoredCell};

/// The database at a target.
pub(super) fn make(target: &Target) -> Result<Box<dyn Database>, Failure> {
    let settings = table::SURREALKV.settings(target);
    let version = settings.first().map_or("", |(_, value)| value.as_str());
    let open = match version {
        "1.2" => now::open,
        "0.21" => before::open,
        other => {
            return Err(Failure::Fatal(format!(
                "version={other}: compiled in are 1.2 and 0.21"
            )));
        }
    };
    let given = target.urls.first().map(PathBuf::from);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    Ok(Box::new(SurrealKv {
        version: version.to_owned(),
        open,
        path: given.unwrap_or_else(|| target.directory.join("database.surrealkv")),
        runtime: Arc::new(runtime.map_err(fatal)?),
        store: Mutex::new(None),
        settings,
    }))
}

fn fatal(error: impl std::fmt::Display) -> Failure {
    Failure::Fatal(format!("surrealkv: {error}"))
}

/// A store of either version.
trait SurrealStore: Send + Sync {
    fn begin(&self, runtime: Arc<Runtime>) -> Result<Box<dyn KeyTransaction>, Failure>;
    fn close(&self, runtime: &Runtime) -> Result<(), Failure>;
}

struct SurrealKv {
    version: String,
    open: fn(PathBuf) -> Result<Arc<dyn SurrealStore>, Failure>,
    path: PathBuf,
    runtime: Arc<Runtime>,
    store: Mutex<Option<Arc<dyn SurrealStore>>>,
    settings: Vec<(String, String)>,
}

impl SurrealKv {
    fn session(&self) -> Result<Session, Failure> {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let open = match &*store {
            Some(open) => Arc::clone(open),
            None => {
                // It starts tasks of its own.
                let _entered = self.runtime.enter();
                (self.open)(self.path.clone())?
            }
        };
        *store = Some(Arc::clone(&open));
        Ok(Session {
            store: open,
            runtime: Arc::clone(&self.runtime),
        })
    }
}

struct Session {
    store: Arc<dyn SurrealStore>,
    runtime: Arc<Runtime>,
}

impl KeyStore for Session {
    fn begin(&mut self) -> Result<Box<dyn KeyTransaction>, Failure> {
        self.store.begin(Arc::clone(&self.runtime))
    }
}

impl Database for SurrealKv {
    fn version(&self) -> Result<String, Failure> {
        Ok(format!("surrealkv {}", self.version))
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
        let mut open = self.session()?.begin()?;
        for (key, beside) in initially.rows() {
            let cell = encode::cell(StoredCell { value: 0, beside });
            open.put(&encode::register(key), &cell)?;
        }
        open.commit()
    }

    fn open(&self, _session: usize) -> Result<Box<dyn DatabaseSession>, Failure> {
        let (store, open) = (self.session()?, None);
        Ok(Box::new(KeyedSession { store, open }))
    }

    fn clean(&self) -> Result<(), Failure> {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = store.take() {
            store.close(&self.runtime)?;
        }
        std::fs::remove_dir_all(&self.path).map_err(fatal)
    }
}

/// The same code for each version: their types are different ones of the same names.
macro_rules! version {
    ($module:ident, $library:ident) => {
        mod $module {
            use std::path::PathBuf;
            use std::sync::Arc;

            use tokio::runtime::Runtime;
            use $library::{Error, LSMIterator as _, Transaction, Tree, TreeBuilder};

            use super::{KeyRows, KeyTransaction, SurrealStore, fatal};
            use crate::adapter::Failure;

            pub(super) fn open(path: PathBuf) -> Result<Arc<dyn SurrealStore>, Failure> {
                let tree = TreeBuilder::new().with_path(path).build().map_err(fatal)?;
                Ok(Arc::new(Opened(tree)))
            }

            struct Opened(Tree);

            impl SurrealStore for Opened {
                fn begin(&self, runtime: Arc<Runtime>) -> Result<Box<dyn KeyTransaction>, Failure> {
                    let open = self.0.begin().map_err(fatal)?;
                    Ok(Box::new(Open { open, runtime }))
                }

                fn close(&self, runtime: &Runtime) -> Result<(), Failure> {
                    runtime.block_on(self.0.close()).map_err(fatal)
                }
            }

            struct Open {
                open: Transaction,
                runtime: Arc<Runtime>,
            }

            impl KeyTransaction for Open {
                fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
                    let found = self.open.get(key).map_err(fatal)?;
                    Ok(found.map(|bytes| bytes.to_vec()))
                }

                fn put(&mut self, key: &[u8], bytes: &[u8]) -> Result<(), Failure> {
                    self.open.set(key, bytes).map_err(fatal)
                }

                fn delete(&mut self, key: &[u8]) -> Result<(), Failure> {
                    self.open.delete(key).map_err(fatal)
                }

                fn scan(&mut self, low: &[u8], end: &[u8]) -> Result<KeyRows, Failure> {
                    let mut rows = Vec::new();
                    let mut at = self.open.range(low, end).map_err(fatal)?;
                    let mut more = at.seek_first().map_err(fatal)?;
                    while more && at.valid() {
                        let bytes = at.value().map_err(fatal)?;
                        rows.push((at.key().user_key().to_vec(), bytes.to_vec()));
                        more = at.next().map_err(fatal)?;
                    }
                    Ok(rows)
                }

                fn commit(mut self: Box<Self>) -> Result<(), Failure> {
                    let runtime = Arc::clone(&self.runtime);
                    match runtime.block_on(self.open.commit()) {
                        Err(Error::TransactionWriteConflict) => Err(Failure::Aborted("conflict")),
                        Err(Error::TransactionRetry) => Err(Failure::Aborted("retry")),
                        ended => ended.map_err(fatal),
                    }
                }

                fn abort(mut self: Box<Self>) -> Result<(), Failure> {
                    self.open.rollback();
                    Ok(())
                }
            }
        }
    };
}

version!(now, surrealkv);
version!(before, surrealkv_before);
