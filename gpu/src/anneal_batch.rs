//! One device for the annealings of several checks: their lines are cooled at once, each colour of all of them in one dispatch.
//!
//! Lines share no constraint, so nodes of one colour on different lines do not read each other either. Every check has a seat.
//! Who asks waits until each of the others asks as well or has left, but not longer than [`PATIENCE`]: the others may
//! still be pruning, or repair their order and never ask. The points that are kept are those of the sweep that left the
//! fewest constraints of all lines violated.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kingsnake_context::budget::Budget;
use kingsnake_graph::cool::{Cooled, Cooler, CoolerSource, Cooling, CoolingSize, NodeReads};
use kingsnake_graph::prune::{DeviceError, Offer};

use crate::DeviceChoice;
use crate::anneal::GpuCooler;

/// So long a line waits for others.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often who waits looks at its budget.
const EVERY: Duration = Duration::from_millis(20);
/// Lines together have at most so many words: 128 MiB, which every device binds.
const MOST_WORDS: u64 = 1 << 25;

/// What a check asked, and was told.
#[derive(Default)]
struct Desk {
    has_left: bool,
    task: Option<Cooling>,
    told: Option<Result<Cooled, DeviceError>>,
}

struct State {
    /// Away while it cools.
    cooler: Option<GpuCooler>,
    desks: Vec<Desk>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of one check; it leaves when the check is over.
struct Seat {
    shared: Arc<Shared>,
    at: usize,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.shared.lock().desks[self.at].has_left = true;
        self.shared.changed.notify_all();
    }
}

/// So many sources of devices that cool, one a check; what is asked of them at a time is cooled at a time.
pub fn shared_coolers(choice: &DeviceChoice, n_checks: usize) -> Vec<CoolerSource> {
    let shared = Arc::new(Shared {
        state: Mutex::new(State {
            cooler: Some(GpuCooler::new(choice.clone())),
            desks: (0..n_checks).map(|_| Desk::default()).collect(),
        }),
        changed: Condvar::new(),
    });
    let source = |at| {
        let seat = Arc::new(Seat {
            shared: Arc::clone(&shared),
            at,
        });
        CoolerSource::new(move || Box::new(CoolMember(Arc::clone(&seat))))
    };
    (0..n_checks).map(source).collect()
}

/// The device of one check among several.
struct CoolMember(Arc<Seat>);

