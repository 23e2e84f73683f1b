//! Explains why no choice of versions explains the uncertain reads: a tree of cases, "T7 read x = 3 from T1, or from T4", whose leaves are
//! proofs about certain reads.
//!
//! Reads that narrowing settled become cases only where a leaf rests on them; each candidate that it ruled out is refuted by
//! itself. Which reads to split on is asked of the back end's core.

use super::Refutation;
use super::fixed::{Blamed, decide, search};
use super::narrow::{Narrowed, Scene, State, Taken, graph, narrow};
use crate::budget::Budget;
use crate::decide::{Backend, Decision};
use crate::model::TxnId;
use crate::phases::{Check, Stop};
use crate::progress::Silent;
use crate::prune::{Outcome, PruneStats, Pruned};
use crate::resolve::{Resolved, VersionId};
use crate::verdict::{Proof, StepReason};
use kingsnake_refute::{NoProof, refute, refute_case, refute_core};
use rustc_hash::FxHashSet;

/// Why there is no proof.
pub(super) enum Failed {
    NotFound,
    Stop(Stop),
}

impl From<NoProof> for Failed {
    fn from(no: NoProof) -> Self {
        match no {
            NoProof::Stopped(reason) => reason.into(),
            NoProof::NotFound => Failed::NotFound,
        }
    }
}

impl<T: Into<Stop>> From<T> for Failed {
    fn from(stop: T) -> Self {
        Failed::Stop(stop.into())
    }
}

struct Prover<'a> {
    scene: &'a Scene<'a>,
    base: &'a Resolved,
    backend: &'a mut dyn Backend,
    /// The reads that the end of some case rests on because an aggregate counted them.
    counted: FxHashSet<usize>,
}

/// Proves that nothing explains the reads and the aggregates that were stated.
pub(super) fn prove(
    check: &Check<'_>,
    refutation: &Refutation,
    backend: &mut dyn Backend,
    budget: &Budget,
) -> Result<Proof, Failed> {
    let base = &refutation.base;
    let scene = Scene {
        check,
        counted: &refutation.counted,
        budget,
    };
    let mut state = State::new(base, &refutation.stated);
    let narrowed = narrow(&scene, base, None, &mut state, &mut PruneStats::default())?;
    let mut prover = Prover {
        scene: &scene,
        base,
        backend,
        counted: FxHashSet::default(),
    };
    prover.refute(&state, 0, narrowed)
}

