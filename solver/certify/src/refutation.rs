//! Checks a proof that no order explains a history: re-derives every step from the operations, and every case from its split.
//!
//! Sound for this reason: in any explanation a transaction that read a version and wrote the key put its own directly after
//! it, so versions linked by read-modify-writes stay together, and what holds of one against another such group holds for all.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Refusal;
use super::clock::window;
use super::families::Families;
pub use super::findings::{check_broken, check_findings};
use super::graphs::is_cycle;
use super::meaning::{Meaning, Version};
use super::weak::reads::Wary;
use super::weak::{reads_from, sees};
use kingsnake_history::budget::Budget;
use kingsnake_history::level::{Model, Spec};
use kingsnake_history::model::{Act, History, KeyId, Op, TxnId, ValueId};
use kingsnake_history::verdict::{Fact, Moment, Proof, ReadSource, Split, Step, StepReason, Visit};

/// Checks a proof; the error tells what is wrong with it.
pub fn check_proof(history: &History, spec: Spec, proof: &Proof) -> Result<(), Refusal> {
    check_proof_within(history, spec, proof, &Budget::unlimited())
}

/// Checks a proof, as long as the budget lasts. Linear in the history and the proof.
pub fn check_proof_within(
    history: &History,
    spec: Spec,
    proof: &Proof,
    budget: &Budget,
) -> Result<(), Refusal> {
    let keys: FxHashSet<KeyId> = proof.keys().into_iter().collect();
    if keys.iter().any(|key| key.index() >= history.n_keys()) {
        return Err(Refusal::Refutation(
            "a key that the history lacks".to_owned(),
        ));
    }
    let mut checker = Checker::new(Meaning::of(history), spec, |key| keys.contains(&key));
    budget.check()?;
    for visit in proof.visits() {
        budget.check()?;
        checker.visit(visit).map_err(Refusal::Refutation)?;
    }
    Ok(())
}

/// That one version of a key came before another, by their writers.
type Assumption = (KeyId, Version, Version);

struct Checker<'h> {
    meaning: Meaning<'h>,
    wary: Wary<'h>,
    spec: Spec,
    /// The cases on the way to the cycle under examination, each with how often it is assumed there: by the writers, and by the
    /// first versions of their families.
    assumed: FxHashMap<Assumption, usize>,
    families: FxHashMap<KeyId, Families>,
    writers: FxHashMap<KeyId, Vec<TxnId>>,
    lists: FxHashMap<KeyId, Vec<&'h [ValueId]>>,
    /// What was assumed of reads before each open case.
    before: Vec<Option<Version>>,
}

impl<'h> Checker<'h> {
    fn new(meaning: Meaning<'h>, spec: Spec, is_named: impl Fn(KeyId) -> bool) -> Self {
        let history = meaning.history();
        let mut writers: FxHashMap<KeyId, Vec<TxnId>> = FxHashMap::default();
        let mut lists: FxHashMap<KeyId, Vec<&'h [ValueId]>> = FxHashMap::default();
        for txn in history.txns().filter(|&txn| meaning.counts(txn)) {
            for &op in history.ops(txn) {
                let Some(key) = op.key().filter(|&key| is_named(key)) else {
                    continue;
                };
                if let Op::ReadList { list, .. } = op {
                    let list = history.list(list);
                    let shown = if spec.model_of(history, txn).is_atomic() {
                        list
                    } else {
                        of_others(history, txn, key, list)
                    };
                    lists.entry(key).or_default().push(shown);
                }
                if op.is_write() {
                    let writers = writers.entry(key).or_default();
                    if writers.last() != Some(&txn) {
                        writers.push(txn);
                    }
                }
            }
        }
        let families = writers.iter().map(|(&key, writers)| {
            let lists = lists.get(&key).map_or(&[][..], Vec::as_slice);
            (
                key,
                Families::of(&meaning, key, writers, lists, |txn| {
                    spec.model_of(history, txn)
                }),
            )
        });
        let families = families.collect();
        Checker {
            wary: Wary::of(&meaning),
            meaning,
            spec,
            assumed: FxHashMap::default(),
            families,
            writers,
            lists,
            before: Vec::new(),
        }
    }

