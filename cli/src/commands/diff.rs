//! `kingsnake diff`: two runs of the same checks compared: studies, batches, hunts, or documents of `--json`.
//!
//! Checks are matched by name; several runs of one (seeds, repeats) are compared as ranges. Exit status: 1 if a verdict differs,
//! else 0.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use kingsnake_datasets::bounded::read_text;
use serde_json::{Value, json};

use crate::args::DiffArgs;
use crate::input::MOST_TEXT;
use crate::many::ManyRow;
use crate::voice::{Voice, count, lasting, printable, say};

/// With one run each, a smaller ratio is not called faster or slower.
const NOTABLE: f64 = 1.25;
/// Further checks are only counted.
const MOST_LINES: usize = 40;

/// Compares, and prints.
pub fn run(args: &DiffArgs, voice: Voice) -> Result<u8> {
    let (before, after) = (read(&args.before)?, read(&args.after)?);
    let compared = Compared::new(&before, &after);
    if args.json {
        say(&format!("{:#}\n", compared.json())).context("cannot write to stdout")?;
    } else {
        say(&compared.words(voice)).context("cannot write to stdout")?;
    }
    Ok(u8::from(compared.n_other_verdicts() > 0))
}

/// The runs of one check.
#[derive(Default)]
pub struct CheckRuns {
    /// The distinct verdicts, with their anomaly if they have one.
    verdicts: Vec<String>,
    /// Seconds of the runs that gave an answer, sorted.
    seconds: Vec<f64>,
}

impl CheckRuns {
    fn add(&mut self, verdict: &str, anomaly: Option<String>, seconds: Option<f64>) {
        let words = match anomaly {
            Some(anomaly) => format!("{verdict} ({anomaly})"),
            None => verdict.to_owned(),
        };
        if !self.verdicts.contains(&words) {
            self.verdicts.push(words);
            self.verdicts.sort();
        }
        let is_answered = matches!(verdict, "satisfied" | "violated");
        self.seconds.extend(seconds.filter(|_| is_answered));
        self.seconds.sort_by(f64::total_cmp);
    }

    fn median(&self) -> Option<f64> {
        self.seconds.get(self.seconds.len() / 2).copied()
    }
}

/// The checks, by name.
pub type Checks = BTreeMap<String, CheckRuns>;

/// All checks of a directory of rows, a file of rows or a document.
pub fn read(path: &Path) -> Result<Checks> {
    let rows = path.join("rows.jsonl");
    let file = if path.is_dir() { rows.as_path() } else { path };
    let text = read_text(file, MOST_TEXT).with_context(|| {
        format!(
            "cannot read {}; a run is the --out of a study, of `check` or of `hunt`, or a document of --json",
            file.display()
        )
    })?;
    let mut checks = Checks::new();
    for value in serde_json::Deserializer::from_str(&text).into_iter::<Value>() {
        let documents = match value.with_context(|| format!("{} is no JSON", file.display()))? {
            Value::Array(many) => many,
            one => vec![one],
        };
        if let Some(other) = documents.iter().find(|it| !note(it, &mut checks)) {
            bail!(
                "{} contains a line that is neither a row nor a verdict: {}",
                file.display(),
                printable(&other.to_string().chars().take(60).collect::<String>())
            );
        }
    }
    if checks.is_empty() {
        bail!("{} holds no rows", file.display());
    }
    Ok(checks)
}

/// Adds a row of a study, hunt or batch, or the document of a check; returns false for anything else.
fn note(row: &Value, checks: &mut Checks) -> bool {
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    if let (Some(switches), Some(history)) = (row["check"].as_array(), row["history"].as_str()) {
        let words: Vec<String> = switches.iter().map(text).collect();
        let name = format!("{history} {}", words.join(" "));
        let verdict = match row["outcome"].as_str() {
            Some("answered") | None => text(&row["verdict"]),
            Some(other) => other.to_owned(),
        };
        let runs = checks.entry(name.trim().to_owned()).or_default();
        runs.add(&verdict, None, row["stats"]["seconds"].as_f64());
        return true;
    }
    if let Some(levels) = row["levels"].as_array().filter(|_| row["cell"].is_string()) {
        for level in levels.iter().map(text) {
            let found = &row[&level];
            let anomaly = found["anomaly"].as_str().map(str::to_owned);
            let runs = checks
                .entry(format!("{} at {level}", text(&row["cell"])))
                .or_default();
            runs.add(&text(&found["verdict"]), anomaly, found["seconds"].as_f64());
        }
        return true;
    }
    let whole;
    let row = if row["document"].is_object() {
        ManyRow(row)
    } else if row["verdict"].is_string() {
        let path = row["history"]["path"].as_str().or(row["path"].as_str());
        whole = json!({"cell": path, "verdict": row["verdict"], "document": row});
        ManyRow(&whole)
    } else {
        return false;
    };
    let seconds = row.document()["stats"]["seconds"].as_f64();
    let name = Path::new(row.path()).file_name();
    let name = name.map_or_else(
        || row.path().to_owned(),
        |it| it.to_string_lossy().into_owned(),
    );
    let runs = checks
        .entry(format!("{name} at {}", row.level()))
        .or_default();
    runs.add(row.verdict(), row.anomaly(), seconds);
    true
}

