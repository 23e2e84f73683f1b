//! Numbers the versions of every key, and gives each its readers once they are known.

use std::ops::Range;

use super::attribute::Writers;
use super::versions::{NO_NODE, Node, VersionId, Versions};
use crate::model::{History, KeyId, SessionId, TxnId};

/// An external read.
pub(super) struct Read {
    pub(super) reader: Node,
    pub(super) version: u32,
    /// The version of the same key that the reader installs, or `u32::MAX`.
    pub(super) overwritten_by: u32,
}

/// The sessions, as ranges of nodes.
pub(super) fn session_ranges(history: &History, node_txn: &[TxnId]) -> Vec<Range<Node>> {
    let place = |txn: u32| node_txn.partition_point(|node| node.0 < txn) as Node;
    (0..history.n_sessions() as u32)
        .map(|session| history.session_txns(SessionId(session)))
        .map(|txns| place(txns.start)..place(txns.end))
        .collect()
}

/// What a read of a value is a read of, side by side: reads come in no order, and each waits for the memory once.
#[derive(Clone, Copy)]
pub(super) struct Written {
    /// The version that the value is, if a candidate wrote it.
    pub(super) version: u32,
    /// Its writer; [`NO_NODE`] if there is none, or several candidates.
    pub(super) writer: Node,
}

/// The versions by number, before their readers are known.
pub(super) struct Numbering {
    key_start: Vec<u32>,
    writer: Vec<Node>,
    /// By value.
    pub(super) written: Vec<Written>,
}

impl Numbering {
    pub(super) fn of(history: &History, writers: &Writers, node_txn: &[TxnId]) -> Self {
        // One more than the writes: every key's first version is the initial one.
        let mut key_start = vec![0_u32; history.n_keys() + 1];
        for write in node_txn.iter().flat_map(|&txn| writers.finals(txn)) {
            key_start[write.key.index() + 1] += 1;
        }
        for key in 0..history.n_keys() {
            key_start[key + 1] += key_start[key] + 1;
        }
        let mut next: Vec<u32> = key_start[..history.n_keys()]
            .iter()
            .map(|start| start + 1)
            .collect();
        let n_versions = key_start.last().map_or(0, |&end| end as usize);
        let mut writer = vec![NO_NODE; n_versions];
        let nobody = Written {
            version: u32::MAX,
            writer: NO_NODE,
        };
        let mut written = vec![nobody; history.n_values()];
        for (node, &txn) in node_txn.iter().enumerate() {
            for write in writers.finals(txn) {
                let version = next[write.key.index()];
                next[write.key.index()] += 1;
                writer[version as usize] = node as Node;
                let is_only =
                    writers.is_only_candidate(write.value) && !history.is_initial(write.value);
                written[write.value.index()] = Written {
                    version,
                    writer: if is_only { node as Node } else { NO_NODE },
                };
            }
        }
        Numbering {
            key_start,
            writer,
            written,
        }
    }

    /// The version of a key that a node installed.
    pub(super) fn of_writer(&self, key: KeyId, node: Node) -> Option<VersionId> {
        let (start, end) = (self.key_start[key.index()], self.key_start[key.index() + 1]);
        let written = &self.writer[start as usize + 1..end as usize];
        let at = written.binary_search(&node).ok()?;
        Some(VersionId(start + 1 + at as u32))
    }

    /// Who installed a version.
    pub(super) fn writer(&self, version: VersionId) -> Node {
        self.writer[version.index()]
    }

    /// The versions of a key, the initial one first.
    pub(super) fn of_key(&self, key: KeyId) -> impl Iterator<Item = VersionId> + use<> {
        (self.key_start[key.index()]..self.key_start[key.index() + 1]).map(VersionId)
    }

    pub(super) fn initial(&self, key: KeyId) -> VersionId {
        VersionId(self.key_start[key.index()])
    }

    /// Adds the readers, and the neighbours that read-modify-writes make.
    pub(super) fn versions(self, history: &History, reads: &[Read]) -> Versions {
        let n_versions = self.writer.len();
        let mut reader_start = vec![0_u32; n_versions + 1];
        for read in reads {
            reader_start[read.version as usize + 1] += 1;
        }
        for version in 0..n_versions {
            reader_start[version + 1] += reader_start[version];
        }
        let mut next = reader_start.clone();
        let mut readers = vec![0; reads.len()];
        let mut successor = vec![u32::MAX; n_versions];
        let mut predecessor = vec![u32::MAX; n_versions];
        for read in reads {
            let at = &mut next[read.version as usize];
            readers[*at as usize] = read.reader;
            *at += 1;
            if read.overwritten_by != u32::MAX {
                predecessor[read.overwritten_by as usize] = read.version;
                if successor[read.version as usize] == u32::MAX {
                    successor[read.version as usize] = read.overwritten_by;
                }
            }
        }
        Versions {
            key: self.keys(history),
            key_start: self.key_start,
            writer: self.writer,
            reader_start,
            readers,
            successor,
            predecessor,
        }
    }

    /// The versions without their readers, for who does not ask for them.
    pub(super) fn without_readers(self, history: &History) -> Versions {
        Versions {
            key: self.keys(history),
            key_start: self.key_start,
            writer: self.writer,
            reader_start: Vec::new(),
            readers: Vec::new(),
            successor: Vec::new(),
            predecessor: Vec::new(),
        }
    }

    /// The key of each version.
    fn keys(&self, history: &History) -> Vec<KeyId> {
        let mut key = Vec::with_capacity(self.writer.len());
        for k in 0..history.n_keys() {
            key.resize(self.key_start[k + 1] as usize, KeyId(k as u32));
        }
        key
    }
}
