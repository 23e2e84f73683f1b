//! The answer as one self-contained HTML page: no network, light and dark, readable on a phone and on paper.
//!
//! Invariant: everything that comes from a file or the command line passes through [`Escaped`].

mod cost;
mod run;

use std::fmt::Write;

use kingsnake_solver::model::{History, TxnId};
use kingsnake_solver::verdict::Verdict;
use kingsnake_tell::{Labels, beside};
use kingsnake_text::{Escaped, page as whole};

use crate::answer::{Answer, status_word};
use crate::picture::{Kind, Scene, short, svg};
use crate::telling::{Telling, op_words};
use crate::voice::{count, lasting};

/// More transactions than this are not spelt out.
const MOST_TXNS: usize = 24;
/// More operations than this of one transaction are not spelt out.
const MOST_OPS: usize = 60;

/// The page.
pub fn page(answer: &Answer, scene: Option<&Scene>, timeline: Option<&str>) -> String {
    let mut body = String::new();
    head(&mut body, answer);
    if let Some(telling) = &answer.telling {
        story(&mut body, telling);
    }
    if let Some(timeline) = timeline {
        body.push_str("<section><h2>By the clock</h2><p class=\"soft\">Each bar runs from the start of an operation to its end; a dashed one has no known end.</p><div class=\"wide drawing\" tabindex=\"0\" role=\"region\" aria-label=\"Operations over time\">");
        body.push_str(timeline);
        body.push_str("</div></section>\n");
    }
    if let Some(scene) = scene {
        picture(&mut body, scene);
    }
    if let (Some(telling), Some(history)) = (&answer.telling, answer.history()) {
        transactions(&mut body, history, telling);
    }
    if let Verdict::Satisfied(certificate) = &answer.verdict {
        run::certificate(&mut body, answer, certificate.order.len());
    }
    cost::section(&mut body, answer);
    run::section(&mut body, answer);
    let title = format!("{}: {}", answer.word(), answer.subject());
    whole(&title, "", answer.word(), &body)
}

