//! Why the reads of a weak transaction saw another transaction.

use std::collections::VecDeque;

use super::reads::{External, ReadsOf, Wary, certain_externals};
use crate::meaning::{Meaning, Version};
use kingsnake_history::level::{Model, Spec};
use kingsnake_history::model::{KeyId, TxnId};
use rustc_hash::FxHashMap;

/// One step of what happened before: by session order, or because the later read a key from the earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStep {
    /// The earlier transaction.
    pub from: TxnId,
    /// The later one.
    pub to: TxnId,
    /// The key that was read; `None` for session order.
    pub key: Option<KeyId>,
}

/// Why a read saw a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A read of its transaction returned this key as the other wrote it.
    Through(KeyId),
    /// The other came before in the session.
    Session,
    /// The other happened before, by these steps.
    Path(Vec<PathStep>),
}

/// Whether a transaction read a key from another, in any of its operations.
pub(crate) fn reads_from(
    meaning: &Meaning<'_>,
    wary: &Wary<'_>,
    reader: TxnId,
    (key, writer): (KeyId, TxnId),
) -> bool {
    let reads = certain_externals(meaning, wary, reader);
    let mut reads = reads.externals.iter();
    reads.any(|read| read.key == key && read.from == Some(writer))
}

/// The plainest reason why some read of a weak transaction that returned a version of a key saw another transaction, which writes the
/// key too; `None` if no read did.
pub fn why_seen(
    meaning: &Meaning<'_>,
    spec: Spec,
    reader: TxnId,
    read: (KeyId, Version),
    seen: TxnId,
) -> Option<Seen> {
    sees(meaning, &Wary::of(meaning), spec, reader, read, seen)
}

/// The same, where the keys whose absence needs a look are known.
pub(crate) fn sees(
    meaning: &Meaning<'_>,
    wary: &Wary<'_>,
    spec: Spec,
    reader: TxnId,
    (key, version): (KeyId, Version),
    seen: TxnId,
) -> Option<Seen> {
    let history = meaning.history();
    if reader == seen || version == Some(seen) || meaning.left(seen, key).is_none() {
        return None;
    }
    let ReadsOf {
        externals: reads,
        absents,
    } = certain_externals(meaning, wary, reader);
    let of = |read: &&External| read.key == key && read.from == version;
    let absents = absents.iter().filter(|_| version.is_none());
    let absents = absents.filter(|absent| absent.tells(wary, key));
    let ops = reads.iter().filter(of).map(|read| read.op);
    let last = ops.chain(absents.map(|absent| absent.op)).max()?;
    let model = spec.model_of(history, reader);
    let is_rc = matches!(model, Model::Rc | Model::RcSo);
    let through = reads
        .iter()
        .find(|read| read.from == Some(seen) && (!is_rc || read.op <= last))
        .map(|read| Seen::Through(read.key));
    let is_before =
        spec.session_order && history.session(seen) == history.session(reader) && seen < reader;
    let in_session = is_before.then_some(Seen::Session);
    match model {
        Model::Rc => through,
        Model::RcSo | Model::Ra => through.or(in_session),
        Model::Cc => through
            .or(in_session)
            .or_else(|| path(meaning, wary, spec, (seen, reader)).map(Seen::Path)),
        _ => None,
    }
}

/// A shortest way from one transaction to another by session order and reads, found from its end.
fn path(
    meaning: &Meaning<'_>,
    wary: &Wary<'_>,
    spec: Spec,
    (from, to): (TxnId, TxnId),
) -> Option<Vec<PathStep>> {
    let history = meaning.history();
    let mut next: FxHashMap<TxnId, PathStep> = FxHashMap::default();
    let mut queue = VecDeque::from([to]);
    while let Some(txn) = queue.pop_front() {
        if txn == from {
            let mut steps = vec![next[&from]];
            while steps[steps.len() - 1].to != to {
                steps.push(next[&steps[steps.len() - 1].to]);
            }
            return Some(steps);
        }
        let mut before: Vec<(TxnId, Option<KeyId>)> = Vec::new();
        if spec.session_order {
            let start = history.session_txns(history.session(txn)).start;
            let mut earlier = (start..txn.0).rev().map(TxnId);
            let last = earlier.find(|&it| meaning.counts(it));
            before.extend(last.map(|it| (it, None)));
        }
        let reads = certain_externals(meaning, wary, txn).externals;
        before.extend(
            reads
                .iter()
                .filter_map(|read| Some((read.from?, Some(read.key)))),
        );
        for (earlier, key) in before {
            if earlier != to && !next.contains_key(&earlier) {
                let (from, to) = (earlier, txn);
                next.insert(earlier, PathStep { from, to, key });
                queue.push_back(earlier);
            }
        }
    }
    None
}
