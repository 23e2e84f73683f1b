//! Finds cycles of direct dependencies of every class: over the data, with sessions, and with the clock.

use super::classes::{Class, Classes, Scope};
use super::cycles::{cyclic_components, members};
use super::effort::{Effort, Spent};
use super::known::KnownGraph;
use super::relations::Relations;
use super::world::turn;
use crate::budget::{Budget, StopReason};
use crate::level::{Model, RealTime, Spec};
use crate::model::History;
use crate::relate::construct;
use crate::resolve::Resolved;
use crate::verdict::Step;

/// Work for finding all cycles, in edges.
const WORK: u64 = 400_000_000;

/// The ingredients with every order that a cycle may use.
pub fn widest_spec(history: &History) -> Spec {
    Spec {
        model: Model::Ser,
        session_order: true,
        real_time: history.has_times().then_some(RealTime::STRICT),
    }
}

/// Passes on cycles of every class, each with the name of the pattern that it was searched for, if it was one; returns whether the
/// work sufficed to find all.
pub fn every_cycle(
    history: &History,
    resolved: &Resolved,
    budget: &Budget,
    found: &mut dyn FnMut(Option<&'static str>, Vec<Step>),
) -> Result<bool, StopReason> {
    let polygraph = construct(history, resolved.clone(), widest_spec(history), true);
    budget.check()?;
    let round_ends = [polygraph.edges().len()];
    let members = {
        let graph = KnownGraph::new(&polygraph, &round_ends);
        members(&polygraph, &cyclic_components(&graph))
    };
    let relations = Relations::new(&polygraph, history, members);
    let mut effort = Effort::new(WORK, budget);
    let mut search = Classes::new(&relations);
    for &pair in relations.rivals() {
        if let Some(steps) = relations.lost_update(pair) {
            found(Some("lost-update"), turn(history, steps));
        }
    }
    for scope in Scope::ALL {
        if !search.adds(scope) {
            continue;
        }
        for class in Class::ALL {
            let mut one = |steps| found(None, turn(history, steps));
            match search.all(class, scope, &mut effort, &mut one) {
                Ok(()) => {}
                Err(Spent::Work) => return Ok(false),
                Err(Spent::Budget(reason)) => return Err(reason),
            }
        }
    }
    Ok(true)
}
