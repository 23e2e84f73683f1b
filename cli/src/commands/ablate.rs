//! `kingsnake ablate`: runs a study, built in or from a file.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use kingsnake_studies::{Ablation, Caller, WatchStudy};

use crate::args::AblateArgs;
use crate::interrupt;
use crate::study_bar::StudyBar;
use crate::study_rules::CommandLine;
use crate::voice::Voice;

/// Runs the study.
pub fn run(args: &AblateArgs, voice: Voice) -> Result<u8> {
    if args.name == Path::new("watch") {
        return watching(args, voice);
    }
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

/// The study of `kingsnake watch`, which has streams in place of histories.
fn watching(args: &AblateArgs, voice: Voice) -> Result<u8> {
    ensure!(
        args.study.set.is_empty() && args.device.is_empty() && args.backend.is_empty(),
        "the study `watch` takes --out, --txns, --keys and --figure with the names of courses"
    );
    let study = WatchStudy {
        out: args.study.out.clone(),
        txns: args.txns.map_or(2_000_000, u64::from),
        keys: args.keys.map_or(100_000, |it| it as usize),
        only: args.figure.clone(),
    };
    let stop = interrupt::listen().context("cannot listen to signals")?;
    Ok(kingsnake_studies::watching(
        &study,
        &mut StudyBar::new(voice),
        &stop,
    )?)
}
