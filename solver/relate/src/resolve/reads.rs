//! Walks every counted transaction: finds the writer of each external read, names impossible reads, and numbers the versions.
//!
//! Only a transaction's first read of a key before its own write, and its last write, matter outside it.

use rustc_hash::FxHashMap;

use super::absence::{Absences, is_nothing};
use super::aggregates::Aggregates;
use super::attribute::{Census, ValueOrigin, Writers};
use super::candidates::{Uncertain, settle};
use super::gaps::{Gap, Gaps, Under};
use super::given::given_orders;
use super::lists::{ListReads, read_list, shows_same};
use super::numbering::{Numbering, Read, session_ranges};
use super::predicates::Matching;
use super::program::{ProgramGap, ProgramRead, ProgramReads};
use super::unreturned::{LookedAt, UnreturnedQuery};
use super::versions::{NO_NODE, Node, VersionId};
use super::{ResolveError, Resolved};
use crate::budget::{Budget, Poll};
use crate::level::Model;
use crate::model::{History, KeyId, Op, RangeId, Statements, Status, TxnId, ValueId};
use crate::verdict::{Finding, LocalAnomaly};

/// Further findings of a kind are not listed.
pub(super) const MAX_FINDINGS: usize = 1000;

/// Which reads become reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// A transaction's first of each key.
    First,
    /// The same, but those that rest on an unknown end are left out.
    Certain,
    /// The same, but deleted rows that queries did not return stay queries.
    Queries,
    /// The first of each key, and all in program order.
    All,
    /// All in program order; no rule asks a version for its readers.
    Program,
}

/// The meaning of a value that was read.
enum Seen {
    /// No version: an anomaly.
    Nothing,
    Version(VersionId),
    Several(Vec<VersionId>),
}

/// Maximum number of uncertain reads that memory is reserved for in advance.
const MOST_RESERVED: usize = 1 << 22;

/// Resolves a history.
pub(super) fn resolve(
    history: &History,
    budget: &Budget,
    keep: Keep,
) -> Result<Resolved, ResolveError> {
    let writers = Writers::of(history, budget)?;
    let mut absences = Absences::of(history, &writers, budget)?;
    let mut census = Census::of(history, &writers, &absences, budget)?;
    if keep == Keep::Queries {
        census.find_doubts(history, &writers, &absences);
    }
    let is_in_doubt = |txn: &TxnId| census.in_doubt.binary_search(txn).is_ok();
    let node_txn: Vec<TxnId> = history
        .txns()
        .filter(|txn| census.counts[txn.index()] || is_in_doubt(txn))
        .collect();
    let numbering = Numbering::of(history, &writers, &node_txn);
    let matching = Matching::of(history, &writers, &numbering, &node_txn, budget)?;
    let keep_queries = keep == Keep::Queries && !absences.deleted().is_empty();
    if keep_queries {
        absences.leave_out_deleted();
    }
    let mut walk = Walk::new(history, &writers, &absences, &numbering, &node_txn, budget);
    walk.matching = matching.as_ref();
    if let Some(matching) = &matching {
        let n_more = matching.n_looked_at(history);
        walk.uncertain.reserve(n_more.min(MOST_RESERVED));
    }
    walk.keep = keep;
    walk.keep_reads = matches!(keep, Keep::All | Keep::Program);
    walk.forgets_first = keep == Keep::Program && matching.is_none();
    if walk.keep_reads {
        walk.program.reserve(history.n_ops());
    }
    if !walk.forgets_first {
        walk.reads.reserve(history.n_ops());
    }
    walk.keep_queries = keep_queries;
    walk.in_doubt = &census.in_doubt;
    for (node, &txn) in node_txn.iter().enumerate() {
        walk.poll.step()?;
        walk.transaction(node as Node, txn)?;
    }
    walk.lists.check_aggregates(history)?;
    let given = given_orders(&mut walk)?;
    let unreturned = walk.unreturned();
    let forgets_first = walk.forgets_first;
    let program = (walk.program, walk.statement, walk.choices);
    let (mut reads, mut findings) = (walk.reads, walk.findings);
    let in_doubt = walk.in_doubt.iter();
    let in_doubt = in_doubt.filter_map(|txn| node_txn.binary_search(txn).ok());
    let in_doubt: Vec<Node> = in_doubt.map(|node| node as Node).collect();
    let uncertain = settle(&numbering, &mut reads, walk.uncertain, &in_doubt);
    let (gaps, program_gaps) = (walk.gaps, walk.program_gaps);
    findings.sort_by_key(|finding| (finding.txn, finding.op));
    findings.dedup();
    Ok(Resolved {
        sessions: session_ranges(history, &node_txn),
        versions: if forgets_first {
            numbering.without_readers(history)
        } else {
            numbering.versions(history, &reads)
        },
        gaps: Gaps {
            sorted: absences.sorted,
            gaps,
        },
        unreturned,
        given,
        in_doubt,
        uncertain: uncertain.into(),
        aggregates: Aggregates::of(history, matching.as_ref()),
        findings,
        reads: if matches!(keep, Keep::All | Keep::Program) {
            ProgramReads::new(node_txn.len(), program, program_gaps)
        } else {
            ProgramReads::default()
        },
        node_txn,
        parts: std::sync::Arc::default(),
        n_unknown_counted: census.n_unknown_counted,
        n_unknown_dropped: census.n_unknown_dropped,
    })
}

