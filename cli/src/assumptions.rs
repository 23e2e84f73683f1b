//! Adds the user's assumptions to a history: `--assume`, `--transaction-order`, `--edges`, `--unwritten`.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use kingsnake_datasets::Parsed;
use kingsnake_relate::assume::{
    Unwritten, assume_keys, assume_transaction_order, assume_unwritten, expect_unique_values,
};
use kingsnake_solver::level::Level;
use kingsnake_solver::model::{GivenEdge, History, KeyAssumption, Status, TxnId};
use rustc_hash::FxHashMap;

use crate::args::{AssumeArgs, CheckArgs, KeysArg, LevelArg, UnwrittenArg, ValuesArg};
use crate::plan::quoted_path;

/// Refuses assumptions at levels where no order is searched, and their files where they do not apply.
pub fn expect_usable(args: &CheckArgs) -> Result<()> {
    if args.assume.is_asked() {
        expect_searched(args)?;
    }
    Ok(())
}

fn expect_searched(args: &CheckArgs) -> Result<()> {
    let is_linearizable = args.level.level == Some(LevelArg::One(Level::Linearizable));
    if args.is_recorded() || is_linearizable {
        bail!(
            "--assume, --transaction-order, --edges and --unwritten are for levels at which orders are searched; pl-* levels, \
             --certificate-from, --along and linearizable take none"
        );
    }
    Ok(())
}

/// The history with the assumptions added.
pub fn assumed(mut parsed: Parsed, args: &AssumeArgs) -> Result<Parsed> {
    let history = &mut parsed.history;
    if args.values == Some(ValuesArg::Unique) {
        expect_unique_values(history).context("--values unique")?;
    }
    match args.unwritten {
        Some(UnwrittenArg::Initial) => assume_unwritten(history, Unwritten::Initial)?,
        Some(UnwrittenArg::Unseen) => assume_unwritten(history, Unwritten::Unseen)?,
        Some(UnwrittenArg::ThinAir) | None => {}
    }
    if let Some(path) = &args.transaction_order {
        let numbers = transaction_order(history, path)?;
        assume_transaction_order(history, &numbers);
    }
    if let Some(path) = &args.edges {
        for (line, edge) in edges(history, path)? {
            let aborted = [edge.from, edge.to]
                .into_iter()
                .find(|&txn| history.status(txn) == Status::Aborted);
            match aborted {
                Some(txn) => parsed.warnings.push(format!(
                    "{}, line {line}: transaction {} aborted, so this orders nothing",
                    path.display(),
                    history.txn_name(txn)
                )),
                None => history.assume_edge(edge),
            }
        }
    }
    let keys: Vec<KeyAssumption> = args.assume.iter().map(|&it| key_assumption(it)).collect();
    if !keys.is_empty() {
        assume_keys(history, &keys).context("--assume")?;
    }
    Ok(parsed)
}

fn key_assumption(typed: KeysArg) -> KeyAssumption {
    match typed {
        KeysArg::Linearizable => KeyAssumption::Linearizable,
        KeysArg::Sequential => KeyAssumption::Sequential,
        KeysArg::WritesFollowReads => KeyAssumption::WritesFollowReads,
    }
}

/// The options that repeat the assumptions.
pub fn switches(args: &AssumeArgs) -> Vec<String> {
    let mut words = Vec::new();
    if !args.assume.is_empty() {
        let names = args.assume.iter().map(|&it| key_assumption(it).name());
        words.push(format!("--assume {}", names.collect::<Vec<_>>().join(",")));
    }
    if let Some(path) = &args.transaction_order {
        words.push(format!("--transaction-order {}", quoted_path(path)));
    }
    if let Some(path) = &args.edges {
        words.push(format!("--edges {}", quoted_path(path)));
    }
    if let Some(unwritten) = args.unwritten {
        words.push(format!("--unwritten {}", unwritten.name()));
    }
    match args.values {
        Some(ValuesArg::Unique) => words.push("--values unique".to_owned()),
        Some(ValuesArg::Any) => words.push("--values any".to_owned()),
        None => {}
    }
    words
}

