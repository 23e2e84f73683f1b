//! Lists the transactions of a graph in an order in which range queries see no row that they did not return, as far as it can.
//!
//! Kahn's algorithm with a preference: a transaction that deletes a row that is there comes first, then those that neither ask nor insert, then
//! queries that see nothing that they missed, then those that insert. A query that would see a row waits until the row is
//! deleted. Where everything waits, one is let through, and what it should not have seen is reported.

use std::collections::{BTreeSet, VecDeque};

use crate::budget::{Budget, Poll, StopReason};
use crate::decide::Side;
use crate::model::{History, KeyId, Op, Token, ValueId};
use crate::phases::{self, Stop};
use crate::prune::Pruned;
use crate::relate::{Edge, Places};
use crate::report::Decider;
use crate::resolve::{Node, Resolved};
use crate::verdict::Moment;

/// Maximum number of rows looked at per node, after which queries are let through unchecked.
const LOOKS: usize = 64;
/// Maximum number of rows considered that a query should not have seen.
const CONSIDERED: usize = 64;

/// An order, and the rows that queries see in it and should not.
pub(super) struct Tried {
    /// The nodes of the graph.
    pub(super) order: Vec<u32>,
    pub(super) missed: Vec<(Node, KeyId)>,
}

/// Lists a decided graph. Of each transaction at most `n_reads` rows are reported.
pub(super) fn schedule(
    history: &History,
    base: &Resolved,
    (decider, pruned, sides): (Decider, &Pruned, &[Side]),
    n_reads: usize,
    budget: &Budget,
) -> Result<Tried, Stop> {
    let mut schedule = Schedule::new(history, base, pruned, sides, n_reads);
    let mut poll = budget.poll();
    while let Some(node) = schedule.next(&mut poll)? {
        schedule.take(node);
    }
    if schedule.listed.len() < schedule.n_before.len() {
        return Err(phases::cyclic(decider).into());
    }
    Ok(Tried {
        order: schedule.listed,
        missed: schedule.missed,
    })
}

/// The state of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Row {
    There,
    /// Deleted, and clients that see deleted rows see it.
    Tombstone,
    Gone,
}

/// Ready nodes wait in one of these, by priority.
const QUEUES: usize = 4;

struct Schedule<'a> {
    history: &'a History,
    base: &'a Resolved,
    places: &'a Places,
    /// The place of each key among the deleted ones; `u32::MAX` for others.
    place: Vec<u32>,
    n_reads: usize,
    /// The edges, by where they begin.
    starts: Vec<u32>,
    ends: Vec<u32>,
    /// Number of predecessors left per node.
    n_before: Vec<u32>,
    queues: [VecDeque<u32>; QUEUES],
    /// Deletes of rows that are not there yet, and queries that a row keeps waiting, by key; all of them in the order of arrival.
    sleeping: Vec<Vec<u32>>,
    waiting: Vec<Vec<u32>>,
    delayed: VecDeque<u32>,
    is_listed: Vec<bool>,
    row: Vec<Row>,
    /// What is seen by clients that do not see deleted rows, and by those that do.
    seen: [BTreeSet<u32>; 2],
    /// When each key was last written.
    written_at: Vec<usize>,
    n_looks: usize,
    listed: Vec<u32>,
    missed: Vec<(Node, KeyId)>,
}

impl<'a> Schedule<'a> {
    fn new(
        history: &'a History,
        base: &'a Resolved,
        pruned: &'a Pruned,
        sides: &[Side],
        n_reads: usize,
    ) -> Self {
        let keys = base.unreturned().keys();
        let mut place = vec![u32::MAX; history.n_keys()];
        for (at, key) in keys.iter().enumerate() {
            place[key.index()] = at as u32;
        }
        let edges = pruned.edges(sides);
        let n_nodes = pruned.dag.n_nodes();
        let (starts, ends, n_before) = by_start(n_nodes, &edges);
        let there = |&key: &KeyId| {
            if history.is_there_initially(key) {
                Row::There
            } else {
                Row::Gone
            }
        };
        let row: Vec<Row> = keys.iter().map(there).collect();
        let at_first = (0..keys.len() as u32).filter(|&at| row[at as usize] == Row::There);
        let at_first: BTreeSet<u32> = at_first.collect();
        let mut schedule = Schedule {
            history,
            base,
            places: pruned.problem.places(),
            place,
            n_reads,
            starts,
            ends,
            n_before,
            queues: std::array::from_fn(|_| VecDeque::new()),
            sleeping: vec![Vec::new(); keys.len()],
            waiting: vec![Vec::new(); keys.len()],
            delayed: VecDeque::new(),
            is_listed: vec![false; n_nodes],
            row,
            seen: [at_first.clone(), at_first],
            written_at: vec![0; keys.len()],
            n_looks: LOOKS * n_nodes,
            listed: Vec::with_capacity(n_nodes),
            missed: Vec::new(),
        };
        for node in 0..n_nodes as u32 {
            if schedule.n_before[node as usize] == 0 {
                schedule.enqueue(node);
            }
        }
        schedule
    }

    /// The transaction whose queries are answered at a node.
    fn reader(&self, node: u32) -> Option<Node> {
        let (txn, _) = self.txn(node)?;
        let asks = self.places.snap(txn) == node && !self.base.unreturned().of(txn).is_empty();
        asks.then_some(txn)
    }

    fn txn(&self, node: u32) -> Option<(Node, Moment)> {
        let is_txn = (node as usize) < self.base.n_txns() * self.places.width() as usize;
        is_txn.then(|| self.places.point(node))
    }

