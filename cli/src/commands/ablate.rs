//! `kingsnake ablate`: runs a study, built in or from a file.

use anyhow::Result;

use crate::args::AblateArgs;
use crate::study;
use crate::voice::Voice;

/// Runs the study.
pub fn run(args: &AblateArgs, voice: Voice) -> Result<u8> {
    let mut more = Vec::new();
    for (name, value) in [
        ("profile", args.profile.clone()),
        ("txns", args.txns.map(|n| n.to_string())),
        ("keys", args.keys.map(|n| n.to_string())),
    ] {
        more.extend(value.map(|value| (name.to_owned(), value)));
    }
    study::ablate(args, more, voice)
}
