//! One step of a proof as a clause: which operations put one transaction before the other.

use super::assumed::shown_by;
use super::involved::LISTED;
use super::labels::{INITIAL, Labels};
use crate::certify::Meaning;
use crate::certify::weak::{PathStep, Seen, why_seen};
use crate::level::{Model, RealTime, Spec, Times};
use crate::model::{History, KeyId, Op, OrderSource, Status, TxnId, ValueId};
use crate::verdict::{Fact, Moment, Step, StepReason};

/// Writes clauses about a history.
pub(super) struct Words<'h> {
    /// The names.
    pub(super) labels: Labels<'h>,
    /// The meaning of the operations.
    pub(super) meaning: &'h Meaning<'h>,
    /// The broken promise.
    spec: Spec,
    history: &'h History,
}

/// A case under consideration: on a key, one writer before the other.
#[derive(Clone, Copy)]
pub(super) struct Case {
    /// The key.
    pub(super) key: KeyId,
    /// Who wrote it first.
    pub(super) first: TxnId,
    /// Who wrote it later.
    pub(super) second: TxnId,
    /// Whether the opposite has been refuted, so that this is more than an assumption.
    pub(super) is_shown: bool,
}

impl<'h> Words<'h> {
    /// The history.
    pub(super) fn history(&self) -> &'h History {
        self.history
    }

    /// Words about these transactions.
    pub(super) fn new(meaning: &'h Meaning<'h>, spec: Spec, txns: &[TxnId]) -> Self {
        let history = meaning.history();
        Words {
            labels: Labels::new(history, txns),
            meaning,
            spec,
            history,
        }
    }

    /// `T1 < T2`, or which of their moments comes first.
    pub(super) fn claim(&self, step: &Step) -> String {
        let (from, to) = (self.labels.txn(step.from.txn), self.labels.txn(step.to.txn));
        match (step.from.moment, step.to.moment) {
            _ if step.reason == StepReason::Begin => format!("{from} began before it committed"),
            _ if step.from == step.to => format!("{from} < the initial state"),
            (Moment::Whole, _) | (_, Moment::Whole) => format!("{from} < {to}"),
            (Moment::Begin, Moment::Commit) => format!("{from} began before {to} committed"),
            (Moment::Commit, Moment::Begin) => format!("{from} committed before {to} began"),
            (Moment::Begin, Moment::Begin) => format!("{from} began before {to} began"),
            (Moment::Commit, Moment::Commit) => format!("{from} committed before {to} committed"),
        }
    }

    /// The conclusion of the steps before the last, if there are several: the opposite of the last.
    pub(super) fn opposite(&self, steps: &[Step]) -> Option<String> {
        let (first, last) = (steps.first()?, steps.last()?);
        let told = steps.iter().filter(|step| step.reason != StepReason::Begin);
        if last.from.moment == Moment::Whole || told.count() < 3 {
            return None;
        }
        Some(self.claim(&Step {
            from: first.from,
            to: last.from,
            reason: last.reason,
        }))
    }

    /// Why the step holds, in one or more sentences without the last full stop; empty if obvious.
    pub(super) fn reason(&self, step: &Step, cases: &[Case]) -> String {
        let mut text = self.operations_say(step, cases);
        text.push_str(&self.snapshots_say(step));
        text
    }

    /// The consequence of the operations for begins and commits, if a transaction has both.
    fn snapshots_say(&self, step: &Step) -> String {
        let (a, b) = (self.labels.txn(step.from.txn), self.labels.txn(step.to.txn));
        match step.reason {
            _ if step.from.moment == Moment::Whole => String::new(),
            StepReason::Wr { .. } if step.to.moment == Moment::Commit => {
                format!(". So {a} committed first")
            }
            StepReason::Rw { .. } if step.from.moment == Moment::Commit => {
                format!(". So {a} committed first")
            }
            StepReason::Wr { .. } => format!(". So {b}'s snapshot holds {a}'s commit"),
            StepReason::Rw { .. } => format!(". So {a}'s snapshot lacks {b}'s commit"),
            StepReason::Ww { .. } if step.to.moment == Moment::Commit => String::new(),
            StepReason::Ww { .. } => ". Writers of one key must not overlap".to_owned(),
            StepReason::Begin
            | StepReason::Session
            | StepReason::RealTime
            | StepReason::Stated { .. }
            | StepReason::Vis { .. } => String::new(),
        }
    }

    /// That a transaction saw another, and so must not have missed its write of a key.
    fn missed(&self, reader: TxnId, key: KeyId, seen: TxnId, read: Option<TxnId>) -> String {
        let (who, other) = (self.labels.txn(reader), self.labels.txn(seen));
        let saw = match why_seen(self.meaning, self.spec, reader, (key, read), seen) {
            Some(Seen::Through(via)) => {
                format!("{who} saw {other} through {}", self.labels.key(via))
            }
            Some(Seen::Session) => format!("{who} came after {other} in their session"),
            Some(Seen::Path(path)) => {
                let steps: Vec<String> = path.iter().map(|step| self.path_step(step)).collect();
                format!("{other} happened before {who} ({})", steps.join(", "))
            }
            None => format!("{who} saw {other}"),
        };
        let key = self.labels.key(key);
        let source = read.map_or_else(
            || "the initial state, before which nothing commits".to_owned(),
            |read| format!("{}, which must have committed later", self.labels.txn(read)),
        );
        format!("{saw}, so {who} must not miss {other}'s {key}; yet it read {key} from {source}")
    }

    fn path_step(&self, step: &PathStep) -> String {
        let (from, to) = (self.labels.txn(step.from), self.labels.txn(step.to));
        match step.key {
            None => format!("{from}, then {to} in one session"),
            Some(key) => format!("{to} read {from}'s {}", self.labels.key(key)),
        }
    }

    fn operations_say(&self, step: &Step, cases: &[Case]) -> String {
        let (from, to) = (step.from.txn, step.to.txn);
        let (a, b) = (self.labels.txn(from), self.labels.txn(to));
        match step.reason {
            StepReason::Begin => String::new(),
            StepReason::Session => {
                let session = self.labels.session(self.history.session(from));
                format!("both ran in session {session}, {a} first")
            }
            StepReason::RealTime => self.in_time(step),
            StepReason::Stated { edge } => {
                let edges = self.history.given_edges();
                let name = edges.get(edge as usize).map_or("", |it| it.name.as_str());
                format!("{a} came before {b}, by the given order {name}")
            }
            StepReason::Vis { reader, key } => self.missed(reader, key, from, step.read_instead()),
            StepReason::Wr { key, value } => self.read_from(from, to, key, value),
            StepReason::Ww { key, fact } => {
                if fact == Fact::Run && self.is_rival(key, from, to) {
                    return self.rivals(key, from, to);
                }
                let (one, two) = (self.write(from, key), self.write(to, key));
                let why = self.why(key, Some(from), to, fact, cases);
                format!("{a} {one} and {b} {two}, {why}")
            }
            StepReason::Rw { key, writer, fact } => {
                let seen = self.sight(from, key);
                if let Some(predicate) = self.predicate_on(from, key) {
                    let though = self.had_set(to, predicate, key);
                    let Some(writer) = writer else {
                        return format!("{seen}, though {though}");
                    };
                    let then = self.had_set(writer, predicate, key);
                    let why = self.why(key, Some(writer), to, fact, cases);
                    return format!("{seen}, because {then}, though {though}, {why}");
                }
                let two = self.overwrite(to, key);
                let Some(writer) = writer else {
                    let goes_without_saying =
                        seen.ends_with(INITIAL) || seen.ends_with(&self.not_returned(key));
                    let state = if goes_without_saying {
                        ""
                    } else {
                        ", the initial state"
                    };
                    return format!("{seen}{state}, which {b} {two}");
                };
                if fact == Fact::Run && self.meaning.version_read(to, key) == Some(Some(writer)) {
                    return format!("{seen}, which {b} also read and {two}");
                }
                let by = self.labels.txn(writer);
                if fact == Fact::Run && self.is_rival(key, writer, to) {
                    return format!("{seen}. {}", self.rivals(key, writer, to));
                }
                let why = self.why(key, Some(writer), to, fact, cases);
                let two = self.write(to, key);
                let made = self.made(writer, key);
                format!("{seen}, which {by} {made}. {b} {two}, {why}")
            }
        }
    }

    /// Which recorded times put one moment before another.
    fn in_time(&self, step: &Step) -> String {
        let (from, to) = (step.from, step.to);
        let (a, b) = (self.labels.txn(from.txn), self.labels.txn(to.txn));
        let [over, next] = [from.txn, to.txn].map(|txn| self.history.interval(txn));
        let exact = self
            .spec
            .real_time
            .is_some_and(|it| it.times == Times::Exact && from.moment != Moment::Whole);
        // If times are bounds, only the end of one transaction and the start of the other are conclusive.
        let (what, when) = match from.moment {
            Moment::Begin if exact && over.begin != i64::MIN => ("begun", over.begin),
            _ => ("committed", over.commit),
        };
        let (then, later) = match to.moment {
            Moment::Commit if exact && next.commit != i64::MAX => ("committed", next.commit),
            _ => ("began", next.begin),
        };
        let margin = match self.spec.real_time {
            Some(RealTime { drift, .. }) if drift > 0 => {
                let gap = i128::from(later) - i128::from(when);
                format!(", {gap} ns later, and clocks disagree by at most {drift} ns")
            }
            _ => String::new(),
        };
        format!("{a} had {what} (at {when}) when {b} {then} (at {later}{margin})")
    }

    fn is_list(&self, txn: TxnId, key: KeyId) -> bool {
        let ops = self.history.ops(txn).iter();
        let mut of_key = ops.filter(|op| op.key() == Some(key));
        of_key.any(|op| matches!(op, Op::Append { .. } | Op::ReadList { .. }))
    }

    /// A transaction's last write of a key: `wrote`, `inserted`, `deleted`.
    fn made(&self, txn: TxnId, key: KeyId) -> &'static str {
        let ops = self.history.ops(txn);
        let last = ops
            .iter()
            .rposition(|op| op.is_write() && op.key() == Some(key));
        let value = self.meaning.left(txn, key);
        if value.is_some_and(|value| self.history.is_absence(value)) {
            return "deleted";
        }
        match last {
            Some(at) if self.history.is_insert(txn, at) => "inserted",
            _ => "wrote",
        }
    }

    /// `wrote x = 1`, `inserted x = 1`, `deleted x`, `appended 1 to x`.
    pub(super) fn write(&self, txn: TxnId, key: KeyId) -> String {
        let name = self.labels.key(key);
        let made = self.made(txn, key);
        let Some(value) = self.meaning.left(txn, key) else {
            return format!("{made} {name}");
        };
        let value = self.labels.value(value);
        if self.is_list(txn, key) {
            format!("appended {value} to {name}")
        } else if made == "deleted" {
            format!("{made} {name}")
        } else {
            format!("{made} {name} = {value}")
        }
    }

    fn overwrite(&self, txn: TxnId, key: KeyId) -> String {
        let name = self.labels.key(key);
        match (self.meaning.left(txn, key), self.made(txn, key)) {
            (Some(value), _) if self.is_list(txn, key) => {
                format!("appended {} to", self.labels.value(value))
            }
            (Some(value), "inserted") => {
                format!("inserted as {name} = {}", self.labels.value(value))
            }
            (Some(value), "wrote") => {
                format!("overwrote with {name} = {}", self.labels.value(value))
            }
            (Some(_), made) => made.to_owned(),
            (None, _) => "overwrote".to_owned(),
        }
    }

    /// `T1 read x = 1`, `T1 read x = [1, 2]`, `T1's range query of [1, 9] returned k3 = 1`, `… did not return k3`.
    pub(super) fn sight(&self, txn: TxnId, key: KeyId) -> String {
        let (who, name) = (self.labels.txn(txn), self.labels.key(key));
        let ops = self.history.ops(txn).iter();
        let seen = ops.filter_map(|&op| match op {
            Op::Read { key: it, value } if it == key => Some(if self.history.is_tombstone(value) {
                format!("{who} found {}", self.labels.row(value))
            } else {
                format!("{who} read {}", self.labels.row(value))
            }),
            Op::ReadList { key: it, list } if it == key => {
                let list = self.labels.list(self.history.list(list));
                Some(format!("{who} read {name} = {list}"))
            }
            Op::Range { range } => {
                let query = self.history.range(range);
                let token = self.history.key_token(key);
                if query.span.place(self.history.symbols(), token).is_ne() {
                    return None;
                }
                let span = self.labels.span(query);
                let row = query
                    .rows
                    .iter()
                    .find(|&&row| self.history.value_key(row) == key);
                let what = row.map_or_else(
                    || self.not_returned(key),
                    |&row| format!("returned {}", self.labels.row(row)),
                );
                Some(format!("{who}'s range query of {span} {what}"))
            }
            _ => None,
        });
        if let Some(predicate) = self.predicate_on(txn, key) {
            return self.asked(txn, predicate, key);
        }
        let seen = seen.take(1).next();
        let seen = seen.or_else(|| self.aggregate_on(txn, key));
        seen.unwrap_or_else(|| format!("{who} read {name}"))
    }

    fn not_returned(&self, key: KeyId) -> String {
        format!("did not return {}", self.labels.key(key))
    }

    fn read_from(&self, writer: TxnId, reader: TxnId, key: KeyId, value: ValueId) -> String {
        let a = self.labels.txn(writer);
        let seen = self.sight(reader, key);
        if let Some(predicate) = self.predicate_on(reader, key) {
            return format!("{seen}, as {}", self.had_set(writer, predicate, key));
        }
        if self.is_list(reader, key) {
            let value = self.labels.value(value);
            return format!("{seen}, which shows {a}'s append of {value}");
        }
        format!("{seen}, which {a} {}", self.made(writer, key))
    }

    fn value_left(&self, txn: TxnId, key: KeyId) -> String {
        let value = self.meaning.left(txn, key);
        value.map_or_else(|| "it".to_owned(), |value| self.labels.value(value))
    }

    /// Why one version of a key came before another.
    fn why(
        &self,
        key: KeyId,
        before: Option<TxnId>,
        after: TxnId,
        fact: Fact,
        cases: &[Case],
    ) -> String {
        let Some(before) = before else {
            return "which comes after the initial state".to_owned();
        };
        let name = self.labels.key(key);
        let (one, two) = (self.value_left(before, key), self.value_left(after, key));
        match fact {
            Fact::Initial => {
                let n_links = self.meaning.lineage(Some(before), key).versions.len() - 1;
                let how = read_modify_writes(n_links);
                format!(
                    "which is later. {name} = {one} was made from the initial state by {how}, with \
                     nothing in between. {two} was not"
                )
            }
            Fact::Run => self.why_run(key, before, after),
            Fact::Given => self.why_given(key, before, after),
            Fact::Assumed => {
                let case = cases.iter().find(|case| {
                    case.key == key
                        && self.is_akin(key, case.first, before)
                        && self.is_akin(key, case.second, after)
                });
                let Some(case) = case else {
                    return "which is later".to_owned();
                };
                let known = if case.is_shown { "shown" } else { "assumed" };
                if (case.first, case.second) == (before, after) {
                    return format!("which is later, as {known}");
                }
                let first = self.value_left(case.first, key);
                let second = self.value_left(case.second, key);
                format!(
                    "which is later. {first} before {second} is {known}. Values linked by read-modify-writes \
                     stay together"
                )
            }
        }
    }

    fn is_akin(&self, key: KeyId, one: TxnId, other: TxnId) -> bool {
        let root = |txn| self.meaning.lineage(Some(txn), key).root;
        one == other || root(one).is_some() && root(one) == root(other)
    }

    /// Why two versions that read-modify-writes link are in this order.
    fn why_run(&self, key: KeyId, before: TxnId, after: TxnId) -> String {
        let one = self.value_left(before, key);
        let lineage = self.meaning.lineage(Some(after), key).versions;
        match lineage.iter().position(|&it| it == Some(before)) {
            Some(1) => format!("having read {one}"),
            Some(n_links) => {
                let between = lineage[1..n_links].iter().rev().flatten();
                let between: Vec<String> = between.map(|&txn| self.labels.txn(txn)).collect();
                let through = if between.len() > LISTED {
                    format!("{} transactions", between.len())
                } else {
                    between.join(", ")
                };
                format!("made from {one} by read-modify-writes of {through}")
            }
            None => format!("which is later than {one}"),
        }
    }

    /// Whether two versions continue the same version, which is impossible.
    fn is_rival(&self, key: KeyId, before: TxnId, after: TxnId) -> bool {
        let lineage = self.meaning.lineage(Some(after), key).versions;
        !lineage.contains(&Some(before))
    }

    /// Why, of two versions that continue the same one, the second can only be later (and the first, too).
    fn rivals(&self, key: KeyId, before: TxnId, after: TxnId) -> String {
        let name = self.labels.key(key);
        let (a, b) = (self.labels.txn(before), self.labels.txn(after));
        let (one, two) = (self.value_left(before, key), self.value_left(after, key));
        let lineage = self.meaning.lineage(Some(after), key).versions;
        let older = self.meaning.lineage(Some(before), key).versions;
        let shared = older.iter().position(|it| lineage.contains(it));
        let from = match shared.and_then(|at| older[at]) {
            Some(txn) => format!("{name} = {}", self.value_left(txn, key)),
            None => format!("the initial state of {name}"),
        };
        let how = match shared {
            Some(1) => format!("{a} read {from} and overwrote it with {one}"),
            _ => format!("{a}'s {one} was made from {from} by read-modify-writes"),
        };
        format!("{how}. {b}'s {two} was also made from {from}, so it must come after {a}'s write")
    }

    /// Which order or list shows one version before another.
    fn why_given(&self, key: KeyId, before: TxnId, after: TxnId) -> String {
        let name = self.labels.key(key);
        let (one, two) = (self.value_left(before, key), self.value_left(after, key));
        let (Some(left), Some(right)) = (
            self.meaning.left(before, key),
            self.meaning.left(after, key),
        ) else {
            return "which is later".to_owned();
        };
        let place = |values: &[ValueId], value| values.iter().position(|&it| it == value);
        if let Some(shown) = shown_by(self.history, key, left, right) {
            return self.why_shown(key, shown, &one, &two);
        }
        let orders = self.history.version_orders().iter();
        for order in orders.filter(|order| order.key == key) {
            match (place(&order.values, left), place(&order.values, right)) {
                (Some(first), Some(second)) if first < second => {
                    return match order.source {
                        OrderSource::Database => {
                            format!("which is later, for the database says {one} ≪ {two}")
                        }
                        OrderSource::Transactions => {
                            format!(
                                "which is later, for the given order of transactions says {one} ≪ {two}"
                            )
                        }
                        OrderSource::Keys(_) => {
                            format!(
                                "which is later, for what is assumed of {name} says {one} ≪ {two}"
                            )
                        }
                    };
                }
                _ => {}
            }
        }
        if let Some((reader, values)) = list_showing(self.meaning, key, left, right) {
            let reader = self.labels.txn(reader);
            let shown = self.labels.list(values);
            let without = if values.contains(&right) {
                String::new()
            } else {
                format!(", without {two}")
            };
            return format!("which is later: {reader} read {name} = {shown}{without}");
        }
        format!(
            "which is later: a known order of {name} says so of values linked to {one} and {two}"
        )
    }

    /// `read x = 1`, `wrote x = 1`, `appended 1 to x`, `read x = [1, 2]`, `queried [1, 9]: k3 = 1`. Of a long answer,
    /// these keys are shown.
    pub(super) fn operation(&self, txn: TxnId, at: usize, keys: &[KeyId]) -> String {
        let Some(&op) = self.history.ops(txn).get(at) else {
            return "did something".to_owned();
        };
        self.labels.operation(txn, at, op, keys)
    }

    /// The operations of a transaction, without those of irrelevant keys.
    pub(super) fn operations(&self, txn: TxnId, keys: &[KeyId]) -> String {
        let mut told: Vec<String> = Vec::new();
        let mut n_hidden = 0;
        for (at, &op) in self.history.ops(txn).iter().enumerate() {
            if !keys.iter().any(|&key| self.history.touches(op, key)) || told.len() >= 16 {
                n_hidden += 1;
                continue;
            }
            told.push(self.operation(txn, at, keys));
        }
        match n_hidden {
            0 => {}
            1 => told.push("1 other operation".to_owned()),
            n => told.push(format!("{n} other operations")),
        }
        told.join("; ")
    }

    /// The name of a transaction's session.
    pub(super) fn session_of(&self, txn: TxnId) -> String {
        self.labels.session(self.history.session(txn))
    }

    /// `T1 (session a)`, and its outcome if it did not commit.
    pub(super) fn with_session(&self, txn: TxnId) -> String {
        let session = self.labels.session(self.history.session(txn));
        let end = match self.history.status(txn) {
            Status::Committed => "",
            Status::Aborted => ", aborted",
            Status::Unknown => ", end unknown",
        };
        let level = if self.spec.model == Model::Mixed {
            format!(", at {}", self.history.model(txn).name())
        } else {
            String::new()
        };
        format!("{} (session {session}{end}{level})", self.labels.txn(txn))
    }
}

fn read_modify_writes(n_links: usize) -> String {
    match n_links {
        1 => "a read-modify-write".to_owned(),
        n => format!("{n} read-modify-writes"),
    }
}

/// A list that shows one value before another, or without it, and who read it.
pub(super) fn list_showing<'h>(
    meaning: &Meaning<'h>,
    key: KeyId,
    before: ValueId,
    after: ValueId,
) -> Option<(TxnId, &'h [ValueId])> {
    let history = meaning.history();
    let place = |values: &[ValueId], value| values.iter().position(|&it| it == value);
    let mut without = None;
    for txn in history.txns().filter(|&txn| meaning.counts(txn)) {
        for &op in history.ops(txn) {
            let Op::ReadList { key: it, list } = op else {
                continue;
            };
            let values = history.list(list);
            match (place(values, before), place(values, after)) {
                _ if it != key => {}
                (Some(first), Some(second)) if first < second => return Some((txn, values)),
                (Some(_), None) if without.is_none() => without = Some((txn, values)),
                _ => {}
            }
        }
    }
    without
}