/// What a transaction has done to a key so far, in 16 bytes: keys come in no order.
#[derive(Clone, Copy)]
pub(super) struct KeyState {
    /// The transaction that this state belongs to.
    txn: u32,
    /// Its last own write so far, or [`KeyState::NO_WRITE`].
    own: ValueId,
    /// Its first external read.
    pub(super) read: FirstRead,
}

impl KeyState {
    const NO_WRITE: ValueId = ValueId(u32::MAX);

    /// Of a transaction that has not touched the key.
    fn of(txn: u32) -> Self {
        KeyState {
            txn,
            own: KeyState::NO_WRITE,
            read: FirstRead::None,
        }
    }

    /// Its last own write so far.
    #[inline]
    pub(super) fn own(&self) -> Option<ValueId> {
        (self.own != KeyState::NO_WRITE).then_some(self.own)
    }
}

/// A transaction's first external read of a key.
#[derive(Clone, Copy)]
pub(super) enum FirstRead {
    /// It has not read it.
    None,
    /// Of one version; where it stands among the reads.
    Of(u32),
    /// Of one of several versions; where it stands among the uncertain reads.
    Choice(u32),
}

pub(super) struct Walk<'h> {
    pub(super) history: &'h History,
    pub(super) writers: &'h Writers,
    pub(super) absences: &'h Absences,
    pub(super) numbering: &'h Numbering,
    pub(super) node_txn: &'h [TxnId],
    /// Which rows have versions that satisfy each condition, where there are conditions.
    pub(super) matching: Option<&'h Matching>,
    pub(super) poll: Poll<'h>,
    keep: Keep,
    /// Whether all external reads are kept, in program order.
    pub(super) keep_reads: bool,
    /// Whether a transaction's first reads are forgotten after it: no rule asks a version for its readers.
    forgets_first: bool,
    /// Whether deleted rows that queries did not return stay queries.
    pub(super) keep_queries: bool,
    /// The transactions that may have taken effect or not, sorted: all of their reads are uncertain.
    in_doubt: &'h [TxnId],
    /// Then the queries, and the keys that the transaction under way touches anywhere.
    pub(super) asked: Vec<UnreturnedQuery>,
    pub(super) touched: Vec<KeyId>,
    pub(super) looked_at: LookedAt,
    pub(super) program: Vec<ProgramRead>,
    /// Where there are conditions: the statements of these reads, those of the transaction under way, and the condition under way.
    pub(super) statement: Vec<u32>,
    pub(super) statements: Statements,
    pub(super) asking: Option<usize>,
    /// Of the reads in program order, those that can have been of several versions.
    pub(super) choices: Vec<(u32, Vec<VersionId>)>,
    pub(super) findings: Vec<Finding>,
    /// How many findings of each anomaly there are, by the level that each breaks and the level of its transaction: whether a level is
    /// broken does not depend on those that are left out.
    n_findings: FxHashMap<(LocalAnomaly, Model, Model), usize>,
    pub(super) lists: ListReads<'h>,
    pub(super) state: Vec<KeyState>,
    pub(super) reads: Vec<Read>,
    pub(super) uncertain: Vec<Uncertain>,
    /// The result of the first operation alone, if it is a read.
    pub(super) first_candidates: FxHashMap<u32, Vec<VersionId>>,
    /// For each key, the last range query that returned it.
    pub(super) returned_by: Vec<RangeId>,
    /// The transaction under way, and what its range queries spanned so far.
    node: Node,
    pub(super) under: Under,
    gaps: Vec<Gap>,
    pub(super) program_gaps: Vec<ProgramGap>,
}

