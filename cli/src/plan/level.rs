//! The requested level: its components, its clocks, and contradictions between options.

use anyhow::{Result, bail};
use kingsnake_history::adya::PlLevel;
use kingsnake_solver::definition::Definition;
use kingsnake_solver::level::{Level, Model, RealTime, Spec, Times};
use kingsnake_solver::promise::{Along, Promise};

use crate::args::{CheckArgs, FailedCasArg, LevelArg, LevelArgs, OnOff, TimesArg};
use crate::isolation::IsolationMap;
use crate::refused::{PROOF, Subject, refusal};

/// The level, if a single one is required.
pub fn one_level(args: &LevelArgs) -> Result<Level> {
    match args.level {
        None => Ok(Level::Ser),
        Some(LevelArg::One(level @ Level::Pl(_))) => bail!(
            "--level {level} is judged by `check` on a version order that is given; here another level is needed"
        ),
        Some(LevelArg::One(level)) => Ok(level),
        Some(LevelArg::Paper(definition)) => Ok(definition.level),
        Some(LevelArg::Auto) => bail!("--level auto is for `check`; here one level is needed"),
    }
}

/// The level of a check: judged from the database's record, one of Adya's, or `ser` along an expected order.
pub fn checked_level(args: &CheckArgs) -> Result<Level> {
    let level = args.level.level.and_then(LevelArg::one);
    match (level, &args.along, &args.certificate_from) {
        (Some(Level::Pl(_)), Some(_), _) => {
            bail!("--along replays a serial order, so the level is ser; leave --level out")
        }
        (None | Some(Level::Ser), Some(_), _) => Ok(Level::Ser),
        (Some(_), Some(_), _) => bail!("--along replays a serial order, so the level is ser"),
        (None | Some(Level::Ser), None, Some(_)) => Ok(Level::Pl(PlLevel::Pl3)),
        (Some(Level::Si), None, Some(_)) => Ok(Level::Pl(PlLevel::PlSi)),
        (Some(level @ Level::Pl(_)), None, _) => Ok(level),
        (Some(_), None, Some(_)) => bail!(
            "--certificate-from history knows ser, si and {}",
            PlLevel::ALL.map(PlLevel::name).join(", ")
        ),
        (_, None, None) => one_level(&args.level),
    }
}

/// The promise; if an order is in a file, its transactions are not known yet.
pub fn promised(level: Level, spec: Spec, args: &CheckArgs) -> Promise {
    let refusals_count = args.level.failed_cas == Some(FailedCasArg::Differs);
    match args.along.as_deref() {
        None => level.promise(spec, refusals_count),
        Some("commit-ts") => Promise::Along(Along::CommitTs),
        Some("start-ts") => Promise::Along(Along::StartTs),
        Some(_) => Promise::Along(Along::Order(Vec::new())),
    }
}

/// The components of a check's level.
pub fn checked_spec(level: Level, args: &CheckArgs) -> Result<Spec> {
    if !args.is_recorded() {
        return spec(level, &args.level);
    }
    let LevelArgs {
        session_order,
        real_time,
        ..
    } = &args.level;
    if *session_order == Some(OnOff::On) || *real_time == Some(OnOff::On) {
        bail!("Adya's levels and expected orders know neither session order nor real time");
    }
    let recorded = LevelArgs {
        session_order: Some(OnOff::Off),
        real_time: None,
        ..args.level.clone()
    };
    spec(level, &recorded)
}

/// The level, if its question is about cycles in one graph, for a solver or a file.
pub fn questioned_level(args: &LevelArgs) -> Result<Level> {
    let level = one_level(args)?;
    match refusal(Subject::Level(level), PROOF) {
        Some(why) if level != Level::Linearizable => bail!("--level {level} {why}"),
        _ => Ok(level),
    }
}

/// The level, where an order is searched or sorted in one graph.
pub fn searched_level(args: &LevelArgs) -> Result<Level> {
    match one_level(args)? {
        level @ (Level::Pl(_) | Level::Linearizable) => bail!(
            "--level {level} has no graph of constraints; the levels from rc to strict-ser have one"
        ),
        level => Ok(level),
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

/// The level's components; an error if a switch contradicts the level or does not apply to it.
pub fn spec(level: Level, args: &LevelArgs) -> Result<Spec> {
    if let Some(LevelArg::Paper(definition)) = args.level {
        return defined(definition, args);
    }
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

/// The level as a paper defines it, which leaves only the clock drift open.
fn defined(definition: &Definition, args: &LevelArgs) -> Result<Spec> {
    if args.session_order.is_some() || args.real_time.is_some() || args.times.is_some() {
        bail!(
            "--level {} says which orders count and how times are read; with --session-order, --real-time or --times \
             ask for --level {}",
            definition.name,
            definition.level
        );
    }
    clocked(definition.spec(), args)
}

/// The level with the requested clocks.
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

/// Nanoseconds, as milliseconds.
pub(super) fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}
