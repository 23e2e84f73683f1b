//! Explains technical terms at their first use: on hover, on focus, and to screen readers.

use std::cell::RefCell;
use std::collections::BTreeSet;

use maud::{Markup, html};

/// Every term and its explanation. If two match at one place, the longer is used.
const TERMS: &[(&str, &str)] = &[
    (
        "serializability",
        "Some order of all transactions, one after another, explains every read.",
    ),
    (
        "serializable",
        "Some order of all transactions, one after another, explains every read.",
    ),
    (
        "snapshot isolation",
        "Each transaction reads from one snapshot, and of two that overlap at most one may write a key.",
    ),
    (
        "linearizability",
        "Each operation takes effect at one moment between its start and its end.",
    ),
    (
        "session order",
        "A transaction counts as later than those before it in its session.",
    ),
    (
        "session",
        "One client: its transactions ran one after another.",
    ),
    (
        "read-modify-writes",
        "Transactions that read a key and then write it, so that nothing comes between.",
    ),
    (
        "read-modify-write",
        "A transaction that reads a key and then writes it, so that nothing comes between.",
    ),
    (
        "initial state",
        "What the keys hold before any transaction.",
    ),
    (
        "snapshot",
        "The state that a transaction reads from: what was committed when it began.",
    ),
    (
        "version order",
        "The order in which the values of one key replaced each other.",
    ),
    (
        "anti-dependency",
        "One transaction read a version that the other overwrote, so it must come first (rw).",
    ),
    (
        "anti-dependencies",
        "One transaction read a version that another overwrote, so it must come first (rw).",
    ),
    ("G0", "Adya's name for a cycle of overwrites only (ww)."),
    (
        "G1a",
        "Adya's name for a read of what an aborted transaction wrote.",
    ),
    (
        "G1b",
        "Adya's name for a read of a value that its writer replaced before it committed.",
    ),
    (
        "G1c",
        "Adya's name for a cycle of reads-from and overwrites (wr, ww), without anti-dependencies.",
    ),
    (
        "G-single",
        "Adya's name for a cycle with exactly one anti-dependency (rw).",
    ),
    (
        "G-nonadjacent",
        "A cycle in which no two anti-dependencies (rw) stand next to each other.",
    ),
    (
        "G2-item",
        "Adya's name for a cycle with several anti-dependencies (rw) on single keys.",
    ),
    ("G2", "Adya's name for a cycle with anti-dependencies (rw)."),
    (
        "pruning",
        "Choices between two orders of writes are settled where one of them would close a cycle.",
    ),
    (
        "known edges",
        "Pairs of transactions whose order is certain.",
    ),
    (
        "unordered pairs",
        "Pairs of writes of one key whose order nothing in the history gives directly.",
    ),
    (
        "left open",
        "Pairs that pruning did not settle; a solver is asked.",
    ),
];

/// Remembers which terms were explained.
#[derive(Default)]
pub struct Terms {
    seen: RefCell<BTreeSet<&'static str>>,
}

impl Terms {
    /// The text, with explanations of the terms not explained before.
    pub fn explain(&self, text: &str) -> Markup {
        let mut rest = text;
        let mut parts: Vec<Markup> = Vec::new();
        while let Some((at, term, meaning)) = self.next(rest) {
            let word = &rest[at..at + term.len()];
            parts.push(html! { (rest[..at]) (explained(word, meaning)) });
            rest = &rest[at + term.len()..];
        }
        html! { @for part in &parts { (part) } (rest) }
    }

    /// The first term of the text that was not explained yet.
    fn next(&self, text: &str) -> Option<(usize, &'static str, &'static str)> {
        let mut seen = self.seen.borrow_mut();
        let open = TERMS.iter().filter(|(term, _)| !seen.contains(term));
        let found = open.filter_map(|&(term, meaning)| Some((find(text, term)?, term, meaning)));
        let first = found.min_by_key(|&(at, term, _)| (at, std::cmp::Reverse(term.len())))?;
        seen.insert(first.1);
        Some(first)
    }
}

/// A word with its explanation.
pub fn explained(word: &str, meaning: &str) -> Markup {
    html! { span.term tabindex="0" { (word) span.tip role="tooltip" { (meaning) } } }
}

/// Where a term occurs as a whole word.
fn find(text: &str, term: &str) -> Option<usize> {
    let is_inside =
        |letter: Option<char>| letter.is_some_and(|it| it.is_alphanumeric() || it == '-');
    text.match_indices(term).map(|(at, _)| at).find(|&at| {
        let (before, after) = (&text[..at], &text[at + term.len()..]);
        !is_inside(before.chars().next_back()) && !is_inside(after.chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_is_explained_once_and_only_as_a_whole_word() {
        let terms = Terms::default();
        let first = terms.explain("Lost update (G-single) of a <session>").0;
        assert!(first.contains("exactly one anti-dependency"), "{first}");
        assert!(first.contains("&lt;<span class=\"term\""), "{first}");
        let again = terms.explain("G-single in sessions, G-single-item").0;
        assert_eq!(again, "G-single in sessions, G-single-item");
    }

    #[test]
    fn the_longer_of_two_terms_is_taken() {
        let said = Terms::default().explain("session order").0;
        assert!(said.contains(">session order<"), "{said}");
    }
}