/// How the times of a check compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pace {
    Faster,
    Slower,
    /// The ranges overlap, or one run each is too close.
    Alike,
}

struct Pair<'a> {
    name: &'a str,
    before: &'a CheckRuns,
    after: &'a CheckRuns,
    /// The second median over the first.
    ratio: Option<f64>,
}

impl Pair<'_> {
    /// Whether both ran, and answered differently.
    fn has_other_verdict(&self) -> bool {
        let (before, after) = (&self.before.verdicts, &self.after.verdicts);
        !before.is_empty() && !after.is_empty() && before != after
    }

    fn pace(&self) -> Pace {
        let range = |runs: &CheckRuns| Some((*runs.seconds.first()?, *runs.seconds.last()?));
        let (Some(before), Some(after), Some(ratio)) =
            (range(self.before), range(self.after), self.ratio)
        else {
            return Pace::Alike;
        };
        let is_single = self.before.seconds.len() < 2 || self.after.seconds.len() < 2;
        if is_single && ratio < NOTABLE && ratio > 1.0 / NOTABLE {
            Pace::Alike
        } else if after.1 < before.0 {
            Pace::Faster
        } else if before.1 < after.0 {
            Pace::Slower
        } else {
            Pace::Alike
        }
    }
}

struct Compared<'a> {
    pairs: Vec<Pair<'a>>,
    only_before: Vec<&'a str>,
    only_after: Vec<&'a str>,
}

