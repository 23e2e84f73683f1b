//! A proof from a cycle of known edges, without any search: the cycle is its own proof, and each order that pruning forced is a lemma,
//! whose opposite closes a cycle with edges of earlier rounds.
//!
//! So reasons lead to earlier rounds, and there is a proof for every contradiction, however long.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::effort::{Effort, Spent};
use super::gather::opposite_path;
use super::known::KnownGraph;
use super::order::{KeyOrder, Known};
use super::stated::stated;
use crate::model::{History, KeyId};
use crate::relate::{Edge, Polygraph, Reason};
use crate::resolve::VersionId;
use crate::verdict::{Fact, Proof, Split, Step, StepReason};

/// The order of two families of versions of a key.
type Order = (KeyId, u32, u32);

/// An edge, and the round in which it became known.
type Dated = (Edge, usize);

/// An order that holds because the opposite closes a cycle.
struct Lemma {
    round: usize,
    before: VersionId,
    after: VersionId,
    /// The cycle that the opposite closes, of which one edge is of the opposite order.
    cycle: Vec<Dated>,
}

/// The justification of a fact.
enum Open {
    /// None needed: it can be read off.
    No(Fact),
    /// It needs this lemma.
    Lemma(Order),
    /// Its opposite can be read off.
    Contrary,
}

/// Proves from a cycle of known edges; `None` if the reason of some edge cannot be found again.
pub(super) fn prove_cycle(
    graph: &mut KnownGraph<'_>,
    history: &History,
    cycle: &[u32],
    stamp: &mut u32,
    effort: &mut Effort<'_>,
) -> Result<Option<Proof>, Spent> {
    let mut lemmas = Lemmas {
        polygraph: graph.polygraph,
        history,
        orders: FxHashMap::default(),
        found: FxHashMap::default(),
    };
    let mut main: Vec<Dated> = dated(graph, cycle);
    // An order that was forced although its opposite can be read off: its reason is a proof by itself.
    while let Some(closer) = lemmas.find(graph, &main, stamp, effort)? {
        main = closer;
    }
    Ok(lemmas.proof(&main))
}

fn dated(graph: &KnownGraph<'_>, edges: &[u32]) -> Vec<Dated> {
    let date = |&index: &u32| (graph.edge(index), graph.round(index));
    edges.iter().map(date).collect()
}

struct Lemmas<'a> {
    polygraph: &'a Polygraph,
    history: &'a History,
    orders: FxHashMap<KeyId, KeyOrder>,
    found: FxHashMap<Order, Lemma>,
}

