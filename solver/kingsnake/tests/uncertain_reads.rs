//! The library at every level, on histories whose values do not identify their writers.

use kingsnake::{Checker, History, HistoryBuilder, Level, Status, Verdict};
use kingsnake_datasets::{Format, read_bytes};
use kingsnake_history::level::Model;

/// Two transactions write x = 1; the second also writes y. A third reads x = 1 and y as it was at first, a fourth in the same session
/// reads x as `last`.
fn repeated(last: i64) -> History {
    let mut builder = HistoryBuilder::new();
    let (x, y) = (builder.text("x"), builder.text("y"));
    builder.initial(x, 0.into());
    builder.initial(y, 0.into());
    for (client, name) in [(1_i64, 1_i64), (2, 2), (3, 3), (3, 4)] {
        let session = builder.session(client.into());
        let begun = builder.begin(session, name.into(), Status::Committed);
        begun.expect("a fresh name");
        match name {
            1 => {
                builder.write(x, 1.into());
            }
            2 => {
                builder.write(x, 1.into());
                builder.write(y, 5.into());
            }
            3 => {
                builder.read(x, 1.into());
                builder.read(y, 0.into());
            }
            _ => {
                builder.read(x, last.into());
            }
        }
    }
    builder.finish().expect("a history")
}

#[test]
fn the_checker_answers_at_every_level_where_values_repeat() {
    let levels = [
        Level::Ser,
        Level::Si,
        Level::Psi,
        Level::Pc,
        Level::Cc,
        Level::Ra,
        Level::RcSo,
        Level::Rc,
    ];
    for level in levels {
        let (good, bad) = (repeated(1), repeated(0));
        let verdict = Checker::new()
            .level(level)
            .check(&good)
            .expect("it is decided");
        let Verdict::Satisfied(certificate) = verdict else {
            panic!("{level}: {verdict}");
        };
        let promise = Checker::new().level(level).promise().expect("a level");
        kingsnake_certify::verify(&good, &promise, &certificate).expect("it holds");
        // Going back to the initial state breaks causal consistency; read atomic and below allow it between transactions.
        let verdict = Checker::new()
            .level(level)
            .check(&bad)
            .expect("it is decided");
        let is_weak = matches!(level, Level::Ra | Level::RcSo | Level::Rc);
        assert_eq!(verdict.holds(), Some(is_weak), "{level}");
        if let Some(story) = verdict.story() {
            assert!(story.contains("from"), "{story}");
        }
    }
}

/// T0 comes before T1, so T1's condition looked at T0's row, though no version of it can be chosen. T2 comes after T1 and misses it.
const NEVER_CHOSEN: &str = r#"{"kingsnake":1,"tables":{"t":["c0"],"u":[]}}
{"initial":{"key":"t/y","value":0,"row":{"c0":2}}}
{"id":0,"session":"a","ops":[["r","z",null],["w","t/y",1,{"c0":1}]]}
{"id":1,"session":"b","ops":[["w","z",1],["select",{"table":"t","where":["=","c0",9]},[]]]}
{"id":2,"session":"b","ops":[["r","t/y",0]]}
"#;

#[test]
fn what_a_causal_transaction_sees_rests_on_rows_that_no_condition_can_choose() {
    for (last, holds) in [(Model::Cc, false), (Model::Ra, true), (Model::Rc, true)] {
        let parsed = read_bytes(Format::Kingsnake, NEVER_CHOSEN.as_bytes(), "history");
        let mut history = parsed.expect("a history").history;
        let models = [Model::Ser, Model::Ser, last];
        let set: Result<(), ()> = history.set_models(|_, txn| Ok(models[txn.index()]));
        set.expect("each has a level");
        let verdict = Checker::new().level(Level::AsRecorded).check(&history);
        assert_eq!(
            verdict.expect("it is decided").holds(),
            Some(holds),
            "{last:?}"
        );
    }
}
