//! Reads a script's lines; an error is a line's number and what to write there.

use kingsnake_datasets::workloads::WorkloadKind;

use super::orders;
use super::{Script, ScriptAct, ScriptStep, Verb};
use crate::sql::Statement;

/// More keys have no room in a word of bits.
const MOST_NAMES: usize = 64;
/// Each session is a connection and a thread.
const MOST_SESSIONS: usize = 64;

const STEPS: &str = "`begin`, `read x`, `write x`, `insert x`, `delete x`, `range x z`, `list x`, `append x`, `sql SELECT …`, `commit` or `abort`";

type Wrong = (usize, String);

/// What was declared so far.
#[derive(Default)]
struct Reader {
    about: String,
    breaks: Option<String>,
    /// Names of keys, and whether they have a row at first.
    names: Vec<(String, bool)>,
    sessions: Vec<String>,
    steps: Vec<ScriptStep>,
    orders: Vec<(usize, String)>,
    kind: Option<WorkloadKind>,
    setup: Vec<Statement>,
    teardown: Vec<Statement>,
    path: String,
}

pub(super) fn parse(text: &str, path: &str) -> Result<Script, Wrong> {
    let mut reader = Reader {
        path: path.to_owned(),
        ..Reader::default()
    };
    let mut n_lines = 0;
    for (at, line) in text.lines().enumerate() {
        n_lines = at + 1;
        let line = line.trim();
        if !line.is_empty() && !line.starts_with('#') {
            reader
                .line(at + 1, line)
                .map_err(|problem| (at + 1, problem))?;
        }
    }
    reader.close(n_lines.max(1))
}

impl Reader {
    fn line(&mut self, number: usize, line: &str) -> Result<(), String> {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        match word {
            "about" => rest.clone_into(&mut self.about),
            "breaks" => self.breaks = Some(rest.to_owned()),
            "rows" => self.declare(rest, true)?,
            "keys" => self.declare(rest, false)?,
            "setup" => self.setup.push(Statement::new(rest, &self.path, number)),
            "teardown" => self.teardown.push(Statement::new(rest, &self.path, number)),
            "order" => self.orders.push((number, rest.to_owned())),
            _ => self.step(number, line)?,
        }
        Ok(())
    }

    fn declare(&mut self, names: &str, has_row: bool) -> Result<(), String> {
        if !self.steps.is_empty() {
            return Err("keys are declared before the first step".to_owned());
        }
        for name in names.split_whitespace() {
            let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            if !name.starts_with(|it: char| it.is_ascii_alphabetic()) || !name.chars().all(is_plain)
            {
                return Err(format!(
                    "{name:?} is no name of a key; write a letter, then letters, digits and _"
                ));
            }
            if self.names.iter().any(|(it, _)| it == name) {
                return Err(format!("the key {name} is declared twice"));
            }
            self.names.push((name.to_owned(), has_row));
            self.names.sort();
        }
        if self.names.len() > MOST_NAMES {
            return Err(format!("a script has at most {MOST_NAMES} keys"));
        }
        Ok(())
    }

    fn step(&mut self, number: usize, line: &str) -> Result<(), String> {
        let not_a_line = || {
            format!(
                "{line:?} is no line of a script; write `SESSION: STEP`, where a step is {STEPS}, or one of `about`, `breaks`, `rows`, `keys` and `order`"
            )
        };
        let (who, what) = line.split_once(':').ok_or_else(not_a_line)?;
        let mut words = who.split_whitespace();
        let session = words.next().ok_or_else(not_a_line)?;
        let blocks = match (words.next(), words.next()) {
            (None, _) => false,
            (Some("blocks"), None) => true,
            _ => {
                return Err(format!(
                    "{who:?} is neither `SESSION` nor `SESSION blocks`, before the colon"
                ));
            }
        };
        let act = self.act(number, what.trim())?;
        let session = match self.sessions.iter().position(|it| it == session) {
            Some(session) => session,
            None if self.sessions.len() == MOST_SESSIONS => {
                return Err(format!("a script has at most {MOST_SESSIONS} sessions"));
            }
            None => {
                self.sessions.push(session.to_owned());
                self.sessions.len() - 1
            }
        };
        let is_open = self.is_open(session);
        let name = &self.sessions[session];
        match act {
            ScriptAct::Begin if is_open => {
                return Err(format!(
                    "{name} has a transaction already; `{name}: commit` or `{name}: abort` ends it"
                ));
            }
            ScriptAct::Commit | ScriptAct::Abort if !is_open => {
                return Err(format!("{name} has no transaction to end"));
            }
            _ => {}
        }
        self.steps.push(ScriptStep {
            session,
            act,
            blocks,
            line: number,
            text: what.trim().to_owned(),
        });
        Ok(())
    }

