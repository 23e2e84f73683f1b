//! Finds cycles of direct dependencies by their class, the worst class first: Adya's phenomena, each over the data alone, then with
//! sessions, then with the clock.
//!
//! A class is a set of allowed kinds of steps and a rule for rw steps. Strongly connected components say whether there is a cycle;
//! breadth-first search finds a short one, from every transaction if the work allows it.

use super::effort::{Effort, Spent};
use super::relations::{Dependency, Relations};
use super::walk::{Rule, Walk};
use crate::resolve::Node;
use crate::verdict::Step;
use kingsnake_graph::{Components, components};

/// Adya's classes of cycles, the worst first. (At SI the last does not occur.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// ww only.
    G0,
    /// ww and wr.
    G1c,
    /// Exactly one rw.
    Single,
    /// Several rw, no two in a row.
    Nonadjacent,
    /// Anything.
    G2,
}

impl Class {
    /// Every class.
    pub(super) const ALL: [Class; 5] = [
        Class::G0,
        Class::G1c,
        Class::Single,
        Class::Nonadjacent,
        Class::G2,
    ];
}

/// The kinds of steps of a cycle besides data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    /// Nothing.
    Data,
    /// Session order.
    Session,
    /// Session order and the clock.
    RealTime,
}

impl Scope {
    /// Every scope, each with more than the one before.
    pub(super) const ALL: [Scope; 3] = [Scope::Data, Scope::Session, Scope::RealTime];

    /// The kinds of steps that it adds.
    fn kinds(self) -> u8 {
        match self {
            Scope::Data => 0,
            Scope::Session => Dependency::So.bit(),
            Scope::RealTime => Dependency::So.bit() | Dependency::Rt.bit(),
        }
    }
}

/// From this many transactions of a component on, short cycles are searched.
const STARTS: usize = 96;

/// A short cycle of the worst class that there is; `None` if the dependencies have no cycle. Where all of them are known to pass a
/// transaction, the search begins there.
pub(super) fn worst_cycle(
    relations: &Relations<'_>,
    passes: Option<Node>,
    effort: &mut Effort<'_>,
) -> Result<Option<Vec<Step>>, Spent> {
    let mut search = Classes::new(relations);
    search.passes = passes;
    for scope in Scope::ALL {
        if !search.adds(scope) || !search.is_cyclic(scope, effort)? {
            continue;
        }
        for class in Class::ALL {
            if let Some(cycle) = search.find(class, scope, effort)? {
                return Ok(Some(cycle));
            }
        }
    }
    Ok(None)
}

/// The search for cycles of every class in one graph.
pub(super) struct Classes<'r, 'a> {
    relations: &'r Relations<'a>,
    walk: Walk,
    kinds: u8,
    /// A transaction that all cycles pass, if one is known.
    passes: Option<Node>,
}

impl<'r, 'a> Classes<'r, 'a> {
    /// Nothing is searched yet.
    pub(super) fn new(relations: &'r Relations<'a>) -> Self {
        let edges = 0..relations.n_edges() as u32;
        let kinds = edges.fold(0, |kinds, edge| kinds | relations.edge(edge).2.bit());
        Classes {
            relations,
            walk: Walk::new(relations.n_nodes()),
            kinds,
            passes: None,
        }
    }

    /// Whether a scope has steps that narrower ones lack.
    pub(super) fn adds(&self, scope: Scope) -> bool {
        match scope {
            Scope::Data => true,
            Scope::Session => self.kinds & Dependency::So.bit() != 0,
            Scope::RealTime => self.kinds & Dependency::Rt.bit() != 0,
        }
    }

    fn is_cyclic(&self, scope: Scope, effort: &mut Effort<'_>) -> Result<bool, Spent> {
        let groups = self.groups(kinds(Class::G2) | scope.kinds(), effort)?;
        Ok(!groups.is_empty() || !self.relations.rivals().is_empty())
    }

