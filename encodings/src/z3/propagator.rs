//! `z3/propagator`: one Boolean a side, and acyclicity as a user propagator of Z3's.
//!
//! The same incremental topological order as in `cadical/propagator`, without its decisions: Z3 decides, the order finds
//! cycles, and each becomes a conflict. Only the C interface has user propagators (Bjørner, Eisenhofer and Kovács, VMCAI 2023).

// The callbacks get the theory as a pointer, which stays valid because `Stated` keeps its box until the solver is done. Z3
// calls them one at a time, from the thread that checks.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ffi::{c_uint, c_void};
use std::rc::Rc;

use kingsnake_graph::decide::Side;
use rustsat::types::Lit;
use z3::ast::{Ast, Bool};
use z3_sys as sys;

use super::session::{Halt, Session};
use super::sides::Taken;
use super::{Asked, Encoding, Stated};
use crate::propagator::cycle::CycleSearch;
use crate::propagator::graph::{Known, Sides};
use crate::propagator::order::Order;

pub(super) const ENCODING: Encoding = Encoding {
    name: "z3/propagator",
    logic: None,
    params: &[],
    state,
    only_si: false,
};

fn state(asked: &Asked<'_>, session: &mut Session<'_>) -> Result<Stated, Halt> {
    let taken = Taken::new(asked, session)?;
    let chosen = asked.chosen.iter().map(|&constraint| constraint as usize);
    let known = Rc::new(Known::of(&asked.question));
    let sides = Rc::new(Sides::of(asked.question.constraints, chosen));
    let mut places = vec![0; asked.question.n_nodes];
    for (place, &node) in asked.question.order.iter().enumerate() {
        places[node as usize] = place as u32;
    }
    let sides_taken: Vec<Bool> = (0..asked.chosen.len())
        .flat_map(|at| [Side::Either, Side::Or].map(|side| taken.side(at, side).clone()))
        .collect();
    let order = Order::new(known, Rc::clone(&sides), places, false);
    let mut theory = Theory::new(session, order, sides, sides_taken);
    theory.silent = asked.faults.silent_cycles;
    let mut stated = taken.stated(0);
    stated.theory = Some(connect(session, theory)?);
    Ok(stated)
}

/// Acyclicity. Invariant: the edges of the first `linked.len()` sides of the trail are linked, and none else.
pub(crate) struct Theory {
    context: sys::Z3_context,
    order: Order,
    edges: Rc<Sides>,
    search: CycleSearch,
    /// By literal, as [`Lit::lidx`] numbers them: the positive one is a constraint's first side.
    sides: Vec<Bool>,
    literals: HashMap<sys::Z3_ast, Lit>,
    never: Bool,
    always: Bool,
    /// The sides taken, in the order of being told.
    trail: Vec<Lit>,
    /// For each side whose edges are linked, how many edges were linked before.
    linked: Vec<usize>,
    /// For each open scope, how long the trail was when it began.
    scopes: Vec<usize>,
    /// A cycle was told that Z3 has not yet backtracked from.
    conflicting: bool,
    cycle: Vec<Lit>,
    n_cycles: u64,
    /// A mutant for the tests: cycles are not told.
    silent: bool,
}

impl Theory {
    fn new(session: &Session<'_>, order: Order, edges: Rc<Sides>, sides: Vec<Bool>) -> Theory {
        let literals = sides
            .iter()
            .enumerate()
            .map(|(at, side)| (side.get_z3_ast(), Lit::new(at as u32 / 2, at % 2 == 1)))
            .collect();
        Theory {
            context: session.raw(),
            search: CycleSearch::new(order.places().len()),
            order,
            edges,
            sides,
            literals,
            never: Bool::from_bool(false),
            always: Bool::from_bool(true),
            trail: Vec::new(),
            linked: Vec::new(),
            scopes: Vec::new(),
            conflicting: false,
            cycle: Vec::new(),
            n_cycles: 0,
            silent: false,
        }
    }

