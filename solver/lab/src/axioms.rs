//! Levels by their axioms (Biswas and Enea; spec of mixed levels): is there an order of commits in which every read of
//! every transaction obeys the axiom of that transaction's own level?
//!
//! A read of x from t₁ in t₃: any other writer t₂ of x that is visible to it commits before t₁. Visible at ser: what commits
//! before t₃. At pc: what commits no later than some t₄ that t₃ read from or that precedes it in its session. At si: that,
//! or what commits no later than some writer of one of t₃'s keys that commits before t₃. At rc: what an earlier read of t₃ read from;
//! at rc-so: or what precedes t₃ in its session; at ra: what t₃ read from or what precedes it; at cc: what happened before t₃ by these
//! steps. All orders are tried.

use kingsnake_history::level::Model;
use kingsnake_history::model::{History, KeyId, Op, Status, TxnId};

/// A register history in the axioms' terms.
pub(crate) struct Abstract {
    pub(crate) n_txns: usize,
    /// Session or wr order, as pairs of transactions.
    before: Vec<(usize, usize)>,
    /// Session order alone.
    pub(crate) session: Vec<(usize, usize)>,
    /// For each transaction the keys that it leaves a version of.
    pub(crate) writes: Vec<Vec<KeyId>>,
    /// For each transaction its external reads in program order: the key and the writer, `None` for the initial state.
    pub(crate) reads: Vec<Vec<(KeyId, Option<usize>)>>,
}

/// Whether the levels hold; `None` for histories that the axioms do not speak of: other than registers with unique values,
/// all committed, without findings, and of at most seven transactions.
pub fn hold(
    history: &History,
    session_order: bool,
    model: &dyn Fn(TxnId) -> Model,
) -> Option<bool> {
    let of = Abstract::of(history, session_order)?;
    let txns: Vec<TxnId> = history.txns().collect();
    let models: Vec<Model> = txns.iter().map(|&txn| model(txn)).collect();
    // Only read committed lets a transaction read a key twice and differently.
    let is_repeatable = |at: usize| {
        let reads = &of.reads[at];
        let other = |read: &(KeyId, Option<usize>)| {
            reads
                .iter()
                .any(|again| again.0 == read.0 && again.1 != read.1)
        };
        matches!(models[at], Model::Rc | Model::RcSo) || !reads.iter().any(other)
    };
    if !(0..txns.len()).all(is_repeatable) {
        return Some(false);
    }
    let mut order = Vec::new();
    Some(of.some_order(&models, &mut order))
}

impl Abstract {
    /// Transactions without reads, in the order of sessions.
    pub(crate) fn without_reads(
        history: &History,
        txns: &[TxnId],
        session_order: bool,
        wrote: impl Fn(TxnId, KeyId) -> bool,
    ) -> Abstract {
        let keys = || (0..history.n_keys() as u32).map(KeyId);
        let writes = |&txn: &TxnId| keys().filter(|&key| wrote(txn, key)).collect();
        let pairs = (0..txns.len()).flat_map(|at| (0..at).map(move |earlier| (earlier, at)));
        let session = |at: usize| history.session(txns[at]);
        let in_session =
            pairs.filter(|&(one, other)| session_order && session(one) == session(other));
        Abstract {
            n_txns: txns.len(),
            before: Vec::new(),
            session: in_session.collect(),
            writes: txns.iter().map(writes).collect(),
            reads: vec![Vec::new(); txns.len()],
        }
    }

