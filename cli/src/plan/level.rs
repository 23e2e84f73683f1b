//! The level that was asked for: its ingredients, its clocks, and what contradicts it.

use anyhow::{Result, bail};
use kingsnake_solver::level::{Level, Model, RealTime, Spec, Times};

use crate::args::{LevelArg, LevelArgs, OnOff, TimesArg};
use crate::isolation::IsolationMap;

/// The level, where there must be one.
pub fn one_level(args: &LevelArgs) -> Result<Level> {
    match args.level {
        None => Ok(Level::Ser),
        Some(LevelArg::One(level)) => Ok(level),
        Some(LevelArg::Pl(level)) => bail!(
            "--level {level} is judged by `check` on a version order that is given; here another level is needed"
        ),
        Some(LevelArg::Auto) => bail!("--level auto is for `check`; here one level is needed"),
    }
}

/// The level, where its question is one of cycles in one graph and goes to a solver or a file.
pub fn questioned_level(args: &LevelArgs) -> Result<Level> {
    match args.level {
        Some(LevelArg::One(Level::Psi)) => bail!(
            "--level psi asks several questions, each with what the last one taught, so there is no one question to write or to prove"
        ),
        Some(LevelArg::One(level)) if level.model().is_weak() => bail!(
            "--level {level} is decided by a sort, so there is no question to write or to prove; `check --certificate` and `--json` write \
             what shows the answer"
        ),
        _ => one_level(args),
    }
}

/// What recorded isolation levels stand for at a level.
pub fn isolation_map(level: Level, args: &LevelArgs) -> Result<Option<IsolationMap>> {
    match (level, &args.isolation_map) {
        (Level::AsRecorded, map) => Ok(Some(map.clone().unwrap_or_default())),
        (_, None) => Ok(None),
        (level, Some(_)) => bail!(
            "--isolation-map is for --level as-recorded; at --level {level} all transactions have that level"
        ),
    }
}

/// The level's ingredients; an error where a switch contradicts the level or means nothing to it.
pub fn spec(level: Level, args: &LevelArgs) -> Result<Spec> {
    let typed = |switch: Option<OnOff>| switch.map(|switch| switch == OnOff::On);
    let Some(mut spec) = level.spec(typed(args.session_order)) else {
        if level == Level::Linearizable {
            bail!(
                "--level linearizable knows only the order of the clock, and --session-order on asks for \
                 another; use --level strict-ser for both"
            );
        }
        bail!(
            "--level {level} demands session order, and --session-order off forbids it; \
             use --level ser or si for the level without session order"
        );
    };
    match (spec.real_time, typed(args.real_time)) {
        (None, Some(true)) if !matches!(spec.model, Model::Ser | Model::Si | Model::Pc) => bail!(
            "--level {level} does not look at the clock; use --level strict-ser or strong-si for real-time order"
        ),
        (None, Some(true)) => spec.real_time = Some(RealTime::STRICT),
        (Some(_), Some(false)) => bail!(
            "--level {level} demands real-time order, and --real-time off forbids it; \
             use --level ser or si for the level without real-time order"
        ),
        _ => {}
    }
    clocked(spec, args)
}

/// The level with the clocks that were asked for.
pub fn clocked(spec: Spec, args: &LevelArgs) -> Result<Spec> {
    let Some(real_time) = spec.real_time else {
        if args.clock_drift.is_some() || args.times.is_some() {
            bail!(
                "--clock-drift and --times are for levels that look at the clock: strict-ser, gsi \
                 and strong-si"
            );
        }
        return Ok(spec);
    };
    let times = args.times.map(|times| match times {
        TimesArg::Bounds => Times::Bounds,
        TimesArg::Exact => Times::Exact,
    });
    Ok(spec.with_clock(
        times.unwrap_or(real_time.times),
        args.clock_drift.unwrap_or(real_time.drift),
    ))
}

/// What a level promises, in words.
pub fn promise(level: Level, spec: Spec) -> String {
    let drift = spec.real_time.map_or(0, |it| it.drift);
    match (level, drift) {
        (Level::Linearizable, 0) => "linearizability".to_owned(),
        (Level::Linearizable, drift) => {
            format!("linearizability, up to {} ms of drift", milliseconds(drift))
        }
        _ => spec.to_string(),
    }
}

/// Nanoseconds, as milliseconds.
pub(super) fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}
