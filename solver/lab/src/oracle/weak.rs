//! The weak levels and mixed levels by brute force, straight from their axioms: some total order of commits, which contains session
//! order and reads-from, satisfies the axiom of every read. Registers and range queries, no lists.
//!
//! The axiom: if read *r* of *t3* returned key x as *t1* wrote it, and sees *t2*, which writes x too, then *t2* commits before *t1*.
//! What a read sees depends on the level of *t3*; it is asked of the definition each time, and nothing is saturated. Every source that
//! a read can have and every subset of the transactions of unknown end is tried.

use super::spans;
use kingsnake_history::level::Model;
use kingsnake_history::model::{History, KeyId, Op, Status, Token, TxnId, ValueId};
use kingsnake_history::weak::WeakSpec;
use petgraph::algo::has_path_connecting;
use petgraph::graphmap::DiGraphMap;

/// The most transactions, aborted ones aside, that [`holds`] decides.
pub const MAX_TXNS: usize = 7;

/// A read of another's write: its operation, its key, and who wrote what it returned; `None` is the initial state.
type Read = (usize, KeyId, Option<TxnId>);

/// Whether a history satisfies a weak level; `None` if it is too large, or not of registers alone.
pub fn holds(history: &History, spec: WeakSpec) -> Option<bool> {
    holds_each(history, spec.session_order, &|_| spec.level.into())
}

/// Whether a history satisfies the level of each of its transactions; `None` as [`holds`] says.
pub fn holds_each(
    history: &History,
    session_order: bool,
    model: &dyn Fn(TxnId) -> Model,
) -> Option<bool> {
    let levels = Levels {
        session_order,
        model,
    };
    let alive = |txn: &TxnId| history.status(*txn) != Status::Aborted;
    let all: Vec<TxnId> = history.txns().filter(alive).collect();
    let is_register = |op: &Op| !matches!(op, Op::Append { .. } | Op::ReadList { .. });
    let are_registers = history
        .txns()
        .all(|txn| history.ops(txn).iter().all(is_register));
    if all.len() > MAX_TXNS || !are_registers || !history.version_orders().is_empty() {
        return None;
    }
    let unknown: Vec<TxnId> = all
        .iter()
        .copied()
        .filter(|&txn| history.status(txn) == Status::Unknown)
        .collect();
    Some((0..1_u32 << unknown.len()).any(|subset| {
        let takes_part = |txn: &TxnId| {
            let place = unknown.iter().position(|it| it == txn);
            place.is_none_or(|place| subset & (1 << place) != 0)
        };
        let txns: Vec<TxnId> = all.iter().copied().filter(takes_part).collect();
        some_sources(history, levels, &txns, 0, &mut Vec::new())
    }))
}

/// What is asked of each transaction.
#[derive(Clone, Copy)]
struct Levels<'l> {
    session_order: bool,
    model: &'l dyn Fn(TxnId) -> Model,
}

/// Tries everybody that each transaction can have read from, one transaction after the other.
fn some_sources(
    history: &History,
    levels: Levels<'_>,
    txns: &[TxnId],
    at: usize,
    reads: &mut Vec<Vec<Read>>,
) -> bool {
    let Some(&txn) = txns.get(at) else {
        let scene = Scene {
            history,
            levels,
            txns,
            reads,
        };
        return scene.extend(&mut Vec::new());
    };
    let mut choices: Vec<Vec<Read>> = vec![Vec::new()];
    for (op, key) in read_keys(history, txn) {
        let own = history.ops(txn)[..op].iter().rev();
        let mut own = own.filter_map(|&it| match it {
            Op::Write { key: it, value } if it == key => Some(value),
            _ => None,
        });
        if let Some(own) = own.next() {
            if !shows(history, history.ops(txn)[op], key, Some(own)) {
                return false;
            }
            continue;
        }
        let others = txns.iter().copied().filter(|&other| other != txn);
        let wrote = others.filter(|&other| {
            let left = left(history, other, key);
            left.is_some() && shows(history, history.ops(txn)[op], key, left)
        });
        let initial = shows(history, history.ops(txn)[op], key, None).then_some(None);
        let sources: Vec<Option<TxnId>> = wrote.map(Some).chain(initial).collect();
        choices = choices
            .iter()
            .flat_map(|reads| {
                sources.iter().map(|&source| {
                    let mut reads = reads.clone();
                    reads.push((op, key, source));
                    reads
                })
            })
            .collect();
    }
    choices.into_iter().any(|choice| {
        reads.push(choice);
        let found = some_sources(history, levels, txns, at + 1, reads);
        reads.pop();
        found
    })
}

/// The operations of a transaction that read, with each key that they read: a range query reads all that it asks for.
fn read_keys(history: &History, txn: TxnId) -> Vec<(usize, KeyId)> {
    let mut reads = Vec::new();
    for (at, &op) in history.ops(txn).iter().enumerate() {
        match op {
            Op::Read { key, .. } => reads.push((at, key)),
            Op::Range { range } => {
                let span = history.range(range).span;
                let keys = (0..history.n_keys() as u32).map(KeyId);
                let asked = keys.filter(|&key| spans(history, span.low(), span.high(), key));
                reads.extend(asked.map(|key| (at, key)));
            }
            _ => {}
        }
    }
    reads
}

