//! What refutes a certificate or an expected order as a scene: Adya's dependencies between transactions, those of predicates too.

use kingsnake_adya::Teller;
use kingsnake_history::adya::{
    AdyaStep, Dependency, Difference, Disagreement, Mismatch, Mismatched, Phenomenon, Refutation,
};
use kingsnake_solver::model::{History, KeyId, Op, TxnId, ValueId};
use kingsnake_solver::verdict::Moment;
use kingsnake_tell::Labels;

use super::{Arrow, ArrowKind, CardLine, MOST_PANELS, Panel, PictureSource, Scene, found, short};

/// What was found against what the database gave.
#[derive(Clone, Debug)]
pub enum Disproof {
    /// Against a version certificate.
    Certificate(Refutation),
    /// Against an expected order.
    Order(Disagreement),
}

impl Disproof {
    /// The transactions that it is about, each once.
    pub fn txns(&self, history: &History) -> Vec<TxnId> {
        let mut txns = Vec::new();
        let mut add = |txn: Option<TxnId>| {
            if let Some(txn) = txn.filter(|txn| !txns.contains(txn)) {
                txns.push(txn);
            }
        };
        match self {
            Disproof::Certificate(Refutation::Cycle(_, steps)) => {
                for step in steps {
                    add(Some(step.from));
                    add(Some(step.to));
                }
            }
            Disproof::Certificate(Refutation::Findings(found)) => {
                for finding in found.iter().take(MOST_PANELS) {
                    add(finding.other.map(|it| it.0));
                    add(Some(finding.txn));
                }
            }
            Disproof::Certificate(Refutation::Mismatches(found)) => {
                for mismatch in found.iter().take(MOST_PANELS) {
                    add(about(history, mismatch.what)
                        .1
                        .and_then(|it| writer(history, it)));
                    add(Some(mismatch.txn));
                }
            }
            Disproof::Order(found) => {
                add(expected(history, found).and_then(|it| writer(history, it)));
                add(Some(found.txn));
            }
        }
        txns
    }

