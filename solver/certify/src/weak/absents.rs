//! Keys that range queries did not return, in the replay of an order of commits: the queries must have seen no writer
//! of these keys.

use rustc_hash::{FxHashMap, FxHashSet};

use super::WeakReplay;
use super::reads::{Absent, External};
use crate::meaning::Version;
use crate::sorted::SortedKeys;
use kingsnake_history::level::Model;
use kingsnake_history::model::{History, KeyId, SessionId, TxnId};

/// The keys in the past of a session, and how far into each other session they were taken.
pub(super) struct PastKeys<'h> {
    keys: SortedKeys<'h>,
    taken: FxHashMap<SessionId, u32>,
}

impl PastKeys<'_> {
    fn take(&mut self, history: &History, txn: TxnId) {
        let ops = history.ops(txn).iter().filter(|op| op.is_write());
        ops.filter_map(|op| op.key())
            .for_each(|key| self.keys.insert(key));
    }
}

impl WeakReplay<'_> {
    /// Checks that the range queries of a transaction saw no writer of a key that they found as it was before any transaction.
    pub(super) fn absents(
        &mut self,
        txn: TxnId,
        model: Model,
        absents: &[Absent<'_>],
        reads: &[External],
    ) -> Result<(), String> {
        let has_past = matches!(model, Model::Cc | Model::Psi);
        if has_past {
            self.take_past(txn);
        }
        let session = self.history.session(txn).index();
        let is_rc = matches!(model, Model::Rc | Model::RcSo);
        let mut written: FxHashSet<KeyId> = FxHashSet::default();
        let mut seen = 0;
        for absent in absents {
            while seen < reads.len() && (!is_rc || reads[seen].op <= absent.op) {
                self.writes(reads[seen].from, &mut written);
                seen += 1;
            }
            let tells = |key: &KeyId| absent.tells(&self.wary, *key);
            let mut found = written.iter().copied().find(tells);
            if self.spec.session_order && model != Model::Rc {
                let earlier = self.sessions[session].within(absent.query);
                found = found.or_else(|| { earlier }.find(tells));
            }
            if let Some(past) = self.past_keys.get(&session).filter(|_| has_past) {
                found = found.or_else(|| past.keys.within(absent.query).find(tells));
            }
            if let Some(key) = found {
                return Err(format!(
                    "operation {} of {} found no row of key {} although it saw one that wrote it",
                    absent.op,
                    self.name(txn),
                    self.history.key_name(key)
                ));
            }
        }
        Ok(())
    }

    /// Adds the keys that a transaction writes.
    fn writes(&self, from: Version, written: &mut FxHashSet<KeyId>) {
        let ops = from.map_or(&[][..], |from| self.history.ops(from)).iter();
        let writes = ops.filter(|op| op.is_write());
        written.extend(writes.filter_map(|op| op.key()));
    }

    /// Takes what is new in the past of a transaction since the last range query of its session.
    fn take_past(&mut self, txn: TxnId) {
        let Some(pasts) = &self.pasts else { return };
        let history = self.history;
        let session = history.session(txn).index();
        let fresh = || PastKeys {
            keys: SortedKeys::new(history),
            taken: FxHashMap::default(),
        };
        if !self.spec.session_order {
            let mut past = fresh();
            for &txn in pasts.of(txn) {
                past.take(history, TxnId(txn));
            }
            self.past_keys.insert(session, past);
            return;
        }
        let mut past = self.past_keys.remove(&session).unwrap_or_else(fresh);
        for (other, end) in pasts.ends(txn) {
            let start = history.session_txns(other).start;
            let from = past.taken.insert(other, end).unwrap_or(start);
            for txn in (from..end).map(TxnId) {
                if self.place[txn.index()] != 0 {
                    past.take(history, txn);
                }
            }
        }
        self.past_keys.insert(session, past);
    }
}
