//! Finds the cells that a paper's claim is about.

use std::collections::BTreeMap;

use crate::error::Result;
use toml::Spanned;

use crate::design::{Bound, Label, Quantity, SettledExperiment, Stated, listed};
use crate::recipe::{Claim, Experiment, Scalar};
use crate::settle::Settler;

impl Settler<'_> {
    /// Settles a claim of an experiment: once, or for each value of the axis that it names.
    pub(crate) fn stated(
        &self,
        claim: &Claim,
        experiment: &Experiment,
        shown: &SettledExperiment,
    ) -> Result<Vec<Stated>> {
        let sizes = self.other_sizes(experiment);
        let Some(each) = &claim.each else {
            return Ok(vec![self.state(claim, sizes, shown)?]);
        };
        let values = &shown.axes[self.axis(each, &shown.axes)?].values;
        let of_value = |value: &Label| {
            let word = Scalar {
                word: value.name.clone(),
                number: value.number,
            };
            let mut claim = claim.clone();
            claim.of.insert(each.clone(), word.clone());
            if let Some(over) = &mut claim.over {
                over.insert(each.clone(), word);
            }
            claim.says = format!("{}: {}", value.name, claim.says);
            self.state(&claim, sizes.clone(), shown)
        };
        values.iter().map(of_value).collect()
    }

    /// Which of the paper's sizes are others here; what an axis varies is what the claim says.
    fn other_sizes(&self, experiment: &Experiment) -> Option<String> {
        let paper = self.recipe.paper.as_ref()?;
        let varies = |name: &str| {
            experiment.axes.iter().any(|axis| {
                let by_parameter = axis
                    .parameter
                    .as_ref()
                    .is_some_and(|it| it.get_ref() == name);
                let mut named = axis.named.iter().flat_map(|value| value.set.keys());
                by_parameter || named.any(|it| it.get_ref() == name)
            })
        };
        let differing: Vec<String> = paper
            .parameters
            .iter()
            .filter(|(name, _)| !varies(name.get_ref()))
            .filter_map(|(name, value)| {
                let ours = self.parameters.get(name.get_ref())?;
                let same = *ours == value.word
                    || (value.number.is_some() && ours.parse().ok() == value.number);
                (!same).then(|| format!("{} {ours}, the paper's {}", name.get_ref(), value.word))
            })
            .collect();
        (!differing.is_empty()).then(|| differing.join("; "))
    }

    fn state(
        &self,
        claim: &Claim,
        sizes: Option<String>,
        shown: &SettledExperiment,
    ) -> Result<Stated> {
        let axis = |name| self.axis(name, &shown.axes);
        let of = match (&claim.over, &claim.least, &claim.most) {
            (None, None, None) => Quantity::Time(self.selected(&claim.of, shown, None)?[0].1),
            (Some(over), None, None) => Quantity::Ratio(
                self.selected(&claim.of, shown, None)?[0].1,
                self.selected(over, shown, None)?[0].1,
            ),
            (None, Some(least), None) => {
                Quantity::Least(self.selected(&claim.of, shown, Some(axis(least)?))?)
            }
            (Some(over), None, Some(most)) => {
                let along = Some(axis(most)?);
                Quantity::Most(
                    self.selected(&claim.of, shown, along)?,
                    self.selected(over, shown, along)?,
                )
            }
            (Some(_), Some(least), _) => {
                let words = "a claim has `over` or `least`, not both";
                return Err(self.page.blame(least.span(), words));
            }
            (None, _, Some(most)) => {
                let words = "`most` compares, so it needs `over`";
                return Err(self.page.blame(most.span(), words));
            }
        };
        Ok(Stated {
            says: claim.says.clone(),
            of,
            paper: claim.paper,
            bound: match (claim.more, claim.at_most) {
                (true, _) => Bound::More,
                (_, true) => Bound::AtMost,
                _ => Bound::Exact,
            },
            sizes,
            longest: claim.longest,
        })
    }

    /// The points at these values, over all values of the free axis.
    fn selected(
        &self,
        values: &BTreeMap<Spanned<String>, Scalar>,
        shown: &SettledExperiment,
        free: Option<usize>,
    ) -> Result<Vec<(String, usize)>> {
        let mut at: Vec<Option<usize>> = shown
            .axes
            .iter()
            .map(|axis| (axis.values.len() == 1).then_some(0))
            .collect();
        let mut span = 0..0;
        for (name, value) in values {
            span = name.span();
            let axis = self.axis(name, &shown.axes)?;
            let is = |label: &Label| {
                label.name == value.word || (label.number.is_some() && label.number == value.number)
            };
            let place = shown.axes[axis].values.iter().position(is);
            at[axis] = Some(place.ok_or_else(|| {
                let all = listed(shown.axes[axis].values.iter().map(|label| &label.name));
                let words = format!("this axis has no value {:?}; it has {all}", value.word);
                self.page.blame(name.span(), &words)
            })?);
        }
        if let Some(free) = free {
            at[free] = Some(0);
        }
        if let Some(missing) = at.iter().position(Option::is_none) {
            let words = format!("no value of the axis {:?}", shown.axes[missing].name);
            return Err(self.page.blame(span, &words));
        }
        let mut at: Vec<usize> = at.into_iter().flatten().collect();
        let Some(free) = free else {
            return Ok(vec![(String::new(), shown.point(&at))]);
        };
        let along = shown.axes[free].values.iter().enumerate();
        Ok(along
            .map(|(place, label)| {
                at[free] = place;
                (label.name.clone(), shown.point(&at))
            })
            .collect())
    }
}
