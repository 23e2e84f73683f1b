//! A paper's numbers beside ours, and whether they agree.
//!
//! Times of different machines are compared only as "faster" or "slower". Ratios agree within a factor of 1.5; beyond it, they
//! at least point in the same direction, or they do not. Nothing is concluded about sizes that the paper did not measure, nor of runs
//! whose ranges overlap.

use std::collections::BTreeMap;

use crate::design::{Bound, Quantity, Stated, Study};
use crate::recipe::Measure;
use crate::row::Row;
use crate::summary::{Spread, spread};

/// Ratios on the same side of one and within this factor agree.
const CLOSE: f64 = 1.5;
/// A ratio closer to one than this is no difference.
const NOTICED: f64 = 1.05;

/// A claim and its comparison with the rows.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The claim, in words.
    pub says: String,
    /// The paper's number.
    pub paper: String,
    /// Ours.
    pub ours: String,
    /// What follows.
    pub finding: ClaimFinding,
    /// The same in a few words.
    pub words: String,
}

/// The result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimFinding {
    /// The same, within measure; or better in time.
    Agrees,
    /// The same direction, another size.
    Direction,
    /// Something else.
    Differs,
    /// Runs are missing or gave no answer.
    Open,
    /// The runs that are compared lie within each other's range.
    Noise,
    /// The paper measured other sizes.
    Sizes,
}

type Found = (String, ClaimFinding, String);

fn found(ours: impl Into<String>, finding: ClaimFinding, words: impl Into<String>) -> Found {
    (ours.into(), finding, words.into())
}

/// Judges a claim.
pub fn judge(stated: &Stated, study: &Study, rows: &[Vec<&Row>], measure: Measure) -> Judged {
    let limit = study.timeout.as_secs_f64();
    let spread = |point: usize| spread(&rows[point], measure);
    let sign = stated.bound.sign();
    let number = short(stated.paper);
    let missing = || found("–", ClaimFinding::Open, "no row yet");
    let (paper, (ours, finding, words)) = match &stated.of {
        Quantity::Time(point) => {
            let found = match spread(*point) {
                None => missing(),
                Some(ours) => compare_times(&ours, limit, stated),
            };
            (format!("{sign}{number} s"), found)
        }
        Quantity::Ratio(of, over) => {
            let found = match (spread(*of), spread(*over)) {
                (Some(of), Some(over)) => ratio(&of, &over, limit, stated),
                _ => missing(),
            };
            (format!("{sign}{number} ×"), found)
        }
        Quantity::Least(along) => (
            format!("from {number}"),
            least(along, rows, measure, stated),
        ),
        Quantity::Most(of, over) => {
            let reach = |along| reach(along, study, rows, measure);
            let found = match (reach(of), reach(over)) {
                (Some(of), Some(over)) => most(of, over, stated),
                _ => found("–", ClaimFinding::Open, "rows are missing"),
            };
            (format!("{sign}{number} ×"), found)
        }
    };
    let (finding, words) = match &stated.sizes {
        Some(sizes) if finding != ClaimFinding::Open => {
            (ClaimFinding::Sizes, format!("sizes differ: {sizes}"))
        }
        _ => (finding, words),
    };
    Judged {
        says: stated.says.clone(),
        paper,
        ours,
        finding,
        words,
    }
}

/// The claims that are compared, and for those that are not, because the paper measured other sizes, one line per reason.
pub fn apart(all: Vec<Judged>) -> (Vec<Judged>, Vec<String>) {
    let (others, compared): (Vec<Judged>, Vec<Judged>) = all
        .into_iter()
        .partition(|it| it.finding == ClaimFinding::Sizes);
    let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for it in others {
        let entry = reasons.entry(it.words).or_default();
        entry.push(format!(
            "{} (paper {}, here {})",
            it.says, it.paper, it.ours
        ));
    }
    let lines = reasons.into_iter().map(|(why, claims)| {
        let n = kingsnake_text::count(claims.len(), "claim");
        format!(
            "{n} of the paper not compared, {why}. {}",
            claims.join("; ")
        )
    });
    (compared, lines.collect())
}

/// What of several runs is compared.
fn representative(spread: &Spread, stated: &Stated) -> f64 {
    if stated.longest {
        spread.high
    } else {
        spread.median
    }
}

/// Whether every run of one took longer than every run of the other. One run each has no range, so nothing follows.
fn is_told_apart(one: &Spread, other: &Spread) -> bool {
    let enough = |it: &Spread| it.n > 1 || it.low.is_infinite();
    enough(one) && enough(other) && (one.high < other.low || other.high < one.low)
}

fn noise(one: &Spread, other: &Spread) -> String {
    if one.n.min(other.n) < 2 {
        "within noise: one run only".to_owned()
    } else {
        "within noise: the ranges of the runs overlap".to_owned()
    }
}

