//! A history where statements are transactions of their own: each reads at one moment, and a last one has all writes.
//!
//! An order of these parts in which every statement reads the newest versions explains the history at read committed, so a search
//! that looks for such an order may look for one of the kind that databases give.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::candidates::Uncertain;
use super::versions::{NO_NODE, Node, VersionId, Versions};
use super::{ProgramReads, Resolved};
use crate::model::{Act, History, KeyId, TxnId};

/// The part of its transaction that a node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// A statement, which reads.
    Statement(u32),
    /// What it wrote.
    Commit,
}

/// The certain reads of the parts, sorted, and the uncertain ones.
type ReadsOfParts = (Vec<(VersionId, Node)>, Vec<Uncertain>);

/// The parts as they are numbered.
#[derive(Default)]
struct Numbered {
    parts: Vec<Part>,
    txns: Vec<TxnId>,
    sessions: Vec<Range<Node>>,
    /// The last part of each transaction.
    last: Vec<Node>,
    /// The statements of each transaction that is split.
    of_statement: FxHashMap<(Node, u32), Node>,
}

impl Resolved {
    /// What a node is of its transaction.
    pub fn part(&self, node: Node) -> Part {
        let part = self.parts.get(node as usize);
        part.copied().unwrap_or(Part::Whole)
    }

    /// The same where each statement of some transactions is a transaction by itself, and the parts of a transaction are a session; with
    /// session order, those of a whole session are. `None` where the reads of a statement contradict each other, or range queries or
    /// given edges speak of transactions.
    pub fn by_statement(
        &self,
        history: &History,
        session_order: bool,
        is_split: impl Fn(Node) -> bool,
    ) -> Option<Resolved> {
        if !self.gaps.is_empty()
            || !self.reads.gaps().is_empty()
            || !self.unreturned.is_empty()
            || !history.given_edges().is_empty()
        {
            return None;
        }
        let numbered = self.numbered(history, session_order, &is_split);
        let (reads, uncertain) = self.reads_of_parts(history, &numbered, &is_split)?;
        Some(Resolved {
            versions: self.versions.of_parts(&numbered.last, &reads, is_split),
            node_txn: numbered.txns,
            sessions: numbered.sessions,
            parts: numbered.parts.into(),
            uncertain: Arc::new(uncertain),
            findings: Vec::new(),
            reads: ProgramReads::default(),
            ..self.clone()
        })
    }

    fn numbered(
        &self,
        history: &History,
        session_order: bool,
        is_split: &impl Fn(Node) -> bool,
    ) -> Numbered {
        let mut numbered = Numbered::default();
        for session in &self.sessions {
            let mut start = numbered.parts.len() as Node;
            for node in session.clone() {
                let txn = self.txn(node);
                if is_split(node) {
                    for statement in self.statements_of(history, node) {
                        let part = numbered.push(txn, Part::Statement(statement));
                        numbered.of_statement.insert((node, statement), part);
                    }
                }
                let last = if is_split(node) {
                    Part::Commit
                } else {
                    Part::Whole
                };
                let last = numbered.push(txn, last);
                numbered.last.push(last);
                if !session_order {
                    numbered.sessions.push(start..last + 1);
                    start = last + 1;
                }
            }
            if session_order {
                numbered.sessions.push(start..numbered.parts.len() as Node);
            }
        }
        numbered
    }

    /// The statements of a transaction that read, in program order.
    fn statements_of(&self, history: &History, node: Node) -> Vec<u32> {
        let txn = self.txn(node);
        let reads = self.reads.of(node).map(|read| self.reads.statement(read));
        let mut statements: Vec<u32> = reads.chain(aggregating(history, txn)).collect();
        statements.sort_unstable();
        statements.dedup();
        statements
    }

