//! Fills parameters into the words of a command line, and asks the command line's own rules whether they make sense, before
//! anything runs.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::Result;
use clap::Parser;
use clap::error::{ContextKind, ContextValue};
use kingsnake_encodings::Options;

use super::blame::Page;
use super::design::listed;
use super::recipe::Words;
use crate::args::{Command, Typed};
use crate::plan::Plan;

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

/// What `kingsnake generate` is told.
pub fn generate_line(words: &[String], to: &str, seed: u32) -> Vec<String> {
    let mut line = vec!["generate".to_owned()];
    line.extend(words.iter().cloned());
    line.extend(["--out", to, "--seed"].map(str::to_owned));
    line.push(seed.to_string());
    line
}

/// What `kingsnake check` is told.
pub fn check_line(words: &[String], history: &str, seed: u32) -> Vec<String> {
    let mut line = vec!["check".to_owned(), history.to_owned()];
    line.extend(words.iter().cloned());
    line.extend(["--seed".to_owned(), seed.to_string(), "--json".to_owned()]);
    line
}

/// Complains about switches that `kingsnake check` does not take. Tells why the back end refuses the level, if it does.
pub fn expect_check(
    words: &[Placed],
    page: Page<'_>,
    whole: Range<usize>,
) -> Result<Option<String>> {
    let line = check_line(&plain(words.to_vec()), "HISTORY", 0);
    let typed = parse(&line, words, page, whole.clone())?;
    let Command::Check(args) = typed.command else {
        return Ok(None);
    };
    let blamed = |error: &dyn std::fmt::Display| {
        let span = words.first().map_or(whole, |(_, span)| span.clone());
        page.blame(span, &format!("kingsnake check: {error}"))
    };
    match Plan::new(&args) {
        Err(error) => Err(blamed(&error)),
        Ok(plan) => match kingsnake_encodings::backend(&plan.backend, &Options::default()) {
            Err(error) => Err(blamed(&error)),
            Ok(backend) => Ok(backend.refuses(plan.spec)),
        },
    }
}

/// Complains about words that `kingsnake generate` does not take.
pub fn expect_generate(words: &[Placed], page: Page<'_>, whole: Range<usize>) -> Result<()> {
    let line = generate_line(&plain(words.to_vec()), "HISTORY", 0);
    parse(&line, words, page, whole).map(|_| ())
}

fn parse(line: &[String], words: &[Placed], page: Page<'_>, whole: Range<usize>) -> Result<Typed> {
    let all = std::iter::once("kingsnake").chain(line.iter().map(String::as_str));
    Typed::try_parse_from(all).map_err(|error| {
        // The rule that was broken names an argument; the word that holds it is the place.
        let named: Vec<String> = [ContextKind::InvalidValue, ContextKind::InvalidArg]
            .into_iter()
            .filter_map(|kind| match error.get(kind) {
                Some(ContextValue::String(name)) => Some(name.clone()),
                _ => None,
            })
            .collect();
        let holds = |name: &String| {
            let first = name.split([' ', '=']).next().unwrap_or_default();
            words
                .iter()
                .find(|(word, _)| !first.is_empty() && (word == name || word.starts_with(first)))
        };
        let span = named
            .iter()
            .find_map(holds)
            .or(words.first())
            .map_or(whole, |(_, span)| span.clone());
        let text = error.to_string();
        let reason = text.lines().next().unwrap_or_default();
        let reason = reason.strip_prefix("error: ").unwrap_or(reason);
        page.blame(span, &format!("kingsnake {}: {reason}", line[0]))
    })
}
