//! What checks of one history at several levels share: the meaning of its reads, and the graph of a model.
//!
//! The clock only adds edges to a graph (docs/theory.md), so levels that differ in nothing else share one.

use crate::budget::{Budget, StopReason};
use crate::level::Spec;
use crate::model::History;
use crate::relate::{Polygraph, Shape, add_clock, construct_within};
use crate::resolve::Resolved;
use crate::verdict::Finding;

/// A resolved history, and the graphs that were made of it.
#[derive(Clone, Debug)]
pub struct Shared {
    resolved: Resolved,
    /// Without the edges of the clock; at most one per model, with and without session order.
    graphs: Vec<Polygraph>,
}

impl Shared {
    /// Nothing is built yet.
    pub fn new(resolved: Resolved) -> Self {
        Shared {
            resolved,
            graphs: Vec::new(),
        }
    }

    /// The graph of a level; or why there is none.
    pub(crate) fn graph(
        &mut self,
        history: &History,
        spec: Spec,
        shape: Shape,
        budget: &Budget,
    ) -> Result<Result<Polygraph, Vec<Finding>>, StopReason> {
        let findings = self.resolved.broken(history, spec);
        if !findings.is_empty() {
            return Ok(Err(findings));
        }
        let timeless = Spec {
            real_time: None,
            ..spec
        };
        let found = self.graphs.iter().find(|graph| graph.spec() == timeless);
        let graph = if let Some(found) = found {
            found.clone()
        } else {
            let resolved = self.resolved.clone();
            let graph = construct_within(history, resolved, timeless, shape, budget)?;
            self.graphs.push(graph.clone());
            graph
        };
        Ok(Ok(match spec.real_time {
            None => graph,
            Some(real_time) => add_clock(history, real_time, graph),
        }))
    }

    /// Frees the graph of a level if no other level needs it.
    pub(crate) fn forget(&mut self, spec: Spec) {
        let kind = |spec: Spec| (spec.model, spec.session_order);
        self.graphs.retain(|graph| kind(graph.spec()) != kind(spec));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level::{Level, RealTime};
    use crate::relate::construct;
    use crate::resolve::resolve;
    use kingsnake_lab::random::small;

    #[test]
    fn a_shared_graph_is_the_one_that_would_have_been_built() {
        let mut n_compared = 0;
        for seed in 0..2_000 {
            let history = small(seed);
            let Ok(resolved) = resolve(&history, &Budget::unlimited()) else {
                continue;
            };
            if !history.has_times() || !resolved.findings().is_empty() {
                continue;
            }
            let mut shared = Shared::new(resolved.clone());
            for level in Level::uniform() {
                for session_order in [true, false] {
                    let Some(spec) = level.spec(Some(session_order)) else {
                        continue;
                    };
                    let spec = match spec.real_time {
                        Some(it) => Spec {
                            real_time: Some(RealTime {
                                drift: seed % 3,
                                ..it
                            }),
                            ..spec
                        },
                        None => spec,
                    };
                    let own = construct(&history, resolved.clone(), spec, true);
                    let lent = shared
                        .graph(&history, spec, true.into(), &Budget::unlimited())
                        .expect("there is time")
                        .expect("it is resolved");
                    assert_eq!(lent.edges(), own.edges());
                    assert_eq!((lent.n_nodes(), lent.spec()), (own.n_nodes(), spec));
                    n_compared += 1;
                }
            }
            assert_eq!(
                shared.graphs.len(),
                16,
                "eight models, with and without session order"
            );
        }
        assert!(n_compared > 5_000, "{n_compared}");
    }
}
