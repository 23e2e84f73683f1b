//! Searches for orders of versions at parallel snapshot isolation. The loop (`solve`) orders the versions so that D has no cycle; the
//! obligation of forks is that no rw edge is then alone on a cycle, and each that is becomes a clause.

use rustc_hash::{FxHashMap, FxHashSet};

use super::PsiScene;
use super::known::{Known, Pair};
use crate::context::Context;
use crate::decide::Backend;
use crate::phases::{self, Stop};
use crate::prune::{Cyclic, Dag};
use crate::relate::{Edge, Polygraph, reasons};
use crate::report::{CheckStats, Decider};
use crate::resolve::VersionId;
use crate::solve::{self, AskedOrder, Ended, Lemma, Obligation};
use kingsnake_graph::paths::fewest;
use kingsnake_graph::reach::{Reach, places};
use kingsnake_graph::{Literal, Logic, Problem};

/// How many clauses an order that is no answer gives at most.
const CLAUSES: usize = 2_000;

/// States clauses over the variables of some choices, given the first of each.
type StateClauses<'c> = dyn Fn(&mut Logic, &[u32]) + 'c;

/// Reads with several candidates, and constraints on them.
#[derive(Default)]
pub(crate) struct ReadChoices<'c> {
    pub(crate) reads: Vec<ReadChoice>,
    /// Clauses over the variables of the reads.
    pub(crate) clauses: Option<&'c StateClauses<'c>>,
}

/// A read with several candidates.
pub(crate) struct ReadChoice {
    /// The node that read.
    pub(crate) reader: u32,
    /// Its candidates.
    pub(crate) candidates: Vec<VersionId>,
}

/// What the search found.
pub(crate) enum FoundForks {
    /// The nodes in an order of commits that explains the history, and what each choice is of.
    Order(Vec<u32>, Vec<VersionId>),
    /// There is none.
    No(Blamed),
}

/// What prevented an order.
#[derive(Default)]
pub(crate) struct Blamed {
    /// How often each order of two runs did.
    pub(super) pairs: FxHashMap<Pair, usize>,
    /// The choices that a core names.
    pub(crate) choices: Vec<usize>,
}

/// What an edge or a conflict rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Rest {
    /// That one run comes before another.
    Pair(Pair),
    /// That a choice is of a version.
    Read(usize, VersionId),
}

/// What cannot all hold.
type Conflict = Vec<Rest>;

/// Searches, given what is known and what reads can have been of.
pub(super) fn search(
    scene: &PsiScene<'_>,
    known: &Known<'_>,
    choices: &ReadChoices<'_>,
    backend: &mut dyn Backend,
    context: &mut Context<'_>,
) -> Result<(Decider, FoundForks), Stop> {
    let (polygraph, first) = pose(known, choices);
    let base = polygraph.resolved().clone();
    let mut blamed = Blamed::default();
    let mut held = Vec::new();
    let forks = Forks {
        scene,
        known,
        open: known.open.iter().copied().collect(),
        choices,
        first: &first,
        blamed: &mut blamed.pairs,
        held: &mut held,
    };
    let (budget, progress) = (scene.budget, &mut *context.progress);
    let (stats, earlier) = (&mut CheckStats::default(), context.stats.decide.take());
    let obligations: Vec<Box<dyn Obligation + '_>> = vec![Box::new(forks)];
    let asked = AskedOrder {
        check: scene.check,
        base: &base,
        ranks: None,
        polygraph,
        obligations,
    };
    let ended = solve::run(asked, backend, stats, budget, progress);
    context.stats.decide = match (stats.decide.take(), earlier) {
        (Some(mut own), Some(earlier)) => {
            own.add_effort(&earlier);
            Some(own)
        }
        (own, earlier) => own.or(earlier),
    };
    Ok(match ended? {
        Ended::Order(decider, order) => {
            let nodes = order.into_iter().map(|it| it.0).collect();
            (decider, FoundForks::Order(nodes, held))
        }
        Ended::No(no) => {
            let reads = choices.reads.iter().zip(&first).enumerate();
            let is_blamed = |(choice, &first): (&ReadChoice, &u32)| {
                let variables = first..first + choice.candidates.len() as u32;
                no.variables.iter().any(|it| variables.contains(it))
            };
            let reads = reads.filter(|it| is_blamed(it.1));
            blamed.choices = reads.map(|it| it.0).collect();
            (no.decider, FoundForks::No(blamed))
        }
    })
}

