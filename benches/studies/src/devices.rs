//! Puts a study on devices: every check on one, or every check on each of several, side by side.

use toml::Spanned;

use crate::recipe::{Axis, Named, Recipe, Words};

/// The axis that is added where no series has names.
const DEVICE: &str = "device";

/// Adds the devices to a study. With several, each value of a figure's series that has a name becomes one a device; other
/// experiments get an axis of devices, and make no claims.
pub fn put_on(recipe: &mut Recipe, devices: &[String]) {
    match devices {
        [] => {}
        [one] => recipe.check.extend(words(one)),
        several => {
            for experiment in &mut recipe.experiments {
                let series = experiment.figure.as_ref().and_then(|it| it.series.as_ref());
                let series = series.map(|name| name.get_ref().clone());
                let mut axes = experiment.axes.iter_mut();
                let named = axes.find(|axis| {
                    Some(axis.name.get_ref()) == series.as_ref() && !axis.named.is_empty()
                });
                if let Some(axis) = named {
                    axis.named = on_each(&axis.named, several);
                } else {
                    experiment.axes.push(axis(several));
                    experiment.claims.clear();
                }
            }
        }
    }
}

fn unplaced(word: &str) -> Spanned<String> {
    Spanned::new(0..0, word.to_owned())
}

fn words(device: &str) -> Words {
    ["--device", device].map(unplaced).to_vec()
}

fn on_each(values: &[Named], devices: &[String]) -> Vec<Named> {
    let on = |value: &Named, device: &String| {
        let mut value = value.clone();
        value.name = unplaced(&format!("{}, {device}", value.name.get_ref()));
        value.check.extend(words(device));
        value
    };
    let each = |value| devices.iter().map(move |device| on(value, device));
    values.iter().flat_map(each).collect()
}

fn axis(devices: &[String]) -> Axis {
    let value = |device: &String| Named {
        name: unplaced(device),
        set: std::collections::BTreeMap::default(),
        check: words(device),
    };
    Axis {
        name: unplaced(DEVICE),
        parameter: None,
        values: None,
        paper: None,
        named: devices.iter().map(value).collect(),
        backends: false,
        percent: false,
    }
}
