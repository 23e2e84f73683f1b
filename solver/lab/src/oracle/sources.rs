//! The weak levels and mixed levels, straight from their axioms: the order of commits contains session order and reads-from, and every
//! read obeys the axiom of its transaction's level.
//!
//! The axiom: if read *r* of *t3* returned key x as *t1* wrote it, and sees *t2*, which writes x too, then *t2* commits before *t1*.
//! What a read sees depends on the level of *t3*; it is asked of the definition each time, and nothing is saturated. Every source that
//! a read can have is tried. More reads see no less, so a choice that breaks an axiom is given up at once.

use super::{Content, Search, Set, spans};
use kingsnake_history::level::Model;
use kingsnake_history::model::{Act, History, KeyId, Op, Token, TxnId, ValueId};

/// A read of another's write: its statement, its key, and who wrote what it returned; `None` is the initial state.
struct Read {
    statement: usize,
    key: KeyId,
    source: Option<usize>,
}

/// That a statement of a transaction looked at a key.
struct Look<'h> {
    statement: usize,
    key: KeyId,
    /// Whether what another left in the key explains what was seen.
    shows: Shows<'h>,
}

/// A transaction that is to commit next.
struct Reader<'h> {
    txn: usize,
    looks: Vec<Look<'h>>,
    reads: Vec<Read>,
    /// Whether every way to read counts, because it matters to others what was read.
    all: bool,
    found: Vec<Set>,
}

impl<'h> Search<'h> {
    /// The sets of transactions that the next one can have read from; one is enough where no transaction is at causal consistency.
    pub(super) fn source_sets(&mut self, next: usize, placed: Set) -> Vec<Set> {
        let Some(looks) = looks(self.history, self.txns[next]) else {
            return Vec::new();
        };
        let mut reader = Reader {
            txn: next,
            looks,
            reads: Vec::new(),
            all: self.models.contains(&Model::Cc),
            found: Vec::new(),
        };
        self.past[next] = self.before[next] & placed;
        self.choose(&mut reader);
        reader.found
    }

    /// Tries every source of the next look.
    fn choose(&mut self, reader: &mut Reader<'h>) {
        self.n_steps += 1;
        let Some(look) = reader.looks.get(reader.reads.len()) else {
            let past = self.past[reader.txn];
            if !reader.found.contains(&past) && self.aggregates_hold(reader) {
                reader.found.push(past);
            }
            return;
        };
        let (statement, key) = (look.statement, look.key);
        let sources = self.order.iter().filter(|&&it| self.writes(it, key));
        let sources = sources.map(|&it| Some(it)).chain([None]);
        let shown = sources.filter(|&source| (look.shows)(self.left(source, key)));
        for source in shown.collect::<Vec<_>>() {
            let before = self.past[reader.txn];
            self.past[reader.txn] |= source.map_or(0, |it| 1 << it);
            reader.reads.push(Read {
                statement,
                key,
                source,
            });
            if self.axioms_hold(reader) {
                self.choose(reader);
            }
            reader.reads.pop();
            self.past[reader.txn] = before;
            if !reader.all && !reader.found.is_empty() {
                return;
            }
        }
    }

    /// What a transaction left in a key; `None` is the initial state.
    fn left(&self, source: Option<usize>, key: KeyId) -> &Content {
        let n_commits = source.map_or(0, |it| self.place(it) + 1);
        &self.stores[n_commits].cells[key.index()]
    }

    fn place(&self, txn: usize) -> usize {
        let place = self.order.iter().position(|&it| it == txn);
        place.unwrap_or(self.order.len())
    }

    fn writes(&self, txn: usize, key: KeyId) -> bool {
        super::writes(self.history, self.txns[txn], key)
    }

    fn axioms_hold(&self, reader: &Reader<'_>) -> bool {
        reader.reads.iter().all(|read| {
            let others = self.order.iter().copied();
            let others = others.filter(|&it| Some(it) != read.source && self.writes(it, read.key));
            let mut seen = others.filter(|&it| self.sees(reader, read, it));
            let is_older = |it: usize| {
                let source = read.source;
                source.is_some_and(|source| self.place(it) < self.place(source))
            };
            seen.all(is_older)
        })
    }

    /// Whether a read sees another transaction.
    fn sees(&self, reader: &Reader<'_>, read: &Read, other: usize) -> bool {
        let mut reads = reader.reads.iter();
        // The reads of a range query or condition are one statement: each sees what the others read.
        let mut was_read =
            || reads.any(|it| it.statement <= read.statement && it.source == Some(other));
        let txn = reader.txn;
        let is_in = |set: Set| set & (1 << other) != 0;
        let up_to = |set: Set| {
            let mut members = self.order.iter().filter(|&&it| set & (1 << it) != 0);
            members.any(|&it| self.place(other) <= self.place(it))
        };
        match self.models[txn] {
            Model::Rc => was_read(),
            Model::RcSo => was_read() || is_in(self.before[txn]),
            Model::Ra => is_in(self.past[txn]),
            Model::Cc => self.happened_before(other, txn),
            Model::Pc => up_to(self.past[txn]),
            // No other writer of its keys commits while it runs.
            Model::Si => up_to(self.past[txn] | self.conflicts[txn]),
            Model::Ser => true,
            Model::Psi | Model::Mixed => unreachable!("no level of one transaction among others"),
        }
    }

