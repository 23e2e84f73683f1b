//! Deliberate mistakes, which the comparison with brute force must notice. Outside tests there are none.

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(test), allow(dead_code))]
#[repr(u8)]
pub(crate) enum RegisterFault {
    /// Readers of a run are not compared with the clock.
    NoReaders = 1,
    /// The initial value may come after others.
    NoInitial,
    /// Only neighbouring zones that go forward are compared.
    NoBackward,
    /// Operations of unknown end never count.
    NoUnknown,
    /// An operation that ends when another starts precedes it.
    Touching,
    /// The cache forgets the value of the register.
    NoState,
    /// Any read is taken at once.
    EagerReads,
}

#[cfg(not(test))]
#[inline]
pub(crate) fn is_on(_: RegisterFault) -> bool {
    false
}

#[cfg(test)]
pub(crate) use tests::is_on;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU8, Ordering};

    use kingsnake_history::budget::Budget;
    use kingsnake_history::rng::Rng;
    use kingsnake_lab::random::{Registers, registers};
    use kingsnake_lab::registers::{Demand, is_linearizable};

    use super::RegisterFault;
    use crate::{RegisterAnswer, RegisterOptions, check};

    static ON: AtomicU8 = AtomicU8::new(0);

    pub(crate) fn is_on(fault: RegisterFault) -> bool {
        ON.load(Ordering::Relaxed) == fault as u8
    }

    /// How many of some random histories brute force answers differently.
    fn n_differences(repeats: bool) -> usize {
        let shape = Registers {
            most_ops: 7,
            n_keys: 1,
            repeats,
            unknown: 15,
            refused: 20,
            lies: 60,
        };
        let differs = |seed: &u64| {
            let history = registers(&mut Rng::new(*seed), shape);
            let report = check(&history, RegisterOptions::default(), &Budget::unlimited()).unwrap();
            let found = matches!(report.answer, RegisterAnswer::Linearizable(_));
            found != is_linearizable(&history, Demand::default())
        };
        (0..4000).filter(differs).count()
    }

    #[test]
    fn every_mistake_is_noticed() {
        assert_eq!(n_differences(false) + n_differences(true), 0);
        for (fault, repeats) in [
            (RegisterFault::NoReaders, false),
            (RegisterFault::NoInitial, false),
            (RegisterFault::NoBackward, false),
            (RegisterFault::NoUnknown, false),
            (RegisterFault::Touching, false),
            (RegisterFault::NoState, true),
            (RegisterFault::EagerReads, true),
        ] {
            ON.store(fault as u8, Ordering::Relaxed);
            let n_noticed = n_differences(repeats);
            ON.store(0, Ordering::Relaxed);
            assert!(n_noticed > 0, "{fault:?}");
        }
    }
}
