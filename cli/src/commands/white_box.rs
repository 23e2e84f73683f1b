//! `kingsnake check` on what the database itself says: Adya's levels and `--certificate-from history` (Emme), `--along` (Enne).

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kingsnake_adya::{AdyaError, Along, PlReport, Teller, along, check};
use kingsnake_datasets::Parsed;
use kingsnake_encodings::BackendOptions;
use kingsnake_history::adya::{PlLevel, PlVerdict, Refutation};
use kingsnake_solver::budget::{Budget, StopReason};
use kingsnake_solver::check::{Engines, Techniques, check_on};
use kingsnake_solver::level::{Level, Model, Spec};
use kingsnake_solver::model::{History, TxnId};
use kingsnake_solver::progress::Silent;
use kingsnake_solver::verdict::Verdict;
use kingsnake_tell::{Labels, pl_definition};
use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use crate::answer::base_name;
use crate::args::{CheckArgs, LevelArg, OnOff};
use crate::input::{self, load};
use crate::limits::{self, within};
use crate::output::{Output, expect_apart, put};
use crate::page::certificate::CertificatePage;
use crate::picture::{self, Disproof, Scene};
use crate::plan::{quoted_path, start_threads};
use crate::voice::{Voice, count, printable, say};
use crate::{memory, processor, words};

/// What a replay asks for.
const ALONG_DEFINITION: &str = "The expected order promises: run one after another in it, the transactions read what they recorded.";

/// Whether the question is one about a certificate or an expected order.
pub fn is_asked(args: &CheckArgs) -> bool {
    let is_pl = matches!(args.level.level, Some(LevelArg::Pl(_)));
    is_pl || args.certificate_from.is_some() || args.along.is_some()
}

/// What was found, in words and as data.
struct WhiteBoxAnswer {
    status: u8,
    verdict: &'static str,
    headline: String,
    story: Vec<String>,
    data: Value,
    decider: &'static str,
    /// Why there is no answer.
    reason: Option<StopReason>,
    /// What was found, for pictures.
    evidence: Option<Disproof>,
    /// What is written where.
    files: Vec<(PathBuf, String)>,
}

/// Where the work led.
enum WhiteBoxOutcome {
    /// To an answer.
    Told(Box<WhiteBoxAnswer>),
    /// To the ordinary check, for this reason.
    Search(String),
}

/// How large the history was, and how long reading it took.
struct Sizes {
    n_txns: usize,
    n_ops: usize,
    n_predicates: usize,
    parse: Duration,
}

/// Checks, and tells the answer.
pub fn run(args: &CheckArgs, voice: Voice, start: Instant) -> Result<u8> {
    let level = level(args)?;
    expect_plain(args)?;
    let files = &args.files;
    let outputs = [
        ("--json", &files.json),
        ("--dot", &files.dot),
        ("--svg", &files.svg),
        ("--report", &files.report),
    ];
    let outputs: Vec<Output<'_>> = outputs
        .into_iter()
        .filter_map(|(option, path)| path.as_deref().map(|path| Output { option, path }))
        .collect();
    expect_apart(&input::files(&args.history, &args.read), &outputs)?;
    start_threads(&args.limits)?;
    let budget = limits::budget(&args.limits.bounds, start)?;
    let work = {
        let (args, budget) = (args.clone(), budget.clone());
        move || worked(&args, level, &budget, start)
    };
    let (outcome, sizes, warnings) = match within(&budget, work) {
        Ok((outcome, sizes, warnings)) => (outcome, Some(sizes), warnings),
        Err(error) => match limits::stopped(&error) {
            Some(reason) => (
                WhiteBoxOutcome::Told(Box::new(stopped(reason))),
                None,
                Vec::new(),
            ),
            None => return Err(error),
        },
    };
    match outcome {
        WhiteBoxOutcome::Search(why) => {
            voice.warn(&format!(
                "{why}; judged as {} instead, where an order of versions is searched",
                searched(level)
            ));
            let args = fallen_through(args, level);
            super::check::run(&args, voice, start, words::brief)
        }
        WhiteBoxOutcome::Told(answer) => {
            voice.warn_each(&warnings);
            let (told, bounds, status) = (args.clone(), &args.limits.bounds, answer.status);
            limits::tell(&budget, bounds, start, status, move || {
                deliver(&told, voice, &answer, start, sizes.as_ref())
            })
        }
    }
}

