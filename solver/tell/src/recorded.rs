//! The refutation of a recorded certificate or an expected order: its name, its transactions and keys, and its words.

use kingsnake_history::adya::{
    AdyaStep, Dependency, DependencyReason, Difference, Disagreement, Mismatch, Mismatched,
    Phenomenon, Refutation,
};

use super::name::{AnomalyName, local_name};
use crate::model::{Act, Column, History, KeyId, Op, Predicate, Token, TxnId, ValueId};
use crate::verdict::{Finding, LocalAnomaly};

/// Findings or mismatches after these are counted.
const TOLD: usize = 10;
/// The transactions of these are involved.
const SHOWN: usize = 6;

/// The name of a refutation of a certificate or an expected order.
pub(super) fn recorded_name(refutation: &Refutation) -> AnomalyName {
    match refutation {
        Refutation::Findings(found) => {
            let first = found.first().map(|finding| finding.anomaly);
            local_name(first.unwrap_or(LocalAnomaly::ThinAirRead))
        }
        Refutation::Mismatches(_) => AnomalyName {
            short: "result-set mismatch",
            adya: None,
            about: "A query did not return what the versions that it was evaluated on imply.",
        },
        Refutation::Cycle(phenomenon, _) => AnomalyName {
            short: phenomenon.words(),
            adya: Some(phenomenon.name()),
            about: match phenomenon {
                Phenomenon::G0 => "Transactions overwrote each other in a circle.",
                Phenomenon::G1c => {
                    "Transactions read or overwrote each other's writes in a circle."
                }
                Phenomenon::GSingle => {
                    "A transaction missed a write that what it saw, or what it overwrote, depends on."
                }
                Phenomenon::G2Item | Phenomenon::G2 => {
                    "Several transactions missed each other's writes in a circle."
                }
                Phenomenon::GSia => {
                    "A transaction depends on one that had not committed when it started."
                }
                Phenomenon::GSib => {
                    "A transaction missed a write of one that had committed when it started."
                }
            },
        },
        Refutation::Order { .. } => AnomalyName {
            short: "disagreement with the expected order",
            adya: None,
            about: "Run one after another in the expected order, a transaction would not read what it recorded.",
        },
    }
}

/// The transactions of a refutation, without duplicates, in the order of the argument.
pub fn recorded_txns(history: &History, refutation: &Refutation) -> Vec<TxnId> {
    let mut txns = Vec::new();
    let mut add = |txn: Option<TxnId>| {
        if let Some(txn) = txn.filter(|txn| !txns.contains(txn)) {
            txns.push(txn);
        }
    };
    match refutation {
        Refutation::Cycle(_, steps) => {
            for step in steps {
                add(Some(step.from));
                add(Some(step.to));
            }
        }
        Refutation::Findings(found) => {
            for finding in found.iter().take(SHOWN) {
                add(finding.other.map(|it| it.0));
                add(Some(finding.txn));
            }
        }
        Refutation::Mismatches(found) => {
            for mismatch in found.iter().take(SHOWN) {
                let value = differing(history, mismatch.what).1;
                add(value.and_then(|it| author(history, it)));
                add(Some(mismatch.txn));
            }
        }
        Refutation::Order { found, .. } => {
            add(expected_value(history, found).and_then(|it| author(history, it)));
            add(Some(found.txn));
        }
    }
    txns
}

