//! Adya's levels by brute force, from the definitions: every dependency of every version is an edge; cycles and paths are
//! found by petgraph. For small histories of registers whose version order is complete.

#![allow(clippy::needless_range_loop)] // Matrices are indexed, as in the definitions.

use kingsnake_history::adya::{Dependency, PlLevel};
use kingsnake_history::model::{
    Act, Function, History, KeyId, Op, Predicate, Snapshot, Status, Token, TxnId, ValueId,
};
use petgraph::algo::{has_path_connecting, is_cyclic_directed};
use petgraph::graphmap::DiGraphMap;

/// The result of brute force.
#[derive(Clone, Debug)]
pub struct Naive {
    /// The levels that the certificate shows.
    pub holds: Vec<PlLevel>,
    /// How many predicates did not return what their version sets imply.
    pub n_mismatches: usize,
    /// How many reads are wrong by themselves.
    pub n_findings: usize,
}

type Matrix = Vec<Vec<bool>>;
type Graph = DiGraphMap<usize, ()>;

struct Lab<'h> {
    history: &'h History,
    /// Of each key the initial version (if it has a value) and the committed ones.
    versions: Vec<Vec<(Option<TxnId>, Option<ValueId>)>>,
    edges: [Matrix; 5],
    n_mismatches: usize,
    n_findings: usize,
}

/// Judges every level; `with_times` says whether `pl-si` is among them.
pub fn judge(history: &History, with_times: bool) -> Naive {
    let lab = Lab::of(history);
    let levels = PlLevel::ALL.into_iter();
    let levels = levels.filter(|&level| level != PlLevel::PlSi || with_times);
    let holds = levels.filter(|&level| lab.holds(level)).collect();
    Naive {
        holds,
        n_mismatches: lab.n_mismatches,
        n_findings: lab.n_findings,
    }
}

/// Whether there are no findings, and every dependency runs forwards in an order of all transactions.
pub fn is_along(history: &History, order: &[TxnId]) -> bool {
    let lab = Lab::of(history);
    let place = |txn: usize| order.iter().position(|it| it.index() == txn);
    let forwards = |edges: &Matrix| {
        (0..edges.len())
            .all(|from| (0..edges.len()).all(|to| !edges[from][to] || place(from) < place(to)))
    };
    lab.n_mismatches == 0 && lab.n_findings == 0 && lab.edges.iter().all(forwards)
}

/// The last write of each committed transaction to each key, in the given order.
fn versions(history: &History) -> Vec<Vec<(Option<TxnId>, Option<ValueId>)>> {
    let mut all = Vec::new();
    for key in (0..history.n_keys() as u32).map(KeyId) {
        let initial = (0..history.n_values() as u32).map(ValueId).find(|&value| {
            history.value_key(value) == key
                && history.is_initial(value)
                && !history.is_absence(value)
        });
        let mut list = vec![(None, initial)];
        let installed: Vec<(TxnId, ValueId)> = history
            .txns()
            .filter(|&txn| history.status(txn) == Status::Committed)
            .filter_map(|txn| Some((txn, last_write(history, txn, key, usize::MAX)?)))
            .collect();
        let order = history.version_orders().iter().find(|it| it.key == key);
        if let Some(order) = order {
            for value in &order.values {
                let found = installed.iter().find(|it| it.1 == *value);
                list.extend(found.map(|&(txn, value)| (Some(txn), Some(value))));
            }
        } else {
            // Emme 5.1 and 5.2: ascending timestamps.
            let mut installed = installed;
            installed.sort_by_key(|it| history.stamps(it.0).commit_ts);
            let versions = installed.into_iter();
            list.extend(versions.map(|(txn, value)| (Some(txn), Some(value))));
        }
        all.push(list);
    }
    all
}

fn last_write(history: &History, txn: TxnId, key: KeyId, before: usize) -> Option<ValueId> {
    let ops = history.ops(txn);
    let ops = ops[..before.min(ops.len())].iter();
    let mut written = ops.filter_map(|op| match *op {
        Op::Write { key: it, value } if it == key => Some(value),
        _ => None,
    });
    written.next_back()
}

impl<'h> Lab<'h> {
    /// Every dependency of a history.
    fn of(history: &'h History) -> Self {
        let n = history.n_txns();
        let empty = || vec![vec![false; n]; n];
        let mut lab = Lab {
            history,
            versions: versions(history),
            edges: [empty(), empty(), empty(), empty(), empty()],
            n_mismatches: 0,
            n_findings: 0,
        };
        lab.ww();
        for txn in history.txns() {
            if history.status(txn) == Status::Committed {
                lab.reads(txn);
                for predicate in history.predicates(txn) {
                    lab.predicate(txn, predicate);
                }
            }
        }
        lab
    }

    fn add(&mut self, kind: Dependency, from: Option<TxnId>, to: Option<TxnId>) {
        if let (Some(from), Some(to)) = (from, to)
            && from != to
        {
            self.edges[kind as usize][from.index()][to.index()] = true;
        }
    }

