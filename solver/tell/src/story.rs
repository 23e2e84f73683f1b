//! A counterexample in plain words: the operations, the order that they imply, and the contradiction.
//!
//! The story is made from the proof and the history alone, and only of what the checker derives again.

use std::fmt::Write as _;

use super::advice::{causes, definition, promised};
use super::direct::direct_order;
use super::findings::tell_finding;
use super::involved::{TOLD, involved};
use super::name::{AnomalyName, name_by};
use super::notes::{beside, meanwhile};
use super::noticed::noticed;
use super::recorded::RecordedWords;
use super::words::{Case, Words};
use crate::certify::Meaning;
use crate::level::{Model, Spec};
use crate::model::{Act, History, KeyId, OrderSource, Status, TxnId};
use crate::promise::Promise;
use crate::verdict::{Counterexample, Fact, Finding, Proof, Step, StepReason, Stuck};

/// Of longer cycles only the first and the last steps are printed.
const LONGEST: usize = 60;
/// With more transactions their operations are omitted.
const MOST_TXNS: usize = 200;

/// A line of a story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoryLine {
    /// Nesting depth of cases.
    pub depth: usize,
    /// The text.
    pub text: String,
}

/// A counterexample in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Story {
    /// The name of the anomaly.
    pub name: AnomalyName,
    /// The anomaly, and the broken promise.
    pub headline: String,
    /// What the anomaly is, in one sentence.
    pub about: String,
    /// The effect on the application.
    pub noticed: String,
    /// What the level promises, in one line.
    pub definition: String,
    /// What usually causes such an anomaly, the most likely first.
    pub causes: &'static [&'static str],
    /// The argument.
    pub lines: Vec<StoryLine>,
    /// The transactions involved.
    pub txns: Vec<TxnId>,
    /// The relevant operations of each, in the same order.
    pub operations: Vec<String>,
    /// The faults injected meanwhile.
    pub meanwhile: Vec<String>,
    /// Shortened names and their full forms.
    pub legend: Vec<(String, String)>,
}

/// The story of a counterexample.
pub fn story(history: &History, spec: Spec, counterexample: &Counterexample) -> Story {
    story_by(&Meaning::of(history), spec, counterexample)
}

/// The story of a counterexample of a resolved history.
pub fn story_by(meaning: &Meaning<'_>, spec: Spec, counterexample: &Counterexample) -> Story {
    let history = meaning.history();
    let name = name_by(meaning, spec, counterexample);
    let (mut txns, keys) = involved(meaning, spec, counterexample);
    txns.truncate(MOST_TXNS);
    let mut teller = Teller {
        is_parallel: spec.model == Model::Psi,
        words: Words::new(meaning, spec, &txns),
        lines: Vec::new(),
        cases: Vec::new(),
    };
    match counterexample {
        Counterexample::Local(findings) => teller.tell_findings(history, findings),
        Counterexample::Cyclic(proof) => teller.tell(proof, 0),
        Counterexample::Stuck(stuck) => teller.tell_stuck(history, stuck),
        Counterexample::Recorded(refutation) => {
            let told = RecordedWords::new(history).refutation(refutation);
            teller.lines = told
                .into_iter()
                .map(|text| StoryLine { depth: 0, text })
                .collect();
        }
        Counterexample::EitherWay {
            txn,
            lost,
            took_effect,
        } => teller.tell_either_way(history, spec, *txn, [lost, took_effect]),
    }
    let mut headline = name.short.to_owned();
    if let Some(first) = headline.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    if let Some(adya) = name.adya {
        let _ = write!(headline, " ({adya})");
    }
    let _ = match counterexample {
        Counterexample::Local(findings) if findings.iter().all(is_allowed_at_rc) => {
            write!(headline, " breaks read atomic and every stronger level")
        }
        Counterexample::Local(_) => write!(headline, " breaks every level"),
        _ => write!(headline, " breaks {spec}"),
    };
    let mut about = name.about.to_owned();
    if let Counterexample::Cyclic(proof) = counterexample
        && rests_on_given(history, proof)
    {
        about.push_str(" What the database says of the order of its versions contradicts what its transactions saw.");
    }
    let told = |&txn: &TxnId| {
        let who = teller.words.with_session(txn);
        let beside = beside(history, txn);
        format!("{who}{beside}: {}", teller.words.operations(txn, &keys))
    };
    let noticed = noticed(&teller.words, name, counterexample);
    Story {
        noticed,
        definition: definition(spec),
        causes: causes(name.short),
        name,
        headline,
        about,
        operations: txns.iter().map(told).collect(),
        meanwhile: meanwhile(history, &txns),
        lines: teller.lines,
        legend: teller.words.labels.legend,
        txns,
    }
}

