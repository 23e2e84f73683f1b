//! Gaps: keys that range queries spanned and did not return, as intervals of sorted keys, however many keys they hold.
//!
//! Only a key that is absent for one reason, for every reader, can be in a gap: it was not there before any transaction, and was never
//! deleted it. So a transaction that has it in a gap read its initial version. Keys that the reader touches otherwise are no part of its
//! gaps, but reads like any other.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::model::{History, KeyId, RangeQuery, Span};
use crate::resolve::Node;

/// An interval of places that a transaction found empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Who read.
    pub reader: Node,
    /// The places of the keys.
    pub places: Range<u32>,
}

/// All gaps of a history. A *place* is a key's position among the sorted keys. Clients that see deleted rows know fewer keys to be
/// absent for other reasons than those that do not, so each kind has sorted keys of its own; the places of the one come first.
#[derive(Clone, Debug, Default)]
pub struct Gaps {
    pub(super) sorted: Sorted,
    pub(super) gaps: Vec<Gap>,
}

impl Gaps {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.gaps.is_empty()
    }

    /// The gaps, by reader and place; those of one reader are disjoint.
    pub fn all(&self) -> &[Gap] {
        &self.gaps
    }

    /// The keys that can be in gaps, by place.
    pub fn keys(&self) -> &[KeyId] {
        &self.sorted.keys
    }

    /// The places of a key.
    pub fn places(&self, key: KeyId) -> impl Iterator<Item = u32> + '_ {
        self.sorted.places(key)
    }

    /// The gaps of a transaction.
    pub fn of(&self, reader: Node) -> &[Gap] {
        let start = self.gaps.partition_point(|gap| gap.reader < reader);
        let length = self.gaps[start..].partition_point(|gap| gap.reader == reader);
        &self.gaps[start..start + length]
    }

    /// Whether a key is in a gap of a transaction.
    pub fn contains(&self, reader: Node, key: KeyId) -> bool {
        let gaps = self.of(reader);
        self.places(key).any(|place| {
            let at = gaps.partition_point(|gap| gap.places.end <= place);
            gaps.get(at).is_some_and(|gap| gap.places.contains(&place))
        })
    }
}

/// The keys that can be in gaps, in the order of keys.
#[derive(Clone, Debug, Default)]
pub(super) struct Sorted {
    /// For clients that do not see deleted rows, then for those that do.
    keys: Vec<KeyId>,
    /// How many there are of the first kind.
    n_first: u32,
    /// For each kind, the place of each key; `u32::MAX` where it has none.
    place: [Vec<u32>; 2],
}

impl Sorted {
    /// Takes sorted keys of either kind.
    pub(super) fn new(n_keys: usize, [first, second]: [Vec<KeyId>; 2]) -> Self {
        let n_first = first.len() as u32;
        let mut sorted = Sorted {
            n_first,
            keys: first,
            place: [Vec::new(), Vec::new()],
        };
        sorted.keys.extend(second);
        for (at, key) in sorted.keys.iter().enumerate() {
            let kind = usize::from(at >= n_first as usize);
            let place = &mut sorted.place[kind];
            if place.is_empty() {
                place.resize(n_keys, u32::MAX);
            }
            place[key.index()] = at as u32;
        }
        sorted
    }

    pub(super) fn key(&self, place: u32) -> KeyId {
        self.keys[place as usize]
    }

    fn places(&self, key: KeyId) -> impl Iterator<Item = u32> + '_ {
        let places = self.place.iter().filter_map(move |it| it.get(key.index()));
        places.copied().filter(|&place| place != u32::MAX)
    }

    /// The places that a query spans.
    pub(super) fn spanned(&self, history: &History, query: RangeQuery<'_>) -> Range<u32> {
        let kind = if query.shows_deleted {
            self.n_first..self.keys.len() as u32
        } else {
            0..self.n_first
        };
        let keys = &self.keys[kind.start as usize..kind.end as usize];
        let inside = between(keys, history, query.span);
        kind.start + inside.start as u32..kind.start + inside.end as u32
    }
}

/// Where the keys of a sorted list that lie in a range stand in it.
pub(super) fn between(keys: &[KeyId], history: &History, span: Span) -> Range<usize> {
    let place = |key: KeyId| span.place(history.symbols(), history.key_token(key));
    let start = keys.partition_point(|&key| place(key).is_lt());
    let length = keys[start..].partition_point(|&key| place(key).is_le());
    start..start + length
}

/// A set of places, as intervals that are sorted, disjoint and as long as can be.
#[derive(Clone, Debug, Default)]
pub struct Intervals {
    all: Vec<Range<u32>>,
}

