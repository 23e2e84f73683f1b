//! The versions of what is kept, key by key, each with its writer and its readers.

use std::ops::Range;

use crate::WatchError;
use crate::arrival::{KeyNumber, ValueName};
use crate::lists::ListIndex;
use crate::window::KeptWindow;

/// Where a version comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A kept transaction, by its place, and which of its writes.
    Kept(u32, u32),
    /// The key's stub.
    Stub,
    /// Nothing that is kept wrote it.
    Missing,
}

/// A version of a key.
#[derive(Clone, Debug)]
pub(crate) struct WatchedVersion {
    pub(crate) key: KeyNumber,
    pub(crate) source: Source,
    readers: Range<u32>,
}

/// All versions, by key.
#[derive(Debug, Default)]
pub(crate) struct VersionIndex {
    pub(crate) versions: Vec<WatchedVersion>,
    readers: Vec<u32>,
    keys: Vec<Range<u32>>,
    pub(crate) lists: ListIndex,
}

type Entry = (KeyNumber, ValueName, bool, u32, u32);

impl VersionIndex {
    pub(crate) fn new(window: &KeptWindow) -> Result<Self, WatchError> {
        let mut entries: Vec<Entry> = Vec::new();
        for (at, kept) in window.kept.iter().enumerate() {
            let of = |ops: &[(KeyNumber, ValueName)], is_read: bool, entries: &mut Vec<Entry>| {
                let ops = ops.iter().enumerate();
                entries.extend(ops.map(|(op, &(k, v))| (k, v, is_read, at as u32, op as u32)));
            };
            of(&kept.arrival.writes, false, &mut entries);
            of(&kept.arrival.reads, true, &mut entries);
        }
        entries.sort_unstable();
        let mut index = VersionIndex {
            lists: ListIndex::new(window),
            ..VersionIndex::default()
        };
        for group in entries.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            index.push(window, group)?;
        }
        Ok(index)
    }

    /// Adds the version of entries of one key and value.
    fn push(&mut self, window: &KeptWindow, group: &[Entry]) -> Result<(), WatchError> {
        let (key, value, ..) = group[0];
        let n_writes = group.iter().take_while(|it| !it.2).count();
        let is_stub = window.is_stub(key, value);
        if n_writes > 1 || (n_writes == 1 && is_stub) {
            let id = |entry: &Entry| window.kept[entry.3 as usize].arrival.id;
            return Err(WatchError::Repeated {
                id: id(&group[n_writes - 1]),
            });
        }
        let source = match group[0] {
            (_, _, false, at, write) => Source::Kept(at, write),
            _ if is_stub => Source::Stub,
            _ => Source::Missing,
        };
        let first = self.readers.len() as u32;
        self.readers
            .extend(group[n_writes..].iter().map(|entry| entry.3));
        let readers = first..self.readers.len() as u32;
        let at = self.versions.len() as u32;
        match self.keys.last_mut() {
            Some(last) if self.versions[last.start as usize].key == key => last.end = at + 1,
            _ => self.keys.push(at..at + 1),
        }
        self.versions.push(WatchedVersion {
            key,
            source,
            readers,
        });
        Ok(())
    }

    /// The versions, key by key.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &[WatchedVersion]> {
        let keys = self.keys.iter();
        keys.map(|it| &self.versions[it.start as usize..it.end as usize])
    }

    /// The kept transactions that read a version, by their places.
    pub(crate) fn readers(&self, version: &WatchedVersion) -> &[u32] {
        &self.readers[version.readers.start as usize..version.readers.end as usize]
    }
}
