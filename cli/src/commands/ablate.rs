//! `kingsnake ablate`: runs a study, built in or from a file.

use anyhow::{Context, Result};
use kingsnake_studies::{Ablation, Caller};

use crate::args::AblateArgs;
use crate::interrupt;
use crate::study_bar::StudyBar;
use crate::study_rules::CommandLine;
use crate::voice::Voice;

/// Runs the study.
pub fn run(args: &AblateArgs, voice: Voice) -> Result<u8> {
    let mut request = args.study.request();
    for (name, value) in [
        ("txns", args.txns.map(|n| n.to_string())),
        ("keys", args.keys.map(|n| n.to_string())),
    ] {
        let given = value.map(|value| (name.to_owned(), value));
        request.set.extend(given);
    }
    let asked = Ablation {
        name: args.name.clone(),
        figures: args.figure.clone(),
        paper_sizes: args.paper_sizes,
        devices: args.device.iter().map(ToString::to_string).collect(),
        backends: args.backend.clone(),
        profiles: args.profile.clone(),
        request,
    };
    let stop = interrupt::listen().context("cannot listen to signals")?;
    let caller = Caller {
        rules: &CommandLine,
        listener: &mut StudyBar::new(voice),
        stop: &stop,
        paint: voice.paint,
    };
    Ok(kingsnake_studies::ablate(&asked, caller)?)
}
