//! Prints the progress of a study: a bar over its cells with an estimate of the remaining time, warnings, the result.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kingsnake_studies::{StudyEvent, StudyListener};

use crate::voice::{self, Voice, lasting, list, printable, say};

/// Draws on a terminal.
pub struct StudyBar {
    voice: Voice,
    drawn: ProgressBar,
}

impl StudyBar {
    /// Listens to a study from its start.
    pub fn new(voice: Voice) -> Self {
        StudyBar {
            voice,
            drawn: ProgressBar::hidden(),
        }
    }

    fn begin(&mut self, n_cells: usize) {
        let target = if self.voice.quiet || !io::stderr().is_terminal() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        self.drawn = ProgressBar::with_draw_target(Some(n_cells as u64), target);
        if let Ok(style) = ProgressStyle::with_template("[{bar:30}] {pos}/{len}  {msg}") {
            self.drawn.set_style(style.progress_chars("=> "));
        }
        self.drawn.enable_steady_tick(Duration::from_millis(500));
    }

    /// Writes a line above the bar.
    fn line(&self, words: &str) {
        if self.drawn.is_hidden() {
            voice::complain(words);
        } else {
            self.drawn
                .println(format!("kingsnake: {}", printable(words)));
        }
    }
}

impl StudyListener for StudyBar {
    fn event(&mut self, event: StudyEvent<'_>) -> io::Result<()> {
        match event {
            StudyEvent::Begin(n_cells) => self.begin(n_cells),
            StudyEvent::Doing(words) => self.drawn.set_message(words.to_owned()),
            StudyEvent::Ended {
                history,
                row,
                gone,
                left,
            } => {
                if self.voice.verbose {
                    self.line(row);
                }
                self.drawn.inc(1);
                self.drawn.set_message(format!(
                    "{history}  {} gone, about {} left",
                    lasting(gone),
                    lasting(left)
                ));
            }
            StudyEvent::End => self.drawn.finish_and_clear(),
            StudyEvent::Warning(words) => self.voice.warn(words),
            StudyEvent::Listed(text) => list(text)?,
            StudyEvent::Text { text, always } => {
                if always || !self.voice.quiet {
                    say(text)?;
                }
            }
        }
        Ok(())
    }
}

impl Drop for StudyBar {
    fn drop(&mut self) {
        self.drawn.finish_and_clear();
    }
}