/// The question without what forks forbid, which lemmas add, and the first variable of each choice. The runs have no readers: rw edges are
/// no part of D.
fn pose(known: &Known<'_>, choices: &ReadChoices<'_>) -> (Polygraph, Vec<u32>) {
    let mut polygraph = known.polygraph().clone();
    let versions = known.polygraph().resolved().versions();
    let mut logic = Logic::default();
    let mut first = Vec::with_capacity(choices.reads.len());
    for choice in &choices.reads {
        let variable = logic.choice(choice.candidates.len());
        first.push(variable);
        for (&version, variable) in choice.candidates.iter().zip(variable..) {
            if !versions.is_initial(version) {
                let edge = Edge {
                    from: versions.writer(version),
                    to: choice.reader,
                    reason: reasons::wr(version),
                };
                logic.guard(edge, &[Literal::Variable(variable, true)]);
            }
        }
    }
    if let Some(clauses) = choices.clauses {
        clauses(&mut logic, &first);
    }
    *polygraph.problem_mut() = Problem {
        n_nodes: known.n_nodes(),
        edges: known.edges().collect(),
        orders: known.orders().without_readers(),
        chains: known.chains().to_vec(),
        logic,
    };
    (polygraph, first)
}

/// The obligation that no rw edge is the only one on a cycle.
struct Forks<'a> {
    scene: &'a PsiScene<'a>,
    known: &'a Known<'a>,
    open: FxHashSet<Pair>,
    choices: &'a ReadChoices<'a>,
    first: &'a [u32],
    /// How often each order of two runs was in a conflict.
    blamed: &'a mut FxHashMap<Pair, usize>,
    /// The candidate of each choice in the last order.
    held: &'a mut Vec<VersionId>,
}

impl Obligation for Forks<'_> {
    fn check(&mut self, found: &solve::Found<'_>) -> Result<Vec<Lemma>, Stop> {
        let reads = self.choices.reads.iter().zip(self.first);
        let held = reads.map(|(choice, &first)| {
            let mut candidates = choice.candidates.iter().zip(first..);
            let held = candidates.find(|it| found.holds(it.1));
            held.map_or(choice.candidates[0], |it| *it.0)
        });
        *self.held = held.collect();
        let order = (found.order(), self.held.as_slice());
        let candidate = Candidate::new(self.known, &self.open, self.choices, order);
        let conflicts = candidate.conflicts(self.scene)?;
        for rest in conflicts.iter().flatten() {
            if let Rest::Pair(pair) = rest {
                *self.blamed.entry(*pair).or_default() += 1;
            }
        }
        let literals = |conflict: Conflict| {
            let literals = conflict.into_iter().map(|it| self.literal(it));
            Lemma::Conflict(literals.collect())
        };
        Ok(conflicts.into_iter().map(literals).collect())
    }
}

impl Forks<'_> {
    fn literal(&self, rest: Rest) -> Literal {
        match rest {
            Rest::Pair((a, b)) => Literal::Order(a, b),
            Rest::Read(choice, version) => {
                let candidates = &self.choices.reads[choice].candidates;
                let at = candidates.binary_search(&version).unwrap_or(0);
                Literal::Variable(self.first[choice] + at as u32, true)
            }
        }
    }
}

/// Orders of versions, as an order of commits gives them, and what the choices are of.
struct Candidate<'a> {
    known: &'a Known<'a>,
    open: &'a FxHashSet<Pair>,
    choices: &'a ReadChoices<'a>,
    held: &'a [VersionId],
    place: Vec<u32>,
    /// Pairs of runs that follow each other.
    next: Vec<Pair>,
    /// D: the edges from each node, each with what it rests on, if it rests on something.
    out: Vec<Vec<(u32, Option<Rest>)>>,
}

