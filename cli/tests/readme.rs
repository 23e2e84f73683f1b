//! The README's examples are what the program says.

use std::path::Path;
use std::process::Command;

/// Replaces what differs from run to run: the time at the end of a line.
fn steady(text: &str) -> String {
    let lines = text.lines().map(|line| match line.rsplit_once(" · ") {
        Some((rest, _)) => rest.to_owned(),
        None => line.trim_end().to_owned(),
    });
    let lines: Vec<String> = lines.collect();
    lines.join("\n").trim().to_owned()
}

#[test]
fn the_readme_shows_what_the_program_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let readme = std::fs::read_to_string(root.join("README.md")).expect("a README");
    let mut examples = 0;
    for block in readme.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap_or("");
        let (command, shown) = block.split_once('\n').expect("a command and its output");
        let words = command
            .strip_prefix("$ kingsnake ")
            .expect("a kingsnake command");
        let output = Command::new(env!("CARGO_BIN_EXE_kingsnake"))
            .current_dir(&root)
            .args(words.split_whitespace())
            .output()
            .expect("the program runs");
        let said = String::from_utf8(output.stdout).expect("UTF-8");
        assert_eq!(steady(shown), steady(&said), "{command}");
        examples += 1;
    }
    assert_eq!(examples, 2);
}
