//! A user's own statements with parameters, from a file of SQL whose comments say what belongs together.
//!
//! ```sql
//! -- setup
//! CREATE TABLE account (id BIGINT PRIMARY KEY, balance BIGINT, version BIGINT DEFAULT 0, writer BIGINT DEFAULT 0);
//! -- transaction weight 2
//! -- let a in 1..10
//! SELECT id, version, writer FROM account WHERE id = :a;
//! -- teardown
//! DROP TABLE account;
//! ```
//!
//! The columns `version` and `writer` of what a statement returns tell which versions were read and written: every writing
//! statement has a number of its own for `writer`, and adds one to `version`.

use std::path::Path;

use kingsnake_history::rng::Rng;
use thiserror::Error;

/// The most bytes of a file.
const MOST_SQL: u64 = 16 << 20;

/// Statements of a file.
#[derive(Debug, Default)]
pub struct SqlFile {
    path: String,
    pub(crate) setup: Vec<Statement>,
    pub(crate) teardown: Vec<Statement>,
    transactions: Vec<SqlTransaction>,
}

#[derive(Debug)]
struct SqlTransaction {
    weight: usize,
    parameters: Vec<Parameter>,
    statements: Vec<Statement>,
}

#[derive(Debug)]
struct Parameter {
    name: String,
    values: Values,
    except: Option<String>,
}

#[derive(Debug)]
enum Values {
    Numbers(i64, i64),
    Words(Vec<String>),
}

/// A statement, whose parameters have values but for `:writer`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    pub(crate) text: String,
    /// Where it is: the file and the line.
    pub(crate) place: String,
}

/// The parameter that stands for the number of the write.
const WRITER: &str = "writer";

/// Why a file is not of statements.
#[derive(Debug, Error)]
pub enum BadSql {
    /// It cannot be read.
    #[error("cannot read {0}: {1}")]
    Io(String, std::io::Error),
    /// A line is not as it should be: the file, the line, what is wrong and what to write.
    #[error("{0}, line {1}: {2}")]
    Line(String, usize, String),
}

impl Statement {
    pub(crate) fn new(text: &str, path: &str, line: usize) -> Self {
        Statement {
            text: text.to_owned(),
            place: format!("{path}, line {line}"),
        }
    }

    /// The first word, in capitals.
    fn verb(&self) -> String {
        let word = self.text.split(|it: char| !it.is_ascii_alphabetic()).next();
        word.unwrap_or("").to_ascii_uppercase()
    }

    /// Whether it changes rows.
    pub(crate) fn changes(&self) -> bool {
        matches!(
            &*self.verb(),
            "INSERT" | "UPDATE" | "DELETE" | "REPLACE" | "MERGE"
        )
    }

    pub(crate) fn deletes(&self) -> bool {
        self.verb() == "DELETE"
    }

    /// The table that it is about: what follows the first of these words.
    pub(crate) fn table(&self) -> &str {
        let mut words = self.text.split_whitespace();
        let is_before = |word: &str| {
            ["from", "into", "update"]
                .iter()
                .any(|it| word.eq_ignore_ascii_case(it))
        };
        while let Some(word) = words.next() {
            if is_before(word) {
                let table = words.next().unwrap_or("row");
                return table.split(['(', ';', ',']).next().unwrap_or(table);
            }
        }
        "row"
    }

    /// With a number for `:writer`; whether it is there.
    pub(crate) fn written_by(&self, number: i64) -> (String, bool) {
        let mut is_there = false;
        let text = replace(&self.text, |name| {
            is_there |= name == WRITER;
            (name == WRITER).then(|| number.to_string())
        });
        (text, is_there)
    }
}

/// Puts values in place of `:name`, except within quotes and after another colon.
fn replace(text: &str, mut value: impl FnMut(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let (mut quote, mut before) = (None, ' ');
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let after = &rest[letter.len_utf8()..];
        match quote {
            Some(open) if open == letter => quote = None,
            None if matches!(letter, '\'' | '"' | '`') => quote = Some(letter),
            _ => {}
        }
        if quote.is_none() && letter == ':' && before != ':' {
            let end = after
                .find(|it: char| !it.is_ascii_alphanumeric() && it != '_')
                .unwrap_or(after.len());
            if let Some(value) = value(&after[..end]) {
                out.push_str(&value);
                rest = &after[end..];
                before = ' ';
                continue;
            }
        }
        out.push(letter);
        before = letter;
        rest = after;
    }
    out
}

/// Where a line belongs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Nowhere,
    Setup,
    Transaction,
    Teardown,
}

impl SqlFile {
    /// Reads a file.
    pub fn open(path: &str) -> Result<Self, BadSql> {
        let text = kingsnake_datasets::bounded::read_text(Path::new(path), MOST_SQL)
            .map_err(|error| BadSql::Io(path.to_owned(), error))?;
        Self::parse(&text, path)
    }

