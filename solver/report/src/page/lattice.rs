//! The lattice of models as a picture: holds, ruled out, or unknown; the strongest on top.

use std::collections::BTreeMap;

use kingsnake_solver::lattice::{ConsistencyModel, MODELS, implied_models};
use maud::{Markup, html};

use crate::anomalies::KnownModels;

/// Models of single objects and of views, which are not decided here; they are listed as text.
const ASIDE: [&str; 11] = [
    "1SR",
    "session-serializable",
    "view-serializable",
    "linearizable",
    "sequential",
    "causal",
    "writes-follow-reads",
    "PRAM",
    "monotonic-reads",
    "monotonic-writes",
    "read-your-writes",
];

const WIDTH: f64 = 206.0;
const HEIGHT: f64 = 40.0;
const ACROSS: f64 = 220.0;
const DOWN: f64 = 66.0;
const MARGIN: f64 = 10.0;

/// The section.
pub fn section(models: &KnownModels) -> Markup {
    let aside: Vec<&str> = ASIDE
        .iter()
        .copied()
        .filter(|it| models.hold.contains(it))
        .collect();
    html! {
        section #lattice {
            h2 { "The lattice" }
            p.soft {
                "Each box is a consistency model; a line leads from a model to those below that it implies. "
                span.holds { "✓ holds" } ", " span.fails { "✗ ruled out" } ", " span.open { "? not decided" } "."
            }
            div.scroller { div.wide.drawing tabindex="0" role="region" aria-label="The lattice of models" { (drawing(models)) } }
            @if !aside.is_empty() { p.soft { "Not drawn, and holding too: " (aside.join(", ")) "." } }
        }
    }
}

fn is_drawn(name: &str) -> bool {
    !ASIDE.contains(&name)
}

/// The models that a model implies directly.
fn covers(model: &ConsistencyModel) -> Vec<&'static str> {
    let drawn = || model.implies.iter().copied().filter(|it| is_drawn(it));
    let is_below = |name: &'static str| {
        drawn().any(|other| other != name && implied_models(other).contains(name))
    };
    drawn().filter(|name| !is_below(name)).collect()
}

/// The position of each model: its row from the top and its place in the row.
fn places() -> BTreeMap<&'static str, (f64, f64)> {
    let drawn: Vec<&ConsistencyModel> = MODELS.iter().filter(|it| is_drawn(it.name)).collect();
    let mut rows: BTreeMap<&'static str, usize> = drawn.iter().map(|it| (it.name, 0)).collect();
    // A model is drawn below all that imply it; one pass per model suffices.
    for _ in &drawn {
        for model in &drawn {
            let row = rows[model.name];
            for name in covers(model) {
                rows.entry(name).and_modify(|it| *it = (*it).max(row + 1));
            }
        }
    }
    let n_rows = rows.values().max().map_or(0, |it| it + 1);
    let widest = (0..n_rows).map(|row| rows.values().filter(|it| **it == row).count());
    let widest = widest.max().unwrap_or(1) as f64;
    let mut places: BTreeMap<&'static str, (f64, f64)> = BTreeMap::new();
    for row in 0..n_rows {
        let mut of_row: Vec<(f64, &'static str)> = drawn
            .iter()
            .filter(|it| rows[it.name] == row)
            .map(|it| (above(&drawn, &places, it.name, widest), it.name))
            .collect();
        of_row.sort_by(|a, b| a.0.total_cmp(&b.0));
        let left = (widest - of_row.len() as f64) / 2.0;
        for (at, (_, name)) in of_row.into_iter().enumerate() {
            places.insert(name, (left + at as f64, row as f64));
        }
    }
    places
}

/// The middle of the models that imply one.
fn above(
    drawn: &[&ConsistencyModel],
    places: &BTreeMap<&'static str, (f64, f64)>,
    name: &'static str,
    widest: f64,
) -> f64 {
    let parents = drawn.iter().filter(|it| covers(it).contains(&name));
    let places: Vec<f64> = parents
        .filter_map(|it| Some(places.get(it.name)?.0))
        .collect();
    if places.is_empty() {
        return widest / 2.0;
    }
    places.iter().sum::<f64>() / places.len() as f64
}

