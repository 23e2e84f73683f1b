//! `kingsnake export`: writes the constraints, before or after pruning, in another solver's language.

use std::io::Write;
use std::time::Instant;

use anyhow::{Context, Result};
use kingsnake_encodings::export::{self, ExportError, ExportInstance};
use kingsnake_solver::budget::Budget;
use kingsnake_solver::check::Techniques;
use kingsnake_solver::decide::Constraints;
use kingsnake_solver::model::History;
use kingsnake_solver::prune::{Outcome, Pruned};
use kingsnake_solver::relate::{Edge, Polygraph};
use kingsnake_solver::verdict::Moment;

use crate::answer::base_name;
use crate::args::{ExportArgs, ExportFormat, Stage};
use crate::input::{files, load};
use crate::limits::Stopped;
use crate::output::{Output, expect_apart, fill};
use crate::picture::short;
use crate::plan::{isolation_map, questioned_level, spec, start_threads};
use crate::progress::Drawing;
use crate::question::question;
use crate::voice::{Voice, printable};

/// Writes the constraints, or reports why there are none.
pub fn run(args: &ExportArgs, voice: Voice, start: Instant, budget: &Budget) -> Result<u8> {
    let out = Output {
        option: "--out",
        path: &args.out,
    };
    expect_apart(&files(&args.history, &args.read), &[out])?;
    start_threads(&args.limits)?;
    let level = questioned_level(&args.level)?;
    let spec = spec(level, &args.level)?;
    let mut parsed = load(&args.history, &args.read, budget)?;
    if let Some(map) = isolation_map(level, &args.level)? {
        map.apply(&mut parsed.history)?;
    }
    voice.warn_each(&parsed.warnings);
    let history = &parsed.history;
    let techniques = Techniques {
        prune_rounds: (args.stage == Stage::Constructed).then_some(0),
        ..Techniques::default()
    };
    let drawing = Drawing::new(start, voice.quiet);
    let mut listener = drawing.listener();
    let outcome = question(history, spec, &techniques, budget, &mut listener);
    drop(drawing);
    let outcome = outcome?;
    let about = [format!(
        "kingsnake {}: {}, {spec}, {}",
        env!("CARGO_PKG_VERSION"),
        printable(&base_name(&args.history)),
        args.stage.words()
    )];
    let written = fill(&args.out, |out| match &outcome {
        Outcome::Pruned(pruned) => write_pruned(pruned, history, args, &about, budget, out),
        Outcome::Contradiction(found) => {
            write_contradiction(&found.problem, history, args, &about, out)
        }
    });
    match written {
        Ok(()) => Ok(0),
        Err(ExportError::Stopped(reason)) => Err(Stopped(reason).into()),
        Err(error) => Err(error).with_context(|| format!("cannot write {}", args.out.display())),
    }
}

/// Longer names are cut: Graphviz refuses some, and they are unreadable.
const LONGEST_NAME: usize = 120;

/// What a node is: a transaction, its begin or commit, or a moment of the time chain.
fn name(polygraph: &Polygraph, history: &History, node: u32) -> String {
    let Some(point) = polygraph.point(node) else {
        return "a moment".to_owned();
    };
    let txn = history.symbols().whole(history.txn_token(point.txn));
    let moment = match point.moment {
        Moment::Whole => "",
        Moment::Begin => " begin",
        Moment::Commit => " commit",
    };
    // A name may contain any character, and a comment ends at the line end.
    format!("{}{moment}", short(&printable(&txn), LONGEST_NAME))
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
    let name = |node| name(&pruned.problem, history, node);
    if args.to == ExportFormat::Dimacs {
        let question = pruned.question();
        return export::dimacs(&question, &args.encoding, &name, about, budget, out);
    }
    let instance = ExportInstance {
        n_nodes: pruned.dag.n_nodes(),
        known: &sorted(pruned.question().known()),
        constraints: &pruned.constraints,
        name: &name,
        about,
    };
    write_instance(&instance, args.to, out)
}

/// The known edges have a cycle: an unsatisfiable instance without constraints.
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
    let instance = ExportInstance {
        n_nodes: polygraph.n_nodes(),
        known: &known(polygraph),
        constraints: &Constraints::default(),
        name: &|node| name(polygraph, history, node),
        about,
    };
    write_instance(&instance, args.to, out)
}

fn write_instance(
    instance: &ExportInstance<'_>,
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
