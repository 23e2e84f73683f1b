//! Deliberate mistakes of the twins, for tests only: a comparison of kernels and twins must also reject a lying twin.

use std::cell::Cell;

/// A mistake that a twin can be told to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TwinFault {
    ClosureForgetsTheEdgeItself,
    ClosureForgetsAnEdge,
    PruneForgetsReaders,
    PruneForcesWhatIsImplied,
    JudgeRowsSwapsTheWay,
    EstimateLosesTheLastBit,
    ProbeSwapsTheEnds,
    AnnealLeavesBounds,
    AnnealForgetsTheRest,
    CountMissesASide,
}

thread_local! {
    static FAULT: Cell<Option<TwinFault>> = const { Cell::new(None) };
}

/// Makes this thread's twins commit a mistake from now on, or none.
pub(crate) fn commit(fault: Option<TwinFault>) {
    FAULT.set(fault);
}

/// Whether a twin is to make this mistake.
pub(crate) fn is(fault: TwinFault) -> bool {
    FAULT.get() == Some(fault)
}