    /// A short cycle of a class, if there is one and the work suffices.
    pub(super) fn find(
        &mut self,
        class: Class,
        scope: Scope,
        effort: &mut Effort<'_>,
    ) -> Result<Option<Vec<Step>>, Spent> {
        let kinds = kinds(class) | scope.kinds();
        let found = match class {
            Class::G0 | Class::G1c | Class::G2 => self.plain(kinds, effort)?,
            Class::Single => {
                // Two read-modify-writes of one version are the shortest of all.
                if let Some(steps) = self.relations.first_lost_update() {
                    return Ok(Some(steps));
                }
                self.single(kinds, effort)?
            }
            Class::Nonadjacent if self.relations.is_whole() => self.nonadjacent(kinds, effort)?,
            Class::Nonadjacent => None,
        };
        Ok(found.and_then(|edges| self.relations.steps(&edges)))
    }

    /// A shortest cycle of a class through each transaction that has one; the same cycle may be met several times.
    pub(super) fn all(
        &mut self,
        class: Class,
        scope: Scope,
        effort: &mut Effort<'_>,
        found: &mut dyn FnMut(Vec<Step>),
    ) -> Result<(), Spent> {
        let kinds = kinds(class) | scope.kinds();
        let relations = self.relations;
        let rw = Dependency::Rw.bit();
        let (starts, rule) = match class {
            Class::G0 | Class::G1c => {
                let rule = Rule {
                    first: kinds,
                    kinds,
                    alternates: false,
                };
                let groups = self.groups(kinds, effort)?;
                (groups.into_iter().flatten().collect(), rule)
            }
            Class::Single => {
                let rest = kinds & !rw;
                let rule = Rule {
                    first: rw,
                    kinds: rest,
                    alternates: false,
                };
                let order = Order::new(relations, rest);
                let sources = self.sources(kinds, effort)?;
                let mut closing = Vec::new();
                for some in sources.chunks(64) {
                    effort.spend((relations.n_nodes() + relations.n_edges()) as u64)?;
                    closing.extend(order.closing(relations, some));
                }
                (closing, rule)
            }
            Class::Nonadjacent | Class::G2 => {
                let rule = Rule {
                    first: rw,
                    kinds,
                    alternates: class == Class::Nonadjacent,
                };
                (self.sources(kinds, effort)?, rule)
            }
        };
        for start in starts {
            let cycle = self
                .walk
                .cycle(relations, start, rule, usize::MAX - 1, effort)?;
            if let Some(steps) = cycle.and_then(|(_, edges)| relations.steps(&edges)) {
                found(steps);
            }
        }
        Ok(())
    }

    /// The points of each component that has several transactions, the smallest component first.
    fn groups(&self, kinds: u8, effort: &mut Effort<'_>) -> Result<Vec<Vec<u32>>, Spent> {
        Ok(self.groups_of(kinds, effort)?.0)
    }

    /// The points from which an rw step leads to others of their component.
    fn sources(&self, kinds: u8, effort: &mut Effort<'_>) -> Result<Vec<u32>, Spent> {
        let relations = self.relations;
        let (groups, found) = self.groups_of(kinds, effort)?;
        let is_source = |&point: &u32| {
            relations.out(point).any(|edge| {
                let (_, to, kind) = relations.edge(edge);
                kind == Dependency::Rw && found.of[to as usize] == found.of[point as usize]
            })
        };
        Ok(groups.into_iter().flatten().filter(is_source).collect())
    }

    fn groups_of(
        &self,
        kinds: u8,
        effort: &mut Effort<'_>,
    ) -> Result<(Vec<Vec<u32>>, Components), Spent> {
        let relations = self.relations;
        effort.spend((relations.n_nodes() + relations.n_edges()) as u64)?;
        let found = components(
            relations.n_nodes(),
            |node| relations.out(node),
            |_, edge| allowed(relations, edge, kinds),
        );
        let points = (0..relations.n_nodes() as u32).filter(|&node| relations.is_point(node));
        let groups = self.several(&found, points.collect());
        Ok((groups, found))
    }