/// How a promise was broken.
pub fn story_of(
    meaning: &Meaning<'_>,
    promise: &Promise,
    counterexample: &Counterexample,
) -> Story {
    let spec = promise.spec();
    let mut story = story_by(meaning, spec, counterexample);
    if matches!(promise, Promise::Level(_)) {
        return story;
    }
    let (searched, promise_words) = (spec.to_string(), promise.to_string());
    story.headline = story.headline.replace(&searched, &promise_words);
    story.definition = promised(promise);
    if matches!(promise, Promise::Linearizable(_)) {
        tell_times(meaning.history(), &mut story);
    }
    story
}

/// Adds when each operation ran, for levels that need it.
fn tell_times(history: &History, story: &mut Story) {
    let begins = story.txns.iter().map(|&txn| history.interval(txn).begin);
    let origin = begins.filter(|&it| it > i64::MIN).min().unwrap_or(0);
    for (&txn, words) in story.txns.iter().zip(&mut story.operations) {
        let interval = history.interval(txn);
        let is_open = interval.commit == i64::MAX || history.status(txn) == Status::Unknown;
        let end = if is_open {
            "an unknown end".to_owned()
        } else {
            since(interval.commit, origin)
        };
        let begin = if interval.begin == i64::MIN {
            "an unknown start".to_owned()
        } else {
            since(interval.begin, origin)
        };
        words.push_str(&format!(" (from {begin} to {end})"));
    }
}

/// A time after the first of a story, with its unit.
fn since(time: i64, origin: i64) -> String {
    let nanoseconds = i128::from(time) - i128::from(origin);
    let number = nanoseconds as f64;
    match nanoseconds.unsigned_abs() {
        0..10_000 => format!("{nanoseconds} ns"),
        10_000..10_000_000 => format!("{:.3} ms", number / 1e6),
        _ => format!("{:.6} s", number / 1e9),
    }
}

fn is_allowed_at_rc(finding: &Finding) -> bool {
    !finding.breaks(Model::Rc)
}

/// Whether a proof needs a version order that came with the history.
fn rests_on_given(history: &History, proof: &Proof) -> bool {
    let has_order = |key| {
        let mut orders = history.version_orders().iter();
        orders.any(|it| it.key == key && it.source == OrderSource::Database)
    };
    proof.steps().any(|step| match step.reason {
        StepReason::Ww { key, fact } | StepReason::Rw { key, fact, .. } => {
            fact == Fact::Given && has_order(key)
        }
        _ => false,
    })
}

impl Story {
    /// The shortened names that the words show. Operations that are only counted have names too, which pages list.
    pub fn legend_of_words(&self) -> Vec<&(String, String)> {
        let lines = self.lines.iter().map(|line| &line.text);
        let told = [&self.headline, &self.about, &self.noticed].into_iter();
        let told: Vec<&String> = told.chain(lines).chain(&self.operations).collect();
        let shows = |label: &str| told.iter().any(|text| text.contains(label));
        self.legend.iter().filter(|it| shows(&it.0)).collect()
    }

