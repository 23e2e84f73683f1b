//! The isolation levels, and their demands besides explaining every read. docs/theory.md has the definitions.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::adya::PlLevel;
use crate::model::{History, TxnId};
use crate::promise::{Promise, RegisterOptions};

/// The demands of a level on a transaction's reads and writes (docs/theory.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Model {
    /// Serializability: it reads and writes at one moment.
    Ser,
    /// Snapshot isolation: it reads at its begin, and no other writer of its keys commits between its begin and its commit.
    Si,
    /// Parallel snapshot isolation: it reads from all that happened before it, and of two writers of a key one happened before.
    Psi,
    /// Prefix consistency: it reads at its begin.
    Pc,
    /// Causal consistency: a read sees all that happened before its transaction.
    Cc,
    /// Read atomic: a read sees what any read of its transaction read from, and what came before in the session.
    Ra,
    /// Read committed, with what came before in the session.
    RcSo,
    /// Read committed: a read sees what earlier reads of its transaction read from.
    Rc,
    /// As recorded: each transaction has the model that [`History::model`](crate::model::History::model) says. No
    /// transaction's own.
    Mixed,
}

impl Model {
    /// The models of begins and commits, the strongest first.
    pub const TIMED: [Model; 3] = [Model::Ser, Model::Si, Model::Pc];

    /// The models that transactions of one history can mix, the strongest first.
    pub const MIXED: [Model; 7] = [
        Model::Ser,
        Model::Si,
        Model::Pc,
        Model::Cc,
        Model::Ra,
        Model::RcSo,
        Model::Rc,
    ];

    /// The weak models, the weakest first: each implies those before it.
    pub const WEAK: [Model; 4] = [Model::Rc, Model::RcSo, Model::Ra, Model::Cc];

    /// Every model of a transaction, the strongest first.
    pub const ALL: [Model; 8] = [
        Model::Ser,
        Model::Si,
        Model::Psi,
        Model::Pc,
        Model::Cc,
        Model::Ra,
        Model::RcSo,
        Model::Rc,
    ];

    /// The name, as reported.
    pub fn name(self) -> &'static str {
        match self {
            Model::Ser => "ser",
            Model::Si => "si",
            Model::Pc => "pc",
            Model::Cc => "cc",
            Model::Ra => "ra",
            Model::RcSo => "rc-so",
            Model::Rc => "rc",
            Model::Psi => "psi",
            Model::Mixed => "mixed",
        }
    }

    /// Whether its begin is another moment than its commit.
    pub fn has_begin(self) -> bool {
        self.reads_at_begin() || self.installs_at_begin()
    }

    /// Whether session order and reads-from alone determine what its reads see, so that nothing is searched.
    pub fn is_weak(self) -> bool {
        matches!(self, Model::Cc | Model::Ra | Model::RcSo | Model::Rc)
    }

    /// Whether its reads of one key may be of different versions.
    pub fn reads_may_differ(self) -> bool {
        matches!(self, Model::RcSo | Model::Rc)
    }

    /// Whether it reads at its begin; else at its commit.
    pub fn reads_at_begin(self) -> bool {
        matches!(self, Model::Si | Model::Pc)
    }

    /// Whether earlier writers of its keys must have committed at its begin; else at its commit.
    pub fn installs_at_begin(self) -> bool {
        matches!(self, Model::Si)
    }

    /// Whether what it reads must be the newest version where it reads.
    pub fn reads_newest(self) -> bool {
        matches!(self, Model::Ser | Model::Si | Model::Pc | Model::Psi)
    }

    /// Whether no other version can be between the one that it read and the one that it wrote of a key. A lost update
    /// is the case in which one is.
    pub fn is_atomic(self) -> bool {
        matches!(self, Model::Ser | Model::Si | Model::Psi)
    }

    /// Whether every history that satisfies this model satisfies the other.
    pub fn implies(self, weaker: Model) -> bool {
        match (self, weaker) {
            (Model::Mixed, _) | (_, Model::Mixed) => self == weaker,
            (Model::Psi, Model::Pc) => false,
            _ => {
                let place = |model: Model| Model::ALL.iter().position(|&it| it == model);
                place(self) <= place(weaker)
            }
        }
    }
}

/// Which state a transaction may read, by the clock. (A serializable one always reads the current state.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Snapshots {
    /// Any state that was current at its begin or before: only commits have a place in time (generalised SI).
    Older,
    /// The state at its begin: begins have one, too (strong SI).
    Current,
}

impl Snapshots {
    /// The name, as reported.
    pub fn name(self) -> &'static str {
        match self {
            Snapshots::Older => "older",
            Snapshots::Current => "current",
        }
    }
}

