//! Deliberate mistakes of the back ends, which tests must notice.
//!
//! They exist only in builds for tests (`cfg(test)`, or the feature `faults`, which only this crate's tests enable). Elsewhere
//! the types are empty and each question has the constant answer no.

macro_rules! faults {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $fault:ident,)* }) => {
        $(#[$about])*
        #[cfg(any(test, feature = "faults"))]
        #[doc(hidden)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[allow(clippy::struct_excessive_bools)] // Each is a mistake of its own.
        pub struct $name {
            $($(#[$doc])* pub $fault: bool,)*
        }

        $(#[$about])*
        #[cfg(not(any(test, feature = "faults")))]
        #[doc(hidden)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {}

        impl $name {
            $(
                #[cfg(any(test, feature = "faults"))]
                pub(crate) const fn $fault(self) -> bool {
                    self.$fault
                }

                #[cfg(not(any(test, feature = "faults")))]
                #[allow(clippy::unused_self)] // As in the other build.
                pub(crate) const fn $fault(self) -> bool {
                    false
                }
            )*
        }
    };
}

faults! {
    /// Mistakes of `cadical/propagator`.
    Faults {
        /// A lemma stays pending over a backtrack, and assignments that arrive meanwhile are lost.
        drop_pending,
        /// A cycle's clause misses a literal.
        short_lemma,
        /// The order does not move when an edge comes.
        frozen_order,
        /// UNSAT under assumed sides is trusted.
        trust_assumed,
        /// Additions to a question are dropped, every second time.
        forget_growth,
        /// The clauses of a session are ignored by the order that meets all constraints.
        ignore_clauses,
    }
}

#[cfg(feature = "z3")]
faults! {
    /// Mistakes of `z3/…`.
    Z3Faults {
        /// The last edge of every first side is not stated.
        short_side,
        /// The user propagator finds cycles and does not report them.
        silent_cycles,
        /// Z3 names all but one of the constraints that fail together.
        short_core,
        /// A parameter that Z3 does not know, which makes it lose an assertion.
        unknown_parameter,
        /// UNSAT that depends on assumed sides is trusted.
        trust_assumed,
        /// Choices and cores are trusted.
        credulous,
    }
}
