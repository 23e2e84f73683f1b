//! A component as a panel: the transactions of cycles that share transactions, session by session, and every step between them.

use kingsnake_solver::model::{KeyId, TxnId};
use kingsnake_solver::verdict::Step;

use super::cycle::arrow;
use super::{Panel, PictureSource};

/// The panel of some steps. A step whose end is not among the transactions is omitted.
pub fn panel(source: PictureSource<'_>, txns: &[TxnId], steps: &[Step]) -> Panel {
    let (sessions, lanes) = source.lanes(txns.iter().copied());
    let place = |txn: TxnId| txns.iter().position(|&it| it == txn);
    let cards = txns.iter().map(|&txn| {
        let touching = steps
            .iter()
            .filter(|step| step.from.txn == txn || step.to.txn == txn);
        let mut keys: Vec<KeyId> = touching.filter_map(|step| step.reason.key()).collect();
        keys.sort_unstable();
        keys.dedup();
        source.card(&sessions, txn, &keys)
    });
    let arrows = steps.iter().filter_map(|step| {
        let (from, to) = (place(step.from.txn)?, place(step.to.txn)?);
        Some(arrow(source, step, from, to))
    });
    Panel {
        title: Vec::new(),
        cards: cards.collect(),
        arrows: arrows.collect(),
        lanes,
    }
}
