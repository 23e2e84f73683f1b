//! `hunt --aim LEVEL`: rounds, each of which varies what came closest to a violation so far.
//!
//! A round's workload, keys, length, think time, sessions and faults are a function of the rows of the rounds before
//! it, so a resumed hunt continues identically. `--blind` draws each round independently, for comparison.

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

/// One round: where, and which.
#[derive(Clone)]
pub struct HuntRound<'a> {
    pub database: &'a HuntTarget,
    pub isolation: &'a str,
    pub promise: Option<&'static str>,
    pub number: u64,
    /// The first seed of the hunt.
    pub first_seed: u64,
}

/// Every round of every database and level; there are as many rounds as seeds.
pub fn rounds(recipe: &HuntRecipe) -> Result<Vec<HuntRound<'_>>> {
    let mut rounds = Vec::new();
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
            let promise = adapter.level(isolation)?.level;
            rounds.extend((1..=recipe.seeds.min(10_000)).map(|number| HuntRound {
                database,
                isolation,
                promise,
                number,
                first_seed: recipe.first_seed,
            }));
        }
    }
    Ok(rounds)
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

    /// The rows of the rounds before this one.
    fn before<'r>(&self, aim: &Aim, rows: &'r [Value]) -> Vec<&'r Value> {
        let names: Vec<String> = (1..self.number)
            .map(|number| {
                HuntRound {
                    number,
                    ..self.clone()
                }
                .name(aim)
            })
            .collect();
        let row = |name: &String| rows.iter().find(|row| row["cell"] == name.as_str());
        names.iter().filter_map(row).collect()
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
    fn played(rounds: &[HuntRound<'_>], aim: &Aim) -> Vec<Value> {
        let mut rows: Vec<Value> = Vec::new();
        for round in rounds {
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
        let rounds = rounds(&recipe).expect("rounds");
        let aim = aim(false);
        let rows = played(&rounds, &aim);
        assert_eq!(rows, played(&rounds, &aim));
        // Rows of later rounds, which a resumed hunt may find, do not matter.
        let tenth = rounds[9].variation(&aim, &rows[..9]);
        assert_eq!(tenth, rounds[9].variation(&aim, &rows));
        assert_eq!(rows[9]["varied"], tenth.to_json());
        assert_eq!(rounds[9].found(&aim, &rows), None);
    }

    #[test]
    fn aimed_rounds_go_towards_what_came_close_and_blind_ones_do_not() {
        let recipe: HuntRecipe = toml::from_str(FILE).expect("a recipe");
        let rounds = rounds(&recipe).expect("rounds");
        let few = |is_blind| {
            let rows = played(&rounds, &aim(is_blind));
            let keys = rows[20..].iter().filter(|it| it["varied"]["keys"] == 2);
            keys.count()
        };
        let (aimed, blind) = (few(false), few(true));
        assert!(aimed >= 10 && blind <= 8, "{aimed} and {blind} of 20");
    }
}