fn drawing(models: &KnownModels) -> Markup {
    let places = places();
    let far = |of: fn(&(f64, f64)) -> f64| places.values().map(of).fold(0.0, f64::max);
    let width = far(|it| it.0) * ACROSS + WIDTH + 2.0 * MARGIN;
    let height = far(|it| it.1) * DOWN + HEIGHT + 2.0 * MARGIN;
    let corner = |name: &str| {
        let (x, y) = places[name];
        (MARGIN + x * ACROSS, MARGIN + y * DOWN)
    };
    let number = |it: f64| format!("{it:.1}");
    let drawn = || MODELS.iter().filter(|it| is_drawn(it.name));
    html! {
        svg.lattice viewBox={ "0 0 " (number(width)) " " (number(height)) } width=(number(width)) height=(number(height))
            style={ "min-width:" (number(width * 0.7)) "px" } role="img" aria-label="The lattice of models" {
            @for model in drawn() {
                @for below in covers(model) {
                    @let ((x1, y1), (x2, y2)) = (corner(model.name), corner(below));
                    line x1=(number(x1 + WIDTH / 2.0)) y1=(number(y1 + HEIGHT)) x2=(number(x2 + WIDTH / 2.0)) y2=(number(y2)) {}
                }
            }
            @for model in drawn() {
                @let (x, y) = corner(model.name);
                @let (class, sign, word) = verdict(models, model.name);
                g class=(class) {
                    title { (model.name) ": " (word) @if !model.aliases.is_empty() { ". Also called " (model.aliases.join(", ")) "." } }
                    rect x=(number(x)) y=(number(y)) width=(WIDTH) height=(HEIGHT) rx="8" {}
                    text x=(number(x + WIDTH / 2.0)) y=(number(y + 17.0)) { (sign) " " (shown(model)) }
                    text.also x=(number(x + WIDTH / 2.0)) y=(number(y + 32.0)) { (also(model)) }
                }
            }
        }
    }
}

/// The name, cut to the available width.
fn shown(model: &ConsistencyModel) -> String {
    model
        .name
        .replace("strong-session-", "session ")
        .replace("strong-", "strong ")
        .replace('-', " ")
}

/// The shortest of its other names.
fn also(model: &ConsistencyModel) -> &'static str {
    let names = model.aliases.iter().copied();
    names.min_by_key(|it| it.len()).unwrap_or("")
}

fn verdict(models: &KnownModels, name: &str) -> (&'static str, &'static str, &'static str) {
    if models.hold.contains(name) {
        ("holds", "✓", "holds")
    } else if models.ruled_out.contains(name) {
        ("fails", "✗", "ruled out")
    } else {
        ("open", "?", "not decided")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_stands_below_every_one_that_implies_it_and_no_two_share_a_place() {
        let places = places();
        assert_eq!(places.len(), MODELS.len() - ASIDE.len());
        let mut taken: Vec<String> = places.values().map(|it| format!("{it:?}")).collect();
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len(), places.len());
        for model in MODELS.iter().filter(|it| is_drawn(it.name)) {
            for below in covers(model) {
                assert!(
                    places[model.name].1 < places[below].1,
                    "{} {below}",
                    model.name
                );
            }
        }
    }

    #[test]
    fn every_box_says_what_is_known_of_it() {
        let mut models = KnownModels::default();
        models.hold.insert("read-committed");
        models.ruled_out.insert("serializable");
        let drawn = section(&models).0;
        assert!(drawn.contains("✓ read committed"), "{drawn}");
        assert!(drawn.contains("✗ serializable"), "{drawn}");
        assert!(drawn.contains("? snapshot isolation"), "{drawn}");
    }
}
