//! The answer in words, for stdout.

use std::fmt::Write;

use kingsnake_report::answer::Answer;
use kingsnake_report::answer::telling::full_op;
use kingsnake_solver::verdict::Verdict;

use crate::answer::status_word;
use crate::voice::{Voice, count, grouped, lasting, printable, sized};

/// Larger counterexamples do not list their transactions in full.
const MOST_TXNS: usize = 40;

/// The answer as `check` gives it: the verdict, what happened, how it was found.
pub fn brief(answer: &Answer<'_>, voice: Voice) -> String {
    let mut out = first_line(answer, voice);
    if voice.quiet {
        return out;
    }
    if let Verdict::Unknown(reason) = &answer.verdict {
        let _ = writeln!(out, "{}", printable(&reason.to_string()));
    }
    if answer.telling.is_some() {
        out.push('\n');
        story(&mut out, answer, voice);
        out.push('\n');
    }
    if let Some(words) = answer.about_unknown() {
        let _ = writeln!(out, "{words}");
    }
    let _ = writeln!(
        out,
        "{}",
        voice
            .paint
            .faint(&format!("{} · {}", answer.how(), lasting(answer.cost.time)))
    );
    proof(&mut out, answer);
    if voice.verbose {
        details(&mut out, answer);
    }
    out
}

/// The files written for independent checkers.
fn proof(out: &mut String, answer: &Answer<'_>) {
    if let Some((path, checked)) = &answer.proof {
        let _ = writeln!(
            out,
            "proof {}, with its instance beside it: {} and {}, checked again",
            printable(&path.display().to_string()),
            count(checked.cycles, "cycle"),
            count(checked.steps, "step")
        );
    }
}

/// What the level promises, and what usually breaks it.
pub fn advice(definition: &str, causes: &[&str], voice: Voice) -> String {
    let mut out = format!(
        "\n{}\n  {definition}\n\n{}\n",
        voice.paint.strong("What was promised"),
        voice.paint.strong("Typical causes")
    );
    for cause in causes {
        let _ = writeln!(out, "  - {cause}");
    }
    out
}

/// The answer as `explain` gives it: also the promise, typical causes, and every operation of the transactions
/// involved; for a satisfied history the order and its tightness.
pub fn long(answer: &Answer<'_>, voice: Voice) -> String {
    let mut out = brief(answer, voice);
    if voice.quiet {
        return out;
    }
    if let Some(ordered) = &answer.ordered {
        out.push_str(&ordered.words(voice.paint));
    }
    let (Some(telling), Some(history)) = (&answer.telling, answer.history()) else {
        return out;
    };
    out.push_str(&advice(
        &telling.story.definition,
        telling.story.causes,
        voice,
    ));
    let _ = writeln!(
        out,
        "\n{}",
        voice.paint.strong("The transactions involved, in full")
    );
    let labels = telling.labels(history);
    for &txn in telling.story.txns.iter().take(MOST_TXNS) {
        let _ = writeln!(
            out,
            "  {} (session {}, transaction {} of it, {})",
            voice.paint.strong(&printable(&labels.txn(txn))),
            printable(&history.session_name(history.session(txn))),
            history.session_position(txn) + 1,
            status_word(history.status(txn))
        );
        for (at, &op) in history.ops(txn).iter().enumerate() {
            let marked = telling.keys.iter().any(|&key| history.touches(op, key));
            let words = printable(&full_op(history, txn, at));
            if marked {
                let _ = writeln!(out, "    {} {words}", voice.paint.bad("*"));
            } else {
                let _ = writeln!(out, "      {}", voice.paint.faint(&words));
            }
        }
    }
    if telling.story.txns.len() > MOST_TXNS {
        let _ = writeln!(
            out,
            "  and {} more (--json lists them all)",
            telling.story.txns.len() - MOST_TXNS
        );
    }
    let _ = writeln!(out, "  * touches a key that the story is about");
    out
}

fn first_line(answer: &Answer<'_>, voice: Voice) -> String {
    let word = answer.word();
    let painted = match answer.verdict {
        Verdict::Satisfied(_) => voice.paint.good(word),
        Verdict::Violated(_) => voice.paint.bad(word),
        Verdict::Unknown(_) => voice.paint.open(word),
    };
    format!(
        "{painted}: {} ({})\n",
        answer.promise,
        printable(&answer.subject())
    )
}

fn story(out: &mut String, answer: &Answer<'_>, voice: Voice) {
    let Some(telling) = &answer.telling else {
        return;
    };
    let story = &telling.story;
    let _ = writeln!(out, "{}", voice.paint.strong(&printable(&story.headline)));
    let _ = writeln!(out, "{}", printable(&story.about));
    let _ = writeln!(out, "{}\n", printable(&story.noticed));
    for line in &story.lines {
        let _ = writeln!(
            out,
            "  {}{}",
            "  ".repeat(line.depth),
            printable(&line.text)
        );
    }
    if !story.operations.is_empty() {
        out.push_str("\nThe transactions:\n");
        for operations in &story.operations {
            let _ = writeln!(out, "  {}", printable(operations));
        }
    }
    if !story.meanwhile.is_empty() {
        out.push_str("\nMeanwhile:\n");
        for event in &story.meanwhile {
            let _ = writeln!(out, "  {}", printable(event));
        }
    }
    let legend = story.legend_of_words();
    if !legend.is_empty() {
        out.push_str("\nShortened names:\n");
        for (label, full) in legend {
            let _ = writeln!(out, "  {} is {}", printable(label), printable(full));
        }
    }
}

