//! Wrong mechanisms of the store, each of which strikes at a rate, like the bugs of real databases.
//!
//! A [`Fault`](super::Fault) is one anomaly that is injected once; a bug is a mistake in the code, and whether it
//! causes an anomaly depends on the workload.

use std::fmt;
use std::str::FromStr;

use kingsnake_history::rng::Rng;
use thiserror::Error;

/// A mistake in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bug {
    /// A commit does not look whether others overwrote what it read or wrote: lost updates.
    NoWriteCheck,
    /// A commit looks at what it wrote, and not at what it read: write skews.
    SkippedValidation,
    /// A transaction begins from an old snapshot.
    StaleSnapshot,
    /// One read goes to a replica that lags behind.
    ReplicaLag,
    /// What an aborted transaction wrote is visible.
    LeakingAborts,
    /// A read does not see the transaction's own writes.
    InvisibleOwnWrites,
    /// A read of an own write returns the first and not the last.
    StaleOwnWrites,
    /// A commit is acknowledged, and one of its writes is lost.
    LostWrite,
    /// A commit is acknowledged before its writes are visible.
    LateEffect,
    /// Of several writes of a key in one transaction the first is kept.
    FirstWriteWins,
    /// The writes of a commit become visible in two parts.
    TornCommit,
    /// A read returns what was never written.
    InventedValue,
}

/// Every bug and its name.
const NAMES: [(Bug, &str); 12] = [
    (Bug::NoWriteCheck, "no-write-check"),
    (Bug::SkippedValidation, "skipped-validation"),
    (Bug::StaleSnapshot, "stale-snapshot"),
    (Bug::ReplicaLag, "replica-lag"),
    (Bug::LeakingAborts, "leaking-aborts"),
    (Bug::InvisibleOwnWrites, "invisible-own-writes"),
    (Bug::StaleOwnWrites, "stale-own-writes"),
    (Bug::LostWrite, "lost-write"),
    (Bug::LateEffect, "late-effect"),
    (Bug::FirstWriteWins, "first-write-wins"),
    (Bug::TornCommit, "torn-commit"),
    (Bug::InventedValue, "invented-value"),
];

impl Bug {
    /// Every bug.
    pub fn all() -> impl Iterator<Item = Bug> {
        NAMES.into_iter().map(|(bug, _)| bug)
    }

    /// The name, as typed.
    pub fn name(self) -> &'static str {
        let found = NAMES.iter().find(|(bug, _)| *bug == self);
        found.map_or("", |(_, name)| name)
    }
}

/// A bug and how often it strikes where it can.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BugRate {
    /// The mistake.
    pub bug: Bug,
    /// From 0 to 1.
    pub rate: f64,
}

/// How often a bug strikes unless told otherwise.
const USUAL: f64 = 0.01;

/// No bug is written so.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0:?} is no bug; write NAME or NAME:RATE with a rate from 0 to 1; there are {names}", names = NAMES.map(|(_, name)| name).join(", "))]
pub struct UnknownBug(String);

impl FromStr for BugRate {
    type Err = UnknownBug;

    fn from_str(typed: &str) -> Result<Self, Self::Err> {
        let bad = || UnknownBug(typed.to_owned());
        let (name, rate) = match typed.split_once(':') {
            Some((name, rate)) => (name, rate.parse().map_err(|_| bad())?),
            None => (typed, USUAL),
        };
        let found = NAMES.iter().find(|(_, known)| *known == name);
        let &(bug, _) = found.ok_or_else(bad)?;
        if !(0.0..=1.0).contains(&rate) {
            return Err(bad());
        }
        Ok(BugRate { bug, rate })
    }
}

impl fmt::Display for BugRate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.bug.name(), self.rate)
    }
}

/// The bugs of a store and the dice that decide when they strike.
#[derive(Clone, Debug)]
pub(super) struct Bugs {
    bugs: Vec<BugRate>,
    rng: Rng,
}

impl Bugs {
    pub(super) fn new(bugs: &[BugRate], seed: u64) -> Self {
        Bugs {
            bugs: bugs.to_vec(),
            rng: Rng::new(seed ^ 0x6275_6773),
        }
    }

    /// Whether a bug strikes now. A store without it draws no number.
    pub(super) fn strikes(&mut self, bug: Bug) -> bool {
        let Some(found) = self.bugs.iter().find(|it| it.bug == bug) else {
            return false;
        };
        let drawn = (self.rng.number() >> 11) as f64 / (1_u64 << 53) as f64;
        drawn < found.rate
    }

    /// A small number, such as how far something lags behind.
    pub(super) fn lag(&mut self) -> u64 {
        1 + self.rng.below(20) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bug_is_found_by_its_name_and_rate() {
        for bug in Bug::all() {
            let found: BugRate = bug.name().parse().unwrap();
            assert_eq!((found.bug, found.rate), (bug, USUAL));
            let found: BugRate = format!("{}:0.5", bug.name()).parse().unwrap();
            assert!((found.rate - 0.5).abs() < 1e-9);
        }
        for bad in ["no-bug", "late-effect:2", "late-effect:x", "late-effect:-1"] {
            assert!(bad.parse::<BugRate>().is_err(), "{bad}");
        }
    }
}