impl Cooler for CoolMember {
    fn offer(&mut self, size: &CoolingSize, budget: &Budget) -> Offer {
        let mut state = self.0.shared.lock();
        loop {
            if let Some(cooler) = &mut state.cooler {
                return cooler.offer(size, budget);
            }
            if let Err(reason) = budget.check() {
                return Offer::Declined(reason.to_string());
            }
            let waited = self.0.shared.changed.wait_timeout(state, EVERY);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn cool(
        &mut self,
        task: &Cooling,
        budget: &Budget,
        watch: &mut dyn FnMut(u32) -> bool,
    ) -> Result<Cooled, DeviceError> {
        let (shared, at) = (&self.0.shared, self.0.at);
        let asked = Instant::now();
        let mut state = shared.lock();
        state.desks[at].task = Some(task.clone());
        shared.changed.notify_all();
        loop {
            if let Some(told) = state.desks[at].told.take() {
                return told;
            }
            if let Err(reason) = budget.check() {
                state.desks[at].task = None;
                return Err(DeviceError::Stopped(reason));
            }
            let is_waited_for = state.desks[at].task.is_some();
            let everybody_asks = state
                .desks
                .iter()
                .all(|it| it.has_left || it.task.is_some());
            if is_waited_for
                && (everybody_asks || asked.elapsed() > PATIENCE)
                && let Some(mut cooler) = state.cooler.take()
            {
                let tasks = take_tasks(&mut state, at);
                drop(state);
                let cooled = cool_all(&mut cooler, &tasks, watch);
                state = shared.lock();
                state.cooler = Some(cooler);
                for ((desk, _), told) in tasks.iter().zip(cooled) {
                    state.desks[*desk].told = Some(told);
                }
                shared.changed.notify_all();
                continue;
            }
            let waited = shared.changed.wait_timeout(state, EVERY);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// What is asked now and can be cooled with the line of this desk: as many sweeps at the same temperatures, and not too much.
fn take_tasks(state: &mut State, at: usize) -> Vec<(usize, Cooling)> {
    let own = state.desks[at].task.take();
    let mut taken: Vec<(usize, Cooling)> = own.into_iter().map(|task| (at, task)).collect();
    let mut words: u64 = taken.iter().map(|it| it.1.size().words()).sum();
    for (desk, it) in state.desks.iter_mut().enumerate() {
        let Some(task) = &it.task else { continue };
        let more = task.size().words();
        let is_alike = taken
            .first()
            .is_some_and(|(_, first)| first.weights == task.weights && first.seed == task.seed);
        if is_alike && words + more <= MOST_WORDS {
            words += more;
            taken.extend(it.task.take().map(|task| (desk, task)));
        }
    }
    taken.sort_unstable_by_key(|it| it.0);
    taken
}

/// Cools lines at once, and tells each its own.
fn cool_all(
    cooler: &mut GpuCooler,
    tasks: &[(usize, Cooling)],
    watch: &mut dyn FnMut(u32) -> bool,
) -> Vec<Result<Cooled, DeviceError>> {
    // The others' budgets are not known here: a check that is over leaves its answer where it is.
    let budget = Budget::unlimited();
    if let [(_, only)] = tasks {
        return vec![cooler.cool(only, &budget, watch)];
    }
    let lines: Vec<&Cooling> = tasks.iter().map(|it| &it.1).collect();
    match cooler.cool(&packed(&lines), &budget, &mut |_| true) {
        Ok(cooled) => unpacked(&lines, &cooled).into_iter().map(Ok).collect(),
        Err(why) => {
            let why = crate::self_test::words(why);
            let failed = || Err(DeviceError::Failed(why.clone()));
            lines.iter().map(|_| failed()).collect()
        }
    }
}

/// Lines beside each other, as one.
pub(crate) fn packed(lines: &[&Cooling]) -> Cooling {
    let mut all = Cooling::default();
    if let Some(first) = lines.first() {
        all.seed = first.seed;
        all.weights.clone_from(&first.weights);
    }
    let n_colours = lines.iter().map(|line| line.colour_ends.len()).max();
    for colour in 0..n_colours.unwrap_or(0) {
        let mut first_node = 0;
        for line in lines {
            if colour < line.colour_ends.len() {
                let range = line.colour(colour);
                let movers = &line.movers[range.start as usize..range.end as usize];
                all.movers.extend(movers.iter().map(|it| first_node + it));
            }
            first_node += line.points.len() as u32;
        }
        all.colour_ends.push(all.movers.len() as u32);
    }
    for line in lines {
        append(&mut all, line);
    }
    all.reads.push(NodeReads {
        before: all.field.len() as u32,
        ..NodeReads::default()
    });
    all.side_starts.push(all.sides.len() as u32);
    all
}

/// Puts a line behind others, but for its colours. The ends of its lists come last and are left out.
fn append(all: &mut Cooling, line: &Cooling) {
    let node = all.points.len() as u32;
    let word = all.field.len() as u32;
    let constraint = all.side_starts.len() as u32 / 2;
    let edge = all.sides.len() as u32;
    all.points.extend_from_slice(&line.points);
    for reads in line.reads.windows(2) {
        let (own, end) = (reads[0], reads[1].before);
        let nodes = &line.field[own.before as usize..own.rest as usize];
        all.field.extend(nodes.iter().map(|it| node + it));
        let rest = &line.field[own.rest as usize..end as usize];
        all.field.extend(rest.iter().map(|it| constraint + it));
        all.reads.push(NodeReads {
            before: word + own.before,
            after: word + own.after,
            between: word + own.between,
            below: word + own.below,
            above: word + own.above,
            rest: word + own.rest,
        });
    }
    let starts = &line.side_starts[..2 * line.n_constraints()];
    all.side_starts.extend(starts.iter().map(|it| edge + it));
    let sides = line.sides.iter();
    all.sides.extend(sides.map(|side| side.map(|it| node + it)));
}

/// What each line has of all of them. How many of its constraints are violated is not known for one line alone.
fn unpacked(lines: &[&Cooling], cooled: &Cooled) -> Vec<Cooled> {
    let n_sweeps = cooled.n_violated.len().saturating_sub(1) as u64;
    let mut first = 0;
    let own = lines.iter().map(|line| {
        let range = first..first + line.points.len();
        first = range.end;
        let mut device = cooled.device.clone();
        device.shared_by = lines.len() as u32;
        Cooled {
            points: cooled.points.get(range).unwrap_or_default().to_vec(),
            n_violated: Vec::new(),
            n_moves: n_sweeps * line.movers.len() as u64,
            device,
        }
    });
    own.collect()
}
