//! `kingsnake bench`: measures, one subcommand for each question.

use anyhow::Result;

use crate::args::BenchCommand;
use crate::study;
use crate::voice::Voice;

/// Measures.
pub fn run(what: &BenchCommand, voice: Voice) -> Result<u8> {
    match what {
        BenchCommand::Encodings(args) => study::encodings(args, voice),
        BenchCommand::Reach(args) => study::reach(args, voice),
    }
}
