//! What the executable carries: the built-in studies, and the histories of the corpus that they use.

/// The studies that have a name: file name and text.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("encodings", include_str!("../../../benches/studies/encodings.toml")),
    ("king-cobra", include_str!("../../../benches/studies/king-cobra.toml")),
];

macro_rules! corpus {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../datasets/corpus/", $name)))),*]
    };
}

/// Histories whose verdict takes a choice between orders.
const CORPUS: &[(&str, &str)] = corpus![
    "none/long-fork-of-updates.jsonl",
    "none/long-fork.jsonl",
    "none/lost-update-of-three.jsonl",
    "strong-session-ser/blind-writes.jsonl",
    "strong-session-ser/bank-transfer.jsonl",
    "strong-session-si/g2-item-three-transactions.jsonl",
    "strong-session-si/two-write-skews.jsonl",
    "strong-session-si/write-skew.jsonl",
];

/// A history of the corpus.
pub fn corpus(name: &str) -> Option<(&'static str, &'static str)> {
    CORPUS.iter().find(|(known, _)| *known == name).copied()
}

/// Those that are carried.
pub fn corpus_names() -> Vec<&'static str> {
    CORPUS.iter().map(|(name, _)| *name).collect()
}