fn compare_times(ours: &Spread, limit: f64, stated: &Stated) -> Found {
    let time = representative(ours, stated);
    let shown = Measure::Seconds.within(time, limit);
    let found = |finding, words: &str| found(shown.clone(), finding, words);
    if time.is_infinite() {
        return if stated.bound == Bound::More && limit <= stated.paper {
            found(ClaimFinding::Agrees, "not answered here either")
        } else if limit < stated.paper {
            found(ClaimFinding::Open, "not answered within our shorter limit")
        } else {
            found(ClaimFinding::Differs, "not answered here")
        };
    }
    let factor = stated.paper / time;
    let within = ours.low <= stated.paper && stated.paper <= ours.high;
    match stated.bound {
        Bound::More => {
            let words = format!("answered here, more than {} times faster", short(factor));
            found(ClaimFinding::Differs, &words)
        }
        _ if within && ours.n > 1 => found(
            ClaimFinding::Noise,
            "within noise: the paper's number lies within the range of the runs",
        ),
        Bound::AtMost if factor >= 1.0 => found(ClaimFinding::Agrees, "within the bound"),
        Bound::Exact if factor >= 1.0 => found(
            ClaimFinding::Agrees,
            &format!("{} times faster", short(factor)),
        ),
        _ => {
            let words = format!("{} times slower", short(1.0 / factor));
            found(ClaimFinding::Differs, &words)
        }
    }
}

fn ratio(of: &Spread, over: &Spread, limit: f64, stated: &Stated) -> Found {
    let (above, below) = (representative(of, stated), representative(over, stated));
    if below.is_infinite() {
        let words = "the smaller of the two was not answered";
        return found("–", ClaimFinding::Open, words);
    }
    if above.is_infinite() {
        let least = limit / below;
        let shown = format!("> {} ×", short(least));
        return if least <= stated.paper {
            found(shown, ClaimFinding::Open, "the time limit hides it")
        } else if stated.bound == Bound::More {
            found(shown, ClaimFinding::Agrees, "agrees")
        } else {
            found(
                shown,
                ClaimFinding::Direction,
                "more, because of the time limit",
            )
        };
    }
    if below <= 0.0 {
        let (finding, words) = match (above > 0.0, stated.bound) {
            (false, _) => (ClaimFinding::Open, "both are zero"),
            (true, Bound::More) if is_told_apart(of, over) => (ClaimFinding::Agrees, "agrees"),
            (true, _) => (ClaimFinding::Open, "the smaller of the two is zero"),
        };
        return found(format!("{} : 0", short(above)), finding, words);
    }
    let ours = above / below;
    let shown = format!("{} ×", short(ours));
    if !is_told_apart(of, over) {
        return found(shown, ClaimFinding::Noise, noise(of, over));
    }
    let apart = (ours / stated.paper).max(stated.paper / ours);
    let same_way = (ours > 1.0) == (stated.paper > 1.0);
    if stated.bound == Bound::More {
        return if ours > stated.paper {
            found(shown, ClaimFinding::Agrees, "agrees")
        } else {
            found(shown, ClaimFinding::Differs, "the other direction")
        };
    }
    if same_way && apart <= CLOSE {
        found(shown, ClaimFinding::Agrees, "agrees")
    } else if ours.max(1.0 / ours) < NOTICED {
        found(shown, ClaimFinding::Differs, "no difference here")
    } else if same_way && ours > stated.paper {
        found(shown, ClaimFinding::Direction, "same direction, stronger")
    } else if same_way {
        found(shown, ClaimFinding::Direction, "same direction, weaker")
    } else {
        found(shown, ClaimFinding::Differs, "the other direction")
    }
}

fn least(
    along: &[(String, usize)],
    rows: &[Vec<&Row>],
    measure: Measure,
    stated: &Stated,
) -> (String, ClaimFinding, String) {
    let mut from: Option<&str> = None;
    for (name, point) in along {
        match spread(&rows[*point], measure) {
            None => {
                return (
                    "–".to_owned(),
                    ClaimFinding::Open,
                    "rows are missing".to_owned(),
                );
            }
            Some(spread) if spread.is_answered() => from = from.or(Some(name)),
            Some(_) => from = None,
        }
    }
    let Some(from) = from else {
        let words = "not all are answered, even at the end".to_owned();
        return ("none".to_owned(), ClaimFinding::Differs, words);
    };
    let (finding, words) = match number(from) {
        Some(number) if (number - stated.paper).abs() < 1e-9 => {
            (ClaimFinding::Agrees, "agrees".to_owned())
        }
        Some(number) if number < stated.paper => {
            (ClaimFinding::Differs, "less is enough here".to_owned())
        }
        _ => (ClaimFinding::Differs, "more is needed here".to_owned()),
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

fn most(of: (f64, bool), over: (f64, bool), stated: &Stated) -> (String, ClaimFinding, String) {
    let open = |words: &str| ("–".to_owned(), ClaimFinding::Open, words.to_owned());
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
            ClaimFinding::Agrees,
            "at least as much, all sizes being answered",
        )
    } else if of.1 {
        (
            "≥ ",
            ClaimFinding::Open,
            "all sizes are answered, and larger ones were not tried",
        )
    } else if ours.max(stated.paper) <= CLOSE * ours.min(stated.paper) {
        ("", ClaimFinding::Agrees, "agrees")
    } else if ours > stated.paper {
        ("", ClaimFinding::Direction, "same direction, stronger")
    } else if ours > 1.0 {
        ("", ClaimFinding::Direction, "same direction, weaker")
    } else {
        ("", ClaimFinding::Differs, "the other direction")
    };
    (
        format!("{at_least}{} ×", short(ours)),
        finding,
        words.to_owned(),
    )
}

