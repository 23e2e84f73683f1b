//! The promise as a JSON object with the same fields for every level.

use kingsnake_history::adya::PlLevel;
use kingsnake_history::level::{Model, RealTime, Snapshots, Spec, Times};
use kingsnake_history::promise::{Along, Promise, RegisterOptions};
use serde::Serialize;
use serde_json::Value;

use crate::names::{flag, word};
use crate::{Read, wrong};

/// The promise; docs/json.md describes the fields.
#[derive(Debug, Serialize)]
pub struct LevelView {
    name: &'static str,
    model: &'static str,
    session_order: Option<bool>,
    real_time: Option<bool>,
    snapshots: Option<&'static str>,
    times: Option<&'static str>,
    clock_drift_ms: Option<f64>,
    refusals_count: Option<bool>,
    along: Option<&'static str>,
    words: String,
}

impl LevelView {
    /// What has no promise: all levels, or the rule of a workload.
    pub fn named(name: &'static str, words: String) -> Self {
        LevelView {
            name,
            model: name,
            session_order: None,
            real_time: None,
            snapshots: None,
            times: None,
            clock_drift_ms: None,
            refusals_count: None,
            along: None,
            words,
        }
    }
}

/// A promise; `name` is the level as typed.
pub fn level_view(promise: &Promise, name: &'static str) -> LevelView {
    let Spec {
        session_order,
        real_time,
        ..
    } = promise.spec();
    LevelView {
        name,
        model: promise.name(),
        session_order: Some(session_order),
        real_time: Some(real_time.is_some()),
        snapshots: real_time.map(|it| it.snapshots.name()),
        times: real_time.map(|it| it.times.name()),
        clock_drift_ms: real_time.map(|it| it.drift as f64 / 1e6),
        refusals_count: Some(promise.refusals_count()),
        along: match promise {
            Promise::Along(along) => Some(along.name()),
            _ => None,
        },
        words: promise.to_string(),
    }
}

/// The promise with this name and components; an expected order in a file has no transactions yet.
pub(crate) fn promise(
    name: &str,
    session_order: bool,
    real_time: Option<RealTime>,
    refusals_count: bool,
    along: Option<&str>,
) -> Read<Promise> {
    let models = || Model::ALL.into_iter().chain([Model::Mixed]);
    if let Some(model) = models().find(|it| it.name() == name) {
        return Ok(Promise::Level(Spec {
            model,
            session_order,
            real_time,
        }));
    }
    if let Some(level) = PlLevel::ALL.into_iter().find(|it| it.name() == name) {
        return Ok(Promise::Recorded(level));
    }
    match (name, along) {
        (Promise::LINEARIZABLE, _) => Ok(Promise::Linearizable(RegisterOptions {
            drift: real_time.map_or(0, |it| it.drift),
            refusals_count,
        })),
        (Promise::ALONG, Some("commit-ts")) => Ok(Promise::Along(Along::CommitTs)),
        (Promise::ALONG, Some("start-ts")) => Ok(Promise::Along(Along::StartTs)),
        (Promise::ALONG, Some("order")) => Ok(Promise::Along(Along::Order(Vec::new()))),
        (Promise::ALONG, _) => Err(wrong("\"along\": expected commit-ts, start-ts or order")),
        _ => {
            let levels = PlLevel::ALL.into_iter().map(PlLevel::name);
            let others = [Promise::LINEARIZABLE, Promise::ALONG];
            let names = models().map(Model::name).chain(levels).chain(others);
            let names: Vec<String> = names.map(|name| format!("{name:?}")).collect();
            let names = names.join(", ");
            Err(wrong(format!("model {name:?}; the models are {names}")))
        }
    }
}

/// The clock, from its fields.
pub(crate) fn real_time(snapshots: &str, times: &str, drift: u64) -> Read<RealTime> {
    let snapshots_of = [Snapshots::Older, Snapshots::Current];
    let found_snapshots = snapshots_of.into_iter().find(|it| it.name() == snapshots);
    let times_of = [Times::Bounds, Times::Exact];
    let found_times = times_of.into_iter().find(|it| it.name() == times);
    match (found_snapshots, found_times) {
        (Some(snapshots), Some(times)) => Ok(RealTime {
            snapshots,
            times,
            drift,
        }),
        _ => Err(wrong(format!(
            "no such clock: {snapshots} snapshots, {times} times"
        ))),
    }
}

/// The promise of a document.
pub(crate) fn read_level(level: &Value) -> Read<Promise> {
    let real_time = if flag(level, "real_time")? {
        let drift = level["clock_drift_ms"].as_f64().unwrap_or(0.0);
        let drift = (drift * 1e6).round() as u64;
        Some(real_time(
            word(level, "snapshots")?,
            word(level, "times")?,
            drift,
        )?)
    } else {
        None
    };
    let refusals_count = level["refusals_count"].as_bool().unwrap_or(false);
    let along = level["along"].as_str();
    let session_order = flag(level, "session_order")?;
    promise(
        word(level, "model")?,
        session_order,
        real_time,
        refusals_count,
        along,
    )
}