impl Intervals {
    /// Forgets all.
    pub fn clear(&mut self) {
        self.all.clear();
    }

    /// Adds an interval.
    pub fn insert(&mut self, places: Range<u32>) {
        if places.is_empty() {
            return;
        }
        // Those that overlap or touch it become one with it.
        let first = self.all.partition_point(|it| it.end < places.start);
        let last = self.all.partition_point(|it| it.start <= places.end);
        let mut all = places;
        for it in &self.all[first..last] {
            all = all.start.min(it.start)..all.end.max(it.end);
        }
        self.all.splice(first..last, [all]);
    }

    /// Whether it holds a place.
    pub fn contains(&self, place: u32) -> bool {
        let at = self.all.partition_point(|it| it.end <= place);
        self.all.get(at).is_some_and(|it| it.contains(&place))
    }

    /// How many places it holds.
    pub fn n_places(&self) -> usize {
        self.all.iter().map(ExactSizeIterator::len).sum()
    }

    /// The intervals.
    pub fn iter(&self) -> impl Iterator<Item = Range<u32>> + '_ {
        self.all.iter().cloned()
    }
}

/// What the transaction under way spanned and touched so far.
#[derive(Default)]
pub(super) struct Under {
    /// The places of the keys that it touched otherwise than by a gap.
    touched: BTreeSet<u32>,
    /// The places that its queries spanned.
    spanned: Intervals,
}

impl Under {
    /// Another transaction begins.
    pub(super) fn clear(&mut self) {
        self.touched.clear();
        self.spanned.clear();
    }

    /// Takes note of the first touch of a key; whether a query of the transaction had not returned it.
    pub(super) fn touch(&mut self, sorted: &Sorted, key: KeyId) -> bool {
        let mut was_spanned = false;
        for place in sorted.places(key) {
            self.touched.insert(place);
            was_spanned |= self.spanned.contains(place);
        }
        was_spanned
    }

    /// The places among these that were touched.
    pub(super) fn touched(&self, places: &Range<u32>) -> Vec<u32> {
        self.touched.range(places.clone()).copied().collect()
    }

    /// Adds what a query spans.
    pub(super) fn span(&mut self, places: Range<u32>) {
        self.spanned.insert(places);
    }

    /// The places among these that were not touched, as intervals.
    pub(super) fn untouched(&self, places: &Range<u32>, out: &mut Vec<Range<u32>>) {
        let mut start = places.start;
        for &touched in self.touched.range(places.clone()) {
            if start < touched {
                out.push(start..touched);
            }
            start = touched + 1;
        }
        if start < places.end {
            out.push(start..places.end);
        }
    }

    /// The gaps that the transaction leaves.
    pub(super) fn gaps(&self) -> Vec<Range<u32>> {
        let mut gaps = Vec::new();
        for places in self.spanned.iter() {
            self.untouched(&places, &mut gaps);
        }
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_meet_become_one_and_touched_places_split_them() {
        let keys = (0..20).map(KeyId).collect();
        let sorted = Sorted::new(20, [keys, Vec::new()]);
        let mut under = Under::default();
        assert!(!under.touch(&sorted, KeyId(5)));
        under.span(2..4);
        under.span(8..10);
        under.span(4..7);
        under.span(12..12);
        assert!(under.touch(&sorted, KeyId(9)));
        assert!(!under.touch(&sorted, KeyId(11)));
        assert_eq!(under.gaps(), [2..5, 6..7, 8..9]);
        under.span(0..20);
        assert_eq!(under.gaps(), [0..5, 6..9, 10..11, 12..20]);
    }

    #[test]
    fn a_key_can_have_a_place_of_either_kind() {
        let sorted = Sorted::new(3, [vec![KeyId(2)], vec![KeyId(2), KeyId(0)]]);
        assert_eq!(sorted.places(KeyId(2)).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(sorted.places(KeyId(0)).collect::<Vec<_>>(), [2]);
        assert_eq!(sorted.places(KeyId(1)).count(), 0);
        let gap = |reader, places| Gap { reader, places };
        let gaps = Gaps {
            sorted,
            gaps: vec![gap(1, 0..1), gap(1, 2..3), gap(4, 1..2)],
        };
        assert!(gaps.contains(1, KeyId(2)) && gaps.contains(1, KeyId(0)));
        assert!(gaps.contains(4, KeyId(2)) && !gaps.contains(4, KeyId(0)));
        assert!(!gaps.contains(2, KeyId(2)) && !gaps.contains(4, KeyId(1)));
    }
}
