//! Questions at the seams between engines: `datasets/seams/questions.tsv` has a history, a question, what is expected, and, where that
//! is not met yet, why: such a question is red.

mod run;

use run::{Said, Scratch, dataset, run};
use serde_json::Value;

/// The history whose questions take long without optimisation.
const SLOW: &str = "slow-";

struct Row {
    line: usize,
    history: String,
    question: String,
    expected: String,
    red: Option<String>,
}

fn rows() -> Vec<Row> {
    let text = std::fs::read_to_string(dataset("seams/questions.tsv")).expect("it can be read");
    let lines = text.lines().enumerate();
    let rows = lines.filter(|(_, line)| !line.starts_with('#'));
    let rows = rows.map(|(at, line)| {
        let mut fields = line.split('\t').map(str::to_owned);
        let mut field = || fields.next().unwrap_or_else(|| panic!("line {}", at + 1));
        let (history, question, expected) = (field(), field(), field());
        Row {
            line: at + 1,
            history,
            question,
            expected,
            red: fields.next(),
        }
    });
    rows.collect()
}

/// A question for each of the alternatives that an argument such as `ser|si` lists.
fn alternatives(question: &str) -> Vec<String> {
    let Some(word) = question.split(' ').find(|word| word.contains('|')) else {
        return vec![question.to_owned()];
    };
    let each = word.split('|');
    each.map(|it| question.replacen(word, it, 1)).collect()
}

fn ask(history: &str, question: &str) -> Said {
    let (scratch, mut args) = (Scratch::new(), question.split(' ').collect::<Vec<_>>());
    args.insert(1, history);
    let converted = scratch.path("converted");
    if args[0] == "convert" {
        args.insert(2, &converted);
    }
    run(&args)
}

/// Whether `--level auto` gives each of these levels the verdict.
fn auto_says(history: &str, question: &str, levels: &str, verdict: &str) -> Result<(), String> {
    let said = ask(history, &format!("{question} --json -q"));
    let document: Value = serde_json::from_str(&said.stdout)
        .map_err(|_| format!("no document: {}{}", said.stdout, said.stderr))?;
    let all = document["levels"].as_array().cloned().unwrap_or_default();
    for name in levels.split(' ') {
        let level = all.iter().find(|level| level["name"] == name);
        let found = level.map_or(&Value::Null, |level| &level["verdict"]);
        if *found != verdict {
            return Err(format!("{name} is {found} and not {verdict}"));
        }
    }
    Ok(())
}

/// Whether a counterexample of a level is refused at another, which holds.
fn is_disbelieved(history: &str, question: &str, weaker: &str) -> Result<(), String> {
    let scratch = Scratch::new();
    let document = scratch.path("document.json");
    let said = ask(history, &format!("{question} -q --json={document}"));
    if said.status != 1 {
        return Err(format!("exit status {}: {}", said.status, said.stderr));
    }
    let said = run(&["verify", history, &document, "--level", weaker]);
    match said.status {
        1 => Ok(()),
        other => Err(format!("verify: exit status {other}: {}", said.stdout)),
    }
}

/// Whether a question is answered as expected; else what came.
fn meets(history: &str, question: &str, expected: &str) -> Result<(), String> {
    let (kind, rest) = expected.split_once(' ').unwrap_or((expected, ""));
    match kind {
        "holds" => return auto_says(history, question, rest, "satisfied"),
        "breaks" => return auto_says(history, question, rest, "violated"),
        "disbelieved" => {
            let (check, weaker) = question.split_once(", verify at ").expect("a level");
            return is_disbelieved(history, check, weaker);
        }
        _ => {}
    }
    let said = ask(history, question);
    let words = format!("{}{}", said.stdout, said.stderr);
    let is_met = match kind {
        "satisfied" | "written" => said.status == 0,
        "violated" => said.status == 1,
        "refused:" => said.status == 2 && words.contains(rest),
        "silent:" => !words.contains(rest),
        other => panic!("{other} is no expectation"),
    };
    let is_met = is_met && !words.contains("internal error");
    let shown = || format!("exit status {}: {words}", said.status);
    is_met.then_some(()).ok_or_else(shown)
}

/// Asks all questions; returns which are not met yet, or are met and still listed as red.
fn answer_all(is_slow: bool) -> String {
    let (mut n_met, mut wrong, mut told) = (0, Vec::new(), String::new());
    for row in rows() {
        if row.history.starts_with(SLOW) != is_slow {
            continue;
        }
        let history = dataset(&format!("seams/{}", row.history));
        let mut failed = Vec::new();
        for question in alternatives(&row.question) {
            match meets(&history, &question, &row.expected) {
                Ok(()) => n_met += 1,
                Err(came) => failed.push(format!("{question}: {came}")),
            }
        }
        let Row { line, expected, .. } = &row;
        let at = format!("line {line}, {}", row.history);
        match (&row.red, failed.is_empty()) {
            (None, true) => {}
            (Some(why), false) => told += &format!("{at}: not met yet: {why}: {failed:#?}\n"),
            (Some(why), true) => told += &format!("{at} is met: remove \"{why}\"\n"),
            (None, false) => wrong.push(format!("{at}: expected {expected}: {failed:#?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    format!("{told}{n_met} questions are answered as expected")
}

#[test]
fn every_question_at_a_seam_is_answered_as_expected() {
    println!("{}", answer_all(false));
}

/// Minutes without optimisation.
#[test]
#[ignore = "make long"]
fn slow_questions_at_a_seam_are_answered_as_expected() {
    println!("{}", answer_all(true));
}

#[test]
fn every_history_at_a_seam_is_asked_about() {
    let rows = rows();
    for entry in std::fs::read_dir(dataset("seams")).expect("it can be listed") {
        let name = entry.expect("it can be read").file_name();
        let name = name.to_str().expect("the name is UTF-8");
        let is_asked = rows.iter().any(|row| row.history == name);
        assert!(is_asked || name == "questions.tsv", "{name}");
    }
}
