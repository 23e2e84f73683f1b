//! Deliberate mistakes of an adapter, around any database: a checker that misses them would also miss a mistake of
//! ours, and a mistake of ours must not look like a bug of the database.

use rustc_hash::FxHashMap;

use crate::adapter::{
    Database, DatabaseSession, Failure, Initially, Key, Resolution, SessionShare, StoredCell,
    VersionLog, Wrote,
};

/// The adapter's mistake, every few operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// A write is reported and not sent.
    DroppedWrite,
    /// A read returns what the key held before.
    StaleRead,
    /// A read goes through another connection, in another and older transaction.
    WrongSession,
}

impl Mistake {
    /// All of them.
    pub const ALL: [Mistake; 3] = [Self::DroppedWrite, Self::StaleRead, Self::WrongSession];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Mistake::DroppedWrite => "dropped write",
            Mistake::StaleRead => "stale read",
            Mistake::WrongSession => "wrong session",
        }
    }
}

/// One operation in this many goes wrong.
const EVERY: u32 = 7;

/// A database whose adapter makes a mistake.
pub struct Broken<'a> {
    /// The database.
    pub inner: &'a dyn Database,
    /// What goes wrong.
    pub mistake: Mistake,
}

impl Database for Broken<'_> {
    fn version(&self) -> Result<String, Failure> {
        let version = self.inner.version()?;
        Ok(format!(
            "{version} with a deliberate {}",
            self.mistake.name()
        ))
    }

    fn prepare(&self, initially: Initially) -> Result<(), Failure> {
        self.inner.prepare(initially)
    }

    fn open(&self, session: usize) -> Result<Box<dyn DatabaseSession>, Failure> {
        Ok(Box::new(Breaking {
            inner: self.inner.open(session)?,
            other: self.inner.open(session)?,
            mistake: self.mistake,
            n_ops: 0,
            n_elsewhere: 0,
            before: FxHashMap::default(),
        }))
    }

    fn node(&self, session: usize) -> Option<String> {
        self.inner.node(session)
    }

    fn runs(&self, session: usize) -> SessionShare {
        self.inner.runs(session)
    }

    fn log(&self) -> Result<Option<VersionLog>, Failure> {
        self.inner.log()
    }

    fn resolve(&self, txn: &str) -> Resolution {
        self.inner.resolve(txn)
    }

    fn clean(&self) -> Result<(), Failure> {
        self.inner.clean()
    }
}

struct Breaking {
    inner: Box<dyn DatabaseSession>,
    other: Box<dyn DatabaseSession>,
    mistake: Mistake,
    n_ops: u32,
    /// Reads of the other connection's transaction so far.
    n_elsewhere: u32,
    /// What was seen of each key before what was seen last, and that.
    before: FxHashMap<Key, [Option<StoredCell>; 2]>,
}

impl Breaking {
    fn is_due(&mut self, mistake: Mistake) -> bool {
        if self.mistake != mistake {
            return false;
        }
        self.n_ops += 1;
        self.n_ops.is_multiple_of(EVERY)
    }
}

impl Breaking {
    /// Reads in the other connection's transaction, which is as old as a few of ours.
    fn read_elsewhere(&mut self, key: Key) -> Result<Option<StoredCell>, Failure> {
        if self.n_elsewhere == 0 {
            self.other.begin()?;
        }
        let read = self.other.read(key);
        self.n_elsewhere = (self.n_elsewhere + 1) % 8;
        if self.n_elsewhere == 0 || read.is_err() {
            self.n_elsewhere = 0;
            self.other.abort()?;
        }
        read
    }
}

impl DatabaseSession for Breaking {
    fn begin(&mut self) -> Result<(), Failure> {
        self.inner.begin()
    }

    fn read(&mut self, key: Key) -> Result<Option<StoredCell>, Failure> {
        if self.is_due(Mistake::WrongSession)
            && let Ok(read) = self.read_elsewhere(key)
        {
            return Ok(read);
        }
        let read = self.inner.read(key)?;
        let seen = self.before.entry(key).or_insert([read; 2]);
        if seen[1] != read {
            *seen = [seen[1], read];
        }
        let before = seen[0];
        Ok(if self.is_due(Mistake::StaleRead) {
            before
        } else {
            read
        })
    }

    fn write(&mut self, key: Key, cell: StoredCell) -> Result<Wrote, Failure> {
        if self.is_due(Mistake::DroppedWrite) {
            return Ok(Wrote::default());
        }
        self.inner.write(key, cell)
    }

    fn read_list(&mut self, key: Key) -> Result<Vec<i64>, Failure> {
        self.inner.read_list(key)
    }

    fn append(&mut self, key: Key, value: i64) -> Result<Wrote, Failure> {
        if self.is_due(Mistake::DroppedWrite) {
            return Ok(Wrote::default());
        }
        self.inner.append(key, value)
    }

    fn range(&mut self, low: Key, high: Key) -> Result<Vec<(Key, i64)>, Failure> {
        self.inner.range(low, high)
    }

    fn delete(&mut self, key: Key) -> Result<Option<Wrote>, Failure> {
        self.inner.delete(key)
    }

    fn commit(&mut self) -> Result<Option<String>, Failure> {
        self.inner.commit()
    }

    fn abort(&mut self) -> Result<(), Failure> {
        self.inner.abort()
    }
}
