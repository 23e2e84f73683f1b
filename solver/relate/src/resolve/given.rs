//! The version orders that came with the history or that its lists reveal, as lists of versions.

use rustc_hash::FxHashMap;

use super::attribute::ValueOrigin;
use super::reads::{Walk, position_of_write};
use super::versions::{Node, VersionId};
use super::{GivenOrder, ResolveError};
use crate::model::{TxnId, ValueId, VersionOrder};
use crate::verdict::LocalAnomaly;

/// Every known order of a key's versions. Notes versions that aborted transactions installed.
pub(super) fn given_orders(walk: &mut Walk<'_>) -> Result<Vec<GivenOrder>, ResolveError> {
    let mut given = Vec::new();
    for order in walk.history.version_orders() {
        let versions = if walk.lists.is_list(order.key) {
            listed_appends(walk, order)?
        } else {
            listed_versions(walk, order)?
        };
        given.push(GivenOrder {
            key: order.key,
            versions,
            is_prefix: false,
        });
    }
    for (key, list) in walk.lists.longest() {
        let writers = list.iter().map(|&value| walk.writers.writer(value));
        let versions = writers.filter_map(|writer| version_of(walk, writer, key));
        let mut versions: Vec<VersionId> = versions.collect();
        versions.dedup();
        given.push(GivenOrder {
            key,
            versions,
            is_prefix: true,
        });
    }
    for stale in walk.history.stale_reads() {
        let had = Some((stale.shown.earlier, stale.had));
        let anomaly = LocalAnomaly::CyclicVersions;
        walk.find(anomaly, stale.shown.later, stale.found, stale.key, had);
    }
    given.sort_by_key(|order| order.key);
    Ok(given)
}

fn version_of(walk: &Walk<'_>, writer: TxnId, key: crate::model::KeyId) -> Option<VersionId> {
    let node = walk.node_txn.binary_search(&writer).ok()?;
    walk.numbering.of_writer(key, node as Node)
}

/// The versions that a version order names. Values that their writer overwrote itself are passed over: they must not be read.
fn listed_versions(
    walk: &mut Walk<'_>,
    order: &VersionOrder,
) -> Result<Vec<VersionId>, ResolveError> {
    let mut versions = Vec::with_capacity(order.values.len());
    for (at, &value) in order.values.iter().enumerate() {
        let writer = walk.writers.writer(value);
        match walk.writers.origin(value) {
            ValueOrigin::Candidate if walk.writers.rivals(value).is_empty() => {
                versions.extend(version_of(walk, writer, order.key));
            }
            ValueOrigin::Candidate => return Err(ambiguous(walk, order, value)),
            ValueOrigin::Intermediate => {}
            // The initial state may head the list; anywhere else it would be a version without a writer.
            ValueOrigin::Aborted | ValueOrigin::Nobody
                if at == 0 && walk.history.is_initial(value) => {}
            ValueOrigin::Aborted => aborted(walk, order, writer, value),
            ValueOrigin::Nobody => return Err(unknown(walk, order, value)),
        }
    }
    Ok(versions)
}

/// The versions that a version order of a list names. Every append has its place in it; the appends of a transaction
/// follow each other in its own order, with no other's between. Where they do not, that is noted.
fn listed_appends(
    walk: &mut Walk<'_>,
    order: &VersionOrder,
) -> Result<Vec<VersionId>, ResolveError> {
    let mut versions = Vec::with_capacity(order.values.len());
    let mut last: Option<(TxnId, usize)> = None;
    let mut left: FxHashMap<TxnId, (TxnId, usize)> = FxHashMap::default();
    for &value in &order.values {
        let writer = walk.writers.writer(value);
        match walk.writers.origin(value) {
            _ if !walk.writers.rivals(value).is_empty() => {
                return Err(ambiguous(walk, order, value));
            }
            ValueOrigin::Candidate | ValueOrigin::Intermediate => {}
            ValueOrigin::Aborted => {
                aborted(walk, order, writer, value);
                continue;
            }
            ValueOrigin::Nobody => return Err(unknown(walk, order, value)),
        }
        let op = position_of_write(walk.history, writer, value).unwrap_or(0);
        let scattered = LocalAnomaly::ScatteredAppends;
        match last {
            Some((before, earlier)) if before == writer && earlier > op => {
                walk.find(scattered, writer, op, order.key, last);
            }
            Some((before, _)) if before == writer => {}
            _ => {
                if let Some(&other) = left.get(&writer) {
                    walk.find(scattered, writer, op, order.key, Some(other));
                } else {
                    versions.extend(version_of(walk, writer, order.key));
                }
                if let Some((before, _)) = last {
                    left.entry(before).or_insert((writer, op));
                }
            }
        }
        last = Some((writer, op));
    }
    Ok(versions)
}

fn aborted(walk: &mut Walk<'_>, order: &VersionOrder, writer: TxnId, value: ValueId) {
    let op = position_of_write(walk.history, writer, value).unwrap_or(0);
    walk.find(LocalAnomaly::AbortedVersion, writer, op, order.key, None);
}

fn unknown(walk: &Walk<'_>, order: &VersionOrder, value: ValueId) -> ResolveError {
    ResolveError::UnknownVersion {
        key: walk.history.key_name(order.key),
        value: walk.history.value_name(value),
    }
}

fn ambiguous(walk: &Walk<'_>, order: &VersionOrder, value: ValueId) -> ResolveError {
    let name = |txn: TxnId| walk.history.txn_name(txn);
    ResolveError::AmbiguousVersion {
        key: walk.history.key_name(order.key),
        value: walk.history.value_name(value),
        first: name(walk.writers.writer(value)),
        second: name(walk.writers.rivals(value)[0]),
    }
}
