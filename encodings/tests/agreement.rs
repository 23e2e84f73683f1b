//! One suite for all back ends: each joins by one line, and one that is forgotten here fails the last test.

mod support;

use kingsnake_encodings::{BACKENDS, Options, backend};
use kingsnake_graph::decide::Backend;
use support::suite;

fn make(name: &'static str) -> impl Fn(&Options) -> Box<dyn Backend> {
    move |options| backend(name, options).expect("a back end of the table")
}

#[allow(clippy::print_stdout)] // What a test prints is shown with it.
fn pass<T: std::fmt::Debug>(judged: Result<T, String>) {
    match judged {
        Ok(tally) => println!("{tally:?}"),
        Err(what) => panic!("{what}"),
    }
}

macro_rules! suite {
    ($($(#[$attr:meta])* $module:ident: $name:literal $(, $small:ident)?;)*) => {
        const JOINED: &[&str] = &[$($(#[$attr])* $name),*];
        $($(#[$attr])* mod $module {
            use super::{make, pass, suite};

            #[test]
            fn agrees_with_enumeration_on_small_questions() {
                let judged = suite::small_questions(&make($name), 4000);
                assert!(judged.as_ref().is_ok_and(|tally| tally.iter().all(|&n| n > 800)), "{judged:?}");
            }

            #[test]
            fn agrees_with_the_oracle_on_small_histories() {
                let judged = suite::small_histories(&make($name), 3000);
                assert!(judged.as_ref().is_ok_and(|tally| tally.iter().all(|&n| n > 800)), "{judged:?}");
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
    // Whoever is faster wins, so only the verdict is the same each time.
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
