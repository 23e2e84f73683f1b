//! An annealing observed over time: the number of violated constraints, and of moves.

use std::time::Instant;

use kingsnake_context::budget::Budget;
use kingsnake_graph::cool::CoolerSource;
use kingsnake_graph::decide::Question;
use kingsnake_graph::prune::DeviceStats;

use super::super::graph::{Known, Sides};
use super::super::start;
use super::super::watch::Watch;
use super::{Anneal, Device, Line};

/// How a line is cooled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnealWay {
    /// One node after the other, on one thread, and one walk.
    Serial,
    /// All nodes of a colour at once, and a walk on each thread.
    Coloured,
    /// All nodes of a colour at once on a device, and a walk on each thread.
    Device,
}

/// The state of an annealing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnnealMoment {
    /// Since it started; laying out the line is included.
    pub seconds: f64,
    /// Constraints that are violated.
    pub n_violated: usize,
    /// Moves so far, of all walks together.
    pub n_moves: u64,
    /// Whether it walks.
    pub walks: bool,
}

/// An annealing from the estimated order.
#[derive(Clone, Debug, Default)]
pub struct AnnealTrace {
    /// Nodes of the line.
    pub n_nodes: usize,
    /// Constraints.
    pub n_constraints: usize,
    /// Colours.
    pub n_colours: usize,
    /// From the start to the end.
    pub moments: Vec<AnnealMoment>,
    /// Statistics of the device, if there was one.
    pub device: DeviceStats,
}

/// Records moments.
pub(crate) struct Notes {
    started: Instant,
    moments: Vec<AnnealMoment>,
}

impl Notes {
    pub fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    pub fn note(&mut self, n_violated: usize, n_moves: u64, walks: bool) {
        self.note_at(self.seconds(), n_violated, n_moves, walks);
    }

    pub fn note_at(&mut self, seconds: f64, n_violated: usize, n_moves: u64, walks: bool) {
        self.moments.push(AnnealMoment {
            seconds,
            n_violated,
            n_moves,
            walks,
        });
    }
}

/// Anneals once, from the estimate, on the threads of the current pool. An error says why a device did not cool.
pub fn trace(
    question: &Question<'_>,
    way: AnnealWay,
    seed: u32,
    cooler: &CoolerSource,
    budget: &Budget,
) -> Result<AnnealTrace, String> {
    let known = Known::of(question);
    let sides = Sides::of(question.constraints, 0..question.constraints.len());
    let places = start::places(question).ok_or("the known graph has a cycle")?;
    let mut notes = Notes {
        started: Instant::now(),
        moments: Vec::new(),
    };
    let mut line = Line::new(&known, &sides, &places, seed.into());
    let mut cooler = (way == AnnealWay::Device).then(|| cooler.make());
    let mut stats = DeviceStats::default();
    let watch = Watch::new(budget.clone(), None);
    Anneal {
        line: &mut line,
        watch: &watch,
        n_cycles: 0,
        device: cooler.as_mut().map(|cooler| Device {
            cooler: &mut **cooler,
            stats: &mut stats,
        }),
        is_serial: way == AnnealWay::Serial,
        notes: Some(&mut notes),
    }
    .run(1.0);
    if way == AnnealWay::Device && stats.dispatches == 0 {
        return Err(stats
            .warning
            .unwrap_or_else(|| "no device cooled".to_owned()));
    }
    Ok(AnnealTrace {
        n_nodes: line.n_nodes(),
        n_constraints: line.n_constraints(),
        n_colours: line.n_colours(),
        moments: notes.moments,
        device: stats,
    })
}

#[cfg(test)]
mod tests {
    use kingsnake_context::rng::Rng;
    use kingsnake_graph::cool::{Cooled, Cooler, Cooling, CoolingSize};
    use kingsnake_graph::prune::{DeviceError, Offer};

    use super::*;
    use crate::support::planted;

    /// A device that moves nothing.
    struct Still;

    impl Cooler for Still {
        fn offer(&mut self, _: &CoolingSize, _: &Budget) -> Offer {
            Offer::Taken("asked".to_owned())
        }

        fn cool(
            &mut self,
            task: &Cooling,
            _: &Budget,
            _: &mut dyn FnMut(u32) -> bool,
        ) -> Result<Cooled, DeviceError> {
            let device = DeviceStats {
                dispatches: 1,
                ..DeviceStats::default()
            };
            Ok(Cooled {
                points: task.points.clone(),
                n_violated: vec![9; task.n_sweeps() + 1],
                n_moves: (task.n_sweeps() * task.movers.len()) as u64,
                device,
            })
        }
    }

    #[test]
    fn every_way_is_told_from_its_start_to_its_end() {
        let owned = planted(200, 1_200, false, &mut Rng::new(4));
        let source = CoolerSource::new(|| Box::new(Still));
        for way in [AnnealWay::Serial, AnnealWay::Coloured, AnnealWay::Device] {
            let budget = Budget::unlimited();
            let found = trace(&owned.question(), way, 1, &source, &budget).expect("it anneals");
            assert_eq!(found.n_nodes, 200);
            assert_eq!(found.n_constraints, owned.constraints.len());
            let moments = found.moments.windows(2);
            for pair in moments {
                assert!(pair[0].seconds <= pair[1].seconds, "{way:?}");
                assert!(pair[0].n_moves <= pair[1].n_moves, "{way:?}");
                assert!(pair[0].walks <= pair[1].walks, "{way:?}");
            }
            let last = found.moments.last().expect("something was noted");
            assert_eq!(last.n_violated, 0, "{way:?}: the order that was planted");
            assert!(last.n_moves > 0);
        }
    }
}