fn worked(
    args: &CheckArgs,
    level: PlLevel,
    budget: &Budget,
    start: Instant,
) -> Result<(WhiteBoxOutcome, Sizes, Vec<String>)> {
    let parsed = load(&args.history, &args.read, budget)?;
    let history = &parsed.history;
    let sizes = Sizes {
        n_txns: history.n_txns(),
        n_ops: history.n_ops(),
        n_predicates: history.n_predicates(),
        parse: start.elapsed(),
    };
    let answered = match &args.along {
        Some(order) => replayed(history, order, budget),
        None => certified(history, level, args, budget),
    };
    let outcome = match answered {
        Ok(mut answer) => {
            answer.files = drawn(args, level, &answer, &parsed, start);
            WhiteBoxOutcome::Told(Box::new(answer))
        }
        Err(error) => match error.downcast::<AdyaError>() {
            Ok(AdyaError::Stopped(reason)) => WhiteBoxOutcome::Told(Box::new(stopped(&reason))),
            Ok(error) if may_fall_through(&error, level, args) => {
                WhiteBoxOutcome::Search(error.to_string())
            }
            Ok(error) => return Err(error.into()),
            Err(error) => return Err(error),
        },
    };
    let warnings = parsed.warnings.clone();
    std::mem::forget(parsed); // The process ends soon.
    Ok((outcome, sizes, warnings))
}

/// The pictures and the page that are asked for.
fn drawn(
    args: &CheckArgs,
    level: PlLevel,
    answer: &WhiteBoxAnswer,
    parsed: &Parsed,
    start: Instant,
) -> Vec<(PathBuf, String)> {
    let history = &parsed.history;
    let scene = answer.evidence.as_ref().map(|evidence| {
        let labels = Labels::new(history, &evidence.txns(history));
        evidence.scene(history, &labels)
    });
    let mut files = Vec::new();
    for (path, draw) in [
        (&args.files.dot, picture::dot::draw as fn(&Scene) -> String),
        (&args.files.svg, picture::svg::document),
    ] {
        if let (Some(path), Some(scene)) = (path, &scene) {
            files.push((path.clone(), draw(scene)));
        }
    }
    if let Some(path) = &args.files.report {
        let asked = match &args.along {
            Some(order) => format!("--along {}", quoted_path(Path::new(order))),
            None if args.certificate_from.is_some() => {
                format!("--level {level} --certificate-from history")
            }
            None => format!("--level {level}"),
        };
        let page = CertificatePage {
            verdict: answer.verdict,
            headline: &answer.headline,
            story: &answer.story,
            definition: match args.along {
                Some(_) => ALONG_DEFINITION,
                None => pl_definition(level),
            },
            evidence: answer.evidence.as_ref(),
            scene: scene.as_ref(),
            path: &args.history,
            parsed,
            command: &format!("kingsnake check {} {asked}", quoted_path(&args.history)),
            time: start.elapsed(),
        };
        files.push((path.clone(), page.write()));
    }
    files
}

/// The level, in Adya's terms.
fn level(args: &CheckArgs) -> Result<PlLevel> {
    match (args.level.level, &args.along) {
        (Some(LevelArg::Pl(_)), Some(_)) => {
            bail!("--along replays a serial order, so the level is ser; leave --level out")
        }
        (Some(LevelArg::Pl(level)), None) => Ok(level),
        (None | Some(LevelArg::One(Level::Ser)), _) => Ok(PlLevel::Pl3),
        (Some(LevelArg::One(Level::Si)), None) => Ok(PlLevel::PlSi),
        (Some(_), Some(_)) => bail!("--along replays a serial order, so the level is ser"),
        (Some(_), None) => bail!(
            "--certificate-from history knows ser, si and {}",
            PlLevel::ALL.map(PlLevel::name).join(", ")
        ),
    }
}

