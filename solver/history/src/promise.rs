//! What a history is checked against: a level over what clients saw, linearizability, or the database's own record.

use std::fmt;

use crate::adya::PlLevel;
use crate::level::{Level, Model, RealTime, Spec};
use crate::model::TxnId;

/// How operations on registers are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegisterOptions {
    /// How far clocks may disagree, in nanoseconds.
    pub drift: u64,
    /// Whether a refused compare-and-set shows that the key did not hold the expected value. In Knossos it shows nothing.
    pub refusals_count: bool,
}

/// The expected serial order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Along {
    /// By `commit_ts`.
    CommitTs,
    /// By `start_ts`.
    StartTs,
    /// This one.
    Order(Vec<TxnId>),
}

impl Along {
    /// The name, as reported.
    pub fn name(&self) -> &'static str {
        match self {
            Along::CommitTs => "commit-ts",
            Along::StartTs => "start-ts",
            Along::Order(_) => "order",
        }
    }
}

/// What a history is checked against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Some order explains what clients saw, at this level.
    Level(Spec),
    /// Every operation on a register takes effect at one moment between its start and its end.
    Linearizable(RegisterOptions),
    /// The version order and the snapshots that the database recorded satisfy a level of Adya's.
    Recorded(PlLevel),
    /// Run one after another in this order, the transactions read what they recorded.
    Along(Along),
}

impl From<Spec> for Promise {
    fn from(spec: Spec) -> Self {
        Promise::Level(spec)
    }
}

impl Promise {
    /// The name of linearizability in files.
    pub const LINEARIZABLE: &'static str = "linearizable";
    /// The name of an expected order in files.
    pub const ALONG: &'static str = "along";

    /// The promise as components, as far as a level has any: Adya's levels and expected orders have neither sessions nor a clock.
    pub fn spec(&self) -> Spec {
        let recorded = |model| Spec {
            model,
            session_order: false,
            real_time: None,
        };
        match self {
            Promise::Level(spec) => *spec,
            Promise::Linearizable(options) => Spec {
                real_time: Some(RealTime {
                    drift: options.drift,
                    ..RealTime::STRICT
                }),
                ..recorded(Model::Ser)
            },
            Promise::Recorded(level) => recorded(Level::Pl(*level).model()),
            Promise::Along(_) => recorded(Model::Ser),
        }
    }

    /// The name in files: a model's, one of Adya's levels', [`Self::LINEARIZABLE`] or [`Self::ALONG`].
    pub fn name(&self) -> &'static str {
        match self {
            Promise::Level(spec) => spec.model.name(),
            Promise::Linearizable(_) => Promise::LINEARIZABLE,
            Promise::Recorded(level) => level.name(),
            Promise::Along(_) => Promise::ALONG,
        }
    }

    /// Whether it is about the database's record, so that nothing is searched.
    pub fn is_recorded(&self) -> bool {
        matches!(self, Promise::Recorded(_) | Promise::Along(_))
    }

    /// Whether refused compare-and-sets count.
    pub fn refusals_count(&self) -> bool {
        matches!(self, Promise::Linearizable(options) if options.refusals_count)
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Promise::Level(spec) => spec.fmt(f),
            Promise::Linearizable(RegisterOptions { drift: 0, .. }) => {
                f.write_str("linearizability")
            }
            Promise::Linearizable(RegisterOptions { drift, .. }) => {
                let drift = *drift as f64 / 1e6;
                write!(f, "linearizability, up to {drift} ms of drift")
            }
            Promise::Recorded(level) => write!(f, "{level} on the recorded versions"),
            Promise::Along(Along::Order(_)) => f.write_str("serializability in the given order"),
            Promise::Along(along) => write!(f, "serializability in the order of {}", along.name()),
        }
    }
}