/// The keys that a refutation is about, sorted.
pub fn recorded_keys(history: &History, refutation: &Refutation) -> Vec<KeyId> {
    let mut keys: Vec<KeyId> = match refutation {
        Refutation::Cycle(_, steps) => {
            let because = steps.iter().filter_map(|step| step.because);
            because.map(|it| it.key).collect()
        }
        Refutation::Findings(found) => found.iter().take(SHOWN).map(|it| it.key).collect(),
        Refutation::Mismatches(found) => {
            let found = found.iter().take(SHOWN);
            found
                .filter_map(|it| differing(history, it.what).0)
                .collect()
        }
        Refutation::Order { found, .. } => match found.what {
            Mismatched::Read { key, .. }
            | Mismatched::List { key, .. }
            | Mismatched::Row { key, .. } => vec![key],
            Mismatched::Predicate(it) => differing(history, it.what).0.into_iter().collect(),
        },
    };
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The key of a difference, and the value that should or should not have been there.
pub fn differing(history: &History, what: Difference) -> (Option<KeyId>, Option<ValueId>) {
    match what {
        Difference::Missing(value) => (Some(history.value_key(value)), Some(value)),
        Difference::Extra(key, value) => (Some(key), value),
        Difference::Other { visible, .. } => (Some(history.value_key(visible)), Some(visible)),
        Difference::Aggregate(_) => (None, None),
    }
}

/// The value that an order implies in place of the observed one.
pub fn expected_value(history: &History, found: &Disagreement) -> Option<ValueId> {
    match found.what {
        Mismatched::Read { expected, .. } | Mismatched::Row { expected, .. } => expected,
        Mismatched::Predicate(it) => differing(history, it.what).1,
        Mismatched::List { .. } => None,
    }
}

/// Who wrote a value.
pub fn author(history: &History, value: ValueId) -> Option<TxnId> {
    history.txns().find(|&txn| {
        let mut ops = history.ops(txn).iter();
        ops.any(|op| {
            matches!(*op, Op::Write { value: it, .. } | Op::Append { value: it, .. } if it == value)
        })
    })
}

/// The effect on the application.
pub(super) fn recorded_noticed(words: RecordedWords<'_>, refutation: &Refutation) -> String {
    let who = |txn: Option<TxnId>| txn.map_or("A transaction".to_owned(), |it| words.txn(it));
    match refutation {
        Refutation::Findings(found) => format!(
            "{} was given a value that its database says it never had.",
            who(found.first().map(|it| it.txn))
        ),
        Refutation::Mismatches(found) => format!(
            "{} was given other rows than its snapshot has.",
            who(found.first().map(|it| it.txn))
        ),
        Refutation::Cycle(..) => {
            "What the database recorded contradicts itself; another order may still explain what clients saw.".to_owned()
        }
        Refutation::Order { found, .. } => format!(
            "{} was given what the expected order does not have there; another order may still explain it, which `kingsnake check --level ser` searches.",
            who(Some(found.txn))
        ),
    }
}

/// Words about the database's record.
#[derive(Clone, Copy)]
pub struct RecordedWords<'h> {
    history: &'h History,
}

impl<'h> RecordedWords<'h> {
    /// The words for this history.
    pub fn new(history: &'h History) -> Self {
        RecordedWords { history }
    }

    /// The whole story, a sentence per line; of many findings or mismatches the first few.
    pub fn refutation(self, refutation: &Refutation) -> Vec<String> {
        let more = |n: usize| (n > TOLD).then(|| format!("… and {} more.", n - TOLD));
        match refutation {
            Refutation::Findings(found) => {
                let told = found.iter().take(TOLD).map(|it| self.finding(it));
                told.chain(more(found.len())).collect()
            }
            Refutation::Mismatches(found) => {
                let told = found.iter().take(TOLD).map(|it| self.mismatch(it));
                told.chain(more(found.len())).collect()
            }
            Refutation::Cycle(Phenomenon::GSia, steps) => {
                let mut told: Vec<String> = steps.iter().map(|it| self.step(it)).collect();
                told.extend(steps.first().map(|step| {
                    format!(
                        "However, {} had not committed when {} started.",
                        self.txn(step.from),
                        self.txn(step.to)
                    )
                }));
                told
            }
            Refutation::Cycle(_, steps) => {
                let mut told: Vec<String> = steps.iter().map(|it| self.step(it)).collect();
                told.push("A transaction would come before itself.".to_owned());
                told
            }
            Refutation::Order { found, .. } => vec![self.disagreement(found)],
        }
    }

    fn txn(self, txn: TxnId) -> String {
        let name = self.history.txn_name(txn);
        // As in the stories of other levels: a number gets a T in front.
        match name.chars().next() {
            Some(first) if first.is_ascii_alphabetic() => name,
            _ => format!("T{name}"),
        }
    }

    fn writer(self, value: ValueId) -> String {
        author(self.history, value).map_or("the initial state".to_owned(), |txn| self.txn(txn))
    }

    fn key(self, key: KeyId) -> String {
        match self.history.table_of(key) {
            Some(_) => format!("row {}", self.history.key_name(key)),
            None => format!("key {}", self.history.key_name(key)),
        }
    }

    fn version(self, value: ValueId) -> String {
        if self.history.is_absence(value) {
            return "a delete".to_owned();
        }
        format!("value {}", self.history.value_name(value))
    }

