//! Deliberate mistakes, for tests only: a suite that compares engines must also reject a lying one.

use std::cell::Cell;

/// A mistake that an engine can be told to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The polygraph loses the first rw edge of each read-modify-write.
    DroppedRwEdge,
    /// Each version loses its last reader when runs are ordered.
    MissingReader,
    /// The bit matrix is read one column off.
    ShiftedColumn,
    /// The clocks count one node of each chain too many.
    EarlyClock,
    /// The initial run is not put before the others.
    UnorderedInitial,
    /// The certificate has two neighbours swapped.
    SwappedCertificate,
    /// The session order is left out although it was asked for.
    ForgottenSession,
    /// Writers of one key may overlap (SI).
    OverlappingWriters,
    /// The drift makes clocks more trustworthy instead of less.
    DriftBackwards,
    /// A commit orders what begins in the same nanosecond.
    EqualTimesOrder,
    /// Strong SI lets a transaction read an old state, as generalised SI does.
    StaleSnapshots,
    /// Constraints for each reader are not joined by one for the pair.
    ReadersOnly,
    /// A no that rests on assumptions is believed.
    TrustedAssumption,
    /// A range query ends one key too early.
    ShortRange,
    /// What a range query did not return is not taken for a read.
    ForgottenAbsence,
    /// A read of one's own write shows that another who wrote the value took effect.
    OwnReadObserves,
}

impl Fault {
    /// Every mistake.
    pub(crate) const ALL: [Fault; 16] = [
        Fault::DroppedRwEdge,
        Fault::MissingReader,
        Fault::ShiftedColumn,
        Fault::EarlyClock,
        Fault::UnorderedInitial,
        Fault::SwappedCertificate,
        Fault::ForgottenSession,
        Fault::OverlappingWriters,
        Fault::DriftBackwards,
        Fault::EqualTimesOrder,
        Fault::StaleSnapshots,
        Fault::ReadersOnly,
        Fault::TrustedAssumption,
        Fault::ShortRange,
        Fault::ForgottenAbsence,
        Fault::OwnReadObserves,
    ];
}

thread_local! {
    static FAULT: Cell<Option<Fault>> = const { Cell::new(None) };
}

/// Makes this thread's engines commit a mistake from now on, or none.
pub(crate) fn commit(fault: Option<Fault>) {
    FAULT.set(fault);
}

/// Whether the engine under test is to make this mistake.
pub(crate) fn is(fault: Fault) -> bool {
    FAULT.get() == Some(fault)
}
