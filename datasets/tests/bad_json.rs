//! Viper logs and Jepsen histories that cannot be judged are refused by their line.

mod refusal;

use kingsnake_datasets::{Format, Place};
use kingsnake_solver::model::Status;
use refusal::{error, read};

const JEPSEN: [Format; 2] = [Format::JepsenEdn, Format::JepsenJson];

#[test]
fn viper_operations_outside_the_model_are_refused_by_name() {
    let wrong = [
        (
            "{\"value\":[[\"r\",1,2,false]]}\n{\"value\":[[\"range\",1,2,[{\"id\":3,\"val\":4}],[]]]}",
            2,
            "range query of [1, 2] returned key 3, which is outside",
        ),
        (
            "{\"value\":[[\"range\",1,\"b\",[],[]]]}",
            1,
            "both must be numbers, or both texts",
        ),
        (
            "{\"value\":[[\"range\",1,2,[{\"id\":1}],[]]]}",
            1,
            "a row with `id` and `val`",
        ),
        (
            "{\"isInitial\":true,\"value\":[[\"d\",1,2,true]]}",
            1,
            "the initial transaction deletes",
        ),
        (
            "{\"isInitial\":true,\"value\":[[\"range\",1,2,[],[]]]}",
            1,
            "the initial transaction reads",
        ),
        ("{\"value\":[[\"q\",1,2,true]]}", 1, "expected an operation"),
        ("{\"values\":[]}", 1, "without field `value`"),
        (
            "{\"isInitial\":true,\"value\":[[\"r\",1,2,false]]}",
            1,
            "the initial transaction reads",
        ),
        ("{\"value\":[[\"r\",1,2,false]]", 1, "expected `,` or `}`"),
    ];
    for (text, line, words) in wrong {
        let error = error(Format::Viper, text);
        assert_eq!(error.place(), Place::Line(line), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn viper_initial_values_are_declared_or_inferred() {
    let initial_of = |text: &str| -> Vec<(String, bool)> {
        let history = read(Format::Viper, text).history;
        let ids = (0..history.n_values() as u32).map(kingsnake_solver::model::ValueId);
        ids.map(|id| (history.value_name(id), history.is_initial(id)))
            .collect()
    };
    let named = |values: &[(&str, bool)]| -> Vec<(String, bool)> {
        values
            .iter()
            .map(|(name, is)| ((*name).to_owned(), *is))
            .collect()
    };
    let reads = "{\"value\":[[\"r\",1,5,false],[\"r\",1,6,false],[\"i\",2,7,true],[\"r\",2,\"nil\",false]]}";
    assert_eq!(
        initial_of(reads),
        named(&[("5", true), ("6", false), ("7", false), ("nil", true)])
    );
    for first in [
        "{\"isInitial\":true,\"value\":[[\"w\",1,6,true]]}",
        "{\"value\":[[\"w\",1,6,true]],\"isInitial\":true}",
    ] {
        let values = initial_of(&format!("{first}\n{reads}"));
        assert_eq!(
            values,
            named(&[("6", true), ("5", false), ("7", false), ("nil", true)])
        );
    }
    let failed = read(
        Format::Viper,
        "{\"value\":[[\"w\",1,5,false],[\"w\",1,6,true]]}",
    )
    .history;
    assert_eq!(
        failed.status(kingsnake_solver::model::TxnId(1)),
        Status::Aborted
    );
}

#[test]
fn jepsen_events_are_checked() {
    let wrong = [
        (
            "{:type :ok, :value [[:r 1 2]]}\n{:type :maybe}",
            2,
            ":type maybe",
        ),
        ("{:value 1}", 1, "an event without :type"),
        (
            "[{:type :ok, :value [[:r 1 2]]}",
            1,
            "the end of the history's vector",
        ),
        ("{:type :ok, :value [[:r 1 2]]", 1, "expected a value"),
        (
            "{:type :ok, :value [[:swap 1 2]]}",
            1,
            "step swap is not supported",
        ),
        ("{:type :ok, :value [[:r 1 2 3]]}", 1, "a step of 4 parts"),
        ("17", 1, "an event, which is a map"),
        (
            "{:type :ok, :value [[:r 1 2] [:append 1 3]]}",
            1,
            "single value in a history of lists",
        ),
        (
            "{:type :invoke :time 5 :process 1 :value [[:w 1 1]]}\n{:type :ok :time 4 :process 1 :value [[:w 1 1]]}",
            2,
            "completes at 4",
        ),
        (
            "{:type :ok :f :transfer :value {:from 1}}",
            1,
            "operation transfer is no transaction",
        ),
    ];
    for (text, line, words) in wrong {
        let error = error(Format::JepsenEdn, text);
        assert_eq!(error.place(), Place::Line(line), "{text}: {error}");
        assert!(error.to_string().contains(words), "{text}: {error}");
    }
    for format in JEPSEN {
        let deep = "[".repeat(100_000);
        assert!(
            error(format, format!("{{:type {deep}"))
                .to_string()
                .contains("expected")
        );
        let discarded = "#_".repeat(100_000);
        assert!(error(format, discarded).to_string().contains("expected"));
        assert_eq!(
            error(format, b"{:type \"\xff\xff\"}").place(),
            Place::Line(1)
        );
    }
    let deep = format!("{{\"kingsnake\":1}}\n{{\"ops\":{}", "[".repeat(100_000));
    assert!(
        error(Format::Kingsnake, deep)
            .to_string()
            .contains("nesting")
    );
}
