//! What `explain` adds to `check`: what was promised, typical causes, and of a satisfied history the order and how tight it is.

mod run;

use run::{Scratch, corpus, expect};

#[test]
fn a_violation_is_explained_at_every_level() {
    for (history, level, noticed, promised) in [
        (
            "none/lost-update.jsonl",
            "ser",
            "is lost",
            "Serializability promises",
        ),
        (
            "none/lost-update.jsonl",
            "si",
            "is lost",
            "Snapshot isolation promises",
        ),
        (
            "none/long-fork.jsonl",
            "pc",
            "events in opposite orders",
            "Prefix consistency promises",
        ),
        (
            "none/causality-violation.jsonl",
            "cc",
            "a consequence without its cause",
            "Causal consistency promises",
        ),
        (
            "none/fractured-read.jsonl",
            "ra",
            "half of",
            "Read atomic promises",
        ),
        (
            "none/aborted-read.jsonl",
            "rc",
            "rolled back",
            "Read committed promises",
        ),
    ] {
        let history = corpus(history);
        let level = ["--level", level];
        let args = |command| [&[command, history.as_str()][..], &level].concat();
        let short = expect(1, &args("check")).stdout;
        assert!(short.contains(noticed), "{level:?}: {short}");
        assert!(!short.contains("Typical causes"), "{level:?}: {short}");
        let long = expect(1, &args("explain")).stdout;
        for words in [
            noticed,
            promised,
            "What was promised",
            "Typical causes",
            "  - ",
        ] {
            assert!(long.contains(words), "{level:?}: {words}: {long}");
        }
    }
}

#[test]
fn a_satisfied_history_is_explained_by_its_order_and_how_tight_it_is() {
    let scratch = Scratch::new();
    let chain = scratch.put(
        "chain.jsonl",
        "{\"kingsnake\":1,\"initial\":0}\n{\"id\":1,\"session\":1,\"ops\":[[\"w\",\"x\",1]]}\n\
         {\"id\":2,\"session\":2,\"ops\":[[\"r\",\"x\",1],[\"w\",\"x\",2]]}\n\
         {\"id\":3,\"session\":3,\"ops\":[[\"r\",\"x\",2]]}\n",
    );
    for level in ["ser", "si", "pc", "rc", "ra", "cc"] {
        let said = expect(0, &["explain", &chain, "--level", level]).stdout;
        assert!(said.contains("How tight it is"), "{level}: {said}");
        assert!(said.contains("One order of"), "{level}: {said}");
    }
    let said = expect(0, &["explain", &chain]).stdout;
    assert!(said.contains("1  T1 (session 1): wrote x = 1"), "{said}");
    assert!(
        said.contains("All of its 3 pairs of transactions are forced"),
        "{said}"
    );
    let free = scratch.put(
        "free.jsonl",
        "{\"kingsnake\":1,\"initial\":0}\n{\"id\":1,\"session\":1,\"ops\":[[\"w\",\"x\",1]]}\n\
         {\"id\":2,\"session\":2,\"ops\":[[\"r\",\"x\",1]]}\n\
         {\"id\":3,\"session\":3,\"ops\":[[\"r\",\"x\",1]]}\n",
    );
    let said = expect(0, &["explain", &free]).stdout;
    assert!(
        said.contains("Of 3 pairs of transactions, 2 (66.7 %) are forced"),
        "{said}"
    );
    assert!(said.contains("1 (33.3 %) are free"), "{said}");
    assert!(
        said.contains("T2 and T3") || said.contains("T3 and T2"),
        "{said}"
    );
    let json = expect(0, &["explain", &free, "--json"]).stdout;
    assert!(
        json.contains("\"forced\": 2") && json.contains("\"free\": 1"),
        "{json}"
    );
    // `check` stays short.
    let said = expect(0, &["check", &free]).stdout;
    assert!(!said.contains("forced"), "{said}");
}

/// Expects these words of a history of two lines, in either order of them.
fn expect_told(level: &str, lines: [&str; 2], words: &str) {
    let scratch = Scratch::new();
    let [one, other] = lines;
    for [one, other] in [[one, other], [other, one]] {
        let text = format!("{{\"kingsnake\":1,\"initial\":0}}\n{one}\n{other}\n");
        let history = scratch.put("h.jsonl", text);
        let said = expect(1, &["explain", &history, "--level", level]).stdout;
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn a_lost_delete_is_told_from_a_lost_update_whatever_the_order_of_lines() {
    let delete = |commit| {
        format!(
            "{{\"id\":\"D\",\"session\":\"d\",\"begin\":10,\"commit\":{commit},\"ops\":[[\"r\",\"x\",0],[\"delete\",\"x\"]]}}"
        )
    };
    let update = "{\"id\":\"B\",\"session\":\"b\",\"begin\":20,\"commit\":200,\"ops\":[[\"r\",\"x\",0],[\"w\",\"x\",2]]}";
    let told = "The delete of x by D is lost: B wrote the row again without having seen it.";
    expect_told("si", [&delete(100), update], told);
    let told = "The update of x by B is lost: D deleted it without having seen it.";
    expect_told("si", [&delete(300), update], told);
}

#[test]
fn a_fractured_read_names_who_missed_what_whatever_the_order_of_lines() {
    let write = "{\"id\":\"W\",\"session\":\"w\",\"ops\":[[\"w\",\"x\",1],[\"w\",\"y\",1]]}";
    let read = "{\"id\":\"R\",\"session\":\"r\",\"ops\":[[\"r\",\"x\",1],[\"r\",\"y\",0]]}";
    let told = "R worked with half of W's changes: it saw one of them, but not that W wrote y = 1.";
    expect_told("ra", [write, read], told);
}
