//! What the reads of weak transactions imply for the order of commits: edges that follow from the reads alone.
//!
//! Each weak level says which transactions a read sees (`rc`, `ra`, `cc`; Biswas and Enea's saturation, with AWDIT's bounds). If a read
//! of x returned what *t1* wrote and sees *t2*, which writes x too, then *t2* commits before *t1*. Nothing is searched. Where only some
//! transactions are weak, only their reads say something; what happened before them runs through all.

mod cc;
mod clocks;
mod gaps;
mod past;
pub mod quick;
mod ra;
mod rc;
pub mod sort;

pub use rc::SLOTS;

use std::ops::Range;

use rayon::prelude::*;

use crate::budget::{Budget, Poll, StopReason};
use crate::level::Model;
use crate::model::KeyId;
use crate::resolve::{GivenOrder, NO_NODE, Node, ProgramReads, Resolved, VersionId, Versions};

/// With fewer transactions, one core is used.
const ALONE: usize = 20_000;

/// Maximum number of stretches of readers handled at a time: each takes memory for every key and every transaction.
const MAX_PARTS: usize = 4;

/// Why a read saw a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// An earlier read, or one of the same statement, of this version.
    EarlierRead(VersionId),
    /// Some read of this version.
    Source(VersionId),
    /// It came before in the session.
    Session,
    /// It happened before.
    Past,
}

/// Why one transaction commits before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Session order.
    Session,
    /// The later read this version.
    Wr(VersionId),
    /// A given order of the key.
    Given(KeyId),
    /// This order between transactions, which the user gave.
    Stated(u32),
    /// The reader read the version, which the later wrote, and saw the earlier.
    Vis {
        /// Who read.
        reader: Node,
        /// What it read.
        version: VersionId,
        /// Why it saw the earlier one.
        sight: Sight,
    },
}

/// `from` commits before `to`; `to` may be [`NO_NODE`], the initial state, which cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commits {
    /// The earlier one.
    pub from: Node,
    /// The later one.
    pub to: Node,
    /// Why.
    pub why: Why,
}

impl Commits {
    /// Whether it is of session order or reads-from.
    pub fn happens_before(&self) -> bool {
        matches!(self.why, Why::Session | Why::Wr(_))
    }
}

/// The levels of transactions.
#[derive(Clone, Copy, Debug)]
pub enum TxnModels<'m> {
    /// One for all.
    Uniform(Model),
    /// One each, by node.
    Each(&'m [Model]),
}

impl TxnModels<'_> {
    /// The level of a transaction.
    #[inline]
    pub fn of(self, node: Node) -> Model {
        match self {
            TxnModels::Uniform(model) => model,
            TxnModels::Each(models) => models[node as usize],
        }
    }

    /// Whether some transaction has one of these levels.
    pub fn any(self, is_one: impl Fn(Model) -> bool) -> bool {
        match self {
            TxnModels::Uniform(model) => is_one(model),
            TxnModels::Each(models) => models.iter().any(|&model| is_one(model)),
        }
    }
}

/// The edges between commits, so far as they are known.
pub struct Visible<'a> {
    pub(crate) resolved: &'a Resolved,
    pub(crate) versions: &'a Versions,
    pub(crate) reads: &'a ProgramReads,
    pub(crate) models: TxnModels<'a>,
    pub(crate) session_order: bool,
    /// The edges.
    pub edges: Vec<Commits>,
    pub(crate) poll: Poll<'a>,
    /// The keys that each node writes, one node after the other.
    written: Vec<KeyId>,
    written_start: Vec<u32>,
}

impl<'a> Visible<'a> {
    /// Session order, reads-from, given orders, and what the reads of weak transactions see.
    pub fn of(
        resolved: &'a Resolved,
        models: TxnModels<'a>,
        session_order: bool,
        budget: &'a Budget,
    ) -> Result<Self, StopReason> {
        let (written_start, written) = written(resolved);
        let mut visible = Visible {
            resolved,
            versions: resolved.versions(),
            reads: resolved.reads(),
            models,
            session_order,
            edges: Vec::new(),
            poll: budget.poll(),
            written,
            written_start,
        };
        visible.add_known()?;
        if session_order && models.any(|it| matches!(it, Model::RcSo | Model::Ra)) {
            ra::add_sessions(&mut visible)?;
            gaps::add_sessions(&mut visible)?;
        }
        if models.any(|it| matches!(it, Model::Rc | Model::RcSo)) {
            visible.add_rc(SLOTS)?;
            gaps::add_rc(&mut visible)?;
        }
        if models.any(|it| it == Model::Ra) {
            ra::add(&mut visible)?;
            gaps::add_ra(&mut visible)?;
        }
        if models.any(|it| it == Model::Cc) {
            cc::add(&mut visible)?;
        }
        Ok(visible)
    }

    /// Adds the edges of read committed. `n_slots` is [`SLOTS`]; a test shows that fewer would not do.
    pub fn add_rc(&mut self, n_slots: usize) -> Result<(), StopReason> {
        rc::add(self, n_slots)
    }

