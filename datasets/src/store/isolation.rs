//! What the store promises its clients: all of them the same, or each transaction its own.

use std::fmt;
use std::str::FromStr;

use kingsnake_history::level::{Level, Model};
use kingsnake_history::rng::Rng;
use thiserror::Error;

/// What the store promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// There is one order in which the transactions could have run, and it agrees with real time.
    Serializable,
    /// Every transaction reads a snapshot, and writers of one key do not overlap.
    Snapshot,
    /// Every transaction reads a snapshot; of writers of one key that overlap, the last to commit wins.
    PrefixConsistent,
    /// Every transaction reads what is committed.
    ReadCommitted,
}

/// No isolation has this name.
#[derive(Clone, Debug, Error)]
#[error("no isolation {0:?}; there are serializable, snapshot, prefix-consistent, read-committed")]
pub struct UnknownIsolation(String);

impl Isolation {
    /// Every isolation, strongest first.
    pub const ALL: [Isolation; 4] = [
        Isolation::Serializable,
        Isolation::Snapshot,
        Isolation::PrefixConsistent,
        Isolation::ReadCommitted,
    ];

    /// The name, as typed.
    pub fn name(self) -> &'static str {
        match self {
            Isolation::Serializable => "serializable",
            Isolation::Snapshot => "snapshot",
            Isolation::PrefixConsistent => "prefix-consistent",
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

/// What a transaction of a mix asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedIsolation {
    /// The name that is recorded: a level's, or as databases spell it.
    pub name: &'static str,
    /// What the store promises it: this, or less than it can do.
    pub isolation: Isolation,
}

/// Every name that a transaction can ask for. The store runs a level at the weakest promise that keeps it. What `repeatable read` and
/// `read uncommitted` mean differs between databases; these are `PostgreSQL`'s meanings.
const ASKED: [(&str, Isolation); 13] = [
    ("serializable", Isolation::Serializable),
    ("snapshot", Isolation::Snapshot),
    ("snapshot isolation", Isolation::Snapshot),
    ("repeatable read", Isolation::Snapshot),
    ("read committed", Isolation::ReadCommitted),
    ("read uncommitted", Isolation::ReadCommitted),
    ("ser", Isolation::Serializable),
    ("si", Isolation::Snapshot),
    ("pc", Isolation::PrefixConsistent),
    ("cc", Isolation::PrefixConsistent),
    ("ra", Isolation::PrefixConsistent),
    ("rc-so", Isolation::ReadCommitted),
    ("rc", Isolation::ReadCommitted),
];

impl AskedIsolation {
    /// Of a name, as databases or this program spell it.
    fn named(typed: &str) -> Result<Self, NoMix> {
        let typed = typed.trim_matches('"').to_lowercase();
        let spelt = |name: &str| name.replace(['-', '_'], " ");
        let of = |wanted: &str| {
            let mut all = ASKED.into_iter();
            let found = all.find(|(name, _)| spelt(name) == spelt(wanted));
            found.map(|(name, isolation)| AskedIsolation { name, isolation })
        };
        let by_alias = || typed.parse::<Level>().ok().and_then(|it| of(it.name()));
        of(&typed).or_else(by_alias).ok_or_else(|| {
            if typed == Model::Psi.name() {
                NoMix::Psi
            } else {
                NoMix::NoIsolation(typed.clone())
            }
        })
    }
}

impl From<Isolation> for AskedIsolation {
    fn from(isolation: Isolation) -> Self {
        let name = match isolation {
            Isolation::Serializable => "serializable",
            Isolation::Snapshot => "snapshot",
            Isolation::PrefixConsistent => "pc",
            Isolation::ReadCommitted => "read committed",
        };
        AskedIsolation { name, isolation }
    }
}

fn asked_names() -> String {
    let shown = |(name, _): (&str, Isolation)| {
        if name.contains(' ') {
            format!("{name:?}")
        } else {
            name.to_owned()
        }
    };
    ASKED.map(shown).join(", ")
}

/// Which isolation transactions ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IsolationMix {
    /// This many of a hundred request each.
    Shares(Vec<(AskedIsolation, usize)>),
    /// Each kind of a workload's transactions asks for one; `*` is every other kind.
    Kinds(Vec<(String, AskedIsolation)>),
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
    #[error("no isolation {0:?}; there are {names}", names = asked_names())]
    NoIsolation(String),
    /// Not a level of one transaction.
    #[error(
        "psi is a level of whole histories, so no transaction asks for it beside others; there are {}",
        asked_names()
    )]
    Psi,
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
                kind => Ok((kind.to_lowercase(), AskedIsolation::named(name)?)),
            });
            let kinds: Vec<(String, AskedIsolation)> = kinds.collect::<Result<_, _>>()?;
            if !kinds.iter().any(|it| it.0 == OTHER_KINDS) {
                return Err(NoMix::NoOthers);
            }
            return Ok(IsolationMix::Kinds(kinds));
        }
        let shares = parts.iter().map(|&(part, name, share)| {
            let share = share.parse().map_err(|_| NoMix::NoShare(part.to_owned()))?;
            Ok((AskedIsolation::named(name)?, share))
        });
        let shares: Vec<(AskedIsolation, usize)> = shares.collect::<Result<_, _>>()?;
        match shares.iter().map(|it| it.1).sum() {
            100 => Ok(IsolationMix::Shares(shares)),
            other => Err(NoMix::NotAll(other)),
        }
    }
}

