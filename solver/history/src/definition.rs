//! Levels as single papers define them, for names that several papers use for different things.

use crate::level::{Level, Spec, Times};

/// A level as a paper defines it: one of ours with its switches set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The name, as typed: the paper's, a slash, the paper's name of the level.
    pub name: &'static str,
    /// The level.
    pub level: Level,
    /// Whether a session's transactions keep their order.
    pub session_order: bool,
    /// The meaning of recorded times, if the level looks at the clock.
    pub times: Times,
    /// How it differs from the level of that name here, as documentation.
    pub about: &'static str,
}

const fn ordered(name: &'static str, level: Level, about: &'static str) -> Definition {
    Definition {
        name,
        level,
        session_order: true,
        times: Times::Bounds,
        about,
    }
}

const fn exact(
    name: &'static str,
    level: Level,
    session_order: bool,
    about: &'static str,
) -> Definition {
    Definition {
        name,
        level,
        session_order,
        times: Times::Exact,
        about,
    }
}

/// The definitions by name. Viper's levels look at the clock: its strong session SI also keeps commits in the order of time, as its
/// GSI does, and its SI and GSI know no sessions.
pub const DEFINITIONS: [Definition; 8] = [
    ordered(
        "cobra/ser",
        Level::Ser,
        "nothing: Cobra's transactions keep the order of their session",
    ),
    ordered("polysi/si", Level::Si, "nothing"),
    ordered(
        "awdit/rc",
        Level::Rc,
        "nothing: a read sees only what earlier reads of its transaction read from",
    ),
    ordered(
        "mixed-sql/rc",
        Level::RcSo,
        "session order: what came earlier in the session is seen, too",
    ),
    exact(
        "viper/si",
        Level::Si,
        false,
        "session order: it is Adya's level, which knows no sessions",
    ),
    exact(
        "viper/gsi",
        Level::Gsi,
        false,
        "session order, and times are those of the database",
    ),
    exact(
        "viper/strong-session-si",
        Level::Gsi,
        true,
        "real time: besides sessions it has the edges of GSI between commits, and from a begin to a later commit",
    ),
    exact(
        "viper/strong-si",
        Level::StrongSi,
        true,
        "times are those of the database, whose clock also orders each session",
    ),
];

impl Definition {
    /// The definition of this name; case does not matter.
    pub fn named(name: &str) -> Option<&'static Definition> {
        DEFINITIONS
            .iter()
            .find(|it| it.name.eq_ignore_ascii_case(name))
    }

    /// The level's components.
    pub fn spec(&self) -> Spec {
        let spec = self.level.spec(Some(self.session_order));
        let spec = spec.expect("no definition contradicts its level");
        spec.with_clock(self.times, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(name: &str) -> Spec {
        Definition::named(name).expect("it is defined").spec()
    }

    #[test]
    fn the_levels_of_viper_are_a_chain() {
        let chain = [
            "viper/strong-si",
            "viper/strong-session-si",
            "viper/gsi",
            "viper/si",
        ];
        for pair in chain.windows(2) {
            let (strong, weak) = (spec(pair[0]), spec(pair[1]));
            assert!(strong.implies(weak), "{} implies {}", pair[0], pair[1]);
            assert!(!weak.implies(strong), "{} implies {}", pair[1], pair[0]);
        }
    }

    #[test]
    fn a_definition_is_another_question_than_our_level_of_that_name() {
        let ours = Level::StrongSessionSi.spec(None).expect("it has a spec");
        let vipers = spec("viper/strong-session-si");
        assert!(vipers.implies(ours) && !ours.implies(vipers));
        assert_ne!(Level::Si.spec(None), Some(spec("viper/si")));
        assert_eq!(Level::Rc.spec(None), Some(spec("awdit/rc")));
        assert_ne!(spec("awdit/rc"), spec("mixed-sql/rc"));
    }

    #[test]
    fn every_definition_has_a_level_and_answers_to_its_name() {
        for it in &DEFINITIONS {
            assert_eq!(Definition::named(&it.name.to_ascii_uppercase()), Some(it));
            assert_eq!(it.spec().session_order, it.session_order);
        }
        assert_eq!(Definition::named("viper/ser"), None);
    }
}
