//! Checks a proof that no order explains a history: re-derives every step from the operations, and every case from its split.
//!
//! Sound for this reason: in any explanation a transaction that read a version and wrote the key put its own directly after
//! it, so versions linked by read-modify-writes stay together, and what holds of one against another such group holds for all.

use rustc_hash::{FxHashMap, FxHashSet};

use super::clock::window;
pub use super::findings::check_findings;
use super::meaning::{Lineage, Meaning, Version};
use kingsnake_history::level::{Model, Spec};
use kingsnake_history::model::{History, KeyId, Op, TxnId, ValueId};
use kingsnake_history::verdict::{Fact, Moment, Proof, Step, StepReason};

/// Checks a proof; the error says what is wrong with it.
pub fn check_proof(history: &History, spec: Spec, proof: &Proof) -> Result<(), String> {
    let mut checker = Checker::new(history, spec, proof);
    checker.check(proof)
}

/// That one version of a key came before another, by their writers.
#[derive(Clone, Copy)]
struct Assumption {
    key: KeyId,
    one: TxnId,
    other: TxnId,
}

struct Checker<'h> {
    meaning: Meaning<'h>,
    spec: Spec,
    /// The cases on the way to the proof under examination.
    assumed: Vec<Assumption>,
    /// The lists that counted transactions read, for the keys that the proof names.
    lists: FxHashMap<KeyId, Vec<&'h [ValueId]>>,
}

impl<'h> Checker<'h> {
    fn new(history: &'h History, spec: Spec, proof: &Proof) -> Self {
        let keys: FxHashSet<KeyId> = proof.keys().into_iter().collect();
        let meaning = Meaning::of(history);
        let mut lists: FxHashMap<KeyId, Vec<&'h [ValueId]>> = FxHashMap::default();
        for txn in history.txns().filter(|&txn| meaning.counts(txn)) {
            for &op in history.ops(txn) {
                if let Op::ReadList { key, list } = op
                    && keys.contains(&key)
                {
                    lists.entry(key).or_default().push(history.list(list));
                }
            }
        }
        Checker {
            meaning,
            spec,
            assumed: Vec::new(),
            lists,
        }
    }

    fn check(&mut self, proof: &Proof) -> Result<(), String> {
        match proof {
            Proof::Cycle(steps) => self.check_cycle(steps),
            Proof::Split {
                key,
                one,
                other,
                one_first,
                other_first,
            } => {
                let (key, one, other) = (*key, *one, *other);
                if one == other {
                    return Err(format!("a split of {} with itself", self.txn(one)));
                }
                self.version_of(one, key)?;
                self.version_of(other, key)?;
                for (first, second, proof) in [(one, other, one_first), (other, one, other_first)] {
                    self.assumed.push(Assumption {
                        key,
                        one: first,
                        other: second,
                    });
                    self.check(proof)?;
                    self.assumed.pop();
                }
                Ok(())
            }
        }
    }

    fn check_cycle(&self, steps: &[Step]) -> Result<(), String> {
        let (Some(first), Some(last)) = (steps.first(), steps.last()) else {
            return Err("an empty cycle".to_owned());
        };
        if last.to != first.from {
            return Err("the last step does not end where the first began".to_owned());
        }
        if steps.windows(2).any(|pair| pair[0].to != pair[1].from) {
            return Err("a step does not begin where the one before it ended".to_owned());
        }
        steps.iter().try_for_each(|step| self.check_step(step))
    }

    fn check_step(&self, step: &Step) -> Result<(), String> {
        let (from, to) = (step.from.txn, step.to.txn);
        for txn in [from, to] {
            if !self.meaning.counts(txn) {
                return Err("a step names a transaction that does not count".to_owned());
            }
        }
        self.check_moments(step)?;
        let history = self.meaning.history();
        let holds = match step.reason {
            StepReason::Begin => from == to,
            StepReason::Session => {
                self.spec.session_order && history.session(from) == history.session(to) && from < to
            }
            StepReason::RealTime => {
                let [over, next] = [step.from, step.to].map(|it| window(history, self.spec, it));
                over.to < next.from
            }
            StepReason::Wr { key, value } => {
                from != to
                    && self.meaning.left(from, key) == Some(value)
                    && self.meaning.version_read(to, key) == Some(Some(from))
            }
            StepReason::Ww { key, fact } => {
                self.version_of(from, key)?;
                self.version_of(to, key)?;
                from != to && self.holds(key, Some(from), to, fact)
            }
            StepReason::Rw { key, writer, fact } => {
                self.version_of(to, key)?;
                if self.meaning.version_read(from, key) != Some(writer) {
                    return Err(format!("{} did not read that version", self.txn(from)));
                }
                from != to && self.holds(key, writer, to, fact)
            }
        };
        if holds {
            return Ok(());
        }
        let (from, to) = (self.txn(from), self.txn(to));
        Err(format!(
            "{from} before {to}: {:?} does not hold",
            step.reason
        ))
    }

    /// Whether a step's moments are those that its reason orders.
    fn check_moments(&self, step: &Step) -> Result<(), String> {
        let wanted = match (self.spec.model, step.reason) {
            (Model::Ser, StepReason::Begin) => {
                return Err("transactions have no begin of their own at this level".to_owned());
            }
            (Model::Ser, _) => (Moment::Whole, Moment::Whole),
            // The clock may order any two moments; their windows tell.
            (Model::Si, StepReason::RealTime) => return expect_halves(step),
            (Model::Si, StepReason::Begin | StepReason::Rw { .. }) => {
                (Moment::Begin, Moment::Commit)
            }
            (Model::Si, _) => (Moment::Commit, Moment::Begin),
        };
        if (step.from.moment, step.to.moment) == wanted {
            return Ok(());
        }
        Err(format!("{:?} does not order these moments", step.reason))
    }

