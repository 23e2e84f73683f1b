//! Problems of a study: a verdict other than the known one, two answers to one question, a check that fails.

use std::collections::{BTreeMap, HashMap};

use kingsnake_text::count;

use crate::cell::Cell;
use crate::design::Study;
use crate::row::{Row, RowOutcome};

/// A problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StudyProblem {
    /// Another verdict than the right one.
    Wrong {
        /// The right one.
        expected: &'static str,
        /// The one given.
        given: String,
        /// How to reproduce it.
        command: String,
    },
    /// Two verdicts on the same history at the same level.
    Disagreement {
        /// Who says satisfied.
        satisfied: String,
        /// Who says violated.
        violated: String,
    },
    /// Pruning on a device left other constraints than on another, after the same round of the same check.
    Rounds {
        /// The one.
        one: String,
        /// The other.
        other: String,
    },
    /// Checks that ended without an answer, for one reason.
    Failed {
        /// Their messages.
        reason: String,
        /// How to reproduce the first of them.
        command: String,
        /// How many there are.
        n_cells: usize,
    },
}

impl StudyProblem {
    /// Whether an answer is wrong, rather than missing.
    pub fn is_wrong(&self) -> bool {
        !matches!(self, StudyProblem::Failed { .. })
    }

    /// In a sentence, and the commands that show it.
    pub fn words(&self) -> (String, Vec<&str>) {
        match self {
            StudyProblem::Wrong {
                expected,
                given,
                command,
            } => (
                format!("WRONG VERDICT: {given}, though {expected} is known to be right"),
                vec![command],
            ),
            StudyProblem::Disagreement {
                satisfied,
                violated,
            } => (
                "DISAGREEMENT: satisfied by the first and violated by the second".to_owned(),
                vec![satisfied, violated],
            ),
            StudyProblem::Rounds { one, other } => (
                "DISAGREEMENT: pruning leaves other constraints on one device than on the other"
                    .to_owned(),
                vec![one, other],
            ),
            StudyProblem::Failed {
                reason,
                command,
                n_cells,
            } => {
                let cells = count(*n_cells, "cell");
                (format!("FAILED ({cells}): {reason}"), vec![command])
            }
        }
    }
}

/// Every problem of these rows.
pub fn problems(study: &Study, rows: &[(Cell, Row)]) -> Vec<StudyProblem> {
    let mut found = Vec::new();
    let mut failed: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    let mut answers: HashMap<(usize, u32, String), [Option<&Row>; 2]> = HashMap::new();
    for (cell, row) in rows {
        let point = &study.points[cell.point];
        if row.outcome == RowOutcome::Failed {
            failed.entry(&row.reason).or_default().push(row);
        }
        if row.outcome != RowOutcome::Answered {
            continue;
        }
        if let Some(expected) = point.expect
            && expected.word() != row.verdict
        {
            found.push(StudyProblem::Wrong {
                expected: expected.word(),
                given: row.verdict.clone(),
                command: row.command.clone(),
            });
        }
        let question = (point.source, cell.seed, question(row));
        let both = answers.entry(question).or_default();
        let mine = usize::from(row.verdict != "satisfied");
        if both[mine].is_none() {
            both[mine] = Some(row);
            if let [Some(satisfied), Some(violated)] = *both {
                found.push(StudyProblem::Disagreement {
                    satisfied: satisfied.command.clone(),
                    violated: violated.command.clone(),
                });
            }
        }
    }
    found.extend(unlike_rounds(study, rows));
    found.extend(
        failed
            .into_iter()
            .map(|(reason, rows)| StudyProblem::Failed {
                reason: reason.to_owned(),
                command: rows[0].command.clone(),
                n_cells: rows.len(),
            }),
    );
    found
}

/// The same check of the same history leaves the same constraints after every round, whatever computed reachability.
fn unlike_rounds(study: &Study, rows: &[(Cell, Row)]) -> Vec<StudyProblem> {
    let mut found = Vec::new();
    let mut first: HashMap<(usize, u32, u32, Vec<String>), &Row> = HashMap::new();
    for (cell, row) in rows {
        if row.outcome != RowOutcome::Answered || row.device().is_empty() {
            continue;
        }
        let point = &study.points[cell.point];
        let check = without_device(&point.check);
        let one = first
            .entry((point.source, cell.seed, cell.repeat, check))
            .or_insert(row);
        let open = |row: &Row| {
            row.stats
                .rounds
                .iter()
                .map(|it| it.open)
                .collect::<Vec<_>>()
        };
        if open(one) != open(row) {
            found.push(StudyProblem::Rounds {
                one: one.command.clone(),
                other: row.command.clone(),
            });
        }
    }
    found
}

