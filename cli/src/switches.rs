//! The techniques that can be chosen: one table, from which the command line, its help, the profiles, the plan and
//! docs/switches.md are made. A new technique is a row here.

use clap::Command;
use kingsnake_encodings::PropagatorOptions;
use kingsnake_solver::check::Techniques;

use crate::args::Profile;

/// Where a switch is stored.
#[derive(Clone, Copy)]
pub enum Kept {
    /// Among the solver's techniques.
    Techniques(fn(&mut Techniques) -> &mut bool),
    /// Among the options of the default back end.
    Search(fn(&mut PropagatorOptions) -> &mut bool),
    /// As the number of pruning rounds: off is zero.
    Rounds,
}

/// A technique that is on or off.
pub struct Switch {
    /// `--name` and `--no-name`, the row of the plan, the statistic, the heading.
    pub name: &'static str,
    /// `no-name`: the option that switches it off.
    pub no: &'static str,
    /// What `--no-name` does, as help.
    pub help: &'static str,
    /// What happens with it on, as help and documentation.
    pub on: &'static str,
    /// What happens with it off.
    pub off: &'static str,
    /// Whether each profile has it on, in the order of [`PROFILES`].
    pub profiles: [bool; 4],
    /// Where it is stored.
    pub kept: Kept,
}

