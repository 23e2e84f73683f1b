//! The weak levels and mixed levels by brute force, straight from their axioms: some total order of commits, which contains session
//! order and reads-from, satisfies the axiom of every read. Registers, range queries, conditions over rows and aggregates, no lists.
//!
//! The axiom: if read *r* of *t3* returned key x as *t1* wrote it, and sees *t2*, which writes x too, then *t2* commits before *t1*.
//! What a read sees depends on the level of *t3*; it is asked of the definition each time, and nothing is saturated. Every source that
//! a read can have and every subset of the transactions of unknown end is tried.

use super::spans;
use kingsnake_history::level::{Model, Spec};
use kingsnake_history::model::{Act, History, KeyId, Op, Status, Token, TxnId, ValueId};
use petgraph::algo::has_path_connecting;
use petgraph::graphmap::DiGraphMap;

/// The most transactions, aborted ones aside, that [`holds`] decides.
pub const MAX_TXNS: usize = 7;

/// The most ways in which a transaction can have read what it read.
const MAX_WAYS: usize = 3_000;

/// A read of another's write: its statement, its key, and who wrote what it returned; `None` is the initial state.
pub(crate) type Read = (usize, KeyId, Option<TxnId>);

/// Whether a history satisfies a weak level; `None` if it is too large, or not of registers alone.
pub fn holds(history: &History, spec: Spec) -> Option<bool> {
    holds_each(history, spec.session_order, &|_| spec.model)
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
    for txns in effects(history)? {
        let ways = txns.iter().map(|&txn| ways(history, &txns, txn));
        let mut scene = Scene {
            history,
            levels,
            ways: ways.collect::<Option<_>>()?,
            has_causal: txns.iter().any(|&txn| model(txn) == Model::Cc),
            reads: vec![Vec::new(); txns.len()],
            txns: &txns,
        };
        if scene.extend(&mut Vec::new()) {
            return Some(true);
        }
    }
    Some(false)
}

/// Every set of transactions that can have taken effect; `None` as [`holds`] says.
pub(crate) fn effects(history: &History) -> Option<Vec<Vec<TxnId>>> {
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
    let subsets = (0..1_u32 << unknown.len()).map(|subset| {
        let takes_part = |txn: &TxnId| {
            let place = unknown.iter().position(|it| it == txn);
            place.is_none_or(|place| subset & (1 << place) != 0)
        };
        all.iter().copied().filter(takes_part).collect()
    });
    Some(subsets.collect())
}

/// What is asked of each transaction.
#[derive(Clone, Copy)]
struct Levels<'l> {
    session_order: bool,
    model: &'l dyn Fn(TxnId) -> Model,
}

/// Everything that a transaction can have read, in each way; `None` where there are too many ways.
pub(crate) fn ways(history: &History, txns: &[TxnId], txn: TxnId) -> Option<Vec<Vec<Read>>> {
    let mut ways: Vec<Vec<Read>> = vec![Vec::new()];
    for look in looks(history, txn) {
        let before = history.ops(txn)[..look.before].iter().rev();
        let mut own = before.filter_map(|&it| match it {
            Op::Write { key, value } if key == look.key => Some(value),
            _ => None,
        });
        if let Some(own) = own.next() {
            if !(look.shows)(Some(own)) {
                return Some(Vec::new());
            }
            continue;
        }
        let others = txns.iter().copied().filter(|&other| other != txn);
        let wrote = others.filter(|&other| {
            let left = left(history, other, look.key);
            left.is_some() && (look.shows)(left)
        });
        let initial = (look.shows)(None).then_some(None);
        let sources: Vec<Option<TxnId>> = wrote.map(Some).chain(initial).collect();
        if ways.len() * sources.len() > MAX_WAYS {
            return None;
        }
        ways = ways
            .iter()
            .flat_map(|reads| {
                sources.iter().map(|&source| {
                    let mut reads = reads.clone();
                    reads.push((look.statement, look.key, source));
                    reads
                })
            })
            .collect();
    }
    ways.retain(|reads| aggregates_hold(history, txn, reads));
    Some(ways)
}

/// That a statement of a transaction looked at a key.
struct Look<'h> {
    statement: usize,
    key: KeyId,
    /// The operations before it.
    before: usize,
    /// Whether what the key held, `None` for the state before any transaction, explains what was seen.
    shows: Box<dyn Fn(Option<ValueId>) -> bool + 'h>,
}

