//! Which versions of a key were made of each other by read-modify-writes, and what given orders and lists show about
//! them; computed once per key in linear time, so that a step between two versions is checked without walking from one
//! to the other.
//!
//! Versions that were made of each other form trees: *families*. Those that were made of each other in a circle have no root.

use rustc_hash::FxHashMap;

use super::assumed::is_founded;
use super::meaning::{Meaning, Version};
use kingsnake_history::level::Model;
use kingsnake_history::model::{KeyId, TxnId, ValueId, VersionOrder};

/// The versions of one key.
pub(super) struct Families {
    /// For each version the first of its family, and when a walk over the family enters and leaves it.
    places: FxHashMap<Version, Place>,
    shown: Vec<ShownPlaces>,
}

#[derive(Clone, Copy)]
struct Place {
    root: Version,
    enter: u32,
    leave: u32,
}

/// What a given order, or a list that was read, shows: where the values of each transaction and of each family first appear, and
/// where they last do.
#[derive(Default)]
struct ShownPlaces {
    first: FxHashMap<TxnId, usize>,
    last: FxHashMap<TxnId, usize>,
    first_of_family: FxHashMap<Version, usize>,
    last_of_family: FxHashMap<Version, usize>,
}

impl Families {
    /// Reads a key: the counted transactions that wrote it, and what was shown of it. A transaction whose update may overwrite
    /// another's (its level is not atomic) begins a family of its own. One whose reads of the key may differ continues none of them.
    pub(super) fn of(
        meaning: &Meaning<'_>,
        key: KeyId,
        writers: &[TxnId],
        lists: &[&[ValueId]],
        model: impl Fn(TxnId) -> Model,
    ) -> Self {
        let mut families = Families {
            places: FxHashMap::default(),
            shown: Vec::new(),
        };
        families.plant(meaning, key, writers, &model);
        let installed = |&txn: &TxnId| (txn, meaning.installed(txn, key));
        let installed: Vec<(TxnId, Vec<ValueId>)> = writers.iter().map(installed).collect();
        let orders = meaning.history().version_orders().iter();
        let is_shown =
            |order: &&VersionOrder| order.key == key && is_founded(meaning.history(), order);
        for order in orders.filter(is_shown) {
            families.show(meaning, &installed, &order.values, false);
        }
        for list in telling(lists) {
            families.show(meaning, &installed, list, true);
        }
        families
    }

    /// Walks over the trees from their roots.
    fn plant(
        &mut self,
        meaning: &Meaning<'_>,
        key: KeyId,
        writers: &[TxnId],
        model: &dyn Fn(TxnId) -> Model,
    ) {
        let mut children: FxHashMap<Version, Vec<Version>> = FxHashMap::default();
        let mut roots: Vec<Version> = vec![None];
        for &txn in writers {
            match meaning.overwrote(txn, key) {
                Some(before) if !model(txn).reads_may_differ() => {
                    children.entry(before).or_default().push(Some(txn));
                }
                _ => roots.push(Some(txn)),
            }
        }
        let mut clock = 0;
        for root in roots {
            let mut stack = vec![(root, 0, root)];
            while let Some((version, next, root)) = stack.last_mut() {
                let (version, root) = (*version, *root);
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
                    let continues = child.is_some_and(|it| model(it).is_atomic());
                    stack.push((child, 0, if continues { root } else { child }));
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

    /// Records an order. It shows a value if one transaction left it; a list also shows that everything missing comes after all
    /// that it has.
    fn show(
        &mut self,
        meaning: &Meaning<'_>,
        installed: &[(TxnId, Vec<ValueId>)],
        values: &[ValueId],
        is_list: bool,
    ) {
        let mut place: FxHashMap<ValueId, usize> = FxHashMap::default();
        for (at, &value) in values.iter().enumerate() {
            place.entry(value).or_insert(at);
        }
        let mut shown = ShownPlaces::default();
        for (txn, values) in installed {
            let place = |value: &ValueId| place.get(value).copied();
            let known = |value: &ValueId| place(value).filter(|_| meaning.is_unique(*value));
            let absent =
                |value: &ValueId| (is_list && place(value).is_none()).then_some(usize::MAX);
            let first = values.iter().filter_map(known).min();
            let last = values
                .iter()
                .filter_map(|it| known(it).or_else(|| absent(it)));
            let last = last.max();
            let root = self.root(Some(*txn));
            if let Some(first) = first {
                shown.first.insert(*txn, first);
                if let Some(root) = root {
                    let least = shown.first_of_family.entry(root).or_insert(first);
                    *least = (*least).min(first);
                }
            }
            if let Some(last) = last {
                shown.last.insert(*txn, last);
                if let Some(root) = root {
                    let most = shown.last_of_family.entry(root).or_insert(last);
                    *most = (*most).max(last);
                }
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

    /// Whether some order shows one version before another, or their families.
    pub(super) fn is_given(&self, before: TxnId, after: TxnId) -> bool {
        let less = |first: Option<&usize>, last: Option<&usize>| matches!((first, last), (Some(first), Some(last)) if first < last);
        let mut orders = self.shown.iter();
        if orders.any(|it| less(it.first.get(&before), it.last.get(&after))) {
            return true;
        }
        match [before, after].map(|txn| self.root(Some(txn))) {
            [Some(older), Some(newer)] if older != newer => self.shown.iter().any(|it| {
                let (first, last) = (&it.first_of_family, &it.last_of_family);
                less(first.get(&older), last.get(&newer))
            }),
            _ => false,
        }
    }
}

/// The lists with information: a list that is the beginning of the longest one adds nothing to it.
fn telling<'l>(lists: &[&'l [ValueId]]) -> Vec<&'l [ValueId]> {
    let Some(&longest) = lists.iter().max_by_key(|list| list.len()) else {
        return Vec::new();
    };
    let others = lists.iter().filter(|list| !longest.starts_with(list));
    std::iter::once(longest).chain(others.copied()).collect()
}
