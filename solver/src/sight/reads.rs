//! The reads that can have been of several versions, as a level sees them: read committed may read a key twice and differently, at all
//! other levels a transaction's reads of a key are of one version.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::model::{KeyId, TxnId};
use crate::phases::Check;
use crate::resolve::{Node, Resolved, Uncertain, VersionId};
use crate::verdict::Proof;

/// A transaction, the name of one of its reads, and the key.
pub(super) type Place = (Node, usize, KeyId);

/// One read, or all reads of a key by a transaction that must be of one version.
pub(super) struct OpenRead {
    pub(super) reader: Node,
    /// Its name, where it is one read of several that may differ.
    pub(super) op: Option<usize>,
    pub(super) key: KeyId,
    /// The reads in program order that it stands for, by their numbers.
    pub(super) reads: Vec<usize>,
    /// What it can have been of, sorted.
    pub(super) candidates: Vec<VersionId>,
    /// The version, where the graph knows it already.
    pub(super) known: Option<VersionId>,
}

/// The writer of a version; none, if it is the initial one.
pub(super) fn writer(base: &Resolved, version: VersionId) -> Option<TxnId> {
    let versions = base.versions();
    (!versions.is_initial(version)).then(|| base.txn(versions.writer(version)))
}

impl OpenRead {
    /// A read that must be of one version.
    pub(super) fn of(read: &Uncertain) -> Self {
        OpenRead {
            reader: read.reader,
            op: None,
            key: read.key,
            reads: Vec::new(),
            candidates: read.candidates.clone(),
            known: None,
        }
    }

    /// The same as a read that must be of one version.
    pub(super) fn uncertain(&self) -> Uncertain {
        Uncertain {
            reader: self.reader,
            op: 0,
            key: self.key,
            candidates: self.candidates.clone(),
        }
    }

    /// That none of these cases can be.
    pub(super) fn choice(&self, base: &Resolved, cases: Vec<(Option<TxnId>, Proof)>) -> Proof {
        Proof::Choice {
            reader: base.txn(self.reader),
            op: self.op,
            key: self.key,
            cases,
        }
    }
}

/// The open reads of a history.
pub(super) fn open_reads(check: &Check<'_>, base: &Resolved) -> Vec<OpenRead> {
    let program = base.reads();
    let mut reads: Vec<OpenRead> = Vec::new();
    let mut of: FxHashMap<(Node, KeyId), usize> = FxHashMap::default();
    let mut reader = 0;
    for (read, candidates) in program.choices() {
        let read = *read as usize;
        while program.of(reader).end <= read {
            reader += 1;
        }
        let key = base.versions().key(program.version(read));
        let model = check.spec.model_of(check.history, base.txn(reader));
        let may_differ = model.reads_may_differ();
        if !may_differ && let Some(&at) = of.get(&(reader, key)) {
            reads[at].reads.push(read);
            reads[at]
                .candidates
                .retain(|it| candidates.binary_search(it).is_ok());
            continue;
        }
        of.insert((reader, key), reads.len());
        reads.push(OpenRead {
            reader,
            op: may_differ.then(|| program.op(read) as usize),
            key,
            reads: vec![read],
            candidates: candidates.clone(),
            known: None,
        });
    }
    for read in reads.iter_mut().filter(|it| it.op.is_none()) {
        read.known = base.certain_read(read.reader, read.key);
        if let Some(known) = read.known {
            read.candidates.retain(|&it| it == known);
        }
    }
    for uncertain in base.uncertain() {
        if let Some(&at) = of.get(&(uncertain.reader, uncertain.key))
            && reads[at].op.is_none()
        {
            let candidates = &mut reads[at].candidates;
            candidates.retain(|it| uncertain.candidates.binary_search(it).is_ok());
        }
    }
    reads
}

/// The open reads of each transaction and key.
pub(super) fn by_key(reads: &[OpenRead]) -> FxHashMap<(Node, KeyId), Vec<usize>> {
    let mut of: FxHashMap<(Node, KeyId), Vec<usize>> = FxHashMap::default();
    for (at, read) in reads.iter().enumerate() {
        of.entry((read.reader, read.key)).or_default().push(at);
    }
    of
}

/// The open reads of each transaction.
pub(super) fn by_reader(reads: &[OpenRead]) -> FxHashMap<Node, Vec<usize>> {
    let mut of: FxHashMap<Node, Vec<usize>> = FxHashMap::default();
    for (at, read) in reads.iter().enumerate() {
        of.entry(read.reader).or_default().push(at);
    }
    of
}

/// The transactions and keys whose reads may differ.
pub(super) fn loose(reads: &[OpenRead]) -> FxHashSet<(Node, KeyId)> {
    let differ = reads.iter().filter(|it| it.op.is_some());
    differ.map(|it| (it.reader, it.key)).collect()
}

/// Where each read in program order is among the open reads.
pub(super) fn places(base: &Resolved, reads: &[OpenRead]) -> FxHashMap<Place, usize> {
    let program = base.reads();
    let all = reads.iter().enumerate().flat_map(|(at, read)| {
        let places = read.reads.iter();
        places.map(move |&it| ((read.reader, program.op(it) as usize, read.key), at))
    });
    all.collect()
}

/// The open read of each read in program order.
pub(super) fn by_program(reads: &[OpenRead]) -> FxHashMap<usize, usize> {
    let all = reads.iter().enumerate();
    all.flat_map(|(at, read)| read.reads.iter().map(move |&it| (it, at)))
        .collect()
}
