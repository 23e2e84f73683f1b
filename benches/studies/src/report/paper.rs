//! The paper's numbers beside ours.

use std::fmt::Write;

use crate::claims::{Finding, Judged, judge};
use crate::design::{Shown, Study};
use crate::row::Row;
use kingsnake_text::Escaped;

/// The claims of an experiment, judged.
pub fn judged(study: &Study, shown: &Shown, points: &[Vec<&Row>]) -> Vec<Judged> {
    let measure = super::measure(shown);
    let claims = shown.claims.iter();
    claims
        .map(|stated| judge(stated, study, points, measure))
        .collect()
}

/// The table of claims.
pub fn section(out: &mut String, study: &Study, shown: &Shown, points: &[Vec<&Row>]) {
    let all = judged(study, shown, points);
    if all.is_empty() {
        return;
    }
    out.push_str(r#"<div class="wide" tabindex="0" role="region" aria-label="The paper's numbers"><table class="rounds claims"><caption>The paper's numbers beside ours. Times are of different machines; ratios agree within a factor of 1.5. Nothing is said of sizes that the paper did not measure, nor of runs whose ranges overlap.</caption><thead><tr><th scope="col">the paper says</th><th scope="col">paper</th><th scope="col">here</th><th scope="col">finding</th></tr></thead><tbody>"#);
    for claim in all {
        let class = match claim.finding {
            Finding::Agrees => "agrees",
            Finding::Direction => "direction",
            Finding::Differs => "differs",
            Finding::Open | Finding::Noise | Finding::Sizes => "open",
        };
        let _ = write!(
            out,
            r#"<tr class="{class}"><th scope="row">{}</th><td>{}</td><td>{}</td><td>{}</td></tr>"#,
            Escaped(&claim.says),
            Escaped(&claim.paper),
            Escaped(&claim.ours),
            Escaped(&claim.words)
        );
    }
    out.push_str("</tbody></table></div>\n");
}
