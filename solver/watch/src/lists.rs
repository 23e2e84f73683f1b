//! Lists: a read shows every writer of its key in order, not only the last one.
//!
//! So a later read may order writers that no read returns as the last one any more: a pair of unordered writers of a
//! list is retained, and writers of a list are dropped in their order. The dropped part is kept as a length and a hash;
//! every later list begins with it.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use crate::arrival::{Arrival, KeyNumber, ValueName};
use crate::window::KeptWindow;

/// An element without a writer: a list that does not begin with the settled part.
const UNREADABLE: ValueName = ValueName::MAX - 3;

/// The elements of a list whose writers were dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SettledList {
    n_elements: usize,
    hash: u128,
}

impl SettledList {
    fn of(elements: &[ValueName]) -> Self {
        let mut settled = SettledList::default();
        settled.extend(elements);
        settled
    }

    fn extend(&mut self, elements: &[ValueName]) {
        const ODD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
        for element in elements {
            let mixed = (self.hash.rotate_left(23) ^ element).wrapping_mul(ODD);
            self.hash = mixed ^ mixed >> 64;
        }
        self.n_elements += elements.len();
    }
}

/// A read of a list by a kept transaction.
#[derive(Debug)]
pub(crate) struct ListRead {
    pub(crate) key: KeyNumber,
    pub(crate) reader: u32,
    /// The kept writers, in the order of the list.
    pub(crate) writers: Vec<u32>,
    /// Whether every element has a writer.
    pub(crate) is_whole: bool,
}

/// The lists of retained transactions.
#[derive(Debug, Default)]
pub(crate) struct ListIndex {
    pub(crate) reads: Vec<ListRead>,
    of: FxHashMap<KeyNumber, Vec<u32>>,
    appended: FxHashSet<KeyNumber>,
    /// Readers of lists that no order explains.
    pub(crate) broken: Vec<u32>,
}

impl ListIndex {
    pub(crate) fn new(window: &KeptWindow) -> Self {
        let mut index = ListIndex::default();
        let mut places = FxHashMap::default();
        for (at, kept) in window.kept.iter().enumerate() {
            for (key, elements) in &kept.arrival.appends {
                index.appended.insert(*key);
                for (place, &element) in elements.iter().enumerate() {
                    let n_left = elements.len() - 1 - place;
                    places.insert((*key, element), (at as u32, place, n_left));
                }
            }
        }
        for (at, kept) in window.kept.iter().enumerate() {
            for (key, elements) in &kept.arrival.lists {
                let found = elements.iter().map(|&it| places.get(&(*key, it)).copied());
                let read = index.read(*key, at as u32, found);
                index
                    .of
                    .entry(*key)
                    .or_default()
                    .push(index.reads.len() as u32);
                index.reads.push(read);
            }
        }
        index
    }

    /// The writers of a list: each occurs once, with all its appends.
    fn read(
        &mut self,
        key: KeyNumber,
        reader: u32,
        elements: impl Iterator<Item = Option<(u32, usize, usize)>>,
    ) -> ListRead {
        let mut read = ListRead {
            key,
            reader,
            writers: Vec::new(),
            is_whole: true,
        };
        let mut expected = None;
        let mut is_broken = false;
        for element in elements {
            let Some((writer, place, n_left)) = element else {
                is_broken |= expected.is_some();
                read.is_whole = false;
                continue;
            };
            is_broken |= expected.unwrap_or((writer, 0)) != (writer, place);
            if place == 0 {
                is_broken |= writer == reader || read.writers.contains(&writer);
                read.writers.push(writer);
            }
            expected = (n_left > 0).then_some((writer, place + 1));
        }
        if is_broken || expected.is_some() {
            self.broken.push(reader);
        }
        read
    }

    /// The reads of a key.
    pub(crate) fn of(&self, key: KeyNumber) -> impl Iterator<Item = &ListRead> {
        let reads = if self.reads.is_empty() {
            None
        } else {
            self.of.get(&key)
        };
        let reads = reads.into_iter().flatten();
        reads.map(|&it| &self.reads[it as usize])
    }

    /// Whether kept transactions append to a key.
    pub(crate) fn is_list(&self, key: KeyNumber) -> bool {
        !self.appended.is_empty() && self.appended.contains(&key)
    }
}

impl KeptWindow {
    /// Removes the settled part from the lists of an arrival.
    pub(crate) fn trim_lists(&self, arrival: &mut Arrival, checks_lists: bool) {
        for (key, list) in &mut arrival.lists {
            let Some(settled) = self.lists.get(key) else {
                continue;
            };
            let n_elements = settled.n_elements;
            let begins = list.get(..n_elements);
            let is_same = |it| !checks_lists || SettledList::of(it) == *settled;
            if begins.is_some_and(is_same) {
                list.drain(..n_elements);
            } else {
                make_unreadable(*key, list, &mut arrival.reads);
            }
        }
    }

    /// Records that the next writers of a list are dropped, with their appends.
    pub(crate) fn settle_list(&mut self, key: KeyNumber, elements: &[ValueName]) {
        // If everything was discarded, the earlier elements are unknown.
        let is_partial = self.initial.is_none();
        if elements.is_empty() {
            return;
        }
        if !is_partial {
            self.lists.entry(key).or_default().extend(elements);
        }
        for kept in &mut self.kept {
            let arrival = &mut kept.arrival;
            let Some(at) = arrival.lists.iter().position(|it| it.0 == key) else {
                continue;
            };
            let list = &mut arrival.lists[at].1;
            if is_partial {
                list.retain(|it| !elements.contains(it));
            } else if list.starts_with(elements) {
                list.drain(..elements.len());
            } else if elements.starts_with(list) {
                arrival.lists.swap_remove(at);
            } else {
                make_unreadable(key, list, &mut arrival.reads);
            }
        }
    }
}

fn make_unreadable(
    key: KeyNumber,
    list: &mut Vec<ValueName>,
    reads: &mut [(KeyNumber, ValueName)],
) {
    *list = vec![UNREADABLE];
    for read in reads.iter_mut().filter(|it| it.0 == key) {
        read.1 = UNREADABLE;
    }
}
