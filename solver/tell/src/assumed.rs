//! Assumptions about keys in words: which transactions show that one version is older than another.

use super::words::Words;
use crate::model::{History, KeyAssumption, KeyId, OrderSource, Shown, TxnId, ValueId};

impl Words<'_> {
    /// The transactions that show, by an assumption, that one version is older than another.
    pub(super) fn why_shown(&self, key: KeyId, shown: Shown, one: &str, two: &str) -> String {
        let name = self.labels.key(key);
        if shown.earlier == shown.later {
            let who = self.labels.txn(shown.later);
            return format!("which is later, for {who} found {name} = {one} before {two}");
        }
        let (had, found) = (self.labels.txn(shown.earlier), self.labels.txn(shown.later));
        let later = self.later(shown.later, Some(shown.earlier));
        format!("which is later: {had} had {name} = {one}, {found} found {two}, and {later}")
    }

    /// By which assumption one transaction comes after another.
    pub(super) fn later(&self, later: TxnId, earlier: Option<TxnId>) -> String {
        let Some(earlier) = earlier.filter(|&it| it != later) else {
            return "what a transaction finds later is assumed to be newer".to_owned();
        };
        let (one, two) = (self.labels.txn(earlier), self.labels.txn(later));
        if self.meaning.history().interval(earlier).commit
            < self.meaning.history().interval(later).begin
            && self
                .meaning
                .history()
                .key_assumptions()
                .contains(&KeyAssumption::Linearizable)
        {
            return format!("{one} had ended when {two} began (assumed: linearizable-keys)");
        }
        format!("{one} came before {two} in their session (assumed: sequential-keys)")
    }
}

/// The transactions that show, by an assumption about a key, that one version is directly older than another.
pub(super) fn shown_by(
    history: &History,
    key: KeyId,
    older: ValueId,
    newer: ValueId,
) -> Option<Shown> {
    let orders = history.version_orders().iter();
    orders.filter(|order| order.key == key).find_map(|order| {
        let OrderSource::Keys(shown) = &order.source else {
            return None;
        };
        let mut pairs = order.values.windows(2).zip(shown);
        pairs
            .find(|(pair, _)| *pair == [older, newer])
            .map(|it| *it.1)
    })
}
