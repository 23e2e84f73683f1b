//! The line as a device cools it: in whole numbers, by flat arrays.

use kingsnake_context::budget::Budget;
use kingsnake_graph::cool::{Cooled, Cooler, Cooling, CoolingSize, NodeReads, weights};
use kingsnake_graph::prune::DeviceError;

use super::field::Field;
use super::line::{Line, spaced};

impl Line {
    /// The size of the line for a device, without laying it out.
    pub fn cooling_size(&self, n_sweeps: usize) -> CoolingSize {
        let field = self.field();
        let movers = self.colours().iter().flatten();
        CoolingSize {
            n_nodes: field.n_nodes(),
            n_words: (0..field.n_nodes() as u32)
                .map(|id| field.n_words(id))
                .sum(),
            n_moved_words: movers.map(|&id| field.n_words(id)).sum(),
            n_constraints: field.n_constraints(),
            n_edges: field.edges.len(),
            colours: self.colours().iter().map(|ids| ids.len() as u32).collect(),
            n_sweeps,
        }
    }

    /// The line to be cooled at these temperatures, a sweep each.
    pub fn cooling(&self, temperatures: &[f64]) -> Cooling {
        let field = self.field();
        let mut cooling = Cooling {
            points: spaced(&self.ranks(self.points())),
            seed: self.seed() as u32,
            weights: temperatures.iter().map(|&it| weights(it)).collect(),
            ..Cooling::default()
        };
        for id in 0..field.n_nodes() as u32 {
            cooling.reads.push(list(field, id, &mut cooling.field));
        }
        let end = cooling.field.len() as u32;
        cooling.reads.push(NodeReads {
            before: end,
            ..NodeReads::default()
        });
        cooling.side_starts.clone_from(&field.edge_starts);
        cooling.sides.clone_from(&field.edges);
        for colour in self.colours() {
            cooling.movers.extend_from_slice(colour);
            cooling.colour_ends.push(cooling.movers.len() as u32);
        }
        cooling
    }

    /// Takes the points of a device.
    pub fn take(&mut self, cooled: &Cooled) {
        self.set_points(cooled.points.clone());
        self.count_moves(cooled.n_moves);
    }
}

/// Appends a node's lists, and says where they start.
fn list(field: &Field, id: u32, words: &mut Vec<u32>) -> NodeReads {
    let mut reads = NodeReads {
        before: words.len() as u32,
        ..NodeReads::default()
    };
    words.extend_from_slice(field.before.of_node(id));
    reads.after = words.len() as u32;
    words.extend_from_slice(field.after.of_node(id));
    reads.between = words.len() as u32;
    let between = field.between.of_node(id).iter();
    words.extend(between.flat_map(|&[low, high, _]| [low, high]));
    reads.below = words.len() as u32;
    let below = field.below.of_node(id).iter();
    words.extend(below.flat_map(|&[end, w, z, _]| [end, w, z]));
    reads.above = words.len() as u32;
    let above = field.above.of_node(id).iter();
    words.extend(above.flat_map(|&[end, w, z, _]| [end, w, z]));
    reads.rest = words.len() as u32;
    words.extend_from_slice(field.rest.of_node(id));
    reads
}

