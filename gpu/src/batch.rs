//! One device for several checks at a time: their graphs stand beside each other in one matrix, and a round of all of them
//! is one closure and one judgement.
//!
//! Every check has a [`Member`] as its device. A member that asks something waits until each of the others asks as well or
//! has left; the last one serves all. The pairs of a graph that is at its fixpoint stay as they are, so members need not
//! have the same number of rounds. A member leaves when its pruning is over; what it prunes later runs on a device of its own.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kingsnake_context::budget::Budget;
use kingsnake_graph::Edge;
use kingsnake_graph::prune::{
    Device, DeviceError, DeviceStats, Judgement, Offer, PairEdge, Relatives, RunNodes, Task,
};
use kingsnake_graph::reach::Dag;

use crate::DeviceChoice;
use crate::device::Gpu;

/// The matrix of all graphs grows with the square of their nodes: beyond this many a member is left to itself.
const MOST_NODES: usize = 1 << 15;
/// How often a member that waits looks at its budget.
const EVERY: Duration = Duration::from_millis(20);

/// What a member asks.
enum Ask {
    Load(Task, Dag),
    Close(Dag, Vec<Edge>),
    Judge,
    Open,
    Implied,
    Reaches(Vec<(u32, u32)>),
    Relatives,
}

/// What it is told.
enum Told {
    Done,
    Judged(Judgement),
    Open(Vec<u32>),
    Implied(Vec<PairEdge>),
    Reaches(Vec<bool>),
    Relatives(Relatives),
}

/// One graph among the others.
#[derive(Default)]
struct Block {
    has_left: bool,
    ask: Option<Ask>,
    told: Option<Result<Told, DeviceError>>,
    first_node: u32,
    first_pair: u32,
    /// Its graph as it was last closed, once it is loaded.
    dag: Option<Dag>,
    n_pairs: u32,
    /// What was forced since it was last told.
    judgement: Judgement,
    /// Whether it was closed after the last judgement.
    is_fresh: bool,
    open: Vec<u32>,
}

struct State {
    device: Gpu,
    blocks: Vec<Block>,
    n_nodes: usize,
    n_offered: usize,
    failed: Option<String>,
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

/// The device of one check among several.
pub struct Member {
    shared: Arc<Shared>,
    at: usize,
    choice: DeviceChoice,
    /// Its own device, once it has left the others.
    own: Option<Gpu>,
}

/// So many members that share a device.
pub fn members(choice: &DeviceChoice, n_members: usize) -> Vec<Member> {
    let shared = Arc::new(Shared {
        state: Mutex::new(State {
            device: Gpu::new(choice.clone()),
            blocks: (0..n_members).map(|_| Block::default()).collect(),
            n_nodes: 0,
            n_offered: 0,
            failed: None,
        }),
        changed: Condvar::new(),
    });
    let member = |at| Member {
        shared: Arc::clone(&shared),
        at,
        choice: choice.clone(),
        own: None,
    };
    (0..n_members).map(member).collect()
}

impl Member {
    /// Leaves the others, and lets them go on.
    fn leave(&self) {
        let mut state = self.shared.lock();
        if !state.blocks[self.at].has_left {
            state.blocks[self.at].has_left = true;
            state.serve();
            self.shared.changed.notify_all();
        }
    }

    fn has_left(&self) -> bool {
        self.shared.lock().blocks[self.at].has_left
    }