impl<'a> Candidate<'a> {
    fn new(
        known: &'a Known<'a>,
        open: &'a FxHashSet<Pair>,
        choices: &'a ReadChoices<'a>,
        (order, held): (&[u32], &'a [VersionId]),
    ) -> Self {
        let place = places(order);
        let orders = known.orders();
        let mut next = Vec::new();
        for key in 0..orders.n_keys() {
            let mut runs: Vec<u32> = orders.range(key).map(|run| run as u32).collect();
            runs.sort_by_key(|&run| place[orders.run(run).install as usize]);
            next.extend(runs.windows(2).map(|pair| (pair[0], pair[1])));
        }
        let mut out = vec![Vec::new(); known.n_nodes()];
        for edge in known.edges() {
            out[edge.from as usize].push((edge.to, None));
        }
        for &(a, b) in &next {
            let (from, to) = (orders.run(a).last_commit, orders.run(b).install);
            out[from as usize].push((to, Some(Rest::Pair((a, b)))));
        }
        let versions = known.polygraph().resolved().versions();
        for (at, (choice, &version)) in choices.reads.iter().zip(held).enumerate() {
            if !versions.is_initial(version) {
                let from = versions.writer(version) as usize;
                out[from].push((choice.reader, Some(Rest::Read(at, version))));
            }
        }
        Candidate {
            known,
            open,
            choices,
            held,
            place,
            next,
            out,
        }
    }

    /// The rw edges that close a cycle, each as what cannot all hold.
    fn conflicts(&self, scene: &PsiScene<'_>) -> Result<Vec<Conflict>, Stop> {
        let orders = self.known.orders();
        let n_nodes = self.out.len();
        let edges: Vec<Edge> = (0..n_nodes as u32)
            .flat_map(|from| {
                let of = self.out[from as usize].iter();
                of.map(move |&(to, _)| Edge::plain(from, to))
            })
            .collect();
        let dag =
            Dag::new(n_nodes, edges.iter()).map_err(|Cyclic| phases::cyclic(Decider::Backend))?;
        let reach = Reach::new(&dag, self.known.chains(), scene.budget)?;
        let known = self.known.rw().iter().map(|(rw, _)| (rw.from, rw.to, None));
        let chosen = self.next.iter().flat_map(|&(a, b)| {
            let readers = orders.readers(a).iter();
            let to = orders.run(b).install;
            let readers = readers.filter(move |&&reader| reader != to);
            readers.map(move |&reader| (reader, to, Some((a, b))))
        });
        let closing = known
            .chain(chosen)
            .filter(|&(from, to, _)| reach.reaches(to, from));
        let mut found = FxHashSet::default();
        let mut conflicts = Vec::new();
        let of_orders = closing.map(|(from, to, pair)| self.conflict(from, to, pair));
        for conflict in of_orders.chain(self.overwritten(&reach)) {
            if found.insert(conflict.clone()) {
                conflicts.push(conflict);
            }
            if conflicts.len() >= CLAUSES {
                break;
            }
        }
        Ok(conflicts)
    }

    /// The choices of versions that others overwrote before the reader, each as what cannot all hold.
    fn overwritten<'s>(&'s self, reach: &'s Reach) -> impl Iterator<Item = Conflict> + 's {
        let versions = self.known.polygraph().resolved().versions();
        let choices = self.choices.reads.iter().zip(self.held).enumerate();
        choices.flat_map(move |(at, (choice, &version))| {
            let is_later = move |other: u32| {
                versions.is_initial(version)
                    || self.place[versions.writer(version) as usize] < self.place[other as usize]
            };
            let others = versions
                .of_key(versions.key(version))
                .skip(1)
                .map(VersionId);
            let others = others.filter(move |&it| {
                let writer = versions.writer(it);
                it != version
                    && writer != choice.reader
                    && is_later(writer)
                    && reach.reaches(writer, choice.reader)
            });
            others.map(move |other| {
                let mut rests = vec![Rest::Read(at, version)];
                let runs = (self.run_of(version), self.run_of(other));
                if let (Some(a), Some(b)) = runs
                    && a != b
                {
                    rests.push(Rest::Pair((a, b)));
                }
                let path = self.path(versions.writer(other), choice.reader);
                rests.extend(self.shortened(&path, None));
                self.open_ones(rests)
            })
        })
    }

    /// The run of a version whose place among the others is to be settled.
    fn run_of(&self, version: VersionId) -> Option<u32> {
        let versions = self.known.polygraph().resolved().versions();
        let orders = self.known.orders();
        let mut head = version;
        loop {
            let before = versions
                .predecessor(head)
                .filter(|&it| versions.successor(it) == Some(head) && it != version);
            let runs = orders.range(orders.place(versions.key(version).0)?);
            let mut runs = runs.map(|it| it as u32);
            if let Some(run) = runs.find(|&it| orders.run(it).head == head.0) {
                return Some(run);
            }
            head = before?;
        }
    }

    /// What a path from one node to another and the order behind an rw edge rest on.
    fn conflict(&self, to: u32, from: u32, rw: Option<Pair>) -> Conflict {
        let mut rests: Vec<Rest> = rw.into_iter().map(Rest::Pair).collect();
        rests.extend(self.path(from, to));
        let reader = rw.map(|_| to);
        self.open_ones(self.shortened(&rests, reader))
    }

    /// The same where consecutive orders of one key are one, and what lies between them is not needed. The first may be behind an rw edge
    /// of this reader.
    fn shortened(&self, rests: &[Rest], rw_of: Option<u32>) -> Vec<Rest> {
        let key = |run: u32| {
            let head = self.known.orders().run(run).head;
            let versions = self.known.polygraph().resolved().versions();
            versions.key(VersionId(head))
        };
        let install = |run: u32| self.known.orders().run(run).install;
        let mut merged: Vec<Rest> = Vec::new();
        let mut at = 0;
        while at < rests.len() {
            let Rest::Pair((first, _)) = rests[at] else {
                merged.push(rests[at]);
                at += 1;
                continue;
            };
            // An rw edge does not lead to the reader itself.
            let reader = rw_of.filter(|_| at == 0);
            let last_of = |it: &Rest| match *it {
                Rest::Pair((a, b)) if key(a) == key(first) && reader != Some(install(b)) => Some(b),
                _ => None,
            };
            let mut others = (at..rests.len()).rev();
            let last = others.find_map(|it| Some((it, last_of(&rests[it])?)));
            if let Some((place, last)) = last {
                merged.push(Rest::Pair((first, last)));
                at = place + 1;
            } else {
                merged.push(rests[at]);
                at += 1;
            }
        }
        merged
    }

    /// What is not settled already, sorted.
    fn open_ones(&self, mut rests: Vec<Rest>) -> Conflict {
        rests.retain(|it| self.is_open(*it));
        rests.sort_unstable();
        rests.dedup();
        rests
    }

    fn is_open(&self, rest: Rest) -> bool {
        match rest {
            Rest::Pair((a, b)) => self.open.contains(&(a.min(b), a.max(b))),
            Rest::Read(..) => true,
        }
    }

    /// What a path with few open steps rests on.
    fn path(&self, from: u32, to: u32) -> Vec<Rest> {
        let via = fewest(self.out.len(), from, Some(to), |node| {
            let steps = self.out[node as usize].iter();
            steps.map(|&(next, rest)| {
                let is_open = rest.is_some_and(|it| self.is_open(it));
                (next, is_open, rest)
            })
        });
        let mut rests = Vec::new();
        let mut node = to;
        while let Some((before, rest)) = via[node as usize].filter(|_| node != from) {
            rests.extend(rest);
            node = before;
        }
        rests.reverse();
        rests
    }
}