impl Prover<'_> {
    /// Refutes a state. The reads taken before `start` are assumed from outside.
    fn refute(&mut self, state: &State, start: usize, narrowed: Narrowed) -> Result<Proof, Failed> {
        self.scene.budget.check()?;
        let all = state.taken.len();
        let proof = match narrowed {
            Narrowed::Contradiction(found) => {
                refute(&found, self.scene.check.history, self.scene.budget)?
            }
            Narrowed::Dead(read) => self.cases(state, all, read, None)?,
            Narrowed::Impossible(at) => self.aggregate(state, start, at)?,
            Narrowed::Open(pruned) => self.open(state, &pruned)?,
        };
        self.wrap(state, start, proof)
    }

    /// Refutes a state in which reachability rules out nothing more.
    fn open(&mut self, state: &State, pruned: &Pruned) -> Result<Proof, Failed> {
        if let Some(proof) = self.core_proof(pruned)? {
            return Ok(proof);
        }
        let (scene, base, backend) = (self.scene, self.base, &mut *self.backend);
        let mut blamed = match search(scene, base, state, pruned, backend, &mut Silent)? {
            Blamed::Nothing => return Err(Failed::NotFound),
            Blamed::Reads(blamed) => blamed,
        };
        if blamed.is_empty() {
            blamed = state.open().collect();
        }
        let fewest = blamed
            .into_iter()
            .min_by_key(|&read| state.candidates[read].len());
        let read = fewest.ok_or(Failed::NotFound)?;
        let all = state.taken.len();
        let mut proofs = Vec::new();
        for &version in &state.candidates[read] {
            let mut child = state.clone();
            child.take(read, version);
            let stats = &mut PruneStats::default();
            let narrowed = narrow(self.scene, self.base, None, &mut child, stats)?;
            let proof = self.refute(&child, all + 1, narrowed)?;
            if !self.uses(&proof, read) {
                return Ok(proof);
            }
            proofs.push((version, proof));
        }
        self.cases(state, all, read, Some(proofs))
    }

    /// The proof of what the certain and the taken reads alone contradict, if they do.
    fn core_proof(&mut self, pruned: &Pruned) -> Result<Option<Proof>, Failed> {
        if pruned.constraints.is_empty() {
            return Ok(None);
        }
        let (history, budget) = (self.scene.check.history, self.scene.budget);
        match decide(self.backend, pruned, budget, &mut Silent)? {
            Decision::Choices(_) => Ok(None),
            Decision::Core(core) => Ok(Some(refute_core(pruned, &core, history, budget)?)),
            Decision::Unknown(reason) => Err(reason.into()),
        }
    }

    /// The cases of a read under the first `n` reads that are taken. Some have proofs; the others were ruled out.
    fn cases(
        &mut self,
        state: &State,
        n: usize,
        read: usize,
        proofs: Option<Vec<(VersionId, Proof)>>,
    ) -> Result<Proof, Failed> {
        let mut proofs = proofs.unwrap_or_default();
        let base = self.base;
        let uncertain = &base.uncertain()[read];
        let mut cases = Vec::new();
        for &version in &uncertain.candidates {
            let at = proofs.iter().position(|it| it.0 == version);
            let proof = if let Some(at) = at {
                proofs.swap_remove(at).1
            } else {
                let mut assumed = state.assumed(n);
                assumed.push((read, version));
                let proof = self.attempt(&assumed)?;
                if !self.uses(&proof, read) {
                    return Ok(proof);
                }
                proof
            };
            cases.push((self.writer(version), proof));
        }
        Ok(Proof::Choice {
            reader: base.txn(uncertain.reader),
            op: None,
            key: uncertain.key,
            cases,
        })
    }

    /// Why nothing that the reads taken before `start` leave gives an aggregate its result.
    fn aggregate(&mut self, state: &State, start: usize, at: usize) -> Result<Proof, Failed> {
        let (scene, base) = (self.scene, self.base);
        let counting = &scene.counted.all[at];
        let taken = |read: usize| state.taken.iter().position(|it| it.read == read);
        let all = |row: usize| {
            base.uncertain()[counting.rows[row].read]
                .candidates
                .as_slice()
        };
        let left = |row: usize| state.candidates[counting.rows[row].read].as_slice();
        // The rows of which it matters what is left.
        let mut matters = vec![false; counting.rows.len()];
        let is_refuted = |matters: &[bool]| {
            let versions = |row: usize| if matters[row] { left(row) } else { all(row) };
            !counting.is_possible(scene.check.history, versions)
        };
        let mut row = 0;
        while !is_refuted(&matters) {
            let is_narrowed = |row: usize| left(row).len() < all(row).len();
            let next = (row..matters.len()).find(|&row| is_narrowed(row));
            row = next.ok_or(Failed::NotFound)?;
            matters[row] = true;
            row += 1;
        }
        for row in 0..matters.len() {
            if matters[row] {
                matters[row] = false;
                matters[row] = !is_refuted(&matters);
            }
        }
        let mut ruled_out = Vec::new();
        for row in (0..matters.len()).filter(|&row| matters[row]) {
            let read = counting.rows[row].read;
            if taken(read).is_some_and(|place| place < start) {
                self.counted.insert(read);
                continue;
            }
            // All that is taken around it, so that versions join here as they do where the proof stands.
            let mut around = state.assumed(state.taken.len());
            around.retain(|it| it.0 != read);
            let cell = |version: VersionId| counting.rows[row].row.cell(version);
            let is_left =
                |version: VersionId| left(row).iter().any(|&it| cell(it) == cell(version));
            for &version in all(row).iter().filter(|&&it| !is_left(it)) {
                let mut assumed = around.clone();
                assumed.push((read, version));
                let proof = self.attempt(&assumed)?;
                if !self.uses(&proof, read) {
                    return Ok(proof);
                }
                ruled_out.push((base.uncertain()[read].key, self.writer(version), proof));
            }
        }
        Ok(Proof::Aggregate {
            reader: base.txn(counting.aggregate.reader),
            nth: counting.aggregate.nth,
            ruled_out,
        })
    }

    /// Refutes what is assumed, without any of the other uncertain reads.
    fn attempt(&mut self, assumed: &[(usize, VersionId)]) -> Result<Proof, Failed> {
        let (history, budget) = (self.scene.check.history, self.scene.budget);
        match graph(self.scene, self.base, assumed)? {
            Outcome::Contradiction(found) => {
                let last = assumed.last().ok_or(Failed::NotFound)?;
                let reader = self.base.uncertain()[last.0].reader;
                Ok(refute_case(&found, reader, history, budget)?)
            }
            Outcome::Pruned(pruned) => {
                let proof = self.core_proof(&pruned)?;
                proof.ok_or(Failed::NotFound)
            }
        }
    }

    /// Puts the cases of the reads that narrowing took around a proof that rests on them, the latest first.
    fn wrap(&mut self, state: &State, start: usize, mut proof: Proof) -> Result<Proof, Failed> {
        for at in (start..state.taken.len()).rev() {
            let Taken { read, version } = state.taken[at];
            if self.uses(&proof, read) {
                // What is taken before it is assumed around it, and nothing else.
                proof = self.cases(state, at, read, Some(vec![(version, proof)]))?;
            }
        }
        Ok(proof)
    }

    fn writer(&self, version: VersionId) -> Option<TxnId> {
        let versions = self.base.versions();
        (!versions.is_initial(version)).then(|| self.base.txn(versions.writer(version)))
    }

    /// Whether a proof may rest on what an uncertain read is taken to be.
    fn uses(&self, proof: &Proof, read: usize) -> bool {
        let is_counted = self.counted.contains(&read);
        let read = &self.base.uncertain()[read];
        let reader = self.base.txn(read.reader);
        if is_counted && proof.aggregates().any(|it| it.0 == reader) {
            return true;
        }
        // What a transaction reads and writes joins versions, which any step about the key may rest on.
        let joins = self
            .base
            .versions()
            .of_writer(read.key, read.reader)
            .is_some();
        proof.steps().any(|step| match step.reason {
            StepReason::Wr { key, .. } => key == read.key && step.to.txn == reader,
            StepReason::Rw { key, .. } => key == read.key && (joins || step.from.txn == reader),
            StepReason::Ww { key, .. } => key == read.key && joins,
            StepReason::Begin
            | StepReason::Session
            | StepReason::RealTime
            | StepReason::Stated { .. }
            | StepReason::Vis { .. } => false,
        })
    }
}
