//! Z3's library is loaded when a back end of Z3 first decides, and not with the program.

#![cfg(all(target_os = "linux", feature = "z3"))]

mod support;

use kingsnake_context::budget::Budget;
use kingsnake_context::progress::Silent;
use kingsnake_encodings::{BackendOptions, backend};
use kingsnake_graph::decide::{Constraints, Decision};
use support::{Owned, edge};

fn is_loaded() -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux tells");
    maps.contains("libz3")
}

#[test]
fn the_library_is_loaded_when_it_is_needed_and_not_before() {
    assert!(!is_loaded(), "it is loaded with the program");
    // Node 1 is before node 0, or after it; both are possible.
    let mut constraints = Constraints::default();
    constraints.push([edge(0, 1)], [edge(1, 0)]);
    let question = Owned::new(&[], vec![0, 1], constraints);
    let mut z3 = backend("z3/difference", &BackendOptions::default()).expect("there is Z3");
    let decided = z3.decide(question.question(), &Budget::unlimited(), &mut Silent);
    assert!(matches!(decided, Ok((Decision::Choices(_), _))));
    assert!(is_loaded());
}