impl<'h> Walk<'h> {
    fn new(
        history: &'h History,
        writers: &'h Writers,
        absences: &'h Absences,
        numbering: &'h Numbering,
        node_txn: &'h [TxnId],
        budget: &'h Budget,
    ) -> Self {
        let n_ranged = if history.n_ranges() > 0 {
            history.n_keys()
        } else {
            0
        };
        Walk {
            history,
            writers,
            absences,
            numbering,
            node_txn,
            matching: None,
            poll: budget.poll(),
            keep: Keep::First,
            keep_reads: false,
            forgets_first: false,
            keep_queries: false,
            in_doubt: &[],
            asked: Vec::new(),
            touched: Vec::new(),
            looked_at: LookedAt::default(),
            program: Vec::new(),
            statement: Vec::new(),
            statements: Statements::default(),
            asking: None,
            choices: Vec::new(),
            findings: Vec::new(),
            n_findings: FxHashMap::default(),
            lists: ListReads::new(history.n_keys()),
            state: vec![KeyState::of(u32::MAX); history.n_keys()],
            reads: Vec::new(),
            uncertain: Vec::new(),
            first_candidates: FxHashMap::default(),
            returned_by: vec![RangeId(u32::MAX); n_ranged],
            node: 0,
            under: Under::default(),
            gaps: Vec::new(),
            program_gaps: Vec::new(),
        }
    }

    /// Whether there are range queries at all.
    #[inline]
    fn has_ranges(&self) -> bool {
        self.history.n_ranges() > 0
    }

    fn transaction(&mut self, node: Node, txn: TxnId) -> Result<(), ResolveError> {
        let history = self.history;
        self.node = node;
        if self.keep_queries {
            self.find_touched(node, txn);
        }
        if self.matching.is_some() && self.keep_reads {
            self.statements = history.statements(txn);
        }
        let mut predicates = history.predicates(txn).enumerate().peekable();
        for (at, &op) in history.ops(txn).iter().enumerate() {
            if self.matching.is_some() {
                self.ask(node, txn, at, &mut predicates)?;
            }
            let (key, is_list) = match op {
                Op::Read { key, .. } | Op::Write { key, .. } => (key, false),
                Op::Append { key, .. } | Op::ReadList { key, .. } => (key, true),
                Op::Range { range } => {
                    self.range(node, txn, at, range)?;
                    continue;
                }
            };
            self.touch(txn, key, is_list)?;
            match op {
                Op::Write { key, value } | Op::Append { key, value } => {
                    self.state[key.index()].own = value;
                }
                Op::Read { key, value } => self.read(node, txn, at, key, value)?,
                Op::ReadList { key, list } => {
                    if let Some(began_from) = read_list(self, txn, at, key, list)? {
                        let version = match began_from.last() {
                            None => self.numbering.initial(key),
                            Some(last) => VersionId(self.numbering.written[last.index()].version),
                        };
                        self.take_read(node, txn, at, key, version);
                    }
                }
                Op::Range { .. } => {}
            }
        }
        if self.matching.is_some() {
            self.ask(node, txn, history.ops(txn).len(), &mut predicates)?;
        }
        if self.forgets_first {
            self.reads.clear();
        } else {
            self.link_own_writes(node, txn);
        }
        if self.has_ranges() {
            let gaps = self.under.gaps().into_iter();
            self.gaps.extend(gaps.map(|places| Gap {
                reader: node,
                places,
            }));
            self.under.clear();
        }
        Ok(())
    }

    /// Makes a key's state that of the transaction under way.
    #[inline]
    pub(super) fn touch(
        &mut self,
        txn: TxnId,
        key: KeyId,
        is_list: bool,
    ) -> Result<(), ResolveError> {
        self.lists.check_kind(self.history, txn, key, is_list)?;
        let state = &mut self.state[key.index()];
        if state.txn != txn.0 {
            *state = KeyState::of(txn.0);
            if self.has_ranges() {
                self.take_out_of_gap(key);
            }
        }
        Ok(())
    }

    /// Makes a read of its own of a key that the transaction under way had found absent in a gap.
    #[inline(never)]
    fn take_out_of_gap(&mut self, key: KeyId) {
        if !self.under.touch(&self.absences.sorted, key) {
            return;
        }
        self.state[key.index()].read = FirstRead::Of(self.reads.len() as u32);
        self.reads.push(Read {
            reader: self.node,
            version: self.numbering.initial(key).0,
            overwritten_by: u32::MAX,
        });
    }

