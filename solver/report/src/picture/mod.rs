//! Turns a counterexample into a drawable scene: cards (transactions) on lanes (sessions), with arrows.
//!
//! Invariant: the cards of a panel are in the order of the cycle, one per column, and every arrow but the last leads
//! from a card to the next. So arrows run in the gaps between columns, where there are no cards, and no two labels
//! share a gap.

mod component;
mod cycle;
pub mod dependency;
pub mod dot;
mod found;
pub mod svg;
pub mod timeline;

use kingsnake_solver::model::{History, KeyId, Op, SessionId, TxnId};
use kingsnake_solver::verdict::{Counterexample, Moment, Proof, Split, Step, Visit};
use kingsnake_tell::Labels;
pub use kingsnake_text::short;

use crate::answer::telling::{full_op, op_words};

pub use cycle::{kind, since};

/// Further panels are omitted.
const MOST_PANELS: usize = 6;

/// What is drawn.
#[derive(Clone, Debug)]
pub struct Scene {
    /// One panel per cycle.
    pub panels: Vec<Panel>,
    /// Number of omitted cycles.
    pub hidden: usize,
}

/// One cycle.
#[derive(Clone, Debug)]
pub struct Panel {
    /// The heading, if there are several panels: a case's assumptions, or an anomaly's name.
    pub title: Vec<String>,
    /// The sessions, from top to bottom.
    pub lanes: Vec<String>,
    /// The transactions, from left to right.
    pub cards: Vec<Card>,
    /// Why one comes before another.
    pub arrows: Vec<Arrow>,
}

/// A transaction.
#[derive(Clone, Debug)]
pub struct Card {
    /// The lane of its session.
    pub lane: usize,
    /// Its name.
    pub title: String,
    /// A note about it.
    pub note: Option<&'static str>,
    /// The relevant operations.
    pub lines: Vec<CardLine>,
    /// The number of other operations.
    pub n_more: usize,
    /// Its begin and its commit, if drawn.
    pub moments: Option<Moments>,
    /// Whether it did not take effect.
    pub is_aborted: bool,
}

/// The begin and the commit of a transaction.
#[derive(Clone, Debug)]
pub struct Moments {
    /// Labels of the begin and of the commit: the word, and the time if the clock matters.
    pub words: [String; 2],
    /// Whether an arrow starts or ends at it.
    pub is_touched: [bool; 2],
}

/// An operation.
#[derive(Clone, Debug)]
pub struct CardLine {
    /// The text as drawn.
    pub text: String,
    /// The same uncut, with the story's names.
    pub words: String,
    /// With full names.
    pub full: String,
    /// Whether an arrow is about it.
    pub is_marked: bool,
}

/// Why one card comes before another.
#[derive(Clone, Debug)]
pub struct Arrow {
    /// The earlier card and its moment.
    pub from: (usize, Moment),
    /// The later card and its moment.
    pub to: (usize, Moment),
    /// What relates them.
    pub kind: ArrowKind,
    /// The key, as it is drawn.
    pub label: String,
    /// The whole reason.
    pub full: String,
}

/// What relates two transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArrowKind {
    /// Session order.
    So,
    /// Real-time order.
    Rt,
    /// One read what the other wrote.
    Wr,
    /// One overwrote the other.
    Ww,
    /// One overwrote what the other had read.
    Rw,
    /// One changed the rows of the other's condition; the other saw the change.
    PredWr,
    /// One changed the rows of the other's condition after the other had read.
    PredRw,
    /// A weak transaction saw one and read from the other.
    Vis,
    /// An assumption of the user.
    Given,
    /// Begin before commit.
    Bc,
    /// An anomaly without a cycle.
    Anomaly,
}

