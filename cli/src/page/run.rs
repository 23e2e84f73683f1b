//! How to repeat the run, and how to check its certificate.

use std::fmt::Write;

use kingsnake_solver::level::Model;

use crate::answer::Answer;
use crate::plan::quoted_path;
use crate::voice::count;
use kingsnake_text::Escaped;

/// How to check the certificate again.
pub fn certificate(out: &mut String, answer: &Answer, n_points: usize) {
    let history = quoted_path(&answer.plan.history);
    let _ = write!(
        out,
        "<section><h2>Why to believe it</h2><p>There is an order of {} in which every read returns what was last written. It was replayed against the history before this page was written, by code that shares nothing with the search. To replay it yourself:</p><pre><code>{} --certificate order.jsonl
kingsnake verify {} order.jsonl</code></pre></section>
",
        match answer.plan.spec.model {
            Model::Ser => count(n_points, "transaction"),
            _ => format!("{} and commits", count(n_points / 2, "begin")),
        },
        Escaped(&answer.plan.command()),
        Escaped(&history)
    );
}

/// The plan.
pub fn section(out: &mut String, answer: &Answer) {
    let _ = write!(
        out,
        "<section><h2>The run</h2><p>This repeats it:</p><pre><code>{}</code></pre><details><summary>The plan</summary><table class=\"plan\"><tbody>",
        Escaped(&answer.plan.command())
    );
    for (name, value) in answer.plan.rows() {
        let _ = write!(
            out,
            r#"<tr><th scope="row">{name}</th><td>{}</td></tr>"#,
            Escaped(&value)
        );
    }
    out.push_str("</tbody></table></details></section>\n");
}
