//! Fills parameters into the words of a command line, and asks the command line's own rules whether they make sense, before
//! anything runs.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use crate::blame::Page;
use crate::design::listed;
use crate::error::Result;
use crate::recipe::Words;
use crate::rules::Rules;

/// A word of a command line, and where the file has it.
pub type Placed = (String, Range<usize>);

/// Replaces `{name}` by the parameter's value.
pub struct Filler<'a> {
    /// For errors.
    pub page: Page<'a>,
    /// The values.
    pub parameters: &'a BTreeMap<String, String>,
}

impl Filler<'_> {
    /// The words, filled.
    pub fn fill(&self, words: &Words) -> Result<Vec<Placed>> {
        words
            .iter()
            .map(|word| Ok((self.word(word.get_ref(), word.span())?, word.span())))
            .collect()
    }

    fn word(&self, word: &str, span: Range<usize>) -> Result<String> {
        let mut out = String::new();
        let mut rest = word;
        while let Some((before, after)) = rest.split_once('{') {
            out.push_str(before);
            let Some((name, after)) = after.split_once('}') else {
                return Err(self.page.blame(span, "a { without its }"));
            };
            let Some(value) = self.parameters.get(name) else {
                let words = format!(
                    "there is no parameter {name:?} in [parameters]; there is {}",
                    listed(self.parameters.keys())
                );
                return Err(self.page.blame(span, &words));
            };
            out.push_str(value);
            rest = after;
        }
        out.push_str(rest);
        Ok(out)
    }
}

/// The words without their places.
pub fn plain(words: Vec<Placed>) -> Vec<String> {
    words.into_iter().map(|(word, _)| word).collect()
}

/// The arguments of `kingsnake generate`.
pub fn generate_line(words: &[String], to: &str, seed: u32) -> Vec<String> {
    let mut line = vec!["generate".to_owned()];
    line.extend(words.iter().cloned());
    line.extend(["--out", to, "--seed"].map(str::to_owned));
    line.push(seed.to_string());
    line.push("--json".to_owned());
    line
}

/// What is run on a file: `kingsnake solve` on an instance in `MonoSAT`'s format, `kingsnake check` on a history.
pub fn cell_line(words: &[String], file: &str, seed: u32) -> Vec<String> {
    if is_instance(Path::new(file)) {
        solve_line(words, file, seed)
    } else {
        check_line(words, file, seed)
    }
}

/// Whether a file is an instance of acyclicity and no history.
pub fn is_instance(path: &Path) -> bool {
    path.extension()
        .is_some_and(|it| it.eq_ignore_ascii_case("gnf"))
}

/// The arguments of `kingsnake solve`: those of a check that it has as well. An instance has no level and no order to try first.
fn solve_line(words: &[String], instance: &str, seed: u32) -> Vec<String> {
    let mut line = vec!["solve".to_owned(), instance.to_owned()];
    let shared = ["--backend", "--timeout", "--memory-limit", "--threads"];
    for (at, word) in words.iter().enumerate() {
        let name = word.split('=').next().unwrap_or_default();
        if word == "--no-prune" {
            line.push(word.clone());
        } else if shared.contains(&name) {
            line.push(word.clone());
            let value = words.get(at + 1).filter(|_| name == word);
            line.extend(value.cloned());
        }
    }
    line.extend(["--seed".to_owned(), seed.to_string(), "--json".to_owned()]);
    line
}

/// The arguments of `kingsnake check`.
fn check_line(words: &[String], history: &str, seed: u32) -> Vec<String> {
    let mut line = vec!["check".to_owned(), history.to_owned()];
    line.extend(words.iter().cloned());
    line.extend(["--seed".to_owned(), seed.to_string(), "--json".to_owned()]);
    line
}

/// Complains about switches that `kingsnake check` does not take. Tells why the back end refuses the level, if it does.
pub fn expect_check(
    rules: &dyn Rules,
    words: &[Placed],
    page: Page<'_>,
    whole: Range<usize>,
) -> Result<Option<String>> {
    let line = check_line(&plain(words.to_vec()), "HISTORY", 0);
    ask(rules, &line, words, page, whole)
}

/// Complains about words that `kingsnake generate` does not take.
pub fn expect_generate(
    rules: &dyn Rules,
    words: &[Placed],
    page: Page<'_>,
    whole: Range<usize>,
) -> Result<()> {
    let line = generate_line(&plain(words.to_vec()), "HISTORY", 0);
    ask(rules, &line, words, page, whole).map(|_| ())
}

fn ask(
    rules: &dyn Rules,
    line: &[String],
    words: &[Placed],
    page: Page<'_>,
    whole: Range<usize>,
) -> Result<Option<String>> {
    rules.accepts(line).map_err(|refusal| {
        // The rule that was broken names an argument; the word that holds it is the place.
        let holds = |name: &String| {
            let first = name.split([' ', '=']).next().unwrap_or_default();
            words
                .iter()
                .find(|(word, _)| !first.is_empty() && (word == name || word.starts_with(first)))
        };
        let span = refusal
            .arguments
            .iter()
            .find_map(holds)
            .or(words.first())
            .map_or(whole, |(_, span)| span.clone());
        page.blame(span, &format!("kingsnake {}: {}", line[0], refusal.words))
    })
}
