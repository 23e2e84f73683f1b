//! `witness`: tries a cheap order as the answer. A hit is the certificate; a miss proves nothing.

use crate::decide::{Question, Side};
use crate::reach::places;

/// The side of each constraint that the estimated order meets, and the order itself; `None` if it breaks a constraint.
pub fn witness(question: Question<'_>) -> Option<Vec<Side>> {
    let place = estimated_places(question)?;
    let constraints = question.constraints;
    (0..constraints.len())
        .map(|constraint| {
            [Side::Either, Side::Or].into_iter().find(|&side| {
                let mut edges = constraints.side(constraint, side).iter();
                edges.all(|edge| place[edge.from as usize] < place[edge.to as usize])
            })
        })
        .collect()
}

/// Where each node stands when the nodes are sorted by the estimate; equals keep their topological order, so that the
/// known edges stay forward.
fn estimated_places(question: Question<'_>) -> Option<Vec<u32>> {
    if question.estimate.len() != question.n_nodes {
        return None;
    }
    let mut order = question.order.to_vec();
    let estimate = |node: u32| question.estimate[node as usize];
    order.sort_by(|&a, &b| estimate(a).total_cmp(&estimate(b)));
    Some(places(&order))
}
