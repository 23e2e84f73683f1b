//! What the executable carries: the built-in studies, and the histories of the corpus that they use.

/// The studies that have a name: the name, the file, its text.
pub const BUILT_IN: &[(&str, &str, &str)] = &[
    (
        "elle",
        "benches/studies/elle.toml",
        include_str!("../elle.toml"),
    ),
    (
        "emme",
        "benches/studies/emme.toml",
        include_str!("../emme.toml"),
    ),
    (
        "encodings",
        "benches/studies/encodings.toml",
        include_str!("../encodings.toml"),
    ),
    (
        "ingredients",
        "benches/studies/ingredients.toml",
        include_str!("../ingredients.toml"),
    ),
    (
        "king-cobra",
        "benches/studies/king-cobra.toml",
        include_str!("../king-cobra.toml"),
    ),
    (
        "mini-vs-general",
        "benches/studies/mini-vs-general.toml",
        include_str!("../mini-vs-general.toml"),
    ),
    (
        "mixed",
        "benches/studies/mixed.toml",
        include_str!("../mixed.toml"),
    ),
    (
        "mtc",
        "benches/studies/mtc.toml",
        include_str!("../mtc.toml"),
    ),
    (
        "sizes",
        "benches/studies/sizes.toml",
        include_str!("../sizes.toml"),
    ),
    (
        "sweep",
        "benches/studies/sweep.toml",
        include_str!("../sweep.toml"),
    ),
    (
        "weak",
        "benches/studies/weak.toml",
        include_str!("../weak.toml"),
    ),
    (
        "viper",
        "benches/studies/viper.toml",
        include_str!("../viper.toml"),
    ),
];

/// A built-in study's file and text.
pub fn built_in(name: &str) -> Option<(&'static str, &'static str)> {
    let found = BUILT_IN.iter().find(|(known, ..)| *known == name)?;
    Some((found.1, found.2))
}

macro_rules! corpus {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../corpus/", $name)))),*]
    };
}

/// Histories whose verdict takes a choice between orders.
const CORPUS: &[(&str, &str)] = corpus![
    "none/causality-violation-by-overwrite.jsonl",
    "strong-session-ser/blind-writes.jsonl",
    "strong-session-ser/read-modify-write-chain.jsonl",
    "strong-session-si/write-skew-on-call.jsonl",
];

/// A history of the corpus.
pub fn corpus(name: &str) -> Option<(&'static str, &'static str)> {
    CORPUS.iter().find(|(known, _)| *known == name).copied()
}

/// Those that are carried.
pub fn corpus_names() -> Vec<&'static str> {
    CORPUS.iter().map(|(name, _)| *name).collect()
}
