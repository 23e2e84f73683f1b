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

/// Which isolation transactions ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IsolationMix {
    /// So many of a hundred ask for each.
    Shares(Vec<(Isolation, usize)>),
    /// Each kind of a workload's transactions asks for one; `*` is every other kind.
    Kinds(Vec<(String, Isolation)>),
}

/// The name of every kind that has no name of its own in a mix.
const OTHER_KINDS: &str = "*";

/// Why a text is no mix.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NoMix {
    /// Neither `NAME=SHARE` nor `KIND=NAME`.
    #[error(
        "{0:?} is not NAME=SHARE, such as serializable=30, nor KIND=NAME, such as payment=serializable"
    )]
    NoShare(String),
    /// Some kinds are left.
    #[error(
        "a mix by kinds says what the other kinds ask for: add *=NAME, such as *=\"read committed\""
    )]
    NoOthers,
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
        let parts = typed.split(',').map(|part| {
            let no_share = || NoMix::NoShare(part.to_owned());
            let (left, right) = part.rsplit_once('=').ok_or_else(no_share)?;
            Ok((part, left.trim(), right.trim()))
        });
        let parts: Vec<(&str, &str, &str)> = parts.collect::<Result<_, _>>()?;
        let is_share = |it: &&(&str, &str, &str)| it.2.starts_with(|c: char| c.is_ascii_digit());
        if !parts.iter().any(|it| is_share(&it)) {
            let kinds = parts.iter().map(|&(part, kind, name)| match kind {
                "" => Err(NoMix::NoShare(part.to_owned())),
                kind => Ok((kind.to_lowercase(), named(name)?)),
            });
            let kinds: Vec<(String, Isolation)> = kinds.collect::<Result<_, _>>()?;
            if !kinds.iter().any(|it| it.0 == OTHER_KINDS) {
                return Err(NoMix::NoOthers);
            }
            return Ok(IsolationMix::Kinds(kinds));
        }
        let shares = parts.iter().map(|&(part, name, share)| {
            let share = share.parse().map_err(|_| NoMix::NoShare(part.to_owned()))?;
            Ok((named(name)?, share))
        });
        let shares: Vec<(Isolation, usize)> = shares.collect::<Result<_, _>>()?;
        match shares.iter().map(|it| it.1).sum() {
            100 => Ok(IsolationMix::Shares(shares)),
            other => Err(NoMix::NotAll(other)),
        }
    }
}

/// The isolation of a name, as databases or this program spell it.
fn named(name: &str) -> Result<Isolation, NoMix> {
    let name = name.trim_matches('"').to_lowercase();
    let is_named = |it: &Isolation| {
        name == it.recorded()
            || name == it.name()
            || *it == Isolation::Snapshot && name == "snapshot isolation"
    };
    let found = Isolation::ALL.into_iter().find(is_named);
    found.ok_or(NoMix::NoIsolation(name))
}

impl IsolationMix {
    /// The isolation of one transaction of a kind.
    pub(super) fn draw(&self, kind: &str, rng: &mut Rng) -> Isolation {
        match self {
            IsolationMix::Kinds(kinds) => {
                let of = |name: &str| kinds.iter().find(|it| it.0 == name).map(|it| it.1);
                of(kind)
                    .or_else(|| of(OTHER_KINDS))
                    .unwrap_or(Isolation::Serializable)
            }
            IsolationMix::Shares(shares) => {
                let mut left = rng.below(100);
                for &(isolation, share) in shares {
                    if left < share {
                        return isolation;
                    }
                    left -= share;
                }
                shares[shares.len() - 1].0
            }
        }
    }

    /// A kind of the mix that a workload does not have.
    pub(super) fn unknown_kind(&self, kinds: &[&str]) -> Option<&str> {
        let IsolationMix::Kinds(named) = self else {
            return None;
        };
        let mut named = named.iter().map(|it| it.0.as_str());
        named.find(|it| *it != OTHER_KINDS && !kinds.contains(it))
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
    fn a_mix_by_kinds_gives_each_kind_its_isolation() {
        let typed = "payment=serializable,*=\"read committed\"";
        let mix: IsolationMix = typed.parse().expect("it is a mix");
        let mut rng = Rng::new(0);
        assert_eq!(mix.draw("payment", &mut rng), Isolation::Serializable);
        assert_eq!(mix.draw("delivery", &mut rng), Isolation::ReadCommitted);
        assert_eq!(mix.unknown_kind(&["payment", "delivery"]), None);
        assert_eq!(mix.unknown_kind(&["tweet"]), Some("payment"));
    }

    #[test]
    fn a_bad_mix_says_what_is_wrong_with_it() {
        let wrong = |typed: &str| typed.parse::<IsolationMix>().map_err(|it| it.to_string());
        assert!(wrong("serializable").is_err_and(|it| it.contains("NAME=SHARE")));
        assert!(wrong("payment=serializable").is_err_and(|it| it.contains("*=NAME")));
        assert!(wrong("payment=chaos,*=snapshot").is_err_and(|it| it.contains("no isolation")));
        assert!(wrong("chaos=100").is_err_and(|it| it.contains("no isolation")));
        assert!(wrong("serializable=30,snapshot=60").is_err_and(|it| it.contains("to 90")));
    }
}