/// A number with a reasonable number of digits.
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

    fn stated(paper: f64, bound: Bound) -> Stated {
        Stated {
            says: String::new(),
            of: Quantity::Time(0),
            paper,
            bound,
            sizes: None,
            longest: false,
        }
    }

    /// Three runs within a percent.
    fn runs(median: f64) -> Spread {
        Spread {
            low: median * 0.99,
            median,
            high: median * 1.01,
            n: 3,
            interval: (median, median),
            outliers: 0,
            lacks: None,
        }
    }

    #[test]
    fn how_many_more_transactions_are_answered_is_known_only_up_to_the_largest_size() {
        let finding = |of, over| most(of, over, &stated(15.0, Bound::Exact)).1;
        assert_eq!(
            finding((10_000.0, true), (400.0, false)),
            ClaimFinding::Agrees
        );
        assert_eq!(finding((2_000.0, true), (400.0, false)), ClaimFinding::Open);
        assert_eq!(
            finding((5_000.0, false), (400.0, false)),
            ClaimFinding::Agrees
        );
        assert_eq!(
            finding((800.0, false), (400.0, false)),
            ClaimFinding::Direction
        );
        assert_eq!(
            finding((200.0, false), (400.0, false)),
            ClaimFinding::Differs
        );
        assert_eq!(finding((800.0, true), (800.0, true)), ClaimFinding::Open);
        assert_eq!(finding((800.0, true), (0.0, false)), ClaimFinding::Open);
    }

    #[test]
    fn ratios_agree_within_a_factor_and_else_have_a_direction() {
        let finding = |of, over, paper| {
            let stated = stated(paper, Bound::Exact);
            ratio(&runs(of), &runs(over), 300.0, &stated).1
        };
        assert_eq!(finding(2.0, 1.0, 2.5), ClaimFinding::Agrees);
        assert_eq!(finding(9.0, 1.0, 2.0), ClaimFinding::Direction);
        assert_eq!(finding(0.5, 1.0, 2.0), ClaimFinding::Differs);
        // Close in number, but one says longer and the other shorter.
        assert_eq!(finding(0.87, 1.0, 1.16), ClaimFinding::Differs);
        assert_eq!(finding(f64::INFINITY, 1.0, 2.0), ClaimFinding::Direction);
        assert_eq!(finding(f64::INFINITY, 200.0, 2.0), ClaimFinding::Open);
        assert_eq!(finding(1.0, f64::INFINITY, 2.0), ClaimFinding::Open);
    }

    #[test]
    fn a_ratio_that_the_paper_only_bounds_agrees_on_its_side() {
        let finding = |of, over| ratio(&runs(of), &runs(over), 300.0, &stated(1.0, Bound::More)).1;
        assert_eq!(finding(1.2, 1.0), ClaimFinding::Agrees);
        assert_eq!(finding(0.8, 1.0), ClaimFinding::Differs);
    }

    #[test]
    fn runs_whose_ranges_overlap_tell_nothing() {
        let wide = Spread {
            low: 0.079,
            high: 0.149,
            ..runs(0.1)
        };
        let stated = stated(1.3, Bound::Exact);
        let (_, finding, words) = ratio(&wide, &runs(0.08), 300.0, &stated);
        assert_eq!(finding, ClaimFinding::Noise);
        assert!(words.contains("overlap"), "{words}");
        let once = Spread { n: 1, ..runs(2.0) };
        assert_eq!(
            ratio(&once, &runs(1.0), 300.0, &stated).1,
            ClaimFinding::Noise
        );
    }

    #[test]
    fn a_time_that_the_paper_did_not_reach_is_told_apart() {
        let more = stated(300.0, Bound::More);
        assert_eq!(
            compare_times(&runs(1.0), 300.0, &more).1,
            ClaimFinding::Differs
        );
        let never = runs(f64::INFINITY);
        assert_eq!(compare_times(&never, 300.0, &more).1, ClaimFinding::Agrees);
        let exact = stated(15.0, Bound::Exact);
        let (_, finding, words) = compare_times(&runs(1.5), 300.0, &exact);
        assert_eq!(
            (finding, words.as_str()),
            (ClaimFinding::Agrees, "10 times faster")
        );
        assert_eq!(compare_times(&never, 5.0, &exact).1, ClaimFinding::Open);
        let at_most = stated(15.0, Bound::AtMost);
        assert_eq!(
            compare_times(&runs(1.5), 300.0, &at_most).1,
            ClaimFinding::Agrees
        );
        assert_eq!(
            compare_times(&runs(15.0), 300.0, &at_most).1,
            ClaimFinding::Noise
        );
        assert_eq!(
            compare_times(&runs(30.0), 300.0, &at_most).1,
            ClaimFinding::Differs
        );
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