/// Lets a device cool a line that it accepted. An error is a warning: the CPU cools instead.
pub(super) fn cool(
    cooler: &mut dyn Cooler,
    task: &Cooling,
    budget: &Budget,
    watch: &mut dyn FnMut(u32) -> bool,
) -> Result<Option<Cooled>, String> {
    match cooler.cool(task, budget, watch) {
        Ok(cooled) if cooled.points.len() == task.points.len() => Ok(Some(cooled)),
        Ok(_) => Err("the device returned no points".to_owned()),
        Err(DeviceError::Failed(why)) => Err(why),
        // The budget ended; the next poll notices it.
        Err(DeviceError::Stopped(_)) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use kingsnake_context::rng::Rng;
    use kingsnake_graph::cool::CoolerSource;
    use kingsnake_graph::decide::{Backend, Decision};
    use kingsnake_graph::prune::{DeviceStats, Offer};

    use super::*;
    use crate::propagator::graph::{Known, Sides};
    use crate::propagator::{Propagator, start};
    use crate::support::planted;
    use crate::{BackendOptions, PropagatorOptions};

    /// How many constraints of a task its points violate.
    fn violated(task: &Cooling) -> usize {
        let point = |id: u32| task.points[id as usize];
        let holds = |at: usize| {
            let edges = task.side_starts[at] as usize..task.side_starts[at + 1] as usize;
            let mut edges = task.sides[edges].iter();
            edges.all(|&[from, to]| point(from) < point(to))
        };
        let all = 0..task.n_constraints();
        all.filter(|at| !holds(2 * at) && !holds(2 * at + 1))
            .count()
    }

    /// Every node that a move reads.
    fn read_by(task: &Cooling, id: u32) -> Vec<u32> {
        let (own, next) = (task.reads[id as usize], task.reads[id as usize + 1]);
        let mut read = task.field[own.before as usize..own.rest as usize].to_vec();
        for &constraint in &task.field[own.rest as usize..next.before as usize] {
            let at = 2 * constraint as usize;
            let edges = task.side_starts[at] as usize..task.side_starts[at + 2] as usize;
            read.extend(task.sides[edges].iter().flatten().filter(|&&it| it != id));
        }
        read
    }

    #[test]
    fn a_device_gets_the_same_line_in_whole_numbers() {
        let mut random = Rng::new(3);
        for torn in [false, true] {
            let owned = planted(120, 900, torn, &mut random);
            let question = owned.question();
            let known = Known::of(&question);
            let sides = Sides::of(&owned.constraints, 0..owned.constraints.len());
            let places = start::places(&question).expect("it has no cycle");
            let mut line = Line::new(&known, &sides, &places, 1);
            line.heat(1.0);
            for _ in 0..200 {
                let id = line.random(120) as u32;
                line.move_node(id);
            }
            let task = line.cooling(&[1.0, 0.5]);
            assert_eq!(violated(&task), line.n_violated());
            assert_eq!(task.size(), line.cooling_size(2));
            assert!(task.sides.len() <= sides.n_edges());
            for colour in 0..task.colour_ends.len() {
                let range = task.colour(colour);
                let movers = &task.movers[range.start as usize..range.end as usize];
                for &id in movers {
                    let read = read_by(&task, id);
                    assert!(read.iter().all(|it| movers.binary_search(it).is_err()));
                }
            }
            for id in 0..120u32 {
                let own = task.reads[id as usize];
                let before = &task.field[own.before as usize..own.after as usize];
                let point = task.points[id as usize];
                assert!(before.iter().all(|&it| task.points[it as usize] < point));
            }
            let order = line.places(line.points());
            let cooled = Cooled {
                points: task.points.clone(),
                ..Cooled::default()
            };
            line.take(&cooled);
            assert_eq!(line.places(line.points()), order);
            assert_eq!(line.n_violated(), violated(&task));
        }
    }

    /// A device that moves points at random within the constraints.
    struct Double {
        rng: Rng,
        offer: Offer,
        n_asked: Arc<Mutex<usize>>,
    }

    impl Cooler for Double {
        fn offer(&mut self, _: &CoolingSize, _: &Budget) -> Offer {
            *self.n_asked.lock().expect("one thread asks") += 1;
            self.offer.clone()
        }

        fn cool(
            &mut self,
            task: &Cooling,
            _: &Budget,
            watch: &mut dyn FnMut(u32) -> bool,
        ) -> Result<Cooled, DeviceError> {
            if self.rng.chance(20) {
                return Err(DeviceError::Failed("it broke".to_owned()));
            }
            watch(0);
            let mut points = task.points.clone();
            for &id in &task.movers {
                let own = task.reads[id as usize];
                let ends = |from: u32, to: u32| task.field[from as usize..to as usize].iter();
                let low = ends(own.before, own.after)
                    .map(|&it| points[it as usize])
                    .max();
                let high = ends(own.after, own.between)
                    .map(|&it| points[it as usize])
                    .min();
                let (low, high) = (low.unwrap_or(0), high.unwrap_or(u32::MAX));
                if high - low > 1 {
                    points[id as usize] =
                        self.rng.between(low as usize + 1, high as usize - 1) as u32;
                }
            }
            let device = DeviceStats {
                name: "double".to_owned(),
                dispatches: 1,
                ..DeviceStats::default()
            };
            Ok(Cooled {
                points,
                n_moves: 1,
                device,
                ..Cooled::default()
            })
        }
    }

    #[test]
    fn whatever_a_device_does_the_answers_are_the_same() {
        let mut random = Rng::new(9);
        let n_asked = Arc::new(Mutex::new(0));
        let (mut n_annealed, mut n_warned) = (0, 0);
        for round in 0..60 {
            let owned = planted(40, 200, round % 2 == 0, &mut random);
            let offer = match round % 3 {
                0 => Offer::Declined("no".to_owned()),
                1 => Offer::Failed("there is none".to_owned()),
                _ => Offer::Taken("yes".to_owned()),
            };
            let asked = Arc::clone(&n_asked);
            let source = CoolerSource::new(move || {
                Box::new(Double {
                    rng: Rng::new(round),
                    offer: offer.clone(),
                    n_asked: Arc::clone(&asked),
                })
            });
            let decide = |cooler| {
                let options = BackendOptions {
                    propagator: PropagatorOptions::default(),
                    cooler,
                    ..BackendOptions::default()
                };
                let mut backend = Propagator::new(&options).hard_after(1);
                let silent = &mut kingsnake_context::progress::Silent;
                backend
                    .decide(owned.question(), &Budget::unlimited(), silent)
                    .expect("it answers")
            };
            let (plain, _) = decide(None);
            let (with, stats) = decide(Some(source));
            let is_met = |decision: &Decision| matches!(decision, Decision::Choices(_));
            assert_eq!(is_met(&plain), is_met(&with));
            n_annealed += usize::from(stats.device.dispatches > 0);
            n_warned += usize::from(stats.device.warning.is_some());
        }
        assert!(*n_asked.lock().expect("done") > 10, "nobody annealed");
        assert!(n_annealed > 3 && n_warned > 3, "{n_annealed} {n_warned}");
    }
}
