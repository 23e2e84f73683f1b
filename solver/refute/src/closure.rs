//! Reachability among few points, as bit rows that grow with each arc (Italiano's incremental closure).
//!
//! Invariant: bit v of row u is set iff a path of at least one arc leads from u to v.

/// The transitive closure of the arcs added so far.
#[derive(Clone, Debug)]
pub(super) struct Closure {
    n_points: usize,
    n_words: usize,
    rows: Vec<u64>,
    is_cyclic: bool,
}

impl Closure {
    /// No arcs yet.
    pub(super) fn new(n_points: usize) -> Self {
        let n_words = n_points.div_ceil(64);
        Closure {
            n_points,
            n_words,
            rows: vec![0; n_points * n_words],
            is_cyclic: false,
        }
    }

    /// Whether a path leads from one point to the other.
    #[inline]
    pub(super) fn reaches(&self, from: u32, to: u32) -> bool {
        let word = self.rows[from as usize * self.n_words + to as usize / 64];
        word >> (to % 64) & 1 == 1
    }

    /// Whether some point reaches itself.
    pub(super) fn is_cyclic(&self) -> bool {
        self.is_cyclic
    }

    /// Maximum cost of copying it, or adding an arc.
    pub(super) fn work(&self) -> u64 {
        self.rows.len() as u64 + 1
    }

    /// Adds an arc.
    pub(super) fn add(&mut self, from: u32, to: u32) {
        if self.reaches(from, to) {
            return;
        }
        self.is_cyclic |= from == to || self.reaches(to, from);
        let start = to as usize * self.n_words;
        let mut gained = self.rows[start..start + self.n_words].to_vec();
        gained[to as usize / 64] |= 1 << (to % 64);
        for source in 0..self.n_points as u32 {
            if source != from && !self.reaches(source, from) {
                continue;
            }
            let start = source as usize * self.n_words;
            let row = &mut self.rows[start..start + self.n_words];
            for (word, gain) in row.iter_mut().zip(&gained) {
                *word |= gain;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Closure;

    #[test]
    fn a_cycle_is_noticed_when_its_last_arc_arrives() {
        let mut closure = Closure::new(70);
        closure.add(0, 69);
        closure.add(69, 3);
        assert!(closure.reaches(0, 3));
        assert!(!closure.is_cyclic());
        closure.add(3, 0);
        assert!(closure.is_cyclic());
        assert!(closure.reaches(69, 69));
    }
}