    /// Reads statements; errors name the path.
    pub fn parse(text: &str, path: &str) -> Result<Self, BadSql> {
        let wrong = |line, problem| BadSql::Line(path.to_owned(), line, problem);
        let mut file = SqlFile {
            path: path.to_owned(),
            ..SqlFile::default()
        };
        let mut part = Part::Nowhere;
        let mut open: Option<(usize, String)> = None;
        let mut n_lines = 0;
        for (at, line) in text.lines().enumerate() {
            n_lines = at + 1;
            let line = line.trim();
            if let Some(comment) = line.strip_prefix("--") {
                if open.is_none() {
                    file.comment(comment.trim(), &mut part)
                        .map_err(|problem| wrong(at + 1, problem))?;
                }
                continue;
            }
            if line.is_empty() {
                continue;
            }
            let (_, statement) = open.get_or_insert((at + 1, String::new()));
            if !statement.is_empty() {
                statement.push(' ');
            }
            statement.push_str(line);
            if let Some(whole) = statement.strip_suffix(';') {
                let whole = whole.to_owned();
                let (from, _) = open.take().unwrap_or_default();
                file.statement(Statement::new(&whole, path, from), part)
                    .map_err(|problem| wrong(from, problem))?;
            }
        }
        if let Some((from, _)) = open {
            return Err(wrong(
                from,
                "this statement does not end; put a `;` at the end of its last line".to_owned(),
            ));
        }
        file.close()
            .map_err(|problem| wrong(n_lines.max(1), problem))?;
        Ok(file)
    }

    fn comment(&mut self, comment: &str, part: &mut Part) -> Result<(), String> {
        let words: Vec<&str> = comment.split_whitespace().collect();
        match words[..] {
            ["setup"] => *part = Part::Setup,
            ["teardown"] => *part = Part::Teardown,
            ["transaction", ref rest @ ..] => {
                *part = Part::Transaction;
                let weight = match rest {
                    [] => 1,
                    ["weight", number] => number
                        .parse()
                        .ok()
                        .filter(|it| (1..=1_000_000).contains(it))
                        .ok_or_else(|| format!("{number:?} is no weight; write a number from 1"))?,
                    _ => {
                        return Err(format!(
                            "{comment:?}: write `-- transaction` or `-- transaction weight 3`"
                        ));
                    }
                };
                self.transactions.push(SqlTransaction {
                    weight,
                    parameters: Vec::new(),
                    statements: Vec::new(),
                });
            }
            ["let", ref rest @ ..] => {
                let parameter = parameter(rest).ok_or_else(|| {
                    format!("{comment:?}: write `-- let a in 1..10`, `-- let b in 1..10 except a` or `-- let c in red green blue`")
                })?;
                let Some(transaction) = self.transactions.last_mut() else {
                    return Err(
                        "a parameter belongs to a transaction; write `-- transaction` before it"
                            .to_owned(),
                    );
                };
                let is_known = |name: &str| transaction.parameters.iter().any(|it| it.name == name);
                if is_known(&parameter.name) || parameter.name == WRITER {
                    return Err(format!("the name {} is taken", parameter.name));
                }
                if let Some(other) = parameter.except.as_deref().filter(|it| !is_known(it)) {
                    return Err(format!(
                        "{other} is no parameter of this transaction so far"
                    ));
                }
                transaction.parameters.push(parameter);
            }
            _ => {}
        }
        Ok(())
    }

    fn statement(&mut self, statement: Statement, part: Part) -> Result<(), String> {
        match part {
            Part::Nowhere => {
                return Err(
                    "a statement belongs somewhere; write `-- setup`, `-- transaction` or `-- teardown` before it"
                        .to_owned(),
                );
            }
            Part::Setup => self.setup.push(statement),
            Part::Teardown => self.teardown.push(statement),
            Part::Transaction => {
                let Some(transaction) = self.transactions.last_mut() else {
                    return Ok(());
                };
                let mut unknown = None;
                replace(&statement.text, |name| {
                    let is_known = name.is_empty()
                        || name == WRITER
                        || transaction.parameters.iter().any(|it| it.name == name);
                    if !is_known {
                        unknown.get_or_insert(name.to_owned());
                    }
                    None
                });
                if let Some(name) = unknown {
                    return Err(format!(
                        ":{name} has no values; write `-- let {name} in 1..10` after `-- transaction`"
                    ));
                }
                if statement.changes() && !statement.deletes() && !statement.written_by(0).1 {
                    return Err(
                        "a statement that changes rows must set their columns: version = version + 1, writer = :writer"
                            .to_owned(),
                    );
                }
                transaction.statements.push(statement);
            }
        }
        Ok(())
    }

