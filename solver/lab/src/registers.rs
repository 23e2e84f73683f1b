//! Linearizability by brute force: tries every choice of unknown operations and every order, over all keys at once.
//!
//! This is the definition (Herlihy and Wing 1990) and nothing else: no locality, no cache, no rule about reads.

use kingsnake_history::model::{CompareOutcome, History, KeyId, Op, Status, TxnId, ValueId};
use kingsnake_history::promise::RegisterOptions;
use rustc_hash::FxHashMap;

/// What the keys hold; a key that is not here holds its initial value.
type Store = FxHashMap<KeyId, ValueId>;

/// Whether some order explains a history of at most a dozen operations.
pub fn is_linearizable(history: &History, demand: RegisterOptions) -> bool {
    let search = RegisterSearch { history, demand };
    let txns: Vec<TxnId> = history.txns().filter(|&txn| search.matters(txn)).collect();
    let unknown: Vec<TxnId> = txns
        .iter()
        .copied()
        .filter(|&txn| history.status(txn) == Status::Unknown)
        .collect();
    (0..1_u32 << unknown.len()).any(|chosen| {
        let left_out = |txn: &TxnId| {
            let place = unknown.iter().position(|it| it == txn);
            place.is_some_and(|place| chosen & (1 << place) == 0)
        };
        let rest: Vec<TxnId> = txns.iter().copied().filter(|it| !left_out(it)).collect();
        search.orders(&rest, &Store::default())
    })
}

struct RegisterSearch<'h> {
    history: &'h History,
    demand: RegisterOptions,
}

impl RegisterSearch<'_> {
    fn matters(&self, txn: TxnId) -> bool {
        self.history.status(txn) != Status::Aborted || self.demand.refusals_count
    }

    /// Whether the rest has an order from this state on.
    fn orders(&self, rest: &[TxnId], store: &Store) -> bool {
        if rest.is_empty() {
            return true;
        }
        rest.iter().any(|&next| {
            let others: Vec<TxnId> = rest.iter().copied().filter(|&it| it != next).collect();
            let too_late = others.iter().any(|&other| self.precedes(other, next));
            !too_late
                && self
                    .run(next, store)
                    .is_some_and(|store| self.orders(&others, &store))
        })
    }

    /// Whether one had ended, by more than clocks may disagree, before the other began.
    fn precedes(&self, one: TxnId, other: TxnId) -> bool {
        let end = i128::from(self.history.interval(one).commit);
        let begin = i128::from(self.history.interval(other).begin);
        let is_recorded = self.history.interval(one).commit < i64::MAX
            && self.history.interval(other).begin > i64::MIN;
        is_recorded && end + i128::from(self.demand.drift) < begin
    }

    /// The state after a transaction, if the state before it gives what it saw. Of an aborted one, what it was told before it did
    /// anything counts.
    fn run(&self, txn: TxnId, store: &Store) -> Option<Store> {
        let mut store = store.clone();
        let is_aborted = self.history.status(txn) == Status::Aborted;
        let ops = if is_aborted {
            &[]
        } else {
            self.history.ops(txn)
        };
        for at in 0..=ops.len() {
            let mut told = self.history.compares(txn).iter().filter(|it| {
                let is_refused = it.outcome == CompareOutcome::Refused && it.at as usize == at;
                self.demand.refusals_count && is_refused
            });
            if told.any(|it| self.holds(&store, it.key, it.expected)) {
                return None;
            }
            match ops.get(at) {
                None => {}
                Some(&Op::Read { key, value }) if self.holds(&store, key, value) => {}
                Some(&Op::Write { key, value }) => {
                    store.insert(key, value);
                }
                Some(_) => return None,
            }
        }
        Some(store)
    }

    fn holds(&self, store: &Store, key: KeyId, value: ValueId) -> bool {
        match store.get(&key) {
            Some(&held) => held == value,
            None => self.history.is_initial(value),
        }
    }
}
