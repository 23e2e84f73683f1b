//! How to reproduce the run, and how to check its certificate.

use kingsnake_text::count;
use maud::{Markup, html};

use crate::answer::{Answer, CommandRun};

/// How to check the certificate.
pub fn certificate(answer: &Answer<'_>, n_points: usize) -> Markup {
    let has_begins = !answer.promise.is_recorded()
        && (answer.history()).is_some_and(|it| answer.asked.spec.has_begins(it));
    let of = if has_begins {
        format!("{} and commits", count(n_points / 2, "begin"))
    } else {
        count(n_points, "transaction")
    };
    html! {
        section {
            h2 { "Why you can trust this" }
            p {
                "There is an order of " (of) " in which every read returns what was last written. It was replayed against the history \
                 before this page was written, by code that shares nothing with the search."
                @if answer.run.is_some() { " To replay it yourself:" }
            }
            @if let Some(run) = &answer.run {
                pre { code {
                    (run.short_command) " --certificate order.jsonl\n"
                    "kingsnake verify " (run.history) " order.jsonl"
                } }
            }
        }
    }
}

/// The plan.
pub fn section(run: &CommandRun) -> Markup {
    html! {
        section #run {
            h2 { "The run" }
            p { "This repeats it:" }
            pre.command { code { (run.short_command) } }
            details {
                summary { "With every option spelled out" }
                pre.command { code { (run.command) } }
            }
            details {
                summary { "The plan" }
                table.plan { tbody {
                    @for (name, value) in &run.rows {
                        tr { th scope="row" { (name) } td { (value) } }
                    }
                } }
            }
        }
    }
}
