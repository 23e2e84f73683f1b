//! Consistency models and anomalies by name: implications between models, implications between anomalies, and the
//! models that each anomaly rules out. One table for everything that names a model.
//!
//! From Adya's *Weak Consistency*, Bailis et al., Cerone et al. and Elle (`elle.consistency-model`). A model is ruled out by what it
//! prohibits, and by whatever rules out a model that it implies.

use std::collections::BTreeSet;

use crate::level::{Level, hyphenated};

/// A consistency model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsistencyModel {
    /// Its name.
    pub name: &'static str,
    /// Adya's, SQL's and other names, and this program's level of that meaning.
    pub aliases: &'static [&'static str],
    /// The models that it directly implies.
    pub implies: &'static [&'static str],
    /// The anomalies that it directly prohibits.
    pub prohibits: &'static [&'static str],
}

/// A named anomaly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anomaly {
    /// Its name.
    pub name: &'static str,
    /// The anomalies that it implies.
    pub implies: &'static [&'static str],
}

macro_rules! models {
    ($($name:literal $([$($alias:literal),*])? => $($implied:literal),* ; $($prohibited:literal),* ;)*) => {
        /// Every model.
        pub const MODELS: &[ConsistencyModel] = &[$(ConsistencyModel {
            name: $name,
            aliases: &[$($($alias),*)?],
            implies: &[$($implied),*],
            prohibits: &[$($prohibited),*],
        }),*];
    };
}

models! {
    "strong-serializable" ["strict-serializable", "PL-SS", "strict-ser"]
        => "serializable", "linearizable", "snapshot-isolation", "strong-snapshot-isolation",
           "strong-session-serializable", "session-serializable" ;
        "G1", "G1c-realtime", "G2-realtime", "PL-SS-cycle-exists" ;
    "strong-session-serializable" ["strong-session-ser"]
        => "serializable", "strong-session-snapshot-isolation" ;
        "G1-process", "G2-process", "strong-session-serializable-cycle-exists" ;
    "serializable" ["conflict-serializable", "PL-3", "ser"]
        => "repeatable-read", "snapshot-isolation", "view-serializable", "update-serializable" ;
        "internal", "G1", "G2", "predicate-read-miss", "PL-3-cycle-exists" ;
    "session-serializable" => "1SR" ; ;
    "1SR" ["one-copy-serializable"] => ; ;
    "view-serializable" => ; ;
    "strong-snapshot-isolation" ["strong-si"]
        => "strong-session-snapshot-isolation", "strong-read-committed" ;
        "internal", "G1-realtime", "G-nonadjacent-realtime", "strong-snapshot-isolation-cycle-exists" ;
    "strong-session-snapshot-isolation" ["strong-session-si"]
        => "snapshot-isolation", "strong-session-read-committed" ;
        "internal", "G1-process", "G-nonadjacent-process", "strong-session-snapshot-isolation-cycle-exists" ;
    "snapshot-isolation" ["PL-SI", "si"]
        => "forward-consistent-view", "monotonic-atomic-view", "monotonic-snapshot-read",
           "parallel-snapshot-isolation", "prefix" ;
        "internal", "G1", "G-SI", "G-nonadjacent", "PL-SI-cycle-exists" ;
    "update-serializable" ["PL-3U"] => "forward-consistent-view" ; "G1", "G-update" ;
    "forward-consistent-view" ["PL-FCV"] => "consistent-view" ; "G1", "G-SIb" ;
    "consistent-view" ["PL-2+"] => "cursor-stability", "monotonic-view" ; "G1", "G-single" ;
    "repeatable-read" ["PL-2.99"]
        => "cursor-stability", "monotonic-atomic-view" ;
        "G1", "G2-item", "PL-2.99-cycle-exists", "lost-update" ;
    "parallel-snapshot-isolation" ["psi"] => "causal-cerone", "update-atomic" ; "internal", "G1a" ;
    "prefix" ["prefix-consistency", "pc"] => "causal-cerone" ; "internal", "G1a" ;
    "causal-cerone" ["cc", "causal-consistency"] => "read-atomic" ; "internal", "G1a" ;
    "update-atomic" => "read-atomic" ; "lost-update" ;
    "read-atomic" ["ra"] => "monotonic-atomic-view" ; "internal", "G1a", "future-read" ;
    "monotonic-atomic-view" ["MAV"] => "read-committed" ; ;
    "cursor-stability" ["PL-CS"] => "read-committed" ; "G1", "G-cursor", "lost-update" ;
    "monotonic-view" ["PL-2L"] => "read-committed" ; "G1", "G-monotonic" ;
    "monotonic-snapshot-read" ["PL-MSR"] => "read-committed" ; "G1", "G-MSR" ;
    "read-committed" ["PL-2", "rc"] => "read-uncommitted" ; "G1", "PL-2-cycle-exists" ;
    "read-uncommitted" ["PL-1"] => ; "G0", "duplicate-elements", "duplicate-write", "cyclic-versions", "PL-1-cycle-exists" ;
    "strong-read-committed" ["strong-PL-2"]
        => "strong-session-read-committed", "strong-read-uncommitted" ;
        "strong-PL-2-cycle-exists", "G1c-realtime" ;
    "strong-session-read-committed" ["strong-session-PL-2"]
        => "read-committed", "strong-session-read-uncommitted" ;
        "strong-session-PL-2-cycle-exists", "G1c-process" ;
    "strong-read-uncommitted" ["strong-PL-1"]
        => "strong-session-read-uncommitted" ; "strong-PL-1-cycle-exists", "G0-realtime" ;
    "strong-session-read-uncommitted" ["strong-session-PL-1"]
        => "read-uncommitted" ; "strong-session-PL-1-cycle-exists", "G0-process" ;
    "linearizable" => "sequential" ; ;
    "sequential" => "causal" ; ;
    "causal" => "writes-follow-reads", "PRAM" ; ;
    "writes-follow-reads" => ; ;
    "PRAM" => "monotonic-reads", "monotonic-writes", "read-your-writes" ; ;
    "monotonic-reads" => ; ;
    "monotonic-writes" => ; ;
    "read-your-writes" => ; ;
}

