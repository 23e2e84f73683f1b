//! The weak levels: read committed, read atomic, causal consistency.
//!
//! Each level gives edges between commits that follow from the reads alone (`rc`, `ra`, `cc`; Biswas and Enea's saturation, with
//! AWDIT's bounds). The history satisfies the level iff they form no cycle with session order and reads-from, and any
//! topological order is then the certificate. Nothing is searched.

mod cc;
mod cycle;
mod gaps;
mod past;
mod ra;
mod rc;
#[cfg(test)]
mod tests;

pub use kingsnake_certify::weak::replay;
pub use kingsnake_history::weak::{
    Because, CommitReason, CommitStep, PathStep, WeakLevel, WeakSpec, WeakVerdict,
};

use kingsnake_certify::weak as certify;

use crate::budget::{Budget, Poll, StopReason};
use crate::check::CheckError;
use crate::model::{History, KeyId};
use crate::resolve::{
    NO_NODE, Node, ResolveError, Resolved, VersionId, Versions, WithReads, resolve_reads,
};

/// Why a read saw a transaction, as the engines note it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
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
pub(crate) enum Reason {
    Session,
    Wr(VersionId),
    Given(KeyId),
    /// The reader read the version, which the later wrote, and saw the earlier.
    Vis {
        reader: Node,
        version: VersionId,
        sight: Sight,
    },
}

/// `from` commits before `to`; `to` may be [`NO_NODE`], the initial state, which cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) from: Node,
    pub(crate) to: Node,
    pub(crate) reason: Reason,
}

/// Checks a history at a weak level. The answer has been checked again.
pub fn check(
    history: &History,
    spec: WeakSpec,
    budget: &Budget,
) -> Result<WeakVerdict, CheckError> {
    let verdict = match decide(history, spec, budget) {
        Ok(verdict) => verdict,
        Err(ResolveError::Stopped(reason)) => WeakVerdict::Unknown(reason),
        Err(error) => return Err(error.into()),
    };
    let (answer, holds) = match &verdict {
        WeakVerdict::Satisfied(order) => ("satisfied", certify::replay(history, spec, order)),
        WeakVerdict::Local(findings) => (
            "violated",
            kingsnake_certify::refutation::check_findings(history, findings),
        ),
        WeakVerdict::Cycle(steps) => ("violated", certify::check_cycle(history, spec, steps)),
        WeakVerdict::Unknown(_) => ("unknown", Ok(())),
    };
    holds.map_err(|why| CheckError::Uncertified {
        decider: "weak",
        answer,
        why,
    })?;
    Ok(verdict)
}

fn decide(history: &History, spec: WeakSpec, budget: &Budget) -> Result<WeakVerdict, ResolveError> {
    let mut all = resolve_reads(history, budget)?;
    let mut findings = all.resolved.findings().to_vec();
    findings.retain(|finding| spec.level.is_broken_by(finding));
    if !findings.is_empty() {
        return Ok(WeakVerdict::Local(findings));
    }
    let guess = all.guess.take();
    let graph = Graph::of(&all, spec, budget)?;
    let resolved = &all.resolved;
    Ok(match cycle::order(resolved.n_txns(), &graph.edges) {
        Ok(order) => {
            WeakVerdict::Satisfied(order.into_iter().map(|node| resolved.txn(node)).collect())
        }
        // Where reads may differ, another reading of a row that was not there might have no cycle.
        Err(cycle) => match guess.filter(|_| spec.level.allows_other_reads()) {
            Some(ambiguous) => return Err(ambiguous),
            None => WeakVerdict::Cycle(cycle::steps(&all, spec, &cycle)),
        },
    })
}

/// The edges of a level, so far as they are known.
pub(crate) struct Graph<'a> {
    pub(crate) resolved: &'a Resolved,
    pub(crate) versions: &'a Versions,
    pub(crate) all: &'a WithReads,
    pub(crate) spec: WeakSpec,
    pub(crate) edges: Vec<Edge>,
    pub(crate) poll: Poll<'a>,
    /// The keys that each node writes, one node after the other.
    written: Vec<KeyId>,
    written_start: Vec<u32>,
}

