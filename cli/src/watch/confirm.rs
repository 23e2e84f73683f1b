//! Confirms a violation: writes what arrived so far as one history, and runs the ordinary check on it.
//!
//! Reads that still wait for their writers are left out: a history without them promises less, so its violations are
//! violations of the log.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use kingsnake_datasets::{ReadOptions, open};
use kingsnake_history::model::{History, Op, Status, TxnId};
use kingsnake_watch::StampViolation;
use rustc_hash::FxHashMap;
use serde_json::Value;

use super::engine::WatchViolation;
use super::feed::Feed;
use super::input::LogInput;
use crate::output::scratch;

/// The answer of the check.
pub struct Confirmed {
    /// The words.
    pub words: String,
    /// The document of `check --json`, if there is one.
    pub document: Option<Value>,
    /// Whether the violation was confirmed; `None` if nothing could be checked.
    pub holds: Option<bool>,
}

/// The request to the check.
pub struct CheckRequest<'a> {
    pub level: &'a str,
    pub drift_ms: f64,
    pub unknown_limit: Option<i64>,
    pub keep: Option<&'a Path>,
    pub report: Option<&'a Path>,
    pub json: bool,
}

/// Checks what arrived so far.
pub fn confirm(
    request: &CheckRequest<'_>,
    violation: WatchViolation,
    pending: &[(u64, u32)],
    feed: &Feed,
    input: &LogInput,
) -> Result<Confirmed> {
    let files: Vec<(PathBuf, u64)> = match request.keep {
        _ if input.is_on_disk() => {
            let files = input.log_files().iter();
            files.map(|it| (it.path.clone(), it.offset)).collect()
        }
        Some(keep) => vec![(keep.to_owned(), u64::MAX)],
        None => {
            return Ok(Confirmed {
                words: "The log was not kept, so the violation was not checked again; --keep FILE keeps it.\n"
                    .to_owned(),
                document: None,
                holds: None,
            });
        }
    };
    let directory = scratch()?;
    let prefix = directory.path().join("prefix.jsonl");
    write_prefix(&prefix, &files, pending, request.unknown_limit, feed).and_then(|()| {
        match violation {
            WatchViolation::Stamps(claim) => judge_stamps(&prefix, claim, feed),
            WatchViolation::Check => check(request, &prefix, directory.path()),
        }
    })
}

fn check(request: &CheckRequest<'_>, prefix: &Path, directory: &Path) -> Result<Confirmed> {
    let program = std::env::current_exe().context("cannot find the executable")?;
    let document = directory.join("check.json");
    let mut command = Command::new(program);
    command
        .arg("check")
        .arg(prefix)
        .args(["--level", request.level])
        .arg(format!("--json={}", document.display()))
        .stdin(Stdio::null());
    if request.drift_ms > 0.0 {
        command.args(["--clock-drift", &request.drift_ms.to_string()]);
    }
    if let Some(report) = request.report {
        command.arg("--report").arg(report);
    }
    let output = command.output().context("cannot run the check")?;
    let words = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = std::fs::read_to_string(&document).unwrap_or_default();
    let document = serde_json::from_str(&text).ok().filter(|_| request.json);
    Ok(match output.status.code() {
        Some(1) => Confirmed {
            words,
            document,
            holds: Some(true),
        },
        Some(0) => Confirmed {
            words: "The check of the log found an order: values that repeat are not watched.\n"
                .to_owned(),
            document,
            holds: Some(false),
        },
        _ => Confirmed {
            words: format!("The check of the log did not end: {complaint}"),
            document,
            holds: None,
        },
    })
}

/// Writes everything read so far as one history.
fn write_prefix(
    path: &Path,
    files: &[(PathBuf, u64)],
    pending: &[(u64, u32)],
    unknown_limit: Option<i64>,
    feed: &Feed,
) -> Result<()> {
    let mut without: FxHashMap<String, Vec<u32>> = FxHashMap::default();
    for &(id, key) in pending {
        without
            .entry(feed.names.txns.json(id))
            .or_default()
            .push(key);
    }
    let mut names = feed.names.clone();
    let out = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut out = BufWriter::new(out);
    writeln!(out, "{}", feed.first_header())?;
    let needs_parsing = !without.is_empty() || unknown_limit.is_some();
    for (file, length) in files {
        let reader = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
        let mut lines = BufReader::new(reader.take(*length));
        let mut line = String::new();
        let mut is_first = true;
        while lines.read_line(&mut line)? > 0 {
            let text = line.trim();
            let is_header = is_first && !text.is_empty();
            is_first &= text.is_empty();
            let is_known_header = is_header || text.starts_with("{\"kingsnake\"");
            if !is_known_header && !text.is_empty() {
                let changed = if needs_parsing {
                    changed(text, &without, unknown_limit, &mut names)
                } else {
                    None
                };
                writeln!(out, "{}", changed.as_deref().unwrap_or(text))?;
            }
            line.clear();
        }
    }
    out.flush()?;
    Ok(())
}

