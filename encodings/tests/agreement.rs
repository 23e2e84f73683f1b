//! One suite for all back ends: each is one line here, and a missing one fails the last test.

mod support;

use kingsnake_encodings::{BACKENDS, BackendOptions, backend};
use kingsnake_graph::decide::Backend;
use support::suite;

fn make(name: &'static str) -> impl Fn(&BackendOptions) -> Box<dyn Backend> {
    move |options| backend(name, options).expect("a back end of the table")
}

#[allow(clippy::print_stdout)] // What a test prints is shown with it.
fn pass<T: std::fmt::Debug>(judged: Result<T, String>) {
    match judged {
        Ok(tally) => println!("{tally:?}"),
        Err(what) => panic!("{what}"),
    }
}

/// Number of cases of a sweep per back end. Z3 takes milliseconds for each, so it gets fewer; `KINGSNAKE_LONG=1` gives it all.
fn share(name: &str, n_cases: u64) -> u64 {
    let is_long = std::env::var_os("KINGSNAKE_LONG").is_some();
    if name.starts_with("z3/") && !is_long {
        n_cases / 5
    } else {
        n_cases
    }
}

macro_rules! suite {
    ($($(#[$attr:meta])* $module:ident: $name:literal $(, $small:ident)?;)*) => {
        const JOINED: &[&str] = &[$($(#[$attr])* $name),*];
        $($(#[$attr])* mod $module {
            use super::{make, pass, share, suite};

            #[test]
            fn agrees_with_enumeration_on_small_questions() {
                let n_questions = share($name, 4000);
                let judged = suite::small_questions(&make($name), n_questions);
                let enough = |n: &usize| *n > n_questions as usize / 5;
                assert!(judged.as_ref().is_ok_and(|tally| tally.iter().all(enough)), "{judged:?}");
            }

            #[test]
            fn agrees_with_the_oracle_on_small_histories() {
                let n_histories = share($name, 3000);
                let judged = suite::small_histories(&make($name), n_histories);
                let enough = |n: &usize| *n > n_histories as usize / 5;
                assert!(judged.as_ref().is_ok_and(|tally| tally.iter().all(enough)), "{judged:?}");
            }

            #[test]
            fn decides_and_explains_puzzles_that_need_a_case_split() {
                pass(suite::puzzles(&make($name)));
            }

            #[test]
            fn decides_formulas_written_as_rings() {
                pass(suite::formulas(&make($name)));
            }

            #[test]
            fn meets_the_corners() {
                pass(suite::corners(&make($name)));
            }

            #[test]
            fn stops_searching_soon() {
                pass(suite::stops_searching(&make($name), suite::LATE));
            }

            #[test]
            fn stops_building_soon() {
                pass(suite::stops_building(&make($name), suite::LATE));
            }

            #[test]
            fn counts_what_it_does() {
                pass(suite::counts(&make($name)));
            }

            suite!(@large $name $(, $small)?);
        })*
    };
    (@large $name:literal, small) => {};
    (@large $name:literal) => {
        suite!(@large $name, race);

        #[test]
        fn repeats_itself_for_the_same_seed() {
            pass(suite::repeats(&make($name)));
        }
    };
    // The faster one wins, so only the verdict is the same each time.
    (@large $name:literal, race) => {
        #[test]
        fn decides_middling_questions_as_planted() {
            pass(suite::middling(&make($name)));
        }

        #[test]
        fn refuses_what_does_not_fit() {
            pass(suite::fits(&make($name)));
        }
    };
}

suite! {
    cadical_propagator: "cadical/propagator";
    cadical_lazy: "cadical/lazy";
    cadical_closure: "cadical/closure";
    cadical_order_unary: "cadical/order-unary";
    cadical_order_binary: "cadical/order-binary";
    cadical_elimination: "cadical/elimination";
    #[cfg(feature = "z3")]
    z3_difference: "z3/difference";
    #[cfg(feature = "z3")]
    z3_order: "z3/order";
    #[cfg(feature = "z3")]
    z3_propagator: "z3/propagator";
    #[cfg(feature = "z3")]
    z3_gsi: "z3/gsi";
    #[cfg(feature = "z3")]
    z3_asi: "z3/asi";
    portfolio: "portfolio", race;
    search_backtrack: "search/backtrack", small;
}

#[test]
fn every_back_end_of_the_table_has_joined() {
    assert_eq!(JOINED, BACKENDS);
}