/// A technique that has a value.
pub struct Setting {
    /// `--name`.
    pub name: &'static str,
    /// Its meaning, as help and documentation.
    pub meaning: &'static str,
    /// The value of each profile as typed, in the order of [`PROFILES`].
    pub profiles: [&'static str; 4],
}

/// The profiles, in the order of the table's columns.
pub const PROFILES: [Profile; 4] = [
    Profile::Cobra,
    Profile::Viper,
    Profile::KingCobra,
    Profile::Kingsnake,
];

/// On by default in every profile.
const ALWAYS: [bool; 4] = [true; 4];
/// In none of the papers' profiles.
const OURS: [bool; 4] = [false, false, false, true];

/// The switches.
pub static SWITCHES: [Switch; 10] = [
    Switch {
        name: "combine",
        no: "no-combine",
        help: "Do not infer version order from read-modify-writes.",
        on: "read-modify-writes make runs of consecutive versions, and only runs are ordered (Cobra's combining of writes)",
        off: "every version by itself",
        profiles: ALWAYS,
        kept: Kept::Techniques(|it| &mut it.combine),
    },
    Switch {
        name: "coalesce",
        no: "no-coalesce",
        help: "Make one constraint per reader, not one per pair of runs of versions.",
        on: "one constraint for two runs of a key, with all their readers (Cobra's coalescing)",
        off: "one per reader: the other run comes either before the version that it read, or after the reader (Papadimitriou's polygraph)",
        profiles: ALWAYS,
        kept: Kept::Techniques(|it| &mut it.coalesce),
    },
    Switch {
        name: "unread",
        no: "no-unread",
        help: "Make a constraint even for two versions without readers, as Cobra does.",
        on: "at SER two versions without readers are no constraint: any topological order decides them",
        off: "a constraint for every pair of chains, read or not, as in Cobra",
        profiles: OURS,
        kept: Kept::Techniques(|it| &mut it.unread),
    },
    Switch {
        name: "merge",
        no: "no-merge",
        help: "Make one constraint per key, not one per pair of transactions.",
        on: "one constraint for two transactions, however many keys they share",
        off: "one for each key",
        profiles: OURS,
        kept: Kept::Techniques(|it| &mut it.merge),
    },
    Switch {
        name: "prune",
        no: "no-prune",
        help: "Do not decide constraints by reachability.",
        on: "reachability decides constraints, for `--prune-rounds N` rounds or to the `fixpoint`",
        off: "none is settled",
        profiles: [true, false, true, true],
        kept: Kept::Rounds,
    },
    Switch {
        name: "linear",
        no: "no-linear",
        help: "Compute reachability even if every key is already ordered.",
        on: "if every key is already ordered, one topological sort decides",
        off: "reachability is always computed",
        profiles: OURS,
        kept: Kept::Techniques(|it| &mut it.linear),
    },
    Switch {
        name: "estimate",
        no: "no-estimate",
        help: "Do not estimate positions.",
        on: "a position for every transaction, from its ancestors and descendants",
        off: "none",
        profiles: OURS,
        kept: Kept::Techniques(|it| &mut it.estimate),
    },
    Switch {
        name: "witness",
        no: "no-witness",
        help: "Do not try the estimated order before solving.",
        on: "the estimated order is tried as an answer",
        off: "straight to the solver",
        profiles: OURS,
        kept: Kept::Techniques(|it| &mut it.witness),
    },
    Switch {
        name: "minimise",
        no: "no-minimise",
        help: "Learn from any short cycle, not from one with the fewest decided edges (cadical/propagator).",
        on: "a cycle that `cadical/propagator` learns has as few decided edges as possible",
        off: "it is any short one",
        profiles: ALWAYS,
        kept: Kept::Search(|it| &mut it.minimise),
    },
    Switch {
        name: "anneal",
        no: "no-anneal",
        help: "Do not anneal when the first order is hard to repair (cadical/propagator).",
        on: "when the first order is hard to repair, `cadical/propagator` searches for a better one ([annealing](propagator.md))",
        off: "it continues to repair",
        profiles: OURS,
        kept: Kept::Search(|it| &mut it.anneal),
    },
];

/// The settings that a profile has.
pub static SETTINGS: [Setting; 6] = [
    Setting {
        name: "prune-rounds",
        meaning: "stop pruning after N rounds; `fixpoint` prunes until nothing more is forced",
        profiles: ["1", "0", "5", "fixpoint"],
    },
    Setting {
        name: "reachability",
        meaning: "how to store reachability: one bit row per node, or one clock over the sessions per node; `auto` chooses by the sizes",
        profiles: ["dense", "dense", "dense", "auto"],
    },
    Setting {
        name: "heuristic",
        meaning: "which sides of constraints to assume before solving",
        profiles: ["off", "viper", "off", "off"],
    },
    Setting {
        name: "phase",
        meaning: "source of the first guess for a constraint (`cadical/propagator`; [measured](propagator.md))",
        profiles: ["none", "none", "none", "estimate"],
    },
    Setting {
        name: "decide",
        meaning: "which constraint to decide next (`cadical/propagator`)",
        profiles: ["vsids", "vsids", "vsids", "repair"],
    },
    Setting {
        name: "propagate",
        meaning: "rule out sides that a decision makes impossible, searching up to N nodes in each direction (`cadical/propagator`)",
        profiles: ["0", "0", "0", "0"],
    },
];

impl Switch {
    /// Whether a profile has it on.
    pub fn of(&self, profile: Profile) -> bool {
        self.profiles[column(profile)]
    }
}

/// The table as the long help of the command that checks.
pub fn explained(command: Command) -> Command {
    let plain = |text: &str| text.replace('`', "");
    let of = |value: &dyn Fn(usize) -> &'static str| {
        let names = PROFILES.iter().enumerate();
        let words: Vec<String> = names
            .map(|(at, it)| format!("{} {}", it.name(), value(at)))
            .collect();
        words.join(", ")
    };
    let command = SWITCHES.iter().fold(command, |command, it| {
        let on = of(&|at| if it.profiles[at] { "on" } else { "off" });
        let (by, without) = (plain(it.on), plain(it.off));
        let help = format!("{}\n\nOn: {by}. Off: {without}.\nProfiles: {on}.", it.help);
        command.mut_arg(it.no, |arg| arg.long_help(help))
    });
    SETTINGS.iter().fold(command, |command, it| {
        let help = format!(
            "{}\n\nProfiles: {}.",
            plain(it.meaning),
            of(&|at| it.profiles[at])
        );
        command.mut_arg(it.name.replace('-', "_"), |arg| arg.long_help(help))
    })
}

fn column(profile: Profile) -> usize {
    PROFILES
        .iter()
        .position(|&it| it == profile)
        .unwrap_or(PROFILES.len() - 1)
}

