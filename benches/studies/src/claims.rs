//! A paper's numbers beside ours, and whether they agree.
//!
//! Times of different machines are compared only as "faster" or "slower". Ratios agree within a factor of 1.5; beyond it, they
//! at least point in the same direction, or they do not.

use crate::design::{Quantity, Stated, Study};
use crate::recipe::Measure;
use crate::row::Row;
use crate::summary::spread;

/// Ratios on the same side of one and within this factor agree.
const CLOSE: f64 = 1.5;
/// A ratio closer to one than this is no difference.
const NOTICED: f64 = 1.05;

/// A claim and what the rows say to it.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The claim, in words.
    pub says: String,
    /// The paper's number.
    pub paper: String,
    /// Ours.
    pub ours: String,
    /// What follows.
    pub finding: Finding,
    /// The same in a few words.
    pub words: String,
}

/// What follows from a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The same, within measure; or better in time.
    Agrees,
    /// The same direction, another size.
    Direction,
    /// Something else.
    Differs,
    /// Runs are missing or gave no answer.
    Open,
}

/// Judges a claim.
pub fn judge(stated: &Stated, study: &Study, rows: &[Vec<&Row>], measure: Measure) -> Judged {
    let limit = study.timeout.as_secs_f64();
    let time = |point: usize| {
        let spread = spread(&rows[point], measure)?;
        Some(if stated.longest {
            spread.high
        } else {
            spread.median
        })
    };
    let more = if stated.more { "> " } else { "" };
    let (paper, ours, finding, words) = match &stated.of {
        Quantity::Time(point) => {
            let paper = format!("{more}{} s", short(stated.paper));
            match time(*point) {
                None => (
                    paper,
                    "–".to_owned(),
                    Finding::Open,
                    "no row yet".to_owned(),
                ),
                Some(ours) => {
                    let (finding, words) = compare_times(ours, limit, stated);
                    (paper, seconds(ours, limit), finding, words)
                }
            }
        }
        Quantity::Ratio(of, over) => {
            let paper = format!("{more}{} ×", short(stated.paper));
            let (ours, finding, words) = match (time(*of), time(*over)) {
                (Some(of), Some(over)) => ratio(of, over, limit, stated),
                _ => ("–".to_owned(), Finding::Open, "no row yet".to_owned()),
            };
            (paper, ours, finding, words)
        }
        Quantity::Least(along) => {
            let (ours, finding, words) = least(along, rows, measure, stated);
            (
                format!("from {}", short(stated.paper)),
                ours,
                finding,
                words,
            )
        }
        Quantity::Most(of, over) => {
            let paper = format!("{more}{} ×", short(stated.paper));
            let reach = |along| reach(along, study, rows, measure);
            let (ours, finding, words) = match (reach(of), reach(over)) {
                (Some(of), Some(over)) => most(of, over, stated),
                _ => ("–".to_owned(), Finding::Open, "rows are missing".to_owned()),
            };
            (paper, ours, finding, words)
        }
    };
    Judged {
        says: stated.says.clone(),
        paper,
        ours,
        finding,
        words,
    }
}

fn compare_times(ours: f64, limit: f64, stated: &Stated) -> (Finding, String) {
    if ours.is_infinite() {
        return if stated.more && limit <= stated.paper {
            (Finding::Agrees, "not answered here either".to_owned())
        } else if limit < stated.paper {
            (
                Finding::Open,
                "not answered within our shorter limit".to_owned(),
            )
        } else {
            (Finding::Differs, "not answered here".to_owned())
        };
    }
    let factor = stated.paper / ours;
    if stated.more {
        (
            Finding::Differs,
            format!("answered here, more than {} times faster", short(factor)),
        )
    } else if factor >= 1.0 {
        (Finding::Agrees, format!("{} times faster", short(factor)))
    } else {
        (
            Finding::Differs,
            format!("{} times slower", short(1.0 / factor)),
        )
    }
}

fn ratio(of: f64, over: f64, limit: f64, stated: &Stated) -> (String, Finding, String) {
    if over.is_infinite() {
        let words = "the smaller of the two was not answered".to_owned();
        return ("–".to_owned(), Finding::Open, words);
    }
    if of.is_infinite() {
        let least = limit / over;
        let (finding, words) = if least > stated.paper {
            (
                Finding::Direction,
                "more, because of the time limit".to_owned(),
            )
        } else {
            (Finding::Open, "the time limit hides it".to_owned())
        };
        return (format!("> {} ×", short(least)), finding, words);
    }
    let ours = of / over;
    let apart = (ours / stated.paper).max(stated.paper / ours);
    let same_way = (ours > 1.0) == (stated.paper > 1.0);
    let (finding, words) = if same_way && apart <= CLOSE {
        (Finding::Agrees, "agrees".to_owned())
    } else if ours.max(1.0 / ours) < NOTICED {
        (Finding::Differs, "no difference here".to_owned())
    } else if same_way {
        let more = if ours > stated.paper {
            "stronger"
        } else {
            "weaker"
        };
        (Finding::Direction, format!("same direction, {more}"))
    } else {
        (Finding::Differs, "the other direction".to_owned())
    };
    (format!("{} ×", short(ours)), finding, words)
}

fn least(
    along: &[(String, usize)],
    rows: &[Vec<&Row>],
    measure: Measure,
    stated: &Stated,
) -> (String, Finding, String) {
    let mut from: Option<&str> = None;
    for (name, point) in along {
        match spread(&rows[*point], measure) {
            None => return ("–".to_owned(), Finding::Open, "rows are missing".to_owned()),
            Some(spread) if spread.is_answered() => from = from.or(Some(name)),
            Some(_) => from = None,
        }
    }
    let Some(from) = from else {
        let words = "not all are answered, even at the end".to_owned();
        return ("none".to_owned(), Finding::Differs, words);
    };
    let (finding, words) = match number(from) {
        Some(number) if (number - stated.paper).abs() < 1e-9 => {
            (Finding::Agrees, "agrees".to_owned())
        }
        Some(number) if number < stated.paper => {
            (Finding::Differs, "less is enough here".to_owned())
        }
        _ => (Finding::Differs, "more is needed here".to_owned()),
    };
    (format!("from {from}"), finding, words)
}

