//! The rules of compaction, one method each, so that tests can replace one at a time by a wrong one.

/// What may be forgotten, and when.
pub trait WatchRules {
    /// Whether a transaction with this commit time precedes everything that can still arrive.
    fn is_over(&self, commit: i64, drift: i64, watermark: i64) -> bool {
        i128::from(commit) + i128::from(drift) < i128::from(watermark)
    }

    /// Of the last transactions of the live sessions, those that a past node must reach; `None` is a session that delivered nothing.
    fn tails(&self, tails: Vec<Option<u64>>) -> Vec<Option<u64>> {
        tails
    }

    /// Whether sessions that have not appeared yet are waited for.
    fn awaits_new_sessions(&self) -> bool {
        true
    }

    /// Whether a past transaction with a read that has no writer is a violation.
    fn refuses_pending(&self) -> bool {
        true
    }

    /// Whether the last version of a key is kept when its writer is dropped.
    fn keeps_last_version(&self) -> bool {
        true
    }

    /// Whether every past transaction is dropped, settled or not.
    fn drops_all_past(&self) -> bool {
        false
    }

    /// Whether a component with an open pair stays if one of the pair can still be read.
    fn keeps_alive_pairs(&self) -> bool {
        true
    }

    /// Whether writers of a list stay until their order is known, though neither can be read as the last one any more.
    fn keeps_list_pairs(&self) -> bool {
        true
    }

    /// Whether writers of a list are dropped only in their order.
    fn drops_lists_in_order(&self) -> bool {
        true
    }

    /// Whether an end is known that only the middle of a list shows.
    fn counts_whole_lists(&self) -> bool {
        true
    }

    /// Whether a list must begin with what was dropped of it.
    fn checks_settled_lists(&self) -> bool {
        true
    }

    /// Whether an unordered pair of which neither version was read ties nothing together.
    fn skips_unread(&self, has_snapshots: bool, is_one_dead: bool) -> bool {
        !has_snapshots && is_one_dead
    }

    /// Whether the sides that one solution chose between past transactions hold from then on.
    fn fixes_choices(&self) -> bool {
        false
    }

    /// Whether past transactions precede later arrivals by an edge.
    fn has_barrier(&self) -> bool {
        true
    }

    /// Whether a version is dead as soon as the begin, not the commit, of a later writer is past.
    fn is_dead_by_begin(&self) -> bool {
        false
    }

    /// Whether a transaction of unknown end may have taken effect.
    fn counts_unknown(&self) -> bool {
        true
    }

    /// Whether a transaction without a commit time is taken for past.
    fn is_endless_past(&self) -> bool {
        false
    }
}

/// The rules as proved.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exact;

impl WatchRules for Exact {}
