//! `--device` and `kingsnake devices`: the same answers on a GPU as on the CPU, and a warning where there is none.
#![cfg(feature = "gpu")]

mod run;

use run::{Scratch, expect, generate, run};
use serde_json::Value;

/// A history with open keys, broken or not.
fn history(scratch: &Scratch, name: &str, more: &[&str]) -> String {
    let mut options = vec!["--txns", "400", "--keys", "60", "--clients", "6"];
    options.extend(more);
    generate(scratch, name, &options)
}

fn document(status: i32, history: &str, device: &str, level: &str) -> (Value, String) {
    let mut line = vec!["check", history, "--json", "--device", device];
    line.extend(["--level", level, "--reachability", "dense"]);
    let said = expect(status, &line);
    let document = serde_json::from_str(&said.stdout).expect("stdout is JSON");
    (document, said.stderr)
}

#[test]
fn a_check_on_a_gpu_says_what_a_check_on_the_cpu_says() {
    let scratch = Scratch::new();
    let valid = history(&scratch, "valid", &[]);
    let skew = history(&scratch, "skew", &["--fault", "write-skew"]);
    for (history, level, status) in [
        (&valid, "ser", 0),
        (&valid, "si", 0),
        (&skew, "ser", 1),
        (&skew, "si", 0),
    ] {
        let (cpu, _) = document(status, history, "cpu", level);
        let (gpu, stderr) = document(status, history, "gpu", level);
        println!(
            "gpu test: {level} through the command line on {}",
            gpu["stats"]["device"]["name"]
        );
        for field in ["verdict", "decider", "anomaly", "counterexample"] {
            assert_eq!(cpu[field], gpu[field], "{level}: {field}");
        }
        assert_eq!(cpu["stats"]["device"]["name"], "");
        assert_eq!(stderr, "");
        if gpu["stats"]["rounds"] != Value::Array(Vec::new()) {
            let device = &gpu["stats"]["device"];
            assert_eq!(gpu["stats"]["reachability"], "device");
            assert_eq!(device["why"], "--device gpu asked for it");
            assert!(device["dispatches"].as_u64() > Some(0), "{device}");
            assert!(device["bytes_up"].as_u64() > Some(0), "{device}");
        }
    }
}

#[test]
fn an_adapter_that_is_not_there_is_a_warning_and_the_cpu_answers() {
    let scratch = Scratch::new();
    let valid = history(&scratch, "valid", &[]);
    let (document, stderr) = document(0, &valid, "gpu:no such thing", "ser");
    assert!(stderr.contains("warning: no adapter"), "{stderr}");
    assert!(stderr.contains("the CPU computes instead"), "{stderr}");
    let device = &document["stats"]["device"];
    assert!(device["warning"].is_string(), "{device}");
    assert_eq!(document["plan"]["device"], "gpu:no such thing");
    let command = document["command"].as_str().unwrap_or_default();
    assert!(
        command.contains("--device 'gpu:no such thing'"),
        "{command}"
    );
}

#[test]
fn a_device_that_means_nothing_is_an_error() {
    for device in ["tpu", "gpu:", ""] {
        let said = run(&["check", "x", "--device", device]);
        assert_eq!(said.status, 2, "{device}");
        assert!(
            said.stderr.contains("gpu:<name or index>"),
            "{}",
            said.stderr
        );
    }
}

#[test]
fn devices_are_listed_with_their_limits_and_tested() {
    let said = expect(0, &["devices"]);
    assert_eq!(said.stderr, "");
    for word in ["cpu: ", "gpu:0 ", "buffers of ", "driver ", "self-test "] {
        assert!(said.stdout.contains(word), "{}", said.stdout);
    }
}