/// Everything that a transaction looked at: a range query at all keys that it asks for, a condition at all rows of its table.
fn looks(history: &History, txn: TxnId) -> Vec<Look<'_>> {
    let mut looks: Vec<Look<'_>> = Vec::new();
    let statements = history.statements(txn);
    let keys = || (0..history.n_keys() as u32).map(KeyId);
    for (at, &op) in history.ops(txn).iter().enumerate() {
        let asked: Vec<KeyId> = match op {
            Op::Read { key, .. } => vec![key],
            Op::Range { range } => {
                let span = history.range(range).span;
                let asked = keys().filter(|&key| spans(history, span.low(), span.high(), key));
                asked.collect()
            }
            _ => Vec::new(),
        };
        looks.extend(asked.into_iter().map(|key| Look {
            statement: statements.of(at),
            key,
            before: at,
            shows: Box::new(move |held| shows(history, op, key, held)),
        }));
    }
    for (nth, predicate) in history.predicates(txn).enumerate() {
        let at = predicate.at as usize;
        let ops = &history.ops(txn)[at..at + predicate.n_ops as usize];
        let table = history.queries()[predicate.query as usize].table;
        for key in keys().filter(|&key| history.table_of(key) == Some(table)) {
            let is_aggregate = matches!(predicate.act, Act::Aggregate { .. });
            let first = ops.iter().find(|op| op.key() == Some(key)).copied();
            let query = predicate.query;
            looks.push(Look {
                statement: statements.of(statements.read_by(nth)),
                key,
                before: at,
                shows: Box::new(move |held| {
                    let held = held.or_else(|| initial_row(history, key));
                    let is = held.is_some_and(|it| history.satisfies(query, it));
                    // What it returned is what it looked at.
                    let is_returned = match first {
                        Some(Op::Read { value, .. }) => held == Some(value),
                        _ => true,
                    };
                    is_aggregate || is == first.is_some() && is_returned
                }),
            });
        }
    }
    looks
}

fn initial_row(history: &History, key: KeyId) -> Option<ValueId> {
    let mut values = (0..history.n_values() as u32).map(ValueId);
    values.find(|&it| {
        history.is_initial(it) && history.value_key(it) == key && !history.is_absence(it)
    })
}

/// Whether the aggregates of a transaction have their results over what it read for them.
fn aggregates_hold(history: &History, txn: TxnId, reads: &[Read]) -> bool {
    let statements = history.statements(txn);
    let mut predicates = history.predicates(txn).enumerate();
    predicates.all(|(nth, predicate)| {
        let Act::Aggregate {
            function,
            column,
            result,
        } = predicate.act
        else {
            return true;
        };
        let table = history.queries()[predicate.query as usize].table;
        let statement = statements.of(statements.read_by(nth));
        let before = &history.ops(txn)[..predicate.at as usize];
        let held = |key: KeyId| {
            let own = before.iter().rev().find_map(|&op| match op {
                Op::Write { key: it, value } if it == key => Some(value),
                _ => None,
            });
            own.or_else(|| {
                let mut reads = reads.iter();
                let (_, _, source) = reads.find(|it| (it.0, it.1) == (statement, key))?;
                match source {
                    None => initial_row(history, key),
                    Some(writer) => left(history, *writer, key),
                }
            })
        };
        let keys = (0..history.n_keys() as u32).map(KeyId);
        let rows = keys.filter(|&key| history.table_of(key) == Some(table));
        let rows = rows.filter_map(held);
        let chosen = rows.filter(|&row| history.satisfies(predicate.query, row));
        let cells = chosen.map(|row| match column {
            None => Token::Int(1),
            Some(column) => history.cell(row, column),
        });
        function.apply(history.symbols(), cells) == Some(result)
    })
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
pub(crate) fn left(history: &History, txn: TxnId, key: KeyId) -> Option<ValueId> {
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
    /// All that each can have read.
    ways: Vec<Vec<Vec<Read>>>,
    /// What those that are in the order are taken to have read.
    reads: Vec<Vec<Read>>,
    /// Whether what one read matters to what another sees.
    has_causal: bool,
}

impl Scene<'_> {
    /// Whether an order of commits can be completed. All that a transaction sees comes before it, so its axioms are asked when it is
    /// placed.
    fn extend(&mut self, order: &mut Vec<TxnId>) -> bool {
        if order.len() == self.txns.len() {
            return true;
        }
        for at in 0..self.txns.len() {
            let next = self.txns[at];
            let mut others = self.txns.iter();
            let is_ahead = |&it: &TxnId| self.so(it, next) && !order.contains(&it);
            if order.contains(&next) || others.any(is_ahead) {
                continue;
            }
            for way in 0..self.ways[at].len() {
                let sources = self.ways[at][way].iter().filter_map(|read| read.2);
                if { sources }.any(|it| !order.contains(&it)) {
                    continue;
                }
                self.reads[at] = self.ways[at][way].clone();
                order.push(next);
                let holds = self.axioms_hold(order, next);
                let found = holds && self.extend(order);
                order.pop();
                if found {
                    return true;
                }
                if holds && !self.has_causal {
                    break;
                }
            }
            self.reads[at].clear();
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
            // Who is not placed yet comes later.
            let others = others.filter(|t2| order.contains(t2));
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
        // The reads of a range query or condition are one statement: each sees what the others read.
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