    fn ww(&mut self) {
        for list in self.versions.clone() {
            for pair in list.windows(2) {
                self.add(Dependency::Ww, pair[0].0, pair[1].0);
            }
        }
    }

    fn reads(&mut self, txn: TxnId) {
        let history = self.history;
        for (at, op) in history.ops(txn).iter().enumerate() {
            let (key, value) = match *op {
                Op::Read { key, value } => (key, Some(value)),
                // Neither a row nor a delete, all of which have names here.
                Op::Range { range } => {
                    let asked = history.range(range).untouched_key();
                    let mut keys = (0..history.n_keys() as u32).map(KeyId);
                    match keys.find(|&key| Some(history.key_token(key)) == asked) {
                        Some(key) => (key, None),
                        None => continue,
                    }
                }
                _ => continue,
            };
            if let Some(own) = last_write(history, txn, key, at) {
                self.n_findings += usize::from(Some(own) != value);
                continue;
            }
            let list = self.versions[key.index()].clone();
            let place = list.iter().skip(1).position(|version| version.1 == value);
            let place = match (place, value) {
                (None, Some(value)) => history.is_initial(value).then_some(0),
                (None, None) => (!history.is_there_initially(key)).then_some(0),
                (Some(place), _) => Some(place + 1),
            };
            match place {
                // Garbage, aborted, intermediate, or its own later write.
                None => self.n_findings += 1,
                Some(place) if list[place].0 == Some(txn) => self.n_findings += 1,
                Some(place) => {
                    self.add(Dependency::Wr, list[place].0, Some(txn));
                    if let Some(next) = list.get(place + 1) {
                        self.add(Dependency::Rw, Some(txn), next.0);
                    }
                }
            }
        }
    }

    fn matches(&self, query: u32, value: Option<ValueId>) -> bool {
        value.is_some_and(|value| self.history.satisfies(query, value))
    }

    /// Whether a version satisfies what a predicate depends on. A least or greatest value depends on the rows beyond it only.
    fn bears_on(&self, predicate: &Predicate, value: Option<ValueId>) -> bool {
        let is_beyond = |value: ValueId| match predicate.act {
            Act::Aggregate {
                function: function @ (Function::Min | Function::Max),
                column: Some(column),
                result,
            } => {
                let cell = self.history.cell(value, column);
                function.is_beyond(self.history.symbols(), cell, result)
            }
            _ => true,
        };
        self.matches(predicate.query, value) && value.is_some_and(is_beyond)
    }

    /// Whether a chosen version is read: all are that an aggregate over a column computes with, and of a least or greatest value
    /// those that have it.
    fn is_read(&self, predicate: &Predicate, value: ValueId) -> bool {
        match predicate.act {
            Act::Aggregate {
                function: Function::Min | Function::Max,
                column: Some(column),
                result,
            } => self.history.cell(value, column) == result && result != Token::Nil,
            Act::Aggregate {
                column: Some(_), ..
            } => true,
            _ => false,
        }
    }

    /// The place of the version that a predicate was evaluated on, without the transaction's own writes.
    fn visible(&self, txn: TxnId, key: KeyId, snapshot: Option<&Snapshot>) -> usize {
        let history = self.history;
        let list = &self.versions[key.index()];
        let at_time = |time: i64| {
            let committed = |it: &&(usize, &(Option<TxnId>, Option<ValueId>))| {
                it.1.0.is_none_or(|writer| {
                    let commit_ts = history.stamps(writer).commit_ts;
                    // What it commits itself is not in its snapshot.
                    writer != txn && commit_ts.expect("the certificate is complete") <= time
                })
            };
            let time_of = |it: &(usize, &(Option<TxnId>, Option<ValueId>))| {
                it.1.0.map(|txn| history.stamps(txn).commit_ts)
            };
            let seen = list.iter().enumerate().filter(|it| committed(&it));
            seen.max_by_key(time_of).map_or(0, |it| it.0)
        };
        match snapshot {
            None => at_time(
                history
                    .stamps(txn)
                    .start_ts
                    .expect("the certificate is complete"),
            ),
            Some(Snapshot::At(time)) => at_time(*time),
            Some(Snapshot::Set(values)) => {
                let listed = |it: &(Option<TxnId>, Option<ValueId>)| {
                    it.1.is_some_and(|value| values.contains(&value))
                };
                list.iter().position(listed).unwrap_or(0)
            }
            Some(Snapshot::Postgres {
                xmin,
                xmax,
                running,
            }) => {
                let seen = |it: &(Option<TxnId>, Option<ValueId>)| {
                    it.0.is_none_or(|writer| {
                        let xid = history.stamps(writer).xid;
                        let xid = xid.expect("the certificate is complete");
                        let is_over = xid < *xmin || xid < *xmax && !running.contains(&xid);
                        writer != txn && is_over
                    })
                };
                list.iter().rposition(seen).unwrap_or(0)
            }
        }
    }