impl ArrowKind {
    /// The papers' abbreviations, also the names in style sheets.
    pub fn letters(self) -> &'static str {
        match self {
            ArrowKind::So => "so",
            ArrowKind::Rt => "rt",
            ArrowKind::Wr => "wr",
            ArrowKind::Ww => "ww",
            ArrowKind::Rw => "rw",
            ArrowKind::PredWr => "pred-wr",
            ArrowKind::PredRw => "pred-rw",
            ArrowKind::Vis => "vis",
            ArrowKind::Given => "given",
            ArrowKind::Bc => "bc",
            ArrowKind::Anomaly => "bad",
        }
    }

    /// The legend of an arrow; in terms of begins and commits if these are drawn.
    pub fn meaning(self, has_moments: bool) -> &'static str {
        match self {
            ArrowKind::So if has_moments => "committed before the next of its session began",
            ArrowKind::Rt if has_moments => "was over, by the clock, before the other could be",
            ArrowKind::Wr if has_moments => {
                "committed before the snapshot of the other, who read it"
            }
            ArrowKind::Ww if has_moments => {
                "committed before the other began: writers must not overlap"
            }
            ArrowKind::Rw if has_moments => "took its snapshot before the other committed",
            ArrowKind::So => "earlier in the same session",
            ArrowKind::Rt => "committed before the other began",
            ArrowKind::Wr => "wrote what the other read",
            ArrowKind::Ww => "wrote first, the other overwrote it",
            ArrowKind::Rw => "read what the other then overwrote",
            ArrowKind::PredWr => "changed which rows the other’s condition chooses",
            ArrowKind::PredRw => "asked before the other changed which rows its condition chooses",
            ArrowKind::Vis => "was seen by a transaction that read from the other",
            ArrowKind::Given => "comes first by an order that was given",
            ArrowKind::Bc => "begins before it commits",
            ArrowKind::Anomaly => "the operation that it is about",
        }
    }
}

/// The keys that the cards and arrows are about.
#[derive(Clone, Copy)]
struct PictureSource<'a> {
    history: &'a History,
    labels: &'a Labels<'a>,
}

impl PictureSource<'_> {
    fn txn(self, txn: TxnId) -> String {
        self.labels.txn(txn)
    }

    /// The sessions of these transactions, in order, and their names.
    fn lanes(self, txns: impl Iterator<Item = TxnId>) -> (Vec<SessionId>, Vec<String>) {
        let mut sessions: Vec<SessionId> = txns.map(|txn| self.history.session(txn)).collect();
        sessions.sort_unstable();
        sessions.dedup();
        let names = sessions
            .iter()
            .map(|&session| short(&format!("session {}", self.labels.session(session)), 22));
        let names = names.collect();
        (sessions, names)
    }

    /// A card of a transaction with its operations on these keys, in the lane of its session.
    fn card(self, sessions: &[SessionId], txn: TxnId, keys: &[KeyId]) -> Card {
        let history = self.history;
        let (lines, n_more) = lines(self, txn, keys, |_, op| {
            keys.iter().any(|&key| history.touches(op, key))
        });
        Card {
            lane: sessions.binary_search(&history.session(txn)).unwrap_or(0),
            title: short(&self.txn(txn), 20),
            note: None,
            lines,
            n_more,
            moments: None,
            is_aborted: false,
        }
    }
}

/// The scene of a counterexample.
pub fn scene(history: &History, labels: &Labels<'_>, counterexample: &Counterexample) -> Scene {
    let from = PictureSource { history, labels };
    let mut panels = Vec::new();
    match counterexample {
        Counterexample::Local(findings) => {
            panels.extend(
                findings
                    .iter()
                    .take(MOST_PANELS + 1)
                    .map(|finding| found::panel(from, finding)),
            );
            let hidden = findings.len().saturating_sub(MOST_PANELS);
            panels.truncate(MOST_PANELS);
            Scene { panels, hidden }
        }
        Counterexample::Cyclic(proof) => {
            let (panels, hidden) = leaves(from, proof);
            Scene { panels, hidden }
        }
        Counterexample::EitherWay {
            lost, took_effect, ..
        } => {
            let [mut one, mut other] = [lost, took_effect].map(|it| scene(history, labels, it));
            one.panels.append(&mut other.panels);
            let hidden = one.panels.len().saturating_sub(MOST_PANELS);
            one.panels.truncate(MOST_PANELS);
            Scene {
                panels: one.panels,
                hidden: hidden + one.hidden + other.hidden,
            }
        }
        Counterexample::Recorded(why) => dependency::scene(from, why),
        Counterexample::Stuck(stuck) => {
            panels.push(found::stuck_panel(from, stuck));
            Scene { panels, hidden: 0 }
        }
    }
}

