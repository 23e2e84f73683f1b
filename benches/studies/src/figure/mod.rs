//! Figures of a study: grouped bars, lines and cactus plots over a logarithmic axis, stacked bars and shares over a linear
//! one, as SVG.
//!
//! Colours are those of Okabe and Ito, which the colour-blind tell apart; marks and dashes repeat the distinction, so
//! that a figure survives a black-and-white printer.

mod bars;
mod cactus;
mod canvas;
mod columns;
mod course;
pub mod files;
mod lines;
pub mod scale;
mod shares;
mod stack;

pub use bars::Bars;
pub use cactus::Cactus;
pub use course::Courses;
pub use lines::{Lines, Series};
pub use shares::{Share, Shares};
pub use stack::Stack;

use crate::recipe::Measure;
use crate::row::RowOutcome;
use crate::summary::Spread;

/// The words of a figure.
#[derive(Clone, Copy)]
pub struct FigureLabels<'a> {
    /// Unique on its page.
    pub id: &'a str,
    /// The heading.
    pub title: &'a str,
    /// What is measured.
    pub y: &'a str,
    /// What runs along it.
    pub x: &'a str,
    /// What its numbers are.
    pub measure: Measure,
}

/// Why a mark has no time.
fn lacking(spread: &Spread, limit: f64) -> String {
    match spread.lacks {
        Some(RowOutcome::Memory) => "memory".to_owned(),
        Some(RowOutcome::Failed) => "failed".to_owned(),
        Some(RowOutcome::Unknown) => "unknown".to_owned(),
        _ => format!("> {}", scale::time(limit)),
    }
}
