//! Explains why no choice of versions explains the open reads: a tree of cases, "T7 read x = 3 from T1, or from T4", whose leaves are proofs
//! about certain reads.
//!
//! Reads that narrowing settled become cases only where a leaf rests on them; each candidate that it ruled out is refuted by itself. Which
//! reads to split on is asked of the back end's core.

use rustc_hash::FxHashSet;

use super::causal::CausalLemma;
use super::narrow::{Contradicted, Graph, Narrowed, State, graph, narrow};
use super::pose::blamed;
use super::reads::writer;
use super::{Scene, Taken};
use crate::context::Context;
use crate::decide::{Backend, Decision};
use crate::phases::{Exit, Refuted, Stop};
use crate::progress::Silent;
use crate::prune::PruneStats;
use crate::psi::{self, ReadChoices};
use crate::report::{CheckError, Decider};
use crate::resolve::{Node, VersionId};
use crate::verdict::{Proof, StepReason};
use kingsnake_refute::{NoProof, refute, refute_case, refute_core};

/// Why there is no proof.
enum Failed {
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

/// A proof, and the open reads that it rests on.
type Proved = (Proof, FxHashSet<usize>);

struct Prover<'p, 'a> {
    scene: &'p Scene<'a>,
    lemmas: &'p [CausalLemma],
    backend: &'p mut dyn Backend,
}

/// Proves that nothing explains the reads, given how narrowing them ended.
pub(super) fn refuted(
    scene: &Scene<'_>,
    (state, narrowed, decider): (&State, Narrowed, Decider),
    lemmas: &[CausalLemma],
    backend: &mut dyn Backend,
) -> Result<Exit, Stop> {
    let mut prover = Prover {
        scene,
        lemmas,
        backend,
    };
    Ok(match prover.refute(state, 0, narrowed) {
        Ok((proof, _)) => Refuted::Proof(decider, proof).into(),
        Err(Failed::NotFound) => Refuted::NoProof(decider).into(),
        Err(Failed::Stop(stop)) => return Err(stop),
    })
}

impl Prover<'_, '_> {
    /// Refutes a state. The reads taken before `start` are assumed from outside.
    fn refute(
        &mut self,
        state: &State,
        start: usize,
        narrowed: Narrowed,
    ) -> Result<Proved, Failed> {
        self.scene.budget.check()?;
        let all = state.taken.len();
        let proved = match narrowed {
            Narrowed::Contradiction(found) => {
                let proof = self.contradiction(&found, None)?;
                self.resting(&state.taken, proof)
            }
            Narrowed::Dead(read) => self.cases(state, all, read, Vec::new())?,
            Narrowed::Impossible(at) if self.reads_differ(at) => self.aggregate(state, at)?,
            Narrowed::Impossible(at) => self.counted(state, start, at)?,
            Narrowed::Open(graph) => self.open(state, &graph)?,
        };
        self.wrap(state, start, proved)
    }

    /// Why the reads that are taken cannot be; of a case, by a cycle through its reader.
    fn contradiction(&self, found: &Contradicted, reader: Option<Node>) -> Result<Proof, Failed> {
        let (history, budget) = (self.scene.check.history, &self.scene.budget);
        Ok(match (found, reader) {
            (Contradicted::Parallel(polygraph), _) => {
                psi::prove(polygraph, history, psi::Blamed::default(), budget)?
            }
            (Contradicted::Plain(found), Some(reader)) => {
                refute_case(found, reader, history, budget)?
            }
            (Contradicted::Plain(found), None) => refute(found, history, budget)?,
        })
    }

    /// A proof about reads that are taken, and those that it rests on.
    fn resting(&self, taken: &[Taken], proof: Proof) -> Proved {
        let scene = self.scene;
        let mut chosen = vec![None; scene.reads.len()];
        for &(read, version) in taken {
            chosen[read] = Some(version);
        }
        let mut blamed = scene.blamed(&chosen, &proof);
        // What a transaction reads and writes joins versions, which any step about the key may rest on.
        let versions = scene.base.versions();
        for &(read, _) in taken {
            let open = &scene.reads[read];
            let joins = open.op.is_none()
                && scene.places.is_atomic(open.reader)
                && versions.of_writer(open.key, open.reader).is_some();
            let speaks = || {
                let of_steps = proof.steps().any(|step| match step.reason {
                    StepReason::Ww { key, .. } | StepReason::Rw { key, .. } => key == open.key,
                    _ => false,
                });
                of_steps || proof.splits().any(|it| it.key == open.key)
            };
            if joins && speaks() {
                blamed.insert(read);
            }
        }
        (proof, blamed)
    }

