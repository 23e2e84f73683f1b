//! Transactions in full: session, outcome, times, operations, and the line of the file.

use std::collections::BTreeSet;

use kingsnake_datasets::SourceLine;
use kingsnake_solver::model::{Act, History, Interval, KeyId, Op, Predicate, Token, TxnId};
use kingsnake_tell::{Labels, RecordedWords, beside};
use maud::{Markup, html};

use crate::answer::telling::op_words;
use crate::answer::{base_name, status_word};
use crate::picture::{short, since};
use kingsnake_text::count;

/// Further operations of a transaction are not listed.
const MOST_OPS: usize = 60;

/// What cards are made of.
#[derive(Clone, Copy)]
pub struct Cards<'a> {
    /// The history.
    pub history: &'a History,
    /// The names.
    pub labels: &'a Labels<'a>,
    /// The keys that the story is about.
    pub keys: &'a [KeyId],
    /// The predicates that the story is about, by their number in the history.
    pub predicates: &'a [u32],
    /// The time shown as 0.
    pub origin: i64,
}

impl Cards<'_> {
    /// The anchor of a card.
    pub fn id(txn: TxnId) -> String {
        format!("t{}", txn.0)
    }

    /// One transaction.
    pub fn card(self, txn: TxnId, line: Option<&SourceLine>) -> Markup {
        let history = self.history;
        let session = history.session(txn);
        let ops = history.ops(txn);
        let is_marked = |at: usize| self.keys.iter().any(|&key| history.touches(ops[at], key));
        html! {
            article id=(Cards::id(txn)) data-session=(session.0) data-keys=(self.key_numbers(txn)) tabindex="-1" {
                h3 { (self.labels.txn(txn)) }
                p.soft {
                    "session " (self.labels.session(session)) ", transaction "
                    (history.session_position(txn) + 1) " of " (history.session_txns(session).len())
                    ", " (status_word(history.status(txn))) (beside(history, txn))
                }
                @if let Some(words) = self.times(txn) { p.soft.when { (words) } }
                ol {
                    @for at in 0..ops.len().min(MOST_OPS) {
                        @for (words, is_marked) in self.asked(txn, at) { li.asked.marked[is_marked] { (words) } }
                        li.marked[is_marked(at)] {
                            (short(&op_words(self.labels, history, txn, at, self.keys), 400))
                        }
                    }
                    @for (words, is_marked) in self.asked(txn, ops.len()) { li.asked.marked[is_marked] { (words) } }
                }
                @if ops.len() > MOST_OPS {
                    p.soft { "and " (count(ops.len() - MOST_OPS, "more operation")) }
                }
                @if let Some(line) = line {
                    details.source {
                        summary { (base_name(&line.file)) ", line " (line.number) }
                        pre { code { (short(&line.text, 4_000)) } }
                    }
                }
            }
        }
    }

    /// The condition that a transaction used before one of its operations, which are its result, and whether the story is about it.
    fn asked(self, txn: TxnId, at: usize) -> Vec<(String, bool)> {
        let own = self.history.numbered_predicates(txn);
        let asked = own.filter(|(_, it)| it.at as usize == at);
        let told = asked.map(|(number, it)| {
            let is_marked = self.predicates.contains(&number);
            (short(&self.asked_words(it), 400), is_marked)
        });
        told.collect()
    }

    /// The condition, and the result if no rows follow.
    fn asked_words(self, predicate: &Predicate) -> String {
        let words = RecordedWords::new(self.history).asked(predicate);
        match predicate.act {
            Act::Aggregate {
                result: Token::Nil, ..
            } => format!("{words}: null"),
            Act::Aggregate { result, .. } => {
                format!("{words}: {}", self.history.symbols().show(result))
            }
            _ if predicate.n_ops == 0 => format!("{words}: no row"),
            _ => format!("{words}:"),
        }
    }

    /// Its begin and end, as far as recorded.
    pub fn times(self, txn: TxnId) -> Option<String> {
        let Interval { begin, commit } = self.history.interval(txn);
        let told = |time: i64| since(i128::from(time) - i128::from(self.origin));
        match (begin != i64::MIN, commit != i64::MAX) {
            (true, true) => {
                let took = since(i128::from(commit) - i128::from(begin));
                let took = took.trim_start_matches('+');
                Some(format!(
                    "began at {}, ended at {} (took {took})",
                    told(begin),
                    told(commit)
                ))
            }
            (true, false) => Some(format!("began at {}, end not recorded", told(begin))),
            (false, true) => Some(format!("begin not recorded, ended at {}", told(commit))),
            (false, false) => None,
        }
    }

    /// The keys that a transaction touches, by number.
    pub fn key_numbers(self, txn: TxnId) -> String {
        let keys: BTreeSet<KeyId> = touched(self.history, txn);
        let keys: Vec<String> = keys.iter().map(|key| key.0.to_string()).collect();
        keys.join(" ")
    }
}

/// The keys that a transaction touches; for a range query, those of its answer.
pub fn touched(history: &History, txn: TxnId) -> BTreeSet<KeyId> {
    let mut keys = BTreeSet::new();
    for op in history.ops(txn) {
        match op {
            Op::Range { range } => {
                let rows = history.range(*range).rows.iter();
                keys.extend(rows.map(|&row| history.value_key(row)));
            }
            _ => keys.extend(op.key()),
        }
    }
    keys
}