    /// Checks that a transaction can have read a key only from those that have a case.
    fn check_choice(
        &self,
        (reader, op, key): (TxnId, Option<usize>, KeyId),
        cases: &[(Version, Proof)],
    ) -> Result<(), String> {
        let history = self.meaning.history();
        if self.assumed.values().any(|&times| times > 0) {
            return Err("a choice within a split".to_owned());
        }
        if reader.index() >= history.n_txns() || !self.meaning.counts(reader) {
            return Err("a choice of a transaction that does not count".to_owned());
        }
        let (who, what) = (self.txn(reader), history.key_name(key));
        let sources = match op {
            None if self.may_differ(reader) => {
                return Err(format!("{who} may read {what} twice and differently"));
            }
            None => self.meaning.sources(reader, key),
            Some(op) => self.meaning.external_sources(reader, op, key),
        };
        let Some(sources) = sources else {
            return Err(format!("{who} read nothing of {what}"));
        };
        for source in sources {
            if !cases.iter().any(|case| case.0 == source) {
                let source =
                    source.map_or_else(|| "the initial state".to_owned(), |it| self.txn(it));
                return Err(format!("{who} can also have read {what} from {source}"));
            }
        }
        Ok(())
    }

    /// Checks that nothing that a transaction can have counted gives an aggregate its result, but for what is ruled out.
    fn check_aggregate(
        &self,
        reader: TxnId,
        nth: usize,
        ruled_out: &[(KeyId, Version, Proof)],
    ) -> Result<(), String> {
        if self.assumed.values().any(|&times| times > 0) {
            return Err("an aggregate within a split".to_owned());
        }
        let history = self.meaning.history();
        if reader.index() >= history.n_txns() || !self.meaning.counts(reader) {
            return Err("an aggregate of a transaction that does not count".to_owned());
        }
        let predicate = history.predicates(reader).nth(nth);
        let Some(Act::Aggregate { result, .. }) = predicate.map(|it| it.act) else {
            return Err(format!("{} has no such aggregate", self.txn(reader)));
        };
        if self.may_differ(reader) && !ruled_out.is_empty() {
            return Err("a transaction may read a row twice and differently".to_owned());
        }
        let is_ruled_out = |key, version| ruled_out.iter().any(|it| (it.0, it.1) == (key, version));
        // Of weak transactions something may be assumed statement by statement.
        let is_weak = self.model(reader).is_weak() && ruled_out.is_empty();
        let by_statement = is_weak.then(|| self.meaning.statement_results(reader, nth));
        let by_statement = by_statement.flatten().map(|it| it.0);
        let by_row =
            (!self.may_differ(reader)).then(|| self.meaning.results(reader, nth, is_ruled_out));
        let mut possible = [by_statement, by_row.flatten()]
            .into_iter()
            .flatten()
            .peekable();
        if possible.peek().is_none() {
            return Err("an aggregate of too many results".to_owned());
        }
        if possible.all(|results| results.contains(&result)) {
            let who = self.txn(reader);
            return Err(format!(
                "{who} can have been given the result of its aggregate"
            ));
        }
        Ok(())
    }

    /// Assumes the writer that a transaction read a key from, or takes that back.
    fn assume(&mut self, source: ReadSource, is_taken_back: bool) {
        let ReadSource {
            reader,
            op,
            key,
            writer,
        } = source;
        if let Some(op) = op {
            let read = (reader, op, key);
            if is_taken_back {
                let before = self.before.pop().flatten();
                self.meaning.assume_read(read, before);
            } else {
                self.before.push(self.meaning.assumed_read(read));
                self.meaning.assume_read(read, Some(writer));
            }
            return;
        }
        if is_taken_back {
            let before = self.before.pop().flatten();
            self.meaning.assume(reader, key, before);
        } else {
            let before = self.meaning.assume(reader, key, Some(writer));
            self.before.push(before);
        }
        // A transaction that read and wrote the key joins two versions.
        if self.meaning.left(reader, key).is_some()
            && let Some(writers) = self.writers.get(&key)
        {
            let lists = self.lists.get(&key).map_or(&[][..], Vec::as_slice);
            let (spec, history) = (self.spec, self.meaning.history());
            let model = |txn| spec.model_of(history, txn);
            let families = Families::of(&self.meaning, key, writers, lists, model);
            self.families.insert(key, families);
        }
    }