macro_rules! anomalies {
    ($($name:literal => $($implied:literal),* ;)*) => {
        /// Every anomaly, the worst of the cycles first.
        pub const ANOMALIES: &[Anomaly] = &[$(Anomaly {
            name: $name,
            implies: &[$($implied),*],
        }),*];
    };
}

anomalies! {
    "duplicate-elements" => ;
    "duplicate-write" => ;
    "cyclic-versions" => ;
    "incompatible-order" => "G1a" ;
    "dirty-update" => "G1a" ;
    "G1a" => "G1" ;
    "G1b" => "G1" ;
    "future-read" => "G1c" ;
    "internal" => ;
    "thin-air-read" => "G1a" ;
    "G0" => "G1c", "G0-process" ;
    "G1c" => "G1", "G1c-process" ;
    "lost-update" => "write-skew", "G2-item" ;
    "G-single-item" => "G-single", "G-single-item-process", "G-nonadjacent-item" ;
    "G-single" => "G-nonadjacent", "GSIb", "G-single-process" ;
    "G-nonadjacent-item" => "G-nonadjacent", "G2-item", "G-nonadjacent-item-process" ;
    "G-nonadjacent" => "G2", "G-nonadjacent-process" ;
    "G2-item" => "G2", "G2-item-process" ;
    "write-skew" => "G2" ;
    "predicate-read-miss" => ;
    "G2" => "G2-process" ;
    "G0-process" => "G1c-process", "G0-realtime" ;
    "G1c-process" => "G1c-realtime", "G1-process" ;
    "G-single-item-process" => "G-single-process", "G-single-item-realtime", "G-nonadjacent-item-process" ;
    "G-single-process" => "G-nonadjacent-process", "G-single-realtime" ;
    "G-nonadjacent-item-process" => "G-nonadjacent-process", "G2-item-process", "G-nonadjacent-item-realtime" ;
    "G-nonadjacent-process" => "G2-process", "G-nonadjacent-realtime" ;
    "G2-item-process" => "G2-process", "G2-item-realtime" ;
    "G2-process" => "G2-realtime" ;
    "G0-realtime" => "G1c-realtime" ;
    "G1c-realtime" => "G1-realtime" ;
    "G-single-item-realtime" => "G-single-realtime", "G-nonadjacent-item-realtime" ;
    "G-single-realtime" => "G-nonadjacent-realtime" ;
    "G-nonadjacent-item-realtime" => "G2-item-realtime", "G-nonadjacent-realtime" ;
    "G-nonadjacent-realtime" => "G2-realtime" ;
    "G2-item-realtime" => "G2-realtime" ;
    "G2-realtime" => ;
    "G1" => "G1-process" ;
    "G1-process" => "G1-realtime" ;
    "G1-realtime" => ;
    "GSIa" => "GSI" ;
    "GSIb" => "GSI" ;
    "GSI" => ;
    "PL-1-cycle-exists" => ;
    "PL-2-cycle-exists" => ;
    "PL-SI-cycle-exists" => ;
    "PL-2.99-cycle-exists" => ;
    "PL-3-cycle-exists" => ;
    "strong-session-PL-1-cycle-exists" => ;
    "strong-session-PL-2-cycle-exists" => ;
    "strong-session-snapshot-isolation-cycle-exists" => ;
    "strong-session-serializable-cycle-exists" => ;
    "strong-PL-1-cycle-exists" => ;
    "strong-PL-2-cycle-exists" => ;
    "strong-snapshot-isolation-cycle-exists" => ;
    "PL-SS-cycle-exists" => ;
}

