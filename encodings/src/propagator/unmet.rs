//! Clauses beside the constraints: an order that violates no constraint is a witness only if they are met too.

use std::rc::Rc;

use rustsat::types::Lit;

use crate::grown::Clauses;

/// Looks for clauses that are not met, round and round: what was met a moment ago mostly still is.
#[derive(Default)]
pub(crate) struct Unmet {
    clauses: Rc<Clauses>,
    at: usize,
}

impl Unmet {
    pub fn new(clauses: Rc<Clauses>) -> Unmet {
        Unmet { clauses, at: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.clauses.len() == 0
    }

    /// A clause that has no literal which holds, if there is one.
    pub fn next(&mut self, holds: impl Fn(Lit) -> bool) -> Option<&[Lit]> {
        for _ in 0..self.clauses.len() {
            if self.at >= self.clauses.len() {
                self.at = 0;
            }
            if !self.clauses.get(self.at).iter().any(|&lit| holds(lit)) {
                return Some(self.clauses.get(self.at));
            }
            self.at += 1;
        }
        None
    }
}