    fn visit(&mut self, visit: Visit<'_>) -> Result<(), String> {
        match visit {
            Visit::Cycle(steps) => self.check_cycle(steps),
            Visit::Choice(reader, op, key, cases) => self.check_choice((reader, op, key), cases),
            Visit::Aggregate(reader, nth, ruled_out) => {
                self.check_aggregate(reader, nth, ruled_out)
            }
            Visit::Source(source) => {
                self.assume(source, false);
                Ok(())
            }
            Visit::EndOfSource(source) => {
                self.assume(source, true);
                Ok(())
            }
            Visit::Split(Split { key, one, other }) => {
                if one == other {
                    return Err(format!("a split of {} with itself", self.txn(one)));
                }
                self.version_of(one, key)?;
                self.version_of(other, key)
            }
            Visit::Case(case) => {
                for assumption in self.assumptions(case) {
                    *self.assumed.entry(assumption).or_default() += 1;
                }
                Ok(())
            }
            Visit::EndOfCase(case) => {
                for assumption in self.assumptions(case) {
                    if let Some(times) = self.assumed.get_mut(&assumption) {
                        *times -= 1;
                    }
                }
                Ok(())
            }
        }
    }

    /// What a case assumes: of the two versions, and of the first versions of their families, where they have any and differ.
    fn assumptions(&self, case: Split) -> Vec<Assumption> {
        let (one, other) = (Some(case.one), Some(case.other));
        let mut assumptions = vec![(case.key, one, other)];
        let roots = [one, other].map(|version| self.families.get(&case.key)?.root(version));
        if let [Some(older), Some(newer)] = roots
            && older != newer
            && (older, newer) != (one, other)
        {
            assumptions.push((case.key, older, newer));
        }
        assumptions
    }