    /// Asks, and waits until everybody asks.
    fn ask(&self, ask: Ask, budget: &Budget) -> Result<Told, DeviceError> {
        let mut state = self.shared.lock();
        state.blocks[self.at].ask = Some(ask);
        state.serve();
        self.shared.changed.notify_all();
        loop {
            if let Some(told) = state.blocks[self.at].told.take() {
                return told;
            }
            if let Err(reason) = budget.check() {
                drop(state);
                self.leave();
                return Err(DeviceError::Stopped(reason));
            }
            let waited = self.shared.changed.wait_timeout(state, EVERY);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Another answer than the one that was asked for.
fn mixed_up<T>() -> Result<T, DeviceError> {
    Err(DeviceError::Failed(
        "the batch mixed its answers up".to_owned(),
    ))
}

macro_rules! asked {
    ($self:ident, $budget:ident, $own:expr, $ask:expr, $told:pat => $answer:expr) => {
        match &mut $self.own {
            Some(own) => $own(own),
            None => match $self.ask($ask, $budget)? {
                $told => Ok($answer),
                _ => mixed_up(),
            },
        }
    };
}

impl Device for Member {
    fn offer(&mut self, task: &Task, dag: &Dag, budget: &Budget) -> Offer {
        if self.own.is_none() && !self.has_left() {
            let mut state = self.shared.lock();
            let fits = state.n_nodes + task.n_nodes <= MOST_NODES || state.n_offered == 0;
            if fits {
                let offered = state.device.offer(task, dag, budget);
                if matches!(offered, Offer::Taken(_)) {
                    state.n_nodes += task.n_nodes;
                    state.n_offered += 1;
                }
                drop(state);
                if !matches!(offered, Offer::Taken(_)) {
                    self.leave();
                }
                return offered;
            }
        }
        self.leave();
        let own = self
            .own
            .get_or_insert_with(|| Gpu::new(self.choice.clone()));
        own.offer(task, dag, budget)
    }

    fn load(&mut self, task: &Task, dag: &Dag, budget: &Budget) -> Result<(), DeviceError> {
        asked!(self, budget, |own: &mut Gpu| own.load(task, dag, budget),
            Ask::Load(task.clone(), dag.clone()), Told::Done => ())
    }

    fn close(&mut self, dag: &Dag, new: &[Edge], budget: &Budget) -> Result<(), DeviceError> {
        asked!(self, budget, |own: &mut Gpu| own.close(dag, new, budget),
            Ask::Close(dag.clone(), new.to_vec()), Told::Done => ())
    }

    fn judge(&mut self, budget: &Budget) -> Result<Judgement, DeviceError> {
        asked!(self, budget, |own: &mut Gpu| own.judge(budget), Ask::Judge, Told::Judged(it) => it)
    }

    fn open(&mut self, budget: &Budget) -> Result<Vec<u32>, DeviceError> {
        asked!(self, budget, |own: &mut Gpu| Device::open(own, budget), Ask::Open, Told::Open(it) => it)
    }

    fn implied(&mut self, budget: &Budget) -> Result<Vec<PairEdge>, DeviceError> {
        asked!(self, budget, |own: &mut Gpu| own.implied(budget), Ask::Implied, Told::Implied(it) => it)
    }

    fn reaches(&mut self, asked: &[(u32, u32)], budget: &Budget) -> Result<Vec<bool>, DeviceError> {
        asked!(self, budget, |own: &mut Gpu| own.reaches(asked, budget),
            Ask::Reaches(asked.to_vec()), Told::Reaches(it) => it)
    }

    fn relatives(&mut self, budget: &Budget) -> Result<Relatives, DeviceError> {
        asked!(self, budget, |own: &mut Gpu| own.relatives(budget),
            Ask::Relatives, Told::Relatives(it) => it)
    }

    /// What all members took together so far. Pruning asks this last, so the member leaves.
    fn stats(&self) -> DeviceStats {
        if let Some(own) = &self.own {
            return own.stats();
        }
        let state = self.shared.lock();
        let mut stats = state.device.stats();
        stats.shared_by = state.blocks.iter().filter(|it| it.dag.is_some()).count() as u32;
        drop(state);
        self.leave();
        stats
    }
}

impl State {
    /// Answers everybody, if everybody who has not left asks.
    fn serve(&mut self) {
        self.tell_what_is_known();
        let waits = |it: &Block| it.has_left || it.ask.is_some();
        if !self.blocks.iter().all(waits) || self.blocks.iter().all(|it| it.ask.is_none()) {
            return;
        }
        let asks: Vec<(usize, Ask)> = self
            .blocks
            .iter_mut()
            .enumerate()
            .filter_map(|(at, block)| Some((at, block.ask.take()?)))
            .collect();
        let members: Vec<usize> = asks.iter().map(|it| it.0).collect();
        let served = match &self.failed {
            Some(why) => Err(DeviceError::Failed(why.clone())),
            None => self.answer(asks),
        };
        if let Err(error) = served {
            let why = crate::self_test::words(error);
            for at in members {
                self.blocks[at].told = Some(Err(DeviceError::Failed(why.clone())));
            }
            self.failed = Some(why);
        }
    }

    /// Answers what needs no device, so that members stay in step: a judgement that another's question brought along, and
    /// the pairs that it left open.
    fn tell_what_is_known(&mut self) {
        for block in self.blocks.iter_mut().filter(|it| it.dag.is_some()) {
            let told = match block.ask {
                Some(Ask::Judge) if !block.is_fresh => {
                    Told::Judged(std::mem::take(&mut block.judgement))
                }
                Some(Ask::Open) => Told::Open(block.open.clone()),
                _ => continue,
            };
            block.ask = None;
            block.told = Some(Ok(told));
        }
    }

    /// Answers these questions: graphs are brought up to date first, then judged, then asked.
    fn answer(&mut self, asks: Vec<(usize, Ask)>) -> Result<(), DeviceError> {
        let budget = Budget::unlimited();
        let (mut tasks, mut closes, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for (at, ask) in asks {
            match ask {
                Ask::Load(task, dag) => tasks.push((at, task, dag)),
                Ask::Close(dag, new) => closes.push((at, dag, new)),
                other => rest.push((at, other)),
            }
        }
        if !tasks.is_empty() {
            self.load(tasks, &budget)?;
        }
        if !closes.is_empty() {
            self.close(closes, &budget)?;
        }
        let judges = |it: &(usize, Ask)| matches!(it.1, Ask::Judge);
        if rest
            .iter()
            .any(|it| judges(it) && self.blocks[it.0].is_fresh)
        {
            self.judge(&budget)?;
        }
        self.tell(rest, &budget)
    }

    fn load(&mut self, tasks: Vec<(usize, Task, Dag)>, budget: &Budget) -> Result<(), DeviceError> {
        let mut all = Task {
            n_nodes: 0,
            runs: Vec::new(),
            pair_starts: Vec::new(),
            readers: Vec::new(),
            n_chains: 0,
        };
        let mut first_pair = 0_u32;
        for (at, task, dag) in tasks {
            let block = &mut self.blocks[at];
            (block.first_node, block.first_pair) = (all.n_nodes as u32, first_pair);
            block.n_pairs = task.n_pairs();
            block.open = (0..task.n_pairs()).collect();
            block.dag = Some(dag);
            block.told = Some(Ok(Told::Done));
            append(&mut all, &task, first_pair);
            let next = first_pair.checked_add(task.n_pairs());
            first_pair = next.ok_or_else(|| {
                DeviceError::Failed("the histories have too many pairs together".to_owned())
            })?;
        }
        all.pair_starts.push(first_pair);
        let dag = self.dag()?;
        self.device.load(&all, &dag, budget)
    }

    /// All graphs beside each other.
    fn dag(&self) -> Result<Dag, DeviceError> {
        let mut edges = Vec::new();
        let mut n_nodes = 0;
        for block in &self.blocks {
            let Some(dag) = &block.dag else { continue };
            n_nodes += dag.n_nodes();
            for from in 0..dag.n_nodes() as u32 {
                let targets = dag.successors(from).iter();
                edges.extend(targets.map(|&to| block.edge(from, to)));
            }
        }
        Dag::new(n_nodes, edges.iter())
            .map_err(|_| DeviceError::Failed("the graphs of a batch have a cycle".to_owned()))
    }

    fn close(
        &mut self,
        closes: Vec<(usize, Dag, Vec<Edge>)>,
        budget: &Budget,
    ) -> Result<(), DeviceError> {
        let mut all = Vec::new();
        for (at, dag, new) in closes {
            let block = &mut self.blocks[at];
            all.extend(new.iter().map(|edge| block.edge(edge.from, edge.to)));
            block.dag = Some(dag);
            block.is_fresh = true;
            block.told = Some(Ok(Told::Done));
        }
        let dag = self.dag()?;
        self.device.close(&dag, &all, budget)
    }

    /// Judges the pairs of everybody, and keeps what was forced for whom it is about.
    fn judge(&mut self, budget: &Budget) -> Result<(), DeviceError> {
        let judgement = self.device.judge(budget)?;
        let open = Device::open(&mut self.device, budget)?;
        for block in self.blocks.iter_mut().filter(|it| it.dag.is_some()) {
            block.is_fresh = false;
            let forced = judgement.forced.iter().filter_map(|it| block.own_edge(*it));
            let forced: Vec<PairEdge> = forced.collect();
            let violations = judgement.violations.iter();
            let violations = violations.filter_map(|&it| block.own_pair(it));
            let violations: Vec<u32> = violations.collect();
            block.open = open.iter().filter_map(|&it| block.own_pair(it)).collect();
            block.judgement.forced.extend(forced);
            block.judgement.n_open = block.open.len() as u64;
            block.judgement.n_violations += violations.len() as u64;
            block.judgement.violations.extend(violations);
        }
        Ok(())
    }

    fn tell(&mut self, asks: Vec<(usize, Ask)>, budget: &Budget) -> Result<(), DeviceError> {
        let asks_for = |wanted: fn(&Ask) -> bool| asks.iter().any(|it| wanted(&it.1));
        let implied = if asks_for(|it| matches!(it, Ask::Implied)) {
            self.device.implied(budget)?
        } else {
            Vec::new()
        };
        let relatives = if asks_for(|it| matches!(it, Ask::Relatives)) {
            self.device.relatives(budget)?
        } else {
            Relatives::default()
        };
        let mut paths = self.paths(&asks, budget)?.into_iter();
        for (at, ask) in asks {
            let block = &mut self.blocks[at];
            let told = match ask {
                Ask::Load(..) | Ask::Close(..) => Told::Done,
                Ask::Judge => Told::Judged(std::mem::take(&mut block.judgement)),
                Ask::Open => Told::Open(block.open.clone()),
                Ask::Implied => {
                    let own = implied.iter().filter_map(|it| block.own_edge(*it));
                    Told::Implied(own.collect())
                }
                Ask::Reaches(asked) => Told::Reaches(paths.by_ref().take(asked.len()).collect()),
                Ask::Relatives => {
                    let first = block.first_node as usize;
                    let n_nodes = block.dag.as_ref().map_or(0, Dag::n_nodes);
                    let own = |all: &[u32]| all[first..first + n_nodes].to_vec();
                    Told::Relatives(Relatives {
                        ancestors: own(&relatives.ancestors),
                        descendants: own(&relatives.descendants),
                    })
                }
            };
            block.told = Some(Ok(told));
        }
        Ok(())
    }

    /// The answers to all questions about paths, one after the other.
    fn paths(&mut self, asks: &[(usize, Ask)], budget: &Budget) -> Result<Vec<bool>, DeviceError> {
        let mut all = Vec::new();
        for (at, ask) in asks {
            if let Ask::Reaches(asked) = ask {
                let first = self.blocks[*at].first_node;
                all.extend(asked.iter().map(|&(from, to)| (first + from, first + to)));
            }
        }
        if all.is_empty() {
            return Ok(Vec::new());
        }
        self.device.reaches(&all, budget)
    }
}

impl Block {
    fn edge(&self, from: u32, to: u32) -> Edge {
        Edge::plain(self.first_node + from, self.first_node + to)
    }

    /// A pair by its number among the block's own, if it is one of them.
    fn own_pair(&self, pair: u32) -> Option<u32> {
        let own = pair.checked_sub(self.first_pair)?;
        (own < self.n_pairs).then_some(own)
    }

    fn own_edge(&self, of: PairEdge) -> Option<PairEdge> {
        let pair = self.own_pair(of.pair)?;
        Some(PairEdge { pair, ..of })
    }
}

/// Puts a task behind others. The number of all pairs comes last and is left out.
fn append(all: &mut Task, task: &Task, first_pair: u32) {
    let node = all.n_nodes as u32;
    let reader = all.readers.len() as u32;
    all.runs.extend(task.runs.iter().map(|run| RunNodes {
        head_begin: node + run.head_begin,
        head_commit: node + run.head_commit,
        last_commit: node + run.last_commit,
        readers: reader + run.readers,
        is_unread: run.is_unread,
    }));
    let starts = &task.pair_starts[..task.runs.len()];
    all.pair_starts
        .extend(starts.iter().map(|it| first_pair + it));
    all.readers.extend(task.readers.iter().map(|it| node + it));
    all.n_nodes += task.n_nodes;
    all.n_chains += task.n_chains;
}