/// A line without waiting reads, and with the outcome from an assumption.
fn changed(
    line: &str,
    without: &FxHashMap<String, Vec<u32>>,
    unknown_limit: Option<i64>,
    names: &mut super::reduce::LogNames,
) -> Option<String> {
    let mut value: Value = serde_json::from_str(line).ok()?;
    let id = value.get("id")?.to_string();
    let mut is_changed = false;
    if let Some(keys) = without.get(&id) {
        let ops = value.get_mut("ops")?.as_array_mut()?;
        ops.retain(|op| {
            let is_read = op.get(0).is_some_and(|it| it == "r" || it == "rl");
            let key = op.get(1).and_then(|key| names.keys.json(key).ok());
            !(is_read && key.is_some_and(|key| keys.contains(&key)))
        });
        is_changed = true;
    }
    let is_unknown = value.get("status").is_some_and(|it| it == "unknown");
    if let (true, Some(limit), Some(begin)) = (
        is_unknown && value.get("commit").is_none(),
        unknown_limit,
        value.get("begin").and_then(Value::as_i64),
    ) {
        value["commit"] = begin.saturating_add(limit).into();
        is_changed = true;
    }
    is_changed.then(|| value.to_string())
}

/// Looks up the claim in all transactions that arrived.
fn judge_stamps(prefix: &Path, claim: StampViolation, feed: &Feed) -> Result<Confirmed> {
    let history = open(prefix, &ReadOptions::default())?.history;
    let (words, holds) = match claim {
        StampViolation::Read { id, key, .. } => stale_read(
            &history,
            &feed.names.txns.json(id),
            &feed.names.keys.name(key),
        ),
        StampViolation::Overlap { id, key, other } => {
            let names = [id, other].map(|it| feed.names.txns.json(it));
            overlapping(&history, &names, &feed.names.keys.name(key))
        }
    };
    Ok(Confirmed {
        words,
        document: None,
        holds: Some(holds),
    })
}

fn find(history: &History, name: &str) -> Option<TxnId> {
    let plain = name.trim_matches('"');
    let mut txns = history.txns();
    txns.find(|&it| history.txn_name(it).trim_matches('"') == plain)
}

fn writes(history: &History, txn: TxnId, key: &str) -> Option<String> {
    let ops = history.ops(txn).iter().rev();
    let mut values = ops.filter_map(|&op| match op {
        Op::Write { key: of, value } if history.key_name(of).trim_matches('"') == key => {
            Some(history.value_name(value))
        }
        _ => None,
    });
    values.next()
}

fn stale_read(history: &History, name: &str, key: &str) -> (String, bool) {
    let Some(reader) = find(history, name) else {
        return (String::new(), false);
    };
    let start = history.stamps(reader).start_ts.unwrap_or(i64::MIN);
    let read = history.ops(reader).iter().find_map(|&op| match op {
        Op::Read { key: of, value } if history.key_name(of).trim_matches('"') == key => Some(value),
        _ => None,
    });
    let Some(read) = read else {
        return (String::new(), false);
    };
    let mut newest: Option<(i64, String, String)> = None;
    for txn in history.txns() {
        let commit = history.stamps(txn).commit_ts.unwrap_or(i64::MAX);
        let counts = history.status(txn) == Status::Committed && txn != reader && commit <= start;
        if counts
            && newest.as_ref().is_none_or(|it| it.0 < commit)
            && let Some(value) = writes(history, txn, key)
        {
            newest = Some((commit, value, history.txn_name(txn)));
        }
    }
    let shown = history.value_name(read);
    match newest {
        Some((commit, value, writer)) => (
            format!(
                "T{name} started at {start} and read {key} = {shown}, but T{writer} had set it to {value} at {commit}.\n"
            ),
            value != shown,
        ),
        None => (
            format!(
                "T{name} started at {start} and read {key} = {shown}, but nothing was written to it by then.\n"
            ),
            !history.is_initial(read),
        ),
    }
}

fn overlapping(history: &History, names: &[String; 2], key: &str) -> (String, bool) {
    let txns = [find(history, &names[0]), find(history, &names[1])];
    let [Some(one), Some(other)] = txns else {
        return (String::new(), false);
    };
    let of = |txn| {
        let stamps = history.stamps(txn);
        (stamps.start_ts.unwrap_or(0), stamps.commit_ts.unwrap_or(0))
    };
    let (a, b) = (of(one), of(other));
    let both = [one, other]
        .iter()
        .all(|&it| writes(history, it, key).is_some());
    let words = format!(
        "T{} ran from {} to {} and T{} from {} to {}: both wrote {key} while the other ran.\n",
        names[0], a.0, a.1, names[1], b.0, b.1
    );
    (words, both && a.1 > b.0 && b.1 > a.0)
}
