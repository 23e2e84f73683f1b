//! The cells of a hunt by number: databases × levels × workloads × lengths × faults × seeds, made on demand.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use anyhow::{Result, bail};
use kingsnake_collect::{LOADS, Script, adapter};
use serde_json::Value;

use super::cell::HuntCell;
use super::recipe::{HuntRecipe, HuntTarget};

/// Every cell, in the order of the file.
pub struct HuntCells<'a> {
    databases: Vec<DatabaseCells<'a>>,
    first_seed: u64,
    seeds: u64,
}

/// The cells of one database; the last part varies fastest.
struct DatabaseCells<'a> {
    database: &'a HuntTarget,
    /// Each with its promised level.
    isolations: Vec<(&'a str, Option<&'static str>)>,
    workloads: Vec<WorkloadCells<'a>>,
}

struct WorkloadCells<'a> {
    name: &'a str,
    /// The level that a script's anomaly breaks, if it is a script.
    script: Option<String>,
    /// Lengths of transactions; empty if the workload fixes it.
    lengths: &'a [u32],
}

/// A product of sizes, saturating.
fn product(sizes: &[usize]) -> usize {
    sizes.iter().fold(1, |all, &it| all.saturating_mul(it))
}

/// The part that contains a number, of consecutive parts, and the number within it.
fn part<T>(parts: &[T], size: impl Fn(&T) -> usize, mut at: usize) -> (&T, usize) {
    for part in parts {
        let n_cells = size(part);
        if at < n_cells {
            return (part, at);
        }
        at -= n_cells;
    }
    unreachable!("a cell's number is below the number of cells")
}

impl WorkloadCells<'_> {
    fn n_lengths(&self) -> usize {
        self.lengths.len().max(1)
    }
}

impl DatabaseCells<'_> {
    /// The cells of a workload at one level.
    fn n_cells_of(&self, workload: &WorkloadCells<'_>, seeds: u64) -> usize {
        let seeds = usize::try_from(seeds).unwrap_or(usize::MAX);
        product(&[workload.n_lengths(), self.database.fault.len(), seeds])
    }

    fn n_cells_a_level(&self, seeds: u64) -> usize {
        let sizes = self.workloads.iter().map(|it| self.n_cells_of(it, seeds));
        sizes.fold(0, usize::saturating_add)
    }

    fn n_cells(&self, seeds: u64) -> usize {
        product(&[self.isolations.len(), self.n_cells_a_level(seeds)])
    }
}

/// Whether two lists have an element in common.
fn meet<T: Eq + Hash>(one: impl Iterator<Item = T>, other: impl Iterator<Item = T>) -> bool {
    let one: HashSet<T> = one.collect();
    let mut other = other;
    other.any(|it| one.contains(&it))
}

impl DatabaseCells<'_> {
    /// Refuses duplicates in any list: two cells would have the same name.
    fn expect_distinct(&self) -> Result<()> {
        let database = self.database;
        let ops: Vec<String> = database.ops.iter().map(u32::to_string).collect();
        let lists = [
            ("isolation", &database.isolation),
            ("workload", &database.workload),
            ("script", &database.script),
            ("ops", &ops),
            ("fault", &database.fault),
        ];
        for (name, list) in lists {
            let mut seen = HashSet::new();
            if let Some(twice) = list.iter().find(|it| !seen.insert(*it)) {
                bail!("{}: {name} has {twice:?} twice", database.name);
            }
        }
        Ok(())
    }

    fn shares_a_name_with(&self, other: &DatabaseCells<'_>) -> bool {
        let (a, b) = (self.database, other.database);
        let loads: HashMap<&str, &[u32]> = other
            .workloads
            .iter()
            .map(|it| (it.name, it.lengths))
            .collect();
        let has_same_load = |it: &WorkloadCells<'_>| {
            loads.get(it.name).is_some_and(|lengths| {
                (it.lengths.is_empty() && lengths.is_empty())
                    || meet(it.lengths.iter(), lengths.iter())
            })
        };
        let has_same_settings = (&a.name, a.nodes, a.keys, &a.reads, &a.binary, &a.set)
            == (&b.name, b.nodes, b.keys, &b.reads, &b.binary, &b.set);
        has_same_settings
            && meet(
                self.isolations.iter().map(|it| it.0),
                other.isolations.iter().map(|it| it.0),
            )
            && meet(a.fault.iter(), b.fault.iter())
            && self.workloads.iter().any(has_same_load)
    }
}

