//! `bench anneal`: violated constraints over time and moves per second, for cooling one node after the other, by
//! colours on all threads, and on a device.
//!
//! Each row is written as it is measured; figures and a page follow at the end.

mod page;

use std::fs::{self, File};
use std::path::PathBuf;

use kingsnake_encodings::{AnnealMoment, AnnealTrace, AnnealWay, trace};
use kingsnake_gpu::{DeviceChoice, GpuCooler};
use kingsnake_solver::budget::Budget;
use kingsnake_solver::decide::Question;
use serde::Serialize;

use crate::error::{Context, Result};
use crate::listener::{StudyEvent, StudyListener};

const STDOUT: &str = "cannot write to stdout";

/// The parameters.
#[derive(Clone, Debug)]
pub struct AnnealStudy {
    /// Output directory for rows, figures and the page.
    pub out: PathBuf,
    /// The GPU to measure, if any.
    pub device: DeviceChoice,
    /// The solver's seed.
    pub seed: u32,
}

/// A line of `rows.csv`: the state of one annealing.
#[derive(Clone, Debug, Serialize)]
struct AnnealRow<'a> {
    history: &'a str,
    way: &'static str,
    seconds: f64,
    violated: usize,
    moves: u64,
    phase: &'static str,
}

/// One annealing.
pub(super) struct Course {
    pub(super) way: AnnealWay,
    pub(super) trace: AnnealTrace,
}

/// All annealings of one history.
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) courses: Vec<Course>,
}

/// The running study: histories are measured one by one, so that only one question is in memory.
pub struct AnnealRun<'a> {
    study: &'a AnnealStudy,
    csv: csv::Writer<File>,
    subjects: Vec<Subject>,
}

/// The name of a method, in rows and figures.
pub(super) fn name(way: AnnealWay) -> &'static str {
    match way {
        AnnealWay::Serial => "serial",
        AnnealWay::Coloured => "coloured",
        AnnealWay::Device => "device",
    }
}

/// Moves per second of all cooling, and of all walking.
pub(super) fn speeds(moments: &[AnnealMoment]) -> [Option<f64>; 2] {
    [false, true].map(|walks| {
        let (mut seconds, mut n_moves) = (0.0, 0);
        for pair in moments.windows(2).filter(|pair| pair[1].walks == walks) {
            seconds += pair[1].seconds - pair[0].seconds;
            n_moves += pair[1].n_moves - pair[0].n_moves;
        }
        (seconds > 0.0).then(|| n_moves as f64 / seconds)
    })
}

impl<'a> AnnealRun<'a> {
    /// Makes the directory and the file of rows.
    pub fn new(study: &'a AnnealStudy) -> Result<AnnealRun<'a>> {
        fs::create_dir_all(&study.out)
            .with_context(|| format!("cannot make the directory {}", study.out.display()))?;
        let path = study.out.join("rows.csv");
        let file =
            File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(AnnealRun {
            study,
            csv: csv::Writer::from_writer(file),
            subjects: Vec::new(),
        })
    }

    /// Anneals the question of one history with every method.
    pub fn measure(
        &mut self,
        history: &str,
        question: &Question<'_>,
        budget: &Budget,
        listener: &mut dyn StudyListener,
    ) -> Result<()> {
        let mut ways = vec![AnnealWay::Serial, AnnealWay::Coloured];
        if self.study.device != DeviceChoice::Cpu {
            ways.push(AnnealWay::Device);
        }
        let mut courses = Vec::new();
        for way in ways {
            let cooler = GpuCooler::source(self.study.device.clone());
            let found = trace(question, way, self.study.seed, &cooler, budget);
            let event = match &found {
                Ok(found) => {
                    self.put(history, way, &found.moments)?;
                    told(history, way, found)
                }
                Err(why) => format!("{history}: {}: {why}\n", name(way)),
            };
            let event = StudyEvent::Text {
                text: &event,
                always: found.is_err(),
            };
            listener.event(event).context(STDOUT)?;
            courses.extend(found.ok().map(|trace| Course { way, trace }));
        }
        self.subjects.push(Subject {
            name: history.to_owned(),
            courses,
        });
        Ok(())
    }

    fn put(&mut self, history: &str, way: AnnealWay, moments: &[AnnealMoment]) -> Result<()> {
        for moment in moments {
            let row = AnnealRow {
                history,
                way: name(way),
                seconds: moment.seconds,
                violated: moment.n_violated,
                moves: moment.n_moves,
                phase: if moment.walks { "walk" } else { "cool" },
            };
            self.csv.serialize(&row).context("cannot write the row")?;
        }
        self.csv.flush().context("cannot write the row")
    }

    /// Draws the figures and writes the page.
    pub fn finish(self, listener: &mut dyn StudyListener) -> Result<u8> {
        let page = page::write(&self.study.out, &self.subjects)?;
        let text = &format!("{}\n", page.display());
        let event = StudyEvent::Text { text, always: true };
        listener.event(event).context(STDOUT)?;
        Ok(0)
    }
}

fn told(history: &str, way: AnnealWay, found: &AnnealTrace) -> String {
    let last = found.moments.last();
    let [cool, walk] = speeds(&found.moments).map(|speed| match speed {
        Some(speed) => format!("{:.2} M moves/s", speed / 1e6),
        None => "–".to_owned(),
    });
    format!(
        "{history:<24} {:<9} {:>8.2} s  {:>6} violated  cooling {cool}, walk {walk}\n",
        name(way),
        last.map_or(0.0, |it| it.seconds),
        last.map_or(0, |it| it.n_violated),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(seconds: f64, n_moves: u64, walks: bool) -> AnnealMoment {
        AnnealMoment {
            seconds,
            n_violated: 1,
            n_moves,
            walks,
        }
    }

    #[test]
    fn moves_a_second_are_told_of_the_cooling_and_of_the_walk() {
        let moments = [
            moment(1.0, 0, false),
            moment(3.0, 200, false),
            moment(4.0, 230, true),
            moment(5.0, 260, true),
            moment(6.0, 360, false),
        ];
        assert_eq!(speeds(&moments), [Some(100.0), Some(30.0)]);
        assert_eq!(speeds(&moments[..2])[1], None);
        assert_eq!(speeds(&[]), [None, None]);
    }
}