    /// What a node leaves in the deleted keys, by place: the last of several is what counts.
    fn writes(&self, node: u32) -> Vec<(u32, Row)> {
        let Some((txn, _)) = self.txn(node).filter(|it| self.places.commit(it.0) == node) else {
            return Vec::new();
        };
        let history = self.history;
        let written = |op: &Op| match *op {
            Op::Write { key, value } => Some((self.place[key.index()], self.looks(value))),
            _ => None,
        };
        let ops = history.ops(self.base.txn(txn)).iter();
        ops.filter_map(written)
            .filter(|it| it.0 != u32::MAX)
            .collect()
    }

    fn looks(&self, value: ValueId) -> Row {
        if self.history.is_tombstone(value) {
            Row::Tombstone
        } else if self.history.value_token(value) == Token::Nil {
            Row::Gone
        } else {
            Row::There
        }
    }

    /// Puts a node that may come next where it is to wait.
    fn enqueue(&mut self, node: u32) {
        let writes = self.writes(node);
        let is_there = |place: u32| self.row[place as usize] == Row::There;
        let inserts = writes.iter().any(|it| it.1 == Row::There);
        let mut deletes = writes.iter().filter(|it| it.1 != Row::There);
        let queue = match deletes.next() {
            Some(_) if writes.iter().any(|it| it.1 != Row::There && is_there(it.0)) => 0,
            Some(&(place, _)) if !inserts => {
                self.sleeping[place as usize].push(node);
                self.delayed.push_back(node);
                return;
            }
            _ if inserts => 3,
            _ if self.reader(node).is_some() => 2,
            _ => 1,
        };
        self.queues[queue].push_back(node);
    }

    /// The next node.
    fn next(&mut self, poll: &mut Poll<'_>) -> Result<Option<u32>, StopReason> {
        loop {
            poll.step()?;
            let ready = self.queues.iter_mut().find_map(VecDeque::pop_front);
            let Some(node) = ready else {
                return Ok(self.force());
            };
            if self.is_listed[node as usize] {
                continue;
            }
            match self
                .reader(node)
                .and_then(|reader| self.look(reader, 1).pop())
            {
                Some(row) if self.n_looks > 0 => {
                    self.waiting[row as usize].push(node);
                    self.delayed.push_back(node);
                }
                _ => return Ok(Some(node)),
            }
        }
    }

    /// The first waiting node, which is let through.
    fn force(&mut self) -> Option<u32> {
        loop {
            let node = self.delayed.pop_front()?;
            if !self.is_listed[node as usize] {
                return Some(node);
            }
        }
    }

    /// Some rows that the queries of a transaction would see now and did not return, by place.
    fn look(&mut self, reader: Node, most: usize) -> Vec<u32> {
        let unreturned = self.base.unreturned();
        let touched = self.base.touched(self.history, reader);
        let mut rows = Vec::new();
        for asked in unreturned.of(reader) {
            let query = self.history.range(asked.range);
            let spanned = unreturned.spanned(self.history, asked.range);
            let seen = &self.seen[usize::from(query.shows_deleted)];
            for &place in seen.range(spanned.start as u32..spanned.end as u32) {
                self.n_looks = self.n_looks.saturating_sub(1);
                let key = unreturned.keys()[place as usize];
                if touched.binary_search(&key).is_err() && !rows.contains(&place) {
                    rows.push(place);
                }
                if rows.len() == most {
                    return rows;
                }
            }
        }
        rows
    }

    /// Lists a node.
    fn take(&mut self, node: u32) {
        self.is_listed[node as usize] = true;
        self.listed.push(node);
        if let Some(reader) = self.reader(node) {
            self.report(reader);
        }
        for (place, row) in self.writes(node) {
            self.write(place, row);
        }
        let from = node as usize;
        for at in self.starts[from] as usize..self.starts[from + 1] as usize {
            let to = self.ends[at];
            self.n_before[to as usize] -= 1;
            if self.n_before[to as usize] == 0 {
                self.enqueue(to);
            }
        }
    }

    /// Reports the newest of the rows that a transaction sees and should not.
    fn report(&mut self, reader: Node) {
        let mut rows = self.look(reader, CONSIDERED.max(self.n_reads));
        rows.sort_by_key(|&place| std::cmp::Reverse(self.written_at[place as usize]));
        rows.truncate(self.n_reads);
        let keys = self.base.unreturned().keys();
        let missed = rows.iter().map(|&place| (reader, keys[place as usize]));
        self.missed.extend(missed);
    }

    fn write(&mut self, place: u32, row: Row) {
        let at = place as usize;
        self.row[at] = row;
        self.written_at[at] = self.listed.len();
        let is_seen = [row == Row::There, row != Row::Gone];
        for (seen, is_seen) in self.seen.iter_mut().zip(is_seen) {
            if is_seen {
                seen.insert(place);
            } else {
                seen.remove(&place);
            }
        }
        let woken = if row == Row::There {
            std::mem::take(&mut self.sleeping[at])
        } else {
            std::mem::take(&mut self.waiting[at])
        };
        for node in woken {
            if !self.is_listed[node as usize] {
                self.enqueue(node);
            }
        }
    }
}

/// The edges by where they begin, and how many end at each node.
fn by_start(n_nodes: usize, edges: &[Edge]) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
    let mut starts = vec![0_u32; n_nodes + 1];
    let mut n_before = vec![0_u32; n_nodes];
    for edge in edges {
        starts[edge.from as usize + 1] += 1;
        n_before[edge.to as usize] += 1;
    }
    for node in 0..n_nodes {
        starts[node + 1] += starts[node];
    }
    let mut next = starts.clone();
    let mut ends = vec![0; edges.len()];
    for edge in edges {
        let at = &mut next[edge.from as usize];
        ends[*at as usize] = edge.to;
        *at += 1;
    }
    (starts, ends, n_before)
}
