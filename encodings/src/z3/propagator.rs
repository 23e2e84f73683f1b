//! `z3/propagator`: one Boolean a side, and acyclicity as a user propagator of Z3's.
//!
//! The same incremental topological order as in `cadical/propagator`, without its decisions: Z3 decides, the order finds
//! cycles, and each becomes a conflict. Only the C interface has user propagators (Bjørner, Eisenhofer and Kovács, VMCAI 2023).

// Why the unsafe code is sound.
// - Ownership: the theory is allocated once and from then on known only by one raw pointer, which Z3 and `Connected` share; no
//   `Box` or reference to it exists that could be moved or used beside the pointer. The session keeps `Connected` until after it has
//   given the solver back, so Z3 never calls with a pointer that was freed. A session that is abandoned leaks both.
// - Aliasing: a callback makes one exclusive reference, which ends before it calls Z3 again; `Connected::n_cycles` makes a shared
//   one between two checks. Z3 calls back one at a time, from the thread that checks, and only during a check.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ffi::{c_uint, c_void};
use std::ptr::NonNull;
use std::rc::Rc;

use kingsnake_graph::decide::Side;
use rustsat::types::Lit;

use super::library::{Functions, RawAst, RawCallback, RawContext};
use super::session::{Halt, Z3Session};
use super::sides::Taken;
use super::terms::{Term, handles};
use super::{Asked, Stated, Z3Encoding};
use crate::propagator::cycle::CycleSearch;
use crate::propagator::graph::{Known, Sides};
use crate::propagator::order::Order;

pub(super) const ENCODING: Z3Encoding = Z3Encoding {
    name: "z3/propagator",
    logic: None,
    params: &[],
    state,
    only_si: false,
};

fn state(asked: &Asked<'_>, session: &mut Z3Session<'_>) -> Result<Stated, Halt> {
    let taken = Taken::new(asked, session)?;
    let chosen = asked.chosen.iter().map(|&constraint| constraint as usize);
    let known = Rc::new(Known::of(&asked.question));
    let sides = Rc::new(Sides::of(asked.question.constraints, chosen));
    let mut places = vec![0; asked.question.n_nodes];
    for (place, &node) in asked.question.order.iter().enumerate() {
        places[node as usize] = place as u32;
    }
    let sides_taken: Vec<Term> = (0..asked.chosen.len())
        .flat_map(|at| [Side::Either, Side::Or].map(|side| taken.side(at, side)))
        .collect();
    let order = Order::new(known, Rc::clone(&sides), places, false);
    let mut theory = Z3Theory::new(session, order, sides, sides_taken);
    theory.silent = asked.faults.silent_cycles();
    connect(session, theory)?;
    Ok(taken.stated(0))
}

/// A theory that a solver calls back.
pub(crate) struct Connected(NonNull<Z3Theory>);

impl Connected {
    fn new(theory: Z3Theory) -> Connected {
        Connected(NonNull::from(Box::leak(Box::new(theory))))
    }

