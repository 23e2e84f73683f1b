//! How often each key is chosen.
//!
//! Every distribution is a table of cumulative whole-number weights, so that a seed chooses the same keys everywhere: what
//! a machine's `pow` rounds differently in its last bit is far below the unit of a weight.

use std::fmt;
use std::str::FromStr;

use kingsnake_history::rng::Rng;
use thiserror::Error;

use crate::store::Key;

/// How often each key is chosen. Key 0 is the most frequent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Distribution {
    /// All equally often.
    #[default]
    Uniform,
    /// The key of rank *i* in proportion to 1/*i*^exponent.
    Zipf {
        /// The exponent.
        exponent: f64,
    },
    /// A few keys get most of the accesses, and each part is uniform.
    Hotspot {
        /// The share of the keys that are hot.
        keys: f64,
        /// The share of the accesses that go to them.
        accesses: f64,
    },
    /// Keys fall off exponentially; the rate is per length of the whole range.
    Exponential {
        /// The rate.
        rate: f64,
    },
}

/// No distribution is written so.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "{0:?} is no distribution; there are uniform, zipf[:EXPONENT], hotspot[:KEYS:ACCESSES] (shares from 0 to 1), exponential[:RATE]"
)]
pub struct BadDistribution(String);

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distribution::Uniform => f.write_str("uniform"),
            Distribution::Zipf { exponent } => write!(f, "zipf:{exponent}"),
            Distribution::Hotspot { keys, accesses } => write!(f, "hotspot:{keys}:{accesses}"),
            Distribution::Exponential { rate } => write!(f, "exponential:{rate}"),
        }
    }
}

impl FromStr for Distribution {
    type Err = BadDistribution;

    fn from_str(typed: &str) -> Result<Self, Self::Err> {
        let bad = || BadDistribution(typed.to_owned());
        let mut parts = typed.split(':');
        let name = parts.next().unwrap_or_default();
        let numbers: Result<Vec<f64>, _> = parts.map(str::parse).collect();
        let numbers = numbers.map_err(|_| bad())?;
        let in_range = |it: &f64| it.is_finite() && (0.0..=1_000.0).contains(it);
        if !numbers.iter().all(in_range) {
            return Err(bad());
        }
        match (name, &numbers[..]) {
            ("uniform", []) => Ok(Distribution::Uniform),
            ("zipf", []) => Ok(Distribution::Zipf { exponent: 0.99 }),
            ("zipf", &[exponent]) => Ok(Distribution::Zipf { exponent }),
            ("hotspot", []) => Ok(Distribution::Hotspot {
                keys: 0.2,
                accesses: 0.8,
            }),
            ("hotspot", &[keys, accesses]) if keys <= 1.0 && accesses <= 1.0 => {
                Ok(Distribution::Hotspot { keys, accesses })
            }
            ("exponential", []) => Ok(Distribution::Exponential { rate: 10.0 }),
            ("exponential", &[rate]) => Ok(Distribution::Exponential { rate }),
            _ => Err(bad()),
        }
    }
}

/// Chooses keys from 0 to a number of keys.
pub(super) struct Keys {
    n_keys: usize,
    /// Where each key's weight ends; empty for the uniform distribution.
    ends: Vec<u64>,
}

/// The weight of the most frequent key.
const UNIT: f64 = (1_u64 << 32) as f64;

impl Keys {
    pub(super) fn new(n_keys: usize, distribution: Distribution) -> Self {
        let n = n_keys as f64;
        let weight = |at: usize| match distribution {
            Distribution::Uniform => 1.0,
            Distribution::Zipf { exponent } => (at as f64 + 1.0).powf(-exponent),
            Distribution::Exponential { rate } => (-rate * at as f64 / n).exp(),
            Distribution::Hotspot { keys, accesses } => {
                let n_hot = (keys * n).round().clamp(1.0, n);
                if at < n_hot as usize {
                    accesses / n_hot
                } else {
                    (1.0 - accesses) / (n - n_hot)
                }
            }
        };
        let mut ends = Vec::new();
        if distribution != Distribution::Uniform {
            let heaviest = weight(0).max(weight(n_keys - 1));
            let mut end = 0;
            ends.extend((0..n_keys).map(|at| {
                // No key is impossible.
                end += ((weight(at) / heaviest * UNIT).round() as u64).max(1);
                end
            }));
        }
        Keys { n_keys, ends }
    }

    fn draw(&self, rng: &mut Rng) -> usize {
        match self.ends.last() {
            None => rng.below(self.n_keys),
            Some(&total) => {
                let drawn = rng.below(total as usize) as u64;
                self.ends.partition_point(|&end| end <= drawn)
            }
        }
    }

    /// Any key.
    pub(super) fn one(&self, rng: &mut Rng) -> Key {
        self.draw(rng) as Key
    }

    /// This many different keys, at most as many as there are.
    pub(super) fn different(&self, n: usize, rng: &mut Rng) -> Vec<Key> {
        /// After this many repetitions the next free key is taken, so that few or very uneven keys do not take for ever.
        const PATIENCE: usize = 100;
        let mut chosen: Vec<Key> = Vec::with_capacity(n);
        while chosen.len() < n.min(self.n_keys) {
            let mut patience = PATIENCE;
            let mut key = self.draw(rng);
            while chosen.contains(&(key as Key)) {
                if patience > 0 {
                    patience -= 1;
                    key = self.draw(rng);
                } else {
                    key = (key + 1) % self.n_keys;
                }
            }
            chosen.push(key as Key);
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(distribution: &str, n_keys: usize) -> Vec<f64> {
        let keys = Keys::new(n_keys, distribution.parse().unwrap());
        let mut rng = Rng::new(1);
        let n = 200_000;
        let mut counts = vec![0.0; n_keys];
        for _ in 0..n {
            counts[keys.draw(&mut rng)] += 1.0 / f64::from(n);
        }
        counts
    }

    fn near(found: f64, wanted: f64) {
        assert!((found - wanted).abs() < 0.01, "{found} for {wanted}");
    }

    #[test]
    fn keys_are_as_frequent_as_their_distribution_says() {
        for share in shares("uniform", 10) {
            near(share, 0.1);
        }
        let harmonic: f64 = (1..=100).map(|i| 1.0 / f64::from(i)).sum();
        let zipf = shares("zipf:1", 100);
        near(zipf[0], 1.0 / harmonic);
        near(zipf[9], 0.1 / harmonic);
        near(shares("hotspot:0.1:0.7", 100)[..10].iter().sum(), 0.7);
        let exponential = shares("exponential:10", 1_000);
        near(exponential[..100].iter().sum(), 1.0 - (-1.0_f64).exp());
    }

    #[test]
    fn different_keys_are_different_even_where_there_are_hardly_enough() {
        let keys = Keys::new(8, Distribution::Zipf { exponent: 20.0 });
        let mut chosen = keys.different(8, &mut Rng::new(0));
        chosen.sort_unstable();
        assert_eq!(chosen, (0..8).collect::<Vec<Key>>());
    }

    #[test]
    fn what_is_no_distribution_is_refused() {
        for typed in [
            "",
            "gauss",
            "zipf:x",
            "zipf:-1",
            "hotspot:2:0.5",
            "uniform:1",
            "zipf:NaN",
        ] {
            assert!(typed.parse::<Distribution>().is_err(), "{typed}");
        }
        for typed in ["uniform", "zipf:1.5", "hotspot:0.1:0.9", "exponential:3"] {
            let read: Distribution = typed.parse().unwrap();
            assert_eq!(read.to_string(), typed);
        }
    }
}
