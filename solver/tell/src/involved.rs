//! The transactions and keys of a counterexample.

use std::collections::BTreeSet;

use super::assumed::shown_by;
use super::findings::changed_by;
use super::recorded::{recorded_keys, recorded_txns};
use super::words::list_showing;
use crate::certify::Meaning;
use crate::certify::weak::{Seen, why_seen};
use crate::level::Spec;
use crate::model::{KeyId, TxnId};
use crate::verdict::{Counterexample, Fact, Proof, Step, StepReason, Visit};

/// Further findings are counted.
pub(super) const TOLD: usize = 5;

/// Of longer proofs only the first steps are used.
const LONGEST_PROOF: usize = 2_000;

/// Longer chains of read-modify-writes are counted, not listed.
pub(super) const LISTED: usize = 4;

/// The transactions that a counterexample is about, in the order in which they are printed, and its keys, sorted.
pub(super) fn involved(
    meaning: &Meaning<'_>,
    spec: Spec,
    counterexample: &Counterexample,
) -> (Vec<TxnId>, Vec<KeyId>) {
    let mut cast = Cast {
        meaning,
        spec,
        txns: BTreeSet::new(),
        keys: BTreeSet::new(),
    };
    cast.meet(counterexample);
    let mut txns: Vec<TxnId> = cast.txns.into_iter().collect();
    let history = meaning.history();
    txns.sort_by(|&one, &other| history.compare_txns(one, other));
    (txns, cast.keys.into_iter().collect())
}

struct Cast<'m, 'h> {
    meaning: &'m Meaning<'h>,
    spec: Spec,
    txns: BTreeSet<TxnId>,
    keys: BTreeSet<KeyId>,
}

impl Cast<'_, '_> {
    fn meet(&mut self, counterexample: &Counterexample) {
        match counterexample {
            Counterexample::Local(findings) => {
                for finding in findings.iter().take(TOLD) {
                    self.txns.insert(finding.txn);
                    let writer = changed_by(self.meaning.history(), finding);
                    self.txns.extend(writer.map(|(txn, _)| txn));
                    self.txns.extend(finding.other.map(|(txn, _)| txn));
                    self.keys.insert(finding.key);
                }
            }
            Counterexample::Cyclic(proof) => self.visit(proof),
            Counterexample::Recorded(refutation) => {
                let history = self.meaning.history();
                self.txns.extend(recorded_txns(history, refutation));
                self.keys.extend(recorded_keys(history, refutation));
            }
            Counterexample::Stuck(stuck) => {
                self.txns.insert(stuck.last);
                self.txns.extend(stuck.concurrent.iter().take(TOLD * 4));
                self.keys.insert(stuck.key);
            }
            Counterexample::EitherWay {
                txn,
                lost,
                took_effect,
            } => {
                self.txns.insert(*txn);
                self.meet(lost);
                self.meet(took_effect);
            }
        }
    }

    fn visit(&mut self, proof: &Proof) {
        proof
            .steps()
            .take(LONGEST_PROOF)
            .for_each(|step| self.add_step(step));
        for visit in proof.visits() {
            if let Visit::Aggregate(reader, _, ruled_out) = visit {
                self.txns.insert(reader);
                self.txns.extend(ruled_out.iter().filter_map(|it| it.1));
                self.keys.extend(ruled_out.iter().map(|it| it.0));
            }
            if let Visit::Choice(reader, _, key, cases) = visit {
                self.keys.insert(key);
                self.txns.insert(reader);
                self.txns.extend(cases.iter().filter_map(|case| case.0));
            }
        }
        for split in proof.splits() {
            self.keys.insert(split.key);
            self.txns.extend([split.one, split.other]);
        }
    }

    fn add_step(&mut self, step: &Step) {
        let (from, to) = (step.from.txn, step.to.txn);
        self.txns.insert(from);
        match step.reason {
            StepReason::Wr { key, .. } => {
                self.keys.insert(key);
            }
            StepReason::Ww { key, fact } => {
                self.keys.insert(key);
                self.add_witnesses(key, from, to, fact);
            }
            StepReason::Rw { key, writer, fact } => {
                self.keys.insert(key);
                if let Some(writer) = writer {
                    self.txns.insert(writer);
                    self.add_witnesses(key, writer, to, fact);
                }
            }
            StepReason::Vis { reader, key } => {
                self.keys.insert(key);
                self.txns.insert(reader);
                let read = (key, step.read_instead());
                match why_seen(self.meaning, self.spec, reader, read, from) {
                    Some(Seen::Through(via)) => {
                        self.keys.insert(via);
                    }
                    Some(Seen::Path(path)) => {
                        self.txns.extend(path.iter().map(|it| it.from));
                        self.keys.extend(path.iter().filter_map(|it| it.key));
                    }
                    Some(Seen::Session) | None => {}
                }
            }
            StepReason::Begin
            | StepReason::Session
            | StepReason::RealTime
            | StepReason::Stated { .. } => {}
        }
    }

    /// The transactions whose operations show why one version came before another.
    fn add_witnesses(&mut self, key: KeyId, before: TxnId, after: TxnId, fact: Fact) {
        match fact {
            Fact::Run => {
                let newer = self.meaning.lineage(Some(after), key).versions;
                let older = self.meaning.lineage(Some(before), key).versions;
                // The version that both derive from, which is the older one itself unless they are rivals.
                let shared = newer.iter().position(|it| older.contains(it));
                let Some(shared) = shared else { return };
                if shared <= LISTED + 1 {
                    self.txns.extend(newer[1..=shared].iter().flatten());
                }
            }
            Fact::Given => {
                let left = |txn| self.meaning.left(txn, key);
                let (Some(one), Some(two)) = (left(before), left(after)) else {
                    return;
                };
                let orders = self.meaning.history().version_orders().iter();
                if let Some(shown) = shown_by(self.meaning.history(), key, one, two) {
                    self.txns.extend([shown.earlier, shown.later]);
                } else if orders.filter(|order| order.key == key).count() == 0 {
                    let shown = list_showing(self.meaning, key, one, two);
                    self.txns.extend(shown.map(|(reader, _)| reader));
                }
            }
            Fact::Initial | Fact::Assumed => {}
        }
    }
}