impl<'a> HuntCells<'a> {
    /// The cells of a hunt's file. An unknown database or level is an error.
    pub fn of(recipe: &'a HuntRecipe) -> Result<Self> {
        let mut databases = Vec::new();
        for database in &recipe.database {
            let adapter = adapter(&database.name)?;
            let mut isolations = Vec::new();
            for name in &database.isolation {
                isolations.push((name.as_str(), adapter.level(name)?.level));
            }
            if database.isolation.is_empty() {
                isolations.extend(adapter.levels.iter().map(|it| (it.name, it.level)));
            }
            let workload = |name: &'a String| {
                let has_ops = LOADS.iter().any(|it| it.name == name && it.ops > 0);
                let lengths = if has_ops { &database.ops[..] } else { &[] };
                let script = None;
                WorkloadCells {
                    name,
                    script,
                    lengths,
                }
            };
            let mut workloads: Vec<_> = database.workload.iter().map(workload).collect();
            for name in &database.script {
                workloads.push(WorkloadCells {
                    name,
                    script: Some(Script::open(name)?.breaks.unwrap_or_default()),
                    lengths: &[],
                });
            }
            let cells = DatabaseCells {
                database,
                isolations,
                workloads,
            };
            cells.expect_distinct()?;
            if databases.iter().any(|it| cells.shares_a_name_with(it)) {
                bail!(
                    "two [[database]] of {} have cells of one name; put their lists into one, or tell them apart by a setting",
                    database.name
                );
            }
            databases.push(cells);
        }
        Ok(HuntCells {
            databases,
            first_seed: recipe.first_seed,
            seeds: recipe.seeds.min(u64::MAX - recipe.first_seed),
        })
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        let sizes = self.databases.iter().map(|it| it.n_cells(self.seeds));
        sizes.fold(0, usize::saturating_add)
    }

    /// The cell with this number.
    pub fn get(&self, at: usize) -> HuntCell<'a> {
        let (of, at) = part(&self.databases, |it| it.n_cells(self.seeds), at);
        let each = of.n_cells_a_level(self.seeds);
        let (isolation, promise) = of.isolations[at / each];
        let size = |it: &WorkloadCells<'_>| of.n_cells_of(it, self.seeds);
        let (workload, at) = part(&of.workloads, size, at % each);
        let seeds = usize::try_from(self.seeds).unwrap_or(usize::MAX);
        let (at, seed) = (at / seeds, at % seeds);
        let faults = &of.database.fault;
        HuntCell {
            database: of.database,
            isolation,
            workload: workload.name,
            script: workload.script.clone(),
            ops: workload.lengths.get(at / faults.len()).copied(),
            fault: &faults[at % faults.len()],
            seed: self.first_seed + seed as u64,
            promise,
            round: None,
        }
    }

    /// The number of the cell of a row.
    pub fn place(&self, row: &Value) -> Option<usize> {
        let mut before = 0_usize;
        for of in &self.databases {
            let at = self.place_within(of, row);
            let at = at.and_then(|it| before.checked_add(it));
            if let Some(at) = at.filter(|&it| row["cell"] == self.get(it).name()) {
                return Some(at);
            }
            before = before.saturating_add(of.n_cells(self.seeds));
        }
        None
    }

    /// The number of the cell with a row's values, within the cells of a database, if there is one.
    fn place_within(&self, of: &DatabaseCells<'_>, row: &Value) -> Option<usize> {
        if row["database"] != of.database.name.as_str() {
            return None;
        }
        let mut isolations = of.isolations.iter();
        let isolation = isolations.position(|it| row["isolation"] == it.0)?;
        let mut workloads = of.workloads.iter();
        let workload = workloads.position(|it| row["workload"] == it.name)?;
        let mut lengths = of.workloads[workload].lengths.iter();
        let length = match row["ops"].as_u64() {
            Some(ops) => lengths.position(|&it| u64::from(it) == ops)?,
            None => 0,
        };
        let mut faults = of.database.fault.iter();
        let fault = faults.position(|it| row["fault"] == it.as_str())?;
        let seed = row["seed"].as_u64()?.checked_sub(self.first_seed)?;
        if seed >= self.seeds {
            return None;
        }
        let before = of.workloads[..workload].iter();
        let before = before.map(|it| of.n_cells_of(it, self.seeds));
        let before = before.fold(0, usize::saturating_add);
        let all = isolation.checked_mul(of.n_cells_a_level(self.seeds))?;
        let within = (length * of.database.fault.len() + fault)
            .checked_mul(usize::try_from(self.seeds).ok()?)?
            .checked_add(usize::try_from(seed).ok()?)?;
        all.checked_add(before)?.checked_add(within)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn recipe(seeds: u64) -> HuntRecipe {
        let text = format!(
            "name = 'h'\nseeds = {seeds}\n[[database]]\nname = 'sqlite'\nworkload = ['rmw', 'mini']\nops = [2, 4, 8]\nfault = ['none', 'kill']\n[[database]]\nname = 'redb'\nworkload = ['rmw']\n"
        );
        toml::from_str(&text).expect("a recipe")
    }

    #[test]
    fn every_number_is_a_cell_of_its_own_whose_row_leads_back() {
        let recipe = recipe(3);
        let cells = HuntCells::of(&recipe).unwrap();
        let names: BTreeSet<String> = (0..cells.len()).map(|at| cells.get(at).name()).collect();
        assert_eq!(names.len(), cells.len());
        assert!(names.len() > 20, "{names:?}");
        for at in 0..cells.len() {
            assert_eq!(cells.place(&cells.get(at).heading(&recipe)), Some(at));
        }
        let mut other = cells.get(0).heading(&recipe);
        other["seed"] = 4.into();
        assert_eq!(cells.place(&other), None);
    }

    #[test]
    fn as_many_seeds_as_a_number_holds_cost_nothing() {
        for seeds in [4_294_967_296, u64::MAX >> 1] {
            let recipe = recipe(seeds);
            let cells = HuntCells::of(&recipe).unwrap();
            for at in [0, 1_000_000_007, 4_000_000_000] {
                let cell = cells.get(at);
                assert_eq!(cell.seed, at as u64 + 1);
                assert_eq!(cells.place(&cell.heading(&recipe)), Some(at));
            }
        }
    }
}
