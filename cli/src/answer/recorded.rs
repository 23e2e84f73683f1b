//! Extra work for checks of recorded versions or of an expected order: reading the order of a file, deciding whether to
//! search the rest, and finding out whether some other order explains what clients saw.

use std::path::Path;

use anyhow::{Context, Result};
use kingsnake_adya::AdyaError;
use kingsnake_encodings::BackendOptions;
use kingsnake_history::adya::PlLevel;
use kingsnake_report::answer::OtherOrder;
use kingsnake_solver::budget::Budget;
use kingsnake_solver::check::{Engines, Techniques, check_on};
use kingsnake_solver::level::Level;
use kingsnake_solver::model::{History, TxnId};
use kingsnake_solver::progress::Silent;
use kingsnake_solver::promise::{Along, Promise};
use rustc_hash::FxHashMap;

use crate::plan::Plan;

/// Reads the expected order, if it is given as a file.
pub fn read_expected(plan: &mut Plan, history: &History) -> Result<()> {
    if let (Promise::Along(Along::Order(order)), Some(path)) = (&mut plan.promise, &plan.along) {
        *order = read_order(history, Path::new(path))?;
    }
    Ok(())
}

/// Whether to search for what a certificate lacks: if a version order is partial and nothing else was requested.
pub fn is_searched_instead(plan: &Plan, error: &AdyaError) -> bool {
    let is_open = matches!(
        error,
        AdyaError::Partial { .. } | AdyaError::NoTimes | AdyaError::Range { .. }
    );
    is_open && has_searched_level(plan) && !plan.is_certified
}

/// Whether the level can also be searched.
fn has_searched_level(plan: &Plan) -> bool {
    matches!(plan.level, Level::Pl(PlLevel::Pl3 | PlLevel::PlSi))
}

/// One transaction name per line.
fn read_order(history: &History, path: &Path) -> Result<Vec<TxnId>> {
    let text = kingsnake_datasets::bounded::read_text(path, crate::input::MOST_TEXT).with_context(
        || {
            format!(
                "--along {}: not commit-ts or start-ts, and no file that can be read",
                path.display()
            )
        },
    )?;
    let named: FxHashMap<String, TxnId> = history
        .txns()
        .map(|txn| (history.txn_name(txn), txn))
        .collect();
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(at, line)| {
            let name = line.trim();
            let bare = serde_json::from_str::<String>(name);
            let name = bare.as_deref().unwrap_or(name);
            named.get(name).copied().with_context(|| {
                format!(
                    "{}, line {}: no transaction {name:?}; write one transaction's id a line",
                    path.display(),
                    at + 1
                )
            })
        })
        .collect()
}

/// Searches another order, if the history is its own certificate in the plan and its level can be searched.
pub fn other_order(history: &History, plan: &Plan, budget: &Budget) -> Result<Option<OtherOrder>> {
    if !plan.is_certified || !has_searched_level(plan) {
        return Ok(None);
    }
    let mut bare = history.clone();
    bare.retain_versions(|_| false);
    let options = BackendOptions::default();
    let mut backend = kingsnake_encodings::backend("auto", &options)
        .or_else(|_| kingsnake_encodings::backend("cadical/propagator", &options))?;
    let engines = Engines {
        device: None,
        backend: &mut *backend,
    };
    let techniques = Techniques::default();
    let report = check_on(
        &bare,
        None,
        plan.spec,
        &techniques,
        engines,
        budget,
        &mut Silent,
    );
    Ok(Some(match report.map(|report| report.verdict.holds()) {
        Ok(Some(true)) => OtherOrder::Some,
        Ok(Some(false)) => OtherOrder::None,
        _ => OtherOrder::Undecided,
    }))
}