    /// The story as text, with a line feed at the end of each line.
    pub fn to_text(&self) -> String {
        let mut text = format!("{}\n{}\n{}\n\n", self.headline, self.about, self.noticed);
        for line in &self.lines {
            let _ = writeln!(text, "  {}{}", "  ".repeat(line.depth), line.text);
        }
        text.push_str("\nThe transactions:\n");
        for operations in &self.operations {
            let _ = writeln!(text, "  {operations}");
        }
        if !self.meanwhile.is_empty() {
            text.push_str("\nMeanwhile:\n");
            for event in &self.meanwhile {
                let _ = writeln!(text, "  {event}");
            }
        }
        let legend = self.legend_of_words();
        if !legend.is_empty() {
            text.push_str("\nShortened names:\n");
            for (label, full) in legend {
                let _ = writeln!(text, "  {label} is {full}");
            }
        }
        text
    }
}

/// The one step of a cycle that states what a transaction missed, if the others state what it saw.
fn only_missed(steps: &[Step]) -> Option<usize> {
    let is_missed = |step: &Step| matches!(step.reason, StepReason::Rw { .. });
    let mut missed = (0..steps.len()).filter(|&at| is_missed(&steps[at]));
    let only = missed.next().filter(|_| missed.next().is_none());
    only.filter(|_| steps.len() > 1)
}

pub(super) struct Teller<'h> {
    /// Whether the level is about visibility between transactions, not one order: parallel snapshot isolation.
    is_parallel: bool,
    pub(super) words: Words<'h>,
    lines: Vec<StoryLine>,
    cases: Vec<Case>,
}