    /// The certain reads of the parts, sorted, and the uncertain ones. Aggregates make none.
    fn reads_of_parts(
        &self,
        history: &History,
        numbered: &Numbered,
        is_split: &impl Fn(Node) -> bool,
    ) -> Option<ReadsOfParts> {
        let versions = &self.versions;
        let mut certain: Vec<(VersionId, Node)> = Vec::new();
        for version in (0..versions.len() as u32).map(VersionId) {
            let readers = versions.readers(version).iter();
            let readers = readers.filter(|&&it| !is_split(it));
            certain.extend(readers.map(|&it| (version, numbered.last[it as usize])));
        }
        let mut uncertain: Vec<Uncertain> = Vec::new();
        for read in self.uncertain.iter().filter(|it| !is_split(it.reader)) {
            let reader = numbered.last[read.reader as usize];
            uncertain.push(Uncertain {
                reader,
                ..read.clone()
            });
        }
        let choices: FxHashMap<u32, &Vec<VersionId>> =
            (self.reads.choices().iter().map(|it| (it.0, &it.1))).collect();
        let mut open: FxHashMap<(Node, KeyId), Uncertain> = FxHashMap::default();
        let mut known: FxHashMap<(Node, KeyId), VersionId> = FxHashMap::default();
        for node in (0..self.n_txns() as Node).filter(|&it| is_split(it)) {
            let aggregating: Vec<u32> = aggregating(history, self.txn(node)).collect();
            for read in self.reads.of(node) {
                let statement = self.reads.statement(read);
                if aggregating.contains(&statement) {
                    continue;
                }
                let part = *numbered.of_statement.get(&(node, statement))?;
                let key = versions.key(self.reads.version(read));
                match choices.get(&(read as u32)) {
                    None => {
                        let version = self.reads.version(read);
                        if *known.entry((part, key)).or_insert(version) != version {
                            return None;
                        }
                    }
                    Some(candidates) => {
                        let first = open.entry((part, key)).or_insert_with(|| Uncertain {
                            reader: part,
                            op: self.reads.op(read),
                            key,
                            candidates: versions.of_key(key).map(VersionId).collect(),
                        });
                        first
                            .candidates
                            .retain(|it| candidates.binary_search(it).is_ok());
                    }
                }
            }
        }
        for (place, read) in open {
            match (known.get(&place), read.candidates.as_slice()) {
                (Some(version), candidates) if candidates.contains(version) => {}
                (Some(_), _) | (None, []) => return None,
                (None, &[version]) => certain.push((version, place.0)),
                (None, _) => uncertain.push(read),
            }
        }
        certain.extend(
            known
                .into_iter()
                .map(|((part, _), version)| (version, part)),
        );
        certain.sort_unstable();
        certain.dedup();
        uncertain.sort_unstable_by_key(|it| (it.reader, it.op, it.key));
        Some((certain, uncertain))
    }
}

/// The statements of a transaction that are aggregates.
fn aggregating(history: &History, txn: TxnId) -> impl Iterator<Item = u32> + '_ {
    let named = history.statements(txn);
    let predicates = history.predicates(txn).enumerate();
    let aggregates = predicates.filter(|it| matches!(it.1.act, Act::Aggregate { .. }));
    aggregates.map(move |(nth, _)| named.of(named.read_by(nth)) as u32)
}

impl Numbered {
    fn push(&mut self, txn: TxnId, part: Part) -> Node {
        self.parts.push(part);
        self.txns.push(txn);
        self.parts.len() as Node - 1
    }
}

impl Versions {
    /// The versions where writers are the last parts of transactions. Those that are split read nothing before they write.
    fn of_parts(
        &self,
        last: &[Node],
        reads: &[(VersionId, Node)],
        is_split: impl Fn(Node) -> bool,
    ) -> Versions {
        let mut of_parts = self.clone();
        for writer in of_parts.writer.iter_mut().filter(|it| **it != NO_NODE) {
            *writer = last[*writer as usize];
        }
        for version in (0..self.len() as u32).map(VersionId) {
            let is_split_writer = |it: VersionId| is_split(self.writer(it));
            let next = self.successor(version);
            if next.is_some_and(is_split_writer) {
                of_parts.successor[version.index()] = u32::MAX;
            }
            if !self.is_initial(version) && is_split_writer(version) {
                of_parts.predecessor[version.index()] = u32::MAX;
            }
        }
        of_parts.readers = reads.iter().map(|it| it.1).collect();
        let start = |version: usize| reads.partition_point(|it| it.0.index() < version) as u32;
        of_parts.reader_start = (0..=self.len()).map(start).collect();
        of_parts
    }
}