/// How a recorded time relates to the true one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Times {
    /// A begin is not later than the true one, a commit not earlier: what a client sees.
    #[default]
    Bounds,
    /// They are the true ones: what the database itself would log. Viper reads times in this way.
    Exact,
}

impl Times {
    /// The name, as typed and as reported.
    pub fn name(self) -> &'static str {
        match self {
            Times::Bounds => "bounds",
            Times::Exact => "exact",
        }
    }
}

/// How the clock constrains an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RealTime {
    /// Which states may be read.
    pub snapshots: Snapshots,
    /// The meaning of recorded times.
    pub times: Times,
    /// How far two clocks may disagree, in nanoseconds: one moment is before another only if it is earlier by more.
    pub drift: u64,
}

impl RealTime {
    /// A transaction that committed before another began comes before it.
    pub const STRICT: RealTime = RealTime {
        snapshots: Snapshots::Current,
        times: Times::Bounds,
        drift: 0,
    };

    /// Commits are in real-time order; a transaction may read an older state, but not a future one.
    pub const GENERALISED: RealTime = RealTime {
        snapshots: Snapshots::Older,
        ..RealTime::STRICT
    };
}

/// A level as its components. Every ablation of the order relations is another `Spec`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// Which graph.
    pub model: Model,
    /// A session's transactions keep their order.
    pub session_order: bool,
    /// The order keeps that of the clock.
    pub real_time: Option<RealTime>,
}

impl Spec {
    /// The same level with another reading of the times. Without real-time order there is nothing to read.
    #[must_use]
    pub fn with_clock(self, times: Times, drift: u64) -> Spec {
        let real_time = self.real_time.map(|real_time| RealTime {
            times,
            drift,
            ..real_time
        });
        Spec { real_time, ..self }
    }

    /// The model of a transaction: the level's, or the transaction's own.
    #[inline]
    pub fn model_of(self, history: &History, txn: TxnId) -> Model {
        match self.model {
            Model::Mixed => history.model(txn),
            model => model,
        }
    }

    /// Whether begins and commits are different moments in the orders of this level.
    pub fn has_begins(self, history: &History) -> bool {
        match self.model {
            Model::Mixed => history.models().iter().any(|model| model.has_begin()),
            model => model.has_begin(),
        }
    }

    /// Whether every history that satisfies this level satisfies the other.
    pub fn implies(self, weaker: Spec) -> bool {
        let model = self.model.implies(weaker.model);
        let sessions = self.session_order || !weaker.session_order;
        let time = match (self.real_time, weaker.real_time) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(own), Some(other)) => {
                own.drift <= other.drift && self.reads_like(own, other, weaker.model)
            }
        };
        model && sessions && time
    }

    /// Whether one real-time order implies another, with equal or narrower bounds.
    fn reads_like(self, own: RealTime, other: RealTime, model: Model) -> bool {
        match (self.model, model) {
            (Model::Ser, Model::Ser) => true,
            // A serial order puts a transaction anywhere between its times.
            (Model::Ser, _) => other.times == Times::Bounds,
            (_, _) => {
                let snapshots =
                    own.snapshots == Snapshots::Current || other.snapshots == Snapshots::Older;
                snapshots && (own.times == Times::Exact || other.times == Times::Bounds)
            }
        }
    }
}

/// The levels by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// Serializability; session order is a switch, on by default, as in Cobra.
    Ser,
    /// Serializability that keeps the session order.
    StrongSessionSer,
    /// Serializability that keeps the real-time order.
    StrictSer,
    /// Snapshot isolation (Adya's); session order is a switch, on by default, as in Viper.
    Si,
    /// Snapshot isolation that keeps the session order.
    StrongSessionSi,
    /// Generalised snapshot isolation: commits keep the real-time order, snapshots may be old.
    Gsi,
    /// Snapshot isolation that keeps the real-time order.
    StrongSi,
    /// Parallel snapshot isolation; session order is a switch, on by default.
    Psi,
    /// Prefix consistency; session order is a switch, on by default.
    Pc,
    /// Causal consistency: a read sees all that happened before its transaction.
    Cc,
    /// Read atomic: a read sees what any read of its transaction read from, and what came before in the session.
    Ra,
    /// Read committed as the paper on mixed SQL levels defines it: also what came before in the session.
    RcSo,
    /// Read committed (as Biswas and Enea, Plume and AWDIT define it): a read sees what earlier reads of its transaction read from.
    Rc,
    /// Linearizability: strict serializability of transactions that touch one key each.
    Linearizable,
    /// Each transaction's own level, as the history records it.
    AsRecorded,
    /// One of Adya's, on the version order and the snapshots that the database recorded.
    Pl(PlLevel),
}