    fn happened_before(&self, one: usize, other: usize) -> bool {
        let mut last = (0..self.txns.len()).filter(|&it| self.past[other] & (1 << it) != 0);
        last.any(|it| it == one || self.happened_before(one, it))
    }

    /// Whether the aggregates of a transaction have their results over what it read for them.
    fn aggregates_hold(&self, reader: &Reader<'_>) -> bool {
        let (history, txn) = (self.history, self.txns[reader.txn]);
        let statements = history.statements(txn);
        let mut predicates = history.predicates(txn).enumerate();
        predicates.all(|(nth, predicate)| {
            if !matches!(predicate.act, Act::Aggregate { .. }) {
                return true;
            }
            let statement = statements.of(statements.read_by(nth));
            let before = &history.ops(txn)[..predicate.at as usize];
            let held = |key: KeyId| {
                let own = own_write(before, key);
                own.or_else(|| {
                    let is = |it: &&Read| (it.statement, it.key) == (statement, key);
                    let read = reader.reads.iter().find(is)?;
                    self.left(read.source, key).written
                })
            };
            super::returns(history, txn, predicate, &held)
        })
    }
}

/// Everything that a transaction looked at: a range query looks at all keys in its range, a condition at all rows of
/// its table. `None`
/// where it did not see what it wrote itself.
fn looks<'h>(history: &'h History, txn: TxnId) -> Option<Vec<Look<'h>>> {
    let mut looks: Vec<Look<'h>> = Vec::new();
    let statements = history.statements(txn);
    let keys = || (0..history.n_keys() as u32).map(KeyId);
    let ops = history.ops(txn);
    let mut look = |statement: usize, key: KeyId, at: usize, shows: Shows<'h>| {
        let own = own_write(&ops[..at], key);
        if own.is_some() {
            return shows(&Content {
                written: own,
                appended: Vec::new(),
            });
        }
        looks.push(Look {
            statement,
            key,
            shows,
        });
        true
    };
    for (at, &op) in ops.iter().enumerate() {
        let asked: Vec<KeyId> = match op {
            Op::Read { key, .. } | Op::ReadList { key, .. } => vec![key],
            Op::Range { range } => {
                let span = history.range(range).span;
                let asked = keys().filter(|&key| spans(history, span.low(), span.high(), key));
                asked.collect()
            }
            _ => Vec::new(),
        };
        for key in asked {
            let shows = move |held: &Content| shows(history, txn, at, key, held);
            if !look(statements.of(at), key, at, Box::new(shows)) {
                return None;
            }
        }
    }
    for (nth, predicate) in history.predicates(txn).enumerate() {
        let at = predicate.at as usize;
        let of_predicate = &ops[at..at + predicate.n_ops as usize];
        let query = predicate.query;
        let table = history.queries()[query as usize].table;
        let is_aggregate = matches!(predicate.act, Act::Aggregate { .. });
        for key in keys().filter(|&key| history.table_of(key) == Some(table)) {
            let first = of_predicate.iter().find(|op| op.key() == Some(key));
            let shows = move |held: &Content| {
                let held = super::row(history, held.written, key);
                let is = held.is_some_and(|it| history.satisfies(query, it));
                // What it returned is what it looked at.
                let is_returned = match first {
                    Some(&Op::Read { value, .. }) => held == Some(value),
                    _ => true,
                };
                is_aggregate || is == first.is_some() && is_returned
            };
            let statement = statements.of(statements.read_by(nth));
            if !look(statement, key, at, Box::new(shows)) {
                return None;
            }
        }
    }
    Some(looks)
}

type Shows<'h> = Box<dyn Fn(&Content) -> bool + 'h>;

/// The last write of a key among operations.
fn own_write(ops: &[Op], key: KeyId) -> Option<ValueId> {
    let mut writes = ops.iter().rev().filter_map(|&op| match op {
        Op::Write { key: it, value } if it == key => Some(value),
        _ => None,
    });
    writes.next()
}

/// Whether a read, by its operation, may return what it did of a key in which another left this.
fn shows(history: &History, txn: TxnId, at: usize, key: KeyId, held: &Content) -> bool {
    match history.ops(txn)[at] {
        Op::Read { value, .. } => {
            held.appended.is_empty()
                && match held.written {
                    None => history.is_initial(value),
                    Some(held) => {
                        let nothing = history.value_token(value) == Token::Nil;
                        held == value || nothing && history.is_absence(held)
                    }
                }
        }
        Op::ReadList { list, .. } => {
            // A transaction sees its own appends at the end.
            let own = history.ops(txn)[..at].iter().filter_map(|op| match *op {
                Op::Append { key: it, value } if it == key => Some(value),
                _ => None,
            });
            let all = held.appended.iter().copied().chain(own);
            held.written.is_none() && all.eq(history.list(list).iter().copied())
        }
        Op::Range { range } => super::shows_row(history, range, key, held.written),
        _ => false,
    }
}
