//! `kingsnake export`: what is asked of a solver, before or after pruning, in another solver's language.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use kingsnake_encodings::export::{self, ExportError, Instance};
use kingsnake_solver::budget::{Budget, StopReason};
use kingsnake_solver::check::Techniques;
use kingsnake_solver::decide::Constraints;
use kingsnake_solver::model::History;
use kingsnake_solver::polygraph::{Edge, Polygraph};
use kingsnake_solver::prune::{Outcome, Pruned};
use kingsnake_solver::verdict::Moment;

use super::expect_writable;
use crate::answer::base_name;
use crate::args::{ExportArgs, ExportFormat, Stage};
use crate::input::{Loaded, load_within};
use crate::interrupt;
use crate::plan::{budget, one_level, spec};
use crate::progress::Drawing;
use crate::question::{Failed, question};
use crate::voice::{Voice, complain, printable};

/// Writes the question, or says why there is none.
pub fn run(args: &ExportArgs, voice: Voice, start: Instant) -> Result<u8> {
    expect_writable(&args.out)?;
    let spec = spec(one_level(&args.level)?, &args.level)?;
    let asked = interrupt::listen().context("cannot listen to signals")?;
    let budget = budget(&args.limits, start).with_interrupt(asked);
    let loaded = load_within(&args.history, &args.read, &budget)?;
    let parsed = match loaded {
        Loaded::Parsed(parsed) => parsed,
        Loaded::Stopped(reason) => return Ok(stopped(&reason)),
    };
    for warning in &parsed.warnings {
        voice.warn(warning);
    }
    let history = &parsed.history;
    let techniques = Techniques {
        prune_rounds: (args.stage == Stage::Constructed).then_some(0),
        ..Techniques::default()
    };
    let mut progress = Drawing::new(start, voice.quiet);
    let asked = question(history, spec, &techniques, &budget, &mut progress);
    drop(progress);
    let outcome = match asked {
        Ok(outcome) => outcome,
        Err(Failed::Stopped(reason)) => return Ok(stopped(&reason)),
        Err(Failed::Error(error)) => return Err(error),
    };
    let about = [format!(
        "kingsnake {}: {}, {spec}, {}",
        env!("CARGO_PKG_VERSION"),
        printable(&base_name(&args.history)),
        args.stage.words()
    )];
    let written = to(&args.out, |out| match &outcome {
        Outcome::Pruned(pruned) => write_pruned(pruned, history, args, &about, &budget, out),
        Outcome::Contradiction(found) => {
            write_contradiction(&found.polygraph, history, args, &about, out)
        }
    });
    match written {
        Ok(()) => Ok(0),
        Err(ExportError::Stopped(reason)) => Ok(stopped(&reason)),
        Err(error) => Err(error).with_context(|| format!("cannot write {}", args.out.display())),
    }
}

fn stopped(reason: &StopReason) -> u8 {
    complain(&format!("nothing was written: {reason}"));
    3
}

/// Opens the file, or stdout for `-`, and writes what there is to write.
fn to(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    if path == Path::new("-") {
        let mut out = BufWriter::new(io::stdout().lock());
        write(&mut out)?;
        return Ok(out.flush()?);
    }
    let mut out = BufWriter::new(File::create(path)?);
    write(&mut out)?;
    Ok(out.flush()?)
}

/// What a node is: a transaction, its begin or commit, or a moment of the time chain.
fn name(polygraph: &Polygraph, history: &History, node: u32) -> String {
    let Some(point) = polygraph.point(node) else {
        return "a moment".to_owned();
    };
    let txn = history.symbols().show(history.txn_token(point.txn));
    let moment = match point.moment {
        Moment::Whole => "",
        Moment::Begin => " begin",
        Moment::Commit => " commit",
    };
    // A name may hold anything, and a comment ends at the end of its line.
    printable(&format!("{txn}{moment}")).replace(['\n', '\r'], " ")
}

fn known(polygraph: &Polygraph) -> Vec<(u32, u32)> {
    sorted(polygraph.edges().iter().copied())
}

fn sorted(edges: impl Iterator<Item = Edge>) -> Vec<(u32, u32)> {
    let mut known: Vec<(u32, u32)> = edges.map(|edge| (edge.from, edge.to)).collect();
    known.sort_unstable();
    known.dedup();
    known
}

fn write_pruned(
    pruned: &Pruned,
    history: &History,
    args: &ExportArgs,
    about: &[String],
    budget: &Budget,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let name = |node| name(&pruned.polygraph, history, node);
    if args.to == ExportFormat::Dimacs {
        let question = pruned.question();
        return export::dimacs(&question, &args.encoding, &name, about, budget, out);
    }
    let instance = Instance {
        n_nodes: pruned.dag.n_nodes(),
        known: &sorted(pruned.question().known()),
        constraints: &pruned.constraints,
        name: &name,
        about,
    };
    write_instance(&instance, args.to, out)
}

/// The known edges have a cycle: an instance without constraints that cannot be met.
fn write_contradiction(
    polygraph: &Polygraph,
    history: &History,
    args: &ExportArgs,
    about: &[String],
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    if args.to == ExportFormat::Dimacs {
        for line in about {
            writeln!(out, "c {line}")?;
        }
        writeln!(out, "c the known edges have a cycle\np cnf 0 1\n0")?;
        return Ok(());
    }
    let instance = Instance {
        n_nodes: polygraph.n_nodes(),
        known: &known(polygraph),
        constraints: &Constraints::default(),
        name: &|node| name(polygraph, history, node),
        about,
    };
    write_instance(&instance, args.to, out)
}

fn write_instance(
    instance: &Instance<'_>,
    to: ExportFormat,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let write = match to {
        ExportFormat::Smtlib2 => export::smtlib2,
        ExportFormat::Gnf => export::gnf,
        ExportFormat::Dot | ExportFormat::Dimacs => export::dot,
    };
    Ok(write(instance, out)?)
}
