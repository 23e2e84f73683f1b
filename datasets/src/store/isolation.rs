//! What the store promises its clients: all of them the same, or each transaction its own.

use std::fmt;
use std::str::FromStr;

use kingsnake_history::rng::Rng;
use thiserror::Error;

/// What the store promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// There is one order in which the transactions could have run, and it agrees with real time.
    Serializable,
    /// Everybody reads a snapshot, and writers of one key do not overlap.
    Snapshot,
    /// Everybody reads what is committed.
    ReadCommitted,
}

/// No isolation has this name.
#[derive(Clone, Debug, Error)]
#[error("no isolation {0:?}; there are serializable, snapshot, read-committed")]
pub struct UnknownIsolation(String);

impl Isolation {
    /// Every isolation, strongest first.
    pub const ALL: [Isolation; 3] = [
        Isolation::Serializable,
        Isolation::Snapshot,
        Isolation::ReadCommitted,
    ];

    /// The name, as typed.
    pub fn name(self) -> &'static str {
        match self {
            Isolation::Serializable => "serializable",
            Isolation::Snapshot => "snapshot",
            Isolation::ReadCommitted => "read-committed",
        }
    }
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Isolation {
    type Err = UnknownIsolation;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Isolation::ALL.into_iter().find(|it| it.name() == name);
        found.ok_or_else(|| UnknownIsolation(name.to_owned()))
    }
}

impl Isolation {
    /// The name that a transaction of a mix asks for, as databases spell it.
    pub fn recorded(self) -> &'static str {
        match self {
            Isolation::Serializable => "serializable",
            Isolation::Snapshot => "snapshot",
            Isolation::ReadCommitted => "read committed",
        }
    }
}

/// How many of a hundred transactions ask for each isolation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsolationMix {
    shares: Vec<(Isolation, usize)>,
}

/// Why a text is no mix.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NoMix {
    /// Not `NAME=SHARE`.
    #[error("{0:?} is not NAME=SHARE, such as serializable=30")]
    NoShare(String),
    /// No such isolation.
    #[error("no isolation {0:?}; there are serializable, snapshot, \"read committed\"")]
    NoIsolation(String),
    /// The shares are not percentages of all.
    #[error("the shares of a mix add up to 100, and these to {0}")]
    NotAll(usize),
}

impl FromStr for IsolationMix {
    type Err = NoMix;

    fn from_str(typed: &str) -> Result<Self, NoMix> {
        let share = |part: &str| {
            let no_share = || NoMix::NoShare(part.to_owned());
            let (name, share) = part.rsplit_once('=').ok_or_else(no_share)?;
            let name = name.trim().trim_matches('"').to_lowercase();
            let share: usize = share.trim().parse().map_err(|_| no_share())?;
            let is_named = |it: &Isolation| {
                name == it.recorded()
                    || name == it.name()
                    || *it == Isolation::Snapshot && name == "snapshot isolation"
            };
            let found = Isolation::ALL.into_iter().find(is_named);
            Ok((found.ok_or(NoMix::NoIsolation(name))?, share))
        };
        let shares: Vec<(Isolation, usize)> =
            typed.split(',').map(share).collect::<Result<_, _>>()?;
        match shares.iter().map(|it| it.1).sum() {
            100 => Ok(IsolationMix { shares }),
            other => Err(NoMix::NotAll(other)),
        }
    }
}

impl IsolationMix {
    /// The isolation of one transaction.
    pub(super) fn draw(&self, rng: &mut Rng) -> Isolation {
        let mut left = rng.below(100);
        for &(isolation, share) in &self.shares {
            if left < share {
                return isolation;
            }
            left -= share;
        }
        self.shares[self.shares.len() - 1].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_is_read_with_and_without_quotes() {
        let typed = "serializable=30,\"read committed\"=70";
        let mix: IsolationMix = typed.parse().expect("it is a mix");
        assert_eq!(Ok(mix), "serializable=30,read-committed=70".parse());
    }

    #[test]
    fn a_bad_mix_says_what_is_wrong_with_it() {
        let wrong = |typed: &str| typed.parse::<IsolationMix>().map_err(|it| it.to_string());
        assert!(wrong("serializable").is_err_and(|it| it.contains("NAME=SHARE")));
        assert!(wrong("chaos=100").is_err_and(|it| it.contains("no isolation")));
        assert!(wrong("serializable=30,snapshot=60").is_err_and(|it| it.contains("to 90")));
    }
}