    fn several(&self, found: &Components, mut points: Vec<u32>) -> Vec<Vec<u32>> {
        points.sort_by_key(|&point| found.of[point as usize]);
        let same = |a: &u32, b: &u32| found.of[*a as usize] == found.of[*b as usize];
        let groups = points.chunk_by(same);
        let is_several = |group: &&[u32]| {
            let first = group[0];
            group.iter().any(|&it| !self.relations.is_same(first, it))
        };
        let mut groups: Vec<Vec<u32>> = groups.filter(is_several).map(<[u32]>::to_vec).collect();
        groups.sort_by_key(Vec::len);
        groups
    }

    /// A short cycle over some kinds of steps.
    fn plain(&mut self, kinds: u8, effort: &mut Effort<'_>) -> Result<Option<Vec<u32>>, Spent> {
        let groups = self.groups(kinds, effort)?;
        let rule = Rule {
            first: kinds,
            kinds,
            alternates: false,
        };
        let mut best = None;
        if let Some(passed) = self.passes {
            let relations = self.relations;
            let points = groups.iter().flatten().copied();
            let starts = points.filter(|&point| relations.node(point) == passed);
            self.shortest(starts, rule, &mut best, effort)?;
            if best.is_some() {
                return Ok(best.map(|(_, edges)| edges));
            }
        }
        for group in groups.iter().take(STARTS) {
            let step = group.len().div_ceil(STARTS);
            let starts = group.iter().copied().step_by(step);
            if self.shortest(starts, rule, &mut best, effort)? {
                break;
            }
        }
        Ok(best.map(|(_, edges)| edges))
    }

    /// Searches from each of some points; whether a cycle of two steps was found, which is as short as can be.
    fn shortest(
        &mut self,
        starts: impl Iterator<Item = u32>,
        rule: Rule,
        best: &mut Option<(usize, Vec<u32>)>,
        effort: &mut Effort<'_>,
    ) -> Result<bool, Spent> {
        for start in starts {
            let least = best.as_ref().map_or(usize::MAX, |(least, _)| *least);
            if least <= 2 {
                return Ok(true);
            }
            match self
                .walk
                .cycle(self.relations, start, rule, least - 1, effort)
            {
                Ok(Some(found)) if found.0 < least => *best = Some(found),
                Ok(_) => {}
                // Good enough.
                Err(Spent::Work) if best.is_some() => return Ok(true),
                Err(spent) => return Err(spent),
            }
        }
        Ok(false)
    }

    /// A short cycle with exactly one rw step: 64 sources of rw steps at a time are followed along the other steps.
    fn single(&mut self, kinds: u8, effort: &mut Effort<'_>) -> Result<Option<Vec<u32>>, Spent> {
        let relations = self.relations;
        let rest = kinds & !Dependency::Rw.bit();
        let sources = self.sources(kinds, effort)?;
        let order = Order::new(relations, rest);
        let rule = Rule {
            first: Dependency::Rw.bit(),
            kinds: rest,
            alternates: false,
        };
        let mut best = None;
        let mut n_tried = 0;
        for some in sources.chunks(64) {
            effort.spend((relations.n_nodes() + relations.n_edges()) as u64)?;
            let closing = order.closing(relations, some);
            n_tried += closing.len();
            let is_done = self.shortest(closing.into_iter(), rule, &mut best, effort)?;
            if is_done || best.is_some() && n_tried >= STARTS {
                break;
            }
        }
        Ok(best.map(|(_, edges)| edges))
    }

