//! The writer of each read with several candidates, in an order that explains the history, and the check of the order
//! at a weaker level with these writers.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Refusal;
use super::meaning::{Meaning, Version};
use super::weak::reads::Wary;
use super::weak::replay;
use kingsnake_history::level::{Model, Spec};
use kingsnake_history::model::{History, KeyId, Op, TxnId};
use kingsnake_history::verdict::{Certificate, Moment, OperationSource};

/// Checks that an order that explains the history at a stronger level explains it at a weak level, or at parallel snapshot isolation, by
/// the same reads, which are returned.
pub fn replay_weaker(
    history: &History,
    (stronger, order): (Spec, &Certificate),
    weaker: Spec,
) -> Result<Vec<OperationSource>, Refusal> {
    let sources = sources_in(history, stronger, order);
    let commits: Vec<TxnId> = order.commits().collect();
    replay(history, weaker, &commits, &sources).map_err(Refusal::Order)?;
    Ok(sources)
}

/// Checks the commits of an order at levels of their own: what weak transactions read is named beside the order, what the others read the
/// order tells.
pub(super) fn replay_mixed(
    history: &History,
    spec: Spec,
    certificate: &Certificate,
) -> Result<(), String> {
    let commits: Vec<TxnId> = certificate.commits().collect();
    let is_plain = certificate.sources.is_empty() && history.n_predicates() == 0;
    if is_plain && replay(history, spec, &commits, &[]).is_ok() {
        return Ok(());
    }
    let is_weak = |it: &OperationSource| {
        let is_known = it.reader.index() < history.n_txns();
        is_known && spec.model_of(history, it.reader).is_weak()
    };
    let mut sources = sources_in(history, spec, certificate);
    sources.retain(|it| !is_weak(it));
    sources.extend(certificate.sources.iter().filter(|it| is_weak(it)));
    replay(history, spec, &commits, &sources)
}

/// The writers of the reads in an order.
pub fn sources_in(history: &History, spec: Spec, order: &Certificate) -> Vec<OperationSource> {
    let named: FxHashSet<TxnId> = order.order.iter().map(|point| point.txn).collect();
    let settled = history.with_effects_of(|txn| named.contains(&txn));
    let meaning = Meaning::of(&settled);
    let mut gather = Gather {
        wary: Wary::of(&meaning),
        meaning: &meaning,
        held: FxHashMap::default(),
        sources: Vec::new(),
    };
    for point in &order.order {
        let at_begin = spec.model_of(history, point.txn).reads_at_begin();
        let reads = match point.moment {
            Moment::Whole => true,
            Moment::Begin => at_begin,
            Moment::Commit => !at_begin,
        };
        if reads {
            gather.reads(point.txn);
        }
        if point.moment != Moment::Begin {
            let writes = history.ops(point.txn).iter().filter(|op| op.is_write());
            let written = writes.filter_map(|op| op.key());
            gather.held.extend(written.map(|key| (key, point.txn)));
        }
    }
    gather.sources
}

struct Gather<'m, 'h> {
    meaning: &'m Meaning<'h>,
    wary: Wary<'h>,
    held: FxHashMap<KeyId, TxnId>,
    sources: Vec<OperationSource>,
}

impl Gather<'_, '_> {
    fn reads(&mut self, txn: TxnId) {
        let history = self.meaning.history();
        let mut own: FxHashSet<KeyId> = FxHashSet::default();
        for (at, &op) in history.ops(txn).iter().enumerate() {
            self.conditions(txn, at, &own);
            let keys: Vec<KeyId> = match op {
                Op::Write { key, .. } => {
                    own.insert(key);
                    continue;
                }
                Op::Read { key, .. } => vec![key],
                Op::Range { range } => {
                    let query = history.range(range);
                    let rows = query.rows.iter().map(|&row| history.value_key(row));
                    let mut keys: Vec<KeyId> = rows.chain(self.wary.within(query)).collect();
                    keys.sort_unstable();
                    keys.dedup();
                    keys
                }
                Op::Append { .. } | Op::ReadList { .. } => continue,
            };
            for key in keys.into_iter().filter(|key| !own.contains(key)) {
                self.take(txn, at, key);
            }
        }
        self.conditions(txn, history.ops(txn).len(), &own);
    }

    fn conditions(&mut self, txn: TxnId, at: usize, own: &FxHashSet<KeyId>) {
        let meaning = self.meaning;
        let Some(conditions) = meaning.conditions() else {
            return;
        };
        let history = meaning.history();
        for (nth, predicate) in history.predicates(txn).enumerate() {
            if predicate.at as usize == at {
                let keys = conditions.keys(predicate.query).iter();
                for &key in keys.filter(|key| !own.contains(key)) {
                    self.take(txn, history.ops(txn).len() + nth, key);
                }
            }
        }
    }

    fn take(&mut self, reader: TxnId, op: usize, key: KeyId) {
        let writer: Version = self.held.get(&key).copied();
        let possible = self.meaning.sources_of(reader, op, key);
        if possible.is_some_and(|it| it.len() > 1 && it.contains(&writer)) {
            self.sources.push(OperationSource {
                reader,
                op,
                key,
                writer,
            });
        }
    }
}

/// Whether the orders of a level do not determine what was read.
pub fn needs_sources(model: Model) -> bool {
    model.is_weak() || model == Model::Psi
}
