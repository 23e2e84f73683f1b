//! What the check took: phases as bars, pruning rounds as a table, the solver's counts.

use std::fmt::Write;

use crate::answer::Answer;
use crate::voice::{count, grouped, lasting, sized};
use kingsnake_text::Escaped;

/// The section.
pub fn section(out: &mut String, answer: &Answer) {
    out.push_str("<section><h2>What it took</h2>");
    phases(out, answer);
    numbers(out, answer);
    rounds(out, answer);
    solver(out, answer);
    out.push_str("</section>\n");
}

fn phases(out: &mut String, answer: &Answer) {
    let longest = answer
        .phases
        .iter()
        .map(|(_, time)| time.as_secs_f64())
        .fold(1e-9, f64::max);
    out.push_str("<table class=\"bars\"><caption>Time by phase</caption><tbody>");
    for (name, time) in &answer.phases {
        let share = time.as_secs_f64() / longest * 100.0;
        let _ = write!(
            out,
            r#"<tr><th scope="row">{name}</th><td class="bar"><span style="width:{share:.1}%"></span></td><td class="number">{}</td></tr>"#,
            lasting(*time)
        );
    }
    out.push_str("</tbody></table>");
}

fn numbers(out: &mut String, answer: &Answer) {
    let stats = &answer.stats;
    let mut facts: Vec<(&str, String)> = Vec::new();
    if let Some(parsed) = &answer.parsed {
        let history = &parsed.history;
        facts.push(("transactions", grouped(history.n_txns() as u64)));
        facts.push(("operations", grouped(history.n_ops() as u64)));
        facts.push(("keys", grouped(history.n_keys() as u64)));
        facts.push((
            "read",
            format!("{}, {}", sized(parsed.bytes), parsed.format),
        ));
    }
    if stats.n_nodes > 0 {
        facts.push(("known edges", grouped(stats.n_known_edges as u64)));
        facts.push(("after pruning", grouped(stats.n_pruned_edges as u64)));
        facts.push(("unordered pairs", grouped(stats.n_pairs)));
        facts.push(("left open", grouped(stats.n_open as u64)));
    }
    if let Some(peak) = answer.peak {
        facts.push(("peak memory", sized(peak)));
    }
    out.push_str("<dl class=\"facts\">");
    for (name, value) in facts {
        let _ = write!(
            out,
            "<div><dt>{name}</dt><dd>{}</dd></div>",
            Escaped(&value)
        );
    }
    out.push_str("</dl>");
}

fn rounds(out: &mut String, answer: &Answer) {
    let prune = &answer.stats.prune;
    if !prune.reachability.is_empty() {
        let why = if prune.why.is_empty() {
            String::new()
        } else {
            format!(" ({})", prune.why)
        };
        let _ = write!(
            out,
            r#"<p class="soft">Reachability: {}{}.</p>"#,
            Escaped(prune.reachability),
            Escaped(&why)
        );
    }
    device(out, answer);
    if prune.rounds.is_empty() {
        return;
    }
    out.push_str(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Pruning rounds\"><table class=\"rounds\"><caption>Pruning, round by round</caption><thead><tr>\
         <th scope=\"col\">round</th><th scope=\"col\">new edges</th>\
         <th scope=\"col\">open</th><th scope=\"col\">time</th></tr></thead><tbody>",
    );
    for (at, round) in prune.rounds.iter().enumerate() {
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            at + 1,
            grouped(round.new_edges),
            grouped(round.open),
            lasting(round.time)
        );
    }
    out.push_str("</tbody></table></div>");
    if !prune.fixpoint {
        out.push_str("<p class=\"soft\">Pruning stopped before its fixpoint.</p>");
    }
}

fn device(out: &mut String, answer: &Answer) {
    let device = &answer.stats.prune.device;
    if device.name.is_empty() {
        return;
    }
    let _ = write!(
        out,
        r#"<p class="soft">Device {} ({}, {}; {}): {} up, {} down, {} of {}, {:.0} % of their lanes busy.</p>"#,
        Escaped(&device.name),
        Escaped(&device.backend),
        Escaped(&device.kind),
        Escaped(&device.why),
        sized(device.bytes_up),
        sized(device.bytes_down),
        count(device.dispatches as usize, "kernel"),
        count(device.workgroups as usize, "workgroup"),
        100.0 * device.occupancy,
    );
}

fn solver(out: &mut String, answer: &Answer) {
    let Some(decide) = &answer.stats.decide else {
        return;
    };
    let _ = write!(
        out,
        r#"<p class="soft">Solver {}: {} variables, {} clauses, {} decisions, {} conflicts, {}, {}, {}; encoded in {}, solved in {}.</p>"#,
        Escaped(&decide.backend),
        grouped(decide.variables),
        grouped(decide.clauses),
        grouped(decide.decisions),
        grouped(decide.conflicts),
        count(decide.propagations as usize, "propagation"),
        count(decide.cycles as usize, "cycle"),
        count(decide.moves as usize, "move"),
        lasting(decide.encode),
        lasting(decide.solve)
    );
}
