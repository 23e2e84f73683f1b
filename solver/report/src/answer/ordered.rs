//! The order that explains a satisfied history, and its tightness: printed by `explain`, and on the page of a small history.

use std::fmt::Write;

use kingsnake_solver::Context;
use kingsnake_solver::budget::Budget;
use kingsnake_solver::check::Techniques;
use kingsnake_solver::level::Spec;
use kingsnake_solver::model::{History, KeyId, TxnId};
use kingsnake_solver::phases::{Check, pose};
use kingsnake_solver::progress::Silent;
use kingsnake_solver::promise::Promise;
use kingsnake_solver::tight::{Tightness, tightness};
use kingsnake_solver::verdict::{Certificate, Moment, Point};
use kingsnake_tell::Labels;
use kingsnake_text::{Paint, count, grouped, percent, printable};
use maud::{Markup, html};
use serde_json::{Value, json};

/// Longer orders are cut after this many transactions.
const LISTED: usize = 40;
/// Longer transactions are cut after this many operations.
const MOST_OPS: usize = 6;
/// If more neighbours can change places, they are only counted.
const MOST_SWAPS: usize = 3;

/// An order in words.
#[derive(Clone, Debug)]
pub struct Ordered {
    lines: Vec<String>,
    n_points: usize,
    has_begins: bool,
    tight: Option<Tightness>,
    swaps: Vec<String>,
}

/// Renders the order and computes its tightness.
pub fn ordered(history: &History, promise: &Promise, certificate: &Certificate) -> Ordered {
    let told = &certificate.order[..certificate.order.len().min(LISTED)];
    let tight = match promise {
        Promise::Level(spec) => judge(history, *spec, certificate),
        _ => None,
    };
    let swaps = tight.iter().flat_map(|it| it.swaps.iter().take(MOST_SWAPS));
    let mut txns: Vec<TxnId> = told.iter().map(|point| point.txn).collect();
    txns.extend(swaps.clone().flat_map(|&(a, b)| [a, b]));
    let labels = Labels::new(history, &txns);
    let swaps = swaps.map(|&(a, b)| format!("{} and {}", labels.txn(a), labels.txn(b)));
    let swaps = swaps.collect();
    let lines = told.iter().map(|point| line(history, &labels, *point));
    Ordered {
        lines: lines.collect(),
        n_points: certificate.order.len(),
        has_begins: told.iter().any(|point| point.moment == Moment::Begin),
        tight,
        swaps,
    }
}

/// `None` if it cannot be computed; the order is printed anyway.
fn judge(history: &History, spec: Spec, certificate: &Certificate) -> Option<Tightness> {
    let (budget, techniques) = (Budget::unlimited(), Techniques::default());
    if spec.real_time.is_some() && !history.has_times() {
        return None;
    }
    let check = Check {
        history,
        spec,
        techniques: &techniques,
    };
    let pruned = pose(&check, &mut Context::new(&budget, &mut Silent)).ok()?;
    tightness(history, &pruned, certificate, &budget).ok()?
}

fn line(history: &History, labels: &Labels<'_>, point: Point) -> String {
    let who = labels.txn(point.txn);
    let session = labels.session(history.session(point.txn));
    let who = format!("{who} (session {session})");
    let (word, of): (&str, fn(bool) -> bool) = match point.moment {
        Moment::Begin => (" begins", |is_write| !is_write),
        Moment::Commit => (" commits", |is_write| is_write),
        Moment::Whole => ("", |_| true),
    };
    match did(history, labels, point.txn, of) {
        told if told.is_empty() => format!("{who}{word}"),
        told => format!("{who}{word}: {told}"),
    }
}