    /// The keys that it is about.
    pub fn keys(&self, history: &History) -> Vec<KeyId> {
        let mut keys: Vec<KeyId> = match self {
            Disproof::Certificate(Refutation::Cycle(_, steps)) => {
                let because = steps.iter().filter_map(|step| step.because);
                because.map(|it| it.key).collect()
            }
            Disproof::Certificate(Refutation::Findings(found)) => {
                found.iter().take(MOST_PANELS).map(|it| it.key).collect()
            }
            Disproof::Certificate(Refutation::Mismatches(found)) => {
                let found = found.iter().take(MOST_PANELS);
                found.filter_map(|it| about(history, it.what).0).collect()
            }
            Disproof::Order(found) => match found.what {
                Mismatched::Read { key, .. }
                | Mismatched::List { key, .. }
                | Mismatched::Row { key, .. } => vec![key],
                Mismatched::Predicate(it) => about(history, it.what).0.into_iter().collect(),
            },
        };
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// The predicates that it is about, by their number in the history.
    pub fn predicates(&self) -> Vec<u32> {
        match self {
            Disproof::Certificate(Refutation::Cycle(_, steps)) => {
                let because = steps.iter().filter_map(|step| step.because);
                because.filter_map(|it| it.predicate).collect()
            }
            Disproof::Certificate(Refutation::Mismatches(found)) => {
                found.iter().map(|it| it.predicate).collect()
            }
            Disproof::Order(Disagreement {
                what: Mismatched::Predicate(it),
                ..
            }) => vec![it.predicate],
            Disproof::Certificate(Refutation::Findings(_)) | Disproof::Order(_) => Vec::new(),
        }
    }

    /// Between which transactions arrows run, for timelines.
    pub fn arrows(&self) -> Vec<(TxnId, TxnId, ArrowKind)> {
        let Disproof::Certificate(Refutation::Cycle(_, steps)) = self else {
            return Vec::new();
        };
        steps
            .iter()
            .map(|step| (step.from, step.to, kind(step)))
            .collect()
    }

    /// The transactions that saw what cannot be.
    pub fn blamed(&self) -> Vec<TxnId> {
        match self {
            Disproof::Certificate(Refutation::Cycle(..)) => Vec::new(),
            Disproof::Certificate(Refutation::Findings(found)) => {
                found.iter().map(|it| it.txn).collect()
            }
            Disproof::Certificate(Refutation::Mismatches(found)) => {
                found.iter().map(|it| it.txn).collect()
            }
            Disproof::Order(found) => vec![found.txn],
        }
    }

    /// The scene.
    pub fn scene(&self, history: &History, labels: &Labels<'_>) -> Scene {
        let source = PictureSource { history, labels };
        let (panels, n): (Vec<Panel>, usize) = match self {
            Disproof::Certificate(Refutation::Cycle(phenomenon, steps)) => {
                (vec![cycle(source, *phenomenon, steps)], 1)
            }
            Disproof::Certificate(Refutation::Findings(found)) => {
                let shown = found.iter().take(MOST_PANELS);
                (
                    shown.map(|it| found::panel(source, it)).collect(),
                    found.len(),
                )
            }
            Disproof::Certificate(Refutation::Mismatches(found)) => {
                let shown = found.iter().take(MOST_PANELS);
                (shown.map(|it| mismatch(source, it)).collect(), found.len())
            }
            Disproof::Order(found) => (vec![disagreement(source, found)], 1),
        };
        Scene {
            hidden: n - panels.len(),
            panels,
        }
    }
}

/// The key that a difference is about, and the value that should or should not have been there.
fn about(history: &History, what: Difference) -> (Option<KeyId>, Option<ValueId>) {
    match what {
        Difference::Missing(value) => (Some(history.value_key(value)), Some(value)),
        Difference::Extra(key, value) => (Some(key), value),
        Difference::Other { visible, .. } => (Some(history.value_key(visible)), Some(visible)),
        Difference::Aggregate(_) => (None, None),
    }
}

/// The value that an order implies where something else was seen.
fn expected(history: &History, found: &Disagreement) -> Option<ValueId> {
    match found.what {
        Mismatched::Read { expected, .. } | Mismatched::Row { expected, .. } => expected,
        Mismatched::Predicate(it) => about(history, it.what).1,
        Mismatched::List { .. } => None,
    }
}

fn writer(history: &History, value: ValueId) -> Option<TxnId> {
    history.txns().find(|&txn| {
        let mut ops = history.ops(txn).iter();
        ops.any(|op| {
            matches!(*op, Op::Write { value: it, .. } | Op::Append { value: it, .. } if it == value)
        })
    })
}

fn kind(step: &AdyaStep) -> ArrowKind {
    match step.because.map(|it| it.dependency) {
        None => ArrowKind::Rt,
        Some(Dependency::Ww) => ArrowKind::Ww,
        Some(Dependency::Wr) => ArrowKind::Wr,
        Some(Dependency::Rw) => ArrowKind::Rw,
        Some(Dependency::PredWr) => ArrowKind::PredWr,
        Some(Dependency::PredRw) => ArrowKind::PredRw,
    }
}

/// A cycle, or the one dependency that the start order contradicts.
fn cycle(source: PictureSource<'_>, phenomenon: Phenomenon, steps: &[AdyaStep]) -> Panel {
    let mut txns: Vec<TxnId> = steps.iter().map(|step| step.from).collect();
    if phenomenon == Phenomenon::GSia {
        txns.extend(steps.last().map(|step| step.to));
    }
    let n = txns.len();
    let cards = (0..n).map(|at| {
        let beside = [steps.get(at), steps.get((at + n - 1) % n)];
        let beside = beside.into_iter().flatten().filter_map(|step| step.because);
        let keys: Vec<KeyId> = beside.clone().map(|it| it.key).collect();
        let all = source.history.all_predicates();
        let asked = beside.filter_map(|it| it.predicate);
        let asked = asked.filter(|&it| all[it as usize].0 == txns[at]);
        (txns[at], keys, asked.collect::<Vec<u32>>())
    });
    let arrows = steps.iter().enumerate().map(|(at, step)| Arrow {
        from: (at, Moment::Whole),
        to: ((at + 1) % n, Moment::Whole),
        kind: kind(step),
        label: step
            .because
            .map_or(String::new(), |it| short(&source.labels.key(it.key), 16)),
        full: Teller::new(source.history).step(step),
    });
    panel(source, Vec::new(), cards.collect(), arrows.collect())
}

/// A predicate that did not return what it should, and who wrote what it missed.
fn mismatch(source: PictureSource<'_>, found: &Mismatch) -> Panel {
    let history = source.history;
    let (key, value) = about(history, found.what);
    let keys: Vec<KeyId> = key.into_iter().collect();
    let author = value.and_then(|it| writer(history, it));
    let author = author.filter(|&it| it != found.txn);
    let mut cards: Vec<CardOf> = Vec::new();
    cards.extend(author.map(|txn| (txn, keys.clone(), Vec::new())));
    cards.push((found.txn, keys.clone(), vec![found.predicate]));
    let arrow = Arrow {
        from: (0, Moment::Whole),
        to: (1, Moment::Whole),
        kind: ArrowKind::Anomaly,
        label: key.map_or(String::new(), |key| short(&source.labels.key(key), 16)),
        full: Teller::new(history).mismatch(found),
    };
    let arrows = author.map(|_| arrow).into_iter().collect();
    panel(
        source,
        vec!["result-set mismatch".to_owned()],
        cards,
        arrows,
    )
}

fn disagreement(source: PictureSource<'_>, found: &Disagreement) -> Panel {
    if let Mismatched::Predicate(it) = &found.what {
        return mismatch(source, it);
    }
    let history = source.history;
    let keys = Disproof::Order(*found).keys(history);
    let author = expected(history, found).and_then(|it| writer(history, it));
    let author = author.filter(|&it| it != found.txn);
    let label = keys.first().map(|&key| short(&source.labels.key(key), 16));
    let arrow = Arrow {
        from: (0, Moment::Whole),
        to: (1, Moment::Whole),
        kind: ArrowKind::Anomaly,
        label: label.unwrap_or_default(),
        full: Teller::new(history).disagreement(found),
    };
    let mut cards: Vec<CardOf> = Vec::new();
    cards.extend(author.map(|txn| (txn, keys.clone(), Vec::new())));
    cards.push((found.txn, keys, Vec::new()));
    let title = vec!["not what the order implies".to_owned()];
    panel(
        source,
        title,
        cards,
        author.map(|_| arrow).into_iter().collect(),
    )
}

/// A transaction, the keys that matter of it, and its predicates that do.
type CardOf = (TxnId, Vec<KeyId>, Vec<u32>);

fn panel(
    source: PictureSource<'_>,
    title: Vec<String>,
    cards: Vec<CardOf>,
    arrows: Vec<Arrow>,
) -> Panel {
    let (sessions, lanes) = source.lanes(cards.iter().map(|it| it.0));
    let cards = cards.into_iter().map(|(txn, keys, asked)| {
        let mut card = source.card(&sessions, txn, &keys);
        card.lines.splice(..0, asked_lines(source, &asked));
        card
    });
    Panel {
        title,
        lanes,
        cards: cards.collect(),
        arrows,
    }
}

/// What a transaction asked for, as lines of its card.
fn asked_lines(source: PictureSource<'_>, numbers: &[u32]) -> Vec<CardLine> {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    let told = numbers.into_iter().map(|number| {
        let predicate = &source.history.all_predicates()[number as usize].1;
        let words = Teller::new(source.history).asked(predicate);
        CardLine {
            text: short(&words, 40),
            full: words.clone(),
            words,
            is_marked: true,
        }
    });
    told.collect()
}