    fn is_assumed(&self, assumption: Assumption) -> bool {
        self.assumed
            .get(&assumption)
            .is_some_and(|&times| times > 0)
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
        let is_rw = |step: &&Step| matches!(step.reason, StepReason::Rw { .. });
        if self.spec.model == Model::Psi && steps.iter().filter(is_rw).count() > 1 {
            return Err("this level allows cycles with several rw steps".to_owned());
        }
        if !is_cycle(steps.iter().map(|step| (step.from, step.to))) {
            return Err("the steps are no cycle".to_owned());
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
            StepReason::Stated { edge } => {
                let given = history.given_edges().get(edge as usize);
                given.is_some_and(|it| (it.from, it.to) == (from, to))
            }
            StepReason::Wr { key, value } => {
                from != to
                    && self.meaning.left(from, key) == Some(value)
                    && self.read_from(to, key, from)
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
            StepReason::Vis { reader, key } => {
                let read = Some(to).filter(|&to| to != from);
                self.meaning.counts(reader)
                    && sees(
                        &self.meaning,
                        &self.wary,
                        self.spec,
                        reader,
                        (key, read),
                        from,
                    )
                    .is_some()
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

    /// Whether a transaction read a key from another. A weak one may have read it several times, and differently.
    fn read_from(&self, reader: TxnId, key: KeyId, writer: TxnId) -> bool {
        if self.model(reader).is_weak() {
            return reads_from(&self.meaning, &self.wary, reader, (key, writer));
        }
        self.meaning.version_read(reader, key) == Some(Some(writer))
    }

    /// Whether a transaction may read a key twice and differently.
    fn may_differ(&self, txn: TxnId) -> bool {
        self.model(txn).reads_may_differ()
    }

    fn model(&self, txn: TxnId) -> Model {
        self.spec.model_of(self.meaning.history(), txn)
    }

    /// Whether a step's moments are those that its reason orders.
    fn check_moments(&self, step: &Step) -> Result<(), String> {
        let [from, to] = [step.from, step.to].map(|point| self.model(point.txn));
        if matches!(step.reason, StepReason::Rw { .. }) && !from.reads_newest() {
            return Err("a weak transaction need not read the newest version".to_owned());
        }
        let at = |is_begin: bool| {
            if is_begin {
                Moment::Begin
            } else {
                Moment::Commit
            }
        };
        let has_begins = self.spec.has_begins(self.meaning.history());
        let wanted = match (has_begins, step.reason) {
            (false, StepReason::Begin) => {
                return Err("transactions have no begin of their own at this level".to_owned());
            }
            (false, _) => (Moment::Whole, Moment::Whole),
            // The clock may order any two moments; their windows decide.
            (true, StepReason::RealTime) => return expect_halves(step),
            (true, StepReason::Begin) => (Moment::Begin, Moment::Commit),
            (true, StepReason::Session | StepReason::Stated { .. }) => {
                (Moment::Commit, Moment::Begin)
            }
            (true, StepReason::Wr { .. }) => (Moment::Commit, at(to.reads_at_begin())),
            (true, StepReason::Ww { .. }) => (Moment::Commit, at(to.installs_at_begin())),
            (true, StepReason::Rw { .. }) => (at(from.reads_at_begin()), Moment::Commit),
            (true, StepReason::Vis { .. }) => (Moment::Commit, Moment::Commit),
        };
        if (step.from.moment, step.to.moment) == wanted {
            return Ok(());
        }
        Err(format!("{:?} does not order these moments", step.reason))
    }

    /// Requires that a transaction counts and installed a version of the key.
    fn version_of(&self, txn: TxnId, key: KeyId) -> Result<(), String> {
        if self.meaning.counts(txn) && self.meaning.left(txn, key).is_some() {
            return Ok(());
        }
        let key = self.meaning.history().key_name(key);
        Err(format!("{} wrote no version of {key}", self.txn(txn)))
    }

    /// Whether a fact puts one version of a key before another.
    fn holds(&self, key: KeyId, before: Version, after: TxnId, fact: Fact) -> bool {
        let Some(families) = self.families.get(&key) else {
            return false;
        };
        let newer = Some(after);
        if before == newer {
            return false;
        }
        let roots = (families.root(before), families.root(newer));
        match fact {
            // Two that were both made from the initial state contradict each other, as below.
            Fact::Initial => {
                before.is_none() || roots.0 == Some(None) && !families.is_from(before, newer)
            }
            // A reader of a version commits after its writer, and so does a reader of what that one wrote. If neither came from
            // the other in one family, both continue one version. Then each is directly after it and the other further
            // behind: a contradiction that either order shows.
            Fact::Run => {
                let in_one = roots.0.is_some() && roots.0 == roots.1;
                // What was made of a family, and is none of it, comes after all of it.
                let is_behind = roots.0.is_some_and(|root| families.is_from(newer, root));
                families.is_from(newer, before)
                    || in_one && !families.is_from(before, newer)
                    || !in_one && is_behind
            }
            Fact::Given => before.is_some_and(|before| families.is_given(before, after)),
            Fact::Assumed => {
                self.is_assumed((key, before, newer))
                    || match roots {
                        (Some(older), Some(newer)) => self.is_assumed((key, older, newer)),
                        _ => false,
                    }
            }
        }
    }

    fn txn(&self, txn: TxnId) -> String {
        format!("transaction {}", self.meaning.history().txn_name(txn))
    }
}

/// What a list shows of what others appended. Where another version may come between what a transaction read and what it wrote, its own
/// appends, which it saw last, show nothing of the order.
fn of_others<'h>(
    history: &'h History,
    txn: TxnId,
    key: KeyId,
    list: &'h [ValueId],
) -> &'h [ValueId] {
    let is_own = |value: &ValueId| {
        let mut ops = history.ops(txn).iter();
        ops.any(
            |&op| matches!(op, Op::Append { key: it, value: own } if it == key && own == *value),
        )
    };
    let end = list.iter().position(is_own);
    &list[..end.unwrap_or(list.len())]
}

fn expect_halves(step: &Step) -> Result<(), String> {
    let mut moments = [step.from.moment, step.to.moment].into_iter();
    if moments.any(|moment| moment == Moment::Whole) {
        return Err("transactions are no wholes at this level".to_owned());
    }
    Ok(())
}

/// The steps accepted under some assumptions, for the test of the rules themselves.
pub fn accepts_step<'h>(
    history: &'h History,
    spec: Spec,
    assumed: &[(KeyId, TxnId, TxnId)],
) -> impl Fn(&Step) -> bool + 'h {
    let mut checker = Checker::new(Meaning::of(history), spec, |_| true);
    for &(key, one, other) in assumed {
        for assumption in checker.assumptions(Split { key, one, other }) {
            *checker.assumed.entry(assumption).or_default() += 1;
        }
    }
    move |step| checker.check_step(step).is_ok()
}