fn expect_plain(args: &CheckArgs) -> Result<()> {
    let level = &args.level;
    if level.session_order == Some(OnOff::On) || level.real_time == Some(OnOff::On) {
        bail!("Adya's levels and expected orders know neither session order nor real time");
    }
    let files = &args.files;
    let given = "the certificate or the order is what the database gave; --level ser or si alone searches one and writes it";
    let none = "nothing is searched, so there is nothing to prove";
    for (name, file, why) in [
        ("--certificate", &files.certificate, given),
        ("--proof", &files.proof, none),
    ] {
        if file.is_some() {
            bail!("{name} is not written for a given certificate or an expected order: {why}");
        }
    }
    Ok(())
}

/// The polygraph's level for what a partial version order leaves open.
fn searched(level: PlLevel) -> &'static str {
    match level {
        PlLevel::PlSi => "si without session order",
        _ => "ser without session order",
    }
}

fn may_fall_through(error: &AdyaError, level: PlLevel, args: &CheckArgs) -> bool {
    let is_open = matches!(
        error,
        AdyaError::Partial { .. } | AdyaError::NoTimes | AdyaError::Range { .. }
    );
    let is_searched = matches!(level, PlLevel::Pl3 | PlLevel::PlSi);
    is_open && is_searched && args.certificate_from.is_none() && args.along.is_none()
}

fn fallen_through(args: &CheckArgs, level: PlLevel) -> CheckArgs {
    let mut args = args.clone();
    args.level.level = Some(LevelArg::One(match level {
        PlLevel::PlSi => Level::Si,
        _ => Level::Ser,
    }));
    args.level.session_order = Some(OnOff::Off);
    args.certificate_from = None;
    args.along = None;
    args
}

fn stopped(reason: &StopReason) -> WhiteBoxAnswer {
    WhiteBoxAnswer {
        status: 3,
        verdict: "unknown",
        headline: format!("unknown: {reason}"),
        story: Vec::new(),
        data: json!({ "reason": reason.to_string() }),
        decider: "nobody",
        reason: Some(reason.clone()),
        evidence: None,
        files: Vec::new(),
    }
}

fn certified(
    history: &History,
    level: PlLevel,
    args: &CheckArgs,
    budget: &Budget,
) -> Result<WhiteBoxAnswer> {
    let report = check(history, level, budget)?;
    let sizes = |report: &PlReport| {
        json!({
            "counted": report.n_counted,
            "versions": report.n_versions,
            "edges": report.n_edges,
            "predicates": report.n_predicates,
        })
    };
    let teller = Teller::new(history);
    match &report.verdict {
        PlVerdict::Holds(order) => Ok(WhiteBoxAnswer {
            status: 0,
            verdict: "satisfied",
            headline: format!("satisfied: the certificate shows {level}"),
            story: if args.explains {
                in_order(history, level, order)
            } else {
                Vec::new()
            },
            data: json!({ "sizes": sizes(&report), "order": names(history, order) }),
            decider: "certificate",
            reason: None,
            evidence: None,
            files: Vec::new(),
        }),
        PlVerdict::Refuted(why) => {
            let name = teller.name(why);
            let mut story = teller.refutation(why);
            if args.explains {
                story.push(pl_definition(level).to_owned());
            }
            let mut data = json!({
                "sizes": sizes(&report),
                "anomaly": name,
                "refutation": refutation(history, why),
            });
            if args.certificate_from.is_some() && matches!(level, PlLevel::Pl3 | PlLevel::PlSi) {
                let (word, sentence) = other_order(history, level, budget)?;
                data["other_order"] = json!(word);
                story.push(sentence.to_owned());
            }
            Ok(WhiteBoxAnswer {
                status: 1,
                verdict: "violated",
                headline: format!("violated: the certificate does not show {level}: {name}"),
                story,
                data,
                decider: "certificate",
                reason: None,
                evidence: Some(Disproof::Certificate(why.clone())),
                files: Vec::new(),
            })
        }
    }
}