impl<'a> Graph<'a> {
    /// The edges of a level.
    pub(crate) fn of(
        all: &'a WithReads,
        spec: WeakSpec,
        budget: &'a Budget,
    ) -> Result<Self, StopReason> {
        let resolved = &all.resolved;
        let (written_start, written) = written(resolved);
        let mut graph = Graph {
            resolved,
            versions: resolved.versions(),
            all,
            spec,
            edges: Vec::new(),
            poll: budget.poll(),
            written,
            written_start,
        };
        graph.add_known()?;
        if spec.session_order && spec.level.sees_session() && spec.level != WeakLevel::Cc {
            ra::add_sessions(&mut graph)?;
            gaps::add_sessions(&mut graph)?;
        }
        match spec.level {
            WeakLevel::Rc | WeakLevel::RcSo => {
                rc::add(&mut graph, rc::SLOTS)?;
                gaps::add_rc(&mut graph)?;
            }
            WeakLevel::Ra => {
                ra::add(&mut graph)?;
                gaps::add_ra(&mut graph)?;
            }
            WeakLevel::Cc => cc::add(&mut graph, budget)?,
        }
        Ok(graph)
    }

    /// Session order, reads from writers, and the version orders that are known.
    fn add_known(&mut self) -> Result<(), StopReason> {
        if self.spec.session_order {
            for nodes in self.resolved.sessions() {
                for from in nodes.start..nodes.end.saturating_sub(1) {
                    self.push(from, from + 1, Reason::Session);
                }
            }
        }
        for version in (0..self.versions.len() as u32).map(VersionId) {
            self.poll.step()?;
            let writer = self.versions.writer(version);
            if writer != NO_NODE {
                for &reader in self.versions.readers(version) {
                    self.push(writer, reader, Reason::Wr(version));
                }
            }
        }
        // What the first reads of each key do not show: later reads of other versions.
        for reader in 0..self.resolved.n_txns() as Node {
            for read in self.all.reads.of(reader) {
                let version = self.all.reads.version(read);
                let is_known = self
                    .versions
                    .readers(version)
                    .binary_search(&reader)
                    .is_ok();
                if !is_known && self.versions.writer(version) != NO_NODE {
                    self.push(self.versions.writer(version), reader, Reason::Wr(version));
                }
            }
        }
        for order in self.resolved.given() {
            self.add_given(order)?;
        }
        Ok(())
    }

    fn add_given(&mut self, order: &crate::resolve::GivenOrder) -> Result<(), StopReason> {
        let writer = |version: &VersionId| self.versions.writer(*version);
        let reason = Reason::Given(order.key);
        let listed: Vec<Node> = order.versions.iter().map(writer).collect();
        for pair in listed.windows(2) {
            self.push(pair[0], pair[1], reason);
        }
        let Some(&last) = listed.last().filter(|_| order.is_prefix) else {
            return Ok(());
        };
        let mut sorted = order.versions.clone();
        sorted.sort_unstable();
        for version in self.versions.of_key(order.key).skip(1).map(VersionId) {
            self.poll.step()?;
            if sorted.binary_search(&version).is_err() {
                self.push(last, self.versions.writer(version), reason);
            }
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn push(&mut self, from: Node, to: Node, reason: Reason) {
        self.edges.push(Edge { from, to, reason });
    }

    /// The keys that a transaction writes.
    #[inline]
    pub(crate) fn written(&self, node: Node) -> &[KeyId] {
        let at = |node: usize| self.written_start[node] as usize;
        &self.written[at(node as usize)..at(node as usize + 1)]
    }

    /// Whether a transaction writes a key.
    #[inline]
    pub(crate) fn writes(&self, node: Node, key: KeyId) -> bool {
        self.versions.of_writer(key, node).is_some()
    }
}

fn written(resolved: &Resolved) -> (Vec<u32>, Vec<KeyId>) {
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