fn without_device(check: &[String]) -> Vec<String> {
    let mut words = Vec::new();
    let mut all = check.iter();
    while let Some(word) = all.next() {
        if word == "--device" {
            all.next();
        } else if !word.starts_with("--device=") {
            words.push(word.clone());
        }
    }
    words
}

/// The part of the plan that the verdict depends on. What is not in this list is a technique, and changes no verdict.
fn question(row: &Row) -> String {
    const PARTS: [&str; 7] = [
        "level",
        "session-order",
        "real-time",
        "clock-drift",
        "times",
        "version-order",
        "version-order-share",
    ];
    let part = |name: &str| {
        row.plan
            .get(name)
            .map_or(String::new(), ToString::to_string)
    };
    let mut parts: Vec<String> = PARTS.iter().map(|name| part(name)).collect();
    // Which versions a share keeps is drawn with the check's seed.
    if !["", "\"0\"", "\"1\""].contains(&part("version-order-share").as_str()) {
        parts.push(row.repeat.to_string());
    }
    parts.join("|")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blame::Page;
    use crate::design::{Override, design};
    use crate::recipe::read;
    use crate::rules::{RuleRefusal, Rules};

    const TWO: &str = r#"
name = "two"
title = "Two back ends"
check = ["--backend", "{backend}"]
[parameters]
backend = ""
[[workload]]
name = "w"
corpus = "strong-session-ser/blind-writes.jsonl"
[[experiment]]
name = "e"
title = "e"
[[experiment.axis]]
name = "back end"
parameter = "backend"
values = ["cadical/propagator", "search/backtrack"]
"#;

    struct Anything;

    impl Rules for Anything {
        fn accepts(&self, _: &[String]) -> Result<Option<String>, RuleRefusal> {
            Ok(None)
        }
    }

    fn rows(study: &Study, verdicts: [&str; 2], sessions: [&str; 2]) -> Vec<(Cell, Row)> {
        let each = study.cells().zip(verdicts.into_iter().zip(sessions));
        each.map(|(cell, (verdict, sessions))| {
            let outcome = if verdict == "unknown" {
                "time"
            } else {
                "answered"
            };
            let row = serde_json::json!({
                "cell": "", "history": "w", "check": [], "seed": 0, "repeat": 0,
                "outcome": outcome, "verdict": verdict, "wall_seconds": 0.0,
                "peak_memory_bytes": null, "plan": {"session-order": sessions}, "command": verdict,
            });
            (cell, serde_json::from_value(row).unwrap())
        })
        .collect()
    }

    #[test]
    fn two_answers_to_one_question_are_a_disagreement() {
        let page = Page {
            name: "two.toml",
            text: TWO,
        };
        let recipe = read(page).unwrap();
        let study = design(&recipe, page, &Anything, "".as_ref(), &Override::default()).unwrap();
        let found = |verdicts, sessions| problems(&study, &rows(&study, verdicts, sessions));
        assert_eq!(
            found(["violated", "satisfied"], ["on", "on"]),
            [StudyProblem::Disagreement {
                satisfied: "satisfied".to_owned(),
                violated: "violated".to_owned(),
            }]
        );
        assert_eq!(found(["satisfied", "satisfied"], ["on", "on"]), []);
        assert_eq!(found(["satisfied", "unknown"], ["on", "on"]), []);
        // Another question may have another answer.
        assert_eq!(found(["violated", "satisfied"], ["on", "off"]), []);
    }

    #[test]
    fn two_devices_that_leave_other_constraints_disagree() {
        let page = Page {
            name: "two.toml",
            text: TWO,
        };
        let mut recipe = read(page).unwrap();
        recipe.experiments[0].axes.clear();
        crate::beside::put_beside(
            &mut recipe,
            "--device",
            &["cpu".to_owned(), "gpu".to_owned()],
        );
        let over = Override::default();
        let study = design(&recipe, page, &Anything, "".as_ref(), &over).unwrap();
        let cells: Vec<Cell> = study.cells().collect();
        assert_eq!(cells.len(), 2);
        let row = |device: &str, open: u64| {
            let row = serde_json::json!({
                "cell": "", "history": "w", "check": [], "seed": 0, "repeat": 0,
                "outcome": "answered", "verdict": "satisfied", "wall_seconds": 0.0,
                "peak_memory_bytes": null, "plan": {"device": device}, "command": device,
                "stats": {"seconds": 1.0, "rounds": [{"new_edges": 1, "open": open, "seconds": 0.0}]},
            });
            serde_json::from_value::<Row>(row).unwrap()
        };
        let found = |gpu| {
            let rows = [(cells[0], row("cpu", 7)), (cells[1], row("gpu", gpu))];
            problems(&study, &rows)
        };
        assert_eq!(found(7), []);
        assert!(matches!(found(6)[..], [StudyProblem::Rounds { .. }]));
    }
}
