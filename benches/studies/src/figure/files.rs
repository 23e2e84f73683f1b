//! The files of a figure.

use std::path::Path;

use crate::error::Result;
use crate::ledger::put_whole;

/// Writes figures into a directory.
pub struct FigureFiles<'a> {
    directory: &'a Path,
}

impl FigureFiles<'_> {
    /// Into this directory.
    pub fn new(directory: &Path) -> FigureFiles<'_> {
        FigureFiles { directory }
    }

    /// Writes a figure under its name.
    pub fn put(&self, name: &str, svg: &str) -> Result<()> {
        put_whole(&self.directory.join(format!("{name}.svg")), svg)
    }
}
