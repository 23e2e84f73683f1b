//! Explicit initial transactions of the text format.

use kingsnake_datasets::{Format, read_bytes};
use kingsnake_history::model::History;

fn read(text: &str) -> History {
    let parsed = read_bytes(Format::Text, text.as_bytes(), "history.txt");
    parsed.unwrap_or_else(|error| panic!("{error}")).history
}

#[test]
fn a_first_transaction_that_writes_zero_is_the_initial_state() {
    let history = read("w(1,0,0,0)\nr(1,0,1,1)\n");
    assert_eq!(history.n_txns(), 1);
    let some_keys = read("w(1,0,0,0)\nw(2,5,1,1)\nr(1,0,2,2)\nr(2,0,2,2)\n");
    assert_eq!(some_keys.n_txns(), 2);
}

#[test]
fn a_first_transaction_that_writes_every_key_is_the_initial_state() {
    let history = read("w(1,7,0,0)\nw(2,8,0,0)\nr(1,7,1,1)\nw(2,9,1,1)\n");
    assert_eq!(history.n_txns(), 1);
}

#[test]
fn a_first_transaction_is_like_any_other_where_zero_was_read_beside_it() {
    assert_eq!(read("w(1,7,0,0)\nr(1,0,1,1)\n").n_txns(), 2);
    assert_eq!(read("w(1,7,0,0)\nr(2,5,1,1)\n").n_txns(), 2);
    assert_eq!(read("w(1,0,0,0)\nr(1,0,0,1)\n").n_txns(), 2);
}