/// The scene of steps between some transactions.
pub fn component_scene(
    history: &History,
    labels: &Labels<'_>,
    txns: &[TxnId],
    steps: &[Step],
) -> Scene {
    let from = PictureSource { history, labels };
    Scene {
        panels: vec![component::panel(from, txns, steps)],
        hidden: 0,
    }
}

/// A panel for every path through the cases, and the number of omitted ones.
fn leaves(from: PictureSource<'_>, proof: &Proof) -> (Vec<Panel>, usize) {
    let (mut panels, mut n_hidden) = (Vec::new(), 0);
    let mut assumed: Vec<String> = Vec::new();
    for visit in proof.visits() {
        match visit {
            Visit::Cycle(_) if panels.len() == MOST_PANELS => n_hidden += 1,
            Visit::Cycle(steps) => {
                let mut panel = cycle::panel(from, steps);
                if !assumed.is_empty() {
                    panel.title.clone_from(&assumed);
                }
                panels.push(panel);
            }
            Visit::Split(_) | Visit::Choice(..) | Visit::Aggregate(..) => {}
            Visit::Case(Split { key, one, other }) => {
                let word = if assumed.is_empty() { "If" } else { "and" };
                assumed.push(format!(
                    "{word} {} wrote {} before {}",
                    short(&from.txn(one), 24),
                    short(&from.labels.key(key), 24),
                    short(&from.txn(other), 24)
                ));
            }
            Visit::Source(source) => {
                let word = if assumed.is_empty() { "If" } else { "and" };
                let writer = source.writer.map_or_else(
                    || "the initial state".to_owned(),
                    |txn| short(&from.txn(txn), 24),
                );
                assumed.push(format!(
                    "{word} {} read {} from {writer}",
                    short(&from.txn(source.reader), 24),
                    short(&from.labels.key(source.key), 24),
                ));
            }
            Visit::EndOfCase(_) | Visit::EndOfSource(_) => {
                assumed.pop();
            }
        }
    }
    (panels, n_hidden)
}

/// The relevant operations of a transaction, then others as far as there is room.
fn lines(
    from: PictureSource<'_>,
    txn: TxnId,
    keys: &[KeyId],
    matters: impl Fn(usize, Op) -> bool,
) -> (Vec<CardLine>, usize) {
    const MOST: usize = 5;
    let ops = from.history.ops(txn);
    let n_marked = ops
        .iter()
        .enumerate()
        .filter(|&(at, &op)| matters(at, op))
        .count();
    let (mut marked_room, mut room) = (MOST, MOST.saturating_sub(n_marked).min(2));
    let mut lines = Vec::new();
    for (at, &op) in ops.iter().enumerate() {
        let is_marked = matters(at, op);
        let left = if is_marked {
            &mut marked_room
        } else {
            &mut room
        };
        if *left == 0 {
            continue;
        }
        *left -= 1;
        let words = op_words(from.labels, from.history, txn, at, keys);
        lines.push(CardLine {
            text: short(&words, 32),
            words,
            full: full_op(from.history, txn, at),
            is_marked,
        });
    }
    let n_more = ops.len() - lines.len();
    (lines, n_more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(short("short", 12), "short");
        assert_eq!(short("-8034279865592834", 9), "-803…2834");
        assert_eq!(short("éééééé", 4), "éé…é");
    }
}
