//! An anomaly without a cycle as a panel: the transaction that saw it, and the writer of the value.

use kingsnake_solver::model::{Status, TxnId};
use kingsnake_solver::verdict::{Finding, Moment, Stuck};
use kingsnake_tell::{changed_by, local_name};

use super::{Arrow, ArrowKind, Card, CardLine, Panel, PictureSource, lines, short};

/// The panel of a finding.
pub fn panel(source: PictureSource<'_>, finding: &Finding) -> Panel {
    let history = source.history;
    let mut cards_of: Vec<(TxnId, Vec<usize>)> = vec![(finding.txn, vec![finding.op])];
    match finding.other {
        Some((txn, op)) if txn == finding.txn => {
            cards_of[0].1.push(op);
            // The transaction that changed the value in between.
            let writer = changed_by(history, finding);
            cards_of.splice(0..0, writer.map(|(txn, op)| (txn, vec![op])));
        }
        Some((txn, op)) => cards_of.insert(0, (txn, vec![op])),
        None => {}
    }
    let (sessions, lanes) = source.lanes(cards_of.iter().map(|(txn, _)| *txn));
    let cards = cards_of.iter().map(|(txn, ops)| {
        let lines = lines(source, *txn, &[finding.key], |at, _| ops.contains(&at));
        let lane = sessions.binary_search(&history.session(*txn)).unwrap_or(0);
        card(source, *txn, lane, lines)
    });
    let key = source.labels.key(finding.key);
    let name = local_name(finding.anomaly);
    let arrow = Arrow {
        from: (0, Moment::Whole),
        to: (1, Moment::Whole),
        kind: ArrowKind::Anomaly,
        label: short(&key, 16),
        full: name.about.to_owned(),
    };
    Panel {
        title: vec![name.short.to_owned()],
        lanes,
        arrows: if cards_of.len() > 1 {
            vec![arrow]
        } else {
            Vec::new()
        },
        cards: cards.collect(),
    }
}

/// A transaction and its relevant operations.
fn card(
    source: PictureSource<'_>,
    txn: TxnId,
    lane: usize,
    (lines, n_more): (Vec<CardLine>, usize),
) -> Card {
    let status = source.history.status(txn);
    Card {
        lane,
        title: short(&source.txn(txn), 20),
        note: match status {
            Status::Committed => None,
            Status::Aborted => Some("aborted"),
            Status::Unknown => Some("end unknown"),
        },
        lines,
        n_more,
        moments: None,
        is_aborted: status == Status::Aborted,
    }
}

/// The panel of a register operation that no order reaches, with some concurrent ones.
pub fn stuck_panel(source: PictureSource<'_>, stuck: &Stuck) -> Panel {
    const MOST: usize = 7;
    let mut txns: Vec<TxnId> = stuck.concurrent.iter().copied().take(MOST).collect();
    txns.push(stuck.last);
    txns.sort_by_key(|&txn| source.history.interval(txn).begin);
    let (sessions, lanes) = source.lanes(txns.iter().copied());
    let cards = txns.iter().map(|&txn| {
        let lines = lines(source, txn, &[stuck.key], |_, _| txn == stuck.last);
        let session = source.history.session(txn);
        let lane = sessions.binary_search(&session).unwrap_or(0);
        card(source, txn, lane, lines)
    });
    Panel {
        title: vec!["no order reaches the operation in bold".to_owned()],
        cards: cards.collect(),
        lanes,
        arrows: Vec::new(),
    }
}
