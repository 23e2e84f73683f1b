//! A section per class of anomaly: its name, its count, one example as a story and as a picture.

use kingsnake_solver::model::History;
use maud::{Markup, html};

use super::story;
use super::terms::Terms;
use crate::anomalies::FoundAnomalies;
use crate::picture;
use kingsnake_text::count;

/// The sections, and the models that the anomalies rule out.
pub fn sections(history: &History, found: &FoundAnomalies, terms: &Terms) -> Markup {
    let list = |names: &kingsnake_solver::lattice::Names| {
        let names: Vec<&str> = names.iter().copied().collect();
        names.join(", ")
    };
    html! {
        section #anomalies {
            h2 { @if found.anomalies.classes.is_empty() { "No anomaly" } @else { "Anomalies, the worst first" } }
            @if !found.anomalies.is_complete { p.warning { "There may be more: the search stopped at its limit." } }
            @if !found.boundary.not.is_empty() {
                p { "Ruled out: " strong { (list(&found.boundary.not)) } "." }
                @if !found.boundary.also_not.is_empty() {
                    p.soft { "And " (count(found.boundary.also_not.len(), "model")) " that imply them: " (list(&found.boundary.also_not)) "." }
                }
            }
            @for (at, (class, told)) in found.classes().enumerate() {
                @let labels = kingsnake_tell::Labels::new(history, &told.txns);
                details.class open[at == 0] {
                    summary { strong { (terms.explain(class.name)) } " " span.soft { "× " (class.count) } " " (told.name.short) }
                    p { (told.about) }
                    (story::lines(&told.lines, terms))
                    (super::drawing(&picture::scene(history, &labels, &class.example), &format!("ks{at}"), terms))
                }
            }
        }
    }
}