    /// The condition of a transaction.
    pub fn asked(self, predicate: &Predicate) -> String {
        let condition = self.history.condition_text(predicate.query);
        let table = self.history.queries()[predicate.query as usize].table;
        let rows = match condition.as_str() {
            "true" => {
                let name = self.history.tables()[table as usize].name;
                format!("every row of {}", self.history.symbols().show(name))
            }
            _ => format!("rows with {condition}"),
        };
        match predicate.act {
            Act::Select => format!("asked for {rows}"),
            Act::Update => format!("updated {rows}"),
            Act::Delete => format!("deleted {rows}"),
            Act::Aggregate {
                function, column, ..
            } => {
                let column =
                    column.map_or("*".to_owned(), |it| self.history.column_name(table, it));
                format!("asked for {}({column}) of {rows}", function.name())
            }
        }
    }

    /// The same, with the least or greatest value that was returned: other rows only matter if they are beyond it.
    fn asked_and_got(self, predicate: &Predicate) -> String {
        let asked = self.asked(predicate);
        match predicate.act.extreme().map(|it| it.result) {
            None => asked,
            Some(Token::Nil) => format!("{asked}, got null"),
            Some(result) => format!("{asked}, got {}", self.history.symbols().show(result)),
        }
    }

    /// The values of a version in the columns of a condition.
    fn cells(self, predicate: &Predicate, value: ValueId) -> String {
        let query = &self.history.queries()[predicate.query as usize];
        let columns = self.history.tables()[query.table as usize].columns.len() as u32;
        let all = (0..columns).map(Column::Cell).chain([Column::Value]);
        let named = |column: &Column| {
            let name = self.history.column_name(query.table, *column);
            let text = self.history.condition_text(predicate.query);
            let mut words = text.split(|it: char| !it.is_alphanumeric() && it != '_');
            words.any(|word| word == name)
        };
        let extreme = predicate.act.extreme().map(|it| it.column);
        let asked_for = all.filter(|it| named(it) || Some(*it) == extreme);
        let told = asked_for.map(|column| {
            let cell = match self.history.cell(value, column) {
                Token::Nil => "null".to_owned(),
                token => self.history.symbols().show(token),
            };
            format!(
                "{} to {cell}",
                self.history.column_name(query.table, column)
            )
        });
        let told: Vec<String> = told.collect();
        if told.is_empty() {
            return format!("it to {}", self.version(value));
        }
        format!("its {}", told.join(", its "))
    }

    /// A predicate that did not return what it should.
    pub fn mismatch(self, found: &Mismatch) -> String {
        let predicate = &self.history.all_predicates()[found.predicate as usize].1;
        let (txn, asked) = (self.txn(found.txn), self.asked(predicate));
        match found.what {
            Difference::Missing(value) => format!(
                "{txn} {asked} and did not get {}, though {} had set {}.",
                self.key(self.history.value_key(value)),
                self.writer(value),
                self.cells(predicate, value)
            ),
            Difference::Extra(key, Some(value)) => format!(
                "{txn} {asked} and got {}, though {} had set {}.",
                self.key(key),
                self.writer(value),
                self.cells(predicate, value)
            ),
            Difference::Extra(key, None) => {
                format!(
                    "{txn} {asked} and got {}, of which there was no row.",
                    self.key(key)
                )
            }
            Difference::Other { returned, visible } => format!(
                "{txn} {asked} and got {} with {} of {}, where {} of {} was to be seen.",
                self.key(self.history.value_key(visible)),
                self.version(returned),
                self.writer(returned),
                self.version(visible),
                self.writer(visible)
            ),
            Difference::Aggregate(expected) => {
                let show = |token: Token| match token {
                    Token::Nil => "null".to_owned(),
                    token => self.history.symbols().show(token),
                };
                let result = match predicate.act {
                    Act::Aggregate { result, .. } => show(result),
                    _ => String::new(),
                };
                format!(
                    "{txn} {asked} and got {result}, where the rows give {}.",
                    show(expected)
                )
            }
        }
    }