impl Teller<'_> {
    pub(super) fn say(&mut self, depth: usize, text: String) {
        self.lines.push(StoryLine { depth, text });
    }

    /// Each case as the story of the history in which the transaction took effect, or did not.
    fn tell_either_way(
        &mut self,
        history: &History,
        spec: Spec,
        txn: TxnId,
        cases: [&Counterexample; 2],
    ) {
        let who = self.words.with_session(txn);
        self.say(0, format!("Whether {who} took effect is not known."));
        let ends = [Status::Aborted, Status::Committed];
        for ((case, end), not) in cases.into_iter().zip(ends).zip(["not ", ""]) {
            self.say(0, format!("Suppose that it did {not}take effect:"));
            let told = story(&history.with_status(txn, end), spec, case);
            for line in told.lines {
                self.say(line.depth + 1, line.text);
            }
        }
    }

    fn tell(&mut self, proof: &Proof, depth: usize) {
        match proof {
            Proof::Cycle(steps) => self.tell_cycle(steps, depth),
            Proof::Split {
                key,
                one,
                other,
                one_first,
                other_first,
            } => self.tell_split((*key, *one, *other), one_first, other_first, depth),
            Proof::Choice {
                reader,
                op,
                key,
                cases,
            } => self.tell_choice((*reader, *op, *key), cases, depth),
            Proof::Aggregate {
                reader,
                nth,
                ruled_out,
            } => self.tell_aggregate(*reader, *nth, ruled_out, depth),
        }
    }

    /// `T7 read x = 3, which it can have read from T1 or from T4.` Then each case.
    fn tell_choice(
        &mut self,
        (reader, op, key): (TxnId, Option<usize>, KeyId),
        cases: &[(Option<TxnId>, Proof)],
        depth: usize,
    ) {
        let seen = match op {
            None => self.words.sight(reader, key),
            Some(op) => self.words.sight_by(reader, op, key),
        };
        let words = &self.words;
        let name = |writer: Option<TxnId>| match writer {
            None => "the initial state".to_owned(),
            Some(txn) => words.labels.txn(txn),
        };
        match cases {
            [] => {
                let asked = self.words.any_predicate_on(reader, key);
                let asked = asked.map(|predicate| self.words.asked(reader, predicate, key));
                let text = match asked {
                    Some(asked) if asked != seen => {
                        format!(
                            "{seen}; yet {asked}, which no version of it explains: a contradiction."
                        )
                    }
                    _ => format!("{seen}, which no version of it explains: a contradiction."),
                };
                self.say(depth, text);
                return;
            }
            [(writer, rest)] => {
                let text = match self.missed_row((reader, op, key), rest) {
                    Some(though) => {
                        let source = name(*writer);
                        format!("{seen}, though {though}. It can only have read it from {source}.")
                    }
                    None => format!("{seen}, which can only be from {}.", name(*writer)),
                };
                self.say(depth, text);
                self.tell_source((reader, op, key), *writer, rest, depth);
                return;
            }
            _ => {}
        }
        let names: Vec<String> = cases.iter().map(|case| name(case.0)).collect();
        let text = format!("{seen}, from {}.", names.join(", or from "));
        self.say(depth, text);
        for (at, (writer, rest)) in cases.iter().enumerate() {
            let word = if at == 0 { "If" } else { "Or if" };
            let though = self.missed_row((reader, op, key), rest);
            let though = though.map_or(String::new(), |it| format!(", though {it}"));
            let text = format!("{word} it was from {}{though}:", names[at]);
            self.say(depth, text);
            self.tell_source((reader, op, key), *writer, rest, depth + 1);
        }
    }

    /// `T2 had set its c1 to 4`, where a condition did not return a row that its transaction saw: who wrote it.
    fn missed_row(
        &self,
        (reader, op, key): (TxnId, Option<usize>, KeyId),
        case: &Proof,
    ) -> Option<String> {
        let history = self.words.meaning.history();
        let predicate = match op {
            None => self.words.any_predicate_on(reader, key)?,
            Some(op) => {
                let nth = op.checked_sub(history.ops(reader).len())?;
                history.predicates(reader).nth(nth)?
            }
        };
        if matches!(predicate.act, Act::Aggregate { .. }) {
            return None;
        }
        let missed = StepReason::Vis { reader, key };
        let step = case.as_cycle()?.iter().find(|it| it.reason == missed)?;
        Some(self.words.had_set(step.from.txn, predicate, key))
    }

    /// Tells the case that a transaction read a key from another.
    pub(super) fn tell_source(
        &mut self,
        (reader, op, key): (TxnId, Option<usize>, KeyId),
        writer: Option<TxnId>,
        rest: &Proof,
        depth: usize,
    ) {
        let meaning = self.words.meaning;
        if let Some(op) = op {
            let read = (reader, op, key);
            let before = meaning.assumed_read(read);
            meaning.assume_read(read, Some(writer));
            self.tell(rest, depth);
            meaning.assume_read(read, before);
            return;
        }
        let before = meaning.assume(reader, key, Some(writer));
        self.tell(rest, depth);
        meaning.assume(reader, key, before);
    }

    fn tell_split(
        &mut self,
        (key, one, other): (KeyId, TxnId, TxnId),
        one_first: &Proof,
        other_first: &Proof,
        depth: usize,
    ) {
        let mut ways = [
            (one, other, one_first, other_first),
            (other, one, other_first, one_first),
        ];
        let history = self.words.meaning.history();
        ways.sort_by(|a, b| history.compare_txns(a.0, b.0));
        let [(one, other, ..), _] = ways;
        for (first, second, rest, opposite) in ways {
            if let Some(path) = direct_order(opposite.as_cycle(), key, first, second) {
                self.tell_direct((key, first, second), &path, rest, depth);
                return;
            }
        }
        for (first, second, rest, opposite) in ways {
            // A case that ends at once is a small proof of the opposite; the rest continues without indentation.
            if rest.as_cycle().is_none() && opposite.as_cycle().is_some() {
                self.tell_forced((key, first, second), opposite, rest, depth);
                return;
            }
        }
        let (a, b) = (self.words.labels.txn(one), self.words.labels.txn(other));
        let wrote = [self.words.write(one, key), self.words.write(other, key)];
        let text = format!("{a} {} and {b} {}. Which came first?", wrote[0], wrote[1]);
        self.say(depth, text);
        for (at, (first, second, rest, _)) in ways.into_iter().enumerate() {
            let either = if at == 0 { "Either" } else { "Or" };
            let who = self.words.labels.txn(first);
            self.say(depth, format!("{either} {who} came first. Then:"));
            self.tell_case((key, first, second), false, rest, depth + 1);
        }
    }

    fn tell_case(
        &mut self,
        (key, first, second): (KeyId, TxnId, TxnId),
        is_shown: bool,
        proof: &Proof,
        depth: usize,
    ) {
        self.cases.push(Case {
            key,
            first,
            second,
            is_shown,
        });
        self.tell(proof, depth);
        self.cases.pop();
    }

    /// `T1 wrote x = 1 before T2 wrote x = 2`.
    fn order(&self, (key, first, second): (KeyId, TxnId, TxnId)) -> String {
        let (a, b) = (self.words.labels.txn(first), self.words.labels.txn(second));
        let wrote = [self.words.write(first, key), self.words.write(second, key)];
        format!("{a} {} before {b} {}", wrote[0], wrote[1])
    }

    /// States that the writers are ordered anyway, then the rest.
    fn tell_direct(
        &mut self,
        case: (KeyId, TxnId, TxnId),
        path: &[Step],
        rest: &Proof,
        depth: usize,
    ) {
        let order = self.order(case);
        let steps: Vec<&Step> = path
            .iter()
            .filter(|step| step.reason != StepReason::Begin)
            .collect();
        if let [step] = steps.as_slice() {
            let reason = self.words.reason(step, &self.cases);
            self.say(depth, format!("{order}, because {reason}."));
        } else {
            self.say(depth, format!("{order}, because:"));
            for step in steps {
                let (claim, reason) =
                    (self.words.claim(step), self.words.reason(step, &self.cases));
                self.say(depth + 1, format!("{claim}, because {reason}."));
            }
        }
        self.tell_case(case, true, rest, depth);
    }

    /// States why one must have written before the other, then the rest.
    fn tell_forced(
        &mut self,
        (key, first, second): (KeyId, TxnId, TxnId),
        opposite: &Proof,
        rest: &Proof,
        depth: usize,
    ) {
        let order = self.order((key, first, second));
        self.say(depth, format!("{order}. Otherwise:"));
        self.tell_case((key, second, first), false, opposite, depth + 1);
        self.tell_case((key, first, second), true, rest, depth);
    }

    fn tell_cycle(&mut self, steps: &[Step], depth: usize) {
        let missed = if self.is_parallel {
            only_missed(steps)
        } else {
            None
        };
        let rotated = missed.map(|missed| [&steps[missed + 1..], &steps[..=missed]].concat());
        let steps = rotated.as_deref().unwrap_or(steps);
        let n_steps = steps.len();
        let told =
            |at: usize| n_steps <= LONGEST || at < LONGEST / 2 || at + LONGEST / 2 >= n_steps;
        for (at, step) in steps.iter().enumerate() {
            if !told(at) {
                if told(at - 1) {
                    let n_more = n_steps - 2 * (LONGEST / 2);
                    self.say(depth, format!("… and so on, {n_more} more steps …"));
                }
                continue;
            }
            // That a transaction begins before it commits is omitted, unless it ends the story.
            if step.reason == StepReason::Begin && at + 1 < n_steps {
                continue;
            }
            let is_last = at + 1 == n_steps;
            let text = match missed {
                Some(_) if is_last => self.missed_line(steps),
                Some(_) => self.saw_line(step),
                None => self.cycle_line(steps, step, is_last),
            };
            self.say(depth, text);
        }
    }

    /// `T1 < T2, because …`
    fn cycle_line(&self, steps: &[Step], step: &Step, is_last: bool) -> String {
        let claim = self.words.claim(step);
        let reason = self.words.reason(step, &self.cases);
        let because = if reason.is_empty() {
            String::new()
        } else {
            format!(", because {reason}")
        };
        if !is_last {
            return format!("{claim}{because}.");
        }
        let opposite = self.words.opposite(steps);
        let yet = opposite.map_or(String::new(), |it| format!(" By the above, {it}."));
        format!("However, {claim}{because}.{yet} This is a contradiction.")
    }

    /// `T2 saw T1, because …`
    fn saw_line(&self, step: &Step) -> String {
        let txn = |txn: TxnId| self.words.labels.txn(txn);
        let (seen, who) = (txn(step.from.txn), txn(step.to.txn));
        let reason = self.words.reason(step, &self.cases);
        let rule = match step.reason {
            StepReason::Ww { .. } => " Of two that write a key, the later one sees the earlier.",
            _ => "",
        };
        format!("{who} saw {seen}, because {reason}.{rule}")
    }

    /// `T3 saw T1 through y, so it must not miss T1's x; yet …`, where the last step is what was missed and the others are how it was
    /// seen.
    fn missed_line(&self, steps: &[Step]) -> String {
        let Some((missed, path)) = steps.split_last() else {
            return String::new();
        };
        let labels = &self.words.labels;
        let (who, seen) = (labels.txn(missed.from.txn), labels.txn(missed.to.txn));
        let through = match path {
            [only] => match only.reason {
                StepReason::Wr { key, .. } => format!(" through {}", labels.key(key)),
                _ => String::new(),
            },
            [_, .., last] => format!(" through {}", labels.txn(last.from.txn)),
            [] => String::new(),
        };
        let key = match missed.reason {
            StepReason::Rw { key, .. } => labels.key(key),
            _ => "write".to_owned(),
        };
        let reason = self.words.reason(missed, &self.cases);
        format!(
            "However, {who} saw {seen}{through}, so it must not miss {seen}'s {key}; yet {reason}. This is a contradiction."
        )
    }

    /// The possible values of a register, and what the operation saw.
    fn tell_stuck(&mut self, history: &History, stuck: &Stuck) {
        const LISTED: usize = 12;
        let key = self.words.labels.key(stuck.key);
        let who = self.words.with_session(stuck.last);
        let held = |state: &Option<crate::model::ValueId>| match state {
            None => "its initial value".to_owned(),
            Some(value) => history.value_name(*value),
        };
        let mut states: Vec<String> = stuck.possible.iter().take(LISTED).map(held).collect();
        if stuck.possible.len() > LISTED {
            states.push(format!("{} more", stuck.possible.len() - LISTED));
        }
        let did = self.words.operations(stuck.last, &[stuck.key]);
        let concurrent = match stuck.concurrent.len() {
            0 => "no other operation on it was under way".to_owned(),
            1 => "one other operation on it was under way".to_owned(),
            n => format!("{n} other operations on it were under way"),
        };
        for text in [
            format!("{who}: {did}. When it ended, {concurrent}."),
            format!(
                "In every order of the operations on {key} that fits their times, up to then {key} held one of: {}.",
                states.join(", ")
            ),
            match self.words.labels.refused(stuck.last, 0) {
                Some(_) => "In none of these orders would it have been refused.".to_owned(),
                None => "None of these orders lets it see what it saw.".to_owned(),
            },
        ] {
            self.lines.push(StoryLine { depth: 0, text });
        }
    }

    fn tell_findings(&mut self, history: &History, findings: &[Finding]) {
        for finding in findings.iter().take(TOLD) {
            let text = tell_finding(history, &self.words, finding);
            self.say(0, text);
        }
        if findings.len() > TOLD {
            let n_more = findings.len() - TOLD;
            self.say(0, format!("And {n_more} more."));
        }
    }
}