    /// Session order, reads from writers, and the version orders that are known.
    fn add_known(&mut self) -> Result<(), StopReason> {
        if self.session_order {
            for nodes in self.resolved.sessions() {
                for from in nodes.start..nodes.end.saturating_sub(1) {
                    self.push(from, from + 1, Why::Session);
                }
            }
        }
        // One edge for each that a transaction read from, whatever the number of its reads.
        let mut read_by = vec![NO_NODE; self.resolved.n_txns()];
        for reader in 0..self.resolved.n_txns() as Node {
            self.poll.step()?;
            for read in self.reads.of(reader) {
                let version = self.reads.version(read);
                let writer = self.versions.writer(version);
                if writer != NO_NODE
                    && std::mem::replace(&mut read_by[writer as usize], reader) != reader
                {
                    self.push(writer, reader, Why::Wr(version));
                }
            }
        }
        for order in self.resolved.given() {
            self.add_given(order)?;
        }
        Ok(())
    }

    fn add_given(&mut self, order: &GivenOrder) -> Result<(), StopReason> {
        let writer = |version: &VersionId| self.versions.writer(*version);
        let why = Why::Given(order.key);
        let listed: Vec<Node> = order.versions.iter().map(writer).collect();
        for pair in listed.windows(2) {
            self.push(pair[0], pair[1], why);
        }
        let Some(&last) = listed.last().filter(|_| order.is_prefix) else {
            return Ok(());
        };
        let mut sorted = order.versions.clone();
        sorted.sort_unstable();
        for version in self.versions.of_key(order.key).skip(1).map(VersionId) {
            self.poll.step()?;
            if sorted.binary_search(&version).is_err() {
                self.push(last, self.versions.writer(version), why);
            }
        }
        Ok(())
    }

    /// Adds the edges that the reads of transactions give, found for several stretches of readers at a time.
    pub(crate) fn add_by_reader(
        &mut self,
        find: impl Fn(&Self, Range<Node>, &mut Poll<'_>) -> Result<Vec<Commits>, StopReason> + Sync,
    ) -> Result<(), StopReason> {
        let n_txns = self.resolved.n_txns();
        let n_parts = if n_txns < ALONE {
            1
        } else {
            rayon::current_num_threads().clamp(1, MAX_PARTS)
        };
        let bound = |part: usize| (n_txns * part / n_parts) as Node;
        let find = |part: usize| {
            let mut poll = self.poll.budget().poll();
            find(self, bound(part)..bound(part + 1), &mut poll)
        };
        if n_parts == 1 {
            let found = find(0)?;
            self.edges.extend(found);
            return Ok(());
        }
        let found: Result<Vec<Vec<Commits>>, StopReason> =
            (0..n_parts).into_par_iter().map(find).collect();
        for edges in found? {
            self.edges.extend(edges);
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn push(&mut self, from: Node, to: Node, why: Why) {
        self.edges.push(Commits { from, to, why });
    }

    /// The keys that a transaction writes.
    #[inline]
    pub(crate) fn written(&self, node: Node) -> &[KeyId] {
        let at = |node: usize| self.written_start[node] as usize;
        &self.written[at(node as usize)..at(node as usize + 1)]
    }

    /// The keys that a transaction writes: all, or those among some where these are far fewer. Looking one key up takes as long as
    /// looking at several.
    #[inline]
    pub(crate) fn written_of<'g>(
        &'g self,
        node: Node,
        keys: &'g [KeyId],
    ) -> impl Iterator<Item = KeyId> + 'g {
        let written = self.written(node);
        let is_short = written.len() <= 8 * keys.len();
        let listed = if is_short { written } else { keys };
        let listed = listed.iter().copied();
        listed.filter(move |&key| is_short || self.writes(node, key))
    }

    /// Whether a transaction writes a key.
    #[inline]
    pub(crate) fn writes(&self, node: Node, key: KeyId) -> bool {
        self.versions.of_writer(key, node).is_some()
    }
}

/// The keys that each node writes, one node after the other: where each starts, and the keys.
pub(crate) fn written(resolved: &Resolved) -> (Vec<u32>, Vec<KeyId>) {
    let versions = resolved.versions();
    let mut start = vec![0_u32; resolved.n_txns() + 1];
    let all = || {
        let all = (0..versions.len() as u32).map(VersionId);
        all.filter(|&version| !versions.is_initial(version))
    };
    for version in all() {
        start[versions.writer(version) as usize + 1] += 1;
    }
    for node in 0..resolved.n_txns() {
        start[node + 1] += start[node];
    }
    let mut next = start.clone();
    let mut keys = vec![KeyId(0); start.last().map_or(0, |&end| end as usize)];
    for version in all() {
        let at = &mut next[versions.writer(version) as usize];
        keys[*at as usize] = versions.key(version);
        *at += 1;
    }
    (start, keys)
}