    fn predicate(&mut self, txn: TxnId, predicate: &Predicate) {
        let history = self.history;
        let query = &history.queries()[predicate.query as usize];
        let start = predicate.at as usize;
        let ops = &history.ops(txn)[start..start + predicate.n_ops as usize];
        let mut wrong = false;
        let mut chosen = Vec::new();
        for key in (0..history.n_keys() as u32).map(KeyId) {
            if history.table_of(key) != Some(query.table) {
                continue;
            }
            let list = self.versions[key.index()].clone();
            let own = last_write(history, txn, key, start);
            let place = match own {
                Some(_) => list
                    .iter()
                    .position(|version| version.0 == Some(txn))
                    .expect("the certificate is complete"),
                None => self.visible(txn, key, predicate.snapshot.as_ref()),
            };
            let seen = own.or(list[place].1);
            let is_chosen = self.matches(predicate.query, seen);
            if is_chosen {
                chosen.push((key, seen.expect("the certificate is complete")));
            }
            if is_chosen
                && own.is_none()
                && seen.is_some_and(|value| self.is_read(predicate, value))
            {
                // The values of the column are read.
                self.add(Dependency::Wr, list[place].0, Some(txn));
                if let Some(next) = list.get(place + 1) {
                    self.add(Dependency::Rw, Some(txn), next.0);
                }
            }
            for (at, pair) in list.windows(2).enumerate() {
                let at = at + 1;
                if self.bears_on(predicate, pair[0].1) == self.bears_on(predicate, pair[1].1) {
                    continue;
                }
                if at <= place {
                    self.add(Dependency::PredWr, pair[1].0, Some(txn));
                } else {
                    self.add(Dependency::PredRw, Some(txn), pair[1].0);
                }
            }
            let returned = ops.iter().find(|op| op.key() == Some(key));
            wrong |= match (returned, predicate.act) {
                (_, Act::Aggregate { .. }) => false,
                (None, _) => is_chosen,
                (Some(Op::Read { value, .. }), _) => !is_chosen || seen != Some(*value),
                (Some(_), _) => !is_chosen,
            };
        }
        if let Act::Aggregate {
            function,
            column,
            result,
        } = predicate.act
        {
            let values = chosen.iter().map(|&(_, value)| match column {
                None => Token::Int(1),
                Some(column) => history.cell(value, column),
            });
            wrong = function.apply(history.symbols(), values) != Some(result);
        }
        self.n_mismatches += usize::from(wrong);
    }

    fn union(&self, kinds: &[Dependency]) -> Graph {
        let n = self.history.n_txns();
        let pairs = (0..n).flat_map(|from| (0..n).map(move |to| (from, to)));
        let any = |&(from, to): &(usize, usize)| {
            kinds
                .iter()
                .any(|&kind| self.edges[kind as usize][from][to])
        };
        pairs.filter(any).collect()
    }

    fn holds(&self, level: PlLevel) -> bool {
        use Dependency::{PredRw, PredWr, Rw, Wr, Ww};
        let flow = [Ww, Wr, PredWr];
        if level == PlLevel::Pl1 {
            return !is_cyclic_directed(&self.union(&[Ww]));
        }
        let flows = self.union(&flow);
        if self.n_findings + self.n_mismatches > 0 || is_cyclic_directed(&flows) {
            return false;
        }
        let missed = self.union(&[Rw, PredRw]);
        let n = self.history.n_txns();
        let leads = |graph: &Graph, from: usize, to: usize| {
            let are_there = graph.contains_node(from) && graph.contains_node(to);
            are_there && has_path_connecting(graph, from, to, None)
        };
        let single = |graph: &Graph| {
            let mut missed = missed.all_edges();
            missed.any(|(from, to, ())| leads(graph, to, from))
        };
        match level {
            PlLevel::Pl1 | PlLevel::Pl2 => true,
            PlLevel::Pl2Plus => !single(&flows),
            PlLevel::Pl299 => !is_cyclic_directed(&self.union(&[Ww, Wr, PredWr, Rw])),
            PlLevel::Pl3 => !is_cyclic_directed(&self.union(&Dependency::ALL)),
            PlLevel::PlSi => {
                let stamps = |txn: usize| self.history.stamps(TxnId(txn as u32));
                let committed =
                    |txn: usize| self.history.status(TxnId(txn as u32)) == Status::Committed;
                let starts = |from: usize, to: usize| {
                    from != to
                        && committed(from)
                        && committed(to)
                        && stamps(from).commit_ts.expect("the certificate is complete")
                            <= stamps(to).start_ts.expect("the certificate is complete")
                };
                let mut all = flows;
                for (from, to) in (0..n).flat_map(|from| (0..n).map(move |to| (from, to))) {
                    if starts(from, to) {
                        all.add_edge(from, to, ());
                    } else if all.contains_edge(from, to) {
                        return false;
                    }
                }
                !single(&all)
            }
        }
    }
}