/// Whether some other order explains what the clients saw.
fn other_order(
    history: &History,
    level: PlLevel,
    budget: &Budget,
) -> Result<(&'static str, &'static str)> {
    const SOME: (&str, &str) = (
        "yes",
        "Yet some other order explains what the clients saw: the protocol broke its own order, and no client was wronged.",
    );
    const NONE: (&str, &str) = ("no", "No other order explains what the clients saw either.");
    const OPEN: (&str, &str) = (
        "undecided",
        "Whether some other order explains what the clients saw is not decided here.",
    );
    let mut bare = history.clone();
    bare.retain_versions(|_| false);
    let spec = Spec {
        model: if level == PlLevel::PlSi {
            Model::Si
        } else {
            Model::Ser
        },
        session_order: false,
        real_time: None,
    };
    let options = BackendOptions::default();
    let mut backend = kingsnake_encodings::backend("auto", &options)
        .or_else(|_| kingsnake_encodings::backend("cadical/propagator", &options))?;
    let engines = Engines {
        device: None,
        backend: &mut *backend,
    };
    let report = check_on(
        &bare,
        None,
        spec,
        &Techniques::default(),
        engines,
        budget,
        &mut Silent,
    );
    match report.map(|report| report.verdict) {
        Ok(Verdict::Violated(_)) => Ok(NONE),
        Ok(Verdict::Satisfied(_)) => Ok(SOME),
        _ => Ok(OPEN),
    }
}

fn replayed(history: &History, order: &str, budget: &Budget) -> Result<WhiteBoxAnswer> {
    let which = match order {
        "commit-ts" => Along::CommitTs,
        "start-ts" => Along::StartTs,
        path => Along::Order(read_order(history, Path::new(path))?),
    };
    let report = along(history, &which, budget)?;
    let n = count(report.order.len(), "transaction");
    match &report.disagreement {
        None => Ok(WhiteBoxAnswer {
            status: 0,
            verdict: "satisfied",
            headline: format!("satisfied: ser along {order} ({n} replayed)"),
            story: Vec::new(),
            data: json!({ "along": order }),
            decider: "replay",
            reason: None,
            evidence: None,
            files: Vec::new(),
        }),
        Some(found) => Ok(WhiteBoxAnswer {
            status: 1,
            verdict: "violated",
            headline: format!("violated: the order {order} does not explain the history"),
            story: vec![
                Teller::new(history).disagreement(found),
                "Another serial order may still explain it: `kingsnake check --level ser` searches one.".to_owned(),
            ],
            data: json!({
                "along": order,
                "transaction": history.txn_name(found.txn),
                "place": found.place,
                "operation": found.op,
            }),
            decider: "replay",
            reason: None,
            evidence: Some(Disproof::Order(*found)),
            files: Vec::new(),
        }),
    }
}

/// A transaction's name a line.
fn read_order(history: &History, path: &Path) -> Result<Vec<TxnId>> {
    let text = std::fs::read_to_string(path).with_context(|| {
        format!(
            "--along {}: not commit-ts or start-ts, and no file that can be read",
            path.display()
        )
    })?;
    let named: FxHashMap<String, TxnId> = history
        .txns()
        .map(|txn| (history.txn_name(txn), txn))
        .collect();
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(at, line)| {
            let name = line.trim();
            let bare = serde_json::from_str::<String>(name);
            let name = bare.as_deref().unwrap_or(name);
            named.get(name).copied().with_context(|| {
                format!(
                    "{}, line {}: no transaction {name:?}; write one transaction's id a line",
                    path.display(),
                    at + 1
                )
            })
        })
        .collect()
}

