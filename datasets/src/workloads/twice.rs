//! Transactions that read their keys and read them again, beside ones that read and write them: the second read shows at once
//! whether a value changed under the transaction.

use kingsnake_history::rng::Rng;

use super::Workload;
use super::keys::Keys;
use crate::store::{ClientTransaction, Key, TxnStep};

pub(super) struct Twice {
    pub(super) keys: Keys,
    pub(super) n_ops: usize,
}

impl Workload for Twice {
    fn transaction(&self, rng: &mut Rng) -> Box<dyn ClientTransaction> {
        let keys: Vec<Key> = self.keys.different(self.n_ops, rng);
        let reads = keys.iter().map(|&key| TxnStep::Read(key));
        let steps: Vec<TxnStep> = if rng.chance(50) {
            reads.clone().chain(reads).collect()
        } else {
            let writes = keys.iter().map(|&key| TxnStep::Write(key, 0));
            reads.chain(writes).collect()
        };
        Box::new(steps.into_iter())
    }
}
