//! How to reproduce the run, and how to check its certificate.

use maud::{Markup, html};

use crate::answer::Answer;
use crate::plan::quoted_path;
use crate::voice::count;

/// How to check the certificate.
pub fn certificate(answer: &Answer, n_points: usize) -> Markup {
    let has_begins = !answer.plan.promise.is_recorded()
        && (answer.history()).is_some_and(|it| answer.plan.spec.has_begins(it));
    let of = if has_begins {
        format!("{} and commits", count(n_points / 2, "begin"))
    } else {
        count(n_points, "transaction")
    };
    let history = quoted_path(&answer.plan.history);
    html! {
        section {
            h2 { "Why you can trust this" }
            p {
                "There is an order of " (of) " in which every read returns what was last written. It was replayed against the history \
                 before this page was written, by code that shares nothing with the search. To replay it yourself:"
            }
            pre { code {
                (answer.plan.short_command()) " --certificate order.jsonl\n"
                "kingsnake verify " (history) " order.jsonl"
            } }
        }
    }
}

/// The plan.
pub fn section(answer: &Answer) -> Markup {
    let (short, full) = (answer.plan.short_command(), answer.plan.command());
    html! {
        section #run {
            h2 { "The run" }
            p { "This repeats it:" }
            pre.command { code { (short) } }
            details {
                summary { "With every option spelled out" }
                pre.command { code { (full) } }
            }
            details {
                summary { "The plan" }
                table.plan { tbody {
                    @for (name, value) in answer.plan.rows() {
                        tr { th scope="row" { (name) } td { (value) } }
                    }
                } }
            }
        }
    }
}