    /// Tells each external read of the transaction just walked which version of its own overwrote what it read.
    fn link_own_writes(&mut self, node: Node, txn: TxnId) {
        for write in self.writers.finals(txn) {
            if let FirstRead::Of(read) = self.state[write.key.index()].read {
                let own = self.numbering.of_writer(write.key, node);
                self.reads[read as usize].overwritten_by = own.map_or(u32::MAX, |v| v.0);
            }
        }
    }

    pub(super) fn read(
        &mut self,
        node: Node,
        txn: TxnId,
        at: usize,
        key: KeyId,
        value: ValueId,
    ) -> Result<(), ResolveError> {
        match self.state[key.index()].own() {
            Some(own) if own == value => Ok(()),
            Some(own) if is_nothing(self.history, value) && self.history.is_absence(own) => Ok(()),
            Some(own) => {
                let (anomaly, other) = self.internal(txn, at, own, value);
                self.find(anomaly, txn, at, key, other);
                Ok(())
            }
            None if self.absences.matter() && is_nothing(self.history, value) => {
                self.nothing(node, txn, at, key, value)
            }
            None => self.external(node, txn, at, key, value),
        }
    }

    /// Names a read that is not the transaction's own last write, and finds the other operation.
    fn internal(
        &self,
        txn: TxnId,
        at: usize,
        own: ValueId,
        value: ValueId,
    ) -> (LocalAnomaly, Option<(TxnId, usize)>) {
        let mine = position_of_write(self.history, txn, value);
        match mine {
            Some(earlier) if earlier < at => (LocalAnomaly::NotMyLastWrite, Some((txn, earlier))),
            Some(later)
                if !self.history.is_initial(value) && self.others_wrote(txn, value).is_none() =>
            {
                (LocalAnomaly::FutureRead, Some((txn, later)))
            }
            _ => {
                let own = position_of_write(self.history, txn, own);
                (LocalAnomaly::NotMyOwnWrite, own.map(|op| (txn, op)))
            }
        }
    }

    /// Takes an external read of a value.
    pub(super) fn external(
        &mut self,
        node: Node,
        txn: TxnId,
        at: usize,
        key: KeyId,
        value: ValueId,
    ) -> Result<(), ResolveError> {
        // Nearly all reads: one transaction wrote the value, and no other.
        let written = self.numbering.written[value.index()];
        if written.writer != NO_NODE {
            if written.writer == node {
                self.own_later(txn, at, key, value);
            } else {
                self.take_read(node, txn, at, key, VersionId(written.version));
            }
            return Ok(());
        }
        match self.version_read(txn, at, key, value)? {
            Seen::Nothing => {}
            Seen::Version(version) => self.take_read(node, txn, at, key, version),
            Seen::Several(candidates) => self.take_choice(node, txn, at, key, candidates),
        }
        Ok(())
    }

    /// Takes an external read of a version.
    pub(super) fn take_read(
        &mut self,
        node: Node,
        txn: TxnId,
        at: usize,
        key: KeyId,
        version: VersionId,
    ) {
        if !self.in_doubt.is_empty() && self.in_doubt.binary_search(&txn).is_ok() {
            self.take_choice(node, txn, at, key, vec![version]);
            return;
        }
        self.keep(node, at, version);
        match self.state[key.index()].read {
            FirstRead::None => {
                self.state[key.index()].read = FirstRead::Of(self.reads.len() as u32);
                self.reads.push(Read {
                    reader: node,
                    version: version.0,
                    overwritten_by: u32::MAX,
                });
            }
            FirstRead::Of(first) if self.reads[first as usize].version == version.0 => {}
            FirstRead::Choice(first) => {
                let seen = self.first_candidates.get(&first);
                if seen.is_none_or(|seen| seen.is_empty() || seen.contains(&version)) {
                    let candidates = &mut self.uncertain[first as usize].candidates;
                    candidates.retain(|&it| it == version);
                } else {
                    self.find_second_read(txn, at, key);
                }
            }
            FirstRead::Of(_) => self.find_second_read(txn, at, key),
        }
    }

    /// Notes that a transaction saw another version of a key than before.
    pub(super) fn find_second_read(&mut self, txn: TxnId, at: usize, key: KeyId) {
        let ops = self.history.ops(txn);
        let is_first = |&it: &usize| {
            reads_key(self.history, ops[it], key) && !shows_same(self.history, txn, (it, at), key)
        };
        let other = (0..=at).find(is_first).map(|op| (txn, op));
        self.find(LocalAnomaly::NonRepeatableRead, txn, at, key, other);
    }