    /// Refutes a state in which reachability rules out nothing more.
    fn open(&mut self, state: &State, graph: &Graph) -> Result<Proved, Failed> {
        if let Some(proof) = self.core_proof(graph)? {
            return Ok(self.resting(&state.taken, proof));
        }
        let blamed = blamed(self.scene, state, graph, self.lemmas, self.backend)?;
        let mut blamed = blamed.ok_or(Failed::NotFound)?;
        if blamed.is_empty() {
            blamed = state.open().collect();
        }
        let fewest = blamed
            .into_iter()
            .min_by_key(|&read| (state.candidates[read].len(), read));
        self.split(state, fewest.ok_or(Failed::NotFound)?)
    }

    /// The cases of a read that is open.
    fn split(&mut self, state: &State, read: usize) -> Result<Proved, Failed> {
        let all = state.taken.len();
        let mut proofs = Vec::new();
        for &version in &state.candidates[read] {
            let mut child = state.clone();
            child.take(read, version);
            let narrowed = narrow(self.scene, &mut child)?;
            let proved = self.refute(&child, all + 1, narrowed)?;
            if !proved.1.contains(&read) {
                return Ok(proved);
            }
            proofs.push((version, proved));
        }
        self.cases(state, all, read, proofs)
    }

    /// The proof of what the certain and the taken reads alone contradict, if they do.
    fn core_proof(&mut self, graph: &Graph) -> Result<Option<Proof>, Failed> {
        let (check, budget) = (self.scene.check, &self.scene.budget);
        match graph {
            Graph::Parallel(polygraph, _) => {
                let (mut silent, nothing) = (Silent, ReadChoices::default());
                let mut context = Context::new(budget, &mut silent);
                let found = psi::ask(check, polygraph, &nothing, self.backend, &mut context)?;
                match found {
                    psi::FoundForks::Order(..) => Ok(None),
                    psi::FoundForks::No(blamed) => {
                        Ok(Some(psi::prove(polygraph, check.history, blamed, budget)?))
                    }
                }
            }
            Graph::Plain(pruned) if pruned.constraints.is_empty() => Ok(None),
            Graph::Plain(pruned) => {
                let decided = self.backend.decide(pruned.question(), budget, &mut Silent);
                match decided.map_err(CheckError::from)?.0 {
                    Decision::Choices(_) => Ok(None),
                    Decision::Core(core) => {
                        Ok(Some(refute_core(pruned, &core, check.history, budget)?))
                    }
                    Decision::Unknown(reason) => Err(reason.into()),
                }
            }
        }
    }

    /// The cases of a read under the first `n` reads that are taken. Some have proofs; the others were ruled out.
    fn cases(
        &mut self,
        state: &State,
        n: usize,
        read: usize,
        mut proofs: Vec<(VersionId, Proved)>,
    ) -> Result<Proved, Failed> {
        let scene = self.scene;
        let open = &scene.reads[read];
        let (mut cases, mut rests_on) = (Vec::new(), FxHashSet::default());
        for &version in &open.candidates {
            let at = proofs.iter().position(|it| it.0 == version);
            let (proof, used) = match at {
                Some(at) => proofs.swap_remove(at).1,
                None => self.attempt(state, n, (read, version))?,
            };
            if !used.contains(&read) {
                return Ok((proof, used));
            }
            cases.push((writer(scene.base, version), proof));
            rests_on.extend(used);
        }
        rests_on.remove(&read);
        Ok((open.choice(scene.base, cases), rests_on))
    }

    /// Refutes a candidate that narrowing ruled out, under the first `n` reads that are taken and without any of the other open reads.
    fn attempt(&mut self, state: &State, n: usize, taken: Taken) -> Result<Proved, Failed> {
        let mut assumed = state.taken[..n].to_vec();
        assumed.retain(|it| it.0 != taken.0);
        assumed.push(taken);
        let scene = self.scene;
        let proof = match graph(scene, &assumed, &mut PruneStats::default())? {
            Err(found) => self.contradiction(&found, Some(scene.reads[taken.0].reader))?,
            Ok(graph) => {
                let proof = self.core_proof(&graph)?;
                proof.ok_or(Failed::NotFound)?
            }
        };
        Ok(self.resting(&assumed, proof))
    }

