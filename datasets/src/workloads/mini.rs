//! Mini-transactions (MTC): one or two reads and at most two writes, and every write comes after a read of its key.
//!
//! So the version order of every key is known from the reads, and checking takes linear time.

use std::fmt;
use std::str::FromStr;

use kingsnake_history::rng::Rng;

use super::Workload;
use super::keys::Keys;
use crate::store::{ClientTransaction, TxnStep};

pub(super) struct Mini {
    pub(super) keys: Keys,
    pub(super) shapes: Shapes,
}

/// Which shapes of mini-transactions are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shapes {
    /// Those in which no operation is repeated.
    #[default]
    TwoKey,
    /// Those that MTC's generator draws.
    Mtc,
    /// All that the definition allows.
    All,
}

impl Shapes {
    /// Every choice.
    pub const ALL: [Shapes; 3] = [Shapes::TwoKey, Shapes::Mtc, Shapes::All];

    /// The name, as typed.
    pub fn name(self) -> &'static str {
        match self {
            Shapes::TwoKey => "two-key",
            Shapes::Mtc => "mtc",
            Shapes::All => "all",
        }
    }

    /// The shapes: a small letter is a read, a capital a write; x and y are two keys.
    pub fn shapes(self) -> &'static [&'static str] {
        match self {
            Shapes::TwoKey => &["x", "xX", "xy", "xyX", "xXy", "xyXY", "xXyY"],
            Shapes::Mtc => &[
                "x", "xy", "xx", "xX", "xyY", "xyX", "xxX", "xXy", "xXx", "xyXY", "xyYX", "xXyY",
                "xxXX", "xXxX",
            ],
            Shapes::All => &[
                "x", "xx", "xy", "xX", "xxX", "xyX", "xyY", "xXx", "xXy", "xXX", "xxXX", "xyXX",
                "xyXY", "xyYX", "xyYY", "xXxX", "xXyX", "xXyY", "xXXx", "xXXy",
            ],
        }
    }
}

impl fmt::Display for Shapes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Shapes {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Shapes::ALL.into_iter().find(|it| it.name() == name);
        found.ok_or_else(|| format!("no shapes {name:?}; there are two-key, mtc, all"))
    }
}

impl Workload for Mini {
    fn transaction(&self, rng: &mut Rng) -> Box<dyn ClientTransaction> {
        let keys = self.keys.different(2, rng);
        let shapes = self.shapes.shapes();
        let shape = shapes[rng.below(shapes.len())];
        let steps = shape.bytes().map(|letter| {
            let key = keys[usize::from(letter.eq_ignore_ascii_case(&b'y'))];
            if letter.is_ascii_uppercase() {
                TxnStep::Write(key, 0)
            } else {
                TxnStep::Read(key)
            }
        });
        Box::new(steps.collect::<Vec<TxnStep>>().into_iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every sequence that the definition allows, the first key called x.
    fn by_definition() -> Vec<String> {
        let mut all = Vec::new();
        for length in 1..=4_u32 {
            for drawn in 0..4_u32.pow(length) {
                let letters: String = (0..length)
                    .map(|at| ['x', 'y', 'X', 'Y'][(drawn >> (2 * at) & 3) as usize])
                    .collect();
                let n_reads = letters.chars().filter(char::is_ascii_lowercase).count();
                let n_writes = letters.len() - n_reads;
                let is_read = |(at, letter): (usize, char)| {
                    letter.is_lowercase() || letters[..at].contains(letter.to_ascii_lowercase())
                };
                if letters.starts_with('x')
                    && (1..=2).contains(&n_reads)
                    && n_writes <= 2
                    && letters.char_indices().all(is_read)
                {
                    all.push(letters);
                }
            }
        }
        all.sort();
        all
    }

    #[test]
    fn there_are_20_shapes_of_which_mtc_draws_14_and_7_repeat_nothing() {
        let sorted = |shapes: Shapes| {
            let mut shapes = shapes.shapes().to_vec();
            shapes.sort_unstable();
            shapes
        };
        assert_eq!(by_definition(), sorted(Shapes::All));
        let counts = Shapes::ALL.map(|shapes| shapes.shapes().len());
        assert_eq!(counts, [7, 14, 20]);
        for shapes in Shapes::ALL {
            let all = sorted(Shapes::All);
            assert!(shapes.shapes().iter().all(|shape| all.contains(shape)));
        }
    }
}