impl<'a> Compared<'a> {
    fn new(before: &'a Checks, after: &'a Checks) -> Compared<'a> {
        let missing = |one: &'a Checks, other: &Checks| -> Vec<&'a str> {
            let names = one.keys().filter(|name| !other.contains_key(*name));
            names.map(String::as_str).collect()
        };
        let mut pairs: Vec<Pair<'a>> = Vec::new();
        for (name, first) in before {
            if let Some(second) = after.get(name) {
                let medians = first.median().zip(second.median());
                pairs.push(Pair {
                    name,
                    before: first,
                    after: second,
                    ratio: medians.map(|(one, other)| other / one.max(1e-9)),
                });
            }
        }
        Compared {
            pairs,
            only_before: missing(before, after),
            only_after: missing(after, before),
        }
    }

    fn n_other_verdicts(&self) -> usize {
        let others = self.pairs.iter().filter(|it| it.has_other_verdict());
        others.count()
    }

    fn n(&self, pace: Pace) -> usize {
        self.pairs.iter().filter(|it| it.pace() == pace).count()
    }

    fn mean(&self) -> Option<f64> {
        let logs: Vec<f64> = self
            .pairs
            .iter()
            .filter_map(|it| it.ratio)
            .map(f64::ln)
            .collect();
        let sum: f64 = logs.iter().sum();
        (!logs.is_empty()).then(|| (sum / logs.len() as f64).exp())
    }

    fn words(&self, voice: Voice) -> String {
        let mut out = String::new();
        for pair in self.pairs.iter().filter(|it| it.has_other_verdict()) {
            let (before, after) = (
                pair.before.verdicts.join(", "),
                pair.after.verdicts.join(", "),
            );
            let line = format!("{}: {before} -> {after}", pair.name);
            let _ = writeln!(out, "{}", voice.paint.bad(&printable(&line)));
        }
        let mut moved: Vec<&Pair<'_>> = self
            .pairs
            .iter()
            .filter(|it| it.pace() != Pace::Alike)
            .collect();
        moved.sort_by(|a, b| b.ratio.unwrap_or(1.0).total_cmp(&a.ratio.unwrap_or(1.0)));
        let shown = if voice.verbose {
            moved.len()
        } else {
            MOST_LINES
        };
        for pair in moved.iter().take(shown) {
            let time = |runs: &CheckRuns| {
                let seconds = runs.median().unwrap_or(0.0);
                lasting(std::time::Duration::from_secs_f64(seconds))
            };
            let word = if pair.pace() == Pace::Slower {
                "slower"
            } else {
                "faster"
            };
            let line = format!(
                "{word} × {:.2}: {} -> {}  {}",
                pair.ratio.unwrap_or(1.0),
                time(pair.before),
                time(pair.after),
                pair.name
            );
            let _ = writeln!(out, "{}", printable(&line));
        }
        if moved.len() > shown {
            let _ = writeln!(
                out,
                "and {} (-v lists all)",
                count(moved.len() - shown, "more check")
            );
        }
        for (names, which) in [(&self.only_before, "first"), (&self.only_after, "second")] {
            if let Some(name) = names.first() {
                let n = count(names.len(), "check");
                let line = format!("only in the {which}: {n}, such as {name}");
                let _ = writeln!(out, "{}", printable(&line));
            }
        }
        let mean = self.mean();
        let mean = mean.map_or(String::new(), |it| {
            format!("; geometric mean of the ratios {it:.3}")
        });
        if self.pairs.is_empty() {
            out.push_str("no check is in both runs; checks are matched by name\n");
            return out;
        }
        let _ = writeln!(
            out,
            "{} in both: {}, {} faster, {} slower, {} within each other's range{mean}",
            count(self.pairs.len(), "check"),
            match self.n_other_verdicts() {
                0 => "all verdicts agree".to_owned(),
                1 => "1 verdict differs".to_owned(),
                n => format!("{n} verdicts differ"),
            },
            self.n(Pace::Faster),
            self.n(Pace::Slower),
            self.n(Pace::Alike)
        );
        out
    }

    fn json(&self) -> Value {
        let checks = self.pairs.iter().map(|pair| {
            let runs = |it: &CheckRuns| json!({"verdicts": it.verdicts, "seconds": it.seconds});
            json!({
                "check": pair.name, "before": runs(pair.before), "after": runs(pair.after), "ratio": pair.ratio,
                "verdict_differs": pair.has_other_verdict(),
                "time": match pair.pace() { Pace::Faster => "faster", Pace::Slower => "slower", Pace::Alike => "alike" },
            })
        });
        json!({
            "checks": checks.collect::<Vec<_>>(), "only_before": self.only_before, "only_after": self.only_after,
            "geometric_mean_of_ratios": self.mean(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(verdict: &str, seconds: &[f64]) -> CheckRuns {
        let mut runs = CheckRuns::default();
        for &it in seconds {
            runs.add(verdict, None, Some(it));
        }
        runs
    }

    #[test]
    fn times_differ_only_where_ranges_separate() {
        for (before, after, pace) in [
            (&[1.0, 2.0, 3.0][..], &[2.5, 2.6, 2.7][..], Pace::Alike),
            (&[1.0, 1.1, 1.2], &[1.3, 1.4, 1.5], Pace::Slower),
            (&[1.3, 1.4, 1.5], &[1.0, 1.1, 1.2], Pace::Faster),
            (&[1.0], &[1.2], Pace::Alike),
            (&[1.0], &[1.3], Pace::Slower),
            (&[], &[1.3], Pace::Alike),
        ] {
            let one = Checks::from([("a".to_owned(), runs("satisfied", before))]);
            let other = Checks::from([("a".to_owned(), runs("satisfied", after))]);
            let compared = Compared::new(&one, &other);
            assert_eq!(compared.pairs[0].pace(), pace, "{before:?} {after:?}");
            assert_eq!(compared.n_other_verdicts(), 0);
        }
    }

    #[test]
    fn rows_of_studies_hunts_and_batches_are_known_by_what_they_checked() {
        let mut checks = Checks::new();
        for row in [
            json!({"history": "w", "check": ["--level", "si"], "seed": 1, "outcome": "answered", "verdict": "satisfied", "stats": {"seconds": 1.0}}),
            json!({"history": "w", "check": ["--level", "si"], "seed": 2, "outcome": "time", "verdict": "unknown", "stats": {"seconds": 9.0}}),
            json!({"cell": "sqlite", "levels": ["ser"], "ser": {"verdict": "violated", "anomaly": "G2-item", "seconds": 0.5}}),
            json!({"cell": "d/h.jsonl", "verdict": "satisfied", "document": {"level": {"name": "ser"}, "stats": {"seconds": 0.1}}}),
            json!({"history": {"path": "h.jsonl"}, "verdict": "satisfied", "level": {"name": "si"}, "stats": {"seconds": 0.1}}),
        ] {
            assert!(note(&row, &mut checks), "{row}");
        }
        let names: Vec<&str> = checks.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "h.jsonl at ser",
                "h.jsonl at si",
                "sqlite at ser",
                "w --level si"
            ]
        );
        assert_eq!(checks["w --level si"].verdicts, ["satisfied", "time"]);
        assert_eq!(checks["w --level si"].seconds.len(), 1);
        assert_eq!(checks["sqlite at ser"].verdicts, ["violated (G2-item)"]);
        assert!(!note(&json!({"a": 1}), &mut checks));
    }
}