/// What a transaction did; `of` selects its reads (`false`) or writes (`true`).
fn did(history: &History, labels: &Labels<'_>, txn: TxnId, of: fn(bool) -> bool) -> String {
    let ops = history.ops(txn).iter().enumerate();
    let ops: Vec<_> = ops.filter(|(_, op)| of(op.is_write())).collect();
    let keys: Vec<KeyId> = ops.iter().filter_map(|(_, op)| op.key()).collect();
    let shown = ops.iter().take(MOST_OPS);
    let mut told: Vec<String> = shown
        .map(|&(at, &op)| labels.operation(txn, at, op, &keys))
        .collect();
    match ops.len().saturating_sub(MOST_OPS) {
        0 => {}
        n => told.push(format!("{n} more")),
    }
    told.join("; ")
}

impl Ordered {
    fn title(&self) -> String {
        let of = if self.has_begins {
            format!("{} begins and commits", grouped(self.n_points as u64))
        } else {
            count(self.n_points, "transaction")
        };
        format!("One order of {of} that explains every read")
    }

    /// Number of points that are cut.
    fn n_more(&self) -> usize {
        self.n_points - self.lines.len()
    }

    /// The tightness, one sentence per line.
    fn judgement(&self) -> Vec<String> {
        let Some(tight) = &self.tight else {
            return vec![
                "How much of it is forced is computed only where an order of transactions is searched, each read has one possible writer, and no condition over rows counts."
                    .to_owned(),
            ];
        };
        if tight.n_pairs == 0 {
            return vec!["There is nothing to put in order.".to_owned()];
        }
        let share = |n: u64| format!("{} ({})", grouped(n), percent(n, tight.n_pairs));
        let pair = if self.has_begins {
            "pairs of commits"
        } else {
            "pairs of transactions"
        };
        let mut lines = vec![format!(
            "Of {} {pair}, {} are forced: every order that explains the reads has them this way round.",
            grouped(tight.n_pairs),
            share(tight.n_forced)
        )];
        lines.push(match tight.n_free {
            0 => "None is free: no other order is known.".to_owned(),
            n => format!(
                "{} are free: some other order has them the other way round.",
                share(n)
            ),
        });
        if tight.n_undecided() > 0 {
            lines.push(format!(
                "{} depend on {} between two orders of writes, of which this order takes one side each.",
                share(tight.n_undecided()),
                count(tight.n_open, "open choice")
            ));
        } else if tight.n_free == 0 && tight.n_pairs > 0 {
            lines = vec![format!(
                "All of its {} {pair} are forced: this is the only order that explains the reads.",
                grouped(tight.n_pairs)
            )];
        }
        if !self.swaps.is_empty() {
            lines.push(format!(
                "{} can change places, everything else staying as it is, such as {}.",
                count(tight.swaps.len(), "neighbouring pair"),
                self.swaps.join(", or ")
            ));
        }
        lines
    }

    /// For stdout.
    pub fn words(&self, paint: Paint) -> String {
        let mut out = format!("\n{}\n", paint.strong(&self.title()));
        for (at, line) in self.lines.iter().enumerate() {
            let _ = writeln!(out, "  {:>3}  {}", at + 1, printable(line));
        }
        if self.n_more() > 0 {
            let n_more = grouped(self.n_more() as u64);
            let _ = writeln!(
                out,
                "       and {n_more} more; --certificate FILE writes them all"
            );
        }
        let _ = writeln!(out, "\n{}", paint.strong("How tight it is"));
        for line in self.judgement() {
            let _ = writeln!(out, "  {}", printable(&line));
        }
        out
    }

    /// For a page.
    pub fn section(&self) -> Markup {
        html! {
            section #order {
                h2 { "The order" }
                @for line in self.judgement() { p { (line) } }
                details {
                    summary { (self.title()) }
                    ol { @for line in &self.lines { li { (line) } } }
                    @if self.n_more() > 0 { p.soft { "And " (grouped(self.n_more() as u64)) " more." } }
                }
            }
        }
    }

    /// For the JSON document.
    pub fn view(&self) -> Option<Value> {
        let tight = self.tight.as_ref()?;
        Some(json!({
            "pairs": tight.n_pairs,
            "forced": tight.n_forced,
            "free": tight.n_free,
            "open": tight.n_open,
            "swaps": tight.swaps.len(),
        }))
    }
}