    /// How many cycles were reported.
    pub fn n_cycles(&self) -> u64 {
        // SAFETY: the theory lives as long as `self`, and no callback is under way: the solver is not at work.
        unsafe { self.0.as_ref() }.n_cycles
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        // SAFETY: the pointer came from a box, and the solver that also had it is gone.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// Acyclicity. Invariant: the edges of the first `linked.len()` sides of the trail are linked, and none else.
struct Z3Theory {
    z3: &'static Functions,
    context: *mut RawContext,
    order: Order,
    edges: Rc<Sides>,
    search: CycleSearch,
    /// By literal, as [`Lit::lidx`] numbers them: the positive one is a constraint's first side.
    sides: Vec<Term>,
    literals: HashMap<Term, Lit>,
    never: Term,
    always: Term,
    /// The sides taken, in the order of their callbacks.
    trail: Vec<Lit>,
    /// For each side whose edges are linked, how many edges were linked before.
    linked: Vec<usize>,
    /// For each open scope, how long the trail was when it began.
    scopes: Vec<usize>,
    /// A cycle was reported that Z3 has not yet backtracked from.
    conflicting: bool,
    cycle: Vec<Lit>,
    n_cycles: u64,
    /// A mutant for the tests: cycles are not reported.
    silent: bool,
}

impl Z3Theory {
    fn new(session: &Z3Session<'_>, order: Order, edges: Rc<Sides>, sides: Vec<Term>) -> Z3Theory {
        let literals = sides
            .iter()
            .enumerate()
            .map(|(at, &side)| (side, Lit::new(at as u32 / 2, at % 2 == 1)))
            .collect();
        Z3Theory {
            z3: session.z3(),
            context: session.raw(),
            search: CycleSearch::new(order.places().len()),
            order,
            edges,
            sides,
            literals,
            never: session.never(),
            always: session.always(),
            trail: Vec::new(),
            linked: Vec::new(),
            scopes: Vec::new(),
            conflicting: false,
            cycle: Vec::new(),
            n_cycles: 0,
            silent: false,
        }
    }

    fn pop(&mut self, n_scopes: usize) {
        let left = self.scopes.len().saturating_sub(n_scopes);
        let Some(&length) = self.scopes.get(left) else {
            return;
        };
        self.scopes.truncate(left);
        self.trail.truncate(length);
        if let Some(&n_edges) = self.linked.get(length) {
            self.order.shrink(n_edges);
            self.linked.truncate(length);
        }
        self.conflicting = false;
    }

    fn fix(&mut self, term: Term, value: Term) {
        if value == self.always
            && let Some(&lit) = self.literals.get(&term)
        {
            self.trail.push(lit);
        }
    }

    /// Links what is not linked yet, up to the first cycle, which is to be told; what comes after it waits until Z3 has
    /// backtracked.
    fn link(&mut self) -> Option<Conflict> {
        while !self.conflicting && self.linked.len() < self.trail.len() {
            let lit = self.trail[self.linked.len()];
            let before = self.order.n_linked();
            let mut edges = self.edges.edges(lit);
            let closing = edges.find(|&edge| !self.order.insert(edge));
            match closing {
                None => self.linked.push(before),
                Some(edge) => {
                    let free = |other| other == lit;
                    self.search
                        .explain(&self.order, edge, free, &mut self.cycle);
                    self.order.shrink(before);
                    self.conflicting = true;
                    self.n_cycles += 1;
                    return (!self.silent).then(|| self.conflict());
                }
            }
        }
        None
    }

    fn conflict(&self) -> Conflict {
        let fixed = self.cycle.iter();
        Conflict {
            z3: self.z3,
            context: self.context,
            fixed: fixed.map(|lit| self.sides[lit.lidx()]).collect(),
            never: self.never,
        }
    }
}

/// Sides that close a cycle. It borrows nothing from the theory, so that no reference to the theory is alive when Z3 is called.
struct Conflict {
    z3: &'static Functions,
    context: *mut RawContext,
    fixed: Vec<Term>,
    never: Term,
}

impl Conflict {
    /// # Safety
    ///
    /// The callback is the one that Z3 is in, and the theory, which keeps the terms, is alive.
    unsafe fn tell(self, callback: *mut RawCallback) {
        // SAFETY: as promised by the caller; the terms are fixed in the callback's scope.
        unsafe {
            (self.z3.solver_propagate_consequence)(
                self.context,
                callback,
                self.fixed.len() as c_uint,
                handles(&self.fixed),
                0,
                std::ptr::null(),
                std::ptr::null(),
                self.never.0,
            );
        }
    }
}

/// Hands the theory to the solver, and to the session, which keeps it.
fn connect(session: &mut Z3Session<'_>, theory: Z3Theory) -> Result<(), Halt> {
    let (z3, context, solver) = (session.z3(), session.raw(), session.solver());
    let sides = theory.sides.clone();
    let pointer = session.keep(Connected::new(theory)).0.as_ptr();
    // SAFETY: the session keeps the theory, and with it the terms, for as long as the solver. No reference to it is alive here.
    unsafe {
        let pointer = pointer.cast::<c_void>();
        (z3.solver_propagate_init)(context, solver, pointer, push, pop, fresh);
        (z3.solver_propagate_fixed)(context, solver, fixed);
        (z3.solver_propagate_final)(context, solver, settled);
    }
    for (at, &side) in sides.iter().enumerate() {
        session.step(at)?;
        // SAFETY: as above.
        unsafe { (z3.solver_propagate_register)(context, solver, side.0) };
    }
    Ok(())
}

/// # Safety
///
/// The pointer is a theory's, or null, and no other reference to the theory is alive during `act`.
unsafe fn with<T>(pointer: *mut c_void, act: impl FnOnce(&mut Z3Theory) -> T) -> Option<T> {
    // SAFETY: as promised by the caller.
    let theory = unsafe { pointer.cast::<Z3Theory>().as_mut() };
    theory.map(act)
}

unsafe extern "C" fn push(pointer: *mut c_void, _: *mut RawCallback) {
    // SAFETY: Z3 passes on what `connect` gave it, and calls one callback at a time.
    unsafe { with(pointer, |theory| theory.scopes.push(theory.trail.len())) };
}

unsafe extern "C" fn pop(pointer: *mut c_void, _: *mut RawCallback, n_scopes: c_uint) {
    // SAFETY: as in `push`.
    unsafe { with(pointer, |theory| theory.pop(n_scopes as usize)) };
}

/// Only solvers that split their work ask for a second theory. This one does not, and would get null.
unsafe extern "C" fn fresh(_: *mut c_void, _: *mut RawContext) -> *mut c_void {
    std::ptr::null_mut()
}

unsafe extern "C" fn fixed(
    pointer: *mut c_void,
    callback: *mut RawCallback,
    term: *mut RawAst,
    value: *mut RawAst,
) {
    // SAFETY: as in `push`; the reference is gone before the conflict is reported to Z3.
    unsafe {
        let found = with(pointer, |theory| {
            theory.fix(Term(term), Term(value));
            theory.link()
        });
        if let Some(conflict) = found.flatten() {
            conflict.tell(callback);
        }
    }
}

unsafe extern "C" fn settled(pointer: *mut c_void, callback: *mut RawCallback) {
    // SAFETY: as in `fixed`.
    unsafe {
        if let Some(conflict) = with(pointer, Z3Theory::link).flatten() {
            conflict.tell(callback);
        }
    }
}