/// A set of models or anomalies, by name.
pub type Names = BTreeSet<&'static str>;

/// The models that some anomalies rule out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Boundary {
    /// The weakest ones: none that they imply is ruled out.
    pub not: Names,
    /// The stronger ones.
    pub also_not: Names,
}

/// Names of anomalies in SQL's critique and in papers, with the class of each.
pub const ANOMALY_ALIASES: &[(&str, &str)] = &[
    ("P0", "G0"),
    ("dirty-write", "G0"),
    ("P1", "G1"),
    ("dirty-read", "G1"),
    ("aborted-read", "G1a"),
    ("intermediate-read", "G1b"),
    ("circular-information-flow", "G1c"),
    ("P2", "G2-item"),
    ("P3", "G2"),
    ("phantom", "G2"),
    ("P4", "lost-update"),
    ("A5A", "G-single"),
    ("read-skew", "G-single"),
    ("A5B", "write-skew"),
    ("fractured", "G-single-item"),
    ("fractured-read", "G-single-item"),
    ("non-monotonic", "G-single-item"),
    ("non-monotonic-read", "G-single-item"),
    ("causality-violation", "G-single-item"),
    ("long-fork", "G-nonadjacent-item"),
];

/// A model by any of its names, or of the level of that meaning, in any case and with spaces or hyphens.
pub fn model(name: &str) -> Option<&'static ConsistencyModel> {
    let of = |name: &str| {
        let is_it = |it: &&str| it.eq_ignore_ascii_case(name);
        let named =
            |model: &&ConsistencyModel| is_it(&model.name) || model.aliases.iter().any(is_it);
        MODELS.iter().find(named)
    };
    let by_level = || of(name.parse::<Level>().ok()?.name());
    of(&hyphenated(name)).or_else(by_level)
}

/// An anomaly by any of its names, in any case and with spaces or hyphens; `-session` is as good as `-process`.
pub fn anomaly(name: &str) -> Option<&'static Anomaly> {
    let name = hyphenated(name).replace("-session", "-process");
    let mut aliases = ANOMALY_ALIASES.iter();
    let alias = aliases.find(|(alias, _)| alias.eq_ignore_ascii_case(&name));
    let name = alias.map_or(name.as_str(), |(_, of)| of);
    ANOMALIES
        .iter()
        .find(|anomaly| anomaly.name.eq_ignore_ascii_case(name))
}

fn closure(start: impl IntoIterator<Item = &'static str>, next: impl Fn(&str) -> Names) -> Names {
    let mut found: Names = start.into_iter().collect();
    let mut open: Vec<&'static str> = found.iter().copied().collect();
    while let Some(it) = open.pop() {
        let new = next(it).into_iter().filter(|it| found.insert(it));
        open.extend(new.collect::<Vec<_>>());
    }
    found
}

/// Some anomalies and all that they imply.
pub fn implied_anomalies(names: impl IntoIterator<Item = &'static str>) -> Names {
    closure(names, |name| {
        let found = ANOMALIES.iter().find(|it| it.name == name);
        found
            .map_or(&[][..], |it| it.implies)
            .iter()
            .copied()
            .collect()
    })
}

/// A model and all that it implies.
pub fn implied_models(name: &'static str) -> Names {
    closure([name], |name| {
        let found = MODELS.iter().find(|it| it.name == name);
        found
            .map_or(&[][..], |it| it.implies)
            .iter()
            .copied()
            .collect()
    })
}

/// The models that imply some models, and those models.
pub fn implying_models(names: impl IntoIterator<Item = &'static str>) -> Names {
    closure(names, |name| {
        let stronger = MODELS.iter().filter(|it| it.implies.contains(&name));
        stronger.map(|it| it.name).collect()
    })
}

/// The anomalies that a model prohibits, directly or through what it implies, and the anomalies that imply those.
pub fn prohibited(name: &'static str) -> Names {
    let models = implied_models(name);
    let direct: Names = MODELS
        .iter()
        .filter(|it| models.contains(it.name))
        .flat_map(|it| it.prohibits.iter().copied())
        .collect();
    let implying = ANOMALIES
        .iter()
        .filter(|it| !implied_anomalies([it.name]).is_disjoint(&direct));
    implying
        .map(|it| it.name)
        .chain(direct.iter().copied())
        .collect()
}

