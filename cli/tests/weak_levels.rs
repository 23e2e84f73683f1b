//! `check` at each weak level, with every option.

mod run;

use run::{Scratch, kingsnake};

/// A history that breaks a level, and the weaker level that it keeps.
const BROKEN: [(&str, &str, &str); 4] = [
    (
        "rc",
        "",
        r#"{"id":1,"session":1,"ops":[["w","x",1],["w","y",1]]}
{"id":2,"session":2,"ops":[["r","x",1],["r","y",0]]}"#,
    ),
    (
        "rc-so",
        "rc",
        r#"{"id":1,"session":1,"ops":[["w","x",1]]}
{"id":2,"session":1,"ops":[["r","x",0]]}"#,
    ),
    (
        "ra",
        "rc-so",
        r#"{"id":1,"session":1,"ops":[["w","x",1]]}
{"id":2,"session":2,"ops":[["r","x",0],["r","x",1]]}"#,
    ),
    (
        "cc",
        "ra",
        r#"{"id":1,"session":1,"ops":[["w","x",1]]}
{"id":2,"session":2,"ops":[["r","x",1]]}
{"id":3,"session":2,"ops":[["r","x",0]]}"#,
    ),
];

fn status(args: &[&str]) -> (Option<i32>, String) {
    let output = kingsnake(args).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), text)
}

#[test]
fn each_weak_level_is_kept_and_broken_with_its_exit_status() {
    let scratch = Scratch::new();
    for (level, weaker, transactions) in BROKEN {
        let text = format!("{{\"kingsnake\":1,\"initial\":0}}\n{transactions}\n");
        let file = scratch.put(&format!("{level}.jsonl"), text);
        let (code, said) = status(&["check", &file, "--level", level]);
        assert_eq!(code, Some(1), "{level}: {said}");
        if !weaker.is_empty() {
            let (code, said) = status(&["check", &file, "--level", weaker]);
            assert_eq!(code, Some(0), "{weaker}: {said}");
        }
    }
}

#[test]
fn what_is_expected_decides_the_exit_status_at_weak_levels() {
    let scratch = Scratch::new();
    for (level, _, transactions) in BROKEN {
        let text = format!("{{\"kingsnake\":1,\"initial\":0}}\n{transactions}\n");
        let file = scratch.put(&format!("{level}.jsonl"), text);
        let (code, said) = status(&["check", &file, "--level", level, "--anomalies", "G0"]);
        assert_eq!(code, Some(0), "{level}: {said}");
        // Elle's serializability knows no sessions.
        let args = ["check", &file, "--level", level, "--expect", "serializable"];
        let (code, said) = status(&args);
        let expected = i32::from(!["rc-so", "cc"].contains(&level));
        assert_eq!(code, Some(expected), "{level}: {said}");
    }
}

#[test]
fn session_order_off_is_a_switch_at_each_weak_level() {
    let scratch = Scratch::new();
    let text = "{\"kingsnake\":1,\"initial\":0}\n{\"id\":1,\"session\":1,\"ops\":[[\"w\",\"x\",1]]}\n{\"id\":2,\"session\":1,\"ops\":[[\"r\",\"x\",0]]}\n";
    let file = scratch.put("h.jsonl", text);
    for level in ["rc-so", "ra", "cc", "pc", "psi"] {
        let (code, said) = status(&["check", &file, "--level", level]);
        assert_eq!(code, Some(1), "{level}: {said}");
        let args = ["check", &file, "--level", level, "--session-order", "off"];
        let (code, said) = status(&args);
        assert_eq!(code, Some(0), "{level}: {said}");
    }
}

#[test]
fn all_anomalies_are_listed_at_a_weak_level() {
    let scratch = Scratch::new();
    let (level, _, transactions) = BROKEN[3];
    let text = format!("{{\"kingsnake\":1,\"initial\":0}}\n{transactions}\n");
    let file = scratch.put("h.jsonl", text);
    let output = kingsnake(&["check", &file, "--level", level, "--all"]).output();
    let said = String::from_utf8(output.expect("it runs").stdout).expect("stdout is UTF-8");
    assert!(said.contains("anomalies, the worst first"), "{said}");
    let expected = [
        "check",
        &file,
        "--level",
        level,
        "--expect",
        "read-committed",
    ];
    assert_eq!(status(&expected).0, Some(0));
}

#[test]
fn auto_says_which_weak_levels_hold() {
    let scratch = Scratch::new();
    let (_, _, transactions) = BROKEN[3];
    let text = format!("{{\"kingsnake\":1,\"initial\":0}}\n{transactions}\n");
    let file = scratch.put("h.jsonl", text);
    let args = [
        "check",
        "--json",
        "--level",
        "auto",
        &file,
        "--session-order",
        "on",
    ];
    let mut output = kingsnake(&args);
    let output = output.output().expect("it runs");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let rows = document["levels"].as_array().expect("levels");
    let verdict = |name: &str| {
        let row = rows.iter().find(|row| row["name"] == name);
        row.expect("every level has a row")["verdict"].clone()
    };
    assert_eq!(verdict("cc"), "violated");
    assert_eq!(verdict("ra"), "satisfied");
    assert_eq!(verdict("rc"), "satisfied");
    // Only the session breaks it, and without being told auto asks for these levels as for ser and si, without session order.
    let output = kingsnake(&["check", "--json", "--level", "auto", &file]).output();
    let document: serde_json::Value =
        serde_json::from_slice(&output.expect("it runs").stdout).expect("it is JSON");
    let rows = document["levels"].as_array().expect("levels");
    let row = rows.iter().find(|row| row["name"] == "cc");
    assert_eq!(row.expect("it has a row")["verdict"], "satisfied");
}