impl Level {
    /// Every level.
    pub const ALL: [Level; 21] = [
        Level::Ser,
        Level::StrongSessionSer,
        Level::StrictSer,
        Level::Si,
        Level::StrongSessionSi,
        Level::Gsi,
        Level::StrongSi,
        Level::Psi,
        Level::Pc,
        Level::Cc,
        Level::Ra,
        Level::RcSo,
        Level::Rc,
        Level::Linearizable,
        Level::AsRecorded,
        Level::Pl(PlLevel::Pl1),
        Level::Pl(PlLevel::Pl2),
        Level::Pl(PlLevel::Pl2Plus),
        Level::Pl(PlLevel::Pl299),
        Level::Pl(PlLevel::PlSi),
        Level::Pl(PlLevel::Pl3),
    ];

    /// The levels that give one model to all transactions, whatever they touch: all but linearizability and the recorded ones.
    pub fn uniform() -> impl Iterator<Item = Level> {
        let is_other =
            |it: &Level| matches!(it, Level::Linearizable | Level::AsRecorded | Level::Pl(_));
        Level::ALL.into_iter().filter(move |it| !is_other(it))
    }

    /// The name, as typed and as reported.
    pub fn name(self) -> &'static str {
        self.names()[0]
    }

    /// The name, and its aliases.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Level::Ser => &["ser", "serializable", "serializability", "serialisable"],
            Level::StrongSessionSer => &["strong-session-ser", "strong-session-serializable"],
            Level::StrictSer => &[
                "strict-ser",
                "strict-serializable",
                "strict-serializability",
                "strong-serializable",
            ],
            Level::Si => &["si", "snapshot", "snapshot-isolation"],
            Level::StrongSessionSi => &["strong-session-si", "strong-session-snapshot-isolation"],
            Level::Gsi => &[
                "gsi",
                "generalised-snapshot-isolation",
                "generalized-snapshot-isolation",
            ],
            Level::StrongSi => &["strong-si", "strong-snapshot-isolation"],
            Level::Psi => &["psi", "parallel-snapshot-isolation"],
            Level::Pc => &["pc", "prefix-consistency", "prefix"],
            Level::Cc => &["cc", "causal", "causal-consistency", "tcc"],
            Level::Ra => &["ra", "read-atomic"],
            Level::RcSo => &["rc-so", "read-committed-so"],
            Level::Rc => &["rc", "read-committed"],
            Level::Linearizable => &["linearizable", "linearizability", "linearisable"],
            Level::AsRecorded => &["as-recorded"],
            Level::Pl(PlLevel::Pl1) => &["pl-1", "read-uncommitted"],
            Level::Pl(PlLevel::Pl2) => &["pl-2"],
            Level::Pl(PlLevel::Pl2Plus) => &["pl-2+", "consistent-view"],
            Level::Pl(PlLevel::Pl299) => &["pl-2.99", "repeatable-read"],
            Level::Pl(PlLevel::PlSi) => &["pl-si"],
            Level::Pl(PlLevel::Pl3) => &["pl-3", "conflict-serializable"],
        }
    }

    /// The demands of the level on a transaction's reads and writes; for Adya's levels, those searched if no order is recorded.
    pub fn model(self) -> Model {
        match self {
            Level::Si
            | Level::StrongSessionSi
            | Level::Gsi
            | Level::StrongSi
            | Level::Pl(PlLevel::PlSi) => Model::Si,
            Level::Ser
            | Level::StrongSessionSer
            | Level::StrictSer
            | Level::Linearizable
            | Level::Pl(_) => Model::Ser,
            Level::Psi => Model::Psi,
            Level::Pc => Model::Pc,
            Level::AsRecorded => Model::Mixed,
            Level::Cc => Model::Cc,
            Level::Ra => Model::Ra,
            Level::RcSo => Model::RcSo,
            Level::Rc => Model::Rc,
        }
    }

    /// The level's components, with the session-order switch if the level leaves it open.
    /// `None` if the switch contradicts the level.
    pub fn spec(self, session_order: Option<bool>) -> Option<Spec> {
        let demanded = matches!(self, Level::StrongSessionSer | Level::StrongSessionSi);
        if demanded && session_order == Some(false) {
            return None;
        }
        // A session order across keys would not be local, and the clock orders a session's operations anyway. Adya's
        // levels have none.
        let has_none = matches!(self, Level::Linearizable | Level::Pl(_));
        if has_none && session_order == Some(true) {
            return None;
        }
        Some(Spec {
            model: self.model(),
            session_order: session_order.unwrap_or(!has_none),
            real_time: match self {
                Level::StrictSer | Level::StrongSi | Level::Linearizable => Some(RealTime::STRICT),
                Level::Gsi => Some(RealTime::GENERALISED),
                _ => None,
            },
        })
    }

    /// The level's promise, with these components.
    pub fn promise(self, spec: Spec, refusals_count: bool) -> Promise {
        match self {
            Level::Linearizable => Promise::Linearizable(RegisterOptions {
                drift: spec.real_time.map_or(0, |it| it.drift),
                refusals_count,
            }),
            Level::Pl(level) => Promise::Recorded(level),
            _ => Promise::Level(spec),
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name as the tables of levels and models have it, in small letters: SQL puts spaces between words, programs underscores.
pub fn hyphenated(name: &str) -> String {
    let words: Vec<&str> = name
        .split([' ', '_', '-'])
        .filter(|it| !it.is_empty())
        .collect();
    words.join("-").to_ascii_lowercase()
}

/// There is no level of that name: the given name, and the known ones.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no level {0:?}; the levels are {1}")]
pub struct UnknownLevel(String, String);

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let spelt = hyphenated(name);
        let found = Level::ALL
            .into_iter()
            .find(|level| level.names().contains(&spelt.as_str()));
        found.ok_or_else(|| {
            let names = Level::ALL.map(Level::name);
            UnknownLevel(name.to_owned(), names.join(", "))
        })
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let generalised = self
            .real_time
            .is_some_and(|it| it.snapshots == Snapshots::Older);
        f.write_str(match self.model {
            Model::Ser => "serializability",
            Model::Si if generalised => "generalised snapshot isolation",
            Model::Si => "snapshot isolation",
            Model::Pc => "prefix consistency",
            Model::Cc => "causal consistency",
            Model::Ra => "read atomic",
            Model::RcSo => "read committed within sessions",
            Model::Rc => "read committed",
            Model::Psi => "parallel snapshot isolation",
            Model::Mixed => "each transaction's own level",
        })?;
        let in_order = self.real_time.is_some() && !(generalised && self.model == Model::Si);
        f.write_str(match (self.session_order, in_order) {
            (true, true) => " with session and real-time order",
            (true, false) => " with session order",
            (false, true) => " with real-time order",
            (false, false) => " without session order",
        })?;
        let Some(real_time) = self.real_time else {
            return Ok(());
        };
        if real_time.drift > 0 {
            write!(f, ", up to {} ms of drift", real_time.drift as f64 / 1e6)?;
        }
        if real_time.times == Times::Exact {
            f.write_str(", times exact")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(level: Level) -> Spec {
        // The levels that do not demand session order, without it.
        level.spec(Some(false)).or(level.spec(None)).unwrap()
    }

    #[test]
    fn every_level_answers_to_its_name() {
        for level in Level::ALL {
            for name in level.names() {
                assert_eq!(hyphenated(name), *name, "as it is compared");
                for spelt in [
                    name.to_uppercase(),
                    name.replace('-', " "),
                    name.replace('-', "_"),
                ] {
                    assert_eq!(spelt.parse(), Ok(level), "{spelt}");
                }
                // What is expected of a history is a model of the same meaning, by whatever name.
                let model = |name: &str| crate::lattice::model(name).map(|it| it.name);
                if *name != "causal" {
                    assert_eq!(model(name), model(level.name()), "{name}");
                }
            }
        }
        assert!("serial".parse::<Level>().is_err());
    }

    #[test]
    fn stronger_levels_imply_weaker_ones_and_not_the_other_way_round() {
        use Level::{
            Gsi, Pc, Psi, Ser, Si, StrictSer, StrongSessionSer, StrongSessionSi, StrongSi,
        };
        let implied = [
            (StrictSer, vec![Ser, StrongSi, Gsi, Si, Psi, Pc]),
            (StrongSessionSer, vec![Ser, StrongSessionSi, Si, Psi, Pc]),
            (Ser, vec![Si, Psi, Pc]),
            (StrongSi, vec![Gsi, Si, Psi, Pc]),
            (Gsi, vec![Si, Psi, Pc]),
            (StrongSessionSi, vec![Si, Psi, Pc]),
            (Si, vec![Psi, Pc]),
            (Psi, vec![]),
            (Pc, vec![]),
        ];
        for (level, weaker) in implied {
            for other in Level::uniform().filter(|it| !it.model().is_weak()) {
                let expected = level == other || weaker.contains(&other);
                assert_eq!(
                    spec(level).implies(spec(other)),
                    expected,
                    "{level}, {other}"
                );
            }
        }
    }

    #[test]
    fn more_drift_is_weaker_and_exact_times_are_stronger() {
        let strong = spec(Level::StrongSi);
        let loose = strong.with_clock(Times::Bounds, 5);
        let exact = strong.with_clock(Times::Exact, 0);
        assert!(strong.implies(loose) && !loose.implies(strong));
        assert!(exact.implies(strong) && !strong.implies(exact));
        assert!(!spec(Level::StrictSer).implies(exact));
        assert_eq!(spec(Level::Si).with_clock(Times::Exact, 7), spec(Level::Si));
    }
}