    /// Whether a session is within a transaction after the steps so far.
    fn is_open(&self, session: usize) -> bool {
        let last = self.steps.iter().rfind(|it| it.session == session);
        last.is_some_and(|it| !matches!(it.act, ScriptAct::Commit | ScriptAct::Abort))
    }

    fn act(&mut self, number: usize, text: &str) -> Result<ScriptAct, String> {
        if let Some(sql) = text.strip_prefix("sql ") {
            return self.sql(number, sql.trim().trim_end_matches(';'));
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let (verb, kind) = match words[..] {
            ["begin"] => return Ok(ScriptAct::Begin),
            ["commit"] => return Ok(ScriptAct::Commit),
            ["abort"] => return Ok(ScriptAct::Abort),
            ["read", _] => (Verb::Read, WorkloadKind::Rows),
            ["write", _] => (Verb::Write, WorkloadKind::Rows),
            ["insert", _] => (Verb::Insert, WorkloadKind::Rows),
            ["delete", _] => (Verb::Delete, WorkloadKind::Rows),
            ["range", _, _] => (Verb::Range, WorkloadKind::Rows),
            ["list", _] => (Verb::List, WorkloadKind::Lists),
            ["append", _] => (Verb::Append, WorkloadKind::Lists),
            _ => return Err(format!("{text:?} is no step; write {STEPS}")),
        };
        if *self.kind.get_or_insert(kind) != kind {
            return Err(format!(
                "{text:?}: a script is of rows (read, write, insert, delete, range) or of lists (list, append), not of both"
            ));
        }
        let one = self.name(words[1])?;
        let other = match words.get(2) {
            Some(other) => self.name(other)?,
            None => one,
        };
        if other < one {
            return Err(format!(
                "{text:?}: a range goes from the lesser name to the greater one, {} {}",
                words[2], words[1]
            ));
        }
        if kind == WorkloadKind::Lists && self.names[one].1 {
            return Err(format!(
                "{} is a list, which is empty at first: declare it with `keys`, not with `rows`",
                words[1]
            ));
        }
        Ok(ScriptAct::Operation(verb, one, other))
    }

    fn sql(&self, number: usize, sql: &str) -> Result<ScriptAct, String> {
        if !self.names.is_empty() {
            return Err(
                "a script is of keys or of SQL, not of both; `setup CREATE TABLE …` makes tables"
                    .to_owned(),
            );
        }
        let statement = Statement::new(sql, &self.path, number);
        if statement.changes() && !statement.deletes() && !statement.written_by(0).1 {
            return Err(
                "a statement that changes rows must set their columns: version = version + 1, writer = :writer"
                    .to_owned(),
            );
        }
        Ok(ScriptAct::Sql(statement))
    }

    fn name(&self, name: &str) -> Result<usize, String> {
        let found = self.names.iter().position(|(it, _)| it == name);
        found.ok_or_else(|| {
            format!(
                "{name} is no key; declare it before the first step with `rows {name}` (there is a row at first) or `keys {name}` (there is none)"
            )
        })
    }

    fn close(self, end: usize) -> Result<Script, Wrong> {
        if self.steps.is_empty() {
            return Err((
                end,
                format!("there is no step; write `SESSION: STEP`, where a step is {STEPS}"),
            ));
        }
        for (session, name) in self.sessions.iter().enumerate() {
            if self.is_open(session) {
                return Err((
                    end,
                    format!(
                        "the last transaction of {name} does not end; add `{name}: commit` or `{name}: abort`"
                    ),
                ));
            }
        }
        let orders = self.orders()?;
        if let Some((line, _)) = self.orders.first().filter(|_| self.has_sql()) {
            return Err((
                *line,
                "the tables of SQL are made once, so a script of SQL has one order".to_owned(),
            ));
        }
        if !self.setup.is_empty() && self.teardown.is_empty() {
            return Err((
                end,
                "what the set-up makes must be removed: add `teardown DROP TABLE …`".to_owned(),
            ));
        }
        let mut has_row = 0;
        for (at, (_, it)) in self.names.iter().enumerate() {
            has_row |= u64::from(*it) << at;
        }
        Ok(Script {
            about: self.about,
            breaks: self.breaks,
            sessions: self.sessions,
            steps: self.steps,
            orders,
            names: self.names.into_iter().map(|it| it.0).collect(),
            has_row,
            setup: self.setup,
            teardown: self.teardown,
            kind: self.kind.unwrap_or(WorkloadKind::Rows),
        })
    }

    fn has_sql(&self) -> bool {
        self.steps
            .iter()
            .any(|it| matches!(it.act, ScriptAct::Sql(_)))
    }

    /// The order of the file, or those of the `order` lines.
    fn orders(&self) -> Result<Vec<Vec<usize>>, Wrong> {
        let Some(&(first, _)) = self.orders.first() else {
            return Ok(vec![(0..self.steps.len()).collect()]);
        };
        if let Some(step) = self.steps.iter().find(|it| it.blocks) {
            return Err((
                step.line,
                format!(
                    "`blocks` is expected in the order of the file; line {first} gives another order"
                ),
            ));
        }
        let sessions: Vec<usize> = self.steps.iter().map(|it| it.session).collect();
        let mut orders = Vec::new();
        for (line, text) in &self.orders {
            if text == "all" {
                orders.extend(orders::all(&sessions).map_err(|problem| (*line, problem))?);
                continue;
            }
            let place = |name: &str| {
                let found = self.sessions.iter().position(|it| it == name);
                found.ok_or_else(|| (*line, format!("{name:?} is no session of this script; write `order all`, or a session for each step, such as `order a b b a`")))
            };
            let order: Vec<usize> = text
                .split_whitespace()
                .map(place)
                .collect::<Result<_, _>>()?;
            let steps = orders::given(&sessions, &order).ok_or_else(|| {
                let counts: Vec<String> = self
                    .sessions
                    .iter()
                    .enumerate()
                    .map(|(session, name)| {
                        let n = sessions.iter().filter(|&&it| it == session).count();
                        format!("{name} {n} times")
                    })
                    .collect();
                (
                    *line,
                    format!(
                        "an order names each session as often as it has steps: {}",
                        counts.join(", ")
                    ),
                )
            })?;
            orders.push(steps);
        }
        Ok(orders)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        let (line, problem) = parse(text, "f").err().unwrap();
        format!("{line}: {problem}")
    }

    #[test]
    fn a_bad_line_is_named_with_what_to_write() {
        for (text, expected) in [
            (
                "rows x\na: reads x",
                "2: \"reads x\" is no step; write `begin`",
            ),
            ("rows x\na read x", "2: \"a read x\" is no line of a script"),
            ("a: read x", "1: x is no key; declare it"),
            (
                "rows x\na: read x\na: begin",
                "3: a has a transaction already",
            ),
            ("rows x\na: commit", "2: a has no transaction to end"),
            (
                "rows x\na: read x\n",
                "2: the last transaction of a does not end",
            ),
            (
                "rows x y\na: range y x",
                "2: \"range y x\": a range goes from",
            ),
            (
                "rows x\nkeys l\na: read x\na: append l",
                "4: \"append l\": a script is of rows",
            ),
            (
                "rows l\na: append l",
                "2: l is a list, which is empty at first",
            ),
            ("rows x\na waits: read x", "2: \"a waits\" is neither"),
            ("rows x x", "1: the key x is declared twice"),
            ("rows 1", "1: \"1\" is no name of a key"),
            ("# nothing\n", "1: there is no step"),
            (
                "rows x\norder a b\na: read x\na: commit",
                "2: \"b\" is no session",
            ),
            (
                "rows x\norder a\na: read x\na: commit",
                "2: an order names each session as often as it has steps: a 2 times",
            ),
            (
                "rows x\norder all\na blocks: read x\na: commit",
                "3: `blocks` is expected in the order of the file",
            ),
        ] {
            let found = wrong(text);
            assert!(found.starts_with(expected), "{text:?}: {found}");
        }
    }

    #[test]
    fn names_are_sorted_so_that_ranges_of_names_are_ranges_of_keys() {
        let script = parse("keys q\nrows s p\na: range p s\na: commit", "f").unwrap();
        assert_eq!(script.names, ["p", "q", "s"]);
        assert_eq!(script.has_row, 0b101);
        assert_eq!(script.steps[0].act, ScriptAct::Operation(Verb::Range, 0, 2));
    }
}
