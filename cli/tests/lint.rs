//! Mistakes of the log are told as such, and a log without them is left alone.

mod run;

use std::io::Write;
use std::process::Stdio;

use run::{Scratch, corpus, expect, kingsnake};

fn remarks(body: &str) -> String {
    let scratch = Scratch::new();
    let history = scratch.put("h.jsonl", body);
    expect(1, &["lint", &history]).stdout
}

#[test]
fn each_mistake_is_named_with_what_to_write() {
    for (body, words) in [
        ("{\"kingsnake\":1}\n", "there is no transaction"),
        (
            "{\"kingsnake\":1}\n{\"id\":1,\"session\":1,\"ops\":[[\"w\",\"x\",1]]}\n",
            "nothing is read",
        ),
        (
            "{\"kingsnake\":1}\n{\"id\":1,\"session\":1,\"ops\":[[\"r\",\"x\",0],[\"r\",\"y\",0]]}\n",
            "{\"kingsnake\":1,\"initial\":0}",
        ),
        (
            "{\"kingsnake\":1,\"initial\":0}\n{\"id\":1,\"session\":1,\"ops\":[[\"w\",\"x\",1]]}\n\
             {\"id\":2,\"session\":2,\"ops\":[[\"r\",\"x\",\"1\"]]}\n",
            "1 and \"1\" both occur",
        ),
        (
            "{\"kingsnake\":1,\"initial\":0}\n{\"id\":1,\"session\":1,\"ops\":[[\"w\",\"x\",1]]}\n\
             {\"id\":2,\"session\":2,\"ops\":[[\"w\",\"x\",1],[\"r\",\"y\",0]]}\n",
            "written by several transactions",
        ),
        (
            "{\"kingsnake\":1,\"initial\":0}\n\
             {\"id\":1,\"session\":1,\"begin\":10,\"commit\":30,\"ops\":[[\"r\",\"x\",0]]}\n\
             {\"id\":2,\"session\":1,\"begin\":20,\"commit\":40,\"ops\":[[\"r\",\"x\",0]]}\n",
            "one transaction at a time",
        ),
        (
            "{\"kingsnake\":1,\"initial\":0}\n\
             {\"id\":1,\"session\":1,\"begin\":1700000000000,\"commit\":1700000000009,\"ops\":[[\"r\",\"x\",0]]}\n",
            "milliseconds since 1970",
        ),
        (
            "{\"kingsnake\":1,\"initial\":0}\n\
             {\"id\":1,\"session\":1,\"begin\":1,\"commit\":2,\"ops\":[[\"r\",\"x\",0]]}\n\
             {\"id\":2,\"session\":2,\"begin\":3,\"commit\":4,\"ops\":[[\"r\",\"x\",0]]}\n",
            "no two transactions overlap",
        ),
    ] {
        let said = remarks(body);
        assert!(said.contains(words), "{words}: {said}");
        assert_eq!(
            said.lines().count(),
            1,
            "one remark for one mistake: {said}"
        );
    }
}

#[test]
fn a_log_without_mistakes_is_left_alone() {
    let said = expect(
        0,
        &["lint", &corpus("strong-session-ser/bank-transfer.jsonl")],
    );
    assert!(said.stdout.contains("nothing to remark"), "{}", said.stdout);
}

#[cfg(unix)]
#[test]
fn a_history_may_come_from_stdin_and_a_level_by_another_name() {
    let text = std::fs::read(corpus("none/lost-update.jsonl")).expect("the corpus is there");
    for level in ["serializable", "snapshot-isolation"] {
        let mut child = kingsnake(&["check", "-", "--level", level])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let mut stdin = child.stdin.take().expect("stdin is a pipe");
        stdin.write_all(&text).expect("it reads");
        drop(stdin);
        let output = child.wait_with_output().expect("the binary ends");
        assert_eq!(output.status.code(), Some(1), "{level}");
    }
}
