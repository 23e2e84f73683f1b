//! Histories that no forced choice decides: puzzles for the back ends, whose answer is known.
//!
//! A pair of blind writers of one key stands for a boolean: which of them came first. Each version is read, so a
//! choice orders the version's reader before the other writer. A clause forbids two choices: the reader of each also
//! reads from the writer that the other choice puts last, which closes a cycle iff both are made. Known edges lead only
//! from writers to readers, so pruning forces nothing; and the order exists, for SER as for SI, iff the clauses can be met.

use kingsnake_history::model::{History, HistoryBuilder, Status, Token};
use kingsnake_history::rng::Rng;

/// A choice: pair `pair` is ordered as `first` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderedPair {
    /// Which pair.
    pub pair: usize,
    /// Whether the pair's first writer comes first.
    pub first: bool,
}

/// Pairs of writers, and pairs of choices that exclude each other.
#[derive(Clone, Debug)]
pub struct CaseSplit {
    n_pairs: usize,
    forbidden: Vec<[OrderedPair; 2]>,
}

impl CaseSplit {
    /// The smallest one that cannot be met, of 8 transactions: whatever is chosen for two pairs is forbidden.
    pub fn contradiction() -> Self {
        let both = [true, false];
        let choice = |pair, first| OrderedPair { pair, first };
        let forbid = |a| both.map(|b| [choice(0, a), choice(1, b)]);
        CaseSplit {
            n_pairs: 2,
            forbidden: both.map(forbid).concat(),
        }
    }

    /// A random one. With 5 to 20 pairs and twice as many clauses, about half of them can be met.
    pub fn draw(n_pairs: usize, n_clauses: usize, rng: &mut Rng) -> Self {
        assert!(n_pairs > 1, "a clause is about two pairs");
        let clause = |_| {
            let one = rng.below(n_pairs);
            let other = (one + rng.between(1, n_pairs - 1)) % n_pairs;
            [one, other].map(|pair| OrderedPair {
                pair,
                first: rng.chance(50),
            })
        };
        CaseSplit {
            n_pairs,
            forbidden: (0..n_clauses).map(clause).collect(),
        }
    }

    /// Whether some choice for every pair avoids all that is forbidden; tries them all, so keep it to 20 pairs.
    pub fn is_satisfiable(&self) -> bool {
        assert!(self.n_pairs <= 20, "2^{} cases are too many", self.n_pairs);
        let made =
            |cases: u32, choice: OrderedPair| (cases >> choice.pair) & 1 == u32::from(choice.first);
        let allowed = |cases: u32| {
            !self
                .forbidden
                .iter()
                .any(|pair| pair.iter().all(|&it| made(cases, it)))
        };
        (0..1 << self.n_pairs).any(allowed)
    }

    /// The history: four transactions a pair, each in a session of its own.
    pub fn history(&self) -> History {
        let mut builder = HistoryBuilder::new();
        builder.initial_everywhere(Token::Int(0));
        let mut n_txns = 0;
        let mut begin = |builder: &mut HistoryBuilder| {
            n_txns += 1;
            let session = builder.session(Token::Int(n_txns));
            let begun = builder.begin(session, Token::Int(n_txns), Status::Committed);
            begun.expect("names are counted");
        };
        for pair in 0..self.n_pairs {
            for first in [true, false] {
                let writer = OrderedPair { pair, first };
                begin(&mut builder);
                builder.write(Token::Int(pair as i64), value(first));
                builder.write(self.own_key(writer), value(first));
            }
        }
        for pair in 0..self.n_pairs {
            for first in [true, false] {
                let choice = OrderedPair { pair, first };
                begin(&mut builder);
                builder.read(Token::Int(pair as i64), value(first));
                for other in self.excluded_by(choice) {
                    let last = !other.first;
                    let writer = OrderedPair {
                        pair: other.pair,
                        first: last,
                    };
                    builder.read(self.own_key(writer), value(last));
                }
            }
        }
        builder.finish().expect("names are counted")
    }

    fn excluded_by(&self, choice: OrderedPair) -> impl Iterator<Item = OrderedPair> + '_ {
        self.forbidden.iter().filter_map(move |&[one, other]| {
            if one == choice {
                return Some(other);
            }
            (other == choice).then_some(one)
        })
    }

    /// A key that only this writer writes.
    fn own_key(&self, writer: OrderedPair) -> Token {
        Token::Int((self.n_pairs + 2 * writer.pair + usize::from(writer.first)) as i64)
    }
}

/// What the first and the second writer of a pair write.
fn value(first: bool) -> Token {
    Token::Int(if first { 1 } else { 2 })
}
