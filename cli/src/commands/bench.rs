//! `kingsnake bench`: measures, one subcommand for each question.

use anyhow::{Context, Result};
use kingsnake_studies::{Caller, Encodings, ReachStudy};

use crate::args::{BenchCommand, EncodingsArgs, ReachArgs};
use crate::interrupt;
use crate::study_bar::StudyBar;
use crate::study_rules::CommandLine;
use crate::voice::Voice;

/// Measures.
pub fn run(what: &BenchCommand, voice: Voice) -> Result<u8> {
    match what {
        BenchCommand::Encodings(args) => encodings(args, voice),
        BenchCommand::Reach(args) => reach(args, voice),
    }
}

fn encodings(args: &EncodingsArgs, voice: Voice) -> Result<u8> {
    let asked = Encodings {
        histories: args.histories.clone(),
        backends: args.backends.clone(),
        request: args.study.request(),
    };
    let stop = interrupt::listen().context("cannot listen to signals")?;
    let caller = Caller {
        rules: &CommandLine,
        listener: &mut StudyBar::new(voice),
        stop: &stop,
        paint: voice.paint,
    };
    Ok(kingsnake_studies::encodings(&asked, caller)?)
}

fn reach(args: &ReachArgs, voice: Voice) -> Result<u8> {
    let asked = ReachStudy {
        out: args.out.clone(),
        nodes: args.nodes.clone(),
        degrees: args.degrees.clone(),
        chains: args.chains,
        span: args.span,
        device: args.device.clone(),
        software_nodes: args.software_nodes,
        repeat: args.repeat,
    };
    let mut bar = StudyBar::new(voice);
    Ok(kingsnake_studies::reach(&asked, &mut bar)?)
}
