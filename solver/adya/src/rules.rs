//! The rules by which edges and cycles are found. [`ExactRules`] are right; tests break one rule at a time, and the
//! comparison with brute force must notice.

use kingsnake_history::model::{Act, Extreme, History, KeyId, TxnId, ValueId};

use crate::predicates::Returned;
use crate::query::Around;
use crate::snapshot;

/// The rules, each as it should be.
pub(crate) trait Rules: Send + Sync {
    /// What a transaction wrote itself before the operation at a place: it is on top of the snapshot.
    #[inline]
    fn own_writes(history: &History, txn: TxnId, before: usize, own: &mut Vec<(KeyId, ValueId)>) {
        snapshot::own_writes(history, txn, before, own);
    }

    /// The changes that a transaction depends on which looked at the version at a place.
    #[inline]
    fn depended_on(around: Around, _place: usize) -> Around {
        around
    }

    /// The least or greatest value that was asked for: it depends on fewer rows than other aggregates.
    #[inline]
    fn extreme(act: Act) -> Option<Extreme> {
        act.extreme()
    }

    /// Whether the rows that an aggregate read are reads of their own.
    #[inline]
    fn reads_aggregated() -> bool {
        true
    }

    /// The rows that were returned and do not satisfy the condition.
    #[inline]
    fn extra(returned: &[Returned]) -> impl Iterator<Item = KeyId> {
        let extra = returned.iter().filter(|it| !it.2);
        extra.map(|it| it.0)
    }

    /// Whether a version changes what satisfies a condition, by whether the one before and it itself do.
    #[inline]
    fn is_change(before: bool, after: bool) -> bool {
        before != after
    }

    /// The edges against an order that its windows are made of.
    #[inline]
    fn against(edges: impl Iterator<Item = (u32, u32)>) -> impl Iterator<Item = (u32, u32)> {
        edges
    }

    /// Whether an edge runs backwards in an order, by the places of all nodes.
    #[inline]
    fn runs_back(places: &[u32], from: u32, to: u32) -> bool {
        places[to as usize] < places[from as usize]
    }
}

/// The rules of the definitions.
pub(crate) struct ExactRules;

impl Rules for ExactRules {}