    fn close(&self) -> Result<(), String> {
        if self.transactions.iter().all(|it| it.statements.is_empty()) {
            return Err(
                "there is no transaction; write `-- transaction`, then its statements".to_owned(),
            );
        }
        if !self.setup.is_empty() && self.teardown.is_empty() {
            return Err(
                "what the set-up makes must be removed: write `-- teardown`, then DROP TABLE …;"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// The file's name.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// One transaction's statements, with values for their parameters.
    pub(crate) fn transaction(&self, rng: &mut Rng) -> Vec<Statement> {
        let total: usize = self.transactions.iter().map(|it| it.weight).sum();
        let mut drawn = rng.below(total.max(1));
        let mut chosen = &self.transactions[0];
        for transaction in &self.transactions {
            chosen = transaction;
            if drawn < transaction.weight {
                break;
            }
            drawn -= transaction.weight;
        }
        let mut values: Vec<(&str, String)> = Vec::new();
        for parameter in &chosen.parameters {
            let other = parameter.except.as_deref();
            let other = values.iter().find(|it| Some(it.0) == other);
            let other = other.map(|it| it.1.clone());
            let value = parameter.values.draw(other.as_deref(), rng);
            values.push((&parameter.name, value));
        }
        let bind = |statement: &Statement| Statement {
            text: replace(&statement.text, |name| {
                let found = values.iter().find(|it| it.0 == name);
                found.map(|it| it.1.clone())
            }),
            place: statement.place.clone(),
        };
        chosen.statements.iter().map(bind).collect()
    }
}

/// `a in 1..10`, `b in 1..10 except a`, `c in red green blue`.
fn parameter(words: &[&str]) -> Option<Parameter> {
    let [name, "in", rest @ ..] = words else {
        return None;
    };
    let is_word = |word: &str| {
        let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '_';
        !word.is_empty() && word.chars().all(is_plain)
    };
    let (values, except) = match rest {
        [values @ .., "except", other] => (values, Some((*other).to_owned())),
        values => (values, None),
    };
    let values = match values {
        [range] if range.contains("..") => {
            let (low, high) = range.split_once("..")?;
            let (low, high) = (low.parse().ok()?, high.parse().ok()?);
            // One may be excepted.
            let n_values = i64::checked_sub(high, low)?;
            (n_values >= i64::from(except.is_some())).then_some(Values::Numbers(low, high))?
        }
        words
            if words.len() > usize::from(except.is_some())
                && words.iter().all(|it| is_word(it)) =>
        {
            Values::Words(words.iter().map(|it| (*it).to_owned()).collect())
        }
        _ => return None,
    };
    is_word(name).then(|| Parameter {
        name: (*name).to_owned(),
        values,
        except,
    })
}

impl Values {
    /// A value as it stands in a statement, other than another one's.
    fn draw(&self, other: Option<&str>, rng: &mut Rng) -> String {
        // A word may be listed twice, so this must end.
        let mut drawn = String::new();
        for _ in 0..1_000 {
            drawn = match self {
                Values::Numbers(low, high) => {
                    let span = usize::try_from(high - low).unwrap_or(usize::MAX - 1);
                    (low + rng.below(span + 1) as i64).to_string()
                }
                Values::Words(words) => format!("'{}'", words[rng.below(words.len())]),
            };
            if other != Some(&drawn) {
                break;
            }
        }
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_put_in_place_outside_of_quotes_and_casts() {
        let text = "-- transaction\n-- let a in 1..3\n-- let b in 1..3 except a\n-- let c in red\n\
                    SELECT ':a', x::text, :c\nFROM t WHERE id IN (:a, :b);";
        let file = SqlFile::parse(text, "f.sql").unwrap();
        let mut rng = Rng::new(1);
        for _ in 0..50 {
            let [statement] = &file.transaction(&mut rng)[..] else {
                panic!("one statement");
            };
            let numbers = statement
                .text
                .strip_prefix("SELECT ':a', x::text, 'red' FROM t WHERE id IN (");
            let (a, b) = numbers
                .unwrap()
                .trim_end_matches(')')
                .split_once(", ")
                .unwrap();
            assert_ne!(a, b);
            assert_eq!(statement.table(), "t");
        }
        let statement = Statement::new("update acc set writer = :writer", "f", 1);
        assert!(statement.changes() && statement.table() == "acc");
        assert_eq!(
            statement.written_by(7),
            ("update acc set writer = 7".to_owned(), true)
        );
    }

    #[test]
    fn a_bad_line_is_named_with_what_to_write() {
        for (text, expected) in [
            ("SELECT 1;", "f.sql, line 1: a statement belongs somewhere"),
            (
                "-- transaction\nSELECT 1",
                "f.sql, line 2: this statement does not end",
            ),
            (
                "-- transaction\nSELECT :a;",
                "f.sql, line 2: :a has no values; write `-- let a in 1..10`",
            ),
            (
                "-- transaction\nUPDATE t SET x = 1;",
                "f.sql, line 2: a statement that changes rows must set",
            ),
            (
                "-- transaction\n-- let a in 9..1\n",
                "f.sql, line 2: \"let a in 9..1\": write `-- let a in",
            ),
            (
                "-- transaction weight no",
                "f.sql, line 1: \"no\" is no weight",
            ),
            (
                "-- setup\nCREATE TABLE t (x INT);",
                "f.sql, line 2: there is no transaction",
            ),
            (
                "-- setup\nCREATE TABLE t (x INT);\n-- transaction\nSELECT 1;",
                "f.sql, line 4: what the set-up makes",
            ),
        ] {
            let found = SqlFile::parse(text, "f.sql").unwrap_err().to_string();
            assert!(found.starts_with(expected), "{text:?}: {found}");
        }
    }
}
