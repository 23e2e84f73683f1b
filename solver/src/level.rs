//! The isolation levels, and what each demands besides explaining every read.

use std::fmt;
use std::str::FromStr;

/// The two families of graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Model {
    /// Serializability: one node a transaction.
    Ser,
    /// Snapshot isolation: a begin and a commit node a transaction.
    Si,
}

/// A level as its ingredients. Every ablation of the order relations is another `Spec`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// Which graph.
    pub model: Model,
    /// A session's transactions keep their order.
    pub session_order: bool,
    /// A transaction that committed before another began comes before it.
    pub real_time: bool,
}

/// The levels by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// Serializability; the session order is a switch, on unless told otherwise, as in Cobra.
    Ser,
    /// Serializability that keeps the session order.
    StrongSessionSer,
    /// Serializability that keeps the real-time order.
    StrictSer,
    /// Snapshot isolation (Adya's); the session order is a switch, on unless told otherwise, as in Viper.
    Si,
    /// Snapshot isolation that keeps the session order.
    StrongSessionSi,
}

impl Level {
    /// Every level.
    pub const ALL: [Level; 5] = [
        Level::Ser,
        Level::StrongSessionSer,
        Level::StrictSer,
        Level::Si,
        Level::StrongSessionSi,
    ];

    /// The name, as typed and as reported.
    pub fn name(self) -> &'static str {
        match self {
            Level::Ser => "ser",
            Level::StrongSessionSer => "strong-session-ser",
            Level::StrictSer => "strict-ser",
            Level::Si => "si",
            Level::StrongSessionSi => "strong-session-si",
        }
    }

    /// The level's ingredients, with the session-order switch where the level leaves it open.
    /// `None` where the switch contradicts the level.
    pub fn spec(self, session_order: Option<bool>) -> Option<Spec> {
        let model = match self {
            Level::Ser | Level::StrongSessionSer | Level::StrictSer => Model::Ser,
            Level::Si | Level::StrongSessionSi => Model::Si,
        };
        let demanded = matches!(self, Level::StrongSessionSer | Level::StrongSessionSi);
        if demanded && session_order == Some(false) {
            return None;
        }
        Some(Spec {
            model,
            session_order: session_order.unwrap_or(true),
            real_time: self == Level::StrictSer,
        })
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Level::ALL.into_iter().find(|level| level.name() == name);
        found.ok_or_else(|| {
            let names: Vec<_> = Level::ALL.iter().map(|level| level.name()).collect();
            format!("no level {name:?}; the levels are {}", names.join(", "))
        })
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.model {
            Model::Ser => "serializability",
            Model::Si => "snapshot isolation",
        })?;
        match (self.session_order, self.real_time) {
            (true, true) => f.write_str(" with session and real-time order"),
            (true, false) => f.write_str(" with session order"),
            (false, true) => f.write_str(" with real-time order"),
            (false, false) => f.write_str(" without session order"),
        }
    }
}
