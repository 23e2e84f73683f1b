//! Runs every check of a study in several ways, side by side: on devices, by back ends, with profiles of techniques.

use std::collections::BTreeMap;

use toml::Spanned;

use crate::recipe::{Axis, Experiment, Named, Recipe, Scalar, Words};

/// The parameter that names a set of techniques.
const PROFILE: &str = "profile";

/// Adds the values of a switch to a study (`--device`, `--backend`). With several, each value of a figure's series that has a name
/// becomes one per value; other experiments get an axis, and make no claims.
pub fn put_beside(recipe: &mut Recipe, switch: &str, given: &[String]) {
    let words = |value: &str| -> Words { [switch, value].map(unplaced).to_vec() };
    if let [one] = given {
        recipe.check.extend(words(one));
    }
    if given.len() < 2 {
        return;
    }
    for experiment in &mut recipe.experiments {
        if let Some(axis) = series(experiment) {
            let each = |of: &Named, value: &String| Named {
                name: unplaced(&format!("{}, {value}", of.name.get_ref())),
                set: of.set.clone(),
                check: of.check.iter().cloned().chain(words(value)).collect(),
            };
            let all = axis.named.iter();
            axis.named = all
                .flat_map(|of| given.iter().map(move |value| each(of, value)))
                .collect();
        } else {
            let value = |value: &String| Named {
                name: unplaced(value),
                set: BTreeMap::default(),
                check: words(value),
            };
            let name = switch.trim_start_matches('-');
            experiment
                .axes
                .push(axis(name, given.iter().map(value).collect()));
            experiment.claims.clear();
        }
    }
}

/// Runs every check with each of these profiles: in place of the profiles that an axis names, or along an axis of their own.
pub fn put_profiles(recipe: &mut Recipe, profiles: &[String]) {
    if profiles.is_empty() {
        return;
    }
    let value = |profile: &String| Named {
        name: unplaced(profile),
        set: BTreeMap::from([(
            unplaced(PROFILE),
            Scalar {
                word: profile.clone(),
                number: None,
            },
        )]),
        check: Words::new(),
    };
    let all: Vec<Named> = profiles.iter().map(value).collect();
    let is_profile = |of: &Named| {
        let mut names = of.set.keys();
        names.len() == 1 && names.all(|name| name.get_ref() == PROFILE)
    };
    for experiment in &mut recipe.experiments {
        let mut axes = experiment.axes.iter_mut();
        let named = axes.find(|axis| !axis.named.is_empty() && axis.named.iter().all(is_profile));
        match named {
            Some(axis) => axis.named.clone_from(&all),
            None => experiment.axes.push(axis(PROFILE, all.clone())),
        }
    }
}

/// The axis that a figure tells apart by colour, where its values have names.
fn series(experiment: &mut Experiment) -> Option<&mut Axis> {
    let figure = experiment.figure.as_ref()?;
    let series = figure.series.as_ref()?.get_ref();
    let mut axes = experiment.axes.iter_mut();
    axes.find(|axis| axis.name.get_ref() == series && !axis.named.is_empty())
}

fn unplaced(word: &str) -> Spanned<String> {
    Spanned::new(0..0, word.to_owned())
}

fn axis(name: &str, named: Vec<Named>) -> Axis {
    Axis {
        name: unplaced(name),
        parameter: None,
        values: None,
        paper: None,
        named,
        backends: false,
        percent: false,
    }
}