    /// Demands that a transaction counts and installed a version of the key.
    fn version_of(&self, txn: TxnId, key: KeyId) -> Result<(), String> {
        if self.meaning.counts(txn) && self.meaning.left(txn, key).is_some() {
            return Ok(());
        }
        let key = self.meaning.history().key_name(key);
        Err(format!("{} wrote no version of {key}", self.txn(txn)))
    }

    /// Whether a fact puts one version of a key before another.
    fn holds(&self, key: KeyId, before: Version, after: TxnId, fact: Fact) -> bool {
        if before == Some(after) {
            return false;
        }
        let older = self.meaning.lineage(before, key);
        let newer = self.meaning.lineage(Some(after), key);
        match fact {
            Fact::Initial => before.is_none() || is_initial(&older) && newer.root != Some(None),
            Fact::Run => {
                // If neither came from the other, both continue one version. Then each is directly after it and the
                // other further behind: a contradiction that either order shows.
                older.root.is_some()
                    && older.root == newer.root
                    && !older.versions.contains(&Some(after))
            }
            Fact::Given => self.is_given(key, before, after, &older, &newer),
            Fact::Assumed => self.assumed.iter().filter(|it| it.key == key).any(|it| {
                let same = Some(it.one) == before && it.other == after;
                same || older.root != newer.root
                    && self.is_akin(key, it.one, &older)
                    && self.is_akin(key, it.other, &newer)
            }),
        }
    }

    /// Whether a version belongs to the group of a lineage.
    fn is_akin(&self, key: KeyId, txn: TxnId, lineage: &Lineage) -> bool {
        lineage.versions.contains(&Some(txn))
            || lineage.root.is_some() && self.meaning.lineage(Some(txn), key).root == lineage.root
    }

    /// Whether a version order or a list puts one before the other, or members of their groups.
    fn is_given(
        &self,
        key: KeyId,
        before: Version,
        after: TxnId,
        older: &Lineage,
        newer: &Lineage,
    ) -> bool {
        let Some(before) = before else { return false };
        let installed = |txn: TxnId| self.meaning.installed(txn, key);
        if self.shows(key, &installed(before), &installed(after)) {
            return true;
        }
        if older.root == newer.root || older.root.is_none() || newer.root.is_none() {
            return false;
        }
        let mut groups = [Vec::new(), Vec::new()];
        for txn in self.meaning.writers_of(key) {
            let root = self.meaning.lineage(Some(txn), key).root;
            for (group, lineage) in groups.iter_mut().zip([older, newer]) {
                if root == lineage.root {
                    group.extend(installed(txn));
                }
            }
        }
        self.shows(key, &groups[0], &groups[1])
    }

    /// Whether some order shows one of the first values before one of the second; it shows a value if one transaction left
    /// it. A list also shows that what it lacks came after all that it has.
    fn shows(&self, key: KeyId, before: &[ValueId], after: &[ValueId]) -> bool {
        let orders = self.meaning.history().version_orders().iter();
        let orders = orders.filter(|order| order.key == key);
        let orders = orders.map(|order| (order.values.as_slice(), false));
        let lists = self.lists.get(&key).into_iter().flatten();
        let lists = lists.map(|&list| (list, true));
        orders.chain(lists).any(|(values, is_list)| {
            let place = |value: ValueId| values.iter().position(|&it| it == value);
            let known = |value: ValueId| place(value).filter(|_| self.meaning.is_unique(value));
            let first = before.iter().filter_map(|&it| known(it)).min();
            let absent = |value: ValueId| (is_list && place(value).is_none()).then_some(usize::MAX);
            let last = after
                .iter()
                .filter_map(|&it| known(it).or_else(|| absent(it)))
                .max();
            matches!((first, last), (Some(first), Some(last)) if first < last)
        })
    }

    fn txn(&self, txn: TxnId) -> String {
        format!("transaction {}", self.meaning.history().txn_name(txn))
    }
}

fn expect_halves(step: &Step) -> Result<(), String> {
    let mut moments = [step.from.moment, step.to.moment].into_iter();
    if moments.any(|moment| moment == Moment::Whole) {
        return Err("transactions are no wholes at this level".to_owned());
    }
    Ok(())
}

fn is_initial(lineage: &Lineage) -> bool {
    lineage.root == Some(None)
}

/// Which steps are accepted under some assumptions. The test of the rules themselves asks.
pub fn accepts_step<'h>(
    history: &'h History,
    spec: Spec,
    assumed: &[(KeyId, TxnId, TxnId)],
) -> impl Fn(&Step) -> bool + 'h {
    let mut checker = Checker::new(history, spec, &Proof::Cycle(Vec::new()));
    let assumptions = assumed
        .iter()
        .map(|&(key, one, other)| Assumption { key, one, other });
    checker.assumed = assumptions.collect();
    for txn in history.txns().filter(|&txn| checker.meaning.counts(txn)) {
        for &op in history.ops(txn) {
            if let Op::ReadList { key, list } = op {
                checker
                    .lists
                    .entry(key)
                    .or_default()
                    .push(history.list(list));
            }
        }
    }
    move |step| checker.check_step(step).is_ok()
}
