//! The page of `--level auto`: the lattice, every level with its verdict, and every class of anomaly.

use kingsnake_solver::model::History;
use kingsnake_text::{Frame, first_of, page as whole};
use maud::html;

use super::terms::Terms;
use super::{SCRIPT, STYLE, classes, cost, lattice};
use crate::anomalies::{FoundAnomalies, KnownModels};

/// A level and its outcome.
pub struct LevelRow {
    /// The level.
    pub level: String,
    /// What it promises.
    pub words: String,
    /// Whether it holds, if known.
    pub holds: Option<bool>,
    /// The verdict in a word.
    pub verdict: &'static str,
    /// Why.
    pub why: String,
}

/// The content of the page.
pub struct LatticePage<'a> {
    /// The history.
    pub history: &'a History,
    /// Its name and size.
    pub subject: String,
    /// The strongest levels that hold.
    pub strongest: Vec<&'static str>,
    /// The exit status.
    pub status: u8,
    /// Every level.
    pub rows: Vec<LevelRow>,
    /// Every model.
    pub models: KnownModels,
    /// Every class of anomaly, unless the budget ended first.
    pub found: Option<&'a FoundAnomalies>,
    /// What the user should know.
    pub warnings: &'a [String],
    /// The command that reproduces it.
    pub command: String,
    /// The duration.
    pub time: String,
}

/// The page.
pub fn page(survey: &LatticePage<'_>) -> String {
    let terms = Terms::default();
    let (mood, sign, words) = match survey.status {
        0 => ("satisfied", "✓", "Every level holds"),
        1 => ("violated", "✗", "Not every level holds"),
        _ => ("unknown", "?", "Not every level is decided"),
    };
    let strongest = match survey.strongest.as_slice() {
        [] => "No level is known to hold".to_owned(),
        names => format!("Strongest: {}", names.join(", ")),
    };
    let body = html! {
        header {
            p.verdict.sentence { span aria-hidden="true" { (sign) } " " (words) }
            h1 { (strongest) }
            p.subject { (survey.subject) }
            p.how { "Every level was checked, or follows from another. " span.time { (survey.time) } }
            @for warning in first_of(survey.warnings) { p.warning { (warning) } }
        }
        (lattice::section(&survey.models))
        section #levels {
            h2 { "The levels" }
            div.scroller { div.wide tabindex="0" role="region" aria-label="Every level and its verdict" {
                table.levels {
                    thead { tr { @for name in ["level", "verdict", "why", "what it promises"] { th scope="col" { (name) } } } }
                    tbody { @for row in &survey.rows {
                        tr {
                            th scope="row" { code { (row.level) } }
                            td class=(match row.holds { Some(true) => "holds", Some(false) => "fails", None => "open" }) { (row.verdict) }
                            td.what { (terms.explain(&row.why)) }
                            td.soft { (row.words) }
                        }
                    } }
                }
            } }
        }
        @if let Some(found) = survey.found { (classes::sections(survey.history, found, &terms)) }
        section {
            h2 { "The history" }
            dl.facts { @for (name, value) in cost::sizes(survey.history) { div { dt { (name) } dd { (value) } } } }
        }
        section #run {
            h2 { "The run" }
            p { "This repeats it:" }
            pre.command { code { (survey.command) } }
        }
    };
    let frame = Frame {
        title: &format!("{strongest} ({})", survey.subject),
        mood,
        style: STYLE,
        script: SCRIPT,
    };
    whole(frame, &body)
}
