//! The data between batches: transactions that are not settled, one version of every key, and orders that are known
//! although the transactions that showed them are gone.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use crate::arrival::{Arrival, EMPTY_LIST, KeyNumber, ValueName};
use crate::lists::SettledList;

/// No batch.
pub(crate) const NEVER: u32 = u32::MAX;

/// A moment of a transaction, by its number: its begin or its commit. Where the two are one, it is the commit.
pub(crate) type Point = (u64, bool);

/// A transaction that is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(crate) arrival: Arrival,
    /// Its place among all arrivals.
    pub(crate) number: u64,
    /// The batch in which it arrived.
    pub(crate) batch: u32,
    /// Whether it arrived as a fence; what it read may be erased since.
    pub(crate) is_fence: bool,
    /// Whether it may have taken effect or not: its end is unknown, and no transaction that counts read from it.
    pub(crate) is_open: bool,
    /// The batch since which its begin, and its commit, precede everything that can arrive; of an open one, if it counts.
    pub(crate) past: [u32; 2],
    /// For each write, whether nothing that arrives can read it.
    pub(crate) dead: Vec<bool>,
    /// For each write, whether it is older than the key's stub.
    pub(crate) old: Vec<bool>,
    /// Of an open one, the orders that hold if it counts.
    pub(crate) orders: Vec<(Point, Point)>,
}

impl Kept {
    pub(crate) fn new(arrival: Arrival, number: u64, batch: u32, fence: Option<KeyNumber>) -> Self {
        let n_writes = arrival.writes.len();
        let uses = |ops: &[(KeyNumber, ValueName)]| ops.iter().any(|it| Some(it.0) == fence);
        Kept {
            is_fence: uses(&arrival.reads) && uses(&arrival.writes),
            is_open: arrival.is_unknown,
            arrival,
            number,
            batch,
            past: [NEVER; 2],
            dead: vec![false; n_writes],
            old: vec![false; n_writes],
            orders: Vec::new(),
        }
    }
}

/// No value: the initial state of the key is its stub. Callers do not use this name.
const UNWRITTEN: ValueName = ValueName::MAX;

/// The retained data.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct KeptWindow {
    /// In the order of their arrival.
    pub(crate) kept: Vec<Kept>,
    /// Orders between counted transactions that are kept.
    pub(crate) orders: FxHashSet<(Point, Point)>,
    /// By key, the one version that later transactions may still read although its writer was dropped.
    pub(crate) stubs: Vec<ValueName>,
    /// Values that mean the initial state; `None` if unknown.
    pub(crate) initial: Option<Vec<ValueName>>,
    /// Further values of single keys that mean it.
    pub(crate) initial_of: FxHashMap<KeyNumber, Vec<ValueName>>,
    /// By key, what was dropped of a list.
    pub(crate) lists: FxHashMap<KeyNumber, SettledList>,
    /// By session, the number of the last transaction.
    pub(crate) tails: FxHashMap<u32, u64>,
    pub(crate) n_arrived: u64,
    pub(crate) n_batches: u32,
    pub(crate) n_dropped: u64,
}

impl KeptWindow {
    pub(crate) fn stub(&self, key: KeyNumber) -> Option<ValueName> {
        let stub = self.stubs.get(key as usize).copied();
        stub.filter(|&it| it != UNWRITTEN)
    }

    /// Whether a value is the key's stub.
    pub(crate) fn is_stub(&self, key: KeyNumber, value: ValueName) -> bool {
        if let Some(stub) = self.stub(key) {
            return stub == value;
        }
        let own = self.initial_of.get(&key);
        let of_all = self.initial.iter();
        let is_empty_list = value == EMPTY_LIST && self.initial.is_some();
        is_empty_list || of_all.chain(own).any(|it| it.contains(&value))
    }

    pub(crate) fn set_stub(&mut self, key: KeyNumber, value: ValueName) {
        let at = key as usize;
        if self.stubs.len() <= at {
            self.stubs.resize(at + 1, UNWRITTEN);
        }
        self.stubs[at] = value;
    }

    pub(crate) fn take_stub(&mut self, key: KeyNumber) -> Option<ValueName> {
        let stub = self.stub(key)?;
        self.stubs[key as usize] = UNWRITTEN;
        Some(stub)
    }

    /// Bytes that stubs and what is kept take, about.
    pub(crate) fn n_bytes(&self) -> usize {
        let of = |it: &Kept| {
            let n_ops = it.arrival.reads.capacity() + it.arrival.writes.capacity();
            let lists = it.arrival.lists.iter().chain(&it.arrival.appends);
            let n_elements: usize = lists.map(|it| 2 + it.1.capacity()).sum();
            size_of::<Kept>() + n_ops * 34 + n_elements * 16 + it.orders.capacity() * 32
        };
        let kept: usize = self.kept.iter().map(of).sum();
        let orders = self.orders.capacity() * 40 + self.lists.capacity() * 56;
        self.stubs.capacity() * size_of::<ValueName>() + kept + orders
    }

    /// The last transaction of the chain of fences that has arrived without holes, and its value.
    ///
    /// Fences are not dropped in their order, so of the chain there may be several pieces. A piece begins where a fence reads the stub,
    /// or where its read was erased: what it read was dropped, so it has arrived. Of their ends any is right, and the last is best.
    pub(crate) fn last_fence(&self, key: KeyNumber) -> Option<(u64, ValueName)> {
        let value_of =
            |ops: &[(KeyNumber, ValueName)]| ops.iter().find(|it| it.0 == key).map(|it| it.1);
        let (mut next, mut ends) = (FxHashMap::default(), Vec::new());
        for kept in self.kept.iter().filter(|it| it.is_fence && !it.is_open) {
            let Some(written) = value_of(&kept.arrival.writes) else {
                continue;
            };
            let read = value_of(&kept.arrival.reads);
            match read.filter(|&it| !self.is_stub(key, it)) {
                Some(read) => drop(next.insert(read, (kept.number, written))),
                None => ends.push((kept.number, written)),
            }
        }
        for end in &mut ends {
            while let Some(later) = next.remove(&end.1) {
                *end = later;
            }
        }
        // Where there is no piece, the last fence was dropped: u64::MAX is no transaction that is kept.
        let last = ends.into_iter().max();
        last.or(self.stub(key).map(|value| (u64::MAX, value)))
    }

    /// Adds an arrival.
    pub(crate) fn push(
        &mut self,
        mut arrival: Arrival,
        fence: Option<KeyNumber>,
        checks_lists: bool,
    ) {
        self.trim_lists(&mut arrival, checks_lists);
        let number = self.n_arrived;
        self.n_arrived += 1;
        self.tails.insert(arrival.session, number);
        self.kept
            .push(Kept::new(arrival, number, self.n_batches, fence));
    }

    /// Where each kept transaction stands, by its number.
    pub(crate) fn places(&self) -> FxHashMap<u64, u32> {
        let kept = self.kept.iter().enumerate();
        kept.map(|(at, it)| (it.number, at as u32)).collect()
    }
}
