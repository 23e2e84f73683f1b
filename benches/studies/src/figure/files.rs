//! The files of a figure: SVG always, PNG where the feature `png` is built in.

use std::path::Path;

#[cfg(feature = "png")]
use super::png::Painter;
use crate::error::Result;
use crate::ledger::put_whole;

/// Writes figures into a directory.
pub struct FigureFiles<'a> {
    directory: &'a Path,
    #[cfg(feature = "png")]
    painter: Painter,
}

impl FigureFiles<'_> {
    /// Whether there is a PNG beside each SVG.
    pub const HAS_PNG: bool = cfg!(feature = "png");

    /// Into this directory.
    pub fn new(directory: &Path) -> FigureFiles<'_> {
        FigureFiles {
            directory,
            #[cfg(feature = "png")]
            painter: Painter::new(),
        }
    }

    /// Writes a figure under its name.
    pub fn put(&self, name: &str, svg: &str) -> Result<()> {
        put_whole(&self.directory.join(format!("{name}.svg")), svg)?;
        #[cfg(feature = "png")]
        {
            let pixels = self.painter.paint(svg)?;
            put_whole(&self.directory.join(format!("{name}.png")), pixels)?;
        }
        Ok(())
    }
}
