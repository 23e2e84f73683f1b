//! `hunt --aim LEVEL`: rounds, each of which varies what came closest to a violation so far.
//!
//! A round's workload, keys, length, think time, sessions and faults are a function of the rows of the rounds before
//! it, so a resumed hunt continues identically. `--blind` draws each round independently, for comparison.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use anyhow::{Result, bail};
use kingsnake_collect::{LOADS, adapter};
use kingsnake_history::rng::Rng;
use serde_json::{Value, json};

use super::cell::HuntCell;
use super::recipe::{HuntRecipe, HuntTarget};

/// Rounds before the first aimed one.
const EXPLORED: usize = 4;
/// How many of the closest rounds are varied.
const CLOSEST: usize = 3;
/// One round in this many is drawn independently anyway.
const ALONE: usize = 4;
/// Rounds of one database and level.
const MOST_ROUNDS: u64 = 10_000;

const KEYS: [u32; 5] = [2, 4, 8, 20, 60];
const OPS: [u32; 4] = [2, 3, 5, 8];
const SESSIONS: [u16; 4] = [2, 4, 8, 16];
/// Microseconds.
const THINK: [u32; 5] = [0, 100, 500, 2_000, 5_000];

/// The goal of an aimed hunt.
#[derive(Clone, Debug)]
pub struct Aim {
    /// The level to violate.
    pub level: String,
    /// Whether rounds are drawn independently of each other.
    pub is_blind: bool,
}

/// What a round varies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variation {
    pub workload: String,
    pub keys: u32,
    pub ops: u32,
    pub sessions: u16,
    /// Microseconds between two operations.
    pub think: u32,
    pub fault: String,
}

/// Where rounds are played: a database at one of its levels.
struct AimedPlace<'a> {
    database: &'a HuntTarget,
    isolation: &'a str,
    promise: Option<&'static str>,
}

/// Every round of every database and level, made when it is asked for.
pub struct HuntRounds<'a> {
    places: Vec<AimedPlace<'a>>,
    /// Rounds of each place: as many as the file has seeds.
    n_each: u64,
    first_seed: u64,
}

/// One round: where, and which.
pub struct HuntRound<'a> {
    pub database: &'a HuntTarget,
    pub isolation: &'a str,
    promise: Option<&'static str>,
    number: u64,
    /// The first seed of the hunt.
    first_seed: u64,
}

impl<'a> HuntRounds<'a> {
    /// The rounds of a hunt's file. An unknown database or level is an error, and so is one that is named twice.
    pub fn of(recipe: &'a HuntRecipe) -> Result<Self> {
        let mut places: Vec<AimedPlace<'_>> = Vec::new();
        let mut seen = HashSet::new();
        for database in &recipe.database {
            if database.workload.is_empty() {
                bail!(
                    "{} has no workload, and rounds vary workloads; write `workload = [\"mini\", \"rmw\", \"skew\"]`",
                    database.name
                );
            }
            let adapter = adapter(&database.name)?;
            let typed = database.isolation.iter().map(String::as_str);
            let mut levels: Vec<&str> = typed.collect();
            if levels.is_empty() {
                levels = adapter.levels.iter().map(|level| level.name).collect();
            }
            for isolation in levels {
                if !seen.insert((&database.name, database.nodes, isolation)) {
                    bail!(
                        "{} at {isolation} stands twice among the databases; --aim varies one place at a time",
                        database.name
                    );
                }
                places.push(AimedPlace {
                    database,
                    isolation,
                    promise: adapter.level(isolation)?.level,
                });
            }
        }
        Ok(HuntRounds {
            places,
            n_each: recipe.seeds.min(MOST_ROUNDS),
            first_seed: recipe.first_seed,
        })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.places.len() * self.n_each as usize
    }

    /// The round of this number.
    pub fn get(&self, at: usize) -> HuntRound<'a> {
        let each = self.n_each as usize;
        self.round(&self.places[at / each], (at % each) as u64 + 1)
    }

    fn round(&self, place: &AimedPlace<'a>, number: u64) -> HuntRound<'a> {
        HuntRound {
            database: place.database,
            isolation: place.isolation,
            promise: place.promise,
            number,
            first_seed: self.first_seed,
        }
    }

    /// The first round of each place.
    pub fn firsts(&self) -> impl Iterator<Item = HuntRound<'a>> {
        self.places.iter().map(|place| self.round(place, 1))
    }

    /// The number of the round that a row is of.
    pub fn place(&self, aim: &Aim, row: &Value) -> Option<usize> {
        let mut firsts = self.firsts().enumerate();
        let found = firsts.find_map(|(at, it)| Some((at, it.number_of(aim, row)?)));
        let (at, number) = found.filter(|&(_, number)| number <= self.n_each)?;
        Some(at * self.n_each as usize + number as usize - 1)
    }
}