impl Lemmas<'_> {
    /// The justification of a fact.
    fn open(&mut self, before: VersionId, after: VersionId) -> Open {
        let polygraph = self.polygraph;
        let key = polygraph.resolved().versions().key(before);
        let order = self.orders.entry(key);
        let order = order.or_insert_with(|| KeyOrder::of(polygraph, key));
        match order.known(before, after) {
            Known::Yes(fact, _) => Open::No(fact),
            Known::Open(one, other) => Open::Lemma((key, one, other)),
            Known::No => Open::Contrary,
        }
    }

    /// Finds the lemmas that a cycle needs, and those that they need. A cycle that needs fewer, if one turns up.
    fn find(
        &mut self,
        graph: &mut KnownGraph<'_>,
        cycle: &[Dated],
        stamp: &mut u32,
        effort: &mut Effort<'_>,
    ) -> Result<Option<Vec<Dated>>, Spent> {
        let mut open: Vec<Dated> = cycle.to_vec();
        while let Some((edge, round)) = open.pop() {
            effort.spend(1)?;
            let Some((before, after)) = Polygraph::fact(edge.reason) else {
                continue;
            };
            let need = self.open(before, after);
            if matches!(need, Open::No(_)) || round == 0 {
                continue;
            }
            // Versions of two families may be forced in several rounds; the earliest reason serves all of them.
            if let Open::Lemma(order) = need
                && self
                    .found
                    .get(&order)
                    .is_some_and(|lemma| lemma.round <= round)
            {
                continue;
            }
            let Some(opposite) = self.polygraph.opposite(before, after) else {
                continue;
            };
            effort.spend(graph.n_edges().into())?;
            let end = graph.end_of(round - 1);
            let Some((opposite, path)) = opposite_path(graph, &opposite, end, stamp) else {
                continue;
            };
            let mut reason = vec![(opposite, 0)];
            reason.extend(dated(graph, &path));
            let Open::Lemma(order) = need else {
                return Ok(Some(reason));
            };
            open.extend_from_slice(&reason[1..]);
            let cycle = reason;
            self.found.insert(
                order,
                Lemma {
                    round,
                    before,
                    after,
                    cycle,
                },
            );
        }
        Ok(None)
    }

    /// The lemmas that some edges need, by round.
    fn needed(&mut self, cycle: &[Dated]) -> Vec<Order> {
        let mut needed: BTreeSet<(usize, Order)> = BTreeSet::new();
        let mut open: Vec<Edge> = cycle.iter().map(|(edge, _)| *edge).collect();
        while let Some(edge) = open.pop() {
            let Some((before, after)) = Polygraph::fact(edge.reason) else {
                continue;
            };
            let Open::Lemma(order) = self.open(before, after) else {
                continue;
            };
            if let Some(lemma) = self.found.get(&order)
                && needed.insert((lemma.round, order))
            {
                open.extend(lemma.cycle[1..].iter().map(|(edge, _)| *edge));
            }
        }
        needed.into_iter().map(|(_, order)| order).collect()
    }

    fn proof(&mut self, main: &[Dated]) -> Option<Proof> {
        let mut needed = self.needed(main);
        // Where both orders of two families are forced, their reasons are the two cases of a proof.
        let reversed = |&(key, one, other): &Order| (key, other, one);
        let both = needed
            .iter()
            .find(|order| order.1 < order.2 && needed.contains(&reversed(order)))
            .copied();
        let mut proof = match both {
            None => Proof::Cycle(self.steps(main)?),
            Some(order) => {
                let back = reversed(&order);
                let cycles = [&back, &order].map(|it| self.found[it].cycle.clone());
                needed = self.needed(&[&cycles[0][1..], &cycles[1][1..]].concat());
                let [one_first, other_first] = [self.steps(&cycles[0])?, self.steps(&cycles[1])?];
                let [one_first, other_first] = [one_first, other_first].map(Proof::Cycle);
                Proof::split(self.writers(&order), one_first, other_first)
            }
        };
        for order in needed.iter().rev() {
            let cycle = self.found[order].cycle.clone();
            let opposite = self.steps(&cycle)?;
            proof = Proof::split(self.writers(order), proof, Proof::Cycle(opposite));
        }
        Some(proof)
    }

    fn writers(&self, order: &Order) -> Split {
        let resolved = self.polygraph.resolved();
        let writer = |version| resolved.txn(resolved.versions().writer(version));
        let lemma = &self.found[order];
        Split {
            key: order.0,
            one: writer(lemma.before),
            other: writer(lemma.after),
        }
    }

    /// Edges around a cycle as steps. What passes the time chain is one step.
    fn steps(&mut self, cycle: &[Dated]) -> Option<Vec<Step>> {
        let is_time = |node: u32| self.polygraph.point(node).is_none();
        let first = cycle.iter().position(|(edge, _)| !is_time(edge.from))?;
        let mut steps: Vec<Step> = Vec::new();
        let mut since = None;
        for at in 0..cycle.len() {
            let (edge, _) = cycle[(first + at) % cycle.len()];
            let from = *since.get_or_insert(edge.from);
            if is_time(edge.to) {
                continue;
            }
            since = None;
            let reason = self.reason(edge)?;
            steps.push(Step {
                from: self.polygraph.point(from)?,
                to: self.polygraph.point(edge.to)?,
                reason,
            });
        }
        Some(steps)
    }

    fn reason(&mut self, edge: Edge) -> Option<StepReason> {
        let polygraph = self.polygraph;
        let resolved = polygraph.resolved();
        let versions = resolved.versions();
        let mut fact = |before, after| match self.open(before, after) {
            Open::No(fact) => Some(fact),
            // What no lemma says rests on versions that were made of each other in a circle; another cycle is the proof.
            Open::Lemma((key, one, other)) => {
                let is_said = [(key, one, other), (key, other, one)]
                    .iter()
                    .any(|order| self.found.contains_key(order));
                is_said.then_some(Fact::Assumed)
            }
            Open::Contrary => None,
        };
        Some(match edge.reason {
            Reason::Stated { .. } => stated(polygraph, self.history, edge)?,
            Reason::Ww { before, after } => StepReason::Ww {
                key: versions.key(VersionId(before)),
                fact: fact(VersionId(before), VersionId(after))?,
            },
            Reason::Rw { before, after } => {
                let before = VersionId(before);
                let writer = versions.writer(before);
                StepReason::Rw {
                    key: versions.key(before),
                    writer: (!versions.is_initial(before)).then(|| resolved.txn(writer)),
                    fact: fact(before, VersionId(after))?,
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::cycles::{cyclic_components, short_cycles};
    use super::super::effort::Effort;
    use super::super::known::KnownGraph;
    use super::prove_cycle;
    use crate::budget::Budget;
    use crate::level::{Level, Spec};
    use crate::prune::{Outcome, PruneOptions, PruneStats, prune};
    use crate::relate::construct;
    use crate::resolve::resolve;
    use kingsnake_certify::refutation::check_proof;
    use kingsnake_history::progress::Silent;
    use kingsnake_lab::random::{sketch, small};

    /// Proves what pruning refutes, with every cycle that is offered; how many proofs have lemmas.
    fn prove_all(seed: u64, spec: Spec, combine: bool) -> usize {
        let history = small(seed);
        let budget = Budget::unlimited();
        let Ok(resolved) = resolve(&history, &budget) else {
            return 0;
        };
        if !resolved.findings().is_empty() || spec.real_time.is_some() && !history.has_times() {
            return 0;
        }
        let polygraph = construct(&history, resolved, spec, combine);
        let stats = &mut PruneStats::default();
        let options = PruneOptions::default();
        let outcome = prune(polygraph, options, stats, &budget, &mut Silent);
        let Ok(Outcome::Contradiction(found)) = outcome else {
            return 0;
        };
        if found.round_ends.len() == 1 {
            return 0;
        }
        let mut graph = KnownGraph::new(&found.problem, &found.round_ends);
        let component = cyclic_components(&graph);
        let mut n_lemmas = 0;
        let mut stamp = 0;
        for cycle in short_cycles(&graph, &component) {
            let mut effort = Effort::unlimited(&budget);
            let proof = prove_cycle(&mut graph, &history, &cycle, &mut stamp, &mut effort)
                .expect("there is no limit")
                .expect("the reasons are there");
            let holds = check_proof(&history, spec, &proof);
            assert_eq!(holds, Ok(()), "seed {seed}, {spec}\n{}", sketch(&history));
            n_lemmas += usize::from(proof.splits().next().is_some());
        }
        n_lemmas
    }

    #[test]
    fn a_cycle_of_forced_edges_is_a_proof_with_lemmas() {
        let mut n_lemmas = 0;
        for seed in 0..6_000 {
            for level in [Level::Ser, Level::Si, Level::StrictSer, Level::Gsi] {
                for combine in [true, false] {
                    let Some(spec) = level.spec(Some(seed % 2 == 0)) else {
                        continue;
                    };
                    n_lemmas += prove_all(seed, spec, combine);
                }
            }
        }
        assert!(n_lemmas > 100, "{n_lemmas}");
    }
}
