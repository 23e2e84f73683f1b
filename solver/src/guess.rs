//! What uncertain reads are likely to be of: the newest candidates in an order that explains the other reads. A solver that tries these
//! first finds most good histories good at once.

use batsat::{BasicSolver, Lit, SolverInterface, Var, lbool};

use crate::resolve::{Node, Resolved, VersionId};

/// The newest candidate of a read, sorted candidates given, that an order has before the place where it is read; the order as the place of
/// each node.
pub(crate) fn newest(
    base: &Resolved,
    place: &[u32],
    read_at: u32,
    candidates: &[VersionId],
) -> Option<VersionId> {
    let versions = base.versions();
    let at = |version: VersionId| {
        if versions.is_initial(version) {
            return Some(0);
        }
        place.get(versions.writer(version) as usize).copied()
    };
    let earlier = candidates
        .iter()
        .filter_map(|&it| Some((at(it)?, it)))
        .filter(|it| it.0 < read_at);
    earlier.max().map(|it| it.1)
}

/// The place of each node in an order, from 1.
pub(crate) fn places(n_nodes: usize, order: impl IntoIterator<Item = Node>) -> Vec<u32> {
    let mut place = vec![0; n_nodes];
    for (node, at) in order.into_iter().zip(1..) {
        place[node as usize] = at;
    }
    place
}

/// A variable for each candidate of each read, the guess preferred; each read was of one of them.
pub(crate) fn variables<'c>(
    solver: &mut BasicSolver,
    reads: impl Iterator<Item = (&'c [VersionId], Option<VersionId>)>,
) -> Vec<Vec<Var>> {
    let mut all = Vec::new();
    for (candidates, guess) in reads {
        let prefer = |&it: &VersionId| match guess {
            None => lbool::UNDEF,
            Some(guess) if guess == it => lbool::TRUE,
            Some(_) => lbool::FALSE,
        };
        let variables = candidates.iter().map(|it| solver.new_var(prefer(it), true));
        let variables: Vec<Var> = variables.collect();
        let mut some = variables.iter().map(|&it| Lit::new(it, true)).collect();
        solver.add_clause_reuse(&mut some);
        all.push(variables);
    }
    all
}
