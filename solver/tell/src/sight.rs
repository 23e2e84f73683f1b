//! How a weak transaction saw another: through a key that it read, in its session, or through others.

use crate::certify::Meaning;
use crate::model::{KeyId, TxnId};

/// Why one transaction saw another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// It read this key from it.
    Through(KeyId),
    /// It came after it in the session.
    Session,
    /// It happened before, by session order and reads.
    Past,
}

/// The plainest reason why `reader` saw `seen`.
pub(super) fn sight(meaning: &Meaning<'_>, reader: TxnId, seen: TxnId) -> Sight {
    let history = meaning.history();
    let reads = history.ops(reader).iter().filter(|op| !op.is_write());
    let mut keys = reads.filter_map(|op| op.key());
    let through = keys.find(|&key| meaning.version_read(reader, key) == Some(Some(seen)));
    match through {
        Some(key) => Sight::Through(key),
        None if history.session(reader) == history.session(seen) && seen < reader => Sight::Session,
        None => Sight::Past,
    }
}
