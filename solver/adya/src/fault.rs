//! Deliberate mistakes, for the tests that must notice them.

use std::sync::atomic::{AtomicU8, Ordering};

static FAULT: AtomicU8 = AtomicU8::new(0);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdyaFault {
    None,
    /// No edge from the last change to the reader.
    NoPredWr,
    /// No edge from the reader to the next change.
    NoPredRw,
    /// The change at the version that was looked at counts as one after it.
    LateChange,
    /// The transaction's own writes are not on top of the snapshot.
    NoOwn,
    /// Rows that should not have been returned are not noticed.
    NoExtra,
    /// Rows that an aggregate read are not overwritten.
    NoAggregate,
    /// A least or greatest value depends on all rows that the condition chooses.
    WholeExtreme,
    /// An anti-dependency is not looked at if it runs forwards in the numbers of transactions.
    HalfSingle,
    /// The sweep along the guessed order does not look at what was written after a snapshot.
    NoChange,
    /// Only the shortest of the parts of the order that backward edges span is looked at.
    NarrowWindow,
}

impl AdyaFault {
    pub(crate) const ALL: [AdyaFault; 10] = [
        AdyaFault::NoPredWr,
        AdyaFault::NoPredRw,
        AdyaFault::LateChange,
        AdyaFault::NoOwn,
        AdyaFault::NoExtra,
        AdyaFault::NoAggregate,
        AdyaFault::WholeExtreme,
        AdyaFault::HalfSingle,
        AdyaFault::NoChange,
        AdyaFault::NarrowWindow,
    ];

    pub(crate) fn set(self) {
        FAULT.store(self as u8, Ordering::SeqCst);
    }

    pub(crate) fn is_on(self) -> bool {
        FAULT.load(Ordering::SeqCst) == self as u8
    }
}
