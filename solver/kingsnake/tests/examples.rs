//! The example programs run and print what they should.

use std::path::Path;
use std::process::Command;

fn said(name: &str) -> String {
    let tests = std::env::current_exe().expect("this program has a path");
    let target = tests.ancestors().nth(2).expect("a directory of builds");
    let program = target.join("examples").join(name);
    assert!(
        Path::new(&program).exists(),
        "{} is not built",
        program.display()
    );
    let output = Command::new(program).output().expect("it runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_test_is_checked_in_its_own_process() {
    let said = said("in_process");
    assert!(said.contains("locked: true: satisfied"), "{said}");
}

#[test]
fn a_back_end_of_ones_own_decides() {
    assert!(said("own_backend").starts_with("violated"));
}

#[test]
fn a_device_of_ones_own_computes() {
    assert!(said("own_device").starts_with("violated"));
}