    /// One step of a cycle.
    pub fn step(self, step: &AdyaStep) -> String {
        let (from, to) = (self.txn(step.from), self.txn(step.to));
        let Some(because) = &step.because else {
            return format!("{from} had committed when {to} started.");
        };
        let key = self.key(because.key);
        let installed = self.version(because.installed);
        let DependencyReason { dependency, .. } = because;
        match (dependency, because.predicate) {
            (Dependency::Ww, _) => format!(
                "{from} comes before {to}: its version of {key} is the one before {installed} of {to} (ww)."
            ),
            (Dependency::Wr, None) => {
                format!(
                    "{from} comes before {to}: {to} read {installed} of {key}, which {from} wrote (wr)."
                )
            }
            (Dependency::Wr, Some(number)) => format!(
                "{from} comes before {to}: {to} {} and read {installed} of {key}, which {from} wrote (wr).",
                self.asked(&self.history.all_predicates()[number as usize].1)
            ),
            (Dependency::Rw, predicate) => {
                let seen = match because.seen {
                    None => "the initial version".to_owned(),
                    Some(value) => self.version(value),
                };
                let how = match predicate {
                    None => "read".to_owned(),
                    Some(number) => {
                        let predicate = &self.history.all_predicates()[number as usize].1;
                        format!("{} and read", self.asked(predicate))
                    }
                };
                format!(
                    "{from} comes before {to}: {from} {how} {seen} of {key}, which {to} overwrote with {installed} (rw)."
                )
            }
            (Dependency::PredWr, Some(number)) => {
                let predicate = &self.history.all_predicates()[number as usize].1;
                format!(
                    "{from} comes before {to}: {to} {} and looked at {key} after {from} had set {} (pred-wr).",
                    self.asked_and_got(predicate),
                    self.cells(predicate, because.installed)
                )
            }
            (Dependency::PredRw, Some(number)) => {
                let predicate = &self.history.all_predicates()[number as usize].1;
                format!(
                    "{from} comes before {to}: {from} {} and looked at {key} before {to} set {} (pred-rw).",
                    self.asked_and_got(predicate),
                    self.cells(predicate, because.installed)
                )
            }
            (Dependency::PredWr | Dependency::PredRw, None) => String::new(),
        }
    }

    fn finding(self, found: &Finding) -> String {
        let (txn, key) = (self.txn(found.txn), self.key(found.key));
        let other = found
            .other
            .map_or("no transaction".to_owned(), |it| self.txn(it.0));
        match found.anomaly {
            LocalAnomaly::ThinAirRead => {
                format!("{txn} read a value of {key} that was never written.")
            }
            LocalAnomaly::AbortedRead => {
                format!("{txn} read a value of {key} that {other} wrote, which aborted.")
            }
            LocalAnomaly::IntermediateRead => {
                format!("{txn} read a value of {key} that {other} itself overwrote.")
            }
            LocalAnomaly::AbortedVersion => {
                format!("The version order of {key} lists a value of {txn}, which aborted.")
            }
            LocalAnomaly::IncompatibleOrder => {
                format!("{txn} read a list of {key} that does not fit the version order.")
            }
            LocalAnomaly::DuplicateWrite if found.other.is_some_and(|it| it.0 == found.txn) => {
                format!(
                    "{txn} wrote one value to {key} twice, so its versions cannot be told apart."
                )
            }
            LocalAnomaly::DuplicateWrite => {
                format!(
                    "{other} and {txn} wrote the same value to {key}, so its versions cannot be told apart."
                )
            }
            other => format!("{txn} read {key} wrongly: {}.", local_name(other).short),
        }
    }

    /// The mismatch with an expected order.
    pub fn disagreement(self, found: &Disagreement) -> String {
        let txn = self.txn(found.txn);
        let place = found.place + 1;
        let told = match found.what {
            Mismatched::Predicate(mismatch) => {
                return format!(
                    "{txn} is number {place} of the order. {}",
                    self.mismatch(&mismatch)
                );
            }
            Mismatched::Read {
                key,
                read,
                expected,
            } => {
                let expected = match expected {
                    None => "the initial state".to_owned(),
                    Some(value) => format!("{} of {}", self.version(value), self.writer(value)),
                };
                format!(
                    "read {} of {} for {}, where the order implies {expected}",
                    self.version(read),
                    self.writer(read),
                    self.key(key)
                )
            }
            Mismatched::List {
                key,
                n_agree,
                n_expected,
            } => format!(
                "read a list of {} that agrees in its first {n_agree} elements with the {n_expected} that the order implies",
                self.key(key)
            ),
            Mismatched::Row {
                key,
                returned,
                expected,
            } => {
                let show = |value: Option<ValueId>| match value {
                    None => "no row".to_owned(),
                    Some(value) => self.version(value),
                };
                format!(
                    "found {} for {}, where the order implies {}",
                    show(returned),
                    self.key(key),
                    show(expected)
                )
            }
        };
        format!("{txn}, number {place} of the order, {told}.")
    }
}
