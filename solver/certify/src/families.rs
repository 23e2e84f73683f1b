//! Which versions of a key were made of each other by read-modify-writes, and what given orders and lists show of them; each key once,
//! in linear time, so that a step between two versions is checked without walking from the one to the other.
//!
//! Versions that were made of each other form trees: *families*. Those that were made of each other in a circle have no root.

use rustc_hash::FxHashMap;

use super::meaning::{Meaning, Version};
use kingsnake_history::model::{KeyId, TxnId, ValueId};

/// The versions of one key.
pub(super) struct Families {
    /// For each version the first of its family, and when a walk over the family enters and leaves it.
    places: FxHashMap<Version, Place>,
    shown: Vec<Shown>,
    /// The values by which given orders and lists know the versions, where there is no doubt.
    values: FxHashMap<TxnId, ValueId>,
}

#[derive(Clone, Copy)]
struct Place {
    root: Version,
    enter: u32,
    leave: u32,
}

/// A given order, or a list that was read.
struct Shown {
    place: FxHashMap<ValueId, usize>,
    /// Whether what it lacks comes after what it has.
    is_list: bool,
    first: FxHashMap<Version, usize>,
    last: FxHashMap<Version, usize>,
}

impl Families {
    /// Reads a key: the counted transactions that wrote it, and what was shown of it.
    pub(super) fn of(
        meaning: &Meaning<'_>,
        key: KeyId,
        writers: &[TxnId],
        lists: &[&[ValueId]],
    ) -> Self {
        let mut families = Families {
            places: FxHashMap::default(),
            shown: Vec::new(),
            values: FxHashMap::default(),
        };
        families.plant(meaning, key, writers);
        for &txn in writers {
            let left = meaning.left(txn, key);
            if let Some(value) = left.filter(|&value| meaning.is_unique(value)) {
                families.values.insert(txn, value);
            }
        }
        let orders = meaning.history().version_orders().iter();
        for order in orders.filter(|order| order.key == key) {
            families.show(&order.values, false);
        }
        for list in telling(lists) {
            families.show(list, true);
        }
        families
    }

    /// Walks over the trees from their roots.
    fn plant(&mut self, meaning: &Meaning<'_>, key: KeyId, writers: &[TxnId]) {
        let mut children: FxHashMap<Version, Vec<Version>> = FxHashMap::default();
        let mut roots: Vec<Version> = vec![None];
        for &txn in writers {
            match meaning.overwrote(txn, key) {
                Some(before) => children.entry(before).or_default().push(Some(txn)),
                None => roots.push(Some(txn)),
            }
        }
        let mut clock = 0;
        for root in roots {
            let mut stack = vec![(root, 0)];
            while let Some((version, next)) = stack.last_mut() {
                let version = *version;
                if *next == 0 {
                    clock += 1;
                    let place = Place {
                        root,
                        enter: clock,
                        leave: u32::MAX,
                    };
                    self.places.insert(version, place);
                }
                let made = children.get(&version).map_or(&[][..], Vec::as_slice);
                if let Some(&child) = made.get(*next) {
                    *next += 1;
                    stack.push((child, 0));
                    continue;
                }
                clock += 1;
                if let Some(place) = self.places.get_mut(&version) {
                    place.leave = clock;
                }
                stack.pop();
            }
        }
    }

    fn show(&mut self, values: &[ValueId], is_list: bool) {
        let mut shown = Shown {
            place: FxHashMap::default(),
            is_list,
            first: FxHashMap::default(),
            last: FxHashMap::default(),
        };
        for (place, &value) in values.iter().enumerate() {
            shown.place.entry(value).or_insert(place);
        }
        for (&txn, value) in &self.values {
            let Some(root) = self.root(Some(txn)) else {
                continue;
            };
            let place = shown.place.get(value).copied();
            if let Some(place) = place {
                let first = shown.first.entry(root).or_insert(place);
                *first = (*first).min(place);
            }
            if let Some(place) = place.or(is_list.then_some(usize::MAX)) {
                let last = shown.last.entry(root).or_insert(place);
                *last = (*last).max(place);
            }
        }
        self.shown.push(shown);
    }

    /// The first version of a version's family; `None` where they were made of each other in a circle.
    pub(super) fn root(&self, version: Version) -> Option<Version> {
        self.places.get(&version).map(|place| place.root)
    }

    /// Whether a version is another one, or was made of it.
    pub(super) fn is_from(&self, version: Version, older: Version) -> bool {
        match (self.places.get(&version), self.places.get(&older)) {
            (Some(own), Some(older)) => older.enter <= own.enter && own.leave <= older.leave,
            _ => version == older,
        }
    }

    /// Whether some order shows one version before another, or their families. A list also shows that what it lacks came after
    /// all that it has.
    pub(super) fn is_given(&self, before: TxnId, after: TxnId) -> bool {
        let values = [before, after].map(|txn| self.values.get(&txn));
        if let [Some(before), Some(after)] = values
            && self.shown.iter().any(|it| it.shows(*before, *after))
        {
            return true;
        }
        match [before, after].map(|txn| self.root(Some(txn))) {
            [Some(older), Some(newer)] if older != newer => self.shown.iter().any(|shown| {
                let places = (shown.first.get(&older), shown.last.get(&newer));
                matches!(places, (Some(first), Some(last)) if first < last)
            }),
            _ => false,
        }
    }
}

impl Shown {
    fn shows(&self, before: ValueId, after: ValueId) -> bool {
        match (self.place.get(&before), self.place.get(&after)) {
            (Some(before), Some(after)) => before < after,
            (Some(_), None) => self.is_list,
            (None, _) => false,
        }
    }
}

/// The lists that say something: those that are the beginning of the longest one say nothing that it does not.
fn telling<'l>(lists: &[&'l [ValueId]]) -> Vec<&'l [ValueId]> {
    let Some(&longest) = lists.iter().max_by_key(|list| list.len()) else {
        return Vec::new();
    };
    let others = lists.iter().filter(|list| !longest.starts_with(list));
    std::iter::once(longest).chain(others.copied()).collect()
}