impl HuntRound<'_> {
    /// The rounds at the same place have this name, with their numbers.
    fn place(&self, aim: &Aim) -> String {
        let how = if aim.is_blind { "blind" } else { "aimed" };
        let nodes = self.database.nodes;
        format!(
            "{}-{nodes} {} {how} at {}",
            self.database.name, self.isolation, aim.level
        )
    }

    pub fn name(&self, aim: &Aim) -> String {
        format!("{} round {}", self.place(aim), self.number)
    }

    /// The number of the round of this place that a row is of.
    pub fn number_of(&self, aim: &Aim, row: &Value) -> Option<u64> {
        let name = row["cell"].as_str()?;
        let number = name.strip_prefix(&self.place(aim))?;
        let number = number.strip_prefix(" round ")?.parse().ok()?;
        (number > 0).then_some(number)
    }

    /// The rows of the rounds before this one, in their order.
    fn before<'r>(&self, aim: &Aim, rows: &'r [Value]) -> Vec<&'r Value> {
        let rows = rows.iter();
        let numbered = rows.filter_map(|row| Some((self.number_of(aim, row)?, row)));
        let before: BTreeMap<u64, &Value> = numbered.filter(|it| it.0 < self.number).collect();
        before.into_values().collect()
    }

    /// The round in which the level was violated, if there is one.
    pub fn found(&self, aim: &Aim, rows: &[Value]) -> Option<String> {
        let before = self.before(aim, rows);
        let found = before
            .iter()
            .find(|row| row[&aim.level]["verdict"] == "violated");
        found.map(|row| row["cell"].as_str().unwrap_or("").to_owned())
    }

    /// The choices of this round, from the results of the rounds before it.
    pub fn variation(&self, aim: &Aim, rows: &[Value]) -> Variation {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ self.number ^ (self.first_seed << 32);
        for byte in self.place(aim).bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        let mut rng = Rng::new(hash);
        let drawn = self.drawn(&mut rng);
        let mut before = self.before(aim, rows);
        if aim.is_blind || before.len() < EXPLORED || rng.below(ALONE) == 0 {
            return drawn;
        }
        before.sort_by(|one, other| closeness(other).total_cmp(&closeness(one)));
        let parent = before[rng.below(CLOSEST.min(before.len()))];
        let mut next = variation_of(parent).unwrap_or_else(|| drawn.clone());
        // One or two choices are drawn again.
        for _ in 0..=rng.below(2) {
            match rng.below(6) {
                0 => next.workload.clone_from(&drawn.workload),
                1 => next.keys = drawn.keys,
                2 => next.ops = drawn.ops,
                3 => next.sessions = drawn.sessions,
                4 => next.think = drawn.think,
                _ => next.fault.clone_from(&drawn.fault),
            }
        }
        next
    }

    fn drawn(&self, rng: &mut Rng) -> Variation {
        let database = self.database;
        let workload = database.workload[rng.below(database.workload.len())].clone();
        let fault = database.fault.get(rng.below(database.fault.len().max(1)));
        Variation {
            workload,
            keys: database.keys.unwrap_or(KEYS[rng.below(KEYS.len())]),
            ops: OPS[rng.below(OPS.len())],
            sessions: SESSIONS[rng.below(SESSIONS.len())],
            think: THINK[rng.below(THINK.len())],
            fault: fault.map_or("none".to_owned(), Clone::clone),
        }
    }

    /// The cell that runs the round.
    pub fn cell<'c>(&'c self, aim: &'c Aim, variation: &'c Variation) -> HuntCell<'c> {
        let entry = LOADS.iter().find(|load| load.name == variation.workload);
        HuntCell {
            database: self.database,
            isolation: self.isolation,
            workload: &variation.workload,
            script: None,
            // The operations of a transaction are on different keys.
            ops: entry
                .filter(|it| it.ops > 0)
                .map(|_| variation.ops.min(variation.keys)),
            fault: &variation.fault,
            seed: self.first_seed.wrapping_add(self.number - 1),
            promise: self.promise,
            round: Some(super::cell::AimedRound {
                name: self.name(aim),
                level: &aim.level,
                keys: entry.filter(|it| it.keys > 0).map(|_| variation.keys),
                sessions: variation.sessions,
                think: variation.think,
            }),
        }
    }
}

/// How close a round came: per committed transaction, so that longer rounds do not count as closer.
fn closeness(row: &Value) -> f64 {
    row["close"]["score"].as_f64().unwrap_or(0.0)
}

impl Variation {
    pub fn to_json(&self) -> Value {
        json!({
            "workload": self.workload, "keys": self.keys, "ops": self.ops, "sessions": self.sessions,
            "think": self.think, "fault": self.fault,
        })
    }
}