fn head(out: &mut String, answer: &Answer) {
    let mark = match answer.verdict {
        Verdict::Satisfied(_) => "✓",
        Verdict::Violated(_) => "✗",
        Verdict::Unknown(_) => "?",
    };
    let _ = write!(
        out,
        r#"<header><p class="verdict"><span aria-hidden="true">{mark}</span> {}</p><h1>{}</h1><p class="subject">{}</p>"#,
        answer.word(),
        Escaped(&answer.plan.promise()),
        Escaped(&answer.subject())
    );
    if let Verdict::Unknown(reason) = &answer.verdict {
        let _ = write!(
            out,
            r#"<p class="reason">{}</p>"#,
            Escaped(&reason.to_string())
        );
    }
    let _ = write!(
        out,
        r#"<p class="how">{} <span class="time">{}</span></p>"#,
        Escaped(&sentence(&answer.how())),
        lasting(answer.time)
    );
    if let Some(words) = answer.about_unknown() {
        let _ = write!(out, r#"<p class="how">{}</p>"#, Escaped(&sentence(&words)));
    }
    for warning in answer.parsed.iter().flat_map(|parsed| &parsed.warnings) {
        let _ = write!(out, r#"<p class="warning">{}</p>"#, Escaped(warning));
    }
    out.push_str("</header>\n");
}

/// The words with a capital and a full stop.
fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let Some(first) = letters.next() else {
        return String::new();
    };
    format!("{}{}.", first.to_uppercase(), letters.as_str())
}

fn story(out: &mut String, telling: &Telling) {
    let _ = write!(
        out,
        r#"<section><h2>What happened</h2><p class="headline">{}</p><p>{}</p><ol class="{}">"#,
        Escaped(&telling.story.headline),
        Escaped(&telling.story.about),
        if telling.story.lines.iter().any(|line| line.depth > 0) {
            "story cases"
        } else {
            "story"
        }
    );
    for line in &telling.story.lines {
        let _ = write!(
            out,
            r#"<li style="--depth:{}">{}</li>"#,
            line.depth.min(8),
            Escaped(&line.text)
        );
    }
    out.push_str("</ol></section>\n");
}

fn picture(out: &mut String, scene: &Scene) {
    let mut words = String::from("Each row is a session. ");
    if scene.panels.iter().any(|panel| panel.arrows.len() > 1) {
        words.push_str("The transactions stand in the order of the cycle: every arrow says that one comes before the next, and the last one leads back to the first, which no order allows.");
        if scene.panels.len() > 1 {
            words.push_str(" There is a cycle in every case.");
        }
    } else {
        words.push_str("The operations that show the anomaly are set in bold.");
    }
    if scene.panels.iter().any(|panel| panel.cards.len() > 5) {
        words.push_str(" The picture is wide: scroll it sideways.");
    }
    let _ = write!(
        out,
        r#"<section><h2>The picture</h2><p class="soft">{words}</p><div class="wide drawing" tabindex="0" role="region" aria-label="Picture of the counterexample">{}</div><ul class="legend">"#,
        svg::inline(scene)
    );
    for kind in svg::kinds(scene) {
        let letters = kind.letters();
        let _ = write!(
            out,
            r#"<li class="ks {letters}"><svg class="ks" width="34" height="12" aria-hidden="true"><g class="{letters}"><path class="arrow" marker-end="url(#ks-{letters})" d="M1 6h30"/></g></svg>{}{}</li>"#,
            if kind == Kind::Anomaly {
                String::new()
            } else {
                format!("<b>{letters}</b> ")
            },
            kind.meaning(svg::speaks_of_moments(scene))
        );
    }
    out.push_str("</ul>");
    if scene.hidden > 0 {
        let _ = write!(
            out,
            r#"<p class="soft">{} not drawn.</p>"#,
            count(scene.hidden, "more case")
        );
    }
    out.push_str("</section>\n");
}

fn transactions(out: &mut String, history: &History, telling: &Telling) {
    out.push_str("<section><h2>The transactions involved</h2><div class=\"cards\">");
    let labels = telling.labels(history);
    for &txn in telling.story.txns.iter().take(MOST_TXNS) {
        transaction(out, history, telling, &labels, txn);
    }
    out.push_str("</div>");
    if telling.story.txns.len() > MOST_TXNS {
        let rest = telling.story.txns.len() - MOST_TXNS;
        let _ = write!(
            out,
            r#"<p class="soft">And {}; <code>--json</code> lists them all.</p>"#,
            count(rest, "more transaction")
        );
    }
    if !telling.story.meanwhile.is_empty() {
        out.push_str("<p>Meanwhile:</p><ul>");
        for event in &telling.story.meanwhile {
            let _ = write!(out, "<li>{}</li>", Escaped(event));
        }
        out.push_str("</ul>");
    }
    if !telling.story.legend.is_empty() {
        out.push_str("<details><summary>Shortened names</summary><table class=\"plan\"><tbody>");
        for (label, full) in &telling.story.legend {
            let _ = write!(
                out,
                r#"<tr><th scope="row">{}</th><td>{}</td></tr>"#,
                Escaped(label),
                Escaped(full)
            );
        }
        out.push_str("</tbody></table></details>");
    }
    out.push_str("</section>\n");
}

fn transaction(
    out: &mut String,
    history: &History,
    telling: &Telling,
    labels: &Labels<'_>,
    txn: TxnId,
) {
    let session = history.session(txn);
    let _ = write!(
        out,
        r#"<article><h3>{}</h3><p class="soft">session {}, transaction {} of {}, {}{}</p><ol>"#,
        Escaped(&labels.txn(txn)),
        Escaped(&labels.session(session)),
        history.session_position(txn) + 1,
        history.session_txns(session).len(),
        status_word(history.status(txn)),
        Escaped(&beside(history, txn))
    );
    let ops = history.ops(txn);
    for (at, &op) in ops.iter().enumerate().take(MOST_OPS) {
        let class = if telling.keys.iter().any(|&key| history.touches(op, key)) {
            " class=\"marked\""
        } else {
            ""
        };
        let _ = write!(
            out,
            "<li{class}>{}</li>",
            Escaped(&short(
                &op_words(labels, history, txn, at, &telling.keys),
                400
            ))
        );
    }
    out.push_str("</ol>");
    if ops.len() > MOST_OPS {
        let _ = write!(
            out,
            r#"<p class="soft">and {}</p>"#,
            count(ops.len() - MOST_OPS, "more operation")
        );
    }
    out.push_str("</article>");
}
