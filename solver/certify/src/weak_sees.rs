//! Whether the reads of a weak transaction saw another transaction, for proofs that mix levels.

use super::meaning::{Meaning, Version};
use super::weak_reads::{External, ReadsOf, Wary, certain_externals};
use kingsnake_history::level::{Model, Spec};
use kingsnake_history::model::{KeyId, TxnId};

/// Whether a transaction read a key from another, in any of its operations.
pub(super) fn reads_from(
    meaning: &Meaning<'_>,
    wary: &Wary<'_>,
    reader: TxnId,
    (key, writer): (KeyId, TxnId),
) -> bool {
    let reads = certain_externals(meaning, wary, reader);
    let mut reads = reads.externals.iter();
    reads.any(|read| read.key == key && read.from == Some(writer))
}

/// Whether some read of a weak transaction that returned a version of a key sees another transaction, which writes the key too.
pub(super) fn sees(
    meaning: &Meaning<'_>,
    wary: &Wary<'_>,
    spec: Spec,
    reader: TxnId,
    (key, version): (KeyId, Version),
    seen: TxnId,
) -> bool {
    let history = meaning.history();
    if reader == seen || version == Some(seen) || meaning.left(seen, key).is_none() {
        return false;
    }
    let ReadsOf {
        externals: reads,
        absents,
    } = certain_externals(meaning, wary, reader);
    let of = |read: &&External| read.key == key && read.from == version;
    let absents = absents.iter().filter(|_| version.is_none());
    let absents = absents.filter(|absent| absent.tells(wary, key));
    let ops = reads.iter().filter(of).map(|read| read.op);
    let Some(last) = ops.chain(absents.map(|absent| absent.op)).max() else {
        return false;
    };
    let in_session =
        spec.session_order && history.session(seen) == history.session(reader) && seen < reader;
    let mut sources = reads.iter().filter(|read| read.from == Some(seen));
    match spec.model_of(history, reader) {
        Model::Rc => sources.any(|read| read.op <= last),
        Model::RcSo => in_session || sources.any(|read| read.op <= last),
        Model::Ra => in_session || sources.next().is_some(),
        Model::Cc => happened_before(meaning, wary, spec, (seen, reader)),
        _ => false,
    }
}

/// Whether one transaction happened before another by session order and reads.
fn happened_before(
    meaning: &Meaning<'_>,
    wary: &Wary<'_>,
    spec: Spec,
    (from, to): (TxnId, TxnId),
) -> bool {
    let history = meaning.history();
    let mut is_met = vec![false; history.n_txns()];
    let mut open = vec![to];
    while let Some(txn) = open.pop() {
        let reads = certain_externals(meaning, wary, txn);
        let sources = reads.externals.iter().filter_map(|read| read.from);
        let mut before: Vec<TxnId> = sources.collect();
        if spec.session_order {
            let start = history.session_txns(history.session(txn)).start;
            let earlier = (start..txn.0).rev().map(TxnId);
            before.extend(earlier.filter(|&it| meaning.counts(it)).take(1));
        }
        if before.contains(&from) {
            return true;
        }
        for it in before {
            if !std::mem::replace(&mut is_met[it.index()], true) {
                open.push(it);
            }
        }
    }
    false
}