fn variation_of(row: &Value) -> Option<Variation> {
    let varied = &row["varied"];
    let number = |name: &str| varied[name].as_u64().and_then(|it| u32::try_from(it).ok());
    Some(Variation {
        workload: varied["workload"].as_str()?.to_owned(),
        keys: number("keys")?,
        ops: number("ops")?,
        sessions: u16::try_from(number("sessions")?).ok()?,
        think: number("think")?,
        fault: varied["fault"].as_str()?.to_owned(),
    })
}

/// What a collected history came close to; null if it cannot be read.
pub fn close(history: &Path, row: &Value) -> Value {
    let options = kingsnake_datasets::ReadOptions::default();
    let Ok(parsed) = kingsnake_datasets::open(history, &options) else {
        return Value::Null;
    };
    let counted = super::close::count(&parsed.history);
    let committed = row["committed"].as_f64().unwrap_or(0.0).max(1.0);
    let aborted = row["aborted"].as_f64().unwrap_or(0.0);
    let per = |n: u64| n as f64 / committed;
    // Whether a pair of transactions that missed each other's writes is allowed depends on their level only.
    let score = per(counted.missed)
        + 2.0 * per(counted.overwritten)
        + 4.0 * per(counted.mutual)
        + aborted / (aborted + committed);
    json!({
        "missed": counted.missed, "overlapping_writers": counted.overwritten, "mutual": counted.mutual,
        "score": score,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "name = 'x'\nseeds = 40\n[[database]]\nname = 'sqlite'\nisolation = ['serializable']\n\
                        workload = ['rmw', 'skew', 'blind']\n";

    fn aim(is_blind: bool) -> Aim {
        Aim {
            level: "ser".to_owned(),
            is_blind,
        }
    }

    /// Test data: fewer keys, closer rounds.
    fn played(rounds: &HuntRounds<'_>, aim: &Aim) -> Vec<Value> {
        let mut rows: Vec<Value> = Vec::new();
        for at in 0..rounds.len() {
            let round = rounds.get(at);
            let varied = round.variation(aim, &rows);
            let score = 1.0 / f64::from(varied.keys);
            rows.push(json!({
                "cell": round.name(aim), "varied": varied.to_json(), "close": {"score": score},
                "ser": {"verdict": "satisfied"},
            }));
        }
        rows
    }

    #[test]
    fn a_round_is_a_function_of_the_rows_before_it() {
        let recipe: HuntRecipe = toml::from_str(FILE).expect("a recipe");
        let rounds = HuntRounds::of(&recipe).expect("rounds");
        let aim = aim(false);
        let rows = played(&rounds, &aim);
        assert_eq!(rows, played(&rounds, &aim));
        // Rows of later rounds, which a resumed hunt may find, do not matter.
        let round = rounds.get(9);
        let tenth = round.variation(&aim, &rows[..9]);
        assert_eq!(tenth, round.variation(&aim, &rows));
        assert_eq!(rows[9]["varied"], tenth.to_json());
        assert_eq!(round.found(&aim, &rows), None);
        for (at, row) in rows.iter().enumerate() {
            assert_eq!(rounds.place(&aim, row), Some(at));
        }
        let other = json!({"cell": "sqlite-1 serializable aimed at ser round 41"});
        assert_eq!(rounds.place(&aim, &other), None);
    }

    #[test]
    fn rounds_are_made_when_they_are_reached_and_no_place_is_there_twice() {
        let database = "[[database]]\nname = 'sqlite'\nworkload = ['rmw']\n";
        let many = format!("name = 'x'\nseeds = 4294967296\n{database}");
        let recipe: HuntRecipe = toml::from_str(&many).expect("a recipe");
        let rounds = HuntRounds::of(&recipe).expect("rounds");
        assert_eq!(rounds.len(), 4 * 10_000);
        for twice in [
            format!("name = 'x'\n{database}{database}"),
            format!("name = 'x'\n{database}isolation = ['immediate', 'immediate']\n"),
        ] {
            let recipe: HuntRecipe = toml::from_str(&twice).expect("a recipe");
            assert!(HuntRounds::of(&recipe).is_err(), "{twice}");
        }
    }

    #[test]
    fn aimed_rounds_go_towards_what_came_close_and_blind_ones_do_not() {
        let recipe: HuntRecipe = toml::from_str(FILE).expect("a recipe");
        let rounds = HuntRounds::of(&recipe).expect("rounds");
        let few = |is_blind| {
            let rows = played(&rounds, &aim(is_blind));
            let keys = rows[20..].iter().filter(|it| it["varied"]["keys"] == 2);
            keys.count()
        };
        let (aimed, blind) = (few(false), few(true));
        assert!(aimed >= 10 && blind <= 8, "{aimed} and {blind} of 20");
    }
}
