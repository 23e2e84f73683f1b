//! The cost of a check: phases as bars, pruning rounds as a table, solver statistics.

use kingsnake_solver::model::{History, Status};
use kingsnake_text::{count, grouped, lasting, sized};
use maud::{Markup, html};

use super::terms::Terms;
use crate::answer::Answer;

/// The section.
pub fn section(answer: &Answer<'_>, terms: &Terms) -> Markup {
    html! {
        section #cost {
            h2 { "What it took" }
            (phases(answer))
            (numbers(answer, terms))
            (rounds(answer))
            (solver(answer))
        }
    }
}

fn phases(answer: &Answer<'_>) -> Markup {
    let seconds = answer
        .cost
        .phases
        .iter()
        .map(|(_, time)| time.as_secs_f64());
    let longest = seconds.fold(1e-9, f64::max);
    html! {
        table.bars {
            caption { "Time by phase" }
            tbody {
                @for (name, time) in &answer.cost.phases {
                    tr {
                        th scope="row" { (name) }
                        td.share { span style={ "width:" (format!("{:.1}", time.as_secs_f64() / longest * 100.0)) "%" } {} }
                        td.number { (lasting(*time)) }
                    }
                }
            }
        }
    }
}

fn numbers(answer: &Answer<'_>, terms: &Terms) -> Markup {
    let stats = &answer.stats;
    let mut facts: Vec<(&str, String)> = Vec::new();
    facts.extend(answer.history().iter().flat_map(|it| sizes(it)));
    if let (Some(_), Some(format)) = (answer.history(), answer.source.format) {
        let read = format!("{}, {format}", sized(answer.source.bytes));
        facts.push(("read", read));
    }
    if stats.n_nodes > 0 {
        facts.push(("known edges", grouped(stats.n_known_edges as u64)));
        facts.push(("after pruning", grouped(stats.n_pruned_edges as u64)));
        facts.push(("unordered pairs", grouped(stats.n_pairs)));
        facts.push(("left open", grouped(stats.n_open as u64)));
    }
    let peak = answer.cost.peak_memory;
    facts.extend(peak.map(|peak| ("peak memory", sized(peak))));
    html! {
        dl.facts {
            @for (name, value) in facts {
                div { dt { (terms.explain(name)) } dd { (value) } }
            }
        }
    }
}

/// The size of a history, and the outcomes of its transactions.
pub fn sizes(history: &History) -> Vec<(&'static str, String)> {
    let n = |status| {
        history
            .txns()
            .filter(|&txn| history.status(txn) == status)
            .count()
    };
    let (aborted, unknown) = (n(Status::Aborted), n(Status::Unknown));
    let mut facts = vec![
        ("transactions", grouped(history.n_txns() as u64)),
        (
            "committed",
            grouped((history.n_txns() - aborted - unknown) as u64),
        ),
        ("aborted", grouped(aborted as u64)),
    ];
    if unknown > 0 {
        facts.push(("end unknown", grouped(unknown as u64)));
    }
    facts.extend([
        ("operations", grouped(history.n_ops() as u64)),
        ("keys", grouped(history.n_keys() as u64)),
    ]);
    facts
}

fn rounds(answer: &Answer<'_>) -> Markup {
    let prune = &answer.stats.prune;
    html! {
        @if !prune.reachability.is_empty() {
            p.soft {
                "Reachability: " (prune.reachability)
                @if !prune.why.is_empty() { " (" (prune.why) ")" }
                "."
            }
        }
        (device(answer))
        @if !prune.rounds.is_empty() {
            div.wide tabindex="0" role="region" aria-label="Pruning rounds" {
                table.rounds {
                    caption { "Pruning, round by round" }
                    thead { tr { @for name in ["round", "new edges", "open", "time"] { th scope="col" { (name) } } } }
                    tbody {
                        @for (at, round) in prune.rounds.iter().enumerate() {
                            tr {
                                td { (at + 1) }
                                td { (grouped(round.new_edges)) }
                                td { (grouped(round.open)) }
                                td { (lasting(round.time)) }
                            }
                        }
                    }
                }
            }
            @if !prune.fixpoint { p.soft { "Pruning stopped before its fixpoint." } }
        }
    }
}

fn device(answer: &Answer<'_>) -> Markup {
    let device = &answer.stats.prune.device;
    html! {
        @if !device.name.is_empty() {
            p.soft {
                "Device " (device.name) " (" (device.backend) ", " (device.kind) "; " (device.why) "): "
                (sized(device.bytes_up)) " up, " (sized(device.bytes_down)) " down, "
                (count(device.dispatches as usize, "kernel")) " of " (count(device.workgroups as usize, "workgroup"))
                ", " (format!("{:.0}", 100.0 * device.occupancy)) " % of their lanes busy."
            }
        }
    }
}

fn solver(answer: &Answer<'_>) -> Markup {
    let Some(decide) = &answer.stats.decide else {
        return html! {};
    };
    html! {
        p.soft {
            "Solver " (decide.backend) ": " (grouped(decide.variables)) " variables, " (grouped(decide.clauses)) " clauses, "
            (grouped(decide.decisions)) " decisions, " (grouped(decide.conflicts)) " conflicts, "
            (count(decide.propagations as usize, "propagation")) ", " (count(decide.cycles as usize, "cycle")) ", "
            (count(decide.moves as usize, "move")) "; encoded in " (lasting(decide.encode)) ", solved in " (lasting(decide.solve)) "."
        }
    }
}