    /// A short cycle without two rw steps in a row: a walk over points that remember whether an rw step led to them.
    fn nonadjacent(
        &mut self,
        kinds: u8,
        effort: &mut Effort<'_>,
    ) -> Result<Option<Vec<u32>>, Spent> {
        let relations = self.relations;
        effort.spend(2 * (relations.n_nodes() + relations.n_edges()) as u64)?;
        let rw = Dependency::Rw.bit();
        let found = components(
            2 * relations.n_nodes(),
            |state| relations.out(state / 2),
            |state, edge| {
                let (_, to, kind) = relations.edge(edge);
                let after_rw = match kind {
                    Dependency::Free => state % 2,
                    _ if kind.bit() & kinds == 0 => return None,
                    Dependency::Rw if state % 2 == 1 => return None,
                    kind => u32::from(kind.bit() == rw),
                };
                Some(2 * to + after_rw)
            },
        );
        // A cycle of this class passes some transaction right before an rw step.
        let points = 0..relations.n_nodes() as u32;
        let points = points.filter(|&node| relations.is_point(node) && has_rw(relations, node));
        let mut sizes = vec![0_u32; found.n];
        for state in 0..2 * relations.n_nodes() as u32 {
            if relations.is_point(state / 2) {
                sizes[found.of[state as usize] as usize] += 1;
            }
        }
        let starts: Vec<u32> = points
            .filter(|&point| sizes[found.of[2 * point as usize] as usize] > 1)
            .collect();
        let rule = Rule {
            first: rw,
            kinds,
            alternates: true,
        };
        let mut best = None;
        let step = starts.len().div_ceil(STARTS).max(1);
        self.shortest(starts.into_iter().step_by(step), rule, &mut best, effort)?;
        Ok(best.map(|(_, edges)| edges))
    }
}

/// The kinds of steps that a class allows, before its rule for rw steps.
fn kinds(class: Class) -> u8 {
    let ww = Dependency::Ww.bit() | Dependency::Given.bit();
    match class {
        Class::G0 => ww,
        Class::G1c => ww | Dependency::Wr.bit(),
        Class::Single | Class::Nonadjacent | Class::G2 => {
            ww | Dependency::Wr.bit() | Dependency::Rw.bit()
        }
    }
}

/// Where an edge leads, if it is free or of one of the kinds.
fn allowed(relations: &Relations<'_>, edge: u32, kinds: u8) -> Option<u32> {
    let (_, to, kind) = relations.edge(edge);
    (kind == Dependency::Free || kind.bit() & kinds != 0).then_some(to)
}

fn has_rw(relations: &Relations<'_>, point: u32) -> bool {
    let mut out = relations.out(point);
    out.any(|edge| relations.edge(edge).2 == Dependency::Rw)
}

/// The graph over some kinds of steps, its components in the order of the edges between them.
struct Order {
    components: Components,
    nodes: Vec<u32>,
    kinds: u8,
}

impl Order {
    fn new(relations: &Relations<'_>, kinds: u8) -> Self {
        let components = components(
            relations.n_nodes(),
            |node| relations.out(node),
            |_, edge| allowed(relations, edge, kinds),
        );
        let mut nodes: Vec<u32> = (0..relations.n_nodes() as u32).collect();
        nodes.sort_by_key(|&node| std::cmp::Reverse(components.of[node as usize]));
        Order {
            components,
            nodes,
            kinds,
        }
    }

    /// Those of at most 64 points that are reached again from where their rw edges lead; some that only reach themselves.
    fn closing(&self, relations: &Relations<'_>, points: &[u32]) -> Vec<u32> {
        let of = &self.components.of;
        let mut reached = vec![0_u64; self.components.n];
        for (at, &point) in points.iter().enumerate() {
            for edge in relations.out(point) {
                let (_, to, kind) = relations.edge(edge);
                if kind == Dependency::Rw {
                    reached[of[to as usize] as usize] |= 1 << at;
                }
            }
        }
        for &node in &self.nodes {
            let bits = reached[of[node as usize] as usize];
            if bits == 0 {
                continue;
            }
            for edge in relations.out(node) {
                if let Some(to) = allowed(relations, edge, self.kinds) {
                    reached[of[to as usize] as usize] |= bits;
                }
            }
        }
        let places = points.iter().enumerate();
        let closing = places
            .filter(|&(at, &point)| reached[of[point as usize] as usize] >> at & 1 == 1)
            .map(|(_, &point)| point);
        closing.collect()
    }
}