    pub(crate) fn of(history: &History, session_order: bool) -> Option<Abstract> {
        let txns: Vec<TxnId> = history.txns().collect();
        let is_plain = txns.len() <= 7
            && history.version_orders().is_empty()
            // No row may be what somebody deleted, or never have been.
            && !history.has_tombstones()
            && txns
                .iter()
                .all(|&txn| history.status(txn) == Status::Committed);
        if !is_plain {
            return None;
        }
        let mut of = Abstract {
            n_txns: txns.len(),
            before: Vec::new(),
            session: Vec::new(),
            writes: vec![Vec::new(); txns.len()],
            reads: vec![Vec::new(); txns.len()],
        };
        for (at, &txn) in txns.iter().enumerate() {
            let mut seen: Vec<(KeyId, Option<usize>)> = Vec::new();
            for &op in history.ops(txn) {
                match op {
                    // Whoever reads that may have read the initial state as well.
                    Op::Write { value, .. } if history.is_initial(value) => return None,
                    Op::Write { key, .. } => of.writes[at].push(key),
                    Op::Read { key, value } => {
                        // A transaction that reads its own writes is not what the axioms are about.
                        if of.writes[at].contains(&key) {
                            return None;
                        }
                        let writer = if history.is_initial(value) {
                            None
                        } else {
                            Some(only_writer(history, &txns, op)?)
                        };
                        if writer == Some(at) {
                            return None;
                        }
                        seen.push((key, writer));
                    }
                    Op::Append { .. } | Op::ReadList { .. } | Op::Range { .. } => return None,
                }
            }
            let mut once = of.writes[at].clone();
            once.sort_unstable();
            once.dedup();
            if once.len() != of.writes[at].len() {
                return None;
            }
            of.before
                .extend(seen.iter().filter_map(|read| Some((read.1?, at))));
            of.reads[at] = seen;
            for (earlier, &other) in txns[..at].iter().enumerate() {
                if session_order && history.session(other) == history.session(txn) {
                    of.before.push((earlier, at));
                    of.session.push((earlier, at));
                }
            }
        }
        Some(of)
    }

    /// Tries to complete an order of commits.
    fn some_order(&self, models: &[Model], order: &mut Vec<usize>) -> bool {
        if order.len() == self.n_txns {
            return self.obeys(models, order);
        }
        for next in (0..self.n_txns)
            .filter(|next| !order.contains(next))
            .collect::<Vec<_>>()
        {
            let mut before = self.before.iter().filter(|pair| pair.1 == next);
            if before.all(|pair| order.contains(&pair.0)) {
                order.push(next);
                if self.some_order(models, order) {
                    return true;
                }
                order.pop();
            }
        }
        false
    }

    fn obeys(&self, models: &[Model], order: &[usize]) -> bool {
        let mut place = vec![0; self.n_txns];
        for (at, &txn) in order.iter().enumerate() {
            place[txn] = at + 1;
        }
        let writes = |txn: usize, key: KeyId| self.writes[txn].contains(&key);
        (0..self.n_txns).all(|reader| {
            self.reads[reader]
                .iter()
                .enumerate()
                .all(|(read, &(key, from))| {
                    let mut others = (0..self.n_txns).filter(|&other| {
                        other != reader && Some(other) != from && writes(other, key)
                    });
                    others.all(|other| {
                        !self.is_visible(models[reader], other, (reader, read), &place)
                            || from.is_some_and(|from| place[other] < place[from])
                    })
                })
        })
    }

    fn is_visible(
        &self,
        model: Model,
        other: usize,
        (reader, read): (usize, usize),
        place: &[usize],
    ) -> bool {
        let earlier = &self.reads[reader][..read];
        let was_read = earlier.iter().any(|read| read.1 == Some(other));
        let in_prefix = self
            .before
            .iter()
            .any(|&(seen, by)| by == reader && place[other] <= place[seen]);
        match model {
            Model::Ser => place[other] < place[reader],
            Model::Si => {
                in_prefix
                    || (0..self.n_txns).any(|writer| {
                        let conflicts = self.writes[writer]
                            .iter()
                            .any(|key| self.writes[reader].contains(key));
                        writer != reader
                            && conflicts
                            && place[other] <= place[writer]
                            && place[writer] < place[reader]
                    })
            }
            Model::Rc => was_read,
            Model::RcSo => was_read || self.session.contains(&(other, reader)),
            Model::Ra => self.before.contains(&(other, reader)),
            Model::Cc => self.happened_before(other, reader),
            Model::Pc | Model::Psi | Model::Mixed => in_prefix,
        }
    }

    fn happened_before(&self, one: usize, other: usize) -> bool {
        let mut last = self.before.iter().filter(|pair| pair.1 == other);
        last.any(|&(via, _)| via == one || self.happened_before(one, via))
    }
}

/// The only transaction that wrote what an operation read, if it is its last write of the key.
fn only_writer(history: &History, txns: &[TxnId], read: Op) -> Option<usize> {
    let Op::Read { key, value } = read else {
        return None;
    };
    let wrote = |txn: TxnId| {
        let mut ops = history.ops(txn).iter();
        ops.any(|&op| matches!(op, Op::Write { key: k, value: v } if k == key && v == value))
    };
    let mut writers = (0..txns.len()).filter(|&at| wrote(txns[at]));
    let first = writers.next()?;
    writers.next().is_none().then_some(first)
}