/// What some anomalies rule out.
pub fn boundary(anomalies: impl IntoIterator<Item = &'static str>) -> Boundary {
    let present = implied_anomalies(anomalies);
    let prohibiting = MODELS
        .iter()
        .filter(|it| it.prohibits.iter().any(|name| present.contains(name)));
    ruled_out(prohibiting.map(|it| it.name))
}

/// Splits models that do not hold into the weakest and the others.
pub fn ruled_out(models: impl IntoIterator<Item = &'static str>) -> Boundary {
    let out = implying_models(models);
    let is_weakest = |name: &&'static str| {
        let implied = implied_models(name);
        !implied.iter().any(|it| it != name && out.contains(it))
    };
    let (not, also_not) = out.iter().copied().partition(is_weakest);
    Boundary { not, also_not }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_the_table_is_in_it_once() {
        let mut names: Vec<String> = MODELS
            .iter()
            .flat_map(|it| std::iter::once(&it.name).chain(it.aliases))
            .map(|name| name.to_ascii_lowercase())
            .collect();
        let n_names = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), n_names);
        for it in MODELS {
            assert!(
                it.implies
                    .iter()
                    .all(|name| model(name).is_some_and(|it| it.name == *name))
            );
        }
        for it in ANOMALIES {
            assert!(
                it.implies.iter().all(|name| anomaly(name).is_some()),
                "{}",
                it.name
            );
        }
    }

    #[test]
    fn an_anomaly_rules_out_what_the_table_of_the_document_says() {
        for (name, not, n_stronger) in [
            ("G0", "read-uncommitted", 24),
            ("duplicate-elements", "read-uncommitted", 24),
            ("duplicate-write", "read-uncommitted", 24),
            ("G1a", "read-committed", 21),
            ("incompatible-order", "read-committed", 21),
            ("internal", "read-atomic", 10),
            ("lost-update", "cursor-stability update-atomic", 11),
            ("G-single", "consistent-view", 8),
            ("G-single-item", "consistent-view repeatable-read", 8),
            ("G-nonadjacent", "snapshot-isolation", 5),
            (
                "G-nonadjacent-item",
                "repeatable-read snapshot-isolation",
                5,
            ),
            ("G2-item", "repeatable-read", 3),
            ("G2", "serializable", 2),
            ("write-skew", "serializable", 2),
            ("G0-process", "strong-session-read-uncommitted", 7),
            ("G0-realtime", "strong-read-uncommitted", 3),
            ("G1c-process", "strong-session-read-committed", 5),
            ("G1c-realtime", "strong-read-committed", 2),
            ("G-single-process", "strong-session-snapshot-isolation", 3),
            ("G-nonadjacent-realtime", "strong-snapshot-isolation", 1),
            ("G2-item-process", "strong-session-serializable", 1),
            ("G2-realtime", "strong-serializable", 0),
        ] {
            let found = boundary([name]);
            let weakest: Vec<&str> = found.not.iter().copied().collect();
            assert_eq!(weakest.join(" "), not, "{name}");
            assert_eq!(found.also_not.len(), n_stronger, "{name}");
        }
    }

    #[test]
    fn adyas_and_sqls_names_are_aliases() {
        for (alias, name) in [
            ("PL-3", "serializable"),
            ("pl-2.99", "repeatable-read"),
            ("strict-serializable", "strong-serializable"),
            ("si", "snapshot-isolation"),
            ("READ-COMMITTED", "read-committed"),
        ] {
            assert_eq!(model(alias).map(|it| it.name), Some(name));
        }
        assert_eq!(
            anomaly("g2-item-session").map(|it| it.name),
            Some("G2-item-process")
        );
        assert_eq!(model("nonsense"), None);
        let read_committed = model("Read Committed").map(|it| it.name);
        assert_eq!(read_committed, Some("read-committed"));
        let repeatable_read = model("REPEATABLE READ").map(|it| it.name);
        assert_eq!(repeatable_read, Some("repeatable-read"));
        for (alias, name) in ANOMALY_ALIASES {
            assert!(ANOMALIES.iter().all(|it| it.name != *alias));
            assert_eq!(anomaly(alias).map(|it| it.name), Some(*name));
        }
        assert_eq!(
            anomaly("lost update").map(|it| it.name),
            Some("lost-update")
        );
    }
}
