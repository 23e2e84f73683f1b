//! The refutation of a certificate or an expected order as a scene: Adya's dependencies between transactions, including
//! those of predicates.

use kingsnake_history::adya::{
    AdyaStep, Dependency, Disagreement, Mismatch, Mismatched, Phenomenon, Refutation,
};
use kingsnake_solver::model::{KeyId, TxnId};
use kingsnake_solver::verdict::Moment;
use kingsnake_tell::{self as tell, RecordedWords, differing, expected_value, recorded_keys};

use super::{Arrow, ArrowKind, CardLine, MOST_PANELS, Panel, PictureSource, Scene, found, short};

/// The predicates that a refutation is about, by their number in the history.
pub fn predicates(why: &Refutation) -> Vec<u32> {
    match why {
        Refutation::Cycle(_, steps) => {
            let because = steps.iter().filter_map(|step| step.because);
            because.filter_map(|it| it.predicate).collect()
        }
        Refutation::Mismatches(found) => found.iter().map(|it| it.predicate).collect(),
        Refutation::Order { found, .. } => match found.what {
            Mismatched::Predicate(it) => vec![it.predicate],
            _ => Vec::new(),
        },
        Refutation::Findings(_) => Vec::new(),
    }
}

/// The pairs of transactions with arrows, for timelines.
pub fn arrows(why: &Refutation) -> Vec<(TxnId, TxnId, ArrowKind)> {
    let Refutation::Cycle(_, steps) = why else {
        return Vec::new();
    };
    let arrow = |step: &AdyaStep| (step.from, step.to, kind(step));
    steps.iter().map(arrow).collect()
}

/// The transactions with impossible reads.
pub fn blamed(why: &Refutation) -> Vec<TxnId> {
    match why {
        Refutation::Cycle(..) => Vec::new(),
        Refutation::Findings(found) => found.iter().map(|it| it.txn).collect(),
        Refutation::Mismatches(found) => found.iter().map(|it| it.txn).collect(),
        Refutation::Order { found, .. } => vec![found.txn],
    }
}

/// The scene.
pub(super) fn scene(source: PictureSource<'_>, why: &Refutation) -> Scene {
    let (panels, n): (Vec<Panel>, usize) = match why {
        Refutation::Cycle(phenomenon, steps) => (vec![cycle(source, *phenomenon, steps)], 1),
        Refutation::Findings(found) => {
            let shown = found.iter().take(MOST_PANELS);
            let panels = shown.map(|it| found::panel(source, it));
            (panels.collect(), found.len())
        }
        Refutation::Mismatches(found) => {
            let shown = found.iter().take(MOST_PANELS);
            (shown.map(|it| mismatch(source, it)).collect(), found.len())
        }
        Refutation::Order { found, .. } => {
            let keys = recorded_keys(source.history, why);
            (vec![disagreement(source, found, keys)], 1)
        }
    };
    Scene {
        hidden: n - panels.len(),
        panels,
    }
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

/// A cycle, or the single dependency that contradicts the start order.
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
        full: RecordedWords::new(source.history).step(step),
    });
    panel(source, Vec::new(), cards.collect(), arrows.collect())
}

/// A predicate with a wrong result, and the writer of the missed row.
fn mismatch(source: PictureSource<'_>, found: &Mismatch) -> Panel {
    let history = source.history;
    let (key, value) = differing(history, found.what);
    let keys: Vec<KeyId> = key.into_iter().collect();
    let author = value.and_then(|it| tell::author(history, it));
    let author = author.filter(|&it| it != found.txn);
    let mut cards: Vec<CardOf> = Vec::new();
    cards.extend(author.map(|txn| (txn, keys.clone(), Vec::new())));
    cards.push((found.txn, keys.clone(), vec![found.predicate]));
    let arrow = Arrow {
        from: (0, Moment::Whole),
        to: (1, Moment::Whole),
        kind: ArrowKind::Anomaly,
        label: key.map_or(String::new(), |key| short(&source.labels.key(key), 16)),
        full: RecordedWords::new(history).mismatch(found),
    };
    let arrows = author.map(|_| arrow).into_iter().collect();
    panel(
        source,
        vec!["result-set mismatch".to_owned()],
        cards,
        arrows,
    )
}

fn disagreement(source: PictureSource<'_>, found: &Disagreement, keys: Vec<KeyId>) -> Panel {
    if let Mismatched::Predicate(it) = &found.what {
        return mismatch(source, it);
    }
    let history = source.history;
    let author = expected_value(history, found).and_then(|it| tell::author(history, it));
    let author = author.filter(|&it| it != found.txn);
    let label = keys.first().map(|&key| short(&source.labels.key(key), 16));
    let arrow = Arrow {
        from: (0, Moment::Whole),
        to: (1, Moment::Whole),
        kind: ArrowKind::Anomaly,
        label: label.unwrap_or_default(),
        full: RecordedWords::new(history).disagreement(found),
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

/// A transaction with its relevant keys and predicates.
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

/// A transaction's condition, as lines of its card.
fn asked_lines(source: PictureSource<'_>, numbers: &[u32]) -> Vec<CardLine> {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    let told = numbers.into_iter().map(|number| {
        let predicate = &source.history.all_predicates()[number as usize].1;
        let words = RecordedWords::new(source.history).asked(predicate);
        CardLine {
            text: short(&words, 40),
            full: words.clone(),
            words,
            is_marked: true,
        }
    });
    told.collect()
}