/// The value of a setting in a profile, as typed.
pub fn setting(name: &str, profile: Profile) -> &'static str {
    let found = SETTINGS.iter().find(|it| it.name == name);
    found.map_or("", |it| it.profiles[column(profile)])
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::args::{self, Typed};
    use crate::plan::Plan;
    use kingsnake_solver::level::Level;

    fn page() -> String {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/switches.md");
        std::fs::read_to_string(page).expect("docs/switches.md is there")
    }

    fn expect_table(table: &str) {
        assert!(
            page().contains(table),
            "docs/switches.md lacks this table:\n{table}"
        );
    }

    #[test]
    fn the_page_of_switches_has_the_rows_of_the_table() {
        let mut table = "| technique | on | off |\n| --- | --- | --- |\n".to_owned();
        for it in &SWITCHES {
            let _ = writeln!(table, "| `{}` | {} | {} |", it.name, it.on, it.off);
        }
        expect_table(&table);
        let typed = Typed::command();
        let check = typed.find_subcommand("check").expect("there is `check`");
        let mut table = String::new();
        for it in &SETTINGS {
            let mut args = check.get_arguments();
            let arg = args.find(|arg| arg.get_long() == Some(it.name));
            let arg = arg.unwrap_or_else(|| panic!("there is no --{}", it.name));
            let values = arg.get_possible_values();
            let mut values: Vec<&str> = values
                .iter()
                .map(clap::builder::PossibleValue::get_name)
                .collect();
            let names = arg.get_value_names().unwrap_or_default();
            if values.is_empty() {
                values = names.iter().map(clap::builder::Str::as_str).collect();
            }
            let values = values.join("\\|");
            let _ = writeln!(table, "| `--{} {values}` | {} |", it.name, it.meaning);
        }
        expect_table(&table);
    }

    #[test]
    fn the_page_of_switches_has_the_profiles_of_the_table() {
        let names = PROFILES.map(|it| format!("`{}`", it.name())).join(" | ");
        let rule = " --- |".repeat(PROFILES.len() + 1);
        let mut table = format!("| | {names} |\n|{rule}\n");
        for it in &SWITCHES {
            let on = it.profiles.map(|on| if on { "on" } else { "off" });
            let _ = writeln!(table, "| `{}` | {} |", it.name, on.join(" | "));
        }
        for it in &SETTINGS {
            let _ = writeln!(table, "| `{}` | {} |", it.name, it.profiles.join(" | "));
        }
        expect_table(&table);
    }

    fn plan(words: &[&str]) -> Plan {
        let line = ["kingsnake", "check", "h"].iter().chain(words);
        match Typed::try_parse_from(line)
            .expect("it is a command line")
            .command
        {
            args::Command::Check(args) => Plan::at(Level::Ser, &args.check).expect("it is a plan"),
            _ => unreachable!("check was typed"),
        }
    }

    #[test]
    fn the_help_of_techniques_has_the_rows_of_the_table() {
        let help = args::techniques().to_string();
        let plain = |text: &str| {
            text.split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .replace('`', "")
        };
        let help = plain(&help);
        for it in &SWITCHES {
            assert!(
                help.contains(&plain(it.on)) && help.contains(it.no),
                "{}",
                it.name
            );
        }
        for it in &SETTINGS {
            assert!(help.contains(&plain(it.meaning)), "{}", it.name);
        }
    }

    #[test]
    fn every_profile_sets_what_the_table_says() {
        for profile in PROFILES {
            let rows = plan(&["--profile", profile.name()]).rows();
            let row = |name: &str| {
                let found = rows.iter().find(|it| it.0 == name);
                found
                    .unwrap_or_else(|| panic!("the plan has no row {name}"))
                    .1
                    .clone()
            };
            for it in &SWITCHES {
                let on = if it.of(profile) { "on" } else { "off" };
                assert_eq!(row(it.name), on, "{} of {}", it.name, profile.name());
            }
            for it in &SETTINGS {
                let value = setting(it.name, profile).replace("fixpoint", "to the fixpoint");
                assert_eq!(row(it.name), value, "{} of {}", it.name, profile.name());
            }
        }
    }

    #[test]
    fn every_switch_is_parsed_and_the_last_one_counts() {
        for it in &SWITCHES {
            assert_eq!(it.no, format!("no-{}", it.name));
            let (on, off) = (format!("--{}", it.name), format!("--{}", it.no));
            for (words, value) in [
                (vec![off.as_str()], "off"),
                (vec![&on], "on"),
                (vec![&off, &on], "on"),
                (vec![&on, &off], "off"),
            ] {
                let rows = plan(&words).rows();
                let row = rows.iter().find(|row| row.0 == it.name);
                assert_eq!(row.map(|row| row.1.as_str()), Some(value), "{words:?}");
            }
        }
    }
}
