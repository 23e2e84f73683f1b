//! The paper's numbers beside ours.

use crate::claims::{ClaimFinding, Judged, apart, judge};
use crate::design::{SettledExperiment, Study};
use crate::row::Row;
use maud::{Markup, html};

/// The claims of an experiment, judged.
pub fn judged(study: &Study, shown: &SettledExperiment, points: &[Vec<&Row>]) -> Vec<Judged> {
    let measure = super::measure(shown);
    let claims = shown.claims.iter();
    claims
        .map(|stated| judge(stated, study, points, measure))
        .collect()
}

/// The table of claims, where there are any.
pub fn section(study: &Study, shown: &SettledExperiment, points: &[Vec<&Row>]) -> Markup {
    let (all, not_compared) = apart(judged(study, shown, points));
    html! {
        @if !all.is_empty() {
            div.wide tabindex="0" role="region" aria-label="The paper's numbers" {
                table.rounds.claims {
                    caption {
                        "The paper's numbers beside ours. Times are of different machines; ratios agree within a factor of 1.5. \
                         Nothing is concluded about sizes that the paper did not measure, nor of runs whose ranges overlap."
                    }
                    thead { tr {
                        @for name in ["the paper says", "paper", "here", "finding"] { th scope="col" { (name) } }
                    } }
                    tbody { @for claim in &all {
                        tr class=(class(claim.finding)) {
                            th scope="row" { (claim.says) }
                            td { (claim.paper) }
                            td { (claim.ours) }
                            td { (claim.words) }
                        }
                    } }
                }
            }
        }
        @for words in &not_compared { p.soft { (words) } }
        @if let Some(words) = shown.needs_more() { p.soft { (words) } }
    }
}

fn class(finding: ClaimFinding) -> &'static str {
    match finding {
        ClaimFinding::Agrees => "agrees",
        ClaimFinding::Direction => "direction",
        ClaimFinding::Differs => "differs",
        ClaimFinding::Open | ClaimFinding::Noise | ClaimFinding::Sizes => "open",
    }
}