/// Whether a read may return what it did of a key that holds a value; `None` is the state before any transaction.
fn shows(history: &History, op: Op, key: KeyId, held: Option<ValueId>) -> bool {
    match op {
        Op::Read { value, .. } => match held {
            None => history.is_initial(value),
            Some(held) => {
                held == value
                    || history.value_token(value) == Token::Nil && history.is_absence(held)
            }
        },
        Op::Range { range } => {
            let query = history.range(range);
            let rows = query.rows.iter().copied();
            let rows: Vec<ValueId> = rows.filter(|&row| history.value_key(row) == key).collect();
            let has_row = match held {
                None => history.is_there_initially(key),
                Some(held) if history.is_tombstone(held) => query.shows_deleted,
                Some(held) => !history.is_absence(held),
            };
            let is_held = |&row: &ValueId| match held {
                None => history.is_initial(row),
                Some(held) => row == held,
            };
            rows.is_empty() != has_row && rows.iter().all(is_held)
        }
        _ => false,
    }
}

/// What a transaction left in a key.
fn left(history: &History, txn: TxnId, key: KeyId) -> Option<ValueId> {
    let ops = history.ops(txn).iter().rev();
    let mut writes = ops.filter_map(|&op| match op {
        Op::Write { key: it, value } if it == key => Some(value),
        _ => None,
    });
    writes.next()
}

struct Scene<'s> {
    history: &'s History,
    levels: Levels<'s>,
    txns: &'s [TxnId],
    reads: &'s [Vec<Read>],
}

impl Scene<'_> {
    /// Whether an order of commits can be completed.
    fn extend(&self, order: &mut Vec<TxnId>) -> bool {
        if order.len() == self.txns.len() {
            return self.txns.iter().all(|&txn| self.axioms_hold(order, txn));
        }
        for &next in self.txns {
            if order.contains(&next) || !self.before(next).iter().all(|it| order.contains(it)) {
                continue;
            }
            order.push(next);
            let found = self.extend(order);
            order.pop();
            if found {
                return true;
            }
        }
        false
    }

    fn of(&self, txn: TxnId) -> &[Read] {
        let at = self.txns.iter().position(|&it| it == txn);
        at.map_or(&[], |at| &self.reads[at])
    }

    /// What comes before a transaction by session order or reads-from, in one step.
    fn before(&self, txn: TxnId) -> Vec<TxnId> {
        let earlier = self.txns.iter().copied().filter(|&it| self.so(it, txn));
        let sources = self.of(txn).iter().filter_map(|read| read.2);
        earlier.chain(sources).collect()
    }

    fn so(&self, one: TxnId, other: TxnId) -> bool {
        let session = |txn| self.history.session(txn);
        self.levels.session_order && one < other && session(one) == session(other)
    }

    fn axioms_hold(&self, order: &[TxnId], t3: TxnId) -> bool {
        let place = |txn: TxnId| order.iter().position(|&it| it == txn);
        self.of(t3).iter().all(|&(op, key, t1)| {
            let others = self.txns.iter().copied();
            let others = others.filter(|&t2| t2 != t3 && Some(t2) != t1);
            let mut seen = others.filter(|&t2| {
                left(self.history, t2, key).is_some() && self.sees(order, t3, op, t2)
            });
            seen.all(|t2| t1.is_some_and(|t1| place(t2) < place(t1)))
        })
    }

    /// Whether a read of `t3`, by its operation, sees `t2`.
    fn sees(&self, order: &[TxnId], t3: TxnId, op: usize, t2: TxnId) -> bool {
        let mut reads = self.of(t3).iter();
        // The reads of a range query are one statement: each sees what the others read.
        let earlier = |read: &Read| read.0 <= op && read.2 == Some(t2);
        let place = |txn: TxnId| order.iter().position(|&it| it == txn);
        let in_prefix = || self.before(t3).iter().any(|&t4| place(t2) <= place(t4));
        match (self.levels.model)(t3) {
            Model::Rc => reads.any(earlier),
            Model::RcSo => reads.any(earlier) || self.so(t2, t3),
            Model::Ra => self.before(t3).contains(&t2),
            Model::Cc => self.happened_before(t2, t3),
            Model::Pc => in_prefix(),
            // Nobody who writes one of its keys commits while it runs.
            Model::Si => {
                let mut earlier = self.txns.iter().filter(|&&t4| place(t4) < place(t3));
                in_prefix() || earlier.any(|&t4| self.conflict(t4, t3) && place(t2) <= place(t4))
            }
            Model::Ser => place(t2) < place(t3),
            Model::Psi | Model::Mixed => unreachable!("no level of a transaction of these tests"),
        }
    }

    /// Whether two transactions write a key in common.
    fn conflict(&self, one: TxnId, other: TxnId) -> bool {
        let keys = (0..self.history.n_keys() as u32).map(KeyId);
        let mut both = keys.filter(|&key| left(self.history, one, key).is_some());
        both.any(|key| left(self.history, other, key).is_some())
    }

    fn happened_before(&self, t2: TxnId, t3: TxnId) -> bool {
        let direct = |txn: TxnId| self.before(txn).into_iter().map(move |it| (it, txn));
        let graph: DiGraphMap<TxnId, ()> = self.txns.iter().copied().flat_map(direct).collect();
        let mut after = graph.neighbors(t2);
        graph.contains_node(t3) && after.any(|it| has_path_connecting(&graph, it, t3, None))
    }
}
