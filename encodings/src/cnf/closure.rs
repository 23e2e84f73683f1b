//! `closure`: a variable for "a path leads from w to u", for every arc's tail u (transitive closure; Janota, Grigore and
//! Manquinho, 2017, compare it with numbers).
//!
//! For every tail u of an arc and every node w of its component, r(w,u) is true if a known path leads from w to u, false if
//! one leads from u to w, and else a variable. Every arc w → x implies r(w,u) if r(x,u); r(u,u) is false. One
//! direction is enough: r may hold without a path, but every path makes it hold. Arcs times tails instead of the cube of the nodes,
//! because one arc at a time is added at a path's front.

use kingsnake_context::budget::{Budget, StopReason};
use rustsat::encodings::CollectClauses;
use rustsat::types::Lit;

use super::{Encoding, Sink, Size};
use crate::reduce::Arena;

pub(crate) struct Closure {
    locals: Vec<Local>,
    size: Size,
}

/// What is known of "a path leads from w to u".
#[derive(Clone, Copy, PartialEq)]
enum Path {
    Yes,
    No,
    Open,
}

fn path(arena: &Arena, from: u32, to: u32) -> Path {
    if from == to || arena.rows.reaches(to, from) {
        // A path from a node to itself, or against a known one, is a cycle.
        Path::No
    } else if arena.rows.reaches(from, to) {
        Path::Yes
    } else {
        Path::Open
    }
}

/// The arcs of each component, known ones first, and the tails of its other arcs.
struct Local {
    known: Vec<(u32, u32)>,
    /// With their numbers.
    arcs: Vec<(u32, u32, usize)>,
    tails: Vec<u32>,
}

fn locals(arena: &Arena) -> Vec<Local> {
    let mut locals: Vec<Local> = (0..arena.rows.n_components())
        .map(|_| Local {
            known: Vec::new(),
            arcs: Vec::new(),
            tails: Vec::new(),
        })
        .collect();
    for &(from, to) in &arena.known {
        locals[arena.rows.component(from)].known.push((from, to));
    }
    for (at, &(from, to)) in arena.arcs.iter().enumerate() {
        let local = &mut locals[arena.rows.component(from)];
        local.arcs.push((from, to, at));
        if local.tails.last() != Some(&from) {
            local.tails.push(from);
        }
    }
    locals
}

impl Encoding for Closure {
    const NAME: &'static str = "cadical/closure";

    /// Let open(u) be the nodes of u's component that u neither reaches nor is reached from, and before(u), after(u)
    /// those that reach it and that it reaches. Variables: the sum of |open(u)| over all tails u. Clauses: over all tails u,
    /// the known arcs within open(u), and the other arcs from open(u) ∪ after(u) ∪ {u} to open(u) ∪ before(u) ∪ {u}.
    fn plan(arena: &Arena, budget: &Budget) -> Result<Closure, StopReason> {
        let mut size = Size::default();
        let locals = locals(arena);
        for (component, local) in locals.iter().enumerate() {
            let members = arena.rows.members(component);
            for &tail in &local.tails {
                budget.check()?;
                let open = |node: u32| arena.rows.open(node, tail);
                size.variables += members.clone().filter(|&node| open(node)).count() as u64;
                let known = local.known.iter();
                let n_known = known.filter(|&&(w, x)| open(w) && open(x)).count() as u64;
                size.clauses += n_known;
                size.literals += 2 * n_known;
                for &(w, x, _) in &local.arcs {
                    let starts = !arena.rows.reaches(w, tail);
                    let ends = !arena.rows.reaches(tail, x);
                    if starts && ends {
                        size.clauses += 1;
                        size.literals += 1 + u64::from(open(w)) + u64::from(open(x));
                    }
                }
            }
        }
        Ok(Closure { locals, size })
    }

    fn size(&self) -> Size {
        self.size
    }

    fn encode<C: CollectClauses>(
        &self,
        arena: &Arena,
        arcs: &[Lit],
        sink: &mut Sink<'_, C>,
    ) -> Result<(), StopReason> {
        for (component, local) in self.locals.iter().enumerate() {
            let members = arena.rows.members(component);
            for &tail in &local.tails {
                let paths: Vec<(Path, Option<Lit>)> = members
                    .clone()
                    .map(|node| {
                        let path = path(arena, node, tail);
                        let open = path == Path::Open;
                        (path, open.then(|| sink.literal(node < tail)))
                    })
                    .collect();
                let to_tail = |node: u32| paths[(node - members.start) as usize];
                // A path from x, an arc from w to x: a path from w.
                let mut extend = |w: u32, x: u32, arc: Option<Lit>| {
                    let (front, (back, then)) = (to_tail(x), to_tail(w));
                    if (x != tail && front.0 == Path::No) || back == Path::Yes {
                        return Ok(());
                    }
                    let mut clause = Vec::with_capacity(3);
                    clause.extend(arc.map(|lit| !lit));
                    clause.extend(front.1.map(|lit| !lit));
                    clause.extend(then);
                    sink.clause(&clause)
                };
                for &(w, x) in &local.known {
                    if to_tail(x).0 == Path::Open {
                        extend(w, x, None)?;
                    }
                }
                for &(w, x, at) in &local.arcs {
                    extend(w, x, Some(arcs[at]))?;
                }
            }
        }
        Ok(())
    }
}
