//! `kingsnake man`: the manual pages, from the same table as the help.

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::args::{ManArgs, Typed};
use crate::voice::say;

/// Prints the first page, or writes all.
pub fn run(args: &ManArgs) -> Result<u8> {
    match &args.out {
        None => {
            let mut page = Vec::new();
            let rendered = clap_mangen::Man::new(Typed::command()).render(&mut page);
            rendered.context("cannot make the page")?;
            say(&String::from_utf8_lossy(&page)).context("cannot write to stdout")?;
        }
        Some(directory) => {
            let write = || format!("cannot write to {}", directory.display());
            std::fs::create_dir_all(directory).with_context(write)?;
            clap_mangen::generate_to(Typed::command(), directory).with_context(write)?;
        }
    }
    Ok(0)
}