/// What the level promises, and the order that shows it.
fn in_order(history: &History, level: PlLevel, order: &[TxnId]) -> Vec<String> {
    const LISTED: usize = 40;
    let mut names = names(history, &order[..order.len().min(LISTED)]);
    if order.len() > LISTED {
        names.push(format!("and {} more", order.len() - LISTED));
    }
    vec![
        pl_definition(level).to_owned(),
        format!(
            "An order that the recorded versions and reads allow: {}",
            names.join(", ")
        ),
    ]
}

fn names(history: &History, order: &[TxnId]) -> Vec<String> {
    order.iter().map(|&txn| history.txn_name(txn)).collect()
}

fn refutation(history: &History, why: &Refutation) -> Value {
    let teller = Teller::new(history);
    match why {
        Refutation::Findings(found) => json!({
            "kind": "findings",
            "count": found.len(),
        }),
        Refutation::Mismatches(found) => {
            let told = found.iter().map(|it| {
                json!({
                    "transaction": history.txn_name(it.txn),
                    "predicate": it.predicate,
                    "words": teller.mismatch(it),
                })
            });
            json!({ "kind": "mismatches", "mismatches": told.collect::<Vec<_>>() })
        }
        Refutation::Cycle(phenomenon, steps) => {
            let told = steps.iter().map(|step| {
                json!({
                    "from": history.txn_name(step.from),
                    "to": history.txn_name(step.to),
                    "dependency": step.because.map_or("start", |it| it.dependency.name()),
                    "key": step.because.map(|it| history.key_name(it.key)),
                    "words": teller.step(step),
                })
            });
            json!({
                "kind": "cycle",
                "phenomenon": phenomenon.name(),
                "steps": told.collect::<Vec<_>>(),
            })
        }
    }
}

fn deliver(
    args: &CheckArgs,
    voice: Voice,
    answer: &WhiteBoxAnswer,
    start: Instant,
    sizes: Option<&Sizes>,
) -> Result<()> {
    let time = start.elapsed();
    if args.files.json.as_deref() != Some(Path::new("-")) {
        let mut text = format!("{} ({})\n", answer.headline, base_name(&args.history));
        if !voice.quiet {
            for line in &answer.story {
                text.push_str("  ");
                text.push_str(line);
                text.push('\n');
            }
        }
        if voice.verbose
            && let Some(sizes) = sizes
        {
            let told = format!(
                "reading {:.3} s, checking {:.3} s\n",
                sizes.parse.as_secs_f64(),
                time.saturating_sub(sizes.parse).as_secs_f64()
            );
            text.push_str(&told);
        }
        let lines = text.lines().map(|line| format!("{}\n", printable(line)));
        say(&lines.collect::<String>()).context("cannot write to stdout")?;
    }
    for (path, text) in &answer.files {
        put(path, text)?;
    }
    for path in [&args.files.dot, &args.files.svg].into_iter().flatten() {
        if answer.evidence.is_none() {
            voice.warn(&format!("no picture for {}: not violated", path.display()));
        }
    }
    if let Some(path) = &args.files.json {
        let mut document = json!({
            "schema": 1,
            "kingsnake": env!("CARGO_PKG_VERSION"),
            "verdict": answer.verdict,
            "exit_status": answer.status,
            "decider": answer.decider,
            "story": answer.story,
            "answer": answer.data,
            "stats": { "seconds": time.as_secs_f64(), "cpu_seconds": processor::seconds(), "peak_memory_bytes": memory::peak() },
        });
        if let Some(reason) = &answer.reason {
            document["reason"] = json!({
                "kind": crate::json::reason_kind(reason),
                "words": reason.to_string(),
            });
        }
        if let Some(sizes) = sizes {
            document["history"] = json!({
                "transactions": sizes.n_txns,
                "operations": sizes.n_ops,
                "predicates": sizes.n_predicates,
            });
            document["stats"]["phases"] = json!([
                { "name": "parse", "seconds": sizes.parse.as_secs_f64() },
                { "name": "certify", "seconds": time.saturating_sub(sizes.parse).as_secs_f64() },
            ]);
        }
        let mut text = serde_json::to_string_pretty(&document)?;
        text.push('\n');
        put(path, &text)?;
    }
    Ok(())
}