impl IsolationMix {
    /// The isolation of one transaction of a kind.
    pub(super) fn draw(&self, kind: &str, rng: &mut Rng) -> AskedIsolation {
        match self {
            IsolationMix::Kinds(kinds) => {
                let of = |name: &str| kinds.iter().find(|it| it.0 == name).map(|it| it.1);
                of(kind)
                    .or_else(|| of(OTHER_KINDS))
                    .unwrap_or(Isolation::Serializable.into())
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

    /// The names that transactions ask for and that no level has: what they stand for is for `--isolation-map` to say.
    pub fn ambiguous(&self) -> Vec<(&'static str, Model)> {
        let asked: Vec<&str> = match self {
            IsolationMix::Shares(shares) => shares.iter().map(|it| it.0.name).collect(),
            IsolationMix::Kinds(kinds) => kinds.iter().map(|it| it.1.name).collect(),
        };
        let meant = [
            ("repeatable read", Model::Si),
            ("read uncommitted", Model::RcSo),
        ];
        let is_asked = |it: &(&str, Model)| asked.contains(&it.0);
        meant.into_iter().filter(is_asked).collect()
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
    fn every_level_of_a_transaction_can_be_asked_for() {
        for model in Model::MIXED {
            let asked = AskedIsolation::named(model.name());
            assert_eq!(asked.map(|it| it.name), Ok(model.name()));
        }
        for level in [Level::Rc, Level::RcSo, Level::Ra, Level::Cc] {
            for name in level.names() {
                let asked = AskedIsolation::named(name).map(|it| it.name);
                let sql = *name == "read-committed" && asked == Ok("read committed");
                assert!(sql || asked == Ok(level.name()), "{name}");
            }
        }
    }

    #[test]
    fn a_mix_by_kinds_gives_each_kind_its_isolation() {
        let typed = "payment=serializable,*=\"read committed\"";
        let mix: IsolationMix = typed.parse().expect("it is a mix");
        let mut rng = Rng::new(0);
        let mut drawn = |kind| mix.draw(kind, &mut rng).isolation;
        assert_eq!(drawn("payment"), Isolation::Serializable);
        assert_eq!(drawn("delivery"), Isolation::ReadCommitted);
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
        assert!(wrong("chaos=100").is_err_and(|it| it.contains("\"read uncommitted\", ser, si")));
        assert!(wrong("psi=100").is_err_and(|it| it.contains("whole histories")));
        assert!(wrong("serializable=30,snapshot=60").is_err_and(|it| it.contains("to 90")));
    }
}