    /// What was found out, unless it rests on whether a transaction took effect and is to be left out.
    pub(super) fn settled<T>(
        &self,
        found: Result<T, ResolveError>,
    ) -> Result<Option<T>, ResolveError> {
        match found {
            Err(error) if self.keep == Keep::Certain && error.unsettled().is_some() => Ok(None),
            found => found.map(Some),
        }
    }

    /// The version that a value read by `txn` is, where it is not just what another wrote; an anomaly is noted.
    fn version_read(
        &mut self,
        txn: TxnId,
        at: usize,
        key: KeyId,
        value: ValueId,
    ) -> Result<Seen, ResolveError> {
        let origin = self.writers.origin(value);
        let initial = self.history.is_initial(value);
        if origin == ValueOrigin::Candidate {
            let Some(candidates) = self.settled(self.candidates(txn, key, value))? else {
                return Ok(Seen::Nothing);
            };
            return Ok(match candidates.as_slice() {
                &[version] => Seen::Version(version),
                _ => Seen::Several(candidates),
            });
        }
        if initial {
            return Ok(Seen::Version(self.numbering.initial(key)));
        }
        let writer = self.writers.writer(value);
        if origin == ValueOrigin::Intermediate && writer == txn {
            self.own_later(txn, at, key, value);
            return Ok(Seen::Nothing);
        }
        let anomaly = match origin {
            ValueOrigin::Intermediate => LocalAnomaly::IntermediateRead,
            ValueOrigin::Aborted => LocalAnomaly::AbortedRead,
            ValueOrigin::Candidate | ValueOrigin::Nobody => LocalAnomaly::ThinAirRead,
        };
        let other = match origin {
            ValueOrigin::Nobody => None,
            _ => position_of_write(self.history, writer, value).map(|op| (writer, op)),
        };
        self.find(anomaly, txn, at, key, other);
        Ok(Seen::Nothing)
    }

    /// Notes a read of a value that the reader writes only later. If another transaction wrote it too, and overwrote it,
    /// the value may have come from there.
    fn own_later(&mut self, txn: TxnId, at: usize, key: KeyId, value: ValueId) {
        let anomalies = [LocalAnomaly::IntermediateRead, LocalAnomaly::FutureRead];
        if anomalies.iter().all(|&it| self.is_listed(it, txn)) {
            return;
        }
        let history = self.history;
        if let Some(other) = self.others_wrote(txn, value) {
            self.find(LocalAnomaly::IntermediateRead, txn, at, key, Some(other));
        } else {
            let later = position_of_write(history, txn, value).map(|op| (txn, op));
            self.find(LocalAnomaly::FutureRead, txn, at, key, later);
        }
    }

    /// A write of a value by another transaction that did not abort.
    fn others_wrote(&self, txn: TxnId, value: ValueId) -> Option<(TxnId, usize)> {
        let history = self.history;
        let mut others = history
            .txns()
            .filter(|&other| other != txn && history.status(other) != Status::Aborted);
        others.find_map(|other| Some((other, position_of_write(history, other, value)?)))
    }

    pub(super) fn find(
        &mut self,
        anomaly: LocalAnomaly,
        txn: TxnId,
        op: usize,
        key: KeyId,
        other: Option<(TxnId, usize)>,
    ) {
        let finding = Finding {
            anomaly,
            txn,
            op,
            key,
            other,
        };
        let kind = (anomaly, finding.weakest_broken(), self.history.model(txn));
        let n_found = self.n_findings.entry(kind).or_default();
        if *n_found < MAX_FINDINGS {
            *n_found += 1;
            self.findings.push(finding);
        }
    }

    /// Whether enough findings of an anomaly that breaks every level are listed.
    pub(super) fn is_listed(&self, anomaly: LocalAnomaly, txn: TxnId) -> bool {
        let kind = (anomaly, Model::Rc, self.history.model(txn));
        self.n_findings.get(&kind) == Some(&MAX_FINDINGS)
    }
}

/// The first operation of a transaction that writes this value.
pub(super) fn position_of_write(history: &History, txn: TxnId, value: ValueId) -> Option<usize> {
    let ops = history.ops(txn).iter();
    ops.map(|&op| match op {
        Op::Write { value, .. } | Op::Append { value, .. } => Some(value),
        Op::Read { .. } | Op::ReadList { .. } | Op::Range { .. } => None,
    })
    .position(|written| written == Some(value))
}

/// Whether an operation reads a key.
fn reads_key(history: &History, op: Op, key: KeyId) -> bool {
    match op {
        Op::Range { range } => {
            let span = history.range(range).span;
            span.place(history.symbols(), history.key_token(key))
                .is_eq()
        }
        _ => op.key() == Some(key) && !op.is_write(),
    }
}