/// The number of an axis's value, by its name.
fn number(name: &str) -> Option<f64> {
    let digits = name.trim_end_matches('%').trim().replace(',', "");
    digits.parse().ok()
}

/// How far all were answered along an axis, and whether that is its end. `None` if a row is missing that should be there.
fn reach(
    along: &[(String, usize)],
    study: &Study,
    rows: &[Vec<&Row>],
    measure: Measure,
) -> Option<(f64, bool)> {
    let mut far = 0.0;
    for (name, point) in along {
        match spread(&rows[*point], measure) {
            Some(spread) if spread.is_answered() => far = number(name)?,
            None if study.points[*point].runs.seeds > 0 => return None,
            _ => return Some((far, false)),
        }
    }
    Some((far, true))
}

fn most(of: (f64, bool), over: (f64, bool), stated: &Stated) -> (String, Finding, String) {
    let open = |words: &str| ("–".to_owned(), Finding::Open, words.to_owned());
    if over.0 <= 0.0 {
        return open("the smaller of the two answered nothing");
    }
    if over.1 {
        return open("the smaller of the two answered everything");
    }
    let ours = of.0 / over.0;
    let (at_least, finding, words) = if of.1 && ours >= stated.paper {
        (
            "≥ ",
            Finding::Agrees,
            "at least as much, all sizes being answered",
        )
    } else if of.1 {
        (
            "≥ ",
            Finding::Open,
            "all sizes are answered, and larger ones were not tried",
        )
    } else if ours.max(stated.paper) <= CLOSE * ours.min(stated.paper) {
        ("", Finding::Agrees, "agrees")
    } else if ours > stated.paper {
        ("", Finding::Direction, "same direction, stronger")
    } else if ours > 1.0 {
        ("", Finding::Direction, "same direction, weaker")
    } else {
        ("", Finding::Differs, "the other direction")
    };
    (
        format!("{at_least}{} ×", short(ours)),
        finding,
        words.to_owned(),
    )
}

/// Seconds, or that the limit was not enough.
pub fn seconds(number: f64, limit: f64) -> String {
    if number.is_infinite() {
        format!("> {} s", short(limit))
    } else {
        crate::figure::scale::time(number)
    }
}

/// A number with as many digits as are worth reading.
pub fn short(number: f64) -> String {
    if !number.is_finite() {
        return "∞".to_owned();
    }
    let digits = if number.abs() >= 99.95 {
        0
    } else if number.abs() >= 9.995 {
        1
    } else {
        2
    };
    let text = format!("{number:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stated(paper: f64, more: bool) -> Stated {
        Stated {
            says: String::new(),
            of: Quantity::Time(0),
            paper,
            more,
            longest: false,
        }
    }

    #[test]
    fn how_many_more_transactions_are_answered_is_known_only_up_to_the_largest_size() {
        let finding = |of, over| most(of, over, &stated(15.0, false)).1;
        assert_eq!(finding((10_000.0, true), (400.0, false)), Finding::Agrees);
        assert_eq!(finding((2_000.0, true), (400.0, false)), Finding::Open);
        assert_eq!(finding((5_000.0, false), (400.0, false)), Finding::Agrees);
        assert_eq!(finding((800.0, false), (400.0, false)), Finding::Direction);
        assert_eq!(finding((200.0, false), (400.0, false)), Finding::Differs);
        assert_eq!(finding((800.0, true), (800.0, true)), Finding::Open);
        assert_eq!(finding((800.0, true), (0.0, false)), Finding::Open);
    }

    #[test]
    fn ratios_agree_within_a_factor_and_else_have_a_direction() {
        let finding = |of, over, paper| ratio(of, over, 300.0, &stated(paper, false)).1;
        assert_eq!(finding(2.0, 1.0, 2.5), Finding::Agrees);
        assert_eq!(finding(9.0, 1.0, 2.0), Finding::Direction);
        assert_eq!(finding(0.5, 1.0, 2.0), Finding::Differs);
        // Close in number, but one says longer and the other shorter.
        assert_eq!(finding(0.87, 1.0, 1.16), Finding::Differs);
        assert_eq!(finding(f64::INFINITY, 1.0, 2.0), Finding::Direction);
        assert_eq!(finding(f64::INFINITY, 200.0, 2.0), Finding::Open);
        assert_eq!(finding(1.0, f64::INFINITY, 2.0), Finding::Open);
    }

    #[test]
    fn a_time_that_the_paper_did_not_reach_is_told_apart() {
        assert_eq!(
            compare_times(1.0, 300.0, &stated(300.0, true)).0,
            Finding::Differs
        );
        let (finding, _) = compare_times(f64::INFINITY, 300.0, &stated(300.0, true));
        assert_eq!(finding, Finding::Agrees);
        let (finding, words) = compare_times(1.5, 300.0, &stated(15.0, false));
        assert_eq!(
            (finding, words.as_str()),
            (Finding::Agrees, "10 times faster")
        );
        let (finding, _) = compare_times(f64::INFINITY, 5.0, &stated(15.0, false));
        assert_eq!(finding, Finding::Open);
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(short(3.0), "3");
        assert_eq!(short(0.25), "0.25");
        assert_eq!(short(12.345), "12.3");
        assert_eq!(short(1234.5), "1234");
        assert_eq!(short(100.0), "100");
    }
}