fn details(out: &mut String, answer: &Answer<'_>) {
    let stats = &answer.stats;
    let _ = writeln!(out, "\nplan");
    if let Some(run) = &answer.run {
        for (name, value) in &run.rows {
            let _ = writeln!(out, "  {name:<14} {}", printable(value));
        }
        let _ = writeln!(out, "  {:<14} {}", "again", printable(&run.command));
    }
    if let (Some(history), Some(format)) = (answer.history(), answer.source.format) {
        let _ = writeln!(
            out,
            "history\n  {} ({format} format): {}, {}, {}, {}",
            sized(answer.source.bytes),
            count(history.n_txns(), "transaction"),
            count(history.n_sessions(), "session"),
            count(history.n_ops(), "operation"),
            count(history.n_keys(), "key")
        );
    }
    let _ = writeln!(out, "phases");
    for (name, time) in &answer.cost.phases {
        let _ = writeln!(out, "  {name:<10} {:>10}", lasting(*time));
    }
    let _ = writeln!(
        out,
        "polygraph\n  {}, {}, {} before pruning; {} after",
        count(stats.n_nodes, "node"),
        count(stats.n_known_edges, "known edge"),
        count(stats.n_pairs as usize, "pair"),
        count(stats.n_pruned_edges, "known edge")
    );
    rounds(out, answer);
    if let Some(it) = &stats.heuristic {
        let _ = writeln!(
            out,
            "heuristic {}\n  {} assumed, {} UNSAT answers retried without assumptions, distance {} at the end",
            it.name,
            count(it.assumed, "side"),
            grouped(it.rejects),
            grouped(it.distance as u64)
        );
    }
    if let Some(decide) = &stats.decide {
        let _ = writeln!(
            out,
            "solver {}{}\n  {} variables, {} clauses, {} edges, {} decisions, {} conflicts, {} propagations, {} cycles, {} moves; encode {}, solve {}{}",
            decide.backend,
            decide
                .winner
                .as_ref()
                .map_or(String::new(), |winner| format!(", won by {winner}")),
            grouped(decide.variables),
            grouped(decide.clauses),
            grouped(decide.edges),
            grouped(decide.decisions),
            grouped(decide.conflicts),
            grouped(decide.propagations),
            grouped(decide.cycles),
            grouped(decide.moves),
            lasting(decide.encode),
            lasting(decide.solve),
            decide
                .memory
                .map_or(String::new(), |grown| format!(", memory {}", sized(grown)))
        );
        if !decide.device.name.is_empty() {
            let device = &decide.device;
            let _ = writeln!(
                out,
                "  annealed on {} ({}): {} dispatches, {} up, {} down, {:.0} % of lanes busy",
                printable(&device.name),
                device.kind,
                grouped(device.dispatches),
                sized(device.bytes_up),
                sized(device.bytes_down),
                100.0 * device.occupancy
            );
        }
    }
    if let Some(peak) = answer.cost.peak_memory {
        let _ = writeln!(out, "peak memory {}", sized(peak));
    }
}

fn rounds(out: &mut String, answer: &Answer<'_>) {
    let prune = &answer.stats.prune;
    if prune.reachability.is_empty() {
        return;
    }
    let _ = write!(out, "pruning\n  reachability {}", prune.reachability);
    if prune.why.is_empty() {
        out.push('\n');
    } else {
        let _ = writeln!(out, ": {}", prune.why);
    }
    device(out, answer);
    if prune.rounds.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "  {:>5} {:>12} {:>12} {:>10}",
        "round", "new edges", "open", "time"
    );
    for (at, round) in prune.rounds.iter().enumerate() {
        let _ = writeln!(
            out,
            "  {:>5} {:>12} {:>12} {:>10}",
            at + 1,
            grouped(round.new_edges),
            grouped(round.open),
            lasting(round.time)
        );
    }
    if !prune.fixpoint {
        out.push_str("  stopped before the fixpoint\n");
    }
}

fn device(out: &mut String, answer: &Answer<'_>) {
    let device = &answer.stats.prune.device;
    if !device.name.is_empty() {
        let kernels = device.time.map_or(String::new(), |time| {
            format!(", kernels took {}", lasting(time))
        });
        let _ = writeln!(
            out,
            "  device {} ({}, {}): {}\n  {} up, {} down, {} ({}) of {}, {:.0} % of their lanes busy, a matrix of {} in {}{kernels}",
            printable(&device.name),
            device.backend,
            device.kind,
            printable(&device.why),
            sized(device.bytes_up),
            sized(device.bytes_down),
            count(device.dispatches as usize, "kernel"),
            device.form,
            count(device.workgroups as usize, "workgroup"),
            100.0 * device.occupancy,
            sized(device.matrix_bytes),
            count(device.bands as usize, "band"),
        );
    } else if !device.why.is_empty() {
        let _ = writeln!(out, "  device cpu: {}", printable(&device.why));
    }
}
