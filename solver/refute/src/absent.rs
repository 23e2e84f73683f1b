//! Gaps of range queries among the direct dependencies: places over the sorted keys that some transactions wrote, as a segment tree.
//!
//! A reader enters at the places whose intervals make up its gaps; the place of a single key leads to the writers that overwrite
//! its initial version. So a path that enters here is one rw step, and the key is that of the last place.

use rustc_hash::FxHashMap;

use crate::model::KeyId;
use crate::relate::cover;
use crate::resolve::{Gaps, Node};

/// The places, numbered from 0, before they become nodes.
#[derive(Debug, Default)]
pub(super) struct AbsentPlaces {
    /// How many there are.
    pub(super) n_places: u32,
    /// Where readers enter.
    pub(super) entries: Vec<(Node, u32)>,
    /// From an interval to its halves.
    pub(super) edges: Vec<(u32, u32)>,
    /// The places of single keys.
    pub(super) of_key: FxHashMap<KeyId, Vec<u32>>,
}

impl AbsentPlaces {
    /// The places that these transactions need for these keys.
    pub(super) fn new(gaps: &Gaps, members: &[Node], keys: &[KeyId]) -> Self {
        let mut places = AbsentPlaces::default();
        if gaps.is_empty() {
            return places;
        }
        let spots = keys.iter().flat_map(|&key| {
            let spots = gaps.places(key);
            spots.map(move |spot| (spot, key))
        });
        let mut spots: Vec<(u32, KeyId)> = spots.collect();
        spots.sort_unstable();
        for &reader in members {
            for gap in gaps.of(reader) {
                let at = |place: u32| spots.partition_point(|spot| spot.0 < place) as u32;
                let inside = at(gap.places.start)..at(gap.places.end);
                cover(spots.len(), &inside, |place| {
                    places.entries.push((reader, place as u32));
                });
            }
        }
        places.n_places = 2 * spots.len() as u32;
        for place in 1..spots.len() as u32 {
            places.edges.push((place, 2 * place));
            places.edges.push((place, 2 * place + 1));
        }
        for (at, &(_, key)) in spots.iter().enumerate() {
            let place = (spots.len() + at) as u32;
            places.of_key.entry(key).or_default().push(place);
        }
        places
    }
}