    /// Whether an aggregate's rows are reads of its own.
    fn reads_differ(&self, at: usize) -> bool {
        let reader = self.scene.aggregates[at].aggregate.reader;
        self.scene.model(reader).is_weak()
    }

    /// Why nothing that the reads taken before `start` leave gives an aggregate its result: what else each row can have been is ruled out.
    fn counted(&mut self, state: &State, start: usize, at: usize) -> Result<Proved, Failed> {
        let scene = self.scene;
        let counting = &scene.aggregates[at];
        let reads: Vec<usize> = counting.rows.iter().map(|it| it.read).collect();
        let all = |read: usize| scene.reads[read].candidates.as_slice();
        let left = |read: usize| state.candidates[read].as_slice();
        let is_refuted = |matters: &[usize]| {
            let versions = |read: usize| {
                if matters.contains(&read) {
                    left(read)
                } else {
                    all(read)
                }
            };
            !counting.is_possible(scene.check.history, versions)
        };
        // The rows of which it matters what is left.
        let narrowed = reads.iter().copied();
        let mut matters: Vec<usize> = narrowed
            .filter(|&it| left(it).len() < all(it).len())
            .collect();
        if !is_refuted(&matters) {
            return Err(Failed::NotFound);
        }
        for read in matters.clone() {
            let fewer: Vec<usize> = matters.iter().copied().filter(|&it| it != read).collect();
            if is_refuted(&fewer) {
                matters = fewer;
            }
        }
        let (mut ruled_out, mut rests_on) = (Vec::new(), FxHashSet::default());
        for row in counting.rows.iter().filter(|it| matters.contains(&it.read)) {
            let read = row.read;
            if state.taken[..start].iter().any(|it| it.0 == read) {
                rests_on.insert(read);
                continue;
            }
            let is_left = |version: VersionId| {
                let mut left = left(read).iter();
                left.any(|&it| row.row.cell(it) == row.row.cell(version))
            };
            for &version in all(read).iter().filter(|&&it| !is_left(it)) {
                // All that is taken around it, so that versions join here as they do where the proof stands.
                let (proof, used) = self.attempt(state, state.taken.len(), (read, version))?;
                if !used.contains(&read) {
                    return Ok((proof, used));
                }
                let writer = writer(scene.base, version);
                ruled_out.push((scene.reads[read].key, writer, proof));
                rests_on.extend(used.into_iter().filter(|&it| it != read));
            }
        }
        let proof = Proof::Aggregate {
            reader: scene.base.txn(counting.aggregate.reader),
            nth: counting.aggregate.nth,
            ruled_out,
        };
        Ok((proof, rests_on))
    }

    /// Why nothing that is left gives an aggregate its result, whose rows are reads of its own.
    fn aggregate(&mut self, state: &State, at: usize) -> Result<Proved, Failed> {
        let scene = self.scene;
        let counting = &scene.aggregates[at];
        let taken = |read: usize| state.taken.iter().any(|it| it.0 == read);
        let versions = |read: usize| {
            if taken(read) {
                state.candidates[read].as_slice()
            } else {
                scene.reads[read].candidates.as_slice()
            }
        };
        if counting.is_possible(scene.check.history, versions) {
            // What is left of a row that is open matters.
            let mut rows = counting.rows.iter().map(|it| it.read);
            let is_narrowed =
                |read: &usize| state.candidates[*read].len() < scene.reads[*read].candidates.len();
            let row = rows.find(|it| !taken(*it) && is_narrowed(it));
            return self.split(state, row.ok_or(Failed::NotFound)?);
        }
        let rows = counting.rows.iter().map(|it| it.read);
        let proof = Proof::Aggregate {
            reader: scene.base.txn(counting.aggregate.reader),
            nth: counting.aggregate.nth,
            ruled_out: Vec::new(),
        };
        Ok((proof, rows.filter(|&it| taken(it)).collect()))
    }

    /// Puts the cases of the reads that narrowing took around a proof that rests on them, the latest first.
    fn wrap(&mut self, state: &State, start: usize, mut proved: Proved) -> Result<Proved, Failed> {
        for at in (start..state.taken.len()).rev() {
            let (read, version) = state.taken[at];
            if proved.1.contains(&read) {
                // What is taken before it is assumed around it, and nothing else.
                proved = self.cases(state, at, read, vec![(version, proved)])?;
            }
        }
        Ok(proved)
    }
}