/// Finds transactions by name.
struct Named {
    ids: FxHashMap<String, Option<TxnId>>,
    example: String,
}

impl Named {
    fn of(history: &History) -> Self {
        let mut ids: FxHashMap<String, Option<TxnId>> = FxHashMap::default();
        for txn in history.txns() {
            let entry = ids.entry(history.txn_name(txn)).or_insert(Some(txn));
            if *entry != Some(txn) {
                *entry = None;
            }
        }
        let example = history.txns().next().map(|txn| history.txn_name(txn));
        Named {
            ids,
            example: example.unwrap_or_default(),
        }
    }

    fn find(&self, name: &str) -> Result<TxnId> {
        match self.ids.get(name) {
            Some(&Some(txn)) => Ok(txn),
            Some(None) => bail!("several transactions are called {name}"),
            None => bail!(
                "there is no transaction {name}; names are those of the history, such as {}",
                self.example
            ),
        }
    }
}

/// The non-empty lines of a file with their numbers, from 1.
fn lines(path: &Path) -> Result<Vec<(usize, String)>> {
    let text = kingsnake_datasets::bounded::read_text(path, crate::input::MOST_TEXT)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let lines = text.lines().enumerate();
    let lines = lines.map(|(at, line)| (at + 1, line.trim().to_owned()));
    Ok(lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .collect())
}

fn words(line: &str) -> Vec<&str> {
    if line.contains('\t') {
        line.split('\t').map(str::trim).collect()
    } else {
        line.split_whitespace().collect()
    }
}

fn transaction_order(history: &History, path: &Path) -> Result<Vec<(TxnId, i64)>> {
    let named = Named::of(history);
    let mut numbers: Vec<(TxnId, i64)> = Vec::new();
    let mut seen: FxHashMap<TxnId, usize> = FxHashMap::default();
    let mut taken: FxHashMap<i64, usize> = FxHashMap::default();
    for (at, line) in lines(path)? {
        let wrong = |why: String| anyhow!("{}, line {at}: {why}", path.display());
        let words = words(&line);
        let [name, number] = words.as_slice() else {
            return Err(wrong(
                "a transaction and its number are expected, such as `7 42`".to_owned(),
            ));
        };
        let txn = named.find(name).map_err(|it| wrong(it.to_string()))?;
        let number: i64 = number
            .parse()
            .map_err(|_| wrong(format!("{number} is not a number; write `{name} 42`")))?;
        if let Some(first) = seen.insert(txn, at) {
            return Err(wrong(format!(
                "transaction {name} has a number already, in line {first}"
            )));
        }
        if let Some(first) = taken.insert(number, at) {
            return Err(wrong(format!(
                "number {number} is taken already, in line {first}; each transaction needs its own"
            )));
        }
        numbers.push((txn, number));
    }
    Ok(numbers)
}

fn edges(history: &History, path: &Path) -> Result<Vec<(usize, GivenEdge)>> {
    let named = Named::of(history);
    let mut edges = Vec::new();
    for (at, line) in lines(path)? {
        let wrong = |why: String| anyhow!("{}, line {at}: {why}", path.display());
        let words = words(&line);
        let (from, to, name) = match words.as_slice() {
            [from, to] => (*from, *to, format!("(line {at})")),
            [from, to, rest @ ..] => (*from, *to, format!("{} (line {at})", rest.join(" "))),
            _ => {
                return Err(wrong(
                    "two transactions are expected, and a name if you like, such as `7 9 backup`"
                        .to_owned(),
                ));
            }
        };
        let [one, two] = [from, to].map(|it| named.find(it));
        let (from, to) = (
            one.map_err(|it| wrong(it.to_string()))?,
            two.map_err(|it| wrong(it.to_string()))?,
        );
        if from == to {
            return Err(wrong(format!(
                "transaction {} cannot come before itself",
                words[0]
            )));
        }
        edges.push((at, GivenEdge { from, to, name }));
    }
    Ok(edges)
}