    pub fn n_cycles(&self) -> u64 {
        self.n_cycles
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

    fn fix(&mut self, term: sys::Z3_ast, value: sys::Z3_ast) {
        if value == self.always.get_z3_ast()
            && let Some(&lit) = self.literals.get(&term)
        {
            self.trail.push(lit);
        }
    }

    /// Links what is not linked yet; a cycle is told to Z3, and what comes after it waits until Z3 has backtracked.
    fn link(&mut self, callback: sys::Z3_solver_callback) {
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
                    self.tell(callback);
                }
            }
        }
    }

    fn tell(&mut self, callback: sys::Z3_solver_callback) {
        self.conflicting = true;
        self.n_cycles += 1;
        if self.silent {
            return;
        }
        let fixed: Vec<sys::Z3_ast> = self
            .cycle
            .iter()
            .map(|lit| self.sides[lit.lidx()].get_z3_ast())
            .collect();
        // SAFETY: the callback is the one that Z3 is in, and the terms are alive and fixed in its scope.
        unsafe {
            sys::Z3_solver_propagate_consequence(
                self.context,
                callback,
                fixed.len() as c_uint,
                fixed.as_ptr(),
                0,
                std::ptr::null(),
                std::ptr::null(),
                self.never.get_z3_ast(),
            );
        }
    }
}

/// Hands the theory to the solver.
fn connect(session: &Session<'_>, theory: Theory) -> Result<Box<Theory>, Halt> {
    let mut theory = Box::new(theory);
    let (context, solver) = (session.raw(), session.solver());
    // SAFETY: the box is kept by the caller until the solver is done, and is not touched while it is at work.
    unsafe {
        let pointer = (&raw mut *theory).cast::<c_void>();
        sys::Z3_solver_propagate_init(context, solver, pointer, Some(push), Some(pop), Some(fresh));
        sys::Z3_solver_propagate_fixed(context, solver, Some(fixed));
        sys::Z3_solver_propagate_final(context, solver, Some(settled));
        for (at, side) in theory.sides.iter().enumerate() {
            session.step(at)?;
            sys::Z3_solver_propagate_register(context, solver, side.get_z3_ast());
        }
    }
    Ok(theory)
}

/// # Safety
///
/// The pointer is a theory's, and nobody else uses it, or it is null.
unsafe fn theory<'a>(pointer: *mut c_void) -> Option<&'a mut Theory> {
    // SAFETY: as promised by the caller.
    unsafe { pointer.cast::<Theory>().as_mut() }
}

unsafe extern "C" fn push(pointer: *mut c_void, _: sys::Z3_solver_callback) {
    // SAFETY: Z3 passes on what `connect` gave it.
    if let Some(theory) = unsafe { theory(pointer) } {
        theory.scopes.push(theory.trail.len());
    }
}

unsafe extern "C" fn pop(pointer: *mut c_void, _: sys::Z3_solver_callback, n_scopes: c_uint) {
    // SAFETY: as in `push`.
    if let Some(theory) = unsafe { theory(pointer) } {
        theory.pop(n_scopes as usize);
    }
}

/// Only solvers that split their work ask for a second theory. This one does not, and would be told by the null.
unsafe extern "C" fn fresh(_: *mut c_void, _: sys::Z3_context) -> *mut c_void {
    std::ptr::null_mut()
}

unsafe extern "C" fn fixed(
    pointer: *mut c_void,
    callback: sys::Z3_solver_callback,
    term: sys::Z3_ast,
    value: sys::Z3_ast,
) {
    // SAFETY: as in `push`.
    if let Some(theory) = unsafe { theory(pointer) } {
        theory.fix(term, value);
        theory.link(callback);
    }
}

unsafe extern "C" fn settled(pointer: *mut c_void, callback: sys::Z3_solver_callback) {
    // SAFETY: as in `push`.
    if let Some(theory) = unsafe { theory(pointer) } {
        theory.link(callback);
    }
}
