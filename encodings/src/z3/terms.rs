//! The terms that the encodings are made of. They live as long as the session's context, so they are plain handles.
//!
//! Invariant: a term is only given to the session that made it; there is one session per run, and it hands out none to others.

// Every call of Z3's C interface is unsafe. The context is the session's own, and the terms are alive as long as it is.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_uint};

use super::library::{RawAst, RawDecl};
use super::session::Z3Session;

/// A Boolean, a number or a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub(crate) struct Term(pub(super) *mut RawAst);

/// A partial order of nodes.
#[derive(Clone, Copy)]
pub(super) struct PartialOrder(*mut RawDecl);

impl Z3Session<'_> {
    /// The Boolean with this number.
    pub fn boolean(&self, number: u32) -> Term {
        let (z3, context) = (self.z3(), self.raw());
        // SAFETY: as this file says, here and below.
        unsafe {
            let name = (z3.mk_int_symbol)(context, number as c_int);
            Term((z3.mk_const)(context, name, (z3.mk_bool_sort)(context)))
        }
    }

    /// A Boolean that is none of those with a number.
    pub fn fresh(&self) -> Term {
        let (z3, context) = (self.z3(), self.raw());
        unsafe {
            let sort = (z3.mk_bool_sort)(context);
            Term((z3.mk_fresh_const)(context, c"hint".as_ptr(), sort))
        }
    }

    /// The integers with the first numbers. They are other terms than the Booleans with the same numbers.
    pub fn integers(&self, n: usize) -> Vec<Term> {
        let (z3, context) = (self.z3(), self.raw());
        let made = (0..n).map(|number| unsafe {
            let name = (z3.mk_int_symbol)(context, number as c_int);
            Term((z3.mk_const)(context, name, (z3.mk_int_sort)(context)))
        });
        made.collect()
    }

    /// This many nodes of a sort of their own, and a partial order of them.
    pub(super) fn nodes(&self, n: usize) -> (Vec<Term>, PartialOrder) {
        let (z3, context) = (self.z3(), self.raw());
        unsafe {
            let sort = (z3.mk_string_symbol)(context, c"node".as_ptr());
            let sort = (z3.mk_uninterpreted_sort)(context, sort);
            let made = (0..n).map(|number| {
                let name = (z3.mk_int_symbol)(context, number as c_int);
                Term((z3.mk_const)(context, name, sort))
            });
            let order = PartialOrder((z3.mk_partial_order)(context, sort, 0));
            (made.collect(), order)
        }
    }

    /// Whether one node comes before another in a partial order.
    pub(super) fn before(&self, order: PartialOrder, from: Term, to: Term) -> Term {
        let ends = [from, to];
        unsafe { Term((self.z3().mk_app)(self.raw(), order.0, 2, handles(&ends))) }
    }

    /// Whether one integer is less than another.
    pub fn less(&self, small: Term, large: Term) -> Term {
        unsafe { Term((self.z3().mk_lt)(self.raw(), small.0, large.0)) }
    }

    pub fn not(&self, term: Term) -> Term {
        unsafe { Term((self.z3().mk_not)(self.raw(), term.0)) }
    }

    pub fn implies(&self, one: Term, other: Term) -> Term {
        unsafe { Term((self.z3().mk_implies)(self.raw(), one.0, other.0)) }
    }

    pub fn and(&self, terms: &[Term]) -> Term {
        let n = terms.len() as c_uint;
        unsafe { Term((self.z3().mk_and)(self.raw(), n, handles(terms))) }
    }

    pub fn or(&self, terms: &[Term]) -> Term {
        let n = terms.len() as c_uint;
        unsafe { Term((self.z3().mk_or)(self.raw(), n, handles(terms))) }
    }

    pub fn always(&self) -> Term {
        unsafe { Term((self.z3().mk_true)(self.raw())) }
    }

    pub fn never(&self) -> Term {
        unsafe { Term((self.z3().mk_false)(self.raw())) }
    }
}

/// Terms as Z3 takes several.
pub(super) fn handles(terms: &[Term]) -> *const *mut RawAst {
    terms.as_ptr().cast()
}
