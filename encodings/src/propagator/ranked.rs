//! A set of small numbers that gives its least member at once: bits, and above them bits that say which words are not empty.

/// The set.
pub(crate) struct Ranked {
    /// The members, then a summary of each level below, until one word is left.
    levels: Vec<Vec<u64>>,
}

impl Ranked {
    /// The empty set of numbers below `size`.
    pub fn new(size: usize) -> Ranked {
        let mut levels = Vec::new();
        let mut words = size.div_ceil(64).max(1);
        loop {
            levels.push(vec![0u64; words]);
            if words == 1 {
                return Ranked { levels };
            }
            words = words.div_ceil(64);
        }
    }

    pub fn insert(&mut self, number: usize) {
        let mut at = number;
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            let was = *word;
            *word |= 1 << (at % 64);
            if was != 0 {
                return;
            }
            at /= 64;
        }
    }

    pub fn remove(&mut self, number: usize) {
        let mut at = number;
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            *word &= !(1 << (at % 64));
            if *word != 0 {
                return;
            }
            at /= 64;
        }
    }

    /// The least member.
    pub fn first(&self) -> Option<usize> {
        let mut at = 0;
        for level in self.levels.iter().rev() {
            let word = level[at];
            if word == 0 {
                return None;
            }
            at = at * 64 + word.trailing_zeros() as usize;
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use kingsnake_context::rng::Rng;

    use super::*;

    #[test]
    fn it_agrees_with_a_tree() {
        let mut rng = Rng::new(1);
        for size in [1, 63, 64, 65, 5000] {
            let (mut ranked, mut tree) = (Ranked::new(size), BTreeSet::new());
            for _ in 0..4000 {
                let number = rng.below(size);
                if rng.below(2) == 0 {
                    ranked.insert(number);
                    tree.insert(number);
                } else {
                    ranked.remove(number);
                    tree.remove(&number);
                }
                assert_eq!(ranked.first(), tree.first().copied());
            }
        }
    }
}
