//! A mutant of any encoding: it loses every n-th clause.

use kingsnake_context::budget::{Budget, StopReason};
use rustsat::encodings::CollectClauses;
use rustsat::instances::Cnf;
use rustsat::types::Lit;

use super::{Encoding, Sink, Size};
use crate::reduce::Arena;

/// The encoding `E` without one of `OF` clauses.
pub(crate) struct Lossy<E, const OF: u64>(E);

impl<E: Encoding, const OF: u64> Encoding for Lossy<E, OF> {
    const NAME: &'static str = E::NAME;

    fn plan(arena: &Arena, budget: &Budget) -> Result<Self, StopReason> {
        E::plan(arena, budget).map(Lossy)
    }

    fn size(&self) -> Size {
        self.0.size()
    }

    fn encode<C: CollectClauses>(
        &self,
        arena: &Arena,
        arcs: &[Lit],
        sink: &mut Sink<'_, C>,
    ) -> Result<(), StopReason> {
        let (before, mut all) = (sink.size.clauses, Cnf::new());
        let mut whole = Sink {
            collector: &mut all,
            variables: sink.variables.clone(),
            budget: sink.budget,
            size: sink.size,
        };
        self.0.encode(arena, arcs, &mut whole)?;
        (sink.variables, sink.size) = (whole.variables, whole.size);
        let numbered = (before + 1..).zip(all);
        let kept = numbered.filter(|it| !it.0.is_multiple_of(OF));
        let kept = kept.map(|it| it.1);
        let sent = sink.collector.extend_clauses(kept);
        sent.map_err(|error| StopReason::Backend(error.to_string()))
    }
}
