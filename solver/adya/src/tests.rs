//! The three ways to find changes agree.

use kingsnake_lab::random::{Rng, Wrong, small_predicates};

use crate::query::Conditions;
use crate::versions::Versions;

#[test]
fn changes_are_the_same_by_memory_by_scan_and_by_index() {
    let mut n_matching = 0;
    for seed in 0..2_000 {
        let history = small_predicates(&mut Rng::new(seed), Wrong::NOT);
        let versions = Versions::new(&history).expect("the certificate is complete");
        let conditions = Conditions::new(&history, &versions);
        for query in 0..history.queries().len() as u32 {
            let asked = conditions.asked(query);
            let keys = &conditions.tables[0].keys;
            for (row, &key) in keys.iter().enumerate() {
                let range = versions.of_key(key);
                let places = range.clone().map(|place| place as u32);
                let matching: Vec<u32> = places
                    .filter(|&place| conditions.matches(asked, place as usize))
                    .collect();
                n_matching += matching.len();
                for place in range {
                    let scanned = conditions.scan(asked, key, place);
                    assert_eq!(conditions.known(asked, row, place), scanned);
                    assert_eq!(conditions.among(key, place, &matching), scanned);
                }
            }
        }
        for query in 0..history.queries().len() as u32 {
            let asked = conditions.asked(query);
            for place in 0..versions.len() {
                let value = versions.at(place).value;
                let is = value != crate::versions::NOBODY
                    && history.satisfies(query, kingsnake_history::model::ValueId(value));
                assert_eq!(conditions.matches(asked, place), is, "seed {seed}");
            }
        }
    }
    assert!(n_matching > 2_000);
}
